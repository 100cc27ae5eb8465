"""Windows that slide: pooling, convolution, fold and unfold."""

from __future__ import annotations

import pytest

from opendml.spec.enums import ConvolutionDirection
from tests.spec.rules.breaking import Broken, Valid, no_sizes, wrong_sizes

CONVOLVED = "the input, filter, strides, dilations, padding and groups given"
FOLDED = "the image, windows, strides, dilations and padding given"
POOLED = "the input, window, strides, dilations and padding given"

BROKEN = [
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING",
        {"OutputTensor": [2, 3, 3, 3, 4]},
        [wrong_sizes("OutputTensor", [2, 3, 3, 3, 4], "[2, 3, 3, 3, 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING",
        {"WindowSize": [3, 3, 9]},
        [no_sizes("OutputTensor", [2, 3, 3, 3, 3], "[2, 3, 3, 3, 0]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING1",
        {"Dilations": [2, 2, 1]},
        [wrong_sizes("OutputTensor", [2, 3, 2, 2, 2], "[2, 3, 2, 2, 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "LP_POOLING",
        {"EndPadding": [1, 1, 3]},
        [wrong_sizes("OutputTensor", [2, 3, 3, 3, 3], "[2, 3, 3, 3, 4]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "LP_POOLING1",
        {"OutputTensor": [2, 2, 2, 2, 2]},
        [wrong_sizes("OutputTensor", [2, 2, 2, 2, 2], "[2, 3, 2, 2, 2]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING",
        {"StartPadding": [4294967295, 1, 1]},
        [wrong_sizes("OutputTensor", [2, 3, 3, 3, 3], "[2, 3, 2147483650, 3, 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING1",
        {"OutputTensor": [1, 3, 3, 3, 3], "OutputIndicesTensor": [1, 3, 3, 3, 3]},
        [wrong_sizes("OutputTensor", [1, 3, 3, 3, 3], "[2, 3, 3, 3, 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING2",
        {"Strides": [1, 2, 2]},
        [wrong_sizes("OutputTensor", [2, 3, 2, 2, 2], "[2, 3, 4, 2, 2]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING_GRAD",
        {"InputGradientTensor": [2, 3, 4, 3, 3]},
        [wrong_sizes("InputGradientTensor", [2, 3, 4, 3, 3], "[2, 3, 3, 3, 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING_GRAD",
        {"InputGradientTensor": [2, 3, 2, 2, 1]},
        [wrong_sizes("InputGradientTensor", [2, 3, 2, 2, 1], "[2, 3, 2, 2, 2]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"OutputTensor": [2, 3, 2, 2, 3]},
        [wrong_sizes("OutputTensor", [2, 3, 2, 2, 3], "[2, 3, 2, 2, 2]", POOLED)],
    ),
    Broken(
        "unfolded_sizes",
        "FOLD",
        {"InputTensor": [1, 1, 1, 1, 1, 2, 6, 3]},
        [wrong_sizes("InputTensor", [1, 1, 1, 1, 1, 2, 6, 3], "[1, 1, 1, 1, 1, 2, 6, 2]", FOLDED)],
    ),
    Broken(
        "unfolded_sizes",
        "FOLD",
        {"WindowSizes": [4, 1, 1, 1, 1, 1]},
        [no_sizes("InputTensor", [1, 1, 1, 1, 1, 2, 6, 2], "[1, 1, 1, 1, 1, 2, 12, 0]", FOLDED)],
    ),
    Broken(
        "unfolded_sizes",
        "UNFOLD",
        {"OutputTensor": [2, 3, 2]},
        [wrong_sizes("OutputTensor", [2, 3, 2], "[2, 6, 2]", FOLDED)],
    ),
    Broken(
        "unfolded_sizes",
        "UNFOLD",
        {"OutputTensor": [1, 2, 1, 1, 1, 1, 6, 2]},
        [wrong_sizes("OutputTensor", [1, 2, 1, 1, 1, 1, 6, 2], "[1, 1, 1, 1, 1, 2, 6, 2]", FOLDED)],
    ),
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
        "convolved_sizes",
        "CONVOLUTION",
        {"GroupCount": 3},
        [".GroupCount: 3; must divide InputTensor's 4 channels"],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"GroupCount": 4},
        [
            wrong_sizes(
                "FilterTensor",
                [8, 2, 3, 3, 3],
                "[any, 1, any, any, any]",
                "an input of 4 channels in 4 groups forward",
            )
        ],
    ),
    Broken(
        "convolved_sizes",
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
        "convolved_sizes",
        "CONVOLUTION",
        {"FilterTensor": [9, 2, 3, 3, 3]},
        [".GroupCount: 2; must divide FilterTensor's 9 filters"],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"Direction": ConvolutionDirection.BACKWARD},
        [
            wrong_sizes(
                "FilterTensor",
                [8, 2, 3, 3, 3],
                "[4, any, any, any, any]",
                "an input of 4 channels in 2 groups backward",
            ),
            wrong_sizes("BiasTensor", [1, 8, 1, 1, 1], "[1, 4, 1, 1, 1]", "4 output channels"),
            wrong_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 4, 11, 11, 11]", CONVOLVED),
        ],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {"Direction": ConvolutionDirection.BACKWARD, "FilterTensor": [4, 4, 3, 3, 3]},
        [wrong_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 8, 11, 11, 11]", CONVOLVED)],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION",
        {
            "Direction": ConvolutionDirection.BACKWARD,
            "FilterTensor": [4, 4, 3, 3, 3],
            "StartPadding": [20, 1, 1],
        },
        [no_sizes("OutputTensor", [2, 8, 3, 3, 3], "[2, 8, 0, 11, 11]", CONVOLVED)],
    ),
    Broken(
        "convolved_sizes",
        "CONVOLUTION_INTEGER",
        {"OutputTensor": [2, 6, 3, 3]},
        [wrong_sizes("OutputTensor", [2, 6, 3, 3], "[2, 8, 3, 3]", CONVOLVED)],
    ),
    Broken(
        "convolved_sizes",
        "QUANTIZED_LINEAR_CONVOLUTION",
        {"BiasTensor": [1, 8, 3, 3]},
        [wrong_sizes("BiasTensor", [1, 8, 3, 3], "[1, 8, 1, 1]", "8 output channels")],
    ),
]

VALID = [
    Valid(
        "AVERAGE_POOLING",
        {
            "InputTensor": [2, 3, 6, 6],
            "OutputTensor": [2, 3, 3, 2],
            "Strides": [2, 3],
            "WindowSize": [3, 2],
            "StartPadding": [1, 0],
            "EndPadding": [1, 0],
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
        "UNFOLD",
        {
            "InputTensor": [1, 3, 4, 5],
            "OutputTensor": [1, 12, 12],
            "WindowSizes": [2, 2],
            "Strides": [1, 1],
            "Dilations": [1, 1],
            "StartPadding": [0, 0],
            "EndPadding": [0, 0],
        },
    ),
    Valid(
        "FOLD",
        {
            "InputTensor": [1, 12, 12],
            "OutputTensor": [1, 3, 4, 5],
            "WindowSizes": [2, 2],
            "Strides": [1, 1],
            "Dilations": [1, 1],
            "StartPadding": [0, 0],
            "EndPadding": [0, 0],
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
