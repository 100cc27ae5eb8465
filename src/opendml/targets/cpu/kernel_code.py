"""The base of the code of all kernels: addresses of accesses, values by level of the loops, and stores.

A function has the form kernel(begin, end, parameters, buffers, scratch) and computes the items begin..end.
Values are computed at the level of the loops where they change: as scalars above the innermost loop, and as
vectors in it. Where lanes run over groups, the values of a group are vectors too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from opendml.compiler.kernel import number_of
from opendml.program.node import REDUCTIONS, Node, Operation, always_needed, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.language import Walk
from opendml.targets.common.pattern import Level, Step, levels_of
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, POINTER, Body, Code
from opendml.targets.cpu.expression import emit
from opendml.targets.cpu.loads import At, Loads, Pointers, Values
from opendml.targets.cpu.native import SCRATCH_SYMBOL
from opendml.targets.cpu.pattern import CpuAccess, CpuPattern, ParameterTable
from opendml.targets.cpu.values import any_lane, llvm_type, splat

KnownAt = Callable[[ir.Value], Values]
"""Returns the values of outer levels at an index of the innermost loop."""
Stride = Callable[[int, int], int]
"""Returns which parameter is the stride of an access along a loop."""


_SCRATCH_ALIGNMENT = 128
"""Bytes of the widest vector."""
_COUNTED_ACCESSES = 6
"""Moving accesses for which LLVM may count addresses up rather than compute them. The time in which it looks
for the best way to do so grows with their square: of ten it is most of the compilation, for code no
faster."""


class KernelCode:
    """Emits the function of a pattern, whose functions are expanded.

    Args:
        code: the function to fill, or what it consists of already, if this pattern is a part of it.
        pattern: what the kernel computes.
        first_parameter: the position of the pattern's first parameter.
    """

    def __init__(self, code: Code, pattern: CpuPattern, first_parameter: int = 0) -> None:
        self.code, self.pattern = code, pattern
        self.builder, self.function, self.lanes = code.builder, code.function, code.lanes
        self.accesses: tuple[CpuAccess, ...] = (*pattern.loads, *pattern.stores)
        self.layout = ParameterTable(pattern)
        self.nodes = ordered(pattern.values)
        self.levels = levels_of(self.nodes, [load.level for load in pattern.loads], pattern.mode.columns)
        self.reductions = {id(node) for node in self.nodes if node.operation in REDUCTIONS}
        self.needed = self.below_reductions(pattern.values)
        parameters, self.buffers, self._thread_scratch = code.function.args[2:]
        self.parameters = self.code.once(lambda: self.code.offset(parameters, I64(8 * first_parameter)))
        self.scratch_bytes = 0
        self._uniforms: dict[tuple[int, int], ir.Value] = {}
        """Emitted nodes that are made of constants and parameters, by identity and lanes."""
        self._scalars = set[int]()
        """The identities of the nodes that are among the uniforms as scalars."""
        self._bundled = {bundle[0]: len(bundle) for bundle in pattern.bundles}
        """The number of elements of each bundle, by its first access."""
        self._streams = True
        """True where streamed bundles are aligned for it in the version at hand."""
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
        self.loads = Loads(self)

    def emit(self) -> None:
        """Emit the function: the loop over the items."""
        self.items(self.function.args[0], self.function.args[1])
        self.builder.ret_void()
        size = I64(self.scratch_bytes)
        ir.GlobalVariable(self.function.module, size, SCRATCH_SYMBOL, "constant", alignment=8)

    def items(self, first: ir.Value, last: ir.Value) -> None:
        """Emit the items first..last."""
        with self.code.loop(first, last) as item:
            self.item(item)

    def item(self, item: ir.Value) -> None:
        """Emit one item."""
        raise NotImplementedError

    def reserve(self, type: ScalarType, count: int) -> ir.Value:
        """Reserve scratch of the calling thread for `count` values. It lies in the arena, since stacks may be
        small."""
        address = self.code.offset(self._thread_scratch, I64(self.scratch_bytes))
        self.scratch_bytes += -(-count * type.bytes // _SCRATCH_ALIGNMENT) * _SCRATCH_ALIGNMENT
        return address

    def launch_scratch(self) -> ir.Value:
        """Return the scratch that the launch itself asks for. Call it after all calls of `reserve`."""
        return self.code.offset(self._thread_scratch, I64(self.scratch_bytes))

    # Addresses

    def parameter(self, index: int) -> ir.Value:
        """Return one of the kernel's parameters."""
        return self.code.element(self.parameters, index)

    def buffer(self, index: ir.Value) -> ir.Value:
        """Return the address of a buffer."""
        return self.builder.load(self.builder.gep(self.buffers, [index], source_etype=I64), typ=POINTER)

    def arena(self) -> ir.Value:
        """Return the address of the memory that the launches of a kernel share."""
        buffer = self.buffer(self.parameter(ParameterTable.PARTIAL_BUFFER))
        return self.code.offset(buffer, self.parameter(ParameterTable.PARTIAL_OFFSET))

    def block_range(self, unit: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Return the row (or group) of a unit, and the range of the innermost loop in its block."""
        row, block = self.code.split(unit, [I64(0), self.blocks])
        start = self.builder.mul(block, self.block)
        return row, start, self.code.minimum(self.builder.add(start, self.block), self.inner)

    def chunk_range(self, chunk: ir.Value, count: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the range of a chunk among `count` units."""
        first = self.builder.mul(chunk, self.chunk)
        return first, self.code.minimum(self.builder.add(first, self.chunk), count)

    def group_pointers(self, group: ir.Value) -> Pointers:
        """Return the addresses of the accesses at the first element of a group."""
        return self.moved(self.bases, self.code.split(group, self.group_counts), self.layout.group_stride)

    def row_pointers(self, pointers: Pointers, row: ir.Value) -> Pointers:
        """Return the addresses of the accesses at the first element of a row, given those of its group."""
        return self.moved(pointers, self.code.split(row, self.row_counts), self.layout.row_stride)

    def walk_groups(
        self, first: ir.Value, last: ir.Value
    ) -> AbstractContextManager[tuple[ir.Value, Pointers]]:
        """Loop over groups. Yields the group and the addresses of the accesses there."""
        return self._walk(self.bases, self.group_counts, self.layout.group_stride, first, last)

    def walk_rows(
        self, pointers: Pointers, first: ir.Value, last: ir.Value
    ) -> AbstractContextManager[tuple[ir.Value, Pointers]]:
        """Loop over rows of the group at `pointers`. Yields the row and the addresses of the accesses."""
        return self._walk(pointers, self.row_counts, self.layout.row_stride, first, last)

    @contextmanager
    def _walk(
        self, origin: Pointers, counts: list[ir.Value], stride: Stride, first: ir.Value, last: ir.Value
    ) -> Iterator[tuple[ir.Value, Pointers]]:
        """Loop over the positions first..last of nested loops."""
        running = RunningPosition(self, origin, counts, stride, first)
        with self.code.loop(first, last) as position:
            yield position, running.pointers()
            running.advance()

    def moved(
        self,
        pointers: Pointers,
        indices: Sequence[ir.Value],
        stride: Stride,
        alike: Sequence[int] | None = None,
    ) -> Pointers:
        """Return the addresses of the accesses at indices of nested loops. The distances of accesses that
        move `alike` are computed once."""
        if alike is None:
            moved = list(pointers)
            for access in range(len(moved)):
                for loop, index in enumerate(indices):
                    step = self.parameter(stride(access, loop))
                    moved[access] = self.code.element_at(moved[access], index, step)
            return moved
        if not indices:
            return pointers
        distances = {}
        for first in set(alike):
            steps = [self.parameter(stride(first, loop)) for loop in range(len(indices))]
            distances[first] = self.code.sum(map(self.builder.mul, indices, steps))
        return [
            self.code.offset(pointer, distances[first])
            for pointer, first in zip(pointers, alike, strict=True)
        ]

    def _base(self, access: int) -> ir.Value:
        if self.accesses[access].counter:
            return self.builder.inttoptr(self.parameter(self.layout.offset(access)), POINTER)
        buffer = self.buffer(self.parameter(self.layout.buffer(access)))
        return self.code.offset(buffer, self.parameter(self.layout.offset(access)))

    # Values

    def below_reductions(self, roots: Iterable[Node]) -> set[int]:
        """Return the nodes that `roots` need when reductions are known."""
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
        """Return `known`, and the nodes of a level that `roots` (None: the results) still need."""
        values, at = dict(known), At(pointers, lanes, index, mask)
        wanted = always_needed(self.pattern.values if roots is None else roots, self.reductions | set(known))
        nodes = (node for node in self.nodes if self.levels[id(node)] is level)
        NodeEvaluation(self, at).walk(nodes, wanted, values)
        return values

    def value(self, node: Node, lanes: int, values: Values) -> ir.Value:
        """Return an emitted node, a constant, or a uniform."""
        if node.operation is Operation.CONSTANT:
            return emit(self.builder, node, lanes, [])
        return self._uniform(node, lanes) if self.levels[id(node)] is Level.CONSTANT else values[id(node)]

    def vector(self, node: Node, lanes: int, values: Values) -> ir.Value:
        """Return an emitted node in every lane."""
        return splat(self.builder, self.value(node, lanes, values), lanes)

    def _uniform(self, node: Node, lanes: int) -> ir.Value:
        """Return a node that is made of constants and parameters, computed once before all loops."""
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
            position = self.layout.number(number_of(node))
            return self.code.element(self.parameters, position, llvm_type(node.type, 1))
        return emit(self.builder, node, 1, operands)

    # Stores

    def store(
        self, access: int, value: ir.Value, pointers: Pointers, index: ir.Value | None, mask: ir.Value | None
    ) -> None:
        """Store a scalar, or a vector at an index of the innermost loop."""
        pattern = self.accesses[access]
        if index is None:
            self.code.store(pointers[access], value, pattern.type)
            return
        address = self.code.element_at(pointers[access], index, self.steps[access])
        if pattern.step is Step.DOUBLE and mask is None:
            self.code.store_every_other(address, value, pattern.type)
        elif pattern.step is not Step.CONTIGUOUS:
            self.code.scatter(address, self.steps[access], value, pattern.type, mask)
        elif pattern.streamed and mask is None:
            self.code.stream(address, value, pattern.type)
        else:
            self.code.store(address, value, pattern.type, mask)

    def stores(self, of_groups: bool) -> list[tuple[int, Node]]:
        """Return the stores that happen once per group, or those per element: access and value."""
        first = len(self.pattern.loads)
        return [
            (access, root)
            for access, root in enumerate(self.pattern.values, first)
            if (self.accesses[access].level is Level.GROUP) == of_groups
        ]

    def store_group(
        self,
        pointers: Pointers,
        known: Values,
        lanes: int = 1,
        index: ir.Value | None = None,
        mask: ir.Value | None = None,
    ) -> None:
        """Store the results of a group, or of a vector of groups."""
        for access, root in self.stores(of_groups=True):
            self.store(access, self.vector(root, lanes, known), pointers, index, mask)

    def map_block(self, pointers: Pointers, known: Values, start: ir.Value, stop: ir.Value) -> None:
        """Store the elements of one block of a row, given the values of its group."""
        row_values = self.evaluate(Level.ROW, 1, pointers, known)
        self.store_range(pointers, start, stop, lambda index: row_values)

    def store_range(self, pointers: Pointers, start: ir.Value, stop: ir.Value, known: KnownAt) -> None:
        """Store the elements of a range of the innermost loop."""

        def store(index: ir.Value, mask: ir.Value | None) -> None:
            self.loads.in_versions(
                At(pointers, self.lanes, index, mask),
                known(index),
                lambda values: self.store_vector(pointers, values, index, mask),
            )

        self.store_vectors(pointers, start, stop, store)

    def store_vectors(self, pointers: Pointers, start: ir.Value, stop: ir.Value, store: Body) -> None:
        """Store all vectors of a range by `store`, from an aligned one on if results are streamed. If no
        element of a streamed bundle is aligned, the bundle is not streamed."""
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
        """Return a body whose addresses are computed from its index, each on its own."""
        return lambda index, mask: body(self.code.hidden(index), mask)

    def store_vector(self, pointers: Pointers, known: Values, index: ir.Value, mask: ir.Value | None) -> None:
        """Store one vector of elements."""
        values = self.evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask)
        self.store_values(pointers, values, index, mask)

    def store_values(
        self, pointers: Pointers, values: Values, index: ir.Value, mask: ir.Value | None
    ) -> None:
        """Store one vector of results, whose values are known."""
        results = {
            access: self.vector(root, self.lanes, values) for access, root in self.stores(of_groups=False)
        }
        for bundle in self.pattern.bundles:
            first = bundle[0]
            if first in results:
                address = self.code.element_at(pointers[first], index, self.steps[first])
                together = [results.pop(access) for access in bundle]
                streamed = self._streams and self.accesses[first].streamed
                self.code.store_bundle(address, together, self.accesses[first].type, mask, streamed)
        for access, value in results.items():
            self.store(access, value, pointers, index, mask)

    def up_to_boundary(self, pointers: Pointers, start: ir.Value, stop: ir.Value, store: Body) -> ir.Value:
        """Store the elements before the first full vector that can be streamed. Return the index behind
        them."""
        streamed = [number for number, access in enumerate(self.accesses) if access.streamed]
        if not streamed:
            return start
        access = streamed[0]
        address = self.code.element_at(pointers[access], start, self.steps[access])
        width = self._bundled.get(access, 1)
        ahead = self.code.elements_to_boundary(address, self.accesses[access].type, width)
        head = self.code.minimum(ahead, self.builder.sub(stop, start))
        with self.builder.if_then(self.builder.icmp_signed("!=", head, I64(0)), likely=False):
            store(start, self.code.first_lanes(head))
        return self.builder.add(start, head)


