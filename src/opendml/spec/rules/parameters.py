"""Scales and zero points: one for a tensor, for each channel, row or column, or for each block."""

from __future__ import annotations

from opendml.spec.enums import QuantizationType, TensorDataType
from opendml.spec.fault import Fault, wrong_sizes, wrong_type
from opendml.spec.rules.declared import rule
from opendml.spec.rules.rule import Broken
from opendml.spec.tensor_desc import TensorDesc


def one_or_each(parameter: str, tensor: TensorDesc | None, axis: int, count: int, what: str) -> Broken:
    """Yield a fault unless all sizes are 1, or all but the one at `axis` (-1 is the last), which is `count`.

    A tensor of fewer dimensions stands right-aligned under the others, as everywhere in DirectML: with one
    dimension it can only hold a single parameter, or one for each column.
    """
    if tensor is None:
        return
    sizes = list(tensor.sizes)
    single = [1] * len(sizes)
    each = single.copy()
    if len(sizes) >= -axis:
        each[axis] = count
    if sizes not in (single, each):
        other = f", or {each}, one for each {what}" if each != single else ""
        yield parameter, wrong_sizes(tensor.sizes, f"must be {single}{other}")


@rule("CONVOLUTION_INTEGER", "QUANTIZED_LINEAR_CONVOLUTION")
def filter_parameters(filter_tensor: TensorDesc, **given: TensorDesc) -> Broken:
    """The filter has one scale and zero point, or one for each output channel."""
    axis, count = 1 - len(filter_tensor.sizes), filter_tensor.sizes[0]
    for name in ("filter_scale_tensor", "filter_zero_point_tensor"):
        yield from one_or_each(name, given.get(name), axis, count, "output channel")


@rule("QUANTIZED_LINEAR_AVERAGE_POOLING")
def channel_parameters(input_tensor: TensorDesc, **given: TensorDesc) -> Broken:
    """Input and output have one scale and zero point, or one for each channel."""
    axis, count = 1 - len(input_tensor.sizes), input_tensor.sizes[1]
    for name, tensor in given.items():
        yield from one_or_each(name, tensor, axis, count, "channel")


@rule("MATRIX_MULTIPLY_INTEGER", "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", "QUANTIZED_LINEAR_MATRIX_MULTIPLY")
def matrix_parameters(a_tensor: TensorDesc, b_tensor: TensorDesc, **given: TensorDesc) -> Broken:
    """A and the output have one scale and zero point, or one for each row; B one, or one for each column."""
    rows, columns = (-2, a_tensor.sizes[-2], "row"), (-1, b_tensor.sizes[-1], "column")
    for matrix, each in (("a", rows), ("b", columns), ("output", rows)):
        for name in (f"{matrix}_scale_tensor", f"{matrix}_zero_point_tensor"):
            yield from one_or_each(name, given.get(name), *each)


@rule("ELEMENT_WISE_QUANTIZE_LINEAR")
def scale_type(input_tensor: TensorDesc, scale_tensor: TensorDesc) -> Broken:
    """The scale has the type of a floating-point input, and is FLOAT32 for INT32."""
    given, other = scale_tensor.data_type, input_tensor.data_type
    needed = TensorDataType.FLOAT32 if other is TensorDataType.INT32 else other
    if given is not needed:
        words = f"must be {needed.name} for an {{InputTensor}} of {other.name}"
        yield "scale_tensor", wrong_type(given, words, needed)


@rule("QUANTIZE", real_tensor="InputTensor", integer_tensor="OutputTensor")
@rule("DEQUANTIZE", real_tensor="OutputTensor", integer_tensor="InputTensor")
def quantization_tensors(
    real_tensor: TensorDesc,
    integer_tensor: TensorDesc,
    quantization_tensors: tuple[TensorDesc, ...],
    quantization_type: QuantizationType,
) -> Broken:
    """QuantizationTensors are a scale of the real type and, for SCALE_ZERO_POINT, an integer zero point.

    Every size divides that of the quantized tensor, into blocks that share a parameter. DirectML's page is
    silent on all of it; this is how ONNX Runtime and Chromium call it, and what ONNX says of the types.
    """
    needed = 2 if quantization_type is QuantizationType.SCALE_ZERO_POINT else 1
    if len(quantization_tensors) != needed:
        allowed = f"must be {needed} for {quantization_type.name}"
        yield "quantization_tensors", Fault(len(quantization_tensors), allowed)
        return
    roles = (("scale", "floating-point", real_tensor), ("zero point", "integer", integer_tensor))
    for i, (tensor, (role, kind, other)) in enumerate(zip(quantization_tensors, roles, strict=False)):
        given, needed_type = tensor.data_type, other.data_type
        if given is not needed_type:
            allowed = f"the {role} must have the type of the {kind} tensor, {needed_type.name}"
            yield "quantization_tensors", wrong_type(given, allowed, needed_type).within(i)
        if any(size % blocks for size, blocks in zip(other.sizes, tensor.sizes, strict=True)):
            allowed = f"each must divide that of the quantized tensor, {list(other.sizes)}"
            yield "quantization_tensors", wrong_sizes(tensor.sizes, allowed).within(i)
