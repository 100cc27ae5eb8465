"""The divisions of products into tiles of matrix registers that may be worth it, with their cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

from opendml.targets.cpu.contraction.arithmetic import BYTES
from opendml.targets.cpu.contraction.costs import (
    COPIED,
    ROW,
    STARTED,
    block_sizes,
    copied_cycles,
    far_cycles,
    packing_cycles,
)
from opendml.targets.cpu.contraction.image import Seen
from opendml.targets.cpu.contraction.image_tilings import (
    MOST_COLUMNS,
    block_lines,
    image_columns,
    image_cycles,
    image_rows,
)
from opendml.targets.cpu.contraction.operands import is_contiguous
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import PIECES, REGISTER_ROWS, STEP, MicroKernel
from opendml.targets.cpu.contraction.roles import Roles
from opendml.targets.cpu.contraction.tiles import (
    DEPTH,
    PRODUCTS_IN_REGISTERS,
    Family,
    Tiles,
    Worth,
    groups_of,
    steps_of,
)
from opendml.targets.cpu.machine import machine

MOST_MATRIX_RESULTS = 512, 512
"""The most rows and columns of a block."""

MATRIX_TILE = MicroKernel(2 * REGISTER_ROWS, 2)
"""Four registers of sums and four of what they take in. One row of three is half as fast: it waits for what
it takes in."""
_HALF_TILE = MicroKernel(REGISTER_ROWS, 2)
"""Two of sums and three of what they take in: as fast, where a cache has b. So in the steps of a recurrence
each of two threads has rows of its own where there are few."""
_FEWEST = REGISTER_ROWS + 1
"""Rows and columns: with less, half of each tile is computed for nothing."""
_MOST_TAPS = 9
"""Of windows whose products are added up with those of STEP channels."""
_PRODUCTS = PIECES * (PIECES + 1) // 2
"""Of pieces, for one of FLOAT32."""

# Cycles of one core, fitted on an Intel Xeon with AMX and 2 MB of second cache, November 2026.
_MULTIPLIED = 20.0
"""Cycles for the products of two registers, from the first cache: 16 with zeros, and 20 with other numbers,
since the processor lowers its clock (Sapphire Rapids). On a core that another virtual machine probably used,
68."""
_WAITED = 10.0
"""Additional cycles of each if operands come from the second cache. Fitted so that the costs of all products
of VGG-19, ResNet-50, BERT, ViT and GPT-2 compare correctly with those in vector registers (Sapphire
Rapids)."""
_PUT_DOWN = 40.0
"""Cycles to add a register's sums to those of other parts."""
SPLIT = 8.0
"""Cycles to take a vector apart."""
_ROW_TAKEN = 20.0
"""Cycles to begin and end with a part of a row that is taken apart."""
_COPIED_WINDOWS = 2.5
"""Cycles to copy a vector of an image in bfloat16 parts into a strip; fitted on a Sapphire Rapids."""
_FETCHED = 1.5
"""Cycles to fetch, from the second cache, what was a vector."""
_SCATTERED = 30.0
"""Cycles to write a vector of results to as many rows of memory, of which a tile has many."""
_PUT_AHEAD = 14.0
"""Cycles to write that to memory, where it is packed ahead."""
_ASKED = 0.7
"""Fraction of the cycles to fetch from memory that items save if they prefetch what they pack next."""
_TURNED = 1.0
"""Cycles to turn words into rows, for as many integers as a vector has words."""
_WORDS_PUT_DOWN = 60.0
"""Cycles to add a register's sums of integers to those of other parts, less what is to be subtracted."""
_ROW = 30.0
"""Cycles to begin with a row of results."""
_CROSSED = 16.0
"""Cycles more for a vector of rows of which threads compute parts in each step of a recurrence: of what all
have made before, some lies in the caches of other cores, as does what they read next."""


