"""Conversions between element types, and quantization by a scale and a zero point.

Where a quotient is rounded to a whole number, halves go to even, and the quotient is the one that FLOAT32
has: exact arithmetic would decide other ties.
"""

from __future__ import annotations

from opendml.operators.registry import defines
from opendml.program.functions import multiply_add, round_even, rounded
from opendml.program.node import Node, convert
from opendml.program.scalar_type import ScalarType
from opendml.spec.tensor_desc import TensorDesc

_COMPUTED = ScalarType.FLOAT32


@defines("CAST")
def cast(x: Node) -> Node:
    """x in the output's type

    Floats are rounded to nearest even, and become integers by truncation; out of range that saturates, and
    NaN becomes 0, as on Direct3D. Integers wrap.
    """
    return x


@defines("ELEMENT_WISE_QUANTIZE_LINEAR", output=True)
def quantize_linear(x: Node, scale: Node, zero_point: Node | None, *, output: TensorDesc) -> Node:
    """clamp(round(x / scale) + zero_point) to the range of the output; without a zero point, of 0

    NaN (0 / 0, say) gives 0.
    """
    return _quantized(rounded(convert(x, _COMPUTED)) / convert(scale, _COMPUTED), zero_point, output)


@defines("ELEMENT_WISE_DEQUANTIZE_LINEAR")
def dequantize_linear(x: Node, scale: Node, zero_point: Node | None) -> Node:
    """(x - zero_point) * scale; the difference is exact, also of 32-bit integers"""
    type = ScalarType.FLOAT64 if x.type.bits == 32 else _COMPUTED
    return _difference(x, zero_point, type) * convert(scale, type)


@defines("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", output=True)
def quantized_linear_add(
    a: Node,
    a_scale: Node,
    a_zero_point: Node | None,
    b: Node,
    b_scale: Node,
    b_zero_point: Node | None,
    output_scale: Node,
    output_zero_point: Node | None,
    *,
    output: TensorDesc,
) -> Node:
    """clamp(round(y / output_scale) + output_zero_point) to the range of the output, where
    y = (a - a_zero_point) * a_scale + (b - b_zero_point) * b_scale"""
    second = rounded(_difference(b, b_zero_point, _COMPUTED) * b_scale)
    y = rounded(multiply_add(_difference(a, a_zero_point, _COMPUTED), a_scale, second))
    return _quantized(y / output_scale, output_zero_point, output)


def _quantized(quotient: Node, zero_point: Node | None, output: TensorDesc) -> Node:
    whole = round_even(rounded(quotient))
    if zero_point is not None:
        whole = whole + convert(zero_point, _COMPUTED)
    return convert(whole, ScalarType.of(output.data_type))


def _difference(x: Node, zero_point: Node | None, type: ScalarType) -> Node:
    value = convert(x, type)
    return value if zero_point is None else value - convert(zero_point, type)
