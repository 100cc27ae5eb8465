"""What this processor offers: vector width, caches."""

from __future__ import annotations

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
    last_cache_bytes: int


@cache
def machine() -> Machine:
    """This machine."""
    features = llvm.get_host_cpu_features()
    vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return Machine(
        llvm.get_host_cpu_name(),
        features.flatten(),
        llvm.get_process_triple(),
        vector_bytes,
        _cache_bytes(2) or 512 * 1024,
        _cache_bytes(3) or 16 * 1024 * 1024,
    )


def _cache_bytes(level: int) -> int | None:
    """The size of a cache of the first processor; None where the system does not tell."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size").read_text().strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return None
