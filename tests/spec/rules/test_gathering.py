"""Elements chosen by indices."""

from __future__ import annotations

import pytest

from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

INPUT = "the input given"
TOP = "the input, axis and K given"
TUPLES = "the input, indices and dimension counts given"
WHOLE = "the other tensor and axis given"

BROKEN = [
    Broken(
        "gathered_sizes",
        "GATHER",
        {"OutputTensor": [4, 2, 2, 2, 2, 2, 2, 2]},
        [
            wrong_sizes(
                "OutputTensor",
                [4, 2, 2, 2, 2, 2, 2, 2],
                "[3, 2, 2, 2, 2, 2, 2, 2]",
                "the input, indices, axis and IndexDimensions given",
            )
        ],
    ),
    Broken(
        "meaningful_indices",
        "GATHER",
        {"IndexDimensions": 9},
        [".IndexDimensions: 9; must be 0 to 8, the tensor's number of dimensions"],
    ),
    Broken(
        "meaningful_indices",
        "GATHER",
        {"IndexDimensions": 0},
        [
            (
                ".IndicesTensor: sizes [1, 1, 1, 1, 1, 1, 1, 3]; "
                "must have 8 leading ones before 0 meaningful dimensions"
            )
        ],
    ),
    Broken(
        "meaningful_indices",
        "GATHER",
        {"IndicesTensor": [2, 1, 1, 1, 1, 1, 1, 3]},
        [
            (
                ".IndicesTensor: sizes [2, 1, 1, 1, 1, 1, 1, 3]; "
                "must have 7 leading ones before 1 meaningful dimensions"
            )
        ],
    ),
    Broken(
        "room_for_indices",
        "GATHER",
        {"IndicesTensor": [1, 1, 1, 1, 1, 1, 2, 3], "IndexDimensions": 2},
        [
            (
                ".InputTensor: 8 dimensions; must have 9, "
                "as the gathered [2, 3, 2, 2, 2, 2, 2, 2, 2], by leading ones"
            )
        ],
    ),
    Broken(
        "indexed_along_axis",
        "GATHER_ELEMENTS",
        {"IndicesTensor": [2, 2, 2, 2, 2, 2, 2, 1], "OutputTensor": [2, 2, 2, 2, 2, 2, 2, 1]},
        [
            wrong_sizes(
                "IndicesTensor",
                [2, 2, 2, 2, 2, 2, 2, 1],
                "[any, 2, 2, 2, 2, 2, 2, 2]",
                "the input and axis given",
            )
        ],
    ),
    Broken(
        "indexed_along_axis",
        "SCATTER",
        {"IndicesTensor": [2, 1, 2, 2, 2, 2, 2, 2], "UpdatesTensor": [2, 1, 2, 2, 2, 2, 2, 2]},
        [
            wrong_sizes(
                "IndicesTensor",
                [2, 1, 2, 2, 2, 2, 2, 2],
                "[any, 2, 2, 2, 2, 2, 2, 2]",
                "the input and axis given",
            )
        ],
    ),
    Broken(
        "elements_of_tuples",
        "GATHER_ND",
        {"OutputTensor": [1, 1, 1, 1, 1, 3, 4, 6]},
        [wrong_sizes("OutputTensor", [1, 1, 1, 1, 1, 3, 4, 6], "[1, 1, 1, 1, 1, 3, 4, 7]", TUPLES)],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND",
        {"InputDimensionCount": 0},
        [".InputDimensionCount: 0; must be 1 to 8, the tensor's number of dimensions"],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND1",
        {"IndicesDimensionCount": 9},
        [".IndicesDimensionCount: 9; must be 1 to 8, the tensor's number of dimensions"],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND1",
        {"IndicesDimensionCount": 2},
        [
            (
                ".IndicesTensor: sizes [1, 1, 1, 1, 1, 3, 4, 2]; "
                "must have 6 leading ones before 2 meaningful dimensions"
            )
        ],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND1",
        {"IndicesTensor": [1, 1, 1, 1, 1, 3, 4, 4]},
        [".IndicesTensor.Sizes[7]: 4; must be at most 3, the input's dimensions"],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND1",
        {"BatchDimensionCount": 3},
        [
            (
                ".BatchDimensionCount: 3; "
                "must be less than InputDimensionCount and IndicesDimensionCount, 3 and 3"
            )
        ],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND1",
        {"BatchDimensionCount": 2},
        [(".IndicesTensor.Sizes[7]: 2; must be at most 1, the input's dimensions after those of the batch")],
    ),
    Broken(
        "indices_as_tuples",
        "GATHER_ND1",
        {"BatchDimensionCount": 1},
        [
            wrong_sizes(
                "IndicesTensor",
                [1, 1, 1, 1, 1, 3, 4, 2],
                "[1, 1, 1, 1, 1, 5, any, any]",
                "the batch of the input",
            )
        ],
    ),
    Broken(
        "updates_of_tuples",
        "SCATTER_ND",
        {"UpdatesTensor": [1, 1, 1, 1, 1, 3, 4, 6]},
        [wrong_sizes("UpdatesTensor", [1, 1, 1, 1, 1, 3, 4, 6], "[1, 1, 1, 1, 1, 3, 4, 7]", TUPLES)],
    ),
    Broken(
        "indices_as_tuples",
        "SCATTER_ND",
        {"InputDimensionCount": 4294967295},
        [".InputDimensionCount: 4294967295; must be 1 to 8, the tensor's number of dimensions"],
    ),
    Broken(
        "one_index_of_each_line",
        "ONE_HOT",
        {"IndicesTensor": [2] * 8},
        [
            wrong_sizes(
                "IndicesTensor",
                [2, 2, 2, 2, 2, 2, 2, 2],
                "[1, any, any, any, any, any, any, any]",
                "the axis given",
            )
        ],
    ),
    Broken(
        "one_hot_sizes",
        "ONE_HOT",
        {"OutputTensor": [2, 2, 2, 2, 2, 2, 2, 3]},
        [
            wrong_sizes(
                "OutputTensor",
                [2, 2, 2, 2, 2, 2, 2, 3],
                "[any, 2, 2, 2, 2, 2, 2, 2]",
                "the indices and axis given",
            )
        ],
    ),
    Broken(
        "length_of_each_line",
        "REVERSE_SUBSEQUENCES",
        {"SequenceLengthsTensor": [1] * 8},
        [
            wrong_sizes(
                "SequenceLengthsTensor",
                [1, 1, 1, 1, 1, 1, 1, 1],
                "[1, 2, 2, 2, 2, 2, 2, 2]",
                "the input and axis given",
            )
        ],
    ),
    Broken(
        "off_and_on",
        "ONE_HOT",
        {"ValuesTensor": [1] * 8},
        [".ValuesTensor: sizes [1, 1, 1, 1, 1, 1, 1, 1]; must be 2 elements or more, off and on"],
    ),
    Broken(
        "enough_elements",
        "TOP_K",
        {"K": 4},
        [".K: 4; must be at most 3, InputTensor's size at axis 0"],
    ),
    Broken(
        "enough_elements",
        "TOP_K1",
        {"K": 4294967295},
        [".K: 4294967295; must be at most 3, InputTensor's size at axis 0"],
    ),
    Broken(
        "top_sizes",
        "TOP_K",
        {"K": 3},
        [
            wrong_sizes("OutputValueTensor", [2, 2, 2, 2, 2, 2, 2, 2], "[3, 2, 2, 2, 2, 2, 2, 2]", TOP),
            wrong_sizes("OutputIndexTensor", [2, 2, 2, 2, 2, 2, 2, 2], "[3, 2, 2, 2, 2, 2, 2, 2]", TOP),
        ],
    ),
    Broken(
        "top_sizes",
        "TOP_K1",
        {"OutputIndexTensor": [3, 2, 2, 2, 2, 2, 2, 2]},
        [wrong_sizes("OutputIndexTensor", [3, 2, 2, 2, 2, 2, 2, 2], "[2, 2, 2, 2, 2, 2, 2, 2]", TOP)],
    ),
    Broken(
        "coordinate_sizes",
        "NONZERO_COORDINATES",
        {"OutputCoordinatesTensor": [255, 8]},
        [wrong_sizes("OutputCoordinatesTensor", [255, 8], "[256, 8]", INPUT)],
    ),
    Broken(
        "coordinate_sizes",
        "NONZERO_COORDINATES",
        {"OutputCoordinatesTensor": [256, 7]},
        [wrong_sizes("OutputCoordinatesTensor", [256, 7], "[256, 8]", INPUT)],
    ),
    Broken(
        "coordinate_sizes",
        "NONZERO_COORDINATES",
        {"InputTensor": [1, 1, 1, 1, 1, 2, 2, 2], "OutputCoordinatesTensor": [8, 9]},
        [".OutputCoordinatesTensor: sizes [8, 9]; must be [8, 3 to 8] for the input given"],
    ),
    Broken(
        "coordinate_sizes",
        "NONZERO_COORDINATES",
        {"OutputCoordinatesTensor": [2, 256, 8]},
        [wrong_sizes("OutputCoordinatesTensor", [2, 256, 8], "[1, 256, 8]", INPUT)],
    ),
]

