"""Results that are sums against the stated bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml import Device
from opendml.spec.facts import tolerance_facts
from tools.measure_accuracy import CASES as POINTWISE
from tools.measure_sums import CASES, TYPES, distance


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_within_the_stated_bounds(name: str, dtype: np.dtype[Any], device: Device) -> None:
    row = tolerance_facts()[name][dtype.name.upper()]
    assert row["measured"] <= row["bound"]
    assert distance(name, dtype, 0, device) <= row["bound"]


def test_every_bound_is_measured() -> None:
    assert tolerance_facts().keys() == CASES.keys() | POINTWISE.keys()
