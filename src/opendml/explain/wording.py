"""Numbers as people read them."""

from __future__ import annotations


def time_text(seconds: float) -> str:
    """Seconds with three digits: "12.3 µs"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{_three(seconds / scale)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def bytes_text(count: float) -> str:
    """Bytes with three digits: "4.00 MB"."""
    return _scaled(count, "B")


def count_text(count: float) -> str:
    """A number with three digits: "2.10 G"."""
    return _scaled(count, "").rstrip()


def _scaled(count: float, unit: str) -> str:
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= scale:
            return f"{_three(count / scale)} {prefix}{unit}"
    return f"{count:.0f} {unit}"


def _three(number: float) -> str:
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f}"
