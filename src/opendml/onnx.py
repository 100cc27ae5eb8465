"""ONNX models: `dml.onnx.load("model.onnx")(x)`, and ONNX Runtime's API. Needs `opendml[onnx]`."""

try:
    import onnx  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("opendml.onnx needs the onnx package: pip install 'opendml[onnx]'") from error

from opendml.frontends.onnx.backend import Backend
from opendml.frontends.onnx.evaluate import EvaluatorWarning
from opendml.frontends.onnx.model import OnnxModel, TensorInfo, load
from opendml.frontends.onnx.sizes import Sizes
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


def __dir__() -> list[str]:
    """Return the public names, without the imported packages."""
    return sorted([*__all__, "__all__", "__doc__"])
