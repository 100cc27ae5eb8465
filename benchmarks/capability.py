"""Restricts opendml to narrower vectors than the processor has, as ATEN_CPU_CAPABILITY does PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

CAPABILITIES = ("avx2",)
_BEYOND_AVX2 = ("+avx512", "+evex512", "+avx10", "+amx")


@contextmanager
def restricted(capability: str | None) -> Iterator[None]:
    """Compile for a processor of this capability within the context; None stands for the present processor.

    It must be entered before anything is compiled, since LLVM's target is made once.
    """
    from opendml.targets.cpu.machine import assumed, detected
    from opendml.targets.cpu.machine_code import runtime_addresses

    if capability is None:
        yield
        return
    here = detected()
    features = [
        f"-{each[1:]}" if each.startswith(_BEYOND_AVX2) else each for each in here.features.split(",")
    ]
    narrow = replace(here, features=",".join(features), vector_bytes=min(here.vector_bytes, 32))
    with assumed(narrow):
        runtime_addresses()
        yield
