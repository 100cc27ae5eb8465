"""Decides how sums of products are computed: which operand is broadcast, the tile in registers, the blocks.

Tiles are one candidate, which searches for the best ones; reducing without tiles is the other. How results
are divided among tiles and items changes no bit of them: the products of each are added in the same order.
The search passes over tiles that take more than the best at any rate; `launches_of` makes launches of the
winner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
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
    Family,
    Tiles,
    Worth,
    groups_of,
    is_fixed,
    packed_ahead,
    steps_of,
)
from opendml.targets.cpu.contraction.tilings import (
    StripsAhead,
    UsualForm,
    few_rows_in_strips,
    strips_ahead,
    tilings,
    tilings_in_rows,
    tilings_of_dots,
    usual_form,
)
from opendml.targets.cpu.launch import Table, query_of
from opendml.targets.cpu.machine import CpuMachine
from opendml.targets.cpu.schedule_groups import reductions, takes_in_many_rows
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
NEARLY = 1.15
"""By how much a way may be more expensive than the cheapest, which packs constants in another form: a form
takes as much memory as the constant itself."""
_LAUNCHED = 3000.0
"""Cycles until all threads have come to the end of a launch."""


def name_of(tiles: Tiles, exchanged: bool) -> str:
    """Return the name of a kind of tiles; `exchanged`: the elements of the first operand are vectors."""
    kind = "dots" if tiles.dots else "matrices" if tiles.in_registers else "tiles"
    name = f"{kind} of {tiles.micro.rows}x{tiles.micro.vectors}"
    name += " of an image" if tiles.seen else ""
    name += (" exchanged" if exchanged else "") + (" packed ahead" if packed_ahead(tiles) else "")
    return name + (" in place" if tiles.in_place else " by rows" if tiles.b_in_place else "")


Found = TypeVar("Found")


def _always(item: float, rows: int, columns: int) -> bool:
    return True


@dataclass(frozen=True)
class Priced:
    """A family of tilings, and the costs of its divisions as candidates."""

    family: Family
    exchanged: bool
    strips_wanted: bool = False
    """Whether tilings with b packed ahead are candidates of their own."""

    @cached_property
    def strips(self) -> StripsAhead | None:
        """Those, if they are candidates of their own."""
        return strips_ahead(self.family) if self.strips_wanted else None

    @cached_property
    def fixed_strips(self) -> StripsAhead | None:
        """Those, if b is a constant, among tilings with equal bits: when constants are packed decides
        neither the bits nor the roles."""
        return strips_ahead(self.family) if is_fixed(self.family.roles.b) else None

    @cached_property
    def stays(self) -> bool:
        """Whether b stays the same in all steps of a recurrence."""
        return steps_of(self.family.roles.b) > 1

    @cached_property
    def again(self) -> bool:
        """Whether an operand does."""
        return self.stays or steps_of(self.family.roles.a) > 1

    def tiles(self, worth: Worth = _always) -> Iterator[Tiles]:
        """The tiles of the candidates."""
        for tiles in self.family.divisions(worth):
            yield tiles
            if self.strips and packed_ahead(tiles) is None:
                yield self.strips.of(tiles)

    def estimate(self, tiles: Tiles) -> Estimate[Tiles]:
        """Return the estimate of one division."""
        cycles, work = self.order(tiles)
        return Estimate(tiles, {"products": cycles}, work, name_of(tiles, self.exchanged))

    def order(self, tiles: Tiles) -> tuple[int, float]:
        """Return the cycles of the thread that works longest, of as many threads as ITEMS, and those of all
        threads together. As many threads join as there is work for, so all divisions with less work than
        ITEMS threads need take equally long; then the second number decides."""
        items, work = self.work(tiles.item_cycles, tiles.rows, tiles.columns)
        cycles = _shared(work, items, self.again)
        part = packed_ahead(tiles)
        if part:
            roles, micro = tiles.roles, tiles.micro
            across, size = (
                (roles.rows, micro.rows) if tiles.ahead else (roles.columns, micro.vectors * lane_count())
            )
            parts = groups_of(roles, part) * -(-roles.count(across) // size)
            cycles += (_LAUNCHED + _shared(tiles.packing_work, parts, self.again)) / steps_of(part)
        return round(cycles), work + tiles.packing_work

    def work(self, item: float, rows: int, columns: int) -> tuple[int, float]:
        """How many blocks of so many rows and columns there are, and their cycles, if each takes `item`."""
        outer, m, n, _ = self.family.roles.sizes
        items = outer * (-(-m // rows) * -(-n // columns))
        return items, item * items

    @property
    def least_of_all(self) -> tuple[int, float]:
        """What of a candidate's `order` any of them has at least."""
        return round(_shared(self.family.least, ITEMS, self.again)), self.family.least

    def least(self, item: float, rows: int, columns: int) -> tuple[int, float]:
        """What of a candidate's `order` such blocks have at least, with b packed ahead or not."""
        if self.strips:
            item = min(item, self.strips.item(item, columns))
        items, work = self.work(item, rows, columns)
        return round(_shared(work, items, self.again)), work

    def cycles_on(self, tiles: Tiles, threads: int) -> float:
        """Of the thread that works longest of so many, without the packing of constants, which is done
        once."""
        longest = self._longest(
            tiles.item_cycles, *self.work(tiles.item_cycles, tiles.rows, tiles.columns), threads
        )
        part = packed_ahead(tiles)
        if part is None or is_fixed(part):
            return longest
        return longest + (_LAUNCHED + tiles.packing_work / threads) / steps_of(part)

    def on_threads(self, tiles: Tiles, threads: int) -> tuple[int, float]:
        """Tiles with less are better on so many threads."""
        _, work = self.work(tiles.item_cycles, tiles.rows, tiles.columns)
        return round(self.cycles_on(tiles, threads)), work

    def least_on_threads(self, item: float, rows: int, columns: int, threads: int) -> tuple[int, float]:
        """What such blocks have of that at least."""
        items, work = self.work(item, rows, columns)
        least = round(self._longest(item, items, work, threads)), work
        for strips in (self.strips, self.fixed_strips):
            if strips:
                ahead = strips.item(item, columns)
                items, work = self.work(ahead, rows, columns)
                least = min(least, (round(self._longest(ahead, items, work, threads)), work))
        return least

    def _longest(self, item: float, items: int, work: float, threads: int) -> float:
        """The cycles of the thread that works longest."""
        claimed = _CLAIMED_AWAKE if self.stays else CLAIMED
        return -(-items // max(1, min(threads, work // claimed))) * item


@dataclass(frozen=True)
class ProductQuery:
    """A kernel that multiplies, and the machine that it is scheduled for."""

    kernel: Kernel
    host: CpuMachine

    @cached_property
    def threads(self) -> int:
        """The threads at hand."""
        return self.host.threads or available_threads()

    @cached_property
    def few_rows(self) -> Estimate[Tiles] | None:
        """Tiles of few rows that read a large constant from strips. No others are compared with them."""
        for exchanged in (False, True):
            roles = roles_of(self.kernel, exchanged)
            few = few_rows_in_strips(roles, lane_count()) if roles else None
            if few is not None:
                return Estimate(few, {"products": few.item_cycles}, name=name_of(few, exchanged))
        return None

    @cached_property
    def any_reduction(self) -> tuple[int, float]:
        """The order of a reduction without tiles."""
        return any_reduction(self.kernel)


def chosen_tiles(query: ProductQuery) -> Estimate[Tiles] | Refusal:
    """Return the tiles that compute sums of products best.

    Few rows read a large constant from strips, at any rate. Else the tiles with the least order decide what
    bits depend on. Among the tiles with equal bits, the threads at hand decide, and the form in which
    constants are packed.
    """
    if query.few_rows is not None:
        return query.few_rows
    families = list(families_of(query.kernel))
    best = _least_tiles(families, query.any_reduction)
    if best is None:
        return Refusal(f"no tiles take less than {query.any_reduction[0]:,} cycles")
    chosen, tiles = _best_of_equal_bits(best.choice, families, query.threads)
    return Estimate(tiles, best.terms, best.work, name_of(tiles, chosen.exchanged))


def _price_any_reduction(query: ProductQuery) -> Estimate[None] | Refusal:
    if query.few_rows is not None:
        return Refusal("few rows read a large constant, which is packed as for many rows")
    cycles, work = query.any_reduction
    return Estimate(None, {"products": cycles}, work)


def _alternatives(query: ProductQuery) -> Iterator[Estimate[Tiles]]:
    """Yield the estimates of all tiles."""
    return iter([query.few_rows]) if query.few_rows else estimates(query.kernel)


class _Least(Generic[Found]):
    """What has the least cost so far; of equal ones, what comes first."""

    def __init__(self, found: Found, cost: tuple[float, float], place: tuple[int, ...]) -> None:
        self.found, self.cost, self._place = found, cost, place

    def offer(self, found: Found, cost: tuple[float, float], place: tuple[int, ...]) -> None:
        """Takes what costs less than all before."""
        if (cost, place) < (self.cost, self._place):
            self.found, self.cost, self._place = found, cost, place


def _least_tiles(families: Sequence[Priced], bound: tuple[int, float]) -> Estimate[Tiles] | None:
    """Return the tiles with the least order; of equal ones, the first; None if all have the order `bound` or
    more. Families come by what their tiles take at least, so most are passed over."""
    best = _Least[tuple[Priced, Tiles] | None](None, bound, (-1,))
    for number, priced in sorted(enumerate(families), key=lambda each: each[1].family.least):
        if priced.least_of_all > best.cost:
            continue

        def worth(item: float, rows: int, columns: int, priced: Priced = priced) -> bool:
            return priced.least(item, rows, columns) <= best.cost

        for count, tiles in enumerate(priced.tiles(worth)):
            best.offer((priced, tiles), priced.order(tiles), (number, count))
    return best.found and best.found[0].estimate(best.found[1])


def _best_of_equal_bits(best: Tiles, families: Sequence[Priced], threads: int) -> tuple[Priced, Tiles]:
    """Return the tiles that take so many threads least time, of all that give the bits of `best`; of equal
    ones, the first. Those with a constant in a usual form win if they take little more."""
    # Among blocks of an image whose bits depend on their columns, all have as many.
    only = columns_of_all(best, families) if best.in_registers and best.seen else None
    is_constant = any(is_fixed(part) for part in (best.roles.a, best.roles.b))
    none = families[0], best
    cheapest = _Least(none, (math.inf, math.inf), ())
    usual = {form: _Least(none, (math.inf, math.inf), ()) for form in UsualForm}

    def offer(priced: Priced, tiles: Tiles, place: tuple[int, ...]) -> None:
        cost = priced.on_threads(tiles, threads)
        cheapest.offer((priced, tiles), cost, place)
        form = usual_form(tiles)
        if form is not None:
            usual[form].offer((priced, tiles), cost, place)

    for number, priced in enumerate(families):

        def worth(item: float, rows: int, columns: int, priced: Priced = priced) -> bool:
            least = priced.least_on_threads(item, rows, columns, threads)
            if is_constant:
                return least[0] <= NEARLY * cheapest.cost[0]
            return least <= cheapest.cost

        for count, tiles in enumerate(priced.tiles(worth)):
            if not sums_alike(tiles, best):
                break
            if only in (None, tiles.columns):
                offer(priced, tiles, (0, number, count))
                if priced.fixed_strips and packed_ahead(tiles) is None:
                    offer(priced, priced.fixed_strips.of(tiles), (1, number, count))
    # Weights stay in as few forms as possible, whatever the other operand's size.
    for nearest in usual.values():
        if nearest.cost[0] <= NEARLY * cheapest.cost[0]:
            return nearest.found
    return cheapest.found


def sums_alike(tiles: Tiles, others: Tiles) -> bool:
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


def columns_of_all(best: Tiles, families: Sequence[Priced]) -> int:
    """Choose the number of columns per block that suits any number of threads best.

    If a block of an image contains a value that cannot be split into bfloat16 parts, the whole block is
    computed with float32 FMAs. So bits depend on this number.
    """
    by_columns: dict[int, list[tuple[Priced, Tiles]]] = {}
    for priced in families:
        for tiles in priced.tiles():
            if sums_alike(tiles, best):
                by_columns.setdefault(tiles.columns, []).append((priced, tiles))

    def cycles(columns: int) -> float:
        same = by_columns[columns]
        return math.prod(
            min(priced.cycles_on(tiles, threads) for priced, tiles in same) for threads in _THREADS
        )

    return min(by_columns, key=cycles)


def estimates(kernel: Kernel) -> Iterator[Estimate[Tiles]]:
    """Yield the estimates of all tiles that can compute a kernel's sums of products."""
    for priced in families_of(kernel):
        yield from map(priced.estimate, priced.tiles())


def families_of(kernel: Kernel) -> Iterator[Priced]:
    """The families of tilings that may compute a kernel's sums of products."""
    lanes = lane_count()
    for exchanged in (False, True):
        roles = roles_of(kernel, exchanged)
        if roles is None:
            continue
        stays = steps_of(roles.b) > 1
        found = [(stays, tilings(roles, lanes)), (False, _in_pieces(roles, lanes))]
        if roles.types[0] is F32 and not stays:
            # What all steps multiply by is packed once, for all of them.
            found += [(False, tilings_in_rows(roles, lanes)), (False, tilings_of_dots(roles, lanes))]
        found.append((stays, word_matrix_tilings(roles, lanes)))
        for broadcast, in_images in ((False, image_tilings), (True, broadcast_image_tilings)):
            seen = seen_by(roles, broadcast)
            if seen is not None and seen.depth(DEPTH):
                found.append((broadcast and bool(roles.outer), in_images(seen, lanes)))
        for strips_wanted, families in found:
            for family in families:
                yield Priced(family, exchanged, strips_wanted)


def _in_pieces(roles: Roles, lanes: int) -> Iterator[Family]:
    """The ways in matrix registers, for numbers in pieces. What several windows see is taken apart once."""
    seen = seen_by(roles, False, in_pieces=True) if roles.types[0] is F32 else None
    images = [] if seen is None else list(matrix_image_tilings(seen, lanes))
    yield from images or matrix_tilings(roles, lanes)


def any_reduction(kernel: Kernel) -> tuple[int, float]:
    """Return the order of a reduction whose innermost loop reads every operand where it lies."""
    nest = loop_nest(kernel)
    inner, many_rows = nest.inner, takes_in_many_rows(kernel, nest)
    vector = _IN_ROWS - _READ if many_rows else _REDUCED
    for load, stride in zip(kernel.loads, inner.strides, strict=False):
        if load.buffer is not None and stride:
            vector += _READ if stride == load.type.bytes else GATHERED
            vector += far_cycles(kernel, (load,), many_rows)
    kept = math.prod(size for number, size in enumerate(kernel.domain) if number not in kernel.axes)
    rows = math.prod(kernel.domain) // inner.count
    work = rows * (ROW + -(-inner.count // lane_count()) * vector)
    again = any(load.steps > 1 for load in kernel.loads)
    return round(_shared(work, kept, again)), work


def _shared(cycles: float, items: int, again: bool = False) -> float:
    """The cycles of the thread that works longest, where threads share so many items. A thread joins for as
    much work as it claims. Of what they do `again` and again, two threads count, however much it is: more
    would join for a way that takes more work, which then seemed to take no longer."""
    joining = min(2.0, cycles / _CLAIMED_AWAKE) if again else cycles / CLAIMED
    return cycles / max(1.0, min(ITEMS, items, joining))


CONTRACTIONS: Table = (
    Candidate("tiles", chosen_tiles, lambda query, tiles: launches_of(tiles), alternatives=_alternatives),
    Candidate(
        "as any reduction",
        _price_any_reduction,
        then=lambda query, _: reductions(query_of(query.kernel)),
    ),
)
"""The ways to compute sums of products."""
