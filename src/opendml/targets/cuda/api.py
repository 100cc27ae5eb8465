"""The functions of the CUDA driver. Their errors are raised as errors of opendml.

The functions are those of cuda-bindings. A prepared launch costs 3 microseconds, most of it in the driver.
The `launch` of cuda-core is slower, because it converts its configuration and arguments in each call. So
cuda-core only compiles (`compile.py`). Streams with its protocol `__cuda_stream__` are supported.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from opendml.errors import DeviceRemoved, Unsupported


@cache
def driver_module() -> ModuleType:
    """Return the driver's functions, initialized.

    Raises:
        Unsupported: the Python package, the driver or the device is missing.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise Unsupported(f"cuda: {error}; the extra `cuda` of opendml installs what is needed") from error
    try:
        result = driver.cuInit(0)[0]
    except RuntimeError as error:
        raise Unsupported(f"cuda: no NVIDIA driver was found ({error})") from error
    codes = driver.CUresult
    if result in (codes.CUDA_ERROR_NO_DEVICE, codes.CUDA_ERROR_STUB_LIBRARY):
        raise Unsupported(
            f"cuda: the driver finds no device ({result.name}); CUDA_VISIBLE_DEVICES may hide them"
        )
    if result != codes.CUDA_SUCCESS:
        raise Unsupported(f"cuda: the driver does not start ({result.name})")
    _check_driver_version(driver)
    return driver  # type: ignore[no-any-return]


def check(results: tuple[Any, ...], task: str) -> Any:
    """Return the value that a function of the driver returned beside its success.

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


def launch_config(
    grid: tuple[int, int], block: int, shared_bytes: int, cooperative: bool, early: bool
) -> Any:
    """Return the driver's description of a launch, without its stream.

    Args:
        grid: blocks along x and y.
        block: threads of each.
        shared_bytes: of each block.
        cooperative: all blocks run at once.
        early: may be launched before the kernel before it in the stream has ended, for which it waits itself.
    """
    driver = driver_module()
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = *grid, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.sharedMemBytes = shared_bytes
    attributes, identifiers = [], driver.CUlaunchAttributeID
    if cooperative:
        attribute = driver.CUlaunchAttribute()
        attribute.id = identifiers.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if early:
        attribute = driver.CUlaunchAttribute()
        attribute.id = identifiers.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


def _check_driver_version(driver: ModuleType) -> None:
    from cuda.bindings import nvrtc

    version = int(driver.cuDriverGetVersion()[1])
    major, minor = nvrtc.nvrtcVersion()[1:]
    if version // 1000 < major:
        given = f"{version // 1000}.{version % 1000 // 10}"
        raise Unsupported(
            f"cuda: the driver is too old: it has CUDA {given}; NVRTC {major}.{minor} needs CUDA {major}.0"
        )
