"""Sizes for which models are compiled before they are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product
from numbers import Integral
from typing import Any

from opendml.errors import InvalidArgument
from opendml.spec.wording import shown

SizesToWarm = Mapping[str, int | Iterable[int]]
"""For each named dimension a size, or several."""


def combinations(sizes: SizesToWarm, names: Collection[str]) -> Iterator[dict[str, int]]:
    """Yield each combination of sizes for the named dimensions of a model.

    Raises:
        InvalidArgument: a name that the model does not have, one that is missing, or no sizes.
    """
    if not isinstance(sizes, Mapping):
        raise InvalidArgument(
            f"warm_up: {shown(sizes)}; a dict is needed, of sizes by the names of dimensions"
        )
    known = ", ".join(names) or "none"
    lists = {}
    for name, given in sizes.items():
        if name not in names:
            raise InvalidArgument(f"warm_up: dimension {shown(name)} is unknown; the model has {known}")
        try:
            listed: list[Any] = list(given)  # type: ignore[arg-type]
        except TypeError:
            listed = [given]
        if not listed or not all(_is_size(each) for each in listed):
            raise InvalidArgument(f"warm_up: {name}: {shown(given)}; a size from 1 on is needed, or several")
        lists[name] = [int(each) for each in listed]
    missing = [name for name in names if name not in sizes]
    if missing:
        raise InvalidArgument(f"warm_up: dimension {missing[0]} is missing; the model has {known}")
    for each in product(*lists.values()):
        yield dict(zip(sizes, each, strict=True))


def _is_size(value: object) -> bool:
    """Return whether a value is a whole number from 1 on, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0
