"""What the work of a kernel takes on the CPU, in cycles of one core: the terms that candidates are compared
by.

The figures are not measured one by one. They are chosen so that candidates change places where measurements
on two-core AVX-512 and AVX2 machines put the limits between them: 16 groups for what is read again, 128 for
what is read once, and five eighths of a core's second cache for a group.
"""

from __future__ import annotations

from opendml.targets.cpu.launch import CpuQuery

FAR = 0.25
"""Cycles to read a byte from memory."""
NEAR = 0.0625
"""Cycles to read a byte again that a cache holds: a core's own, or the last one for groups in chunks."""
_IDLE_ITEMS = 8
"""Threads end apart by one of the items that they share: the part of the work, times the items, for which
some of them are idle."""
_CHUNKED_ONCE = 0.0625
"""Part of the work that putting states of chunks together takes, where nothing is read twice."""
_CHUNKED_AGAIN = 0.5
"""That part where elements are read again: after each pass, a launch, threads wait for each other."""
_MANY_ROWS = 0.72
"""Part of the time of reading memory where many rows are read at once and the next asked for: 7.6 GB/s
became 10.6 on one thread of an AVX-512 machine."""
_CHUNKED_SCAN = 0.21
"""That part of a scan, whose chunks take two launches and little to put together."""


def whole(query: CpuQuery, items: int, fits: bool, reads: int) -> dict[str, float]:
    """The terms of groups that one thread each reads so many times; `fits`: its own cache holds them."""
    far, near = _bytes(query) * FAR, _bytes(query) * (NEAR if fits else FAR) * (reads - 1)
    return {"memory": far, "caches": near, "idle": (far + near) * _IDLE_ITEMS / items}


def chunked(query: CpuQuery, reads: int, is_scan: bool = False) -> dict[str, float]:
    """The terms of groups in chunks, which all threads share, read so many times."""
    far, near = _bytes(query) * FAR, _bytes(query) * NEAR * (reads - 1)
    share = _CHUNKED_SCAN if is_scan else _CHUNKED_ONCE if reads == 1 else _CHUNKED_AGAIN
    return {"memory": far, "caches": near, "chunks": (far + near) * share}


def many_rows(query: CpuQuery, in_chunks: bool = False) -> dict[str, float]:
    """The terms of groups that are read once, many rows at a time."""
    terms = chunked(query, 1)
    return {"memory": terms["memory"] * _MANY_ROWS} | ({"chunks": terms["chunks"]} if in_chunks else {})


def _bytes(query: CpuQuery) -> int:
    """Bytes of the operands that move with the elements."""
    nest = query.nest
    return nest.group_count * nest.row_count * nest.inner.count * nest.step_bytes
