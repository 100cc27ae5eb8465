"""The kernels of the CUDA target that are compiled without a device."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from opendml.compiler.fuse import fuse
from opendml.compiler.simplify import simplify
from opendml.errors import Unsupported
from opendml.program.program import Program
from opendml.targets.cuda.executable import Scheduler
from opendml.targets.cuda.kernel_source import kernel_source, printed
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode, Pattern
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_chain import is_chained
from tools.cuda_case import Case
from tools.cuda_cases import all_cases
from tools.cuda_tiles import mode_of, schedulers

MACHINES = {
    80: Machine(80, 108, 164 * 1024),
    90: Machine(90, 132, 228 * 1024),
    100: Machine(100, 148, 228 * 1024),
}
COUNTS = ("BATCH", "BLOCKS", "KEEP", "RUN", "THREADS", "TILE", "TX", "UNITS")
"""Constants that say how many, and choose no code."""
NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
"""What stands for a number in a line."""
VALUE = re.compile(r" *const ([\w ]+) (?:v0|s0_0) = .*;")
"""A line that computes a value: it means the same in every mode, where what it reads has the same type."""
CONSTANT = re.compile(
    r"\(-0 - 0\)|\b(?<![.\w])0(?:u|ull|ll)?\b|\w+\((?:0u|0ll|p\.number0|\(int\)p\.number0)\)|half\{[^}]*\}"
)
"""What stands for a constant in the line of a value, where a value could stand."""
REPEATED = re.compile(r"(\b[\w ]+; )\1+")
"""Fields of one type: of how many there are, no code depends."""
Line = tuple[Mode | None, bool, str]
"""The mode, whether groups are columns, and the text."""
CASES = list(all_cases())
TILED = (Mode.FMA, Mode.MMA, Mode.IMMA)


def launches(case: Case, machine: Machine, scheduler: Scheduler = schedule) -> Iterator[Launch]:
    """The launches of a case, for the alignments that its offset leaves."""
    program = case.program
    kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results)), is_chained)
    for kernel in kernels.kernels:
        alignments = []
        for access in (*kernel.loads, *kernel.stores):
            offset = case.offset * access.type.bytes
            alignments.append(min(16, offset & -offset) if offset else 16)
        yield scheduler(kernel, machine, alignments)


@cache
def all_launches(capability: int) -> dict[Case, list[Launch]]:
    """Those of every case."""
    return {case: list(launches(case, MACHINES[capability])) for case in CASES}


def contraction_launches(capability: int) -> Iterator[Launch]:
    """For each tile one, of each of the cases in turn, and a few without tiles."""
    cases = {case.name: case for case in CASES}
    by_mode: dict[str, list[Case]] = {}
    for name, case in cases.items():
        if name.startswith("contraction"):
            by_mode.setdefault(mode_of(name), []).append(case)
    # Of each tile that for one block or that for several, in turn.
    ways = [way for number, way in enumerate(schedulers()) if number % 4 in (0, 3)]
    ways = [(way, scheduler) for way, scheduler in ways if capability == 90 or "128x128" in way]
    for number, (way, scheduler) in enumerate(ways):
        suitable = by_mode[way.split()[0]]
        for case in (suitable * 2)[5 * number % len(suitable) :]:
            found = [
                each for each in launches(case, MACHINES[capability], scheduler) if each.pattern.mode in TILED
            ]
            if found:
                yield found[0]
                break
    for name in ("contraction INT64", "contraction FLOAT32 thin (1, 300, 500)") if capability == 90 else ():
        yield from launches(cases[name], MACHINES[90])


@cache
def kernels(capability: int) -> dict[Mode, list[Launch]]:
    """What is compiled for a capability, by mode: every line of every pattern for one capability; for the
    others, whose lines are the same, each mode for each way of lying in memory."""
    chosen = list(contraction_launches(capability))
    seen: set[tuple[Mode, bool, bool]] = set()
    for case, found in all_launches(capability).items():
        for launch in found if not case.name.startswith("contraction") else ():
            pattern = launch.pattern
            lying = (pattern.mode, pattern.vector > 1, pattern.columns)
            if capability == 90 or lying not in seen:
                seen.add(lying)
                chosen.append(launch)
    result: dict[Mode, list[Launch]] = {mode: [] for mode in Mode}
    for launch in _covering(chosen):
        result[launch.pattern.mode].append(launch)
    return result


def _covering(found: Iterable[Launch]) -> Iterator[Launch]:
    """Few of them that have all their lines in each mode: for each line, the rarest first, that one of the
    most new lines for the time that it takes to compile, which grows with the square of its source. The
    numbers in lines do not count, but those of constants that decide what code there is.
    """
    lines = [
        (launch, set(_lines(launch.pattern)), len(kernel_source(launch.pattern)) ** 2) for launch in found
    ]
    having: dict[Line, list[int]] = {}
    for number, (_, own, _) in enumerate(lines):
        for line in sorted(own, key=str):
            having.setdefault(line, []).append(number)
    seen: set[Line] = set()
    for line, numbers in sorted(having.items(), key=lambda item: len(item[1])):
        if line not in seen:
            launch, own, _ = max(
                (lines[number] for number in numbers), key=lambda each: len(each[1] - seen) / each[2]
            )
            seen |= own
            yield launch


def _lines(pattern: Pattern) -> Iterator[Line]:
    """The lines that are printed for it, with the mode unless they mean the same in all; of those that
    compute values, constants apart."""
    yield pattern.mode, pattern.columns, "what is not printed"
    for line in printed(pattern).splitlines():
        kind, of_values = _kind(line)
        for each in _with_constants(kind) if of_values else ():
            yield None, False, each
        if not of_values:
            yield pattern.mode, pattern.columns, kind


@cache
def _kind(line: str) -> tuple[str, bool]:
    """A line without its numbers, and whether it means the same in every mode."""
    name = line.split()[2] if line.startswith("constexpr int ") else ""
    kind = line if name and name not in COUNTS else REPEATED.sub(r"\1", NUMBER.sub("0", line))
    return kind, VALUE.fullmatch(kind) is not None


@cache
def _with_constants(kind: str) -> tuple[str, ...]:
    """The line of a value with values in place of constants, and its constants with the type of the value."""
    declared, _, computed = kind.partition(" = ")
    if CONSTANT.fullmatch(computed[:-1]):
        return (kind,)
    constants = dict.fromkeys(CONSTANT.findall(computed))
    return f"{declared} = {CONSTANT.sub('v0', computed)}", *(f"{declared} of {each}" for each in constants)


def machine_code(launch: Launch, capability: int) -> bytes:
    """The launch's kernel; skips where NVRTC is missing."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC's bindings are not installed")
    from opendml.targets.cuda.compile import compile_source

    try:
        return compile_source(kernel_source(launch.pattern), f"sm_{capability}")
    except (Unsupported, RuntimeError) as error:
        if "nvrtc" in str(error).lower() and "found" in str(error):
            pytest.skip(f"NVRTC is not installed: {error}")
        raise
