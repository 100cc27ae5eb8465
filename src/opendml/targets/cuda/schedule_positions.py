"""Decides how the positions of what holds are found: by as many blocks for each line as keep the device
busy."""

from __future__ import annotations

from opendml.targets.common.pattern import Step
from opendml.targets.cuda.launch import POSTS_BYTES, VECTOR_BYTES, CudaLaunch, CudaQuery
from opendml.targets.cuda.parameters import Words
from opendml.targets.cuda.pattern import CudaMode, CudaPattern

_THREADS, _RESIDENT = 512, 2
"""Threads of a block, and such blocks on a multiprocessor."""
_WARP = 32
"""Threads of one, and the elements of a word."""
_BATCH = 16
"""Words that a warp finds at a time: it reads a line of a cache for each."""
_WORD_BYTES = 4
"""Bytes of a word."""
_RESERVED_BYTES = 2048
"""Bytes of shared memory that a block has beside its words, or cannot have."""


def schedule_positions(query: CudaQuery) -> CudaLaunch:
    """The launch that finds them. A wave has whole lines where the words of their elements fit the shared
    memory."""
    nest, machine = query.nest, query.machine
    lines, elements, warps = nest.group_count, nest.row_count * nest.inner.count, _THREADS // _WARP
    batches = -(-elements // (_THREADS * _BATCH))
    team = max(1, min(_RESIDENT * machine.multiprocessors // lines, batches))
    room = machine.shared_bytes // _RESIDENT - _RESERVED_BYTES
    slice = _BATCH * min(-(-batches // team), room // (warps * _WORD_BYTES * _BATCH))
    constants = {
        "THREADS": _THREADS,
        "BLOCKS": _RESIDENT,
        "BATCH": _BATCH,
        "TEAM": int(team > 1),
        "ROW": _row(query),
    }
    wave = team * _THREADS * slice
    pattern = CudaPattern(
        CudaMode.POSITIONS,
        1,
        False,
        nest.wide(max(lines, elements + wave)),
        nest.loads,
        nest.stores,
        nest.kernel.values,
        tuple(constants.items()),
    )
    words = Words(items=lines, units=elements, inner=nest.inner.count, slice=slice, team=team)
    return CudaLaunch(
        pattern,
        lines * team,
        _THREADS,
        nest.given() | words.named(),
        shared_bytes=warps * slice * _WORD_BYTES,
        cooperative=team > 1,
        counters_bytes=POSTS_BYTES * lines * team if team > 1 else 0,
    )


def _row(query: CudaQuery) -> int:
    """How many stores of elements move together: all of them, if they are a row in memory that one access can
    write; else one."""
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
