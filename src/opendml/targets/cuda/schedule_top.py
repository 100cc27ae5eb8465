"""The ways to find the best elements of lines.

Blocks keep the elements that may be among them in shared memory. If too many are wanted for that, lines are
sorted.
"""

from __future__ import annotations

import math
from dataclasses import replace

from opendml.late_dataclass import dataclass
from opendml.program.sizes import least
from opendml.targets.common.candidates import Estimate, Refusal
from opendml.targets.common.launch import power_of_two
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.launch import CudaLaunch, CudaQuery, check_fit
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode, CudaPattern
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

_LEAST_SORTED = 32
_MOST_SORTED_BYTES = 32 * 1024
"""Least words that a block finds, and most bytes of these."""
_THREADS = {False: (128, 512), True: (256, 1024)}
"""Threads of a block of one line, and of lines side by side; if there are many lines, and if few."""
_KEEP_BYTES = 32
"""Bytes of keys that a thread reads at a time."""
_MOST_WORDS_BYTES = 128 * 1024
"""Most bytes of words in the shared memory of a block that has several lines; an estimate."""
_ACROSS_BYTES = 32
"""Bytes of lines side by side that a block reads together: a sector."""
_RESIDENT_THREADS, _RESERVED_BYTES = 1024, 2048
"""Threads on a multiprocessor, and bytes of shared memory that a block uses beside its words."""
_TILE_BYTES, _TILE_THREADS, _TILE_BLOCKS = 32 * 1024, 512, 2
"""Bytes that a block sorts at a time, its threads, and such blocks on a multiprocessor."""


@dataclass(frozen=True, slots=True)
class Best:
    """Blocks of `together` lines, or slices of lines, by `span` threads each, which take in `keep` elements
    at a time, in units of `vector`. Of `capacity` words, `most` are kept when there are more than `limit`,
    and `words` are sorted in the end. A multiprocessor runs `blocks` such blocks, `team` share a line."""

    together: int
    span: int
    keep: int
    vector: int
    capacity: int
    limit: int
    most: int
    words: int
    blocks: int
    team: int


@dataclass(frozen=True, slots=True)
class SortedTiles:
    """Lines, filled up to `whole` words, that are sorted in tiles of `tile` words."""

    whole: int
    tile: int


