"""How far contractions may be from the exact sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.runtime.memory.host_array import Array

BOUND = 1e-6
"""Of the sum of the products' magnitudes: what is promised for sums that are made in float32."""


def assert_contracted(result: Array, expected: Array, magnitude: Array | Any) -> None:
    """Fails where `result` is further from the float64 expectation than `BOUND` times the `magnitude`, and
    rounding to its type, allow."""
    assert result.shape == expected.shape
    numbers = np.finfo(result.dtype)
    rounding = np.maximum(np.abs(expected) * float(numbers.eps), float(numbers.smallest_subnormal))
    allowed = BOUND * magnitude + rounding
    wrong = ~(np.abs(result.astype(np.float64) - expected) <= allowed)
    assert not wrong.any(), f"{result[wrong][0]!r} instead of {expected[wrong][0]!r}"
