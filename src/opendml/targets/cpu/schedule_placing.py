"""Decides how kernels that place along lines are walked: lines as a whole, or the chunks of long ones."""

from __future__ import annotations

import math
from dataclasses import replace

from opendml.compiler.kernel import Kernel, placing_of
from opendml.compiler.loops import LONG, Loop, LoopNest, line_nest
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.bitonic import word_bytes
from opendml.targets.cpu.launch import CLAIM_BYTES, CpuLaunch, Numbers, launch_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.native import MOST_KEPT
from opendml.targets.cpu.pattern import LINE, CpuMode

_LEAST_FOUND = 16 * 1024
"""Elements of a chunk in which positions are found: its results are a few times a first cache."""
_MOST_FOUND = 256
"""Of a line: for each of them the numbers of all are added up."""
_FEW_LINES = 8
"""Below this many lines, long ones are split between threads."""
_LEAST_CHUNK = 64 * 1024
"""Elements of a chunk: of so many, only few are collected before the best are found."""
_MOST_CHUNKS = 64
"""Of a line: one thread puts their best together."""
_COLLECTED = 1.6
"""Words that are sorted together for each element that is wanted, beside a vector of them: so many elements
usually do not exceed the bound that a sample gives."""
_TILE_BYTES = 2 * LINE
"""Of the results at one place of all lines in a tile, at least: where they are at other places than those of
their neighbours, as little as possible is to stay in a cache."""
_STRIP_BYTES = 64 * 1024
"""Of the results of one vector of lines, of which a first cache holds most: if that is not so of a tile's,
they are placed alone."""
_TILES = 8
"""Of lines side by side that threads share, if all of them have so many."""
_MOST_EMPTY = 2
"""Places for each element that goes to one, up to which all places of a tile are read and written: what lies
together in a room spares the processor's tables of pages, and rows that are a power of two apart spare sets
of caches."""
_ROOM_BYTES = 256 * 1024 * 1024
"""Room for the words of all items, if each has more than one line."""


def schedule_placing(kernel: Kernel) -> list[CpuLaunch] | None:
    """The launches of a kernel that places along lines; None: it does not."""
    placed = placing_of(kernel.values)
    if placed is None:
        return None
    assert isinstance(placed.attribute, tuple)
    nest, count = line_nest(kernel), placed.attribute[-1]
    if placed.operation is Operation.TOP:
        return _top(kernel, nest, count)
    if placed.operation is Operation.POSITIONS:
        return _positions(kernel, nest, placed.type.bytes)
    across = _across(kernel, nest)
    if across is not None:
        return _scatter_side_by_side(kernel, across, count)
    return _lines_in_order(kernel, nest, count)


