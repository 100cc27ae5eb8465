"""Descriptions of machines, by name, for which any computer can plan kernels."""

from __future__ import annotations

from opendml.compiler.kernel import Kernel
from opendml.program.carriers import carried
from opendml.program.program import Program
from opendml.targets.cpu import planning as cpu
from opendml.targets.cpu.machine import CpuMachine as Processor
from opendml.targets.cpu.machine import assumed
from opendml.targets.cuda import planning as cuda
from opendml.targets.cuda.machine import CudaMachine as Device
from opendml.targets.cuda.machine import memory_rate
from opendml.targets.planned import Planned

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
"""Processors with two threads each: AVX-512 and large caches, AMX and large caches, AVX2 and small caches."""
DEVICES = {
    "sm_80": Device(80, 108, 164 * 1024, 40 * 1024**2, memory_rate(1_593_000, 5120, 108, 1_410_000)),
    "sm_90": Device(90, 132, 228 * 1024, 50 * 1024**2, memory_rate(3_201_000, 6144, 132, 1_980_000)),
}
"""CUDA devices: an A100 with 80 GB, and an H200."""


def planned(program: Program, machine: str | Device) -> Planned:
    """Return the kernels of a program, and their modes, on a machine of that name or on a device."""
    program = carried(program)
    if isinstance(machine, Device) or machine in DEVICES:
        return cuda.plan(program, machine if isinstance(machine, Device) else DEVICES[machine])
    with assumed(PROCESSORS[machine]):
        return cpu.plan(program)


def kernels_of(program: Program, machine: str) -> tuple[Kernel, ...]:
    """Return the kernels of a program on a machine of that name."""
    return planned(program, machine).kernels.kernels
