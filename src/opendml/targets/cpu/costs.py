"""Estimates of the work of kernels on the CPU, in cycles of one core: the terms by which candidates are
compared.

The rates are those of a `CpuMachine`. The fractions below are not measured one by one. They are chosen so
that candidates change places where measurements on two-core AVX-512 and AVX2 machines put the limits between
them: 16 groups if elements are read again, 128 if they are read once, and five eighths of a core's second
cache for a group.
"""

from __future__ import annotations

from opendml.targets.cpu.launch import CpuQuery

_IDLE_ITEMS = 8
"""Threads end apart by the time of one of their items. So this number, over the items, is the fraction of the
work for which some threads are idle; about the threads of a usual machine."""
_CHUNKED_ONCE = 0.0625
"""Fraction of the work that merging the states of chunks takes, if nothing is read twice."""
_CHUNKED_AGAIN = 0.5
"""That fraction if elements are read again. After each pass, threads wait for each other."""
_MANY_ROWS = 0.72
"""Fraction of the time to read memory if many rows are read at once and the next ones are prefetched. One
thread of an AVX-512 machine read 10.6 rather than 7.6 GB/s."""
_CHUNKED_SCAN = 0.21
"""The fraction of _CHUNKED_ONCE for a scan, whose chunks take two launches and little merging."""


def whole(query: CpuQuery, items: int, fits: bool, reads: int) -> dict[str, float]:
    """Return the terms of groups that one thread each reads several times. `fits`: its cache holds them."""
    host, bytes = query.machine, _bytes(query)
    far, cycles = host.memory_cycles(bytes), host.cache_cycles if fits else host.memory_cycles
    near = cycles(bytes) * (reads - 1)
    return {"memory": far, "caches": near, "idle": (far + near) * _IDLE_ITEMS / items}


def chunked(query: CpuQuery, reads: int, is_scan: bool = False) -> dict[str, float]:
    """Return the terms of groups in chunks, which all threads share, and read several times."""
    far = query.machine.memory_cycles(_bytes(query))
    near = query.machine.cache_cycles(_bytes(query)) * (reads - 1)
    share = _CHUNKED_SCAN if is_scan else _CHUNKED_ONCE if reads == 1 else _CHUNKED_AGAIN
    return {"memory": far, "caches": near, "chunks": (far + near) * share}


def many_rows(query: CpuQuery, in_chunks: bool = False) -> dict[str, float]:
    """Return the terms of groups that are read once, many rows at a time."""
    terms = chunked(query, 1)
    return {"memory": terms["memory"] * _MANY_ROWS} | ({"chunks": terms["chunks"]} if in_chunks else {})


def _bytes(query: CpuQuery) -> int:
    """Return the bytes of the operands that move with the elements."""
    nest = query.nest
    return nest.group_count * nest.row_count * nest.inner.count * nest.step_bytes
