"""Convolution forward and backward."""

from __future__ import annotations

import pytest

from opendml.spec.enums import ConvolutionDirection
from tests.spec.rules.breaking import Broken, Valid, no_sizes, wrong_sizes

CONVOLVED = "the input, filter, strides, dilations, padding and groups given"

BROKEN = [
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"OutputTensor": [2, 8, 3, 3, 4]},
        [wrong_sizes("OutputTensor", [2, 8, 3, 3, 4], "[2, 8, 3, 3, 3]", CONVOLVED)],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"OutputPadding": [0, 0, 1]},
        [wrong_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 8, 3, 3, 4]", CONVOLVED)],
    ),
    Broken(
        "equal_groups",
        "CONVOLUTION",
        {"GroupCount": 3},
        [".GroupCount: 3; must divide InputTensor's 4 channels"],
    ),
    Broken(
        "convolved_channels",
        "CONVOLUTION",
        {"GroupCount": 4},
        [
            wrong_sizes(
                "FilterTensor", [8, 2, 3, 3, 3], "[any, 1, any, any, any]", "4 channels in 4 groups forward"
            )
        ],
    ),
    Broken(
        "convolved_channels",
        "CONVOLUTION",
        {"GroupCount": 1},
        [wrong_sizes("FilterTensor", [8, 2, 3, 3, 3], "[any, 4, any, any, any]", "4 channels forward")],
    ),
    Broken(
        "convolved_channels",
        "CONVOLUTION",
        {"BiasTensor": [1, 1, 1, 1, 1]},
        [wrong_sizes("BiasTensor", [1, 1, 1, 1, 1], "[1, 8, 1, 1, 1]", "8 output channels")],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"Dilations": [4, 1, 1]},
        [no_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 8, 0, 3, 3]", CONVOLVED)],
    ),
    Broken(
        "equal_groups",
        "CONVOLUTION",
        {"FilterTensor": [9, 2, 3, 3, 3]},
        [".GroupCount: 2; must divide FilterTensor's 9 filters"],
    ),
    Broken(
        "convolved_channels",
        "CONVOLUTION",
        {"Direction": ConvolutionDirection.BACKWARD, "BiasTensor": None, "OutputTensor": [2, 4, 11, 11, 11]},
        [
            wrong_sizes(
                "FilterTensor", [8, 2, 3, 3, 3], "[4, any, any, any, any]", "4 channels in 2 groups backward"
            )
        ],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"Direction": ConvolutionDirection.BACKWARD, "FilterTensor": [4, 4, 3, 3, 3]},
        [wrong_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 8, 11 or 12, 11 or 12, 11 or 12]", CONVOLVED)],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {
            "Direction": ConvolutionDirection.BACKWARD,
            "FilterTensor": [4, 4, 3, 3, 3],
            "StartPadding": [20, 1, 1],
        },
        [no_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 8, 0, 11 or 12, 11 or 12]", CONVOLVED)],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION_INTEGER",
        {"OutputTensor": [2, 6, 3, 3]},
        [wrong_sizes("OutputTensor", [2, 6, 3, 3], "[2, 8, 3, 3]", CONVOLVED)],
    ),
    Broken(
        "convolved_channels",
        "QUANTIZED_LINEAR_CONVOLUTION",
        {"BiasTensor": [1, 8, 3, 3]},
        [wrong_sizes("BiasTensor", [1, 8, 3, 3], "[1, 8, 1, 1]", "8 output channels")],
    ),
]

VALID = [
    Valid(
        "CONVOLUTION",
        {
            "Direction": ConvolutionDirection.BACKWARD,
            "FilterTensor": [4, 4, 3, 3, 3],
            "OutputTensor": [2, 8, 12, 11, 12],
        },
    ),
    Valid(
        "CONVOLUTION",
        {
            "Direction": ConvolutionDirection.BACKWARD,
            "FilterTensor": [4, 4, 3, 3, 3],
            "OutputTensor": [2, 8, 1, 11, 12],
            "StartPadding": [12, 1, 1],
        },
    ),
    Valid(
        "CONVOLUTION",
        {
            "Direction": ConvolutionDirection.BACKWARD,
            "FilterTensor": [4, 4, 3, 3, 3],
            "OutputTensor": [2, 8, 12, 11, 11],
            "OutputPadding": [1, 0, 0],
        },
    ),
    Valid(
        "CONVOLUTION",
        {
            "InputTensor": [1, 4, 7],
            "FilterTensor": [4, 1, 3],
            "BiasTensor": [1, 4, 1],
            "OutputTensor": [1, 4, 4],
            "GroupCount": 4,
            "Strides": [1],
            "Dilations": [2],
            "StartPadding": [0],
            "EndPadding": [1],
            "OutputPadding": [0],
        },
    ),
    Valid(
        "CONVOLUTION_INTEGER",
        {"FilterZeroPointTensor": [1, 8, 1, 1]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
