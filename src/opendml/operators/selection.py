"""The greatest or least elements along an axis.

The positions are found by integers in the order of the elements, so that all types are sorted alike.
"""

from __future__ import annotations

from opendml.operators.registry import defines
from opendml.program.functions import equal, index_of_minimum, logical_not, select
from opendml.program.node import Node, Operation, apply, bitcast, constant, convert, placing, position
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered
from opendml.spec.enums import AxisDirection


@defines("TOP_K", stored=True)
def top_k(x: Node, *, axis: int, k: int) -> tuple[Node, Node]:
    """TOP_K1 in the direction DECREASING

    NaN and equal elements as in TOP_K1.
    """
    return top_k1(x, axis=axis, k=k, axis_direction=AxisDirection.DECREASING)


@defines("TOP_K1", stored=True)
def top_k1(x: Node, *, axis: int, k: int, axis_direction: AxisDirection) -> tuple[Node, Node]:
    """the K least elements along the axis in increasing order (INCREASING), or the K greatest in decreasing
    order; index: where each is along the axis

    NaN counts as the greatest, as in PyTorch; all NaN are equal, and so are 0 and -0. Of equal elements that
    with the lowest index comes first, in both directions.
    """
    keys = _ordered(x)
    if axis_direction is AxisDirection.DECREASING:
        keys = logical_not(keys)
    if x.sizes[axis] == 1:
        return x, position(x.sizes, ())
    places = placing(Operation.TOP, keys, axis, k) if k > 1 else index_of_minimum(keys, [axis])
    rank = range(len(x.sizes))
    steps = [[int(row == column and row != axis) for column in rank] for row in rank]
    return gathered(x, places.sizes, {axis: places}, steps=steps), places


def _ordered(x: Node) -> Node:
    """Return integers without signs that are in the order of the elements."""
    if not x.type.is_float and not x.type.is_signed:
        return x if x.type is ScalarType.UINT64 else convert(x, ScalarType.UINT32)
    wide = x.type.bits == 64
    if x.type.is_float:
        return _ordered_bits(convert(x, ScalarType.FLOAT32))
    key = ScalarType.UINT64 if wide else ScalarType.UINT32
    signed = convert(x, ScalarType.INT64 if wide else ScalarType.INT32)
    return apply(Operation.XOR, bitcast(signed, key), constant(1 << (key.bits - 1), key))


def _ordered_bits(x: Node) -> Node:
    """Return the bits of FLOAT32 as integers in the order of the numbers.

    All bits of negative numbers are turned, and the sign of others.
    """
    bits = bitcast(x, ScalarType.INT32)
    signs = apply(Operation.SHIFT_RIGHT, bits, 31)
    turned = apply(Operation.XOR, bits, apply(Operation.OR, signs, -(1 << 31)))
    of_number = select(equal(x, 0.0), -(1 << 31), turned)
    return bitcast(select(equal(x, x), of_number, -1), ScalarType.UINT32)
