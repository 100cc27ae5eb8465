"""What this processor offers: vector width, caches, threads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor that code is made for. Sizes in bytes; `vector_bytes` is the width of its vector
    registers."""

    name: str
    features: str
    triple: str
    vector_bytes: int
    l2_bytes: int


@cache
def machine() -> Machine:
    """This machine."""
    features = llvm.get_host_cpu_features()
    vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return Machine(
        llvm.get_host_cpu_name(), features.flatten(), llvm.get_process_triple(), vector_bytes, _l2_bytes()
    )


def available_threads() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _l2_bytes() -> int:
    """The level 2 cache of one core; where the system does not tell, a size that all current cores have."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 512 * 1024
