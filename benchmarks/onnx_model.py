"""A case as an ONNX model, for the peers that read ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.cases import Activation, Case, Layout
from benchmarks.contender import NotExpressible
from benchmarks.data import Data
from benchmarks.formulas import EPSILON

OPSET = 20  # the first with Gelu
IR_VERSION = 9

# DirectML's activation -> ONNX operator, and ONNX's name of each attribute in DirectML's order.
OPERATORS: dict[str, tuple[str, ...]] = {
    "SIGMOID": ("Sigmoid",),
    "HARD_SIGMOID": ("HardSigmoid", "alpha", "beta"),
    "TANH": ("Tanh",),
    "RELU": ("Relu",),
    "LEAKY_RELU": ("LeakyRelu", "alpha"),
    "THRESHOLDED_RELU": ("ThresholdedRelu", "alpha"),
    "ELU": ("Elu", "alpha"),
    "CELU": ("Celu", "alpha"),
    "SCALED_ELU": ("Selu", "alpha", "gamma"),
    "SOFTSIGN": ("Softsign",),
    "IDENTITY": ("Identity",),
    "SHRINK": ("Shrink", "bias", "lambd"),
    "GELU": ("Gelu",),
}


class Builder:
    """Nodes and constants in order of use; every method returns the name of its result."""

    def __init__(self, dtype: str) -> None:
        import onnx

        self._onnx = onnx
        self.dtype = np.dtype(dtype)
        self.type = onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any, dtype: Any = None) -> str:
        array = np.asarray(values, dtype or self.dtype)
        name = f"c{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name


def make_model(data: Data) -> bytes:
    """The serialized model with input `x` and output `y`; an NHWC output has its sizes in that order."""
    import onnx

    case = data.case
    if case.input_layout is not Layout.PACKED:
        raise NotExpressible("ONNX tensors are packed")
    builder = Builder(case.dtype)
    value = "x"
    if case.axes:
        value = _normalize(builder, data)
    for activation in case.activations:
        value = _activate(builder, activation, value)
    sizes = list(case.sizes)
    if case.output_layout is Layout.NHWC:
        value = builder.node("Transpose", value, perm=[0, 2, 3, 1])
        sizes = [sizes[axis] for axis in (0, 2, 3, 1)]
    builder.nodes[-1].output[0] = "y"
    helper = onnx.helper
    graph = helper.make_graph(
        builder.nodes,
        "case",
        [helper.make_tensor_value_info("x", builder.type, case.sizes)],
        [helper.make_tensor_value_info("y", builder.type, sizes)],
        builder.constants,
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _activate(builder: Builder, activation: Activation, x: str) -> str:
    values = dict(activation.attributes)
    if activation.name == "CELU" and builder.dtype == np.float16 and values["alpha"] == 1:
        return builder.node("Elu", x)  # ONNX has Celu in float32 only
    if activation.name in OPERATORS:
        operator, *names = OPERATORS[activation.name]
        return builder.node(operator, x, **dict(zip(names, values.values(), strict=True)))

    def scaled(y: str, factor: float) -> str:
        return y if factor == 1 else builder.node("Mul", y, builder.constant(factor))

    if activation.name == "LINEAR":
        return builder.node("Add", scaled(x, values["alpha"]), builder.constant(values["beta"]))
    if activation.name == "SCALED_TANH":
        return scaled(builder.node("Tanh", scaled(x, values["beta"])), values["alpha"])
    if activation.name == "SOFTPLUS":
        steepness = values["steepness"]
        return scaled(builder.node("Softplus", scaled(x, steepness)), 1 / steepness)
    if activation.name == "PARAMETRIC_SOFTPLUS":
        return scaled(builder.node("Softplus", scaled(x, values["beta"])), values["alpha"])
    raise NotExpressible(f"ONNX has no {activation.name}")


def _normalize(builder: Builder, data: Data) -> str:
    """The operator that normalizes over these axes, or the formula where there is none."""
    case: Case = data.case
    if case.axes == (2, 3):
        parameters = [builder.constant(values.ravel()) for values in (data.scale, data.bias)]
        return builder.node("InstanceNormalization", "x", *parameters, epsilon=EPSILON)
    if case.axes == (3,):
        parameters = [builder.constant(values.ravel()) for values in (data.scale, data.bias)]
        return builder.node("LayerNormalization", "x", *parameters, axis=3, epsilon=EPSILON)
    axes = builder.constant(case.axes, np.int64)
    centered = builder.node("Sub", "x", builder.node("ReduceMean", "x", axes))
    variance = builder.node("ReduceMean", builder.node("Mul", centered, centered), axes)
    deviation = builder.node("Sqrt", builder.node("Add", variance, builder.constant(EPSILON)))
    scaled = builder.node("Mul", builder.node("Div", centered, deviation), builder.constant(data.scale))
    return builder.node("Add", scaled, builder.constant(data.bias))
