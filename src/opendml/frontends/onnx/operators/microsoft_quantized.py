"""Quantized operators of ONNX Runtime's own domain."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ml_dtypes
import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.node import MICROSOFT
from opendml.frontends.onnx.operators.broadcasting import broadcast
from opendml.frontends.onnx.operators.convolution import qlinear_conv
from opendml.frontends.onnx.operators.matrix import batch_sizes, stacked
from opendml.frontends.onnx.operators.microsoft_matrix import ChannelsLast
from opendml.frontends.onnx.operators.pooling import max_pool
from opendml.frontends.onnx.operators.quantized import dequantize_linear, quantize_linear
from opendml.frontends.onnx.operators.views import permuted, shaped
from opendml.frontends.onnx.operators.windows import windows_of
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array, Computed
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

converts("QuantizeLinear", domain=MICROSOFT)(quantize_linear)
converts("DequantizeLinear", domain=MICROSOFT)(dequantize_linear)


def _one(node: Conversion, number: int, rank: int) -> GraphTensor | None:
    """A scale or zero point of a whole tensor; None: it is absent."""
    if not node.has(number):
        return None
    if math.prod(node.sizes(number)) != 1:
        raise NotExpressible(f"input {number} of sizes {list(node.sizes(number))}; one for all is needed")
    return shaped(node.tensor(number), (1,) * rank)


def _scale(node: Conversion, number: int, rank: int) -> GraphTensor:
    """A scale of a whole tensor, which must be there."""
    scale = _one(node, number, rank)
    if scale is None:
        raise NotExpressible(f"input {number}, a scale, is missing")
    return scale


def _floats(node: Conversion, number: int, tensor: GraphTensor | None = None) -> GraphTensor:
    """An input with its scale and zero point behind it, as floats."""
    tensor = node.tensor(number) if tensor is None else tensor
    rank = len(tensor.sizes)
    scale, zero = _scale(node, number + 1, rank), _one(node, number + 2, rank)
    if zero is None:
        return dml.dequantize(tensor, [scale], quantization_type="SCALE")
    return dml.dequantize(tensor, [scale, zero], quantization_type="SCALE_ZERO_POINT")


def _quantized(
    node: Conversion, tensor: GraphTensor, number: int, sizes: Sequence[int], type: TensorDataType
) -> Computed:
    """Floats quantized by the scale of that number and the zero point behind it."""
    rank = len(tensor.sizes)
    scale, zero = _scale(node, number, rank), _one(node, number + 1, rank)
    if zero is None:
        zero = node.constant(np.zeros((1,) * rank), np.int8 if type == TensorDataType.INT8 else np.uint8)
    kind = "SCALE_ZERO_POINT"
    return node.result(dml.quantize(tensor, [scale, zero], quantization_type=kind, output_type=type), sizes)


@converts("QLinearAdd", domain=MICROSOFT)
def qlinear_add(node: Conversion) -> Result:
    """Sums of quantized numbers."""
    a, b = broadcast(node, (0, 3))
    total = dml.element_wise_add(_floats(node, 0, a), _floats(node, 3, b))
    return _quantized(node, total, 6, _common(node), a.data_type)


@converts("QLinearMul", domain=MICROSOFT)
def qlinear_mul(node: Conversion) -> Result:
    """Products of quantized numbers, each with its own factor."""
    a, b = broadcast(node, (0, 3))
    result = dml.element_wise_multiply(_floats(node, 0, a), _floats(node, 3, b))
    return _quantized(node, result, 6, _common(node), a.data_type)


def _common(node: Conversion) -> tuple[int, ...]:
    return np.broadcast_shapes(node.sizes(0), node.sizes(3))


@converts("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(node: Conversion) -> Result:
    """Sigmoid of quantized numbers."""
    result = dml.activation_sigmoid(_floats(node, 0))
    return _quantized(node, result, 3, node.sizes(0), node.tensor(0).data_type)


@converts("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(node: Conversion) -> Result:
    """LeakyRelu of quantized numbers."""
    result = dml.activation_leaky_relu(_floats(node, 0), alpha=node.attribute("alpha", 0.01))
    return _quantized(node, result, 3, node.sizes(0), node.tensor(0).data_type)


@converts("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(node: Conversion) -> Result:
    """Softmax of quantized numbers; before opset 13 over all axes from `axis` on."""
    rank = len(node.sizes(0))
    axis = node.axis(node.attribute("axis", -1), rank)
    axes = [axis] if node.attribute("opset", 13) >= 13 else list(range(axis, rank))
    result = dml.activation_softmax1(_floats(node, 0), axes=axes)
    return _quantized(node, result, 3, node.sizes(0), node.tensor(0).data_type)


@converts("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(node: Conversion) -> Result:
    """The mean of each channel."""
    sizes = node.sizes(0)
    axes = list(range(1, len(sizes) - 1) if node.attribute("channels_last", 0) else range(2, len(sizes)))
    result = dml.reduce(_floats(node, 0), function="AVERAGE", axes=axes)
    return _quantized(node, result, 3, result.sizes, node.tensor(0).data_type)


@converts("QLinearReduceMean", domain=MICROSOFT)
def qlinear_reduce_mean(node: Conversion) -> Result:
    """Means over axes."""
    sizes = node.sizes(0)
    axes = sorted({node.axis(each, len(sizes)) for each in node.attribute("axes", range(len(sizes)))})
    result = dml.reduce(_floats(node, 0), function="AVERAGE", axes=axes)
    kept = [size for axis, size in enumerate(result.sizes) if axis not in axes]
    sizes = result.sizes if node.attribute("keepdims", 1) else tuple(kept)
    return _quantized(node, result, 3, sizes, node.tensor(0).data_type)


@converts("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(node: Conversion) -> Result:
    """Means of windows."""
    view = ChannelsLast(node) if node.attribute("channels_last", 0) else node
    windows, tensor = windows_of(view, node.required("kernel_shape")), view.tensor(0)
    rank = len(tensor.sizes)
    if windows.reached != windows.end:
        raise NotExpressible("windows that reach behind the padding, or not to its end")
    scale, result_scale = _scale(node, 1, rank), _scale(node, 3, rank)
    result = dml.quantized_linear_average_pooling(
        tensor,
        scale,
        _one(node, 2, rank),
        result_scale,
        _one(node, 4, rank),
        strides=windows.strides,
        window_size=windows.kernel,
        start_padding=windows.start,
        end_padding=windows.end,
        include_padding=bool(node.attribute("count_include_pad", 0)),
    )
    return view.turned(result) if isinstance(view, ChannelsLast) else result


@converts("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(node: Conversion) -> Result:
    """Quantized tensors one behind the other; each comes with its scale and zero point."""
    first, rank = node.tensor(2), len(node.sizes(2))
    axis = node.axis(node.required("axis"), rank)
    result = dml.join([_floats(node, number) for number in range(2, node.input_count, 3)], axis=axis)
    return _quantized(node, result, 0, result.sizes, first.data_type)


@converts("QLinearConv", domain=MICROSOFT)
def nhwc_qlinear_conv(node: Conversion) -> Result:
    """ONNX's QLinearConv, whose input may have its channels last."""
    if not node.attribute("channels_last", 0):
        return qlinear_conv(node)
    view = ChannelsLast(node)
    return view.turned(qlinear_conv(view))


