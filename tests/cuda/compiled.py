"""The kernels of the CUDA target that are compiled without a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.errors import Unsupported
from opendml.program.program import Program
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.schedule import schedule
from tools.cuda_case import Case
from tools.cuda_cases import all_cases

MACHINES = {
    80: Machine(80, 108, 164 * 1024),
    90: Machine(90, 132, 228 * 1024),
    100: Machine(100, 148, 228 * 1024),
}
CASES = list(all_cases())


def launches(case: Case, machine: Machine) -> Iterator[Launch]:
    """The launches of a case, for the alignments that its offset leaves."""
    program = case.program
    kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results)))
    for kernel in kernels.kernels:
        alignments = []
        for access in (*kernel.loads, *kernel.stores):
            offset = case.offset * access.type.bytes
            alignments.append(min(16, offset & -offset) if offset else 16)
        yield schedule(kernel, machine, alignments)


def all_launches(machine: Machine) -> dict[str, Launch]:
    """One launch of each pattern."""
    return {launch.pattern.text(): launch for case in CASES for launch in launches(case, machine)}


def compiled_per_capability() -> Iterator[tuple[int, Launch]]:
    """All patterns for one capability; for the others, of each mode, vector and way of lying in memory
    one."""
    for capability, machine in MACHINES.items():
        seen = set()
        for launch in all_launches(machine).values():
            pattern = launch.pattern
            key = (
                pattern.mode,
                pattern.vector > 1,
                pattern.columns,
                pattern.accesses[0].type,
            )
            if capability == 90 or key not in seen:
                seen.add(key)
                yield capability, launch


COMPILED = list(compiled_per_capability())


def compiled(chosen: Callable[[int, Launch], bool]) -> list[Any]:
    """Those kernels for which `chosen(capability, launch)` is true, as parameters of a test."""
    return [
        pytest.param(capability, launch, id=f"sm_{capability}-{number}-{launch.pattern.mode.value}")
        for number, (capability, launch) in enumerate(COMPILED)
        if chosen(capability, launch)
    ]


def machine_code(launch: Launch, capability: int) -> bytes:
    """The launch's kernel; skips where NVRTC is missing."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC's bindings are not installed")
    from opendml.targets.cuda.compile import compile_source
    from opendml.targets.cuda.source import kernel_source

    try:
        return compile_source(kernel_source(launch.pattern), f"sm_{capability}")
    except (Unsupported, RuntimeError) as error:
        if "nvrtc" in str(error).lower() and "found" in str(error):
            pytest.skip(f"NVRTC is not installed: {error}")
        raise
