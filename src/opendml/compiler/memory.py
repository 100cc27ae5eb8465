"""The memory plan: temporaries share one arena where their lifetimes do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 256
"""DirectML's TEMPORARY_BUFFER_ALIGNMENT, in bytes."""


@dataclass(frozen=True, slots=True)
class Temporary:
    """Bytes of an arena that hold data from the step `first` to the step `last`, both included."""

    offset: int
    size: int
    first: int
    last: int


def place(sizes: Sequence[int], lifetimes: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Return the offsets of temporaries of `sizes` bytes, and the bytes of the arena.

    A lifetime is the first and the last step at which a temporary holds data, both included. The largest are
    placed first, each at the lowest offset where nothing alive at the same time lies.
    """
    count = len(sizes)
    # NumPy compares each one with all others: for thousands of them, loops would take seconds.
    begins, ends, starts, stops = np.zeros((4, count), np.int64)
    offsets = [0] * count
    for number, index in enumerate(sorted(range(count), key=lambda index: -sizes[index])):
        begins[number], ends[number] = first, last = lifetimes[index]
        alive = np.flatnonzero((begins[:number] <= last) & (ends[:number] >= first))
        alive = alive[np.argsort(starts[alive], kind="stable")]
        free = np.maximum.accumulate(np.concatenate([[0], stops[alive]]))
        gaps = np.flatnonzero(free[:-1] + sizes[index] <= starts[alive])
        offset = int(free[gaps[0] if len(gaps) else -1])
        offsets[index] = starts[number] = offset
        stops[number] = aligned(offset + sizes[index])
    return offsets, int(stops.max(initial=0))


def aligned(offset: int) -> int:
    """Return the first multiple of ALIGNMENT from an offset on."""
    return -(-offset // ALIGNMENT) * ALIGNMENT
