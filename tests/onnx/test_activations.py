"""Activations of ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from opendml import InvalidArgument
from opendml.frontends.onnx.attributes import defaults_of
from opendml.onnx import load
from tests.onnx.models import assert_same, computed, evaluated, feed, one_node

X = np.array([[[-3, -1, -0.25], [0, 0.25, 4]]], np.float32)


def _check(operator: str, inputs: list[Any], **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)))


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("Celu", {"alpha": 2.0}),
        ("Elu", {"alpha": 2.0}),
        ("Gelu", {"approximate": "none"}),
        ("Gelu", {"approximate": "tanh"}),
        ("HardSigmoid", {"alpha": 0.5, "beta": 0.6}),
        ("HardSwish", {}),
        ("LeakyRelu", {"alpha": 0.1}),
        ("Mish", {}),
        ("Relu", {}),
        ("Selu", {"alpha": 2.0, "gamma": 3.0}),
        ("Shrink", {"bias": 0.5, "lambd": 1.5}),
        ("Sigmoid", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Swish", {"alpha": 0.5}),
        ("Tanh", {}),
        ("ThresholdedRelu", {"alpha": 0.2}),
    ],
)
def test_activations_and_their_defaults(operator: str, attributes: dict[str, Any]) -> None:
    _check(operator, [X], **attributes)
    x = X[0, 0, 1:2]
    number = x.reshape(())
    result = computed(one_node(operator, [number], **attributes), feed([number]))[0]
    wanted = evaluated(one_node(operator, [x], **attributes), feed([x]))[0]
    assert_same([result], [wanted.reshape(())])


@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("operator", ["Hardmax", "LogSoftmax", "Softmax"])
def test_one_axis_since_version_13(operator: str, axis: int) -> None:
    _check(operator, [X], axis=axis)


@pytest.mark.parametrize(
    ("opset", "axis"), [(7, None), (7, 0), (7, 2), (7, 3), (11, None), (11, 0), (11, 2), (11, -1)]
)
def test_all_axes_from_one_on_before(opset: int, axis: int | None) -> None:
    rows = X.reshape(-1, int(np.prod(X.shape[1 if axis is None else axis :])))
    exponentials = np.exp(rows - rows.max(1, keepdims=True))
    wanted = (exponentials / exponentials.sum(1, keepdims=True)).reshape(X.shape)
    model = one_node("Softmax", [X], opset=opset, **({} if axis is None else {"axis": axis}))
    assert_same(computed(model, feed([X])), [wanted])


@pytest.mark.parametrize("type", [np.int32, np.int64])
def test_relu_of_integers(type: Any) -> None:
    _check("Relu", [np.array([-2, 0, 3], type)])


@pytest.mark.parametrize("slope", [[], [3], [2, 1], [1, 2, 3]])
def test_prelu_repeats_the_slope(slope: list[int]) -> None:
    _check("PRelu", [X, np.full(slope, 0.5, np.float32)])


@pytest.mark.parametrize("type", [np.int64, np.uint32])
def test_prelu_of_integers(type: Any) -> None:
    x = np.array([1, 2, 3], type) if type == np.uint32 else np.array([-1, 2, -3], type)
    _check("PRelu", [x, np.array([2], type)])


@pytest.mark.parametrize(
    ("operator", "attributes", "wanted"),
    [
        ("Affine", {"alpha": 2.0, "beta": 1.0}, X * 2 + 1),
        ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}, 2 * np.tanh(X * 0.5)),
        ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}, 2 * np.log(np.exp(X * 0.5) + 1)),
    ],
)
def test_experimental_operators_of_old_models(
    operator: str, attributes: dict[str, float], wanted: Any
) -> None:
    assert_same(computed(one_node(operator, [X], opset=7, **attributes), feed([X])), [wanted])


def test_pictures_of_old_models_are_scaled() -> None:
    x = np.stack([X, X])
    wanted = x * 2 + np.array([3], np.float32)
    model = one_node("ImageScaler", [x], opset=7, scale=2.0, bias=[3.0])
    assert_same(computed(model, feed([x])), [wanted])


def test_an_axis_that_no_input_has_is_refused_when_the_model_is_loaded() -> None:
    with pytest.raises(InvalidArgument, match=r"Hardmax, node name: y0\): .*'axis' must be in \[-3 , 2\]"):
        load(one_node("Hardmax", [X], axis=5))


@pytest.mark.parametrize(
    ("domain", "operator", "version", "defaults"),
    [
        ("", "Softmax", 12, {"axis": 1}),
        ("", "Softmax", 13, {"axis": -1}),
        ("", "GridSample", 19, {"align_corners": 0, "mode": "bilinear", "padding_mode": "zeros"}),
        ("", "GridSample", 20, {"align_corners": 0, "mode": "linear", "padding_mode": "zeros"}),
        ("", "LayerNormalization", 11, {"axis": -1, "epsilon": float(np.float32(1e-5)), "stash_type": 1}),
        ("", "Affine", 7, {"alpha": 1.0, "beta": 0.0}),
        ("com.microsoft", "QuickGelu", 1, {"alpha": 1.702}),
        ("com.microsoft", "Unknown", 1, {}),
    ],
)
def test_defaults_of_attributes_are_those_of_the_version(
    domain: str, operator: str, version: int, defaults: dict[str, Any]
) -> None:
    assert dict(defaults_of(domain, operator, version)) == defaults
