"""The roles of dimensions in sums of products, and in attention: batch, m, n, k.

Rows (m) move the first operand alone, columns (n) the second alone. All others that are not summed (k) are a
batch of products. Dimensions of one element need no role; some of k may have one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

from opendml.compiler.attention import Attention, attention_of
from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import Loop, loops_over, merged_neighbours
from opendml.late_dataclass import dataclass, light_dataclass
from opendml.program.node import Node
from opendml.targets.common.guards import loads_of


@light_dataclass(frozen=True, slots=True)
class ProductRoles:
    """The dimensions of a sum of products by their roles."""

    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AttentionRoles:
    """The operands of attention, and its dimensions by their roles.

    Queries and keys share `depth`, which makes scores. The elements of values lie along `n`.
    """

    nodes: Attention
    queries: Node
    keys: Node
    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    depth: tuple[int, ...]
    k: tuple[int, ...]
    """The dimensions over keys."""


def product_roles(kernel: Kernel, first: Node, second: Node) -> ProductRoles:
    """Return the roles of the dimensions of a kernel that sums the products of two operands."""
    in_first, in_second = moving(kernel, [first]), moving(kernel, [second])
    long = _long(kernel)
    kept = [each for each in long if each not in kernel.axes]
    m = tuple(each for each in kept if each in in_first and each not in in_second)
    n = tuple(each for each in kept if each in in_second and each not in in_first)
    batch = tuple(each for each in kept if each not in m and each not in n)
    return ProductRoles(batch, m, n, tuple(each for each in long if each in kernel.axes))


def attention_roles(kernel: Kernel) -> Iterator[AttentionRoles]:
    """Yield the roles of a kernel of attention, for each operand of the scores that may have the queries."""
    nodes = attention_of(kernel.values)
    if nodes is None:
        return
    depth = nodes.products.attribute
    assert isinstance(depth, tuple)
    in_values, in_scores = moving(kernel, [nodes.weighted]), moving(kernel, [nodes.scores])
    kept = [each for each in _long(kernel) if each not in kernel.axes and each not in depth]
    for queries, keys in (nodes.products.operands, nodes.products.operands[::-1]):
        in_keys = moving(kernel, [keys])
        if moving(kernel, [queries]).intersection(kernel.axes):
            continue
        n = tuple(each for each in kept if each in in_values and each not in in_scores)
        m = tuple(each for each in kept if each not in in_values and each not in in_keys)
        batch = tuple(each for each in kept if each not in m and each not in n)
        yield AttentionRoles(nodes, queries, keys, batch, m, n, depth, kernel.axes)


def moving(kernel: Kernel, roots: Iterable[Node]) -> set[int]:
    """Return the dimensions along which some load moves that values are made of."""
    loads = [kernel.loads[number].strides for number in _loads_of(tuple(roots))]
    return {dimension for strides in loads for dimension, stride in enumerate(strides) if stride}


@lru_cache(maxsize=1024)
def _loads_of(roots: tuple[Node, ...]) -> frozenset[int]:
    """Return what `loads_of` does. It is found once for all sizes of a kernel."""
    return frozenset(loads_of(roots))


def loops_from_results(kernel: Kernel, dimensions: Iterable[int]) -> tuple[Loop, ...]:
    """Return the loops over some dimensions that are long, outermost first in the results, with neighbours
    merged."""
    buffers = [access.buffer is not None for access in kernel.accesses]

    def distance(loop: Loop) -> tuple[int, ...]:
        strides = zip(loop.strides, buffers, strict=True)
        return tuple(reversed([abs(stride) for stride, is_memory in strides if is_memory]))

    loops = [loop for loop in loops_over(kernel, dimensions) if loop.count > 1]
    return tuple(merged_neighbours(sorted(loops, key=distance, reverse=True)))


def count_of(loops: Iterable[Loop]) -> int:
    """Return the steps of loops within each other."""
    return math.prod(loop.count for loop in loops)


def _long(kernel: Kernel) -> list[int]:
    return [dimension for dimension, size in enumerate(kernel.domain) if size > 1]
