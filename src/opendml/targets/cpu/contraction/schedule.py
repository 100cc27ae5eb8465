"""Decides how sums of products are computed: which operand is broadcast, the tile in registers, the blocks.

Each way is a candidate with an estimate of its cost; the least wins. How results are divided among tiles and
items changes no bit of them: the products of each are added in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from opendml.compiler.kernel import Access, Kernel, operations_of
from opendml.compiler.loops import loop_nest, merged_neighbours
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.costs import (
    CLAIMED,
    COPIED,
    GATHERED,
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
    register_count,
    tile_cycles,
)
from opendml.targets.cpu.contraction.image import Seen, seen_by
from opendml.targets.cpu.contraction.operands import (
    a_along_depth,
    a_order,
    b_along_depth,
    b_order,
    common_loops,
    epilogue_nest,
    is_contiguous,
    packing_of,
)
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.roles import Roles, loops_over, moves, roles_of
from opendml.targets.cpu.launch import Launch, Numbers, buffers_of, parameters_of, pattern_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import MicroKernel, Mode, Panels, Strips, Tiling
from opendml.targets.cpu.schedule_groups import takes_in_many_rows
from opendml.targets.cpu.threads import available_threads

_DEPTH = 256
"""Products, or words of several, that are added up before they are added to the result: a panel of a and a
tile of b stay in the first cache."""
_PARTS_TOGETHER = 8
"""Parts of so many products whose sums are added up before they are added to those of others, where there are
more: so rounding errors grow with the eighth part of k / 256."""
_ROWS_TOGETHER = 32
"""The same where b is read in place: so many rows are read side by side, a tile of each."""
_MOST_ROWS, _MOST_VECTORS = 8, 4
"""Of tiles then."""
_COLUMNS_IN_ROWS = 4096
"""Of a block then, at most."""
_VECTORS_TOGETHER = 128
"""The same of vectors along k, whose lanes then are put together."""
_SUMS = {32: 24, 16: 12}
"""By the number of vector registers, the sums of such vectors, at most."""
_COLUMNS_OF_DOTS = 1024
"""Of a block of these, at most."""
_ITEMS = 8
"""Items that a job should have, at least, so that threads finish together."""

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
_SCATTERED = 120.0
"""Cycles to write a vector of results to as many rows of memory."""
_STREAMED = 6.0
"""Cycles to fetch a vector of what was packed ahead, where each panel meets a few tiles only."""
_FETCHED_STRIP = 1.0
"""The same for a vector of a strip, which meets many panels."""
_REDUCED, _READ = 3.0, 2.0
"""Cycles for a vector of products of a reduction like any other, and to read one that lies contiguous."""
_IN_ROWS = 2.5
"""The first two where many rows are taken in at once."""
_FOLDED = 10.0
"""Cycles to put the lanes of a vector together."""
_READ_IN_ROWS, _TILE_BEGUN = 2.0, 30.0
"""Cycles to read a vector of b in place, and to begin and end with a part of a tile there."""
_LAUNCHED = 3000.0
"""Cycles until all threads have come to the end of a launch."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A division of results into tiles in registers, and blocks of so many rows and columns."""

    roles: Roles
    micro: MicroKernel
    rows: int
    columns: int
    item_cycles: float
    """Estimated, for one block."""
    ahead: bool = False
    """Whether the operand whose elements are broadcast is packed by a launch of its own, not by each item."""
    packing_work: float = 0.0
    """Estimated cycles of all threads in a launch that packs one of the operands."""
    b_ahead: bool = False
    """Whether the other operand is: a constant, the same in all steps of a recurrence, or what several images
    meet."""
    seen: Seen | None = None
    """The windows of which one operand consists, if they are packed as an image."""
    in_place: bool = False
    """Whether whole panels of the operand whose elements are broadcast are read where they lie."""
    b_in_place: bool = False
    """Whether whole tiles of the other operand are."""
    dots: bool = False
    """Whether vectors lie along k, of b where it lies."""

    @property
    def depth(self) -> int:
        """Products, or words of several, that are added up before they are added to the result."""
        if self.seen:
            return self.seen.depth(_DEPTH)
        if self.dots:
            return _VECTORS_TOGETHER * lane_count()
        return _ROWS_TOGETHER if self.b_in_place else _DEPTH

    @property
    def parts_together(self) -> int:
        """Parts of so many products whose sums are added up before they are added to those of others."""
        return _DEPTH * _PARTS_TOGETHER // _ROWS_TOGETHER if self.b_in_place else _PARTS_TOGETHER


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute sums of products; `tiles`: None where they are reduced like any others."""

    name: str
    cycles: float
    """Estimated, for the thread that works longest, of as many threads as _ITEMS."""
    work: float
    """Estimated, of all threads together."""
    tiles: Tiles | None = None

    @property
    def order(self) -> tuple[int, float]:
        """Candidates with less are better. As many threads join as there is work for, so all that is less
        than enough for _ITEMS of them takes as long."""
        return round(self.cycles), self.work + (self.tiles.packing_work if self.tiles else 0.0)

    def cycles_on(self, threads: int) -> float:
        """Of tiles, those of the thread that works longest of so many, without the packing of constants,
        which is done once."""
        if self.tiles is None:
            return self.cycles
        items = round(self.work / self.tiles.item_cycles)
        longest = -(-items // max(1, min(threads, self.work // CLAIMED))) * self.tiles.item_cycles
        part = packed_ahead(self.tiles)
        if part is None or _is_fixed(part):
            return longest
        return longest + (_LAUNCHED + self.tiles.packing_work / threads) / steps_of(part)


def tiled(kernel: Kernel) -> list[Launch]:
    """The launches that compute a kernel's sums of products in tiles; none if it has none, or is better off
    as any other reduction."""
    if Operation.CONTRACTION not in operations_of(kernel.values):
        return []
    ways = list(candidates(kernel))
    best = min(ways, key=lambda way: way.order).tiles
    if best is None:
        return []
    # That constants are packed once changes neither the bits, which all tiles share, nor the roles.
    alike = [way.tiles for way in ways if way.tiles and _sums_alike(way.tiles, best)]
    alike += [
        with_strips(tiles)
        for tiles in alike
        if _is_fixed(tiles.roles.b) and packed_ahead(tiles) is None and lies_in_tiles(tiles)
    ]
    # Of ways with equal bits the threads at hand decide.
    threads = machine().threads or available_threads()
    chosen = min(
        (_candidate(tiles, False) for tiles in alike),
        key=lambda way: (round(way.cycles_on(threads)), way.work),
    )
    return launches_of(chosen.tiles or best)


def _sums_alike(tiles: Tiles, others: Tiles) -> bool:
    """Whether two divisions into tiles add the same products in the same order, to the same bits. Integers
    may be added in any order."""
    if tiles.roles.types[0] is not F32:
        return tiles.roles.types == others.roles.types
    if tiles.seen and others.seen:
        windows = tiles.seen.image.taps == others.seen.image.taps
        return windows and tiles.roles.depth == others.roles.depth
    return tiles.roles is others.roles and tiles.depth == others.depth


def lies_in_tiles(tiles: Tiles) -> bool:
    """Whether each tile's part of b is packed apart from the others."""
    roles = tiles.roles
    if tiles.b_in_place or tiles.dots or (tiles.seen and not tiles.seen.broadcast):
        return False
    packing, nest = packing_of(roles.b, [], *b_order(roles), b_along_depth(roles), roles.types[1])
    return packing.along_depth or len(nest.rows) == packing.majors


