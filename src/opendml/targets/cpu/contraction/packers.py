"""The formats in which operands are packed, by the instructions that multiply them."""

from __future__ import annotations

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, Code
from opendml.targets.cpu.contraction.amx_int8 import emit_transpose_groups
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.bf16_parts import (
    OF_FACTORS,
    Magnitudes,
    PartLayout,
    emit_split_columns,
    emit_split_rows,
)
from opendml.targets.cpu.contraction.digits import emit_row_digits, row_count_place
from opendml.targets.cpu.contraction.integer_packing import IntegerPackingCode
from opendml.targets.cpu.contraction.narrow_code import NarrowCode, NarrowPackingCode
from opendml.targets.cpu.contraction.packing import Packer, PackingCode, Range
from opendml.targets.cpu.contraction.tiling import (
    REGISTER_ROWS,
    Instructions,
    OperandA,
    OperandB,
    odd_lines,
    packs_unaligned,
)
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.pattern import CpuPattern
from opendml.targets.cpu.shared_functions import shared_function


def pack_ahead_code(code: Code, pattern: CpuPattern) -> PackingCode:
    """Return the code of a kernel that packs an operand ahead."""
    assert isinstance(pattern.walk, OperandA | OperandB)
    if isinstance(pattern.walk, OperandB) and pattern.walk.narrow is not None:
        return NarrowPackingCode(code, pattern.walk)
    code.reads_unaligned = packs_unaligned(pattern)
    packing = packing_code(code, pattern.walk)
    packing.packer = packer_of(packing, packing)
    return packing


def packing_code(code: Code, operand: OperandA | OperandB, first_parameter: int = 0) -> PackingCode:
    """Return the code that reads and packs an operand in its type."""
    if isinstance(operand, OperandB) and operand.storage.is_narrow:
        return NarrowCode(code, operand, first_parameter)
    kind = IntegerPackingCode if operand.packing.group > 1 else PackingCode
    return kind(code, operand, first_parameter)


def packer_of(code: PackingCode, kernel: KernelCode, magnitudes: Magnitudes = OF_FACTORS) -> Packer:
    """Return the packer of an operand. It takes scratch memory from `kernel`, whose part the code is."""
    operand = code.operand
    if isinstance(operand, OperandB):
        if operand.instructions is Instructions.AMX_BF16:
            return _Bf16Columns(code, operand, kernel, magnitudes)
        return _VectorsB(code, operand)
    if operand.instructions is Instructions.AMX_BF16:
        return _Bf16Rows(code, operand, kernel, magnitudes)
    if operand.instructions is Instructions.DIGITS:
        return _DigitRows(code, operand, kernel)
    return (_Int8Rows if operand.instructions is Instructions.AMX_INT8 else _VectorsA)(code, operand, kernel)


class _VectorsA:
    """Packs A for vector instructions."""

    def __init__(self, code: PackingCode, operand: OperandA, kernel: KernelCode) -> None:
        self._code = code

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        self._code.pack_a(place, across, depth)


class _VectorsB:
    """Packs B for vector instructions, and for AMX of integers."""

    def __init__(self, code: PackingCode, operand: OperandB) -> None:
        self._code, self._width = code, operand.columns

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        at = self._code.rows_at(place, self._width * F32.bytes)
        self._code.pack_b(at, self._width, across, depth)


