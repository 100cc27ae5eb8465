"""4-bit elements: in DirectML's buffers two share a byte, the first in its low half."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.spec.enums import TensorDataType

Bytes = npt.NDArray[np.uint8]

CARRIERS = {TensorDataType.UINT4: np.dtype(np.uint8), TensorDataType.INT4: np.dtype(np.int8)}
"""The types whose elements have 4 bits, and the NumPy types that hold such a number in a byte."""


def pack(elements: npt.NDArray[Any]) -> Bytes:
    """Return two elements in each byte.

    The lower halves of `elements` count, which has one in each byte. An odd number is filled up with zero.

    >>> pack(np.array([1, -1, 7], np.int8)).tolist()
    [241, 7]
    """
    flat = np.ascontiguousarray(elements).reshape(-1)
    halves = np.zeros((flat.size + 1) // 2 * 2, np.uint8)
    halves[: flat.size] = flat.view(np.uint8) & 15
    low, high = halves[::2], halves[1::2]
    return low | high << np.uint8(4)


def unpack(data: Bytes, data_type: TensorDataType, count: int) -> npt.NDArray[Any]:
    """Return the first `count` elements of packed bytes, one in each byte, with the sign of an INT4.

    >>> unpack(np.array([241, 7], np.uint8), TensorDataType.INT4, 3).tolist()
    [1, -1, 7]
    """
    halves = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[:count]
    if data_type is TensorDataType.INT4:
        return (halves ^ 8).astype(np.int8) - np.int8(8)
    return halves


def numpy_type(data_type: TensorDataType) -> np.dtype[Any]:
    """Return the NumPy type that holds one element. Elements of 4 bits take a byte each."""
    return CARRIERS[data_type] if data_type in CARRIERS else np.dtype(data_type.name.lower())


def scalar_bytes(value: float, data_type: TensorDataType) -> bytes:
    """Return the bytes of a number as an element of that type. Too large floats become infinite."""
    with np.errstate(over="ignore"):
        return np.array(value).astype(numpy_type(data_type)).tobytes()