def matrix_tilings(roles: Roles, lanes: int) -> Iterator[Family]:
    """Each division of the results into blocks."""
    if roles.types[0] is not F32 or not machine().has("amx-bf16"):
        return
    outer, m, n, k = roles.sizes
    costs = packing_cycles(roles, lanes)
    for micro in _shapes(roles):
        tiles = outer * -(-m // micro.rows) * -(-n // (micro.vectors * lanes))
        least = tiles * matrix_tile_cycles(k, PRODUCTS_IN_REGISTERS, micro)
        yield Family(roles, least, partial(_matrix_divisions, roles, micro, lanes, costs))


def _matrix_divisions(
    roles: Roles, micro: MicroKernel, lanes: int, packed: tuple[float, float], worth: Worth
) -> Iterator[Tiles]:
    _, m, n, k = roles.sizes
    a, b = (each + SPLIT for each in packed)
    stored = _stored(roles)
    far = far_cycles(roles.a, roles.a.loads), far_cycles(roles.b, roles.b.loads)
    begun = -(-k // PRODUCTS_IN_REGISTERS) * _ROW_TAKEN
    a_work = groups_of(roles, roles.a) * m * (k * (a + _PUT_AHEAD) / lanes + begun)
    b_work = groups_of(roles, roles.b) * n * k * (b + _PUT_AHEAD) / lanes
    a, b = (each - _ASKED * distant for each, distant in zip((a, b), far, strict=True))
    tile = matrix_tile_cycles(k, PRODUCTS_IN_REGISTERS, micro)
    for rows, columns, count in _blocks(m, n, lanes, micro):
        item = STARTED + count * tile + rows * (_ROW + columns * stored / lanes)
        if steps_of(roles.b) > 1 and columns < n:
            item += rows * (k + columns) * _CROSSED / lanes
        a_packed, b_packed = rows * (k * a / lanes + begun), columns * k * b / lanes
        panels = -(-rows // MATRIX_TILE.rows)
        # While the next part is fetched, a part of a panel is multiplied by all tiles, and one of a strip by
        # all panels. Two panels of half tiles take no longer than one of whole ones.
        a_fetched = rows * k * (_FETCHED + far[0] * -(-rows // micro.rows) / count) / lanes
        b_fetched = columns * k * (_FETCHED + far[1] / panels) / lanes
        here = partial(Tiles, roles, micro, rows, columns, in_registers=True)
        if worth(alone := item + a_packed + b_packed, rows, columns):
            yield here(item_cycles=alone)
        if worth(a_ahead := item + a_fetched + b_packed, rows, columns):
            yield here(item_cycles=a_ahead, ahead=True, packing_work=a_work)
        if worth(b_ahead := item + a_packed + b_fetched, rows, columns):
            yield here(item_cycles=b_ahead, b_ahead=True, packing_work=b_work)


def _shapes(roles: Roles) -> Iterator[MicroKernel]:
    """The tiles of which no more than half is computed for nothing."""
    m, n = roles.count(roles.rows), roles.count(roles.columns)
    for micro in (MATRIX_TILE, _HALF_TILE) if steps_of(roles.b) > 1 else (MATRIX_TILE,):
        if m > micro.rows // 2 and n >= _FEWEST:
            yield micro


def matrix_image_tilings(seen: Seen, lanes: int) -> Iterator[Family]:
    """The same where b is windows of an image: blocks have whole rows of windows."""
    roles = seen.roles
    outer, m, n, k = roles.sizes
    if not machine().has("amx-bf16") or seen.image.taps > _MOST_TAPS or m < _FEWEST:
        return
    tiles = outer * -(-m // MATRIX_TILE.rows) * n / (MATRIX_TILE.vectors * lanes)
    least = tiles * matrix_tile_cycles(k, seen.depth(DEPTH))
    yield Family(roles, least, partial(_matrix_image_divisions, seen, lanes))


def _matrix_image_divisions(seen: Seen, lanes: int, worth: Worth) -> Iterator[Tiles]:
    roles, image = seen.roles, seen.image
    _, m, _, k = roles.sizes
    a, _ = packing_cycles(roles, lanes)
    a_work = groups_of(roles, roles.a) * m * k * (a + SPLIT) / lanes
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    far = far_cycles(roles.a, roles.a.loads)
    unit, width = MATRIX_TILE.rows, MATRIX_TILE.vectors * lanes
    tile = matrix_tile_cycles(k, seen.depth(DEPTH))
    for lines in block_lines(seen):
        span = lines * seen.pitch - image.columns.reach
        if span > MOST_COLUMNS:
            break
        most_rows = max(unit, image_rows(image_columns(span, width)) // unit * unit)
        for rows in block_sizes(m, unit, most_rows):
            tiles = -(-span // width)
            item = STARTED + -(-rows // unit) * tiles * tile
            item += rows * k * (_FETCHED + far / tiles) / lanes
            item += image_cycles(seen, lines, lanes)
            item += tiles * MATRIX_TILE.vectors * k * PIECES / 2 * _COPIED_WINDOWS
            item += rows * lines * (ROW + -(-seen.width // lanes) * stored)
            columns = lines * seen.width
            if worth(item, rows, columns):
                yield Tiles(
                    roles, MATRIX_TILE, rows, columns, item, True, a_work, seen=seen, in_registers=True
                )


def word_matrix_tilings(roles: Roles, lanes: int) -> Iterator[Family]:
    """The same of matrices of 8-bit integers, in words."""
    outer, m, n, _ = roles.sizes
    if roles.types[0] not in BYTES or not machine().has("amx-int8") or min(m, n) < _FEWEST:
        return
    words = roles.words
    tile = -(-words // REGISTER_ROWS) * _sums(MATRIX_TILE) * _MULTIPLIED
    tile += -(-words // PRODUCTS_IN_REGISTERS) * _sums(MATRIX_TILE) * _WORDS_PUT_DOWN
    tiles = outer * -(-m // MATRIX_TILE.rows) * -(-n // (MATRIX_TILE.vectors * lanes))
    divisions = partial(_word_matrix_divisions, roles, lanes, tile)
    yield Family(roles, tiles * tile, divisions, packs_tiles=True)


def _word_matrix_divisions(roles: Roles, lanes: int, tile: float, worth: Worth) -> Iterator[Tiles]:
    _, m, n, k = roles.sizes
    a, b = packing_cycles(roles, lanes)
    a += _TURNED
    stored, words = _stored(roles), roles.words
    a_work = groups_of(roles, roles.a) * m * k * a / lanes
    for rows, columns, count in _blocks(m, n, lanes):
        item = STARTED + count * tile + rows * (_ROW + columns * stored / lanes) + columns * k * b / lanes
        here = partial(Tiles, roles, MATRIX_TILE, rows, columns, in_registers=True)
        if worth(alone := item + rows * k * a / lanes, rows, columns):
            yield here(item_cycles=alone)
        if worth(fetched := item + rows * words * _FETCHED / lanes, rows, columns):
            yield here(item_cycles=fetched, ahead=True, packing_work=a_work)


def matrix_tile_cycles(
    k: int, together: int, micro: MicroKernel = MATRIX_TILE, waited: float = _WAITED
) -> float:
    """Return the cycles for a tile of numbers in parts, of which so many products are added up together.
    `waited`: cycles of waiting for operands, for each product of two registers."""
    multiplied = -(-k // STEP) * _PRODUCTS * (_MULTIPLIED + waited)
    return _sums(micro) * (multiplied + -(-k // together) * _PUT_DOWN)


def _sums(micro: MicroKernel) -> int:
    """Registers of sums."""
    return micro.rows // REGISTER_ROWS * micro.vectors


def _stored(roles: Roles) -> float:
    """Cycles to store a vector of results."""
    return COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else _SCATTERED


def _blocks(m: int, n: int, lanes: int, micro: MicroKernel = MATRIX_TILE) -> Iterator[tuple[int, int, int]]:
    """Rows and columns of blocks, and the tiles of each."""
    units = micro.rows, micro.vectors * lanes
    sizes = (
        block_sizes(count, unit, most // unit * unit)
        for count, unit, most in zip((m, n), units, MOST_MATRIX_RESULTS, strict=True)
    )
    for rows, columns in product(*sizes):
        yield rows, columns, -(-rows // units[0]) * -(-columns // units[1])
