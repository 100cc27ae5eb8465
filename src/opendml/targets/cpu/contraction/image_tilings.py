"""The divisions of products with windows of an image into tiles that may be worth it, with their cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from opendml.targets.cpu.contraction.costs import (
    COPIED,
    GATHERED,
    LATENCY,
    ROW,
    STARTED,
    block_sizes,
    copied_cycles,
    even_part,
    far_cycles,
    largest_tiles,
    packing_cycles,
    tile_cycles,
)
from opendml.targets.cpu.contraction.image import Seen
from opendml.targets.cpu.contraction.operands import is_contiguous
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import MicroKernel
from opendml.targets.cpu.contraction.tiles import DEPTH, Family, Tiles, Worth, groups_of, most_results
from opendml.targets.cpu.contraction.tilings import FEW_ROWS, SCATTERED, STREAMED
from opendml.targets.cpu.machine import machine

_FOUND = 0.5
"""Cycles to find out where the next product's vectors lie, beyond what else goes on meanwhile."""
_SPLIT, _ROW_IN_PIECES = 6.0, 30.0
"""Additional cycles to store a vector of an image in bfloat16 parts, and cycles to begin a row of two
channels. Without the latter, rows of 15 columns took 1.2 times as long as estimated (Sapphire Rapids)."""
MOST_COLUMNS = 4096
"""Of an image's block."""


def image_tilings(seen: Seen, lanes: int) -> Iterator[Family]:
    """Where windows are the lanes of vectors: each tile in registers, with each division of the results into
    blocks of whole rows of windows."""
    roles = seen.roles
    outer, m, n, _ = roles.sizes
    a, _ = packing_cycles(roles, lanes)
    for micro in _micro_kernels(m):
        tiles = outer * -(-m // micro.rows) * n / (micro.vectors * lanes)
        least = tiles * roles.words * _image_tile_cycles(micro)
        yield Family(roles, least, partial(_image_divisions, seen, micro, lanes, a))


def _image_divisions(seen: Seen, micro: MicroKernel, lanes: int, a: float, worth: Worth) -> Iterator[Tiles]:
    roles, reach = seen.roles, seen.image.columns.reach
    _, m, _, k = roles.sizes
    words, width, product_cycles = roles.words, micro.vectors * lanes, _image_tile_cycles(micro)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    packing = groups_of(roles, roles.a) * m * k * a / lanes
    for lines in block_lines(seen):
        span = lines * seen.pitch - reach
        if span > MOST_COLUMNS:
            break
        tiles, columns = -(-span // width), lines * seen.width
        packed = image_cycles(seen, lines, lanes)
        most_rows = image_rows(image_columns(span, width)) // micro.rows * micro.rows
        for rows in block_sizes(m, micro.rows, max(micro.rows, most_rows)):
            item = STARTED + -(-rows // micro.rows) * tiles * words * product_cycles
            item += packed
            item += rows * lines * (ROW + -(-seen.width // lanes) * stored)
            alone = item + rows * k * a / lanes
            if worth(alone, rows, columns):
                yield Tiles(roles, micro, rows, columns, alone, seen=seen)
            item += rows * words * STREAMED / lanes
            if worth(item, rows, columns):
                yield Tiles(roles, micro, rows, columns, item, True, packing, seen=seen)


def _micro_kernels(m: int) -> list[MicroKernel]:
    """The largest tiles of so many rows at most, those of a row less, which may leave fewer over, and where
    there are few rows the widest."""
    sizes = {
        (even_part(m, most), largest.vectors)
        for largest in largest_tiles()
        for most in (largest.rows, largest.rows - 1)
    }
    registers = machine().registers - 1
    if m <= FEW_ROWS:
        sizes.add((m, registers // (m + 1)))
    return [MicroKernel(*size) for size in sorted(sizes)]


def _image_tile_cycles(micro: MicroKernel) -> float:
    """Cycles for one product of each result of a tile, where vectors lie anywhere in the first cache: most
    take two loads each, and one says where."""
    loads = (micro.rows + 2 * micro.vectors + 1) / 2
    return max(micro.rows * micro.vectors / 2, loads, LATENCY) + _FOUND


def broadcast_image_tilings(seen: Seen, lanes: int) -> Iterator[Family]:
    """Where windows are broadcast: likewise, with tiles of windows beside each other."""
    roles = seen.roles
    outer, m, n, k = roles.sizes
    _, b = packing_cycles(roles, lanes)
    for largest in largest_tiles():
        divisors = (rows for rows in range(largest.rows, 0, -1) if seen.width % rows == 0)
        micro = replace(largest, rows=next(divisors))
        tiles = outer * (m // micro.rows) * -(-n // (micro.vectors * lanes))
        least = tiles * k * tile_cycles(micro)
        divisions = partial(_broadcast_image_divisions, seen, micro, lanes, b)
        yield Family(roles, least, divisions, packs_tiles=True, broadcasts=True)


def _broadcast_image_divisions(
    seen: Seen, micro: MicroKernel, lanes: int, b: float, worth: Worth
) -> Iterator[Tiles]:
    roles = seen.roles
    _, _, n, k = roles.sizes
    most_rows, most_columns = most_results()
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else SCATTERED
    width, product_cycles = micro.vectors * lanes, tile_cycles(micro)
    for lines in block_lines(seen):
        rows = lines * seen.width
        if rows > most_rows:
            break
        packed = image_cycles(seen, lines, lanes)
        for columns in block_sizes(n, width, most_columns // width * width):
            tiles = rows // micro.rows * -(-columns // width)
            item = STARTED + tiles * k * product_cycles + packed
            item += (columns * k * b + rows * columns * stored) / lanes
            if worth(item, rows, columns):
                yield Tiles(roles, micro, rows, columns, item, seen=seen)


def block_lines(seen: Seen) -> Iterator[int]:
    """How many rows of windows a block may have, from one on."""
    words = min(seen.depth(DEPTH), seen.roles.words)
    for lines in sorted({-(-seen.height // parts) for parts in range(1, seen.height + 1)}):
        if seen.elements(lines, words) > seen.image.room:
            return
        yield lines


def image_cycles(seen: Seen, lines: int, lanes: int) -> float:
    """Return the cycles to pack what so many rows of windows see, and to find out where it lies."""
    image, loads = seen.image, seen.part.loads
    minor = seen.columns[1]
    contiguous = minor is not None and is_contiguous(loads, (minor,))
    split, begun = (_SPLIT, _ROW_IN_PIECES) if seen.in_pieces else (0.0, ROW)
    vector = far_cycles(seen.part, loads) + (COPIED if contiguous else GATHERED) * seen.roles.group + split
    rows = (
        seen.roles.count((*seen.channels, *(seen.sharing if seen.in_pieces else ())))
        * image.phases
        * (lines + image.rows.reach)
    )
    return 2 * seen.depth(DEPTH) + rows * (begun + -(-seen.pitch // lanes) * vector)


def image_columns(span: int, width: int) -> int:
    """Room for so many sums beside each other, in one of few sizes: each is code of its own."""
    size = 128
    while size < span:
        size *= 2
    return -(-size // width) * width


def image_rows(columns: int) -> int:
    """Rows of a block of an image: its results take a quarter of a core's own cache at most."""
    return max(1, machine().l2_bytes // 4 // (columns * F32.bytes))
