"""From kernel patterns to machine code: LLVM, and the cache of objects in memory and on disk."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import itertools
import mmap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Self

import llvmlite
import llvmlite.binding as llvm

from opendml.across_forks import compiling, importing
from opendml.budget import check_time
from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.logs import tell
from opendml.signals import deferred_signals
from opendml.targets.cpu.compile_workers import WorkerPool, worker_count
from opendml.targets.cpu.machine import CpuMachine, machine
from opendml.targets.cpu.native import FUNCTIONS, SCRATCH_SYMBOL, runtime_assembly
from opendml.targets.cpu.object_code import Effort, compiled_object, target_machine
from opendml.targets.cpu.threads import available_threads
from opendml.targets.object_cache import compiler_digest, read_object, write_object

if TYPE_CHECKING:
    from opendml.targets.cpu.pattern import CpuPattern

_SYMBOL = "kernel"
_SYMBOLS = (_SYMBOL, SCRATCH_SYMBOL)
_BATCH = 8
"""Kernels that are compiled before handlers of signals may run."""

_CLEANED = frozenset({"POINTWISE", "CONTRACTION", "CONTRACTION_PACK", "CONTRACTION_CHAIN"})
"""Modes of kernels that `Effort.CLEAN` is enough for.

The passes of HOIST take 5 times as long. Without them products of ResNet-50, BERT-base, MobileNetV2 and GPT-2
take 0.95 to 1.01 of the time (one thread of Zen 4). Reductions take 3 % more (rapidocr-rec).
"""
_COMPILER_BYTES = 64 * 1024 * 1024
"""Bytes of address space that the compilation of one kernel may take. LLVM ends the process if it gets
none."""

_EXPECTED_KERNELS = 4
"""The number of kernels that is assumed before any is known. It starts two workers; more start later."""

_codes: dict[str, MachineCode] = {}
"""Machine code by the keys of objects."""
_runtime: dict[str, int] = {}
"""The addresses of the native runtime's functions."""
_libraries: list[llvm.ResourceTracker] = []
_numbers = itertools.count()


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


class KernelCompiler:
    """Compiles kernels on all cores, while its user chooses more of them. It is a context manager.

    Code is compiled at most once, and kept until the process ends. Few kernels are compiled by this process,
    when their code is asked for.
    """

    def __init__(self) -> None:
        self._missing: dict[str, CpuPattern] = {}
        self._later: dict[str, Future[bytes | None]] = {}
        self._expecting = _expecting.get()
        self._own: WorkerPool | None = None
        self._began = 0.0

    def __enter__(self) -> Self:
        """Do nothing: kernels are compiled from `add` on."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the worker processes that were started for it."""
        if self._own is not None:
            self._own.close()

    def add(self, patterns: Iterable[CpuPattern]) -> None:
        """Begin to compile patterns whose code is neither in this process nor in the cache."""
        self._add({_key(each.text()): each for each in patterns})

    def _add(self, needed: Mapping[str, CpuPattern]) -> None:
        new = {key: each for key, each in needed.items() if key not in _codes and key not in self._missing}
        for keys in _batched(new, _BATCH):
            check_time()
            with compiling, deferred_signals():
                _find_kernels(keys)
        self._began = self._began or time.perf_counter()
        self._missing |= {key: each for key, each in new.items() if key not in _codes}
        workers = worker_count(len(self._missing), available_threads())
        if not workers and self._pool is None:
            return
        pool = self._pool or WorkerPool(machine())
        if self._expecting is None:
            self._own = pool
        for key, pattern in self._missing.items():
            if key not in self._later:
                check_time()
                with suppress(RuntimeError):  # Without threads, this process compiles all.
                    job = kernel_assembly(pattern), effort_for(pattern)
                    self._later[key] = pool.compile(*job, workers)

    @property
    def _pool(self) -> WorkerPool | None:
        """The worker processes, if there are any."""
        return self._expecting.pool if self._expecting else self._own

    def codes(self, patterns: Sequence[CpuPattern]) -> list[MachineCode]:
        """Return the machine code of patterns.

        Raises:
            Unsupported: there is no memory for the compilation, or the code cannot be linked.
        """
        keys = [_key(each.text()) for each in patterns]
        self._add(dict(zip(keys, patterns, strict=True)))
        with compiling:
            missing = {key: each for key, each in self._missing.items() if key not in _codes}
            own = [key for key in missing if key not in self._later]
            for batch in _batched(own, _BATCH):
                check_time()
                with deferred_signals():
                    _require_memory()
                    for key, code in zip(batch, _compiled([missing[key] for key in batch]), strict=True):
                        _link_kernel(key, code)
            for key in [each for each in missing if each in self._later]:
                found = self._later[key].result()
                check_time()
                with deferred_signals():
                    _require_memory()
                    _link_kernel(key, next(_compiled([missing[key]])) if found is None else found)
            if self._expecting is not None:
                self._expecting.finish()
            if missing:
                tell(
                    "compiled the machine code of %d kernels, which is not in the cache, in %.2f s "
                    "(%d processes)",
                    len(missing),
                    time.perf_counter() - self._began,
                    max(self._pool.size if self._pool else 0, 1),
                )
            return [_codes[key] for key in keys]


