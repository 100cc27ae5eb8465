"""Decides how kernels that place along lines are launched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opendml.compiler.kernel import Kernel, placing_of
from opendml.compiler.loops import line_nest
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.candidates import Candidate, Estimate, Refusal, cheapest
from opendml.targets.cuda.costs import PANEL, reading
from opendml.targets.cuda.launch import CudaLaunch, CudaQuery, Table, UnitNest
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.parameters import Words
from opendml.targets.cuda.pattern import CudaMode, CudaPattern
from opendml.targets.cuda.schedule_positions import schedule_positions
from opendml.targets.cuda.schedule_top import schedule_top

_THREADS = 256
"""Threads of a block that scatters to memory."""
_MOST_THREADS = 1024
"""Threads of a block of which no second one fits beside it."""
_TOGETHER = 8
"""Lines of a block where lines lie side by side: their elements fill sectors."""
_PLACED_BYTES = 40
"""Bytes that could be read in the time in which one element is put to its place in memory."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that a block cannot have."""


def schedule_placing(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> CudaLaunch | None:
    """The launch of a kernel that places along lines; None: it does not. Arguments as of `schedule`."""
    placed = placing_of(kernel.values)
    if placed is None:
        return None
    loops = line_nest(kernel)
    query = CudaQuery(UnitNest(kernel, loops.groups, loops.rows, loops.inner, True), machine, alignments)
    if placed.operation is Operation.TOP:
        return schedule_top(query, _places(query.nest))
    if placed.operation is Operation.POSITIONS:
        return schedule_positions(query)
    return cheapest(SCATTERING, query)


@dataclass(frozen=True, slots=True)
class Lines:
    """Blocks of so many threads, each with the places of so many neighbouring lines in shared memory."""

    threads: int
    together: int
    shared_bytes: int


def _places(nest: UnitNest) -> int:
    """Those of a line."""
    attribute = nest.kernel.values[0].attribute
    assert isinstance(attribute, tuple)
    return int(attribute[-1])


def _elements(nest: UnitNest) -> int:
    """Those of all lines, each of which is put to a place."""
    return nest.group_count * nest.row_count * nest.inner.count


def _loaded(nest: UnitNest) -> int:
    """Bytes that are read."""
    return _elements(nest) * sum(load.type.bytes for load in nest.loads if not load.counter)


def _in_memory(query: CudaQuery) -> Estimate[None]:
    """One element by each thread, to places in memory."""
    nest = query.nest
    placed = _PLACED_BYTES * _elements(nest)
    return Estimate(None, {"memory": reading(query.machine, _loaded(nest) + placed)})


def _in_lines(query: CudaQuery) -> Estimate[Lines] | Refusal:
    nest, machine = query.nest, query.machine
    placed, count = nest.kernel.values[0], _places(nest)
    if placed.operation is not Operation.SCATTER or placed.type is not ScalarType.INT32:
        return Refusal(f"{placed.operation.name} of {placed.type.name}")
    together = _TOGETHER if nest.lies_across else 1
    room, bytes = machine.shared_bytes - _RESERVED_BYTES, count * together * placed.type.bytes
    if bytes > room:
        return Refusal(f"{together} lines of {count} places take {bytes} bytes; at most {room}")
    idle = machine.multiprocessors * together / nest.group_count
    moved = _loaded(nest) + nest.group_count * count * placed.type.bytes
    threads = _MOST_THREADS if bytes > room // 2 else _MOST_THREADS // 2
    return Estimate(Lines(threads, together, bytes), {"memory": reading(machine, moved) * max(1.0, idle)})


def _run_in_memory(query: CudaQuery, _: None) -> CudaLaunch:
    nest = query.nest
    panel = nest.group_count if nest.group_count % PANEL else PANEL
    constants = {"THREADS": _THREADS, "ACROSS": int(nest.lies_across)}
    return _launch(nest, CudaMode.SCATTER, constants, -(-_elements(nest) // _THREADS), columns=panel)


def _run_in_lines(query: CudaQuery, way: Lines) -> CudaLaunch:
    nest = query.nest
    constants = {"THREADS": way.threads, "TOGETHER": way.together}
    launch = _launch(nest, CudaMode.SCATTER_LINES, constants, -(-nest.group_count // way.together))
    return replace(launch, shared_bytes=way.shared_bytes)


def _launch(
    nest: UnitNest, mode: CudaMode, constants: Mapping[str, int], grid: int, columns: int = 0
) -> CudaLaunch:
    units = nest.row_count * nest.inner.count
    wide = nest.wide(max(_elements(nest), math.prod(nest.kernel.domain)))
    pattern = CudaPattern(
        mode, 1, False, wide, nest.loads, nest.stores, nest.kernel.values, tuple(constants.items())
    )
    count, inner = _places(nest), nest.inner.count
    words = Words(items=nest.group_count, units=units, inner=inner, rows=count, columns=columns)
    return CudaLaunch(pattern, grid, constants["THREADS"], nest.given() | words.named())


SCATTERING: Table = (
    Candidate("places in memory", _in_memory, _run_in_memory),
    Candidate("places in shared memory", _in_lines, _run_in_lines),
)
"""The ways to put elements to places along lines."""
