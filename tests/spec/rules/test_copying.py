"""Slices, joins, tiles, padding, blocks."""

from __future__ import annotations

import pytest

from opendml import FLOAT32, TensorDesc
from opendml.spec.operator_desc import Size2D
from opendml.spec.rules.sizes import sizes_fault
from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

WHOLE = "the other tensor and axis given"

BROKEN = [
    Broken(
        "sliced_sizes",
        "SLICE",
        {"Sizes": [1] * 8},
        [
            wrong_sizes(
                "OutputTensor", [2, 2, 2, 2, 2, 2, 2, 2], "[1, 1, 1, 1, 1, 1, 1, 1]", "the Sizes given"
            )
        ],
    ),
    Broken(
        "sliced_sizes",
        "SLICE",
        {"OutputTensor": [2, 2, 2, 2, 2, 2, 2, 3]},
        [
            wrong_sizes(
                "OutputTensor", [2, 2, 2, 2, 2, 2, 2, 3], "[2, 2, 2, 2, 2, 2, 2, 2]", "the Sizes given"
            )
        ],
    ),
    Broken(
        "slice_within_input",
        "SLICE",
        {"Offsets": [1, 1, 1, 1, 1, 1, 1, 2]},
        [".Offsets[7]: 2; the last of 2 elements in steps of 2 must be below 4, not 4"],
    ),
    Broken(
        "slice_within_input",
        "SLICE",
        {"Strides": [4294967295, 2, 2, 2, 2, 2, 2, 2]},
        [(".Offsets[0]: 1; the last of 2 elements in steps of 4294967295 must be below 4, not 4294967296")],
    ),
    Broken(
        "window_within_input",
        "SLICE1",
        {"InputWindowOffsets": [2, 0, 0, 0, 0, 0, 0, 0]},
        [".InputWindowOffsets[0]: 2; must be at most 1 for a window of 4 in 5 elements"],
    ),
    Broken(
        "window_within_input",
        "SLICE1",
        {"InputWindowSizes": [4294967295, 2, 2, 2, 2, 2, 2, 2]},
        [".InputWindowSizes[0]: 4294967295; must be at most 5, what there is"],
    ),
    Broken(
        "windowed_sizes",
        "SLICE1",
        {"InputWindowStrides": [-4, 1, 1, 1, 1, 1, 1, 1]},
        [
            wrong_sizes(
                "OutputTensor",
                [2, 2, 2, 2, 2, 2, 2, 2],
                "[1, 2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1]",
                "the window and strides given",
            )
        ],
    ),
    Broken(
        "gradient_of_window",
        "SLICE_GRAD",
        {"InputGradientTensor": [3, 2, 2, 2, 2, 2, 2, 2]},
        [
            wrong_sizes(
                "InputGradientTensor",
                [3, 2, 2, 2, 2, 2, 2, 2],
                "[2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1, 2 or 1]",
                "the window and strides given",
            )
        ],
    ),
    Broken(
        "joined_sizes",
        "JOIN",
        {"InputTensors": [[1, 2, 2, 2, 2, 2, 2, 2], [2] * 8]},
        [
            wrong_sizes(
                "OutputTensor",
                [4, 2, 2, 2, 2, 2, 2, 2],
                "[3, 2, 2, 2, 2, 2, 2, 2]",
                "the inputs and axis given",
            )
        ],
    ),
    Broken(
        "equal_parts",
        "JOIN",
        {"InputTensors": [[1, 2, 2, 2, 2, 2, 2, 2], [3, 3, 2, 2, 2, 2, 2, 2]]},
        [
            wrong_sizes(
                "InputTensors[1]",
                [3, 3, 2, 2, 2, 2, 2, 2],
                "[any, 2, 2, 2, 2, 2, 2, 2]",
                "the other tensors and axis given",
            )
        ],
    ),
    Broken(
        "parts_of_whole",
        "SPLIT",
        {"InputTensor": [5, 2, 2, 2, 2, 2, 2, 2]},
        [".InputTensor.Sizes[0]: 5; must be the sum of the parts along the axis, 4"],
    ),
    Broken(
        "parts_of_whole",
        "SPLIT",
        {"OutputTensors": [[1, 2, 2, 2, 2, 2, 2, 1], [3, 2, 2, 2, 2, 2, 2, 2]]},
        [
            wrong_sizes(
                "OutputTensors[0]",
                [1, 2, 2, 2, 2, 2, 2, 1],
                "[any, 2, 2, 2, 2, 2, 2, 2]",
                "the other tensors and axis given",
            )
        ],
    ),
    Broken(
        "padded_sizes",
        "PADDING",
        {"OutputTensor": [5, 5, 5, 5, 5, 5, 5, 6]},
        [
            wrong_sizes(
                "OutputTensor",
                [5, 5, 5, 5, 5, 5, 5, 6],
                "[5, 5, 5, 5, 5, 5, 5, 5]",
                "the input and padding given",
            )
        ],
    ),
    Broken(
        "padded_sizes",
        "PADDING1",
        {"EndPadding": [2, 2, 2, 2, 2, 2, 2, 0]},
        [
            wrong_sizes(
                "OutputTensor",
                [5, 5, 5, 5, 5, 5, 5, 5],
                "[5, 5, 5, 5, 5, 5, 5, 3]",
                "the input and padding given",
            )
        ],
    ),
    Broken(
        "tiled_sizes",
        "TILE",
        {"Repeats": [3, 3, 3, 3, 3, 3, 3, 2]},
        [
            wrong_sizes(
                "OutputTensor",
                [6, 6, 6, 6, 6, 6, 6, 6],
                "[6, 6, 6, 6, 6, 6, 6, 4]",
                "the input and repeats given",
            )
        ],
    ),
    Broken(
        "upsampled_sizes",
        "UPSAMPLE_2D",
        {"ScaleSize": Size2D(width=3, height=2)},
        [wrong_sizes("OutputTensor", [2, 2, 2, 6, 4], "[2, 2, 2, 4, 6]", "the input and ScaleSize given")],
    ),
    Broken(
        "upsampled_sizes",
        "UPSAMPLE_2D",
        {"ScaleSize": Size2D(width=4294967295, height=3)},
        [
            wrong_sizes(
                "OutputTensor", [2, 2, 2, 6, 4], "[2, 2, 2, 6, 8589934590]", "the input and ScaleSize given"
            )
        ],
    ),
    Broken(
        "whole_blocks_of_space",
        "SPACE_TO_DEPTH",
        {"InputTensor": [2, 3, 7, 10]},
        [".InputTensor.Sizes[2]: 7; must be a multiple of BlockSize, 2"],
    ),
    Broken(
        "sizes_in_depth",
        "SPACE_TO_DEPTH1",
        {"OutputTensor": [2, 9, 3, 5]},
        [".OutputTensor: sizes [2, 9, 3, 5]; must be [2, 12, 3, 5] for the input and block size given"],
    ),
    Broken(
        "whole_blocks_of_depth",
        "DEPTH_TO_SPACE",
        {"InputTensor": [2, 13, 3, 5]},
        [".InputTensor.Sizes[1]: 13 channels; must be a multiple of 4 for BlockSize 2"],
    ),
    Broken(
        "sizes_in_space",
        "DEPTH_TO_SPACE1",
        {"BlockSize": 1},
        [".OutputTensor: sizes [2, 3, 6, 10]; must be [2, 12, 3, 5] for the input and block size given"],
    ),
]

VALID = [
    Valid(
        "SLICE1",
        {"OutputTensor": [1] * 8},
    ),
    Valid(
        "JOIN",
        {"InputTensors": [[4, 2, 2, 2, 2, 2, 2, 2]]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()


def test_many_allowed_sizes_are_named_without_counting_them() -> None:
    allowed = range(10**18, 0, -1)
    fault = sizes_fault(TensorDesc(FLOAT32, [0]), [allowed], "the window given")
    assert fault is not None
    assert fault.text({}) == "sizes [0]; must be [1 to 1000000000000000000] for the window given"
