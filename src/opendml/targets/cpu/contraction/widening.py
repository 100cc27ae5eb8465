"""The widening of packed narrow operands in registers."""

from __future__ import annotations

from llvmlite import ir

from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I64
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.narrow import Narrow
from opendml.targets.cpu.expression import emit
from opendml.targets.cpu.loads import Values
from opendml.targets.cpu.values import intrinsic, llvm_type, number

I32 = ScalarType.INT32
VECTORS = 2
"""The vectors of a packed row. In a byte of two numbers of 4 bits, the low half belongs to the first one."""
_HALF = 4


class Widening:
    """Widens rows of numbers of one block.

    Args:
        builder: emits the code, here that which reads the block's parameters.
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
        # What is computed of parameters alone is the same for all rows.
        depending = {id(self._number)}
        for node in self._nodes:
            if depending.isdisjoint(map(id, node.operands)):
                for known in self._known:
                    self._emit(node, known)
            else:
                depending.add(id(node))

    def row(self, place: ir.Value) -> list[ir.Value]:
        """Return the vectors of a row of numbers at an address."""
        result = []
        for known, numbers in zip(self._known, self._numbers(place), strict=True):
            values = known | numbers
            for node in self._nodes:
                self._emit(node, values)
            result.append(values[id(self._root)])
        return result

    def _emit(self, node: Node, values: Values) -> None:
        if id(node) not in values and node.operation is not Operation.SOURCE:
            operands = [values[id(operand)] for operand in node.operands]
            values[id(node)] = emit(self._builder, node, self._lanes, operands)

    def _numbers(self, place: ir.Value) -> list[Values]:
        """Return the numbers of a row, as they are and, if they are 4 bits, as floats."""
        type, lanes = self._narrow.type, self._lanes
        if self._narrow.bits == type.bits:
            step = lanes * type.bytes
            return [
                {id(self._number): self._load(self._further(place, vector * step), type)}
                for vector in range(VECTORS)
            ]
        builder = self._builder
        both = builder.zext(self._load(place, ScalarType.UINT8), llvm_type(I32, lanes))
        halves = both, builder.lshr(both, number(I32, lanes, _HALF))
        return [self._of_half(half) for half in halves]

    def _of_half(self, half: ir.Value) -> Values:
        """Return the number in the low half of each byte."""
        builder, lanes, type = self._builder, self._lanes, self._narrow.type
        if type.is_signed:
            shift = number(I32, lanes, I32.bits - _HALF)
            whole = builder.ashr(builder.shl(half, shift), shift)
        else:
            whole = builder.and_(half, number(I32, lanes, 15))
        values = {id(self._number): builder.trunc(whole, llvm_type(type, lanes))}
        floats = None
        for node in self._nodes:
            is_conversion = node.operation is Operation.CONVERT and node.type is F32
            if is_conversion and node.operands[0] is self._number:
                floats = floats or self._as_floats(half, whole)
                values[id(node)] = floats
        return values

    def _as_floats(self, half: ir.Value, whole: ir.Value) -> ir.Value:
        """Return the numbers in the low halves as floats. A register of AVX-512 holds all 16 of them, and one
        instruction looks them up by the lowest 4 bits."""
        vector = llvm_type(F32, self._lanes)
        if self._lanes != 16:
            return self._builder.sitofp(whole, vector)
        numbers = [each - 16 if self._narrow.type.is_signed and each > 7 else each for each in range(16)]
        table = ir.Constant(vector, [float(each) for each in numbers])
        return intrinsic(self._builder, "llvm.x86.avx512.permvar.sf.512", vector, [table, half])

    def _load(self, place: ir.Value, type: ScalarType) -> ir.Value:
        return self._builder.load(place, typ=llvm_type(type, self._lanes), align=type.bytes)

    def _further(self, pointer: ir.Value, distance: int) -> ir.Value:
        return self._builder.gep(pointer, [I64(distance)], source_etype=ir.IntType(8))
