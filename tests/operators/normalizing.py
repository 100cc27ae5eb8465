"""Mean-variance normalization in float64, with which results are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opendml import TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.cpu.pattern import CpuMode
from tests.running import launches
from tests.tolerances import assert_within
from tools.terms import of_normalization


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


def assert_normalized(
    result: Array, desc: OperatorDesc, x: Array, scale: Array | None, bias: Array | None
) -> None:
    """The result is that of the formula of DirectML's page without the activation, in float64; statistics in
    two passes."""
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        centered = wide - wide.mean(axis=desc.axes, keepdims=True)
        variance = np.square(centered).mean(axis=desc.axes, keepdims=True)
        root = np.sqrt(variance + float(np.float32(desc.epsilon)))
        values = centered / root if desc.normalize_variance else centered
        gain = np.float64(1.0) if scale is None else scale.astype(np.float64)
        values = values * gain if bias is None else values * gain + bias
    terms = of_normalization(x, desc.axes, desc.epsilon, gain, by_variance=desc.normalize_variance)
    assert_within(desc.operator, result, values, terms)


def modes(desc: OperatorDesc) -> list[CpuMode]:
    """How the CPU walks the desc's kernels."""
    return [launch.pattern.mode for launch in launches(desc)]


def random_values(
    seed: int, sizes: Sequence[int], type: Any, mean: float = 0.0, deviation: float = 1.0
) -> Array:
    """Normally distributed values."""
    values = np.random.default_rng(seed).standard_normal(math.prod(sizes), np.float32) * deviation + mean
    return values.astype(type).reshape(sizes)
