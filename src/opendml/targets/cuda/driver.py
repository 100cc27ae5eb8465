"""The CUDA driver: devices, contexts, memory, kernels; its errors as opendml's."""

from __future__ import annotations

import threading
import weakref
from functools import cache
from types import ModuleType
from typing import Any

from opendml.errors import DeviceRemoved, InvalidArgument, Unsupported
from opendml.targets.cuda.machine import Machine

LEAST_CAPABILITY = 80
"""Asynchronous copies, and minima that keep NaN."""
DEFAULT_SHARED_BYTES = 48 * 1024
"""That a block may use without asking."""


@cache
def driver_module() -> ModuleType:
    """The driver's functions, initialized.

    Raises:
        Unsupported: the Python package, the driver or the device is missing.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise Unsupported(f"cuda: {error}; `pip install opendml[cuda]` installs what is needed") from error
    try:
        result = driver.cuInit(0)[0]
    except RuntimeError as error:
        raise Unsupported(f"cuda: no NVIDIA driver was found ({error})") from error
    if result == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        raise Unsupported("cuda: the driver finds no device")
    if result != driver.CUresult.CUDA_SUCCESS:
        raise Unsupported(f"cuda: the driver does not start ({result.name})")
    return driver  # type: ignore[no-any-return]


def check(results: tuple[Any, ...], task: str) -> Any:
    """What a function of the driver returned beside its success.

    Raises:
        Unsupported: no memory, or code that the driver is too old for.
        DeviceRemoved: any other error; the driver does not recover from those of kernels.
    """
    result = results[0]
    if result.value == 0:
        return results[1] if len(results) == 2 else results[1:]
    codes = driver_module().CUresult
    if result == codes.CUDA_ERROR_OUT_OF_MEMORY:
        raise Unsupported(f"cuda: out of memory: {task}{_free_memory()}")
    if result in (codes.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, codes.CUDA_ERROR_NO_BINARY_FOR_GPU):
        raise Unsupported(f"cuda: the driver is too old: {task} ({result.name})")
    raise DeviceRemoved(f"cuda: {task}: {result.name}")


def _free_memory() -> str:
    result, free, total = driver_module().cuMemGetInfo()
    return f"; {free:,} of {total:,} bytes are free" if result.value == 0 else ""


@cache
def device(index: int = 0) -> CudaDevice:
    """The device with a number.

    Raises:
        InvalidArgument: no such number.
        Unsupported: no driver, no device, or one that is too old.
    """
    return CudaDevice(index)


class CudaDevice:
    """A device with its primary context, which other libraries in the process use too."""

    def __init__(self, index: int) -> None:
        driver = driver_module()
        count = check(driver.cuDeviceGetCount(), "counting devices")
        if not 0 <= index < count:
            raise InvalidArgument(f"cuda: device {index}; there are {count}, the first is 0")
        self.index = index
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
        _check_driver_version()
        self.machine = Machine(
            capability,
            self._attribute("MULTIPROCESSOR_COUNT"),
            self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        )
        self._context = check(driver.cuDevicePrimaryCtxRetain(self._handle), "opening a context")
        self._functions: dict[bytes, Any] = {}
        self._lock = threading.Lock()
        self._current = threading.local()
        self.activate()
        self.stream = check(driver.cuStreamCreate(1), "creating a stream")
        """For work that belongs to no stream of the caller; does not wait for the default stream."""

    def _attribute(self, name: str) -> int:
        driver = driver_module()
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check(driver.cuDeviceGetAttribute(attribute, self._handle), f"reading {name}"))

    def activate(self) -> None:
        """Makes the context current in the calling thread."""
        check(driver_module().cuCtxSetCurrent(self._context), "entering the context")

    def function(self, cubin: bytes, cluster: int, shared_bytes: int) -> Any:
        """The function `kernel` of some machine code, loaded once, for launches with such clusters and shared
        memory.
        """
        driver = driver_module()
        with self._lock:
            function = self._functions.get(cubin)
            if function is None:
                module = check(driver.cuModuleLoadData(cubin), "loading a kernel")
                function = check(driver.cuModuleGetFunction(module, b"kernel"), "finding a kernel")
                attributes = driver.CUfunction_attribute
                if cluster > 8:
                    allowed = attributes.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                    check(driver.cuFuncSetAttribute(function, allowed, 1), "allowing large clusters")
                if shared_bytes > DEFAULT_SHARED_BYTES:
                    most = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    check(driver.cuFuncSetAttribute(function, most, shared_bytes), "allowing shared memory")
                self._functions[cubin] = function
            return function

    def resident_clusters(self, function: Any, block: int, shared_bytes: int, cluster: int) -> int:
        """How many clusters (of one block: blocks) of a function run at a time."""
        driver = driver_module()
        if cluster == 1:
            count = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, block, shared_bytes)
            return int(check(count, "counting resident blocks")) * self.machine.multiprocessors
        config = launch_config(cluster, block, shared_bytes, cluster)
        return int(check(driver.cuOccupancyMaxActiveClusters(function, config), "counting resident clusters"))

    def allocate(self, size: int) -> Memory:
        """Fresh device memory, zeroed, ready for all streams."""
        return Memory(self, size)

    def synchronize(self, stream: Any) -> None:
        """Waits until all work on a stream is done."""
        check(driver_module().cuStreamSynchronize(stream), "running a kernel")


def launch_config(
    grid: int, block: int, shared_bytes: int, cluster: int = 1, cooperative: bool = False
) -> Any:
    """The driver's description of a launch, without its stream."""
    driver = driver_module()
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.sharedMemBytes = shared_bytes
    attributes = []
    if cluster > 1:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimension = attribute.value.clusterDim
        dimension.x, dimension.y, dimension.z = cluster, 1, 1
        attributes.append(attribute)
    if cooperative:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


