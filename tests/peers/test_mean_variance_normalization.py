"""Normalization against systems that others wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml import FLOAT32, Device
from opendml.runtime.memory.host_array import Array
from tests.operators.normalizing import desc_of, random_values
from tests.running import run
from tests.tolerances import assert_within
from tools.terms import of_normalization

SIZES = [2, 6, 5, 7]
EPSILON = 1e-3


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def ours(device: Device, axes: list[int], x: Array, scale: Array, bias: Array) -> Array:
    desc = desc_of(FLOAT32, x.shape, axes, scale.shape, bias.shape, epsilon=EPSILON)
    return run(desc, [x, scale, bias], device)


def assert_equal_to(theirs: Any, device: Device, axes: list[int], *given: Array, peer: bool = False) -> None:
    """`ours` are `theirs`, which may have other sizes."""
    x, scale, _ = given
    expected = np.asarray(theirs).reshape(x.shape)
    terms = of_normalization(x, axes, EPSILON, scale)
    assert_within("MEAN_VARIANCE_NORMALIZATION1", ours(device, axes, *given), expected, terms, peer=peer)


def tensors(sizes: list[int], parameters: list[int]) -> tuple[Array, Array, Array]:
    """Values, a scale and a bias."""
    return (
        random_values(0, sizes, np.float32, 2.0),
        random_values(1, parameters, np.float32),
        random_values(2, parameters, np.float32),
    )


def test_axes_of_the_picture_are_pytorchs_instance_norm(torch: Any, device: Device) -> None:
    x, scale, bias = tensors(SIZES, [1, 6, 1, 1])
    wide, weight, shift = (
        torch.from_numpy(array.astype(np.float64)) for array in (x, scale.reshape(6), bias.reshape(6))
    )
    theirs = torch.nn.functional.instance_norm(wide, weight=weight, bias=shift, eps=EPSILON)
    assert_equal_to(theirs, device, [2, 3], x, scale, bias)


def test_the_last_axes_are_pytorchs_layer_norm(torch: Any, device: Device) -> None:
    x, scale, bias = tensors(SIZES, [1, 1, 5, 7])
    wide, weight, shift = (
        torch.from_numpy(array.astype(np.float64)) for array in (x, scale[0, 0], bias[0, 0])
    )
    theirs = torch.nn.functional.layer_norm(wide, [5, 7], weight, shift, EPSILON)
    assert_equal_to(theirs, device, [2, 3], x, scale, bias)


def test_split_channels_are_pytorchs_group_norm(torch: Any, device: Device) -> None:
    x, scale, bias = tensors(SIZES, [1, 6, 1, 1])
    wide, weight, shift = (
        torch.from_numpy(array.astype(np.float64)) for array in (x, scale.reshape(6), bias.reshape(6))
    )
    theirs = torch.nn.functional.group_norm(wide, 3, weight, shift, EPSILON)
    split = (array.reshape(array.shape[0], 3, -1, *array.shape[2:]) for array in (x, scale, bias))
    assert_equal_to(theirs, device, [2, 3, 4], *split)


def test_all_axes_but_the_channels_are_pytorchs_batch_norm_of_a_batch(torch: Any, device: Device) -> None:
    x, scale, bias = tensors(SIZES, [1, 6, 1, 1])
    wide, weight, shift = (
        torch.from_numpy(array.astype(np.float64)) for array in (x, scale.reshape(6), bias.reshape(6))
    )
    theirs = torch.nn.functional.batch_norm(wide, None, None, weight, shift, training=True, eps=EPSILON)
    assert_equal_to(theirs, device, [0, 2, 3], x, scale, bias)


def test_layer_normalization_agrees_with_the_onnx_reference(device: Device) -> None:
    pytest.importorskip("onnx", reason="ONNX is not installed")
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    x, scale, bias = tensors(SIZES, [1, 1, 1, 7])
    node = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=3, epsilon=EPSILON)
    shapes = {"x": SIZES, "scale": [7], "bias": [7], "y": SIZES}
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name, sizes in shapes.items()]
    graph = helper.make_graph([node], "one", infos[:3], infos[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    arrays = {"x": x, "scale": scale.reshape(7), "bias": bias.reshape(7)}
    (theirs,) = ReferenceEvaluator(model).run(None, arrays)
    assert_equal_to(theirs, device, [3], x, scale, bias, peer=True)
