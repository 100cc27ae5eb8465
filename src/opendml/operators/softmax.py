"""Softmax and its relatives: activations of elements in view of their group."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.operators.registry import defines
from opendml.program.functions import exp, index_of_maximum, log_of_wide, reduce_maximum, reduce_sum, select
from opendml.program.node import Node, Operation, apply, constant, convert, position


@defines("ACTIVATION_SOFTMAX")
def softmax(x: Node) -> Node:
    """exp(x) / (sum of exp(x) over the last dimension)

    What is not finite as in ACTIVATION_SOFTMAX1.
    """
    return softmax1(x, axes=_last(x))


@defines("ACTIVATION_SOFTMAX1")
def softmax1(x: Node, *, axes: Sequence[int]) -> Node:
    """exp(x) / (sum of exp(x) over the axes)

    Computed relative to the greatest element, so that nothing overflows. A group with a NaN or an infinity,
    or of nothing but -infinity, becomes NaN, as in PyTorch; -infinity beside numbers becomes 0.
    """
    shifted = _relative(x, axes)
    return exp(shifted) * convert(1.0 / reduce_sum(exp(shifted), axes), x.type)


@defines("ACTIVATION_LOG_SOFTMAX")
def log_softmax(x: Node) -> Node:
    """x - ln(sum of exp(x) over the last dimension)

    What is not finite as in ACTIVATION_SOFTMAX1.
    """
    return log_softmax1(x, axes=_last(x))


@defines("ACTIVATION_LOG_SOFTMAX1")
def log_softmax1(x: Node, *, axes: Sequence[int]) -> Node:
    """x - ln(sum of exp(x) over the axes)

    Computed relative to the greatest element; not finite elements as in softmax.
    """
    shifted = _relative(x, axes)
    return shifted - log_of_wide(reduce_sum(exp(shifted), axes))


@defines("ACTIVATION_HARDMAX")
def hardmax(x: Node) -> Node:
    """1 at the first greatest element along the last dimension, 0 elsewhere

    NaN counts as the greatest, as in ARGMAX.
    """
    return hardmax1(x, axes=_last(x))


@defines("ACTIVATION_HARDMAX1")
def hardmax1(x: Node, *, axes: Sequence[int]) -> Node:
    """1 at the first greatest element over the axes in row-major order, 0 elsewhere

    NaN counts as the greatest, as in ARGMAX.
    """
    found = index_of_maximum(x, axes)
    reduced = [axis for axis in axes if x.sizes[axis] > 1]
    is_there = apply(Operation.EQUAL, position(x.sizes, reduced), found)
    return select(is_there, constant(1, x.type), constant(0, x.type))


def _last(x: Node) -> tuple[int]:
    return (len(x.sizes) - 1,)


def _relative(x: Node, axes: Sequence[int]) -> Node:
    return x - reduce_maximum(x, axes)
