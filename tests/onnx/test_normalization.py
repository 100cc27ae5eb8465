"""Normalizations in ONNX models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    evaluated,
    feed,
    numbers,
    one_node,
)


def _check(operator: str, inputs: list[Array | None], rtol: float = 1e-4, **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)), rtol, rtol)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("spatial", [[3], [3, 4], [2, 3, 2]])
def test_lrn_sums_over_neighbouring_channels(size: int, spatial: list[int]) -> None:
    array = numbers([2, 5, *spatial])
    before, behind = (size - 1) // 2, size // 2
    padded = np.pad(array, [(0, 0), (before, behind), *[(0, 0)] * len(spatial)])
    total = sum(np.square(padded[:, first : first + 5]) for first in range(size))
    wanted = array / (2 + 0.5 / size * total) ** 0.75
    model = one_node("LRN", [array], size=size, alpha=0.5, bias=2.0)
    assert_same(computed(model, feed([array])), [wanted])


@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, -1])
def test_lines_without_length_stay_zero(type: Any, p: int, axis: int) -> None:
    array = numbers([4, 5], type)
    array[2], array[:, 3] = 0, 0
    wanted = np.linalg.norm(array.astype(np.float64), p, axis, keepdims=True)
    wanted = np.where(wanted == 0, 0, array / np.where(wanted == 0, 1, wanted)).astype(type)
    result = computed(one_node("LpNormalization", [array], p=p, axis=axis), feed([array]))
    assert_same(result, [wanted], 2e-3 if type == np.float16 else 1e-5)


def test_short_lines_have_length_one() -> None:
    array = numbers([3, 4]) * np.float32(1e-9)
    result = computed(one_node("LpNormalization", [array]), feed([array]))[0]
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1, 1e-5)


def _statistics(count: int, type: Any = np.float32) -> list[Array]:
    return [numbers([count], type, seed) for seed in (1, 2, 3)] + [np.abs(numbers([count], type, 4))]


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
@pytest.mark.parametrize("sizes", [[3, 4], [2, 4, 5], [2, 4, 3, 2]])
def test_batch_normalization_of_all_versions(opset: int, sizes: list[int]) -> None:
    inputs = [numbers(sizes), *_statistics(4)]
    model = one_node("BatchNormalization", inputs, opset=opset, epsilon=1e-3)
    assert_as_onnxruntime(model, feed(inputs), 1e-4)


@pytest.mark.parametrize("opset", [7, 9, 15])
@pytest.mark.parametrize(("type", "known"), [(np.float64, ()), (np.float32, range(5))])
def test_batch_normalization_that_is_known_or_of_doubles_has_nothing_of_its_batch(
    opset: int, type: Any, known: Sequence[int]
) -> None:
    inputs = [numbers([2, 4, 3], type), *_statistics(4, type)]
    x, scale, bias, mean, variance = (each.reshape(-1, 1) if each.ndim == 1 else each for each in inputs)
    wanted = scale * (x - mean) / np.sqrt(variance + 1e-5) + bias
    model = one_node("BatchNormalization", inputs, opset=opset, known=known)
    assert_same(computed(model, feed(inputs, known), evaluator=True), [wanted.astype(type)], 1e-4)


def test_batch_normalization_takes_statistics_of_another_type() -> None:
    _check("BatchNormalization", [numbers([2, 4, 3], np.float16), *_statistics(4)], 4e-3)


def test_batch_normalization_trains() -> None:
    inputs = [numbers([3, 4, 5]), *_statistics(4)]
    _check("BatchNormalization", inputs, outputs=3, training_mode=1, momentum=0.75)


@pytest.mark.parametrize("sizes", [[2, 3, 5], [2, 3, 4, 2]])
def test_instance_normalization_takes_each_channel(sizes: list[int]) -> None:
    _check(
        "InstanceNormalization", [numbers(sizes), numbers([3], seed=1), numbers([3], seed=2)], epsilon=1e-2
    )


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_layer_normalization_gives_its_statistics(axis: int, outputs: int, bias: bool) -> None:
    sizes = [2, 3, 4]
    inputs: list[Array | None] = [numbers(sizes), numbers(sizes[axis:], seed=1)]
    inputs += [numbers(sizes[axis:], seed=2)] if bias else []
    _check("LayerNormalization", inputs, outputs=outputs, axis=axis, epsilon=1e-2)


def test_layer_normalization_of_float16_has_statistics_in_float32() -> None:
    inputs: list[Array | None] = [numbers([3, 8], np.float16), numbers([8], np.float16, 1)]
    model = one_node("LayerNormalization", inputs, opset=17, outputs=3)
    assert_as_onnxruntime(model, feed(inputs), 4e-3, 4e-3)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("sizes", [[2, 6], [2, 6, 4, 3]])
def test_group_normalization_scales_groups_and_later_channels(opset: int, sizes: list[int]) -> None:
    count = 3 if opset == 18 else 6
    inputs: list[Array | None] = [numbers(sizes), numbers([count], seed=1), numbers([count], seed=2)]
    _check("GroupNormalization", inputs, opset=opset, num_groups=3)


@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_normalization_takes_no_mean(axis: int) -> None:
    _check("RMSNormalization", [numbers([2, 3, 4]), numbers([2, 3, 4][axis:], seed=1)], axis=axis)


def test_simplified_layer_normalization_gives_the_inverse_root() -> None:
    inputs: list[Array | None] = [numbers([2, 3, 4]), numbers([4], seed=1)]
    model = one_node("SimplifiedLayerNormalization", inputs, opset=17, outputs=2, epsilon=1e-2)
    del model.graph.output[1:]
    model.graph.node[0].output[1] = ""
    inverse = 1 / np.sqrt(np.mean(np.square(numbers([2, 3, 4])), -1, keepdims=True) + 1e-2)
    assert_same(computed(model, feed(inputs)), [numbers([2, 3, 4]) * inverse * numbers([4], seed=1)])


@pytest.mark.parametrize("axes", [None, [0, 1, 2, 3], [-1]])
def test_mean_variance_normalization_of_constants_is_zero(axes: list[int] | None) -> None:
    array = numbers([2, 3, 4, 2])
    array[:, 1] = 5
    _check("MeanVarianceNormalization", [array], **({} if axes is None else {"axes": axes}))
