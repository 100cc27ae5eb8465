"""The values of attributes: records, and conversions of what callers give to plain Python values.

Plain values are hashable, have no NumPy integers that wrap, and are members of DirectML's enumerations where
callers name these.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from operator import index
from typing import Any, NamedTuple, Protocol, TypeAlias

from opendml.spec.element_types import element_type
from opendml.spec.enums import DATA_TYPE_BITS, TensorDataType


class ScaleBias(NamedTuple):
    """g(x) = x * scale + bias, applied to each input element before the operator (DML_SCALE_BIAS)."""

    scale: float
    bias: float


class Size2D(NamedTuple):
    """A width and a height in elements (DML_SIZE_2D)."""

    width: int
    height: int


class Dtype(Protocol):
    """The type of the elements of an array, as NumPy and PyTorch have it."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""


DataTypeLike: TypeAlias = TensorDataType | str | int | type[Any] | Dtype
"""A TensorDataType, its name in any case, its number, or the type of NumPy, PyTorch or ml_dtypes for it."""

_PLAIN = frozenset((int, float, bool, str, type(None)))


def as_plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's int, float or bool, and anything else as it is."""
    if type(value) not in _PLAIN and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def text_of(value: object) -> str:
    """Return the repr of a value, or only its class where repr fails.

    It fails for values that nest too deeply, for integers of too many digits, and for some foreign classes.
    """
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def sequence_items(value: Any) -> tuple[Any, ...] | None:
    """Return the items of a sequence; None for text, bytes and what is no sequence."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return tuple(value)
    return None


def as_tuple(value: Any) -> Any:
    """Return a list, tuple, range or array as a tuple of plain values, and anything else as it is.

    A named tuple, such as a ScaleBias, keeps its type. The validator refuses strings and other values.
    """
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return type(value)(*map(as_plain, value))
    if isinstance(value, list | tuple | range):
        return tuple([as_plain(item) for item in value])
    dimensions = getattr(value, "ndim", None)  # of a class the attribute itself
    if isinstance(dimensions, int) and dimensions > 0 and hasattr(value, "tolist"):
        return tuple(value.tolist())
    return value


def as_truth(value: Any) -> Any:
    """Return 0 and 1, which C has for truth values, as False and True, and anything else as it is.

    >>> as_truth(1), as_truth(2)
    (True, 2)
    """
    plain = as_plain(value)
    return bool(plain) if type(plain) is int and plain in (0, 1) else plain


def as_member(members: type[IntEnum] | type[IntFlag], value: Any) -> Any:
    """Return the member of an enumeration that a value names, and anything else as it is.

    A name may have any case, and a whole number is DirectML's. Types of array libraries name a
    TensorDataType; their truth values are UINT8.

    >>> as_member(TensorDataType, "float32"), as_member(TensorDataType, 1)
    (<TensorDataType.FLOAT32: 1>, <TensorDataType.FLOAT32: 1>)
    """
    if type(value) is members or value is None:
        return value
    if isinstance(value, str):
        return members.__members__.get(value.upper(), value)
    plain = as_plain(value)
    if type(plain) is int:
        return _numbered(members, plain)
    return (element_type(value) or value) if members is TensorDataType else value


def _numbered(members: type[IntEnum] | type[IntFlag], number: int) -> Any:
    """Return the member of that number, or the number if there is none."""
    if issubclass(members, IntFlag):
        return number if number & ~sum(members) else members(number)
    return next((each for each in members if each == number), number)


def is_integer(value: Any, low: int, high: int) -> bool:
    """Return whether the value is a whole number of that range. True and False are none."""
    # Most are plain; the first comparison spares them two calls.
    is_whole = type(value) is int or (isinstance(value, int) and not isinstance(value, bool))
    return is_whole and low <= value <= high


def as_counts(value: Any) -> tuple[int, ...] | None:
    """Return whole numbers from 0 on, such as sizes, as a tuple; None: the value is something else.

    >>> as_counts([2, 3]), as_counts([-1]), as_counts(4)
    ((2, 3), None, None)
    """
    try:
        counts = tuple(map(index, value))
    except TypeError:
        return None
    return counts if min(counts, default=0) >= 0 else None


def integer_range(data_type: TensorDataType) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    bits = DATA_TYPE_BITS[data_type]
    return (0, 2**bits - 1) if data_type.name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
