"""Decides how a kernel is walked: the mode, the tiles and chunks, and what one thread takes at a time.

Decisions depend on shapes and caches only, never on the number of threads, so that results do not either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import LoopNest, loop_nest
from opendml.program.node import SCANS, ordered
from opendml.targets.cpu.accumulation import part_count, passes_of
from opendml.targets.cpu.column_code import MAXIMUM_TILE
from opendml.targets.cpu.group_code import PART_BYTES
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import AccessPattern, Level, Mode, Parameters, Pattern, Step
from opendml.targets.cpu.row_code import BATCH
from opendml.targets.cpu.stash import MOST_STASHED, STASHED, repeats_functions, row_pitch, with_counter

_BLOCK_BYTES = 32 * 1024
"""Of one operand, in one block of a row."""
_CLAIM_BYTES = 128 * 1024
"""Of all operands, that a thread takes at a time."""
_STREAMED_SHARE = 2
"""Outputs larger than the last cache divided by this go past the caches: whoever reads them next would not
find them there anyway."""
_STREAMED_ROW = 512
"""Steps of the innermost loop from which on streaming pays: it writes whole cache lines."""
_CROSSED_BLOCK = 256
"""Steps of each loop in a block of a kernel whose operands lie across: the block of all operands stays in a
level 1 cache."""
_SHORTEST_CROSSED = 8
"""Steps that both loops of such a kernel have at least."""
_LEAST_TILE = 64
"""Groups in a tile of columns, at least: some cache lines of each row."""
_FEW_GROUPS = 16
"""Below this many groups, large ones are split between threads."""
_MANY_GROUPS = 128
"""The same where splitting costs little: nothing is read twice."""
_LONG_ROW = 256
"""Steps of the innermost loop from which on several vectors of states pay."""
_STASHED_BATCH = 8 * 1024
"""Elements of a batch of groups or a tile that are kept, if one group or tile has no more."""
_MOST_CHUNKS = 1024
"""Of one group: one thread puts their states together."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a pattern's function over `items` items from `first` on, taken `grain` at a time."""

    pattern: Pattern
    parameters: tuple[int, ...]
    first: int
    items: int
    grain: int
    partial_bytes: int = 0
    """Room that it needs in the arena for partial sums; its offset there is the parameter PARTIAL_OFFSET."""


