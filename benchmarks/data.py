"""A case's tensors, the same for every contender, and what must come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from benchmarks.cases import Case, Layout
from benchmarks.formulas import ACTIVATIONS, EXACT, normalize

SAMPLES = 200_000
# Loose enough for every library's own order of summation and approximations (values are of the order of 1),
# tight enough that a wrong formula, axis or layout cannot pass. float16 peers also round between steps.
TOLERANCE = {"float32": 1e-3, "float16": 3e-2}


@dataclass(frozen=True)
class Tensor:
    """An array with any strides, and the flat memory in which it lies from the first element to the last."""

    memory: NDArray[Any]
    array: NDArray[Any]


@dataclass(frozen=True)
class Data:
    """`x` in the case's layout, `scale` and `bias` for normalizations; `expected` stands at `where`."""

    case: Case
    x: Tensor
    scale: NDArray[Any]
    bias: NDArray[Any]
    where: tuple[NDArray[np.intp], ...]
    expected: NDArray[np.float64]

    def empty_output(self) -> Tensor:
        """A new output in the case's layout, its memory already touched."""
        return _zeros(self.case, self.case.output_layout)

    def error(self, result: NDArray[Any]) -> float:
        """The largest error of `result` as a multiple of the tolerance; infinite for wrong sizes or type."""
        if result.shape != self.case.sizes or str(result.dtype) != self.case.dtype:
            return float("inf")
        difference = np.abs(result[self.where].astype(np.float64) - self.expected)
        worst = float(np.max(difference / (1 + np.abs(self.expected))))
        return worst / TOLERANCE[self.case.dtype] if worst == worst else float("inf")


def make_data(case: Case) -> Data:
    """Normally distributed values, fixed by a seed, and the float64 results at a sample of places."""
    random = np.random.default_rng(20)
    x = _zeros(case, case.input_layout)
    part = x.array[:, :1] if case.input_layout is Layout.BROADCAST else x.array
    part[...] = random.standard_normal(part.shape, dtype=np.float32) * 2 + 0.25
    scale = random.uniform(0.5, 1.5, case.parameter_sizes).astype(case.dtype)
    bias = random.uniform(-0.5, 0.5, case.parameter_sizes).astype(case.dtype)
    where = np.unravel_index(random.integers(0, case.elements, min(SAMPLES, case.elements)), case.sizes)
    return Data(case, x, scale, bias, where, _expected(case, x.array, scale, bias, where))


def _expected(
    case: Case, x: NDArray[Any], scale: NDArray[Any], bias: NDArray[Any], where: tuple[NDArray[np.intp], ...]
) -> NDArray[np.float64]:
    if case.axes:
        exact_x, exact_scale, exact_bias = (values.astype(np.float64) for values in (x, scale, bias))
        y = normalize(EXACT, exact_x, exact_scale, exact_bias, case.axes)[where]
    else:
        y = x[where].astype(np.float64)
    for activation in case.activations:
        y = ACTIVATIONS[activation.name](EXACT, y, **dict(activation.attributes))
    return np.asarray(y, np.float64)


def _zeros(case: Case, layout: Layout) -> Tensor:
    """Zeros, written once so that their pages exist, with the strides of `layout`."""
    strides = case.strides(layout)
    needed = 1 + sum((size - 1) * stride for size, stride in zip(case.sizes, strides, strict=True))
    memory = np.full(needed, 0, case.dtype)
    return Tensor(memory, as_strided(memory, case.sizes, [stride * memory.itemsize for stride in strides]))
