"""Count the bytes and the operations of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.program.node import COLLECTIVE, FUNCTIONS, PLACINGS, Node, Operation, broadcast, ordered

_OPERATIONS = {Operation.MULTIPLY_ADD: 2, Operation.CONTRACTION: 2} | dict.fromkeys(FUNCTIONS, 10)
"""Operations of an element; others count as one. Ten is the rounded average of functions."""
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


class TensorBytes(NamedTuple):
    """The bytes of a tensor in a buffer, from `first` to before `last`."""

    buffer: int
    first: int
    last: int


def bytes_read(kernel: Kernel, tensors: Sequence[TensorBytes]) -> int:
    """Return the bytes that a kernel reads.

    A byte counts once, however often it is read. Elements at computed positions count for each access.

    Args:
        kernel: the kernel.
        tensors: the tensors that it may read.
    """
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
    return computed + _together(plain, kernel.domain, tensors)


def bytes_written(kernel: Kernel) -> int:
    """Return the bytes that a kernel writes. Elements at computed positions count all."""
    node = kernel.values[0]
    if node.operation in PLACINGS:
        return math.prod(node.sizes) * node.type.bytes * len(kernel.stores)
    return _together(kernel.stores, kernel.domain)


def operations(kernel: Kernel) -> int:
    """Return the arithmetic operations of a kernel: for each primitive, those of every element."""
    return sum(map(_operations_of, ordered(kernel.values)))


def _operations_of(node: Node) -> int:
    if node.operation in _FREE:
        return 0
    read = [operand.sizes for operand in node.operands if operand.sizes]
    sizes = broadcast(read) if node.operation in COLLECTIVE and read else node.sizes
    return math.prod(sizes) * _OPERATIONS.get(node.operation, 1)


def _together(
    accesses: Sequence[Access], domain: tuple[int, ...], tensors: Sequence[TensorBytes] = ()
) -> int:
    """Return the bytes of several accesses. Overlapping ones count no more than their common span."""
    spans = sorted(_span(access, domain, tensors) for access in accesses if access.buffer is not None)
    total, index = 0, 0
    while index < len(spans):
        buffer, first, last, count = spans[index]
        index += 1
        while index < len(spans) and spans[index][0] == buffer and spans[index][1] < last:
            last, count = max(last, spans[index][2]), count + spans[index][3]
            index += 1
        total += min(count, last - first)
    return total


def _span(
    access: Access, domain: tuple[int, ...], tensors: Sequence[TensorBytes]
) -> tuple[int, int, int, int]:
    """Return the buffer of an access, its first byte, its end, and the bytes of its elements.

    Bytes outside of the tensor, as of padding, are not read.
    """
    buffer = access.buffer or 0
    moving = [(size, step) for size, step in zip(domain, access.strides, strict=True) if step]
    low = access.offset + sum(min((size - 1) * step, 0) for size, step in moving)
    high = access.offset + sum(max((size - 1) * step, 0) for size, step in moving) + access.type.bytes
    count = math.prod(size for size, _ in moving) * access.type.bytes
    met = [
        (min(high, tensor.last) - max(low, tensor.first), tensor)
        for tensor in tensors
        if tensor.buffer == buffer
    ]
    if met:
        most, tensor = max(met, key=lambda each: each[0])
        if most > 0:
            low, high = max(low, tensor.first), min(high, tensor.last)
    return buffer, low, high, count
