"""The common part of all kernel patterns: positions in memory, values by level of the loops, loads
and stores.

A function has the form kernel(begin, end, parameters, buffers, room) and works off the items begin..end.
Values are computed at the level of the loops where they change: scalars above the innermost loop, vectors in
it (and, where lanes run over groups, vectors for what belongs to a group). Element-wise kernels are in
`pointwise_code`; `row_code` and `column_code` have those that reduce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from llvmlite import ir

from opendml.compiler.kernel import number_of
from opendml.program.node import (
    PLACINGS,
    REDUCTIONS,
    SCANS,
    Node,
    Operation,
    always_needed,
    ordered,
)
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.language import Walk
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu.code import I64, POINTER, Body, Code
from opendml.targets.cpu.expression import emit
from opendml.targets.cpu.pattern import CpuAccess, CpuPattern, ParameterTable
from opendml.targets.cpu.values import any_lane, is_vector, llvm_type, splat, vector_constant

Values = dict[int, ir.Value]
"""Emitted nodes by identity."""

Pointers = Sequence[ir.Value]
"""Where each access (loads, then stores) stands."""

KnownAt = Callable[[ir.Value], Values]
Stride = Callable[[int, int], int]

ROOM_SYMBOL = "room_bytes"
"""The constant beside a kernel that says how much room a thread needs for it."""
_ROOM_ALIGNMENT = 128
"""Bytes of the widest vector."""
_COUNTED_ACCESSES = 6
"""Of how many accesses that move LLVM may count addresses up rather than compute them. The time in which it
looks for the best way to do so grows with their square: of ten it is most of the compilation, for code no
faster."""


class KernelCode:
    """Emits the function of a pattern, whose functions are expanded."""

    def __init__(
        self,
        function: ir.Function,
        pattern: CpuPattern,
        lanes: int,
        code: Code | None = None,
        first_parameter: int = 0,
    ) -> None:
        """`code`: what the function consists of already, if this pattern is a part of it; the pattern's
        parameters lie from `first_parameter` on."""
        self.function, self.pattern, self.lanes = function, pattern, lanes
        self.code = code or Code(function, lanes)
        self.builder = self.code.builder
        self.accesses: tuple[CpuAccess, ...] = (*pattern.loads, *pattern.stores)
        self.layout = ParameterTable(pattern)
        self.nodes = ordered(pattern.values)
        self.levels = self._levels()
        self.reductions = {id(node) for node in self.nodes if node.operation in REDUCTIONS}
        self.needed = self.below_reductions(pattern.values)
        parameters, self.buffers, self._room = function.args[2:]
        self.parameters = self.code.once(lambda: self.code.offset(parameters, I64(8 * first_parameter)))
        self.room_bytes = 0
        self._uniforms: dict[tuple[int, int], ir.Value] = {}
        self._scalars = set[int]()
        """The identities of the nodes that are among the uniforms as scalars."""
        self._bundled = {bundle[0]: len(bundle) for bundle in pattern.bundles}
        """How many elements bundles have, by their first access."""
        self._streams = True
        """Whether bundles that are streamed lie so that they can be."""
        (
            self.inner,
            self.block,
            self.blocks,
            self.units,
            self.chunk,
            self.chunks,
            self.elements,
            self.groups,
        ) = (self.parameter(index) for index in range(8))
        self.group_counts = [self.parameter(self.layout.group_count(i)) for i in range(pattern.groups)]
        self.row_counts = [self.parameter(self.layout.row_count(i)) for i in range(pattern.rows)]
        self.bases = [self._base(access) for access in range(len(self.accesses))]
        self.steps = [
            I64(access.type.bytes)
            if access.step is Step.CONTIGUOUS
            else self.parameter(self.layout.inner_stride(position))
            for position, access in enumerate(self.accesses)
        ]

    def emit(self) -> None:
        """The loop over the items."""
        self.items(self.function.args[0], self.function.args[1])
        self.builder.ret_void()
        room_bytes = ir.GlobalVariable(self.function.module, I64, ROOM_SYMBOL)
        room_bytes.initializer, room_bytes.global_constant = I64(self.room_bytes), True

    def items(self, first: ir.Value, last: ir.Value) -> None:
        """Some items."""
        with self.code.loop(first, last) as item:
            self.item(item)

    def item(self, item: ir.Value) -> None:
        """One item."""
        raise NotImplementedError

    def room(self, type: ScalarType, count: int) -> ir.Value:
        """Room for `count` values, in the arena and for the calling thread alone: what is large may not lie
        on stacks, which may be small."""
        place = self.code.offset(self._room, I64(self.room_bytes))
        self.room_bytes += -(-count * type.bytes // _ROOM_ALIGNMENT) * _ROOM_ALIGNMENT
        return place

    def rest_of_room(self) -> ir.Value:
        """The room that the launch asks for beside what `room` gives, which gives none any more."""
        return self.code.offset(self._room, I64(self.room_bytes))

    # Positions

    def parameter(self, index: int) -> ir.Value:
        """One of the kernel's parameters."""
        return self.code.element(self.parameters, index)

    def buffer(self, index: ir.Value) -> ir.Value:
        """The address of a buffer."""
        return self.builder.load(self.builder.gep(self.buffers, [index], source_etype=I64), typ=POINTER)

    def arena(self) -> ir.Value:
        """Where the room in the arena lies that a kernel's launches share."""
        buffer = self.buffer(self.parameter(ParameterTable.PARTIAL_BUFFER))
        return self.code.offset(buffer, self.parameter(ParameterTable.PARTIAL_OFFSET))

    def block_range(self, unit: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The row (or group) of a unit, and the range of the innermost loop in its block."""
        row, block = self.code.split(unit, [I64(0), self.blocks])
        start = self.builder.mul(block, self.block)
        return row, start, self.code.minimum(self.builder.add(start, self.block), self.inner)

    def chunk_range(self, chunk: ir.Value, count: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The part of `count` things that a chunk has."""
        first = self.builder.mul(chunk, self.chunk)
        return first, self.code.minimum(self.builder.add(first, self.chunk), count)

    def group_pointers(self, group: ir.Value) -> Pointers:
        """Where the accesses stand at the first element of a group."""
        return self._moved(self.bases, self.code.split(group, self.group_counts), self.layout.group_stride)

    def row_pointers(self, pointers: Pointers, row: ir.Value) -> Pointers:
        """Where the accesses stand at the first element of a row, from where they stand in its group."""
        return self._moved(pointers, self.code.split(row, self.row_counts), self.layout.row_stride)

    def walk_groups(
        self, first: ir.Value, last: ir.Value
    ) -> AbstractContextManager[tuple[ir.Value, Pointers]]:
        """A loop over groups: yields the group and where the accesses stand there."""
        return self._walk(self.bases, self.group_counts, self.layout.group_stride, first, last)

    def walk_rows(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> AbstractContextManager[tuple[ir.Value, Pointers]]:
        """A loop over rows of the group at `pointers`."""
        return self._walk(pointers, self.row_counts, self.layout.row_stride, first, last)

    @contextmanager
    def _walk(
        self, origin: Pointers, counts: list[ir.Value], stride: Stride, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[ir.Value, Pointers]]:
        """A loop over the positions first..last of nested loops. The running index is divided once, then
        counted up."""
        indices = [self.code.local(I64, index) for index in self.code.split(first, counts)]
        start = self._moved(origin, [self.code.get(index) for index in indices], stride)
        pointers = [self.code.local(POINTER, pointer) for pointer in start]
        with self.code.loop(first, last) as position:
            yield position, [self.code.get(pointer) for pointer in pointers]
            self._advance(pointers, indices, counts, stride)

    def _advance(
        self, pointers: list[ir.Value], indices: list[ir.Value], counts: list[ir.Value], stride: Stride
    ) -> None:
        """One step of the innermost of the loops, and where it is at its end, of those around it."""
        if indices:
            numbers = self._strides(pointers, len(indices) - 1, stride)
            # Every step needs these: they are read once, before all.
            distances = [self.code.once(partial(self.parameter, number)) for number in numbers]
            self._step(pointers, indices, counts, stride, distances)

    def _step(
        self,
        pointers: list[ir.Value],
        indices: list[ir.Value],
        counts: list[ir.Value],
        stride: Stride,
        distances: list[ir.Value],
    ) -> None:
        """One step of a loop by these distances; where it is at its end, one of the loop around it."""
        loop = len(indices) - 1
        following = self.builder.add(self.code.get(indices[loop]), I64(1))
        self.code.set(indices[loop], following)
        self._move(pointers, distances)
        if loop:
            with self.builder.if_then(self.builder.icmp_signed("==", following, counts[loop]), likely=False):
                self.code.set(indices[loop], I64(0))
                back = self.builder.neg(counts[loop])
                self._move(pointers, [self.builder.mul(back, each) for each in distances])
                outer = [self.parameter(number) for number in self._strides(pointers, loop - 1, stride)]
                self._step(pointers, indices[:loop], counts[:loop], stride, outer)

    def _strides(self, pointers: Pointers, loop: int, stride: Stride) -> list[int]:
        """The parameters that say how far a step of a loop moves each access."""
        return [stride(access, loop) for access in range(len(pointers))]

    def _move(self, pointers: list[ir.Value], distances: list[ir.Value]) -> None:
        for pointer, distance in zip(pointers, distances, strict=True):
            self.code.set(pointer, self.code.offset(self.code.get(pointer), distance))

    def _moved(self, pointers: Pointers, indices: Sequence[ir.Value], stride: Stride) -> Pointers:
        moved = list(pointers)
        for access in range(len(moved)):
            for loop, index in enumerate(indices):
                step = self.parameter(stride(access, loop))
                moved[access] = self.code.offset(moved[access], self.builder.mul(index, step))
        return moved

    def _base(self, access: int) -> ir.Value:
        if self.accesses[access].counter:
            return self.builder.inttoptr(self.parameter(self.layout.offset(access)), POINTER)
        buffer = self.buffer(self.parameter(self.layout.buffer(access)))
        return self.code.offset(buffer, self.parameter(self.layout.offset(access)))

    # Values

    def _levels(self) -> dict[int, Level]:
        levels: dict[int, Level] = {}
        for node in self.nodes:
            if node.operation is Operation.SOURCE and not node.operands:
                levels[id(node)] = self.pattern.loads[number_of(node)].level
            elif node.operation in REDUCTIONS:
                levels[id(node)] = Level.STATISTIC
            elif node.operation in SCANS | PLACINGS:
                levels[id(node)] = Level.ELEMENT
            else:
                below = {levels[id(operand)] for operand in node.operands}
                if node.operation is Operation.SOURCE:
                    below.add(self.pattern.loads[number_of(node)].level)
                # Where lanes run over groups, a value of a group and a row changes with every element.
                of_group = below & {Level.STATISTIC, Level.GROUP}
                mixed = self.pattern.mode.columns and of_group and Level.ROW in below
                levels[id(node)] = Level.ELEMENT if mixed else max(below, default=Level.CONSTANT)
        return levels

    def below_reductions(self, roots: Iterable[Node]) -> set[int]:
        """The nodes that `roots` need apart from what is reduced: the reductions are known by then."""
        return {id(node) for node in ordered(roots, self.reductions)}

    def evaluate(
        self,
        level: Level,
        lanes: int,
        pointers: Pointers,
        known: Values,
        index: ir.Value | None = None,
        mask: ir.Value | None = None,
        roots: Iterable[Node] | None = None,
    ) -> Values:
        """Return `known`, and the values of the level's nodes that `roots` (None: the results) still need."""
        values = dict(known)
        wanted = always_needed(self.pattern.values if roots is None else roots, self.reductions | set(known))
        nodes = (node for node in self.nodes if self.levels[id(node)] is level)
        _Evaluation(self, lanes, pointers, index, mask).walk(nodes, wanted, values)
        return values

    def distances(self, node: Node) -> list[Node]:
        """What adds up to how many bytes further on the elements of a load lie: parts that change at outer
        levels apart, as they move all elements alike."""
        parts, pending = [], list(node.operands[1:])
        while pending:
            part = pending.pop()
            if part.operation is Operation.ADD and self.levels[id(part)] is Level.ELEMENT:
                pending += part.operands
            else:
                parts.append(part)
        return parts

    def value(self, node: Node, lanes: int, values: Values) -> ir.Value:
        """An emitted node, a constant, or what is made of constants and parameters alone."""
        if node.operation is Operation.CONSTANT:
            return emit(self.builder, node, lanes, [])
        return self._uniform(node, lanes) if self.levels[id(node)] is Level.CONSTANT else values[id(node)]

    def _uniform(self, node: Node, lanes: int) -> ir.Value:
        """What is made of constants and parameters alone: computed once, before all loops."""
        uniforms, once = self._uniforms, self.code.once
        if (id(node), lanes) in uniforms:
            return uniforms[id(node), lanes]
        if lanes > 1:
            scalar = self._uniform(node, 1)
            return uniforms.setdefault((id(node), lanes), once(lambda: splat(self.builder, scalar, lanes)))
        for each in ordered([node], self._scalars):
            # A constant is part of the instructions that use it.
            if each.operation is not Operation.CONSTANT:
                uniforms[id(each), 1] = once(partial(self._computed_once, each))
                self._scalars.add(id(each))
        return uniforms[id(node), 1]

    def _computed_once(self, node: Node) -> ir.Value:
        operands = [self.value(operand, 1, {}) for operand in node.operands]
        if node.operation is Operation.PARAMETER:
            place = self.layout.number(number_of(node))
            return self.code.element(self.parameters, place, llvm_type(node.type, 1))
        return emit(self.builder, node, 1, operands)

    def loaded(
        self,
        node: Node,
        lanes: int,
        pointers: Pointers,
        values: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> Values:
        """A load, and those of the elements between if it is one of a bundle."""
        bundle = self._bundle_of(node)
        if not bundle or index is None:
            return {id(node): self.load(node, lanes, pointers, values, index, mask)}
        address, _ = self.place(bundle[0], lanes, pointers, values, index)
        results = self.code.load_bundle(address, len(bundle), node.type, mask)
        return {id(each): result for each, result in zip(bundle, results, strict=True)}

    def _bundle_of(self, node: Node) -> list[Node]:
        """The loads that together have all elements along the innermost loop, if a node is one of such."""
        for bundle in self.pattern.bundles:
            if number_of(node) in bundle:
                loads: dict[int, list[Node]] = {number: [] for number in bundle}
                for each in self.nodes:
                    if each.operation is Operation.SOURCE and number_of(each) in loads:
                        loads[number_of(each)].append(each)
                # One that is read under several guards is several loads.
                if all(len(each) == 1 and self.is_plain(each[0]) for each in loads.values()):
                    return [each for (each,) in loads.values()]
        return []

    def is_plain(self, node: Node) -> bool:
        """Whether a load reads all elements along the innermost loop, by its step."""
        return not node.operands

    def load(
        self,
        node: Node,
        lanes: int,
        pointers: Pointers,
        values: Values,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> ir.Value:
        """What a SOURCE reads at an index of the innermost loop; a scalar where it does not move along it.
        Where its guard is false nothing is read, and the value is 0."""
        access = number_of(node)
        if self.accesses[access].counter:
            return self._count(access, lanes, pointers, index)
        address, distance = self.place(node, lanes, pointers, values, index)
        lanes = lanes if self.moves(access, index) else 1
        guard = self.value(node.operands[0], lanes, values) if node.operands else None
        if guard is None or is_vector(guard):
            return self.read(access, lanes, address, mask, guard, distance)
        before = self.builder.block
        with self.builder.if_then(guard):
            value = self.read(access, lanes, address, mask, None, distance)
            inside = self.builder.block
        result = self.builder.phi(value.type)
        result.add_incoming(ir.Constant(value.type, None), before)
        result.add_incoming(value, inside)
        return result

    def moves(self, access: int, index: ir.Value | None) -> bool:
        """Whether an access moves along the innermost loop, if at an index of it."""
        return index is not None and self.accesses[access].step is not Step.NONE

    def place(
        self, node: Node, lanes: int, pointers: Pointers, values: Values, index: ir.Value | None
    ) -> tuple[ir.Value, ir.Value | None]:
        """Where a load reads its first element, and by how many bytes further on elements lie if that differs
        between lanes."""
        access = number_of(node)
        address = pointers[access]
        if self.moves(access, index):
            address = self.code.offset(address, self.builder.mul(index, self.steps[access]))
        vectors = []
        for each in self.distances(node):
            distance = self.value(each, lanes, values)
            if is_vector(distance):
                vectors.append(distance)
            else:
                address = self.code.offset(address, distance)
        return address, self.code.total(vectors)

    def read(
        self,
        access: int,
        lanes: int,
        address: ir.Value,
        mask: ir.Value | None,
        guard: ir.Value | None,
        distance: ir.Value | None,
    ) -> ir.Value:
        """The elements of an access from an address on, or the one there; guard and distance are vectors."""
        type, step = self.accesses[access].type, self.accesses[access].step
        if guard is None and distance is None and lanes == 1:
            return self.code.load(address, type, 1)
        if guard is not None:
            mask = guard if mask is None else self.builder.and_(mask, guard)
        if distance is None and lanes > 1 and step is Step.CONTIGUOUS:
            return self.code.load(address, type, lanes, mask)
        if distance is None and lanes > 1 and step is Step.DOUBLE:
            return self.code.load_every_other(address, type, mask)
        return self.code.gather(address, self.steps[access] if lanes > 1 else None, type, mask, distance)

    def _count(self, access: int, lanes: int, pointers: Pointers, index: ir.Value | None) -> ir.Value:
        """The offsets themselves of an access that is a counter, in its type."""
        type = llvm_type(self.accesses[access].type, 1)
        first, step = self.builder.ptrtoint(pointers[access], I64), self.steps[access]
        moves = index is not None and self.accesses[access].step is not Step.NONE
        if moves:
            first = self.builder.add(first, self.builder.mul(index, step))
        first, step = (self.code.narrowed(each, type) for each in (first, step))
        if not moves or lanes == 1:
            return first
        number = vector_constant(type, range(lanes))
        along = self.builder.mul(splat(self.builder, step, lanes), number)
        return self.builder.add(splat(self.builder, first, lanes), along)

    def store(
        self, access: int, value: ir.Value, pointers: Pointers, index: ir.Value | None, mask: ir.Value | None
    ) -> None:
        """Writes a scalar, or a vector at an index of the innermost loop."""
        pattern = self.accesses[access]
        if index is None:
            self.code.store(pointers[access], value, pattern.type)
            return
        address = self.code.offset(pointers[access], self.builder.mul(index, self.steps[access]))
        if pattern.step is Step.DOUBLE and mask is None:
            self.code.store_every_other(address, value, pattern.type)
        elif pattern.step is not Step.CONTIGUOUS:
            self.code.scatter(address, self.steps[access], value, pattern.type, mask)
        elif pattern.streamed and mask is None:
            self.code.stream(address, value, pattern.type)
        else:
            self.code.store(address, value, pattern.type, mask)

    def stores(self, of_groups: bool) -> list[tuple[int, Node]]:
        """The stores that happen once per group, or those that happen per element: access and value."""
        first = len(self.pattern.loads)
        pairs = [(first + position, root) for position, root in enumerate(self.pattern.values)]
        return [
            (access, root)
            for access, root in pairs
            if (self.accesses[access].level is Level.GROUP) == of_groups
        ]

    def store_group(self, pointers: Pointers, known: Values) -> None:
        """Stores the results that are one value for a group."""
        for access, root in self.stores(of_groups=True):
            self.store(access, self.value(root, 1, known), pointers, None, None)

    def map_block(self, pointers: Pointers, known: Values, start: ir.Value, stop: ir.Value) -> None:
        """The element-wise stores of one block of a row, from the values of its group."""
        row_values = self.evaluate(Level.ROW, 1, pointers, known)
        self.store_range(pointers, start, stop, lambda index: row_values)

    def store_range(self, pointers: Pointers, start: ir.Value, stop: ir.Value, known: KnownAt) -> None:
        """The element-wise stores of a range of the innermost loop; `known` gives the values of outer levels
        at an index."""

        def store(index: ir.Value, mask: ir.Value | None) -> None:
            self.store_vector(pointers, known(index), index, mask)

        self.store_vectors(pointers, start, stop, store)

    def store_vectors(self, pointers: Pointers, start: ir.Value, stop: ir.Value, store: Body) -> None:
        """Stores all vectors of a range by `store`, what is streamed from a boundary on. A bundle of which no
        element begins at one is written through the caches."""
        if self.pattern.row_steps:
            for index in range(0, self.pattern.row_steps, self.lanes):
                store(I64(index), None)
            return
        if sum(access.step is not Step.NONE for access in self.accesses) > _COUNTED_ACCESSES:
            store = self._at_hidden_index(store)
        streamed = next((number for number, access in enumerate(self.accesses) if access.streamed), None)
        if streamed is None:
            self.code.vector_loop(start, stop, store)
            return
        width = self._bundled.get(streamed, 1)
        if width == 1:
            self.code.vector_loop(self.up_to_boundary(pointers, start, stop, store), stop, store)
            return
        size = width * self.accesses[streamed].type.bytes
        odd = self.builder.and_(self.builder.ptrtoint(pointers[streamed], I64), I64(size - 1))
        with self.builder.if_else(self.builder.icmp_signed("==", odd, I64(0))) as (even, other):
            with even:
                self.code.vector_loop(self.up_to_boundary(pointers, start, stop, store), stop, store)
            with other:
                self._streams = False
                self.code.vector_loop(start, stop, store)
                self._streams = True

    def _at_hidden_index(self, body: Body) -> Body:
        """A body whose addresses are computed from its index, each on its own."""
        return lambda index, mask: body(self.code.hidden(index), mask)

    def store_vector(self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> None:
        """The element-wise stores of one vector."""
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask)
        results = {
            access: splat(self.builder, self.value(root, self.lanes, values), self.lanes)
            for access, root in self.stores(of_groups=False)
        }
        for bundle in self.pattern.bundles:
            first = bundle[0]
            if first in results:
                address = self.code.offset(pointers[first], self.builder.mul(index, self.steps[first]))
                together = [results.pop(access) for access in bundle]
                streamed = self._streams and self.accesses[first].streamed
                self.code.store_bundle(address, together, self.accesses[first].type, mask, streamed)
        for access, value in results.items():
            self.store(access, value, pointers, index, mask)

    def up_to_boundary(self, pointers: Pointers, start: ir.Value, stop: ir.Value, store: Body) -> ir.Value:
        """Stores the elements before the first full vector that can be streamed; returns the index behind
        them."""
        streamed = [number for number, access in enumerate(self.accesses) if access.streamed]
        if not streamed:
            return start
        access = streamed[0]
        address = self.code.offset(pointers[access], self.builder.mul(start, self.steps[access]))
        width = self._bundled.get(access, 1)
        ahead = self.code.elements_to_boundary(address, self.accesses[access].type, width)
        head = self.code.minimum(ahead, self.builder.sub(stop, start))
        with self.builder.if_then(self.builder.icmp_signed("!=", head, I64(0)), likely=False):
            store(start, self.code.first_lanes(head))
        return self.builder.add(start, head)


class _Evaluation(Walk[ir.Value]):
    """The walk over the nodes of one level, at a position of the loops."""

    def __init__(
        self,
        code: KernelCode,
        lanes: int,
        pointers: Pointers,
        index: ir.Value | None,
        mask: ir.Value | None,
    ) -> None:
        self._code, self._builder, self._lanes = code, code.builder, lanes
        self._pointers, self._index, self._mask = pointers, index, mask

    def is_leaf(self, node: Node) -> bool:
        """Return whether a node is a number, or computed from numbers before all loops."""
        return self._code.levels[id(node)] is Level.CONSTANT

    def leaf(self, node: Node) -> ir.Value:
        """Return such a number."""
        return self._code.value(node, self._lanes, {})

    def load(self, node: Node, values: Values) -> Values:
        """Emit a load, and those of its bundle."""
        return self._code.loaded(node, self._lanes, self._pointers, values, self._index, self._mask)

    def write(self, node: Node, operands: list[ir.Value]) -> ir.Value:
        """Emit an operation."""
        return emit(self._builder, node, self._lanes, operands)

    def branch(self, node: Node, values: Values) -> ir.Value:
        """Emit a rare selection, which computes its second operand only if the condition holds in a lane."""
        builder, lanes = self._builder, self._lanes
        condition, wanted, usual = node.operands
        mask = splat(builder, self.value(condition, values), lanes)
        common = splat(builder, self.value(usual, values), lanes)
        before = builder.block
        with builder.if_then(any_lane(builder, mask, lanes), likely=False):
            inside = self.inside_branch(node, values)
            chosen = splat(builder, self.value(wanted, inside), lanes)
            selected = builder.select(mask, chosen, common)
            after = builder.block
        result = builder.phi(common.type)
        result.add_incoming(common, before)
        result.add_incoming(selected, after)
        return result
