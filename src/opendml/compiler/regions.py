"""Kernels with several results: outputs over one domain that read the same tensors become one kernel.

Together they read what they share once. It costs nothing else, as long as the values of one element fit the
registers: the limits below say when they surely do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, renumbered
from opendml.program.node import (
    FUNCTIONS,
    PLACINGS,
    REDUCTIONS,
    SCANS,
    Node,
    Operation,
    ordered,
    rebuild,
)

MOST_ACCESSES = 12
"""Loads and stores of a kernel of several results: each keeps an address and a stride in registers."""
MOST_OPERATIONS = 64
"""Operations of such a kernel, a transcendental function counted as `FUNCTION_OPERATIONS`; more where it has
hardly more than the larger of its parts."""
HARDLY_MORE = 1.25
FUNCTION_OPERATIONS = 16
MOST_REDUCTIONS = 4
"""Of such a kernel; as many states are live at once."""


def merged(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels with those that go well together as one, at the place of the first."""
    result: list[Kernel] = []
    for kernel in kernels:
        position = _partner(result, kernel)
        if position is None:
            result.append(kernel)
        else:
            result[position] = _together(result[position], kernel)
    return result


def _partner(kernels: Sequence[Kernel], kernel: Kernel) -> int | None:
    """The kernel that another may join: between them nothing is written that it reads, and nothing is read
    or written that it writes."""
    read, written = _buffers(kernel.loads), _buffers(kernel.stores)
    for position in range(len(kernels) - 1, -1, -1):
        other = kernels[position]
        if _buffers(other.stores) & (read | written):
            return None
        if _fit(other, kernel):
            return position
        if _buffers(other.loads) & written:
            return None
    return None


def _buffers(accesses: Sequence[Access]) -> set[int]:
    return {access.buffer for access in accesses if access.buffer is not None}


def _fit(a: Kernel, b: Kernel) -> bool:
    """Whether two kernels that do not depend on each other share reads, and are small enough together."""
    if (a.domain, a.axes) != (b.domain, b.axes) or not _shared(a, b):
        return False
    operations = _operations(_together(a, b))
    if any(each in SCANS | PLACINGS or each is Operation.CONTRACTION for each in operations):
        return False
    most = max(MOST_OPERATIONS, HARDLY_MORE * max(_work(_operations(a)), _work(_operations(b))))
    accesses = len(a.loads) + len(b.loads) - len(_shared(a, b)) + len(a.stores) + len(b.stores)
    reductions = sum(each in REDUCTIONS for each in operations)
    return _work(operations) <= most and accesses <= MOST_ACCESSES and reductions <= MOST_REDUCTIONS


def _operations(kernel: Kernel) -> list[Operation]:
    return [node.operation for node in ordered(kernel.values)]


def _work(operations: Sequence[Operation]) -> int:
    return sum(FUNCTION_OPERATIONS if each in FUNCTIONS else 1 for each in operations)


def _shared(a: Kernel, b: Kernel) -> set[Access]:
    """The tensors that both read, element by element alike."""
    return {access for access in a.loads if access.buffer is not None} & set(b.loads)


def _together(a: Kernel, b: Kernel) -> Kernel:
    """Both kernels as one: equal loads are one load, equal values one value."""
    loads = list(dict.fromkeys((*a.loads, *b.loads)))

    def values_of(kernel: Kernel) -> tuple[Node, ...]:
        return renumbered(
            kernel.values, {number: loads.index(load) for number, load in enumerate(kernel.loads)}
        )

    values = rebuild([*values_of(a), *values_of(b)], lambda node: node)
    return replace(a, loads=tuple(loads), stores=(*a.stores, *b.stores), values=values)
