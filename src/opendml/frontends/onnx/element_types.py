"""Element types of ONNX as NumPy's, and contents of messages as arrays. Only rare types import `onnx`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from opendml.frontends.onnx.package import onnx

_Tensor = onnx.TensorProto
_PLAIN: dict[int, np.dtype[Any]] = {
    _Tensor.FLOAT: np.dtype(np.float32),
    _Tensor.UINT8: np.dtype(np.uint8),
    _Tensor.INT8: np.dtype(np.int8),
    _Tensor.UINT16: np.dtype(np.uint16),
    _Tensor.INT16: np.dtype(np.int16),
    _Tensor.INT32: np.dtype(np.int32),
    _Tensor.INT64: np.dtype(np.int64),
    _Tensor.BOOL: np.dtype(np.bool_),
    _Tensor.FLOAT16: np.dtype(np.float16),
    _Tensor.DOUBLE: np.dtype(np.float64),
    _Tensor.UINT32: np.dtype(np.uint32),
    _Tensor.UINT64: np.dtype(np.uint64),
}
_ELEMENTS = {type: element for element, type in _PLAIN.items()}
_FIELDS = {
    _Tensor.FLOAT: "float_data",
    _Tensor.DOUBLE: "double_data",
    _Tensor.INT32: "int32_data",
    _Tensor.INT64: "int64_data",
}
"""Fields of tensors that hold elements as they are."""


def dtype_of(element: int) -> np.dtype[Any]:
    """Return NumPy's type for an element type of ONNX.

    Raises:
        KeyError: there is no such type.
    """
    found = _PLAIN.get(element)
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element)) if found is None else found


def element_of(type: np.dtype[Any]) -> int:
    """Return ONNX's element type for a type of NumPy.

    Raises:
        ValueError: there is none.
    """
    found = _ELEMENTS.get(type)
    return int(onnx.helper.np_dtype_to_tensor_dtype(type)) if found is None else found


def array_in(tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
    """Return the content of a tensor's message as an array.

    Raises:
        LookupError, TypeError, ValueError: the type is unknown, or the data do not fit the sizes.
    """
    element, type = tensor.data_type, _PLAIN.get(tensor.data_type)
    if type is not None and not tensor.HasField("segment") and tensor.data_location == _Tensor.DEFAULT:
        if tensor.HasField("raw_data") and sys.byteorder == "little":
            return np.frombuffer(tensor.raw_data, type).reshape(tensor.dims)
        if element in _FIELDS and not tensor.HasField("raw_data"):
            return np.array(getattr(tensor, _FIELDS[element]), type).reshape(tensor.dims)
    return np.asarray(onnx.numpy_helper.to_array(tensor))


def set_tensor_type(message: onnx.TypeProto, element: int, sizes: list[int]) -> None:
    """Make a message the type of tensors of some sizes."""
    message.tensor_type.elem_type = element
    message.tensor_type.shape.SetInParent()  # Without a dimension too.
    for size in sizes:
        message.tensor_type.shape.dim.add().dim_value = size
