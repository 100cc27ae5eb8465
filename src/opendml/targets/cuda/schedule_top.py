"""Decides how the least elements of lines are found: in shared memory, by blocks that keep what may be among
them, or, where too many are wanted for that, by sorting lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, CudaQuery, power_of_two
from opendml.targets.cuda.parameters import Words
from opendml.targets.cuda.pattern import CudaMode, CudaPattern

_LEAST_SORTED = 32
_MOST_SORTED_BYTES = 32 * 1024
"""Words that a block finds at least, and their bytes at most."""
_THREADS = {False: (128, 512), True: (256, 1024)}
"""Threads of a block that has one line, or lines beside each other: where these are many, and where they are
few."""
_KEEP_BYTES = 32
"""Bytes of keys that a thread takes in at a time."""
_MOST_ROOM = 128 * 1024
"""Most bytes of words in the shared memory of a block that has several lines."""
_ACROSS_BYTES = 32
"""Bytes of lines beside each other that a block reads together."""
_RESIDENT_THREADS, _RESERVED_BYTES = 1024, 2048
"""Threads on a multiprocessor, and bytes of shared memory that a block has beside its words."""
_TILE_BYTES, _TILE_THREADS, _TILE_BLOCKS = 32 * 1024, 512, 2
"""What a block sorts at a time, with how many threads, and such blocks on a multiprocessor."""


def schedule_top(query: CudaQuery, count: int) -> CudaLaunch:
    """The launch that finds the `count` least elements of each line."""
    words = max(_LEAST_SORTED, power_of_two(count))
    if words * _word_bytes(query) > _MOST_SORTED_BYTES:
        return _sort(query, count)
    return _find(query, count, _way(query, words))


@dataclass(frozen=True, slots=True)
class _Way:
    """Blocks of `together` lines, or slices of lines, by `span` threads each, which take in `keep` elements
    at a time. Of the words that `room` is for, `most` are kept when there are more than `limit`, and `words`
    are sorted in the end. A multiprocessor runs `blocks` such blocks, `team` share a line."""

    together: int
    span: int
    keep: int
    room: int
    limit: int
    most: int
    words: int
    blocks: int
    team: int


def _way(query: CudaQuery, words: int) -> _Way:
    nest, machine, word_bytes = query.nest, query.machine, _word_bytes(query)
    length, lines = nest.inner.count, nest.group_count
    keep = 2 * _KEEP_BYTES // word_bytes
    together, span = _threads(query, words, keep)
    chunk, most = span * keep, 2 * words
    room = max(chunk, words) if length <= chunk else most + chunk
    limit = most + min(8 * words, chunk // 2)
    bytes = together * room * word_bytes + _RESERVED_BYTES
    blocks = max(1, min(_RESIDENT_THREADS // (span * together), machine.shared_bytes // bytes))
    sharing = machine.multiprocessors * blocks // -(-lines // together)
    # What a block goes through of its line, and of what all blocks have found, is least together.
    team = max(1, min(sharing, length // chunk, math.isqrt(length // words)))
    return _Way(together, span, keep, room, limit, most, words, blocks, team)


def _threads(query: CudaQuery, words: int, keep: int) -> tuple[int, int]:
    """How many lines a block has, and how many of its threads each."""
    nest, across = query.nest, query.nest.lies_across
    lines, whole = nest.group_count, power_of_two(-(-nest.inner.count // keep))
    least, threads = _THREADS[across]
    together = min(_ACROSS_BYTES // _least_bytes(query), power_of_two(lines)) if across else 1
    while together > 1 and (2 * words * together + threads * keep) * _word_bytes(query) > _MOST_ROOM:
        together //= 2
    resident = _RESIDENT_THREADS * query.machine.multiprocessors
    while threads > least and 2 * threads * (lines // together) > resident:
        threads //= 2
    span = min(threads // together, max(32 // together, whole))
    return (together, span) if across else (max(1, least // span), span)


def _find(query: CudaQuery, count: int, way: _Way) -> CudaLaunch:
    nest, word_bytes = query.nest, _word_bytes(query)
    length, lines, threads = nest.inner.count, nest.group_count, way.span * way.together
    vector = _vector(query, way.keep)
    constants = {
        "THREADS": threads,
        "BLOCKS": way.blocks,
        "SPAN": way.span,
        "KEEP": way.keep,
        "ROOM": way.room,
        "LIMIT": way.limit,
        "MOST": way.most,
        "SORTED": way.words,
        "TEAM": int(way.team > 1),
        "ACROSS": int(nest.lies_across),
    }
    units = length // vector
    words = Words(items=lines, units=units, rows=count, slice=-(-units // way.team), team=way.team)
    groups = -(-lines // way.together)
    launch = CudaLaunch(
        _pattern(query, CudaMode.TOP, vector, constants, lines * length),
        groups * way.team,
        threads,
        query.nest.given() | words.named(),
        shared_bytes=way.together * way.room * word_bytes,
    )
    if way.team == 1:
        return launch
    return replace(launch, counters_bytes=4 * groups, scratch_bytes=lines * way.team * count * word_bytes)


def _sort(query: CudaQuery, count: int) -> CudaLaunch:
    nest, machine, word_bytes = query.nest, query.machine, _word_bytes(query)
    length, lines = nest.inner.count, nest.group_count
    whole = power_of_two(length)
    tile = min(whole, _TILE_BYTES // word_bytes)
    tiles = -(-length // tile)
    constants = {"THREADS": _TILE_THREADS, "BLOCKS": _TILE_BLOCKS, "TILE": tile}
    grid = lines if tiles == 1 else min(machine.multiprocessors * _TILE_BLOCKS, lines * tiles)
    words = Words(items=lines, units=length, rows=count, slice=whole, team=grid)
    launch = CudaLaunch(
        _pattern(query, CudaMode.SORT, 1, constants, 2 * lines * whole),
        grid,
        _TILE_THREADS,
        nest.given() | words.named(),
        shared_bytes=tile * word_bytes,
    )
    if tiles == 1:
        return launch
    return replace(launch, cooperative=True, counters_bytes=8, scratch_bytes=lines * whole * word_bytes)


def _pattern(
    query: CudaQuery, mode: CudaMode, vector: int, constants: dict[str, int], units: int
) -> CudaPattern:
    nest = query.nest
    return CudaPattern(
        mode,
        vector,
        False,
        nest.wide(units),
        nest.loads,
        nest.stores,
        nest.kernel.values,
        tuple(constants.items()),
    )


def _vector(query: CudaQuery, keep: int) -> int:
    """Neighbouring elements that a thread reads together."""
    nest = query.nest
    loads = range(len(nest.loads))
    vector = min(keep, VECTOR_BYTES // _least_bytes(query))
    while nest.inner.count % vector or not nest.aligned(vector, query.alignments, loads):
        vector //= 2
    return vector


def _least_bytes(query: CudaQuery) -> int:
    """Of an element that is read."""
    return min((load.type.bytes for load in query.nest.loads if not load.counter), default=VECTOR_BYTES)


def _word_bytes(query: CudaQuery) -> int:
    """Of a key and a position."""
    return 2 * query.nest.kernel.values[0].operands[0].type.bytes
