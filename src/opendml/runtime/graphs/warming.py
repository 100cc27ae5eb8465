"""Sizes for which models are compiled before they are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.spec.wording import shown

SizesToWarm = Mapping[str, int | Iterable[int]]
"""For each named dimension a size, or several."""


def size_combinations(
    sizes: SizesToWarm, names: Collection[str], from_zero: Collection[object] = ()
) -> Iterator[dict[str, int]]:
    """Yield each combination of sizes for the named dimensions of a model.

    Args:
        sizes: the sizes by the names of dimensions.
        names: the dimensions of the model.
        from_zero: dimensions that may be 0.

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
        least = 0 if name in from_zero else 1
        if not listed or not all(_is_size(each, least) for each in listed):
            raise InvalidArgument(
                f"warm_up: {name}: {shown(given)}; a size from {least} on is needed, or several"
            )
        lists[name] = [int(each) for each in listed]
    missing = [name for name in names if name not in sizes]
    if missing:
        raise InvalidArgument(f"warm_up: dimension {missing[0]} is missing; the model has {known}")
    for each in product(*lists.values()):
        yield dict(zip(sizes, each, strict=True))


def _is_size(value: object, least: int) -> bool:
    """Return whether a value is a whole number from `least` on, of Python or of NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def zeros_of(
    name: str,
    type: np.dtype[Any] | None,
    declared: Sequence[int | str | None] | None,
    named: Mapping[str, int],
) -> np.ndarray[Any, Any]:
    """Return an input of zeros, for sizes of named dimensions.

    Args:
        name: the input.
        type: its type; None: it has no NumPy type.
        declared: for each dimension a size, a name, or None for any size; None: any rank.
        named: the sizes by name.

    Raises:
        InvalidArgument: the type or the sizes are not known, or there is no memory for the input.
    """
    wanted = (None,) if declared is None else declared
    sizes = [named.get(each, each) if isinstance(each, str) else each for each in wanted]
    plain = [each for each in sizes if isinstance(each, int) and each >= 0]
    if type is None or len(plain) < len(sizes):
        problem = f"{declared} of {type}; a tensor of numbers, and a name for each open size, are needed"
        raise InvalidArgument(f"warm_up: input {name!r}: {problem}")
    try:
        return np.zeros(plain, type)
    except (MemoryError, ValueError) as error:
        raise InvalidArgument(f"warm_up: input {name!r}: no memory for sizes {sizes}") from error
