"""From kernel patterns to machine code: LLVM, and the cache of objects in memory and on disk."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import mmap
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from opendml.across_forks import compiling
from opendml.budget import check_time
from opendml.errors import Unsupported
from opendml.targets.cpu.emit_kernel import emit_kernel
from opendml.targets.cpu.kernel_code import SCRATCH_SYMBOL
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.native import FUNCTIONS, runtime_assembly
from opendml.targets.cpu.pattern import CpuMode, CpuPattern
from opendml.targets.cpu.signals import deferred_signals
from opendml.targets.object_cache import compiler_digest, read_object, write_object

_SYMBOL = "kernel"
_SYMBOLS = (_SYMBOL, SCRATCH_SYMBOL)
_BATCH = 8
"""Kernels that are compiled before handlers of signals may run."""

_COMPILER_BYTES = 64 * 1024 * 1024
"""Bytes of address space that the compilation of one kernel may take. LLVM ends the process if it gets
none."""

_codes: dict[str, MachineCode] = {}
_libraries: list[llvm.ResourceTracker] = []
_numbers = itertools.count()


class Effort(Enum):
    """The optimizations that LLVM runs before it emits machine code. Kernels are vectorized before."""

    CLEAN = "clean"
    """Promote memory to registers, and simplify: enough for single loops."""
    HOIST = "hoist"
    """CLEAN, and hoist loop invariants."""
    ALL = "all"
    """All optimizations for code of several functions, without vectorization."""


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The machine code of a kernel: its address, and the bytes of scratch memory that each thread needs."""

    address: int
    scratch_bytes: int


def kernel_codes(patterns: Sequence[CpuPattern]) -> list[MachineCode]:
    """Return the machine code of patterns. It is compiled at most once, and kept until the process ends.

    Raises:
        Unsupported: there is no memory for the compilation, or the code cannot be linked.
    """
    texts = [pattern.text() for pattern in patterns]
    with compiling:
        needed = dict(zip(texts, patterns, strict=True))
        missing = [(text, pattern) for text, pattern in needed.items() if text not in _codes]
        for first in range(0, len(missing), _BATCH):
            check_time()
            with deferred_signals():
                _load_kernels(dict(missing[first : first + _BATCH]))
        return [_codes[text] for text in texts]


@cache
def runtime_addresses() -> dict[str, int]:
    """Return the addresses of the native runtime's functions."""
    assembly = runtime_assembly(machine().triple)
    with compiling, deferred_signals():
        _require_memory()
        found = _cached(assembly, FUNCTIONS)
        return found if found is not None else _linked(assembly, compile_object(assembly), FUNCTIONS)


def _load_kernels(kernels: Mapping[str, CpuPattern]) -> None:
    """Add kernels, by the texts of their patterns, to the table."""
    _require_memory()
    found = {text: _cached(text, _SYMBOLS) for text in kernels}
    missing = [text for text, addresses in found.items() if addresses is None]
    for text, code in zip(missing, _compiled([kernels[text] for text in missing]), strict=True):
        found[text] = _linked(text, code, _SYMBOLS)
    for text, addresses in found.items():
        if addresses is not None:
            scratch_bytes = ctypes.c_int64.from_address(addresses[SCRATCH_SYMBOL]).value
            _codes[text] = MachineCode(addresses[_SYMBOL], scratch_bytes)


def _compiled(patterns: Sequence[CpuPattern]) -> Iterator[bytes]:
    """Return the objects of patterns. While LLVM works on one, the next is written."""
    efforts = list(map(effort_for, patterns))
    one_by_one = map(compile_object, map(kernel_assembly, patterns), efforts)
    if len(patterns) < 2:
        yield from one_by_one
        return
    with ThreadPoolExecutor(1) as compiler:
        try:
            objects = compiler.map(compile_object, map(kernel_assembly, patterns), efforts)
        except RuntimeError:  # no thread starts: the system gives none, or the main thread has ended
            objects = one_by_one
        yield from objects


