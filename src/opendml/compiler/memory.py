"""The memory plan: temporaries share one arena where their lifetimes do not meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from opendml.late_dataclass import dataclass
from opendml.program.sizes import greatest, hint_of, is_traced

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

    Hints decide about traced sizes. Each temporary then begins where those below it end that are alive at the
    same time. So no two overlap, whatever the sizes are. The greatest of several ends is an expression.
    """
    hints = list(map(hint_of, sizes))
    offsets, total = _placed(hints, lifetimes)
    if not any(map(is_traced, sizes)):
        return offsets, total
    ends, below = dict[int, int](), dict[int, set[int]]()
    for index in sorted(range(len(sizes)), key=offsets.__getitem__):
        first, last = lifetimes[index]
        under = {each for each in ends if lifetimes[each][0] <= last and first <= lifetimes[each][1]}
        below[index] = under.union(*[below[each] for each in under])
        # Another one that lies on these ends behind them.
        lower = set().union(*[below[each] for each in under])
        offsets[index] = _end(under - lower, ends)
        ends[index] = offsets[index] + aligned(sizes[index])
    covered = set().union(*below.values())
    return offsets, _end(ends.keys() - covered, ends)


def _end(numbers: Iterable[int], ends: Mapping[int, int]) -> int:
    """Return the greatest of some ends."""
    return greatest(0, *[ends[number] for number in sorted(numbers)])


def _placed(sizes: Sequence[int], lifetimes: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Return the offsets and the bytes for plain sizes."""
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