def _positions(kernel: Kernel, nest: LoopNest, position_bytes: int) -> list[CpuLaunch]:
    """Of chunks of lines: what holds is found in all of them before it is known where its positions go."""
    length, lines, line_bytes = _lines(kernel, nest)
    chunk = min(length, max(_LEAST_FOUND, -(-length // _MOST_FOUND)))
    chunks = -(-length // chunk)
    items, read_bytes = lines * chunks, -(-chunk * line_bytes // length)
    written_bytes = chunk * sum(store.type.bytes for store in kernel.stores)
    numbers = Numbers(length, 1, 1, chunk, chunks, length, lines)
    found = launch_of(kernel, nest, CpuMode.POSITIONS_CHUNKS, numbers, items, read_bytes)
    put = launch_of(kernel, nest, CpuMode.POSITIONS, numbers, items, written_bytes)
    room = items * ScalarType.INT64.bytes + lines * length * position_bytes
    # Positions are read a vector at a time, of the last ones too.
    vector_bytes = machine().vector_bytes // 4 * position_bytes
    return [replace(launch, partial_bytes=room + vector_bytes) for launch in (found, put)]


def _lines_in_order(kernel: Kernel, nest: LoopNest, count: int) -> list[CpuLaunch]:
    length, lines, line_bytes = _lines(kernel, nest)
    batch = max(1, min(lines, CLAIM_BYTES // line_bytes))
    rows = math.prod(loop.count for loop in nest.rows)
    numbers = Numbers(length, 1, rows, batch, 1, count, lines)
    return [launch_of(kernel, nest, CpuMode.SCATTER, numbers, -(-lines // batch), batch * line_bytes)]


def _across(kernel: Kernel, nest: LoopNest) -> LoopNest | None:
    """The loops with neighbouring lines innermost, if more of what is read is contiguous from line to line
    than along lines."""

    def contiguous(loop: Loop) -> int:
        loads = zip(loop.strides, kernel.loads, strict=False)
        return sum(
            load.type.bytes for stride, load in loads if load.buffer is not None and stride == load.type.bytes
        )

    if not nest.groups or nest.rows:
        return None
    *others, inner = nest.groups
    if inner.count < LONG or contiguous(inner) <= contiguous(nest.inner):
        return None
    return LoopNest(tuple(others), (nest.inner,), inner, False)


def _scatter_side_by_side(kernel: Kernel, nest: LoopNest, count: int) -> list[CpuLaunch]:
    """Tiles of lines: narrow ones in a room, if it stays in a cache; else wide ones where they lie. Those of
    a thread lie side by side, where it claims one by one: tiles that meet have lines of a cache in common."""
    (rows,), lines, size = nest.rows, nest.inner.count, kernel.stores[0].type.bytes
    mode, tile, room_bytes = _room(count, rows.count, size)
    if not room_bytes:
        tile *= -(-lines // (_TILES * tile))
    tile = min(lines, tile)
    tiles = -(-lines // tile)
    groups = math.prod(loop.count for loop in nest.groups)
    numbers = Numbers(tile, tiles, rows.count, elements=count)
    _, _, line_bytes = _lines(kernel, LoopNest((), (), rows, True))
    launch = launch_of(kernel, nest, mode, numbers, groups * tiles, tile * line_bytes)
    if launch.grain == 1 < launch.items:
        launch = replace(launch, grain=-(-launch.items // MOST_KEPT), kept=True)
    return [replace(launch, room_bytes=room_bytes)]


def _room(count: int, rows: int, size: int) -> tuple[CpuMode, int, int]:
    """How lines of so many places, to which `rows` elements go, are placed side by side: how many lines of a
    tile at least, and the bytes of its room."""
    tile, strip = _TILE_BYTES // size, machine().vector_bytes // 4
    tile_bytes, strip_bytes = count * _TILE_BYTES, count * strip * size
    if count > _MOST_EMPTY * rows or tile_bytes > machine().l2_bytes:
        return CpuMode.SCATTER_COLUMNS, tile, 0
    if strip_bytes <= _STRIP_BYTES < tile_bytes:
        return CpuMode.SCATTER_STRIPS, strip, strip_bytes
    return CpuMode.SCATTER_TILES, tile, tile_bytes


def _top(kernel: Kernel, nest: LoopNest, count: int) -> list[CpuLaunch]:
    length, lines, line_bytes = _lines(kernel, nest)
    lanes = machine().vector_bytes // 4
    width = 1 << (math.ceil(_COLLECTED * count) + lanes - 1).bit_length()
    words = 2 * width * word_bytes(kernel.values[0].operands[0].type)
    chunk = max(_LEAST_CHUNK, 4 * width, -(-length // _MOST_CHUNKS))
    if lines < _FEW_LINES and length >= 2 * chunk:
        chunks = -(-length // chunk)
        numbers = Numbers(length, 1, width, chunk, chunks, count, lines)
        found = launch_of(kernel, nest, CpuMode.TOP_CHUNKS, numbers, lines * chunks, CLAIM_BYTES)
        merged = launch_of(kernel, nest, CpuMode.TOP_MERGE, numbers, lines, CLAIM_BYTES)
        return [replace(launch, partial_bytes=lines * chunks * words) for launch in (found, merged)]
    batch = max(1, min(lines, CLAIM_BYTES // line_bytes), -(-lines * words // _ROOM_BYTES))
    items = -(-lines // batch)
    numbers = Numbers(length, 1, width, batch, 1, count, lines)
    launch = launch_of(kernel, nest, CpuMode.TOP, numbers, items, CLAIM_BYTES)
    return [replace(launch, partial_bytes=items * words)]


def _lines(kernel: Kernel, nest: LoopNest) -> tuple[int, int, int]:
    """The elements of a row of a line, the number of lines, and the bytes that are read of each."""
    element_bytes = sum(load.type.bytes for load in kernel.loads if load.buffer is not None)
    lines, rows = (math.prod(loop.count for loop in loops) for loops in (nest.groups, nest.rows))
    return nest.inner.count, lines, rows * nest.inner.count * element_bytes or 1
