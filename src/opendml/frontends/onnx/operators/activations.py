"""Activations, and softmax and its like along axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.registry import MICROSOFT, Converter, converts
from opendml.runtime.graphs.tensor import GraphTensor

_ACTIVATIONS: dict[tuple[str, str], tuple[Callable[..., GraphTensor], str]] = {
    ("", "Affine"): (dml.activation_linear, "alpha beta"),
    ("", "Celu"): (dml.activation_celu, "alpha"),
    ("", "Elu"): (dml.activation_elu, "alpha"),
    ("", "HardSigmoid"): (dml.activation_hard_sigmoid, "alpha beta"),
    ("", "LeakyRelu"): (dml.activation_leaky_relu, "alpha"),
    ("", "ParametricSoftplus"): (dml.activation_parametric_softplus, "alpha beta"),
    ("", "ScaledTanh"): (dml.activation_scaled_tanh, "alpha beta"),
    ("", "Selu"): (dml.activation_scaled_elu, "alpha gamma"),
    ("", "Shrink"): (dml.activation_shrink, "bias threshold=lambd"),
    ("", "Sigmoid"): (dml.activation_sigmoid, ""),
    ("", "Softplus"): (dml.activation_softplus, ""),
    ("", "Softsign"): (dml.activation_softsign, ""),
    ("", "Swish"): (dml.activation_swish, "sigmoid_input_scale=alpha"),
    ("", "Tanh"): (dml.activation_tanh, ""),
    ("", "ThresholdedRelu"): (dml.activation_thresholded_relu, "alpha"),
    (MICROSOFT, "Gelu"): (dml.activation_gelu, ""),
    (MICROSOFT, "QuickGelu"): (dml.activation_swish, "sigmoid_input_scale=alpha"),
}
"""DirectML's activations, and their keywords by ONNX's attributes, which have other names after `=`."""

_ALONG_AXES: dict[str, Callable[..., GraphTensor]] = {
    "Hardmax": dml.activation_hardmax1,
    "LogSoftmax": dml.activation_log_softmax1,
    "Softmax": dml.activation_softmax1,
}


def _activation(function: Callable[..., GraphTensor], keywords: str) -> Converter:
    pairs = [each.partition("=") for each in keywords.split()]

    def convert(node: OnnxConversion) -> Result:
        given = {keyword: float(node.attribute(name or keyword)) for keyword, _, name in pairs}
        return node.result(function(node.tensor(0), **given), node.sizes(0))

    return convert


def _along_axes(function: Callable[..., GraphTensor]) -> Converter:
    """Return a converter of a function along the axis of the attribute; before version 13 all from it on."""

    def convert(node: OnnxConversion) -> Result:
        rank, axis = len(node.sizes(0)), node.attribute("axis")
        if node.version >= 13:
            axes = [node.axis(axis, max(1, rank))]
        else:
            axes = list(range(rank if axis == rank else node.axis(axis, rank), rank))
        return node.result(function(node.tensor(0), axes=axes), node.sizes(0))

    return convert


for (_domain, _name), (_function, _keywords) in _ACTIVATIONS.items():
    converts(_name, domain=_domain, to=_function)(_activation(_function, _keywords))
for _name, _function in _ALONG_AXES.items():
    converts(_name, to=_function)(_along_axes(_function))


@converts("Relu", to="ACTIVATION_RELU")
def relu(node: OnnxConversion) -> Result:
    """Convert Relu. INT64, which RELU does not take, uses MAX."""
    x = node.tensor(0)
    y = dml.element_wise_max(x, 0) if node.type(0) == np.int64 else dml.activation_relu(x)
    return node.result(y, node.sizes(0))


@converts("PRelu", since=7, to="ACTIVATION_PARAMETERIZED_RELU")
def prelu(node: OnnxConversion) -> Result:
    """Convert PRelu. The slope is repeated to the sizes of the input, never the other way."""
    sizes = node.sizes(0)
    if node.common_sizes(0, 1) != sizes:
        raise NotExpressible(f"slope of sizes {list(node.sizes(1))} for an input of {list(sizes)}")
    if node.type(0).kind == "u":
        return node.reshaped(sizes)
    return node.result(dml.activation_parameterized_relu(*node.operands(0, 1)), sizes)


@converts("HardSwish", to="ACTIVATION_HARD_SWISH")
def hard_swish(node: OnnxConversion) -> Result:
    """Convert HardSwish, whose constants are fixed."""
    return node.result(dml.activation_hard_swish(node.tensor(0), alpha=1 / 6, beta=0.5), node.sizes(0))


@converts("Gelu", to="ACTIVATION_GELU")
def gelu(node: OnnxConversion) -> Result:
    """Convert the exact Gelu. The function body of ONNX serves the approximation by tanh."""
    if node.attribute("approximate") != "none":
        raise NotExpressible("DirectML has no GELU by tanh")
    return node.result(dml.activation_gelu(node.tensor(0)), node.sizes(0))


@converts("ImageScaler", to="VALUE_SCALE_2D")
def image_scaler(node: OnnxConversion) -> Result:
    """Convert ImageScaler, an experimental operator: x * scale + the bias of its channel."""
    scale = float(node.attribute("scale"))
    return node.result(dml.value_scale_2d(node.tensor(0), scale=scale, bias=node.required("bias")))


def _with_bias(node: OnnxConversion, number: int) -> GraphTensor:
    """Return input 0 plus a bias along its last axis, if there is one."""
    tensor = node.tensor(0)
    if not node.has(number):
        return tensor
    if node.sizes(number) != node.sizes(0)[-1:]:
        raise NotExpressible(f"bias of sizes {list(node.sizes(number))} for {list(node.sizes(0))}")
    rank = len(tensor.sizes)
    return tensor + along(node.tensor(number), rank - 1, rank)


@converts("BiasGelu", domain=MICROSOFT, to="ELEMENT_WISE_ADD1 ACTIVATION_GELU")
def bias_gelu(node: OnnxConversion) -> Result:
    """Convert the exact GELU of a sum."""
    return dml.activation_gelu(_with_bias(node, 1))


@converts("FastGelu", domain=MICROSOFT, to="ACTIVATION_GELU")
def fast_gelu(node: OnnxConversion) -> Result:
    """Convert GELU by tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3)))."""
    x = _with_bias(node, 1)
    inner = x * dml.activation_linear(x * x, alpha=0.044715, beta=1.0)
    half = dml.activation_linear(dml.activation_tanh(inner * math.sqrt(2 / math.pi)), alpha=0.5, beta=0.5)
    return node.result(x * half, node.sizes(0))


@converts("BiasSplitGelu", domain=MICROSOFT, to="ACTIVATION_GELU")
def bias_split_gelu(node: OnnxConversion) -> Result:
    """Convert the product of the first half of a sum and the GELU of its second half."""
    whole = _with_bias(node, 1)
    if whole.sizes[-1] % 2:
        raise NotExpressible(f"no halves of {whole.sizes[-1]} elements")
    values, gates = dml.split(whole, axis=len(whole.sizes) - 1, sizes=[whole.sizes[-1] // 2] * 2)
    return values * dml.activation_gelu(gates)


@converts("BiasAdd", domain=MICROSOFT, to="ELEMENT_WISE_ADD")
def bias_add(node: OnnxConversion) -> Result:
    """Convert the sum of the input, a bias along its last axis, and what was skipped."""
    if node.sizes(2) != node.sizes(0):
        raise NotExpressible(f"sizes {list(node.sizes(2))} of what was skipped for {list(node.sizes(0))}")
    return _with_bias(node, 1) + node.tensor(2)


_NAMED = "Affine Elu HardSigmoid LeakyRelu ScaledTanh Sigmoid Softplus Softsign Tanh ThresholdedRelu"
_NAMED_ACTIVATIONS: dict[str, tuple[Callable[..., Any], str]] = {
    **{name: _ACTIVATIONS["", name] for name in _NAMED.split()},
    "Clip": (dml.element_wise_clip, "min max"),
    "Relu": (dml.activation_relu, ""),
}
"""Activations that recurrent networks and fused nodes name."""
_RECURRENT_ACTIVATIONS = {name.lower(): name for name in _NAMED_ACTIVATIONS if name != "Clip"}
"""Activations of recurrent networks, whose names may have any case."""
_NEED_NUMBERS = ("Affine", "Clip", "ScaledTanh")
"""Those whose numbers a node must state. The others have DirectML's defaults, which are ONNX's."""


def _named_activation(
    name: str, number: Callable[[str], float | None]
) -> tuple[Callable[..., Any], dict[str, float]]:
    """Return DirectML's function of an activation that a node names, and its keywords.

    Args:
        name: ONNX's name of the activation.
        number: returns the number that the node states for a keyword; None: it states none.

    Raises:
        NotExpressible: there is no such activation, or a number without a default is missing.
    """
    function, keywords = _NAMED_ACTIVATIONS.get(name, (None, ""))
    given = {keyword: number(keyword) for keyword in keywords.split()}
    stated = {keyword: float(each) for keyword, each in given.items() if each is not None}
    if function is None or (name in _NEED_NUMBERS and len(stated) < len(given)):
        raise NotExpressible(f"activation {name!r} with {given}")
    return function, stated


def recurrent_activations(
    node: OnnxNode, usual: Sequence[str], directions: int
) -> list[tuple[str, Callable[..., Any], dict[str, float]]]:
    """Return the activations of a recurrent network: ONNX's names, DirectML's functions, and their keywords.

    Those that take alpha or beta take the next one of the node's lists.

    Args:
        node: the network.
        usual: the names for a direction of a network that names none.
        directions: the number of directions.

    Raises:
        NotExpressible: unknown names, another number of them, or missing numbers.
    """
    names = node.attributes.get("activations") or [*usual] * directions
    if len(names) != len(usual) * directions:
        raise NotExpressible(f"{len(names)} activations for {directions} directions")
    numbers = {each: iter(node.attributes.get(f"activation_{each}") or ()) for each in ("alpha", "beta")}
    found = []
    for given in names:
        name = _RECURRENT_ACTIVATIONS.get(given.lower())
        if name is None:
            raise NotExpressible(f"activation {given!r} with {{}}")
        found.append((name, *_named_activation(name, lambda keyword: next(numbers[keyword], None))))
    return found


def activated(tensor: GraphTensor, name: str, parameters: list[float | None]) -> GraphTensor:
    """Apply the activation that a fused node names; "" for none.

    Args:
        parameters: the activation's attributes in their order (alpha, beta); None for those left out.

    Raises:
        NotExpressible: there is no such activation, or a parameter is missing.
    """
    if not name:
        return tensor
    numbers = iter(parameters)
    function, keywords = _named_activation(name, lambda keyword: next(numbers, None))
    result: GraphTensor = function(tensor, **keywords)
    return result
