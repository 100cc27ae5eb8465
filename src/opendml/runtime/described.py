"""Describe tensors and buffers in reprs, without their contents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opendml.program.program import Layout
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.runtime.objects.tensor_fields import TensorField


def tensor_text(name: str, layout: Layout) -> str:
    """Return the name, type and sizes of a tensor: "x FLOAT32 [2, 3]"."""
    return f"{name} {layout.type.name} {sizes_text(layout.sizes)}"


def sizes_text(sizes: Iterable[int]) -> str:
    """Return sizes as text, traced ones as expressions: "[2, batch]"."""
    parts = [f"{size}".removeprefix("<").removesuffix(">") for size in sizes]
    return f"[{', '.join(parts)}]"


def fields_text(fields: Sequence[TensorField]) -> list[str]:
    """Describe the tensors that are present."""
    return [tensor_text(field.name, field.layout) for field in fields if field.layout is not None]


def signature(inputs: Iterable[str], outputs: Iterable[str]) -> str:
    """Return inputs and outputs as "x FLOAT32 [2, 3] -> y FLOAT32 [2, 3]"."""
    return f"{', '.join(inputs) or 'no inputs'} -> {', '.join(outputs)}"


def buffer_text(buffer: Any) -> str:
    """Return the kind, type and shape of an array, or a short repr of anything else."""
    dtype, shape = getattr(buffer, "dtype", None), getattr(buffer, "shape", None)
    if dtype is None or not isinstance(shape, tuple):
        return shown(buffer)
    return f"<{type(buffer).__name__} {dtype} {list(shape)}>"
