"""The families of tilings of matrix products in vector instructions, with their costs."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import product

from opendml.compiler.loops import loops_over, merged_neighbours
from opendml.late_dataclass import dataclass, replace
from opendml.targets.common.launch import power_of_two
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.costs import (
    ROW,
    STARTED,
    block_sizes,
    even_part,
    far_cycles,
    has_low_tiles,
    lane_count,
    largest_tiles,
    packing_cycles,
    row_tiles,
    stored_cycles,
    tile_cycles,
)
from opendml.targets.cpu.contraction.operands import (
    a_along_depth,
    b_along_depth,
    is_contiguous,
    packing_of_a,
    packing_of_b,
)
from opendml.targets.cpu.contraction.roles import Roles, Varying, varies
from opendml.targets.cpu.contraction.tiles import (
    COLUMNS_OF_DOTS,
    ITEMS,
    MOST_ROWS,
    PARTS_TOGETHER,
    ROWS_TOGETHER,
    VECTORS_TOGETHER,
    BlockWay,
    Family,
    Tiles,
    block_in_cache,
    columns_in_place,
    groups_of,
    in_tiles,
    is_fixed,
    steps_of,
)
from opendml.targets.cpu.contraction.tiling import (
    DEPTH,
    FEW_ROWS,
    NARROW_PANELS_TOGETHER,
    PANELS_TOGETHER,
    Instructions,
    MicroKernel,
    Storage,
)
from opendml.targets.cpu.machine import machine

_MOST_VECTORS = 4
"""The most vectors of a tile of few rows."""
USUAL_VECTORS = 2
"""The vectors of a panel of B in its usual form. Tiles of other widths cost about as much, and would need
weights once more."""
_SUMS = {32: 24, 16: 12}
"""The most vectors of sums of DOTS, by the number of vector registers."""

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
_SCATTERED, _SCATTERED_PIXELS = 120.0, 60.0
"""Cycles to store a vector of results to as many rows of memory, and of pixels that meet constant filters.
The latter took 30 to 90 cycles more than rows (Zen 4, images of 7x7 to 80x80). Results that are turned take
less. But with 14 cycles for them, layers of ResNet-50 leave AMX, and it takes 1.07 times as long (Sapphire
Rapids)."""
WIDENED = 5.0
"""Cycles to widen a vector of numbers, and to store it for all rows of a block."""
STREAMED = 6.0
"""Cycles to fetch a vector that was packed ahead, if each micro-panel meets a few tiles only."""
_FETCHED_PANEL = 1.0
"""Cycles to fetch a vector of a panel of B that was packed ahead, which meets many micro-panels."""
_LANES_ADDED = 10.0
"""Cycles to add up the lanes of a vector."""
_DIGITS_OF_ROW, _DIGIT_PRODUCTS = 30.0, 2.5
"""Cycles to convert a vector of a row to digits, and to multiply an element by the numbers of a panel (Zen
4)."""
_MOST_PANELS, _ITEMS_OF_THREAD = 8, 4
"""The most panels that an item multiplies by the digits of its rows, and the items of a thread, at least."""
_READ_IN_ROWS, _TILE_BEGUN = 2.0, 30.0
"""Cycles to read a vector of B in place, and to begin and end with a part of a tile there."""


def stays_narrow(roles: Roles, varying: Varying = None) -> bool:
    """Return whether B is a constant that is packed in its narrow type, for all numbers of rows."""
    if roles.types[0] is not F32 or is_fixed(roles.a) or not roles.columns or roles.narrow is None:
        return False
    if varies(varying, roles.columns, roles.depth) or steps_of(roles.b) > 1:
        return False
    return has_panels(roles) and is_contiguous(roles.epilogue.stores, roles.columns)


def tilings(roles: Roles, varying: Varying = None) -> Iterator[Family]:
    """Yield the families whose operands are packed, or whose A is read in place; few if sizes vary."""
    outer, m, n, k = roles.sizes
    (pack_a, pack_b), lanes, groups = packing_cycles(roles), lane_count(), roles.k_groups
    is_narrow = stays_narrow(roles, varying)
    in_b = Storage.NARROW if is_narrow else Storage.PACKED
    if is_narrow:
        pack_b = WIDENED
    stored = stored_cycles(roles, _SCATTERED_PIXELS if is_fixed(roles.b) else _SCATTERED)
    far = far_cycles(roles.a, roles.a.loads)
    work = groups_of(roles, roles.a) * m * k * pack_a / lanes
    in_place = _can_be_read_in_place(roles)

    def family(micro: MicroKernel) -> Family:
        width, product_cycles = micro.vectors * lanes, tile_cycles(micro, roles.types[0])

        def ways(rows: int, columns: int) -> Iterator[BlockWay]:
            tiles = -(-rows // micro.rows) * -(-columns // width)
            item = STARTED + tiles * groups * product_cycles
            item += (columns * k * pack_b + rows * columns * stored) / lanes
            yield item + rows * k * pack_a / lanes, Storage.PACKED, in_b, 0.0
            # A micro-panel is fetched for all its tiles while those of the one before are multiplied.
            item += rows * groups * (STREAMED + far * width / columns) / lanes
            if not is_narrow:
                yield item, Storage.AHEAD, in_b, work
            if in_place:
                yield item, Storage.IN_PLACE, in_b, 0.0

        least = outer * -(-m // micro.rows) * -(-n // width) * groups * product_cycles
        blocks = _blocks(roles, micro)
        return Family(roles, Instructions.FMA, micro, least, blocks, ways, packs_tiles=not is_narrow)

    shapes = _tile_shapes(roles, varying)
    yield from map(family, (each for each in shapes if not is_narrow or each.vectors == USUAL_VECTORS))


def _blocks(roles: Roles, micro: MicroKernel) -> list[tuple[int, int]]:
    """Return the rows and columns of blocks in whole tiles."""
    _, m, n, _ = roles.sizes
    width = micro.vectors * lane_count()
    rows, columns = in_tiles(block_in_cache(), micro.rows, width)
    return list(product(block_sizes(m, micro.rows, rows), block_sizes(n, width, columns)))


def _tile_shapes(roles: Roles, varying: Varying) -> list[MicroKernel]:
    """Return the tiles of the largest sizes, each with as many rows as the parts of all have.

    Few rows leave registers for more vectors, whose sums do not wait for each other. That pays if B need not
    be packed for them.
    """
    m = roles.count(roles.rows)
    shapes = row_tiles(m, varies(varying, roles.rows) and not is_fixed(roles.a))
    if m <= FEW_ROWS and steps_of(roles.b) > 1:
        most = (machine().registers - 1) // (m + 1)
        shapes += [MicroKernel(m, vectors) for vectors in (8, most) if vectors <= most]
    return shapes


def _can_be_read_in_place(roles: Roles) -> bool:
    """Return whether A is a matrix of rows that follow each other, and that are short if tiles have many.

    Long constants are packed, in the form that few rows read too.
    """
    is_long = roles.sizes[-1] > DEPTH
    if (is_long and (is_fixed(roles.a) or not has_low_tiles())) or not a_along_depth(roles):
        return False
    packing, nest = packing_of_a(roles, roles.a, [])
    return packing.is_plain and nest.rows[0].strides == (roles.sizes[-1] * F32.bytes,)


def tilings_in_rows(roles: Roles, varying: Varying = None) -> Iterator[Family]:
    """Yield the families that read B in place, in tiles of all rows.

    Packing B takes a third of the time of 16 rows.
    """
    outer, m, n, k = roles.sizes
    is_open = varies(varying, roles.rows, roles.depth) or k > PARTS_TOGETHER * DEPTH
    if not 1 < m <= (MOST_ROWS if is_open else machine().registers - 2) or not _lies_in_rows(roles):
        return
    (pack_a, pack_b), lanes = packing_cycles(roles), lane_count()
    stored = stored_cycles(roles)
    read = _READ_IN_ROWS + far_cycles(roles.b, roles.b.loads, in_rows=True)

    def family(vectors: int) -> Family:
        micro, width = MicroKernel(m, vectors), vectors * lanes
        tile = k * tile_cycles(micro) + -(-k // ROWS_TOGETHER) * _TILE_BEGUN

        def ways(rows: int, columns: int) -> Iterator[BlockWay]:
            rest = min(n, columns) % width
            item = STARTED + -(-columns // width) * tile
            item += (columns * k * read + rest * k * pack_b + m * k * pack_a + m * columns * stored) / lanes
            yield item, Storage.PACKED, Storage.IN_PLACE, 0.0

        most = max(1, columns_in_place(m) // width) * width
        blocks = [(m, columns) for columns in block_sizes(n, width, most)]
        return Family(roles, Instructions.FMA, micro, outer * -(-n // width) * tile, blocks, ways)

    yield from map(family, range(1, min(_MOST_VECTORS, (machine().registers - 1) // (m + 1)) + 1))


def _lies_in_rows(roles: Roles) -> bool:
    """Return whether B is a matrix whose rows are those of one product."""
    if b_along_depth(roles) or roles.types[1] is not F32:
        return False
    packing, _ = packing_of_b(roles, roles.b, [])
    return packing.is_plain


def tilings_of_dots(roles: Roles) -> Iterator[Family]:
    """Yield the family of few rows whose operands both lie along k."""
    outer, m, n, k = roles.sizes
    if m > MOST_ROWS or not a_along_depth(roles) or not _lies_in_columns(roles):
        return
    (pack_a, _), lanes = packing_cycles(roles), lane_count()
    stored = stored_cycles(roles)
    together = max(1, min(MOST_ROWS, lanes, _SUMS[machine().registers] // m))
    vector = max(m / 2, (m / together + 1) / 2) + _READ_IN_ROWS
    vector += far_cycles(roles.b, roles.b.loads, in_rows=True)
    parts = -(-k // (VECTORS_TOGETHER * lanes))
    column = -(-k // lanes) * vector + m * parts * _LANES_ADDED + parts * ROW / together

    def ways(rows: int, columns: int) -> Iterator[BlockWay]:
        item = STARTED + columns * column + (m * k * pack_a + m * columns * stored) / lanes
        yield item, Storage.PACKED, Storage.IN_PLACE, 0.0

    sizes = block_sizes(n, together, COLUMNS_OF_DOTS // together * together)
    blocks = [(m, columns) for columns in sizes]
    yield Family(roles, Instructions.DOTS, MicroKernel(m, together), outer * n * column, blocks, ways)


def _lies_in_columns(roles: Roles) -> bool:
    """Return whether B lies along k, in one loop."""
    if not roles.columns or not b_along_depth(roles) or roles.types[1] is not F32:
        return False
    packing, nest = packing_of_b(roles, roles.b, [])
    return len(nest.rows) == packing.majors


@dataclass(frozen=True, slots=True)
class PackedAheadB:
    """The difference that packing B ahead makes to tilings whose items pack it."""

    depth: float
    """The vectors along k."""
    saved: float
    """The cycles that an item saves for each vector."""
    work: float
    """The cycles of all threads to pack B."""

    def item(self, item: float, columns: int) -> float:
        """Return the cycles of an item that takes `item` if it packs its columns itself."""
        return item - columns * self.depth * self.saved

    def of(self, tiles: Tiles) -> Tiles:
        """Return the tiles with B packed ahead."""
        item = self.item(tiles.item_cycles, tiles.columns)
        return replace(tiles, b=Storage.AHEAD, item_cycles=item, packing_work=self.work)


def packed_ahead_b(family: Family) -> PackedAheadB | None:
    """Return how B of a family's tiles is packed ahead. None: its tiles are not packed one by one."""
    roles = family.roles
    if not family.packs_tiles or not has_panels(roles):
        return None
    _, pack_b = packing_cycles(roles)
    # Beside windows of an image a panel comes while all micro-panels are multiplied by the one before.
    fetched = STREAMED if family.broadcasts else _FETCHED_PANEL + far_cycles(roles.b, roles.b.loads)
    _, _, n, k = roles.sizes
    depth = k / lane_count()
    work = groups_of(roles, roles.b) * n * depth * pack_b
    return PackedAheadB(depth, pack_b - fetched, work)


