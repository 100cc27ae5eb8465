"""Values as callers give them, as plain Python values: hashable, and without NumPy's wrapping integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    """A list, tuple, range or one-dimensional array as a tuple of plain values; anything else as it is.

    A named tuple, such as a ScaleBias, keeps its type. Strings and whatever else is no sequence of numbers
    stay untouched: the validator says what is wrong.
    """
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return type(value)(*map(as_plain, value))
    if isinstance(value, list | tuple | range):
        return tuple([as_plain(item) for item in value])
    if getattr(value, "ndim", None) == 1 and hasattr(value, "tolist"):
        return tuple(value.tolist())
    return value
