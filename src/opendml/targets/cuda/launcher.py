"""Launches of kernels and graphs of launches, at the least cost for the host."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opendml.targets.cuda.api import check, driver_module, launch_config
from opendml.targets.cuda.planned_launch import PlannedLaunch

if TYPE_CHECKING:
    from opendml.targets.cuda.executable import CudaInstance


LaunchSize = tuple[int, int, int, int]
"""The blocks along x and y, the threads of a block, and its bytes of shared memory."""


class LaunchConfig:
    """The driver's description of a launch. For another size, only its grid is written again.

    Attributes:
        made: what the function that adds the launch to a stream is made of, and the function.
        served: the bytes of shared memory and the stream of this function. None while they change.
    """

    def __init__(self) -> None:
        self._form: tuple[int, bool, bool] | None = None
        self._config: Any = None
        self.made: tuple[Any, Any, int, Callable[[], None]] | None = None
        self.served: tuple[int, int] | None = None

    def of(self, size: LaunchSize, cooperative: bool, stream: int, early: bool) -> Any:
        """Return the description of a launch on a stream, which replaces those of earlier calls.

        Args:
            size: its size.
            cooperative: whether all blocks run at once.
            stream: the driver's handle.
            early: whether the kernel may be launched before the one before it in the stream has ended.
        """
        self.served = None
        *grid, block, shared_bytes = size
        form = block, cooperative, early
        if form != self._form:
            self._config = launch_config((size[0], size[1]), block, shared_bytes, cooperative, early)
            self._form = form
        config = self._config
        config.gridDimX, config.gridDimY = grid
        config.sharedMemBytes, config.hStream = shared_bytes, driver_module().CUstream(stream)
        return config

    def set_blocks(self, count: int) -> None:
        """Change the blocks along x of a launch that is described."""
        self._config.gridDimX = count


def launcher(
    function: Any,
    launch: PlannedLaunch,
    size: LaunchSize,
    address: int,
    stream: int,
    early: bool,
    described: LaunchConfig,
) -> Callable[[], None]:
    """Return a function that adds a launch to a stream.

    Args:
        function: the driver's handle of the kernel.
        launch: the launch.
        size, stream, early: the arguments of `LaunchConfig.of`.
        address: that of its parameter, which the driver reads at every launch.
        described: the description of an earlier launch, which ends.
    """
    config, made = described.of(size, launch.cooperative, stream, early), described.made
    if made is None or made[0] is not function or made[1] is not config or made[2] != address:
        pointers = (ctypes.c_void_p * 1)(address)
        parameters = ctypes.addressof(pointers)
        add = driver_module().cuLaunchKernelEx

        def run(kept: Any = pointers) -> None:
            result = add(config, function, parameters, 0)
            if result[0]:
                check(result, "launching a kernel")

        described.made = made = function, config, address, run
    described.served = size[3], stream
    return made[3]


class CapturedLaunches:
    """Dispatches of bound instances of one device as one CUDA graph: `enqueue` costs the host one call,
    however many there are.

    The instances must not be bound anew as long as the recording is used.

    Raises:
        Unsupported: no memory for what the kernels need beside the tensors.
    """

    def __init__(self, instances: Sequence[CudaInstance]) -> None:
        driver = driver_module()
        self._instances, self._device = tuple(instances), instances[0].device
        with self._device.current():
            stream = check(driver.cuStreamCreate(1), "creating a stream")
            try:
                graph = self._captured(stream)
            finally:
                driver.cuStreamDestroy(stream)
                self._device.streams.discard(int(stream))
            self._graph = check(driver.cuGraphInstantiate(graph, 0), "preparing a recording")
            driver.cuGraphDestroy(graph)
        weakref.finalize(self, driver.cuGraphExecDestroy, self._graph).atexit = False
        self._launch = driver.cuGraphLaunch

    def _captured(self, stream: Any) -> Any:
        driver = driver_module()
        # What is compiled or allocated for a first dispatch must not fall into the recording.
        for instance in self._instances:
            instance.prepare(int(stream))
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with self._device.capturing:
            check(driver.cuStreamBeginCapture(stream, mode), "recording")
            try:
                for instance in self._instances:
                    instance.enqueue(int(stream))
            finally:
                graph = driver.cuStreamEndCapture(stream)
        return check(graph, "recording")

    def enqueue(self, stream: Any) -> None:
        """Add all dispatches to a stream, given by its handle."""
        self._device.streams.add(int(stream))
        if self._device.is_current:
            result = self._launch(self._graph, stream)
        else:
            with self._device.current():
                result = self._launch(self._graph, stream)
        if result[0]:
            check(result, "replaying a recording")

    def dispatch(self) -> None:
        """Run all dispatches after all earlier work on the device, and return when the results are
        there.
        """
        self._device.synchronize_all()
        self.enqueue(self._device.stream)
        self._device.synchronize(self._device.stream)
