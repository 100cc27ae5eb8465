"""Values of an ONNX model's tensors during a trace.

A `Known` value is an array that is the same in every run. A `RuntimeValue` is an array that exists before the
current graph runs. A `Computed` value is a tensor of that graph. ONNX's sizes and types may differ from those
of the graph's tensor, because DirectML has no tensors without dimensions and no booleans.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.common.types import data_type_of
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

if TYPE_CHECKING:
    import onnx

Array = np.ndarray[Any, Any]
Type = np.dtype[Any]

BOOLEAN = np.dtype(np.bool_)

_CARRIERS: dict[str, Type] = {
    "bool": np.dtype(np.uint8),
    "complex64": np.dtype(np.uint64),
    "bfloat16": np.dtype(np.uint16),
    "float8_e4m3fn": np.dtype(np.uint8),
    "float8_e4m3fnuz": np.dtype(np.uint8),
    "float8_e5m2": np.dtype(np.uint8),
    "float8_e5m2fnuz": np.dtype(np.uint8),
    "float8_e8m0fnu": np.dtype(np.uint8),
}


def carrier_of(type: Type) -> Type:
    """Return the type that carries elements of `type` through operators that only move them."""
    return _CARRIERS.get(type.name, type)


def stored_type(type: Type) -> TensorDataType:
    """Return DirectML's type that carries elements of `type`.

    Raises:
        NotExpressible: DirectML has none, as for strings.
    """
    return data_type_of(carrier_of(type))


def array_of(tensor: onnx.TensorProto) -> Array:
    """Return the content of a tensor in a message.

    Raises:
        InvalidArgument: the type is unknown, or the data do not fit the sizes.
    """
    from onnx import TensorProto, numpy_helper  # Names of converters are read without the package.

    try:
        if tensor.data_type == TensorProto.STRING:
            # All strings of a NumPy string array take as much as the longest.
            texts = np.empty(len(tensor.string_data), object)
            texts[:] = [each.decode() for each in tensor.string_data]
            return texts.reshape(tensor.dims)
        return np.asarray(numpy_helper.to_array(tensor))
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidArgument(f"tensor {tensor.name!r}: {error}") from error


def strings_of(array: Array) -> list[str]:
    """Return the elements of a tensor of strings."""
    return [str(each) for each in array.flat]


def sizes_of_type(type: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Return the sizes of a tensor type: numbers, symbolic names, or None (any); None: any rank."""
    if not type.tensor_type.HasField("shape"):
        return None
    dimensions = type.tensor_type.shape.dim
    return tuple(
        int(each.dim_value) if each.HasField("dim_value") else each.dim_param or None for each in dimensions
    )


@dataclass(frozen=True)
class Known:
    """A value that is the same in every run of the trace.

    Args:
        content: an array, or a sequence or optional value, which only nodes outside of DirectML read.
        identity: equal for values that are the same, such as an initializer's name; None: unknown.
    """

    content: Any
    identity: Hashable = field(default=None, compare=False)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        return tuple(self.content.shape) if isinstance(self.content, np.ndarray) else None

    @property
    def type(self) -> Type | None:
        return self.content.dtype if isinstance(self.content, np.ndarray) else None


@dataclass(frozen=True)
class RuntimeValue:
    """A value whose content each run has before the current graph begins.

    Args:
        sizes, type: those of an array; None for a sequence.
        is_own: whether nothing else has its memory.
    """

    sizes: tuple[int, ...] | None
    type: Type | None
    is_own: bool = False


@dataclass(frozen=True)
class Computed:
    """A tensor of the current graph, with ONNX's sizes and type."""

    tensor: GraphTensor
    sizes: tuple[int, ...]
    type: Type


Value = Known | RuntimeValue | Computed


def form_of(content: Any) -> tuple[tuple[int, ...], Type] | None:
    """Return the sizes and type of an array; None: the content is no array."""
    return (content.shape, content.dtype) if isinstance(content, np.ndarray) else None


def value_of(content: Any, is_own: bool = False) -> Known | RuntimeValue:
    """Return the value for a content of a run; an empty array is known entirely."""
    if not isinstance(content, np.ndarray):
        return RuntimeValue(None, None)
    if content.size == 0:
        return Known(content)
    return RuntimeValue(tuple(content.shape), content.dtype, is_own)
