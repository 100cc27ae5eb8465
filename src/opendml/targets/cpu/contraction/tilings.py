"""The divisions of products of matrices into tiles that may be worth it, with their cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import product

from opendml.compiler.loops import merged_neighbours
from opendml.targets.cpu.contraction.costs import (
    COPIED,
    ROW,
    STARTED,
    block_sizes,
    copied_cycles,
    even_part,
    far_cycles,
    lane_count,
    largest_tiles,
    packing_cycles,
    tile_cycles,
)
from opendml.targets.cpu.contraction.operands import (
    a_along_depth,
    b_along_depth,
    b_order,
    is_contiguous,
    packing_of,
)
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import MicroKernel
from opendml.targets.cpu.contraction.roles import Roles, loops_over
from opendml.targets.cpu.contraction.tiles import (
    DEPTH,
    ROWS_TOGETHER,
    VECTORS_TOGETHER,
    Family,
    Tiles,
    Worth,
    groups_of,
    in_tiles,
    is_fixed,
    most_results,
    most_results_apart,
    steps_of,
)
from opendml.targets.cpu.machine import machine

_MOST_ROWS, _MOST_VECTORS = 8, 4
"""Of tiles then."""
COLUMNS_IN_ROWS = 4096
"""Of a block then, at most."""
STRIP_VECTORS = 2
"""Of strips that stay packed: tiles of other widths cost about as much, and would need weights once more."""
_SUMS = {32: 24, 16: 12}
"""By the number of vector registers, the sums of such vectors, at most."""
COLUMNS_OF_DOTS = 1024
"""Of a block of these, at most."""
_MOST_ROWS_APART = 9
"""Of tiles whose rows of a are read in place, apart: these may all lie in the same set of the first cache,
which has room for 12 lines, beside those of b."""
_FEWEST_ROWS_APART = 24
"""Fewer meet each row of b in too few tiles to ask for the next ones meanwhile."""
FEW_ROWS = 5
"""So few that a tile has room for more vectors."""

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
SCATTERED = 120.0
"""Cycles to write a vector of results to as many rows of memory."""
STREAMED = 6.0
"""Cycles to fetch a vector of what was packed ahead, where each panel meets a few tiles only."""
_FETCHED_STRIP = 1.0
"""The same for a vector of a strip, which meets many panels."""
_FOLDED = 10.0
"""Cycles to put the lanes of a vector together."""
_READ_APART = 3.0
"""Cycles to read a vector of a in place."""
_READ_IN_ROWS, _TILE_BEGUN = 2.0, 30.0
"""Cycles to read a vector of b in place, and to begin and end with a part of a tile there."""


def tilings(roles: Roles, lanes: int) -> Iterator[Family]:
    """Each tile in registers, with each division of the results into blocks."""
    outer, m, n, _ = roles.sizes
    costs = packing_cycles(roles, lanes)
    for micro in _tile_shapes(roles):
        tiles = outer * -(-m // micro.rows) * -(-n // (micro.vectors * lanes))
        least = tiles * roles.words * tile_cycles(micro, roles.types[0])
        yield Family(roles, least, partial(_divisions, roles, micro, lanes, costs), packs_tiles=True)
    if _lie_apart(roles):
        yield from _tilings_apart(roles, lanes)


def _divisions(
    roles: Roles, micro: MicroKernel, lanes: int, packed: tuple[float, float], worth: Worth
) -> Iterator[Tiles]:
    """The divisions into blocks where packing a vector of either operand takes so many cycles."""
    _, m, n, k = roles.sizes
    (a, b), words, width = packed, roles.words, micro.vectors * lanes
    product_cycles = tile_cycles(micro, roles.types[0])
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else SCATTERED
    far = far_cycles(roles.a, roles.a.loads)
    packing = groups_of(roles, roles.a) * m * k * a / lanes
    in_place = _can_be_read_in_place(roles)
    most_rows, most_columns = in_tiles(most_results(), micro, lanes)
    for rows, columns in product(block_sizes(m, micro.rows, most_rows), block_sizes(n, width, most_columns)):
        tiles = -(-rows // micro.rows) * -(-columns // width)
        item = STARTED + tiles * words * product_cycles
        item += (columns * k * b + rows * columns * stored) / lanes
        alone = item + rows * k * a / lanes
        if worth(alone, rows, columns):
            yield Tiles(roles, micro, rows, columns, alone)
        # What is fetched for all tiles of a panel comes while those of the one before are multiplied.
        item += rows * words * (STREAMED + far * width / columns) / lanes
        if worth(item, rows, columns):
            yield Tiles(roles, micro, rows, columns, item, True, packing)
            if in_place:
                yield Tiles(roles, micro, rows, columns, item, in_place=True)


def _tilings_apart(roles: Roles, lanes: int) -> Iterator[Family]:
    """Where rows of the operand whose elements are broadcast are read where they lie, apart: likewise."""
    outer, m, n, k = roles.sizes
    _, b = packing_cycles(roles, lanes)
    shapes = {
        (even_part(m, most), largest.vectors)
        for largest in largest_tiles()
        if largest.rows <= _MOST_ROWS_APART
        for most in (largest.rows, largest.rows - 1)
    }
    for micro in (MicroKernel(*shape) for shape in sorted(shapes)):
        tiles = outer * -(-m // micro.rows) * -(-n // (micro.vectors * lanes))
        yield Family(roles, tiles * k * tile_cycles(micro), partial(_divisions_apart, roles, micro, lanes, b))


def _divisions_apart(roles: Roles, micro: MicroKernel, lanes: int, b: float, worth: Worth) -> Iterator[Tiles]:
    _, m, n, k = roles.sizes
    far_a, far_b = (far_cycles(part, part.loads) for part in (roles.a, roles.b))
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else SCATTERED
    width = micro.vectors * lanes
    most_rows, most_columns = in_tiles(most_results_apart(), micro, lanes)
    for rows, columns in product(block_sizes(m, micro.rows, most_rows), block_sizes(n, width, most_columns)):
        # The last block may be narrower.
        panels, beside = -(-rows // micro.rows), -(-n // width) / -(-n // columns)
        item = STARTED + panels * beside * k * tile_cycles(micro) + rows * columns * stored / lanes
        # With each tile a row of the next panel and two of the next block are asked for.
        read = _READ_APART + far_a * max(0.0, 1.0 - beside / micro.rows)
        packed = b - far_b * min(1.0, 2 * panels * beside / DEPTH)
        item += (rows * read + columns * packed) * k / lanes
        if worth(item, rows, columns):
            yield Tiles(roles, micro, rows, columns, item, in_place=True, apart=True)


def _tile_shapes(roles: Roles) -> list[MicroKernel]:
    """The tiles of the largest sizes, each with as many rows as the parts of all have. Few rows have room for
    more vectors, whose sums do not wait for each other; that pays where b need not be packed for them."""
    m = roles.count(roles.rows)
    shapes = [replace(each, rows=even_part(m, each.rows)) for each in largest_tiles()]
    if m <= FEW_ROWS and steps_of(roles.b) > 1:
        most = (machine().registers - 1) // (m + 1)
        shapes += [MicroKernel(m, vectors) for vectors in (8, most) if vectors <= most]
    return shapes


def _lie_apart(roles: Roles) -> bool:
    """Whether both operands are matrices in memory as they are to be multiplied, and the one whose elements
    are broadcast has many rows, which do not follow each other or have several parts. Constants are better
    packed, once."""
    if roles.types[0] is not F32 or is_fixed(roles.a) or is_fixed(roles.b) or not a_along_depth(roles):
        return False
    if roles.count(roles.rows) < _FEWEST_ROWS_APART:
        return False
    packing, _ = packing_of(roles.a, [], roles.rows, roles.depth, True, F32)
    return packing.is_plain and not _can_be_read_in_place(roles) and _lies_in_rows(roles)


def _can_be_read_in_place(roles: Roles) -> bool:
    """Whether the operand whose elements are broadcast is a matrix of short rows, which lie one behind the
    other."""
    k = roles.sizes[-1]
    if k > DEPTH or not a_along_depth(roles):
        return False
    packing, nest = packing_of(roles.a, [], roles.rows, roles.depth, True, roles.types[0])
    return packing.is_plain and nest.rows[0].strides == (k * F32.bytes,)


def tilings_in_rows(roles: Roles, lanes: int) -> Iterator[Family]:
    """Where there are few rows, and b is read where it lies: tiles of all of these, with each division of the
    columns."""
    outer, m, n, k = roles.sizes
    if not 1 < m <= _MOST_ROWS or not _lies_in_rows(roles):
        return
    costs = packing_cycles(roles, lanes)
    for vectors in range(1, min(_MOST_VECTORS, (machine().registers - 1) // (m + 1)) + 1):
        micro = MicroKernel(m, vectors)
        tile = k * tile_cycles(micro) + -(-k // ROWS_TOGETHER) * _TILE_BEGUN
        least = outer * -(-n // (vectors * lanes)) * tile
        yield Family(roles, least, partial(_divisions_in_rows, roles, micro, lanes, tile, costs))


def _divisions_in_rows(
    roles: Roles, micro: MicroKernel, lanes: int, tile: float, packed: tuple[float, float], worth: Worth
) -> Iterator[Tiles]:
    _, m, n, k = roles.sizes
    (a, b), width = packed, micro.vectors * lanes
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    read = _READ_IN_ROWS + far_cycles(roles.b, roles.b.loads, in_rows=True)
    for columns in block_sizes(n, width, COLUMNS_IN_ROWS // width * width):
        rest = min(n, columns) % width
        item = STARTED + -(-columns // width) * tile
        item += (columns * k * read + rest * k * b + m * k * a + m * columns * stored) / lanes
        if worth(item, m, columns):
            yield Tiles(roles, micro, m, columns, item, b_in_place=True)


def _lies_in_rows(roles: Roles) -> bool:
    """Whether the operand whose elements are vectors is a matrix whose rows are those of one product."""
    if b_along_depth(roles) or roles.types[1] is not F32:
        return False
    packing, _ = packing_of(roles.b, [], *b_order(roles), False, F32)
    return packing.is_plain


def tilings_of_dots(roles: Roles, lanes: int) -> Iterator[Family]:
    """Where there are few rows, and both lie along k: vectors of both, with each division of the columns."""
    outer, m, n, k = roles.sizes
    if m > _MOST_ROWS or not a_along_depth(roles) or not _lies_in_columns(roles):
        return
    a, _ = packing_cycles(roles, lanes)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    together = max(1, min(_MOST_ROWS, lanes, _SUMS[machine().registers] // m))
    vector = max(m / 2, (m / together + 1) / 2) + _READ_IN_ROWS
    vector += far_cycles(roles.b, roles.b.loads, in_rows=True)
    parts = -(-k // (VECTORS_TOGETHER * lanes))
    column = -(-k // lanes) * vector + m * parts * _FOLDED + parts * ROW / together

    def divisions(worth: Worth) -> Iterator[Tiles]:
        for columns in block_sizes(n, together, COLUMNS_OF_DOTS // together * together):
            item = STARTED + columns * column + (m * k * a + m * columns * stored) / lanes
            if worth(item, m, columns):
                yield Tiles(roles, MicroKernel(m, together), m, columns, item, dots=True)

    yield Family(roles, outer * n * column, divisions)


def _lies_in_columns(roles: Roles) -> bool:
    """Whether the operand whose elements are vectors lies along k, in one loop."""
    if not roles.columns or not b_along_depth(roles) or roles.types[1] is not F32:
        return False
    packing, nest = packing_of(roles.b, [], *b_order(roles), True, F32)
    return len(nest.rows) == packing.majors


@dataclass(frozen=True, slots=True)
class StripsAhead:
    """Tilings of which b, which stays the same, is packed ahead, by what that changes."""

    depth: float
    """Vectors along k."""
    saved: float
    """Cycles that an item saves for each of them."""
    work: float
    """Cycles of all threads to pack b."""

    def item(self, item: float, columns: int) -> float:
        """The cycles of an item that takes `item` where it packs so many columns itself."""
        return item - columns * self.depth * self.saved

    def of(self, tiles: Tiles) -> Tiles:
        """The same tiles where b is packed ahead."""
        item = self.item(tiles.item_cycles, tiles.columns)
        return replace(tiles, b_ahead=True, item_cycles=item, packing_work=self.work)


def strips_ahead(family: Family) -> StripsAhead | None:
    """How b of a family's tiles is packed ahead; None where the part of each tile is not packed apart from
    the others'."""
    roles, lanes = family.roles, lane_count()
    if not family.packs_tiles or not _has_strips(roles):
        return None
    packing = packing_cycles(roles, lanes)[1]
    # Beside windows of an image a strip comes while all panels are multiplied by the one before.
    fetched = STREAMED if family.broadcasts else _FETCHED_STRIP + far_cycles(roles.b, roles.b.loads)
    _, _, n, k = roles.sizes
    depth = k / lanes
    work = groups_of(roles, roles.b) * n * depth * packing
    return StripsAhead(depth, packing - fetched, work)


