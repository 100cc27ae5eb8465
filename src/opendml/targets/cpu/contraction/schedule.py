"""The choice of how sums of products are computed: which operand is A, the tile in registers, the blocks, and
where operands are stored.

Tiles are one candidate, which searches for the best ones. Reducing without tiles is the other. How results
are divided among tiles and items changes no bit of them: the products of each are added in the same order.
The search passes over tiles that take more than the best at any rate. `launches_of` makes launches of the
winner.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Generic, TypeVar

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.late_dataclass import dataclass, replace
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.cpu.contraction.amx_tilings import amx_image_tilings, amx_int8_tilings, amx_tilings
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.costs import GATHERED, ROW, far_cycles, lane_count
from opendml.targets.cpu.contraction.image import ViewedImage, viewed_image
from opendml.targets.cpu.contraction.image_tilings import broadcast_image_tilings, image_tilings
from opendml.targets.cpu.contraction.launches import construct
from opendml.targets.cpu.contraction.operands import is_contiguous
from opendml.targets.cpu.contraction.roles import Roles, Varying, roles_of, varies
from opendml.targets.cpu.contraction.tiles import (
    ITEMS,
    MOST_ROWS,
    Division,
    Family,
    TileChoice,
    Tiles,
    Worth,
    groups_of,
    is_fixed,
    steps_of,
)
from opendml.targets.cpu.contraction.tiling import Instructions, Storage
from opendml.targets.cpu.contraction.tilings import (
    PackedAheadB,
    UsualForm,
    has_usual_height,
    has_usual_width,
    packed_ahead_b,
    stays_narrow,
    streamed_tiles,
    tilings,
    tilings_in_rows,
    tilings_of_dots,
    usual_form,
    usual_forms,
    usual_height,
)
from opendml.targets.cpu.launch import CLAIM_CYCLES, Table, query_of
from opendml.targets.cpu.machine import CpuMachine, machine
from opendml.targets.cpu.schedule_groups import reductions, takes_in_many_rows
from opendml.targets.cpu.threads import available_threads

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
_REDUCED, _READ = 3.0, 2.0
"""Cycles for a vector of products in a reduction without tiles, and to read one that lies contiguous."""
_IN_ROWS = 2.5
"""Cycles for a vector of products, with reading it, if many rows are reduced at once."""
_CLAIMED_AWAKE = 20_000
"""Cycles of work for which a thread joins that has worked on the step before, and is awake."""
_FEWER = 4
"""The factor by which columns may be fewer than those of the hints, which lie near the end of a bucket. Most
buckets of images reach over four or eight times as many pixels. Images of 48x320 take 0.82 of the time in
rapidocr-rec (two cores of a Sapphire Rapids)."""
_THREADS = (1, 2, 4, 8)
"""The numbers of threads for which a choice is good that must not depend on that number."""
_FEW_THREADS = 2
"""The number of threads, beside ITEMS, on which vectors and AMX are compared. The choice decides bits, so it
must not depend on the threads at hand. Each item splits its columns again. So with ITEMS alone, small
products stayed in vectors that take 0.65 to 0.9 of the time in AMX on two threads (Sapphire Rapids)."""
NEARLY = 1.15
"""The factor by which tiles that pack constants in a usual form may cost more than the cheapest, at least 1.
Each form takes as much memory as the constant itself."""
_NEARLY_VARYING = 2.0
"""That factor if sizes vary. Without a launch that packs them ahead, constants would be read twice."""
ALIKE = 1.03
"""The factor by which the first of two usual forms may cost more than the second. With 1.15, YOLOv8n took
1.04 times as long (Zen 4)."""
LAUNCHED = 3000.0
"""Cycles until all threads have come to the end of a launch."""


def name_of(tiles: Tiles) -> str:
    """Return the name of a kind of tiles."""
    name = f"{_KINDS.get(tiles.instructions, 'tiles')} of {tiles.micro.rows}x{tiles.micro.vectors}"
    name += " of an image" if tiles.viewed else ""
    name += (" exchanged" if tiles.roles.exchanged else "") + (" packed ahead" if tiles.packed_ahead else "")
    is_by_rows = tiles.b is Storage.IN_PLACE and tiles.instructions is Instructions.FMA
    return name + (" in place" if tiles.a is Storage.IN_PLACE else " by rows" if is_by_rows else "")


_KINDS = {
    Instructions.DOTS: "dots",
    Instructions.DIGITS: "digits",
    Instructions.AMX_BF16: "matrices",
    Instructions.AMX_INT8: "matrices",
}

Kind = tuple[Instructions, bool]
"""The instructions of tiles, and whether they multiply windows of an image."""
Kinds = frozenset[Kind]
_MATRICES, _WINDOWS = Kinds({(Instructions.FMA, False)}), Kinds({(Instructions.FMA, True)})
_DOTS, _INT8 = Kinds({(Instructions.DOTS, False)}), Kinds({(Instructions.AMX_INT8, False)})
_IN_AMX = Kinds({(Instructions.AMX_BF16, False), (Instructions.AMX_BF16, True)})
Found = TypeVar("Found")


def _always(item: float, rows: int, columns: int) -> bool:
    return True


@dataclass(frozen=True)
class Priced:
    """A family of tilings, and the costs of its divisions as candidates."""

    family: Family
    wants_b_ahead: bool = False
    """True if tilings with B packed ahead are candidates of their own."""
    traced: Varying = None
    """The dimensions whose sizes are traced in the launches."""

    @cached_property
    def b_ahead(self) -> PackedAheadB | None:
        """B packed ahead in candidates of their own."""
        return packed_ahead_b(self.family) if self.wants_b_ahead else None

    @cached_property
    def fixed_b_ahead(self) -> PackedAheadB | None:
        """A constant B packed ahead, among tilings with equal bits. When constants are packed decides neither
        the bits nor the roles."""
        return packed_ahead_b(self.family) if is_fixed(self.family.roles.b) else None

    @cached_property
    def stays(self) -> bool:
        """True if B stays the same in all steps of a recurrence."""
        return steps_of(self.family.roles.b) > 1

    @cached_property
    def again(self) -> bool:
        """True if an operand stays the same in all steps of a recurrence."""
        return self.stays or steps_of(self.family.roles.a) > 1

    @cached_property
    def _divisions(self) -> list[Division]:
        return self.family.divisions()

    def tiles(self, worth: Worth = _always) -> Iterator[Tiles]:
        """Yield the tiles that are worth it."""
        for division in self._divisions:
            rows, columns, cycles, *_ = division
            if not worth(cycles, rows, columns):
                continue
            tiles = self.family.tiles(division)
            yield tiles
            if self.b_ahead and tiles.packed_ahead is None:
                yield self.b_ahead.of(tiles)

    def estimate(self, tiles: Tiles) -> Estimate[Tiles]:
        """Return the estimate of one division."""
        cycles, work = self.order(tiles)
        return Estimate(tiles, {"products": cycles}, work, name_of(tiles))

    def order(self, tiles: Tiles) -> tuple[int, float]:
        """Return the cycles of the thread that works longest, of as many threads as ITEMS, and those of all
        threads together. As many threads join as there is work for, so all divisions with less work than
        ITEMS threads need take equally long; then the second number decides."""
        items, work = self.work(tiles.item_cycles, tiles.rows, tiles.columns)
        cycles = _shared(work, items, self.again)
        part = tiles.packed_ahead
        if part:
            roles, packs_a = tiles.roles, tiles.a.is_ahead
            across, size = (roles.rows, tiles.micro.rows) if packs_a else (roles.columns, tiles.width)
            parts = groups_of(roles, part) * -(-roles.count(across) // size)
            cycles += (LAUNCHED + _shared(tiles.packing_work, parts, self.again)) / steps_of(part)
        return round(cycles), work + tiles.packing_work

    def work(self, item: float, rows: int, columns: int) -> tuple[int, float]:
        """Return the number of blocks of these rows and columns, and their cycles, if each takes `item`."""
        outer, m, n, _ = self.family.roles.sizes
        items = outer * (-(-m // rows) * -(-n // columns))
        return items, item * items

    @property
    def least_of_all(self) -> tuple[int, float]:
        """The least order of any tiles."""
        return round(_shared(self.family.least, ITEMS, self.again)), self.family.least

    def least(self, item: float, rows: int, columns: int) -> tuple[int, float]:
        """Return the least order of tiles with such blocks, with B packed ahead or not."""
        if self.b_ahead:
            item = min(item, self.b_ahead.item(item, columns))
        items, work = self.work(item, rows, columns)
        return round(_shared(work, items, self.again)), work

    def cycles_on(self, tiles: Tiles, threads: int) -> float:
        """Return the cycles of the thread that works longest, without the packing of constants, which is done
        once."""
        longest = self._longest(threads)(tiles.item_cycles, tiles.rows, tiles.columns)
        part = tiles.packed_ahead
        if part is None or is_fixed(part):
            return longest
        return longest + (LAUNCHED + tiles.packing_work / threads) / steps_of(part)

    def on_threads(self, tiles: Tiles, threads: int) -> tuple[int, float]:
        """Return a key that is less for better tiles on `threads` threads."""
        _, work = self.work(tiles.item_cycles, tiles.rows, tiles.columns)
        return round(self.cycles_on(tiles, threads)), work

    def least_on_threads(self, threads: int) -> Callable[[float, int, int], tuple[int, float]]:
        """Return a function that returns the least key of tiles on `threads` threads, by the cycles of their
        blocks, and their rows and columns."""
        longest = self._longest(threads)
        outer, m, n, _ = self.family.roles.sizes
        ways = [each for each in (self.b_ahead, self.fixed_b_ahead) if each]

        def least(item: float, rows: int, columns: int) -> tuple[int, float]:
            items = outer * (-(-m // rows) * -(-n // columns))
            found = round(longest(item, rows, columns)), item * items
            for each in ways:
                ahead = each.item(item, columns)
                found = min(found, (round(longest(ahead, rows, columns)), ahead * items))
            return found

        return least

    def _longest(self, threads: int) -> Callable[[float, int, int], float]:
        """Return a function that returns the cycles of the thread that works longest, by the cycles of
        blocks, and their rows and columns.

        If the columns are traced, the fewest count as much as those of the hints. Else one block would hold
        all of the fewest, and one thread would be alone with them.
        """
        roles = self.family.roles
        outer, m, n, _ = roles.sizes
        claimed = _CLAIMED_AWAKE if self.stays else CLAIM_CYCLES
        fewest = -(-n // _FEWER) if varies(self.traced, roles.columns) else 0

        # A search calls this thousands of times, so there are no calls in it.
        def longest(item: float, rows: int, columns: int) -> float:
            blocks = outer * -(-m // rows)
            items = blocks * -(-n // columns)
            claims = items * item // claimed
            joining = 1 if claims < 1 else claims if claims < threads else threads
            cycles = -(-items // joining) * item
            if not fewest:
                return cycles
            if fewest < columns:
                item *= fewest / columns
            items = blocks * -(-fewest // columns)
            claims = items * item // claimed
            joining = 1 if claims < 1 else claims if claims < threads else threads
            return cycles + _FEWER * (-(-items // joining) * item)

        return longest


@dataclass(frozen=True)
class ProductQuery:
    """A kernel that multiplies, and the machine that it is scheduled for."""

    kernel: Kernel
    host: CpuMachine
    inner: int | None = None
    """The number of the innermost loop of a reduction without tiles; None chooses it."""
    varying: Varying = None
    """The dimensions whose sizes vary."""
    still_varying: Varying = None
    """Those of them that are traced in the chosen launches, too; None: all of them."""

    @cached_property
    def threads(self) -> int:
        """The threads at hand."""
        return self.host.threads or available_threads()

    @cached_property
    def roles(self) -> list[Roles]:
        """The roles of the kernel, with B as the second operand and as the first."""
        return both_roles(self.kernel)

    @cached_property
    def few_rows(self) -> Estimate[Tiles] | None:
        """The tiles of few rows that stream a large constant. No others are compared with them."""
        for roles in self.roles:
            few = streamed_tiles(roles, self.threads, self.varying)
            if few is not None:
                return Estimate(few, {"products": few.item_cycles}, name=name_of(few))
        return None

    @cached_property
    def any_reduction(self) -> tuple[int, float]:
        """The order of a reduction without tiles."""
        return any_reduction(self.kernel)

    @cached_property
    def families(self) -> list[Priced]:
        """The families of tilings that may compute the sums of products.

        If sizes of matrices vary, there are only those that pack constants alike for all sizes. Constant
        filters are A. They meet pixels in AMX if possible, and windows of an image in vectors. Blocks of
        windows in AMX have the same columns for all sizes of a bucket, which are too many for the smaller
        ones: rapidocr-det takes 1.15 times as long (two cores of a Sapphire Rapids).

        With filters as A, images of 14x14 and more take 1.0 to 1.1 times as long (two cores of Zen 4). Those
        of 7x7 take 1.4 to 1.6 times as long. The fastest ways for these broadcast windows in tiles whose rows
        divide the width of the image. They are among the families if the width is not `still_varying`. Then
        the families are limited to those whose sums have the same bits as those for traced sizes.
        """
        traced, found = self.varying, self._usual_families
        if self.still_varying is not None and self.still_varying != self.varying:
            traced, kinds = self.still_varying, frozenset([_kind(each.family) for each in found])
            found = self._made_in_one_layout(traced, kinds)
        return [replace(each, traced=traced) for each in found] if traced else found

    @cached_property
    def _usual_families(self) -> list[Priced]:
        """The families if all sizes that vary are traced."""
        if self.varying is None:
            return list(_all_families(self.roles, None))
        return self._made_in_one_layout(self.varying)

    def _made_in_one_layout(self, varying: Collection[int], kinds: Kinds | None = None) -> list[Priced]:
        """Return the families that pack a constant alike for all sizes of the other operand; all of them if
        there is none.

        Families are made in the order of preference, because it takes time to make those that are passed
        over.

        Args:
            varying: the dimensions whose sizes vary.
            kinds: the kinds of families that may be taken; None: all.
        """
        filters = [] if self.stays_narrow else [each for each in self.roles if is_fixed(each.a)]
        for preferred in (_windows_in_vectors, _pixels_in_amx):
            made = [family for roles in filters for family in preferred(roles)]
            found = [each for each in made if _serves(each, varying) and _is_open(each.roles, varying)]
            if found and (kinds is None or _kind(found[0]) in kinds):
                return list(map(Priced, found))
        every = list(_all_families(self.roles, self.varying, kinds))
        return list(_with_one_layout(every, varying))

    @cached_property
    def adds_one_way(self) -> bool:
        """True if sizes vary, and all tiles for them add the products of a result in the same order.

        Many constant filters are always multiplied by windows of an image, or by its pixels, in parts of the
        same depth. Tiles are then cheapest for any size, and a choice for one size has the bits of others.
        """
        if self.varying is None or self.few_rows is not None:
            return False
        usual = [each.family for each in self._usual_families]
        kinds = {_kind(each) for each in usual}
        if len(kinds) != 1 or usual[0].roles.types[0] is not F32:
            return False
        # Bits of windows in AMX depend on the columns of a block.
        depends_on_blocks = usual[0].instructions.are_amx and usual[0].viewed is not None
        return not depends_on_blocks and all(
            is_fixed(each.roles.a)
            and each.roles.count(each.roles.rows) > MOST_ROWS
            and not varies(self.varying, each.roles.rows, each.roles.depth)
            for each in usual
        )

    def serves_others(self, choice: TileChoice) -> bool:
        """Return whether a choice for this query would also be one if all sizes that vary were traced.

        A choice of windows has rows of them for one width.
        """
        if Storage.WINDOWS in (choice.a, choice.b):
            return False
        own = choice.exchanged, choice.instructions, choice.micro
        families = [each.family for each in self._usual_families if not each.family.viewed]
        return own in [(each.roles.exchanged, each.instructions, each.micro) for each in families]

    def viewed(self, roles: Roles, broadcast: bool, in_bf16: bool = False) -> ViewedImage | None:
        """Return the image whose windows are an operand in some roles, as `viewed_image` does."""
        for each in self.families:
            known = each.family.viewed
            kind = roles.exchanged, broadcast, in_bf16
            if known and (known.roles.exchanged, known.broadcast, known.in_bf16) == kind:
                return known
        return viewed_image(roles, broadcast, in_bf16)

    @cached_property
    def stays_narrow(self) -> bool:
        """True if an operand is a constant that is packed in its narrow type. A reduction without tiles would
        widen it for each row."""
        return any(stays_narrow(roles, self.varying) for roles in self.roles)


def both_roles(kernel: Kernel) -> list[Roles]:
    """Return the roles of a kernel of sums of products, in both orders of its operands; none for others."""
    return [roles for exchanged in (False, True) if (roles := roles_of(kernel, exchanged)) is not None]


def chosen_tiles(query: ProductQuery) -> Estimate[Tiles] | Refusal:
    """Return the tiles that compute sums of products best.

    Few rows stream a large constant, at any rate. Else the tiles with the least order decide what bits depend
    on. Tiles in AMX compete with those in vectors on few threads too. Among the tiles with equal bits, the
    threads at hand decide, and the form in which constants are packed.
    """
    if query.few_rows is not None:
        return query.few_rows
    families, nearly = query.families, NEARLY if query.varying is None else _NEARLY_VARYING
    if query.adds_one_way and all(_multiplies_windows(each.family) for each in families):
        return _best_windows(families, query.threads)
    is_any = not query.stays_narrow and not query.adds_one_way
    bound = query.any_reduction if is_any else (sys.maxsize, 0.0)
    found = _least_tiles(families, bound)
    if found is None:
        return Refusal(f"no tiles take less than {query.any_reduction[0]:,} cycles")
    priced, tiles = _least_on_few_too(*found, families, bound)
    best = priced.estimate(tiles)
    tiles = _best_of_equal_bits(best.choice, families, query.threads, nearly)
    return Estimate(tiles, best.terms, best.work, name_of(tiles))


def _multiplies_windows(family: Family) -> bool:
    """Return whether B is windows of an image, and A is packed ahead in its usual form."""
    is_alike = family.viewed is not None and not family.broadcasts and has_usual_height(family)
    return is_alike and is_fixed(family.roles.a)


def _best_windows(families: Sequence[Priced], threads: int) -> Estimate[Tiles]:
    """Return the tiles of windows that take these threads least time; of equal ones, the first.

    All of them give the same bits, and no other candidate is compared with them.
    """
    best = _Least[tuple[Priced, Division] | None](None, (math.inf, math.inf), ())
    for number, priced in sorted(enumerate(families), key=lambda each: each[1].family.least):
        if priced.family.least // threads > best.cost[0]:
            break
        least_of = priced.least_on_threads(threads)
        for count, division in enumerate(priced.family.divisions()):
            rows, columns, cycles, a, *_ = division
            if a.is_ahead:
                best.offer((priced, division), least_of(cycles, rows, columns), (number, count))
    assert best.found is not None
    priced, division = best.found
    return priced.estimate(priced.family.tiles(division))


def _price_tiles(query: ProductQuery) -> Estimate[TileChoice] | Refusal:
    answer = chosen_tiles(query)
    return answer if isinstance(answer, Refusal) else _in_plain_numbers(answer)


def _in_plain_numbers(estimate: Estimate[Tiles]) -> Estimate[TileChoice]:
    return Estimate(estimate.choice.choice, estimate.terms, estimate.work, estimate.name)


def _price_any_reduction(query: ProductQuery) -> Estimate[None] | Refusal:
    if query.few_rows is not None:
        return Refusal("few rows read a large constant, which is packed as for many rows")
    if query.stays_narrow:
        return Refusal("a narrow constant is widened once for many rows")
    if query.adds_one_way:
        return Refusal("many filters meet pixels in tiles, whatever the sizes are")
    cycles, work = query.any_reduction
    return Estimate(None, {"products": cycles}, work)


def _alternatives(query: ProductQuery) -> Iterator[Estimate[TileChoice]]:
    """Yield the estimates of all tiles."""
    every = [query.few_rows] if query.few_rows else estimates(query)
    return map(_in_plain_numbers, every)


class _Least(Generic[Found]):
    """The thing with the least cost so far; of equal ones, the one that comes first."""

    def __init__(self, found: Found, cost: tuple[float, float], place: tuple[int, ...]) -> None:
        self.found, self.cost, self._place = found, cost, place

    def offer(self, found: Found, cost: tuple[float, float], place: tuple[int, ...]) -> None:
        """Take a thing that costs less than all before."""
        if (cost, place) < (self.cost, self._place):
            self.found, self.cost, self._place = found, cost, place


def _least_tiles(families: Sequence[Priced], bound: tuple[float, float]) -> tuple[Priced, Tiles] | None:
    """Return the tiles with the least order, with their family; of equal ones, the first; None if all have
    the order `bound` or more. Families come by what their tiles take at least, so most are passed over."""
    best = _Least[tuple[Priced, Tiles] | None](None, bound, (-1,))
    for number, priced in sorted(enumerate(families), key=lambda each: each[1].family.least):
        if priced.least_of_all > best.cost:
            continue

        def worth(item: float, rows: int, columns: int, priced: Priced = priced) -> bool:
            return priced.least(item, rows, columns) <= best.cost

        for count, tiles in enumerate(priced.tiles(worth)):
            best.offer((priced, tiles), priced.order(tiles), (number, count))
    return best.found


def _best_of_equal_bits(best: Tiles, families: Sequence[Priced], threads: int, nearly: float) -> Tiles:
    """Return the tiles that take these threads least time, of all that give the bits of `best`; of equal
    ones, the first. Those with a constant in a usual form win if they take up to `nearly` times as much."""
    # The bits of an image's blocks in AMX depend on their columns, so all blocks have as many.
    only = columns_of_all(best, families) if best.instructions.are_amx and best.viewed else None
    cheapest = _Least(best, (math.inf, math.inf), ())
    usual = {form: _Least(best, (math.inf, math.inf), ()) for form in UsualForm}

    def offer(priced: Priced, tiles: Tiles, place: tuple[int, ...]) -> None:
        cost = priced.on_threads(tiles, threads)
        cheapest.offer(tiles, cost, place)
        form = usual_form(tiles)
        if form is not None:
            usual[form].offer(tiles, cost, place)

    for number, priced in sorted(enumerate(families), key=lambda each: each[1].family.least):
        if priced.family.least // threads > nearly * cheapest.cost[0]:
            break  # No tiles of this family and of those behind it are worth it.
        if not may_sum_alike(priced.family, best):
            continue
        forms = usual_forms(priced.family)
        least_of = priced.least_on_threads(threads)

        def worth(
            item: float,
            rows: int,
            columns: int,
            least_of: Callable[[float, int, int], tuple[int, float]] = least_of,
            forms: Sequence[UsualForm] = forms,
        ) -> bool:
            least = least_of(item, rows, columns)
            if least <= cheapest.cost or not forms:
                return least <= cheapest.cost
            return least[0] <= nearly * cheapest.cost[0] and least <= max(usual[each].cost for each in forms)

        for count, tiles in enumerate(priced.tiles(worth)):
            if not sums_alike(tiles, best):
                break
            if only in (None, tiles.columns):
                offer(priced, tiles, (0, number, count))
                if priced.fixed_b_ahead and tiles.packed_ahead is None:
                    offer(priced, priced.fixed_b_ahead.of(tiles), (1, number, count))
    # Weights stay in as few forms as possible, whatever the other operand's size.
    near = [each for each in usual.values() if each.cost[0] <= nearly * cheapest.cost[0]]
    limit = ALIKE * min([each.cost[0] for each in near], default=0.0)
    return next((each.found for each in near if each.cost[0] <= limit), cheapest.found)


def _least_on_few_too(
    priced: Priced, best: Tiles, families: Sequence[Priced], bound: tuple[float, float]
) -> tuple[Priced, Tiles]:
    """Return the least tiles in vectors or those in AMX, whichever take less on ITEMS threads times
    _FEW_THREADS.

    Args:
        priced: the family of `best`.
        best: the tiles with the least order.
        families: all families.
        bound: the order that no tiles must reach.
    """
    in_amx = best.instructions.are_amx
    others = [each for each in families if each.family.instructions.are_amx != in_amx]
    if not others:
        return priced, best
    # Others whose order is not below this take longer, however few cycles they take on few threads.
    least = min(each.family.least for each in others) / _FEW_THREADS
    most = priced.order(best)[0] * priced.cycles_on(best, _FEW_THREADS) / least
    found = _least_tiles(others, min(bound, (most, 0.0)))
    if found is None:
        return priced, best
    cycles = found[0].order(found[1])[0] * _cycles_on_few(*found, others)
    own = priced.order(best)[0] * _cycles_on_few(priced, best, families)
    return found if cycles < own else (priced, best)


def _cycles_on_few(priced: Priced, best: Tiles, families: Sequence[Priced]) -> float:
    """Return the least cycles on _FEW_THREADS of tiles that give the bits of `best`, whose family is
    `priced`."""
    least = _Least(best, (priced.cycles_on(best, _FEW_THREADS), 0.0), ())
    for other in sorted(families, key=lambda each: each.family.least):
        if other.family.least / _FEW_THREADS >= least.cost[0]:
            break
        if not may_sum_alike(other.family, best):
            continue
        least_of = other.least_on_threads(_FEW_THREADS)
        for tiles in other.tiles(lambda *block: least_of(*block)[0] < least.cost[0]):  # noqa: B023
            if not sums_alike(tiles, best):
                break
            least.offer(tiles, (other.cycles_on(tiles, _FEW_THREADS), 0.0), ())
            if other.fixed_b_ahead and tiles.packed_ahead is None:
                ahead = other.fixed_b_ahead.of(tiles)
                least.offer(ahead, (other.cycles_on(ahead, _FEW_THREADS), 0.0), ())
    return least.cost[0]


def sums_alike(tiles: Tiles, others: Tiles) -> bool:
    """Return whether two divisions into tiles add the same products in the same order, to the same bits.
    Integers may be added in any order."""
    if not may_sum_alike(tiles, others):
        return False
    # The depth of parts does not matter to integers, and equal windows have the same.
    is_open = tiles.roles.types[0] is F32 and not (tiles.viewed and others.viewed)
    return not is_open or tiles.products_of_a_sum == others.products_of_a_sum


def may_sum_alike(tiles: Tiles | Family, others: Tiles) -> bool:
    """Return whether tiles, or some of a family, may add the same products in the same order as others. Only
    the depth of their parts is not compared."""
    if tiles.roles.types[0] is not F32:
        return tiles.roles.types == others.roles.types
    is_amx = tiles.instructions.are_amx
    if is_amx != others.instructions.are_amx:
        return False
    if is_amx and tiles.micro != others.micro:
        # If a number cannot be split, all rows of its tile are multiplied by FMAs.
        return False
    if tiles.viewed and others.viewed:
        have_equal_taps = tiles.viewed.image.taps == others.viewed.image.taps
        return have_equal_taps and tiles.roles.depth == others.roles.depth
    return tiles.roles is others.roles


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


def estimates(query: ProductQuery) -> Iterator[Estimate[Tiles]]:
    """Yield the estimates of all tiles that can compute a kernel's sums of products."""
    for priced in query.families:
        yield from map(priced.estimate, priced.tiles())