VALID = [
    Valid(
        "GATHER",
        {"IndexDimensions": 2},
    ),
    Valid(
        "GATHER",
        {
            "InputTensor": [1, 1, 1, 1, 1, 1, 1, 5],
            "IndicesTensor": [1, 1, 1, 1, 1, 2, 3, 4],
            "OutputTensor": [1, 1, 1, 1, 1, 2, 3, 4],
            "Axis": 7,
            "IndexDimensions": 3,
        },
    ),
    Valid(
        "GATHER",
        {
            "IndicesTensor": [1] * 8,
            "InputTensor": [1, 1, 1, 1, 1, 1, 5, 2],
            "OutputTensor": [1, 1, 1, 1, 1, 1, 1, 2],
            "Axis": 6,
            "IndexDimensions": 0,
        },
    ),
    Valid(
        "GATHER",
        {"InputTensor": [5], "IndicesTensor": [3], "OutputTensor": [3], "IndexDimensions": 1},
    ),
    Valid(
        "GATHER_ND",
        {
            "InputTensor": [3, 4, 5, 6, 7],
            "InputDimensionCount": 5,
            "IndicesTensor": [1, 1, 1, 2, 3],
            "OutputTensor": [1, 1, 2, 6, 7],
        },
    ),
    Valid(
        "GATHER_ND1",
        {
            "InputTensor": [1, 1, 1, 1, 1, 3, 6, 7],
            "OutputTensor": [1, 1, 1, 1, 1, 1, 3, 4],
            "BatchDimensionCount": 1,
        },
    ),
    Valid(
        "SCATTER_ND",
        {
            "InputTensor": [1, 8],
            "IndicesTensor": [4, 1],
            "UpdatesTensor": [1, 4],
            "OutputTensor": [1, 8],
            "InputDimensionCount": 1,
            "IndicesDimensionCount": 2,
        },
    ),
    Valid(
        "ONE_HOT",
        {"ValuesTensor": [1, 1, 1, 1, 1, 1, 1, 2]},
    ),
    Valid(
        "TOP_K",
        {
            "K": 3,
            "OutputValueTensor": [3, 2, 2, 2, 2, 2, 2, 2],
            "OutputIndexTensor": [3, 2, 2, 2, 2, 2, 2, 2],
        },
    ),
    Valid(
        "NONZERO_COORDINATES",
        {"InputTensor": [1, 1, 12, 5], "OutputCoordinatesTensor": [1, 1, 60, 2]},
    ),
    Valid(
        "NONZERO_COORDINATES",
        {"InputTensor": [1], "OutputCountTensor": [1], "OutputCoordinatesTensor": [1, 1]},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
