"""A CUDA device and an array library that live in host memory: programs run by the reference target. They
show that arrays, streams and errors are handled right where there is no GPU."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opendml.program.program import Program
from opendml.runtime.calls import immediate
from opendml.runtime.calls import streams as streamed_calls
from opendml.runtime.calls.plans import Plans
from opendml.runtime.memory.host_array import Array, memory_of
from opendml.targets.arenas import Arenas
from opendml.targets.cuda import backend, dlpack, driver, executable, memory, streams
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.place import place
from opendml.targets.kept import Kept
from opendml.targets.memory import HostMemory, TensorMemory
from opendml.targets.reference.backend import ReferenceExecutable

OWN_STREAM = 70
LIBRARY_STREAM = 80


class FakeMemory(HostMemory):
    """Bytes of the device."""

    def __init__(self, size: int, cleared: bool) -> None:
        super().__init__(size)
        self.bytes.fill(0 if cleared else 0xAB)


class FakeMemoryAt:
    """Bytes of the device that a caller has."""

    def __init__(self, address: int) -> None:
        self.address = address

    write, read = HostMemory.write, HostMemory.read


class FakeDevice:
    """A device that keeps a log of what was asked of its streams."""

    machine = CudaMachine(90, 132, 228 * 1024)

    def __init__(self, index: int) -> None:
        self.index, self.alone, self.stream = index, True, OWN_STREAM
        self.log: list[tuple[Any, ...]] = []
        self.streams = set[int]()

    @contextmanager
    def current(self) -> Iterator[None]:
        yield

    def allocate(self, size: int, *, cleared: bool = True) -> FakeMemory:
        return FakeMemory(size, cleared)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(target, source, size)

    def copy_in_order(self, target: int, source: int, size: int, stream: int) -> None:
        self.log.append(("copy", size))
        ctypes.memmove(target, source, size)

    def memory_at(self, address: int, size: int) -> FakeMemoryAt:
        return FakeMemoryAt(address)

    def synchronize(self, stream: Any) -> None:
        self.log.append(("synchronize", int(stream)))

    def synchronize_all(self) -> None:
        self.log.append(("synchronize all",))

    def free_retired(self, stream: int) -> None:
        """Nothing is ever retired."""

    def order(self, before: Any, after: Any) -> None:
        self.log.append(("order", int(before), int(after)))


class FakeInstance(executable.CudaInstance):
    """A program over the fake device's memory."""

    def __init__(self, reference: ReferenceExecutable, device: FakeDevice, kept: Sequence[int]) -> None:
        self._reference = reference.instantiate(None, kept)
        self.device: Any = device

    def bind(self, buffer: int, address: int) -> None:
        self._reference.bind(buffer, address)

    def enqueue(self, stream: int) -> None:
        self.device.log.append(("run", stream))
        self._reference.dispatch()

    def dispatch(self) -> None:
        self.enqueue(OWN_STREAM)


class FakeExecutable:
    """A program for the fake device."""

    temporary_bytes = 0

    def __init__(self, program: Program, device_index: int = 0) -> None:
        self._reference, self.device = ReferenceExecutable(program), driver.device(device_index)

    @property
    def kept(self) -> list[Kept]:
        return self._reference.kept

    def constants_of(self, step: int) -> Collection[int]:
        return self._reference.constants_of(step)

    def initialize(self, step: int, constants: dict[int, int], addresses: dict[int, int]) -> None:
        self._reference.initialize(step, constants, addresses)

    def instantiate_without_arena(self) -> FakeInstance:
        return self.instantiate()

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> FakeInstance:
        return FakeInstance(self._reference, self.device, kept)


class FakeArray:
    """An array of the library `fakelib`, on a fake device."""

    def __init__(self, values: Array, device: int = 0, writable: bool = True) -> None:
        self.values, self.device, self.writable = values, device, writable
        self.streams: list[int | None] = []

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> Any:
        self.streams.append(stream)
        memory = memory_of(self.values, "values")
        shared = TensorMemory(memory.address, memory.layout, self.writable, self, place(self.device))
        return dlpack.capsule(shared, versioned=max_version is not None)


class UnversionedArray(FakeArray):
    """One of a library from before DLPack's versions."""

    def __dlpack__(self, *, stream: int | None = None, **versions: Any) -> Any:
        if versions:
            raise TypeError(f"unexpected {versions}")
        return super().__dlpack__(stream=stream)


class InterfaceArray:
    """One with CUDA's array interface alone, whose values are ready on a stream of its own."""

    def __init__(self, values: Array, read_only: bool = False) -> None:
        self.values = values
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "strides": values.strides,
            "data": (values.ctypes.data, read_only),
            "version": 3,
            "stream": LIBRARY_STREAM,
        }


def _from_dlpack(array: Any) -> FakeArray:
    """What `fakelib` makes of another library's array."""
    memory = dlpack.read(array.__dlpack__(stream=LIBRARY_STREAM))
    layout = memory.layout
    raw: Any = (ctypes.c_uint8 * (layout.element_count * layout.type.bytes)).from_address(memory.address)
    raw.owner = memory.owner
    return FakeArray(np.frombuffer(raw, layout.type.numpy).reshape(layout.sizes))


def install(monkeypatch: pytest.MonkeyPatch, executable: Any = FakeExecutable) -> list[FakeDevice]:
    """Two fake devices and the library. Programs become `executable`."""
    devices = [FakeDevice(0), FakeDevice(1)]
    for device in devices:
        monkeypatch.setitem(driver._devices, device.index, device)
    for name in ("known_executable", "_compiled"):
        monkeypatch.setattr(backend, name, executable)
    for module in (immediate, streamed_calls):
        monkeypatch.setattr(module, "_plans", Plans())
    success = SimpleNamespace(value=0)

    def created(*_: Any) -> tuple[Any, ...]:
        return success, 1

    def done(*_: Any) -> tuple[Any, ...]:
        return (success,)

    events = SimpleNamespace(
        CUevent_flags=SimpleNamespace(CU_EVENT_DISABLE_TIMING=2),
        CUstream=int,
        cuEventCreate=created,
        cuEventRecord=done,
        cuEventQuery=done,
        cuEventDestroy=done,
        CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2),
        cuThreadExchangeStreamCaptureMode=created,
    )
    for module in (streams, memory):
        monkeypatch.setattr(module, "driver_module", lambda: events)
        monkeypatch.setattr(module, "check", lambda results, _: results[-1])
    library = ModuleType("fakelib")
    library.from_dlpack = _from_dlpack
    monkeypatch.setitem(sys.modules, "fakelib", library)
    for kind in (FakeArray, UnversionedArray, InterfaceArray):
        monkeypatch.setattr(kind, "__module__", "fakelib")
    monkeypatch.setattr("opendml.targets.cuda.arrays.device_at", lambda address: 0)
    monkeypatch.setattr(driver, "device_at", lambda address: 0)
    return devices
