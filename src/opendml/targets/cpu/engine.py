"""From kernel patterns to machine code: LLVM, and the cache of objects in memory and on disk."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import mmap
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from opendml.errors import Unsupported
from opendml.targets.cpu.emit_kernel import emit_kernel
from opendml.targets.cpu.kernel_code import ROOM_SYMBOL
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.native import FUNCTIONS, runtime_assembly
from opendml.targets.cpu.pattern import Pattern
from opendml.targets.cpu.signals import deferred_signals
from opendml.targets.object_cache import compiler_digest, read_object, write_object

_SYMBOL = "kernel"

_COMPILER_BYTES = 64 * 1024 * 1024
"""Address space that compiling one kernel may take: LLVM ends the process where it gets none."""

compiling = threading.RLock()
"""Held while anything is compiled or linked, and across forks: LLVM's state is whole in every child."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release
    )

_codes: dict[str, Code] = {}
_libraries: list[llvm.ResourceTracker] = []
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel's machine code: the address of its function, and the bytes of room that each thread needs."""

    address: int
    room_bytes: int


def kernel_code(pattern: Pattern) -> Code:
    """The pattern's machine code, compiled at most once and kept until the process ends.

    Raises:
        Unsupported: the system gives no memory to compile in, or the code cannot be linked.
    """
    text = pattern.text()
    with compiling:
        code = _codes.get(text)
        if code is not None:
            return code
        with deferred_signals():
            symbols = _loaded(text, lambda: kernel_assembly(pattern), (_SYMBOL, ROOM_SYMBOL))
            room_bytes = ctypes.c_int64.from_address(symbols[ROOM_SYMBOL]).value
            code = _codes[text] = Code(symbols[_SYMBOL], room_bytes)
            return code


@cache
def runtime_addresses() -> dict[str, int]:
    """The addresses of the native runtime's functions."""
    assembly = runtime_assembly(machine().triple)
    with compiling, deferred_signals():
        return _loaded(assembly, lambda: assembly, FUNCTIONS)


def _loaded(text: str, assembly: Callable[[], str], symbols: tuple[str, ...]) -> dict[str, int]:
    """The addresses of the `symbols` of some code, which `text` stands for, from the cache if it is there.
    Only code that could be linked gets there; an object there that cannot be is compiled again."""
    key = hashlib.sha256(f"{_environment()}\n{text}".encode()).hexdigest()
    _require_memory()
    found = read_object(key)
    if found is not None:
        with suppress(Unsupported):
            return load_object(found, symbols)
    code = compile_object(assembly())
    addresses = load_object(code, symbols)
    write_object(key, code)
    return addresses


def _require_memory() -> None:
    """Checks that LLVM will find memory, as far as that can be known."""
    try:
        mmap.mmap(-1, _COMPILER_BYTES).close()
    except OSError as error:
        raise Unsupported(
            f"cpu: compiling needs {_COMPILER_BYTES:,} bytes of address space, and the system gives none "
            f"({error}); raise its limit (ulimit -v), or free memory"
        ) from error


def kernel_assembly(pattern: Pattern) -> str:
    """The pattern as LLVM assembly, before optimization."""
    module = ir.Module()
    module.triple = machine().triple
    emit_kernel(module, _SYMBOL, pattern, machine().vector_bytes // pattern.lane_bytes)
    return str(module)


def compile_object(assembly: str) -> bytes:
    """Optimized machine code, as an object file."""
    module = llvm.parse_assembly(assembly)
    module.verify()
    # The code is made of full vectors already: what is left to do is to clean up and to hoist.
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = (
        options.loop_interleaving
    ) = False
    builder = llvm.create_pass_builder(_target_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return bytes(_target_machine().emit_object(module))


def load_object(code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    """Links an object file into this process, for its life, and returns the addresses of its `symbols`. Of
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
    return llvm.create_lljit_compiler(_target_machine())


@cache
def _environment() -> str:
    """All that the code depends on apart from the pattern: processor, LLVM, and the version of this
    compiler."""
    host = machine()
    versions = f"llvmlite {llvmlite.__version__} {llvm.llvm_version_info}"
    return f"{host.triple} {host.name} {host.features} {versions} {compiler_digest('cpu')}"
