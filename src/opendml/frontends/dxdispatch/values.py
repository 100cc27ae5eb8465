"""Convert numbers of DirectML's data types from JSON to bytes in a buffer, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.json_files.node import JsonNode
from opendml.spec.enums import TensorDataType
from opendml.spec.four_bit import CARRIERS, numpy_type, pack, unpack
from opendml.spec.values import integer_range

Bytes = npt.NDArray[np.uint8]
Elements = npt.NDArray[Any]


def is_float(data_type: TensorDataType) -> bool:
    """Return whether the elements are floating-point numbers."""
    return data_type.name.startswith("FLOAT")


def byte_count(data_type: TensorDataType, count: int) -> int:
    """Return the bytes that `count` packed elements take in a buffer."""
    if data_type in CARRIERS:
        return (count + 1) // 2
    return count * numpy_type(data_type).itemsize


def element_count(data_type: TensorDataType, size_in_bytes: int) -> int:
    """Return how many whole elements fit into a number of bytes."""
    return size_in_bytes * 2 if data_type in CARRIERS else size_in_bytes // numpy_type(data_type).itemsize


def scalar(node: JsonNode, data_type: TensorDataType) -> int | float:
    """Return a number as a value of a data type. Floats are rounded to it; integers must fit.

    A finite number that would become an infinity is an error. Who means an infinity can write "inf".
    """
    if not is_float(data_type):
        return node.integer(*integer_range(data_type))
    number = node.number()
    with np.errstate(over="ignore"):
        rounded = float(numpy_type(data_type).type(number))
    if math.isinf(rounded) and math.isfinite(number):
        node.fail(f'a number within the range of {data_type.name} (or "inf")')
    return rounded


def encode(elements: Elements, data_type: TensorDataType) -> Bytes:
    """Return elements, one per array item, as the bytes of a packed buffer."""
    packed = np.ascontiguousarray(elements, dtype=numpy_type(data_type)).reshape(-1)
    return pack(packed) if data_type in CARRIERS else packed.view(np.uint8)


def decode(data: Bytes, data_type: TensorDataType, count: int) -> Elements:
    """Return the first `count` elements of a packed buffer, one per array item."""
    used = data[: byte_count(data_type, count)]
    return unpack(used, data_type, count) if data_type in CARRIERS else used.view(numpy_type(data_type))
