"""Decides how a kernel is walked: the mode, the tiles and chunks, and what one thread takes at a time.

Each way is a candidate with an estimate of its cost, and the cheapest is taken. Decisions depend on shapes
and caches, and on the number of threads only where all choices give the same bits, so that results do not
depend on it. They do not depend on where buffers lie nor on numbers, so launches are kept by kernels' forms.
"""

from __future__ import annotations

from opendml.budget import check_time
from opendml.compiler.kernel import Kernel, operations_of
from opendml.program.node import SCANS
from opendml.targets.common.candidates import cheapest
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.cpu.contraction.chain import chained
from opendml.targets.cpu.contraction.schedule import tiled
from opendml.targets.cpu.launch import CpuLaunch, CpuQuery, Table, query_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.schedule_elements import ELEMENTS
from opendml.targets.cpu.schedule_groups import COLUMNS, ROWS
from opendml.targets.cpu.schedule_placing import schedule_placing
from opendml.targets.cpu.schedule_scans import SCANNED_COLUMNS, SCANNED_ROWS
from opendml.targets.cpu.threads import available_threads

_known = Memo[list[CpuLaunch]]()


def schedule(kernel: Kernel) -> list[CpuLaunch]:
    """The launches that run `kernel`, in order. Kernels of equal form are scheduled once."""
    check_time()
    host = machine()
    form, binding = form_of(kernel)
    threads = host.threads or available_threads()
    return [launch.bound(binding) for launch in _known.get(form, (host, threads), lambda: scheduled(form))]


def scheduled(kernel: Kernel) -> list[CpuLaunch]:
    """The launches that run `kernel`, in order, found anew."""
    tiles = chained(kernel) or tiled(kernel)
    if tiles:
        return tiles
    placing = schedule_placing(kernel)
    if placing:
        return placing
    query = query_of(kernel)
    return cheapest(table(query), query)


def table(query: CpuQuery) -> Table:
    """The candidates for a kernel, but for sums of products in tiles and what is placed."""
    if not query.kernel.axes:
        return ELEMENTS
    if SCANS & operations_of(query.kernel.values):
        return SCANNED_ROWS if query.nest.inner_reduced else SCANNED_COLUMNS
    return ROWS if query.nest.inner_reduced else COLUMNS
