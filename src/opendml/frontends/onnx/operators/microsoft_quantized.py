"""Quantized operators of ONNX Runtime's own domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import permuted, shaped
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.convolution import qlinear_conv
from opendml.frontends.onnx.operators.matrix import ChannelsLast, stacks_of
from opendml.frontends.onnx.operators.pooling import max_pool
from opendml.frontends.onnx.operators.quantized import dequantized, quantized
from opendml.frontends.onnx.operators.windows import windows_of
from opendml.frontends.onnx.registry import MICROSOFT, Converter, converts
from opendml.frontends.onnx.values import Array, Computed
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

Quantized = tuple[GraphTensor, GraphTensor, GraphTensor | None]
"""Quantized matrices, their scale, and their zero point."""


def _one(node: OnnxConversion, number: int, rank: int) -> GraphTensor | None:
    """Return a scale or zero point of a whole tensor; None if it is absent."""
    if not node.has(number):
        return None
    if math.prod(node.sizes(number)) != 1:
        raise NotExpressible(f"input {number} of sizes {list(node.sizes(number))}; one for all is needed")
    return shaped(node.tensor(number), (1,) * rank)


def _scale(node: OnnxConversion, number: int, rank: int) -> GraphTensor:
    """Return a scale of a whole tensor, which must be there."""
    scale = _one(node, number, rank)
    if scale is None:
        raise NotExpressible(f"input {number}, a scale, is missing")
    return scale


def _floats(node: OnnxConversion, number: int, tensor: GraphTensor | None = None) -> GraphTensor:
    """Return an input, whose scale and zero point are the next ones, as floats."""
    tensor = node.tensor(number) if tensor is None else tensor
    rank = len(tensor.sizes)
    return dequantized(tensor, _scale(node, number + 1, rank), _one(node, number + 2, rank))


def _quantized(
    node: OnnxConversion, tensor: GraphTensor, number: int, sizes: Sequence[int], type: TensorDataType
) -> Computed:
    """Quantize floats by the scale in an input and the zero point in the next one."""
    rank = len(tensor.sizes)
    scale, zero = _scale(node, number, rank), _one(node, number + 1, rank)
    if zero is None:
        zero = node.constant(np.zeros((1,) * rank), np.int8 if type == TensorDataType.INT8 else np.uint8)
    return node.result(quantized(tensor, scale, zero, type), sizes)


def _of_two(function: Callable[..., GraphTensor]) -> Converter:
    """Return a converter of a function of inputs 0 and 3."""

    def convert(node: OnnxConversion) -> Result:
        a, b = node.operands(0, 3)
        result = function(_floats(node, 0, a), _floats(node, 3, b))
        return _quantized(node, result, 6, node.common_sizes(0, 3), a.data_type)

    return convert


def _of_one(function: Callable[[OnnxConversion, GraphTensor], GraphTensor]) -> Converter:
    """Return a converter of a function of input 0 that keeps its sizes."""

    def convert(node: OnnxConversion) -> Result:
        result = function(node, _floats(node, 0))
        return _quantized(node, result, 3, node.sizes(0), node.tensor(0).data_type)

    return convert


def _softmax(node: OnnxConversion, tensor: GraphTensor) -> GraphTensor:
    """Compute Softmax. Before opset 13 it goes over all axes from `axis` on."""
    rank, axis = len(node.sizes(0)), node.axis_attribute()
    axes = [axis] if node.attribute("opset") >= 13 else list(range(axis, rank))
    return dml.activation_softmax1(tensor, axes=axes)


converts("QLinearAdd", domain=MICROSOFT, to="ELEMENT_WISE_QUANTIZED_LINEAR_ADD")(
    _of_two(dml.element_wise_add)
)
converts("QLinearMul", domain=MICROSOFT, to="ELEMENT_WISE_MULTIPLY")(_of_two(dml.element_wise_multiply))
converts("QLinearSigmoid", domain=MICROSOFT, to="ACTIVATION_SIGMOID")(
    _of_one(lambda node, tensor: dml.activation_sigmoid(tensor))
)
converts("QLinearLeakyRelu", domain=MICROSOFT, to="ACTIVATION_LEAKY_RELU")(
    _of_one(lambda node, tensor: dml.activation_leaky_relu(tensor, alpha=node.attribute("alpha")))
)
converts("QLinearSoftmax", domain=MICROSOFT, to="ACTIVATION_SOFTMAX1")(_of_one(_softmax))


@converts("QLinearGlobalAveragePool", domain=MICROSOFT, to="QUANTIZED_LINEAR_AVERAGE_POOLING")
def qlinear_global_average_pool(node: OnnxConversion) -> Result:
    """Convert the mean of each channel."""
    rank = len(node.sizes(0))
    axes = range(1, rank - 1) if node.flag("channels_last") else range(2, rank)
    result = dml.reduce(_floats(node, 0), function="AVERAGE", axes=axes)
    return _quantized(node, result, 3, result.sizes, node.tensor(0).data_type)


@converts("QLinearReduceMean", domain=MICROSOFT, to="REDUCE")
def qlinear_reduce_mean(node: OnnxConversion) -> Result:
    """Convert means over axes."""
    rank = len(node.sizes(0))
    axes = sorted({node.axis(each, rank) for each in node.attribute("axes") or range(rank)})
    result = dml.reduce(_floats(node, 0), function="AVERAGE", axes=axes)
    kept = [size for axis, size in enumerate(result.sizes) if node.flag("keepdims") or axis not in axes]
    return _quantized(node, result, 3, kept, node.tensor(0).data_type)


@converts("QLinearAveragePool", domain=MICROSOFT, to="QUANTIZED_LINEAR_AVERAGE_POOLING")
def qlinear_average_pool(node: OnnxConversion) -> Result:
    """Convert means of windows."""
    view = ChannelsLast(node) if node.flag("channels_last") else node
    windows, tensor = windows_of(view, node.required("kernel_shape")), view.tensor(0)
    rank = len(tensor.sizes)
    if windows.reached != windows.end:
        raise NotExpressible("windows that reach behind the padding, or not to its end")
    result = dml.quantized_linear_average_pooling(
        tensor,
        _scale(node, 1, rank),
        _one(node, 2, rank),
        _scale(node, 3, rank),
        _one(node, 4, rank),
        strides=windows.strides,
        window_size=windows.kernel,
        start_padding=windows.start,
        end_padding=windows.end,
        include_padding=node.flag("count_include_pad"),
    )
    return view.turned(result) if isinstance(view, ChannelsLast) else result


@converts("QLinearConcat", domain=MICROSOFT, to="JOIN")
def qlinear_concat(node: OnnxConversion) -> Result:
    """Convert a join of quantized tensors, each with its scale and zero point."""
    axis = node.axis(node.required("axis"), len(node.sizes(2)))
    result = dml.join([_floats(node, number) for number in range(2, node.input_count, 3)], axis=axis)
    return _quantized(node, result, 0, result.sizes, node.tensor(2).data_type)


@converts("QLinearConv", domain=MICROSOFT, to="QUANTIZED_LINEAR_CONVOLUTION")
def nhwc_qlinear_conv(node: OnnxConversion) -> Result:
    """Convert QLinearConv, whose input may have its channels last."""
    if not node.flag("channels_last"):
        return qlinear_conv(node)
    view = ChannelsLast(node)
    return view.turned(qlinear_conv(view))


@converts("NhwcMaxPool", domain=MICROSOFT, to="MAX_POOLING2")
def nhwc_max_pool(node: OnnxConversion) -> Result:
    """Convert MaxPool of an input with its channels last."""
    view = ChannelsLast(node)
    return view.turned(max_pool(view))


def float_product(a: Quantized, b: Quantized, bias: GraphTensor | None) -> GraphTensor:
    """Return the products of two stacks of quantized matrices as floats.

    MATRIX_MULTIPLY_INTEGER_TO_FLOAT takes both of one type alone.

    Args:
        a, b: of three dimensions.
        bias: is added.
    """
    if a[0].data_type == b[0].data_type:
        sizes = (*a[0].sizes[:-1], b[0].sizes[-1])
        whole = None if bias is None else repeated(bias, sizes)
        return dml.matrix_multiply_integer_to_float(*a, *b, whole)
    summed = dml.matrix_multiply_integer(a[0], a[2], b[0], b[2])
    result = dml.cast(summed, output_type="FLOAT32") * (a[1] * b[1])
    return result if bias is None else result + bias


def _to_float(node: OnnxConversion, a: Quantized, scale: int, zero: int, bias: int) -> Result:
    """Return the products of quantized matrices, of which input 1 is the second, as floats.

    Args:
        scale, zero, bias: the numbers of the second matrices' inputs, one for all or one for each column.
    """
    if len(a[0].sizes) < 2 or len(node.sizes(1)) < 2:
        raise NotExpressible(f"vectors: {list(a[0].sizes)} by {list(node.sizes(1))}")
    stacks = stacks_of(a[0], node.tensor(1))
    first, second = stacks.flat
    numbers = [shaped(each, (1, 1, 1)) for each in a[1:] if each is not None]
    scaled = (first, numbers[0], numbers[1] if len(numbers) > 1 else None)
    given = [_of_columns(node, number) if node.has(number) else None for number in (zero, bias)]
    result = float_product(scaled, (second, _of_columns(node, scale), given[0]), given[1])
    return node.result(result, stacks.sizes)


def _of_columns(node: OnnxConversion, number: int) -> GraphTensor:
    sizes, columns = node.sizes(number), node.sizes(1)[-1]
    count = math.prod(sizes)
    if count not in (1, columns) or len(sizes) > 1:
        raise NotExpressible(f"input {number} of sizes {list(sizes)} for {columns} columns")
    return shaped(node.tensor(number), (1, 1, count))


@converts("MatMulIntegerToFloat", domain=MICROSOFT, to="MATRIX_MULTIPLY_INTEGER_TO_FLOAT")
def matmul_integer_to_float(node: OnnxConversion) -> Result:
    """Convert products of quantized matrices as floats."""
    a = (node.tensor(0), _scale(node, 2, 1), _one(node, 4, 1))
    return _to_float(node, a, scale=3, zero=5, bias=6)


@converts(
    "DynamicQuantizeMatMul", domain=MICROSOFT, to="DYNAMIC_QUANTIZE_LINEAR MATRIX_MULTIPLY_INTEGER_TO_FLOAT"
)
def dynamic_quantize_matmul(node: OnnxConversion) -> Result:
    """Convert products of a matrix that is quantized here."""
    made = dml.dynamic_quantize_linear(node.tensor(0))
    a = (made.output, made.output_scale, made.output_zero_point)
    return _to_float(node, a, scale=2, zero=3, bias=4)


@converts("QGemm", domain=MICROSOFT, to="MATRIX_MULTIPLY_INTEGER")
def quantized_gemm(node: OnnxConversion) -> Result:
    """Convert `alpha` times the sum of a product of quantized matrices and of integers.

    The result is floats, or quantized.
    """
    a, b = (
        permuted(node.tensor(number), (1, 0)) if node.flag(name) else node.tensor(number)
        for number, name in ((0, "transA"), (3, "transB"))
    )
    zero = shaped(node.tensor(5), (1, math.prod(node.sizes(5)))) if node.has(5) else None
    summed = dml.matrix_multiply_integer(a, _one(node, 2, 2), b, zero)
    if node.has(6):
        summed = summed + repeated(node.tensor(6), (a.sizes[0], b.sizes[1]))
    scale = _scale(node, 1, 2) * shaped(node.tensor(4), (1, math.prod(node.sizes(4))))
    result = dml.cast(summed, output_type="FLOAT32") * (scale * float(node.attribute("alpha")))
    if not node.has(7):
        return result
    type = node.tensor(8).data_type if node.has(8) else TensorDataType.UINT8
    return _quantized(node, result, 7, result.sizes, type)


@converts("MatMulNBits", domain=MICROSOFT, to="GEMM DEQUANTIZE")
def matmul_nbits(node: OnnxConversion) -> Result:
    """Convert a product with a matrix of 4 or 8 bits per element, with a scale for each block along a row."""
    bits, block = node.attribute("bits"), node.required("block_size")
    depth, columns = node.required("K"), node.required("N")
    if bits not in (4, 8):
        raise NotExpressible(f"{bits} bits")
    if block < 16 or block & (block - 1):
        raise NotExpressible(f"block_size {block}; it must be a power of 2 from 16 up")
    sizes, blocks = node.sizes(0), -(-depth // block)
    if node.has(4) or node.flag("weight_prepacked"):
        raise NotExpressible("g_idx" if node.has(4) else "weights that are packed for a device")
    if 0 in sizes:
        return node.empty((*sizes[:-1], columns))
    floats = _weights(node, (columns, blocks * block), shaped(node.tensor(2), (columns, blocks)), bits)
    given, rest = shaped(node.tensor(0), (math.prod(sizes[:-1]), depth)), blocks * block - depth
    if rest:
        # Weights that end within a block would be written to memory as floats.
        given = dml.padding1(given, padding_mode="CONSTANT", end_padding=[0, rest])
    bias = repeated(node.tensor(5), (given.sizes[0], columns)) if node.has(5) else None
    return node.result(dml.gemm(given, floats, bias, trans_b="TRANSPOSE"), (*sizes[:-1], columns))


def _weights(node: OnnxConversion, sizes: tuple[int, int], scale: GraphTensor, bits: int) -> GraphTensor:
    """Return the matrix as floats."""
    (columns, depth), blocks = sizes, scale.sizes[1]
    of_blocks = columns, blocks, 1, 1
    # Two numbers of 4 bits share a byte, which kernels take apart: no matrix with a byte for each is made.
    whole = (columns, blocks, depth // blocks // 2, 2)
    numbers = shaped(_halves(node, 1) if bits == 4 else node.tensor(1), whole)
    scale = shaped(scale, of_blocks)
    if not node.has(3) and bits == 4:
        floats = dequantized(dml.cast(numbers, output_type="INT8") - 8, scale, None)
    elif not node.has(3):
        floats = dequantized(numbers, scale, node.constant(np.full(of_blocks, 128), np.uint8))
    elif node.type(3) == np.uint8:
        zero = _unpacked(node, 3, (columns, blocks), bits)
        floats = dequantized(numbers, scale, shaped(zero, of_blocks))
    else:
        offsets = shaped(node.tensor(3), of_blocks) * scale
        floats = dequantized(numbers, scale, None) - repeated(offsets, whole)
    return shaped(floats, sizes)


def _halves(node: OnnxConversion, number: int) -> GraphTensor:
    """Return the halves of the bytes of an input, the lower one first, as bytes."""
    count = math.prod(node.sizes(number))
    bytes = repeated(shaped(node.tensor(number), (count, 1)), (count, 2))
    shifts = repeated(node.constant(np.array([[0, 4]]), np.uint8), (count, 2))
    return dml.element_wise_bit_and(dml.element_wise_bit_shift_right(bytes, shifts), 15)


def _unpacked(node: OnnxConversion, number: int, sizes: tuple[int, int], bits: int) -> GraphTensor:
    """Return numbers of 8 bits, or known ones of 4, of which two share a byte, as bytes."""
    if bits == 8:
        return shaped(node.tensor(number), sizes)
    if not node.is_known(number):
        raise NotExpressible(f"input {number}: 4-bit numbers that are computed")
    return node.constant(_nibbles(node.known(number), *sizes), np.uint8)


def _nibbles(packed: Array, rows: int, columns: int) -> Array:
    """Return the halves of bytes, the lower one first. The last byte of a row may have one of them."""
    given = packed.reshape(rows, -1)
    both = np.stack([given & 15, given >> 4], axis=-1).reshape(rows, -1)
    return np.ascontiguousarray(both[:, :columns])
