"""Tensors of a graph in other types, sizes and orders, and common sizes of several.

Only `cast`, `joined`, `gathered` and `rows_of` add operators. The others see the same elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from opendml.frontends.common.calls import dml
from opendml.frontends.common.types import FLOATS, NotExpressible, require_rank
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import common_sizes


def cast(tensor: GraphTensor, type: TensorDataType) -> GraphTensor:
    """Return the tensor in a type. Floats become integers by truncation."""
    return tensor if tensor.data_type == type else dml.cast(tensor, output_type=type)


def widened(tensor: GraphTensor) -> GraphTensor:
    """Return FLOAT16 as FLOAT32, and other types as they are."""
    return cast(tensor, TensorDataType.FLOAT32) if tensor.data_type == TensorDataType.FLOAT16 else tensor


def in_common_type(tensors: Sequence[GraphTensor]) -> list[GraphTensor]:
    """Return tensors of FLOAT32 and FLOAT16 in the wider one of their types.

    Raises:
        NotExpressible: one has another type.
    """
    types = {tensor.data_type for tensor in tensors}
    if not types <= {*FLOATS}:
        raise NotExpressible(f"elements of types {', '.join(sorted(type.name for type in types))}")
    return [cast(tensor, max(types, key=FLOATS[::-1].index)) for tensor in tensors]


def shaped(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """Return the elements in other sizes. No sizes stand for one element."""
    wanted = tuple(sizes) or (1,)
    is_same = len(wanted) == tensor.ndim and wanted == tuple(tensor.sizes)
    return tensor if is_same else tensor.reinterpret(wanted)


def permuted(tensor: GraphTensor, order: Sequence[int]) -> GraphTensor:
    """Return the transposed tensor, whose dimension d is dimension order[d] of the given one."""
    return tensor if list(order) == list(range(len(tensor.sizes))) else tensor.permute(*order)


def inverse(order: Sequence[int]) -> list[int]:
    """Return the order that takes a permutation back."""
    return [list(order).index(axis) for axis in range(len(order))]


def along(tensor: GraphTensor, axis: int, rank: int) -> GraphTensor:
    """Return the elements in one dimension among `rank`, of which the others have size 1."""
    sizes = [1] * rank
    sizes[axis] = math.prod(tensor.sizes)
    return shaped(tensor, sizes)


def with_rank(tensor: GraphTensor, rank: int) -> GraphTensor:
    """Return the tensor with at least `rank` dimensions. New ones have size 1 and lie in front."""
    return shaped(tensor, (*[1] * (rank - len(tensor.sizes)), *tensor.sizes))


def aligned(*tensors: GraphTensor) -> list[GraphTensor]:
    """Return tensors with as many dimensions as the one that has most."""
    rank = max(len(each.sizes) for each in tensors)
    return [with_rank(each, rank) for each in tensors]


def part(tensor: GraphTensor, axis: int, first: int, count: int, step: int = 1) -> GraphTensor:
    """Return every step-th of `count` elements of a dimension from `first` on."""
    return tensor[(*[slice(None)] * axis, slice(first, first + count, step))]


def joined(parts: Sequence[GraphTensor], axis: int) -> GraphTensor:
    """Return tensors one behind the other along a dimension."""
    return dml.join(parts, axis=axis) if len(parts) > 1 else parts[0]


def broadcast_sizes(*sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes to which NumPy repeats tensors of these sizes.

    Raises:
        NotExpressible: there are none, or they have more dimensions than DirectML's tensors.
    """
    require_rank(max(map(len, sizes)), "the result")
    try:
        return common_sizes(*sizes)
    except ValueError as error:
        given = ", ".join(str(list(each)) for each in sizes)
        raise NotExpressible(f"sizes {given} do not broadcast") from error


def rows_of(table: GraphTensor, indices: GraphTensor) -> GraphTensor:
    """Return the rows of a matrix with some indices, in the sizes of these."""
    return shaped(gathered(table, indices, 0), (*indices.sizes, table.sizes[1]))


def gathered(tensor: GraphTensor, indices: GraphTensor, axis: int) -> GraphTensor:
    """Return elements of a dimension by their indices, in the order of these."""
    row = along(indices, len(tensor.sizes) - 1, len(tensor.sizes))
    return dml.gather(tensor, row, axis=axis, index_dimensions=1)
