"""Activations, and the functions along axes that end networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.broadcasting import broadcast_sizes
from opendml.frontends.onnx.operators.shapes import reshaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor

Activation = Callable[..., GraphTensor]

_ACTIVATIONS: dict[str, tuple[Activation, dict[str, float]]] = {
    "Celu": (dml.activation_celu, {"alpha": 1.0}),
    "Elu": (dml.activation_elu, {"alpha": 1.0}),
    "HardSigmoid": (dml.activation_hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": (dml.activation_leaky_relu, {"alpha": 0.01}),
    "ParametricSoftplus": (dml.activation_parametric_softplus, {"alpha": 1.0, "beta": 1.0}),
    "ScaledTanh": (dml.activation_scaled_tanh, {"alpha": 1.0, "beta": 1.0}),
    "Selu": (
        dml.activation_scaled_elu,
        {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    ),
    "Sigmoid": (dml.activation_sigmoid, {}),
    "Softplus": (dml.activation_softplus, {}),
    "Softsign": (dml.activation_softsign, {}),
    "Tanh": (dml.activation_tanh, {}),
    "ThresholdedRelu": (dml.activation_thresholded_relu, {"alpha": 1.0}),
}
"""ONNX's activations: DirectML's, and ONNX's defaults of their attributes, which have DirectML's names."""

_ALONG_AXES: dict[str, Activation] = {
    "Hardmax": dml.activation_hardmax1,
    "LogSoftmax": dml.activation_log_softmax1,
    "Softmax": dml.activation_softmax1,
}


def _activation(function: Activation, defaults: dict[str, float]) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        given = {name: float(node.attribute(name, default)) for name, default in defaults.items()}
        return node.result(function(node.tensor(0), **given), node.sizes(0))

    return convert


def _along_last_axes(function: Activation) -> Callable[[Conversion], Result]:
    """All axes from the attribute's on are taken as one."""

    def convert(node: Conversion) -> Result:
        rank = len(node.sizes(0))
        axis = node.attribute("axis", 1)
        first = rank if axis == rank else node.axis(axis, rank)
        return node.result(function(node.tensor(0), axes=list(range(first, rank))), node.sizes(0))

    return convert


def _along_axis(function: Activation) -> Callable[[Conversion], Result]:
    def convert(node: Conversion) -> Result:
        axis = node.axis(node.attribute("axis", -1), max(1, len(node.sizes(0))))
        return node.result(function(node.tensor(0), axes=[axis]), node.sizes(0))

    return convert


for _name, (_function, _defaults) in _ACTIVATIONS.items():
    converts(_name)(_activation(_function, _defaults))
for _name, _function in _ALONG_AXES.items():
    converts(_name)(_along_last_axes(_function))
    converts(_name, since=13)(_along_axis(_function))


@converts("Relu")
def relu(node: Conversion) -> Result:
    """INT64 has no RELU of its own in DirectML."""
    x = node.tensor(0)
    y = dml.element_wise_max(x, 0) if node.type(0) == np.int64 else dml.activation_relu(x)
    return node.result(y, node.sizes(0))


@converts("PRelu", since=7)
def prelu(node: Conversion) -> Result:
    """The slope is repeated to the sizes of the input, never the other way."""
    sizes = node.sizes(0)
    if broadcast_sizes(node, (0, 1)) != sizes:
        raise NotExpressible(f"slope of sizes {list(node.sizes(1))} for an input of {list(sizes)}")
    if node.type(0).kind == "u":
        return reshaped(node, sizes)
    rank = max(1, len(sizes))
    return node.result(dml.activation_parameterized_relu(node.tensor(0, rank), node.tensor(1, rank)), sizes)


@converts("Shrink")
def shrink(node: Conversion) -> Result:
    """Towards zero by a bias, or to zero within a threshold."""
    bias, threshold = float(node.attribute("bias", 0.0)), float(node.attribute("lambd", 0.5))
    return node.result(dml.activation_shrink(node.tensor(0), bias=bias, threshold=threshold), node.sizes(0))


@converts("HardSwish")
def hard_swish(node: Conversion) -> Result:
    """Its constants are fixed."""
    return node.result(dml.activation_hard_swish(node.tensor(0), alpha=1 / 6, beta=0.5), node.sizes(0))


@converts("Swish")
def swish(node: Conversion) -> Result:
    """The input times the sigmoid of `alpha` times it."""
    scale = float(node.attribute("alpha", 1.0))
    return node.result(dml.activation_swish(node.tensor(0), sigmoid_input_scale=scale), node.sizes(0))


@converts("Gelu")
def gelu(node: Conversion) -> Result:
    """The exact form; that by tanh is made of the operator's body."""
    if node.attribute("approximate", "none") != "none":
        raise NotExpressible("DirectML has no GELU by tanh")
    return node.result(dml.activation_gelu(node.tensor(0)), node.sizes(0))


@converts("Affine")
def affine(node: Conversion) -> Result:
    """An experimental operator of old models: alpha * x + beta."""
    alpha, beta = float(node.attribute("alpha", 1.0)), float(node.attribute("beta", 0.0))
    return node.result(dml.activation_linear(node.tensor(0), alpha=alpha, beta=beta), node.sizes(0))


@converts("ImageScaler")
def image_scaler(node: Conversion) -> Result:
    """An experimental operator of old models: x * scale + the bias of its channel."""
    scaled = dml.value_scale_2d(
        node.tensor(0), scale=float(node.attribute("scale", 1.0)), bias=node.required("bias")
    )
    return node.result(scaled)
