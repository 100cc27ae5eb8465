"""ONNX models (`opendml[onnx]`): `dml.onnx.load("model.onnx")(x)`, and sessions as ONNX Runtime has them."""

try:
    import onnx  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("opendml.onnx needs the onnx package: pip install 'opendml[onnx]'") from error

from opendml.frontends.onnx.backend import Backend
from opendml.frontends.onnx.evaluate import EvaluatorWarning
from opendml.frontends.onnx.model import OnnxModel, TensorInfo, load
from opendml.frontends.onnx.session import (
    InferenceSession,
    ModelMetadata,
    NodeArg,
    get_available_providers,
    get_device,
    set_default_logger_severity,
)
from opendml.frontends.onnx.session_options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from opendml.frontends.onnx.session_values import IOBinding, OrtValue
from opendml.frontends.onnx.sizes import Sizes

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
    """The public names: the packages behind them are not."""
    return sorted([*__all__, "__all__", "__doc__"])
