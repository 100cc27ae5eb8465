"""Constants on a CUDA device: what runs once, and over which memory; without a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from opendml.program.node import Operation, apply, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda import driver, job, planning
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.planned_launch import PlannedLaunch
from opendml.targets.cuda.planning import compiled_program
from opendml.targets.kept import addresses_within, kept_bytes
from tests.cuda import fake
from tests.programs import initialize

F32 = ScalarType.FLOAT32
SIZES = (1, 8, 4, 4)
ROW = (1, 8, 1, 1)
X, SCALE, BIAS = source(0, F32, SIZES), source(1, F32, ROW), source(2, F32, ROW)

Launched = list[tuple[PlannedLaunch, list[int]]]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    """Return the launches that a fake device runs, and the addresses of their accesses."""
    fake.install(monkeypatch)
    monkeypatch.setattr(fake.FakeDevice, "is_current", True, raising=False)
    monkeypatch.setattr(fake.FakeDevice, "function", lambda *_: None, raising=False)
    monkeypatch.setattr(planning, "cubins_of", lambda patterns, _: [Cubin("", b"")] * len(patterns))
    log: Launched = []

    def launcher(function: object, launch: PlannedLaunch, size: object, address: int, *_: object) -> Any:
        def run() -> None:
            words = (ctypes.c_int64 * len(launch.alignments)).from_address(address)
            log.append((launch, list(words)))

        return run

    monkeypatch.setattr(job, "launcher", launcher)
    return log


def test_constants_are_prepared_in_one_run_and_read_from_memory_that_stays(launched: Launched) -> None:
    """The root of the scale is computed once; the bias is copied."""
    layouts = tuple(packed(each.type, each.sizes) for each in (X, SCALE, BIAS))
    result = X * apply(Operation.SQUARE_ROOT, SCALE) + BIAS
    program = compiled_program(Program(layouts, (layouts[0],), (result,), frozenset({1, 2})))
    assert kept_bytes(program.kept) == 512
    scale, bias = (np.full(8, number, np.float32) for number in (4, 5))
    memory: Any = driver.device(0).allocate(512)
    constants = {1: scale.ctypes.data, 2: bias.ctypes.data}
    addresses = addresses_within(program.kept, memory.address)
    initialize(program, constants, addresses)
    ((launch, places),) = launched
    assert launch is program.parts.launches[program.parts.groups[-1][0]]
    assert places == [scale.ctypes.data, memory.address]
    assert (memory.bytes[256:288].view(np.float32) == 5).all()

    launched.clear()
    instance = program.instantiate(None, addresses)
    instance.bind(0, 1 << 20)
    instance.bind(3, 1 << 21)
    for _ in range(2):
        instance.dispatch()
    (launch, places), again = launched
    assert (launch, places) == again
    assert sorted(places) == sorted([1 << 20, memory.address, memory.address + 256, 1 << 21])


def test_programs_without_constants_keep_nothing(launched: Launched) -> None:
    layout = packed(F32, SIZES)
    program = compiled_program(Program((layout,), (layout,), (X * 2.0,)))
    assert not program.kept
    program.instantiate().dispatch()
    assert len(launched) == 1
