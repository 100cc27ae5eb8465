"""Code that widens packed narrow operands in registers."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I32 as I32_TYPE
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.narrow import GROUP, Narrow, scaled_by
from opendml.targets.cpu.expression import emit
from opendml.targets.cpu.loads import Values
from opendml.targets.cpu.values import intrinsic, llvm_type, number, splat, vector_constant

I32 = ScalarType.INT32
VECTORS = 2
"""The vectors of a packed row. In a byte of two numbers of 4 bits, the low half belongs to the first one."""
_HALF, _BYTE = 4, 8
"""The bits of a half of a byte, and of a byte."""


class Widening:
    """Emits code that widens the rows of numbers of one block.

    Args:
        builder: emits the code. The constructor emits the loads of the block's parameters.
        narrow: the form of the operand.
        lanes: the lanes of a vector.
        parameters: the address of the block's parameters.
    """

    def __init__(self, builder: ir.IRBuilder, narrow: Narrow, lanes: int, parameters: ir.Value) -> None:
        self._builder, self._narrow, self._lanes = builder, narrow, lanes
        (self._root,) = narrow.values
        self._nodes = ordered(narrow.values)
        self._known: list[Values] = [{} for _ in range(VECTORS)]
        leaves = {each.attribute: each for each in self._nodes if each.operation is Operation.SOURCE}
        self._number = leaves[0]
        for place, type in enumerate(narrow.parameters, 1):
            for known in self._known:
                known[id(leaves[place])] = self._load(parameters, type)
                parameters = self._further(parameters, lanes * type.bytes)
        self._tables = self._floats_of_numbers()
        self._difference, self._zeros = self._root, list[ir.Value]()
        if narrow.affine is not None and narrow.bits != narrow.type.bits:
            self._difference, _ = scaled_by(self._root, narrow.bits)
            zero_source = narrow.affine.zero_source
            leaf = None if zero_source is None else leaves[zero_source]
            self._zeros = [self._zero_point(narrow.affine.zero, leaf, known) for known in self._known]
        # Values that depend on parameters alone are computed once for all rows.
        depending = {id(self._number)}
        for node in self._nodes:
            if depending.isdisjoint(map(id, node.operands)):
                for known in self._known:
                    self._emit(node, known)
            else:
                depending.add(id(node))

    def rows(self, place: ir.Value) -> list[list[ir.Value]]:
        """Return the vectors of the rows of numbers that lie together at an address: one row or a group."""
        return [self._values(numbers) for numbers in self._numbers(place)]

    def row_of_group(self, place: ir.Value, row: ir.Value) -> list[ir.Value]:
        """Return the vectors of one row of the group at an address."""
        shift = self._builder.mul(self._builder.trunc(row, I32_TYPE), I32_TYPE(_BYTE))
        return self._values(self._of_words(self._words(place), splat(self._builder, shift, self._lanes)))

    def _values(self, numbers: Sequence[Values]) -> list[ir.Value]:
        """Return the vectors of a row."""
        result = []
        for known, own in zip(self._known, numbers, strict=True):
            values = known | own
            for node in self._nodes:
                self._emit(node, values)
            result.append(values[id(self._root)])
        return result

    def _emit(self, node: Node, values: Values) -> None:
        """Emit a node whose operands are known; others are not needed."""
        if id(node) not in values and all(id(operand) in values for operand in node.operands):
            operands = [values[id(operand)] for operand in node.operands]
            if node.operation is not Operation.SOURCE:
                values[id(node)] = emit(self._builder, node, self._lanes, operands)

    def _numbers(self, place: ir.Value) -> list[list[Values]]:
        """Return the numbers of rows that lie together, as they are and, if they are 4 bits, as floats."""
        type, lanes = self._narrow.type, self._lanes
        if self._narrow.is_grouped:
            words = self._words(place)
            return [self._of_words(words, number(I32, lanes, _BYTE * row)) for row in range(GROUP)]
        if self._narrow.bits == type.bits:
            step = lanes * type.bytes
            return [
                [
                    {id(self._number): self._load(self._further(place, vector * step), type)}
                    for vector in range(VECTORS)
                ]
            ]
        builder = self._builder
        both = builder.zext(self._load(place, ScalarType.UINT8), llvm_type(I32, lanes))
        return [self._of_halves(both)]

    def _words(self, place: ir.Value) -> list[ir.Value]:
        """Return the words of a group: those of a vector of columns, or of two if numbers have 4 bits."""
        count = VECTORS * self._narrow.bits // _BYTE
        step = self._lanes * I32.bytes
        return [self._load(self._further(place, number * step), I32) for number in range(count)]

    def _of_words(self, words: Sequence[ir.Value], shift: ir.Value) -> list[Values]:
        """Return the numbers in the bytes of a group's words, from bit `shift` on."""
        builder, lanes, type = self._builder, self._lanes, self._narrow.type
        bytes = [builder.lshr(word, shift) for word in words]
        if self._narrow.bits == type.bits:
            return [{id(self._number): builder.trunc(each, llvm_type(type, lanes))} for each in bytes]
        (both,) = bytes
        return self._of_halves(both)

    def _of_halves(self, both: ir.Value) -> list[Values]:
        """Return the values of the numbers in the lowest 4 bits of lanes, and in the next 4."""
        halves = both, self._builder.lshr(both, number(I32, self._lanes, _HALF))
        return [self._of_half(half, place) for place, half in enumerate(halves)]

    def _of_half(self, half: ir.Value, place: int) -> Values:
        """Return the values of the numbers in the lowest 4 bits of lanes.

        A number is there with what is exact in 32 bits: its conversion, and its difference from the zero
        point. Or values are looked up by it.
        """
        builder, lanes, type = self._builder, self._lanes, self._narrow.type
        if self._tables:
            vector = llvm_type(F32, lanes)
            name = "llvm.x86.avx512.permvar.sf.512"
            tables = self._tables.items()
            return {node: intrinsic(builder, name, vector, [table, half]) for node, table in tables}
        if type.is_signed:
            shift = number(I32, lanes, I32.bits - _HALF)
            whole = builder.ashr(builder.shl(half, shift), shift)
        else:
            whole = builder.and_(half, number(I32, lanes, 15))
        values = {id(self._number): builder.trunc(whole, llvm_type(type, lanes))}
        for node in self._nodes:
            is_conversion = node.operation is Operation.CONVERT and node.type is F32
            if is_conversion and node.operands[0] is self._number:
                values[id(node)] = builder.sitofp(whole, llvm_type(F32, lanes))
        if self._zeros and self._difference.type is F32:
            difference = builder.sub(whole, self._zeros[place])
            values[id(self._difference)] = builder.sitofp(difference, llvm_type(F32, lanes))
        return values

    def _zero_point(self, zero: int, leaf: Node | None, known: Values) -> ir.Value:
        """Return a vector of zero points in 32 bits: a constant, or a parameter."""
        if leaf is None:
            return number(I32, self._lanes, zero)
        extend = self._builder.sext if self._narrow.type.is_signed else self._builder.zext
        return extend(known[id(leaf)], llvm_type(I32, self._lanes))

    def _floats_of_numbers(self) -> Values:
        """Return the floats that are computed of numbers of 4 bits alone, for all 16 numbers.

        A register of AVX-512 holds them, and one instruction looks them up by the lowest 4 bits.
        """
        type, lanes = self._narrow.type, self._lanes
        if self._narrow.bits == type.bits or lanes != 16:
            return {}
        signed = [each - 16 if type.is_signed and each > 7 else each for each in range(16)]
        values = {id(self._number): vector_constant(llvm_type(type, 1), signed)}
        users = {id(self._root)}
        for node in self._nodes:
            needed = [each for each in node.operands if each.operation is not Operation.CONSTANT]
            if needed and all(id(each) in values for each in needed):
                for each in node.operands:
                    self._emit(each, values)
                self._emit(node, values)
            else:
                users.update(map(id, node.operands))
        floats = (id(node) for node in self._nodes if node.type is F32 and id(node) in users)
        return {node: values[node] for node in floats if node in values}

    def _load(self, place: ir.Value, type: ScalarType) -> ir.Value:
        return self._builder.load(place, typ=llvm_type(type, self._lanes), align=type.bytes)

    def _further(self, pointer: ir.Value, distance: int) -> ir.Value:
        return self._builder.gep(pointer, [I64(distance)], source_etype=ir.IntType(8))
