"""Sizes that follow from the dimensions of a run, and the guards under which a trace serves other runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opendml.frontends.onnx.forms import MOST_NUMBERS, Dimensions, Form, numbers_in
from opendml.frontends.onnx.values import (
    Array,
    Known,
    KnownSizes,
    RuntimeValue,
    Type,
    Value,
    is_same,
    known_numbers,
)
from opendml.program.atoms import Dimension
from opendml.program.size_values import Values
from opendml.program.sizes import Size, is_traced, value_at
from opendml.program.trace import Trace


def numbers_of(name: str, array: Array, dimensions: Dimensions | None) -> Hashable:
    """Return the key of a content that decides how a trace goes on.

    Few integers become dimensions, where they may be sizes; others are exact.

    Args:
        name: the name of the tensor.
        array: its content.
        dimensions: receives the dimensions; None: all numbers are exact.
    """
    if array.dtype.hasobject:
        return tuple(array.flat)
    if dimensions is None or array.dtype.kind not in "iu" or array.size > MOST_NUMBERS:
        return array.tobytes()
    return numbers_in(name, array, dimensions)


def traced(named: Iterable[int | str], dimensions: Mapping[str, int]) -> tuple[int, ...]:
    """Return sizes for the sizes and the names of a form, with the values of this run as hints."""
    named = tuple(named)
    trace = Trace({each: Dimension(dimensions[each], 1) for each in named if isinstance(each, str)})
    return tuple([trace.size(each) if isinstance(each, str) else each for each in named])


def traced_value(
    content: Any, form: Form, dimensions: Mapping[str, int], is_own: bool = False
) -> Known | RuntimeValue:
    """Return the value for a content of a run; an empty array is known entirely."""
    if form is None:
        return RuntimeValue(None, None)
    if content.size == 0:
        return Known(content)
    return RuntimeValue(traced(form[0], dimensions), form[1], is_own)


def value_with(value: Value, dimensions: Mapping[str, int]) -> Value:
    """Return a value with its sizes stated by some dimensions."""
    if isinstance(value, KnownSizes):
        elements = [value_at(each, dimensions) for each in value.elements.flat]
        return known_numbers(elements, value.sizes, value.type)
    if isinstance(value, RuntimeValue) and any(map(is_traced, value.sizes or ())):
        return replace(value, sizes=tuple([value_at(size, dimensions) for size in value.sizes or ()]))
    return value


class SizesOfRun:
    """Tuples of sizes that each run evaluates for its dimensions together.

    Args:
        groups: the tuples, of sizes of one trace.
    """

    def __init__(self, groups: Iterable[Sequence[int]]) -> None:
        self.groups = [tuple(each) for each in groups]
        flat = [each for group in self.groups for each in group]
        self._values = Values(flat) if any(isinstance(each, Size) for each in flat) else None

    def __call__(self, dimensions: Mapping[str, int]) -> Sequence[tuple[int, ...]]:
        """Return the tuples as plain integers."""
        if self._values is None:
            return self.groups
        flat = iter(self._values(dimensions).tolist())
        return [tuple([next(flat) for _ in group]) for group in self.groups]


class KnownContents:
    """The contents of known values by name, of which each run evaluates those that follow from sizes.

    Args:
        values: values, of which others than known ones are left out.
    """

    def __init__(self, values: Mapping[str, Value]) -> None:
        traced = {name: value for name, value in values.items() if isinstance(value, KnownSizes)}
        self._same = {name: value.content for name, value in values.items() if is_same(value)}
        self._traced = [(name, value.sizes, value.type) for name, value in traced.items()]
        self._numbers = [value.elements.reshape(-1).tolist() for value in traced.values()]
        self.names = self._same.keys() | traced.keys()

    def traced(self) -> Iterator[tuple[str, tuple[int, ...], Type, list[float]]]:
        """Yield the names, sizes, types and elements of contents that follow from sizes."""
        for each, numbers in zip(self._traced, self._numbers, strict=True):
            yield *each, numbers

    def __call__(self, dimensions: Mapping[str, int]) -> dict[str, Any]:
        """Return the contents for the dimensions of a run."""
        if not self._traced:
            return self._same
        arrays = {
            name: np.array([value_at(each, dimensions) for each in numbers], type).reshape(sizes)
            for name, sizes, type, numbers in self.traced()
        }
        return {**self._same, **arrays}
