"""Reductions, and what they accept of dimensions."""

from __future__ import annotations

from math import prod

from opendml.spec.enums import ReduceFunction
from opendml.spec.fault import Fault, wrong_sizes, wrong_type
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Sizes, without_leading_ones
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import integer_range
from opendml.spec.wording import counted

_INDICES = (ReduceFunction.ARGMIN, ReduceFunction.ARGMAX)


@shape("REDUCE", "ARGMIN", "ARGMAX", reason="the input and axes given")
def reduced_sizes(input_tensor: TensorDesc, axes: tuple[int, ...]) -> Sizes:
    """The output has the input's sizes, with 1 at every axis that is reduced."""
    return tuple(1 if i in axes else size for i, size in enumerate(input_tensor.sizes))


@rule("REDUCE")
def reduced_type(input_tensor: TensorDesc, output_tensor: TensorDesc, function: ReduceFunction) -> Broken:
    """The output has the input's type, unless it holds indices (ARGMIN, ARGMAX)."""
    given, other = output_tensor.data_type, input_tensor.data_type
    if function not in _INDICES and given is not other:
        allowed = f"must have the data type of {{InputTensor}}, {other.name}"
        yield "output_tensor", wrong_type(given, allowed, other)


@rule("REDUCE", "ARGMIN", "ARGMAX")
def fitting_indices(
    input_tensor: TensorDesc,
    output_tensor: TensorDesc,
    axes: tuple[int, ...],
    function: ReduceFunction | None = None,
) -> Broken:
    """Where the output holds indices, its type holds the last index of the reduced axes: INT32 those of up to
    2^31 elements. (Ours: Microsoft's page does not say what becomes of greater ones.)"""
    given = output_tensor.data_type
    if (function is not None and function not in _INDICES) or "INT" not in given.name:
        return
    last = prod(input_tensor.sizes[axis] for axis in axes) - 1
    if last > integer_range(given)[1]:
        yield "output_tensor", wrong_type(given, f"must hold {last}, the last index of the reduced axes")


@rule("ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX", "ACTIVATION_HARDMAX")
def rows_of_features(input_tensor: TensorDesc) -> Broken:
    """The input has at most two dimensions after leading ones."""
    effective = without_leading_ones(input_tensor.sizes)
    if len(effective) > 2:
        allowed = f"must be 2 dimensions or less after leading ones, not {len(effective)}"
        yield "input_tensor", wrong_sizes(input_tensor.sizes, allowed)


@rule("VALUE_SCALE_2D")
def channel_biases(input_tensor: TensorDesc, bias: tuple[float, ...]) -> Broken:
    """There is a bias for each channel, of which there are 1 or 3."""
    channels = input_tensor.sizes[1]
    if channels not in (1, 3):
        yield "input_tensor", Fault(channels, "must be 1 or 3 channels", ("Sizes", 1))
    elif len(bias) != channels:
        given = counted(len(bias), "element", "elements")
        yield "bias", Fault(given, f"must be {channels}, one for each channel{{ChannelCount}}")
