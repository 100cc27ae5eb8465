"""Pieces of CUDA C++."""

from __future__ import annotations

from collections.abc import Sequence


def function(signature: str, lines: Sequence[str]) -> str:
    """Return a C++ function."""
    return "\n".join([f"DEVICE {signature} {{", *(f"    {line}" for line in lines), "}"])


def template(signature: str, lines: Sequence[str], *sizes: str) -> str:
    """Return a C++ function for units of V elements, or of several sizes."""
    names = ", ".join(f"int {size}" for size in sizes or ("V",))
    return f"template <{names}>\n{function(signature, lines)}"
