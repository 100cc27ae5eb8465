"""What operators add up for each result, signs aside, where the unit of their tolerance is "terms"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import ReduceFunction


def of_softmax(x: Array, axes: Sequence[int], exact: Array) -> Array:
    """The difference of each element from the greatest is rounded, which exp magnifies by its size."""
    with np.errstate(invalid="ignore"):
        return np.asarray(exact * (1 + _below_greatest(x, axes) / 4))


def of_log_softmax(x: Array, axes: Sequence[int]) -> Array:
    """Here the difference itself is a term."""
    return 1 + _below_greatest(x, axes) / 6


def _below_greatest(x: Array, axes: Sequence[int]) -> Array:
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(wide.max(tuple(axes), keepdims=True) - wide)


def of_reduction(function: ReduceFunction, exact: Array) -> Array:
    """Sums are made in float64, and may be neighbours of the rounded ones; logarithms of them, in FLOAT32."""
    is_logarithm = function in (ReduceFunction.LOG_SUM, ReduceFunction.LOG_SUM_EXP)
    return np.abs(exact) + 1 if is_logarithm else np.abs(exact) / 4


def of_normalization(
    x: Array, axes: Sequence[int], epsilon: float, scale: Array | Any = 1.0, *, by_variance: bool = True
) -> Array:
    """The deviation of the group, by which `by_variance` divides, times the scale; up to six deviations from
    the mean, further out as much more."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        centered = wide - wide.mean(axis=tuple(axes), keepdims=True)
        deviation = np.sqrt(np.square(centered).mean(axis=tuple(axes), keepdims=True))
        root = np.sqrt(np.square(deviation) + float(np.float32(epsilon)))
        far = np.maximum(1.0, np.abs(centered) / root / 6)
    unit = 1.0 if by_variance else deviation
    return np.asarray(far * np.abs(np.asarray(scale, np.float64)) * unit)
