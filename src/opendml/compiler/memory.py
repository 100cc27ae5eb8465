"""The memory plan: temporaries share one arena where their lifetimes do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Offsets of temporaries of `sizes` bytes, and the bytes of the arena.

    A lifetime is the first and the last step at which a temporary holds data, both included. The largest are
    placed first, each at the lowest offset where nothing alive at the same time lies.
    """
    offsets = [0] * len(sizes)
    placed: list[int] = []
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        first, last = lifetimes[index]
        others = [other for other in placed if lifetimes[other][0] <= last and first <= lifetimes[other][1]]
        offset = 0
        for other in sorted(others, key=lambda other: offsets[other]):
            if offset + sizes[index] <= offsets[other]:
                break
            offset = max(offset, aligned(offsets[other] + sizes[other]))
        offsets[index] = offset
        placed.append(index)
    total = max((aligned(offset + size) for offset, size in zip(offsets, sizes, strict=True)), default=0)
    return offsets, total


def aligned(offset: int) -> int:
    """The first multiple of ALIGNMENT from an offset on."""
    return -(-offset // ALIGNMENT) * ALIGNMENT
