"""Products of 8-bit integers in matrix registers. Words of four neighbours along k are packed as for vectors
(words.py): those of b lie as registers take them, rows of columns, and those of a are turned into rows of
their own, with their sums and what is subtracted behind."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.code import I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction.matrix_micro import RegisterTile
from opendml.targets.cpu.contraction.patterns import REGISTER_ROWS, MicroKernel, Panels
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.shuffles import transposed
from opendml.targets.cpu.values import number

_F32, _I32 = ScalarType.FLOAT32, ScalarType.INT32
_LANES = REGISTER_ROWS
_WORD_BYTES = _I32.bytes


def emit_turn(module: ir.Module, name: str, panels: Panels) -> ir.Function:
    """Adds the function name(source, part, words) to the module: rows of a part of a panel from columns of so
    many words, and of two more that lie behind these. Rows end with zeros, up to a line."""
    function = internal_function(module, name, [POINTER, POINTER, I64])
    source, part, words = function.args
    code = Code(function, _LANES)
    builder = code.builder
    column_bytes = panels.rows * _WORD_BYTES
    zero = number(_F32, _LANES, 0.0)
    steps = builder.udiv(builder.add(words, I64(_LANES - 1)), I64(_LANES))
    with code.loop(I64(0), I64(panels.rows), REGISTER_ROWS) as row, code.loop(I64(0), steps) as step:
        first = builder.mul(step, I64(_LANES))
        across = code.offset(source, builder.mul(row, I64(_WORD_BYTES)))
        columns = []
        for lane in range(_LANES):
            index = builder.add(first, I64(lane))
            at = code.offset(across, builder.mul(index, I64(column_bytes)))
            is_there = code.broadcast(builder.icmp_signed("<", index, words))
            columns.append(builder.select(is_there, code.load(at, _F32, _LANES), zero))
        along = code.offset(part, builder.mul(row, I64(panels.turned_row_bytes)))
        along = code.offset(along, builder.mul(step, I64(LINE)))
        for lane, value in enumerate(transposed(builder, columns, _F32, _LANES)):
            code.store(code.offset(along, I64(lane * panels.turned_row_bytes)), value, _F32)
    behind = code.offset(source, builder.mul(words, I64(column_bytes)))
    target = code.offset(part, I64(panels.rows * panels.turned_row_bytes))
    with code.loop(I64(0), I64(2 * column_bytes), LINE) as at:
        code.store(code.offset(target, at), code.load(code.offset(behind, at), _F32, _LANES), _F32)
    builder.ret_void()
    return function


class WordMatrixMicroKernel(RegisterTile):
    """The same function of words: `depth` is how many there are. What is to be subtracted lies behind them:
    (a - p) (b - q) is a b - a q - p (b - q)."""

    def __init__(
        self,
        module: ir.Module,
        name: str,
        micro: MicroKernel,
        panels: Panels,
        held_row_bytes: int,
        b_row_bytes: int,
    ) -> None:
        super().__init__(module, name, micro, held_row_bytes, _I32)
        self._panels, self._b_row_bytes = panels, b_row_bytes
        self._emit()

    @property
    def scratch_bytes(self) -> int:
        return self.tile_bytes

    def _emit(self) -> None:
        a, b, c, results, row_bytes, depth, adds, tile, *asked = self.function.args
        builder, code = self._builder, self._code
        self._clear_totals()
        steps = builder.udiv(builder.add(depth, I64(_LANES - 1)), I64(_LANES))
        with code.loop(I64(0), steps) as step:
            self._ask_for_results(step, asked)
            self._take_in(
                code.offset(a, builder.mul(step, I64(LINE))),
                code.offset(b, builder.mul(step, I64(_LANES * self._b_row_bytes))),
            )
        self._keep_totals((tile, I64(self.row_bytes)))
        behind = code.offset(a, I64(self._panels.rows * self._panels.turned_row_bytes))
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
        target = c, results, row_bytes, adds
        self._put_down(tile, target, lambda row, sums: self._less(behind, row, of_columns, sums))
        builder.ret_void()

    def _take_in(self, a: ir.Value, b: ir.Value) -> None:
        """The products of a register's words of each row and column."""
        rows, columns = self.registers
        first_a = rows * columns
        first_b = first_a + rows
        for column in range(columns):
            place = self._code.offset(b, I64(column * LINE))
            self._on_registers("tileloadd64", [first_b + column], place, I64(self._b_row_bytes))
        for row in range(rows):
            place = self._code.offset(a, I64(row * REGISTER_ROWS * self._panels.turned_row_bytes))
            self._on_registers("tileloadd64", [first_a + row], place, I64(self._panels.turned_row_bytes))
        for row, registers in enumerate(self.totals):
            for column, total in enumerate(registers):
                self._on_registers("tdpbsud", [total, first_a + row, first_b + column])

    def _less(
        self, behind: ir.Value, row: ir.Value, of_columns: Sequence[Sequence[ir.Value]], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """A row's sums without what is to be subtracted."""
        builder, code = self._builder, self._code
        at = code.offset(behind, builder.mul(row, I64(_WORD_BYTES)))
        total, each = (
            code.broadcast(code.load(code.offset(at, I64(number * self._panels.rows * _WORD_BYTES)), _I32, 1))
            for number in range(2)
        )
        result = []
        for value, difference, subtracted in zip(sums, *of_columns, strict=True):
            less = builder.add(builder.mul(total, subtracted), builder.mul(each, difference))
            result.append(builder.sub(value, less))
        return result
