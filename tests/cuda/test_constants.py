"""Constants on a CUDA device: what runs once, and over which memory; without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opendml.compiler.kernel import Kernel
from opendml.program.node import Operation, apply, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda import driver, executable, planning
from opendml.targets.cuda.cubins import Cubin
from opendml.targets.cuda.executable import CudaExecutable
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.planning import compiled_program
from opendml.targets.kept import addresses_within, kept_bytes
from tests.cuda import fake
from tests.programs import initialize

F32 = ScalarType.FLOAT32
SIZES = (1, 8, 4, 4)
ROW = (1, 8, 1, 1)
X, SCALE, BIAS = source(0, F32, SIZES), source(1, F32, ROW), source(2, F32, ROW)

Launched = list[tuple[Kernel, list[int]]]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Launched:
    """Return the kernels that a fake device runs, and the addresses of their accesses."""
    fake.install(monkeypatch)
    monkeypatch.setattr(fake.FakeDevice, "is_current", True, raising=False)
    monkeypatch.setattr(fake.FakeDevice, "machine", CudaMachine(90, 132, 228 * 1024), raising=False)
    monkeypatch.setattr(CudaExecutable, "prepare", lambda *_: None)
    monkeypatch.setattr(planning, "cubins_of", lambda patterns, _: [Cubin("", b"")] * len(patterns))
    log: Launched = []

    class Binding:
        scratch_bytes = 0
        gains_early = False

        def __init__(self, owner: CudaExecutable, number: int) -> None:
            others: Any = owner.parts.others
            self._kernel = others._kernels[owner.parts.groups[number][0]][0]
            accesses = (*self._kernel.loads, *self._kernel.stores)
            self.buffers = {each.buffer for each in accesses if each.buffer is not None}

        def launcher(self, addresses: list[int], stream: int) -> Callable[[], None]:
            accesses = (*self._kernel.loads, *self._kernel.stores)
            places = [addresses[each.buffer] + each.offset for each in accesses if each.buffer is not None]
            return lambda: log.append((self._kernel, places))

        def let_next_begin(self, gains: bool) -> None:
            assert not gains

    monkeypatch.setattr(executable, "_Binding", Binding)
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
    ((kernel, places),) = launched
    assert kernel.domain == ROW
    assert places == [scale.ctypes.data, memory.address]
    assert (memory.bytes[256:288].view(np.float32) == 5).all()

    launched.clear()
    instance = program.instantiate(None, addresses)
    instance.bind(0, 1 << 20)
    instance.bind(3, 1 << 21)
    for _ in range(2):
        instance.dispatch()
    (kernel, places), again = launched
    assert (kernel, places) == again
    assert sorted(places) == sorted([1 << 20, memory.address, memory.address + 256, 1 << 21])


def test_programs_without_constants_keep_nothing(launched: Launched) -> None:
    layout = packed(F32, SIZES)
    program = compiled_program(Program((layout,), (layout,), (X * 2.0,)))
    assert not program.kept
    program.instantiate().dispatch()
    assert len(launched) == 1
