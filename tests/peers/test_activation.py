"""Activations against PyTorch and ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml.runtime.memory.host_array import Array
from tests.tolerances import assert_within

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, Random, computed, exact, examples, seeds

Attributes = Mapping[str, float]

TORCH: list[tuple[str, Attributes, Callable[[Any, Any], Any]]] = [
    ("CELU", {"alpha": 1.0}, lambda f, x: f.celu(x)),
    ("CELU", {"alpha": 0.5}, lambda f, x: f.celu(x, alpha=0.5)),
    ("CELU", {"alpha": 2.0}, lambda f, x: f.celu(x, alpha=2.0)),
    ("ELU", {"alpha": 1.0}, lambda f, x: f.elu(x)),
    ("ELU", {"alpha": 1.5}, lambda f, x: f.elu(x, alpha=1.5)),
    ("GELU", {}, lambda f, x: f.gelu(x)),
    ("HARD_SIGMOID", {"alpha": 0.25, "beta": 0.5}, lambda f, x: f.hardsigmoid(x * 1.5)),
    ("HARD_SWISH", {"alpha": 0.25, "beta": 0.5}, lambda f, x: x * f.hardsigmoid(x * 1.5)),
    ("LEAKY_RELU", {"alpha": 0.25}, lambda f, x: f.leaky_relu(x, 0.25)),
    ("PARAMETRIC_SOFTPLUS", {"alpha": 0.5, "beta": 2.0}, lambda f, x: f.softplus(x, beta=2.0, threshold=1e3)),
    ("RELU", {}, lambda f, x: f.relu(x)),
    ("SCALED_ELU", {"alpha": 1.5, "gamma": 2.0}, lambda f, x: 2.0 * f.elu(x, alpha=1.5)),
    ("SCALED_TANH", {"alpha": 2.0, "beta": 0.5}, lambda f, x: 2.0 * (x * 0.5).tanh()),
    ("SHRINK", {"bias": 0.5, "threshold": 0.5}, lambda f, x: f.softshrink(x, 0.5)),
    ("SHRINK", {"bias": 0.0, "threshold": 0.5}, lambda f, x: f.hardshrink(x, 0.5)),
    ("SIGMOID", {}, lambda f, x: f.sigmoid(x)),
    ("SOFTPLUS", {"steepness": 1.0}, lambda f, x: f.softplus(x, threshold=1e3)),
    ("SOFTPLUS", {"steepness": 4.0}, lambda f, x: f.softplus(x, beta=4.0, threshold=1e3)),
    ("SOFTSIGN", {}, lambda f, x: f.softsign(x)),
    ("SWISH", {"sigmoid_input_scale": 1.0}, lambda f, x: f.silu(x)),
    ("SWISH", {"sigmoid_input_scale": 2.0}, lambda f, x: f.silu(x * 2.0) / 2.0),
    ("TANH", {}, lambda f, x: f.tanh(x)),
    ("THRESHOLDED_RELU", {"alpha": 1.0}, lambda f, x: f.threshold(x, 1.0, 0.0)),
]


def _inputs(random: Random, *, special: bool = True) -> Array:
    """Numbers on both sides of all bends, but not next to zero, where peers lose digits by subtracting 1."""
    shape, dtype = random.shape(), random.of_type(FLOATS)
    numbers = random.generator.choice([-1, 1], shape) * random.generator.uniform(0.01, 30, shape)
    if special:
        chosen = random.generator.choice([0.0, -0.0, np.inf, -np.inf, np.nan], shape)
        numbers = np.where(random.generator.random(shape) < 0.2, chosen, numbers)
    return random.laid_out(numbers.astype(dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "attributes", "peer"), TORCH, ids=[name for name, _, _ in TORCH])
@given(random=seeds)
@examples
def test_activations_agree_with_pytorch(
    name: str, attributes: Attributes, peer: Callable[[Any, Any], Any], device: str, random: Random
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _inputs(random)
    if name == "GELU":  # PyTorch adds 1 and erf, which cancel in the tail even in float64.
        x = np.maximum(x, x.dtype.type(-4.0))
    expected = peer(torch.nn.functional, torch.from_numpy(exact(x))).numpy()
    operator = f"ACTIVATION_{name}"
    assert_within(operator, computed(operator, x, device=device, **attributes), expected)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_slopes_of_each_element_agree_with_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _inputs(random)
    slope = random.values(x.dtype, x.shape, -2, 2, special=False)
    wide, factor = torch.from_numpy(exact(x)), torch.from_numpy(exact(slope))
    expected = torch.where(wide >= 0, wide, wide * factor).numpy()
    operator = "ACTIVATION_PARAMETERIZED_RELU"
    assert_within(operator, computed(operator, x, slope, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_the_gradient_of_relu_is_pytorchs(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = _inputs(random, special=False)
    gradient = random.values(x.dtype, x.shape, special=False)
    wide = torch.from_numpy(exact(x)).requires_grad_()
    torch.relu(wide).backward(torch.from_numpy(exact(gradient)))
    result = computed("ACTIVATION_RELU_GRAD", x, gradient, device=device)
    np.testing.assert_array_equal(result, wide.grad.numpy())


ONNX: list[tuple[str, Attributes, str, Attributes]] = [
    ("CELU", {"alpha": 0.5}, "Celu", {"alpha": 0.5}),
    ("ELU", {"alpha": 1.5}, "Elu", {"alpha": 1.5}),
    ("GELU", {}, "Gelu", {}),
    ("HARD_SIGMOID", {"alpha": 0.2, "beta": 0.5}, "HardSigmoid", {}),
    ("HARD_SWISH", {"alpha": 1.0 / 6.0, "beta": 0.5}, "HardSwish", {}),
    ("IDENTITY", {}, "Identity", {}),
    ("LEAKY_RELU", {}, "LeakyRelu", {}),
    ("RELU", {}, "Relu", {}),
    ("SCALED_ELU", {}, "Selu", {"alpha": 1.6732, "gamma": 1.0507}),
    ("SHRINK", {"bias": 0.5, "threshold": 1.5}, "Shrink", {"bias": 0.5, "lambd": 1.5}),
    ("SIGMOID", {}, "Sigmoid", {}),
    ("SOFTPLUS", {}, "Softplus", {}),
    ("SOFTSIGN", {}, "Softsign", {}),
    ("TANH", {}, "Tanh", {}),
    ("THRESHOLDED_RELU", {}, "ThresholdedRelu", {}),
]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(("name", "attributes", "operator", "theirs"), ONNX, ids=[case[0] for case in ONNX])
@given(random=seeds)
@examples
def test_activations_agree_with_onnx(
    name: str, attributes: Attributes, operator: str, theirs: Attributes, peer: str, random: Random
) -> None:
    x = _inputs(random, special=False).astype(np.float32)
    expected = onnx_result(peer, operator, [x], "float32", **theirs)
    result = computed(f"ACTIVATION_{name}", x, device="reference", **attributes)
    # Both of ONNX's compute without care for cancellation.
    assert_within(f"ACTIVATION_{name}", result, expected, peer=True)


_shrunk = deviation("ACTIVATION_SHRINK", "NaN", lambda peer, x: np.where(np.isnan(x), np.nan, peer))


@pytest.mark.parametrize("peer", PEERS)
def test_shrink_keeps_nan_unlike_onnx(peer: str) -> None:
    x = np.array([np.nan, -2, -0.1, 0.1, 2], np.float32)
    expected = _shrunk(onnx_result(peer, "Shrink", [x], "float32", bias=0.5, lambd=1.5), x)
    for device in ("reference", "cpu"):
        result = computed("ACTIVATION_SHRINK", x, device=device, bias=0.5, threshold=1.5)
        np.testing.assert_array_equal(result, expected)
