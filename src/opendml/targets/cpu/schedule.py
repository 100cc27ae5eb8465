"""Choose how a kernel is walked: the mode, the tiles and chunks, and what one thread takes at a time.

Each way is a candidate with an estimate of its cost, and the cheapest is taken. Choices depend on shapes and
caches. They depend on the number of threads only where all choices give the same bits, so that results do not
depend on it. They do not depend on addresses or numbers, so launches are kept by kernels' forms.
"""

from __future__ import annotations

from typing import Any

from opendml.budget import check_time
from opendml.compiler.kernel import Kernel
from opendml.targets.common.candidates import cheapest
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cpu.contraction.chain import ATTENTION
from opendml.targets.cpu.contraction.schedule import CONTRACTIONS, ProductQuery
from opendml.targets.cpu.launch import CpuLaunch, Table, query_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.schedule_elements import ELEMENTS
from opendml.targets.cpu.schedule_groups import reductions
from opendml.targets.cpu.schedule_placing import POSITIONS, SCATTER, TOP, placing_query
from opendml.targets.cpu.schedule_scans import SCANNED_COLUMNS, SCANNED_ROWS
from opendml.targets.cpu.threads import available_threads

_known = Memo[list[CpuLaunch]]()


def schedule(kernel: Kernel) -> list[CpuLaunch]:
    """Return the launches that run `kernel`, in order. Kernels of equal form are scheduled once."""
    check_time()
    host = machine()
    form, binding = form_of(kernel)
    threads = host.threads or available_threads()
    return [launch.bound(binding) for launch in _known.get(form, (host, threads), lambda: scheduled(form))]


def scheduled(kernel: Kernel) -> list[CpuLaunch]:
    """Return the launches that run `kernel`, in order, without the memo."""
    return cheapest(*table_of(kernel))


def table_of(kernel: Kernel) -> tuple[Table, Any]:
    """Return the candidates for a kernel, and the query that they answer."""
    kind = kind_of(kernel)
    if kind in (KernelKind.SCATTER, KernelKind.POSITIONS, KernelKind.TOP):
        return _TABLES[kind], placing_query(kernel)
    if kind in (KernelKind.CONTRACTION, KernelKind.ATTENTION):
        return _TABLES[kind], ProductQuery(kernel, machine())
    query = query_of(kernel)
    if kind is KernelKind.REDUCTION:
        return reductions(query)
    if kind is KernelKind.SCAN:
        return SCANNED_ROWS if query.nest.inner_reduced else SCANNED_COLUMNS, query
    return ELEMENTS, query


_TABLES = {
    KernelKind.SCATTER: SCATTER,
    KernelKind.POSITIONS: POSITIONS,
    KernelKind.TOP: TOP,
    KernelKind.CONTRACTION: CONTRACTIONS,
    KernelKind.ATTENTION: ATTENTION,
}
