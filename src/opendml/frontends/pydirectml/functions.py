"""The operators that `pydirectml` and `directml` have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from opendml.frontends.pydirectml.activations import NO_ACTIVATION, FusedActivation, activation_desc
from opendml.frontends.pydirectml.enumerations import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    OutputOptions,
    PaddingMode,
    RecurrentNetworkDirection,
    TensorDataType,
)
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.expressions import (
    Expression,
    InPlace,
    Scope,
    known,
    one,
    record,
    reinterpreted,
)
from opendml.frontends.pydirectml.tensors import TensorDesc
from opendml.spec import enums, operator_desc
from opendml.spec.outputs import Told

_Enum = TypeVar("_Enum", bound=IntEnum)


class _Required:
    """The default of a parameter that must be given, behind ones that need not be."""

    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()


def require(function: str, **values: Any) -> None:
    """Checks that parameters are given.

    Raises:
        TypeError: one is not.
    """
    missing = [name for name, value in values.items() if value is REQUIRED]
    if missing:
        raise TypeError(f"{function}() missing required arguments: {', '.join(missing)}")


class Size2D:
    """A width and a height in elements."""

    def __init__(self, width: int, height: int, /) -> None:
        self.width, self.height = width, height

    def __repr__(self) -> str:
        return f"dml.Size2D({self.width}, {self.height})"


class MaxPoolingOutputs:
    """What `max_pooling` gives: the greatest elements and, if asked for, where they stood."""

    def __init__(self) -> None:
        self.values: Expression = InPlace()
        self.indices: Expression = InPlace()

    def __repr__(self) -> str:
        return f"<MaxPoolingOutputs values={self.values!r}, indices={self.indices!r}>"


class GRUOutputs:
    """What `gru` gives: all states, the last one, or both; what is not asked for is an empty expression."""

    def __init__(self) -> None:
        self.sequence: Expression = InPlace()
        self.single: Expression = InPlace()

    def __repr__(self) -> str:
        return f"<GRUOutputs sequence={self.sequence!r}, single={self.single!r}>"


def member(kind: type[_Enum], value: Any, name: str) -> int:
    """The number of a member of an enumeration.

    Raises:
        TypeError: it is none, such as a value of the same name of another enumeration.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}: {type(value).__name__}.{value}; a {kind.__name__} is needed")
    return int(value)


def input_tensor(scope: Scope, input_index: int, tensor_desc: TensorDesc) -> Expression:
    """An input of the graph; bindings are given in the order of `input_index`."""
    if not isinstance(scope, Scope):
        raise TypeError(f"input_tensor.scope: {type(scope).__name__}; a GraphBuilder is needed")
    if not isinstance(tensor_desc, TensorDesc):
        raise TypeError(f"input_tensor.tensor_desc: {type(tensor_desc).__name__}; a TensorDesc is needed")
    if type(input_index) is not int or not 0 <= input_index < 65_536:
        raise Refused(f"input_tensor.input_index: {input_index!r}; must be an integer from 0 to 65535")
    return scope.add_input(input_index, tensor_desc)


