"""The declarations of a model's inputs and outputs. This module works without the `onnx` package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.across_forks import importing
from opendml.late_dataclass import dataclass

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class TensorInfo:
    """A declared input or output of a model.

    Args:
        name: its name.
        type: its NumPy type; None: it is no tensor, or a tensor of strings.
        sizes: for each dimension a number, the name of a symbolic size, or None (any); None: any rank.
    """

    name: str
    type: np.dtype[Any] | None
    sizes: tuple[int | str | None, ...] | None

    @property
    def _assumed_sizes(self) -> tuple[int, ...]:
        """The sizes, with 1 for each open one, as in DxDispatch."""
        return tuple(size if isinstance(size, int) and size > 0 else 1 for size in self.sizes or ())

    def _problem(self, type: np.dtype[Any] | None, sizes: Sequence[Any] | None) -> str:
        """Return how a type and sizes differ from those declared, in words; "" if they do not.

        Args:
            type, sizes: those of an array; None for a sequence.
        """
        if type is None or sizes is None:
            return "" if self.type is None else f"is a list; must be a tensor of {self.type.name}"
        if self.type not in (None, type):
            return f"is of type {type.name}; must be {self.type}"
        if self.sizes is not None and not fits(sizes, self.sizes):
            found = ", ".join(str(size) if isinstance(size, int) else "?" for size in sizes)
            wanted = ", ".join("?" if size is None else str(size) for size in self.sizes)
            return f"has sizes [{found}]; must be [{wanted}]"
        return ""

    def to_json(self) -> list[Any]:
        """Return the declaration as JSON."""
        return [self.name, None if self.type is None else type_text(self.type), self.sizes]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> TensorInfo:
        """Return the declaration that `to_json` has made JSON of."""
        name, type, sizes = data
        return cls(name, None if type is None else type_of(type), None if sizes is None else tuple(sizes))


def fits(given: Sequence[int], sizes: Sequence[int | str | None]) -> bool:
    """Return whether sizes agree with declared ones, of which only numbers above 0 bind."""
    if len(given) != len(sizes):
        return False
    for size, each in zip(given, sizes, strict=True):
        if isinstance(each, int) and each > 0 and isinstance(size, int) and size != each:
            return False
    return True


def type_text(type: np.dtype[Any]) -> str:
    """Return a text of a type of NumPy or ml_dtypes, from which `type_of` makes it."""
    return type.str if type.isbuiltin == 1 else type.name


def type_of(text: str) -> np.dtype[Any]:
    """Return the type of a text.

    Raises:
        ValueError: there is none.
    """
    try:
        return np.dtype(text)
    except TypeError as error:
        with importing:
            import ml_dtypes  # A tenth of the time in which a known model is loaded.
        if not hasattr(ml_dtypes, text):
            raise ValueError(f"{text!r} is no type") from error
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, text))
        return found


def tensor_info(value: onnx.ValueInfoProto) -> TensorInfo:
    """Return the declaration of an input or an output."""
    with importing:
        from opendml.frontends.onnx.element_types import dtype_of
        from opendml.frontends.onnx.package import onnx
        from opendml.frontends.onnx.values import sizes_of_type
    element = value.type.tensor_type.elem_type
    if element in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
        return TensorInfo(value.name, None, sizes_of_type(value.type))
    return TensorInfo(value.name, dtype_of(element), sizes_of_type(value.type))
