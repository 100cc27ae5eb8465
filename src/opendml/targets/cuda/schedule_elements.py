"""The ways to launch element-wise kernels: in units along rows, or in squares where operands lie across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opendml.compiler.loops import Loop
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.costs import PANEL, SHARED_INSTRUCTIONS, instructions, reading
from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, CudaQuery, Table, UnitNest
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaAccess, CudaMode, CudaPattern

_THREADS = 128
_UNITS = 2
"""Units of 16 bytes that one thread loads before it computes."""
_HALF_UNITS = 4
"""The same of 8 bytes: of fewer, blocks would be so many that they could not begin fast enough."""
_SCALAR_UNITS = 8
"""The same of less."""
_MANY_LANES = 16
"""Elements of a vector, each of which takes instructions, that are enough for a thread."""
_SQUARE_THREADS = 256
"""Threads of a block that transposes."""
_LEAST_SIDE = 16
"""Least steps of both loops for which a transposition goes through shared memory."""
_INTERLEAVED = 2
"""Elements of a unit where loads leave out some of those between, at most."""
_LONGEST_SHORT = 8
"""Steps of a loop along which units are whole rows, at most."""
_MANY_GATHERED = 4 * 1024 * 1024
"""Elements that are gathered, at least, where panels are worth it."""
_SECTOR_BYTES = 32
"""Bytes that memory moves at once."""
_ACROSS = 4
"""Units of a thread that lie across, at most."""
_ACROSS_LOADS = 4
"""Loads, none of which is guarded, from which on there is something to be found for units that lie across."""
_ACROSS_WORDS = 64
"""Words of 4 bytes that a thread reads before it computes units that lie across, at most."""
_ACROSS_BYTES = 128
"""Bytes at least between results of units of a thread that lie across: what a warp stores at once."""


@dataclass(frozen=True, slots=True)
class Units:
    """Units of so many elements along the innermost loop of `nest`, so many of them by each thread: all steps
    of the row loop, if there is one."""

    nest: UnitNest
    vector: int
    per_thread: int


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of so many steps of the one row loop and the innermost loop of `nest`, whose elements move in
    units of `vector` along each; `loads`: which are turned."""

    nest: UnitNest
    loads: tuple[CudaAccess, ...]
    side: int
    vector: int


def _in_units(query: CudaQuery) -> Estimate[Units]:
    return _units_of(query, _in_panels(query.nest), _moved_bytes(query.nest))


