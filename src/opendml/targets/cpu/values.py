"""LLVM types, constants and intrinsics of scalars and vectors."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir

_FLOATS = {
    ScalarType.FLOAT16: ir.HALF,
    ScalarType.FLOAT32: ir.FLOAT,
    ScalarType.FLOAT64: ir.DOUBLE,
}
_SUFFIXES = {ScalarType.FLOAT16: "f16", ScalarType.FLOAT32: "f32", ScalarType.FLOAT64: "f64"}


@cache
def scalar_llvm_type(type: ScalarType) -> ir.Type:
    """Return the LLVM type of one element."""
    return _FLOATS.get(type) or ir.IntType(type.bits)


@cache
def llvm_type(type: ScalarType, lanes: int) -> ir.Type:
    """Return the LLVM type of `lanes` elements. One lane is a scalar."""
    element = scalar_llvm_type(type)
    return element if lanes == 1 else vector_type(element, lanes)


@cache
def vector_type(element: ir.Type, lanes: int) -> ir.Type:
    """Return the LLVM type of a vector."""
    return ir.VectorType(element, lanes)


def vector_constant(element: ir.Type, values: Iterable[int]) -> ir.Value:
    """Return a constant vector of integers."""
    return _vector_constant(element, tuple(values))


@cache
def _vector_constant(element: ir.Type, values: tuple[int, ...]) -> ir.Value:
    return ir.vector_of(element, values)


class Literal(ir.Value):
    """A constant in LLVM's own notation."""

    __slots__ = ()


def number(type: ScalarType, lanes: int, value: float) -> ir.Value:
    """Return a constant in every lane."""
    element = f"{scalar_llvm_type(type)} {_literal(type, value)}"
    text = _literal(type, value) if lanes == 1 else f"splat ({element})"
    return Literal(llvm_type(type, lanes), text)


def _literal(type: ScalarType, value: float) -> str:
    if not type.is_float:
        return str(int(value)) if type is not ScalarType.BOOLEAN else ("true" if value else "false")
    if type is ScalarType.FLOAT16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if type is ScalarType.FLOAT32:
        return float32_literal(value)
    return _float64_literal(value)


def float32_literal(value: float) -> str:
    """Return a number, rounded to FLOAT32, in LLVM's notation, which is that of FLOAT64."""
    return _float64_literal(_rounded_to_float32(value))


def _float64_literal(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _rounded_to_float32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def is_vector(value: ir.Value) -> bool:
    """Return whether a value has lanes."""
    return isinstance(value.type, ir.VectorType)


def splat(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """Return a scalar in every lane."""
    if lanes == 1 or isinstance(value.type, ir.VectorType):
        return value
    vector = vector_type(value.type, lanes)
    undefined = Literal(vector, "undef")
    first = builder.insert_element(undefined, value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, vector_constant(ir.IntType(32), [0] * lanes))


def intrinsic(
    builder: ir.IRBuilder,
    name: str,
    result: ir.Type,
    operands: list[ir.Value],
    alignment: tuple[int, int] | None = None,
    flags: tuple[str, ...] = (),
) -> ir.Value:
    """Call LLVM's intrinsic `name`, which is declared on first use. `alignment` is an operand's number and
    its alignment."""
    function = builder.module.function(name)
    if function is None:
        function = ir.Function(builder.module, result, [value.type for value in operands], name)
    return builder.call(function, operands, alignment, flags)


def overloaded(
    builder: ir.IRBuilder,
    name: str,
    type: ScalarType,
    lanes: int,
    values: list[ir.Value],
    flags: tuple[str, ...] = (),
) -> ir.Value:
    """Call LLVM's intrinsic `name` on values of a type."""
    name = f"llvm.{name}.{type_suffix(type, lanes)}"
    return intrinsic(builder, name, llvm_type(type, lanes), values, flags=flags)


def any_lane(builder: ir.IRBuilder, mask: ir.Value, lanes: int) -> ir.Value:
    """Return whether any lane of a mask is set."""
    if lanes == 1:
        return mask
    return intrinsic(builder, f"llvm.vector.reduce.or.v{lanes}i1", ir.IntType(1), [mask])


def type_suffix(type: ScalarType, lanes: int) -> str:
    """Return the suffix of the names of LLVM's intrinsics for a type."""
    return (f"v{lanes}" if lanes > 1 else "") + _SUFFIXES.get(type, f"i{type.bits}")