def _kind(family: Family) -> Kind:
    """Return what the order of sums depends on, unless few rows are read in place.

    Which operand is B does not count: a product of float32 has the same bits either way.
    """
    return family.instructions, family.viewed is not None


def _with_one_layout(families: Sequence[Priced], varying: Collection[int]) -> Sequence[Priced]:
    """Return those of some families that pack a constant alike for all sizes of the other operand; all of
    them if there is none."""
    families = [each for each in families if _serves(each.family, varying)] or families
    own = [each for each in families if _stores_rows(each.family.roles)]
    if not any(varies(varying, each.family.roles.rows, each.family.roles.columns) for each in own):
        return families
    filters = [each for each in own if is_fixed(each.family.roles.a)]
    constant = [each for each in own if is_fixed(each.family.roles.b)]
    return filters or constant or families


def _is_open(roles: Roles, varying: Collection[int]) -> bool:
    """Return whether the number of rows or columns varies, and rows of results are contiguous."""
    return _stores_rows(roles) and varies(varying, roles.rows, roles.columns)


def _serves(family: Family, varying: Collection[int]) -> bool:
    """Return whether tiles serve all sizes.

    They pack a constant in its usual form. Rows of tiles of broadcast windows would have to divide a width
    that varies.
    """
    if family.broadcasts and varies(varying, family.roles.rows):
        return False
    if is_fixed(family.roles.b):
        return has_usual_width(family)
    return not is_fixed(family.roles.a) or has_usual_height(family)


