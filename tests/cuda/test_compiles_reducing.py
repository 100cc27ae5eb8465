"""Kernels of the CUDA target that reduce, scan or sum products compile."""

from __future__ import annotations

import pytest

from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import Mode
from tests.cuda.compiled import compiled, machine_code


@pytest.mark.parametrize(
    ("capability", "launch"),
    compiled(lambda sm, each: sm == 90 and each.pattern.mode in (Mode.REDUCE, Mode.SCAN, Mode.FMA, Mode.MMA)),
)
def test_kernel_compiles(capability: int, launch: Launch) -> None:
    assert machine_code(launch, capability).startswith(b"\x7fELF")