class _Expecting:
    """Worker processes that start before the first kernel is known, and compile the native runtime meanwhile.

    Args:
        pool: the processes.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        assembly = runtime_assembly(machine().triple)
        self._key = _key(assembly)
        self._runtime: Future[bytes | None] | None = None
        if not _runtime and read_object(self._key) is None:
            self._runtime = pool.compile(assembly, Effort.ALL, 0)

    def finish(self) -> None:
        """Link the native runtime."""
        found, self._runtime = self._runtime, None
        code = None if found is None else found.result()
        if code is not None:
            with deferred_signals():
                _require_memory()
                _runtime.update(_linked(self._key, code, FUNCTIONS))


_expecting: ContextVar[_Expecting | None] = ContextVar("opendml_expecting_code", default=None)


@contextmanager
def expecting_code() -> Iterator[None]:
    """Start worker processes for a program whose kernels are mostly not in the cache.

    Starting workers and compiling the native runtime take 0.1 s each. They use a core that is idle until the
    first kernel is chosen.
    """
    workers = worker_count(_EXPECTED_KERNELS, available_threads())
    if not workers or _expecting.get() is not None:
        yield
        return
    pool = WorkerPool(machine())
    token = None
    try:
        with suppress(RuntimeError):  # Without threads, this process compiles all.
            pool.start(workers)
            token = _expecting.set(_Expecting(pool))
        yield
    finally:
        if token is not None:
            _expecting.reset(token)
        pool.close()


def codes_of_keys(keys: Sequence[str]) -> list[MachineCode] | None:
    """Return the machine code of objects in the cache by their keys. None: one is absent or damaged."""
    with compiling:
        # Deferring signals takes as long as linking a small kernel.
        for some in _batched([key for key in dict.fromkeys(keys) if key not in _codes], _BATCH):
            check_time()
            with deferred_signals():
                _find_kernels(some)
            if any(key not in _codes for key in some):
                return None
        return [_codes[key] for key in keys]


def forget_codes(keys: Sequence[str]) -> None:
    """Forget machine code by its keys, so that it is compiled again. What runs it still can."""
    with compiling:
        for key in keys:
            _codes.pop(key, None)


def note_runtime() -> None:
    """Read the object of the native runtime, for a recorder, or compile it to the cache."""
    assembly = runtime_assembly(machine().triple)
    with compiling, deferred_signals():
        if read_object(_key(assembly)) is None:
            _require_memory()
            write_object(_key(assembly), compile_object(assembly))


def runtime_addresses() -> Mapping[str, int]:
    """Return the addresses of the native runtime's functions."""
    if not _runtime:
        assembly = runtime_assembly(machine().triple)
        with compiling, deferred_signals():
            _require_memory()
            found = _cached(_key(assembly), FUNCTIONS)
            _runtime.update(found or _linked(_key(assembly), compile_object(assembly), FUNCTIONS))
    return _runtime


def _find_kernels(keys: Sequence[str]) -> None:
    """Add those kernels to the table that are in the cache on disk."""
    _require_memory()
    for key in keys:
        addresses = _cached(key, _SYMBOLS)
        if addresses is not None:
            _codes[key] = _code_at(addresses, key)


def _link_kernel(key: str, code: bytes) -> None:
    _codes[key] = _code_at(_linked(key, code, _SYMBOLS), key)


