"""Decides how a kernel is walked: the mode, the tiles and chunks, and what one thread takes at a time.

Decisions depend on shapes and caches only, never on the number of threads, so that results do not either.
"""

from __future__ import annotations

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LoopNest, loop_nest
from opendml.program.node import Operation, ordered
from opendml.targets.cpu.contraction.schedule import tiled
from opendml.targets.cpu.launch import BLOCK_BYTES, Launch, Numbers, launch_of, shape_of
from opendml.targets.cpu.pattern import Mode
from opendml.targets.cpu.schedule_groups import schedule_groups
from opendml.targets.cpu.schedule_placing import schedule_placing

_CROSSED_BLOCK = 256
"""Steps of each loop in a block of a kernel whose operands lie across: the block of all operands stays in a
level 1 cache."""
_SHORTEST_CROSSED = 8
"""Steps that both loops of such a kernel have at least."""


def schedule(kernel: Kernel) -> list[Launch]:
    """The launches that run `kernel`, in order."""
    tiles = tiled(kernel)
    if tiles:
        return tiles
    placing = schedule_placing(kernel)
    if placing:
        return placing
    nest = loop_nest(kernel)
    if kernel.axes:
        return schedule_groups(kernel, nest)
    crossed = _crossed(kernel, nest)
    return [_transposed(kernel, crossed) if crossed else _pointwise(kernel, nest)]


def _pointwise(kernel: Kernel, nest: LoopNest) -> Launch:
    shape = shape_of(kernel, nest)
    block = min(shape.inner, BLOCK_BYTES // shape.element_bytes)
    blocks = -(-shape.inner // block)
    numbers = Numbers(block=block, blocks=blocks, units=blocks)
    return launch_of(kernel, nest, Mode.POINTWISE, numbers, shape.groups * blocks, block * shape.step_bytes)


def _crossed(kernel: Kernel, nest: LoopNest) -> LoopNest | None:
    """The nest with the loop innermost along which the results are contiguous, and as its one row loop the
    one along which operands are that move along both; None where there are no two such loops, or they are
    too short to be worth it."""
    loops = (*nest.groups, nest.inner)
    accesses = (*kernel.loads, *kernel.stores)
    contiguous = [
        next((loop for loop in loops if loop.strides[position] == access.type.bytes), None)
        if access.buffer is not None
        else None
        for position, access in enumerate(accesses)
    ]
    guarded = {
        node.attribute
        for node in ordered(kernel.values)
        if node.operation is Operation.SOURCE and node.operands
    }
    # What is guarded or gathered is not loaded as a whole tile.
    contiguous = [None if position in guarded else loop for position, loop in enumerate(contiguous)]
    inner = contiguous[len(kernel.loads)]
    if inner is None:
        return None
    # One that does not move along the results' loop is read once a row, wherever its elements lie.
    others = {
        id(loop): loop
        for position, loop in enumerate(contiguous[: len(kernel.loads)])
        if loop is not None and loop is not inner and inner.strides[position]
    }
    if len(others) != 1:
        return None
    (across,) = others.values()
    if min(inner.count, across.count) < _SHORTEST_CROSSED:
        return None
    groups = tuple(loop for loop in loops if loop is not inner and loop is not across)
    return LoopNest(groups, (across,), inner, False)


def _transposed(kernel: Kernel, nest: LoopNest) -> Launch:
    shape = shape_of(kernel, nest)
    block, chunk = min(shape.inner, _CROSSED_BLOCK), min(shape.rows, _CROSSED_BLOCK)
    blocks, chunks = -(-shape.inner // block), -(-shape.rows // chunk)
    numbers = Numbers(block=block, blocks=blocks, units=shape.rows, chunk=chunk, chunks=chunks)
    items = shape.groups * chunks * blocks
    return launch_of(kernel, nest, Mode.TRANSPOSED, numbers, items, block * chunk * shape.step_bytes)
