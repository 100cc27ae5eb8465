"""Decides how sums of products are computed: which operand is broadcast, the tile in registers, the blocks.

Each way is a candidate with an estimate of its cost; the least wins. How results are divided among tiles and
items changes no bit of them: the products of each are added in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest, merged_neighbours
from opendml.program.node import Operation, ordered
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.roles import Roles, loops_over, roles_of
from opendml.targets.cpu.launch import Launch, Numbers, parameters_of, pattern_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import MicroKernel, Mode, Packing, Tiling

_MICRO_KERNELS = {
    32: (MicroKernel(14, 2), MicroKernel(9, 3), MicroKernel(6, 4)),
    16: (MicroKernel(6, 2), MicroKernel(4, 3)),
}
"""By the number of vector registers, the largest tiles that leave some for the operands."""
_DEPTH = 384
"""Products that are added up before they are added to the result: a panel of a stays in a level 1 cache, and
rounding errors do not grow with k."""
_ITEMS = 8
"""Items that a job should have, at least, so that threads finish together."""

_COPIED, _TRANSPOSED, _GATHERED = 4.0, 8.0, 24.0
"""Cycles to put down a vector of an operand, or of results, that lies contiguous, across, or scattered."""
_REDUCED = 2.0
"""Cycles for a vector of products where every operand is read from memory as it lies."""
_STARTED = 400.0
"""Cycles that an item takes apart from its work."""
_LATENCY = 4.0
"""Cycles of a multiply-add from its operands to its result."""
_CLAIMED = 60_000
"""Cycles of work that a thread claims at a time."""
_DIVISIONS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
"""Numbers of blocks of results along one dimension that are tried. There are more where blocks would be
larger than fits a cache."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A division of results into tiles in registers, and blocks of so many rows and columns."""

    roles: Roles
    micro: MicroKernel
    rows: int
    columns: int
    item_cycles: float
    """Estimated, for one block."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute sums of products; `tiles`: None where they are reduced like any others."""

    name: str
    cycles: float
    """Estimated, for the thread that works longest, of as many threads as _ITEMS."""
    tiles: Tiles | None = None


def tiled(kernel: Kernel) -> Launch | None:
    """The launch that computes a kernel's sums of products in tiles; None if it has none, or is better off as
    any other reduction."""
    if not any(node.operation is Operation.CONTRACTION for node in ordered(kernel.values)):
        return None
    best = min(candidates(kernel), key=lambda candidate: candidate.cycles)
    return launch_of_tiles(best.tiles) if best.tiles else None


def candidates(kernel: Kernel) -> Iterator[Candidate]:
    """The ways to compute a kernel's sums of products."""
    lanes = machine().vector_bytes // F32.bytes
    kept = math.prod(size for number, size in enumerate(kernel.domain) if number not in kernel.axes)
    cycles = math.prod(kernel.domain) / lanes * _REDUCED / min(_ITEMS, kept)
    yield Candidate("as any reduction", cycles)
    for exchanged in (False, True):
        roles = roles_of(kernel, exchanged)
        if roles is not None:
            for tiles in _tilings(roles, lanes):
                yield _candidate(tiles, exchanged)


