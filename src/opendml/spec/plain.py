"""Values as callers give them, as plain Python values: hashable, without NumPy's wrapping integers, and
members of DirectML's enumerations for what names them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any, Protocol, TypeAlias

from opendml.spec.enums import TensorDataType


class Dtype(Protocol):
    """A type of elements as arrays have it: NumPy's, PyTorch's."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""


DataTypeLike: TypeAlias = TensorDataType | str | type[Any] | Dtype
"""What names a TensorDataType: itself, its name in any case, or NumPy's, PyTorch's or ml_dtypes' type."""

_PLAIN = frozenset((int, float, bool, str, type(None)))


def as_plain(value: Any) -> Any:
    """A NumPy scalar as Python's int, float or bool; anything else as it is."""
    if type(value) not in _PLAIN and getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def text_of(value: object) -> str:
    """The repr of a value, or only its class where that fails: it may nest more deeply than Python calls, be
    an integer of too many digits, or of any foreign class."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def listed(value: Any) -> tuple[Any, ...] | None:
    """The items of a sequence; None for what is none, and for text and bytes."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return tuple(value)
    return None


def as_tuple(value: Any) -> Any:
    """A list, tuple, range or array as a tuple of plain values; anything else as it is.

    A named tuple, such as a ScaleBias, keeps its type. Strings and whatever else is no sequence of numbers
    stay untouched: the validator says what is wrong.
    """
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return type(value)(*map(as_plain, value))
    if isinstance(value, list | tuple | range):
        return tuple([as_plain(item) for item in value])
    dimensions = getattr(value, "ndim", None)  # of a class the attribute itself
    if isinstance(dimensions, int) and dimensions > 0 and hasattr(value, "tolist"):
        return tuple(value.tolist())
    return value


def as_member(members: type[IntEnum] | type[IntFlag], value: Any) -> Any:
    """The member of an enumeration that a value names: by its name in any case, and a TensorDataType also by
    the type that libraries of arrays call so, whose truth values are UINT8. Anything else as it is.

    >>> as_member(TensorDataType, "float32")
    <TensorDataType.FLOAT32: 1>
    """
    if type(value) is members or value is None:
        return value
    name = value
    if members is TensorDataType and not isinstance(value, str | int) and getattr(value, "isnative", True):
        # NumPy's dtypes and scalar types, and PyTorch's dtypes, which print as "torch.float32".
        name = getattr(value, "name", None) or getattr(value, "__name__", None) or _text(value)
        name = {"bool": "uint8", "bool_": "uint8"}.get(name, name) if isinstance(name, str) else value
    return members.__members__.get(name.upper(), value) if isinstance(name, str) else value


def _text(value: Any) -> str:
    try:
        return str(value).rpartition(".")[2]
    except Exception:  # whatever a foreign __str__ raises
        return ""
