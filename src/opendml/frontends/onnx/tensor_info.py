"""The declarations of a model's inputs and outputs. This module works without the `onnx` package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument


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

    def _zeros(self, named: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """Return an input of zeros, for sizes of named dimensions.

        Raises:
            InvalidArgument: the type or the sizes are not known, or there is no memory for the input.
        """
        declared = (None,) if self.sizes is None else self.sizes
        sizes = [named.get(each, each) if isinstance(each, str) else each for each in declared]
        if self.type is None or not all(isinstance(each, int) and each >= 0 for each in sizes):
            problem = (
                f"{self.sizes} of {self.type}; a tensor of numbers, and a name for each open size, are needed"
            )
            raise InvalidArgument(f"warm_up: input {self.name!r}: {problem}")
        try:
            return np.zeros([each for each in sizes if isinstance(each, int)], self.type)
        except (MemoryError, ValueError) as error:
            raise InvalidArgument(f"warm_up: input {self.name!r}: no memory for sizes {sizes}") from error

    def to_json(self) -> list[Any]:
        """Return the declaration as JSON."""
        return [self.name, None if self.type is None else type_text(self.type), self.sizes]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> TensorInfo:
        """Return the declaration that `to_json` has made JSON of."""
        name, type, sizes = data
        return cls(name, None if type is None else type_of(type), None if sizes is None else tuple(sizes))


def type_text(type: np.dtype[Any]) -> str:
    """Return a text of a type of NumPy or ml_dtypes, from which `type_of` makes it."""
    return type.str if type.isbuiltin == 1 else type.name


def type_of(text: str) -> np.dtype[Any]:
    """Return the type of a text.

    Raises:
        ValueError: there is none.
    """
    with importing:
        import ml_dtypes  # Makes its types known to NumPy.
    type = getattr(ml_dtypes, text, text)
    try:
        return np.dtype(type)
    except TypeError as error:
        raise ValueError(f"{text!r} is no type") from error