def _stores_rows(roles: Roles) -> bool:
    """Return whether rows of results lie contiguous."""
    return is_contiguous(roles.epilogue.stores, roles.columns)


def _all_families(every: Sequence[Roles], varying: Varying, kinds: Kinds | None = None) -> Iterator[Priced]:
    """Yield all families of tilings that may compute a kernel's sums of products, or those of some kinds. A
    constant that stays narrow is B."""
    for roles in sorted(every, key=lambda each: not stays_narrow(each, varying)):
        stays = steps_of(roles.b) > 1
        if stays_narrow(roles, varying):
            for family in (*tilings(roles, varying), *amx_tilings(roles, varying, is_narrow=True)):
                if kinds is None or _kind(family) in kinds:
                    yield Priced(family)
            return
        found = [(_MATRICES, stays, tilings(roles, varying)), (_IN_AMX, False, _amx_tilings(roles, varying))]
        # A constant that is read in place would be in memory twice if other sizes pack it.
        if roles.types[0] is F32 and not stays and (varying is None or not is_fixed(roles.b)):
            # A matrix that all steps multiply by is packed once, for all of them.
            found.append((_MATRICES, False, tilings_in_rows(roles, varying)))
            found.append((_DOTS, False, tilings_of_dots(roles)))
        found.append((_INT8, stays, amx_int8_tilings(roles)))
        found.append((_WINDOWS, False, _image_tilings(roles, False)))
        found.append((_WINDOWS, bool(roles.outer), _image_tilings(roles, True)))
        for own, wants_b_ahead, families in found:
            for family in families if kinds is None or own & kinds else ():
                if kinds is None or _kind(family) in kinds:
                    yield Priced(family, wants_b_ahead)


