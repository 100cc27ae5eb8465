"""Finds the neighbouring results of a contraction that a thread makes at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.contraction_source import contraction_of, loads_beside
from opendml.targets.cuda.pattern import CudaAccess
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

_MOST = 8
"""Largest number of results in a unit; eight FLOAT16 are the widest access."""
_FEWEST_TOGETHER = 4
"""Smallest unit of results that are contiguous in memory. Instead of a smaller one, a thread makes results
across the contiguous direction: accesses are narrow, but more of them are in flight."""


@dataclass(frozen=True, slots=True)
class ResultUnits:
    """Units of `count` neighbouring results.

    They lie `across` the direction in which threads lie side by side, or along it. For each access, `steps`
    says how it moves within a unit. `strides` has the bytes from one result to the next.
    """

    count: int = 1
    across: bool = False
    steps: Mapping[int, Step] | None = None
    strides: Sequence[int] = ()

    def moved(self, patterns: Sequence[CudaAccess]) -> list[CudaAccess]:
        """Return how the accesses of a kernel move, within units too."""
        steps = self.steps or {}
        return [
            replace(each, step=steps[number]) if number in steps else each
            for number, each in enumerate(patterns)
        ]

    def lane_steps(self) -> dict[str, int]:
        """Return the parameters that say how far accesses move from one result to the next."""
        moving = [number for number, step in (self.steps or {}).items() if step is not Step.NONE]
        return {f"step{number}": self.strides[number] for number in moving}


def result_units(
    kernel: Kernel,
    alignments: Sequence[int],
    fast: Sequence[Loop],
    slow: Sequence[Loop],
    around: Sequence[Loop],
) -> ResultUnits:
    """Return the units of a contraction's results.

    Args:
        kernel: the kernel of the contraction.
        alignments: the alignment of each of its accesses, in bytes.
        fast: the loops along which threads lie side by side, if units may lie along these.
        slow: the loops across.
        around: all loops over results.
    """
    together = _count_along(fast, VECTOR_BYTES // kernel.stores[0].type.bytes)
    if together >= _FEWEST_TOGETHER:
        return units_along(kernel, alignments, fast[-1], around, together)
    apart = _count_along(slow, _MOST)
    if apart == 1:
        return ResultUnits()
    return replace(units_along(kernel, alignments, slow[-1], around, apart), across=True)


def units_along(
    kernel: Kernel, alignments: Sequence[int], loop: Loop, around: Sequence[Loop], count: int
) -> ResultUnits:
    """Return the units of `count` results along a loop; units of one result if others cannot be computed.

    The other arguments are those of `result_units`.
    """
    contraction, accesses = contraction_of(kernel.values), (*kernel.loads, *kernel.stores)
    beside = set(loads_beside(contraction, kernel.values))
    # Guards are computed for one result at a time, and an operand has steps of its own.
    if beside & (guards_of(kernel.values).keys() | loads_of(contraction.operands)):
        return ResultUnits()
    others = [each.strides for each in around if each is not loop]

    def step(number: int) -> Step:
        if not loop.strides[number]:
            return Step.NONE
        access = accesses[number]
        if access.buffer is None or loop.strides[number] != access.type.bytes:
            return Step.STRIDED
        bytes = min(VECTOR_BYTES, count * access.type.bytes)
        aligned = [alignments[number], *(strides[number] for strides in others)]
        return Step.STRIDED if any(each % bytes for each in aligned) else Step.CONTIGUOUS

    moved = [*beside, *range(len(kernel.loads), len(accesses))]
    return ResultUnits(count, steps={number: step(number) for number in moved}, strides=loop.strides)


def _count_along(loops: Sequence[Loop], most: int) -> int:
    """Return how many neighbours are a unit, which lies within the innermost loop or ends with all loops."""
    if not loops:
        return 1
    count = min(most, _MOST)
    while len(loops) > 1 and loops[-1].count % count:
        count //= 2
    return count
