"""Elements of DirectML's data types: numbers from JSON to bytes in a buffer and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.frontends.dxdispatch.node import Node
from opendml.spec.enums import TensorDataType

Bytes = npt.NDArray[np.uint8]
Elements = npt.NDArray[Any]

_FOUR_BIT = {TensorDataType.UINT4: "uint8", TensorDataType.INT4: "int8"}


def is_float(data_type: TensorDataType) -> bool:
    """Whether the elements are floating-point numbers."""
    return data_type.name.startswith("FLOAT")


def numpy_type(data_type: TensorDataType) -> np.dtype[Any]:
    """The NumPy type that holds one element; 4-bit elements take a byte each there."""
    return np.dtype(_FOUR_BIT.get(data_type, data_type.name.lower()))


def byte_count(data_type: TensorDataType, count: int) -> int:
    """Bytes that `count` packed elements take in a buffer."""
    if data_type in _FOUR_BIT:
        return (count + 1) // 2
    return count * numpy_type(data_type).itemsize


def element_count(data_type: TensorDataType, size_in_bytes: int) -> int:
    """How many whole elements fit into a number of bytes."""
    return size_in_bytes * 2 if data_type in _FOUR_BIT else size_in_bytes // numpy_type(data_type).itemsize


def scalar(node: Node, data_type: TensorDataType) -> int | float:
    """The number at `node` as a value of `data_type`. Floats are rounded to it; integers must fit.

    A finite number that would become an infinity is an error: nobody means that, and "inf" can be written.
    """
    if not is_float(data_type):
        return node.integer(*integer_range(data_type))
    number = node.number()
    with np.errstate(over="ignore"):
        rounded = float(numpy_type(data_type).type(number))
    if math.isinf(rounded) and math.isfinite(number):
        node.fail(f'a number within the range of {data_type.name} (or "inf")')
    return rounded


def integer_range(data_type: TensorDataType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = int(data_type.name.lstrip("UINT"))
    if data_type.name.startswith("U"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def encode(elements: Elements, data_type: TensorDataType) -> Bytes:
    """Elements, one per array item, to the bytes of a packed buffer. Two 4-bit elements share a byte, the
    first in the low half."""
    packed = np.ascontiguousarray(elements, dtype=numpy_type(data_type)).reshape(-1)
    if data_type not in _FOUR_BIT:
        return packed.view(np.uint8)
    halves = np.zeros(byte_count(data_type, packed.size) * 2, np.uint8)
    halves[: packed.size] = packed.view(np.uint8) & 15
    low, high = halves[::2], halves[1::2]
    return low | high << np.uint8(4)


def decode(data: Bytes, data_type: TensorDataType, count: int) -> Elements:
    """The first `count` elements of a packed buffer, one per array item."""
    used = data[: byte_count(data_type, count)]
    if data_type not in _FOUR_BIT:
        return used.view(numpy_type(data_type))
    halves = np.stack([used & 15, used >> 4], axis=-1).reshape(-1)[:count]
    if data_type is TensorDataType.INT4:
        return (halves ^ 8).astype(np.int8) - np.int8(8)
    return halves
