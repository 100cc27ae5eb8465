"""From kernel patterns to machine code: LLVM, and the cache of objects in memory and on disk."""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from opendml.program import vector_math
from opendml.targets.cpu.emit_kernel import emit_kernel
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.native import runtime_assembly
from opendml.targets.cpu.pattern import Pattern
from opendml.targets.object_cache import read_object, write_object

_SYMBOL = "kernel"

_addresses: dict[str, int] = {}
_libraries: list[llvm.ResourceTracker] = []
_lock = threading.Lock()


def kernel_address(pattern: Pattern) -> int:
    """The address of the pattern's machine code, compiled at most once and kept until the process ends."""
    text = pattern.text()
    with _lock:
        address = _addresses.get(text)
        if address is None:
            key = hashlib.sha256(f"{_environment()}\n{text}".encode()).hexdigest()
            code = read_object(key)
            if code is None:
                code = compile_object(kernel_assembly(pattern))
                write_object(key, code)
            address = _addresses[text] = load_object(code, (_SYMBOL,))[_SYMBOL]
        return address


@cache
def runtime_addresses() -> dict[str, int]:
    """The addresses of the native runtime's functions."""
    assembly = runtime_assembly(machine().triple)
    key = hashlib.sha256(f"{_environment()}\n{assembly}".encode()).hexdigest()
    code = read_object(key)
    if code is None:
        code = compile_object(assembly)
        write_object(key, code)
    return load_object(code, ("dispatch_alone", "dispatch_shared", "work"))


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
    """Links an object file into this process, for its life, and returns the addresses of its `symbols`."""
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    library = builder.link(_jit(), f"opendml{len(_libraries)}")
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
    sources = sorted(
        [*Path(__file__).parent.glob("*.py"), *Path(vector_math.__file__).parent.glob("*_math.py")]
    )
    compiler = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    versions = f"llvmlite {llvmlite.__version__} {llvm.llvm_version_info}"
    return f"{host.triple} {host.name} {host.features} {versions} {compiler}"
