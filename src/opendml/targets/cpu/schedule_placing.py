"""Decides how kernels that place along lines are walked: lines as a whole, or the chunks of long ones."""

from __future__ import annotations

import math
from dataclasses import replace

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import line_nest
from opendml.program.node import PLACINGS, Node, Operation
from opendml.targets.cpu.launch import CLAIM_BYTES, Launch, Numbers, launch_of
from opendml.targets.cpu.pattern import Mode
from opendml.targets.cpu.placing_code import word_bytes

_FEW_LINES = 8
"""Below this many lines, long ones are split between threads."""
_CHUNK = 64 * 1024
"""Elements of a chunk, at least: of fewer, too many are taken into a heap before they are found to be great."""
_MOST_CHUNKS = 64
"""Of a line: one thread puts their heaps together."""
_ROOM_BYTES = 256 * 1024 * 1024
"""Room for the words of all items, if each has more than one line."""

_LOOK = 0.1
"""Nanoseconds to compare an element with the greatest of a heap. These three were measured on one thread of a
Xeon with AVX-512."""
_SINK = 2.5
"""To move a word in a heap by a level."""
_MOVE = 2.5
"""To count and move a word by a digit."""


def schedule_placing(kernel: Kernel) -> list[Launch] | None:
    """The launches of a kernel that places along lines; None: it does not."""
    placed = kernel.values[0]
    if placed.operation not in PLACINGS:
        return None
    assert isinstance(placed.attribute, tuple)
    nest = line_nest(kernel)
    length, lines, count = (
        nest.inner.count,
        math.prod(loop.count for loop in nest.groups),
        placed.attribute[1],
    )
    step_bytes = sum(load.type.bytes for load in kernel.loads if load.buffer is not None) or 1
    batch = max(1, min(lines, CLAIM_BYTES // (length * step_bytes)))
    if placed.operation is Operation.SCATTER:
        numbers = Numbers(length, 1, 1, batch, 1, count, lines)
        items, item_bytes = -(-lines // batch), batch * length * step_bytes
        return [launch_of(kernel, nest, Mode.SCATTER, numbers, items, item_bytes)]
    is_heap = heap_cost(length, count) <= sort_cost(length, placed)
    words = (count if is_heap else 2 * length) * word_bytes(placed.operands[0].type)
    chunk = max(_CHUNK, count, -(-length // _MOST_CHUNKS))
    if is_heap and lines < _FEW_LINES and length >= 2 * chunk:
        chunks = -(-length // chunk)
        numbers = Numbers(length, 1, 1, chunk, chunks, count, lines)
        found = launch_of(kernel, nest, Mode.TOP_CHUNKS, numbers, lines * chunks, chunk * step_bytes)
        merged = launch_of(kernel, nest, Mode.TOP_MERGE, numbers, lines, CLAIM_BYTES)
        return [replace(launch, partial_bytes=lines * chunks * words) for launch in (found, merged)]
    batch = max(batch, -(-lines * words // _ROOM_BYTES))
    items = -(-lines // batch)
    mode = Mode.TOP_HEAP if is_heap else Mode.TOP_SORT
    launch = launch_of(kernel, nest, mode, Numbers(length, 1, 1, batch, 1, count, lines), items, CLAIM_BYTES)
    return [replace(launch, partial_bytes=items * words)]


def heap_cost(length: int, count: int) -> float:
    """Nanoseconds to select and sort so many of a line of elements in random order."""
    taken = count * (2 + math.log(length / count))
    return length * _LOOK + taken * math.log2(count + 1) * _SINK


def sort_cost(length: int, placed: Node) -> float:
    """Nanoseconds to sort a line."""
    return placed.operands[0].type.bytes * (length * _MOVE + 256)
