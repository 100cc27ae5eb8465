"""The reprs of objects: tensors and buffers in short, never their contents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opendml.program.program import Layout
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.runtime.objects.slots import Slot


def tensor_text(name: str, layout: Layout) -> str:
    """A tensor by its name, type and sizes: "x FLOAT32 [2, 3]"."""
    return f"{name} {layout.type.name} {list(layout.sizes)}"


def slots_text(slots: Sequence[Slot]) -> list[str]:
    """The tensors that are present."""
    return [tensor_text(slot.name, slot.layout) for slot in slots if slot.layout is not None]


def signature(inputs: Iterable[str], outputs: Iterable[str]) -> str:
    """From what to what: "x FLOAT32 [2, 3] -> y FLOAT32 [2, 3]"."""
    return f"{', '.join(inputs) or 'no inputs'} -> {', '.join(outputs)}"


def buffer_text(buffer: Any) -> str:
    """An array by its kind, type and shape; a short repr of anything else."""
    dtype, shape = getattr(buffer, "dtype", None), getattr(buffer, "shape", None)
    if dtype is None or not isinstance(shape, tuple):
        return shown(buffer)
    return f"<{type(buffer).__name__} {dtype} {list(shape)}>"
