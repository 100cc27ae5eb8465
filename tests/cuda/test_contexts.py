"""The driver's contexts: every thread works with that of the device."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from opendml.targets.cuda import driver
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.executable import CudaInstance
from opendml.targets.cuda.launcher import CapturedLaunches
from tests.cuda.fake_driver import FakeDriver, Result, use


class ContextDriver(FakeDriver):
    """One device, and what each thread has current."""

    def __init__(self) -> None:
        super().__init__()
        self.current = threading.local()
        self.launches: list[object] = []
        self.entered = 0

    def cuDeviceGetCount(self) -> tuple[Result, int]:  # noqa: N802
        return Result(0), 1

    def cuDevicePrimaryCtxRetain(self, handle: int) -> tuple[Result, str]:  # noqa: N802
        return Result(0), "context"

    def cuCtxSetCurrent(self, context: str) -> tuple[Result]:  # noqa: N802
        self.current.context = context
        self.entered += 1
        return (Result(0),)

    def cuStreamCreate(self, flags: int) -> tuple[Result, int]:  # noqa: N802
        return Result(0), 1

    def launch(self, *_: Any) -> tuple[Result]:
        self.launches.append(getattr(self.current, "context", None))
        return (Result(0),)


def bare_instance(device: CudaDevice, fake: ContextDriver) -> Any:
    """An instance whose launches are the driver's alone."""
    instance: Any = CudaInstance.__new__(CudaInstance)
    instance.device = device
    instance._launch = fake.launch
    return instance


def bare_recording(device: CudaDevice, fake: ContextDriver) -> Any:
    """A recording likewise."""
    recording: Any = CapturedLaunches.__new__(CapturedLaunches)
    recording._device, recording._graph, recording._launch = device, None, fake.launch
    return recording


@pytest.mark.devices
@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("make", [bare_instance, bare_recording])
def test_every_thread_enters_the_context_once_though_its_number_was_used_before(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cuda.bindings", reason="cuda-bindings are not installed")
    fake = ContextDriver()
    use(monkeypatch, fake)
    work = make(driver.device(0), fake)
    before = fake.entered
    numbers = []

    def run() -> None:
        numbers.append(threading.get_ident())
        work.enqueue(0)
        work.enqueue(0)

    for _ in range(5):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(set(numbers)) < 5
    assert fake.launches == ["context"] * 10
    assert fake.entered - before == 5
