"""ONNX models: `dml.onnx.load("model.onnx")(x)`, and ONNX Runtime's API. Needs `opendml[onnx]`."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from opendml.across_forks import importing

if find_spec("onnx") is None:
    raise ModuleNotFoundError("opendml.onnx needs the onnx package: pip install 'opendml[onnx]'")

if TYPE_CHECKING:
    # isort: off
    # `as` tells type checkers that a name is public.
    from opendml.frontends.onnx.backend import Backend as Backend
    from opendml.frontends.onnx.custom import custom_operator as custom_operator
    from opendml.frontends.onnx.evaluate import EvaluatorWarning as EvaluatorWarning
    from opendml.frontends.onnx.model import OnnxModel as OnnxModel, load as load
    from opendml.frontends.onnx.sizes import Sizes as Sizes
    from opendml.frontends.onnx.tensor_info import TensorInfo as TensorInfo
    from opendml.frontends.onnxruntime.devices import (
        OrtAllocatorType as OrtAllocatorType,
        OrtArenaCfg as OrtArenaCfg,
        OrtDevice as OrtDevice,
        OrtDeviceMemoryType as OrtDeviceMemoryType,
        OrtDeviceVendorId as OrtDeviceVendorId,
        OrtEpDevice as OrtEpDevice,
        OrtHardwareDevice as OrtHardwareDevice,
        OrtHardwareDeviceType as OrtHardwareDeviceType,
        OrtMemoryInfo as OrtMemoryInfo,
        OrtMemoryInfoDeviceType as OrtMemoryInfoDeviceType,
        OrtMemType as OrtMemType,
        OrtSparseFormat as OrtSparseFormat,
        get_ep_devices as get_ep_devices,
    )
    from opendml.frontends.onnxruntime.module import (
        capi as capi,
        copy_tensors as copy_tensors,
        create_and_register_allocator as create_and_register_allocator,
        create_and_register_allocator_v2 as create_and_register_allocator_v2,
        cuda_version as cuda_version,
        disable_telemetry_events as disable_telemetry_events,
        enable_telemetry_events as enable_telemetry_events,
        get_build_info as get_build_info,
        get_version_string as get_version_string,
        has_collective_ops as has_collective_ops,
        package_name as package_name,
        preload_dlls as preload_dlls,
        print_debug_info as print_debug_info,
        register_execution_provider_library as register_execution_provider_library,
        set_default_logger_severity as set_default_logger_severity,
        set_default_logger_verbosity as set_default_logger_verbosity,
        set_global_thread_pool_sizes as set_global_thread_pool_sizes,
        set_seed as set_seed,
        unregister_execution_provider_library as unregister_execution_provider_library,
        version as version,
    )
    from opendml.frontends.onnxruntime.options import (
        ExecutionMode as ExecutionMode,
        ExecutionOrder as ExecutionOrder,
        GraphOptimizationLevel as GraphOptimizationLevel,
        OrtExecutionProviderDevicePolicy as OrtExecutionProviderDevicePolicy,
        RunOptions as RunOptions,
        SessionOptions as SessionOptions,
    )
    from opendml.frontends.onnxruntime.providers import (
        get_all_providers as get_all_providers,
        get_available_providers as get_available_providers,
        get_device as get_device,
    )
    from opendml.frontends.onnxruntime.session import (
        InferenceSession as InferenceSession,
        ModelMetadata as ModelMetadata,
        NodeArg as NodeArg,
    )
    from opendml.frontends.onnxruntime.values import IOBinding as IOBinding, OrtValue as OrtValue
    # isort: on

_HOMES = {
    "onnx.backend": "Backend",
    "onnx.custom": "custom_operator",
    "onnx.evaluate": "EvaluatorWarning",
    "onnx.model": "OnnxModel load",
    "onnx.tensor_info": "TensorInfo",
    "onnx.sizes": "Sizes",
    "onnxruntime.devices": "OrtAllocatorType OrtArenaCfg OrtDevice OrtDeviceMemoryType OrtDeviceVendorId "
    "OrtEpDevice OrtHardwareDevice OrtHardwareDeviceType OrtMemType OrtMemoryInfo OrtMemoryInfoDeviceType "
    "OrtSparseFormat get_ep_devices",
    "onnxruntime.module": "__author__ __version__ capi copy_tensors create_and_register_allocator "
    "create_and_register_allocator_v2 cuda_version disable_telemetry_events enable_telemetry_events "
    "get_build_info get_version_string has_collective_ops package_name preload_dlls print_debug_info "
    "register_execution_provider_library set_default_logger_severity set_default_logger_verbosity "
    "set_global_thread_pool_sizes set_seed unregister_execution_provider_library version",
    "onnxruntime.refused": "AdapterFormat LoraAdapter ModelCompiler OrtCompileApiFlags OrtEpAssignedNode "
    "OrtEpAssignedSubgraph OrtEpContextData OrtEpContextDataBuffer OrtExternalInitializerInfo OrtSyncStream "
    "SessionIOBinding SparseTensor",
    "onnxruntime.options": "ExecutionMode ExecutionOrder GraphOptimizationLevel "
    "OrtExecutionProviderDevicePolicy RunOptions SessionOptions",
    "onnxruntime.providers": "get_all_providers get_available_providers get_device",
    "onnxruntime.session": "InferenceSession ModelMetadata NodeArg",
    "onnxruntime.values": "IOBinding OrtValue",
}
"""The modules of public names below `opendml.frontends`, imported when a name is first asked for: a known
model needs neither the `onnx` package nor its importer."""
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = [*_home_of]


def __dir__() -> list[str]:
    """Return the public names, without the imported packages."""
    return sorted([*__all__, "__all__", "__doc__"])


if not TYPE_CHECKING:  # to type checkers a missing name stays missing

    def __getattr__(name: str) -> Any:
        if name not in _home_of:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        with importing:
            home = import_module(f"opendml.frontends.{_home_of[name]}")
        return globals().setdefault(name, getattr(home, name))
