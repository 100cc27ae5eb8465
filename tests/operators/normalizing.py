"""Mean-variance normalization in float64, and how far a result may be from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opendml import TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cpu.pattern import Mode
from tests.running import launches

DEVIATIONS = 1e-6
"""The greatest error of a FLOAT32 result, in deviations of its group, up to five deviations from the mean.

Further out the rounding of the result itself comes to more: the error may grow with the distance."""

ROUNDING = {np.dtype(np.float32): 0.0, np.dtype(np.float16): 0.501}
"""What rounding the result may add, in ULP: that of FLOAT32 is part of the error above."""


class Expected(NamedTuple):
    """Exact results, and the greatest error that each may have."""

    values: Array
    errors: Array


def desc_of(
    data_type: TensorDataType,
    sizes: Sequence[int],
    axes: Sequence[int],
    scale: Sequence[int] | None = None,
    bias: Sequence[int] | None = None,
    **attributes: Any,
) -> OperatorDesc:
    """A normalization of packed tensors; `scale` and `bias` are their sizes."""
    tensors = [None if s is None else TensorDesc(data_type, s) for s in (sizes, scale, bias, sizes)]
    return descs.MeanVarianceNormalization1(*tensors, axes=axes, **attributes)


def normalized(desc: OperatorDesc, x: Array, scale: Array | None, bias: Array | None) -> Expected:
    """The formula of DirectML's page without the activation, in float64; statistics in two passes."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        centered = wide - wide.mean(axis=desc.axes, keepdims=True)
        variance = np.square(centered).mean(axis=desc.axes, keepdims=True)
        root = np.sqrt(variance + float(np.float32(desc.epsilon)))
        distances = np.abs(centered) / root
        values = centered / root if desc.normalize_variance else centered
        unit = 1.0 if desc.normalize_variance else np.sqrt(variance)
        gain = np.float64(1.0) if scale is None else scale.astype(np.float64)
        errors = DEVIATIONS * np.maximum(1.0, distances / 5) * np.abs(gain) * unit
        values = values * gain if bias is None else values * gain + bias
        spacing = np.spacing(np.abs(values).astype(x.dtype)).astype(np.float64)
        # The sum with a bias is rounded, however small the deviation is against the bias.
        sum_error = ROUNDING[x.dtype] or (0.501 if bias is not None else 0.0)
        return Expected(values, np.broadcast_to(errors + sum_error * spacing, values.shape))


def assert_close(result: Array, expected: Expected) -> None:
    """No result is farther off than it may be; infinities and NaN are where they are expected."""
    values, errors = expected
    finite = np.isfinite(values)
    np.testing.assert_array_equal(result[~finite], values[~finite].astype(result.dtype))
    excess = np.abs(result.astype(np.float64)[finite] - values[finite]) - errors[finite]
    if excess.size:
        worst = int(np.argmax(excess))
        assert excess[worst] <= 0, (
            f"{result[finite][worst]} for {values[finite][worst]}, off by {excess[worst]:.3g} too much"
        )


def modes(desc: OperatorDesc) -> list[Mode]:
    """How the CPU walks the desc's kernels."""
    return [launch.pattern.mode for launch in launches(desc)]


def random_values(
    seed: int, sizes: Sequence[int], type: Any, mean: float = 0.0, deviation: float = 1.0
) -> Array:
    """Normally distributed values."""
    values = np.random.default_rng(seed).standard_normal(math.prod(sizes), np.float32) * deviation + mean
    return values.astype(type).reshape(sizes)
