"""CUDA devices: their contexts, kernels, streams and memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from opendml.errors import InvalidArgument, Unsupported
from opendml.targets.cuda.api import check, driver_module
from opendml.targets.cuda.machine import CudaMachine, memory_rate
from opendml.targets.cuda.memory import Memory

LEAST_CAPABILITY = 80
"""Asynchronous copies, and minima that keep NaN."""
_MOST_RETIRED_BYTES, _MOST_RETIRED = 64 * 1024 * 1024, 1024
"""Bytes and allocations of retired memory that wait to be freed, at most: freeing waits for the device."""
_DEFAULT_STREAM = 0
"""The handle of the legacy default stream."""
UNKNOWN_STREAM = -1
"""Stands for a stream of another library, which does not say which one."""

_devices: dict[int, CudaDevice] = {}
_devices_lock = threading.RLock()


def device(index: int = 0) -> CudaDevice:
    """Return the device with a number.

    Raises:
        InvalidArgument: no such number.
        Unsupported: no driver, no device, or one that is too old.
    """
    found = _devices.get(index)
    if found is None:
        with _devices_lock:
            found = _devices.get(index)
            if found is None:
                made = CudaDevice(index)
                found = _devices.setdefault(index, made)
    return found


def device_at(address: int) -> int:
    """Return the number of the device that an address belongs to."""
    driver = driver_module()
    ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(check(driver.cuPointerGetAttribute(ordinal, address), "finding the device of an array"))


class _Entered(threading.local):
    """A flag of each thread: it has made the context of the device current for its life.

    The numbers of threads cannot be used for this, because new threads get those of ended ones.
    """

    value = False


class CudaDevice:
    """A device with its primary context, which other libraries in the process use too."""

    def __init__(self, index: int) -> None:
        driver = driver_module()
        count = check(driver.cuDeviceGetCount(), "counting devices")
        if not 0 <= index < count:
            raise InvalidArgument(f"cuda: device {index}; there are {count}, the first is 0")
        self.index, self.alone = index, count == 1
        self._handle = check(driver.cuDeviceGet(index), "opening the device")
        self.name = (
            check(driver.cuDeviceGetName(128, self._handle), "reading the name").split(b"\0")[0].decode()
        )
        major, minor = (
            self._attribute("COMPUTE_CAPABILITY_MAJOR"),
            self._attribute("COMPUTE_CAPABILITY_MINOR"),
        )
        capability = 10 * major + minor
        if capability < LEAST_CAPABILITY:
            raise Unsupported(f"cuda: {self.name} has compute capability {major}.{minor}; 8.0 is needed")
        multiprocessors = self._attribute("MULTIPROCESSOR_COUNT")
        memory = self._attribute("MEMORY_CLOCK_RATE"), self._attribute("GLOBAL_MEMORY_BUS_WIDTH")
        self.machine = CudaMachine(
            capability,
            multiprocessors,
            self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            self._attribute("L2_CACHE_SIZE"),
            memory_rate(*memory, multiprocessors, self._attribute("CLOCK_RATE")),
        )
        self.driver_version = int(check(driver.cuDriverGetVersion(), "reading the version"))
        """The version of CUDA that the driver has, such as 13000."""
        self._context = check(driver.cuDevicePrimaryCtxRetain(self._handle), "opening a context")
        self._entered = _Entered()
        self._functions: dict[tuple[bytes, int], Any] = {}
        self._lock = threading.RLock()
        self.capturing = threading.RLock()
        """Held while opendml captures a graph, which waiting for the device would invalidate."""
        self.streams = set[int]()
        """The streams of callers on which memory of this device may be in use."""
        self._retired: deque[tuple[Any, int]] = deque()
        self._scratch_pool: Any = None
        with self.current():
            self.stream = check(driver.cuStreamCreate(1), "creating a stream")
            """The stream for work that belongs to no stream of the caller. It does not wait for the default
            one."""

    def _attribute(self, name: str) -> int:
        driver = driver_module()
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check(driver.cuDeviceGetAttribute(attribute, self._handle), f"reading {name}"))

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context current in the calling thread.

        If there are several devices, the context of before is restored at the end, because other libraries
        ask the driver for the thread's device.
        """
        driver = driver_module()
        if self.alone:
            check(driver.cuCtxSetCurrent(self._context), "entering the context")
            self._entered.value = True
            yield
            return
        check(driver.cuCtxPushCurrent(self._context), "entering the context")
        try:
            yield
        finally:
            driver.cuCtxPopCurrent()

    @property
    def is_current(self) -> bool:
        """True if the context is current in the calling thread. That of an only device stays current."""
        return self.alone and self._entered.value

    def function(self, cubin: bytes, shared_bytes: int) -> Any:
        """Load machine code once, and return its function `kernel` for launches with this shared memory."""
        driver = driver_module()
        with self._lock:
            function = self._functions.get((cubin, shared_bytes))
            if function is None:
                module = check(driver.cuModuleLoadData(cubin), "loading a kernel")
                function = check(driver.cuModuleGetFunction(module, b"kernel"), "finding a kernel")
                attributes = driver.CUfunction_attribute
                if shared_bytes:
                    # What a block may have without asking, 48 KiB, is for the kernel's own variables too.
                    most = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    check(driver.cuFuncSetAttribute(function, most, shared_bytes), "allowing shared memory")
                self._functions[cubin, shared_bytes] = function
            return function

    @property
    def scratch_pool(self) -> Any:
        """The memory pool for temporaries of dispatches. It keeps its memory for later ones."""
        with self._lock:
            self._scratch_pool = self._scratch_pool or self._new_pool()
            return self._scratch_pool

    def _new_pool(self) -> Any:
        driver = driver_module()
        properties = driver.CUmemPoolProps()
        properties.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self.index
        pool = check(driver.cuMemPoolCreate(properties), "creating a pool of memory")
        threshold = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        check(driver.cuMemPoolSetAttribute(pool, threshold, driver.cuuint64_t(2**64 - 1)), "keeping memory")
        return pool

    def allocate(self, size: int, *, cleared: bool = True) -> Memory:
        """Fresh device memory: `cleared`, it is zero and ready for all streams; else it may only be used in
        the order of the device's own stream.

        Raises:
            Unsupported: out of memory.
        """
        return Memory(self, size, cleared)

    def copy(self, target: int, source: int, size: int) -> None:
        """Wait for all work on the device, and copy `size` bytes between addresses there or in host
        memory."""
        driver = driver_module()
        self.synchronize_all()
        with self.current():
            check(driver.cuMemcpy(target, source, size), "copying")
            # A copy within the device returns before it is done.
            check(driver.cuCtxSynchronize(), "copying")

    def copy_in_order(self, target: int, source: int, size: int, stream: int) -> None:
        """Add a copy of `size` bytes to a stream. Bytes of host memory are read before this returns."""
        if size:
            driver = driver_module()
            with self.current():
                check(driver.cuMemcpyAsync(target, source, size, driver.CUstream(stream)), "copying")

    def memory_at(self, address: int, size: int) -> Memory:
        """Return memory of the caller, who keeps it alive."""
        return Memory(self, size, address=address)

    def synchronize(self, stream: Any) -> None:
        """Wait until all work on a stream is done."""
        with self.current():
            check(driver_module().cuStreamSynchronize(stream), "running a kernel")

    def synchronize_all(self) -> None:
        """Wait until all work on the device is done."""
        driver = driver_module()
        with self.current(), self.capturing:
            retired = self._taken()
            check(driver.cuCtxSynchronize(), "running a kernel")
            self._free(retired)
        if retired:
            # The driver gives freed memory back to other users of the device when its stream is waited for.
            self.synchronize(self.stream)

    def _taken(self) -> list[tuple[Any, int]]:
        """Take all memory that is retired by now, to free it after a wait. What another thread retires
        meanwhile may be in use by later work."""
        taken = list[tuple[Any, int]]()
        with suppress(IndexError):
            for _ in range(len(self._retired)):
                taken.append(self._retired.popleft())
        return taken

    def _free(self, retired: Iterable[tuple[Any, int]]) -> None:
        """Free retired memory in the order of the device's own stream."""
        driver = driver_module()
        with self.current():
            for pointer, _ in retired:
                driver.cuMemFreeAsync(pointer, self.stream)

    def order(self, before: Any, after: Any) -> None:
        """Make the stream `after` wait for the work that is now on the stream `before`."""
        driver = driver_module()
        with self.current():
            flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
            event = check(driver.cuEventCreate(flags), "creating an event")
            check(driver.cuEventRecord(event, driver.CUstream(int(before))), "recording an event")
            check(driver.cuStreamWaitEvent(driver.CUstream(int(after)), event, 0), "waiting for an event")
            check(driver.cuEventDestroy(event), "destroying an event")

    def seconds(self, work: Callable[[], object]) -> float:
        """Return the seconds that launches take on the device. `work` adds them to the device's own
        stream."""
        driver = driver_module()
        with self.current():
            begin, end = (
                check(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT), "creating an event")
                for _ in range(2)
            )
            try:
                check(driver.cuEventRecord(begin, self.stream), "recording an event")
                work()
                check(driver.cuEventRecord(end, self.stream), "recording an event")
                check(driver.cuEventSynchronize(end), "running a kernel")
                return float(check(driver.cuEventElapsedTime(begin, end), "timing a kernel")) / 1e3
            finally:
                driver.cuEventDestroy(begin)
                driver.cuEventDestroy(end)

    def retire(self, pointer: Any, size: int) -> None:
        """Take back memory that nobody holds any more, though work on any stream may still use it.

        It is freed by a later call. Finalizers call this on any thread, perhaps while a stream captures a
        graph, so it must neither wait nor call the driver.
        """
        self._retired.append((pointer, size))

    def free_retired(self, stream: int) -> None:
        """Free retired memory, if there is much, before work is added to a stream.

        If callers use only this stream, the memory is freed in its order. Waiting for the device would
        invalidate what other streams capture, and the driver tells only of captures on blocking streams.
        """
        self.streams.add(stream)
        sizes = [size for _, size in tuple(self._retired)]
        if (sum(sizes) <= _MOST_RETIRED_BYTES and len(sizes) <= _MOST_RETIRED) or self._is_capturing(stream):
            return
        if self.streams <= {stream, int(self.stream)}:
            retired = self._taken()
            self.order(stream, self.stream)
            self._free(retired)
        elif not self._is_capturing(_DEFAULT_STREAM):
            self.synchronize_all()

    def _is_capturing(self, stream: int) -> bool:
        """Return whether a stream captures a graph. The default stream has an error while another blocking
        stream does."""
        driver = driver_module()
        with self.current():
            error, status = driver.cuStreamIsCapturing(driver.CUstream(stream))
        return bool(error) or status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
