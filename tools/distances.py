"""How far results are from exact ones, in the units of opendml/spec/data/tolerances.json."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.runtime.memory.host_array import Array

FLOAT32_STEP = 2.0**-23
"""The precision in which what has terms adds them up, whatever the type of the result."""

ROUNDING = 0.501
"""What rounding a result to its type takes of its last place, FLOAT16's from FLOAT32 too."""


def distances(unit: str, result: Array, exact: Array, terms: Array | Any = None) -> Array:
    """The distance of each float from its float64 expectation; infinite where only one is NaN.

    Args:
        unit: "ulp", units in the last place of the exact result; "greatest", steps of the type's precision at
            the greatest magnitude of all exact results; "terms", steps of FLOAT32's precision at `terms`,
            beyond the rounding of the result to its type; "absolute", such steps at 1.
        result: of a type of floats.
        exact: its expectation.
        terms: how much is added up for each result, signs aside; only for that unit.
    """
    if unit == "ulp":
        return ulp_distance(result, exact)
    with np.errstate(all="ignore"):
        off = np.abs(result.astype(np.float64) - exact)
        match unit:
            case "greatest":
                greatest = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
                off = off / (float(np.finfo(result.dtype).eps) * greatest)
            case "terms":
                off = np.maximum(off - ROUNDING * ulp(result.dtype, exact), 0) / (FLOAT32_STEP * terms)
            case "absolute":
                off = off / FLOAT32_STEP
            case _:
                raise ValueError(unit)
        same = (result == exact.astype(result.dtype)) | (np.isnan(result) & np.isnan(exact))
    return np.where(same, 0.0, np.nan_to_num(off, nan=np.inf, posinf=np.inf))


def ulp_distance(result: Array, expected: Array) -> Array:
    """The distance of each float16 or float32 from its float64 expectation, in ULP at the latter.

    Infinite where only one is NaN. An infinity counts as the first power of two that the type does not have.
    """
    beyond = 2.0 ** np.finfo(result.dtype).maxexp
    with np.errstate(all="ignore"):
        bounded = np.clip(expected, -beyond, beyond)
        distance = np.abs(np.clip(result.astype(np.float64), -beyond, beyond) - bounded)
        distance = distance / ulp(result.dtype, bounded)
    only_one = np.isnan(result) != np.isnan(expected)
    return np.where(only_one, np.inf, np.where(np.isnan(expected), 0.0, distance))


def ulp(dtype: np.dtype[Any], exact: Array) -> Array:
    """The last place of each number in a type, in which the greatest one is that of all beyond."""
    limits = np.finfo(dtype)
    exponent = np.clip(np.frexp(exact)[1] - 1, limits.minexp, limits.maxexp - 1)
    return np.asarray(np.ldexp(1.0, exponent - limits.nmant))
