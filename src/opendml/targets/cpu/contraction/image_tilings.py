"""The families of tilings of products with windows of an image in vector instructions, with their costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from opendml.late_dataclass import replace
from opendml.targets.cpu.contraction.costs import (
    LATENCY,
    ROW,
    STARTED,
    block_sizes,
    copied_cycles,
    even_part,
    far_cycles,
    lane_count,
    largest_tiles,
    packing_cycles,
    stored_cycles,
    tile_cycles,
)
from opendml.targets.cpu.contraction.image import ViewedImage
from opendml.targets.cpu.contraction.operands import is_contiguous
from opendml.targets.cpu.contraction.tiles import (
    BlockWay,
    Family,
    block_in_cache,
    groups_of,
    image_columns,
    rows_in_cache,
)
from opendml.targets.cpu.contraction.tiling import FEW_ROWS, Instructions, MicroKernel, Storage
from opendml.targets.cpu.contraction.tilings import STREAMED
from opendml.targets.cpu.machine import machine

_FOUND = 0.5
"""Additional cycles to find the place of the next product's vectors."""
_SPLIT, _ROW_OF_PARTS = 6.0, 30.0
"""Additional cycles to store a vector of an image in bfloat16 parts, and cycles to begin a row of two
channels. Without the latter, rows of 15 columns took 1.2 times as long as estimated (Sapphire Rapids)."""
_SCATTERED = 30.0
"""Cycles to store a vector of results to as many rows, if neighbours in a row follow each other. Estimates
then are within 5 % of the ratios that were measured for 13 layers (Zen 4)."""
_MOST_COLUMNS = 4096
"""The most columns of a block of an image."""


