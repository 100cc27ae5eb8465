"""One launch of a kernel, and the facts about a kernel's accesses that all schedules need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest
from opendml.late_dataclass import dataclass
from opendml.program.node import REDUCTIONS, SCANS, Node, ordered
from opendml.program.sizes import Size, hint_of, is_traced
from opendml.targets.common.candidates import Candidate
from opendml.targets.common.forms import ValueBinding
from opendml.targets.common.guards import Guards, apart, guards_of, loads_of
from opendml.targets.common.launch import NUMBER, KernelNest, Query, inner_words, loop_words, needs_64_bits
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import CudaAccess, CudaMode, CudaPattern, moves_in_group
from opendml.targets.cuda.planned_launch import VECTOR_BYTES, alignment_of
from opendml.targets.cuda.tensor_map import TensorMap

STATIC_SHARED_BYTES = 48 * 1024
"""Bytes of shared memory of a block that the code itself names, at most; more is asked for at the launch."""
POSTS_BYTES = 2 * 16
"""Bytes in which a block leaves what it has of a line, in every second round elsewhere: those of
`kernels/published_values.cuh`."""
_STATE_BYTES = 24
"""Bytes that the state of one reduction takes, at most."""
_NEAR = 32
"""The greatest distance, and number, that is part of the code: few kernels differ in such numbers alone."""


@dataclass(frozen=True, slots=True)
class CudaLaunch:
    """`grid` blocks of `block` threads.

    Attributes:
        values: the parameters by name, without addresses.
        cooperative: all blocks run at once.
        counters_bytes: memory of the launch that is zero at first, and keeps what a launch leaves there.
        scratch_bytes: memory that blocks share, besides.
        maps: the tensor maps of the parameters.
        kernels: how many kernels of equal form it runs, with blocks beside each other along y.
    """

    pattern: CudaPattern
    grid: int
    block: int
    values: Mapping[str, int]
    shared_bytes: int = 0
    cooperative: bool = False
    counters_bytes: int = 0
    scratch_bytes: int = 0
    maps: tuple[TensorMap, ...] = ()
    kernels: int = 1

    def bound(self, binding: ValueBinding) -> CudaLaunch:
        """Return the launch of a kernel, if this is the launch of its form."""
        numbers = {name: word for name, word in self.values.items() if name.startswith(NUMBER)}
        bound = {name: binding.numbers[number] for name, number in numbers.items()}
        return replace(self, values={**self.values, **bound}) if bound else self


@dataclass(frozen=True)
class CudaQuery(Query["UnitNest", CudaMachine]):
    """A kernel that is to be scheduled on a GPU.

    Attributes:
        alignments: of the first element of each access (loads, then stores) in bytes. Only whether they are
            multiples of 2, 4, 8 and 16 counts.
    """

    alignments: Sequence[int]


def alignments_of(kernels: Sequence[Kernel]) -> tuple[int, ...]:
    """Return the alignments of the accesses of kernels of one launch over tensors that are aligned, for the
    present hints."""
    return tuple(
        [
            VECTOR_BYTES if each[0].buffer is None else min(alignment_of(hint_of(one.offset)) for one in each)
            for each in zip(*[kernel.accesses for kernel in kernels], strict=True)
        ]
    )


def check_fit(query: Any, fits: bool) -> None:
    """Check that a choice can be constructed for the sizes of a query, if it was made for others.

    Raises:
        ValueError: it cannot. Traced sizes record what they must be instead.
    """
    if not fits:
        raise ValueError(f"the choice does not fit {query.kernel}")


def tiled_pattern(
    mode: CudaMode,
    kernel: Kernel,
    accesses: Sequence[CudaAccess],
    loops: Sequence[Loop],
    greatest: int,
    constants: Mapping[str, int],
) -> CudaPattern:
    """Return the pattern of a kernel in tiles; `greatest` is the greatest index of its code over loops."""
    loads, wide = len(kernel.loads), needs_64_bits(loops, greatest)
    own = tuple(accesses[:loads]), tuple(accesses[loads:])
    return CudaPattern(mode, *own, kernel.values, 1, False, wide, tuple(constants.items()))


Table = tuple[Candidate[Any, Any, CudaLaunch], ...]
"""The ways to run the kernels of one kind."""


@dataclass(frozen=True)
class UnitNest(KernelNest):
    """The loops of a kernel, and its accesses as the loops move them.

    If `runs_on`, units run over the ends of rows.
    """

    runs_on: bool = False
    accesses: tuple[CudaAccess, ...] = field(init=False)
    _guards: Guards = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_guards", guards_of(self.kernel.values))
        count = len(self.kernel.loads) + len(self.kernel.stores)
        accesses = self._with_leaders(list(map(self._access, range(count))))
        object.__setattr__(self, "accesses", accesses if self.kernel.axes else self._with_numbers(accesses))

    def _access(self, number: int) -> CudaAccess:
        access = self.all_accesses[number]
        guards = loads_of(self._guards.get(number, ()))
        groups, rows = (
            tuple(loop.strides[number] != 0 for loop in loops) for loops in (self.groups, self.rows)
        )
        step = _step(self.inner.strides[number], access)
        if any(self.inner.strides[each] for each in guards):
            step = Step.STRIDED
        if self.runs_on and self._is_one_run(number):
            return CudaAccess(access.type, Step.FLAT, groups, (False,) * len(rows))
        if self.runs_on and any(rows):
            step = Step.BROKEN
        return CudaAccess(
            access.type,
            step,
            groups,
            rows,
            counter=access.buffer is None,
            guarded=number in self._guards,
            follows=any(loop.strides[each] for loop in self.rows for each in guards),
            still=step is Step.STRIDED and self.inner.strides[number] == 0,
        )

    def _with_leaders(self, accesses: Sequence[CudaAccess]) -> tuple[CudaAccess, ...]:
        """Return the accesses, each with the first one that moves like it, and one that it is near to."""
        result, moving, places = [], dict[object, int](), dict[object, list[int]]()
        everything = self.all_accesses
        for number, access in enumerate(accesses):
            own = everything[number]
            # At the ends of rows, within units, each finds its own next row.
            form = number if access.step is Step.BROKEN else access.step is Step.FLAT
            moves = form, *(loop.strides[number] for loop in (*self.groups, *self.rows, self.inner))
            others = places.setdefault((moves, own.buffer, own.steps, own.advance), [])
            distance = 0 if access.counter else _NEAR
            # The code has the distance, so it must not depend on traced sizes.
            apart = {each: own.offset - everything[each].offset for each in others}
            near = [each for each in others if not is_traced(apart[each]) and abs(apart[each]) <= distance]
            if not near:
                others.append(number)
            first = near[0] if near else number
            ahead = apart[first] if near else 0
            result.append(replace(access, like=moving.setdefault(moves, number), near=first, ahead=ahead))
        return tuple(result)

    def _with_numbers(self, accesses: Sequence[CudaAccess]) -> tuple[CudaAccess, ...]:
        """Return the accesses with the small numbers that are part of the code."""
        everything = self.all_accesses
        return tuple(
            replace(
                access,
                stride=_small(self.inner.strides[number]) if access.step is Step.STRIDED else None,
                strides=tuple(_small(loop.strides[number]) for loop in self.rows),
                first=_small(own.offset) if access.counter and not own.advance else None,
            )
            for number, (access, own) in enumerate(zip(accesses, everything, strict=True))
        )

    @property
    def run(self) -> tuple[Loop, ...]:
        """The loops over which units run on, outermost first."""
        return (*self.rows, self.inner) if self.runs_on else (self.inner,)

    def _is_one_run(self, number: int) -> bool:
        """Return whether the loops of the run are one in memory."""
        access = self.all_accesses[number]
        strides = [(loop.strides[number], loop.count) for loop in self.run]
        follows = all(outer[0] == inner[0] * inner[1] for outer, inner in pairwise(strides))
        return follows and _step(strides[-1][0], access) is Step.CONTIGUOUS

    def flat(self) -> UnitNest | None:
        """Return the form whose units run over the ends of rows; None if the kernel has no such form.

        All that moves within a row has to be contiguous over its end, and nothing may be guarded.
        """
        nest = replace(self, runs_on=True)
        for number, access in enumerate(nest.accesses):
            moves = self.inner.strides[number] != 0
            given = not self.inner_reduced and access.step is not Step.BROKEN
            if access.step is not Step.FLAT and moves and not given:
                return None
            is_late = number < len(self.loads) and number not in self.collective_loads and not access.counter
            if access.step is Step.BROKEN and not is_late:
                return None
        return nest if self.rows and not self._guards else None

    @property
    def state_bytes(self) -> int:
        """Bytes of the states of all reductions together, at most."""
        return _STATE_BYTES * sum(node.operation in REDUCTIONS for node in ordered(self.kernel.values))

    @property
    def collective_loads(self) -> list[int]:
        """Numbers of the loads of elements that are reduced or scanned."""
        numbers = _taken_in(self.kernel.values)
        return [n for n in numbers if moves_in_group(self.accesses[n], not self.inner_reduced)]

    @property
    def looks_up(self) -> bool:
        """True if loads are where, or read if, elements say so."""
        saying = loads_of(operand for guard in self._guards.values() for operand in guard)
        return any(not self.accesses[number].counter for number in saying)

    @property
    def loads(self) -> tuple[CudaAccess, ...]:
        """The accesses that read."""
        return self.accesses[: len(self.kernel.loads)]

    @property
    def stores(self) -> tuple[CudaAccess, ...]:
        """The accesses that write."""
        return self.accesses[len(self.kernel.loads) :]

    def pattern(
        self,
        mode: CudaMode,
        greatest: Sequence[int],
        constants: Mapping[str, int],
        vector: int = 1,
        columns: bool = False,
    ) -> CudaPattern:
        """Return the pattern of a kernel in a mode; `greatest` has the greatest indices of its code."""
        wide = needs_64_bits((*self.groups, *self.rows, self.inner), *greatest)
        values = self.kernel.values
        items = tuple(constants.items())
        return CudaPattern(mode, self.loads, self.stores, values, vector, columns, wide, items)

    def given(self) -> dict[str, int]:
        """Return the words of loops: counts, the bytes that each moves each access, and the numbers."""
        return loop_words(self.kernel, self.groups, self.rows) | inner_words(self.inner)

    def vector(self, alignments: Sequence[int], whole_rows: bool) -> int:
        """Return the elements that a thread may move together, a power of two.

        Args:
            alignments: of each access's first element, in bytes.
            whole_rows: the run must be a multiple of the result.
        """
        moving = [
            a.type.bytes for a in self.accesses if a.step not in (Step.NONE, Step.BROKEN) and not a.counter
        ]
        # More than two accesses in a row would leave gaps between those of neighbouring threads.
        vector = min(VECTOR_BYTES // min(moving), 2 * VECTOR_BYTES // max(moving)) if moving else 1
        while not self.fits(vector, alignments, whole_rows):
            vector //= 2
        return vector

    def fits(self, vector: int, alignments: Sequence[int], whole_rows: bool) -> bool:
        """Return whether a thread may move `vector` elements together; the arguments are those of `vector`.

        A schedule that was chosen for other sizes asks again, which records what traced sizes must be.
        """
        if vector == 1:
            return True
        # A unit runs over one end of a row at most.
        if self.runs_on and self.inner.count < vector:
            return False
        count = math.prod(loop.count for loop in self.run)
        fits = count % vector == 0 if whole_rows else count >= vector
        return fits and self.aligned(vector, alignments, range(len(self.accesses)))

    def aligned(self, vector: int, alignments: Sequence[int], numbers: Iterable[int]) -> bool:
        """Return whether those of some accesses that are contiguous may move `vector` elements together.

        Args:
            vector: the number of elements.
            alignments: of the first element of each access, in bytes.
            numbers: the numbers of these accesses.
        """
        unit_step = Step.FLAT if self.runs_on else Step.CONTIGUOUS
        return all(
            self._aligned(number, alignments[number], vector)
            for number in numbers
            # A guarded unit is found aligned, or not, when it is loaded.
            if self.accesses[number].step is unit_step and not self.accesses[number].guarded
        )

    def _aligned(self, number: int, alignment: int, vector: int) -> bool:
        needed = min(VECTOR_BYTES, vector * self.accesses[number].type.bytes)
        loops = (*self.groups, *(() if self.runs_on else self.rows))
        strides = [loop.strides[number] for loop in loops]
        return alignment % needed == 0 and all(stride % needed == 0 for stride in strides)


@lru_cache(maxsize=1024)
def _taken_in(values: tuple[Node, ...]) -> tuple[int, ...]:
    """Return the numbers of the loads of what values reduce or scan."""
    plain, _ = apart(values)
    taken_in = [node for node in ordered(plain) if node.operation in REDUCTIONS | SCANS]
    return tuple(sorted(loads_of(operand for node in taken_in for operand in node.operands)))


def unit_nest(kernel: Kernel, loops: LoopNest) -> UnitNest:
    """Return the loops of a kernel, over the innermost of which units run."""
    return UnitNest(loops.groups, loops.rows, loops.inner, loops.inner_reduced, kernel)


def _small(number: int) -> int | None:
    """Return a number that becomes part of the code; None if it is too large, or changes with sizes."""
    return number if not isinstance(number, Size) and abs(number) <= _NEAR else None


def _step(stride: int, access: Access) -> Step:
    if stride == access.type.bytes and access.buffer is not None:
        return Step.CONTIGUOUS
    return Step.STRIDED if stride else Step.NONE
