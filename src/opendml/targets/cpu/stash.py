"""Elements that the last pass over a group keeps for the results, such as the exponentials of a softmax.

They lie in the thread's scratch, in the order of the loops. Their offsets are counted like those of any
access: the last load of the kernel is a counter of bytes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from opendml.compiler.kernel import Access
from opendml.compiler.loops import Loop
from opendml.program.node import FUNCTIONS, REDUCTIONS, Node, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.launch import KernelNest

STASHED = ScalarType.FLOAT32
"""The type of elements that are kept."""
MOST_STASHED = 32 * 1024
"""Elements that a thread keeps at once, at most: 128 KiB of FLOAT32."""
_ROW = 16
"""Elements of which rows are multiples: a vector that reaches beyond a row's end spoils no other."""


def row_pitch(elements: int) -> int:
    """Return the elements from one row to the next."""
    return -(-elements // _ROW) * _ROW


@lru_cache
def repeats_functions(values: tuple[Node, ...]) -> bool:
    """Return whether results need a transcendental function of elements that is reduced as well."""
    nodes = ordered(values)
    reductions = {id(node) for node in nodes if node.operation in REDUCTIONS}
    operands = [operand for node in nodes if node.operation in REDUCTIONS for operand in node.operands]
    reduced = {id(node) for node in ordered(operands)}
    results = {id(node) for node in ordered(values, reductions)}
    both = [node for node in nodes if id(node) in reduced & results]
    return any(node.operation in FUNCTIONS and node.sizes for node in both)


def with_counter(nest: KernelNest, pitch: int) -> KernelNest:
    """Return the nest with one more load, which counts bytes from the first element of a group."""
    position = len(nest.kernel.loads)
    inner = _with_stride(nest.inner, position, STASHED.bytes)
    rows: list[Loop] = []
    for number, loop in enumerate(nest.rows):
        inside = math.prod(other.count for other in nest.rows[number + 1 :])
        rows.append(_with_stride(loop, position, inside * pitch * STASHED.bytes))
    groups = tuple(_with_stride(loop, position, 0) for loop in nest.groups)
    counter = Access(None, ScalarType.INT64, 0, (0,) * len(nest.kernel.domain))
    kernel = replace(nest.kernel, loads=(*nest.kernel.loads, counter))
    return KernelNest(groups, tuple(rows), inner, nest.inner_reduced, kernel)


def _with_stride(loop: Loop, position: int, stride: int) -> Loop:
    return Loop(loop.count, (*loop.strides[:position], stride, *loop.strides[position:]))
