"""Decides how sums of products are computed: which operand is broadcast, the tile in registers, the blocks.

Each way is a candidate with an estimate of its cost; the least wins. How results are divided among tiles and
items changes no bit of them: the products of each are added in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from opendml.compiler.kernel import Kernel, operations_of
from opendml.compiler.loops import loop_nest
from opendml.program.node import Operation
from opendml.targets.cpu.contraction.costs import CLAIMED, GATHERED, ROW, far_cycles, lane_count
from opendml.targets.cpu.contraction.image import seen_by
from opendml.targets.cpu.contraction.image_tilings import broadcast_image_tilings, image_tilings
from opendml.targets.cpu.contraction.launches import launches_of
from opendml.targets.cpu.contraction.matrix_tilings import (
    matrix_image_tilings,
    matrix_tilings,
    word_matrix_tilings,
)
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.roles import Roles, roles_of
from opendml.targets.cpu.contraction.tiles import (
    DEPTH,
    ITEMS,
    Tiles,
    groups_of,
    is_fixed,
    packed_ahead,
    steps_of,
)
from opendml.targets.cpu.contraction.tilings import (
    UsualForm,
    few_rows_in_strips,
    lies_in_tiles,
    tilings,
    tilings_in_rows,
    tilings_of_dots,
    usual_form,
    with_strips,
)
from opendml.targets.cpu.launch import Launch
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.schedule_groups import takes_in_many_rows
from opendml.targets.cpu.threads import available_threads

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
_REDUCED, _READ = 3.0, 2.0
"""Cycles for a vector of products of a reduction like any other, and to read one that lies contiguous."""
_IN_ROWS = 2.5
"""The first two where many rows are taken in at once."""
_CLAIMED_AWAKE = 20_000
"""Cycles of work for which a thread joins that has worked on the step before, and is awake."""
_THREADS = (1, 2, 4, 8)
"""What must not depend on how many threads there are suits so many."""
_NEARLY = 1.15
"""By how much a way may be more expensive than the cheapest, which packs constants in another form: a form
takes as much memory as the constant itself."""
_LAUNCHED = 3000.0
"""Cycles until all threads have come to the end of a launch."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute sums of products; `tiles`: None where they are reduced like any others."""

    name: str
    cycles: float
    """Estimated, for the thread that works longest, of as many threads as ITEMS."""
    work: float
    """Estimated, of all threads together."""
    tiles: Tiles | None = None

    @property
    def order(self) -> tuple[int, float]:
        """Candidates with less are better. As many threads join as there is work for, so all that is less
        than enough for ITEMS of them takes as long."""
        return round(self.cycles), self.work + (self.tiles.packing_work if self.tiles else 0.0)

    def cycles_on(self, threads: int) -> float:
        """Of tiles, those of the thread that works longest of so many, without the packing of constants,
        which is done once."""
        if self.tiles is None:
            return self.cycles
        items = round(self.work / self.tiles.item_cycles)
        claimed = _CLAIMED_AWAKE if steps_of(self.tiles.roles.b) > 1 else CLAIMED
        longest = -(-items // max(1, min(threads, self.work // claimed))) * self.tiles.item_cycles
        part = packed_ahead(self.tiles)
        if part is None or is_fixed(part):
            return longest
        return longest + (_LAUNCHED + self.tiles.packing_work / threads) / steps_of(part)


def tiled(kernel: Kernel) -> list[Launch]:
    """The launches that compute a kernel's sums of products in tiles; none if it has none, or is better off
    as any other reduction."""
    if Operation.CONTRACTION not in operations_of(kernel.values):
        return []
    for exchanged in (False, True):
        roles = roles_of(kernel, exchanged)
        few = few_rows_in_strips(roles, lane_count()) if roles else None
        if few is not None:
            return launches_of(few)
    ways = list(candidates(kernel))
    best = min(ways, key=lambda way: way.order).tiles
    if best is None:
        return []
    # That constants are packed once changes neither the bits, which all tiles share, nor the roles.
    alike = [way.tiles for way in ways if way.tiles and _sums_alike(way.tiles, best)]
    if best.in_registers and best.seen:
        alike = _of_one_width(alike)
    alike += [
        with_strips(tiles)
        for tiles in alike
        if is_fixed(tiles.roles.b) and packed_ahead(tiles) is None and lies_in_tiles(tiles)
    ]
    # Of ways with equal bits the threads at hand decide.
    threads = machine().threads or available_threads()
    ways = [_candidate(tiles, False) for tiles in alike]
    costs = {id(way): (round(way.cycles_on(threads)), way.work) for way in ways}
    chosen = min(ways, key=lambda way: costs[id(way)])
    if any(is_fixed(part) for part in (best.roles.a, best.roles.b)):
        # Weights stay in as few forms as possible, whatever the other operand's size.
        for form in UsualForm:
            usual = [way for way in ways if way.tiles and usual_form(way.tiles) is form]
            nearest = min(usual, key=lambda way: costs[id(way)], default=chosen)
            if costs[id(nearest)][0] <= _NEARLY * costs[id(chosen)][0]:
                return launches_of(nearest.tiles or best)
    return launches_of(chosen.tiles or best)


def _sums_alike(tiles: Tiles, others: Tiles) -> bool:
    """Whether two divisions into tiles add the same products in the same order, to the same bits. Integers
    may be added in any order."""
    if tiles.roles.types[0] is not F32:
        return tiles.roles.types == others.roles.types
    if tiles.in_registers != others.in_registers:
        return False
    if tiles.in_registers and tiles.micro != others.micro:
        # All rows of a tile that has a number that cannot be taken apart are multiplied in another way.
        return False
    if tiles.seen and others.seen:
        windows = tiles.seen.image.taps == others.seen.image.taps
        return windows and tiles.roles.depth == others.roles.depth
    return tiles.roles is others.roles and tiles.depth == others.depth


def _of_one_width(alike: list[Tiles]) -> list[Tiles]:
    """Those whose blocks have as many columns as suits any number of threads best: of a block of an image
    with a number that cannot be taken apart all is multiplied in another way."""
    by_columns: dict[int, list[Tiles]] = {}
    for tiles in alike:
        by_columns.setdefault(tiles.columns, []).append(tiles)

    def cycles(same: list[Tiles]) -> float:
        ways = [_candidate(tiles, False) for tiles in same]
        return math.prod(min(way.cycles_on(threads) for way in ways) for threads in _THREADS)

    return min(by_columns.values(), key=cycles)


def candidates(kernel: Kernel) -> Iterator[Candidate]:
    """The ways to compute a kernel's sums of products."""
    lanes = lane_count()
    yield _as_any_reduction(kernel, lanes)
    for exchanged in (False, True):
        roles = roles_of(kernel, exchanged)
        if roles is not None:
            stays = steps_of(roles.b) > 1
            for tiles in tilings(roles, lanes):
                yield _candidate(tiles, exchanged)
                if stays and not tiles.ahead and lies_in_tiles(tiles):
                    yield _candidate(with_strips(tiles), exchanged)
            for tiles in _in_pieces(roles, lanes):
                yield _candidate(tiles, exchanged)
            if roles.types[0] is F32 and not stays:
                # What all steps multiply by is packed once, for all of them.
                for tiles in (*tilings_in_rows(roles, lanes), *tilings_of_dots(roles, lanes)):
                    yield _candidate(tiles, exchanged)
            for tiles in word_matrix_tilings(roles, lanes):
                yield _candidate(tiles, exchanged)
                if stays and not tiles.ahead and lies_in_tiles(tiles):
                    yield _candidate(with_strips(tiles), exchanged)
            for broadcast, divisions in ((False, image_tilings), (True, broadcast_image_tilings)):
                seen = seen_by(roles, broadcast)
                if seen is not None and seen.depth(DEPTH):
                    for tiles in divisions(seen, lanes):
                        yield _candidate(tiles, exchanged)
                        if broadcast and roles.outer and lies_in_tiles(tiles):
                            yield _candidate(with_strips(tiles), exchanged)


def _in_pieces(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """The ways in matrix registers, for numbers in pieces. What several windows see is taken apart once."""
    seen = seen_by(roles, False, in_pieces=True) if roles.types[0] is F32 else None
    images = [] if seen is None else list(matrix_image_tilings(seen, lanes))
    yield from images or matrix_tilings(roles, lanes)


def _candidate(tiles: Tiles, exchanged: bool) -> Candidate:
    roles, micro = tiles.roles, tiles.micro
    part = packed_ahead(tiles)
    kind = "dots" if tiles.dots else "matrices" if tiles.in_registers else "tiles"
    name = f"{kind} of {micro.rows}x{micro.vectors}"
    name += " of an image" if tiles.seen else ""
    name += (" exchanged" if exchanged else "") + (" packed ahead" if part else "")
    name += " in place" if tiles.in_place else " by rows" if tiles.b_in_place else ""
    items = roles.count(roles.outer)
    items *= -(-roles.count(roles.rows) // tiles.rows) * -(-roles.count(roles.columns) // tiles.columns)
    work = tiles.item_cycles * items
    again = max(steps_of(roles.a), steps_of(roles.b)) > 1
    cycles = _shared(work, items, again)
    if part:
        across, size = (
            (roles.rows, micro.rows) if tiles.ahead else (roles.columns, micro.vectors * lane_count())
        )
        parts = groups_of(roles, part) * -(-roles.count(across) // size)
        cycles += (_LAUNCHED + _shared(tiles.packing_work, parts, again)) / steps_of(part)
    return Candidate(name, cycles, work, tiles)


def _as_any_reduction(kernel: Kernel, lanes: int) -> Candidate:
    """A reduction whose innermost loop reads every operand where it lies."""
    nest = loop_nest(kernel)
    inner, many_rows = nest.inner, takes_in_many_rows(kernel, nest)
    vector = _IN_ROWS - _READ if many_rows else _REDUCED
    for load, stride in zip(kernel.loads, inner.strides, strict=False):
        if load.buffer is not None and stride:
            vector += _READ if stride == load.type.bytes else GATHERED
            vector += far_cycles(kernel, (load,), many_rows)
    kept = math.prod(size for number, size in enumerate(kernel.domain) if number not in kernel.axes)
    rows = math.prod(kernel.domain) // inner.count
    work = rows * (ROW + -(-inner.count // lanes) * vector)
    again = any(load.steps > 1 for load in kernel.loads)
    return Candidate("as any reduction", _shared(work, kept, again), work)


def _shared(cycles: float, items: int, again: bool = False) -> float:
    """The cycles of the thread that works longest, where threads share so many items. A thread joins for as
    much work as it claims. Of what they do `again` and again, two threads count, however much it is: more
    would join for a way that takes more work, which then seemed to take no longer."""
    joining = min(2.0, cycles / _CLAIMED_AWAKE) if again else cycles / CLAIMED
    return cycles / max(1.0, min(ITEMS, items, joining))
