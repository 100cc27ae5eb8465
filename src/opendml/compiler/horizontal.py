"""Fuses kernels horizontally: results over one domain become results of one kernel.

Their kernels must read the same tensors, or write parts of the same rows. The fused kernel reads shared
tensors and cache lines once. It costs nothing else if the values of one element fit the registers. The limits
below ensure that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel, number_of, renumbered
from opendml.compiler.prices import operation_count
from opendml.program.node import PLACINGS, REDUCTIONS, SCANS, Node, Operation, ordered, rebuild
from opendml.program.sizes import are_same, is_traced

MOST_ACCESSES = 12
"""Loads and stores of a kernel of several results: each keeps an address and a stride in registers."""
MOST_OPERATIONS = 64
"""Operations of a kernel of several results, unless that is at most `MOST_GROWTH` times its larger part."""
MOST_GROWTH = 1.25
LONGEST_ROW = 1024
"""Bytes between parts of a row, at most: nearer parts share enough cache lines to be worth it."""
MOST_DISTANCE = 64
"""Kernels between two that are fused, at most, so that the search takes linear time."""
MOST_REDUCTIONS = 4
"""Reductions of a kernel of several results, at most; as many states are live at once."""


def fused_horizontally(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels, of which those that fit are fused at the position of the first."""
    result: list[_Candidate] = []
    for kernel in kernels:
        each = _Candidate(kernel)
        position = _partner(result, each)
        if position is None:
            result.append(each)
        else:
            result[position] = _Candidate(fused_pair(result[position].kernel, kernel))
    return [each.kernel for each in result]


class _Candidate:
    """A kernel with the buffers that it reads and writes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.loops = kernel, (kernel.domain, kernel.axes)
        self.loads = {access for access in kernel.loads if access.buffer is not None}
        self.read = {access.buffer for access in self.loads}
        self.written = {access.buffer for access in kernel.stores}


def _partner(kernels: Sequence[_Candidate], kernel: _Candidate) -> int | None:
    """Return the number of a kernel with which another one fits; None if there is none.

    Kernels between them write nothing that it reads, and read nothing that it writes. If both write one
    tensor, they write parts that do not overlap.
    """
    for position in range(len(kernels) - 1, max(-1, len(kernels) - 1 - MOST_DISTANCE), -1):
        other = kernels[position]
        if not other.written.isdisjoint(kernel.read):
            return None
        if are_same(other.loops, kernel.loops) and _fit(other, kernel):
            return position
        if not other.read.isdisjoint(kernel.written):
            return None
    return None


def _fit(a: _Candidate, b: _Candidate) -> bool:
    """Return whether two kernels over one domain that do not depend on each other share reads or rows, and
    are small enough together."""
    if not are_few_accesses(a.kernel, b.kernel):
        return False
    shared = a.loads & b.loads
    side_by_side = _share_rows(a.loads, b.loads) or _share_rows(a.kernel.stores, b.kernel.stores)
    if not shared and not side_by_side:
        return False
    operations = _operations(fused_pair(a.kernel, b.kernel))
    alone = [each for each in operations if each in SCANS | PLACINGS or each is Operation.CONTRACTION]
    if alone:
        have_both = all(Operation.POSITIONS in _operations(each.kernel) for each in (a, b))
        return alone == [Operation.POSITIONS] and have_both
    parts = (operation_count(_operations(each.kernel)) for each in (a, b))
    most = max(MOST_OPERATIONS, MOST_GROWTH * max(parts))
    reductions = sum(each in REDUCTIONS for each in operations)
    return operation_count(operations) <= most and reductions <= MOST_REDUCTIONS


def _operations(kernel: Kernel) -> list[Operation]:
    return [node.operation for node in ordered(kernel.values)]


def are_few_accesses(a: Kernel, b: Kernel) -> bool:
    """Return whether two kernels over one domain have no more loads and stores together than one has."""
    moving = ({load for load in each.loads if load.buffer is not None} for each in (a, b))
    shared = set.intersection(*moving)
    counts = (len(each.loads) + len(each.stores) for each in (a, b))
    return sum(counts) - len(shared) <= MOST_ACCESSES


def _share_rows(accesses: Iterable[Access], others: Iterable[Access]) -> bool:
    """Return whether some of the accesses read or write parts of the same rows."""
    return any(
        (a.buffer, a.type) == (b.buffer, b.type)
        and a.buffer is not None
        and are_same(a.strides, b.strides)
        and _is_short(a.offset - b.offset)
        for a in accesses
        for b in others
    )


def _is_short(distance: int) -> bool:
    """Return whether parts of a row may lie so far apart. A distance that changes may be long."""
    return not is_traced(distance) and 0 < abs(distance) <= LONGEST_ROW


def fused_pair(a: Kernel, b: Kernel) -> Kernel:
    """Return both kernels as one. Equal loads of one condition and size become one, and so do equal
    values."""
    loads, places, known = list(a.loads), {}, dict[Access, int]()
    for number, load in enumerate(a.loads):
        known.setdefault(load, number)
    for number, load in enumerate(b.loads):
        places[number] = known.setdefault(load, len(loads))
        if places[number] == len(loads):
            loads.append(load)
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
    """Return the values of both kernels, with these numbers of the second one's loads."""
    return rebuild([*a.values, *renumbered(b.values, places)], lambda node: node)


def _read_in_several_ways(values: Sequence[Node]) -> set[int]:
    """Return the numbers of loads that are read under different conditions or in different sizes."""
    ways: dict[int, set[tuple[object, ...]]] = {}
    for node in ordered(values):
        if node.operation is Operation.SOURCE:
            ways.setdefault(number_of(node), set()).add((node.sizes, *map(id, node.operands)))
    return {number for number, found in ways.items() if len(found) > 1}
