"""Powers: exponents of other types than their bases."""

from __future__ import annotations

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.broadcasting import broadcast_sizes
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

_ODD = 2**24
"""Below it FLOAT32 tells odd numbers from even ones."""

_MOST_MULTIPLIED = 64
"""Greater powers of integers have no 64 bits, but for 0, 1 and -1."""

_GREATEST = 2**31 - 2
"""The greatest even INT32."""


@converts("Pow", since=7)
def power(node: Conversion) -> Result:
    """A base to the power of an exponent, in the base's type."""
    sizes = broadcast_sizes(node, (0, 1))
    if 0 in sizes:
        return node.empty(sizes, node.type(0))
    rank = max(1, len(sizes))
    base, number = node.tensor(0, rank), _one_number(node)
    if number is not None and node.type(0).kind == "f":
        return node.result(dml.element_wise_constant_pow(base, exponent=number), sizes)
    if number is not None and node.type(1).kind in "iu" and 0 < number <= _MOST_MULTIPLIED:
        return node.result(_multiplied(base, int(number)), sizes)
    return node.result(dml.element_wise_pow(base, _exponent(node, rank)), sizes)


def _multiplied(base: GraphTensor, exponent: int) -> GraphTensor:
    """A power of integers, which wraps around as their products do."""
    if exponent == 1:
        return base
    half = _multiplied(base, exponent // 2)
    square: GraphTensor = dml.element_wise_multiply(half, half)
    result: GraphTensor = dml.element_wise_multiply(square, base) if exponent % 2 else square
    return result


def _one_number(node: Conversion) -> float | None:
    """A known exponent of one element that FLOAT32 has too, and that leaves the base's sizes as they are."""
    if not node.is_known(1) or int(np.prod(node.sizes(1))) != 1 or len(node.sizes(1)) > len(node.sizes(0)):
        return None
    value: float = node.known(1).reshape(()).item()
    return float(value) if abs(value) < _ODD and float(np.float32(value)) == value else None


def _exponent(node: Conversion, rank: int) -> GraphTensor:
    """The exponent in a type that POW takes. One of 64 bits is brought within 32: of a float no power differs
    but in its sign, so that odd numbers stay odd."""
    type = node.type(1)
    if type.kind not in "iu" or type.itemsize < 8:
        return node.tensor(1, rank)
    if node.type(0).kind != "f":
        raise NotExpressible(f"an integer to the power of {type.name}")
    exponent = node.tensor(1, rank)
    least = -_GREATEST if type.kind == "i" else 0
    within = dml.element_wise_clip1(exponent, min=least, max=_GREATEST)
    odd = dml.element_wise_bit_and(exponent, 1)
    return dml.cast(dml.element_wise_bit_or(within, odd), output_type=dml.INT32)
