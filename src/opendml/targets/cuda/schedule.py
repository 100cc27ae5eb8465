"""Choose how a kernel is launched: each way is a candidate with an estimate of its cost, and the cheapest is
taken."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.targets.common.candidates import Decision, decide
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cuda.launch import CudaLaunch, CudaQuery, Table, unit_nest
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.schedule_chain import ATTENTION
from opendml.targets.cuda.schedule_contraction import CudaProductQuery, contractions
from opendml.targets.cuda.schedule_depthwise import DEPTHWISE
from opendml.targets.cuda.schedule_elements import ELEMENTS
from opendml.targets.cuda.schedule_placing import POSITIONS, SCATTER, TOP, placing_query
from opendml.targets.cuda.schedule_reductions import REDUCE, windows_side_by_side
from opendml.targets.cuda.schedule_scans import LINES, LINES_SIDE_BY_SIDE
from opendml.targets.cuda.schedule_short_sums import SHORT_SUMS

_known = Memo[tuple[Decision[CudaLaunch], CudaLaunch]]()


def schedule(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
    """Return the launch that runs `kernel`. Kernels of equal form are scheduled once.

    Args:
        kernel: the kernel.
        machine: the device.
        alignments: of the address of each access's first element (loads, then stores), in bytes; only whether
            they are multiples of 2, 4, 8, 16 counts.
    """
    form, binding = form_of(kernel)
    return _scheduled_once(form, machine, alignments)[1].bound(binding)


def chosen(form: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> Decision[CudaLaunch]:
    """Return how a form is run. The arguments are those of `schedule`."""
    return _scheduled_once(form, machine, alignments)[0]


def construct_traced(
    decision: Decision[CudaLaunch],
    form: Kernel,
    machine: CudaMachine,
    alignments: Sequence[int],
    inner: int,
) -> CudaLaunch:
    """Return the launch of a form with traced sizes. Its sizes are expressions, and the trace records for
    which sizes they are right.

    Args:
        decision: how the form is run for the hints of the trace.
        form, machine, alignments: as for `schedule`.
        inner: the number of the innermost loop.
    """
    return decision.construct(table_of(form, machine, _counting(alignments), inner)[1])


def _scheduled_once(
    form: Kernel, machine: CudaMachine, alignments: Sequence[int]
) -> tuple[Decision[CudaLaunch], CudaLaunch]:
    counting = _counting(alignments)
    return _known.get(form, (machine, counting), lambda: scheduled(form, machine, counting))


def _counting(alignments: Sequence[int]) -> tuple[int, ...]:
    return tuple([math.gcd(each, VECTOR_BYTES) for each in alignments])


def scheduled(
    kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]
) -> tuple[Decision[CudaLaunch], CudaLaunch]:
    """Return how `kernel` is run, and its launch, without the memo."""
    table, query = table_of(kernel, machine, alignments)
    decision = decide(table, query)
    return decision, decision.construct(query)


def table_of(
    kernel: Kernel, machine: CudaMachine, alignments: Sequence[int], inner: int | None = None
) -> tuple[Table, Any]:
    """Return the candidates for a kernel, and the query that they answer.

    The number `inner` of the innermost loop is that of `innermost_loop`; None chooses it.
    """
    kind = kind_of(kernel)
    if kind in (KernelKind.CONTRACTION, KernelKind.ATTENTION):
        return _PRODUCTS[kind], CudaProductQuery(kernel, machine, alignments, inner)
    if kind in _PLACING:
        return _PLACING[kind], placing_query(kernel, machine, alignments)
    query = CudaQuery(unit_nest(kernel, loop_nest(kernel, inner=inner)), machine, alignments)
    if kind is KernelKind.ELEMENT_WISE:
        return ELEMENTS, query
    if kind is KernelKind.SCAN:
        return LINES if query.nest.inner_reduced else LINES_SIDE_BY_SIDE, query
    return _reductions(query)


def _reductions(query: CudaQuery) -> tuple[Table, CudaQuery]:
    """Return the ways to reduce without tiles, and the query that they answer."""
    return REDUCE, replace(query, nest=windows_side_by_side(query.nest))


def _reductions_of_product(query: CudaProductQuery, _: None) -> tuple[Table, CudaQuery]:
    """Return the ways to reduce without tiles, and the query that they answer.

    Where sums run along memory, warps beside each other have those of few rows with one column of a matrix.
    The matrix is then read from memory once: 4 rows by 4096 x 4096 of FLOAT32 take 33 us rather than 86
    (H100).
    """
    nest = unit_nest(query.kernel, loop_nest(query.kernel, inner=query.inner))
    if nest.inner_reduced:
        nest = replace(nest, groups=tuple(sorted(nest.groups, key=query.shape.is_over_few_rows)))
    return _reductions(CudaQuery(nest, query.machine, query.alignments))


_PRODUCTS: Mapping[KernelKind, Table] = {
    KernelKind.CONTRACTION: (*contractions(_reductions_of_product), DEPTHWISE, SHORT_SUMS),
    KernelKind.ATTENTION: ATTENTION,
}
_PLACING: Mapping[KernelKind, Table] = {
    KernelKind.SCATTER: SCATTER,
    KernelKind.POSITIONS: POSITIONS,
    KernelKind.TOP: TOP,
}
