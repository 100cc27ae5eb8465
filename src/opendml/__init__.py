"""opendml: DirectML's operators, object model and graphs on any machine.

Immediate functions (`dml.activation_celu(x, alpha=1.0)`), graphs (`dml.Graph`), and DirectML's objects
(`dml.Device`, `dml.TensorDesc`, `dml.descs`, `dml.validate`). See `opendml ops` for every operator.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from opendml.across_forks import importing

__version__ = "0.1.0"

if TYPE_CHECKING:
    from opendml import directml as directml
    from opendml import functions as _functions
    from opendml import onnx as onnx
    from opendml import pydirectml as pydirectml
    from opendml import serialized as serialized
    from opendml import torch as torch
    from opendml.budget import Limits
    from opendml.errors import (
        DeviceRemoved,
        Error,
        InvalidArgument,
        LimitExceeded,
        NoSuchFile,
        Unsupported,
    )
    from opendml.functions import *  # noqa: F403
    from opendml.runtime.graphs.caches import ModelState
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
    from opendml.runtime.objects.binding import (
        BufferArrayBinding,
        BufferBinding,
    )
    from opendml.runtime.objects.binding_table import BindingTable
    from opendml.runtime.objects.bound import (
        BoundModel,
        BoundOperator,
        Recording,
    )
    from opendml.runtime.objects.compiled import CompiledOperator
    from opendml.runtime.objects.device import Device
    from opendml.runtime.objects.dispatchable import BindingProperties
    from opendml.runtime.objects.initializer import OperatorInitializer
    from opendml.runtime.objects.intermediates import Intermediate
    from opendml.runtime.objects.operator import Operator
    from opendml.runtime.objects.recorder import CommandRecorder
    from opendml.spec import descs
    from opendml.spec.enums import (
        MINIMUM_BUFFER_TENSOR_ALIGNMENT,
        PERSISTENT_BUFFER_ALIGNMENT,
        TEMPORARY_BUFFER_ALIGNMENT,
        TENSOR_DIMENSION_COUNT_MAX,
        TENSOR_DIMENSION_COUNT_MAX1,
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
    from opendml.spec.limits import (
        OperatorLimits,
        TensorLimits,
        limits,
    )
    from opendml.spec.operator_desc import (
        OperatorDesc,
        ScaleBias,
        Size2D,
    )
    from opendml.spec.tensor_desc import (
        TensorDesc,
        calc_buffer_tensor_size,
    )
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

    __all__ = [
        "FLOAT16",
        "FLOAT32",
        "FLOAT64",
        "INT4",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "MINIMUM_BUFFER_TENSOR_ALIGNMENT",
        "PERSISTENT_BUFFER_ALIGNMENT",
        "TEMPORARY_BUFFER_ALIGNMENT",
        "TENSOR_DIMENSION_COUNT_MAX",
        "TENSOR_DIMENSION_COUNT_MAX1",
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
        "ModelState",
        "MultiheadAttentionMaskType",
        "NoSuchFile",
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

_HOMES = {
    "budget": "Limits",
    "errors": "DeviceRemoved Error InvalidArgument LimitExceeded NoSuchFile Unsupported",
    "runtime.graphs.caches": "ModelState",
    "runtime.graphs.desc": "ConstantNode GraphDesc InputEdge IntermediateEdge OperatorNode OutputEdge",
    "runtime.graphs.graph": "Graph",
    "runtime.graphs.model": "Model",
    "runtime.graphs.tensor": "GraphTensor",
    "runtime.loading": "load",
    "runtime.memory.packing": "from_buffer to_buffer",
    "runtime.objects.binding": "BufferArrayBinding BufferBinding",
    "runtime.objects.binding_table": "BindingTable",
    "runtime.objects.bound": "BoundModel BoundOperator Recording",
    "runtime.objects.compiled": "CompiledOperator",
    "runtime.objects.device": "Device",
    "runtime.objects.dispatchable": "BindingProperties",
    "runtime.objects.initializer": "OperatorInitializer",
    "runtime.objects.intermediates": "Intermediate",
    "runtime.objects.operator": "Operator",
    "runtime.objects.recorder": "CommandRecorder",
    "spec.enums": (
        "AxisDirection ConvolutionDirection ConvolutionMode DepthSpaceOrder ExecutionFlags "
        "FeatureLevel InterpolationMode IsInfinityMode MatrixTransform MultiheadAttentionMaskType "
        "PaddingMode QuantizationType RandomGeneratorType RecurrentNetworkDirection "
        "ReduceFunction RoundingMode TensorDataType TensorFlags "
        "MINIMUM_BUFFER_TENSOR_ALIGNMENT PERSISTENT_BUFFER_ALIGNMENT TEMPORARY_BUFFER_ALIGNMENT "
        "TENSOR_DIMENSION_COUNT_MAX TENSOR_DIMENSION_COUNT_MAX1"
    ),
    "spec.limits": "OperatorLimits TensorLimits limits",
    "spec.operator_desc": "OperatorDesc ScaleBias Size2D",
    "spec.tensor_desc": "TensorDesc calc_buffer_tensor_size",
    "spec.validator": "validate",
}
"""The modules of public names. A name is imported when it is first used, because a program that runs a known
model needs few of them, and importing all takes 0.2 s."""
_MODULES = ("directml", "onnx", "pydirectml", "serialized", "torch")
"""Modules for other descriptions and APIs. Some need a package of their own."""
_PARTS = ("errors", "functions", "outputs")
"""Modules of public names that may be used as attributes too."""

_DATA_TYPES = (
    *("FLOAT16", "FLOAT32", "FLOAT64", "INT4", "INT8", "INT16", "INT32", "INT64"),
    *("UINT4", "UINT8", "UINT16", "UINT32", "UINT64"),
)
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}


def __dir__() -> list[str]:
    """Return the public names, without the modules behind them."""
    return sorted([*_public_names(), *_MODULES, "__all__", "__doc__", "__version__"])


def _public_names() -> list[str]:
    return [*sorted([*_home_of, *_DATA_TYPES, "descs"]), *import_module("opendml.functions").__all__]


if not TYPE_CHECKING:  # to type checkers a missing name stays missing

    def __getattr__(name: str) -> Any:
        known = name in _home_of or name in _DATA_TYPES or name in ("__all__", "descs", *_MODULES, *_PARTS)
        if not known and (name.startswith("__") or find_spec(f"opendml.{name}") is not None):
            raise AttributeError(name)  # The import system asks for a module before it imports it.
        with importing:
            return globals().setdefault(name, _found(name))


def _found(name: str) -> Any:
    """Return the object of a public name."""
    if name == "__all__":
        return _public_names()
    home = _home_of.get(name, "")
    if name == "descs" or (home.startswith("runtime.") and name != "Device"):
        # Registers how models are pickled, in 0.1 s. A device alone makes none: its operators need `descs`.
        import_module("opendml.runtime.loading")
    if home:
        return getattr(import_module(f"opendml.{home}"), name)
    if name in _DATA_TYPES:
        return import_module("opendml.spec.enums").TensorDataType[name]
    if name == "descs":
        return import_module("opendml.spec.descs")
    if name in _MODULES or name in _PARTS:
        try:
            return import_module(f"opendml.{name}")
        except ModuleNotFoundError as error:
            # hasattr, help and inspect.getmembers expect an absent attribute, not a failed import.
            raise AttributeError(f"module 'opendml' has no attribute {name!r}: {error}") from error
    functions = import_module("opendml.functions")
    if name in functions.__all__:
        return getattr(functions, name)
    from opendml.catalog.names import missing

    raise missing("opendml", name, [*_public_names(), *_MODULES])
