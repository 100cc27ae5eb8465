"""Quantized numbers and their products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along, cast, shaped
from opendml.frontends.common.types import NotExpressible, data_type_of
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.matrix import Stacks, stacks_of
from opendml.frontends.onnx.registry import MICROSOFT, converts
from opendml.frontends.onnx.values import Type, stored_type
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TENSOR_DIMENSION_COUNT_MAX1, TensorDataType

_FLOAT32 = TensorDataType.FLOAT32
_NIBBLES = ("uint4", "int4")
_NARROW = ("uint8", "int8", *_NIBBLES)
"""The types of NumPy and ml_dtypes that QUANTIZE and DEQUANTIZE take."""
_LIMITS = {"uint16": (0, 65535), "int16": (-32768, 32767)}


def _parameter(node: OnnxConversion, number: int, sizes: Sequence[int]) -> GraphTensor:
    """Return a scale or zero point with as many dimensions as the tensor.

    It has one element, one for each index of `axis`, or one for each block along it.
    """
    given, tensor = node.sizes(number), node.tensor(number)
    if math.prod(given) == 1:
        return shaped(tensor, [1] * max(1, len(sizes)))
    axis, block = node.axis_attribute(len(sizes)), node.attribute("block_size")
    if not block:
        if len(given) != 1 or given[0] != sizes[axis]:
            raise NotExpressible(f"input {number} of sizes {list(given)} along axis {axis} of {list(sizes)}")
        return along(tensor, axis, len(sizes))
    if len(given) != len(sizes) or given[axis] != -(-sizes[axis] // block):
        raise NotExpressible(f"blocks of {block} in {list(sizes)} with input {number} of sizes {list(given)}")
    if given[axis] * block == sizes[axis]:
        return tensor
    if node.type(number).name in _NIBBLES:
        raise NotExpressible(f"blocks of {block} of 4-bit zero points do not divide {list(sizes)}")
    outer, inner = math.prod(given[:axis]), math.prod(given[axis + 1 :])
    wide = repeated(shaped(tensor, (outer, given[axis], 1, inner)), (outer, given[axis], block, inner))
    whole = shaped(wide, (*given[:axis], given[axis] * block, *given[axis + 1 :]))
    return dml.slice1(whole, input_window_sizes=sizes)


def _parameters(node: OnnxConversion, sizes: Sequence[int]) -> tuple[GraphTensor, GraphTensor | None]:
    """Return the scale, and the zero point if there is one."""
    return _parameter(node, 1, sizes), _parameter(node, 2, sizes) if node.has(2) else None


def _repeated_blocks(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """Repeat elements of blocks, each over its block."""
    split = [each for size in tensor.sizes for each in (size, 1)]
    if tuple(tensor.sizes) == tuple(sizes) or len(split) > TENSOR_DIMENSION_COUNT_MAX1:
        return repeated(tensor, sizes)
    whole = [each for size, all in zip(tensor.sizes, sizes, strict=True) for each in (size, all // size)]
    return shaped(repeated(shaped(tensor, split), whole), sizes)


@converts("QuantizeLinear", since=10, to="ELEMENT_WISE_QUANTIZE_LINEAR QUANTIZE")
@converts("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(node: OnnxConversion) -> Result:
    """Convert QuantizeLinear: rounded to even, plus the zero point, within the type's limits."""
    sizes, type, tensor = node.sizes(0), _quantized_type(node), node.tensor(0)
    scale, zero = _parameters(node, tensor.sizes)
    tensor, scale = _in_precision(node, tensor, scale)
    if type.name in _LIMITS:
        return node.result(_quantized_to_16_bits(tensor, scale, zero, type), sizes)
    if zero is None:
        zero = node.constant(np.zeros([1] * len(tensor.sizes), type))
    if tensor.data_type == TensorDataType.INT32:
        scale, zero = _repeated_blocks(scale, tensor.sizes), _repeated_blocks(zero, tensor.sizes)
        return node.result(dml.element_wise_quantize_linear(tensor, scale, zero), sizes)
    return node.result(quantized(tensor, scale, zero, stored_type(type)), sizes)


def _quantized_type(node: OnnxConversion) -> Type:
    """Return the type of the zero point, or `output_dtype`, or uint8."""
    type = node.type(2) if node.has(2) else node.type_attribute("output_dtype") or np.dtype(np.uint8)
    if type.name not in (*_NARROW, *_LIMITS):
        raise NotExpressible(f"quantized to {type.name}")
    return type


def _in_precision(
    node: OnnxConversion, tensor: GraphTensor, scale: GraphTensor
) -> tuple[GraphTensor, GraphTensor]:
    """Return both in the type of the division: that of the scale, or `precision`."""
    if tensor.data_type == TensorDataType.INT32 and scale.data_type == _FLOAT32:
        return tensor, scale
    wanted = data_type_of(node.type_attribute("precision") or node.type(1))
    return cast(tensor, wanted), cast(scale, wanted)