class _Bf16Rows:
    """Packs A in bfloat16 parts. Rows of a plain matrix along k are split where they lie, others are copied
    into scratch memory before."""

    def __init__(
        self, code: PackingCode, operand: OperandA, kernel: KernelCode, magnitudes: Magnitudes
    ) -> None:
        self._code = code
        layout = PartLayout(operand.rows // REGISTER_ROWS, operand.depth, magnitudes)
        self._split, _ = shared_function(code.function.module, "split_rows", emit_split_rows, layout)
        self._is_plain = operand.packing.is_plain and operand.packing.along_depth
        self._pitch = odd_lines(operand.depth + code.lanes)
        rows = operand.rows + code.lanes
        self._scratch = kernel.reserve(F32, 0 if self._is_plain else rows * self._pitch // F32.bytes)

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        code = self._code
        source, pitch = self._scratch, I64(self._pitch)
        if self._is_plain:
            source, pitch = code.at(across[0], depth[0])
        else:
            code.pack_m_rows(code.rows_at(source, self._pitch), across, depth)
        counts = [code.builder.sub(last, first) for first, last in (across, depth)]
        code.builder.call(self._split, [source, pitch, place, *counts])


class _Bf16Columns:
    """Packs B in bfloat16 parts. Whole panels of plain matrices are split where they lie, others are copied
    into scratch memory before."""

    def __init__(
        self, code: PackingCode, operand: OperandB, kernel: KernelCode, magnitudes: Magnitudes
    ) -> None:
        self._code, self._width = code, operand.columns
        layout = PartLayout(operand.columns // code.lanes, operand.depth, magnitudes)
        self._split, _ = shared_function(code.function.module, "split_columns", emit_split_columns, layout)
        self._is_plain = operand.packing.is_plain and not operand.packing.along_depth
        self._pitch = odd_lines(operand.columns + code.lanes)
        self._scratch = kernel.reserve(F32, (operand.depth + code.lanes) * self._pitch // F32.bytes)

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        code, builder = self._code, self._code.builder
        source, pitch = self._scratch, I64(self._pitch)
        count = builder.sub(across[1], across[0])
        is_copied = builder.icmp_signed("<", count, I64(self._width if self._is_plain else 2**62))
        with builder.if_then(is_copied):
            code.pack_b(code.rows_at(source, self._pitch), self._width, across, depth)
        if self._is_plain:
            there, row_bytes = code.at(depth[0], across[0])
            source, pitch = (
                builder.select(is_copied, *pair) for pair in ((source, there), (pitch, row_bytes))
            )
        builder.call(self._split, [source, pitch, place, builder.sub(depth[1], depth[0])])


class _Int8Rows:
    """Packs A in rows of groups for AMX: packs them for vectors into scratch memory, and transposes them."""

    def __init__(self, code: PackingCode, operand: OperandA, kernel: KernelCode) -> None:
        self._code, self._pitch = code, operand.rows * F32.bytes
        self._transpose = emit_transpose_groups(code.function.module, "turn", operand)
        self._scratch = kernel.reserve(F32, (operand.groups + 2 + code.lanes) * operand.rows)

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        code = self._code
        code.pack_k_rows(code.rows_at(self._scratch, self._pitch), across, depth)
        groups = code.parts(code.builder.sub(depth[1], depth[0]), code.operand.packing.group)
        code.builder.call(self._transpose, [self._scratch, place, groups])


class _DigitRows:
    """Packs rows of A in digits. They are copied into scratch memory before."""

    def __init__(self, code: PackingCode, operand: OperandA, kernel: KernelCode) -> None:
        self._code = code
        self._pitch = odd_lines(operand.depth + code.lanes)
        self._layout = operand.digit_rows(code.lanes)
        self._convert = emit_row_digits(code.function.module, "digits", self._layout, code.lanes)
        self._scratch = kernel.reserve(F32, (operand.rows + code.lanes) * self._pitch // F32.bytes)

    def pack(self, place: ir.Value, across: Range, depth: Range) -> None:
        builder, code = self._code.builder, self._code.code
        self._code.pack_m_rows(self._code.rows_at(self._scratch, self._pitch), across, depth)
        count, rows = (builder.sub(last, first) for first, last in (depth, across))
        together = self._layout.together
        whole = builder.mul(self._code.parts(rows, together), I64(together))
        # Rows that are lacking are the last row again.
        with code.loop(I64(0), whole) as row:
            own = builder.mul(code.minimum(row, builder.sub(rows, I64(1))), I64(self._pitch))
            target = code.offset(place, builder.mul(row, I64(self._layout.row_bytes)))
            builder.call(self._convert, [code.offset(self._scratch, own), target, count])
        code.store(row_count_place(code, place, self._layout), whole, ScalarType.INT64)