def _cached(text: str, symbols: tuple[str, ...]) -> dict[str, int] | None:
    """Return the addresses of the `symbols` of some code, which `text` stands for, if it is in the cache and
    can be linked."""
    found = read_object(_key(text))
    if found is not None:
        with suppress(Unsupported):
            return load_object(found, symbols)
    return None


def _linked(text: str, code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    """Return the addresses of the `symbols` of an object, which gets into the cache if it can be linked."""
    addresses = load_object(code, symbols)
    write_object(_key(text), code)
    return addresses


def _key(text: str) -> str:
    return hashlib.sha256(f"{_environment()}\n{text}".encode()).hexdigest()


def _require_memory() -> None:
    """Check that LLVM will find memory, as far as that can be known."""
    try:
        mmap.mmap(-1, _COMPILER_BYTES).close()
    except OSError as error:
        raise Unsupported(
            f"cpu: compiling needs {_COMPILER_BYTES:,} bytes of address space, and the system gives none "
            f"({error}); raise its limit (ulimit -v), or free memory"
        ) from error


def kernel_assembly(pattern: CpuPattern) -> str:
    """Return the pattern as LLVM assembly, before optimization."""
    module = ir.Module()
    module.triple = machine().triple
    emit_kernel(module, _SYMBOL, pattern, machine().vector_bytes // pattern.lane_bytes)
    return str(module)


def effort_for(pattern: CpuPattern) -> Effort:
    """Return what a kernel needs."""
    return Effort.CLEAN if pattern.mode is CpuMode.POINTWISE else Effort.HOIST


def compile_object(
    assembly: str, effort: Effort = Effort.ALL, target: llvm.TargetMachine | None = None
) -> bytes:
    """Optimized machine code for this processor, or for another one, as an object file."""
    target = target or _target_machine()
    module = llvm.parse_assembly(assembly)
    module.verify()
    builder = llvm.create_pass_builder(target, _options(2 if effort is Effort.ALL else 1))
    if effort is Effort.ALL:
        builder.getModulePassManager().run(module, builder)
    elif effort is Effort.HOIST:
        passes = builder.getFunctionPassManager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    else:
        cleaning = llvm.create_new_module_pass_manager()
        cleaning.add_sroa_pass()
        cleaning.add_simplify_cfg_pass()
        cleaning.add_instruction_combine_pass()
        cleaning.run(module, builder)
    return bytes(target.emit_object(module))


def load_object(code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    """Link an object file into this process, for its life, and returns the addresses of its `symbols`. Of
    one that cannot be linked nothing is left.

    Raises:
        Unsupported: it cannot be linked.
    """
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        library = builder.link(_jit(), f"opendml{next(_numbers)}")
    except RuntimeError as error:
        raise Unsupported(f"cpu: the machine code of a kernel cannot be linked: {error}") from error
    _libraries.append(library)
    return {symbol: int(library[symbol]) for symbol in symbols}


@cache
def _options(level: int) -> llvm.PipelineTuningOptions:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = (
        options.loop_interleaving
    ) = False
    return options


@cache
def _target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = machine()
    target = llvm.Target.from_triple(host.triple)
    return target.create_target_machine(
        cpu=host.name, features=host.features, opt=3, reloc="pic", codemodel="default"
    )


@cache
def _jit() -> llvm.LLJIT:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # It gives an object one piece of memory. RuntimeDyld, LLVM's default, takes one for each section, and
    # ends the process where these lie more than 2 GiB apart.
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)


@cache
def _environment() -> str:
    """Return all that the code depends on apart from the pattern: processor, LLVM, and the version of this
    compiler."""
    host = machine()
    versions = f"llvmlite {llvmlite.__version__} {llvm.llvm_version_info}"
    return f"{host.triple} {host.name} {host.features} {versions} {compiler_digest('cpu')}"
