"""Conversions between element types as LLVM values."""

from __future__ import annotations

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.values import intrinsic, llvm_type, number, type_suffix

_F16, _F32, _F64 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.FLOAT64


def conversion(
    builder: ir.IRBuilder, value: ir.Value, source: ScalarType, target: ScalarType, lanes: int
) -> ir.Value:
    """`value` of type `source` as `target`, with CONVERT's rules."""
    result = llvm_type(target, lanes)
    if _F16 in (source, target) and _F32 not in (source, target):
        # Processors know FLOAT16 from FLOAT32 alone. It holds all integers that do not overflow.
        wide = (
            _to_odd(builder, value, lanes)
            if source is _F64
            else conversion(builder, value, source, _F32, lanes)
        )
        return conversion(builder, wide, _F32, target, lanes)
    if source.is_float and target.is_float:
        return (builder.fpext if target.bits > source.bits else builder.fptrunc)(value, result)
    if source.is_float:
        name = f"llvm.fpto{'s' if target.is_signed else 'u'}i.sat"
        suffixes = f"{type_suffix(target, lanes)}.{type_suffix(source, lanes)}"
        return intrinsic(builder, f"{name}.{suffixes}", result, [value])
    if target.is_float:
        return (builder.sitofp if source.is_signed else builder.uitofp)(value, result)
    if target.bits == source.bits:
        return value
    if target.bits < source.bits:
        return builder.trunc(value, result)
    return (builder.sext if source.is_signed else builder.zext)(value, result)


def _to_odd(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """FLOAT64 as FLOAT32 for a second rounding: cut off, with the last bit set where that lost something."""
    int32 = ScalarType.INT32
    nearest = builder.fptrunc(value, llvm_type(_F32, lanes))
    back = builder.fpext(nearest, value.type)
    magnitude = type_suffix(_F64, lanes)
    is_beyond = builder.fcmp_ordered(
        ">",
        intrinsic(builder, f"llvm.fabs.{magnitude}", value.type, [back]),
        intrinsic(builder, f"llvm.fabs.{magnitude}", value.type, [value]),
    )
    is_inexact = builder.fcmp_ordered("!=", back, value)
    bits = builder.bitcast(nearest, llvm_type(int32, lanes))
    cut = builder.add(bits, builder.sext(is_beyond, bits.type))
    odd = builder.select(is_inexact, builder.or_(cut, number(int32, lanes, 1)), cut)
    return builder.bitcast(odd, nearest.type)
