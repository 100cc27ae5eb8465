"""Machine code of this process: it is linked, from the cache or compiled, and kept until the process ends.

A process that finds all its code in the cache does not import LLVM, which takes 60 ms.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from opendml.across_forks import compiling
from opendml.budget import check_time
from opendml.digests import digest_of
from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.signals import deferred_signals
from opendml.targets.cpu import llvm_library, object_code
from opendml.targets.cpu.bundles import as_one_module, objects_of
from opendml.targets.cpu.host_facts import host_facts
from opendml.targets.cpu.linker import linked
from opendml.targets.cpu.machine import CpuMachine, machine
from opendml.targets.cpu.native import FUNCTIONS, SCRATCH_SYMBOL, runtime_assembly
from opendml.targets.cpu.object_code import Effort
from opendml.targets.object_cache import compiler_digest, read_object, write_object

if TYPE_CHECKING:
    import llvmlite.binding as llvm

SYMBOL = "kernel"
"""The name of a kernel's function."""
_SYMBOLS = (SYMBOL, SCRATCH_SYMBOL)
BATCH = 8
"""Kernels that are linked or compiled before handlers of signals may run."""

_COMPILER_BYTES = 64 * 1024 * 1024
"""Bytes of address space that the compilation of one kernel may take. LLVM ends the process if it gets
none."""

_codes: dict[str, MachineCode] = {}
"""Machine code by the keys of objects."""
_runtime: dict[str, int] = {}
"""The addresses of the native runtime's functions."""


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The machine code of a kernel.

    Args:
        address: that of its function.
        scratch_bytes: bytes of scratch memory that each thread needs.
        key: its key in the cache of objects.
    """

    address: int
    scratch_bytes: int
    key: str


def codes_of_keys(keys: Sequence[str]) -> list[MachineCode] | None:
    """Return the machine code of objects in the cache by their keys. None: one is absent or damaged."""
    with compiling:
        # Deferring signals takes as long as linking a small kernel.
        for some in batched([key for key in dict.fromkeys(keys) if key not in _codes], BATCH):
            check_time()
            with deferred_signals():
                find_kernels(some)
            if not all(map(is_linked, some)):
                return None
        return linked_codes(keys)


def is_linked(key: str) -> bool:
    """Return whether this process has linked the object of a key."""
    return key in _codes


def linked_codes(keys: Sequence[str]) -> list[MachineCode]:
    """Return the machine code of objects that this process has linked."""
    return [_codes[key] for key in keys]


def forget_codes(keys: Sequence[str]) -> None:
    """Forget machine code by its keys, so that it is compiled again. What runs it still can."""
    with compiling:
        for key in keys:
            _codes.pop(key, None)


def note_runtime() -> None:
    """Read the object of the native runtime, for a recorder, or compile it to the cache."""
    with deferred_signals(), compiling:
        if read_object(runtime_key()) is None:
            write_object(runtime_key(), _compiled_runtime())


def has_runtime() -> bool:
    """Return whether the native runtime is linked or in the cache."""
    return bool(_runtime) or read_object(runtime_key()) is not None


def runtime_key() -> str:
    """Return the key of the object of the native runtime."""
    return key_of(runtime_assembly(machine().triple))


def link_runtime(code: bytes) -> None:
    """Link the native runtime, and add it to the cache.

    Raises:
        Unsupported: it cannot be linked.
    """
    _runtime.update(_link_to_cache(runtime_key(), code, FUNCTIONS))


def runtime_addresses() -> Mapping[str, int]:
    """Return the addresses of the native runtime's functions."""
    if not _runtime:
        with deferred_signals(), compiling:
            found = _cached(runtime_key(), FUNCTIONS)
            if found is None:
                link_runtime(_compiled_runtime())
            else:
                _runtime.update(found)
    return _runtime


def _compiled_runtime() -> bytes:
    return compile_object(runtime_assembly(machine().triple))


