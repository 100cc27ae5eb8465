"""Decides how kernels that reduce or scan are walked: whole groups, or large ones in chunks; tiles of groups
side by side."""

from __future__ import annotations

from dataclasses import replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LoopNest
from opendml.program.node import SCANS, Operation, ordered
from opendml.targets.cpu.accumulation import part_count
from opendml.targets.cpu.group_code import PART_BYTES
from opendml.targets.cpu.launch import BLOCK_BYTES, CLAIM_BYTES, Launch, Numbers, Shape, launch_of, shape_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import TILE, WIDE_TILE, Mode
from opendml.targets.cpu.row_code import BATCH
from opendml.targets.cpu.stash import MOST_STASHED, repeats_functions, row_pitch, with_counter

_LEAST_TILE = 64
"""Groups in a tile of columns, at least: some cache lines of each row."""
_FEW_GROUPS = 16
"""Below this many groups, large ones are split between threads."""
_MANY_GROUPS = 128
"""Below this many groups, large ones are split where that costs little: nothing is read twice."""
_STASHED_BATCH = 8 * 1024
"""Elements of a batch of groups or a tile that are kept, if one group or tile has no more."""
_MOST_CHUNKS = 1024
"""Chunks of one group, at most: one thread puts their states together."""
_MATRIX_TILE = 2048
"""Columns of a matrix that a vector is multiplied by at a time: two pages of each row."""
_MATRIX_CHUNKS = 16
"""Chunks of such a group, at most: as many sums are added to each other, and a chunk has"""
_MATRIX_ROWS = 256
"""a multiple of so many rows."""


