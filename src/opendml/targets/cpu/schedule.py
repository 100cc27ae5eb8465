"""Choose how a kernel is walked: the mode, the tiles and chunks, and what one thread takes at a time.

Each way is a candidate with an estimate of its cost, and the cheapest is taken. Choices depend on shapes and
caches. They depend on the number of threads only where all choices give the same bits, so that results do not
depend on it. They do not depend on addresses or numbers, so launches are kept by kernels' forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from opendml.budget import check_time
from opendml.compiler.kernel import Kernel
from opendml.program.sizes import is_traced
from opendml.targets.common.candidates import Decision, decide
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cpu.contraction.few_rows import ATTENTION
from opendml.targets.cpu.contraction.roles import Varying
from opendml.targets.cpu.contraction.schedule import CONTRACTIONS, ProductQuery
from opendml.targets.cpu.launch import CpuLaunch, Table, innermost_loop_of, query_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.schedule_elements import ELEMENTS
from opendml.targets.cpu.schedule_groups import reductions
from opendml.targets.cpu.schedule_placing import POSITIONS, SCATTER, TOP, placing_query
from opendml.targets.cpu.schedule_scans import SCANNED_COLUMNS, SCANNED_ROWS
from opendml.targets.cpu.threads import available_threads

CpuDecision = Decision[list[CpuLaunch]]
Launches = Memo[list[CpuLaunch]]
Hints = Callable[[Kernel], Kernel]
"""Replaces traced sizes, as `compiler.sized.plain` does."""
_decisions = Memo[CpuDecision]()
"""The choices for kernels whose sizes vary."""
_launches = Launches()
"""The launches of kernels of fixed sizes."""


def schedule(
    kernel: Kernel,
    hints: Hints | None = None,
    constructed: Launches | None = None,
    whole: Kernel | None = None,
) -> list[CpuLaunch]:
    """Return the launches that run `kernel`, in order. Kernels of equal form are scheduled once.

    Args:
        kernel: the kernel. Its domain, strides and offsets may have traced sizes. Then those of launches are
            expressions, and the trace records for which sizes they are right.
        hints: returns a kernel with all sizes of the traced run, for which the launches are chosen. Constants
            are then packed in one layout for all sizes, also if nothing of the kernel is traced.
        constructed: the traced launches of kernels that are scheduled for the same hints.
        whole: the kernel with all sizes that vary. Some of them are plain numbers in `kernel`, for which the
            launches are chosen, as far as results keep the bits that they have for traced sizes.
    """
    check_time()
    host = machine()
    circumstances = host, host.threads or available_threads()
    if hints is None:
        form, binding = form_of(kernel)
        launches = _launches.get(form, circumstances, lambda: scheduled(form)[1])
        return [launch.bound(binding) for launch in launches]
    traced, binding = form_of(kernel, hints(replace(kernel, values=(), numbers=())))
    varying = still = _traced_dimensions(traced)
    usual = traced
    if whole is not None:
        usual, _ = form_of(whole, hints(replace(whole, values=(), numbers=())))
        varying = _traced_dimensions(usual)

    def constructed_now() -> list[CpuLaunch]:
        form, own = hints(traced), still
        table, query = table_of(form, None, varying, own)
        if own != varying and not keeps_bits(form, query):
            form, own = hints(usual), varying
            table, query = table_of(form, None, varying, own)
        decision = _decisions.get(form, (*circumstances, varying, own), lambda: decide(table, query))
        return construct_traced(decision, traced, form)

    memo = Launches() if constructed is None else constructed
    others = None if whole is None else (usual.domain, usual.loads, usual.stores)
    return [launch.bound(binding) for launch in memo.get(traced, others, constructed_now)]


def _traced_dimensions(kernel: Kernel) -> tuple[int, ...]:
    return tuple([number for number, size in enumerate(kernel.domain) if is_traced(size)])


def keeps_bits(kernel: Kernel, query: Any) -> bool:
    """Return whether all that may be chosen for a kernel with sizes that vary computes the same bits.

    Args:
        kernel: the kernel.
        query: its query.
    """
    return (
        query.adds_one_way if isinstance(query, ProductQuery) else kind_of(kernel) is KernelKind.ELEMENT_WISE
    )


def construct_traced(decision: CpuDecision, kernel: Kernel, hints: Kernel) -> list[CpuLaunch]:
    """Return the launches of a kernel with traced sizes, as they were chosen for its hints."""
    return decision.construct(table_of(kernel, innermost_loop_of(hints))[1])


def scheduled(kernel: Kernel, varying: Varying = None) -> tuple[CpuDecision, list[CpuLaunch]]:
    """Return the choice for a kernel and its launches, in order, without the memo.

    If sizes vary, the choice serves others too: constants have one layout, and few kinds of tiles are used.
    """
    table, query = table_of(kernel, varying=varying)
    decision = decide(table, query)
    return decision, decision.construct(query)


def table_of(
    kernel: Kernel, inner: int | None = None, varying: Varying = None, still: Varying = None
) -> tuple[Table, Any]:
    """Return the candidates for a kernel, and the query that they answer.

    Args:
        kernel: the kernel.
        inner: the number of the innermost loop, as of `innermost_loop_of`; None chooses it.
        varying: the dimensions whose sizes vary.
        still: those of them whose sizes vary still in launches that are chosen; None: all.
    """
    kind = kind_of(kernel)
    if kind in (KernelKind.SCATTER, KernelKind.POSITIONS, KernelKind.TOP):
        return _TABLES[kind], placing_query(kernel)
    if kind in (KernelKind.CONTRACTION, KernelKind.ATTENTION):
        return _TABLES[kind], ProductQuery(kernel, machine(), inner, varying, still)
    query = query_of(kernel, inner)
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