class RunningPosition:
    """A position in nested loops that is counted up: the indices of the loops, and the addresses of accesses.

    The running index is divided once. Each step then adds strides.

    Args:
        kernel: the kernel whose accesses move.
        origin: their addresses at index 0 of all loops.
        counts: the steps of the loops, outermost first.
        stride: the parameter that is the stride of an access along a loop.
        first: the running index of the first position.
        still: the number of innermost loops along which no access moves.
    """

    def __init__(
        self,
        kernel: KernelCode,
        origin: Pointers,
        counts: Sequence[ir.Value],
        stride: Stride,
        first: ir.Value,
        still: int = 0,
    ) -> None:
        self._kernel, self._code, self._counts, self._stride = kernel, kernel.code, counts, stride
        self._moving = len(counts) - still
        self._indices = [self._code.local(I64, index) for index in self._code.split(first, counts)]
        start = kernel.moved(origin, self.indices()[: self._moving], stride)
        self._pointers = [self._code.local(POINTER, pointer) for pointer in start]

    def indices(self) -> list[ir.Value]:
        """Return the indices of the loops."""
        return [self._code.get(index) for index in self._indices]

    def pointers(self) -> Pointers:
        """Return the addresses of the accesses."""
        return [self._code.get(pointer) for pointer in self._pointers]

    def advance(self) -> None:
        """Go to the next position: a step of the innermost loop and, at its end, of those around it."""
        self._step(len(self._counts) - 1)

    def _step(self, loop: int) -> None:
        if loop < 0:
            return
        builder, count = self._kernel.builder, self._counts[loop]
        following = builder.add(self._code.get(self._indices[loop]), I64(1))
        self._code.set(self._indices[loop], following)
        distances: list[ir.Value] = []
        if loop < self._moving:
            numbers = [self._stride(access, loop) for access in range(len(self._pointers))]
            # Every step of the innermost loop needs its strides: they are read once, before all loops.
            once = self._code.once if loop == self._moving - 1 else lambda read: read()
            distances = [once(partial(self._kernel.parameter, number)) for number in numbers]
            self._move(distances)
        if loop:
            with builder.if_then(builder.icmp_signed("==", following, count), likely=False):
                self._code.set(self._indices[loop], I64(0))
                back = builder.neg(count)
                self._move([builder.mul(back, each) for each in distances])
                self._step(loop - 1)

    def _move(self, distances: Sequence[ir.Value]) -> None:
        if distances:
            for pointer, distance in zip(self._pointers, distances, strict=True):
                self._code.set(pointer, self._code.offset(self._code.get(pointer), distance))