def _quantized_to_16_bits(
    tensor: GraphTensor, scale: GraphTensor, zero: GraphTensor | None, type: Type
) -> GraphTensor:
    """Quantize in float32, which holds 16 bits."""
    divisor = _repeated_blocks(cast(scale, _FLOAT32), tensor.sizes)
    result = dml.element_wise_round(cast(tensor, _FLOAT32) / divisor)
    if zero is not None:
        result = result + _repeated_blocks(cast(zero, _FLOAT32), tensor.sizes)
    least, most = _LIMITS[type.name]
    return dml.cast(dml.element_wise_clip(result, min=least, max=most), output_type=stored_type(type))


@converts("DequantizeLinear", since=10, to="ELEMENT_WISE_DEQUANTIZE_LINEAR DEQUANTIZE")
@converts("DequantizeLinear", domain=MICROSOFT)
def dequantize_linear(node: OnnxConversion) -> Result:
    """Convert DequantizeLinear: less the zero point, times the scale."""
    sizes, tensor = node.sizes(0), node.tensor(0)
    scale, zero = _parameters(node, tensor.sizes)
    if (node.type_attribute("output_dtype") or node.type(1)) != node.type(1):
        raise NotExpressible("output_dtype differs from the scale's type")
    if node.type(0).name in _NARROW:
        return node.result(dequantized(tensor, scale, zero), sizes)
    zero = None if zero is None else _repeated_blocks(zero, tensor.sizes)
    scale = _repeated_blocks(scale, tensor.sizes)
    return node.result(dml.element_wise_dequantize_linear(tensor, scale, zero), sizes)


def quantized(
    tensor: GraphTensor, scale: GraphTensor, zero: GraphTensor, type: TensorDataType
) -> GraphTensor:
    """Return floats in a quantized type."""
    kind = "SCALE_ZERO_POINT"
    return dml.quantize(tensor, [scale, zero], quantization_type=kind, output_type=type)


def dequantized(tensor: GraphTensor, scale: GraphTensor, zero: GraphTensor | None) -> GraphTensor:
    """Return quantized numbers as floats, with a scale and perhaps a zero point."""
    if zero is None:
        return dml.dequantize(tensor, [scale], quantization_type="SCALE")
    return dml.dequantize(tensor, [scale, zero], quantization_type="SCALE_ZERO_POINT")


@converts("DynamicQuantizeLinear", since=11, to="DYNAMIC_QUANTIZE_LINEAR")
def dynamic_quantize_linear(node: OnnxConversion) -> Result:
    """Convert DynamicQuantizeLinear, which computes its own scale and zero point."""
    result = dml.dynamic_quantize_linear(node.tensor(0))
    scalars = (node.result(each, ()) for each in (result.output_scale, result.output_zero_point))
    return (node.result(result.output, node.sizes(0)), *scalars)


@converts("MatMulInteger", since=10, to="MATRIX_MULTIPLY_INTEGER")
def matmul_integer(node: OnnxConversion) -> Result:
    """Convert MatMulInteger: 8-bit integers less their zero points, summed in 32 bits."""
    stacks = _stacks(node, 0, 1)
    a, b = stacks.flat
    result = dml.matrix_multiply_integer(a, _of_rows(node, 2, a), b, _of_columns(node, 3, b))
    return node.result(result, stacks.sizes)


@converts("QLinearMatMul", since=10, to="QUANTIZED_LINEAR_MATRIX_MULTIPLY")
def qlinear_matmul(node: OnnxConversion) -> Result:
    """Convert QLinearMatMul: quantized products of quantized numbers."""
    stacks = _stacks(node, 0, 3)
    a, b = stacks.flat
    result = dml.quantized_linear_matrix_multiply(
        a,
        _single(_of_rows(node, 1, a)),
        _of_rows(node, 2, a),
        b,
        _single(_of_columns(node, 4, b)),
        _of_columns(node, 5, b),
        _single(_of_rows(node, 6, a)),
        _of_rows(node, 7, a),
    )
    return node.result(result, stacks.sizes)


def _stacks(node: OnnxConversion, left: int, right: int) -> Stacks:
    ranks = (len(node.sizes(number)) for number in (left, right))
    return stacks_of(node.tensor(left), node.tensor(right), *ranks)


def _of_rows(node: OnnxConversion, number: int, matrices: GraphTensor) -> GraphTensor | None:
    """Return a parameter of the whole matrices or of each row."""
    return _of_lines(node, number, (matrices.sizes[1], 1))


def _of_columns(node: OnnxConversion, number: int, matrices: GraphTensor) -> GraphTensor | None:
    """Return a parameter of the whole matrices or of each column."""
    return _of_lines(node, number, (1, matrices.sizes[2]))


def _of_lines(node: OnnxConversion, number: int, lines: tuple[int, int]) -> GraphTensor | None:
    tensor = node.optional(number)
    if tensor is None or math.prod(tensor.sizes) == 1:
        return None if tensor is None else shaped(tensor, (1, 1, 1))
    given = node.sizes(number)
    written = given[-2:]
    if len(given) == 1:
        written = (given[0] if lines[1] == 1 else 1, given[0] if lines[0] == 1 else 1)
    if math.prod(given) != max(lines) or written != lines:
        raise NotExpressible(f"input {number} of sizes {list(given)} for {max(lines)} lines")
    return shaped(tensor, (1, *lines))


def _single(scale: GraphTensor | None) -> GraphTensor:
    """Return a scale in float32."""
    if scale is None:
        raise NotExpressible("a scale is missing")
    return cast(scale, _FLOAT32)
