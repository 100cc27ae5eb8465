"""Memory and contexts of a device, on a driver that counts what it was asked for."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from opendml.errors import DeviceRemoved, Unsupported
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda import driver
from opendml.targets.cuda.device_array import DeviceArray
from opendml.targets.cuda.launcher import CapturedLaunches
from opendml.targets.cuda.memory import scratch
from tests.cuda.fake_driver import FakeDriver, Result, use

pytestmark = pytest.mark.devices

pytest.importorskip("cuda.bindings.nvrtc")

ROOM = 1000


class CountingDriver(FakeDriver):
    """A driver with `devices` devices of ROOM bytes."""

    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared",
    )
    CUmemAllocationType = SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED="pinned")
    CUmemLocationType = SimpleNamespace(CU_MEM_LOCATION_TYPE_DEVICE="device")
    CUmemPool_attribute = SimpleNamespace(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD="threshold")
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2)
    CUstreamCaptureMode = SimpleNamespace(
        CU_STREAM_CAPTURE_MODE_RELAXED="relaxed", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL="thread"
    )
    CUstreamCaptureStatus = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_NONE=0)

    def __init__(self, devices: int = 1) -> None:
        super().__init__()
        self.devices = devices
        self.taken: dict[int, int] = {}
        self.contexts: list[Any] = ["the caller's"]
        self.capture_mode: Any = "global"
        self.modes_of_allocations: list[Any] = []
        self.synchronized = 0
        self.capturing: set[int] = set()
        self.waits: list[tuple[Any, Any]] = []
        self.attributes: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        """All that is of no interest succeeds."""
        return lambda *_: (Result(0), 1)

    def cuDeviceGetCount(self) -> tuple[Result, int]:  # noqa: N802 - the driver's name
        return Result(0), self.devices

    def cuCtxSetCurrent(self, context: Any) -> tuple[Result]:  # noqa: N802
        self.contexts[-1] = context
        return (Result(0),)

    def cuCtxPushCurrent(self, context: Any) -> tuple[Result]:  # noqa: N802
        self.contexts.append(context)
        return (Result(0),)

    def cuCtxPopCurrent(self) -> tuple[Result, Any]:  # noqa: N802
        return Result(0), self.contexts.pop()

    def cuCtxSynchronize(self) -> tuple[Result]:  # noqa: N802
        self.synchronized += 1
        return (Result(0),)

    def cuStreamIsCapturing(self, stream: Any) -> tuple[Result, int]:  # noqa: N802
        return Result(0), int(stream in self.capturing)

    def CUstream(self, handle: int) -> int:  # noqa: N802
        return handle

    def cuEventRecord(self, event: Any, stream: int) -> tuple[Result]:  # noqa: N802
        self.waits.append((stream, None))
        return (Result(0),)

    def cuStreamWaitEvent(self, stream: int, event: Any, flags: int) -> tuple[Result]:  # noqa: N802
        self.waits[-1] = self.waits[-1][0], stream
        return (Result(0),)

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> tuple[Result, Any]:  # noqa: N802
        before, self.capture_mode = self.capture_mode, mode
        return Result(0), before

    def cuMemAllocAsync(self, size: int, stream: Any) -> tuple[Result, int]:  # noqa: N802
        self.modes_of_allocations.append(self.capture_mode)
        if sum(self.taken.values()) + size > ROOM:
            return Result(2), 0
        pointer = 4096 * (len(self.modes_of_allocations))
        self.taken[pointer] = size
        return Result(0), pointer

    def CUmemPoolProps(self) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(location=SimpleNamespace())

    def cuMemAllocFromPoolAsync(self, size: int, pool: Any, stream: Any) -> tuple[Result, int]:  # noqa: N802
        return self.cuMemAllocAsync(size, stream)

    def cuFuncSetAttribute(self, function: Any, attribute: str, value: int) -> tuple[Result]:  # noqa: N802
        self.attributes[attribute] = value
        return (Result(0),)

    def cuMemFreeAsync(self, pointer: int, stream: Any) -> tuple[Result]:  # noqa: N802
        del self.taken[pointer]
        return (Result(0),)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, forgotten: None) -> CountingDriver:
    fake = CountingDriver()
    use(monkeypatch, fake)
    return fake


def test_memory_is_freed_after_a_wait_and_not_before(counting: CountingDriver) -> None:
    device = driver.device()
    memory = device.allocate(600)
    del memory
    assert counting.taken
    device.synchronize_all()
    assert counting.synchronized == 1
    assert not counting.taken


def test_memory_that_is_dropped_while_a_thread_waits_is_not_freed_by_it(
    counting: CountingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread found one piece of memory, which another one frees meanwhile. The next may be in use."""
    monkeypatch.setattr(driver, "_MOST_RETIRED_BYTES", 500)
    device = driver.device()
    held = [device.allocate(100)]
    device.allocate(600)

    def waited() -> tuple[Result]:
        other = threading.Thread(target=device.free_retired, args=(int(device.stream),))
        other.start()
        other.join()
        held.clear()
        return (Result(0),)

    monkeypatch.setattr(counting, "cuCtxSynchronize", waited, raising=False)
    device.synchronize_all()
    assert sum(counting.taken.values()) == 100
    device.synchronize_all()
    assert not counting.taken


