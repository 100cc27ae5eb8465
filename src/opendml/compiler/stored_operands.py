"""Computes operands of products in kernels of their own, where a target prefers that.

A product reads the elements of an operand once for each tile of results, so an operand that is expensive to
compute may be cheaper to store first. The target compares the prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from opendml.compiler.kernel import Access, Kernel, Repeat, fingerprint, number_of, renumbered
from opendml.program.node import Node, Operation, ordered, source, with_operands

Chooses = Callable[[Kernel], Node | None]
"""Returns an operand of a kernel's product that a target stores first, if it does."""

PITCH_BYTES = 16
"""Bytes to which rows of a stored operand are aligned: the widest access, and what TMA of CUDA devices
needs."""
MOST_PADDING = 1 / 8
"""Largest padding of a row, as a fraction of the row."""


@dataclass(frozen=True, slots=True)
class Divided:
    """A kernel divided in two: `stores` writes an operand of so many `bytes`, and `reads` computes the
    rest."""

    stores: Kernel
    reads: Kernel
    bytes: int


def divided(kernel: Kernel, operand: Node, buffer: int) -> Divided:
    """Divide a kernel into one that writes an operand to a buffer, and one that reads it there."""
    inside = [node for node in ordered([operand]) if node.operation is Operation.SOURCE]
    numbers = {number: place for place, number in enumerate(sorted(set(map(number_of, inside))))}
    loads = [kernel.loads[number] for number in numbers]
    strides, bytes = _strides(operand, loads)
    store = Access(buffer, operand.type, 0, strides)
    (value,) = renumbered([operand], numbers)
    own = Kernel(operand.sizes, (), tuple(loads), (store,), (value,))
    changed = {id(operand): source(len(kernel.loads), operand.type, operand.sizes)}
    for node in ordered(kernel.values, changed):
        operands = tuple(changed.get(id(each), each) for each in node.operands)
        changed[id(node)] = node if operands == node.operands else with_operands(node, operands)
    values = [changed[id(value)] for value in kernel.values]
    read = {number_of(node) for node in ordered(values) if node.operation is Operation.SOURCE}
    numbers = {number: place for place, number in enumerate(sorted(read))}
    accesses = (*kernel.loads, store)
    rest = tuple(accesses[number] for number in numbers)
    return Divided(own, replace(kernel, loads=rest, values=renumbered(values, numbers)), bytes)


def _strides(operand: Node, loads: Sequence[Access]) -> tuple[tuple[int, ...], int]:
    """Return the strides in bytes of a stored operand, and its size: dimensions lie in the order of the
    largest tensor that it is computed of."""
    sizes = operand.sizes
    moving = [load for load in loads if load.buffer is not None]

    def elements(load: Access) -> int:
        return math.prod(size for size, stride in zip(sizes, load.strides, strict=True) if stride)

    largest = max(moving, key=elements)
    order = sorted(range(len(sizes)), key=lambda dimension: abs(largest.strides[dimension]) or math.inf)
    strides, step = [0] * len(sizes), operand.type.bytes
    for dimension in order:
        if sizes[dimension] == 1:
            continue
        strides[dimension] = step
        is_row = step == operand.type.bytes
        step *= sizes[dimension]
        padding = -step % PITCH_BYTES
        if is_row and padding <= step * MOST_PADDING:
            step += padding
    return tuple(strides), step


def with_stored_operands(
    kernels: Sequence[Kernel],
    repeats: Sequence[Repeat],
    temporaries: Mapping[int, int],
    chooses: Chooses,
    first_buffer: int,
) -> tuple[list[Kernel], list[Repeat], dict[int, int]]:
    """Return the kernels with those before them that store the operands which a target chooses, how they are
    repeated, and the sizes of temporaries. New ones have the numbers from `first_buffer` on. An operand of
    several kernels is stored once; kernels that are repeated stay as they are."""
    repeated = {
        number for each in repeats for number in range(each.first, each.first + each.length * each.count)
    }
    result, places, sizes = list[Kernel](), list[int](), dict(temporaries)
    stored = dict[tuple[object, ...], int]()
    for number, kernel in enumerate(kernels):
        while number not in repeated and (operand := chooses(kernel)) is not None:
            buffer = first_buffer + len(stored)
            part = divided(kernel, operand, buffer)
            key = fingerprint(part.stores.values), part.stores.domain, part.stores.loads
            if key not in stored:
                stored[key] = buffer
                sizes[buffer] = part.bytes
                result.append(part.stores)
            kernel = divided(kernel, operand, stored[key]).reads
        places.append(len(result))
        result.append(kernel)
    moved = [replace(each, first=places[each.first]) for each in repeats]
    return result, moved, sizes
