"""opendml: DirectML's operators, object model and graphs on any machine.

Immediate functions (`dml.activation_celu(x, alpha=1.0)`), graphs (`dml.Graph`), and DirectML's objects
(`dml.Device`, `dml.TensorDesc`, `dml.descs`, `dml.validate`). See `opendml ops` for every operator.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opendml import functions as _functions
from opendml.budget import Limits
from opendml.errors import DeviceRemoved, Error, InvalidArgument, LimitExceeded, Unsupported
from opendml.runtime.graphs.desc import (
    ConstantNode,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
)
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.loading import load
from opendml.runtime.memory.packing import from_buffer, to_buffer
from opendml.runtime.objects.binding import BufferArrayBinding, BufferBinding
from opendml.runtime.objects.binding_table import BindingTable
from opendml.runtime.objects.bound import BoundModel, BoundOperator, Recording
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.device import Device
from opendml.runtime.objects.dispatchable import BindingProperties
from opendml.runtime.objects.initializer import OperatorInitializer
from opendml.runtime.objects.intermediates import Intermediate
from opendml.runtime.objects.operator import Operator
from opendml.runtime.objects.recorder import CommandRecorder
from opendml.spec import descs
from opendml.spec.enums import (
    AxisDirection,
    ConvolutionDirection,
    ConvolutionMode,
    DepthSpaceOrder,
    ExecutionFlags,
    FeatureLevel,
    InterpolationMode,
    IsInfinityMode,
    MatrixTransform,
    MultiheadAttentionMaskType,
    PaddingMode,
    QuantizationType,
    RandomGeneratorType,
    RecurrentNetworkDirection,
    ReduceFunction,
    RoundingMode,
    TensorDataType,
    TensorFlags,
)
from opendml.spec.limits import OperatorLimits, TensorLimits, limits
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.tensor_desc import TensorDesc, calc_buffer_tensor_size
from opendml.spec.validator import validate

FLOAT32 = TensorDataType.FLOAT32
FLOAT16 = TensorDataType.FLOAT16
FLOAT64 = TensorDataType.FLOAT64
UINT8 = TensorDataType.UINT8
UINT16 = TensorDataType.UINT16
UINT32 = TensorDataType.UINT32
UINT64 = TensorDataType.UINT64
INT8 = TensorDataType.INT8
INT16 = TensorDataType.INT16
INT32 = TensorDataType.INT32
INT64 = TensorDataType.INT64
UINT4 = TensorDataType.UINT4
INT4 = TensorDataType.INT4

__version__ = "0.1.0"

if TYPE_CHECKING:
    from opendml import directml as directml
    from opendml import onnx as onnx
    from opendml import pydirectml as pydirectml
    from opendml import serialized as serialized
    from opendml import torch as torch
    from opendml.functions import *  # noqa: F403

_MODULES = ("directml", "onnx", "pydirectml", "serialized", "torch")
"""Modules for what comes from elsewhere, imported when asked for: some need a package of their own."""

__all__ = [
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "INT4",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT4",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "AxisDirection",
    "BindingProperties",
    "BindingTable",
    "BoundModel",
    "BoundOperator",
    "BufferArrayBinding",
    "BufferBinding",
    "CommandRecorder",
    "CompiledOperator",
    "ConstantNode",
    "ConvolutionDirection",
    "ConvolutionMode",
    "DepthSpaceOrder",
    "Device",
    "DeviceRemoved",
    "Error",
    "ExecutionFlags",
    "FeatureLevel",
    "Graph",
    "GraphDesc",
    "GraphTensor",
    "InputEdge",
    "Intermediate",
    "IntermediateEdge",
    "InterpolationMode",
    "InvalidArgument",
    "IsInfinityMode",
    "LimitExceeded",
    "Limits",
    "MatrixTransform",
    "Model",
    "MultiheadAttentionMaskType",
    "Operator",
    "OperatorDesc",
    "OperatorInitializer",
    "OperatorLimits",
    "OperatorNode",
    "OutputEdge",
    "PaddingMode",
    "QuantizationType",
    "RandomGeneratorType",
    "Recording",
    "RecurrentNetworkDirection",
    "ReduceFunction",
    "RoundingMode",
    "ScaleBias",
    "Size2D",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorLimits",
    "Unsupported",
    "calc_buffer_tensor_size",
    "descs",
    "from_buffer",
    "limits",
    "load",
    "to_buffer",
    "validate",
    *_functions.__all__,
]


def __dir__() -> list[str]:
    """Return the public names, without the modules behind them."""
    return sorted([*__all__, *_MODULES, "__all__", "__doc__", "__version__"])


if not TYPE_CHECKING:  # to type checkers a missing name stays missing

    def __getattr__(name: str) -> Any:
        if name in _functions.__all__:
            return globals().setdefault(name, getattr(_functions, name))
        if name in _MODULES:
            try:
                return import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                # hasattr, help and inspect.getmembers expect an absent attribute, not a failed import.
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {error}") from error
        from opendml.catalog.names import missing

        raise missing(__name__, name, [*__all__, *_MODULES])
