"""Builds kernels: the loads, stores and values of the tensors that are written to memory."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from opendml.compiler.domains import Except, iteration_domain, moving_operands
from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.late_dataclass import dataclass
from opendml.program.node import (
    STORED,
    Node,
    Operation,
    View,
    constant,
    convert,
    index,
    ordered,
    source,
    with_operands,
)
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import counting
from opendml.program.sizes import are_same


@dataclass(frozen=True, slots=True)
class Location:
    """A tensor in the table of buffers; `offset` is in bytes."""

    buffer: int
    offset: int
    layout: Layout

    @property
    def is_packed(self) -> bool:
        """Return whether the tensor is dense, and its last dimension is innermost."""
        dense = packed(self.layout.type, self.layout.sizes)
        return are_same(self.access().strides, replace(self, layout=dense).access().strides)

    def part(self, first: Sequence[int], sizes: Sequence[int]) -> Location:
        """Return the location of a part that begins at an index."""
        strides = self.layout.strides
        offset = self.offset + sum(index * stride for index, stride in zip(first, strides, strict=True))
        return Location(self.buffer, offset, Layout(self.layout.type, tuple(sizes), strides))

    def reshaped(self, sizes: Sequence[int]) -> Location | None:
        """Return the location of the elements as a tensor of other sizes; None if that has no strides."""
        layout = self.layout.reshaped(sizes)
        return None if layout is None else replace(self, layout=layout)

    def before(self, view: Node) -> Location | None:
        """Return the location of the tensor whose VIEW lies here; None unless its kernel can write it there.

        The view must permute dimensions, and keep the innermost one, along which kernels write vectors.
        """
        value = view.operands[0]
        assert isinstance(view.attribute, View)
        is_masked, count = len(view.operands) > 1, math.prod(value.sizes)
        if is_masked or any(view.attribute.offsets) or count != math.prod(view.sizes):
            return None
        strides = []
        for size, row in zip(value.sizes, view.attribute.steps, strict=True):
            moving = [column for column, step in enumerate(row) if step]
            if size > 1 and ([row[column] for column in moving] != [1] or view.sizes[moving[0]] != size):
                return None
            strides.append(self.layout.strides[moving[0]] if size > 1 else 0)
        if next(filter(None, reversed(strides)), self.layout.type.bytes) != self.layout.type.bytes:
            return None
        return Location(self.buffer, self.offset, Layout(self.layout.type, value.sizes, tuple(strides)))

    def access(self) -> Access:
        """Return the access of a kernel whose domain has these sizes, or broadcasts them."""
        strides = zip(self.layout.strides, self.layout.sizes, strict=True)
        moving = tuple(stride if extent > 1 else 0 for stride, extent in strides)
        return Access(self.buffer, self.layout.type, self.offset, moving)

    def viewed(self, view: View, sizes: Sequence[int]) -> Access:
        """Return the access of a VIEW of the tensor with some sizes, without the indices that it computes. A
        kernel whose domain is larger than a size of 1 broadcasts it."""
        strides = self.layout.strides
        offset = self.offset + sum(
            first * stride for first, stride in zip(view.offsets, strides, strict=True)
        )
        moving = tuple(
            0
            if type(size) is int and size == 1
            else sum(row[column] * stride for row, stride in zip(view.steps, strides, strict=True))
            for column, size in enumerate(sizes)
        )
        return Access(self.buffer, self.layout.type, offset, moving)


def parts_of(join: Node, location: Location) -> Iterator[tuple[Node, Location]]:
    """Yield the operands of a JOIN or MATERIALIZE with their locations."""
    first = [0] * len(join.sizes)
    for operand in join.operands:
        yield operand, location.part(first, operand.sizes)
        if isinstance(join.attribute, int):
            first[join.attribute] += operand.sizes[join.attribute]


class KernelBuilder:
    """Builds kernels over tensors in memory, from the locations of inputs and, by nodes' identities,
    temporaries."""

    def __init__(self, inputs: Sequence[Location], temporaries: Mapping[int, Location]) -> None:
        self._inputs, self._temporaries = inputs, temporaries

    def kernels(self, node: Node, stores: Sequence[Location]) -> Iterator[Kernel]:
        """Yield the kernels that compute a node into all of `stores`.

        The kernels of a RECURRENCE write its initial state.
        """
        return self._kernels(node, stores, Except(self._temporaries, id(node)))

    def _kernels(self, node: Node, stores: Sequence[Location], held: Container[int]) -> Iterator[Kernel]:
        """Yield the kernels, of which `held` has the temporaries that are written before."""
        pending = [(node, stores)]
        while pending:
            node, stores = pending.pop()
            if id(node) in held:
                yield from self._kernel(node, stores, held)
            elif node.operation in STORED:
                parts = zip(*(parts_of(node, each) for each in stores), strict=True)
                pending += reversed([(several[0][0], [each for _, each in several]) for several in parts])
            elif node.operation is Operation.RECURRENCE:
                (initial, *_) = node.operands
                first = (0,) * len(node.sizes)
                pending.append((initial, [each.part(first, initial.sizes) for each in stores]))
            elif node.operation is Operation.RESHAPE and not self._is_held(node.operands[0], held):
                value = node.operands[0]
                reshaped = [each.reshaped(value.sizes) for each in stores]
                found = [each for each in reshaped if each is not None]
                assert len(found) == len(stores), f"{node} is written to {stores}"
                pending.append((value, found))
            else:
                yield from self._computed(node, stores, held)

    def _computed(self, node: Node, stores: Sequence[Location], held: Container[int]) -> Iterator[Kernel]:
        """Yield the kernel of a node that is no movement, after those that fill what it scatters into."""
        if node.operation in _EMPTY:
            yield from self._kernel(constant(_EMPTY[node.operation], node.type), stores, held)
        if node.operation is Operation.SCATTER_LAST and _line_count(node) < _MANY_LINES:
            yield from self._kernel(node.operands[2], stores, held)
            node = with_operands(node, moving_operands(node))
        yield from self._kernel(node, stores, held)

    def _is_held(self, node: Node, held: Container[int]) -> bool:
        """Return whether a tensor lies in memory, perhaps in other sizes."""
        while node.operation is Operation.RESHAPE and id(node) not in held:
            node = node.operands[0]
        return node.operation is Operation.SOURCE or id(node) in held

    def _kernel(self, node: Node, stores: Sequence[Location], held: Container[int]) -> Iterator[Kernel]:
        """Yield the kernel that computes a node into those of `stores` where it does not lie already."""
        domain = iteration_domain(node, ordered([node], held))
        # A number fills whatever tensor it is stored to.
        sizes = domain.sizes or stores[0].layout.sizes
        body = _Body(self, held)
        value = body.copy(node)
        loads = tuple(self._access(leaf, held, len(sizes)) for leaf in body.leaves)
        is_copy = value.operation is Operation.SOURCE and not value.operands
        written = tuple(each.access() for each in stores)
        written = tuple(each for each in written if not is_copy or each != loads[number_of(value)])
        if written:
            yield Kernel(sizes, domain.axes, loads, written, (value,) * len(written))

    def copy(self, node: Node, store: Location) -> Kernel:
        """Return the kernel that copies a tensor in memory to another location."""
        value = source(0, node.type, node.sizes)
        return Kernel(node.sizes, (), (self.stored_at(node).access(),), (store.access(),), (value,))

    def stored_at(self, node: Node) -> Location:
        """Return the location of a tensor in memory."""
        return self.location(node, self._temporaries)

    def location(self, node: Node, held: Container[int]) -> Location:
        """Return the location of an input, or of one of the temporaries `held`."""
        if id(node) in held:
            return self._temporaries[id(node)]
        if node.operation is Operation.RESHAPE:
            found = self.location(node.operands[0], held).reshaped(node.sizes)
            assert found is not None, f"{node} has no strides"
            return found
        assert isinstance(node.attribute, int), f"{node} is not in memory"
        return self._inputs[node.attribute]

    def _access(self, leaf: Node, held: Container[int], rank: int) -> Access:
        """Return the load of a tensor, or of an INDEX that counts along the domain."""
        if leaf.operation is Operation.INDEX and isinstance(leaf.attribute, tuple):
            offset, *strides = leaf.attribute
            return Access(None, leaf.type, offset, tuple(strides) or (0,) * rank)
        if isinstance(leaf.attribute, View) and id(leaf) not in held:
            return self.location(leaf.operands[0], held).viewed(leaf.attribute, leaf.sizes)
        return self.location(leaf, held).access()


class _Body:
    """A copy of a node's graph that ends at tensors in memory: its SOURCE i reads `leaves[i]`."""

    def __init__(self, builder: KernelBuilder, held: Container[int]) -> None:
        self.leaves: list[Node] = []
        self._builder, self._held = builder, held
        self._copies: dict[int, Node] = {}
        self._offsets: dict[int, Node] = {}

    def copy(self, root: Node) -> Node:
        """Return the copy of a node."""
        pending = [root]
        while pending:
            node = pending[-1]
            operands = self._operands(node)
            missing = [each for each in operands if id(each) not in self._copies]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if id(node) not in self._copies:
                self._copies[id(node)] = self._copied(node, [self._copies[id(each)] for each in operands])
        return self._copies[id(root)]

    def _is_leaf(self, node: Node) -> bool:
        return id(node) in self._held or node.operation in _LEAVES

    def _copied(self, node: Node, operands: Sequence[Node]) -> Node:
        if not self._is_leaf(node):
            return with_operands(node, tuple(operands))
        self.leaves.append(node)
        leaf = source(len(self.leaves) - 1, node.type, node.sizes, operands)
        # A tensor in memory was computed by another kernel, a view of one is this kernel's.
        leaf.origin = None if id(node) in self._held else node.origin
        return leaf

    def _operands(self, node: Node) -> Sequence[Node]:
        """Return the operands of a node's copy.

        A view of a tensor in memory has its mask, and the computed offsets of its elements in bytes.
        """
        if id(node) in self._held or node.operation in _LEAVES - {Operation.VIEW}:
            return ()
        if not isinstance(node.attribute, View):
            return node.operands
        if not node.attribute.indexed:
            return node.operands[1:]
        return self._guards(node)

    def _guards(self, node: Node) -> Sequence[Node]:
        assert isinstance(node.attribute, View)
        if id(node) not in self._offsets:
            layout = self._builder.location(node.operands[0], self._held).layout
            first, last = layout.span
            type = counting(2 * (last - first))
            steps = [
                convert(value, type) * index(type, (), layout.strides[dimension], ())
                for dimension, value in zip(node.attribute.indexed, node.operands[2:], strict=True)
            ]
            self._offsets[id(node)] = reduce(add, steps)
        return node.operands[1], self._offsets[id(node)]


def _line_count(node: Node) -> int:
    """Return the number of lines along which a node scatters."""
    assert isinstance(node.attribute, tuple)
    axis, *_ = node.attribute
    return math.prod(node.sizes) // node.sizes[axis]


_MANY_LINES = 8
"""Lines from which on threads share them. A kernel then fills each line and scatters into it while it is in a
cache; with fewer lines, another kernel fills them with all threads."""
_EMPTY = {Operation.SCATTER: -1, Operation.SCATTER_SUM: 0}
"""The numbers that results of scatters hold where nothing is scattered to."""
_LEAVES = frozenset({Operation.SOURCE, Operation.INDEX, Operation.VIEW, Operation.RESHAPE})
