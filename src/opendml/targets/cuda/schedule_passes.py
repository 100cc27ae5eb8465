"""Decides how kernels are launched that reduce in other ways than normalizations do, or that scan.

Elements are read from global memory in each pass, one at a time by a thread, neighbours by neighbouring
threads.
"""

from __future__ import annotations

from opendml.program.node import REDUCTIONS, SCANS, ordered
from opendml.targets.cuda.group_source import stage_count
from opendml.targets.cuda.launch import Launch, Nest
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.pattern import Mode, Pattern

_THREADS = 256
_MOST_THREADS = 1024
"""Threads of a block that has one large group."""
_LARGE_GROUP = 16 * 1024
"""Least number of elements of a group that is large."""
_WARP_GROUP = 512
"""Greatest number of elements of a group that a warp, or a part of it, has."""
_COLUMNS = 32
"""Least number of groups side by side that a block has."""
_TEAM_BLOCKS = 2
"""Blocks on a multiprocessor where they share groups."""
_LEAST_UNITS = 16
"""Least number of units of a thread whose block shares a group."""
_WINDOW = 64
"""Greatest number of elements of a group that a thread takes alone, where groups lie side by side."""
_NEAR = 4
"""Greatest distance, in elements, of what neighbouring groups read, where those are windows."""
_MANY_GROUPS = 1024
"""Least number of groups for each multiprocessor where each has one thread."""
_STATE_BYTES = 24
"""Bytes that the state of one reduction takes, at most."""
_KEEP = 4
"""Neighbouring elements that a thread scans."""


def schedule_passes(nest: Nest, machine: Machine) -> Launch:
    """The launch of such a kernel."""
    is_scan = any(node.operation in SCANS for node in ordered(nest.kernel.values))
    nest = nest if is_scan else _windows_abreast(nest)
    columns = not nest.inner_reduced
    units = nest.row_count * (1 if columns else nest.inner.count)
    items = nest.group_count * (nest.inner.count if columns else 1)
    if columns:
        many = items >= machine.multiprocessors * _MANY_GROUPS
        alone = is_scan or (units <= _WINDOW and many)
        span = 1 if alone else min(_THREADS // _COLUMNS, _power_of_two(units))
        threads = _THREADS
    else:
        span = min(32, _power_of_two(units)) if units <= _WARP_GROUP else _THREADS
        threads = max(span, _THREADS)
        if units >= _LARGE_GROUP:
            span = threads = _MOST_THREADS
    has_elements = any(store.strides[axis] for store in nest.kernel.stores for axis in nest.kernel.axes)
    stages = stage_count(nest.kernel.values)
    together = threads // span
    blocks = -(-items // together)
    team = 1
    if stages == 1 and not (has_elements or is_scan):
        team = max(1, min(machine.multiprocessors * _TEAM_BLOCKS // blocks, units // (span * _LEAST_UNITS)))
    slice_units = -(-units // team)
    team = -(-units // slice_units)
    constants = {
        "THREADS": threads,
        "SPAN": span,
        "KEEP": _KEEP,
        "STAGES": stages,
        "HAS_ELEMENTS": int(has_elements),
        "TEAM": int(team > 1),
    }
    pattern = Pattern(
        Mode.SCAN if is_scan else Mode.REDUCE,
        1,
        columns,
        nest.wide(max(items, units)),
        nest.loads,
        nest.stores,
        nest.kernel.values,
        tuple(constants.items()),
    )
    values = {
        **nest.given(),
        "items": items,
        "units": units,
        "inner": nest.inner.count,
        "tiles": nest.inner.count,
        "team": team,
        "slice": slice_units,
    }
    reductions = sum(node.operation in REDUCTIONS for node in ordered(nest.kernel.values))
    return Launch(
        pattern,
        blocks * team,
        threads,
        values,
        share=1 / units,
        counters_bytes=4 * blocks if team > 1 else 0,
        scratch_bytes=blocks * team * together * reductions * _STATE_BYTES if team > 1 else 0,
    )


def _windows_abreast(nest: Nest) -> Nest:
    """The nest with a loop over groups innermost along which results are neighbours, if groups are small and
    what neighbours read lies close together.
    """
    if not nest.inner_reduced or nest.row_count * nest.inner.count > _WINDOW:
        return nest
    first = len(nest.loads)
    for loop in nest.groups:
        loads = zip(loop.strides, nest.kernel.loads, strict=False)
        near = all(load.buffer is None or abs(step) <= _NEAR * load.type.bytes for step, load in loads)
        stores = zip(loop.strides[first:], nest.stores, strict=True)
        if near and all(step == store.type.bytes for step, store in stores):
            groups = tuple(other for other in nest.groups if other is not loop)
            return Nest(nest.kernel, groups, (*nest.rows, nest.inner), loop, False)
    return nest


def _power_of_two(count: int) -> int:
    """The least power of two that is not below `count`."""
    return 1 << (count - 1).bit_length()
