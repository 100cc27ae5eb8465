"""Forms of runs: which dimensions of arrays may change between runs, and their names and values in a run.

The form of a run says for each dimension of an array either a size or the name of a traced dimension. Runs of
one form share traces as far as the guards of these hold. If the content of an input decides what runs, as the
condition of a branch does, its numbers follow in the form as sizes do. This module works without the `onnx`
package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opendml.frontends.onnx.device_tensor import DeviceTensor
from opendml.program.atoms import GREATEST, LEAST_TRACED

Symbols = Sequence[str | None]
"""For each dimension of a tensor the name of the traced dimension, None for a size that does not change."""
Form = tuple[tuple[int | str, ...], np.dtype[Any]] | None
"""Sizes and names of an array's dimensions, and its type; None: no array."""
Dimensions = dict[str, int]
"""The values of traced dimensions in a run, by name."""
ExactForm = tuple[tuple[Any, ...], ...]
"""The name, the sizes and the type of each input of a run, and the bytes of those that decide what runs."""

MOST_NUMBERS = 64
"""Elements of the largest tensor whose numbers become dimensions when they decide about sizes."""

_ARRAYS = (np.ndarray, DeviceTensor)
"""The classes of arrays that have forms. A union of them would be made anew for each input."""


class RunForms:
    """Makes the forms of the arrays of one run, whose dimensions share names and values.

    Args:
        dimensions: receives the values of their traced dimensions.
    """

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions

    def of(self, name: str, content: Any, symbols: Symbols | None) -> Form:
        """Return the form of an array.

        Args:
            name: its name. Dimensions without a symbol of their own get names made of it.
            content: the array.
            symbols: its traced dimensions; None: all may change.
        """
        if not isinstance(content, _ARRAYS):
            return None
        sizes = content.shape
        if 0 in sizes or (symbols is not None and len(symbols) != len(sizes)):
            return sizes, content.dtype
        found: list[int | str] = list(sizes)
        known = self._dimensions
        for axis, symbol in enumerate(symbols or [""] * len(sizes)):
            if symbol is None or (size := sizes[axis]) > GREATEST:
                continue
            if symbol and known.setdefault(symbol, size) == size:
                found[axis] = symbol
            # Dimensions of one symbol that have other sizes are told apart by names of their own.
            elif known.setdefault(own := f"{name}.{axis}", size) == size:
                found[axis] = own
        return tuple(found), content.dtype


def symbols_of(declared: Iterable[tuple[str, Sequence[int | str | None] | None]]) -> dict[str, Symbols]:
    """Return the names of the open dimensions of inputs; "" for one without a name.

    Args:
        declared: the names of inputs and their sizes. Those of an unknown number of dimensions have none.
    """
    return {
        name: [None if isinstance(size, int) and size > 0 else str(size or "") for size in sizes]
        for name, sizes in declared
        if sizes is not None
    }


def forms_of(
    contents: Mapping[str, Any],
    symbols: Mapping[str, Symbols],
    dimensions: Dimensions,
    decisive: Iterable[str] = (),
) -> tuple[tuple[str, Form], ...]:
    """Return the form of inputs, and add the values of their traced dimensions.

    Args:
        contents: the inputs by name.
        symbols: their dimensions that may change, by name.
        dimensions: receives the values.
        decisive: the inputs whose numbers follow in the form, if `are_numbers`.
    """
    forms = RunForms(dimensions)
    found = [(name, forms.of(name, each, symbols.get(name, ()))) for name, each in contents.items()]
    for name in decisive:
        array: Any = contents.get(name)
        if are_numbers(array):
            found.append((name, (numbers_in(name, array, dimensions), array.dtype)))
    return tuple(found)


def are_numbers(content: Any) -> bool:
    """Return whether a content is an array of few integers or truth values that may be sizes."""
    if not isinstance(content, np.ndarray) or content.dtype.kind not in "biu":
        return False
    return 0 < content.size <= MOST_NUMBERS and content.min() >= 0 and content.max() <= GREATEST


def numbers_in(name: str, array: np.ndarray[Any, Any], dimensions: Dimensions) -> tuple[int | str, ...]:
    """Return the numbers of an array, with names for those that may be sizes, and add their values.

    Args:
        name: the name of the array.
        array: integers.
        dimensions: receives the values.
    """
    found: list[int | str] = []
    for index, number in enumerate(array.flat):
        value = int(number)
        if LEAST_TRACED <= value <= GREATEST:
            dimensions[f"{name}[{index}]"] = value
            found.append(f"{name}[{index}]")
        else:
            found.append(value)
    return tuple(found)


def exact_form(contents: Mapping[str, Any], decisive: Collection[str]) -> ExactForm:
    """Return the exact form of a run on arrays, of which some decide what runs."""
    if not decisive:
        return tuple([(name, each.shape, each.dtype) for name, each in contents.items()])

    def is_few(name: str, array: np.ndarray[Any, Any]) -> bool:
        return name in decisive and array.size <= MOST_NUMBERS

    return tuple(
        [
            (name, each.shape, each.dtype, *([each.tobytes()] if is_few(name, each) else ()))
            for name, each in contents.items()
        ]
    )


def arrays_of(form: ExactForm) -> dict[str, np.ndarray[Any, Any]]:
    """Return inputs of an exact form, zeros but for those that decide what runs."""
    return {
        name: np.frombuffer(content[0], type).reshape(sizes) if content else np.zeros(sizes, type)
        for name, sizes, type, *content in form
    }