def compile_object(
    assembly: str, effort: Effort | None = None, target: llvm.TargetMachine | None = None
) -> bytes:
    """Return optimized machine code for this processor, or for another one, as an object file.

    Args:
        assembly: LLVM assembly, perhaps in parts (`bundles.py`).
        effort: the optimizations; None: all.
        target: the other processor.

    Raises:
        Unsupported: there is no memory for the compilation.
    """
    require_memory()
    llvm_library.load()
    return object_code.compiled_object(as_one_module(assembly), effort or Effort.ALL, target or host_target())


def find_kernels(keys: Sequence[str]) -> None:
    """Add those kernels to the table that are in the cache on disk."""
    for key in keys:
        addresses = _cached(key, _SYMBOLS)
        if addresses is not None:
            _codes[key] = _code_at(addresses, key)


def link_kernel(key: str, code: bytes) -> None:
    """Add a kernel to the table and to the cache.

    Raises:
        Unsupported: it cannot be linked.
    """
    _codes[key] = _code_at(_link_to_cache(key, code, _SYMBOLS), key)


def batched(keys: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield keys in tuples of at most `size`."""
    remaining = iter(keys)
    while batch := tuple(itertools.islice(remaining, size)):
        yield batch


def _code_at(addresses: Mapping[str, int], key: str) -> MachineCode:
    scratch_bytes = ctypes.c_int64.from_address(addresses[SCRATCH_SYMBOL]).value
    return MachineCode(addresses[SYMBOL], scratch_bytes, key)


def _cached(key: str, symbols: tuple[str, ...]) -> dict[str, int] | None:
    """Return the addresses of the `symbols` of an object, if it is in the cache and can be linked."""
    found = read_object(key)
    if found is not None:
        with suppress(Unsupported):
            return load_object(found, symbols)
    return None


def _link_to_cache(key: str, code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    """Return the addresses of the `symbols` of an object, which gets into the cache if it can be linked."""
    addresses = load_object(code, symbols)
    write_object(key, code)
    return addresses


def key_of(text: str) -> str:
    """Return the key of an object by its assembly, or by the text of its pattern."""
    return _key_in(environment(), text)


@lru_cache(maxsize=4096)
def _key_in(environment: str, text: str) -> str:
    """Return the key of an object. Each bucket of sizes asks for all kernels of a model again."""
    return digest_of(f"{environment}\n{text}".encode()).hexdigest()


def environment() -> str:
    """Return all that the code depends on apart from the pattern: processor, LLVM, and the version of this
    compiler."""
    return _environment_of(machine())


@cache
def _environment_of(host: CpuMachine) -> str:
    vectors = f"{host.features} {host.vector_bytes}"
    return f"{host.triple} {host.name} {vectors} {host_facts().versions} {compiler_digest('cpu')}"


def load_object(code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    """Link an object file, or a bundle, into this process, for its life, and return the addresses of its
    `symbols`. Of one that cannot be linked nothing is left.

    Raises:
        Unsupported: it cannot be linked.
    """
    found = linked(code, symbols)
    if found is not None:
        return found
    require_memory()
    llvm_library.load()
    try:
        return object_code.linked_by_llvm(objects_of(code), symbols, host_target())
    except (RuntimeError, ValueError) as error:
        raise Unsupported(f"cpu: the machine code of a kernel cannot be linked: {error}") from error


def host_target() -> llvm.TargetMachine:
    """Return LLVM's description of this processor."""
    llvm_library.load()
    host = machine()
    return object_code.target_machine(host.triple, host.name, host.features)


def require_memory() -> None:
    """Check that LLVM will find memory, as far as that can be known."""
    try:
        mmap.mmap(-1, _COMPILER_BYTES).close()
    except OSError as error:
        raise Unsupported(
            f"cpu: compiling needs {_COMPILER_BYTES:,} bytes of address space, and the system gives none "
            f"({error}); raise its limit (ulimit -v), or free memory"
        ) from error
