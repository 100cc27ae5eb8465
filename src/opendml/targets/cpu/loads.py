"""The loads of a kernel, and the ways in which element-wise kernels load vectors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from opendml.compiler.kernel import number_of
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I1, I32, I64
from opendml.targets.cpu.launch import BLOCK_BYTES
from opendml.targets.cpu.pattern import LINE, ElementWalk, Reading, SharedReadings, crossed_block
from opendml.targets.cpu.shared_rows import conditions_of
from opendml.targets.cpu.shuffles import transposed
from opendml.targets.cpu.values import is_vector, llvm_type, splat, vector_constant

if TYPE_CHECKING:
    from opendml.targets.cpu.kernel_code import KernelCode

Values = dict[int, ir.Value]
"""Emitted nodes by identity."""

Pointers = Sequence[ir.Value]
"""The address of each access: loads, then stores."""

Range = tuple[ir.Value, ir.Value]
"""The first index of a loop, and the index behind the last."""

_STREAM_AHEAD = 2048
"""Bytes by which operands are prefetched if results bypass the caches. The hardware prefetcher stops at pages
of 4 KiB, and starts late if arithmetic takes as long as the memory. For 16.8 million FLOAT32, erf takes 2.6
ms with prefetching and 3.0 without, on two threads of a Sapphire Rapids. A copy takes 2.1 both ways. 512 to
4096 measured equal. On a Zen 4 prefetching changes nothing."""

_TILE_AHEAD = 128
"""Bytes by which the rows of a transposed tile are prefetched. The processor itself does not follow as many
streams as a tile has."""

_ZERO_BYTES = 2 * BLOCK_BYTES + 2 * 128 + 2 * LINE
"""Bytes of the row of zeros that unguarded loads of shared rows read. The columns of a block span two blocks
where every other element is read. A vector follows them, and a cache line is on both sides, because loads
that share a line address begin up to that far apart."""


@dataclass(frozen=True, slots=True)
class At:
    """The place where values are computed: pointers of accesses; in the innermost loop an index and a mask.

    Without an index, values are those of an outer loop. Without a mask, all lanes are computed.
    """

    pointers: Pointers
    lanes: int
    index: ir.Value | None = None
    mask: ir.Value | None = None


class Loads:
    """The loads of a kernel. Each way to load vectors is a subclass."""

    def __init__(self, kernel: KernelCode) -> None:
        self.kernel = kernel
        self.code, self.builder = kernel.code, kernel.builder
        self.accesses, self.steps = kernel.accesses, kernel.steps

    def in_versions(self, at: At, known: Values, emit: Callable[[Values], None]) -> None:
        """Emit code that computes with loads: `emit` for each version of it, given what is known there."""
        emit(known)

    def loaded(self, node: Node, at: At, values: Values) -> Values:
        """Return a load, together with the other loads of its bundle."""
        bundle = self._bundle_of(node)
        if not bundle or at.index is None:
            return {id(node): self.load(node, at, values)}
        address, _ = self.address(bundle[0], at, values)
        results = self.code.load_bundle(address, len(bundle), node.type, at.mask)
        return {id(each): result for each, result in zip(bundle, results, strict=True)}

    def _bundle_of(self, node: Node) -> list[Node]:
        """Return the loads of a node's bundle, which read all elements along the innermost loop together."""
        for bundle in self.kernel.pattern.bundles:
            if number_of(node) in bundle:
                loads: dict[int, list[Node]] = {number: [] for number in bundle}
                for each in self.kernel.nodes:
                    if each.operation is Operation.SOURCE and number_of(each) in loads:
                        loads[number_of(each)].append(each)
                # One that is read under several guards is several loads.
                if all(len(each) == 1 and self.is_plain(each[0]) for each in loads.values()):
                    return [each for (each,) in loads.values()]
        return []

    def is_plain(self, node: Node) -> bool:
        """Return whether a load reads all elements along the innermost loop, by its step."""
        return not node.operands

    def load(self, node: Node, at: At, values: Values) -> ir.Value:
        """Return what a SOURCE reads. The result is a scalar if the access does not move along the innermost
        loop. Where the guard is false, nothing is read and the result is 0."""
        access = number_of(node)
        if self.accesses[access].counter:
            return self._count(access, at)
        address, distance = self.address(node, at, values)
        lanes = at.lanes if self.moves(access, at) else 1
        guard = self.kernel.value(node.operands[0], at.lanes, values) if node.operands else None
        if guard is None or is_vector(guard):
            return self.read(access, lanes, address, at.mask, guard, distance)
        before = self.builder.block
        with self.builder.if_then(guard):
            value = self.read(access, lanes, address, at.mask, None, distance)
            inside = self.builder.block
        result = self.builder.phi(value.type)
        result.add_incoming(ir.zero(value.type), before)
        result.add_incoming(value, inside)
        return result

    def moves(self, access: int, at: At) -> bool:
        """Return whether an access moves along the innermost loop, if `at` is in that loop."""
        return at.index is not None and self.accesses[access].step is not Step.NONE

    def address(self, node: Node, at: At, values: Values) -> tuple[ir.Value, ir.Value | None]:
        """Return the address of a load's first element, and the distances of the lanes in bytes if these
        differ by more than the step."""
        access = number_of(node)
        address = at.pointers[access]
        if at.index is not None and self.moves(access, at):
            address = self.code.element_at(address, at.index, self.steps[access])
        vectors = []
        for each in self.distances(node):
            distance = self.kernel.value(each, at.lanes, values)
            if is_vector(distance):
                vectors.append(distance)
            else:
                address = self.code.offset(address, distance)
        return address, self.code.total(vectors)

    def distances(self, node: Node) -> list[Node]:
        """Return the summands of a load's computed distance in bytes. Summands of outer levels are separate,
        as they move all lanes alike."""
        parts, pending = [], list(node.operands[1:])
        while pending:
            part = pending.pop()
            if part.operation is Operation.ADD and self.kernel.levels[id(part)] is Level.ELEMENT:
                pending += part.operands
            else:
                parts.append(part)
        return parts

    def read(
        self,
        access: int,
        lanes: int,
        address: ir.Value,
        mask: ir.Value | None,
        guard: ir.Value | None = None,
        distance: ir.Value | None = None,
    ) -> ir.Value:
        """Return the elements of an access from an address on, or the one there. `guard` and `distance` are
        vectors."""
        type, step = self.accesses[access].type, self.accesses[access].step
        if guard is None and distance is None and lanes == 1:
            return self.code.load(address, type, 1)
        if guard is not None:
            mask = guard if mask is None else self.builder.and_(mask, guard)
        if distance is None and lanes > 1 and step is Step.CONTIGUOUS:
            if mask is None:
                self.prefetch_ahead(address)
            return self.code.load(address, type, lanes, mask)
        if distance is None and lanes > 1 and step is Step.DOUBLE:
            return self.code.load_every_other(address, type, mask)
        return self.code.gather(address, self.steps[access] if lanes > 1 else None, type, mask, distance)

    def prefetch_ahead(self, address: ir.Value) -> None:
        """Prefetch behind a full vector of neighbours at an address, if that pays."""

    def _count(self, access: int, at: At) -> ir.Value:
        """Return the value of a counter, which is the offset of the access itself."""
        type = llvm_type(self.accesses[access].type, 1)
        first, step = self.builder.ptrtoint(at.pointers[access], I64), self.steps[access]
        moves = self.moves(access, at)
        if at.index is not None and moves:
            first = self.builder.add(first, self.builder.mul(at.index, step))
        first, step = (self.code.narrowed(each, type) for each in (first, step))
        if not moves or at.lanes == 1:
            return first
        number = vector_constant(type, range(at.lanes))
        along = self.builder.mul(splat(self.builder, step, at.lanes), number)
        return self.builder.add(splat(self.builder, first, at.lanes), along)


