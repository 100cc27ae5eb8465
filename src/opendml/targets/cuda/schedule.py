"""Decides how a kernel is launched: each way is a candidate with an estimate of its cost, and the cheapest is
taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loop_nest
from opendml.program.node import SCANS, Operation, ordered
from opendml.targets.common.candidates import cheapest
from opendml.targets.common.forms import Memo, form_of
from opendml.targets.cuda.group_source import is_normalization
from opendml.targets.cuda.groups import in_widest_units
from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, CudaQuery, Table, nest_of
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.schedule_chain import schedule_chain
from opendml.targets.cuda.schedule_contraction import schedule_contraction
from opendml.targets.cuda.schedule_elements import ELEMENTS
from opendml.targets.cuda.schedule_groups import GROUPS
from opendml.targets.cuda.schedule_passes import ABREAST, ALONG, windows_abreast
from opendml.targets.cuda.schedule_placing import schedule_placing
from opendml.targets.cuda.schedule_resident import RESIDENT
from opendml.targets.cuda.schedule_scans import LINES, LINES_ABREAST
from opendml.targets.cuda.schedule_shares import SHARES

_known = Memo[CudaLaunch]()


def schedule(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> CudaLaunch:
    """The launch that runs `kernel`. Kernels of equal form are scheduled once.

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


def scheduled(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> CudaLaunch:
    """The launch that runs `kernel`, found anew."""
    if any(node.operation is Operation.CONTRACTION for node in ordered(kernel.values)):
        launch = schedule_chain(kernel, machine, alignments)
        launch = launch or schedule_contraction(kernel, machine, alignments)
        if launch is not None:
            return launch
    placing = schedule_placing(kernel, machine, alignments)
    if placing is not None:
        return placing
    table, query = ways(kernel, machine, alignments)
    return cheapest(table, query)


def ways(kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> tuple[Table, Any]:
    """The candidates for a kernel, but for contractions in tiles and what is placed, and what they are
    asked."""
    query = CudaQuery(nest_of(kernel, loop_nest(kernel)), machine, alignments)
    if not kernel.axes:
        return ELEMENTS, query
    if is_normalization(kernel.values):
        return GROUPS, in_widest_units(query)
    if any(node.operation in SCANS for node in ordered(kernel.values)):
        return LINES if query.nest.inner_reduced else LINES_ABREAST, query
    query = replace(query, nest=windows_abreast(query.nest))
    return (RESIDENT, *ALONG, *SHARES) if query.nest.inner_reduced else (RESIDENT, *ABREAST), query
