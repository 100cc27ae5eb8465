"""Conversions between element types as LLVM values."""

from __future__ import annotations

import numpy as np

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.values import intrinsic, llvm_type, number, overloaded, type_suffix

_F16, _F32, _F64 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.FLOAT64


def conversion(
    builder: ir.IRBuilder, value: ir.Value, source: ScalarType, target: ScalarType, lanes: int
) -> ir.Value:
    """Convert a value from one type to another by the rules of CONVERT."""
    result = llvm_type(target, lanes)
    if _F16 in (source, target) and _F32 not in (source, target):
        # Processors convert FLOAT16 from and to FLOAT32 alone, which holds all integers that do not overflow.
        wide = (
            _to_odd(builder, value, lanes)
            if source is _F64
            else conversion(builder, value, source, _F32, lanes)
        )
        return conversion(builder, wide, _F32, target, lanes)
    if source is _F64 and target is _F32:
        return rounded_to_float32(builder, value, lanes)
    if source.is_float and target.is_float:
        return (builder.fpext if target.bits > source.bits else builder.fptrunc)(value, result)
    if source.is_float:
        return _truncated(builder, value, source, target, lanes)
    if target.is_float:
        return (builder.sitofp if source.is_signed else builder.uitofp)(value, result)
    if target.bits == source.bits:
        return value
    if target.bits < source.bits:
        return builder.trunc(value, result)
    return (builder.sext if source.is_signed else builder.zext)(value, result)


def rounded_to_float32(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """Round FLOAT64 to FLOAT32. LLVM may not fuse this with a rounding to FLOAT16, which processors lack."""
    rounded = builder.fptrunc(value, llvm_type(_F32, lanes))
    return overloaded(builder, "arithmetic.fence", _F32, lanes, [rounded])


def _truncated(
    builder: ir.IRBuilder, value: ir.Value, source: ScalarType, target: ScalarType, lanes: int
) -> ir.Value:
    """Convert a float to an integer that saturates and is 0 for NaN. LLVM's own saturation is scalar."""
    limits = np.iinfo(target.numpy.name)
    greatest = _at_most(limits.max, source)
    low, high = number(source, lanes, limits.min), number(source, lanes, greatest)
    raised = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    bounded = builder.select(builder.fcmp_ordered("<", high, raised), high, raised)
    # Of less than 32 bits, signed integers of 32 bits hold unsigned ones too.
    word = target if target.bits >= 32 else ScalarType.INT32
    converter = builder.fptosi if word.is_signed else builder.fptoui
    whole = converter(bounded, llvm_type(word, lanes))
    if word is not target:
        whole = builder.trunc(whole, llvm_type(target, lanes))
    if greatest < limits.max:
        is_above = builder.fcmp_ordered("<", high, value)
        whole = builder.select(is_above, number(target, lanes, limits.max), whole)
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.select(is_nan, number(target, lanes, 0), whole)


def _at_most(limit: int, type: ScalarType) -> float:
    """Return the greatest number of a float type that is not above the limit."""
    nearest = np.asarray(limit, type.numpy)
    return float(nearest if int(nearest) <= limit else np.nextafter(nearest, np.zeros_like(nearest)))


def _to_odd(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """Round FLOAT64 to FLOAT32 to odd, for a second rounding: an inexact result has its last bit set."""
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
