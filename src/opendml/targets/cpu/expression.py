"""Emits element-wise nodes as LLVM values: scalars, or vectors of as many lanes as the kernel works on."""

from __future__ import annotations

import struct
from collections.abc import Callable

from llvmlite import ir

from opendml.errors import Unsupported
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType

_FLOATS = {
    ScalarType.FLOAT16: ir.HalfType(),
    ScalarType.FLOAT32: ir.FloatType(),
    ScalarType.FLOAT64: ir.DoubleType(),
}
_SUFFIXES = {ScalarType.FLOAT16: "f16", ScalarType.FLOAT32: "f32", ScalarType.FLOAT64: "f64"}


def scalar_llvm_type(type: ScalarType) -> ir.Type:
    """The LLVM type of one element."""
    return _FLOATS.get(type) or ir.IntType(type.bits)


def llvm_type(type: ScalarType, lanes: int) -> ir.Type:
    """The LLVM type of `lanes` elements; one lane is a scalar."""
    element = scalar_llvm_type(type)
    return element if lanes == 1 else ir.VectorType(element, lanes)


class Literal(ir.Constant):  # type: ignore[misc]
    """A constant in LLVM's own notation: llvmlite writes the elements of vectors one by one, which takes long
    to parse."""

    def __init__(self, type: ir.Type, text: str) -> None:
        self.type, self.constant = type, text

    def _get_reference(self) -> str:
        return self.constant


def number(type: ScalarType, lanes: int, value: float) -> ir.Value:
    """A constant in every lane."""
    element = f"{scalar_llvm_type(type)} {_literal(type, value)}"
    text = _literal(type, value) if lanes == 1 else f"splat ({element})"
    return Literal(llvm_type(type, lanes), text)


def _literal(type: ScalarType, value: float) -> str:
    if not type.is_float:
        return str(int(value)) if type is not ScalarType.BOOLEAN else ("true" if value else "false")
    if type is ScalarType.FLOAT16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if type is ScalarType.FLOAT32:
        value = _rounded_to_float32(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _rounded_to_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def splat(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A scalar in every lane."""
    if lanes == 1 or isinstance(value.type, ir.VectorType):
        return value
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def intrinsic(
    builder: ir.IRBuilder,
    name: str,
    result: ir.Type,
    operands: list[ir.Value],
    alignment: tuple[int, int] | None = None,
    flags: tuple[str, ...] = (),
) -> ir.Value:
    """A call of LLVM's intrinsic `name`, declared on first use; `alignment` is an operand's number and its
    alignment."""
    function = builder.module.globals.get(name)
    if function is None:
        function = ir.Function(
            builder.module, ir.FunctionType(result, [value.type for value in operands]), name
        )
    call = builder.call(
        function, operands, arg_attrs={alignment[0]: ()} if alignment else None, fastmath=flags
    )
    if alignment:
        call.arg_attributes[alignment[0]].align = alignment[1]
    return call


def emit(builder: ir.IRBuilder, node: Node, lanes: int, operands: list[ir.Value]) -> ir.Value:
    """`node` over operands that are emitted already, each a scalar or a vector of `lanes`."""
    values = [splat(builder, operand, lanes) for operand in operands]
    if node.operation is Operation.CONSTANT:
        return number(node.type, lanes, node.attribute)  # type: ignore[arg-type]
    if node.operation is Operation.CONVERT:
        return _conversion(builder, values[0], node.operands[0].type, node.type, lanes)
    if node.operation is Operation.BITCAST:
        return builder.bitcast(values[0], llvm_type(node.type, lanes))
    if node.operation is Operation.SELECT:
        return builder.select(*values)
    if node.operation in _COMPARISONS:
        return _comparison(builder, node, values)
    type = node.type
    if type.is_float:
        if node.operation in _FLOAT_INTRINSICS:
            width = f"v{lanes}" if lanes > 1 else ""
            name = f"llvm.{_FLOAT_INTRINSICS[node.operation]}.{width}{_SUFFIXES[type]}"
            # Which of two zeros a minimum is, is left open: its order costs three instructions.
            flags = ("nsz",) if node.operation in (Operation.MINIMUM, Operation.MAXIMUM) else ()
            return intrinsic(builder, name, values[0].type, values, flags=flags)
        if node.operation in _FLOAT_INSTRUCTIONS:
            return _FLOAT_INSTRUCTIONS[node.operation](builder, *values)
    elif node.operation in _INTEGER_INSTRUCTIONS:
        return _INTEGER_INSTRUCTIONS[node.operation](builder, *values)
    elif node.operation is Operation.SHIFT_RIGHT:
        return (builder.ashr if type.is_signed else builder.lshr)(*values)
    raise Unsupported(f"{node.operation.name} of {type.name} on the CPU")


def _comparison(builder: ir.IRBuilder, node: Node, values: list[ir.Value]) -> ir.Value:
    operator, type = _COMPARISONS[node.operation], node.operands[0].type
    if type.is_float:
        return builder.fcmp_ordered(operator, *values)
    return (builder.icmp_signed if type.is_signed else builder.icmp_unsigned)(operator, *values)


def _conversion(
    builder: ir.IRBuilder, value: ir.Value, source: ScalarType, target: ScalarType, lanes: int
) -> ir.Value:
    result = llvm_type(target, lanes)
    if source.is_float and target.is_float:
        return (builder.fpext if target.bits > source.bits else builder.fptrunc)(value, result)
    if source.is_float:
        return (builder.fptosi if target.is_signed else builder.fptoui)(value, result)
    if target.is_float:
        return (builder.sitofp if source.is_signed else builder.uitofp)(value, result)
    if target.bits == source.bits:
        return value
    if target.bits < source.bits:
        return builder.trunc(value, result)
    return (builder.sext if source.is_signed else builder.zext)(value, result)


_COMPARISONS = {Operation.LESS: "<", Operation.LESS_EQUAL: "<=", Operation.EQUAL: "=="}

_FLOAT_INTRINSICS = {
    Operation.MULTIPLY_ADD: "fma",
    Operation.MINIMUM: "minimum",
    Operation.MAXIMUM: "maximum",
    Operation.ABSOLUTE: "fabs",
    Operation.SQUARE_ROOT: "sqrt",
    Operation.ROUND_EVEN: "roundeven",
}

_Instruction = Callable[..., ir.Value]

_FLOAT_INSTRUCTIONS: dict[Operation, _Instruction] = {
    Operation.ADD: ir.IRBuilder.fadd,
    Operation.SUBTRACT: ir.IRBuilder.fsub,
    Operation.MULTIPLY: ir.IRBuilder.fmul,
    Operation.DIVIDE: ir.IRBuilder.fdiv,
    Operation.NEGATE: ir.IRBuilder.fneg,
}

_INTEGER_INSTRUCTIONS: dict[Operation, _Instruction] = {
    Operation.ADD: ir.IRBuilder.add,
    Operation.SUBTRACT: ir.IRBuilder.sub,
    Operation.MULTIPLY: ir.IRBuilder.mul,
    Operation.NEGATE: ir.IRBuilder.neg,
    Operation.AND: ir.IRBuilder.and_,
    Operation.OR: ir.IRBuilder.or_,
    Operation.NOT: ir.IRBuilder.not_,
    Operation.SHIFT_LEFT: ir.IRBuilder.shl,
}