class RegularLoads(Loads):
    """Loads with a second version for regular vectors.

    Guarded loads and loads with computed distances mostly read neighbours: in a padded or mirrored tensor,
    all elements but the rim. A vector in which all of them do is loaded without guards and gathers."""

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        self._guarded = {id(node): node for node in kernel.nodes if self._is_counted(node)}
        self._regular: dict[int, Node] = {}
        """The loads that are known to be regular in the version at hand."""
        self._prefetches = any(store.streamed for store in kernel.pattern.stores)

    def in_versions(self, at: At, known: Values, emit: Callable[[Values], None]) -> None:
        """Emit a version for vectors whose loads are all regular, and a version for others."""
        if not self._guarded:
            emit(known)
            return
        roots = [operand for node in self._guarded.values() for operand in node.operands]
        values = self.kernel.evaluate(Level.ELEMENT, at.lanes, at.pointers, known, at.index, at.mask, roots)
        with self.builder.if_else(self._all_regular(values, at)) as (regular, other):
            with regular:
                self._regular = self._guarded
                guards = {id(node.operands[0]): I1(1) for node in self._guarded.values()}
                emit(values | guards)
                self._regular = {}
            with other:
                emit(values)

    def load(self, node: Node, at: At, values: Values) -> ir.Value:
        """Return a load. A regular load has no guard, and reads neighbours of its first element."""
        if id(node) not in self._regular:
            return super().load(node, at, values)
        access = number_of(node)
        address, distance = self.address(node, at, values)
        if distance is None:
            return self.read(access, at.lanes if self.moves(access, at) else 1, address, at.mask)
        first = self.builder.extract_element(distance, I32(0))
        return self.code.load(self.code.offset(address, first), node.type, at.lanes, at.mask)

    def prefetch_ahead(self, address: ir.Value) -> None:
        """Prefetch behind a full vector of neighbours, if results bypass the caches."""
        if self._prefetches:
            self.code.prefetch(self.code.offset(address, I64(_STREAM_AHEAD)))

    def is_plain(self, node: Node) -> bool:
        """Return whether a load reads all elements along a row, by its step."""
        return super().is_plain(node) or (id(node) in self._regular and len(node.operands) == 1)

    def _is_counted(self, node: Node) -> bool:
        """Return whether a node is a load whose guard and distance change along a row and depend only on
        counters."""
        if node.operation is not Operation.SOURCE or not node.operands:
            return False
        below = [each for each in ordered(node.operands) if each.operation is Operation.SOURCE]
        return self.kernel.levels[id(node)] is Level.ELEMENT and all(
            self.accesses[number_of(each)].counter for each in below
        )

    def _all_regular(self, values: Values, at: At) -> ir.Value:
        """Return whether all guards hold in all lanes, and all distances are those of neighbours."""
        conditions: dict[int, ir.Value] = {}
        for node in self._guarded.values():
            guard = self.kernel.value(node.operands[0], at.lanes, values)
            conditions[id(guard)] = guard
            found = [self.kernel.value(each, at.lanes, values) for each in self.distances(node)]
            distance = self.code.total([each for each in found if is_vector(each)])
            if distance is not None:
                first = splat(self.builder, self.builder.extract_element(distance, I32(0)), at.lanes)
                moved = self.builder.sub(distance, first)
                conditions[id(distance)] = self.builder.icmp_signed("==", moved, self._along(node, moved))
        vectors = [each for each in conditions.values() if is_vector(each)]
        scalars = [each for each in conditions.values() if not is_vector(each)]
        if vectors:
            together = reduce(self.builder.and_, vectors)
            if at.mask is not None:
                together = self.builder.or_(together, self.builder.not_(at.mask))
            bits = self.builder.bitcast(together, ir.IntType(at.lanes))
            scalars.append(self.builder.icmp_unsigned("==", bits, bits.type(-1)))
        return reduce(self.builder.and_, scalars)

    def _along(self, node: Node, like: ir.Value) -> ir.Value:
        """Return the computed distances of neighbours from the first lane, without what the step moves."""
        access, size = number_of(node), I64(node.type.bytes)
        moves = self.accesses[access].step is not Step.NONE
        step = self.builder.sub(size, self.steps[access]) if moves else size
        lanes = vector_constant(like.type.element, range(like.type.count))
        narrowed = self.code.narrowed(step, like.type.element)
        return self.builder.mul(splat(self.builder, narrowed, like.type.count), lanes)


