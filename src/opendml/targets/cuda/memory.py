"""Memory on a CUDA device, in the order of streams."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opendml.errors import Unsupported
from opendml.targets.cuda.api import check, driver_module

if TYPE_CHECKING:
    from opendml.targets.cuda.driver import CudaDevice


class Memory:
    """Some bytes on a device. They are freed with the object, after the work that was enqueued by then.

    Args:
        owner: the device.
        size: the number of bytes.
        cleared: whether they are set to 0.
        address: their address, if the caller has them and frees them. None: they are new.

    Raises:
        Unsupported: out of memory.
    """

    def __init__(
        self, owner: CudaDevice, size: int, cleared: bool = True, address: int | None = None
    ) -> None:
        self.device, self.size = owner, size
        self.address = address or 0
        if not size or address is not None:
            return
        with owner.current(), outside_captures():
            pointer = _allocate(owner, size)
            if cleared:
                check(driver_module().cuMemsetD8Async(pointer, 0, size, owner.stream), "clearing memory")
                owner.synchronize(owner.stream)
        self.address = int(pointer)
        weakref.finalize(self, owner.retire, pointer, size).atexit = False

    def write(self, source: int, size: int) -> None:
        """Copy `size` bytes from an address in host memory, and wait."""
        with self.device.current():
            check(driver_module().cuMemcpyHtoD(self.address, source, size), "copying to the device")
            # A small copy returns once it is staged; other streams would not wait for its arrival.
            check(driver_module().cuCtxSynchronize(), "copying to the device")

    def read(self, target: int, size: int) -> None:
        """Copy `size` bytes to an address in host memory, after all work on the device."""
        self.device.synchronize_all()
        with self.device.current():
            check(driver_module().cuMemcpyDtoH(target, self.address, size), "copying from the device")


@contextmanager
def scratch(owner: CudaDevice, size: int, stream: int) -> Iterator[int]:
    """Yield the address of memory for work on a stream, which frees it in its order.

    It comes from a pool of the device that keeps freed memory for later work, as much as is used at a time.
    While the stream records a graph, the memory becomes part of that graph.

    Raises:
        Unsupported: out of memory.
    """
    driver = driver_module()
    handle = driver.CUstream(stream)
    pointer = check(
        driver.cuMemAllocFromPoolAsync(size, owner.scratch_pool, handle), f"{size:,} bytes on the device"
    )
    try:
        yield int(pointer)
    finally:
        check(driver.cuMemFreeAsync(pointer, handle), "giving memory back")


def _allocate(owner: CudaDevice, size: int) -> Any:
    task = f"{size:,} bytes on the device"
    try:
        return check(driver_module().cuMemAllocAsync(size, owner.stream), task)
    except Unsupported:
        # What was retired is still taken until the device is idle.
        owner.synchronize_all()
        return check(driver_module().cuMemAllocAsync(size, owner.stream), task)


@contextmanager
def outside_captures() -> Iterator[None]:
    """State that the calls of this thread are no part of a graph that a stream captures. Otherwise the driver
    refuses allocations and queries meanwhile, and invalidates the capture.
    """
    driver = driver_module()
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(driver.cuThreadExchangeStreamCaptureMode(relaxed), "allocating memory")
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)
