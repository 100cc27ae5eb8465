"""The families of tilings in matrix registers (AMX), with their costs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

from opendml.compiler.kernel import Kernel
from opendml.targets.cpu.contraction.arithmetic import BYTES, F32
from opendml.targets.cpu.contraction.costs import (
    ROW,
    STARTED,
    block_sizes,
    far_cycles,
    lane_count,
    packing_cycles,
    stored_cycles,
)
from opendml.targets.cpu.contraction.image import ViewedImage
from opendml.targets.cpu.contraction.image_tilings import image_blocks, image_cycles
from opendml.targets.cpu.contraction.roles import Roles, Varying
from opendml.targets.cpu.contraction.tiles import (
    MOST_AMX_RESULTS,
    PRODUCTS_IN_REGISTERS,
    BlockWay,
    Family,
    groups_of,
    is_fixed,
    steps_of,
)
from opendml.targets.cpu.contraction.tiling import (
    BF16_PARTS,
    REGISTER_ROWS,
    STEP,
    Instructions,
    MicroKernel,
    Storage,
)
from opendml.targets.cpu.contraction.tilings import WIDENED, has_panels
from opendml.targets.cpu.machine import machine

AMX_TILE = MicroKernel(2 * REGISTER_ROWS, 2)
"""Four registers of sums and four of operands. A tile with one row of three is half as fast: it waits for its
operands."""
_HALF_TILE = MicroKernel(REGISTER_ROWS, 2)
"""Two registers of sums and three of operands: as fast, if a cache has B. So in the steps of a recurrence
each of two threads has rows of its own if there are few."""
_FEWEST = REGISTER_ROWS + 1
"""The fewest rows and columns: with less, half of each tile is computed for nothing."""
_FEW_BESIDE_FAR = 64
"""The most rows or columns that meet a constant that no core's cache holds in vectors rather than in AMX.

In vectors BERT-base takes 0.45 of the time with 16 tokens, 0.6 with 55, and 1.0 with 100. This was measured
with constants in bfloat16 parts, on two cores of a Sapphire Rapids."""
_MOST_TAPS = 9
"""The most elements of windows whose products are added up with those of STEP channels."""
_PRODUCTS = BF16_PARTS * (BF16_PARTS + 1) // 2
"""The products of bfloat16 parts for one of float32."""

# Cycles of one core, fitted on an Intel Xeon with AMX and 2 MB of second cache, November 2026.
_MULTIPLIED = 20.0
"""Cycles for the products of two registers, from the first cache: 16 with zeros, and 20 with other numbers,
since the processor lowers its clock (Sapphire Rapids). On a core that another virtual machine probably used,
68."""
_WAITED = 10.0
"""Additional cycles of each if operands come from the second cache. Fitted so that the costs of all products
of VGG-19, ResNet-50, BERT, ViT and GPT-2 compare correctly with those in vector registers (Sapphire
Rapids)."""
_SUMS_ADDED = 40.0
"""Cycles to add a register's sums to those of other parts."""
SPLIT = 8.0
"""Cycles to split a vector."""
_ROW_SPLIT = 20.0
"""Cycles to begin and end with a part of a row that is split."""
_COPIED_WINDOWS = 2.5
"""Cycles to copy a vector of an image in bfloat16 parts into a panel (Sapphire Rapids)."""
_FETCHED = 1.5
"""Cycles to fetch a packed vector from the second cache."""
_SCATTERED = 30.0
"""Cycles to store a vector of results to as many rows of memory; a tile has many vectors."""
_STORED_AHEAD = 14.0
"""Cycles to store a packed vector to memory, if it is packed ahead."""
_PREFETCHED = 0.7
"""The part of the cycles to fetch from memory that items save if they prefetch what they pack next."""
_TRANSPOSED = 1.0
"""Cycles to transpose groups into rows, for as many integers as a vector has groups."""
_INT8_SUMS_ADDED = 60.0
"""Cycles to add a register's sums of integers to those of other parts, less what is subtracted."""
_ROW = 30.0
"""Cycles to begin with a row of results."""
_CROSSED = 16.0
"""Additional cycles for a vector of rows of which threads compute parts in each step of a recurrence. Some of
the state before lies in the caches of other cores, as does what they read next."""


