"""The kernels of the CUDA target that are compiled without a device."""

from __future__ import annotations

import pickle
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import pytest

from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Kernel, KernelProgram
from opendml.compiler.simplify import simplify
from opendml.errors import Unsupported
from opendml.program.program import Program
from opendml.targets.cuda.kernel_source import kernel_source, own_source, shared_source
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import WARPGROUP_MODES, CudaMode
from opendml.targets.cuda.planning import Scheduler
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_chain import is_chained
from tools.cuda_case import Case
from tools.cuda_cases import all_cases
from tools.cuda_tiles import chain_schedulers, modes_of, schedulers

MACHINES = {
    80: CudaMachine(80, 108, 164 * 1024),
    90: CudaMachine(90, 132, 228 * 1024),
    100: CudaMachine(100, 148, 228 * 1024),
}
OPTIMIZED = 90
"""The generation of which some kernels are optimized as in the product."""
OPTIMIZED_STEP = 4
TOGETHER = 120_000
"""Characters of the sources that are compiled at a time: small kernels take little more than to begin."""
OF_THE_FILE = re.compile(r"(?<![\w>)])::(?=\w)")
"""Before a name that the file declares."""
VALUE = re.compile(r"\b[a-z]+\d+\b")
"""A name that a printer numbers."""
NUMBER = re.compile(r"\b(0x[\da-f]+|\d[\d.]*(e[+-]?\d+)?)[uUlLf]*\b")
TEXT = ".text."
"""What precedes the name of a function in that of its section."""
CHAINED = (CudaMode.FMA_CHAIN, CudaMode.MMA_CHAIN, CudaMode.WGMMA_CHAIN)
ONLY_BY_WARPGROUPS = (*WARPGROUP_MODES, CudaMode.WGMMA_CHAIN)
CASES = list(all_cases())

T = TypeVar("T")
made_once: Callable[[str, Callable[[Path], None]], Path] | None = None
"""The fixture of that name where several processes run tests."""


def _in_one_process(name: str, make: Callable[[], T]) -> T:
    """Return what `make` returns. One process of tests calls it, and others read the result."""
    if made_once is None:
        return make()
    own: list[T] = []

    def write(folder: Path) -> None:
        own.append(make())
        (folder / "pickled").write_bytes(pickle.dumps(own[0]))

    folder = made_once(name, write)
    if not own:
        own.append(pickle.loads((folder / "pickled").read_bytes()))
    return own[0]


@cache
def fused(case: Case, machine: CudaMachine = MACHINES[80]) -> KernelProgram:
    """Return the kernels of a case; those of a softmax between products depend on the machine."""
    program = case.program
    takes = partial(is_chained, machine=machine)
    return fuse(
        Program(program.inputs, program.outputs, simplify(program.results)),
        Abilities(computes_attention=takes),
    )


def launches(case: Case, machine: CudaMachine, scheduler: Scheduler = schedule) -> Iterator[CudaLaunch]:
    """Yield the launches of a case, for the alignments that its offset leaves."""
    of_machine = machine if case.name.startswith("chain") else MACHINES[80]
    for kernel in fused(case, of_machine).kernels:
        alignments = []
        for access in (*kernel.loads, *kernel.stores):
            offset = case.offset * access.type.bytes
            alignments.append(min(16, offset & -offset) if offset else 16)
        yield scheduler(kernel, machine, alignments)


def aligned(kernel: Kernel, alignment: int = 16) -> list[int]:
    """Return the same alignment for every access of a kernel."""
    return [alignment] * (len(kernel.loads) + len(kernel.stores))


@cache
def all_launches(capability: int) -> dict[Case, list[CudaLaunch]]:
    """Those of every case."""

    def of_cases() -> list[list[CudaLaunch]]:
        return [list(launches(case, MACHINES[capability])) for case in CASES]

    return dict(zip(CASES, _in_one_process(f"launches{capability}", of_cases), strict=True))


def _in_each_tile(capability: int) -> Iterator[CudaLaunch]:
    """In each tile of contractions, for one block or for several in turn, and in each of a softmax between
    them, a kernel of a case that has another tile by itself; none where all cases that take a tile have it.
    Cases that a mode is for are tried first: to try all in turn takes twice as long.
    """
    machine = MACHINES[capability]
    ways = [way for number, way in enumerate(schedulers()) if number % 4 in (0, 3)]
    for number, (name, scheduler) in enumerate([*ways, *chain_schedulers()]):
        word = name.split()[0]
        mode = CudaMode(word)
        if mode in ONLY_BY_WARPGROUPS and not machine.multiplies_by_warpgroups:
            continue
        kind = "chain" if mode in CHAINED else "contraction"
        cases = [case for case in CASES if case.name.startswith(kind)]
        first = 5 * number % len(cases)
        others = (
            launch
            for case in sorted(cases[first:] + cases[:first], key=lambda case: not _is_for(case, word))
            for launch, own in zip(
                launches(case, machine, scheduler), all_launches(capability)[case], strict=True
            )
            if launch.pattern.mode is mode and launch.pattern.text() != own.pattern.text()
        )
        yield from islice(others, 1)


