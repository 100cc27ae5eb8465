"""Products of 8-bit integers in matrix registers. Groups of four neighbours along k are packed as for vectors
(`integer_packing.py`). Those of B lie as registers take them, in rows of columns. Those of A are transposed
into rows, with their sums and what is subtracted behind."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.code import I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.amx import RegisterTile
from opendml.targets.cpu.contraction.tiling import REGISTER_ROWS, MicroKernel, OperandA
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.shuffles import transposed
from opendml.targets.cpu.values import number

_F32, _I32 = ScalarType.FLOAT32, ScalarType.INT32
_LANES = REGISTER_ROWS


def emit_transpose_groups(module: ir.Module, name: str, operand: OperandA) -> ir.Function:
    """Emit the function name(source, part, groups), which packs rows of a part of A from columns of groups,
    and from two more columns behind these. Rows end with zeros, up to a cache line."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    source, part, groups = function.args
    code = Code(function, _LANES)
    builder = code.builder
    column_bytes, row_bytes = operand.rows * _I32.bytes, operand.amx_row_bytes
    zero = number(_F32, _LANES, 0.0)
    steps = builder.udiv(builder.add(groups, I64(_LANES - 1)), I64(_LANES))
    with code.loop(I64(0), I64(operand.rows), REGISTER_ROWS) as row, code.loop(I64(0), steps) as step:
        first = builder.mul(step, I64(_LANES))
        across = code.offset(source, builder.mul(row, I64(_I32.bytes)))
        columns = []
        for lane in range(_LANES):
            index = builder.add(first, I64(lane))
            at = code.offset(across, builder.mul(index, I64(column_bytes)))
            is_there = code.broadcast(builder.icmp_signed("<", index, groups))
            columns.append(builder.select(is_there, code.load(at, _F32, _LANES), zero))
        along = code.offset(part, builder.mul(row, I64(row_bytes)))
        along = code.offset(along, builder.mul(step, I64(LINE)))
        for lane, value in enumerate(transposed(builder, columns, _F32, _LANES)):
            code.store(code.offset(along, I64(lane * row_bytes)), value, _F32)
    behind = code.offset(source, builder.mul(groups, I64(column_bytes)))
    target = code.offset(part, I64(operand.rows * row_bytes))
    with code.loop(I64(0), I64(2 * column_bytes), LINE) as at:
        code.store(code.offset(target, at), code.load(code.offset(behind, at), _F32, _LANES), _F32)
    builder.ret_void()
    return function


class Int8Kernel(RegisterTile):
    """Multiplies groups of 8-bit integers; `depth` is the number of groups. What is subtracted lies behind
    them: (a - p) (b - q) is a b - a q - p (b - q)."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        micro: MicroKernel,
        operand: OperandA,
        c_row_bytes: int,
        b_row_bytes: int,
    ) -> None:
        super().__init__(module, name, micro, c_row_bytes, _I32)
        self._rows, self._a_row_bytes, self._b_row_bytes = operand.rows, operand.amx_row_bytes, b_row_bytes
        self._emit()

    def _emit(self) -> None:
        a, b, _, _, _, depth, _, tile, *target = self.function.args
        builder, code = self._builder, self._code
        self._clear_totals()
        steps = builder.udiv(builder.add(depth, I64(_LANES - 1)), I64(_LANES))
        with code.loop(I64(0), steps) as step:
            self._prefetch_results(step, target)
            self._take_in(
                code.offset(a, builder.mul(step, I64(LINE))),
                code.offset(b, builder.mul(step, I64(_LANES * self._b_row_bytes))),
            )
        self._store_totals((tile, I64(self.row_bytes)))
        behind = code.offset(a, I64(self._rows * self._a_row_bytes))
        differences = code.offset(b, builder.mul(depth, I64(self._b_row_bytes)))
        of_columns = [
            [
                code.load(
                    code.offset(differences, I64(row * self._b_row_bytes + column * LINE)), _I32, _LANES
                )
                for column in range(self.registers[1])
            ]
            for row in range(2)
        ]
        self._put(tile, lambda row, sums: self._less(behind, row, of_columns, sums))
        builder.ret_void()

    def _take_in(self, a: ir.Value, b: ir.Value) -> None:
        """Add the products of a register's groups of each row and column."""
        rows, columns = self.registers
        first_a = rows * columns
        for column in range(columns):
            self._load(first_a + rows + column, self._code.offset(b, I64(column * LINE)), self._b_row_bytes)
        for row in range(rows):
            here = self._code.offset(a, I64(row * REGISTER_ROWS * self._a_row_bytes))
            self._load(first_a + row, here, self._a_row_bytes)
        self._multiply("tdpbsud")

    def _less(
        self, behind: ir.Value, row: ir.Value, of_columns: Sequence[Sequence[ir.Value]], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Return a row's sums less what is subtracted."""
        builder, code = self._builder, self._code
        at = code.offset(behind, builder.mul(row, I64(_I32.bytes)))
        total, each = (
            code.broadcast(code.load(code.offset(at, I64(number * self._rows * _I32.bytes)), _I32, 1))
            for number in range(2)
        )
        result = []
        for value, difference, subtracted in zip(sums, *of_columns, strict=True):
            less = builder.add(builder.mul(total, subtracted), builder.mul(each, difference))
            result.append(builder.sub(value, less))
        return result