def _image_tilings(roles: Roles, broadcast: bool, height: int | None = None) -> Iterator[Family]:
    """Yield the families of windows of an image in vectors, which are A if they are broadcast.

    Tiles of windows that are B have this height; None: any.
    """
    viewed = viewed_image(roles, broadcast)
    if viewed is not None and viewed.depth:
        yield from broadcast_image_tilings(viewed) if broadcast else image_tilings(viewed, height)


def _windows_in_vectors(roles: Roles) -> list[Family]:
    """Return the families of windows that meet constant filters, in the usual form of these."""
    height = None if is_fixed(roles.b) else usual_height(roles)
    return [each for each in _image_tilings(roles, False, height) if each.blocks]


def _amx_tilings(roles: Roles, varying: Varying) -> Iterator[Family]:
    """Yield the families of float32 in AMX. Elements that several windows see are split once."""
    if not machine().has("amx-bf16"):
        return
    viewed = viewed_image(roles, False, in_bf16=True) if roles.types[0] is F32 else None
    images = [] if viewed is None else list(amx_image_tilings(viewed))
    yield from images or amx_tilings(roles, varying)


def _pixels_in_amx(roles: Roles) -> list[Family]:
    return [each for each in _amx_tilings(roles, None) if not each.viewed]


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
    """Return the cycles of the thread that works longest, if threads share items.

    A thread joins for as much work as it claims. Two threads count at most for work that is done `again` and
    again. More would join for tiles that take more work, which then seemed to take no longer.
    """
    joining = min(2.0, cycles / _CLAIMED_AWAKE) if again else cycles / CLAIM_CYCLES
    return cycles / max(1.0, min(ITEMS, items, joining))


CONTRACTIONS: Table = (
    Candidate(
        "tiles",
        _price_tiles,
        lambda query, choice: construct(query.kernel, choice),
        alternatives=_alternatives,
    ),
    Candidate(
        "as any reduction",
        _price_any_reduction,
        then=lambda query, _: reductions(query_of(query.kernel, query.inner)),
    ),
)
"""The ways to compute sums of products."""
