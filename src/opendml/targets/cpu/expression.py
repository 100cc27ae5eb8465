"""Emits element-wise nodes as LLVM values: scalars, or vectors of as many lanes as the kernel works on."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from opendml.errors import Unsupported
from opendml.program.node import LookupTable, Node, Operation, Precision
from opendml.targets.cpu.conversion import conversion
from opendml.targets.cpu.division import DIVISIONS
from opendml.targets.cpu.exponents import EXPONENT_OPERATIONS, exponent_operation
from opendml.targets.cpu.tables import table_entries
from opendml.targets.cpu.values import llvm_type, number, overloaded, splat


def emit(builder: ir.IRBuilder, node: Node, lanes: int, operands: list[ir.Value]) -> ir.Value:
    """Emit `node` over operands that are emitted already, each a scalar or a vector of `lanes`."""
    values = [splat(builder, operand, lanes) for operand in operands]
    operation, type = node.operation, node.type
    if operation is Operation.CONSTANT:
        return number(type, lanes, node.attribute)  # type: ignore[arg-type]
    if operation is Operation.CONVERT:
        return conversion(builder, values[0], node.operands[0].type, type, lanes)
    if operation in (Operation.ROUND, Operation.EXPAND):
        return values[0]
    if operation is Operation.BITCAST:
        return builder.bitcast(values[0], llvm_type(type, lanes))
    if operation is Operation.SELECT:
        return builder.select(*values)
    if operation is Operation.LOOKUP and isinstance(node.attribute, LookupTable):
        return table_entries(builder, node.attribute.entries, values[0], lanes)
    if operation in EXPONENT_OPERATIONS:
        return exponent_operation(builder, operation, lanes, values)
    if operation in _COMPARISONS:
        return _comparison(builder, node, values)
    if operation in _ORDERED and any(each.operation is Operation.PARAMETER for each in node.operands):
        return _bounded(builder, node, values)
    if operation is Operation.DIVIDE and node.attribute is Precision.BY_RECIPROCAL:
        # The reciprocal of a number is made once, before all loops.
        return builder.fmul(values[0], builder.fdiv(number(type, lanes, 1.0), values[1]))
    if operation in DIVISIONS:
        return DIVISIONS[operation](builder, type, lanes, *values)
    intrinsics = _FLOAT_INTRINSICS if type.is_float else _INTEGER_INTRINSICS
    if operation in intrinsics:
        name = intrinsics[operation]
        # Which of two zeros a minimum is, is left open: its order costs three instructions.
        flags = ("nsz",) if type.is_float and operation in _ORDERED else ()
        if not type.is_float and operation in _ORDERED:
            name = f"{'s' if type.is_signed else 'u'}{name}"
        if name in _ROUNDINGS:
            # LLVM would round in FLOAT16 what comes from there, which processors can't.
            values = [overloaded(builder, "arithmetic.fence", type, lanes, values)]
        return overloaded(builder, name, type, lanes, values, flags)
    instructions = _FLOAT_INSTRUCTIONS if type.is_float else _INTEGER_INSTRUCTIONS
    if operation in instructions:
        return instructions[operation](builder, *values)
    if operation is Operation.SHIFT_RIGHT and not type.is_float:
        return (builder.ashr if type.is_signed else builder.lshr)(*values)
    if operation is Operation.ABSOLUTE:
        is_negative = builder.icmp_signed("<", values[0], number(type, lanes, 0))
        return builder.select(is_negative, builder.neg(values[0]), values[0])
    raise Unsupported(f"{operation.name} of {type.name} on the CPU")


def _comparison(builder: ir.IRBuilder, node: Node, values: list[ir.Value]) -> ir.Value:
    operator, type = _COMPARISONS[node.operation], node.operands[0].type
    if type.is_float:
        return builder.fcmp_ordered(operator, *values)
    return (builder.icmp_signed if type.is_signed else builder.icmp_unsigned)(operator, *values)


def _bounded(builder: ir.IRBuilder, node: Node, values: list[ir.Value]) -> ir.Value:
    """The lesser or greater of a value and a parameter, which LLVM does not know to be no NaN: one
    instruction rather than three."""
    is_first = node.operands[0].operation is Operation.PARAMETER
    bound, value = values if is_first else reversed(values)
    operator = "<" if node.operation is Operation.MINIMUM else ">"
    return builder.select(builder.fcmp_ordered(operator, bound, value), bound, value)


_COMPARISONS = {Operation.LESS: "<", Operation.LESS_EQUAL: "<=", Operation.EQUAL: "=="}

_FLOAT_INTRINSICS = {
    Operation.MULTIPLY_ADD: "fma",
    Operation.MINIMUM: "minimum",
    Operation.MAXIMUM: "maximum",
    Operation.ABSOLUTE: "fabs",
    Operation.SQUARE_ROOT: "sqrt",
    Operation.ROUND_EVEN: "roundeven",
    Operation.FLOOR: "floor",
    Operation.TRUNCATE: "trunc",
}

_INTEGER_INTRINSICS = {
    Operation.MINIMUM: "min",
    Operation.MAXIMUM: "max",
    Operation.COUNT_BITS: "ctpop",
}
_ROUNDINGS = ("roundeven", "floor", "trunc")
_ORDERED = (Operation.MINIMUM, Operation.MAXIMUM)

_Instruction = Callable[..., ir.Value]

_FLOAT_INSTRUCTIONS: dict[Operation, _Instruction] = {
    Operation.ADD: ir.IRBuilder.fadd,
    Operation.SUBTRACT: ir.IRBuilder.fsub,
    Operation.MULTIPLY: ir.IRBuilder.fmul,
    Operation.NEGATE: ir.IRBuilder.fneg,
}

_INTEGER_INSTRUCTIONS: dict[Operation, _Instruction] = {
    Operation.ADD: ir.IRBuilder.add,
    Operation.SUBTRACT: ir.IRBuilder.sub,
    Operation.MULTIPLY: ir.IRBuilder.mul,
    Operation.NEGATE: ir.IRBuilder.neg,
    Operation.AND: ir.IRBuilder.and_,
    Operation.OR: ir.IRBuilder.or_,
    Operation.XOR: ir.IRBuilder.xor,
    Operation.NOT: ir.IRBuilder.not_,
    Operation.SHIFT_LEFT: ir.IRBuilder.shl,
}