def schedule(kernel: Kernel) -> list[Launch]:
    """The launches that run `kernel`, in order."""
    nest = loop_nest(kernel)
    if not kernel.axes:
        crossed = _crossed(kernel, nest)
        return [_transposed(kernel, crossed) if crossed else _pointwise(kernel, nest)]
    if any(node.operation in SCANS for node in ordered(kernel.values)):
        return _scan_rows(kernel, nest) if nest.inner_reduced else _scan_columns(kernel, nest)
    return _rows(kernel, nest) if nest.inner_reduced else _columns(kernel, nest)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The numbers that a mode is chosen by."""

    groups: int
    rows: int
    inner: int
    element_bytes: int
    """Of the widest operand."""
    step_bytes: int
    """Of all operands that move along the innermost loop."""
    passes: int
    """Over a group."""
    maps: bool
    """Whether elements are stored after the last pass, and not groups alone."""

    @property
    def reads_once(self) -> bool:
        """Whether a group need not stay in a cache: nothing is read twice."""
        return self.passes == 1 and not self.maps


def _shape(kernel: Kernel, nest: LoopNest) -> _Shape:
    accesses = (*kernel.loads, *kernel.stores)
    moving = [
        access.type.bytes
        for access, stride in zip(accesses, nest.inner.strides, strict=True)
        if stride and access.buffer is not None
    ]
    maps = any(store.strides[axis] for store in kernel.stores for axis in kernel.axes)
    return _Shape(
        math.prod(loop.count for loop in nest.groups),
        math.prod(loop.count for loop in nest.rows),
        nest.inner.count,
        max(access.type.bytes for access in accesses if access.buffer is not None),
        max(sum(moving), 1),
        len(passes_of(kernel.values)),
        maps,
    )


def _pointwise(kernel: Kernel, nest: LoopNest) -> Launch:
    shape = _shape(kernel, nest)
    block = min(shape.inner, _BLOCK_BYTES // shape.element_bytes)
    blocks = -(-shape.inner // block)
    numbers = _Numbers(block=block, blocks=blocks, units=blocks)
    return _launch(kernel, nest, Mode.POINTWISE, numbers, shape.groups * blocks, block * shape.step_bytes)


def _crossed(kernel: Kernel, nest: LoopNest) -> LoopNest | None:
    """The nest with the loop innermost along which the results are contiguous, and as its one row loop the
    one
    along which operands are; None where there are no two such loops, or they are too short to be worth it."""
    loops = (*nest.groups, nest.inner)
    accesses = (*kernel.loads, *kernel.stores)
    contiguous = [
        next((loop for loop in loops if loop.strides[position] == access.type.bytes), None)
        if access.buffer is not None
        else None
        for position, access in enumerate(accesses)
    ]
    inner = contiguous[len(kernel.loads)]
    others = {
        id(loop): loop for loop in contiguous[: len(kernel.loads)] if loop is not None and loop is not inner
    }
    if inner is None or len(others) != 1:
        return None
    (across,) = others.values()
    if min(inner.count, across.count) < _SHORTEST_CROSSED:
        return None
    groups = tuple(loop for loop in loops if loop is not inner and loop is not across)
    return LoopNest(groups, (across,), inner, False)


def _transposed(kernel: Kernel, nest: LoopNest) -> Launch:
    shape = _shape(kernel, nest)
    block, chunk = min(shape.inner, _CROSSED_BLOCK), min(shape.rows, _CROSSED_BLOCK)
    blocks, chunks = -(-shape.inner // block), -(-shape.rows // chunk)
    numbers = _Numbers(block=block, blocks=blocks, units=shape.rows, chunk=chunk, chunks=chunks)
    items = shape.groups * chunks * blocks
    return _launch(kernel, nest, Mode.TRANSPOSED, numbers, items, block * chunk * shape.step_bytes)


def _rows(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = _shape(kernel, nest)
    elements = shape.rows * shape.inner
    group_bytes = elements * shape.element_bytes
    fits = shape.groups >= (_MANY_GROUPS if shape.reads_once else _FEW_GROUPS) and (
        shape.reads_once or group_bytes <= machine().l2_bytes * 5 // 8
    )
    if group_bytes <= _BLOCK_BYTES or fits:
        batch = max(1, min(BATCH, _CLAIM_BYTES // (elements * shape.step_bytes)))
        stashed = shape.rows * row_pitch(shape.inner)
        stashes = shape.maps and stashed <= MOST_STASHED and repeats_functions(kernel.values)
        if stashes:
            kernel, nest = with_counter(kernel, nest, row_pitch(shape.inner))
            batch = max(1, min(batch, _STASHED_BATCH // stashed))
        numbers = _Numbers(shape.inner, 1, shape.rows, batch, 1, elements, shape.groups, stashed * stashes)
        items = -(-shape.groups // batch)
        return [_launch(kernel, nest, Mode.ROWS, numbers, items, batch * elements * shape.step_bytes)]
    block = min(shape.inner, _BLOCK_BYTES // shape.element_bytes)
    blocks = -(-shape.inner // block)
    units = shape.rows * blocks
    chunk = max(1, _BLOCK_BYTES // (block * shape.element_bytes), -(-units // _MOST_CHUNKS))
    numbers = _Numbers(block, blocks, units, chunk, -(-units // chunk), elements)
    modes = (Mode.ROWS_PARTIAL, Mode.ROWS_COMBINE, Mode.ROWS_MAP)
    return _split(kernel, nest, modes, numbers, shape, group_bytes, PART_BYTES)


def _columns(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = _shape(kernel, nest)
    group_bytes = shape.rows * shape.inner * shape.element_bytes
    fitting = machine().l2_bytes // 2 // (shape.rows * shape.element_bytes) // _LEAST_TILE * _LEAST_TILE
    if shape.reads_once:
        fitting = MAXIMUM_TILE
    stashes = shape.maps and shape.rows * _LEAST_TILE <= MOST_STASHED and repeats_functions(kernel.values)
    if stashes:
        fitting = min(fitting, _STASHED_BATCH // shape.rows // _LEAST_TILE * _LEAST_TILE)
    tile = min(shape.inner, max(_LEAST_TILE, min(fitting, MAXIMUM_TILE)))
    tiles = -(-shape.inner // tile)
    items = shape.groups * tiles
    many = _MANY_GROUPS if shape.reads_once else _FEW_GROUPS
    if group_bytes <= _BLOCK_BYTES or (fitting and items >= many):
        if stashes:
            kernel, nest = with_counter(kernel, nest, row_pitch(tile))
        numbers = _Numbers(tile, tiles, shape.rows, shape.rows, 1, shape.rows, stashed=int(stashes))
        return [_launch(kernel, nest, Mode.COLUMNS, numbers, items, shape.rows * tile * shape.step_bytes)]
    tile = min(shape.inner, MAXIMUM_TILE)
    tiles = -(-shape.inner // tile)
    chunk = max(1, _BLOCK_BYTES * 4 // (tile * shape.element_bytes), -(-shape.rows // _MOST_CHUNKS))
    numbers = _Numbers(tile, tiles, shape.rows, chunk, -(-shape.rows // chunk), shape.rows)
    modes = (Mode.COLUMNS_PARTIAL, Mode.COLUMNS_COMBINE, Mode.COLUMNS_MAP)
    return _split(kernel, nest, modes, numbers, shape, group_bytes, PART_BYTES * shape.inner)


def _scan_rows(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = _shape(kernel, nest)
    line_bytes = shape.inner * shape.element_bytes
    if line_bytes <= _BLOCK_BYTES or shape.groups >= _FEW_GROUPS:
        batch = max(1, _CLAIM_BYTES // (shape.inner * shape.step_bytes))
        numbers = _Numbers(shape.inner, 1, 1, batch, 1, shape.inner, shape.groups)
        items = -(-shape.groups // batch)
        return [_launch(kernel, nest, Mode.SCAN_ROWS, numbers, items, batch * line_bytes)]
    block = _BLOCK_BYTES // shape.element_bytes
    blocks = -(-shape.inner // block)
    chunk = -(-blocks // _MOST_CHUNKS)
    numbers = _Numbers(block, blocks, blocks, chunk, -(-blocks // chunk), shape.inner)
    modes = (Mode.ROWS_PARTIAL, Mode.SCAN_ROWS_COMBINE, Mode.SCAN_ROWS_MAP)
    return _split(kernel, nest, modes, numbers, shape, line_bytes, PART_BYTES)


def _scan_columns(kernel: Kernel, nest: LoopNest) -> list[Launch]:
    shape = _shape(kernel, nest)
    tile = min(shape.inner, MAXIMUM_TILE)
    tiles = -(-shape.inner // tile)
    line_bytes = shape.rows * shape.inner * shape.element_bytes
    if line_bytes <= _BLOCK_BYTES or shape.groups * tiles >= _FEW_GROUPS:
        numbers = _Numbers(tile, tiles, shape.rows, shape.rows, 1, shape.rows)
        items, item_bytes = shape.groups * tiles, shape.rows * tile * shape.step_bytes
        return [_launch(kernel, nest, Mode.SCAN_COLUMNS, numbers, items, item_bytes)]
    chunk = max(1, _BLOCK_BYTES * 4 // (tile * shape.element_bytes), -(-shape.rows // _MOST_CHUNKS))
    numbers = _Numbers(tile, tiles, shape.rows, chunk, -(-shape.rows // chunk), shape.rows)
    modes = (Mode.COLUMNS_PARTIAL, Mode.SCAN_COLUMNS_COMBINE, Mode.SCAN_COLUMNS_MAP)
    return _split(kernel, nest, modes, numbers, shape, line_bytes, PART_BYTES * shape.inner)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The parameters of the same names (`Parameters`), but for INNER."""

    block: int
    blocks: int
    units: int
    chunk: int = 1
    chunks: int = 1
    elements: int = 1
    groups: int = 1
    stashed: int = 0
    """Elements of a group that are kept between the last pass and the results; 0: none are."""


