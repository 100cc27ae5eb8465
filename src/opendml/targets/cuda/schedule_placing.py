"""The ways to launch kernels that place along lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import line_nest
from opendml.late_dataclass import dataclass
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.cuda.costs import PANEL, reading
from opendml.targets.cuda.launch import CudaLaunch, CudaQuery, Table, UnitNest, check_fit, unit_nest
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.schedule_positions import construct_positions, price_positions
from opendml.targets.cuda.schedule_top import construct_best, construct_sorted, price_best, price_sorted

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


def placing_query(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaQuery:
    """Return the query for a kernel that places along lines: its innermost loop goes along a line."""
    return CudaQuery(unit_nest(kernel, line_nest(kernel)), machine, alignments)


@dataclass(frozen=True, slots=True)
class Lines:
    """Blocks of `threads` threads, each with the places of `together` neighbouring lines in shared memory."""

    threads: int
    together: int


def _elements(nest: UnitNest) -> int:
    """Return the elements of all lines, each of which is put to a place."""
    return nest.group_count * nest.row_count * nest.inner.count


def _loaded(nest: UnitNest) -> int:
    """Return the bytes that are read."""
    return _elements(nest) * sum(load.type.bytes for load in nest.loads if not load.counter)


def _in_memory(query: CudaQuery) -> Estimate[None]:
    """Price one element for each thread, which puts it to its place in memory."""
    nest = query.nest
    placed = _PLACED_BYTES * _elements(nest)
    return Estimate(None, {"memory": reading(query.machine, _loaded(nest) + placed)})


def _in_lines(query: CudaQuery) -> Estimate[Lines] | Refusal:
    nest, machine = query.nest, query.machine
    placed, count = nest.kernel.values[0], nest.placed_count
    if placed.operation is not Operation.SCATTER or placed.type is not ScalarType.INT32:
        return Refusal(f"{placed.operation.name} of {placed.type.name}")
    together = _TOGETHER if nest.lies_across else 1
    most, bytes = machine.shared_bytes - _RESERVED_BYTES, count * together * placed.type.bytes
    if bytes > most:
        return Refusal(f"{together} lines of {count} places take {bytes} bytes; at most {most}")
    idle = machine.multiprocessors * together / nest.group_count
    moved = _loaded(nest) + nest.group_count * count * placed.type.bytes
    threads = _MOST_THREADS if bytes > most // 2 else _MOST_THREADS // 2
    return Estimate(Lines(threads, together), {"memory": reading(machine, moved) * max(1.0, idle)})


def _run_in_memory(query: CudaQuery, _: None) -> CudaLaunch:
    nest = query.nest
    panel = nest.group_count if nest.group_count % PANEL else PANEL
    constants = {"THREADS": _THREADS, "ACROSS": int(nest.lies_across)}
    return _launch(nest, CudaMode.SCATTER, constants, -(-_elements(nest) // _THREADS), panel=panel)


def _run_in_lines(query: CudaQuery, choice: Lines) -> CudaLaunch:
    nest = query.nest
    constants = {"THREADS": choice.threads, "TOGETHER": choice.together}
    launch = _launch(nest, CudaMode.SCATTER_LINES, constants, -(-nest.group_count // choice.together))
    bytes = nest.placed_count * choice.together * nest.kernel.values[0].type.bytes
    check_fit(query, bytes <= query.machine.shared_bytes - _RESERVED_BYTES)
    return replace(launch, shared_bytes=index(bytes))


def _launch(
    nest: UnitNest, mode: CudaMode, constants: Mapping[str, int], grid: int, **chosen: int
) -> CudaLaunch:
    units = nest.row_count * nest.inner.count
    pattern = nest.pattern(mode, (_elements(nest), math.prod(nest.kernel.domain)), constants)
    count, inner = nest.placed_count, nest.inner.count
    words = {"items": nest.group_count, "units": units, "row_length": inner, "places": count, **chosen}
    return CudaLaunch(pattern, grid, constants["THREADS"], nest.given() | launch_words(mode, **words))


SCATTER: Table = (
    Candidate("places in memory", _in_memory, _run_in_memory),
    Candidate("places in shared memory", _in_lines, _run_in_lines),
)
"""The ways to put elements to places along lines."""
POSITIONS: Table = (Candidate("waves of blocks", price_positions, construct_positions),)
"""The ways to find the positions of elements that hold."""
TOP: Table = (
    Candidate("best elements in shared memory", price_best, construct_best),
    Candidate("sorted lines", price_sorted, construct_sorted),
)
"""The ways to find the best elements of lines."""