def convolution(
    input: Expression,
    filter: Expression,
    bias: Expression | None = None,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    group_count: int = 1,
    fused_activation: FusedActivation = NO_ACTIVATION,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """CONVOLUTION. Output sizes of a transposed one that are larger than they follow, by less than a stride,
    stand for output padding."""
    way = enums.ConvolutionDirection(member(ConvolutionDirection, direction, "convolution.direction"))
    attributes = {
        "mode": enums.ConvolutionMode(member(ConvolutionMode, mode, "convolution.mode")),
        "direction": way,
        "strides": tuple(strides) or None,
        "dilations": tuple(dilations) or None,
        "start_padding": tuple(start_padding) or None,
        "end_padding": tuple(end_padding) or None,
        "output_padding": tuple(output_padding) or None,
        "group_count": group_count,
        "fused_activation": activation_desc(fused_activation),
    }
    tensors = {"input": input, "filter": filter, "bias": bias}
    if way is enums.ConvolutionDirection.BACKWARD and output_sizes and not any(output_padding):
        plain = known(one("CONVOLUTION", tensors, attributes), "convolution").desc.sizes
        more = [wanted - size for wanted, size in zip(output_sizes[2:], plain[2:], strict=False)]
        if len(output_sizes) == len(plain) and any(more) and min(more) >= 0:
            attributes["output_padding"] = tuple(more)
    return one("CONVOLUTION", tensors, attributes, told=Told(sizes=tuple(output_sizes) or None))


def up_sample_2d(input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode) -> Expression:
    """UPSAMPLE_2D."""
    if not isinstance(scale_size, Size2D):
        raise TypeError(f"up_sample_2d.scale_size: {type(scale_size).__name__}; a Size2D is needed")
    number = member(InterpolationMode, interpolation_mode, "up_sample_2d.interpolation_mode")
    attributes = {
        "scale_size": operator_desc.Size2D(scale_size.width, scale_size.height),
        "interpolation_mode": enums.InterpolationMode(number),
    }
    return one("UPSAMPLE_2D", {"input": input}, attributes)


def activation_relu(input: Expression) -> Expression:
    """ACTIVATION_RELU."""
    return one("ACTIVATION_RELU", {"input": input})


def activation_sigmoid(input: Expression) -> Expression:
    """ACTIVATION_SIGMOID."""
    return one("ACTIVATION_SIGMOID", {"input": input})


def activation_identity(input: Expression) -> Expression:
    """ACTIVATION_IDENTITY."""
    return one("ACTIVATION_IDENTITY", {"input": input})


def activation_tanh(input: Expression) -> Expression:
    """ACTIVATION_TANH."""
    return one("ACTIVATION_TANH", {"input": input})


def activation_linear(input: Expression, alpha: float, beta: float) -> Expression:
    """ACTIVATION_LINEAR: alpha * input + beta."""
    return one("ACTIVATION_LINEAR", {"input": input}, {"alpha": alpha, "beta": beta})


def add(a: Expression, b: Expression, fused_activation: FusedActivation = NO_ACTIVATION) -> Expression:
    """ELEMENT_WISE_ADD, with an activation ELEMENT_WISE_ADD1."""
    activation = activation_desc(fused_activation)
    if activation is None:
        return one("ELEMENT_WISE_ADD", {"a": a, "b": b})
    return one("ELEMENT_WISE_ADD1", {"a": a, "b": b}, {"fused_activation": activation})


def subtract(a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_SUBTRACT."""
    return one("ELEMENT_WISE_SUBTRACT", {"a": a, "b": b})


def multiply(a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_MULTIPLY."""
    return one("ELEMENT_WISE_MULTIPLY", {"a": a, "b": b})


def divide(a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_DIVIDE."""
    return one("ELEMENT_WISE_DIVIDE", {"a": a, "b": b})


def padding(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """PADDING."""
    attributes = {
        "padding_mode": enums.PaddingMode(member(PaddingMode, padding_mode, "padding.padding_mode")),
        "padding_value": padding_value,
        "start_padding": tuple(start_padding),
        "end_padding": tuple(end_padding),
    }
    return one("PADDING", {"input": input}, attributes)


def slice(
    input: Expression,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """SLICE1."""
    attributes = {
        "input_window_offsets": tuple(input_window_offsets),
        "input_window_sizes": tuple(input_window_sizes),
        "input_window_strides": tuple(input_window_strides),
    }
    return one("SLICE1", {"input": input}, attributes)


def value_scale_2d(input: Expression, scale: float, bias: Sequence[float]) -> Expression:
    """VALUE_SCALE_2D."""
    return one("VALUE_SCALE_2D", {"input": input}, {"scale": scale, "bias": tuple(bias)})


def batch_normalization(
    input: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    bias: Expression,
    spatial: bool,
    epsilon: float,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> Expression:
    """BATCH_NORMALIZATION."""
    tensors = {"input": input, "mean": mean, "variance": variance, "scale": scale, "bias": bias}
    attributes = {
        "spatial": bool(spatial),
        "epsilon": epsilon,
        "fused_activation": activation_desc(fused_activation),
    }
    return one("BATCH_NORMALIZATION", tensors, attributes)


def local_response_normalization(
    input: Expression, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Expression:
    """LOCAL_RESPONSE_NORMALIZATION."""
    attributes = {
        "cross_channel": bool(cross_channel),
        "local_size": local_size,
        "alpha": alpha,
        "beta": beta,
        "bias": bias,
    }
    return one("LOCAL_RESPONSE_NORMALIZATION", {"input": input}, attributes)


def gemm(
    a: Expression,
    b: Expression,
    c: Expression | None = None,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> Expression:
    """GEMM."""
    attributes = {
        "trans_a": enums.MatrixTransform(member(MatrixTransform, trans_a, "gemm.trans_a")),
        "trans_b": enums.MatrixTransform(member(MatrixTransform, trans_b, "gemm.trans_b")),
        "alpha": alpha,
        "beta": beta,
        "fused_activation": activation_desc(fused_activation),
    }
    return one("GEMM", {"a": a, "b": b, "c": c}, attributes)


def max_pooling(
    input: Expression,
    window_sizes: Sequence[int],
    strides: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_indices: bool = False,
) -> MaxPoolingOutputs:
    """MAX_POOLING2: the greatest elements of windows and, if asked for, their positions."""
    attributes = {
        "strides": tuple(strides) or None,
        "window_size": tuple(window_sizes),
        "start_padding": tuple(start_padding) or None,
        "end_padding": tuple(end_padding) or None,
        "dilations": tuple(dilations) or None,
    }
    told = Told(wanted=frozenset({"output_indices_tensor"} if output_indices else ()))
    outputs = MaxPoolingOutputs()
    values, indices = record("MAX_POOLING2", {"input": input}, attributes, told=told)
    outputs.values, outputs.indices = values or outputs.values, indices or outputs.indices
    return outputs


def reinterpret(
    input: Expression,
    new_type: TensorDataType,
    new_size: Sequence[int],
    new_strides: Sequence[int] | None,
) -> Expression:
    """The same bytes as another tensor, whose strides count its elements; None: packed."""
    data_type = enums.TensorDataType(member(TensorDataType, new_type, "reinterpret.new_type"))
    return reinterpreted(input, data_type, new_size, new_strides)


def join(input: Sequence[Expression], axis: int) -> Expression:
    """JOIN."""
    return one("JOIN", {"inputs": list(input)}, {"axis": axis})


def gru(
    input: Expression,
    weight: Expression,
    recurrence: Expression,
    bias: Expression | None = None,
    hidden_init: Expression | None = None,
    sequence_lengths: Expression | None = None,
    activation_descs: Sequence[FusedActivation] = REQUIRED,
    direction: RecurrentNetworkDirection = REQUIRED,
    linear_before_reset: int = 1,
    output_options: OutputOptions = REQUIRED,
) -> GRUOutputs:
    """GRU."""
    require("gru", activation_descs=activation_descs, direction=direction, output_options=output_options)
    options = OutputOptions(member(OutputOptions, output_options, "gru.output_options"))
    number = member(RecurrentNetworkDirection, direction, "gru.direction")
    tensors = {
        "input": input,
        "weight": weight,
        "recurrence": recurrence,
        "bias": bias,
        "hidden_init": hidden_init,
        "sequence_lengths": sequence_lengths,
    }
    attributes = {
        "activation_descs": tuple(activation_desc(each) for each in activation_descs),
        "direction": enums.RecurrentNetworkDirection(number),
        "linear_before_reset": bool(linear_before_reset),
    }
    without = {OutputOptions.Sequence: "output_single_tensor", OutputOptions.Single: "output_sequence_tensor"}
    wanted = {"output_sequence_tensor", "output_single_tensor"} - {without.get(options)}
    outputs = GRUOutputs()
    sequence, single = record("GRU", tensors, attributes, told=Told(wanted=frozenset(wanted)))
    outputs.sequence, outputs.single = sequence or outputs.sequence, single or outputs.single
    return outputs


def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    """GATHER."""
    attributes = {"axis": axis, "index_dimensions": index_dimensions}
    return one("GATHER", {"input": input, "indices": indices}, attributes)


def mean_variance(
    tensors: Mapping[str, Expression | None],
    axes: Sequence[int],
    epsilon: float,
    fused_activation: FusedActivation,
    **normalize: bool,
) -> Expression:
    """MEAN_VARIANCE_NORMALIZATION1, or 2 where the mean may stay."""
    name = "MEAN_VARIANCE_NORMALIZATION" + ("2" if "use_mean" in normalize else "1")
    attributes = {
        "axes": tuple(axes),
        "epsilon": epsilon,
        "fused_activation": activation_desc(fused_activation),
        **normalize,
    }
    return one(name, tensors, attributes)


def pooled_average(
    input: Expression,
    strides: Sequence[int],
    window_sizes: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    include_padding: bool,
    dilations: Sequence[int] | None = None,
) -> Expression:
    """AVERAGE_POOLING, or AVERAGE_POOLING1 where there are dilations."""
    attributes = {
        "strides": tuple(strides),
        "window_size": tuple(window_sizes),
        "start_padding": tuple(start_padding),
        "end_padding": tuple(end_padding),
        "include_padding": bool(include_padding),
    }
    if dilations is None:
        return one("AVERAGE_POOLING", {"input": input}, attributes)
    return one("AVERAGE_POOLING1", {"input": input}, attributes | {"dilations": tuple(dilations) or None})
