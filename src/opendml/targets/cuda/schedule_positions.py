"""The way to find positions of elements that hold: each line has as many blocks as keep the device busy."""

from __future__ import annotations

from opendml.late_dataclass import dataclass
from opendml.targets.common.candidates import Estimate
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.launch import POSTS_BYTES, CudaLaunch, CudaQuery
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES

_THREADS, _RESIDENT = 512, 2
"""Threads of a block, and such blocks on a multiprocessor."""
_WARP = 32
"""Threads of a warp, and elements of a word."""
_BATCH = 16
"""Words that a warp finds at a time: it reads a line of a cache for each."""
_WORD_BYTES = 4
"""Bytes of a word."""
_RESERVED_BYTES = 2048
"""Bytes of shared memory that a block uses beside its words, or cannot have."""


@dataclass(frozen=True, slots=True)
class Waves:
    """Waves of `team` blocks for each line, whose warps find `slice` words each."""

    team: int
    slice: int


def price_positions(query: CudaQuery) -> Estimate[Waves]:
    """Price waves that take whole lines where the words of their elements fit the shared memory."""
    nest, machine = query.nest, query.machine
    lines, elements, warps = nest.group_count, nest.row_count * nest.inner.count, _THREADS // _WARP
    batches = -(-elements // (_THREADS * _BATCH))
    team = max(1, min(_RESIDENT * machine.multiprocessors // lines, batches))
    most = (machine.shared_bytes // _RESIDENT - _RESERVED_BYTES) // (warps * _WORD_BYTES * _BATCH)
    slice = _BATCH * min(-(-batches // team), most)
    bytes = lines * elements * sum(access.type.bytes for access in nest.accesses if not access.counter)
    return Estimate(Waves(team, slice), {"memory": reading(machine, bytes)})


def construct_positions(query: CudaQuery, choice: Waves) -> CudaLaunch:
    """Return the launch of waves."""
    nest, team, slice = query.nest, choice.team, choice.slice
    lines, elements = nest.group_count, nest.row_count * nest.inner.count
    constants = {
        "THREADS": _THREADS,
        "BLOCKS": _RESIDENT,
        "BATCH": _BATCH,
        "TEAM": int(team > 1),
        "ROW": _row(query),
    }
    wave = team * _THREADS * slice
    pattern = nest.pattern(CudaMode.POSITIONS, (lines, elements + wave), constants)
    words = launch_words(
        pattern.mode, units=elements, row_length=nest.inner.count, warp_words=slice, team=team
    )
    return CudaLaunch(
        pattern,
        lines * team,
        _THREADS,
        nest.given() | words,
        shared_bytes=_THREADS // _WARP * slice * _WORD_BYTES,
        cooperative=team > 1,
        counters_bytes=POSTS_BYTES * lines * team if team > 1 else 0,
    )


def _row(query: CudaQuery) -> int:
    """Return how many stores of an element move together: all, if they are a row in memory that one access
    can write; else one."""
    nest = query.nest
    numbers = [number for number, each in enumerate(nest.accesses) if each.step is not Step.NONE]
    stores = [number for number in numbers if number >= len(nest.loads)]
    if not stores:
        return 1
    first, *_ = stores
    size = nest.accesses[first].type.bytes
    row_bytes = size * len(stores)
    for place, number in enumerate(stores):
        store = nest.accesses[number]
        if (store.near, store.like, store.ahead) != (first, nest.accesses[first].like, place * size):
            return 1
    distances = [loop.strides[first] for loop in (*nest.groups, *nest.rows, nest.inner)]
    is_aligned = not any(each % row_bytes for each in (query.alignments[first], *distances))
    return len(stores) if is_aligned and row_bytes in (2, 4, 8, VECTOR_BYTES) else 1
