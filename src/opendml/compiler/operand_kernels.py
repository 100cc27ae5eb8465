"""Computes operands of products in kernels of their own.

Each tile of results computes the elements of its operands. An operand that is expensive to compute is cheaper
to store first. The target compares the prices, since they depend on its tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from opendml.compiler.horizontal import are_few_accesses, fused_pair
from opendml.compiler.kernel import Access, Kernel, KernelSequence, fingerprint, number_of, renumbered
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered, rebuild, source, with_operands
from opendml.program.sizes import hint_of

PITCH_BYTES = 16
"""Bytes to which rows of a stored operand are aligned: the widest access, which TMA of CUDA devices needs."""
MOST_PADDING = 1 / 8
"""Largest padding of a row, as a fraction of the row."""


@dataclass(frozen=True, slots=True)
class DividedKernel:
    """The kernels that store operands, the one that reads these, and the operands' bytes."""

    stores: tuple[Kernel, ...]
    reads: Kernel
    bytes: tuple[int, ...]


def divided(kernel: Kernel, operands: Sequence[Node], buffers: Sequence[int]) -> DividedKernel:
    """Divide a kernel into those that write operands to buffers, and one that reads them there."""
    stores, sizes = list[Kernel](), list[int]()
    accesses, changed = list(kernel.loads), dict[int, Node]()
    for operand, buffer in zip(operands, buffers, strict=True):
        inside = [node for node in ordered([operand]) if node.operation is Operation.SOURCE]
        numbers = {number: place for place, number in enumerate(sorted(set(map(number_of, inside))))}
        loads = tuple(kernel.loads[number] for number in numbers)
        operand, own = _without_repetition(operand, loads, numbers), operand
        strides, bytes = _strides(operand, loads)
        store = Access(buffer, operand.type, 0, strides)
        stores.append(Kernel(operand.sizes, (), loads, (store,), renumbered([operand], numbers)))
        sizes.append(bytes)
        changed[id(own)] = source(len(accesses), operand.type, operand.sizes)
        accesses.append(store)
    for node in ordered(kernel.values, changed):
        below = tuple(changed.get(id(each), each) for each in node.operands)
        changed[id(node)] = node if below == node.operands else with_operands(node, below)
    values = [changed[id(value)] for value in kernel.values]
    read = {number_of(node) for node in ordered(values) if node.operation is Operation.SOURCE}
    numbers = {number: place for place, number in enumerate(sorted(read))}
    reads = replace(
        kernel, loads=tuple(accesses[number] for number in numbers), values=renumbered(values, numbers)
    )
    return DividedKernel(tuple(stores), reads, tuple(sizes))


def _without_repetition(operand: Node, loads: Sequence[Access], numbers: Mapping[int, int]) -> Node:
    """Return an operand that has one element along dimensions along which no tensor moves."""
    moved = [any(load.strides[dimension] for load in loads) for dimension in range(len(operand.sizes))]
    if all(moved):
        return operand

    def single(node: Node) -> Node:
        sizes = tuple(size if is_moved else 1 for size, is_moved in zip(node.sizes, moved, strict=False))
        return Node(node.operation, node.type, sizes, node.operands, node.attribute, node.origin)

    return rebuild([operand], single)[0]


def _strides(operand: Node, loads: Sequence[Access]) -> tuple[tuple[int, ...], int]:
    """Return the strides in bytes of a stored operand, and its size: dimensions lie in the order of the
    largest tensor that it is computed of."""
    sizes = operand.sizes
    moving = [load for load in loads if load.buffer is not None]

    def elements(load: Access) -> int:
        return hint_of(math.prod(size for size, stride in zip(sizes, load.strides, strict=True) if stride))

    largest = [abs(hint_of(stride)) for stride in max(moving, key=elements).strides]
    order = sorted(range(len(sizes)), key=lambda dimension: largest[dimension] or math.inf)
    strides, step = [0] * len(sizes), operand.type.bytes
    for dimension in order:
        if sizes[dimension] == 1:
            continue
        strides[dimension] = step
        is_row = step == operand.type.bytes
        step *= sizes[dimension]
        padding = -step % PITCH_BYTES
        if is_row and hint_of(padding) <= hint_of(step) * MOST_PADDING:
            step += padding
    return tuple(strides), step


def with_operand_kernels(
    sequence: KernelSequence, stored_operands: Callable[[Kernel], Sequence[Node]], first_buffer: int
) -> KernelSequence:
    """Return the kernels with those that store the operands of products which a target chooses.

    An operand of several kernels is stored once. Kernels that are repeated stay as they are. New temporaries
    have numbers from `first_buffer` on.
    """
    repeated = sequence.repeated
    first_new = max(sequence.temporaries, default=first_buffer - 1) + 1
    result = KernelSequence([], [], dict(sequence.temporaries))
    positions = list[int]()
    stored = dict[tuple[object, ...], int]()
    for number, kernel in enumerate(sequence.kernels):
        operands = [] if number in repeated else stored_operands(kernel)
        if operands:
            first = first_new + len(stored)
            part = divided(kernel, operands, range(first, first + len(operands)))
            buffers, new = list[int](), list[Kernel]()
            for stores, bytes in zip(part.stores, part.bytes, strict=True):
                key = fingerprint(stores.values), stores.domain, stores.loads
                if key not in stored:
                    buffer = stored[key] = first_new + len(stored)
                    result.temporaries[buffer] = bytes
                    new.append(replace(stores, stores=(replace(stores.stores[0], buffer=buffer),)))
                buffers.append(stored[key])
            result.kernels.extend(together(new))
            kernel = divided(kernel, operands, buffers).reads
        positions.append(len(result.kernels))
        result.kernels.append(kernel)
    return replace(result, repeats=[replace(each, first=positions[each.first]) for each in sequence.repeats])


def together(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return kernels that store operands of one kernel, as one where they run over the same elements."""
    result = list[Kernel]()
    for kernel in map(_without_still_dimensions, kernels):
        for number, other in enumerate(result):
            if other.domain == kernel.domain and are_few_accesses(other, kernel):
                result[number] = fused_pair(other, kernel)
                break
        else:
            result.append(kernel)
    return result


def _without_still_dimensions(kernel: Kernel) -> Kernel:
    """Return an element-wise kernel without the dimensions that have one element."""
    kept = [dimension for dimension, size in enumerate(kernel.domain) if size > 1]

    def of_kept(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values[dimension] for dimension in kept)

    def moved(node: Node) -> Node:
        sizes = of_kept(node.sizes) if node.sizes else ()
        return Node(node.operation, node.type, sizes, node.operands, node.attribute)

    def access(each: Access) -> Access:
        return replace(each, strides=of_kept(each.strides))

    values = rebuild(kernel.values, moved)
    return replace(kernel.with_accesses(access), domain=of_kept(kernel.domain), values=values)
