"""Reductions, softmax's rows, and channel biases."""

from __future__ import annotations

import pytest

from opendml.spec import descs
from opendml.spec.enums import ReduceFunction, TensorDataType
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

BROKEN = [
    Broken(
        "reduced_sizes",
        "REDUCE",
        {"OutputTensor": [2] * 8},
        [
            wrong_sizes(
                "OutputTensor",
                [2, 2, 2, 2, 2, 2, 2, 2],
                "[1, 2, 2, 2, 2, 2, 2, 2]",
                "the input and axes given",
            )
        ],
    ),
    Broken(
        "reduced_sizes",
        "ARGMIN",
        {"Axes": []},
        [
            wrong_sizes(
                "OutputTensor",
                [1, 2, 2, 2, 2, 2, 2, 2],
                "[2, 2, 2, 2, 2, 2, 2, 2]",
                "the input and axes given",
            )
        ],
    ),
    Broken(
        "reduced_sizes",
        "ARGMAX",
        {"Axes": [1]},
        [
            wrong_sizes(
                "OutputTensor",
                [1, 2, 2, 2, 2, 2, 2, 2],
                "[2, 1, 2, 2, 2, 2, 2, 2]",
                "the input and axes given",
            )
        ],
    ),
    Broken(
        "reduced_type",
        "REDUCE",
        {"Function": ReduceFunction.SUM, "OutputTensor": TensorDataType.FLOAT16},
        [".OutputTensor: FLOAT16; must have the data type of InputTensor, FLOAT32"],
    ),
    Broken(
        "fitting_indices",
        "ARGMIN",
        {
            "InputTensor": [3 * 2**29, 2],
            "OutputTensor": TensorDesc(TensorDataType.INT32, [1, 1]),
            "Axes": [0, 1],
        },
        [".OutputTensor: INT32; must hold 3221225471, the last index of the reduced axes"],
    ),
    Broken(
        "fitting_indices",
        "ARGMAX",
        {
            "InputTensor": [3 * 2**29, 2],
            "OutputTensor": TensorDesc(TensorDataType.INT32, [1, 1]),
            "Axes": [0, 1],
        },
        [".OutputTensor: INT32; must hold 3221225471, the last index of the reduced axes"],
    ),
    Broken(
        "fitting_indices",
        "REDUCE",
        {
            "Function": ReduceFunction.ARGMAX,
            "InputTensor": [3 * 2**29, 2],
            "OutputTensor": TensorDesc(TensorDataType.INT32, [1, 1]),
            "Axes": [0, 1],
        },
        [".OutputTensor: INT32; must hold 3221225471, the last index of the reduced axes"],
    ),
    Broken(
        "rows_of_features",
        "ACTIVATION_SOFTMAX",
        {"InputTensor": [1, 1, 1, 1, 1, 2, 2, 2], "OutputTensor": [1, 1, 1, 1, 1, 2, 2, 2]},
        [
            (
                ".InputTensor: sizes [1, 1, 1, 1, 1, 2, 2, 2]; "
                "must be 2 dimensions or less after leading ones, not 3"
            )
        ],
    ),
    Broken(
        "rows_of_features",
        "ACTIVATION_LOG_SOFTMAX",
        {"InputTensor": [2, 1, 1], "OutputTensor": [2, 1, 1]},
        [".InputTensor: sizes [2, 1, 1]; must be 2 dimensions or less after leading ones, not 3"],
    ),
    Broken(
        "rows_of_features",
        "ACTIVATION_HARDMAX",
        {"InputTensor": [3, 3, 3, 3], "OutputTensor": [3, 3, 3, 3]},
        [".InputTensor: sizes [3, 3, 3, 3]; must be 2 dimensions or less after leading ones, not 4"],
    ),
    Broken(
        "channel_biases",
        "VALUE_SCALE_2D",
        {"Bias": [1.0]},
        [".Bias: 1 element; must be 3, one for each channel (ChannelCount)"],
    ),
    Broken(
        "channel_biases",
        "VALUE_SCALE_2D",
        {"InputTensor": [2, 2, 4, 5], "OutputTensor": [2, 2, 4, 5], "Bias": [0.0, 0.0]},
        [".InputTensor.Sizes[1]: 2; must be 1 or 3 channels"],
    ),
]

VALID = [
    Valid(
        "REDUCE",
        {"Function": ReduceFunction.SUM, "OutputTensor": TensorDataType.FLOAT32, "Axes": [0]},
    ),
    Valid(
        "ACTIVATION_SOFTMAX",
        {"InputTensor": [7], "OutputTensor": [7]},
    ),
    Valid(
        "VALUE_SCALE_2D",
        {"InputTensor": [2, 1, 4, 5], "OutputTensor": [2, 1, 4, 5], "Bias": [0.5]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()


@pytest.mark.parametrize(("elements", "fits"), [(2**31, True), (2**31 + 1, False)])
def test_indices_must_fit_the_output(elements: int, fits: bool) -> None:
    given = TensorDesc(TensorDataType.INT8, [1, elements], [0, 0])
    for type in (TensorDataType.INT32, TensorDataType.UINT32, TensorDataType.INT64):
        output = TensorDesc(type, [1, 1])
        found = [
            failures(descs.Argmax(given, output, axes=[1])),
            failures(descs.Argmin(given, output, axes=[0, 1])),
        ]
        if type is TensorDataType.INT32 and not fits:
            message = ".OutputTensor: INT32; must hold 2147483648, the last index of the reduced axes"
            assert found == [["ARGMAX" + message], ["ARGMIN" + message]]
        else:
            assert found == [[], []]
