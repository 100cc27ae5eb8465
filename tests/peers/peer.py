"""What all comparisons with other systems share: random arrays, the immediate call.

The examples are few and always the same by default; OPENDML_EXAMPLES asks for that many new ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import opendml as dml
from opendml import Unsupported
from opendml.operators.registry import implemented
from opendml.runtime.memory.host_array import Array
from tests.running import device_kinds

DEVICES = device_kinds()
FLOATS = ("float32", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 6e-8, -1e-40, 6e4, -3e38)

examples = settings(
    max_examples=int(os.environ.get("OPENDML_EXAMPLES", "4")),
    derandomize="OPENDML_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Random:
    """Arrays of random contents in random layouts, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def shape(self, rank: int | None = None, most: int = 300) -> tuple[int, ...]:
        """Sizes of `rank` dimensions, without it of 1 to 5, with at most about `most` elements."""
        rank = rank or int(self.generator.integers(1, 6))
        side = max(2, int(most ** (1 / rank)))
        return tuple(self.generator.integers(1, side + 1, rank).tolist())

    def of_type(self, names: Sequence[str]) -> np.dtype[Any]:
        """One of the types."""
        return np.dtype(names[int(self.generator.integers(len(names)))])

    def axes(self, rank: int) -> list[int]:
        """At least one axis."""
        count = int(self.generator.integers(1, rank + 1))
        return sorted(self.generator.choice(rank, count, replace=False).tolist())

    def values(
        self,
        dtype: np.dtype[Any],
        shape: Sequence[int],
        low: float = -1e3,
        high: float = 1e3,
        special: bool = True,
    ) -> Array:
        """Numbers between `low` and `high`, small and large ones, of a float type with `special` also
        infinities, NaN, zeros of both signs and denormals; in any layout."""
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            bounds = max(int(low), limits.min), min(int(high), limits.max)
            return self.laid_out(self.generator.integers(*bounds, shape, dtype, endpoint=True))
        numbers = self.generator.uniform(low, high, shape)
        if low < 0 < high:
            numbers *= 10.0 ** self.generator.integers(-4, 1, shape)
        if special:
            chosen = self.generator.choice(np.array(_SPECIAL), shape)
            numbers = np.where(self.generator.random(shape) < 0.25, chosen, numbers)
        with np.errstate(over="ignore"):
            return self.laid_out(numbers.astype(dtype))

    def full(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """Integers over the whole range of their type, its ends among them."""
        limits = np.iinfo(dtype)
        numbers = self.generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        ends = self.generator.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
        return self.laid_out(np.where(self.generator.random(shape) < 0.25, ends, numbers).astype(dtype))

    def laid_out(self, array: Array) -> Array:
        """The array packed, with permuted dimensions, or with gaps in its last one."""
        match int(self.generator.integers(3)):
            case 0:
                return np.ascontiguousarray(array)
            case 1:
                order = self.generator.permutation(array.ndim)
                return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))
            case _:
                wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
                wide[..., ::2] = array
                return wide[..., ::2]


seeds = st.integers(0, 2**32 - 1).map(Random)
every_device = pytest.mark.parametrize("device", DEVICES)


def on_random(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on every device, with several arguments `random`."""
    run: Callable[..., None] = every_device(given(random=seeds)(examples(test)))
    return run


def computed(operator: str, *arrays: Array | None, device: str, **attributes: Any) -> Array:
    """The immediate call. Skips the test when the operator, or its type, cannot be run yet."""
    if operator not in implemented():
        pytest.skip(f"{operator} cannot be run yet")
    function: Callable[..., Array] = getattr(dml, operator.lower())
    try:
        return function(*arrays, device=device, **attributes)
    except Unsupported as error:
        pytest.skip(str(error))


def exact(array: Array) -> Array:
    """The numbers in float64, where the peers compute."""
    return array.astype(np.float64)
