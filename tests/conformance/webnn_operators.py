"""What WebNN's operators are in DirectML: one line, or one small function, for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

from opendml import TensorDataType, TensorDesc, descs
from opendml.spec.enums import ConvolutionDirection, ConvolutionMode, MatrixTransform, ReduceFunction
from opendml.spec.operator_desc import OperatorDesc

from .webnn_case import WebnnCase, WebnnTensor, number


class Call(NamedTuple):
    """A desc and the tensors for its inputs in its order, None for absent ones."""

    desc: OperatorDesc
    inputs: Sequence[WebnnTensor | None]
    lengths: Mapping[str, int] = MappingProxyType({})
    """What the tolerance depends on."""


Build = Callable[[WebnnCase], Call]


def _unary(desc: Any, **attributes: Any) -> Build:
    """An operator on each element."""

    def build(case: WebnnCase) -> Call:
        tensor = case.input()
        return Call(desc(tensor.packed(), case.output.packed(), **attributes), [tensor])

    return build


def _binary(desc: Any, first: str = "a", second: str = "b") -> Build:
    """An operator on two elements, where WebNN repeats the smaller tensor."""

    def build(case: WebnnCase) -> Call:
        a, b, output = case.input(first), case.input(second), case.output
        made = desc(a.broadcast(output.sizes), b.broadcast(output.sizes), output.packed())
        return Call(made, [a, b])

    return build


def _logical_not(case: WebnnCase) -> Call:
    a = case.input("a")
    return Call(descs.ElementWiseLogicalNot(a.packed(), case.output.packed()), [a])


def _clamp(case: WebnnCase) -> Call:
    """For WebNN a bound that is NaN is no bound."""
    data_type = case.input().data_type
    given = (case.option("minValue", "NaN"), case.option("maxValue", "NaN"))
    limits = zip(given, _range(data_type), strict=True)
    return _clip(case, *(end if bound == "NaN" else number(bound, data_type) for bound, end in limits))


def _relu(case: WebnnCase) -> Call:
    """ACTIVATION_RELU has no 64-bit integers, but clipping has."""
    if case.input().data_type is TensorDataType.INT64:
        return _clip(case, 0, _range(TensorDataType.INT64)[1])
    return _unary(descs.ActivationRelu)(case)


def _clip(case: WebnnCase, low: float, high: float) -> Call:
    tensor = case.input()
    desc = descs.ElementWiseClip1(
        tensor.packed(), case.output.packed(), min_max_data_type=tensor.data_type, min=low, max=high
    )
    return Call(desc, [tensor])


def _range(data_type: TensorDataType) -> tuple[float, float]:
    if data_type.name.startswith("FLOAT"):
        return float("-inf"), float("inf")
    bits = int(data_type.name.lstrip("UINT"))
    signed = data_type.name.startswith("I")
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def _leaky_relu(case: WebnnCase) -> Call:
    return _unary(descs.ActivationLeakyRelu, alpha=case.option("alpha", 0.01))(case)


def _linear(case: WebnnCase) -> Call:
    attributes = {"alpha": case.option("alpha", 1.0), "beta": case.option("beta", 0.0)}
    return _unary(descs.ActivationLinear, **attributes)(case)


def _reduce(function: ReduceFunction) -> Build:
    """Over all axes, unless some are given. Over none, each element is reduced by itself: then over one more
    axis, of size 1."""

    def build(case: WebnnCase) -> Call:
        tensor = case.input()
        axes = case.option("axes", range(len(tensor.sizes)))
        sizes = tensor.sizes if axes else (*tensor.sizes, 1)
        axes = axes or [len(tensor.sizes)]
        output = case.output.packed([1 if axis in axes else size for axis, size in enumerate(sizes)])
        desc = descs.Reduce(tensor.packed(sizes), output, function=function, axes=axes)
        return Call(desc, [tensor], {"n": prod(sizes) // output.element_count})

    return build


def _expand(case: WebnnCase) -> Call:
    tensor = case.input()
    return Call(
        descs.ElementWiseIdentity(tensor.broadcast(case.output.sizes), case.output.packed()), [tensor]
    )


def _reshape(case: WebnnCase) -> Call:
    desc = descs.ElementWiseIdentity(case.input().packed(case.output.sizes), case.output.packed())
    return Call(desc, [case.input()])


def _transpose(case: WebnnCase) -> Call:
    tensor = case.input()
    order = case.option("permutation", range(len(tensor.sizes))[::-1])
    return Call(descs.ElementWiseIdentity(tensor.permuted(order), case.output.packed()), [tensor])


def _concat(case: WebnnCase) -> Call:
    tensors = [case.tensors[name] for name in case.option("inputs")]
    desc = descs.Join([each.packed() for each in tensors], case.output.packed(), axis=case.option("axis"))
    return Call(desc, tensors)


def _split(case: WebnnCase) -> Call:
    outputs = [each.packed() for each in case.outputs]
    desc = descs.Split(case.input().packed(), outputs, axis=case.option("axis", 0))
    return Call(desc, [case.input()])


def _slice(case: WebnnCase) -> Call:
    tensor = case.input()
    desc = descs.Slice1(
        tensor.packed(),
        case.output.packed(),
        input_window_offsets=case.option("starts") or [0],
        input_window_sizes=case.option("sizes") or [1],
        input_window_strides=case.option("strides", [1] * len(tensor.sizes)),
    )
    return Call(desc, [tensor])


def _gather(case: WebnnCase) -> Call:
    """DirectML's three tensors have the same number of dimensions, filled up with leading ones."""
    tensor, indices = case.input(), case.input("indices")
    axis = case.option("axis", 0)
    sizes = (*tensor.sizes[:axis], *indices.sizes, *tensor.sizes[axis + 1 :])
    count = max(len(tensor.sizes), len(indices.sizes), len(sizes))

    def filled(own: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (count - len(own)) + own

    desc = descs.Gather(
        tensor.packed(filled(tensor.sizes)),
        indices.packed(filled(indices.sizes)),
        case.output.packed(filled(sizes)),
        axis=axis + count - len(tensor.sizes),
        index_dimensions=len(indices.sizes),
    )
    return Call(desc, [tensor, indices])


def _matmul(case: WebnnCase) -> Call:
    """GEMM has at most two dimensions of batches; of more, those of size 1 are left out."""
    a, b, output = case.input("a"), case.input("b"), case.output
    batches = output.sizes[:-2]
    descriptions = [
        a.broadcast([*batches, *a.sizes[-2:]]),
        b.broadcast([*batches, *b.sizes[-2:]]),
        output.packed(),
    ]
    while len(descriptions[0].sizes) > 4:
        dimension = descriptions[0].sizes.index(1)
        descriptions = [_without(each, dimension) for each in descriptions]
    made = descs.Gemm(
        descriptions[0],
        descriptions[1],
        None,
        descriptions[2],
        trans_a=MatrixTransform.NONE,
        trans_b=MatrixTransform.NONE,
        alpha=1.0,
        beta=0.0,
    )
    return Call(made, [a, b, None], {"k": a.sizes[-1]})


def _without(tensor: TensorDesc, dimension: int) -> TensorDesc:
    sizes, strides = list(tensor.sizes), list(tensor.effective_strides)
    del sizes[dimension], strides[dimension]
    return TensorDesc(tensor.data_type, sizes, strides)


def _conv2d(case: WebnnCase) -> Call:
    """DirectML knows one order of dimensions; another one is a matter of strides."""
    layout, filter_layout = case.option("inputLayout", "nchw"), case.option("filterLayout", "oihw")
    order = [layout.index(letter) for letter in "nchw"]
    tensor, weights, output = case.input(), case.input("filter"), case.output
    filter_desc = weights.permuted([filter_layout.index(letter) for letter in "oihw"])
    bias = case.input("bias") if case.option("bias") else None
    top, bottom, left, right = case.option("padding", [0, 0, 0, 0])
    desc = descs.Convolution(
        tensor.permuted(order),
        filter_desc,
        None if bias is None else bias.packed([1, *bias.sizes, 1, 1]),
        output.permuted(order),
        mode=ConvolutionMode.CROSS_CORRELATION,
        direction=ConvolutionDirection.FORWARD,
        strides=case.option("strides", [1, 1]),
        dilations=case.option("dilations", [1, 1]),
        start_padding=[top, left],
        end_padding=[bottom, right],
        output_padding=[0, 0],
        group_count=case.option("groups", 1),
    )
    _, channels, height, width = filter_desc.sizes
    lengths = {"kernel_h": height, "kernel_w": width, "input_channels": channels, "groups": 1}
    return Call(desc, [tensor, weights, bias], lengths)


OPERATORS: dict[str, Build] = {
    "abs": _unary(descs.ElementWiseAbs),
    "add": _binary(descs.ElementWiseAdd),
    "cast": _unary(descs.Cast),
    "ceil": _unary(descs.ElementWiseCeil),
    "clamp": _clamp,
    "concat": _concat,
    "conv2d": _conv2d,
    "div": _binary(descs.ElementWiseDivide),
    "equal": _binary(descs.ElementWiseLogicalEquals),
    "exp": _unary(descs.ElementWiseExp),
    "expand": _expand,
    "floor": _unary(descs.ElementWiseFloor),
    "gather": _gather,
    "greater": _binary(descs.ElementWiseLogicalGreaterThan),
    "greaterOrEqual": _binary(descs.ElementWiseLogicalGreaterThanOrEqual),
    "hardSwish": _unary(descs.ActivationHardSwish, alpha=1.0 / 6.0, beta=0.5),
    "leakyRelu": _leaky_relu,
    "lesser": _binary(descs.ElementWiseLogicalLessThan),
    "lesserOrEqual": _binary(descs.ElementWiseLogicalLessThanOrEqual),
    "linear": _linear,
    "log": _unary(descs.ElementWiseLog),
    "logicalNot": _logical_not,
    "matmul": _matmul,
    "max": _binary(descs.ElementWiseMax),
    "min": _binary(descs.ElementWiseMin),
    "mul": _binary(descs.ElementWiseMultiply),
    "neg": _unary(descs.ElementWiseNegate),
    "pow": _binary(descs.ElementWisePow),
    "reduceL1": _reduce(ReduceFunction.L1),
    "reduceL2": _reduce(ReduceFunction.L2),
    "reduceLogSum": _reduce(ReduceFunction.LOG_SUM),
    "reduceMax": _reduce(ReduceFunction.MAX),
    "reduceMean": _reduce(ReduceFunction.AVERAGE),
    "reduceMin": _reduce(ReduceFunction.MIN),
    "reduceProduct": _reduce(ReduceFunction.MULTIPLY),
    "reduceSum": _reduce(ReduceFunction.SUM),
    "reduceSumSquare": _reduce(ReduceFunction.SUM_SQUARE),
    "relu": _relu,
    "reshape": _reshape,
    "sigmoid": _unary(descs.ActivationSigmoid),
    "slice": _slice,
    "split": _split,
    "sqrt": _unary(descs.ElementWiseSqrt),
    "sub": _binary(descs.ElementWiseSubtract),
    "tanh": _unary(descs.ActivationTanh),
    "transpose": _transpose,
}