def with_strips(tiles: Tiles) -> Tiles:
    """The same tiles where b, which stays the same, is packed ahead."""
    roles, lanes = tiles.roles, lane_count()
    packing = packing_cycles(roles, lanes)[1]
    # Beside windows of an image a strip comes while all panels are multiplied by the one before.
    fetched = _STREAMED if tiles.seen else _FETCHED_STRIP + far_cycles(roles.b, roles.b.loads)
    saved = packing - fetched
    depth = roles.count(roles.depth) / lanes
    item = tiles.item_cycles - tiles.columns * depth * saved
    work = _groups(roles, roles.b) * roles.count(roles.columns) * depth * packing
    return replace(tiles, b_ahead=True, item_cycles=item, packing_work=work)


def packed_ahead(tiles: Tiles) -> Kernel | None:
    """The operand that a launch of its own packs."""
    return tiles.roles.a if tiles.ahead else tiles.roles.b if tiles.b_ahead else None


def steps_of(part: Kernel) -> int:
    """In how many steps of a recurrence an operand is the same."""
    return min((load.steps for load in part.loads if load.buffer is not None), default=1)


def candidates(kernel: Kernel) -> Iterator[Candidate]:
    """The ways to compute a kernel's sums of products."""
    lanes = lane_count()
    yield _as_any_reduction(kernel, lanes)
    for exchanged in (False, True):
        roles = roles_of(kernel, exchanged)
        if roles is not None:
            stays = steps_of(roles.b) > 1
            for tiles in _tilings(roles, lanes):
                yield _candidate(tiles, exchanged)
                if stays and not tiles.ahead and lies_in_tiles(tiles):
                    yield _candidate(with_strips(tiles), exchanged)
            if roles.types[0] is F32 and not stays:
                # What all steps multiply by is packed once, for all of them.
                for tiles in (*_tilings_in_rows(roles, lanes), *_dots(roles, lanes)):
                    yield _candidate(tiles, exchanged)
            for broadcast, tilings in ((False, _image_tilings), (True, _broadcast_image_tilings)):
                seen = seen_by(roles, broadcast)
                if seen is not None and seen.depth(_DEPTH):
                    for tiles in tilings(seen, lanes):
                        yield _candidate(tiles, exchanged)
                        if broadcast and roles.outer and lies_in_tiles(tiles):
                            yield _candidate(with_strips(tiles), exchanged)


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
    return Candidate("as any reduction", _shared(work, kept), work)


