"""`a @ b` of tensors of a graph as GEMM, with NumPy's meaning of dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from opendml.errors import InvalidArgument
from opendml.runtime.graphs.repeat import repeated
from opendml.spec.schema import operator

if TYPE_CHECKING:
    from opendml.runtime.graphs.tensor import GraphTensor


def product(a: GraphTensor, b: GraphTensor) -> GraphTensor:
    """Multiply matrices as NumPy does.

    Leading dimensions number several matrices. A tensor with one dimension is a row on the left and a column
    on the right, which the result does not have.

    Raises:
        InvalidArgument: sizes that do not fit, two vectors (a number is no tensor), or types without GEMM.
    """
    if a.ndim == b.ndim == 1:
        raise InvalidArgument(
            f"@ of sizes {list(a.sizes)} and {list(b.sizes)}: a number, which is no tensor of DirectML; "
            "a[None] @ b keeps a dimension"
        )
    left = a.reshape(1, -1) if a.ndim == 1 else a
    right = b.reshape(-1, 1) if b.ndim == 1 else b
    result = _of_matrices(left, right, f"@ of sizes {list(a.sizes)} and {list(b.sizes)}")
    sizes = list(result.sizes)
    if a.ndim == 1:
        del sizes[-2]
    if b.ndim == 1:
        del sizes[-1]
    return result if tuple(sizes) == result.sizes else result.reshape(sizes)


def _of_matrices(a: GraphTensor, b: GraphTensor, owner: str) -> GraphTensor:
    (*before_a, m, k), (*before_b, other_k, n) = a.sizes, b.sizes
    if k != other_k:
        raise InvalidArgument(f"{owner}: {k} columns and {other_k} rows; must be equally many")
    try:
        before = np.broadcast_shapes(tuple(before_a), tuple(before_b))
    except ValueError:
        raise InvalidArgument(
            f"{owner}: {before_a} and {before_b} matrices cannot be repeated to equal numbers"
        ) from None
    if not before_b or math.prod(before_b) == 1:
        # One GEMM multiplies the rows of all matrices on the left by one matrix on the right.
        return _gemm(a, (math.prod(before) * m, k), b, (k, n)).reshape(*before, m, n)
    count = math.prod(before)
    a, b = (repeated(each, (*before, *each.sizes[-2:])) for each in (a, b))
    return _gemm(a, (1, count, m, k), b, (1, count, k, n)).reshape(*before, m, n)


def _gemm(a: GraphTensor, sizes_a: tuple[int, ...], b: GraphTensor, sizes_b: tuple[int, ...]) -> GraphTensor:
    """GEMM of tensors in these sizes, and with as many dimensions as its table asks for at least."""
    support = operator("GEMM").support_at(a.graph.feature_level)
    ones = (1,) * ((support.tensors["ATensor"].dims[0] if support else 2) - len(sizes_a))
    tensors = (a.reshape(ones + sizes_a), b.reshape(ones + sizes_b), None)
    result: GraphTensor = a.graph._call("GEMM", tensors, {})
    return result
