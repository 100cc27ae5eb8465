"""Choose how a kernel is launched: each way is a candidate with an estimate of its cost, and the cheapest is
taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.targets.common.candidates import cheapest
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, CudaQuery, Table, unit_nest
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.schedule_chain import ATTENTION
from opendml.targets.cuda.schedule_contraction import CudaProductQuery, contractions
from opendml.targets.cuda.schedule_elements import ELEMENTS
from opendml.targets.cuda.schedule_placing import POSITIONS, SCATTER, TOP, placing_query
from opendml.targets.cuda.schedule_reductions import REDUCE, windows_abreast
from opendml.targets.cuda.schedule_scans import LINES, LINES_ABREAST

_known = Memo[CudaLaunch]()


def schedule(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
    """Return the launch that runs `kernel`. Kernels of equal form are scheduled once.

    Args:
        kernel: what to compute.
        machine: for which device.
        alignments: of the address of each access's first element (loads, then stores), in bytes; only whether
            they are multiples of 2, 4, 8, 16 counts.
    """
    form, binding = form_of(kernel)
    counting = tuple([math.gcd(each, VECTOR_BYTES) for each in alignments])
    found = _known.get(form, (machine, counting), lambda: scheduled(form, machine, counting))
    return found.bound(binding)


def scheduled(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
    """Return the launch that runs `kernel`, without the memo."""
    return cheapest(*table_of(kernel, machine, alignments))


def table_of(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> tuple[Table, Any]:
    """Return the candidates for a kernel, and the query that they answer."""
    kind = kind_of(kernel)
    if kind in (KernelKind.CONTRACTION, KernelKind.ATTENTION):
        return _PRODUCTS[kind], CudaProductQuery(kernel, machine, alignments)
    if kind in _PLACING:
        return _PLACING[kind], placing_query(kernel, machine, alignments)
    query = CudaQuery(unit_nest(kernel, loop_nest(kernel)), machine, alignments)
    if kind is KernelKind.ELEMENT_WISE:
        return ELEMENTS, query
    if kind is KernelKind.SCAN:
        return LINES if query.nest.inner_reduced else LINES_ABREAST, query
    return _reductions(query)


def _reductions(query: CudaQuery) -> tuple[Table, CudaQuery]:
    """Return the ways to reduce without tiles, and the query that they answer."""
    return REDUCE, replace(query, nest=windows_abreast(query.nest))


def _reductions_of_product(query: CudaProductQuery, _: None) -> tuple[Table, CudaQuery]:
    kernel = query.kernel
    return _reductions(CudaQuery(unit_nest(kernel, loop_nest(kernel)), query.machine, query.alignments))


_PRODUCTS: Mapping[KernelKind, Table] = {
    KernelKind.CONTRACTION: contractions(_reductions_of_product),
    KernelKind.ATTENTION: ATTENTION,
}
_PLACING: Mapping[KernelKind, Table] = {
    KernelKind.SCATTER: SCATTER,
    KernelKind.POSITIONS: POSITIONS,
    KernelKind.TOP: TOP,
}
