"""Quotients and remainders as LLVM values. No processor divides vectors of integers, and none may trap."""

from __future__ import annotations

from opendml.errors import Unsupported
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.conversion import rounded_to_float32
from opendml.targets.cpu.values import any_lane, intrinsic, llvm_type, number, type_suffix

_F32, _F64 = ScalarType.FLOAT32, ScalarType.FLOAT64


def quotient(builder: ir.IRBuilder, type: ScalarType, lanes: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return a / b by the rules of DIVIDE."""
    if type.is_float:
        return builder.fdiv(a, b)
    whole = (_exact_quotient if type.bits == 64 else _float_quotient)(builder, type, lanes, a, b)
    if type.is_signed:
        is_minus_one = builder.icmp_signed("==", b, number(type, lanes, -1))
        whole = builder.select(is_minus_one, builder.neg(a), whole)
    is_zero = builder.icmp_signed("==", b, number(type, lanes, 0))
    return builder.select(is_zero, number(type, lanes, -1), whole)


def remainder(builder: ir.IRBuilder, type: ScalarType, lanes: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the remainder of the truncated quotient by the rules of REMAINDER."""
    if type.is_float:
        return builder.call(_float_remainder(builder.module, type, lanes), [a, b])
    return builder.sub(a, builder.mul(quotient(builder, type, lanes, a, b), b))


def _float_quotient(
    builder: ir.IRBuilder, type: ScalarType, lanes: int, a: ir.Value, b: ir.Value
) -> ir.Value:
    """Return the truncated quotient of the integers as floats. These have more digits than the integers, so
    it is not rounded up to an integer. It is undefined for a divisor of zero, and for the least integer by
    -1."""
    floats = llvm_type(_F64 if type.bits == 32 else _F32, lanes)
    to_float = builder.sitofp if type.is_signed else builder.uitofp
    divided = builder.fdiv(to_float(a, floats), to_float(b, floats))
    words = llvm_type(ScalarType.INT32 if type.is_signed else ScalarType.UINT32, lanes)
    whole = (builder.fptosi if type.is_signed else builder.fptoui)(divided, words)
    return whole if type.bits == 32 else builder.trunc(whole, a.type)


def _exact_quotient(
    builder: ir.IRBuilder, type: ScalarType, lanes: int, a: ir.Value, b: ir.Value
) -> ir.Value:
    """Return the quotient of the processor's division. If that would trap, divide by one."""
    traps = builder.icmp_signed("==", b, number(type, lanes, 0))
    if type.is_signed:
        traps = builder.or_(traps, builder.icmp_signed("==", b, number(type, lanes, -1)))
    divisor = builder.select(traps, number(type, lanes, 1), b)
    return (builder.sdiv if type.is_signed else builder.udiv)(a, divisor)


def _float_remainder(module: ir.Module, type: ScalarType, lanes: int) -> ir.Function:
    """Define a function of FLOAT32 that subtracts quotients in FLOAT64 until none is left.

    Every difference is exact, as it is less than the last place of the quotient times b. A quotient that was
    rounded up leaves a rest of the other sign. Mostly one quotient is enough.
    """
    if type is not _F32:
        raise Unsupported(f"{Operation.REMAINDER.name} of {type.name} on the CPU")
    name = f"remainder.{type_suffix(type, lanes)}"
    if (known := module.function(name)) is not None:
        return known
    narrow, wide = llvm_type(type, lanes), llvm_type(_F64, lanes)
    suffix = type_suffix(_F64, lanes)
    function = ir.Function(module, narrow, [narrow, narrow], name)
    function.linkage = "internal"
    function.attributes.append("nounwind")
    entry, head, step, done = (
        function.append_basic_block(part) for part in ("entry", "head", "step", "done")
    )
    builder = ir.IRBuilder(entry)

    def call(name: str, *operands: ir.Value) -> ir.Value:
        return intrinsic(builder, f"llvm.{name}.{suffix}", wide, list(operands))

    start = builder.fpext(function.args[0], wide)
    divisor = call("fabs", builder.fpext(function.args[1], wide))
    builder.branch(head)
    builder.position_at_end(head)
    rest = builder.phi(wide)
    is_left = builder.fcmp_ordered(">=", call("fabs", rest), divisor)
    builder.cbranch(any_lane(builder, is_left, lanes), step, done)
    builder.position_at_end(step)
    whole = call("trunc", builder.fdiv(rest, divisor))
    less = builder.select(is_left, call("fma", builder.fneg(whole), divisor, rest), rest)
    builder.branch(head)
    rest.add_incoming(start, entry)
    rest.add_incoming(less, step)
    builder.position_at_end(done)
    product = builder.fmul(rest, start)
    has_other_sign = builder.fcmp_ordered("<", product, number(_F64, lanes, 0.0))
    corrected = builder.fadd(rest, call("copysign", divisor, start))
    result = call("copysign", builder.select(has_other_sign, corrected, rest), start)
    result = builder.select(builder.fcmp_unordered("uno", divisor, divisor), divisor, result)
    builder.ret(rounded_to_float32(builder, result, lanes))
    return function