def amx_tilings(roles: Roles, varying: Varying = None, is_narrow: bool = False) -> Iterator[Family]:
    """Yield the families of float32 matrices in bfloat16 parts. B may be packed in a narrow type.

    If sizes vary, fewer rows read a large constant B from panels. Items split these, or it would be in memory
    twice.
    """
    if roles.types[0] is not F32 or not machine().has("amx-bf16"):
        return
    outer, m, n, k = roles.sizes
    lanes, stored, crosses = lane_count(), stored_cycles(roles, _SCATTERED), steps_of(roles.b) > 1
    a, b = (each + SPLIT for each in packing_cycles(roles))
    are_split_again = [_is_far_constant(each) for each in (roles.a, roles.b)]
    if any(is_far and few <= _FEW_BESIDE_FAR for is_far, few in zip(are_split_again, (n, m), strict=True)):
        return
    far = far_cycles(roles.a, roles.a.loads), far_cycles(roles.b, roles.b.loads)
    from_panels = are_split_again[1] and varying is not None and has_panels(roles) and not is_fixed(roles.a)
    begun = -(-k // PRODUCTS_IN_REGISTERS) * _ROW_SPLIT
    a_work = groups_of(roles, roles.a) * m * (k * (a + _STORED_AHEAD) / lanes + begun)
    b_work = groups_of(roles, roles.b) * n * k * (b + _STORED_AHEAD) / lanes
    a, b = (each - _PREFETCHED * distant for each, distant in zip((a, b), far, strict=True))
    # No more than half of a tile is computed for nothing.
    shapes = [AMX_TILE, _HALF_TILE] if crosses else [AMX_TILE]

    def family(micro: MicroKernel) -> Family:
        tile = amx_tile_cycles(k, PRODUCTS_IN_REGISTERS, micro)

        def ways(rows: int, columns: int) -> Iterator[BlockWay]:
            count = _tile_count(micro, rows, columns)
            item = STARTED + count * tile + rows * (_ROW + columns * stored / lanes)
            if crosses and columns < n:
                item += rows * (k + columns) * _CROSSED / lanes
            a_packed, b_packed = rows * (k * a / lanes + begun), columns * k * b / lanes
            panels = -(-rows // AMX_TILE.rows)
            # While the next part is fetched, a part of a micro-panel is multiplied by all tiles, and one of a
            # panel by all micro-panels. Two of half tiles take no longer than one of whole tiles.
            a_fetched = rows * k * (_FETCHED + far[0] * -(-rows // micro.rows) / count) / lanes
            b_fetched = columns * k * (_FETCHED + far[1] / panels) / lanes
            if is_narrow:
                b_packed = columns * k * (SPLIT + WIDENED) / lanes
                yield item + a_packed + b_packed, Storage.PACKED, Storage.NARROW, 0.0
                return
            if from_panels:
                yield item + a_packed + b_packed, Storage.PACKED, Storage.PANELS, 0.0
                yield item + a_fetched + b_packed, Storage.AHEAD, Storage.PANELS, a_work
                return
            yield item + a_packed + b_packed, Storage.PACKED, Storage.PACKED, 0.0
            if not are_split_again[0]:
                yield item + a_fetched + b_packed, Storage.AHEAD, Storage.PACKED, a_work
            if not are_split_again[1]:
                yield item + a_packed + b_fetched, Storage.PACKED, Storage.AHEAD, b_work

        least = outer * _tile_count(micro, m, n) * tile
        return Family(roles, Instructions.AMX_BF16, micro, least, _blocks(m, n, micro), ways)

    yield from map(family, (each for each in shapes if m > each.rows // 2 and n >= _FEWEST))


def _is_far_constant(part: Kernel) -> bool:
    """Return whether an operand is a constant that no core's cache holds.

    Each item splits what it reads of such a constant. Parts that are packed ahead have 1.5 times the bytes,
    in memory and on the way from there. Without them BERT-base takes 0.93 of the time with 128 tokens, 0.94
    with 512, and ViT-B/16 0.91 (two cores of a Sapphire Rapids).
    """
    return is_fixed(part) and steps_of(part) == 1 and far_cycles(part, part.loads) > 0


def fewest_in_amx(roles: Roles) -> int:
    """Return the fewest rows or columns that meet the constant operand of float32 in AMX; `sys.maxsize` if no
    number does."""
    _, m, n, _ = roles.sizes
    constant, count = (roles.a, m) if is_fixed(roles.a) else (roles.b, n)
    if roles.types[0] is not F32 or not machine().has("amx-bf16") or count < _FEWEST:
        return sys.maxsize
    if steps_of(constant) > 1:
        return _HALF_TILE.rows // 2 + 1  # Few rows take half tiles if B stays in a recurrence.
    return _FEW_BESIDE_FAR + 1 if _is_far_constant(constant) else _FEWEST


def amx_image_tilings(viewed: ViewedImage) -> Iterator[Family]:
    """Yield the family whose B is windows of an image in bfloat16 parts, in blocks of whole rows of
    windows."""
    roles, lanes = viewed.roles, lane_count()
    outer, m, n, k = roles.sizes
    if not machine().has("amx-bf16") or viewed.image.taps > _MOST_TAPS or m < _FEWEST:
        return
    unit, width = AMX_TILE.rows, AMX_TILE.vectors * lanes
    tile = amx_tile_cycles(k, viewed.depth)
    a, _ = packing_cycles(roles)
    work = groups_of(roles, roles.a) * m * k * (a + SPLIT) / lanes
    stored = stored_cycles(roles)
    far, packed = far_cycles(roles.a, roles.a.loads), image_cycles(viewed)

    def ways(rows: int, columns: int) -> Iterator[BlockWay]:
        lines = columns // viewed.width
        tiles = -(-viewed.span(lines) // width)
        item = STARTED + -(-rows // unit) * tiles * tile
        item += rows * k * (_FETCHED + far / tiles) / lanes
        item += packed(lines)
        item += tiles * AMX_TILE.vectors * k * BF16_PARTS / 2 * _COPIED_WINDOWS
        item += rows * lines * (ROW + -(-viewed.width // lanes) * stored)
        yield item, Storage.AHEAD, Storage.WINDOWS, work

    least = outer * -(-m // unit) * n / width * tile
    blocks = list(image_blocks(viewed, AMX_TILE))
    yield Family(roles, Instructions.AMX_BF16, AMX_TILE, least, blocks, ways, viewed)


def amx_int8_tilings(roles: Roles) -> Iterator[Family]:
    """Yield the family of matrices of 8-bit integers."""
    outer, m, n, k = roles.sizes
    if roles.types[0] not in BYTES or not machine().has("amx-int8") or min(m, n) < _FEWEST:
        return
    groups, lanes, stored = roles.k_groups, lane_count(), stored_cycles(roles, _SCATTERED)
    tile = -(-groups // REGISTER_ROWS) * _sums(AMX_TILE) * _MULTIPLIED
    tile += -(-groups // PRODUCTS_IN_REGISTERS) * _sums(AMX_TILE) * _INT8_SUMS_ADDED
    a, b = packing_cycles(roles)
    a += _TRANSPOSED
    work = groups_of(roles, roles.a) * m * k * a / lanes

    def ways(rows: int, columns: int) -> Iterator[BlockWay]:
        count = _tile_count(AMX_TILE, rows, columns)
        item = STARTED + count * tile + rows * (_ROW + columns * stored / lanes) + columns * k * b / lanes
        yield item + rows * k * a / lanes, Storage.PACKED, Storage.PACKED, 0.0
        yield item + rows * groups * _FETCHED / lanes, Storage.AHEAD, Storage.PACKED, work

    least, blocks = outer * _tile_count(AMX_TILE, m, n) * tile, _blocks(m, n, AMX_TILE)
    yield Family(roles, Instructions.AMX_INT8, AMX_TILE, least, blocks, ways, packs_tiles=True)


def amx_tile_cycles(k: int, together: int, micro: MicroKernel = AMX_TILE, waited: float = _WAITED) -> float:
    """Return the cycles for a tile of numbers in bfloat16 parts.

    `together` products are added up at a time. Each product of two registers waits `waited` cycles for
    operands.
    """
    multiplied = -(-k // STEP) * _PRODUCTS * (_MULTIPLIED + waited)
    return _sums(micro) * (multiplied + -(-k // together) * _SUMS_ADDED)


def _sums(micro: MicroKernel) -> int:
    """Return the registers of sums."""
    return micro.rows // REGISTER_ROWS * micro.vectors


def _tile_count(micro: MicroKernel, rows: int, columns: int) -> int:
    """Return the tiles of a block."""
    return -(-rows // micro.rows) * -(-columns // (micro.vectors * lane_count()))


def _blocks(m: int, n: int, micro: MicroKernel) -> list[tuple[int, int]]:
    """Return the rows and columns of blocks."""
    units = micro.rows, micro.vectors * lane_count()
    sizes = (
        block_sizes(count, unit, most // unit * unit)
        for count, unit, most in zip((m, n), units, MOST_AMX_RESULTS, strict=True)
    )
    rows, columns = sizes
    return list(product(rows, columns))
