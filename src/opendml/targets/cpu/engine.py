"""From kernel patterns to machine code: LLVM, in this process and in workers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Self

from opendml.across_forks import compiling, importing
from opendml.budget import check_time
from opendml.logs import tell
from opendml.signals import deferred_signals
from opendml.targets.cpu.bundles import bundled, parts_of, with_functions
from opendml.targets.cpu.compile_workers import WorkerPool, worker_count
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.machine_code import (
    BATCH,
    SYMBOL,
    MachineCode,
    batched,
    compile_object,
    find_kernels,
    has_runtime,
    is_linked,
    key_of,
    link_kernel,
    link_runtime,
    linked_codes,
)
from opendml.targets.cpu.native import runtime_assembly
from opendml.targets.cpu.object_code import Effort
from opendml.targets.cpu.threads import available_threads

if TYPE_CHECKING:
    from opendml.targets.cpu.pattern import CpuPattern


_CLEANED = frozenset({"POINTWISE", "CONTRACTION", "CONTRACTION_PACK", "CONTRACTION_CHAIN"})
"""Modes of kernels that `Effort.CLEAN` is enough for.

The passes of HOIST take 5 times as long. Without them products of ResNet-50, BERT-base, MobileNetV2 and GPT-2
take 0.95 to 1.01 of the time (one thread of Zen 4). Reductions take 3 % more (rapidocr-rec).
"""
_EXPECTED_KERNELS = 4
"""The number of kernels that is assumed before any is known. It starts two workers; more start later."""


class KernelCompiler:
    """Compiles kernels on all cores, while its user chooses more of them. It is a context manager.

    Code is compiled at most once, and kept until the process ends. Few kernels are compiled by this process,
    when their code is asked for.
    """

    def __init__(self) -> None:
        self._missing: dict[str, CpuPattern] = {}
        self._later: dict[str, list[Future[bytes | None]]] = {}
        """The objects of kernels by their keys: the kernel's own, and those of its shared functions."""
        self._functions: dict[str, Future[bytes | None]] = {}
        """The objects of shared functions by their names."""
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
        self._add({key_of(each.text()): each for each in patterns})

    def _add(self, needed: Mapping[str, CpuPattern]) -> None:
        new = {key: each for key, each in needed.items() if key not in self._missing and not is_linked(key)}
        for keys in batched(new, BATCH):
            check_time()
            with deferred_signals(), compiling:
                find_kernels(keys)
        self._began = self._began or time.perf_counter()
        self._missing |= {key: each for key, each in new.items() if not is_linked(key)}
        if not self._missing:
            return
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
                    self._later[key] = self._begun(pattern, pool, workers)

    def _begun(self, pattern: CpuPattern, pool: WorkerPool, workers: int) -> list[Future[bytes | None]]:
        """Begin to compile a pattern, and those of its functions that no pattern before has."""
        kernel, functions = parts_of(kernel_assembly(pattern))
        effort = effort_for(pattern)
        for name, assembly in functions.items():
            if name not in self._functions:
                self._functions[name] = pool.compile(assembly, effort, workers)
        return [pool.compile(kernel, effort, workers), *[self._functions[name] for name in functions]]

    @property
    def _pool(self) -> WorkerPool | None:
        """The worker processes, if there are any."""
        return self._expecting.pool if self._expecting else self._own

    def codes(self, patterns: Sequence[CpuPattern]) -> list[MachineCode]:
        """Return the machine code of patterns.

        Raises:
            Unsupported: there is no memory for the compilation, or the code cannot be linked.
        """
        keys = [key_of(each.text()) for each in patterns]
        self._add(dict(zip(keys, patterns, strict=True)))
        with compiling:
            missing = {key: each for key, each in self._missing.items() if not is_linked(key)}
            own = [key for key in missing if key not in self._later]
            for batch in batched(own, BATCH):
                check_time()
                with deferred_signals():
                    for key, code in zip(batch, _compiled([missing[key] for key in batch]), strict=True):
                        link_kernel(key, code)
            for key in [each for each in missing if each in self._later]:
                found = [each.result() for each in self._later[key]]
                check_time()
                with deferred_signals():
                    if None in found:  # A worker was lost.
                        link_kernel(key, next(_compiled([missing[key]])))
                    else:
                        link_kernel(key, bundled([each for each in found if each is not None]))
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
            return linked_codes(keys)


class _Expecting:
    """Worker processes that start before the first kernel is known, and compile the native runtime meanwhile.

    Args:
        pool: the processes.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool
        self._runtime: Future[bytes | None] | None = None
        if not has_runtime():
            self._runtime = pool.compile(runtime_assembly(machine().triple), Effort.ALL, 0)

    def finish(self) -> None:
        """Link the native runtime."""
        found, self._runtime = self._runtime, None
        code = None if found is None else found.result()
        if code is not None:
            with deferred_signals():
                link_runtime(code)


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


def kernel_assembly(pattern: CpuPattern) -> str:
    """Return the pattern as LLVM assembly in parts (`bundles.py`), before optimization."""
    # A process that finds all code in the cache does not pay for these imports.
    with importing:
        from opendml.targets.cpu import ir
        from opendml.targets.cpu.emit_kernel import emit_kernel
    module = ir.Module(machine().triple)
    emit_kernel(module, SYMBOL, pattern, machine().vector_bytes // pattern.lane_bytes)
    text = with_functions(str(module), module.shared_functions)
    module.clear()
    return text


def effort_for(pattern: CpuPattern) -> Effort:
    """Return the optimizations that a kernel needs."""
    return Effort.CLEAN if pattern.mode.name in _CLEANED else Effort.HOIST
