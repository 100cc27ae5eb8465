"""Activations against systems that others wrote: PyTorch and the ONNX reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opendml import Device
from opendml.program.scalar_type import ScalarType
from opendml.runtime.host_array import Array
from tools.measure_accuracy import Attributes, activation, computed, read_table, ulp_distance

F32 = ScalarType.FLOAT32
BOUNDS = read_table()

# PyTorch computes in float64 here, but exp(x) - 1 in two steps: near zero nothing can be compared.
INPUTS = np.concatenate([np.linspace(-30, -0.01, 3001), np.linspace(0, 30, 3001)]).astype(np.float32)

TORCH: list[tuple[str, Attributes, Callable[[Any, Any], Any]]] = [
    ("CELU", {"alpha": 1.0}, lambda f, x: f.celu(x)),
    ("CELU", {"alpha": 0.5}, lambda f, x: f.celu(x, alpha=0.5)),
    ("CELU", {"alpha": 2.0}, lambda f, x: f.celu(x, alpha=2.0)),
    ("ELU", {"alpha": 1.0}, lambda f, x: f.elu(x)),
    ("ELU", {"alpha": 1.5}, lambda f, x: f.elu(x, alpha=1.5)),
    ("GELU", {}, lambda f, x: f.gelu(x)),
    ("HARD_SIGMOID", {"alpha": 0.25, "beta": 0.5}, lambda f, x: f.hardsigmoid(x * 1.5)),
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
    ("TANH", {}, lambda f, x: f.tanh(x)),
    ("THRESHOLDED_RELU", {"alpha": 1.0}, lambda f, x: f.threshold(x, 1.0, 0.0)),
]


@pytest.mark.parametrize(("name", "attributes", "peer"), TORCH, ids=[name for name, _, _ in TORCH])
def test_activations_agree_with_pytorch(
    name: str, attributes: Attributes, peer: Callable[[Any, Any], Any], device: Device
) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    # PyTorch's GELU adds 1 and erf, which cancel in the tail even in float64.
    x = np.maximum(INPUTS, np.float32(-4.0)) if name == "GELU" else INPUTS
    expected = peer(torch.nn.functional, torch.from_numpy(x.astype(np.float64))).numpy()
    result = computed(activation(f"ACTIVATION_{name}", attributes, F32, x.size), x, device)
    distances = ulp_distance(result, expected)
    assert distances.max() <= BOUNDS[f"ACTIVATION_{name}"]["FLOAT32"]["ulp"] + 0.01, x[distances.argmax()]


ONNX: list[tuple[str, Attributes, str, Attributes]] = [
    ("CELU", {"alpha": 0.5}, "Celu", {"alpha": 0.5}),
    ("ELU", {"alpha": 1.5}, "Elu", {"alpha": 1.5}),
    ("GELU", {}, "Gelu", {}),
    ("HARD_SIGMOID", {"alpha": 0.2, "beta": 0.5}, "HardSigmoid", {}),
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


@pytest.mark.parametrize(
    ("name", "attributes", "peer", "peer_attributes"), ONNX, ids=[case[0] for case in ONNX]
)
def test_activations_agree_with_the_onnx_reference(
    name: str, attributes: Attributes, peer: str, peer_attributes: Attributes, device: Device
) -> None:
    pytest.importorskip("onnx", reason="ONNX is not installed")
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    sizes = [INPUTS.size]
    x, y = (helper.make_tensor_value_info(tensor, TensorProto.FLOAT, sizes) for tensor in "xy")
    graph = helper.make_graph([helper.make_node(peer, ["x"], ["y"], **peer_attributes)], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    with np.errstate(all="ignore"):
        (expected,) = ReferenceEvaluator(model).run(None, {"x": INPUTS})
    result = computed(activation(f"ACTIVATION_{name}", attributes, F32, INPUTS.size), INPUTS, device)
    # The ONNX reference computes in float32 itself, without care for cancellation.
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=5e-7)


def test_the_inputs_of_these_tests_reach_all_branches() -> None:
    values: Array = INPUTS
    assert values.min() < -2
    assert (values == 0).any()
    assert values.max() > 2