def _split(
    kernel: Kernel,
    nest: LoopNest,
    modes: tuple[Mode, Mode, Mode],
    numbers: _Numbers,
    shape: _Shape,
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
        launches.append((per_group, _launch(kernel, nest, partial_mode, numbers, 1, 1, stage)))
        launches.append((tiles, _launch(kernel, nest, combine_mode, numbers, 1, 1, stage)))
    if shape.maps:
        launches.append((per_group, _launch(kernel, nest, map_mode, numbers, 1, 1)))
    room = shape.groups * (numbers.chunks + 1) * part_count(kernel.values) * part_bytes
    grain = max(1, _CLAIM_BYTES * per_group // group_bytes)
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


def _launch(
    kernel: Kernel,
    nest: LoopNest,
    mode: Mode,
    numbers: _Numbers,
    items: int,
    item_bytes: int,
    stage: int = 0,
) -> Launch:
    pattern = replace(_pattern(kernel, nest, mode), stage=stage, stashes=numbers.stashed > 0)
    grain = max(1, min(_CLAIM_BYTES // max(item_bytes, 1), items))
    return Launch(pattern, _parameters(kernel, nest, pattern, numbers), 0, items, grain)


def _pattern(kernel: Kernel, nest: LoopNest, mode: Mode) -> Pattern:
    loads = tuple(
        _access_pattern(access, nest, position, mode, False) for position, access in enumerate(kernel.loads)
    )
    stores = tuple(
        _access_pattern(access, nest, len(kernel.loads) + position, mode, True)
        for position, access in enumerate(kernel.stores)
    )
    in_order = mode.columns or all(
        _in_order(nest, number) for number, load in enumerate(kernel.loads) if load.buffer is None
    )
    return Pattern(
        mode,
        len(nest.groups),
        len(nest.rows),
        loads,
        stores,
        kernel.values,
        in_order=in_order,
        long_rows=mode.reduces_rows and nest.inner.count >= _LONG_ROW,
    )


def _in_order(nest: LoopNest, position: int) -> bool:
    """Whether a position only grows as the rows of a group, and the elements of each, are gone through."""
    inner = [nest.inner] if nest.inner_reduced else []
    steps = [loop.strides[position] for loop in (*nest.rows, *inner)]
    return steps == sorted(steps, reverse=True)


def _access_pattern(
    access: Access, nest: LoopNest, position: int, mode: Mode, written: bool
) -> AccessPattern:
    stride = nest.inner.strides[position]
    loops = (*nest.groups, *nest.rows, nest.inner)
    written_bytes = math.prod(loop.count for loop in loops if loop.strides[position]) * access.type.bytes
    if stride == access.type.bytes or (written and nest.inner.count == 1):
        step = Step.CONTIGUOUS
    elif (
        mode is Mode.TRANSPOSED
        and nest.rows[0].strides[position] == access.type.bytes
        and stride
        and not written
        and access.buffer is not None
    ):
        step = Step.ACROSS
    else:
        step = Step.STRIDED if stride else Step.NONE
    moves_in_rows = any(loop.strides[position] for loop in nest.rows)
    if mode.columns:
        level = Level.GROUP if not moves_in_rows else Level.ROW if step is Step.NONE else Level.ELEMENT
    else:
        level = Level.ELEMENT if step is not Step.NONE else Level.ROW if moves_in_rows else Level.GROUP
    streamed = (
        written
        and mode is not Mode.TRANSPOSED
        and step is Step.CONTIGUOUS
        and level is Level.ELEMENT
        and nest.inner.count >= _STREAMED_ROW
        and written_bytes * _STREAMED_SHARE > machine().last_cache_bytes
    )
    return AccessPattern(access.type, step, level, streamed, access.buffer is None)


def _parameters(kernel: Kernel, nest: LoopNest, pattern: Pattern, numbers: _Numbers) -> tuple[int, ...]:
    head = [
        nest.inner.count,
        numbers.block,
        numbers.blocks,
        numbers.units,
        numbers.chunk,
        numbers.chunks,
        numbers.elements,
        numbers.groups,
    ]
    head += [0] * (Parameters.STASHED_BYTES - len(head))
    head.append(numbers.stashed * STASHED.bytes)
    head += [loop.count for loop in (*nest.groups, *nest.rows)]
    for position, access in enumerate((*kernel.loads, *kernel.stores)):
        head += [access.buffer or 0, access.offset, nest.inner.strides[position]]
        head += [loop.strides[position] for loop in (*nest.groups, *nest.rows)]
    return tuple(head)
