"""Regions of interest."""

from __future__ import annotations

import pytest

from opendml.spec.enums import ReduceFunction
from opendml.spec.operator_desc import Size2D
from tests.spec.rules.breaking import Broken, Valid, wrong_sizes

BROKEN = [
    Broken(
        "corners_of_regions",
        "ROI_POOLING",
        {"ROITensor": [1, 1, 5, 4]},
        [wrong_sizes("ROITensor", [1, 1, 5, 4], "[1, 1, any, 5]", "regions of batch index and corners")],
    ),
    Broken(
        "pooled_regions",
        "ROI_POOLING",
        {"PooledSize": Size2D(width=4, height=6)},
        [
            wrong_sizes(
                "OutputTensor", [5, 3, 4, 6], "[5, 3, 6, 4]", "the regions, channels and PooledSize given"
            )
        ],
    ),
    Broken(
        "pooled_regions",
        "ROI_POOLING",
        {"OutputTensor": [4, 3, 4, 6]},
        [
            wrong_sizes(
                "OutputTensor", [4, 3, 4, 6], "[5, 3, 4, 6]", "the regions, channels and PooledSize given"
            )
        ],
    ),
    Broken(
        "regions_of_batches",
        "ROI_ALIGN",
        {"ROITensor": [5, 5]},
        [wrong_sizes("ROITensor", [5, 5], "[any, 4]", "regions of two corners")],
    ),
    Broken(
        "regions_of_batches",
        "ROI_ALIGN",
        {"ROITensor": [2, 1, 5, 4]},
        [wrong_sizes("ROITensor", [2, 1, 5, 4], "[1, 1, any, 4]", "regions of two corners")],
    ),
    Broken(
        "regions_of_batches",
        "ROI_ALIGN1",
        {"BatchIndicesTensor": [5, 1]},
        [wrong_sizes("BatchIndicesTensor", [5, 1], "[1, 5]", "the regions given")],
    ),
    Broken(
        "aligned_regions",
        "ROI_ALIGN1",
        {"OutputTensor": [5, 2, 4, 6]},
        [wrong_sizes("OutputTensor", [5, 2, 4, 6], "[5, 3, any, any]", "the regions and channels given")],
    ),
    Broken(
        "aligned_gradients",
        "ROI_ALIGN_GRAD",
        {"InputGradientTensor": [4, 3, 4, 6]},
        [
            wrong_sizes(
                "InputGradientTensor", [4, 3, 4, 6], "[5, 3, any, any]", "the regions and channels given"
            )
        ],
    ),
    Broken(
        "aligned_gradients",
        "ROI_ALIGN_GRAD",
        {"OutputGradientTensor": [2, 3, 8, 9]},
        [wrong_sizes("OutputGradientTensor", [2, 3, 8, 9], "[2, 3, 8, 8]", "the InputTensor given")],
    ),
    Broken(
        "ordered_samples",
        "ROI_ALIGN",
        {"MinimumSamplesPerOutput": 9},
        [".MinimumSamplesPerOutput: 9; must be at most MaximumSamplesPerOutput, 8"],
    ),
    Broken(
        "ordered_samples",
        "ROI_ALIGN1",
        {"MaximumSamplesPerOutput": 1, "MinimumSamplesPerOutput": 2},
        [".MinimumSamplesPerOutput: 2; must be at most MaximumSamplesPerOutput, 1"],
    ),
    Broken(
        "ordered_samples",
        "ROI_ALIGN_GRAD",
        {"MinimumSamplesPerOutput": 9},
        [".MinimumSamplesPerOutput: 9; must be at most MaximumSamplesPerOutput, 8"],
    ),
    Broken(
        "region_gradients",
        "ROI_ALIGN_GRAD",
        {"OutputGradientTensor": None, "OutputROIGradientTensor": None},
        [".OutputGradientTensor: missing; required without OutputROIGradientTensor"],
    ),
    Broken(
        "region_gradients",
        "ROI_ALIGN_GRAD",
        {"InputTensor": None},
        [".InputTensor: missing; required with OutputROIGradientTensor"],
    ),
    Broken(
        "region_gradients",
        "ROI_ALIGN_GRAD",
        {"InputTensor": None, "OutputROIGradientTensor": None, "ReductionFunction": ReduceFunction.MAX},
        [".InputTensor: missing; required for ReductionFunction MAX"],
    ),
]

VALID = [
    Valid(
        "ROI_ALIGN",
        {"ROITensor": [5, 4], "BatchIndicesTensor": [5]},
    ),
    Valid(
        "ROI_ALIGN_GRAD",
        {"InputTensor": None, "OutputROIGradientTensor": None},
    ),
    Valid(
        "ROI_ALIGN_GRAD",
        {"OutputGradientTensor": None},
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