@converts("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: Conversion) -> Result:
    """MaxPool of an input with its channels last."""
    view = ChannelsLast(node)
    result = max_pool(view)
    first = result[0] if isinstance(result, tuple) else result
    assert first is not None
    return view.turned(first)


def float_product(
    a: tuple[GraphTensor, GraphTensor, GraphTensor | None],
    b: tuple[GraphTensor, GraphTensor, GraphTensor | None],
    bias: GraphTensor | None,
) -> GraphTensor:
    """The products of two stacks of quantized matrices as floats. MATRIX_MULTIPLY_INTEGER_TO_FLOAT takes
    both of one type alone.

    Args:
        a, b: the matrices, their scales, their zero points: of three dimensions.
        bias: what is added.
    """
    if a[0].data_type == b[0].data_type:
        sizes = (*a[0].sizes[:-1], b[0].sizes[-1])
        whole = None if bias is None else repeated(bias, sizes)
        return dml.matrix_multiply_integer_to_float(*a, *b, whole)
    summed = dml.matrix_multiply_integer(a[0], a[2], b[0], b[2])
    floats = dml.cast(summed, output_type=TensorDataType.FLOAT32)
    result = dml.element_wise_multiply(floats, dml.element_wise_multiply(a[1], b[1]))
    return result if bias is None else dml.element_wise_add(result, bias)


def _to_float(
    node: Conversion,
    a: tuple[GraphTensor, GraphTensor, GraphTensor | None],
    scale: int,
    zero: int,
    bias: int,
) -> Result:
    """The products of quantized matrices (input 1 is the second) as floats.

    Args:
        a: the first matrices, their scale, their zero point.
        scale, zero, bias: the numbers of the second matrices' inputs, one for all or one for each column.
    """
    tensor, b = a[0], node.tensor(1)
    if len(tensor.sizes) < 2 or len(b.sizes) < 2:
        raise NotExpressible(f"vectors: {list(tensor.sizes)} by {list(b.sizes)}")
    batch, one = batch_sizes(tensor, b), (1, 1, 1)
    result = float_product(
        (stacked(tensor, batch), shaped(a[1], one), None if a[2] is None else shaped(a[2], one)),
        (stacked(b, batch), _of_columns(node, scale), _of_columns(node, zero) if node.has(zero) else None),
        _of_columns(node, bias) if node.has(bias) else None,
    )
    return node.result(result, (*batch, tensor.sizes[-2], b.sizes[-1]))


def _of_columns(node: Conversion, number: int) -> GraphTensor:
    sizes, columns = node.sizes(number), node.sizes(1)[-1]
    count = math.prod(sizes)
    if count not in (1, columns) or len(sizes) > 1:
        raise NotExpressible(f"input {number} of sizes {list(sizes)} for {columns} columns")
    return shaped(node.tensor(number), (1, 1, count))


@converts("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(node: Conversion) -> Result:
    """Products of quantized matrices as floats."""
    scale = _scale(node, 2, 1)
    return _to_float(node, (node.tensor(0), scale, _one(node, 4, 1)), scale=3, zero=5, bias=6)


@converts("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(node: Conversion) -> Result:
    """The same with a first matrix that is quantized here."""
    quantized = dml.dynamic_quantize_linear(node.tensor(0))
    a = (quantized.output, quantized.output_scale, quantized.output_zero_point)
    return _to_float(node, a, scale=2, zero=3, bias=4)


@converts("QGemm", domain=MICROSOFT)
def quantized_gemm(node: Conversion) -> Result:
    """`alpha` times the sum of a product of quantized matrices and of integers; floats, or quantized."""
    matrices = [node.tensor(0), node.tensor(3)]
    for place, name in enumerate(("transA", "transB")):
        if node.attribute(name, 0):
            matrices[place] = permuted(matrices[place], (1, 0))
    a, b = matrices
    rows, columns = a.sizes[0], b.sizes[1]
    zero = shaped(node.tensor(5), (1, math.prod(node.sizes(5)))) if node.has(5) else None
    summed = dml.matrix_multiply_integer(a, _one(node, 2, 2), b, zero)
    if node.has(6):
        summed = dml.element_wise_add(summed, repeated(node.tensor(6), (rows, columns)))
    a_scale = _scale(node, 1, 2)
    scale = dml.element_wise_multiply(a_scale, shaped(node.tensor(4), (1, math.prod(node.sizes(4)))))
    scale = dml.element_wise_multiply(scale, float(node.attribute("alpha", 1.0)))
    result = dml.element_wise_multiply(dml.cast(summed, output_type=TensorDataType.FLOAT32), scale)
    if not node.has(7):
        return result
    type = node.tensor(8).data_type if node.has(8) else TensorDataType.UINT8
    return _quantized(node, result, 7, result.sizes, type)


@converts("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(node: Conversion) -> Result:
    """By a matrix of which each block along a row has 4 or 8 bits per element and a scale of its own."""
    bits, block = node.attribute("bits", 4), node.required("block_size")
    depth, columns = node.required("K"), node.required("N")
    sizes, blocks = node.sizes(0), -(-depth // block)
    if bits not in (4, 8):
        raise NotExpressible(f"{bits} bits")
    if node.has(4) or node.attribute("weight_prepacked", 0):
        raise NotExpressible("g_idx" if node.has(4) else "weights that are packed for a device")
    packed = node.tensor(1) if bits == 8 else None
    if packed is None:
        packed = node.constant(_nibbles(node, 1, columns, blocks * block), ml_dtypes.uint4)
    weights = shaped(packed, (columns, blocks * block))
    scale = shaped(node.tensor(2), (columns, blocks))
    floats = _weights(node, weights, scale, blocks, bits)
    rows = math.prod(sizes[:-1])
    given, rest = shaped(node.tensor(0), (rows, depth)), blocks * block - depth
    if rest:
        # Weights that end within a block would be written to memory as floats.
        given = dml.padding1(given, padding_mode="CONSTANT", end_padding=[0, rest])
    bias = None
    if node.has(5):
        bias = node.tensor(5).reinterpret((rows, columns), strides=(0, 1))
    result = dml.gemm(given, floats, bias, trans_b="TRANSPOSE")
    return node.result(result, (*sizes[:-1], columns))


def _weights(
    node: Conversion, weights: GraphTensor, scale: GraphTensor, blocks: int, bits: int
) -> GraphTensor:
    """The matrix as floats."""
    columns, kind = weights.sizes[0], "SCALE_ZERO_POINT"
    stored: type = np.uint8 if bits == 8 else ml_dtypes.uint4
    if not node.has(3):
        middle = node.constant(np.full((columns, blocks), 1 << (bits - 1)), stored)
        return dml.dequantize(weights, [scale, middle], quantization_type=kind)
    if node.type(3) == np.uint8:
        if bits == 8:
            zeros = shaped(node.tensor(3), (columns, blocks))
        else:
            zeros = node.constant(_nibbles(node, 3, columns, blocks), ml_dtypes.uint4)
        return dml.dequantize(weights, [scale, zeros], quantization_type=kind)
    block = weights.sizes[1] // blocks
    offsets = dml.element_wise_multiply(shaped(node.tensor(3), (columns, blocks)), scale)
    spread = shaped(offsets, (columns, blocks, 1)).reinterpret(
        (columns, blocks, block), strides=(blocks, 1, 0)
    )
    floats = dml.dequantize(weights, [scale], quantization_type="SCALE")
    return dml.element_wise_subtract(floats, shaped(spread, (columns, blocks * block)))


def _nibbles(node: Conversion, number: int, rows: int, columns: int) -> Array:
    """The halves of a weight's bytes, the lower one first; a row that ends in half a byte leaves the rest."""
    if not node.is_known(number):
        raise NotExpressible(f"input {number}: 4-bit numbers that are computed")
    given = node.known(number).reshape(rows, -1)
    both = np.stack([given & 15, given >> 4], axis=-1).reshape(rows, -1)
    return np.ascontiguousarray(both[:, :columns])