class BlockLoads(Loads):
    """Loads of kernels that walk blocks of rows and columns.

    Attributes:
        alike: for each access the first one that moves like it, or None if that is not known.
    """

    alike: tuple[int, ...] | None = None

    def begin(self) -> None:
        """Emit code before the first block."""

    def columns(self, pointers: Pointers, block: ir.Value) -> Range:
        """Return the range of the innermost loop in a block."""
        start = self.builder.mul(block, self.kernel.block)
        return start, self.code.minimum(self.builder.add(start, self.kernel.block), self.kernel.inner)

    def begin_block(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Emit code before the rows of a block of the group at `pointers`."""

    def begin_rows(self, row: ir.Value, at_rows: Sequence[tuple[Pointers, Values]]) -> None:
        """Emit code before rows that are computed together, the first of which is `row`. Each has its
        pointers and what is known of it."""

    def begin_vectors(self) -> None:
        """Go to the next vector of rows that are computed together."""

    def begin_row(self, number: int) -> None:
        """Go to one of the rows that are computed together."""


class CrossedLoads(BlockLoads):
    """Loads of operands that are contiguous along the row loop, while results are contiguous along the
    innermost loop: NCHW to NHWC, say.

    Before the rows of a block, each such operand is loaded along its own loop, in square tiles of vectors.
    These are transposed in registers and stored to the thread's scratch, where rows find them.
    """

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        self._lanes = kernel.lanes
        widest = max(access.type.bytes for access in self.accesses if not access.counter)
        rows, self._most_steps = crossed_block(widest)
        self._across = [
            node
            for node in kernel.nodes
            if node.operation is Operation.SOURCE and self.accesses[number_of(node)].step is Step.ACROSS
        ]
        self._scratch = {
            number_of(node): kernel.reserve(ScalarType.UINT8, rows * self._pitch(node.type))
            for node in self._across
        }
        self._origin: tuple[ir.Value, ir.Value] = I64(0), I64(0)
        """The first row and column of the block at hand."""
        self._rows: dict[int, ir.Value] = {}
        """By access, the address in scratch from which the row at hand is read by its index."""

    def columns(self, pointers: Pointers, block: ir.Value) -> Range:
        """Return the range of the innermost loop in a block. All blocks but the first begin where a result of
        the first row is aligned to vectors."""
        kernel = self.kernel
        access = len(kernel.pattern.loads)
        ahead = self.code.elements_to_boundary(pointers[access], self.accesses[access].type)

        def begin(number: ir.Value) -> ir.Value:
            moved = self.builder.add(self.builder.mul(number, kernel.block), ahead)
            return self.code.minimum(moved, kernel.inner)

        following = self.builder.add(block, I64(1))
        is_first = self.builder.icmp_signed("==", block, I64(0))
        is_last = self.builder.icmp_signed("==", following, kernel.blocks)
        start = self.builder.select(is_first, I64(0), begin(block))
        return start, self.builder.select(is_last, kernel.inner, begin(following))

    def begin_block(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Load the block of each operand that is contiguous along the row loop into scratch."""
        self._origin = rows[0], columns[0]
        for node in self._across:
            self._transpose(node, pointers, rows, columns)

    def begin_rows(self, row: ir.Value, at_rows: Sequence[tuple[Pointers, Values]]) -> None:
        """Find the row in scratch."""
        number = self.builder.sub(row, self._origin[0])
        for node in self._across:
            place = self.builder.mul(number, I64(self._pitch(node.type)))
            moved = self.builder.sub(place, self.builder.mul(self._origin[1], I64(node.type.bytes)))
            self._rows[number_of(node)] = self.code.offset(self._scratch[number_of(node)], moved)

    def load(self, node: Node, at: At, values: Values) -> ir.Value:
        """Return a load. Transposed operands are read from scratch."""
        if at.index is None or number_of(node) not in self._rows:
            return super().load(node, at, values)
        address = self.code.element_at(self._rows[number_of(node)], at.index, I64(node.type.bytes))
        return self.code.load(address, node.type, at.lanes)

    def _pitch(self, type: ScalarType) -> int:
        """Return the bytes from one row in scratch to the next: an odd number of cache lines, so that rows
        lie in different sets of a cache. Blocks and their last vectors fit."""
        return (-(-(self._most_steps + 2 * self._lanes) * type.bytes // LINE) | 1) * LINE

    def _transpose(self, node: Node, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Load an operand's part of a block along its own loop, and store it with the loops exchanged."""
        access, size, (start, stop) = number_of(node), I64(node.type.bytes), columns
        pitch = self._pitch(node.type)
        last = self.builder.sub(stop, I64(1))
        # The last step may be incomplete.
        rest = self.builder.and_(self.builder.sub(start, stop), I64(self._lanes - 1))
        with self.code.loop(start, self.builder.add(stop, rest), self._lanes) as index:
            addresses = []
            for lane in range(self._lanes):
                # Lanes behind the last column repeat it. Nothing reads them.
                column = self.code.minimum(self.builder.add(index, I64(lane)), last)
                addresses.append(self.code.element_at(pointers[access], column, self.steps[access]))
            distance = self.builder.mul(self.builder.sub(index, start), size)

            def tile(row: ir.Value, mask: ir.Value | None) -> None:
                along = self.builder.mul(row, size)
                vectors = []
                for address in addresses:
                    address = self.code.offset(address, along)
                    vectors.append(self.code.load(address, node.type, self._lanes, mask))
                    if mask is None:
                        self.code.prefetch(self.code.offset(address, I64(_TILE_AHEAD)))
                number = self.builder.sub(row, rows[0])
                moved = self.builder.add(self.builder.mul(number, I64(pitch)), distance)
                target = self.code.offset(self._scratch[access], moved)
                for lane, vector in enumerate(transposed(self.builder, vectors, node.type, self._lanes)):
                    self.code.store(self.code.offset(target, I64(lane * pitch)), vector, node.type)

            self.code.vector_loop(*rows, tile)


class LoadsOfRows(BlockLoads):
    """Loads of rows that are computed together. What several rows read is loaded once.

    Attributes:
        counts: the numbers of rows that are computed together, first the most.
    """

    alike: tuple[int, ...]
    counts: tuple[int, ...]

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        self._row = 0
        self._found: dict[Hashable, ir.Value] = {}
        """The vectors that are loaded already, by what they are."""

    def begin_vectors(self) -> None:
        """Forget the vectors that are loaded."""
        self._found = {}

    def begin_row(self, number: int) -> None:
        """Go to one of the rows that are computed together."""
        self._row = number


class SharedLoads(LoadsOfRows):
    """Loads of neighbouring rows that read the same elements, as windows do. What several rows read is loaded
    once for all of them. `ElementWalk.shared_rows` says what they read."""

    readings: dict[int, tuple[tuple[Reading | None, ...], ...]]
    """The readings of rows that are computed together, by their number: many, then one that is left over."""

    def __init__(self, kernel: KernelCode) -> None:
        super().__init__(kernel)
        together = kernel.pattern.walk_as(ElementWalk).shared_rows
        if not isinstance(together, SharedReadings):
            raise TypeError("rows share what they read")
        self.alike = together.alike
        self.readings = {len(together.readings): together.readings}
        if together.alone is not None:
            self.readings[1] = (together.alone,)
        self.counts = tuple(self.readings)
        self._zeros = kernel.reserve(ScalarType.UINT8, _ZERO_BYTES)
        self._start = I64(0)
        """The first column of the block at hand."""
        self._rows: Sequence[tuple[Reading | None, ...]] = together.readings
        self._lines: dict[int, ir.Value] = {}
        """The first address of each line that the rows at hand read."""

    def begin(self) -> None:
        """Clear the row of zeros, as far as blocks need it."""
        widest = max(access.type.bytes for access in self.accesses if not access.counter)
        block = self.code.minimum(self.kernel.block, self.kernel.inner)
        columns = self.builder.add(block, I64(self.kernel.lanes))
        cleared = self.builder.add(self.builder.mul(columns, I64(2 * widest)), I64(2 * LINE))
        with self.code.loop(I64(0), cleared, 8) as at:
            self.builder.store(I64(0), self.code.offset(self._zeros, at))

    def begin_block(self, pointers: Pointers, rows: Range, columns: Range) -> None:
        """Go to a block."""
        self._start = columns[0]

    def begin_rows(self, row: ir.Value, at_rows: Sequence[tuple[Pointers, Values]]) -> None:
        """Find the first address of each line. If the part of a line's guards that is the same for all
        columns is false, the row of zeros takes its place, without a branch."""
        self._rows = self.readings[len(at_rows)]
        self._lines = {}
        for self._row, (pointers, values) in enumerate(at_rows):
            for node in self.kernel.nodes:
                reading = self._reading(node)
                if reading is not None and self._is_in_line(node) and reading.line not in self._lines:
                    access = number_of(node)
                    line = self.code.offset(pointers[access], I64(-reading.distance))
                    before = self.builder.neg(self.builder.mul(self._start, self.steps[access]))
                    zeros = self.code.offset(self.code.offset(self._zeros, before), I64(LINE))
                    for condition in self._conditions(node):
                        if self.kernel.levels[id(condition)] is not Level.ELEMENT:
                            holds = self.kernel.value(condition, 1, values)
                            line = self.builder.select(holds, line, zeros)
                    self._lines[reading.line] = line

    def loaded(self, node: Node, at: At, values: Values) -> Values:
        """Return a load, which an earlier row may have loaded already."""
        reading = self._reading(node)
        if reading is None or at.index is None:
            return super().loaded(node, at, values)
        if reading.number not in self._found:
            results = super().loaded(node, at, values)
            for each in self.kernel.nodes:
                other = self._reading(each)
                if other is not None and id(each) in results:
                    self._found[other.number] = results[id(each)]
        return {id(node): self._found[reading.number]}

    def load(self, node: Node, at: At, values: Values) -> ir.Value:
        """Return a load. A load of a line is guarded by the conditions that change along the line."""
        reading = self._reading(node)
        if reading is None or at.index is None or not self._is_in_line(node):
            return super().load(node, at, values)
        access = number_of(node)
        address = self.code.element_at(self._lines[reading.line], at.index, self.steps[access])
        guards = [
            self.kernel.value(each, at.lanes, values)
            for each in self._conditions(node)
            if self.kernel.levels[id(each)] is Level.ELEMENT
        ]
        guard = reduce(self.builder.and_, guards) if guards else None
        return self.read(access, at.lanes, self.code.offset(address, I64(reading.distance)), at.mask, guard)

    def _reading(self, node: Node) -> Reading | None:
        """Return what a load that moves along the row at hand reads."""
        is_load = node.operation is Operation.SOURCE
        return self._rows[self._row][number_of(node)] if is_load else None

    def _is_in_line(self, node: Node) -> bool:
        """Return whether a load reads vectors without computed distances."""
        access = self.accesses[number_of(node)]
        is_near = access.step in (Step.CONTIGUOUS, Step.DOUBLE)
        return is_near and not access.counter and len(node.operands) < 2

    def _conditions(self, node: Node) -> Iterator[Node]:
        """Yield the conditions under which a load reads."""
        for guard in node.operands:
            yield from conditions_of(guard)