def _is_for(case: Case, mode: str) -> bool:
    """Return whether a mode of tiles is for the case of a contraction, or of a softmax between products."""
    return mode.startswith(modes_of(case.name))


@cache
def kernels_by_source(capability: int) -> dict[str, CudaLaunch]:
    """All different kernels of all cases, and those in each tile, by their own sources."""

    def sources() -> dict[str, CudaLaunch]:
        found = chain(*all_launches(capability).values(), _in_each_tile(capability))
        return {own_source(launch.pattern): launch for launch in found}

    return _in_one_process(f"sources{capability}", sources)


@cache
def kernels(capability: int) -> dict[CudaMode, list[CudaLaunch]]:
    """All different kernels of all cases, by mode, and those in each tile."""
    result: dict[CudaMode, list[CudaLaunch]] = {mode: [] for mode in CudaMode}
    for launch in kernels_by_source(capability).values():
        result[launch.pattern.mode].append(launch)
    return result


def with_new_lines(found: Mapping[str, CudaLaunch]) -> Iterator[CudaLaunch]:
    """Yield those kernels whose own source has a line that no source before has.

    Names of values do not count, and neither do numbers outside of constants and strings: half of all
    sources, in characters, say nothing new to a compiler.
    """
    seen = set[str]()
    for source, launch in found.items():
        lines = {
            line if line.startswith("constexpr") or '"' in line else NUMBER.sub("0", line)
            for line in VALUE.sub("v", source).splitlines()
        }
        if not lines <= seen:
            yield launch
        seen |= lines


def compile_all(found: Iterable[CudaLaunch], capability: int) -> None:
    """Compiles the kernels of launches, a few at a time; where that fails, each alone as the product does it,
    to say which does not compile. For all generations but one, and for most kernels of that one, NVRTC
    optimizes less at first, which takes two thirds of the time; what it then refuses may compile alone.
    """
    for number, some in enumerate(_few(found)):
        quickly = capability != OPTIMIZED or number % OPTIMIZED_STEP > 0
        expected = {f"kernel{each}" for each in range(len(some))}
        try:
            code = compiled(together([source for _, source in some]), capability, quickly)
        except Exception:
            for launch, _ in some:
                try:
                    machine_code(launch, capability)
                except Exception as error:
                    raise AssertionError(f"does not compile: {launch.pattern.text()}") from error
            if not quickly:
                raise
        else:
            there = functions(code).keys()
            # With less optimization some of what kernels call stays a function.
            assert there >= expected if quickly else there == expected


def _few(found: Iterable[CudaLaunch]) -> Iterator[list[tuple[CudaLaunch, str]]]:
    """Neighbours and their own sources, while these are not too long together."""
    some: list[tuple[CudaLaunch, str]] = []
    length = 0
    for launch in found:
        source = own_source(launch.pattern)
        if some and length + len(source) > TOGETHER:
            yield some
            some, length = [], 0
        some.append((launch, source))
        length += len(source)
    if some:
        yield some


def together(sources: Sequence[str]) -> str:
    """One source of the own ones of several patterns, each in a namespace, with `kernel0` and so on
    for `kernel`: NVRTC takes longer to begin, and to read what all share, than to compile a small kernel.
    """
    each = (
        f"namespace of{number} {{\n{OF_THE_FILE.sub(f'of{number}::', source)}\n}}".replace(
            " kernel(", f" kernel{number}("
        )
        for number, source in enumerate(sources)
    )
    return "\n".join([shared_source(), *each])


def functions(code: bytes) -> dict[str, bytes]:
    """The machine code of each function of a file of machine code, which is in ELF's format."""
    (headers,) = struct.unpack_from("<Q", code, 0x28)
    size, count, of_names = struct.unpack_from("<3H", code, 0x3A)
    sections = [struct.unpack_from("<2I4Q", code, headers + size * number) for number in range(count)]
    names = sections[of_names][4]
    result = {}
    for name, _, _, _, offset, length in sections:
        begin = names + name
        text = code[begin : code.index(b"\0", begin)].decode()
        if text.startswith(TEXT):
            result[text.removeprefix(TEXT)] = code[offset : offset + length]
    return result


def machine_code(launch: CudaLaunch, capability: int) -> bytes:
    """The launch's kernel; skips where NVRTC is missing."""
    return compiled(kernel_source(launch.pattern), capability)


def compiled(source: str, capability: int, quickly: bool = False) -> bytes:
    """The machine code of a source, as the product has it or less optimized; skips where NVRTC is missing."""
    pytest.importorskip("cuda.core", reason="cuda-core is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC's bindings are not installed")
    from opendml.targets.cuda import compile

    options = compile.nvrtc_options(MACHINES[capability].architecture)
    try:
        return compile.machine_code(source, replace(options, ofast_compile="mid") if quickly else options)
    except (Unsupported, RuntimeError) as error:
        if "nvrtc" in str(error).lower() and "found" in str(error):
            pytest.skip(f"NVRTC is not installed: {error}")
        raise
