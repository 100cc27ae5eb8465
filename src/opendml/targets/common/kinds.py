"""Kinds of kernels: a target has one table of candidates for each."""

from __future__ import annotations

from enum import Enum

from opendml.compiler.attention import attention_of
from opendml.compiler.kernel import Kernel, operations_of
from opendml.program.node import PLACINGS, SCANS, Operation


class KernelKind(Enum):
    """The operation that decides which candidates can run a kernel."""

    ELEMENT_WISE = "element-wise"
    REDUCTION = "reduction"
    SCAN = "scan"
    SCATTER = "scatter"
    POSITIONS = "positions"
    TOP = "top"
    CONTRACTION = "contraction"
    ATTENTION = "attention"


def kind_of(kernel: Kernel) -> KernelKind:
    """Return the kind of a kernel."""
    operations = operations_of(kernel.values)
    if Operation.CONTRACTION in operations:
        attention = attention_of(kernel.values)
        return KernelKind.CONTRACTION if attention is None else KernelKind.ATTENTION
    if PLACINGS & operations:
        special = {Operation.TOP: KernelKind.TOP, Operation.POSITIONS: KernelKind.POSITIONS}
        (placing,) = PLACINGS & operations
        return special.get(placing, KernelKind.SCATTER)
    if SCANS & operations:
        return KernelKind.SCAN
    return KernelKind.REDUCTION if kernel.axes else KernelKind.ELEMENT_WISE
