"""Decides how kernels that place along lines are launched."""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import line_nest
from opendml.program.node import PLACINGS, Operation
from opendml.targets.cuda.costs import PANEL
from opendml.targets.cuda.launch import Launch, Nest, Query
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.parameters import Words
from opendml.targets.cuda.pattern import Mode, Pattern
from opendml.targets.cuda.schedule_top import schedule_top

_THREADS = 256
"""Threads of a block that scatters."""


def schedule_placing(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> Launch | None:
    """The launch of a kernel that places along lines; None: it does not. Arguments as of `schedule`."""
    placed = kernel.values[0]
    if placed.operation not in PLACINGS:
        return None
    assert isinstance(placed.attribute, tuple)
    loops = line_nest(kernel)
    nest = Nest(kernel, loops.groups, loops.rows, loops.inner, True)
    count = placed.attribute[-1]
    if placed.operation is Operation.TOP:
        return schedule_top(Query(nest, machine, alignments), count)
    return _scatter(nest, count)


def _scatter(nest: Nest, count: int) -> Launch:
    elements = nest.group_count * nest.row_count * nest.inner.count
    constants = {"THREADS": _THREADS, "ACROSS": int(nest.lies_across)}
    wide = nest.wide(max(elements, math.prod(nest.kernel.domain)))
    pattern = Pattern(
        Mode.SCATTER, 1, False, wide, nest.loads, nest.stores, nest.kernel.values, tuple(constants.items())
    )
    units = nest.row_count * nest.inner.count
    lines = nest.group_count
    panel = lines if lines % PANEL else PANEL
    words = Words(items=lines, units=units, inner=nest.inner.count, rows=count, columns=panel)
    return Launch(pattern, -(-elements // _THREADS), _THREADS, nest.given() | words.named())
