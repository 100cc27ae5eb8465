"""Emits the function of a kernel pattern: its loops, its loads and stores, its reductions.

A function has the form kernel(begin, end, parameters, buffers) and works off the items begin..end. Values are computed at the
level of the loops where they change, scalars above the innermost loop, vectors in it (and, where lanes run over groups, vectors
for what belongs to a group).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from opendml.program.node import FUNCTIONS, REDUCTIONS, Node, Operation, ordered, rebuild
from opendml.program.scalar_type import ScalarType
from opendml.program.vector_math import expand
from opendml.targets.cpu.code import I64, POINTER, Code
from opendml.targets.cpu.expression import emit, llvm_type, number, splat
from opendml.targets.cpu.pattern import AccessPattern, Level, Mode, Parameters, Pattern, Step

MAXIMUM_TILE = 512
"""Groups in the widest tile of columns; their sums and statistics live on the stack."""
_ACCUMULATORS = 2
"""Independent vectors of sums in a row: enough to hide the latency of an addition."""
_ROWS_AT_ONCE = 4
"""Rows added per visit of the sums of a tile of columns."""

_F64 = ScalarType.FLOAT64
_Values = dict[int, ir.Value]


def emit_kernel(module: ir.Module, name: str, pattern: Pattern, lanes: int) -> None:
    """Adds the function of `pattern` to the module."""
    signature = ir.FunctionType(ir.VoidType(), [I64, I64, POINTER, POINTER])
    function = ir.Function(module, signature, name)
    function.attributes.add("nounwind")
    values = rebuild(pattern.values, lambda node: expand(node) if node.operation in FUNCTIONS else node)
    expanded = Pattern(pattern.mode, pattern.groups, pattern.rows, pattern.loads, pattern.stores, values)
    _KernelCode(function, expanded, lanes).emit()


@dataclass(slots=True)
class _Moments:
    """The sums of one reduced value: of its distance from `shift`, and of the distance's square."""

    value: Node
    shift: ir.Value
    sums: ir.Value
    squares: ir.Value