def _candidate(tiles: Tiles, exchanged: bool) -> Candidate:
    roles, micro = tiles.roles, tiles.micro
    name = f"tiles of {micro.rows}x{micro.vectors}{' exchanged' if exchanged else ''}"
    items = roles.count(roles.outer)
    items *= -(-roles.count(roles.rows) // tiles.rows) * -(-roles.count(roles.columns) // tiles.columns)
    return Candidate(name, tiles.item_cycles * max(1.0, items / _ITEMS), tiles)


def _tilings(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """Each tile in registers, with each division of the results into blocks."""
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    most_rows, most_columns = _most_results()
    a = _COPIED if _a_along_depth(roles) or _is_contiguous(roles.a.loads, roles.rows) else _GATHERED
    b = _TRANSPOSED if _b_along_depth(roles) else _copied(_is_contiguous(roles.b.loads, roles.columns))
    stored = _copied(_is_contiguous(roles.epilogue.stores, roles.columns))
    for largest in _MICRO_KERNELS[_registers()]:
        micro = replace(largest, rows=_even_part(m, largest.rows))
        width = micro.vectors * lanes
        for rows, columns in product(_parts(m, micro.rows, most_rows), _parts(n, width, most_columns)):
            tiles = -(-rows // micro.rows) * -(-columns // width)
            packed = rows * k * a + columns * k * b + rows * columns * stored
            item = _STARTED + tiles * k * _tile_cycles(micro) + packed / lanes
            yield Tiles(roles, micro, rows, columns, item)


def _tile_cycles(micro: MicroKernel) -> float:
    """Cycles for one product of each result of a tile: two multiply-adds and two loads each, and none before
    the one before it is done."""
    return max(micro.rows * micro.vectors / 2, (micro.rows + micro.vectors) / 2, _LATENCY)


def _copied(contiguous: bool) -> float:
    return _COPIED if contiguous else _GATHERED


def _is_contiguous(accesses: Sequence[Access], dimensions: Sequence[int]) -> bool:
    """Whether neighbours along the innermost of the dimensions are neighbours in memory, of some access."""
    return any(
        access.strides[number] == access.type.bytes for access in accesses for number in dimensions[-1:]
    )


def _a_along_depth(roles: Roles) -> bool:
    return _is_contiguous(roles.a.loads, roles.depth) or not _is_contiguous(roles.a.loads, roles.rows)


def _b_along_depth(roles: Roles) -> bool:
    return _is_contiguous(roles.b.loads, roles.depth) and not _is_contiguous(roles.b.loads, roles.columns)


def _even_part(count: int, most: int) -> int:
    """The size of as few parts as have at most so many elements, all about as large."""
    return -(-count // -(-count // most))


def _parts(count: int, unit: int, most: int) -> list[int]:
    """Sizes of parts of `count` in multiples of a unit, some of each order of magnitude."""
    sizes = {unit * -(-_even_part(count, -(-count // parts)) // unit) for parts in _DIVISIONS}
    fitting = max(unit, most // unit * unit)
    return sorted({min(size, fitting) for size in sizes})


def _registers() -> int:
    """How many vector registers there are."""
    host = machine()
    return 32 if host.vector_bytes == 64 or not host.triple.startswith("x86_64") else 16


def _most_results() -> tuple[int, int]:
    """The most rows and columns of a block: its results take a quarter of a core's own cache at most, and its
    part of b less."""
    columns = 256 if machine().l2_bytes >= 1024 * 1024 else 128
    return machine().l2_bytes // 4 // (columns * F32.bytes), columns


def launch_of_tiles(tiles: Tiles) -> Launch:
    """The launch that computes sums of products so."""
    roles, micro = tiles.roles, tiles.micro
    parts = (roles.a, roles.b, roles.epilogue)
    outer = _common_loops(parts, roles.outer)
    a_first, a_second = (roles.rows, roles.depth) if _a_along_depth(roles) else (roles.depth, roles.rows)
    b_first, b_second = (
        (roles.columns, roles.depth) if _b_along_depth(roles) else (roles.depth, roles.columns)
    )
    a, a_parameters = _packing(roles.a, outer[0], a_first, a_second, _a_along_depth(roles))
    b, b_parameters = _packing(roles.b, outer[1], b_first, b_second, _b_along_depth(roles))
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    groups = roles.count(roles.outer)
    nest = _epilogue_nest(roles, outer[2])
    most_rows, most_columns = _most_results()
    tiling = Tiling(a, b, micro, _DEPTH, most_rows + micro.rows, most_columns)
    pattern = replace(pattern_of(roles.epilogue, nest, Mode.CONTRACTION), tiling=tiling)
    blocks, chunks = -(-n // tiles.columns), -(-m // tiles.rows)
    numbers = Numbers(tiles.columns, blocks, m, tiles.rows, chunks, k, groups)
    parameters = (*parameters_of(roles.epilogue, nest, numbers), *a_parameters, *b_parameters)
    items = groups * blocks * chunks
    grain = max(1, min(items // (4 * _ITEMS), int(_CLAIMED // tiles.item_cycles)))
    return Launch(pattern, parameters, 0, items, grain)


def _common_loops(parts: Sequence[Kernel], dimensions: Sequence[int]) -> list[list[Loop]]:
    """The loops of all parts over some dimensions, merged where all allow it: for each part its own."""
    each = [loops_over(part, dimensions) for part in parts]
    joint = [
        Loop(loops[0].count, tuple(stride for loop in loops for stride in loop.strides))
        for loops in zip(*each, strict=True)
    ]
    merged = merged_neighbours(joint)
    result, first = [], 0
    for part in parts:
        last = first + len(part.loads) + len(part.stores)
        result.append([Loop(loop.count, loop.strides[first:last]) for loop in merged])
        first = last
    return result


def _packing(
    part: Kernel, outer: Sequence[Loop], majors: Sequence[int], minors: Sequence[int], along_depth: bool
) -> tuple[Packing, tuple[int, ...]]:
    """How an operand is read, and the parameters of that."""
    major, minor = (merged_neighbours(loops_over(part, each)) for each in (majors, minors))
    inner = minor[-1] if minor else Loop(1, (0,) * len(part.loads))
    nest = LoopNest(tuple(outer), (*major, *minor[:-1]), inner, False)
    pattern = pattern_of(part, nest, Mode.CONTRACTION)
    return Packing(pattern, len(major), along_depth), parameters_of(part, nest, Numbers(1, 1, 1))


def _epilogue_nest(roles: Roles, outer: Sequence[Loop]) -> LoopNest:
    """The loops of the epilogue: one over rows, one over columns. Its last load, the sums, moves with the
    columns."""
    part = roles.epilogue
    position = len(part.loads) - 1
    still = (0,) * (position + 1 + len(part.stores))
    rows, columns = (
        (merged_neighbours(loops_over(part, each)) or [Loop(1, still)])[0]
        for each in (roles.rows, roles.columns)
    )
    strides = (*columns.strides[:position], F32.bytes, *columns.strides[position + 1 :])
    return LoopNest(tuple(outer), (rows,), Loop(columns.count, strides), False)
