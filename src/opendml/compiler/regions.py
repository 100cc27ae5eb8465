"""Kernels with several results: outputs over one domain that read the same tensors, or lie beside each other,
become one kernel.

Together they read what they share once, and go through the cache lines that they share once. It costs nothing
else, as long as the values of one element fit the registers: the limits below say when they surely do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, number_of, renumbered
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
LONGEST_ROW = 1024
"""Bytes between parts of a row, at most, that share enough cache lines to be worth it."""
FARTHEST = 64
"""Kernels back to which a partner is looked for, so that merging takes linear time."""
MOST_REDUCTIONS = 4
"""Of such a kernel; as many states are live at once."""


def merged(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels, with those that go well together as one, at the position of the first."""
    result: list[_Placed] = []
    for kernel in kernels:
        each = _Placed(kernel)
        position = _partner(result, each)
        if position is None:
            result.append(each)
        else:
            result[position] = _Placed(as_one(result[position].kernel, kernel))
    return [each.kernel for each in result]


class _Placed:
    """A kernel, with the buffers that it reads and writes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.walk = kernel, (kernel.domain, kernel.axes)
        self.loads = {access for access in kernel.loads if access.buffer is not None}
        self.read = {access.buffer for access in self.loads}
        self.written = {access.buffer for access in kernel.stores}


def _partner(kernels: Sequence[_Placed], kernel: _Placed) -> int | None:
    """The kernel that another may join: between them nothing is written that it reads, and nothing is read
    that it writes. What both write are parts of one tensor, which do not overlap."""
    for position in range(len(kernels) - 1, max(-1, len(kernels) - 1 - FARTHEST), -1):
        other = kernels[position]
        if not other.written.isdisjoint(kernel.read):
            return None
        if other.walk == kernel.walk and _fit(other, kernel):
            return position
        if not other.read.isdisjoint(kernel.written):
            return None
    return None


def _fit(a: _Placed, b: _Placed) -> bool:
    """Return whether two kernels over one domain that do not depend on each other share reads or rows, and
    are small enough together."""
    if not are_few_accesses(a.kernel, b.kernel):
        return False
    shared = a.loads & b.loads
    side_by_side = _share_rows(a.loads, b.loads) or _share_rows(a.kernel.stores, b.kernel.stores)
    if not shared and not side_by_side:
        return False
    operations = _operations(as_one(a.kernel, b.kernel))
    alone = [each for each in operations if each in SCANS | PLACINGS or each is Operation.CONTRACTION]
    if alone:
        return alone == [Operation.POSITIONS] and all(_has_positions(each.kernel) for each in (a, b))
    parts = (work(_operations(each.kernel)) for each in (a, b))
    most = max(MOST_OPERATIONS, HARDLY_MORE * max(parts))
    reductions = sum(each in REDUCTIONS for each in operations)
    return work(operations) <= most and reductions <= MOST_REDUCTIONS


def _has_positions(kernel: Kernel) -> bool:
    return Operation.POSITIONS in _operations(kernel)


def _operations(kernel: Kernel) -> list[Operation]:
    return [node.operation for node in ordered(kernel.values)]


def work(operations: Sequence[Operation]) -> int:
    """Return about how many instructions these operations take."""
    return sum(_INSTRUCTIONS.get(each, 1) for each in operations)


_INSTRUCTIONS = {**dict.fromkeys(FUNCTIONS, FUNCTION_OPERATIONS), Operation.ROUND: 2}
"""Instructions of operations that do not take one. A rounding takes none, but if it counts less, merging by
the first fit leaves 16 rather than 13 kernels of ROI_ALIGN in FLOAT16."""


def are_few_accesses(a: Kernel, b: Kernel) -> bool:
    """Return whether two kernels over one domain have no more loads and stores together than one has."""
    moving = ({load for load in each.loads if load.buffer is not None} for each in (a, b))
    shared = set.intersection(*moving)
    counts = (len(each.loads) + len(each.stores) for each in (a, b))
    return sum(counts) - len(shared) <= MOST_ACCESSES


def _share_rows(accesses: Iterable[Access], others: Iterable[Access]) -> bool:
    """Whether some of the accesses read or write parts of the same rows."""
    return any(
        (a.buffer, a.type, a.strides) == (b.buffer, b.type, b.strides)
        and a.buffer is not None
        and 0 < abs(a.offset - b.offset) <= LONGEST_ROW
        for a in accesses
        for b in others
    )


def as_one(a: Kernel, b: Kernel) -> Kernel:
    """Return both kernels as one: equal loads are one load, if they are read alike, and equal values are
    one."""
    loads, places = list(a.loads), {}
    for number, load in enumerate(b.loads):
        if load not in loads:
            loads.append(load)
        places[number] = loads.index(load)
    values = _values_of(a, b, places)
    several = _read_in_several_ways(values)
    for number, place in places.items():
        if place in several:
            places[number] = len(loads)
            loads.append(b.loads[number])
    if several:
        values = _values_of(a, b, places)
    return replace(a, loads=tuple(loads), stores=(*a.stores, *b.stores), values=values)


def _values_of(a: Kernel, b: Kernel, places: Mapping[int, int]) -> tuple[Node, ...]:
    """Those of both kernels, of which the loads of the second have these numbers."""
    return rebuild([*a.values, *renumbered(b.values, places)], lambda node: node)


def _read_in_several_ways(values: Sequence[Node]) -> set[int]:
    """The numbers of loads that are read under different conditions, or in different sizes."""
    ways: dict[int, set[tuple[object, ...]]] = {}
    for node in ordered(values):
        if node.operation is Operation.SOURCE:
            ways.setdefault(number_of(node), set()).add((node.sizes, *map(id, node.operands)))
    return {number for number, found in ways.items() if len(found) > 1}