def _shared(cycles: float, items: int) -> float:
    """The cycles of the thread that works longest, where threads share so many items. A thread joins for as
    much work as it claims."""
    return cycles / max(1.0, min(_ITEMS, items, cycles / CLAIMED))


def _candidate(tiles: Tiles, exchanged: bool) -> Candidate:
    roles, micro = tiles.roles, tiles.micro
    part = packed_ahead(tiles)
    name = f"{'dots' if tiles.dots else 'tiles'} of {micro.rows}x{micro.vectors}"
    name += " of an image" if tiles.seen else ""
    name += (" exchanged" if exchanged else "") + (" packed ahead" if part else "")
    name += " in place" if tiles.in_place else " by rows" if tiles.b_in_place else ""
    items = roles.count(roles.outer)
    items *= -(-roles.count(roles.rows) // tiles.rows) * -(-roles.count(roles.columns) // tiles.columns)
    work = tiles.item_cycles * items
    cycles = _shared(work, items)
    if part:
        across, size = (
            (roles.rows, micro.rows) if tiles.ahead else (roles.columns, micro.vectors * lane_count())
        )
        parts = _groups(roles, part) * -(-roles.count(across) // size)
        cycles += (_LAUNCHED + _shared(tiles.packing_work, parts)) / steps_of(part)
    return Candidate(name, cycles, work, tiles)


def _tilings(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """Each tile in registers, with each division of the results into blocks."""
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    words = roles.words
    most_results = _most_results()
    a, b = packing_cycles(roles, lanes)
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else _SCATTERED
    far = far_cycles(roles.a, roles.a.loads)
    packing = _groups(roles, roles.a) * m * k * a / lanes
    in_place = _can_be_read_in_place(roles)
    for micro in _tile_shapes(roles):
        width = micro.vectors * lanes
        most_rows, most_columns = _in_tiles(most_results, micro, lanes)
        for rows, columns in product(
            block_sizes(m, micro.rows, most_rows), block_sizes(n, width, most_columns)
        ):
            tiles = -(-rows // micro.rows) * -(-columns // width)
            item = STARTED + tiles * words * tile_cycles(micro, roles.types[0])
            item += (columns * k * b + rows * columns * stored) / lanes
            yield Tiles(roles, micro, rows, columns, item + rows * k * a / lanes)
            # What is fetched for all tiles of a panel comes while those of the one before are multiplied.
            item += rows * words * (_STREAMED + far * width / columns) / lanes
            yield Tiles(roles, micro, rows, columns, item, True, packing)
            if in_place:
                yield Tiles(roles, micro, rows, columns, item, in_place=True)


def _tilings_in_rows(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """Where there are few rows, and b is read where it lies: tiles of all of these, with each division of the
    columns."""
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    if not 1 < m <= _MOST_ROWS or not _lies_in_rows(roles):
        return
    a, b = packing_cycles(roles, lanes)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    read = _READ_IN_ROWS + far_cycles(roles.b, roles.b.loads, in_rows=True)
    for vectors in range(1, min(_MOST_VECTORS, (register_count() - 1) // (m + 1)) + 1):
        micro, width = MicroKernel(m, vectors), vectors * lanes
        tile = k * tile_cycles(micro) + -(-k // _ROWS_TOGETHER) * _TILE_BEGUN
        for columns in block_sizes(n, width, _COLUMNS_IN_ROWS // width * width):
            packed = min(n, columns) % width
            item = STARTED + -(-columns // width) * tile
            item += (columns * k * read + packed * k * b + m * k * a + m * columns * stored) / lanes
            yield Tiles(roles, micro, m, columns, item, b_in_place=True)


def _dots(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """Where there are few rows, and both lie along k: vectors of both, with each division of the columns."""
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    if m > _MOST_ROWS or not a_along_depth(roles) or not _lies_in_columns(roles):
        return
    a, _ = packing_cycles(roles, lanes)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    together = max(1, min(_MOST_ROWS, lanes, _SUMS[register_count()] // m))
    vector = max(m / 2, (m / together + 1) / 2) + _READ_IN_ROWS
    vector += far_cycles(roles.b, roles.b.loads, in_rows=True)
    parts = -(-k // (_VECTORS_TOGETHER * lanes))
    column = -(-k // lanes) * vector + m * parts * _FOLDED + parts * ROW / together
    for columns in block_sizes(n, together, _COLUMNS_OF_DOTS // together * together):
        item = STARTED + columns * column + (m * k * a + m * columns * stored) / lanes
        yield Tiles(roles, MicroKernel(m, together), m, columns, item, dots=True)


def _lies_in_columns(roles: Roles) -> bool:
    """Whether the operand whose elements are vectors lies along k, in one loop."""
    if not roles.columns or not b_along_depth(roles) or roles.types[1] is not F32:
        return False
    packing, nest = packing_of(roles.b, [], *b_order(roles), True, F32)
    return len(nest.rows) == packing.majors


def _lies_in_rows(roles: Roles) -> bool:
    """Whether the operand whose elements are vectors is a matrix whose rows are those of one product."""
    if b_along_depth(roles) or roles.types[1] is not F32:
        return False
    packing, _ = packing_of(roles.b, [], *b_order(roles), False, F32)
    return packing.is_plain


def _tile_shapes(roles: Roles) -> list[MicroKernel]:
    """The tiles of the largest sizes, each with as many rows as the parts of all have. Few rows have room for
    more vectors, whose sums do not wait for each other; that pays where b need not be packed for them."""
    m = roles.count(roles.rows)
    shapes = [replace(each, rows=even_part(m, each.rows)) for each in largest_tiles()]
    if m <= _FEW_ROWS and steps_of(roles.b) > 1:
        most = (register_count() - 1) // (m + 1)
        shapes += [MicroKernel(m, vectors) for vectors in (8, most) if vectors <= most]
    return shapes


def _image_tilings(seen: Seen, lanes: int) -> Iterator[Tiles]:
    """Where windows are the lanes of vectors: each tile in registers, with each division of the results into
    blocks of whole rows of windows."""
    roles, reach = seen.roles, seen.image.columns.reach
    m, k, words = roles.count(roles.rows), roles.count(roles.depth), roles.words
    a, _ = packing_cycles(roles, lanes)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    for micro in _micro_kernels(m):
        width = micro.vectors * lanes
        for lines in _lines(seen):
            span = lines * seen.pitch - reach
            if span > _MOST_COLUMNS:
                break
            tiles = -(-span // width)
            most_rows = _image_rows(_image_columns(span, width)) // micro.rows * micro.rows
            for rows in block_sizes(m, micro.rows, max(micro.rows, most_rows)):
                item = STARTED + -(-rows // micro.rows) * tiles * words * _image_tile_cycles(micro)
                item += _image_cycles(seen, lines, lanes)
                item += rows * lines * (ROW + -(-seen.width // lanes) * stored)
                columns = lines * seen.width
                yield Tiles(roles, micro, rows, columns, item + rows * k * a / lanes, seen=seen)
                packing = _groups(roles, roles.a) * m * k * a / lanes
                item += rows * words * _STREAMED / lanes
                yield Tiles(roles, micro, rows, columns, item, True, packing, seen=seen)


def _broadcast_image_tilings(seen: Seen, lanes: int) -> Iterator[Tiles]:
    """Where windows are broadcast: likewise, with tiles of windows beside each other."""
    roles = seen.roles
    n, k = roles.count(roles.columns), roles.count(roles.depth)
    most_rows, most_columns = _most_results()
    _, b = packing_cycles(roles, lanes)
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else _SCATTERED
    for largest in largest_tiles():
        divisors = (rows for rows in range(largest.rows, 0, -1) if seen.width % rows == 0)
        micro = replace(largest, rows=next(divisors))
        width = micro.vectors * lanes
        for lines in _lines(seen):
            rows = lines * seen.width
            if rows > most_rows:
                break
            for columns in block_sizes(n, width, most_columns // width * width):
                tiles = rows // micro.rows * -(-columns // width)
                item = STARTED + tiles * k * tile_cycles(micro) + _image_cycles(seen, lines, lanes)
                item += (columns * k * b + rows * columns * stored) / lanes
                yield Tiles(roles, micro, rows, columns, item, seen=seen)


def _lines(seen: Seen) -> Iterator[int]:
    """How many rows of windows a block may have, from one on."""
    words = min(seen.depth(_DEPTH), seen.roles.words)
    for lines in sorted({-(-seen.height // parts) for parts in range(1, seen.height + 1)}):
        if seen.elements(lines, words) > seen.image.room:
            return
        yield lines


def _image_cycles(seen: Seen, lines: int, lanes: int) -> float:
    """Cycles to pack what so many rows of windows see, and to find out where it lies."""
    image, loads = seen.image, seen.part.loads
    minor = seen.columns[1]
    contiguous = minor is not None and is_contiguous(loads, (minor,))
    vector = far_cycles(seen.part, loads) + (COPIED if contiguous else GATHERED) * seen.roles.group
    rows = seen.roles.count(seen.channels) * image.phases * (lines + image.rows.reach)
    return 2 * seen.depth(_DEPTH) + rows * (ROW + -(-seen.pitch // lanes) * vector)


def _micro_kernels(m: int) -> list[MicroKernel]:
    """The largest tiles of so many rows at most, those of a row less, which may leave fewer over, and where
    there are few rows the widest."""
    sizes = {
        (even_part(m, most), largest.vectors)
        for largest in largest_tiles()
        for most in (largest.rows, largest.rows - 1)
    }
    registers = register_count() - 1
    if m <= _FEW_ROWS:
        sizes.add((m, registers // (m + 1)))
    return [MicroKernel(*size) for size in sorted(sizes)]


def _image_tile_cycles(micro: MicroKernel) -> float:
    """Cycles for one product of each result of a tile, where vectors lie anywhere in the first cache: most
    take two loads each, and one says where."""
    loads = (micro.rows + 2 * micro.vectors + 1) / 2
    return max(micro.rows * micro.vectors / 2, loads, LATENCY) + _FOUND


_FEW_ROWS = 5
"""So few that a tile has room for more vectors."""
_FOUND = 0.5
"""Cycles to find out where the next product's vectors lie, beyond what else goes on meanwhile."""
_MOST_COLUMNS = 4096
"""Of an image's block."""


def _image_columns(span: int, width: int) -> int:
    """Room for so many sums beside each other, in one of few sizes: each is code of its own."""
    size = 128
    while size < span:
        size *= 2
    return -(-size // width) * width


def _image_rows(columns: int) -> int:
    """Rows of a block of an image: its results take a quarter of a core's own cache at most."""
    return max(1, machine().l2_bytes // 4 // (columns * F32.bytes))


def _can_be_read_in_place(roles: Roles) -> bool:
    """Whether the operand whose elements are broadcast is a matrix of short rows, which lie one behind the
    other."""
    if not a_along_depth(roles):
        return False
    packing, nest = packing_of(roles.a, [], roles.rows, roles.depth, True, roles.types[0])
    k = roles.count(roles.depth)
    return packing.is_plain and k <= _DEPTH and nest.rows[0].strides == (k * F32.bytes,)


def _groups(roles: Roles, part: Kernel) -> int:
    """How many groups of panels or strips an operand has."""
    return roles.count(number for number in roles.outer if moves(part, number))


def _most_results() -> tuple[int, int]:
    """The most rows and columns of a block: its results take a quarter of a core's own cache at most, and its
    part of b less."""
    columns = 256 if machine().l2_bytes >= 1024 * 1024 else 128
    return machine().l2_bytes // 4 // (columns * F32.bytes), columns


def _in_tiles(results: tuple[int, int], micro: MicroKernel, lanes: int) -> tuple[int, int]:
    """Rows and columns rounded up to whole tiles."""
    width = micro.vectors * lanes
    return -(-results[0] // micro.rows) * micro.rows, -(-results[1] // width) * width


def launches_of(tiles: Tiles) -> list[Launch]:
    """The launches that compute sums of products so."""
    roles, micro = tiles.roles, tiles.micro
    lanes = lane_count()
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    a_part, b_part = roles.a, roles.b
    seen = tiles.seen
    depth = tiles.depth * roles.group
    launches, room = [], 0
    if packed_ahead(tiles) is not None:
        packing, counter = _packing_ahead(tiles, depth)
        launches, room = [packing], packing.partial_bytes
        a_part, b_part = (counter, b_part) if tiles.ahead else (a_part, counter)
    parts = (a_part, b_part, roles.epilogue)
    outers = common_loops(parts, roles.outer)
    a, a_nest = packing_of(a_part, outers[0], *a_order(roles), a_along_depth(roles), roles.types[0])
    b, b_nest = packing_of(b_part, outers[1], *b_order(roles), b_along_depth(roles), roles.types[1])
    mode, results = Mode.CONTRACTION, _most_results()
    if seen and seen.broadcast:
        mode, (a, a_nest) = Mode.CONTRACTION_BROADCAST_IMAGE, seen.packing(outers[0])
    elif seen:
        mode, (b, b_nest) = Mode.CONTRACTION_IMAGE, seen.packing(outers[1])
        span = tiles.columns // seen.width * seen.pitch - seen.image.columns.reach
        columns = _image_columns(span, micro.vectors * lanes)
        results = _image_rows(columns), columns
    groups = roles.count(roles.outer)
    nest = epilogue_nest(roles, outers[2])
    if tiles.b_in_place:
        results = micro.rows, _COLUMNS_IN_ROWS
    rows, columns = _in_tiles(results, micro, lanes)
    if tiles.dots:
        mode, rows, columns = Mode.CONTRACTION_DOTS, micro.rows, _COLUMNS_OF_DOTS
    is_long = roles.types[0] is F32 and k > tiles.parts_together * depth
    together = tiles.parts_together if is_long else 0
    panels = Panels(a, micro.rows, depth, tiles.in_place, tiles.dots)
    image = seen.image if seen else None
    ahead = tiles.ahead, tiles.b_ahead
    tiling = Tiling(panels, b, micro, rows, columns, *ahead, together, image, tiles.b_in_place)
    pattern = replace(pattern_of(roles.epilogue, nest, mode), tiling=tiling)
    blocks, chunks = -(-n // tiles.columns), -(-m // tiles.rows)
    numbers = Numbers(tiles.columns, blocks, m, tiles.rows, chunks, k, groups)
    parameters = parameters_of(roles.epilogue, nest, numbers)
    for part, part_nest in ((a_part, a_nest), (b_part, b_nest)):
        parameters += parameters_of(part, part_nest, Numbers(1, 1, 1))
    items = groups * blocks * chunks
    grain = max(1, min(items // (4 * _ITEMS), int(CLAIMED // tiles.item_cycles)))
    reads = buffers_of(load for part in parts for load in part.loads)
    return [*launches, Launch(pattern, parameters, 0, items, grain, room, reads)]


def _packing_ahead(tiles: Tiles, depth: int) -> tuple[Launch, Kernel]:
    """The launch that packs an operand ahead, in parts of so many products, and what then counts where its
    panels or strips lie."""
    roles, lanes = tiles.roles, lane_count()
    part = roles.a if tiles.ahead else roles.b
    moving = [number for number in roles.outer if moves(part, number)]
    outer = merged_neighbours(loops_over(part, moving))
    k, groups, steady = roles.count(roles.depth), roles.count(moving), steps_of(part) > 1
    tiling: Panels | Strips
    if tiles.ahead:
        mode, across, size = Mode.CONTRACTION_PANELS, roles.rows, tiles.micro.rows
        packing, nest = packing_of(part, outer, *a_order(roles), a_along_depth(roles), roles.types[0])
        tiling = Panels(packing, size, depth)
        part_bytes = tiling.part_bytes(lanes)
    else:
        mode, across, size = Mode.CONTRACTION_STRIPS, roles.columns, tiles.micro.vectors * lanes
        packing, nest = packing_of(part, outer, *b_order(roles), b_along_depth(roles), roles.types[1])
        tiling = Strips(packing, size, depth)
        part_bytes = tiling.part_bytes(k, lanes)
    elements = roles.count(across)
    count = -(-elements // size)
    group_bytes = count * -(-k // depth) * part_bytes
    pattern = replace(packing.pattern, mode=mode, tiling=tiling)
    parameters = parameters_of(part, nest, Numbers(1, 1, elements, size, count, k, groups))
    grain, room = max(1, int(CLAIMED // (size * k))), groups * group_bytes
    reads = buffers_of(part.loads)
    launch = Launch(pattern, parameters, 0, groups * count, grain, room, reads, _is_fixed(part), steady)
    return launch, _counter(roles, moving, group_bytes)


def _is_fixed(part: Kernel) -> bool:
    """Whether an operand is the same in every run."""
    fixed = [load.fixed for load in part.loads if load.buffer is not None]
    return bool(fixed) and all(fixed)


def _counter(roles: Roles, dimensions: Sequence[int], group_bytes: int) -> Kernel:
    """What the operand that is packed ahead has in place of loads: the bytes to a group's panels, which
    follow each other over these dimensions."""
    domain = roles.a.domain
    strides, step = [0] * len(domain), group_bytes
    for number in reversed(dimensions):
        strides[number], step = step, step * domain[number]
    return Kernel(domain, (), (Access(None, ScalarType.INT64, 0, tuple(strides)),), (), ())
