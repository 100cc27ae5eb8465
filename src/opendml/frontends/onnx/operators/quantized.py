"""Quantized numbers and their products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result, require_expressible
from opendml.frontends.onnx.operators.matrix import batch_sizes, stacked
from opendml.frontends.onnx.operators.views import along, shaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Type, stored_type
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_BYTES = (np.dtype(np.uint8), np.dtype(np.int8))
_NIBBLES = (np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.int4))
_LIMITS = {np.dtype(np.uint16): (0, 65535), np.dtype(np.int16): (-32768, 32767)}


def _parameter(node: Conversion, number: int, sizes: Sequence[int]) -> GraphTensor:
    """A scale or zero point with as many dimensions as the tensor: one element, one for each index of `axis`,
    or one for each block along it."""
    given, tensor = node.sizes(number), node.tensor(number)
    if math.prod(given) == 1:
        return shaped(tensor, [1] * max(1, len(sizes)))
    axis = node.axis(node.attribute("axis", 1), len(sizes))
    block = node.attribute("block_size", 0)
    if not block:
        if len(given) != 1 or given[0] != sizes[axis]:
            raise NotExpressible(f"input {number} of sizes {list(given)} along axis {axis} of {list(sizes)}")
        return along(tensor, axis, len(sizes))
    if len(given) != len(sizes) or given[axis] != -(-sizes[axis] // block):
        raise NotExpressible(f"blocks of {block} in {list(sizes)} with input {number} of sizes {list(given)}")
    if given[axis] * block == sizes[axis]:
        return tensor
    if node.type(number) in _NIBBLES:
        raise NotExpressible(f"blocks of {block} of 4-bit zero points do not divide {list(sizes)}")
    outer, inner = math.prod(given[:axis]), math.prod(given[axis + 1 :])
    wide = repeated(shaped(tensor, (outer, given[axis], 1, inner)), (outer, given[axis], block, inner))
    whole = shaped(wide, (*given[:axis], given[axis] * block, *given[axis + 1 :]))
    return dml.slice1(whole, input_window_sizes=sizes)


def _repeated_blocks(tensor: GraphTensor, sizes: Sequence[int]) -> GraphTensor:
    """Elements of blocks, each repeated over its block."""
    split = [each for size, whole in zip(tensor.sizes, sizes, strict=True) for each in (size, 1)]
    if tuple(tensor.sizes) == tuple(sizes) or len(split) > 8:
        return repeated(tensor, sizes)
    whole = [each for size, all in zip(tensor.sizes, sizes, strict=True) for each in (size, all // size)]
    return shaped(repeated(shaped(tensor, split), whole), sizes)


@converts("QuantizeLinear", since=10)
def quantize_linear(node: Conversion) -> Result:
    """Rounded to even, plus the zero point, within the type's limits."""
    sizes = node.sizes(0)
    type, tensor = _quantized_type(node), node.tensor(0)
    scale = _parameter(node, 1, tensor.sizes if sizes else (1,))
    zero = _parameter(node, 2, tensor.sizes if sizes else (1,)) if node.has(2) else None
    tensor, scale = _in_precision(node, tensor, scale)
    if type in _LIMITS:
        return node.result(_quantized_to_16_bits(tensor, scale, zero, type), sizes)
    if zero is None:
        zero = node.constant(np.zeros([1] * len(tensor.sizes), type))
    if tensor.data_type == TensorDataType.INT32:
        scale, zero = _repeated_blocks(scale, tensor.sizes), _repeated_blocks(zero, tensor.sizes)
        return node.result(dml.element_wise_quantize_linear(tensor, scale, zero), sizes)
    output = stored_type(type)
    kind = "SCALE_ZERO_POINT"
    return node.result(dml.quantize(tensor, [scale, zero], quantization_type=kind, output_type=output), sizes)


def _quantized_type(node: Conversion) -> Type:
    """That of the zero point, or `output_dtype`, or uint8."""
    named = node.attribute("output_dtype", 0)
    type = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(named)) if named else np.dtype(np.uint8)
    type = node.type(2) if node.has(2) else type
    if type not in (*_BYTES, *_NIBBLES, *_LIMITS):
        raise NotExpressible(f"quantized to {type.name}")
    return type


def _in_precision(
    node: Conversion, tensor: GraphTensor, scale: GraphTensor
) -> tuple[GraphTensor, GraphTensor]:
    """Both in the type that they are divided in: that of the scale, or `precision`."""
    if tensor.data_type == TensorDataType.INT32 and scale.data_type == TensorDataType.FLOAT32:
        return tensor, scale
    named = node.attribute("precision", 0)
    type = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(named)) if named else node.type(1)
    require_expressible((1,), type, "precision")
    wanted = stored_type(type)
    both = [
        each if each.data_type == wanted else dml.cast(each, output_type=wanted) for each in (tensor, scale)
    ]
    return both[0], both[1]