class NodeEvaluation(Walk[ir.Value]):
    """The walk over the nodes of one level, at a position of the loops."""

    def __init__(self, kernel: KernelCode, at: At) -> None:
        self._kernel, self._builder, self._at = kernel, kernel.builder, at

    def is_leaf(self, node: Node) -> bool:
        """Return whether a node is a number, or computed from numbers before all loops."""
        return self._kernel.levels[id(node)] is Level.CONSTANT

    def leaf(self, node: Node) -> ir.Value:
        """Return such a number."""
        return self._kernel.value(node, self._at.lanes, {})

    def load(self, node: Node, values: Values) -> Values:
        """Emit a load, and those of its bundle."""
        return self._kernel.loads.loaded(node, self._at, values)

    def write(self, node: Node, operands: list[ir.Value]) -> ir.Value:
        """Emit an operation."""
        return emit(self._builder, node, self._at.lanes, operands)

    def branch(self, node: Node, values: Values) -> ir.Value:
        """Emit a rare selection, which computes its second operand only if the condition holds in a lane."""
        builder, lanes = self._builder, self._at.lanes
        condition, wanted, usual = node.operands
        mask, common = (splat(builder, self.value(each, values), lanes) for each in (condition, usual))
        before = builder.block
        with builder.if_then(any_lane(builder, mask, lanes), likely=False):
            chosen = splat(builder, self.value(wanted, self.inside_branch(node, values)), lanes)
            selected = builder.select(mask, chosen, common)
            after = builder.block
        result = builder.phi(common.type)
        result.add_incoming(common, before)
        result.add_incoming(selected, after)
        return result
