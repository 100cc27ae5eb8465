"""How many bytes a kernel moves, and how many operations it does, by what it says of itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.program.node import COLLECTIVE, FUNCTIONS, PLACINGS, Node, Operation, broadcast, ordered

_OPERATIONS = {Operation.MULTIPLY_ADD: 2, Operation.CONTRACTION: 2} | dict.fromkeys(FUNCTIONS, 10)
"""Of an element; all others count as one. Functions take about so many on average."""
_FREE = frozenset(
    {
        Operation.SOURCE,
        Operation.CONSTANT,
        Operation.PARAMETER,
        Operation.INDEX,
        Operation.VIEW,
        Operation.RESHAPE,
        Operation.JOIN,
        Operation.BITCAST,
    }
)


class Room(NamedTuple):
    """The bytes of a buffer, from the first to the one after the last, that a tensor lies in."""

    buffer: int
    first: int
    last: int


def bytes_read(kernel: Kernel, rooms: Sequence[Room]) -> int:
    """Return the bytes that it reads of tensors in `rooms` or elsewhere, each counted once however often it
    is read; of what is found at computed places, every element that is asked for."""
    sources = {number_of(node): node for node in ordered(kernel.values) if node.operation is Operation.SOURCE}
    plain, computed = list[Access](), 0
    for number, load in enumerate(kernel.loads):
        node = sources.get(number)
        if load.buffer is None or node is None:
            continue
        if len(node.operands) > 1:
            sizes = broadcast([node.sizes, *(operand.sizes for operand in node.operands)])
            computed += math.prod(sizes) * load.type.bytes
        else:
            plain.append(load)
    return computed + _together(plain, kernel.domain, rooms)


def bytes_written(kernel: Kernel) -> int:
    """Return the bytes that it writes. What is put at computed places is all written, by their number."""
    node = kernel.values[0]
    if node.operation in PLACINGS:
        return math.prod(node.sizes) * node.type.bytes * len(kernel.stores)
    return _together(kernel.stores, kernel.domain)


def operations(kernel: Kernel) -> int:
    """Return the arithmetic operations: one for each element of a result of a primitive, or of what is
    reduced; of a multiply-add two, of a function about as many as it takes on average."""
    return sum(map(_operations_of, ordered(kernel.values)))


def _operations_of(node: Node) -> int:
    if node.operation in _FREE:
        return 0
    read = [operand.sizes for operand in node.operands if operand.sizes]
    sizes = broadcast(read) if node.operation in COLLECTIVE and read else node.sizes
    return math.prod(sizes) * _OPERATIONS.get(node.operation, 1)


def _together(accesses: Sequence[Access], domain: tuple[int, ...], rooms: Sequence[Room] = ()) -> int:
    """Return the bytes that several accesses touch: what they touch one by one, but no more than there are
    from the first to the last where they overlap."""
    spans = sorted(_span(access, domain, rooms) for access in accesses if access.buffer is not None)
    total, index = 0, 0
    while index < len(spans):
        buffer, first, last, count = spans[index]
        index += 1
        while index < len(spans) and spans[index][0] == buffer and spans[index][1] < last:
            last, count = max(last, spans[index][2]), count + spans[index][3]
            index += 1
        total += min(count, last - first)
    return total


def _span(access: Access, domain: tuple[int, ...], rooms: Sequence[Room]) -> tuple[int, int, int, int]:
    """Return the buffer of an access, its first byte, the one after its last, and the bytes of its elements.
    What lies beside the tensor, as padding does, is not read."""
    buffer = access.buffer or 0
    moving = [(size, step) for size, step in zip(domain, access.strides, strict=True) if step]
    low = access.offset + sum(min((size - 1) * step, 0) for size, step in moving)
    high = access.offset + sum(max((size - 1) * step, 0) for size, step in moving) + access.type.bytes
    count = math.prod(size for size, _ in moving) * access.type.bytes
    met = [(min(high, room.last) - max(low, room.first), room) for room in rooms if room.buffer == buffer]
    if met:
        most, room = max(met, key=lambda each: each[0])
        if most > 0:
            low, high = max(low, room.first), min(high, room.last)
    return buffer, low, high, count
