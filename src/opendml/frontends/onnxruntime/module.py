"""The functions and constants of ONNX Runtime's module."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping, Sequence
from operator import index
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from opendml.errors import (
    DeviceRemoved,
    Error,
    InvalidArgument,
    LimitExceeded,
    NoSuchFile,
    Unsupported,
)
from opendml.frontends.onnx import evaluate
from opendml.frontends.onnxruntime.devices import OrtArenaCfg, OrtMemoryInfo, get_ep_devices
from opendml.frontends.onnxruntime.options import default_threads
from opendml.frontends.onnxruntime.values import OrtValue
from opendml.spec.wording import shown

__version__ = version = "1.31.1"
"""The version of ONNX Runtime whose interface this is; programs compare it. That of opendml is
`opendml.__version__`."""
__author__ = "opendml"
package_name = "opendml"
"""The name of the package that has the interface."""
cuda_version = ""
"""The version of CUDA that the package was built with; "": the installed one is loaded when it is needed."""

_MOST_SEVERE = 4
_STATES = {
    "DeviceReset": DeviceRemoved,
    "EPFail": Error,
    "EngineError": Error,
    "Fail": Error,
    "InvalidArgument": InvalidArgument,
    "InvalidGraph": InvalidArgument,
    "InvalidProtobuf": InvalidArgument,
    "ModelLoadCanceled": Error,
    "ModelLoaded": Error,
    "ModelRequiresCompilation": Error,
    "NoModel": Error,
    "NoSuchFile": NoSuchFile,
    "NotFound": InvalidArgument,
    "NotImplemented": Unsupported,
    "RuntimeException": LimitExceeded,
}
"""The errors of opendml for those of ONNX Runtime."""
capi = SimpleNamespace(onnxruntime_pybind11_state=SimpleNamespace(**_STATES))
"""The exceptions that programs catch: `capi.onnxruntime_pybind11_state.NoSuchFile` and so on."""


def get_version_string() -> str:
    """Return the version of ONNX Runtime whose interface this is."""
    return version


def get_build_info() -> str:
    """Return one line about the package."""
    own = sys.modules["opendml"].__version__
    return f"opendml {own}, interface of ONNX Runtime {version}, Python {platform.python_version()}"


def print_debug_info() -> None:
    """Print versions and devices."""
    print(get_build_info())
    print(f"platform: {platform.platform()}, numpy {np.__version__}")
    for each in get_ep_devices():
        print(f"{each.ep_name}: {each.device.type.name} {each.device.vendor}".rstrip())
    sys.stdout.flush()


def has_collective_ops() -> bool:
    """Return False: a model runs on one device."""
    return False


def disable_telemetry_events() -> None:
    """Do nothing: opendml sends nothing."""


def enable_telemetry_events() -> None:
    """Do nothing: opendml sends nothing."""


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Do nothing: the CUDA driver and NVRTC are loaded when a device is first used."""


def set_default_logger_severity(severity: int) -> None:
    """Accept a severity without an effect: opendml's warnings are Python warnings.

    Raises:
        InvalidArgument: it is no number from 0 to 4.
    """
    if not 0 <= _number("set_default_logger_severity", severity) <= _MOST_SEVERE:
        raise InvalidArgument(
            f"set_default_logger_severity: {severity}; must be from 0 (verbose) to 4 (fatal)"
        )


def set_default_logger_verbosity(level: int) -> None:
    """Accept a level without an effect: the logger `opendml` has Python's levels."""
    _number("set_default_logger_verbosity", level)


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Set the number of CPU threads of later sessions whose options have `use_per_session_threads=False`.

    Args:
        intra_op_num_threads: the threads that share a kernel; 0: all.
        inter_op_num_threads: has no effect.
    """
    _number("set_global_thread_pool_sizes", inter_op_num_threads)
    default_threads.count = _number("set_global_thread_pool_sizes", intra_op_num_threads)


def set_seed(seed: int) -> None:
    """Seed the random nodes that have no seed of their own, in all sessions."""
    evaluate.set_seed(_number("set_seed", seed))


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """Copy values into others of the same types and sizes.

    Args:
        src: the values.
        dst: as many values, which are overwritten.
        stream: must be None.
    """
    if stream is not None:
        raise Unsupported("copy_tensors: stream: copies are done when the function returns")
    for name, values in {"src": src, "dst": dst}.items():
        if not isinstance(values, list | tuple) or not all(isinstance(each, OrtValue) for each in values):
            raise InvalidArgument(f"copy_tensors: {name}: {shown(values)}; a list of OrtValue is needed")
    if len(src) != len(dst):
        raise InvalidArgument(f"copy_tensors: {len(src)} values into {len(dst)}; must be as many")
    for source, into in zip(src, dst, strict=True):
        into.update_inplace(source)


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena_config: OrtArenaCfg | None) -> None:
    """Check the arguments, without an effect: opendml has its own arenas."""
    if not isinstance(memory_info, OrtMemoryInfo):
        needed = f"{shown(memory_info)}; an OrtMemoryInfo is needed"
        raise InvalidArgument(f"create_and_register_allocator: {needed}")


def create_and_register_allocator_v2(
    provider: str, memory_info: OrtMemoryInfo, options: Mapping[str, str], arena_config: OrtArenaCfg | None
) -> None:
    """Check the arguments, without an effect: opendml has its own arenas."""
    create_and_register_allocator(memory_info, arena_config)


def register_execution_provider_library(name: str, path: str) -> NoReturn:
    """Raise Unsupported: such libraries contain kernels for ONNX Runtime."""
    raise Unsupported(f"register_execution_provider_library: {name!r}: has kernels for ONNX Runtime alone")


def unregister_execution_provider_library(name: str) -> NoReturn:
    """Raise Unsupported: no library can be registered."""
    raise Unsupported(f"unregister_execution_provider_library: {name!r}: no library can be registered")


def _number(name: str, given: Any) -> int:
    try:
        return index(given)
    except TypeError as error:
        raise InvalidArgument(f"{name}: {shown(given)}; a whole number is needed") from error
