"""The instructions that add products, by the type of packed elements. Floats are added one at a time, narrow
integers in groups that share 32 bits."""

from __future__ import annotations

from collections.abc import Callable

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import CpuMachine
from opendml.targets.cpu.values import intrinsic, llvm_type, overloaded

F32, I32 = ScalarType.FLOAT32, ScalarType.INT32

BYTES = ScalarType.INT8, ScalarType.UINT8
"""The types of 8-bit operands, as the instruction requires: A is signed, B is unsigned."""

_PAIRS_INTRINSICS = {
    16: "llvm.x86.avx512.pmaddw.d.512",
    8: "llvm.x86.avx2.pmadd.wd",
    4: "llvm.x86.sse2.pmadd.wd",
}
"""The instructions for sums of products of pairs, by lanes."""

MultiplyAdd = Callable[[ir.IRBuilder, ir.Value, ir.Value, ir.Value, int], ir.Value]
"""Returns new totals from totals, a group of either operand for each, and the number of lanes."""


def total_type(packed: ScalarType) -> ScalarType:
    """Return the type of sums of products."""
    return F32 if packed is F32 else I32


def multiply_add(packed: ScalarType) -> MultiplyAdd:
    """Return the function that adds the products of groups, if A is packed in a type."""
    return _MULTIPLY_ADD[packed]


def has_bytes(host: CpuMachine) -> bool:
    """Return whether a processor adds the products of four bytes at once."""
    wide = host.has("avx512vnni") and (host.vector_bytes == 64 or host.has("avx512vl"))
    return wide or (host.vector_bytes < 64 and host.has("avxvnni"))


def has_pairs(host: CpuMachine) -> bool:
    """Return whether a processor adds the products of pairs of 16 bits at once."""
    if not host.triple.startswith("x86_64"):
        return False
    return host.vector_bytes < 64 or host.has("avx512bw")


def dot_bytes(
    builder: ir.IRBuilder, total: ir.Value, signed: ir.Value, unsigned: ir.Value, lanes: int
) -> ir.Value:
    """Return the totals plus four products of bytes each, exact and wrapping."""
    name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
    return intrinsic(builder, name, llvm_type(I32, lanes), [total, unsigned, signed])


def _pairs(builder: ir.IRBuilder, total: ir.Value, a: ir.Value, b: ir.Value, lanes: int) -> ir.Value:
    pairs = llvm_type(ScalarType.INT16, 2 * lanes)
    operands = [builder.bitcast(each, pairs) for each in (a, b)]
    products = intrinsic(builder, _PAIRS_INTRINSICS[lanes], llvm_type(I32, lanes), operands)
    return builder.add(total, products)


def _integers(builder: ir.IRBuilder, total: ir.Value, a: ir.Value, b: ir.Value, lanes: int) -> ir.Value:
    return builder.add(total, builder.mul(a, b))


def _floats(builder: ir.IRBuilder, total: ir.Value, a: ir.Value, b: ir.Value, lanes: int) -> ir.Value:
    return overloaded(builder, "fma", F32, lanes, [a, b, total])


_MULTIPLY_ADD: dict[ScalarType, MultiplyAdd] = {
    F32: _floats,
    I32: _integers,
    ScalarType.INT16: _pairs,
    ScalarType.INT8: dot_bytes,
}
