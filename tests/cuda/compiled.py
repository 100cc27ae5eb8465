"""The kernels of the CUDA target that are compiled without a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.errors import Unsupported
from opendml.program.program import Program
from opendml.targets.cuda.executable import Scheduler
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode
from opendml.targets.cuda.schedule import schedule
from tools.cuda_case import Case
from tools.cuda_cases import all_cases
from tools.cuda_tiles import schedulers

MACHINES = {
    80: Machine(80, 108, 164 * 1024),
    90: Machine(90, 132, 228 * 1024),
    100: Machine(100, 148, 228 * 1024),
}
CASES = list(all_cases())
TILED = (Mode.FMA, Mode.MMA)


def launches(case: Case, machine: Machine, scheduler: Scheduler = schedule) -> Iterator[Launch]:
    """The launches of a case, for the alignments that its offset leaves."""
    program = case.program
    kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results)))
    for kernel in kernels.kernels:
        alignments = []
        for access in (*kernel.loads, *kernel.stores):
            offset = case.offset * access.type.bytes
            alignments.append(min(16, offset & -offset) if offset else 16)
        yield scheduler(kernel, machine, alignments)


def all_launches(machine: Machine) -> dict[str, Launch]:
    """One launch of each pattern."""
    return _by_pattern(CASES, machine)


def _by_pattern(cases: Iterable[Case], machine: Machine) -> dict[str, Launch]:
    return {launch.pattern.text(): launch for case in cases for launch in launches(case, machine)}


def contraction_launches(capability: int) -> Iterator[Launch]:
    """For each tile one, of each of the cases in turn, and a few without tiles."""
    cases = {case.name: case for case in CASES}
    halves, others = (
        [
            case
            for name, case in cases.items()
            if name.startswith("contraction") and ("FLOAT16" in name) is half
        ]
        for half in (True, False)
    )
    # Of each tile that for one block or that for several, in turn.
    ways = [way for number, way in enumerate(schedulers()) if number % 4 in (0, 3)]
    ways = [(way, scheduler) for way, scheduler in ways if capability == 90 or "128x128" in way]
    for number, (way, scheduler) in enumerate(ways):
        suitable = halves if way.startswith("mma") else others
        for case in (suitable * 2)[5 * number % len(suitable) :]:
            found = [
                each for each in launches(case, MACHINES[capability], scheduler) if each.pattern.mode in TILED
            ]
            if found:
                yield found[0]
                break
    for name in ("contraction INT64", "contraction FLOAT32 thin (1, 300, 500)") if capability == 90 else ():
        yield from launches(cases[name], MACHINES[90])


def compiled_per_capability() -> Iterator[tuple[int, Launch]]:
    """All patterns for one capability; for the others, of each mode, vector and way of lying in memory
    one."""
    for capability, machine in MACHINES.items():
        seen = set()
        yield from ((capability, launch) for launch in contraction_launches(capability))
        others = [case for case in CASES if not case.name.startswith("contraction")]
        for launch in _by_pattern(others, machine).values():
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
    from opendml.targets.cuda.kernel_source import kernel_source

    try:
        return compile_source(kernel_source(launch.pattern), f"sm_{capability}")
    except (Unsupported, RuntimeError) as error:
        if "nvrtc" in str(error).lower() and "found" in str(error):
            pytest.skip(f"NVRTC is not installed: {error}")
        raise
