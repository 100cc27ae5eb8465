"""The ways to launch element-wise kernels: in units along rows, or in squares if operands are transposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.costs import PANEL, SHARED_INSTRUCTIONS, instructions, reading
from opendml.targets.cuda.launch import CudaLaunch, CudaQuery, Table, UnitNest, check_fit
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaAccess, CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

_THREADS = 128
_UNITS = 2
"""Units of 16 bytes that one thread loads before it computes. This and the next figures are fitted on an
H200."""
_HALF_UNITS = 4
"""Units of 8 bytes that it loads. With fewer, there would be more blocks than can begin in time."""
_SCALAR_UNITS = 8
"""Units of fewer bytes that it loads."""
_MANY_LANES = 16
"""Elements of a unit from which on one unit is enough for a thread."""
_SQUARE_THREADS = 256
"""Threads of a block that transposes."""
_LEAST_SIDE = 16
"""Least steps of both loops of a transposition through shared memory."""
_INTERLEAVED = 2
"""Most elements of a unit whose loads skip elements."""
_LONGEST_SHORT = 8
"""Most steps of a loop along which units are whole rows."""
_MANY_GATHERED = 4 * 1024 * 1024
"""Least gathered elements for which panels pay."""
_SECTOR_BYTES = 32
"""Bytes of a sector, the least that memory moves."""
_ACROSS = 4
"""Most units of a thread that lie across."""
_ACROSS_LOADS = 4
"""Least loads without guards whose offsets are worth sharing between units that lie across."""
_ACROSS_WORDS = 64
"""Most words of 4 bytes that a thread reads before it computes units that lie across."""
_ACROSS_BYTES = 128
"""Least bytes between the results of units that lie across: what a warp stores at once."""


@dataclass(frozen=True, slots=True)
class Units:
    """Units of `vector` elements, `per_thread` of them for each thread.

    Args:
        vector: the elements of a unit.
        per_thread: the units of a thread.
        in_panels: units lie in panels of the innermost loop, one panel after the other.
        across: the loop along which the units of a thread lie, by its number; -1: the innermost one.
        is_short: units lie along short rows of results.
    """

    vector: int
    per_thread: int
    in_panels: bool = False
    across: int = -1
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class Squares:
    """Squares of `side` steps of a loop, by its number, and of the loop along which results are contiguous.
    Elements move in units of `vector` along each."""

    loop: int
    side: int
    vector: int


def _price_units(query: CudaQuery) -> Estimate[Units]:
    return _units_of(query, _gathers_much(query.nest), is_short=False)


def _price_short_units(query: CudaQuery) -> Estimate[Units] | Refusal:
    """Price units along rows of few results, such as windows of upsampling and blocks of space: threads
    beside each other take rows that follow each other."""
    nest = _along_stores(query.nest)
    if nest is query.nest or nest.inner.count > _LONGEST_SHORT:
        return Refusal(f"results are contiguous along no other loop of at most {_LONGEST_SHORT} steps")
    return _units_of(query, in_panels=False, is_short=True)


def _nest_of_units(nest: UnitNest, in_panels: bool, is_short: bool) -> UnitNest:
    """Return the nest along whose innermost loop units lie."""
    if is_short:
        nest = _along_stores(nest)
        first = len(nest.loads)
        groups = tuple(sorted(nest.groups, key=lambda loop: loop.strides[first:], reverse=True))
        return replace(nest, groups=groups)
    if in_panels:
        count, strides = nest.inner.count, nest.inner.strides
        panels = Loop(count // PANEL, tuple(PANEL * stride for stride in strides))
        return replace(nest, groups=(panels, *nest.groups), inner=Loop(PANEL, strides))
    return nest


def _gathers_much(nest: UnitNest) -> bool:
    """Return whether panels pay: elements of a row are gathered from many rows, and other rows find the rest
    of the same sectors in the L2 cache."""
    loads = zip(nest.loads, nest.inner.strides, strict=False)
    gathers = any(
        load.guarded and load.step is Step.STRIDED and stride == load.type.bytes for load, stride in loads
    )
    count = nest.inner.count
    return gathers and count % PANEL == 0 and nest.group_count * count >= _MANY_GATHERED


def _units_of(query: CudaQuery, in_panels: bool, is_short: bool) -> Estimate[Units]:
    machine, nest = query.machine, _nest_of_units(query.nest, in_panels, is_short)
    moved = _moved_in_short_units(nest) if is_short else _moved_bytes(query.nest)
    vector = nest.vector(query.alignments, whole_rows=False)
    # If elements lie apart within a sector, threads beside each other take those beside each other.
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
    # More loads of narrow units should be in flight at once.
    is_narrow = widest < VECTOR_BYTES // 2 and per_thread > _UNITS
    across = -1
    for count in dict.fromkeys((min(per_thread, _ACROSS), min(per_thread, _ACROSS if is_narrow else _UNITS))):
        found = _across(nest, vector, count, is_narrow)
        if found is not None:
            across, per_thread = found, count
            break
    choice = Units(vector, per_thread, in_panels, across, is_short)
    return Estimate(choice, {"memory": reading(machine, moved)})


def _units_of_thread(bytes: int) -> int:
    """Return how many units of `bytes` bytes one thread loads before it computes."""
    if bytes >= VECTOR_BYTES:
        return _UNITS
    return _HALF_UNITS if bytes >= VECTOR_BYTES // 2 else _SCALAR_UNITS


def _across(nest: UnitNest, vector: int, count: int, is_narrow: bool) -> int | None:
    """Return the loop along which `count` units of a thread lie across.

    The thread computes once what is equal for all of them, such as the offsets of windows. Return None if
    little is equal, as for offsets that elements give, if registers do not suffice, or if narrow units would
    be loaded for each step.
    """
    first = len(nest.loads)
    read = [n for n, load in enumerate(nest.loads) if not load.counter and load.step is not Step.NONE]
    is_simple = len(read) < _ACROSS_LOADS and not any(nest.accesses[number].guarded for number in read)
    words = count * vector * sum(max(1, nest.accesses[number].type.bytes // 4) for number in read)
    if count == 1 or len(read) < 2 or is_simple or nest.looks_up or words > _ACROSS_WORDS:
        return None

    def moved(place: int) -> tuple[int, int]:
        """Return how many loads move elements with every step, and if any does, how many loads move."""
        strides = nest.groups[place].strides
        elements = sum(strides[number] != 0 for number in read)
        return elements, sum(map(bool, strides[:first])) if elements else 0

    places = [
        place
        for place, loop in enumerate(nest.groups)
        if loop.count % count == 0 and min(map(abs, loop.strides[first:])) >= _ACROSS_BYTES
    ]
    place = min(reversed(places), key=moved, default=None)
    return None if place is None or (is_narrow and moved(place)[0]) else place


def _with_rows(nest: UnitNest, place: int, count: int) -> UnitNest:
    """Return the nest with `count` steps of a loop as rows, which one thread takes."""
    loop = nest.groups[place]
    rest = Loop(loop.count // count, tuple(count * stride for stride in loop.strides))
    others = () if rest.count == 1 else (rest,)
    groups = (*nest.groups[:place], *others, *nest.groups[place + 1 :])
    return replace(nest, groups=groups, rows=(Loop(count, loop.strides),))


def _interleaved(nest: UnitNest) -> tuple[bool, bool]:
    """Return whether a load, and whether a store, leaves out elements of the sectors that it moves."""
    found = [
        access.step is Step.STRIDED and not access.counter and access.type.bytes < abs(stride) < _SECTOR_BYTES
        for access, stride in zip(nest.accesses, nest.inner.strides, strict=True)
    ]
    return any(found[: len(nest.loads)]), any(found[len(nest.loads) :])


def _units(query: CudaQuery, choice: Units) -> CudaLaunch:
    nest, per_thread = _nest_of_units(query.nest, choice.in_panels, choice.is_short), choice.per_thread
    check_fit(query, nest.fits(choice.vector, query.alignments, whole_rows=False))
    check_fit(query, not choice.in_panels or query.nest.inner.count % PANEL == 0)
    if choice.across >= 0:
        check_fit(query, nest.groups[choice.across].count % per_thread == 0)
        nest = _with_rows(nest, choice.across, per_thread)
    row_units = -(-nest.inner.count // choice.vector)
    units = nest.group_count * row_units
    across = bool(nest.rows)
    constants = {"THREADS": _THREADS, "UNITS": per_thread, "ACROSS": int(across)}
    pattern = nest.pattern(CudaMode.POINTWISE, (units,), constants, vector=choice.vector)
    full, rest = divmod(nest.inner.count, choice.vector)
    words = launch_words(pattern.mode, all_units=units, row_length=row_units, full_units=full, rest=rest)
    grid = -(-units // (_THREADS if across else _THREADS * per_thread))
    return CudaLaunch(pattern, grid, _THREADS, nest.given() | words)


def _price_squares(query: CudaQuery) -> Estimate[Squares] | Refusal:
    nest = _along_stores(query.nest)
    if any(access.step is not Step.CONTIGUOUS for access in nest.stores):
        return Refusal("results are contiguous along no loop")
    if nest.inner.count < _LEAST_SIDE:
        return Refusal(f"results have {nest.inner.count} steps in a row; at least {_LEAST_SIDE}")
    place = next(
        (n for n, loop in enumerate(nest.groups) if loop.count >= _LEAST_SIDE and any(_turned(nest, loop))),
        None,
    )
    if place is None:
        return Refusal(f"no operand is contiguous along another loop of at least {_LEAST_SIDE} steps")
    square, loads, turned = _nest_of_squares(query.nest, place)
    side = 32 if sum(access.type.bytes for access in loads if access.turned) > 8 else 64
    choice = Squares(place, side, _vector_of_squares(square, loads, query.alignments, side))
    elements = nest.group_count * nest.inner.count
    return Estimate(
        choice,
        {
            "memory": reading(query.machine, _moved_bytes(square, turned)),
            "shared": instructions(query.machine, SHARED_INSTRUCTIONS * elements * sum(turned)),
        },
    )


def _squares(query: CudaQuery, choice: Squares) -> CudaLaunch:
    nest, loads, _ = _nest_of_squares(query.nest, choice.loop)
    check_fit(query, _fits_squares(nest, loads, query.alignments, choice.vector))
    (loop,), side = nest.rows, choice.side
    across, down = -(-nest.inner.count // side), -(-loop.count // side)
    tiles = nest.group_count * across * down
    constants = {"THREADS": _SQUARE_THREADS, "SIDE": side}
    pattern = replace(nest.pattern(CudaMode.TRANSPOSED, (tiles,), constants, choice.vector), loads=loads)
    words = launch_words(
        pattern.mode, width=nest.inner.count, height=loop.count, tiles_across=across, tiles_down=down
    )
    return CudaLaunch(pattern, tiles, _SQUARE_THREADS, nest.given() | words)


def _nest_of_squares(nest: UnitNest, place: int) -> tuple[UnitNest, tuple[CudaAccess, ...], list[bool]]:
    """Return the nest of squares along a loop, its loads, and which of them are transposed."""
    nest = _along_stores(nest)
    loop = nest.groups[place]
    others = (*nest.groups[:place], *nest.groups[place + 1 :])
    square = UnitNest(others, (loop,), nest.inner, False, nest.kernel)
    turned = _turned(nest, loop)
    loads = tuple(replace(access, turned=turn) for access, turn in zip(square.loads, turned, strict=True))
    return square, loads, turned


def _vector_of_squares(
    square: UnitNest, loads: Sequence[CudaAccess], alignments: Sequence[int], side: int
) -> int:
    """Return the elements that move together along both loops of squares."""
    widest = max(access.type.bytes for access in square.accesses)
    vector = min(VECTOR_BYTES // widest, side * side // _SQUARE_THREADS)
    while not _fits_squares(square, loads, alignments, vector):
        vector //= 2
    return vector


def _fits_squares(
    square: UnitNest, loads: Sequence[CudaAccess], alignments: Sequence[int], vector: int
) -> bool:
    """Return whether `vector` elements may move together along both loops of squares."""
    (loop,) = square.rows
    if vector == 1:
        return True
    if any(load.turned and load.guarded for load in loads):
        return False
    turned = {number for number, load in enumerate(loads) if load.turned}
    along_rows = UnitNest((*square.groups, square.inner), (), loop, False, square.kernel)
    fits = square.inner.count % vector == 0 and loop.count % vector == 0
    straight = square.aligned(vector, alignments, set(range(len(square.accesses))) - turned)
    return fits and straight and along_rows.aligned(vector, alignments, turned)


def _along_stores(nest: UnitNest) -> UnitNest:
    """Return the nest with the loop innermost along which all results are contiguous, if there is one."""
    first = len(nest.loads)
    for loop in nest.groups:
        steps = zip(loop.strides[first:], nest.stores, strict=True)
        if all(stride == access.type.bytes for stride, access in steps):
            others = (*(other for other in nest.groups if other is not loop), nest.inner)
            return UnitNest(others, (), loop, False, nest.kernel)
    return nest


def _turned(nest: UnitNest, loop: Loop) -> list[bool]:
    """Return for each load whether it is contiguous along a loop, but not along the innermost one."""
    return [
        access.step is Step.STRIDED and stride == access.type.bytes
        for access, stride in zip(nest.loads, loop.strides, strict=False)
    ]


def _moved_bytes(nest: UnitNest, turned: list[bool] | None = None) -> int:
    """Return the bytes that move. An access that is neither contiguous nor transposed moves up to a sector
    for each element."""
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
    """Return the bytes that move in rows of few elements. Neighbouring threads may access contiguous rows."""
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
    Candidate("squares", _price_squares, _squares),
    Candidate("units", _price_units, _units),
    Candidate("units of short rows", _price_short_units, _units),
)
"""The ways to run a kernel without axes."""