def image_tilings(viewed: ViewedImage, height: int | None = None) -> Iterator[Family]:
    """Yield the families whose B is windows, in blocks of whole rows of windows.

    Args:
        viewed: the windows.
        height: the rows of tiles, whose A is a constant that is packed ahead; None: any.
    """
    roles, lanes = viewed.roles, lane_count()
    outer, m, n, k = roles.sizes
    (a, _), groups = packing_cycles(roles), roles.k_groups
    row_cycles = ROW + -(-viewed.width // lanes) * stored_cycles(roles)
    work = groups_of(roles, roles.a) * m * k * a / lanes
    packed = image_cycles(viewed)

    def family(micro: MicroKernel) -> Family:
        width, product_cycles = micro.vectors * lanes, _image_tile_cycles(micro)

        @cache
        def of_columns(columns: int) -> tuple[int, int, float]:
            lines = columns // viewed.width
            return lines, -(-viewed.span(lines) // width), packed(lines)

        def ways(rows: int, columns: int) -> list[BlockWay]:
            lines, tiles, packing = of_columns(columns)
            item = STARTED + -(-rows // micro.rows) * tiles * groups * product_cycles
            item += packing
            item += rows * lines * row_cycles
            found: list[BlockWay] = []
            if height is None:
                found.append((item + rows * k * a / lanes, Storage.PACKED, Storage.WINDOWS, 0.0))
            return [*found, (item + rows * groups * STREAMED / lanes, Storage.AHEAD, Storage.WINDOWS, work)]

        least = outer * -(-m // micro.rows) * n / width * groups * product_cycles
        blocks = list(image_blocks(viewed, micro))
        return Family(roles, Instructions.FMA, micro, least, blocks, ways, viewed)

    yield from [family(each) for each in _micro_kernels(m) if height in (None, each.rows)]


def image_blocks(viewed: ViewedImage, micro: MicroKernel) -> Iterator[tuple[int, int]]:
    """Yield the rows and columns of blocks of whole rows of windows."""
    m, width = viewed.roles.sizes[1], micro.vectors * lane_count()
    for lines in _block_lines(viewed):
        span = viewed.span(lines)
        if span > _MOST_COLUMNS:
            break
        most_rows = rows_in_cache(image_columns(span, width)) // micro.rows * micro.rows
        for rows in block_sizes(m, micro.rows, max(micro.rows, most_rows)):
            yield rows, lines * viewed.width


def most_width(viewed: ViewedImage) -> int:
    """Return a number of windows beside each other up to which blocks of the image fit a cache."""
    image = viewed.image
    return min(_MOST_COLUMNS, viewed.most_plane_elements // (1 + image.rows.reach) - image.columns.reach)


def _micro_kernels(m: int) -> list[MicroKernel]:
    """Return the largest tiles of at most `m` rows, those of a row less, which may leave fewer over, and for
    few rows the widest."""
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
    """Return the cycles for one product of each result of a tile. Most vectors that lie anywhere in the first
    cache take two loads each, and one load finds them."""
    loads = (micro.rows + 2 * micro.vectors + 1) / 2
    return max(micro.rows * micro.vectors / 2, loads, LATENCY) + _FOUND


def broadcast_image_tilings(viewed: ViewedImage) -> Iterator[Family]:
    """Yield the families whose A is windows, in tiles of windows beside each other."""
    roles, lanes = viewed.roles, lane_count()
    outer, m, n, k = roles.sizes
    _, b = packing_cycles(roles)
    most_rows, most_columns = block_in_cache()
    stored = stored_cycles(roles, _SCATTERED)
    packed = image_cycles(viewed)

    def family(largest: MicroKernel) -> Family:
        divisors = (rows for rows in range(largest.rows, 0, -1) if viewed.width % rows == 0)
        micro = replace(largest, rows=next(divisors))
        width, product_cycles = micro.vectors * lanes, tile_cycles(micro)

        def ways(rows: int, columns: int) -> Iterator[BlockWay]:
            tiles = rows // micro.rows * -(-columns // width)
            item = STARTED + tiles * k * product_cycles + packed(rows // viewed.width)
            item += (columns * k * b + rows * columns * stored) / lanes
            yield item, Storage.WINDOWS, Storage.PACKED, 0.0

        all_rows = [lines * viewed.width for lines in _block_lines(viewed)]
        sizes = block_sizes(n, width, most_columns // width * width)
        blocks = [(rows, columns) for rows in all_rows if rows <= most_rows for columns in sizes]
        least = outer * (m // micro.rows) * -(-n // width) * k * product_cycles
        return Family(roles, Instructions.FMA, micro, least, blocks, ways, viewed, packs_tiles=True)

    yield from map(family, largest_tiles())


def _block_lines(viewed: ViewedImage) -> list[int]:
    """Return the numbers of rows of windows that a block may have, from one on."""
    most_lines = viewed.most_plane_elements // viewed.pitch - viewed.image.rows.reach
    return [lines for lines in _even_parts(viewed.height) if lines <= most_lines]


@lru_cache(maxsize=256)
def _even_parts(count: int) -> list[int]:
    """Return the size of the largest part of a count that is divided evenly, for each number of parts."""
    return sorted({-(-count // parts) for parts in range(1, count + 1)})


def image_cycles(viewed: ViewedImage) -> Callable[[int], float]:
    """Return the cycles to pack what some rows of windows see, and to find where it lies, by their number."""
    image, loads, lanes = viewed.image, viewed.part.loads, lane_count()
    minor = viewed.columns[1]
    contiguous = minor is not None and is_contiguous(loads, (minor,))
    split, begun = (_SPLIT, _ROW_OF_PARTS) if viewed.in_bf16 else (0.0, ROW)
    vector = far_cycles(viewed.part, loads) + copied_cycles(contiguous) * viewed.roles.group + split
    channels = viewed.roles.count((*viewed.channels, *(viewed.sharing if viewed.in_bf16 else ())))

    @cache
    def cycles(lines: int) -> float:
        rows = channels * image.phases * (lines + image.rows.reach)
        return 2 * viewed.depth + rows * (begun + -(-viewed.pitch // lanes) * vector)

    return cycles
