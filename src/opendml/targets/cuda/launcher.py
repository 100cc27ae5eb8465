"""Launches of kernels and graphs of launches, at the least cost for the host."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opendml.targets.cuda.driver import check, driver_module, launch_config
from opendml.targets.cuda.launch import Launch

if TYPE_CHECKING:
    from opendml.targets.cuda.executable import CudaInstance


def launcher(function: Any, launch: Launch, grid: int, content: Any, stream: int) -> Callable[[], None]:
    """A function that adds a launch to a stream.

    Args:
        function: the driver's handle of the kernel.
        launch: how it is launched.
        grid: with how many blocks.
        content: the bytes of its parameter, which the driver reads at every launch.
        stream: the driver's handle.
    """
    driver = driver_module()
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(content))
    address = ctypes.addressof(pointers)
    config = launch_config(grid, launch.block, launch.shared_bytes, launch.cluster, launch.cooperative)
    config.hStream = driver.CUstream(stream)
    add = driver.cuLaunchKernelEx

    def run(kept: Any = (pointers, content)) -> None:
        result = add(config, function, address, 0)
        if result[0]:
            check(result, "launching a kernel")

    return run


class Recording:
    """Dispatches of bound instances as one CUDA graph: `replay` costs the host one call, however many there
    are.

    The instances must not be bound anew as long as the recording is used.
    """

    def __init__(self, instances: Sequence[CudaInstance]) -> None:
        driver = driver_module()
        stream = check(driver.cuStreamCreate(1), "creating a stream")
        for instance in instances:
            # What is allocated or compiled at a first dispatch must not fall into the recording.
            instance.enqueue(int(stream))
        check(driver.cuStreamSynchronize(stream), "running a kernel")
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(driver.cuStreamBeginCapture(stream, mode), "recording")
        for instance in instances:
            instance.enqueue(int(stream))
        graph = check(driver.cuStreamEndCapture(stream), "recording")
        self._graph = check(driver.cuGraphInstantiate(graph, 0), "preparing a recording")
        self._instances = tuple(instances)
        check(driver.cuGraphDestroy(graph), "preparing a recording")
        check(driver.cuStreamDestroy(stream), "preparing a recording")
        weakref.finalize(self, driver.cuGraphExecDestroy, self._graph).atexit = False
        self._launch = driver.cuGraphLaunch

    def replay(self, stream: Any) -> None:
        """Adds all dispatches to a stream, given by its handle."""
        result = self._launch(self._graph, stream)
        if result[0]:
            check(result, "replaying a recording")
