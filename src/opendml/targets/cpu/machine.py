"""The processor that code is made for: its vector width, its caches and its rates."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from pathlib import Path

from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.targets.common.machine import Machine
from opendml.targets.cpu.host_facts import host_facts
from opendml.targets.cpu.threads import available_threads

_MEMORY_RATE = 4.0
"""Bytes that a core moves from or to memory in a cycle: 10 GB/s at 2.6 GHz. Measured on two cores of
processors with AVX-512 and AVX2, whose candidates change places where measurements put the limits."""
_CACHE_RATE = 16.0
"""Bytes that a core reads in a cycle from a cache that holds what it reads again, its own or, in chunks that
cores share, the last one. Chosen as _MEMORY_RATE is."""


@dataclass(frozen=True, slots=True)
class CpuMachine(Machine):
    """The processor that code is made for.

    Args:
        name: the name that LLVM has for it.
        features: its features by LLVM's names.
        triple: the target triple.
        vector_bytes: the bytes of a vector register.
        l2_bytes: the bytes of a core's own second cache.
        last_cache_bytes: the bytes that may be counted on of the cache that cores share.
        threads: the threads that share work; None: as many as this process may use.
    """

    name: str
    features: str
    triple: str
    vector_bytes: int
    l2_bytes: int
    last_cache_bytes: int
    threads: int | None = None

    @property
    def cores(self) -> int:
        """The threads that share work."""
        return self.threads or available_threads()

    @property
    def lanes(self) -> int:
        """The FLOAT32 lanes of a vector register."""
        return self.vector_bytes // 4

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.vector_bytes == 64 or not self.triple.startswith("x86_64") else 16

    @property
    def memory_rate(self) -> float:
        """The bytes that a core moves from or to memory in a cycle."""
        return _MEMORY_RATE

    @property
    def cache_rate(self) -> float:
        """The bytes that a core reads from a cache in a cycle."""
        return _CACHE_RATE

    @property
    def operation_rate(self) -> float:
        """The operations on single elements of FLOAT32 that a core begins in a cycle: one vector, since
        loads and stores take the other half of the instructions."""
        return float(self.lanes)

    def has(self, feature: str) -> bool:
        """Return whether the processor has a feature, by LLVM's name for it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def without_matrix_registers(self) -> CpuMachine:
        """Return this processor as if it had no AMX."""
        return replace(self, features=self.features.replace("+amx-", "-amx-"))


_NEEDED = {"fma": "FMA", "f16c": "F16C"}
"""Features without which LLVM calls functions for single instructions, which may exist in no library."""

_LAST_CACHE_SHARE = 2 * 1024 * 1024
"""Most bytes of the last cache for each processor of the system. If a virtual machine has few processors of a
host, others use the rest of its cache. With two processors and a cache of 105 MiB, writing past the
caches takes a third of the time from chains of copies of 4 to 34 MB."""
_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS = 158, 0x1023, 18
"""The number of Linux's system call, its request, and the part of a processor's state that is requested."""

_assumed: ContextVar[CpuMachine | None] = ContextVar("assumed", default=None)


def machine() -> CpuMachine:
    """Return the machine that code is made for: this one, except within `assumed`.

    Raises:
        Unsupported: an x86 processor without FMA or F16C.
    """
    return _assumed.get() or detected()


@contextmanager
def assumed(other: CpuMachine) -> Iterator[None]:
    """Schedule within this context as if this machine were another one."""
    token = _assumed.set(other)
    try:
        yield
    finally:
        _assumed.reset(token)


@cache
def detected() -> CpuMachine:
    """Return this machine; the errors are those of `machine`."""
    host = host_facts()
    features = host.features.split(",")
    has_registers = "+amx-tile" in features and _may_use_matrix_registers()
    if host.triple.startswith("x86_64"):
        missing = [name for feature, name in _NEEDED.items() if f"+{feature}" not in features]
        if missing:
            raise Unsupported(
                f"cpu: this processor has no {' and no '.join(missing)}, which x86-64 processors have "
                'from 2013 on; use the device "reference"'
            )
    vector_bytes = 64 if "+avx512f" in features else 32 if "+avx2" in features else 16
    found = CpuMachine(
        host.name,
        host.features,
        host.triple,
        vector_bytes,
        _cache_bytes(2) or 512 * 1024,
        min(_cache_bytes(3) or 16 * 1024 * 1024, _LAST_CACHE_SHARE * (os.cpu_count() or 1)),
    )
    return found if has_registers else found.without_matrix_registers


def _may_use_matrix_registers() -> bool:
    """Ask the system to keep matrix registers for this process's threads, and return whether it does."""
    if not sys.platform.startswith("linux"):
        return False
    granted: int = ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS)
    return granted == 0


def _cache_bytes(level: int) -> int | None:
    """Return the bytes of a cache of the first processor; None if the system does not tell."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size").read_text("utf-8").strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return None
