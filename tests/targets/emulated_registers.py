"""Emulates matrix registers (Intel's AMX) on machines that have none: kernels call functions instead of
instructions, and registers are in memory. A kernel runs in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir, values
from opendml.targets.cpu.code import I8, I64, POINTER, Code, internal_function
from opendml.targets.cpu.contraction import amx
from opendml.targets.cpu.contraction.bf16_parts import LANES
from opendml.targets.cpu.contraction.tiling import REGISTER_BYTES, REGISTER_ROWS, REGISTERS
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import LINE
from opendml.targets.cpu.values import llvm_type, number

_INSTRUCTIONS = "llvm.x86."
_WORDS = ScalarType.INT32


class _Emulation:
    """Writes one of the functions."""

    def __init__(self, function: ir.Function) -> None:
        self.function, self.code = function, Code(function, LANES)
        self.builder = self.code.builder

    def register(self, argument: int) -> ir.Value:
        """Return where the register with the number in an argument lies."""
        module, name = self.function.module, "registers"
        if name not in module.globals:
            content = ir.zero(ir.ArrayType(I8, REGISTERS * REGISTER_BYTES))
            ir.GlobalVariable(module, content, name, "internal global", alignment=LINE)
        index = self.builder.zext(self.function.args[argument], I64)
        first = self.builder.ptrtoint(module.globals[name], I64)
        place = self.builder.add(first, self.builder.mul(index, I64(REGISTER_BYTES)))
        return self.builder.inttoptr(place, POINTER)

    def _row(self, register: ir.Value, row: ir.Value) -> ir.Value:
        return self.code.offset(register, self.builder.mul(row, I64(LINE)))

    def clear(self) -> None:
        register = self.register(0)
        with self.code.loop(I64(0), I64(REGISTER_ROWS)) as row:
            self.code.store(self._row(register, row), number(_WORDS, LANES, 0), _WORDS)

    def load(self) -> None:
        with self._rows() as (held, memory):
            self.code.store(held, self.code.load(memory, _WORDS, LANES), _WORDS)

    def store(self) -> None:
        with self._rows() as (held, memory):
            self.code.store(memory, self.code.load(held, _WORDS, LANES), _WORDS)

    @contextmanager
    def _rows(self) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Yield a loop over the rows of a register: where each lies, and where its place in memory is."""
        register, (_, memory, row_bytes) = self.register(0), self.function.args
        with self.code.loop(I64(0), I64(REGISTER_ROWS)) as row:
            yield self._row(register, row), self.code.offset(memory, self.builder.mul(row, row_bytes))

    def multiply(self) -> None:
        """Multiply two registers. Words of b are two neighbours along k of one column, those of a two of one
        row."""
        total, a, b = map(self.register, range(3))
        with (
            self.code.loop(I64(0), I64(REGISTER_ROWS)) as row,
            self.code.loop(I64(0), I64(REGISTER_ROWS)) as word,
        ):
            place = self._row(total, row)
            at = self.code.offset(self._row(a, row), self.builder.mul(word, I64(_WORDS.bytes)))
            own = self.code.broadcast(self.builder.load(at, typ=llvm_type(_WORDS, 1)))
            others = self.code.load(self._row(b, word), _WORDS, LANES)
            value = self.code.load(place, ScalarType.FLOAT32, LANES)
            for half in (self._lower, self._upper):
                value = self.builder.fadd(value, self.builder.fmul(half(own), half(others)))
            self.code.store(place, value, ScalarType.FLOAT32)

    def _lower(self, words: ir.Value) -> ir.Value:
        return self._float(self.builder.shl(words, number(_WORDS, LANES, 16)))

    def _upper(self, words: ir.Value) -> ir.Value:
        return self._float(self.builder.and_(words, number(_WORDS, LANES, -0x10000)))

    def _float(self, words: ir.Value) -> ir.Value:
        return self.builder.bitcast(words, llvm_type(ScalarType.FLOAT32, LANES))


_FUNCTIONS: dict[str, Callable[[_Emulation], None]] = {
    "ldtilecfg": lambda emulation: None,
    "tilerelease": lambda emulation: None,
    "tilezero": _Emulation.clear,
    "tileloadd64": _Emulation.load,
    "tilestored64": _Emulation.store,
    "tdpbf16ps": _Emulation.multiply,
}


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, operands: Sequence[ir.Value]) -> ir.Value:
    instruction = name.removeprefix(_INSTRUCTIONS)
    if instruction not in _FUNCTIONS:
        return values.intrinsic(builder, name, result, list(operands))
    own = f"emulated.{instruction}"
    function = builder.module.function(own)
    if function is None:
        function = internal_function(builder.module, own, [each.type for each in operands])
        emulation = _Emulation(function)
        _FUNCTIONS[instruction](emulation)
        emulation.builder.ret_void()
    return builder.call(function, operands)


@contextmanager
def emulated_registers(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a test as if this machine had matrix registers."""
    patch.setattr(amx, "intrinsic", _call)
    host = machine()
    with assumed(replace(host, features=f"{host.features},+amx-bf16", vector_bytes=64, threads=1)):
        yield
