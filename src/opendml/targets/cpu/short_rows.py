"""The search for short rows of results that follow each other in memory: alone, each is too short to be
written past the caches."""

from __future__ import annotations

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import LoopNest
from opendml.program.sizes import hint_of

GATHERED_BYTES = 512
"""Bytes of gathered rows from which on they are written: so few that the next ones are computed meanwhile."""
LONGEST_ROW = 4 * 1024
"""Bytes of a row that is gathered, at most."""
_LEAST_RUN = 8 * 1024
"""Bytes of rows that follow each other, at least. The ends of each run are written through the caches."""
_MOST_STREAMS = 4
"""Streams of a kernel, at most: each takes code of its own."""


def streams_of(
    kernel: Kernel, nest: LoopNest, bundled: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """Return the stores whose rows together follow each other: those of a tensor, of bundles, or of parts
    that are joined. Stores are numbered behind the loads. The first of each stream has the least address."""
    chains: list[tuple[int, ...]] = []
    for unit in _units(kernel, nest, bundled):
        if chains and _follows(kernel, nest, chains[-1], unit):
            chains[-1] += unit
        else:
            chains.append(unit)
    found = sorted(chain for chain in chains if _is_stream(kernel, nest, chain))
    return tuple(found) if len(found) <= _MOST_STREAMS else ()


def _follows(kernel: Kernel, nest: LoopNest, before: tuple[int, ...], unit: tuple[int, ...]) -> bool:
    """Return whether in each row a unit begins where the stores before it end."""
    first, next = (kernel.stores[numbers[0] - len(kernel.loads)] for numbers in (before, unit))
    alike = _moves(kernel, nest, before[0]) == _moves(kernel, nest, unit[0])
    return alike and next.offset - first.offset == _row_bytes(kernel, nest, before)


def _is_stream(kernel: Kernel, nest: LoopNest, numbers: tuple[int, ...]) -> bool:
    """Return whether rows of these stores are short, and many follow each other."""
    row = run = _row_bytes(kernel, nest, numbers)
    for loop in reversed(nest.groups):
        if loop.strides[numbers[0]] != run:
            break
        run *= loop.count
    return row <= LONGEST_ROW and hint_of(run) >= _LEAST_RUN


def _row_bytes(kernel: Kernel, nest: LoopNest, numbers: tuple[int, ...]) -> int:
    """Return the bytes that these stores write in a row."""
    return nest.inner.count * sum(kernel.stores[number - len(kernel.loads)].type.bytes for number in numbers)


def _units(kernel: Kernel, nest: LoopNest, bundled: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
    """Return the stores and the bundles that are written as whole vectors, in the order of addresses."""
    first = len(kernel.loads)
    together = [bundle for bundle in bundled if bundle[0] >= first]
    alone = [
        (number,)
        for number, store in enumerate(kernel.stores, first)
        if nest.inner.strides[number] == store.type.bytes
    ]

    def address(unit: tuple[int, ...]) -> tuple[tuple[object, ...], int]:
        return _moves(kernel, nest, unit[0]), kernel.stores[unit[0] - first].offset

    return sorted([*together, *alone], key=address)


def _moves(kernel: Kernel, nest: LoopNest, number: int) -> tuple[object, ...]:
    """Return a key of the stores of one tensor."""
    store = kernel.stores[number - len(kernel.loads)]
    strides = tuple(loop.strides[number] for loop in (*nest.groups, nest.inner))
    return store.buffer or 0, store.type.name, strides, store.advance, store.steps