def _quantized_to_16_bits(
    tensor: GraphTensor, scale: GraphTensor, zero: GraphTensor | None, type: Type
) -> GraphTensor:
    """The same in float32, which holds 16 bits."""
    wide = TensorDataType.FLOAT32
    floats = [
        each if each.data_type == wide else dml.cast(each, output_type=wide) for each in (tensor, scale)
    ]
    result = dml.element_wise_round(
        dml.element_wise_divide(floats[0], _repeated_blocks(floats[1], tensor.sizes))
    )
    if zero is not None:
        result = dml.element_wise_add(
            result, _repeated_blocks(dml.cast(zero, output_type=wide), tensor.sizes)
        )
    least, most = _LIMITS[type]
    return dml.cast(dml.element_wise_clip(result, min=least, max=most), output_type=stored_type(type))


@converts("DequantizeLinear", since=10)
def dequantize_linear(node: Conversion) -> Result:
    """Less the zero point, times the scale."""
    sizes, type, tensor = node.sizes(0), node.type(0), node.tensor(0)
    scale = _parameter(node, 1, tensor.sizes)
    zero = _parameter(node, 2, tensor.sizes) if node.has(2) else None
    named = node.attribute("output_dtype", 0)
    if named and np.dtype(onnx.helper.tensor_dtype_to_np_dtype(named)) != node.type(1):
        raise NotExpressible("output_dtype differs from the scale's type")
    if type in (*_BYTES, *_NIBBLES):
        kind = "SCALE" if zero is None else "SCALE_ZERO_POINT"
        quantizations = [scale] if zero is None else [scale, zero]
        return node.result(dml.dequantize(tensor, quantizations, quantization_type=kind), sizes)
    scale = _repeated_blocks(scale, tensor.sizes)
    zero = None if zero is None else _repeated_blocks(zero, tensor.sizes)
    return node.result(dml.element_wise_dequantize_linear(tensor, scale, zero), sizes)


@converts("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(node: Conversion) -> Result:
    """Quantized with a scale and a zero point of its own."""
    result = dml.dynamic_quantize_linear(node.tensor(0))
    return (
        node.result(result.output, node.sizes(0)),
        node.result(result.output_scale, ()),
        node.result(result.output_zero_point, ()),
    )


@converts("MatMulInteger", since=10)
def matmul_integer(node: Conversion) -> Result:
    """8-bit integers less their zero points, summed in 32 bits."""
    a, b, sizes = _matrices(node, 0, 1)
    result = dml.matrix_multiply_integer(a[0], _of_rows(node, 2, a), b[0], _of_columns(node, 3, b))
    return node.result(result, sizes)


@converts("QLinearMatMul", since=10)
def qlinear_matmul(node: Conversion) -> Result:
    """Products of quantized numbers, quantized."""
    a, b, sizes = _matrices(node, 0, 3)
    result = dml.quantized_linear_matrix_multiply(
        a[0],
        _single(_of_rows(node, 1, a)),
        _of_rows(node, 2, a),
        b[0],
        _single(_of_columns(node, 4, b)),
        _of_columns(node, 5, b),
        _single(_of_rows(node, 6, a)),
        _of_rows(node, 7, a),
    )
    return node.result(result, sizes)


Stack = tuple[GraphTensor, tuple[int, ...]]
"""A stack of matrices of three dimensions, and the sizes in front of them as ONNX has them."""


def _matrices(node: Conversion, left: int, right: int) -> tuple[Stack, Stack, tuple[int, ...]]:
    """Two stacks of matrices, and ONNX's sizes of their product."""
    if not node.sizes(left) or not node.sizes(right):
        raise NotExpressible("a scalar is no matrix")
    a, b = node.tensor(left), node.tensor(right)
    is_row, is_column = len(a.sizes) == 1, len(b.sizes) == 1
    a, b = shaped(a, (1, *a.sizes)) if is_row else a, shaped(b, (*b.sizes, 1)) if is_column else b
    batch = batch_sizes(a, b)
    sizes = (*batch, *(() if is_row else a.sizes[-2:-1]), *(() if is_column else b.sizes[-1:]))
    return (stacked(a, batch), batch), (stacked(b, batch), batch), sizes


def _of_rows(node: Conversion, number: int, stack: Stack) -> GraphTensor | None:
    """A parameter of the whole matrices or of each row."""
    return _of_lines(node, number, (stack[0].sizes[1], 1))


def _of_columns(node: Conversion, number: int, stack: Stack) -> GraphTensor | None:
    """A parameter of the whole matrices or of each column."""
    return _of_lines(node, number, (1, stack[0].sizes[2]))


def _of_lines(node: Conversion, number: int, lines: tuple[int, int]) -> GraphTensor | None:
    tensor = node.optional(number)
    if tensor is None or math.prod(tensor.sizes) == 1:
        return None if tensor is None else shaped(tensor, (1, 1, 1))
    given = node.sizes(number)
    written = (
        (given[0] if lines[1] == 1 else 1, given[0] if lines[0] == 1 else 1)
        if len(given) == 1
        else given[-2:]
    )
    if math.prod(given) != max(lines) or written != lines:
        raise NotExpressible(f"input {number} of sizes {list(given)} for {max(lines)} lines")
    return shaped(tensor, (1, *lines))


def _single(scale: GraphTensor | None) -> GraphTensor:
    """A scale in float32."""
    if scale is None:
        raise NotExpressible("a scale is missing")
    is_single = scale.data_type == TensorDataType.FLOAT32
    return scale if is_single else dml.cast(scale, output_type=TensorDataType.FLOAT32)
