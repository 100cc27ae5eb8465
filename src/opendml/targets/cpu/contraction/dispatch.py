"""The code of contractions and chains, by the instructions and by the operand that is windows of an image."""

from __future__ import annotations

from opendml.targets.cpu.code import Code
from opendml.targets.cpu.contraction.amx_chain_code import AmxChainCode
from opendml.targets.cpu.contraction.amx_code import AmxCode, AmxWindowsCode
from opendml.targets.cpu.contraction.chain_code import ChainCode
from opendml.targets.cpu.contraction.code import ContractionCode
from opendml.targets.cpu.contraction.digit_code import DigitCode
from opendml.targets.cpu.contraction.dot_code import DotCode
from opendml.targets.cpu.contraction.few_rows_code import FewRowsCode
from opendml.targets.cpu.contraction.tiling import Chaining, Instructions, Tiling
from opendml.targets.cpu.contraction.windows_code import BroadcastWindowsCode, WindowsCode
from opendml.targets.cpu.pattern import CpuPattern

_CODE = {
    (Instructions.FMA, ""): ContractionCode,
    (Instructions.FMA, "a"): BroadcastWindowsCode,
    (Instructions.FMA, "b"): WindowsCode,
    (Instructions.DOTS, ""): DotCode,
    (Instructions.DIGITS, ""): DigitCode,
    (Instructions.AMX_BF16, ""): AmxCode,
    (Instructions.AMX_BF16, "b"): AmxWindowsCode,
    (Instructions.AMX_INT8, ""): AmxCode,
}


def contraction_code(code: Code, pattern: CpuPattern) -> ContractionCode:
    """Return the code of a contraction."""
    tiling = pattern.walk_as(Tiling)
    return _CODE[tiling.instructions, tiling.windows](code, pattern)


def chain_code(code: Code, pattern: CpuPattern) -> ChainCode:
    """Return the code of a softmax between products."""
    instructions = pattern.walk_as(Chaining).a.instructions
    if instructions is Instructions.DOTS:
        return FewRowsCode(code, pattern)
    return (AmxChainCode if instructions.are_amx else ChainCode)(code, pattern)
