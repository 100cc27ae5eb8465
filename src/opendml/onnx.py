"""ONNX models (`opendml[onnx]`): `dml.onnx.load("model.onnx")(x)`."""

try:
    import onnx  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("opendml.onnx needs the onnx package: pip install 'opendml[onnx]'") from error

from opendml.frontends.onnx.backend import Backend
from opendml.frontends.onnx.evaluate import EvaluatorWarning
from opendml.frontends.onnx.model import OnnxModel, TensorInfo, load

__all__ = ["Backend", "EvaluatorWarning", "OnnxModel", "TensorInfo", "load"]