def _has_strips(roles: Roles) -> bool:
    """Whether vectors of b belong to one tile each."""
    return b_along_depth(roles) or len(merged_neighbours(loops_over(roles.b, roles.columns))) < 2


def few_rows_in_strips(roles: Roles, lanes: int) -> Tiles | None:
    """Few rows, and a constant b that is larger than a core's own cache: read from the strips that many rows
    read, one strip by each item, from its beginning to its end. None: there are many rows, or b is another
    one.

    Reading such a matrix where it lies would need it in memory once more. From strips it comes faster, too:
    201 MB and 3 to 8 rows take 40 to 60 ms, and 60 to 75 where it lies (two cores of Zen 4)."""
    _, m, n, k = roles.sizes
    far = far_cycles(roles.b, roles.b.loads, in_rows=True)
    is_constant = is_fixed(roles.b) and not is_fixed(roles.a) and steps_of(roles.b) == 1
    if m > _MOST_ROWS or not is_constant or not far or roles.types[0] is not F32 or not roles.columns:
        return None
    if not _has_strips(roles):
        return None
    micro, columns = MicroKernel(m, STRIP_VECTORS), STRIP_VECTORS * lanes
    a, b = packing_cycles(roles, lanes)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    item = STARTED + k * tile_cycles(micro) + -(-k // ROWS_TOGETHER) * _TILE_BEGUN
    item += (columns * k * (_READ_IN_ROWS + far) + m * k * a + m * columns * stored) / lanes
    work = groups_of(roles, roles.b) * n * k / lanes * b
    return Tiles(roles, micro, m, columns, item, packing_work=work, b_ahead=True, in_strips=True)


class UsualForm(Enum):
    """A form in which constants are packed for most sizes of the other operand; the first is preferred."""

    STRIPS = "strips of STRIP_VECTORS"
    PANELS = "panels of the largest tile"


def usual_form(tiles: Tiles) -> UsualForm | None:
    """The usual form in which a constant among the operands is packed ahead; None: it is in another one."""
    if tiles.b_ahead and is_fixed(tiles.roles.b):
        is_usual = tiles.in_registers or tiles.micro.vectors == STRIP_VECTORS
        return UsualForm.STRIPS if is_usual else None
    if tiles.ahead and is_fixed(tiles.roles.a):
        rows = even_part(tiles.roles.count(tiles.roles.rows), largest_tiles()[0].rows)
        return UsualForm.PANELS if tiles.in_registers or tiles.micro.rows == rows else None
    return None
