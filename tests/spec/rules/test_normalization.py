"""Statistics that were not repeated at older levels."""

from __future__ import annotations

import pytest

from opendml.spec.enums import FeatureLevel
from tests.spec.rules.breaking import Broken, Valid

BELOW = "must be InputTensor's 2 with Spatial False below DML_FEATURE_LEVEL_4_0"

BROKEN = [
    Broken(
        "statistics_of_places",
        "BATCH_NORMALIZATION",
        {"MeanTensor": [1, 1, 2, 1], "VarianceTensor": [2, 2, 1, 2], "Spatial": False},
        [f".MeanTensor.Sizes[3]: 1; {BELOW}", f".VarianceTensor.Sizes[2]: 1; {BELOW}"],
        level=FeatureLevel.LEVEL_2_1,
    ),
]

VALID = [
    Valid("BATCH_NORMALIZATION", {"MeanTensor": [1] * 8, "VarianceTensor": [1] * 8, "Spatial": False}),
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_one_rule_is_broken(broken: Broken) -> None:
    broken.check()


@pytest.mark.parametrize("valid", VALID, ids=str)
def test_another_form_is_valid(valid: Valid) -> None:
    valid.check()