class _KernelCode:
    def __init__(self, function: ir.Function, pattern: Pattern, lanes: int) -> None:
        self.function, self.pattern, self.lanes = function, pattern, lanes
        self.code = Code(function, lanes)
        self.builder = self.code.builder
        self.accesses: tuple[AccessPattern, ...] = (*pattern.loads, *pattern.stores)
        self.layout = Parameters(pattern)
        self.nodes = list(ordered(pattern.values))
        self.levels = self._levels()
        self.parameters, self.buffers = function.args[2], function.args[3]
        self.inner, self.block, self.blocks, self.units, self.chunk, self.chunks, self.elements = (
            self._parameter(index) for index in range(7)
        )
        self.group_counts = [self._parameter(self.layout.group_count(i)) for i in range(pattern.groups)]
        self.row_counts = [self._parameter(self.layout.row_count(i)) for i in range(pattern.rows)]
        self.bases = [self._base(access) for access in range(len(self.accesses))]
        self.steps = [
            I64(access.type.bytes)
            if access.step is Step.CONTIGUOUS
            else self._parameter(self.layout.inner_stride(position))
            for position, access in enumerate(self.accesses)
        ]

    def emit(self) -> None:
        """The loop over the items."""
        emitters = {Mode.POINTWISE: self._pointwise, Mode.ROWS: self._rows, Mode.COLUMNS: self._columns}
        emitters |= {Mode.ROWS_PARTIAL: self._rows, Mode.ROWS_MAP: self._rows}
        emitters |= {Mode.COLUMNS_PARTIAL: self._columns, Mode.COLUMNS_MAP: self._columns}
        with self.code.loop(self.function.args[0], self.function.args[1]) as item:
            emitters[self.pattern.mode](item)
        self.builder.ret_void()

    # Items

    def _pointwise(self, item: ir.Value) -> None:
        group, start, stop = self._block(item)
        pointers = self._group_pointers(group)
        self._map_block(pointers, {}, start, stop)

    def _rows(self, item: ir.Value) -> None:
        mode = self.pattern.mode
        group, chunk, first, last = item, I64(0), I64(0), self.units
        if mode is not Mode.ROWS:
            group, chunk = self.code.split(item, [I64(0), self.chunks])
            first, last = self._chunk_range(chunk)
        pointers = self._group_pointers(group)
        moments = [self._row_moments(value, pointers) for value in self.pattern.reduced()]
        if mode is Mode.ROWS_MAP:
            for index, moment in enumerate(moments):
                self._gather_row_partials(group, index, moment)
        else:
            with self.code.loop(first, last) as unit:
                row, start, stop = self._block(unit)
                row_pointers = self._row_pointers(pointers, row)
                for moment in moments:
                    self._add_block(moment, row_pointers, start, stop)
        if mode is Mode.ROWS_PARTIAL:
            for index, moment in enumerate(moments):
                self._store_row_partials(group, chunk, index, moment)
            return
        statistics = {}
        for moment in moments:
            sums, squares = (self._sum_of_lanes(slot) for slot in (moment.sums, moment.squares))
            statistics |= self._statistics(moment.value, self.code.get(moment.shift), sums, squares, 1)
        values = self._evaluate(Level.GROUP, 1, pointers, statistics)
        self._store_groups(pointers, values, None, None)
        if any(access.level > Level.GROUP for access in self.pattern.stores):
            with self.code.loop(first, last) as unit:
                row, start, stop = self._block(unit)
                self._map_block(self._row_pointers(pointers, row), values, start, stop)

    def _columns(self, item: ir.Value) -> None:
        mode = self.pattern.mode
        chunk, first, last = I64(0), I64(0), self.units
        if mode is not Mode.COLUMNS:
            item, chunk = self.code.split(item, [I64(0), self.chunks])
            first, last = self._chunk_range(chunk)
        group, start, stop = self._block(item)
        pointers = self._group_pointers(group)
        moments = [self._column_moments(value, pointers, start, stop) for value in self.pattern.reduced()]
        if mode is Mode.COLUMNS_MAP:
            for index, moment in enumerate(moments):
                self._gather_column_partials(group, index, moment, start, stop)
        else:
            self._add_rows(moments, pointers, first, last, start, stop)
        if mode is Mode.COLUMNS_PARTIAL:
            for index, moment in enumerate(moments):
                self._store_column_partials(group, chunk, index, moment, start, stop)
            return
        shared = self._column_statistics(moments, pointers, start, stop)
        if any(access.level > Level.GROUP for access in self.pattern.stores):
            with self.code.loop(first, last) as row:
                self._map_columns(self._row_pointers(pointers, row), shared, start, stop)

    # Positions

    def _parameter(self, index: int) -> ir.Value:
        return self.code.element(self.parameters, index)

    def _base(self, access: int) -> ir.Value:
        buffer = self._buffer(self._parameter(self.layout.buffer(access)))
        return self.code.offset(buffer, self._parameter(self.layout.offset(access)))

    def _buffer(self, index: ir.Value) -> ir.Value:
        return self.builder.load(self.builder.gep(self.buffers, [index], source_etype=I64), typ=POINTER)

    def _block(self, unit: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The row (or group) of a unit, and the range of the innermost loop in its block."""
        row, block = self.code.split(unit, [I64(0), self.blocks])
        start = self.builder.mul(block, self.block)
        return row, start, self.code.minimum(self.builder.add(start, self.block), self.inner)

    def _chunk_range(self, chunk: ir.Value) -> tuple[ir.Value, ir.Value]:
        first = self.builder.mul(chunk, self.chunk)
        return first, self.code.minimum(self.builder.add(first, self.chunk), self.units)

    def _group_pointers(self, group: ir.Value) -> list[ir.Value]:
        indices = self.code.split(group, self.group_counts)
        return [
            self._moved(base, indices, [self.layout.group_stride(access, loop) for loop in range(len(indices))])
            for access, base in enumerate(self.bases)
        ]

    def _row_pointers(self, pointers: list[ir.Value], row: ir.Value) -> list[ir.Value]:
        indices = self.code.split(row, self.row_counts)
        return [
            self._moved(pointer, indices, [self.layout.row_stride(access, loop) for loop in range(len(indices))])
            for access, pointer in enumerate(pointers)
        ]

    def _moved(self, pointer: ir.Value, indices: list[ir.Value], strides: list[int]) -> ir.Value:
        for index, stride in zip(indices, strides, strict=True):
            pointer = self.code.offset(pointer, self.builder.mul(index, self._parameter(stride)))
        return pointer

    # Values

    def _levels(self) -> dict[int, Level]:
        levels: dict[int, Level] = {}
        for node in self.nodes:
            if node.operation is Operation.SOURCE:
                levels[id(node)] = self.pattern.loads[_index(node)].level
            elif node.operation in REDUCTIONS:
                levels[id(node)] = Level.GROUP
            else:
                below = {levels[id(operand)] for operand in node.operands}
                # Where lanes run over groups, a value of a group and a row changes with every element.
                mixed = self.pattern.mode.columns and {Level.GROUP, Level.ROW} <= below
                levels[id(node)] = Level.ELEMENT if mixed else max(below, default=Level.CONSTANT)
        return levels

    def _needed(self, roots: Iterable[Node]) -> set[int]:
        """The nodes that `roots` need below their reductions, which are known by then."""
        reductions = {id(node) for node in self.nodes if node.operation in REDUCTIONS}
        return {id(node) for node in ordered(roots, reductions)}

    def _evaluate(
        self,
        level: Level,
        lanes: int,
        pointers: Sequence[ir.Value],
        known: _Values,
        index: ir.Value | None = None,
        mask: ir.Value | None = None,
        only: set[int] | None = None,
    ) -> _Values:
        """`known`, and the values of all nodes of the level (of those in `only`, if given)."""
        values = dict(known)
        only = self._needed(self.pattern.values) if only is None else only
        for node in self.nodes:
            if self.levels[id(node)] is level and id(node) in only and id(node) not in values:
                if node.operation is Operation.SOURCE:
                    values[id(node)] = self._load(_index(node), lanes, pointers, index, mask)
                else:
                    operands = [self._operand(operand, lanes, values) for operand in node.operands]
                    values[id(node)] = emit(self.builder, node, lanes, operands)
        return values

    def _operand(self, node: Node, lanes: int, values: _Values) -> ir.Value:
        if self.levels[id(node)] is Level.CONSTANT and id(node) not in values:
            operands = [self._operand(operand, lanes, values) for operand in node.operands]
            return emit(self.builder, node, lanes, operands)
        return values[id(node)]

    def _load(
        self, access: int, lanes: int, pointers: Sequence[ir.Value], index: ir.Value | None, mask: ir.Value | None
    ) -> ir.Value:
        type, step = self.accesses[access].type, self.accesses[access].step
        pointer = pointers[access]
        if index is None or step is Step.NONE:
            return self.code.load(pointer, type, 1)
        address = self.code.offset(pointer, self.builder.mul(index, self.steps[access]))
        if lanes == 1:
            return self.code.load(address, type, 1)
        if step is Step.CONTIGUOUS:
            return self.code.load(address, type, lanes, mask)
        return self.code.gather(address, self.steps[access], type, mask)

    def _store(
        self, access: int, value: ir.Value, pointers: Sequence[ir.Value], index: ir.Value | None, mask: ir.Value | None
    ) -> None:
        type, step = self.accesses[access].type, self.accesses[access].step
        if index is None or step is Step.NONE:
            self.code.store(pointers[access], value, type)
            return
        address = self.code.offset(pointers[access], self.builder.mul(index, self.steps[access]))
        if step is Step.CONTIGUOUS:
            self.code.store(address, value, type, mask)
        else:
            self.code.scatter(address, self.steps[access], value, type, mask)

    def _store_groups(
        self, pointers: Sequence[ir.Value], values: _Values, index: ir.Value | None, mask: ir.Value | None
    ) -> None:
        """The stores that happen once per group."""
        lanes = 1 if index is None else self.lanes
        for number_, root in enumerate(self.pattern.values):
            access = len(self.pattern.loads) + number_
            if self.accesses[access].level <= Level.GROUP:
                value = splat(self.builder, self._operand(root, lanes, values), lanes)
                self._store(access, value, pointers, index, mask)

    def _map_block(self, pointers: list[ir.Value], known: _Values, start: ir.Value, stop: ir.Value) -> None:
        """The element-wise stores of one block of a row."""
        row_values = self._evaluate(Level.ROW, 1, pointers, self._evaluate(Level.GROUP, 1, pointers, known))
        self.code.vector_loop(start, stop, lambda i, mask: self._store_elements(pointers, row_values, i, mask))

    def _store_elements(
        self, pointers: Sequence[ir.Value], known: _Values, index: ir.Value, mask: ir.Value | None
    ) -> None:
        values = self._evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask)
        for number_, root in enumerate(self.pattern.values):
            access = len(self.pattern.loads) + number_
            if self.accesses[access].level > Level.GROUP or self.pattern.mode is Mode.POINTWISE:
                value = splat(self.builder, self._operand(root, self.lanes, values), self.lanes)
                self._store(access, value, pointers, index, mask)

    # Reductions along a row

    def _row_moments(self, value: Node, pointers: list[ir.Value]) -> _Moments:
        """Empty sums. The shift, which all chunks of a group share, is the group's first element: it keeps the sum of squares
        from cancelling where the mean is far from zero."""
        needed = self._needed([value])
        values: _Values = {}
        for level in (Level.GROUP, Level.ROW, Level.ELEMENT):
            values = self._evaluate(level, 1, pointers, values, only=needed)
        first = self._operand(value, 1, values)
        shift = self.code.local(ir.DoubleType(), self.builder.fpext(first, ir.DoubleType()))
        vector = llvm_type(_F64, self.lanes)
        slots = [self.code.local(ir.ArrayType(vector, _ACCUMULATORS)) for _ in range(2)]
        for slot in slots:
            for index in range(_ACCUMULATORS):
                self.builder.store(number(_F64, self.lanes, 0.0), self._accumulator(slot, index))
        return _Moments(value, shift, *slots)

    def _accumulator(self, slot: ir.Value, index: int) -> ir.Value:
        return self.code.offset(slot, I64(index * 8 * self.lanes))

    def _add_block(self, moment: _Moments, pointers: list[ir.Value], start: ir.Value, stop: ir.Value) -> None:
        """Adds one block of a row: full strides over all accumulators, then vectors onto the first one."""
        needed = self._needed([moment.value])
        known = self._evaluate(Level.GROUP, 1, pointers, {}, only=needed)
        known = self._evaluate(Level.ROW, 1, pointers, known, only=needed)
        shift = splat(self.builder, self.code.get(moment.shift), self.lanes)

        def add(accumulator: int, index: ir.Value, mask: ir.Value | None) -> None:
            values = self._evaluate(Level.ELEMENT, self.lanes, pointers, known, index, mask, needed)
            distance = self._distance(self._operand(moment.value, self.lanes, values), shift, mask)
            sums, squares = (self._accumulator(slot, accumulator) for slot in (moment.sums, moment.squares))
            self._add_distance(distance, sums, squares)

        stride = self.lanes * _ACCUMULATORS
        with self.code.loop(start, stop, stride) as index:
            for accumulator in range(_ACCUMULATORS):
                add(accumulator, self.builder.add(index, I64(accumulator * self.lanes)), None)
        rest = self.builder.and_(self.builder.sub(stop, start), I64(stride - 1))
        self.code.vector_loop(self.builder.sub(stop, rest), stop, lambda i, mask: add(0, i, mask))

    def _distance(self, value: ir.Value, shift: ir.Value, mask: ir.Value | None) -> ir.Value:
        wide = self.builder.fpext(splat(self.builder, value, self.lanes), shift.type)
        distance = self.builder.fsub(wide, shift)
        return distance if mask is None else self.builder.select(mask, distance, number(_F64, self.lanes, 0.0))

    def _add_distance(self, distance: ir.Value, sums: ir.Value, squares: ir.Value) -> None:
        total = self.builder.fadd(self.builder.load(sums, typ=distance.type), distance)
        self.builder.store(total, sums)
        self.builder.store(self._square_added(distance, self.builder.load(squares, typ=distance.type)), squares)

    def _square_added(self, distance: ir.Value, total: ir.Value) -> ir.Value:
        name = f"llvm.fma.v{self.lanes}f64"
        function = self.builder.module.globals.get(name)
        if function is None:
            function = ir.Function(self.builder.module, ir.FunctionType(total.type, [total.type] * 3), name)
        return self.builder.call(function, [distance, distance, total])

    def _sum_of_lanes(self, slot: ir.Value) -> ir.Value:
        vector = llvm_type(_F64, self.lanes)
        total = self.builder.load(slot, typ=vector)
        for index in range(1, _ACCUMULATORS):
            total = self.builder.fadd(total, self.builder.load(self._accumulator(slot, index), typ=vector))
        return self.code.horizontal_sum(total, self.lanes)

    def _statistics(
        self, value: Node, shift: ir.Value, sums: ir.Value, squares: ir.Value, lanes: int
    ) -> _Values:
        """The reductions of `value` from its sums: mean = shift + s / n, variance = (q - s * s / n) / n, never below zero."""
        count = splat(self.builder, self.builder.sitofp(self.elements, ir.DoubleType()), lanes)
        average = self.builder.fdiv(sums, count)
        spread = self.builder.fdiv(self.builder.fsub(squares, self.builder.fmul(sums, average)), count)
        zero = number(_F64, lanes, 0.0)
        results = {
            Operation.MEAN: self.builder.fadd(shift, average),
            Operation.VARIANCE: self.builder.select(self.builder.fcmp_ordered("<", spread, zero), zero, spread),
        }
        return {
            id(node): results[node.operation]
            for node in self.nodes
            if node.operation in REDUCTIONS and node.operands[0] is value
        }

    # Partial sums of rows: [group][chunk][reduction][sum, square]

    def _row_partial(self, group: ir.Value, chunk: ir.Value, index: int) -> ir.Value:
        position = self.builder.add(self.builder.mul(group, self.chunks), chunk)
        byte_offset = self.builder.mul(position, I64(16 * len(self.pattern.reduced())))
        return self.code.offset(self._partials(), self.builder.add(byte_offset, I64(16 * index)))

    def _partials(self) -> ir.Value:
        buffer = self._buffer(self._parameter(Parameters.PARTIAL_BUFFER))
        return self.code.offset(buffer, self._parameter(Parameters.PARTIAL_OFFSET))

    def _store_row_partials(self, group: ir.Value, chunk: ir.Value, index: int, moment: _Moments) -> None:
        target = self._row_partial(group, chunk, index)
        self.builder.store(self._sum_of_lanes(moment.sums), target)
        self.builder.store(self._sum_of_lanes(moment.squares), self.code.offset(target, I64(8)))

    def _gather_row_partials(self, group: ir.Value, index: int, moment: _Moments) -> None:
        """Adds the sums of all chunks, in their order, in the first lane."""
        with self.code.loop(I64(0), self.chunks) as chunk:
            origin = self._row_partial(group, chunk, index)
            for number_, slot in enumerate((moment.sums, moment.squares)):
                part = self.builder.load(self.code.offset(origin, I64(8 * number_)), typ=ir.DoubleType())
                total = self.builder.load(slot, typ=ir.DoubleType())
                self.builder.store(self.builder.fadd(total, part), slot)

    # Reductions across rows, one group a lane

    def _tile(self, type: ScalarType) -> ir.Value:
        """Room for one value of each group of a tile."""
        return self.code.local(ir.ArrayType(llvm_type(type, 1), MAXIMUM_TILE))

    def _in_tile(self, tile: ir.Value, type: ScalarType, start: ir.Value, index: ir.Value) -> ir.Value:
        return self.code.offset(tile, self.builder.mul(self.builder.sub(index, start), I64(type.bytes)))

    def _column_moments(self, value: Node, pointers: list[ir.Value], start: ir.Value, stop: ir.Value) -> _Moments:
        """Empty sums of the tile; the shift of each group is its first element."""
        moment = _Moments(value, *(self._tile(_F64) for _ in range(3)))
        needed = self._needed([value])

        def clear(index: ir.Value, mask: ir.Value | None) -> None:
            values: _Values = {}
            for level in (Level.GROUP, Level.ROW, Level.ELEMENT):
                lanes = 1 if level is Level.ROW else self.lanes
                values = self._evaluate(level, lanes, pointers, values, index, mask, needed)
            first = splat(self.builder, self._operand(value, self.lanes, values), self.lanes)
            vector = llvm_type(_F64, self.lanes)
            zero = number(_F64, self.lanes, 0.0)
            for tile, initial in (
                (moment.shift, self.builder.fpext(first, vector)), (moment.sums, zero), (moment.squares, zero)
            ):
                self.builder.store(initial, self._in_tile(tile, _F64, start, index))

        self.code.vector_loop(start, stop, clear)
        return moment

    def _add_rows(
        self,
        moments: list[_Moments],
        pointers: list[ir.Value],
        first: ir.Value,
        last: ir.Value,
        start: ir.Value,
        stop: ir.Value,
    ) -> None:
        """Adds the rows of a tile, several per visit of its sums."""
        together = self.builder.and_(self.builder.sub(last, first), I64(-_ROWS_AT_ONCE))
        middle = self.builder.add(first, together)
        for begin, end, count in ((first, middle, _ROWS_AT_ONCE), (middle, last, 1)):
            with self.code.loop(begin, end, count) as row:
                rows = [
                    self._row_pointers(pointers, self.builder.add(row, I64(number_))) for number_ in range(count)
                ]
                for moment in moments:
                    self._add_columns(moment, rows, start, stop)

    def _add_columns(
        self, moment: _Moments, rows: list[list[ir.Value]], start: ir.Value, stop: ir.Value
    ) -> None:
        needed = self._needed([moment.value])
        row_values = [self._evaluate(Level.ROW, 1, pointers, {}, only=needed) for pointers in rows]

        def add(index: ir.Value, mask: ir.Value | None) -> None:
            vector = llvm_type(_F64, self.lanes)
            slots = [self._in_tile(tile, _F64, start, index) for tile in (moment.shift, moment.sums, moment.squares)]
            shift, sums, squares = (self.builder.load(slot, typ=vector) for slot in slots)
            for pointers, known in zip(rows, row_values, strict=True):
                values = self._evaluate(Level.GROUP, self.lanes, pointers, known, index, mask, needed)
                values = self._evaluate(Level.ELEMENT, self.lanes, pointers, values, index, mask, needed)
                distance = self._distance(self._operand(moment.value, self.lanes, values), shift, mask)
                sums = self.builder.fadd(sums, distance)
                squares = self._square_added(distance, squares)
            self.builder.store(sums, slots[1])
            self.builder.store(squares, slots[2])

        self.code.vector_loop(start, stop, add)

    def _column_statistics(
        self, moments: list[_Moments], pointers: list[ir.Value], start: ir.Value, stop: ir.Value
    ) -> dict[int, ir.Value]:
        """Computes what belongs to a group, for every group of the tile; returns the tiles of what the rows need of it."""
        needed = self._needed(self.pattern.values)
        users = [node for node in self.nodes if self.levels[id(node)] > Level.GROUP and id(node) in needed]
        wanted = {id(operand): operand for node in users for operand in node.operands}
        wanted |= {
            id(root): root
            for root, access in zip(self.pattern.values, self.pattern.stores, strict=True)
            if access.level > Level.GROUP
        }
        shared = {key: node for key, node in wanted.items() if self.levels[key] is Level.GROUP}
        tiles = {key: self._tile(node.type) for key, node in shared.items()}

        def finish(index: ir.Value, mask: ir.Value | None) -> None:
            vector = llvm_type(_F64, self.lanes)
            statistics: _Values = {}
            for moment in moments:
                parts = [
                    self.builder.load(self._in_tile(tile, _F64, start, index), typ=vector)
                    for tile in (moment.shift, moment.sums, moment.squares)
                ]
                statistics |= self._statistics(moment.value, parts[0], parts[1], parts[2], self.lanes)
            values = self._evaluate(Level.GROUP, self.lanes, pointers, statistics, index, mask)
            for key, tile in tiles.items():
                type = shared[key].type
                value = splat(self.builder, values[key], self.lanes)
                self.builder.store(value, self._in_tile(tile, type, start, index), align=type.bytes)
            self._store_groups(pointers, values, index, mask)

        self.code.vector_loop(start, stop, finish)
        return tiles

    def _map_columns(
        self, pointers: list[ir.Value], tiles: dict[int, ir.Value], start: ir.Value, stop: ir.Value
    ) -> None:
        """The element-wise stores of one row of a tile."""
        row_values = self._evaluate(Level.ROW, 1, pointers, {})
        types = {id(node): node.type for node in self.nodes}

        def store(index: ir.Value, mask: ir.Value | None) -> None:
            known = dict(row_values)
            for key, tile in tiles.items():
                address = self._in_tile(tile, types[key], start, index)
                known[key] = self.code.load(address, types[key], self.lanes)
            self._store_elements(pointers, known, index, mask)

        self.code.vector_loop(start, stop, store)

    # Partial sums of columns: [group][chunk][reduction][sum, square][column]

    def _column_partial(self, group: ir.Value, chunk: ir.Value, index: int, part: int, column: ir.Value) -> ir.Value:
        position = self.builder.add(self.builder.mul(group, self.chunks), chunk)
        position = self.builder.mul(position, I64(2 * len(self.pattern.reduced())))
        position = self.builder.add(position, I64(2 * index + part))
        position = self.builder.add(self.builder.mul(position, self.inner), column)
        return self.code.offset(self._partials(), self.builder.mul(position, I64(8)))

    def _store_column_partials(
        self, group: ir.Value, chunk: ir.Value, index: int, moment: _Moments, start: ir.Value, stop: ir.Value
    ) -> None:
        def store(column: ir.Value, mask: ir.Value | None) -> None:
            for part, tile in enumerate((moment.sums, moment.squares)):
                value = self.code.load(self._in_tile(tile, _F64, start, column), _F64, self.lanes)
                target = self._column_partial(group, chunk, index, part, column)
                self.code.store(target, value, _F64, mask)

        self.code.vector_loop(start, stop, store)

    def _gather_column_partials(
        self, group: ir.Value, index: int, moment: _Moments, start: ir.Value, stop: ir.Value
    ) -> None:
        with self.code.loop(I64(0), self.chunks) as chunk:

            def add(column: ir.Value, mask: ir.Value | None) -> None:
                for part, tile in enumerate((moment.sums, moment.squares)):
                    slot = self._in_tile(tile, _F64, start, column)
                    origin = self._column_partial(group, chunk, index, part, column)
                    value = self.code.load(origin, _F64, self.lanes, mask)
                    total = self.builder.fadd(self.code.load(slot, _F64, self.lanes), value)
                    self.builder.store(total, slot, align=8)

            self.code.vector_loop(start, stop, add)


def _index(node: Node) -> int:
    if not isinstance(node.attribute, int):
        raise TypeError(f"{node} has no index")
    return node.attribute
