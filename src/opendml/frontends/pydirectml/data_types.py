"""Types of elements in either spelling: PyDirectML's, or NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.frontends.pydirectml.enumerations import TensorDataType

DataType = TensorDataType | npt.DTypeLike
"""A type of elements: a TensorDataType, or what NumPy takes for one."""

_NUMPY: dict[TensorDataType, np.dtype[Any]] = {
    member: np.dtype(member.name.lower()) for member in TensorDataType if member is not TensorDataType.UNKNOWN
}
_DIRECTML = {dtype: member for member, dtype in _NUMPY.items()}


def numpy_type(data_type: int) -> np.dtype[Any]:
    """NumPy's type for DirectML's number of a type.

    Raises:
        TypeError: UNKNOWN.
    """
    member = TensorDataType(data_type)
    if member not in _NUMPY:
        raise TypeError(f"{member.name}: no type of a tensor's elements")
    return _NUMPY[member]


def as_data_type(data_type: DataType) -> TensorDataType:
    """The member for either spelling.

    Raises:
        TypeError: no type that DirectML has.
    """
    if isinstance(data_type, TensorDataType):
        return data_type
    try:
        return _DIRECTML[np.dtype(data_type)]
    except (KeyError, TypeError, ValueError):
        names = ", ".join(dtype.name for dtype in _DIRECTML)
        raise TypeError(f"{data_type!r}: no type of a tensor's elements; one of {names} is needed") from None


def is_castable(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether NumPy calls the cast safe, or it narrows within a kind, as float64 to float32 does."""
    return given.kind == wanted.kind or np.can_cast(given, wanted, "safe")
