"""Kernels of the CUDA target that normalize groups or transpose compile."""

from __future__ import annotations

import pytest

from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.pattern import COLLECTIVE, Mode
from tests.cuda.compiled import compiled, machine_code

OTHERS = (Mode.POINTWISE, *COLLECTIVE)


@pytest.mark.parametrize(
    ("capability", "launch"),
    compiled(lambda sm, each: sm == 90 and each.pattern.mode not in OTHERS),
)
def test_kernel_compiles(capability: int, launch: Launch) -> None:
    assert machine_code(launch, capability).startswith(b"\x7fELF")