class Memory:
    """Some bytes on a device, stream-ordered; freed with the object, after the work that was enqueued by
    then.
    """

    def __init__(self, owner: CudaDevice, size: int) -> None:
        driver = driver_module()
        self.device, self.size = owner, size
        self.address = 0
        if not size:
            return
        pointer = check(driver.cuMemAllocAsync(size, owner.stream), f"{size:,} bytes for temporaries")
        self.address = int(pointer)
        check(driver.cuMemsetD8Async(pointer, 0, size, owner.stream), "clearing memory")
        owner.synchronize(owner.stream)
        weakref.finalize(self, _free, owner, pointer).atexit = False

    def write(self, source: int, size: int) -> None:
        """Copies `size` bytes from an address in host memory, and waits."""
        self.device.activate()
        check(driver_module().cuMemcpyHtoD(self.address, source, size), "copying to the device")
        # A small copy returns once it is staged; other streams would not wait for its arrival.
        check(driver_module().cuCtxSynchronize(), "copying to the device")

    def read(self, target: int, size: int) -> None:
        """Copies `size` bytes to an address in host memory, after all work on the device."""
        self.device.activate()
        check(driver_module().cuCtxSynchronize(), "running a kernel")
        check(driver_module().cuMemcpyDtoH(target, self.address, size), "copying from the device")


def _free(owner: CudaDevice, pointer: Any) -> None:
    driver = driver_module()
    owner.activate()
    # The work may be on any stream of the caller.
    driver.cuCtxSynchronize()
    driver.cuMemFreeAsync(pointer, owner.stream)


def _check_driver_version() -> None:
    from cuda.bindings import nvrtc

    version = check(driver_module().cuDriverGetVersion(), "reading the driver's version")
    major, minor = nvrtc.nvrtcVersion()[1:]
    if version // 1000 < major:
        given = f"{version // 1000}.{version % 1000 // 10}"
        raise Unsupported(
            f"cuda: the driver supports CUDA {given}; NVRTC {major}.{minor} needs CUDA {major}.0"
        )