def schedule_groups(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    """The launches of a kernel that reduces or scans, in order."""
    if any(node.operation in SCANS for node in ordered(kernel.values)):
        return _scan_rows(kernel, nest) if nest.inner_reduced else _scan_columns(kernel, nest)
    return _rows(kernel, nest) if nest.inner_reduced else _columns(kernel, nest)


def _rows(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = shape_of(kernel, nest)
    elements = shape.rows * shape.inner
    group_bytes = elements * shape.element_bytes
    fits = shape.groups >= (_MANY_GROUPS if shape.reads_once else _FEW_GROUPS) and (
        shape.reads_once or group_bytes <= machine().l2_bytes * 5 // 8
    )
    if group_bytes <= BLOCK_BYTES or fits:
        batch = max(1, min(BATCH, CLAIM_BYTES // (elements * shape.step_bytes)))
        stashed = shape.rows * row_pitch(shape.inner)
        stashes = shape.maps and stashed <= MOST_STASHED and repeats_functions(kernel.values)
        if stashes:
            kernel, nest = with_counter(kernel, nest, row_pitch(shape.inner))
            batch = max(1, min(batch, _STASHED_BATCH // stashed))
        numbers = Numbers(shape.inner, 1, shape.rows, batch, 1, elements, shape.groups, stashed * stashes)
        items = -(-shape.groups // batch)
        return [launch_of(kernel, nest, Mode.ROWS, numbers, items, batch * elements * shape.step_bytes)]
    block = min(shape.inner, BLOCK_BYTES // shape.element_bytes)
    blocks = -(-shape.inner // block)
    units = shape.rows * blocks
    chunk = max(1, BLOCK_BYTES // (block * shape.element_bytes), -(-units // _MOST_CHUNKS))
    numbers = Numbers(block, blocks, units, chunk, -(-units // chunk), elements)
    modes = (Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE, Mode.ROWS_MAP)
    return _split(kernel, nest, modes, numbers, shape, group_bytes, PART_BYTES)


def _columns(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = shape_of(kernel, nest)
    if takes_in_many_rows(kernel, nest):
        return _vector_by_matrix(kernel, nest, shape)
    group_bytes = shape.rows * shape.inner * shape.element_bytes
    fitting = machine().l2_bytes // 2 // (shape.rows * shape.element_bytes) // _LEAST_TILE * _LEAST_TILE
    # Rows that follow each other in memory are read as one stream.
    whole_rows = shape.reads_once and shape.inner <= WIDE_TILE
    widest = shape.inner if whole_rows else TILE
    if shape.reads_once:
        fitting = widest
    stashes = shape.maps and shape.rows * _LEAST_TILE <= MOST_STASHED and repeats_functions(kernel.values)
    if stashes:
        fitting = min(fitting, _STASHED_BATCH // shape.rows // _LEAST_TILE * _LEAST_TILE)
    tile = min(shape.inner, max(_LEAST_TILE, min(fitting, widest)))
    tiles = -(-shape.inner // tile)
    items = shape.groups * tiles
    many = _MANY_GROUPS if shape.reads_once else _FEW_GROUPS
    if group_bytes <= BLOCK_BYTES or (fitting and items >= many):
        if stashes:
            kernel, nest = with_counter(kernel, nest, row_pitch(tile))
        numbers = Numbers(
            tile, tiles, shape.rows, shape.rows, 1, shape.rows, stashed=int(stashes), whole_rows=whole_rows
        )
        return [launch_of(kernel, nest, Mode.COLUMNS, numbers, items, shape.rows * tile * shape.step_bytes)]
    tile = min(shape.inner, widest)
    tiles = -(-shape.inner // tile)
    chunk = max(1, BLOCK_BYTES * 4 // (tile * shape.element_bytes), -(-shape.rows // _MOST_CHUNKS))
    numbers = Numbers(
        tile, tiles, shape.rows, chunk, -(-shape.rows // chunk), shape.rows, whole_rows=whole_rows
    )
    modes = (Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE, Mode.COLUMNS_MAP)
    return _split(kernel, nest, modes, numbers, shape, group_bytes, PART_BYTES * shape.inner)


def takes_in_many_rows(kernel: Kernel, nest: LoopNest) -> bool:
    """Whether the kernel multiplies vectors by matrices with many rows, whose columns lie side by side."""
    shape = shape_of(kernel, nest)
    sums = [node for node in ordered(kernel.values) if node.operation is Operation.CONTRACTION]
    return (
        bool(sums)
        and all(node.type.is_float for node in sums)
        and not nest.inner_reduced
        and shape.reads_once
        and shape.rows >= _MATRIX_ROWS
    )


def _vector_by_matrix(kernel: Kernel, nest: LoopNest, shape: Shape) -> list[Launch]:
    tile = min(shape.inner, _MATRIX_TILE)
    chunk = _MATRIX_ROWS * -(-shape.rows // (_MATRIX_ROWS * _MATRIX_CHUNKS))
    chunks = -(-shape.rows // chunk)
    numbers = Numbers(tile, -(-shape.inner // tile), shape.rows, chunk, chunks, shape.rows, many_rows=True)
    modes = (Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE, Mode.COLUMNS_MAP)
    group_bytes = shape.rows * shape.inner * shape.element_bytes
    return _split(kernel, nest, modes, numbers, shape, group_bytes, PART_BYTES * shape.inner)


def _scan_rows(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = shape_of(kernel, nest)
    line_bytes = shape.inner * shape.element_bytes
    if line_bytes <= BLOCK_BYTES or shape.groups >= _FEW_GROUPS:
        batch = max(1, CLAIM_BYTES // (shape.inner * shape.step_bytes))
        numbers = Numbers(shape.inner, 1, 1, batch, 1, shape.inner, shape.groups)
        items = -(-shape.groups // batch)
        return [launch_of(kernel, nest, Mode.SCAN_ROWS, numbers, items, batch * line_bytes)]
    block = BLOCK_BYTES // shape.element_bytes
    blocks = -(-shape.inner // block)
    chunk = -(-blocks // _MOST_CHUNKS)
    numbers = Numbers(block, blocks, blocks, chunk, -(-blocks // chunk), shape.inner)
    modes = (Mode.ROWS_PARTIAL, Mode.SCAN_ROWS_COMBINE, Mode.SCAN_ROWS_MAP)
    return _split(kernel, nest, modes, numbers, shape, line_bytes, PART_BYTES)


def _scan_columns(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = shape_of(kernel, nest)
    tile = min(shape.inner, WIDE_TILE)
    tiles = -(-shape.inner // tile)
    line_bytes = shape.rows * shape.inner * shape.element_bytes
    if line_bytes <= BLOCK_BYTES or shape.groups * tiles >= _FEW_GROUPS:
        numbers = Numbers(tile, tiles, shape.rows, shape.rows, 1, shape.rows)
        items, item_bytes = shape.groups * tiles, shape.rows * tile * shape.step_bytes
        return [launch_of(kernel, nest, Mode.SCAN_COLUMNS, numbers, items, item_bytes)]
    chunk = max(1, BLOCK_BYTES * 4 // (tile * shape.element_bytes), -(-shape.rows // _MOST_CHUNKS))
    numbers = Numbers(tile, tiles, shape.rows, chunk, -(-shape.rows // chunk), shape.rows)
    modes = (Mode.COLUMNS_PARTIAL, Mode.SCAN_COLUMNS_COMBINE, Mode.SCAN_COLUMNS_MAP)
    return _split(kernel, nest, modes, numbers, shape, line_bytes, PART_BYTES * shape.inner)


def _split(
    kernel: Kernel,
    nest: LoopNest,
    modes: tuple[Mode, Mode, Mode],
    numbers: Numbers,
    shape: Shape,
    group_bytes: int,
    part_bytes: int,
) -> list[Launch]:
    """For each pass the states of all chunks, then of the groups; last the elements. All of it for some
    groups at a time, so that what is read again is found in a cache."""
    tiles = numbers.blocks if modes[0].columns else 1
    per_group = tiles * numbers.chunks
    partial_mode, combine_mode, map_mode = modes
    launches = []
    for stage in range(shape.passes):
        launches.append((per_group, launch_of(kernel, nest, partial_mode, numbers, 1, 1, stage)))
        launches.append((tiles, launch_of(kernel, nest, combine_mode, numbers, 1, 1, stage)))
    if shape.maps:
        launches.append((per_group, launch_of(kernel, nest, map_mode, numbers, 1, 1)))
    room = shape.groups * (numbers.chunks + 1) * part_count(kernel.values) * part_bytes
    grain = max(1, CLAIM_BYTES * per_group // group_bytes)
    together = shape.groups if shape.reads_once else max(1, 4 * machine().l2_bytes // group_bytes)
    result = []
    for first in range(0, shape.groups, together):
        count = min(together, shape.groups - first)
        for items, launch in launches:
            step = min(grain, items * count) if items == per_group else 1
            result.append(
                replace(launch, first=first * items, items=count * items, grain=step, partial_bytes=room)
            )
    return result