def price_best(query: CudaQuery) -> Estimate[Best] | Refusal:
    """Price blocks that keep what may be among the best elements."""
    nest, machine, word_bytes = query.nest, query.machine, _word_bytes(query)
    words = max(_LEAST_SORTED, power_of_two(query.nest.placed_count))
    if words * word_bytes > _MOST_SORTED_BYTES:
        return Refusal(f"{words} words take {words * word_bytes} bytes; at most {_MOST_SORTED_BYTES}")
    length, lines = nest.inner.count, nest.group_count
    keep = 2 * _KEEP_BYTES // word_bytes
    together, span = _threads(query, words, keep)
    chunk, most = span * keep, 2 * words
    capacity = max(chunk, words) if length <= chunk else most + chunk
    limit = most + min(8 * words, chunk // 2)
    bytes = together * capacity * word_bytes + _RESERVED_BYTES
    blocks = max(1, min(_RESIDENT_THREADS // (span * together), machine.shared_bytes // bytes))
    sharing = machine.multiprocessors * blocks // -(-lines // together)
    # The elements that a block reads of its line, and of what all blocks have found, are fewest together.
    team = max(1, min(sharing, length // chunk, math.isqrt(length // words)))
    vector = _vector(query, keep)
    choice = Best(together, span, keep, vector, capacity, limit, most, words, blocks, team)
    return Estimate(choice, {"memory": _reading(query)})


def price_sorted(query: CudaQuery) -> Estimate[SortedTiles]:
    """Price the sorting of lines: each pair of tiles is read and written again in every step of a merge."""
    whole, tile_words = power_of_two(query.nest.inner.count), _TILE_BYTES // _word_bytes(query)
    merges = max(1, whole // tile_words).bit_length() ** 2
    terms = {"memory": _reading(query), "merging": 2 * merges * _reading(query)}
    return Estimate(SortedTiles(whole, min(whole, tile_words)), terms)


def _reading(query: CudaQuery) -> float:
    """Return the cycles to read all words of lines from memory."""
    nest = query.nest
    return reading(query.machine, nest.group_count * nest.inner.count * _word_bytes(query))


def _threads(query: CudaQuery, words: int, keep: int) -> tuple[int, int]:
    """Return the lines of a block, and the threads of each line."""
    nest, across = query.nest, query.nest.lies_across
    lines, whole = nest.group_count, power_of_two(-(-nest.inner.count // keep))
    least, threads = _THREADS[across]
    together = min(_ACROSS_BYTES // _least_bytes(query), power_of_two(lines)) if across else 1
    while together > 1 and (2 * words * together + threads * keep) * _word_bytes(query) > _MOST_WORDS_BYTES:
        together //= 2
    resident = _RESIDENT_THREADS * query.machine.multiprocessors
    while threads > least and 2 * threads * (lines // together) > resident:
        threads //= 2
    span = min(threads // together, max(32 // together, whole))
    return (together, span) if across else (max(1, least // span), span)


def construct_best(query: CudaQuery, choice: Best) -> CudaLaunch:
    """Return the launch that keeps what may be among the best elements."""
    nest, word_bytes = query.nest, _word_bytes(query)
    length, lines, threads = nest.inner.count, nest.group_count, choice.span * choice.together
    count, vector, chunk = query.nest.placed_count, choice.vector, choice.span * choice.keep
    check_fit(query, _fits(query, vector) and count <= choice.words)
    check_fit(query, choice.capacity >= choice.most + chunk or length <= chunk)
    constants = {
        "THREADS": threads,
        "BLOCKS": choice.blocks,
        "SPAN": choice.span,
        "KEEP": choice.keep,
        "CAPACITY": choice.capacity,
        "LIMIT": choice.limit,
        "MOST": choice.most,
        "SORTED": choice.words,
        "TEAM": int(choice.team > 1),
        "ACROSS": int(nest.lies_across),
    }
    units = length // vector
    words = launch_words(
        CudaMode.TOP,
        items=lines,
        units=units,
        wanted=count,
        slice_units=-(-units // choice.team),
        team=choice.team,
    )
    groups = -(-lines // choice.together)
    launch = CudaLaunch(
        _pattern(query, CudaMode.TOP, vector, constants, lines * length),
        groups * choice.team,
        threads,
        query.nest.given() | words,
        shared_bytes=choice.together * choice.capacity * word_bytes,
    )
    if choice.team == 1:
        return launch
    return replace(launch, counters_bytes=4 * groups, scratch_bytes=lines * choice.team * count * word_bytes)


def construct_sorted(query: CudaQuery, choice: SortedTiles) -> CudaLaunch:
    """Return the launch that sorts lines."""
    nest, machine, word_bytes = query.nest, query.machine, _word_bytes(query)
    length, lines = nest.inner.count, nest.group_count
    whole, tile = choice.whole, choice.tile
    check_fit(query, length <= whole)
    tiles = -(-length // tile)
    constants = {"THREADS": _TILE_THREADS, "BLOCKS": _TILE_BLOCKS, "TILE": tile}
    grid = lines if tiles == 1 else least(machine.multiprocessors * _TILE_BLOCKS, lines * tiles)
    words = launch_words(
        CudaMode.SORT, items=lines, units=length, wanted=query.nest.placed_count, line_words=whole, team=grid
    )
    launch = CudaLaunch(
        _pattern(query, CudaMode.SORT, 1, constants, 2 * lines * whole),
        grid,
        _TILE_THREADS,
        nest.given() | words,
        shared_bytes=tile * word_bytes,
    )
    if tiles == 1:
        return launch
    return replace(launch, cooperative=True, counters_bytes=8, scratch_bytes=lines * whole * word_bytes)


def _pattern(
    query: CudaQuery, mode: CudaMode, vector: int, constants: dict[str, int], units: int
) -> CudaPattern:
    nest = query.nest
    return nest.pattern(mode, (units,), constants, vector=vector)


def _vector(query: CudaQuery, keep: int) -> int:
    """Return how many neighbouring elements a thread reads together."""
    vector = min(keep, VECTOR_BYTES // _least_bytes(query))
    while not _fits(query, vector):
        vector //= 2
    return vector


def _fits(query: CudaQuery, vector: int) -> bool:
    """Return whether a thread may read `vector` neighbouring elements together."""
    nest = query.nest
    return nest.inner.count % vector == 0 and nest.aligned(vector, query.alignments, range(len(nest.loads)))


def _least_bytes(query: CudaQuery) -> int:
    """Return the bytes of the narrowest element that is read."""
    return min((load.type.bytes for load in query.nest.loads if not load.counter), default=VECTOR_BYTES)


def _word_bytes(query: CudaQuery) -> int:
    """Return the bytes of a key and a position."""
    return 2 * query.nest.kernel.values[0].operands[0].type.bytes