def _in_panels(nest: UnitNest) -> UnitNest:
    """The nest in panels, one after the other, if elements of a row are gathered from many: what other rows
    take from the same sectors finds them in the L2 cache."""
    loads = zip(nest.loads, nest.inner.strides, strict=False)
    gathers = any(
        load.guarded and load.step is Step.STRIDED and stride == load.type.bytes for load, stride in loads
    )
    count, strides = nest.inner.count, nest.inner.strides
    if not gathers or count % PANEL or nest.group_count * count < _MANY_GATHERED:
        return nest
    panels = Loop(count // PANEL, tuple(PANEL * stride for stride in strides))
    return replace(nest, groups=(panels, *nest.groups), inner=Loop(PANEL, strides))


def _in_short_units(query: CudaQuery) -> Estimate[Units] | Refusal:
    """Along rows of few results, as windows of upsampling and blocks of space have: threads beside each other
    take rows that follow each other."""
    nest = _along_stores(query.nest)
    if nest is query.nest or nest.inner.count > _LONGEST_SHORT or nest.inner.count & (nest.inner.count - 1):
        return Refusal(f"results are contiguous along no other loop of 2, 4 or {_LONGEST_SHORT} steps")
    first = len(nest.loads)
    groups = tuple(sorted(nest.groups, key=lambda loop: loop.strides[first:], reverse=True))
    nest = replace(nest, groups=groups)
    return _units_of(query, nest, _moved_in_short_units(nest))


def _units_of(query: CudaQuery, nest: UnitNest, moved: int) -> Estimate[Units]:
    machine = query.machine
    vector = nest.vector(query.alignments, whole_rows=False)
    # Where elements lie apart within a sector, threads beside each other take those beside each other.
    reads, writes = _interleaved(nest)
    if reads or writes:
        vector = min(vector, 1 if writes else _INTERLEAVED)
    # Results that take two accesses leave half of each cache line to the second.
    vector = min(vector, VECTOR_BYTES // max(access.type.bytes for access in nest.stores))
    units = nest.group_count * -(-nest.inner.count // vector)
    widest = max((a.type.bytes for a in nest.accesses if a.step is not Step.NONE), default=1) * vector
    per_thread = _UNITS if reads or writes else _units_of_thread(widest)
    if vector >= _MANY_LANES:
        per_thread = 1
    # Small work is spread over the whole device.
    while per_thread > 1 and units < machine.multiprocessors * _THREADS * per_thread:
        per_thread //= 2
    # More of short units had better be on their way at once.
    is_short = widest < VECTOR_BYTES // 2 and per_thread > _UNITS
    counts = (min(per_thread, _ACROSS), min(per_thread, _ACROSS if is_short else _UNITS))
    across = (_across(nest, vector, count, is_short) for count in dict.fromkeys(counts))
    nest = next(filter(None, across), nest)
    way = Units(nest, vector, nest.row_count if nest.rows else per_thread)
    return Estimate(way, {"memory": reading(machine, moved)})


def _units_of_thread(bytes: int) -> int:
    """Units of so many bytes that one thread loads before it computes."""
    if bytes >= VECTOR_BYTES:
        return _UNITS
    return _HALF_UNITS if bytes >= VECTOR_BYTES // 2 else _SCALAR_UNITS


def _across(nest: UnitNest, vector: int, count: int, is_short: bool) -> UnitNest | None:
    """The nest with so many steps of a loop as rows, which one thread takes: it finds once what is alike for
    all of them, such as the places of windows. None where there is little to be found, as of places that
    elements say, where registers do not do, or where short units would be loaded for each step."""
    first = len(nest.loads)
    read = [n for n, load in enumerate(nest.loads) if not load.counter and load.step is not Step.NONE]
    is_simple = len(read) < _ACROSS_LOADS and not any(nest.accesses[number].guarded for number in read)
    words = count * vector * sum(max(1, nest.accesses[number].type.bytes // 4) for number in read)
    if count == 1 or len(read) < 2 or is_simple or nest.looks_up or words > _ACROSS_WORDS:
        return None

    def moved(place: int) -> tuple[int, int]:
        """How many elements are others with every step, and if any are, how many numbers."""
        strides = nest.groups[place].strides
        elements = sum(strides[number] != 0 for number in read)
        return elements, sum(map(bool, strides[:first])) if elements else 0

    places = [
        place
        for place, loop in enumerate(nest.groups)
        if loop.count % count == 0 and min(map(abs, loop.strides[first:])) >= _ACROSS_BYTES
    ]
    place = min(reversed(places), key=moved, default=None)
    if place is None or (is_short and moved(place)[0]):
        return None
    loop = nest.groups[place]
    rest = Loop(loop.count // count, tuple(count * stride for stride in loop.strides))
    others = () if rest.count == 1 else (rest,)
    groups = (*nest.groups[:place], *others, *nest.groups[place + 1 :])
    return replace(nest, groups=groups, rows=(Loop(count, loop.strides),))


def _interleaved(nest: UnitNest) -> tuple[bool, bool]:
    """Whether a load, and whether a store, leaves out elements of the sectors that it moves."""
    found = [
        access.step is Step.STRIDED and not access.counter and access.type.bytes < abs(stride) < _SECTOR_BYTES
        for access, stride in zip(nest.accesses, nest.inner.strides, strict=True)
    ]
    return any(found[: len(nest.loads)]), any(found[len(nest.loads) :])


def _run_units(_: CudaQuery, way: Units) -> CudaLaunch:
    nest = way.nest
    row_units = -(-nest.inner.count // way.vector)
    units = nest.group_count * row_units
    across = bool(nest.rows)
    constants = (("THREADS", _THREADS), ("UNITS", way.per_thread), ("ACROSS", int(across)))
    pattern = CudaPattern(
        CudaMode.POINTWISE,
        way.vector,
        False,
        nest.wide(units),
        nest.loads,
        nest.stores,
        nest.kernel.values,
        constants,
    )
    full, rest = divmod(nest.inner.count, way.vector)
    words = launch_words(pattern.mode, all_units=units, row_length=row_units, full_units=full, rest=rest)
    grid = -(-units // (_THREADS if across else _THREADS * way.per_thread))
    return CudaLaunch(pattern, grid, _THREADS, nest.given() | words)


def _in_squares(query: CudaQuery) -> Estimate[Squares] | Refusal:
    nest = _along_stores(query.nest)
    if any(access.step is not Step.CONTIGUOUS for access in nest.stores):
        return Refusal("results are contiguous along no loop")
    if nest.inner.count < _LEAST_SIDE:
        return Refusal(f"results have {nest.inner.count} steps in a row; at least {_LEAST_SIDE}")
    loop = next(
        (loop for loop in nest.groups if loop.count >= _LEAST_SIDE and any(_turned(nest, loop))), None
    )
    if loop is None:
        return Refusal(f"no operand is contiguous along another loop of at least {_LEAST_SIDE} steps")
    others = tuple(other for other in nest.groups if other is not loop)
    square = UnitNest(others, (loop,), nest.inner, False, nest.kernel)
    turned = _turned(nest, loop)
    loads = tuple(replace(access, turned=turn) for access, turn in zip(square.loads, turned, strict=True))
    held = sum(access.type.bytes for access in loads if access.turned)
    side = 32 if held > 8 else 64
    way = Squares(square, loads, side, _vector_of_squares(square, loads, query.alignments, side))
    elements = nest.group_count * nest.inner.count
    return Estimate(
        way,
        {
            "memory": reading(query.machine, _moved_bytes(square, turned)),
            "shared": instructions(query.machine, SHARED_INSTRUCTIONS * elements * sum(turned)),
        },
    )


def _run_squares(query: CudaQuery, way: Squares) -> CudaLaunch:
    nest, side = way.nest, way.side
    (loop,) = nest.rows
    across, down = -(-nest.inner.count // side), -(-loop.count // side)
    tiles = nest.group_count * across * down
    constants = (("THREADS", _SQUARE_THREADS), ("SIDE", side))
    pattern = CudaPattern(
        CudaMode.TRANSPOSED,
        way.vector,
        False,
        nest.wide(tiles),
        way.loads,
        nest.stores,
        nest.kernel.values,
        constants,
    )
    words = launch_words(
        pattern.mode, width=nest.inner.count, height=loop.count, tiles_across=across, tiles_down=down
    )
    return CudaLaunch(pattern, tiles, _SQUARE_THREADS, nest.given() | words)


def _vector_of_squares(
    square: UnitNest, loads: Sequence[CudaAccess], alignments: Sequence[int], side: int
) -> int:
    """Elements that move together along both loops of squares."""
    (loop,) = square.rows
    if any(load.turned and load.guarded for load in loads):
        return 1
    turned = [number for number, load in enumerate(loads) if load.turned]
    along_rows = UnitNest((*square.groups, square.inner), (), loop, False, square.kernel)
    widest = max(access.type.bytes for access in square.accesses)
    vector = min(VECTOR_BYTES // widest, side * side // _SQUARE_THREADS)
    while vector > 1:
        fits = square.inner.count % vector == 0 and loop.count % vector == 0
        straight = square.aligned(vector, alignments, set(range(len(square.accesses))) - set(turned))
        if fits and straight and along_rows.aligned(vector, alignments, set(turned)):
            break
        vector //= 2
    return vector


def _along_stores(nest: UnitNest) -> UnitNest:
    """The nest with the loop innermost along which all results are contiguous, if there is one."""
    first = len(nest.loads)
    for loop in nest.groups:
        steps = zip(loop.strides[first:], nest.stores, strict=True)
        if all(stride == access.type.bytes for stride, access in steps):
            others = (*(other for other in nest.groups if other is not loop), nest.inner)
            return UnitNest(others, (), loop, False, nest.kernel)
    return nest


def _turned(nest: UnitNest, loop: Loop) -> list[bool]:
    """For each load whether it is contiguous along a loop, but not along the innermost one."""
    return [
        access.step is Step.STRIDED and stride == access.type.bytes
        for access, stride in zip(nest.loads, loop.strides, strict=False)
    ]


def _moved_bytes(nest: UnitNest, turned: list[bool] | None = None) -> int:
    """Bytes that move: of an access that is neither contiguous nor turned up to a sector for each element."""
    moved = 0
    for number, access in enumerate(nest.accesses):
        size = access.type.bytes
        if access.counter:
            continue
        if access.step is Step.STRIDED and not (turned and number < len(turned) and turned[number]):
            size = min(_SECTOR_BYTES, max(2 * size, abs(nest.inner.strides[number])))
        moved += size
    return moved * nest.group_count * nest.row_count * nest.inner.count


def _moved_in_short_units(nest: UnitNest) -> int:
    """The same of rows of few elements: what neighbouring threads access may lie side by side, too."""
    moved, count = 0, nest.inner.count
    for number, access in enumerate(nest.accesses):
        along, between = abs(nest.inner.strides[number]), abs(nest.groups[-1].strides[number])
        size = access.type.bytes
        if access.counter:
            continue
        in_a_row = count if along in (0, size) else 1
        if between > (in_a_row * size if along else size):
            size = max(size, min(_SECTOR_BYTES, between) // in_a_row)
        moved += size
    return moved * nest.group_count * count


ELEMENTS: Table = (
    Candidate("squares", _in_squares, _run_squares),
    Candidate("units", _in_units, _run_units),
    Candidate("units of short rows", _in_short_units, _run_units),
)
"""The ways to run a kernel without axes."""