def test_memory_that_nobody_holds_makes_room(counting: CountingDriver) -> None:
    device = driver.device()
    memory = device.allocate(600)
    del memory
    again = device.allocate(700)
    assert list(counting.taken.values()) == [700]
    with pytest.raises(Unsupported, match=r"^cuda: out of memory: 400 bytes on the device"):
        device.allocate(400)
    assert again.address in counting.taken


def test_much_dropped_memory_is_freed_by_a_later_call_and_not_by_a_finalizer(
    counting: CountingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_MOST_RETIRED_BYTES", 500)
    device = driver.device()
    for _ in range(6):
        device.allocate(100)
    assert counting.synchronized == 0
    counting.capturing = {5}
    device.free_retired(5)
    assert (counting.synchronized, sum(counting.taken.values())) == (0, 600)
    counting.capturing = set()
    device.free_retired(5)
    assert (counting.synchronized, sum(counting.taken.values())) == (0, 0)
    # The device's own stream, which frees, waits for the stream of the call.
    assert counting.waits == [(5, device.stream)]


def test_memory_of_one_stream_is_freed_while_another_one_captures(
    counting: CountingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_MOST_RETIRED_BYTES", 500)
    device = driver.device()
    device.free_retired(5)
    device.allocate(600)
    # The driver tells of a capture on a stream that blocks the default one, and of no other.
    counting.capturing = {6, 0}
    device.free_retired(5)
    assert (counting.synchronized, sum(counting.taken.values())) == (0, 0)


@pytest.mark.parametrize("other", ["a stream", "DLPack", "the array interface"])
def test_memory_of_several_streams_is_not_freed_while_another_one_captures(
    counting: CountingDriver, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(driver, "_MOST_RETIRED_BYTES", 500)
    device = driver.device()
    if other == "a stream":
        device.free_retired(7)
    elif other == "DLPack":
        DeviceArray(device, [4], ScalarType.UINT8).__dlpack__(stream=7)
    else:
        assert DeviceArray(device, [4], ScalarType.UINT8).__cuda_array_interface__["stream"] == device.stream
    device.allocate(600)
    counting.capturing = {6, 0}
    device.free_retired(5)
    assert (counting.synchronized, sum(counting.taken.values())) == (0, 604 if other != "a stream" else 600)
    counting.capturing = set()
    device.free_retired(5)
    assert (counting.synchronized, sum(counting.taken.values())) == (1, 0)


def test_other_threads_wait_for_the_device_after_a_capture_of_opendml(counting: CountingDriver) -> None:
    device = driver.device()

    class Capturing:
        """An instance during whose capture another thread waits for the device."""

        def __init__(self) -> None:
            self.device, self.waiting = device, threading.Thread(target=device.synchronize_all)

        def prepare(self, stream: int) -> None:
            device.free_retired(stream)

        def enqueue(self, stream: int) -> None:
            self.waiting.start()
            self.waiting.join(0.05)
            assert counting.synchronized == 0

    instance: Any = Capturing()
    recorded = CapturedLaunches([instance])
    instance.waiting.join()
    assert counting.synchronized == 1
    assert not device.streams
    recorded.enqueue(5)
    assert device.streams == {5}


def test_allocations_are_no_part_of_what_the_caller_records(counting: CountingDriver) -> None:
    memory = driver.device().allocate(100)
    assert memory.address
    assert set(counting.modes_of_allocations) == {"relaxed"}
    assert counting.capture_mode == "global"


@pytest.mark.parametrize("fails", [False, True])
def test_scratch_memory_is_given_back_to_its_stream(counting: CountingDriver, fails: bool) -> None:
    device = driver.device()
    with suppress(DeviceRemoved), scratch(device, 600, 5) as address:
        assert counting.taken == {address: 600}
        if fails:
            raise DeviceRemoved("a launch failed")
    assert not counting.taken
    with pytest.raises(Unsupported, match=r"^cuda: out of memory: 1,001 bytes"), scratch(device, 1001, 5):
        pass


@pytest.mark.parametrize("fails", [False, True])
def test_the_callers_device_is_current_again_where_there_are_several(
    counting: CountingDriver, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    counting.devices = 2
    device = driver.device(1)
    if fails:
        monkeypatch.setattr(counting, "cuStreamSynchronize", lambda stream: (Result(700),), raising=False)
        with pytest.raises(DeviceRemoved, match="ILLEGAL_ADDRESS"):
            device.allocate(100)
    else:
        device.allocate(100)
    assert counting.contexts == ["the caller's"]
    assert counting.capture_mode == "global"


@pytest.mark.parametrize(
    ("shared_bytes", "attributes"),
    [
        (0, {}),
        # With the kernel's own variables this is more than blocks get without asking.
        (48 * 1024, {"shared": 48 * 1024}),
        (1024, {"shared": 1024}),
    ],
)
def test_functions_are_allowed_what_their_launches_need(
    counting: CountingDriver, shared_bytes: int, attributes: dict[str, int]
) -> None:
    driver.device().function(b"code", shared_bytes)
    assert counting.attributes == attributes
