"""`explain` of a GPU, as far as it goes without one: the plan, and the time between two events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import opendml as dml
from opendml.program.node import ordered
from opendml.runtime.explain import measure
from opendml.runtime.program import program_of
from opendml.targets.cuda import driver as cuda_driver
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.executable import plan
from opendml.targets.cuda.machine import Machine
from tests.cuda.fake_driver import FakeDriver, Result
from tests.explain.test_explain import layers

H200 = Machine(90, 132, 233_472)


def test_each_kernel_of_a_gpu_is_one_launch_whose_mode_is_told() -> None:
    tensor = dml.TensorDesc(dml.FLOAT32, [4, 1000])
    planned = plan(program_of(dml.descs.ActivationSoftmax1(tensor, tensor, axes=[1])), H200)
    assert [len(each) for each in planned.launches] == [1] * len(planned.kernels.kernels)
    assert all(name and name == name.lower() for (name,) in planned.launches)


def test_operators_are_in_the_kernels_of_a_gpu_too() -> None:
    (stage,) = layers("reference")._work.work.stages
    measure._claim(stage)
    kernels = plan(stage.program, H200).kernels.kernels
    first = {node.origin for node in ordered(kernels[0].values) if node.operands}
    assert first == {"nodes[0].GEMM", "nodes[1].ELEMENT_WISE_ADD", "nodes[2].ACTIVATION_RELU"}


class Events(FakeDriver):
    """A driver that has events, 2 ms apart, and notes what it is asked for."""

    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=0)

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[Any, ...]] = []
        self.made = 0

    def cuCtxSetCurrent(self, context: str) -> tuple[Result]:  # noqa: N802 - the driver's name
        return (Result(0),)

    def cuEventCreate(self, flags: int) -> tuple[Result, int]:  # noqa: N802
        self.made += 1
        return Result(0), self.made

    def cuEventRecord(self, event: int, stream: str) -> tuple[Result]:  # noqa: N802
        self.log.append(("record", event, stream))
        return (Result(0),)

    def cuEventSynchronize(self, event: int) -> tuple[Result]:  # noqa: N802
        self.log.append(("wait", event))
        return (Result(0),)

    def cuEventElapsedTime(self, begin: int, end: int) -> tuple[Result, float]:  # noqa: N802
        return Result(0), 2.0 * (end - begin)

    def cuEventDestroy(self, event: int) -> tuple[Result]:  # noqa: N802
        self.log.append(("destroy", event))
        return (Result(0),)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Events:
    fake = Events()
    monkeypatch.setattr(cuda_driver, "driver_module", lambda: fake)
    return fake


def device() -> CudaDevice:
    made = CudaDevice.__new__(CudaDevice)
    made.alone, made._context, made.stream, made._entered = True, "context", "own", cuda_driver._Entered()
    return made


def test_work_is_timed_between_two_events_on_the_devices_own_stream(events: Events) -> None:
    seconds = device().seconds(lambda: events.log.append(("work",)))
    assert seconds == pytest.approx(2e-3)
    assert events.log == [
        ("record", 1, "own"),
        ("work",),
        ("record", 2, "own"),
        ("wait", 2),
        ("destroy", 1),
        ("destroy", 2),
    ]


def test_events_are_given_back_where_work_fails(events: Events) -> None:
    def fail() -> None:
        raise dml.DeviceRemoved("it failed")

    with pytest.raises(dml.DeviceRemoved, match="it failed"):
        device().seconds(fail)
    assert events.log[-2:] == [("destroy", 1), ("destroy", 2)]
