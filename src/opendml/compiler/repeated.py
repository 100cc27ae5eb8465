"""Which element-wise values are stored once, rather than computed again by every kernel that needs them.

What is computed again costs its operations, and the bytes that it is made of, for every kernel; what is
stored costs its own bytes, once to write and for every kernel to read. Both are counted in operations.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from opendml.program.node import COLLECTIVE, FUNCTIONS, STORED, Node, Operation

OPERATIONS_PER_BYTE = 4
"""Operations on an element in the time that a byte takes to be read or written."""
FUNCTION_OPERATIONS = 16
"""Those that a transcendental function counts for."""
LEAST_ELEMENTS = 1 << 14
"""Of a value that is stored: a kernel of its own takes some time to begin."""

MOST_COUNTED = 512
"""Nodes whose operations are counted for one value, at most, so that counting takes linear time."""

_GIVEN = frozenset({Operation.SOURCE, Operation.CONSTANT, Operation.PARAMETER, Operation.INDEX})
_IN_MEMORY = COLLECTIVE | STORED | _GIVEN | {Operation.RECURRENCE, Operation.VIEW, Operation.RESHAPE}


def costs_more_again(value: Node, kernels: int, held: Container[int] = ()) -> bool:
    """Whether it takes longer that so many kernels compute an element-wise value than that one stores it.

    Args:
        value: the value.
        kernels: how many need it.
        held: what lies in memory.
    """
    elements = math.prod(value.sizes)
    if kernels < 2 or elements < LEAST_ELEMENTS:
        return False
    own = OPERATIONS_PER_BYTE * value.type.bytes
    enough = own * (kernels + 1) / (kernels - 1)
    return (kernels - 1) * _operations(value, held, enough) > own * (kernels + 1)


def _operations(value: Node, held: Container[int], enough: float) -> float:
    """What an element of a value takes, of what is not in memory. Counting ends when it is more than
    `enough`."""
    operations, read = 0, dict[int, Node]()
    pending, seen = [value], {id(value)}
    while pending and operations <= enough and len(seen) <= MOST_COUNTED:
        node = pending.pop()
        operands = node.operands
        if node.operation in _IN_MEMORY or (id(node) in held and node is not value):
            base = node
            while base.operation in (Operation.VIEW, Operation.RESHAPE) and id(base) not in held:
                base = base.operands[0]
            if base.operation not in _GIVEN or base.operation is Operation.SOURCE:
                read[id(base)] = base
            # A view computes where it is looked at, and whether there is something.
            operands = node.operands[1:] if node.operation is Operation.VIEW else ()
        if node.sizes == value.sizes and node.operation not in _GIVEN:
            operations += FUNCTION_OPERATIONS if node.operation in FUNCTIONS else 1
        new = [each for each in operands if id(each) not in seen]
        seen.update(map(id, new))
        pending += new
    elements = math.prod(value.sizes)
    shares = (each.type.bytes * min(1.0, math.prod(each.sizes) / elements) for each in read.values())
    return operations + OPERATIONS_PER_BYTE * sum(shares)


def stored_once(
    nodes: Sequence[Node],
    kernels: Iterable[tuple[object, Iterable[Node]]],
    held: Container[int],
) -> Iterator[Node]:
    """The element-wise values to store, each before what is made of it.

    Args:
        nodes: those of the program, in order.
        kernels: of each kernel what it goes through, and the nodes that it computes. Those that go through
            the same become one.
        held: the identities of what lies in memory.
    """
    needed: dict[int, set[object]] = {}
    for walk, inside in kernels:
        for node in inside:
            needed.setdefault(id(node), set()).add(walk)
    further: set[int] = set()
    for node in nodes:
        for operand in node.operands:
            if node.operation not in _IN_MEMORY and _is_further(node, operand, needed):
                further.add(id(operand))
    stored, reduced = set[int](), set[int]()
    apart = _Either(held, stored)
    for node in nodes:
        # A kernel of the value had to reduce or scan something.
        if node.operation in COLLECTIVE or any(
            id(each) in reduced and id(each) not in apart for each in node.operands
        ):
            reduced.add(id(node))
        if node.operation in _IN_MEMORY or id(node) in held or id(node) in further:
            continue
        count = len(needed.get(id(node), ()))
        if id(node) not in reduced and costs_more_again(node, count, apart):
            stored.add(id(node))
            yield node


def _is_further(user: Node, node: Node, needed: Mapping[int, set[object]]) -> bool:
    """Whether the same kernels need what is made of a node alone, in no more bytes."""
    is_alike = user.sizes == node.sizes and user.type.bits <= node.type.bits
    return is_alike and needed.get(id(user)) == needed.get(id(node))


class _Either:
    """The keys of two containers."""

    def __init__(self, first: Container[int], second: Container[int]) -> None:
        self._first, self._second = first, second

    def __contains__(self, key: object) -> bool:
        return key in self._first or key in self._second
