"""Windows without weights: pooling, fold and unfold."""

from __future__ import annotations

import pytest

from tests.spec.rules.breaking import Broken, Valid, no_sizes, wrong_sizes

FOLDED = "the image, windows, strides, dilations and padding given"
POOLED = "the input, window, strides, dilations and padding given"

BROKEN = [
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING",
        {"OutputTensor": [2, 3, 3, 3, 5]},
        [wrong_sizes("OutputTensor", [2, 3, 3, 3, 5], "[2, 3, 3 or 4, 3 or 4, 3 or 4]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING",
        {"WindowSize": [3, 3, 9]},
        [no_sizes("OutputTensor", [2, 3, 3, 3, 3], "[2, 3, 3 or 4, 3 or 4, 0]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "AVERAGE_POOLING1",
        {"Dilations": [2, 2, 1]},
        [wrong_sizes("OutputTensor", [2, 3, 2, 2, 2], "[2, 3, 2 or 3, 2 or 3, 3 or 4]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING2",
        {"Dilations": [4, 2, 2]},
        [no_sizes("OutputTensor", [2, 3, 2, 2, 2], "[2, 3, 0, 2 or 3, 2 or 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "LP_POOLING",
        {"EndPadding": [1, 1, 3]},
        [wrong_sizes("OutputTensor", [2, 3, 3, 3, 3], "[2, 3, 3 or 4, 3 or 4, 4 or 5]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "LP_POOLING1",
        {"OutputTensor": [2, 2, 2, 2, 2]},
        [wrong_sizes("OutputTensor", [2, 2, 2, 2, 2], "[2, 3, 2 or 3, 2 or 3, 2 or 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING",
        {"StartPadding": [4294967295, 1, 1]},
        [
            wrong_sizes(
                "OutputTensor", [2, 3, 3, 3, 3], "[2, 3, 2147483650 or 2147483651, 3 or 4, 3 or 4]", POOLED
            )
        ],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING1",
        {"OutputTensor": [1, 3, 3, 3, 3], "OutputIndicesTensor": [1, 3, 3, 3, 3]},
        [wrong_sizes("OutputTensor", [1, 3, 3, 3, 3], "[2, 3, 3 or 4, 3 or 4, 3 or 4]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "MAX_POOLING2",
        {"Strides": [1, 2, 2]},
        [wrong_sizes("OutputTensor", [2, 3, 2, 2, 2], "[2, 3, 4, 2 or 3, 2 or 3]", POOLED)],
    ),
    Broken(
        "pooled_gradient_sizes",
        "AVERAGE_POOLING_GRAD",
        {"InputGradientTensor": [2, 3, 5, 3, 3]},
        [wrong_sizes("InputGradientTensor", [2, 3, 5, 3, 3], "[2, 3, 3 or 4, 3 or 4, 3 or 4]", POOLED)],
    ),
    Broken(
        "pooled_gradient_sizes",
        "MAX_POOLING_GRAD",
        {"InputGradientTensor": [2, 3, 2, 2, 1]},
        [wrong_sizes("InputGradientTensor", [2, 3, 2, 2, 1], "[2, 3, 2 or 3, 2 or 3, 2 or 3]", POOLED)],
    ),
    Broken(
        "pooled_sizes",
        "QUANTIZED_LINEAR_AVERAGE_POOLING",
        {"OutputTensor": [2, 3, 2, 2, 4]},
        [wrong_sizes("OutputTensor", [2, 3, 2, 2, 4], "[2, 3, 2 or 3, 2 or 3, 2 or 3]", POOLED)],
    ),
    Broken(
        "folded_columns",
        "FOLD",
        {"InputTensor": [1, 1, 1, 1, 1, 2, 6, 3]},
        [wrong_sizes("InputTensor", [1, 1, 1, 1, 1, 2, 6, 3], "[1, 1, 1, 1, 1, 2, 6, 2]", FOLDED)],
    ),
    Broken(
        "folded_columns",
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
]

VALID = [
    Valid(
        "AVERAGE_POOLING",
        {"OutputTensor": [2, 3, 4, 3, 4]},
    ),
    Valid(
        "MAX_POOLING2",
        {"OutputTensor": [2, 3, 3, 3, 3], "OutputIndicesTensor": [2, 3, 3, 3, 3]},
    ),
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
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
