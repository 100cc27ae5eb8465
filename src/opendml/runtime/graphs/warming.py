"""Sizes for which models are compiled before they are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from opendml.errors import InvalidArgument
from opendml.spec.wording import shown

SizesToWarm = Mapping[str, int | Sequence[int]]
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
    for name, given in sizes.items():
        if name not in names:
            raise InvalidArgument(f"warm_up: dimension {shown(name)} is unknown; the model has {known}")
        listed = [given] if isinstance(given, int) else list(given)
        if not listed or not all(type(each) is int and each > 0 for each in listed):
            raise InvalidArgument(f"warm_up: {name}: {shown(given)}; a size from 1 on is needed, or several")
    missing = [name for name in names if name not in sizes]
    if missing:
        raise InvalidArgument(f"warm_up: dimension {missing[0]} is missing; the model has {known}")
    lists = [[each] if isinstance(each, int) else list(each) for each in sizes.values()]
    for each in product(*lists):
        yield dict(zip(sizes, each, strict=True))
