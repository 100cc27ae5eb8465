"""Conversions between element types, and quantization by scales and zero points.

Where a quotient is rounded to a whole number, halves go to even, and the quotient is the one that FLOAT32
has: exact arithmetic would decide other ties.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opendml.operators.registry import defines
from opendml.program.functions import (
    equal,
    maximum,
    minimum,
    multiply_add,
    reduce_maximum,
    reduce_minimum,
    round_even,
    rounded,
    select,
)
from opendml.program.node import Node, convert
from opendml.program.scalar_type import ScalarType, counting
from opendml.program.view import reshaped, view
from opendml.spec.enums import QuantizationType
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
    return less_zero_point(x, zero_point, type) * convert(scale, type)


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
    second = rounded(less_zero_point(b, b_zero_point, _COMPUTED) * b_scale)
    y = rounded(multiply_add(less_zero_point(a, a_zero_point, _COMPUTED), a_scale, second))
    return _quantized(y / output_scale, output_zero_point, output)


@defines("QUANTIZE", output=True)
def quantize(
    x: Node, parameters: Sequence[Node], *, quantization_type: QuantizationType, output: TensorDesc
) -> Node:
    """clamp(round(x / scale) + zero_point) to the range of the output; without a zero point, of 0

    Elements of a block, as many along each dimension as the parameter's size goes into that of x, share a
    scale or a zero point. NaN (0 / 0, say) gives 0.
    """
    scale, *zero_points = (_of_blocks(each, x.sizes) for each in parameters)
    return _quantized(rounded(x) / scale, zero_points[0] if zero_points else None, output)


@defines("DEQUANTIZE")
def dequantize(x: Node, parameters: Sequence[Node], *, quantization_type: QuantizationType) -> Node:
    """(x - zero_point) * scale; without a zero point, of 0

    Blocks as in QUANTIZE. The difference is exact.
    """
    scale, *zero_points = (_of_blocks(each, x.sizes) for each in parameters)
    return less_zero_point(x, zero_points[0] if zero_points else None, _COMPUTED) * scale


@defines("DYNAMIC_QUANTIZE_LINEAR", output=True)
def dynamic_quantize_linear(x: Node, *, output: tuple[TensorDesc, ...]) -> tuple[Node, Node, Node]:
    """scale = (max(x) - min(x)) / (Max - Min), zero_point = round(Min - min(x) / scale),
    clamp(round(x / scale) + zero_point) to Min and Max, those of the output's type

    As in ONNX, which ONNX Runtime gives to this operator, 0 counts among the elements whose extremes are
    taken, so that it has a number of its own. Where all elements are 0, the scale is 1. A NaN makes the scale
    NaN and all numbers 0. An infinity, or max(x) - min(x) beyond float32, makes the scale infinite: infinite
    elements then are 0, the others the zero point, which is Min, or 0 beside -infinity.
    """
    type = ScalarType.of(output[0].data_type)
    limits = np.iinfo(type.numpy.name)
    axes = range(len(x.sizes))
    least, most = minimum(reduce_minimum(x, axes), 0.0), maximum(reduce_maximum(x, axes), 0.0)
    extent = rounded(most - least)
    scale = rounded(select(equal(extent, 0.0), 1.0, extent / float(limits.max - limits.min)))
    zero_point = convert(round_even(rounded(float(limits.min) - rounded(least / scale))), type)
    return _quantized(rounded(x) / scale, zero_point, output[0]), scale, zero_point


def requantized(
    sums: Node, scale: Node, output_scale: Node, zero_point: Node | None, output: TensorDesc
) -> Node:
    """Return clamp(round(y / output_scale) + zero_point) to the output's range, where y = sums * scale."""
    y = rounded(rounded(convert(sums, _COMPUTED)) * scale)
    return _quantized(y / output_scale, zero_point, output)


def exact_sum_type(count: int) -> ScalarType:
    """Return a type that holds sums of `count` products of differences of 8-bit integers."""
    return counting(count * 255**2)


def less_zero_point(x: Node, zero_point: Node | None, type: ScalarType) -> Node:
    """Return x - zero_point in a type that holds the difference."""
    value = convert(x, type)
    return value if zero_point is None else value - convert(zero_point, type)


def aligned(parameter: Node, rank: int) -> Node:
    """Return a scale or a zero point with its dimensions right-aligned under `rank` others."""
    return reshaped(parameter, (*(1,) * (rank - len(parameter.sizes)), *parameter.sizes))


def _of_blocks(parameter: Node, sizes: Sequence[int]) -> Node:
    """Return a scale or a zero point for each element of a tensor of `sizes`."""
    pairs = list(zip(parameter.sizes, sizes, strict=True))
    if all(own in (1, size) for own, size in pairs):
        return parameter
    # Dimensions of (blocks, elements of a block).
    steps = [[0] * (2 * len(sizes)) for _ in sizes]
    for dimension, (own, _) in enumerate(pairs):
        steps[dimension][2 * dimension] = int(own > 1)
    spread = [part for own, size in pairs for part in (own, size // own)]
    return reshaped(view(parameter, spread, (0,) * len(sizes), steps), sizes)


def _quantized(quotient: Node, zero_point: Node | None, output: TensorDesc) -> Node:
    whole = round_even(rounded(quotient))
    if zero_point is not None:
        whole = whole + convert(zero_point, _COMPUTED)
    return convert(whole, ScalarType.of(output.data_type))