def _batched(keys: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yield keys in tuples of at most `size`."""
    remaining = iter(keys)
    while batch := tuple(itertools.islice(remaining, size)):
        yield batch


def _code_at(addresses: Mapping[str, int], key: str) -> MachineCode:
    scratch_bytes = ctypes.c_int64.from_address(addresses[SCRATCH_SYMBOL]).value
    return MachineCode(addresses[_SYMBOL], scratch_bytes, key)


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


def _cached(key: str, symbols: tuple[str, ...]) -> dict[str, int] | None:
    """Return the addresses of the `symbols` of an object, if it is in the cache and can be linked."""
    found = read_object(key)
    if found is not None:
        with suppress(Unsupported):
            return load_object(found, symbols)
    return None


def _linked(key: str, code: bytes, symbols: tuple[str, ...]) -> dict[str, int]:
    """Return the addresses of the `symbols` of an object, which gets into the cache if it can be linked."""
    addresses = load_object(code, symbols)
    write_object(key, code)
    return addresses


def _key(text: str) -> str:
    return hashlib.sha256(f"{environment()}\n{text}".encode()).hexdigest()


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
    # A process that finds all code in the cache does not pay for these imports.
    with importing:
        from opendml.targets.cpu import ir
        from opendml.targets.cpu.emit_kernel import emit_kernel
    module = ir.Module(machine().triple)
    emit_kernel(module, _SYMBOL, pattern, machine().vector_bytes // pattern.lane_bytes)
    text = str(module)
    del module
    # A module is a reference cycle of a megabyte, and `collection_paused` would keep all until the end.
    gc.collect(0)
    return text


def effort_for(pattern: CpuPattern) -> Effort:
    """Return the optimizations that a kernel needs."""
    return Effort.CLEAN if pattern.mode.name in _CLEANED else Effort.HOIST


def compile_object(
    assembly: str, effort: Effort = Effort.ALL, target: llvm.TargetMachine | None = None
) -> bytes:
    """Optimized machine code for this processor, or for another one, as an object file."""
    return compiled_object(assembly, effort, target or _target_machine())


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


def _target_machine() -> llvm.TargetMachine:
    host = machine()
    return target_machine(host.triple, host.name, host.features)


@cache
def _jit() -> llvm.LLJIT:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # It gives an object one piece of memory. RuntimeDyld, LLVM's default, takes one for each section, and
    # ends the process where these lie more than 2 GiB apart.
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)


def _release_library() -> None:
    """Release the pages of LLVM's library that loading it has touched: 35 MB, 7 of which are needed to link.

    The system maps them again on demand. This works on Linux only, where /proc/self/smaps lists the pages.
    """
    with suppress(OSError, AttributeError):
        madvise = ctypes.CDLL(None).madvise
        with open("/proc/self/smaps") as lines:
            for begin, end in unchanged_parts(lines, "libllvmlite"):
                madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED)


def unchanged_parts(lines: Iterable[str], library: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of the parts of a library in memory whose pages are all those of its file.

    Pages that the loader has changed are anonymous or swapped out. "Private_Dirty" would not count those that
    the child of a fork shares with its parent. Parts that may still be written are left out.

    Args:
        lines: those of /proc/self/smaps.
        library: the beginning of the name of its file.
    """
    part = ""
    for line in lines:
        if f"/{library}" in line:
            addresses, permissions, *_ = line.split()
            part = "" if "w" in permissions else addresses
        elif part and line.startswith(("Anonymous:", "Swap:")):
            if line.split()[1] != "0":
                part = ""
            elif line.startswith("Swap:"):
                begin, end = part.split("-")
                yield int(begin, 16), int(end, 16)
                part = ""


def environment() -> str:
    """Return all that the code depends on apart from the pattern: processor, LLVM, and the version of this
    compiler."""
    return _environment_of(machine())


@cache
def _environment_of(host: CpuMachine) -> str:
    versions = f"llvmlite {llvmlite.__version__} {llvm.llvm_version_info}"
    vectors = f"{host.features} {host.vector_bytes}"
    return f"{host.triple} {host.name} {vectors} {versions} {compiler_digest('cpu')}"


# Before anything else takes memory, so that the peak of a process does not have these pages.
_release_library()
