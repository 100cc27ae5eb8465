"""Machines that need not be here, by name: what a kernel becomes there can be looked at everywhere."""

from __future__ import annotations

from opendml.targets.cpu.machine import Machine as Processor
from opendml.targets.cuda.machine import Machine as Device

_X86 = "x86_64-unknown-linux-gnu"
_AVX512 = "+avx512f,+avx512bw,+avx512vl,+avx512vnni"
PROCESSORS = {
    "avx512": Processor("icelake-server", _AVX512, _X86, 64, 2 * 1024**2, 32 * 1024**2, 2),
    "amx": Processor(
        "sapphirerapids",
        f"{_AVX512},+amx-tile,+amx-bf16,+amx-int8",
        _X86,
        64,
        2 * 1024**2,
        32 * 1024**2,
        2,
    ),
    "avx2": Processor("haswell", "", _X86, 32, 256 * 1024, 8 * 1024**2, 2),
}
"""Processors of two threads each: with large caches and AVX-512, the same with matrix registers, and with
small caches and AVX2."""
DEVICES = {"sm_80": Device(80, 108, 164 * 1024), "sm_90": Device(90, 132, 228 * 1024)}
"""CUDA devices: an A100 and an H200."""
