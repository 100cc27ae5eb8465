"""Machine code in the cache, by keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from opendml.targets.object_cache import compiler_digest, read_object


class Cubin(NamedTuple):
    """The machine code of a pattern, and its key in the cache."""

    key: str
    code: bytes


def cubins_of_keys(keys: Sequence[str]) -> list[Cubin] | None:
    """Return machine code by keys; None: some of it is not in the cache."""
    found = list[Cubin]()
    for key in keys:
        code = read_object(key)
        if code is None:
            return None
        found.append(Cubin(key, code))
    return found


@cache
def environment() -> str:
    """Return all that code depends on apart from pattern and architecture: NVRTC, and the version of this
    compiler.
    """
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor} {compiler_digest('cuda')}"
