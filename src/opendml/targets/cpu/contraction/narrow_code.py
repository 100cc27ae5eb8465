"""Code that packs narrow operands of products, and code that reads and widens them."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.node import Node
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.narrow import GROUP, PART
from opendml.targets.cpu.contraction.packing import AddressOf, PackingCode, Range
from opendml.targets.cpu.contraction.tiling import OperandA, OperandB
from opendml.targets.cpu.contraction.widening import VECTORS, Widening
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import llvm_type
from opendml.targets.cpu.values import number as constant

_BYTE, _WORD = ScalarType.UINT8, ScalarType.UINT32


class _Panels(PackingCode):
    """The addresses in the packed panels of a narrow operand.

    A panel has the parameters of all blocks, and behind them the rows of numbers.
    """

    def __init__(self, code: Code, operand: OperandA | OperandB, first_parameter: int = 0) -> None:
        super().__init__(code, operand, first_parameter)
        assert isinstance(operand, OperandB)
        assert operand.narrow is not None
        self.narrow, self._width = operand.narrow, operand.columns
        self._block_bytes = I64(operand.narrow.parameter_bytes(operand.columns))
        self._row_bytes = I64(operand.narrow.row_bytes(operand.columns))

    def _places(
        self, panels: ir.Value, elements: ir.Value, panel: ir.Value, row: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Return the addresses of the parameters and of the numbers of a panel, from a row on. `elements`
        products are summed."""
        builder, block = self.builder, self.narrow.block
        before, size = self._panel_bytes(elements)
        place = self.code.offset(panels, builder.mul(panel, size))
        distance = builder.mul(builder.udiv(row, I64(block)), self._block_bytes)
        numbers = builder.add(before, builder.mul(row, self._row_bytes))
        return self.code.offset(place, distance), self.code.offset(place, numbers)

    def _panel_bytes(self, elements: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the bytes of the parameters of a panel, and of all of it."""
        builder = self.builder
        parameters = builder.mul(self.parts(elements, self.narrow.block), self._block_bytes)
        size = builder.add(parameters, builder.mul(elements, self._row_bytes))
        return parameters, builder.mul(self.parts(size, LINE), I64(LINE))


class NarrowPackingCode(_Panels):
    """Packs B in a narrow type. It packs numbers and parameters as FLOAT32 into scratch memory, and narrows
    them from there."""

    def item(self, item: ir.Value) -> None:
        """Pack one panel."""
        pitch = self._width * F32.bytes
        scratch = self.reserve(F32, (PART + self.lanes) * self._width)
        self._scratch_at = self.rows_at(scratch, pitch)
        group, panel = self.code.split(item, [I64(0), self.chunks])
        self.begin(group)
        across = self.chunk_range(panel, self.units)
        parameters, numbers = self._places(self.arena(), self.elements, item, I64(0))
        value, *others = self.pattern.values
        with self.code.loop(I64(0), self.parts(self.elements, self.narrow.block)) as number:
            row = self.builder.mul(number, I64(self.narrow.block))
            place = self.code.offset(parameters, self.builder.mul(number, self._block_bytes))
            for each, type in zip(others, self.narrow.parameters, strict=True):
                self._fill(each, across, (row, self.builder.add(row, I64(1))))
                self._store(place, type, self._vectors(I64(0)))
                place = self.code.offset(place, I64(self._width * type.bytes))
        with self.code.loop(I64(0), self.parts(self.elements, PART)) as part:
            first = self.builder.mul(part, I64(PART))
            last = self.code.minimum(self.builder.add(first, I64(PART)), self.elements)
            self._fill(value, across, (first, last))
            with self.code.loop(first, last, self.narrow.rows_together) as row:
                place = self.code.offset(numbers, self.builder.mul(row, self._row_bytes))
                before = self.builder.sub(row, first)
                if self.narrow.is_grouped:
                    self._store_group(place, before)
                else:
                    self._store_row(place, self._vectors(before))

    def _fill(self, value: Node, across: Range, depth: Range) -> None:
        """Pack one of the pattern's values as FLOAT32 into scratch memory."""
        self.packed_value = value
        self._clear_missing(self._scratch_at, self._width, depth, across)
        self.pack_k_rows(self._scratch_at, across, depth)

    def _vectors(self, row: ir.Value) -> list[ir.Value]:
        places = (self._scratch_at(row, I64(vector * self.lanes)) for vector in range(VECTORS))
        return [self.code.load(place, F32, self.lanes) for place in places]

    def _store_row(self, place: ir.Value, vectors: Sequence[ir.Value]) -> None:
        if self.narrow.bits == self.narrow.type.bits:
            self._store(place, self.narrow.type, vectors)
        else:
            self.code.store(place, self._halves(vectors), _BYTE)

    def _store_group(self, place: ir.Value, first: ir.Value) -> None:
        """Store the words of a group: each has the bytes of a column, the first row in the lowest one."""
        builder, word, type = self.builder, llvm_type(_WORD, self.lanes), self.narrow.type
        words: list[ir.Value] = []
        for row in range(GROUP):
            vectors = self._vectors(builder.add(first, I64(row)))
            if self.narrow.bits == type.bits:
                bytes = [conversion(builder, each, F32, type, self.lanes) for each in vectors]
            else:
                bytes = [self._halves(vectors)]
            shift = constant(_WORD, self.lanes, row * _BYTE.bits)
            shifted = [builder.shl(builder.zext(each, word), shift) for each in bytes]
            words = [builder.or_(*pair) for pair in zip(words, shifted, strict=True)] if row else shifted
        self._store(place, _WORD, words)

    def _store(self, place: ir.Value, type: ScalarType, vectors: Sequence[ir.Value]) -> None:
        for number, value in enumerate(vectors):
            is_whole = type in (F32, _WORD)
            narrowed = value if is_whole else conversion(self.builder, value, F32, type, self.lanes)
            self.code.store(self.code.offset(place, I64(number * self.lanes * type.bytes)), narrowed, type)

    def _halves(self, vectors: Sequence[ir.Value]) -> ir.Value:
        """Return bytes of two numbers of 4 bits each."""
        builder, lanes, type = self.builder, self.lanes, self.narrow.type
        low, high = (conversion(builder, each, F32, type, lanes) for each in vectors)
        low = builder.and_(low, constant(_BYTE, lanes, 15))
        return builder.or_(low, builder.shl(high, constant(_BYTE, lanes, 4)))


class NarrowCode(_Panels):
    """Reads B that an earlier launch packed in a narrow type. Its load has the distances of groups."""

    def open(self, arena: ir.Value, elements: ir.Value) -> None:
        """Find the packed B of the group that the code computes now. `elements` products are summed."""
        self._group, self._elements = self.code.offset(arena, self.group_distance()), elements

    def places(self, column: ir.Value, row: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return the addresses of the parameters and of the numbers of the panel of a column, from a row
        on."""
        panel = self.builder.udiv(column, I64(self._width))
        return self._places(self._group, self._elements, panel, row)

    @property
    def panel_bytes(self) -> ir.Value:
        """The bytes from one panel to the next."""
        return self._panel_bytes(self._elements)[1]

    def pack_b(self, place: AddressOf, width: int, columns: Range, depth: Range) -> None:
        """Widen a part of some panels. Columns that the last panel lacks become finite numbers."""
        builder, block = self.builder, I64(self.narrow.block)
        (start, stop), (first, last) = columns, depth
        with self.code.loop(I64(0), self.parts(builder.sub(stop, start), width)) as panel:
            before = builder.mul(panel, I64(width))
            parameters, numbers = self.places(builder.add(start, before), first)
            blocks = self.parts(builder.sub(last, first), self.narrow.block)
            with self.code.loop(I64(0), blocks) as number:
                begin = builder.add(first, builder.mul(number, block))
                end = self.code.minimum(builder.add(begin, block), last)
                at = self.code.offset(parameters, builder.mul(number, self._block_bytes))
                widening = Widening(builder, self.narrow, self.lanes, at)
                together = self.narrow.rows_together
                with self.code.loop(builder.sub(begin, first), builder.sub(end, first), together) as row:
                    at = self.code.offset(numbers, builder.mul(row, self._row_bytes))
                    for number_of_row, vectors in enumerate(widening.rows(at)):
                        own_row = builder.add(row, I64(number_of_row))
                        for vector, value in enumerate(vectors):
                            column = builder.add(before, I64(vector * self.lanes))
                            self.code.store(place(own_row, column), value, F32)
