"""Functions over many values, in units of the last place of the exact result's float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opendml.program.node import Node, source
from opendml.program.scalar_type import ScalarType
from tests.program.evaluate import Array, evaluate, expanded


@dataclass(frozen=True)
class Case:
    """A function, the exact one, and its accuracy: just above what a sweep over all float32 found.

    It varies most between two to the powers `lowest` and `highest`.
    """

    function: Callable[[Node], Node]
    exact: Callable[[Array], Array]
    ulps: float
    lowest: int
    highest: int

    def magnitudes(self, step: int) -> Array:
        """Return numbers of all sizes, and every `step`-th where the function varies most."""
        return magnitudes(self.lowest, self.highest, step)

    def worst(self, step: int, expansion: Callable[[Node], Node] = expanded) -> float:
        """Return the greatest distance of an expansion, over as many numbers for every case."""
        x = self.magnitudes(step * max(self.highest - self.lowest, 4))
        with np.errstate(all="ignore"):
            exact = self.exact(x.astype(np.float64))
        return float(
            distance(evaluate(expansion(self.function(source(0, ScalarType.FLOAT32))), x), exact).max()
        )


def magnitudes(lowest: int, highest: int, step: int) -> Array:
    """Every `step`-th float32 from 2^lowest to 2^highest, fewer of the others, the edges; with both signs."""
    dense = np.arange((lowest + 127) << 23, (highest + 127) << 23, step, dtype=np.uint32)
    coarse = np.arange(0, 0x7F800000, 32749, dtype=np.uint32)
    edges = np.array([1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000], np.uint32)
    bits = np.concatenate([dense, coarse, edges])
    return np.concatenate([bits, bits | 0x80000000]).view(np.float32)


def distance(result: Array, exact: Array) -> Array:
    """|result - exact| in ULP of float32; infinite where one is NaN or infinite and the other is not."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(exact)
        ulp = np.ldexp(1.0, np.maximum(exponent, -125) - 24)
        finite = np.isfinite(exact.astype(np.float32)) & np.isfinite(result)
        same = (result == exact.astype(np.float32)) | (np.isnan(result) & np.isnan(exact))
        return np.where(finite, np.abs(result - exact) / ulp, np.where(same, 0.0, math.inf))


def greatest_distance(root: Node, exact: Array, *inputs: Array) -> float:
    return float(distance(evaluate(expanded(root), *inputs), exact).max())
