"""Instructions of AVX-512 for exponents of FLOAT32: VSCALEFPS, VGETEXPPS and VGETMANTPS."""

from __future__ import annotations

from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.tables import in_registers
from opendml.targets.cpu.values import Literal, intrinsic, llvm_type

_REGISTER = 16
"""FLOAT32 elements of a register of 512 bits."""
_SIGNIFICAND = 0b1100
"""Control of VGETMANTPS (Intel SDM): significands from 1 to 2; 1 for -0, and NaN for negative numbers."""
_CURRENT_ROUNDING = 4
"""Control of rounding (Intel SDM): the mode that is set."""


def has_exponents() -> bool:
    """Return whether the processor has instructions for exponents."""
    return machine().has("avx512f")


def exponent_operation(
    builder: ir.IRBuilder, operation: Operation, lanes: int, operands: list[ir.Value]
) -> ir.Value:
    """Emit one of EXPONENT_OPERATIONS over values of any number of lanes."""

    def in_register(values: list[ir.Value]) -> ir.Value:
        vector, mask = llvm_type(ScalarType.FLOAT32, _REGISTER), ir.IntType(_REGISTER)
        name, numbers = EXPONENT_OPERATIONS[operation]
        numbers_as_values = [ir.IntType(32)(number) for number in numbers]
        rest = [Literal(vector, "undef"), mask(-1), ir.IntType(32)(_CURRENT_ROUNDING)]
        return intrinsic(builder, name, vector, [*values, *numbers_as_values, *rest])

    return in_registers(builder, _REGISTER, lanes, operands, in_register)


EXPONENT_OPERATIONS: dict[Operation, tuple[str, tuple[int, ...]]] = {
    Operation.SCALE: ("llvm.x86.avx512.mask.scalef.ps.512", ()),
    Operation.EXPONENT: ("llvm.x86.avx512.mask.getexp.ps.512", ()),
    Operation.SIGNIFICAND: ("llvm.x86.avx512.mask.getmant.ps.512", (_SIGNIFICAND,)),
}
"""Names of LLVM's intrinsics, and their immediate operands."""
