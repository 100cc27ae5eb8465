"""Removal of stores that copy a tensor onto itself.

An output may begin in the memory of an input, as a cache of keys and values does that grows. The part of the
output that is the input is there already.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, KernelSequence, number_of, renumbered
from opendml.program.node import Node, Operation, ordered
from opendml.program.program import Program


def joined_inputs(program: Program) -> dict[int, tuple[int, int]]:
    """Return the outputs that are an input joined with more: the input and the axis by the number of the
    output."""
    found = {}
    for output, root in enumerate(program.results):
        if root.operation is Operation.JOIN and root.operands[0].operation is Operation.SOURCE:
            assert isinstance(root.attribute, int)
            found[output] = number_of(root.operands[0]), root.attribute
    return found


def without_copies(sequence: KernelSequence, pairs: Container[tuple[int, int]]) -> KernelSequence:
    """Return the kernels without those stores that copy a buffer onto itself.

    Args:
        sequence: the kernels. Those that are repeated stay as they are.
        pairs: the numbers of two buffers that begin at the same address: of the one that is written and of
            the one that is read.
    """
    repeated, kernels, kept = sequence.repeated, list[Kernel](), list[int]()
    for number, kernel in enumerate(sequence.kernels):
        changed = kernel if number in repeated or kernel.axes else _without_copies(kernel, pairs)
        if changed is not None:
            kernels.append(changed)
            kept.append(number)
    repeats = [replace(each, first=kept.index(each.first)) for each in sequence.repeats]
    return KernelSequence(kernels, repeats, sequence.temporaries)


def _without_copies(kernel: Kernel, pairs: Container[tuple[int, int]]) -> Kernel | None:
    """Return an element-wise kernel without its copies onto themselves; None: nothing is left."""

    def is_copy(store: Access, value: Node) -> bool:
        if value.operation is not Operation.SOURCE or value.operands:
            return False
        load = kernel.loads[number_of(value)]
        return (store.buffer, load.buffer) in pairs and replace(load, buffer=store.buffer) == store

    both = zip(kernel.stores, kernel.values, strict=True)
    left = [(store, value) for store, value in both if not is_copy(store, value)]
    if len(left) == len(kernel.stores) or not left:
        return kernel if left else None
    values = [value for _, value in left]
    read = [number_of(node) for node in ordered(values) if node.operation is Operation.SOURCE]
    numbers = {number: place for place, number in enumerate(dict.fromkeys(read))}
    loads = tuple(kernel.loads[number] for number in numbers)
    return replace(
        kernel, loads=loads, stores=tuple(store for store, _ in left), values=renumbered(values, numbers)
    )
