"""Looks up tables of FLOAT32 by permutations of a register."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.values import Literal, float32_literal, intrinsic, llvm_type, vector_constant

_INSTRUCTIONS = {8: "llvm.x86.avx2.permps", 16: "llvm.x86.avx512.permvar.sf.512"}
"""LLVM's intrinsics for VPERMPS, by the lanes of the vector. They use the low 3 or 4 bits of an index."""


def has_tables() -> bool:
    """Return whether the processor looks up tables in registers."""
    return machine().has("avx2")


def table_size() -> int:
    """Return how many entries a table has that one register holds."""
    return 16 if machine().has("avx512f") else 8


def table_entries(builder: ir.IRBuilder, table: Sequence[float], index: ir.Value, lanes: int) -> ir.Value:
    """Emit the entries of `table` at indices, of which only the low bits count."""
    width = 16 if machine().has("avx512f") and max(lanes, len(table)) >= 16 else 8
    return in_registers(
        builder, width, lanes, [index], lambda values: _permuted(builder, table, values[0], width)
    )


def in_registers(
    builder: ir.IRBuilder,
    width: int,
    lanes: int,
    operands: Sequence[ir.Value],
    emit: Callable[[list[ir.Value]], ir.Value],
) -> ir.Value:
    """Emit an operation on values of `lanes` lanes that exists for registers of `width` lanes alone.

    Vectors are split, or filled up, to the width of a register.
    """
    if lanes == 1:
        filled = [
            builder.insert_element(Literal(ir.VectorType(each.type, width), "undef"), each, _I32(0))
            for each in operands
        ]
        return builder.extract_element(emit(filled), _I32(0))
    if lanes <= width:
        return _lanes(builder, emit([_lanes(builder, each, range(width)) for each in operands]), range(lanes))
    parts = [
        emit([_lanes(builder, each, range(first, first + width)) for each in operands])
        for first in range(0, lanes, width)
    ]
    while len(parts) > 1:
        joined = vector_constant(_I32, range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.shuffle_vector(first, second, joined) for first, second in pairs]
    return parts[0]


def _permuted(builder: ir.IRBuilder, table: Sequence[float], index: ir.Value, width: int) -> ir.Value:
    vector = llvm_type(ScalarType.FLOAT32, width)
    entries = ", ".join(f"float {float32_literal(value)}" for value in table)
    repeated = Literal(vector, f"<{', '.join([entries] * (width // len(table)))}>")
    return intrinsic(builder, _INSTRUCTIONS[width], vector, [repeated, index])


def _lanes(builder: ir.IRBuilder, value: ir.Value, lanes: Iterable[int]) -> ir.Value:
    """Return some lanes of a vector; those beyond its last are undefined."""
    count = value.type.count
    numbers = [lane if lane < count else 0 for lane in lanes]
    if numbers == list(range(count)):
        return value
    return builder.shuffle_vector(value, Literal(value.type, "undef"), vector_constant(_I32, numbers))


_I32 = ir.IntType(32)
