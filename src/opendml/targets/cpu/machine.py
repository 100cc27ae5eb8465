"""The processor at hand: its vector width and caches."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from opendml.across_forks import compiling
from opendml.errors import Unsupported


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor that code is made for. Sizes in bytes; `vector_bytes` is the width of its vector
    registers; `last_cache_bytes` what may be counted on of the cache that cores share; `threads` share work,
    None: as many as this process may use."""

    name: str
    features: str
    triple: str
    vector_bytes: int
    l2_bytes: int
    last_cache_bytes: int
    threads: int | None = None

    def has(self, feature: str) -> bool:
        """Whether the processor has a feature, by LLVM's name for it."""
        return f"+{feature}" in self.features.split(",")

    @property
    def without_matrix_registers(self) -> Machine:
        """Return this processor as if it had no AMX."""
        return replace(self, features=self.features.replace("+amx-", "-amx-"))


_NEEDED = {"fma": "FMA", "f16c": "F16C"}
"""Features without which LLVM calls library functions for single instructions, which no library need have."""

_LAST_CACHE_SHARE = 2 * 1024 * 1024
"""Bytes of the last cache for each processor that the system has, at most: of a host's that a virtual machine
has a few processors of, others use the rest. With two of a 105 MiB cache's, chains of copies of 4 to 34 MB
take two thirds of the time if they write past the caches."""


_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS = 158, 0x1023, 18
"""Linux's system call, what is asked of it, and the part of a processor's state that is asked for."""

_assumed: ContextVar[Machine | None] = ContextVar("assumed", default=None)


def machine() -> Machine:
    """The machine that code is made for: this one, but within `assumed`.

    Raises:
        Unsupported: an x86 processor without FMA or F16C.
    """
    return _assumed.get() or detected()


@contextmanager
def assumed(other: Machine) -> Iterator[None]:
    """As if this machine were another: what is scheduled within is what that one would run."""
    token = _assumed.set(other)
    try:
        yield
    finally:
        _assumed.reset(token)


@cache
def detected() -> Machine:
    """Return this machine; the errors are those of `machine`."""
    with compiling:
        features = llvm.get_host_cpu_features()
        triple, name = llvm.get_process_triple(), llvm.get_host_cpu_name()
        has_registers = features.get("amx-tile") and _may_use_matrix_registers()
    if triple.startswith("x86_64"):
        missing = [name for feature, name in _NEEDED.items() if not features.get(feature)]
        if missing:
            raise Unsupported(
                f"cpu: this processor has no {' and no '.join(missing)}, which x86-64 processors have "
                'from 2013 on; use the device "reference"'
            )
    vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    host = Machine(
        name,
        features.flatten(),
        triple,
        vector_bytes,
        _cache_bytes(2) or 512 * 1024,
        min(_cache_bytes(3) or 16 * 1024 * 1024, _LAST_CACHE_SHARE * (os.cpu_count() or 1)),
    )
    return host if has_registers else host.without_matrix_registers


def _may_use_matrix_registers() -> bool:
    """Asks the system to keep them for this process's threads, which it does for those that ask alone."""
    if not sys.platform.startswith("linux"):
        return False
    granted: int = ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS)
    return granted == 0


def _cache_bytes(level: int) -> int | None:
    """The size of a cache of the first processor; None where the system does not tell."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size").read_text("utf-8").strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return None
