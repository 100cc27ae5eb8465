"""ONNX models: `dml.onnx.load("model.onnx")(x)`, and ONNX Runtime's API. Needs `opendml[onnx]`."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from opendml.across_forks import importing

if find_spec("onnx") is None:
    raise ModuleNotFoundError("opendml.onnx needs the onnx package: pip install 'opendml[onnx]'")

if TYPE_CHECKING:
    from opendml.frontends.onnx.backend import Backend
    from opendml.frontends.onnx.evaluate import EvaluatorWarning
    from opendml.frontends.onnx.model import OnnxModel, load
    from opendml.frontends.onnx.sizes import Sizes
    from opendml.frontends.onnx.tensor_info import TensorInfo
    from opendml.frontends.onnxruntime.options import (
        ExecutionMode,
        ExecutionOrder,
        GraphOptimizationLevel,
        RunOptions,
        SessionOptions,
    )
    from opendml.frontends.onnxruntime.providers import get_available_providers, get_device
    from opendml.frontends.onnxruntime.session import (
        InferenceSession,
        ModelMetadata,
        NodeArg,
        set_default_logger_severity,
    )
    from opendml.frontends.onnxruntime.values import IOBinding, OrtValue


__all__ = [
    "Backend",
    "EvaluatorWarning",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OnnxModel",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "Sizes",
    "TensorInfo",
    "get_available_providers",
    "get_device",
    "load",
    "set_default_logger_severity",
]

_HOMES = {
    "onnx.backend": "Backend",
    "onnx.evaluate": "EvaluatorWarning",
    "onnx.model": "OnnxModel load",
    "onnx.tensor_info": "TensorInfo",
    "onnx.sizes": "Sizes",
    "onnxruntime.options": "ExecutionMode ExecutionOrder GraphOptimizationLevel RunOptions SessionOptions",
    "onnxruntime.providers": "get_available_providers get_device",
    "onnxruntime.session": "InferenceSession ModelMetadata NodeArg set_default_logger_severity",
    "onnxruntime.values": "IOBinding OrtValue",
}
"""The modules of public names below `opendml.frontends`, imported when a name is first asked for: a known
model needs neither the `onnx` package nor its importer."""
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}


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
