"""What a tensor of an ONNX model is while the model is traced.

A value is known (an array that is the same in every run of this trace), held (an array that each run has
before the graph at hand begins), or computed (a tensor of that graph). ONNX's sizes and types may differ from
those of the graph's tensor: DirectML has no tensors without dimensions, and no truth values.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from opendml.errors import InvalidArgument
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

Array = np.ndarray[Any, Any]
Type = np.dtype[Any]

BOOLEAN = np.dtype(np.bool_)

_DATA_TYPES = {
    np.dtype(type): data_type
    for type, data_type in (
        (np.float32, TensorDataType.FLOAT32),
        (np.float16, TensorDataType.FLOAT16),
        (np.float64, TensorDataType.FLOAT64),
        (np.bool_, TensorDataType.UINT8),
        (np.uint8, TensorDataType.UINT8),
        (np.uint16, TensorDataType.UINT16),
        (np.uint32, TensorDataType.UINT32),
        (np.uint64, TensorDataType.UINT64),
        (np.int8, TensorDataType.INT8),
        (np.int16, TensorDataType.INT16),
        (np.int32, TensorDataType.INT32),
        (np.int64, TensorDataType.INT64),
        (ml_dtypes.uint4, TensorDataType.UINT4),
        (ml_dtypes.int4, TensorDataType.INT4),
    )
}

_CARRIERS: dict[Type, Type] = {
    BOOLEAN: np.dtype(np.uint8),
    np.dtype(np.complex64): np.dtype(np.uint64),
    np.dtype(ml_dtypes.bfloat16): np.dtype(np.uint16),
    np.dtype(ml_dtypes.float8_e4m3fn): np.dtype(np.uint8),
    np.dtype(ml_dtypes.float8_e4m3fnuz): np.dtype(np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): np.dtype(np.uint8),
    np.dtype(ml_dtypes.float8_e5m2fnuz): np.dtype(np.uint8),
    np.dtype(ml_dtypes.float8_e8m0fnu): np.dtype(np.uint8),
}


def carrier_of(type: Type) -> Type:
    """The type whose elements stand for those of `type` in DirectML's tensors, where they are but moved."""
    return _CARRIERS.get(type, type)


def data_type_of(type: Type) -> TensorDataType | None:
    """DirectML's type of elements that NumPy calls `type`; None: it has none (strings, bfloat16, complex)."""
    return _DATA_TYPES.get(type)


def stored_type(type: Type) -> TensorDataType:
    """DirectML's type of the elements that stand for those of `type`, where it is known that there is one."""
    return _DATA_TYPES[carrier_of(type)]


def most_dimensions() -> int:
    """How many dimensions a DirectML tensor has at most."""
    return 8


def array_of(tensor: onnx.TensorProto) -> Array:
    """The content of a tensor of a file.

    Raises:
        InvalidArgument: of an unknown type, or with more or less data than its sizes say.
    """
    try:
        if tensor.data_type == onnx.TensorProto.STRING:
            # NumPy's own strings all take as much as the longest.
            texts = np.empty(len(tensor.string_data), object)
            texts[:] = [each.decode() for each in tensor.string_data]
            return texts.reshape(tensor.dims)
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidArgument(f"tensor {tensor.name!r}: {error}") from error


def strings_of(array: Array) -> list[str]:
    """Return the elements of a tensor of strings."""
    return [str(each) for each in array.flat]


@dataclass(frozen=True)
class Known:
    """A value that is the same in every run of the trace. What is no array (sequences, optional values) only
    nodes outside of DirectML take."""

    content: Any
    identity: Hashable = field(default=None, compare=False)
    """What all values have that are this one; None: it is not known to be another one."""

    @property
    def sizes(self) -> tuple[int, ...] | None:
        return tuple(self.content.shape) if isinstance(self.content, np.ndarray) else None

    @property
    def type(self) -> Type | None:
        return self.content.dtype if isinstance(self.content, np.ndarray) else None


@dataclass(frozen=True)
class Held:
    """A value of which the trace knows sizes and type; each run has its content by the value's name. Both are
    None for what is no array (sequences).

    Args:
        is_own: whether it lies in memory that nothing else has.
    """

    sizes: tuple[int, ...] | None
    type: Type | None
    is_own: bool = False


@dataclass(frozen=True)
class Computed:
    """A tensor of the graph that is being made, with ONNX's sizes and type."""

    tensor: GraphTensor
    sizes: tuple[int, ...]
    type: Type


Value = Known | Held | Computed


def form_of(content: Any) -> tuple[tuple[int, ...], Type] | None:
    """Sizes and type of a value that a run has; None: it is no array."""
    return (content.shape, content.dtype) if isinstance(content, np.ndarray) else None


def held(content: Any, is_own: bool = False) -> Known | Held:
    """What the trace knows of a value that a run has: all of it where there are no elements."""
    if not isinstance(content, np.ndarray):
        return Held(None, None)
    if content.size == 0:
        return Known(content)
    return Held(tuple(content.shape), content.dtype, is_own)
