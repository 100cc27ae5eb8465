"""Element-wise kernels; an item is a block of one row.

Loads that a condition guards, or whose distances are computed, mostly lie like any others: of a padded or
mirrored tensor all but the rim. Where they do in a vector, they are loaded so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from llvmlite import ir

from opendml.compiler.kernel import number_of
from opendml.program.node import Node, Operation, ordered
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I1, I32, I64, POINTER, Code
from opendml.targets.cpu.kernel_code import KernelCode, KnownAt, Pointers, Values
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.values import is_vector, splat, vector_constant

_FETCHED_AHEAD = 2048
"""Bytes by which operands are prefetched. The hardware prefetcher stops at pages of 4 KiB, and starts late if
arithmetic takes as long as the memory. For 16.8 million FLOAT32, erf takes 2.6 ms with prefetching and 3.0
without, on two threads of a Sapphire Rapids; a copy takes 2.1 both ways. 512 to 4096 measured equal. On a
Zen 4 prefetching changes nothing."""


class PointwiseCode(KernelCode):
    """Walks the blocks of rows in their order."""

    def __init__(
        self,
        function: ir.Function,
        pattern: CpuPattern,
        lanes: int,
        code: Code | None = None,
        first_parameter: int = 0,
    ) -> None:
        super().__init__(function, pattern, lanes, code, first_parameter)
        self._guarded = [node for node in self.nodes if self._is_regular_inside(node)]
        self._is_regular = False
        self._prefetches = any(store.streamed for store in pattern.stores)

    def items(self, first: ir.Value, last: ir.Value) -> None:
        """Some blocks."""
        if self.pattern.row_steps:
            with self.walk_groups(first, last) as (_, pointers):
                self._map_part(pointers, I64(0), self.inner)
            return
        with self._walk_blocks(first, last) as (pointers, block):
            start = self.builder.mul(block, self.block)
            stop = self.code.minimum(self.builder.add(start, self.block), self.inner)
            self._map_part(pointers, start, stop)

    def _map_part(self, pointers: Pointers, start: ir.Value, stop: ir.Value) -> None:
        """A part of the row at `pointers`."""
        self.map_block(pointers, self.evaluate(Level.GROUP, 1, pointers, {}), start, stop)

    @contextmanager
    def _walk_blocks(self, first: ir.Value, last: ir.Value) -> Iterator[tuple[Pointers, ir.Value]]:
        """A loop over blocks: yields where the accesses stand at the first element of its row, and the number
        of the block in it."""
        counts, loops = [*self.group_counts, self.blocks], len(self.group_counts)
        indices = [self.code.local(I64, index) for index in self.code.split(first, [I64(0), *counts])[1:]]
        start = self._moved(
            self.bases, [self.code.get(index) for index in indices[:-1]], self.layout.group_stride
        )
        pointers = [self.code.local(POINTER, pointer) for pointer in start]
        with self.code.loop(first, last):
            block = self.code.get(indices[-1])
            yield [self.code.get(pointer) for pointer in pointers], block
            following = self.builder.add(block, I64(1))
            is_last = self.builder.icmp_signed("==", following, self.blocks)
            self.code.set(indices[-1], self.builder.select(is_last, I64(0), following))
            if loops:
                with self.builder.if_then(is_last):
                    self._advance(pointers, indices[:-1], self.group_counts, self.layout.group_stride)

    def store_range(self, pointers: Pointers, start: ir.Value, stop: ir.Value, known: KnownAt) -> None:
        """The stores of a range of a row; vectors in which all loads lie like those of others apart."""
        if not self._guarded:
            super().store_range(pointers, start, stop, known)
            return

        def store(index: ir.Value, mask: ir.Value | None) -> None:
            roots = [operand for node in self._guarded for operand in node.operands]
            values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known(index), index, mask, roots)
            with self.builder.if_else(self._all_regular(values, mask)) as (regular, other):
                with regular:
                    guards = {id(node.operands[0]): ir.Constant(I1, 1) for node in self._guarded}
                    self._is_regular = True
                    self.store_vector(pointers, values | guards, index, mask)
                    self._is_regular = False
                with other:
                    self.store_vector(pointers, values, index, mask)

        self.store_vectors(pointers, start, stop, store)

    def load(
        self,
        node: Node,
        lanes: int,
        pointers: Pointers,
        values: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> ir.Value:
        """A load; where all are regular, without its guard, and of neighbours from the first on."""
        if not self._is_regular or not any(node is each for each in self._guarded):
            return super().load(node, lanes, pointers, values, index, mask)
        access = number_of(node)
        address, distance = self.place(node, lanes, pointers, values, index)
        if distance is None:
            return self.read(access, lanes if self.moves(access, index) else 1, address, mask, None, None)
        first = self.builder.extract_element(distance, I32(0))
        return self.code.load(self.code.offset(address, first), node.type, lanes, mask)

    def read(
        self,
        access: int,
        lanes: int,
        address: ir.Value,
        mask: ir.Value | None,
        guard: ir.Value | None,
        distance: ir.Value | None,
    ) -> ir.Value:
        """Read elements; beside results that go past the caches, neighbouring ones are prefetched."""
        step = self.accesses[access].step
        is_full = lanes > 1 and mask is None and guard is None and distance is None
        if self._prefetches and is_full and step is Step.CONTIGUOUS:
            self.code.prefetch(self.code.offset(address, I64(_FETCHED_AHEAD)))
        return super().read(access, lanes, address, mask, guard, distance)

    def is_plain(self, node: Node) -> bool:
        """Whether a load reads all elements along a row, by its step."""
        inside = self._is_regular and any(node is each for each in self._guarded)
        return super().is_plain(node) or (inside and len(node.operands) == 1)

    def _is_regular_inside(self, node: Node) -> bool:
        """Whether a node is a load that moves along a row, by what is counted rather than read."""
        if node.operation is not Operation.SOURCE or not node.operands:
            return False
        below = [each for each in ordered(node.operands) if each.operation is Operation.SOURCE]
        return self.levels[id(node)] is Level.ELEMENT and all(
            self.accesses[number_of(each)].counter for each in below
        )

    def _all_regular(self, values: Values, mask: ir.Value | None) -> ir.Value:
        """Whether no guard keeps a lane from reading, and all distances are those of neighbours."""
        conditions: dict[int, ir.Value] = {}
        for node in self._guarded:
            guard = self.value(node.operands[0], self.lanes, values)
            conditions[id(guard)] = guard
            step = self.accesses[number_of(node)].step
            distance = self.code.total(
                [
                    value
                    for each in self.distances(node)
                    if is_vector(value := self.value(each, self.lanes, values))
                ]
            )
            if distance is not None:
                first = splat(self.builder, self.builder.extract_element(distance, I32(0)), self.lanes)
                moved = self.builder.sub(distance, first)
                along = self._along(node.type.bytes, None if step is Step.NONE else number_of(node), moved)
                conditions[id(distance)] = self.builder.icmp_signed("==", moved, along)
        vectors = [each for each in conditions.values() if is_vector(each)]
        scalars = [each for each in conditions.values() if not is_vector(each)]
        if vectors:
            together = reduce(self.builder.and_, vectors)
            if mask is not None:
                together = self.builder.or_(together, self.builder.not_(mask))
            bits = self.builder.bitcast(together, ir.IntType(self.lanes))
            scalars.append(self.builder.icmp_unsigned("==", bits, ir.Constant(bits.type, -1)))
        return reduce(self.builder.and_, scalars)

    def _along(self, size: int, access: int | None, like: ir.Value) -> ir.Value:
        """By how much the distances of neighbours of so many bytes grow from lane to lane, apart from what an
        access moves itself."""
        step = I64(size) if access is None else self.builder.sub(I64(size), self.steps[access])
        lanes = vector_constant(like.type.element, range(self.lanes))
        return self.builder.mul(
            splat(self.builder, self.code.narrowed(step, like.type.element), self.lanes), lanes
        )