def has_panels(roles: Roles) -> bool:
    """Return whether vectors of B belong to one tile each."""
    return b_along_depth(roles) or len(merged_neighbours(loops_over(roles.b, roles.columns))) < 2


def streamed_tiles(roles: Roles, threads: int, varying: Varying = None) -> Tiles | None:
    """Return tiles of few rows that read a constant B from the panels that many rows read.

    None: there are many rows, or B is not a constant larger than a core's own cache. If sizes vary, all
    constants are read so.

    Each item reads one panel from its beginning to its end, or a single row several of them side by side if
    there are enough. Rows in digits are multiplied by several panels, because converting them costs
    as much as half a panel. `threads` decide how many.

    Reading such a matrix in place would need it in memory once more. From panels it comes faster, too: 201 MB
    and 3 to 8 rows take 40 to 60 ms, and 60 to 75 in place (two cores of Zen 4).
    """
    _, m, n, k = roles.sizes
    is_constant = is_fixed(roles.b) and not is_fixed(roles.a) and steps_of(roles.b) == 1
    if m > MOST_ROWS or not is_constant or roles.types[0] is not F32 or not roles.columns:
        return None
    far, lanes = far_cycles(roles.b, roles.b.loads, in_rows=True), lane_count()
    is_narrow = stays_narrow(roles, varying)
    if not is_narrow and ((not far and varying is None) or not has_panels(roles)):
        return None
    rows = power_of_two(m) if varies(varying, roles.rows) else m
    micro, columns = MicroKernel(rows, USUAL_VECTORS), USUAL_VECTORS * lanes
    pack_a, pack_b = packing_cycles(roles)
    stored = stored_cycles(roles)
    item = STARTED + k * tile_cycles(micro) + -(-k // ROWS_TOGETHER) * _TILE_BEGUN
    item += (columns * k * (_READ_IN_ROWS + far) + m * k * pack_a + m * columns * stored) / lanes
    work = groups_of(roles, roles.b) * n * k / lanes * pack_b
    storage = Storage.NARROW_STREAMED if is_narrow else Storage.STREAMED
    instructions = Instructions.FMA
    fair = -(-n // columns) // max(ITEMS, _ITEMS_OF_THREAD * threads)
    if is_narrow and roles.narrow and roles.narrow[0].is_grouped:
        instructions = Instructions.DIGITS
        tiles = max(1, min(_MOST_PANELS, fair))
        columns *= tiles
        item = STARTED + k * rows * (_DIGITS_OF_ROW / lanes + tiles * _DIGIT_PRODUCTS)
        item += (m * k * pack_a + m * columns * stored) / lanes
    elif rows == 1 and fair >= (panels := NARROW_PANELS_TOGETHER if is_narrow else PANELS_TOGETHER):
        columns *= panels
        item *= panels
    return Tiles(roles, instructions, micro, rows, columns, item, b=storage, packing_work=work)


class UsualForm(Enum):
    """A form in which constants are packed for most sizes of the other operand; the first is preferred."""

    B = "panels of USUAL_VECTORS vectors"
    A = "micro-panels of the largest tile"


def usual_form(tiles: Tiles) -> UsualForm | None:
    """Return the usual form in which a constant among the operands is packed ahead. None: another one."""
    if tiles.b.has_launch and is_fixed(tiles.roles.b):
        return UsualForm.B if has_usual_width(tiles) else None
    if tiles.a.is_ahead and is_fixed(tiles.roles.a):
        return UsualForm.A if has_usual_height(tiles) else None
    return None


def usual_forms(family: Family) -> list[UsualForm]:
    """Return the usual forms in which tiles of a family may pack a constant."""
    roles = family.roles
    found = []
    if is_fixed(roles.a) and has_usual_height(family):
        found.append(UsualForm.A)
    if is_fixed(roles.b) and has_usual_width(family):
        found.append(UsualForm.B)
    return found


def has_usual_width(tiles: Tiles | Family) -> bool:
    """Return whether panels of B are as wide as in the usual form."""
    return tiles.instructions.are_amx or tiles.micro.vectors == USUAL_VECTORS


def has_usual_height(tiles: Tiles | Family) -> bool:
    """Return whether micro-panels of A are as high as in the usual form."""
    return tiles.instructions.are_amx or tiles.micro.rows == usual_height(tiles.roles)


def usual_height(roles: Roles) -> int:
    """Return the rows of micro-panels of A in the usual form."""
    return even_part(roles.count(roles.rows), largest_tiles()[0].rows)
