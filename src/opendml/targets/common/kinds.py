"""Kinds of kernels: a target has one table of candidates for each."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from opendml.compiler.attention import attention_of
from opendml.compiler.kernel import Kernel, operations_of
from opendml.program.node import PLACINGS, SCANS, Node, Operation


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
    return _kind_of(kernel.values, bool(kernel.axes))


@lru_cache(maxsize=1024)
def _kind_of(values: tuple[Node, ...], has_axes: bool) -> KernelKind:
    """Return the kind of kernels of some values. It is found once for all sizes of a kernel."""
    operations = operations_of(values)
    if Operation.CONTRACTION in operations:
        attention = attention_of(values)
        return KernelKind.CONTRACTION if attention is None else KernelKind.ATTENTION
    if PLACINGS & operations:
        special = {Operation.TOP: KernelKind.TOP, Operation.POSITIONS: KernelKind.POSITIONS}
        (placing,) = PLACINGS & operations
        return special.get(placing, KernelKind.SCATTER)
    if SCANS & operations:
        return KernelKind.SCAN
    return KernelKind.REDUCTION if has_axes else KernelKind.ELEMENT_WISE
