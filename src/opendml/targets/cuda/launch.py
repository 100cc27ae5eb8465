"""One launch of a kernel, and the facts about a kernel's accesses that all schedules need."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest
from opendml.targets.cuda.pattern import AccessPattern, Pattern, Step

VECTOR_BYTES = 16
"""Of the widest access of a thread."""


@dataclass(frozen=True, slots=True)
class Launch:
    """`grid` blocks of `block` threads.

    `values` are parameters by name, without addresses; `share` is one over the elements of a group. A
    launch whose blocks share groups gets `counters_bytes` of memory that is zero between launches, and
    `scratch_bytes` more. Cooperative: all blocks run at once.
    """

    pattern: Pattern
    grid: int
    block: int
    values: Mapping[str, int]
    share: float = 1.0
    shared_bytes: int = 0
    cooperative: bool = False
    counters_bytes: int = 0
    scratch_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Nest:
    """A kernel's loops, and its accesses as the loops move them."""

    kernel: Kernel
    groups: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    inner: Loop
    inner_reduced: bool
    accesses: tuple[AccessPattern, ...] = field(init=False)

    def __post_init__(self) -> None:
        accesses = (*self.kernel.loads, *self.kernel.stores)
        patterns = tuple(
            AccessPattern(
                access.type,
                _step(self.inner.strides[number], access),
                tuple(loop.strides[number] != 0 for loop in self.groups),
                tuple(loop.strides[number] != 0 for loop in self.rows),
                counter=access.buffer is None,
            )
            for number, access in enumerate(accesses)
        )
        object.__setattr__(self, "accesses", patterns)

    @property
    def loads(self) -> tuple[AccessPattern, ...]:
        """The accesses that read."""
        return self.accesses[: len(self.kernel.loads)]

    @property
    def stores(self) -> tuple[AccessPattern, ...]:
        """The accesses that write."""
        return self.accesses[len(self.kernel.loads) :]

    @property
    def group_count(self) -> int:
        """Steps of all group loops together."""
        return math.prod(loop.count for loop in self.groups)

    @property
    def row_count(self) -> int:
        """Steps of all row loops together."""
        return math.prod(loop.count for loop in self.rows)

    def wide(self, units: int) -> bool:
        """Whether an index or an offset may need more than 31 bits; `units` is the greatest index."""
        reaches = [
            sum(
                (loop.count - 1) * abs(loop.strides[number])
                for loop in (*self.groups, *self.rows, self.inner)
            )
            for number in range(len(self.accesses))
        ]
        # A grid may reach a little past the last unit.
        return max(*reaches, units) >= 2**31 - 2**22

    def strides(self) -> dict[str, int]:
        """The parameters of loops: counts, and the bytes that each moves each access."""
        values: dict[str, int] = {}
        for kind, loops in (("group", self.groups), ("row", self.rows)):
            for position, loop in enumerate(loops):
                values[f"{kind}_count{position}"] = loop.count
                values |= {f"{kind}{number}_{position}": stride for number, stride in enumerate(loop.strides)}
        values |= {f"step{number}": stride for number, stride in enumerate(self.inner.strides)}
        return values

    def vector(self, alignments: Sequence[int], whole_rows: bool) -> int:
        """Elements that a thread may move together, a power of two.

        Args:
            alignments: of each access's first element, in bytes.
            whole_rows: the innermost loop must be a multiple of the result.
        """
        steps = [access.step for access in self.accesses]
        moving = [a.type.bytes for a in self.accesses if a.step is not Step.NONE and not a.counter]
        # More than two accesses in a row would leave gaps between those of neighbouring threads.
        vector = min(VECTOR_BYTES // min(moving), 2 * VECTOR_BYTES // max(moving)) if moving else 1
        while vector > 1:
            aligned = all(
                self._aligned(number, alignments[number], vector)
                for number, step in enumerate(steps)
                if step is Step.CONTIGUOUS
            )
            fits = self.inner.count % vector == 0 if whole_rows else self.inner.count >= vector
            if aligned and fits:
                break
            vector //= 2
        return vector

    def _aligned(self, number: int, alignment: int, vector: int) -> bool:
        needed = min(VECTOR_BYTES, vector * self.accesses[number].type.bytes)
        strides = [loop.strides[number] for loop in (*self.groups, *self.rows)]
        return alignment % needed == 0 and all(stride % needed == 0 for stride in strides)


def nest_of(kernel: Kernel, loops: LoopNest) -> Nest:
    """The loops of a kernel as they are."""
    return Nest(kernel, loops.groups, loops.rows, loops.inner, loops.inner_reduced)


def _step(stride: int, access: Access) -> Step:
    if stride == access.type.bytes and access.buffer is not None:
        return Step.CONTIGUOUS
    return Step.STRIDED if stride else Step.NONE
