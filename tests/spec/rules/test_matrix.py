"""Products of matrices."""

from __future__ import annotations

import pytest

from opendml.spec.enums import MatrixTransform
from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

BROKEN = [
    Broken(
        "matching_matrices",
        "GEMM",
        {"BTensor": [2, 2, 5, 4]},
        [
            wrong_sizes(
                "BTensor",
                [2, 2, 5, 4],
                "[2, 2, 4, any]",
                "the leading sizes and the K of ATensor; with TransB TRANSPOSE it is the last size that must "
                "be K",
            )
        ],
    ),
    Broken(
        "matching_matrices",
        "GEMM",
        {"BTensor": [2, 2, 5, 5]},
        [wrong_sizes("BTensor", [2, 2, 5, 5], "[2, 2, 4, any]", "the leading sizes and the K of ATensor")],
    ),
    Broken(
        "matching_matrices",
        "GEMM",
        {"BTensor": [2, 1, 4, 5]},
        [wrong_sizes("BTensor", [2, 1, 4, 5], "[2, 2, 4, any]", "the leading sizes and the K of ATensor")],
    ),
    Broken(
        "matching_matrices",
        "GEMM",
        {"TransA": MatrixTransform.TRANSPOSE},
        [".BTensor: sizes [2, 2, 4, 5]; must be [2, 2, 3, any] for the leading sizes and the K of ATensor"],
    ),
    Broken(
        "addend_of_product",
        "GEMM",
        {"CTensor": [1, 1, 1, 5]},
        [
            wrong_sizes(
                "CTensor",
                [1, 1, 1, 5],
                "[2, 2, 3, 5]",
                "the product of ATensor and BTensor; strides of 0 repeat a row, as in np.broadcast_to",
            )
        ],
    ),
    Broken(
        "product_sizes",
        "GEMM",
        {"OutputTensor": [2, 2, 3, 4]},
        [wrong_sizes("OutputTensor", [2, 2, 3, 4], "[2, 2, 3, 5]", "the product of ATensor and BTensor")],
    ),
    Broken(
        "product_sizes",
        "MATRIX_MULTIPLY_INTEGER",
        {"OutputTensor": [2, 2, 5, 3]},
        [wrong_sizes("OutputTensor", [2, 2, 5, 3], "[2, 2, 3, 5]", "the product of ATensor and BTensor")],
    ),
    Broken(
        "product_sizes",
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
        {"OutputTensor": [2, 1, 3, 5], "BiasTensor": [2, 1, 3, 5]},
        [wrong_sizes("OutputTensor", [2, 1, 3, 5], "[2, 2, 3, 5]", "the product of ATensor and BTensor")],
    ),
    Broken(
        "matching_matrices",
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        {"ATensor": [2, 2, 3, 5]},
        [wrong_sizes("BTensor", [2, 2, 4, 5], "[2, 2, 5, any]", "the leading sizes and the K of ATensor")],
    ),
]

VALID = [
    Valid(
        "GEMM",
        {
            "ATensor": [2, 2, 4, 3],
            "BTensor": [2, 2, 5, 4],
            "TransA": MatrixTransform.TRANSPOSE,
            "TransB": MatrixTransform.TRANSPOSE,
        },
    ),
    Valid(
        "GEMM",
        {"ATensor": [3, 4], "BTensor": [4, 5], "CTensor": None, "OutputTensor": [3, 5]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
