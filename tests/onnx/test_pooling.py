"""Pooling in ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import opendml as dml
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

_WINDOWS: list[tuple[list[int], dict[str, Any]]] = [
    ([9], {"kernel_shape": [3]}),
    ([9], {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
    ([7, 8], {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 2, 1]}),
    ([7, 8], {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    ([8, 8], {"kernel_shape": [2, 3], "strides": [3, 4], "ceil_mode": 1, "pads": [0, 1, 0, 1]}),
    ([7, 8], {"kernel_shape": [2, 3], "dilations": [2, 2]}),
    ([7, 8], {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ([7, 8], {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER", "strides": [1, 3]}),
    ([7, 8], {"kernel_shape": [2, 3], "auto_pad": "VALID", "strides": [2, 2]}),
    ([4, 5, 6], {"kernel_shape": [2, 3, 2], "strides": [1, 2, 3], "pads": [1, 1, 0, 0, 1, 1]}),
]


def _check(operator: str, inputs: list[Array | None], rtol: float = 1e-5, **options: Any) -> None:
    model = one_node(operator, inputs, opset=21, **options)
    assert_as_onnxruntime(model, feed(inputs), rtol)


@pytest.mark.parametrize(("spatial", "attributes"), _WINDOWS)
@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool_counts_what_it_is_told_to(
    spatial: list[int], attributes: dict[str, Any], counted: int
) -> None:
    _check("AveragePool", [numbers([2, 3, *spatial])], count_include_pad=counted, **attributes)


@pytest.mark.parametrize(("spatial", "attributes"), _WINDOWS)
@pytest.mark.parametrize("order", [0, 1])
def test_max_pool_says_where_its_maxima_lie(
    spatial: list[int], attributes: dict[str, Any], order: int
) -> None:
    _check("MaxPool", [numbers([2, 3, *spatial])], outputs=2, storage_order=order, **attributes)


@pytest.mark.parametrize("type", [np.int8, np.uint8])
def test_max_pool_takes_bytes(type: Any) -> None:
    _check("MaxPool", [numbers([2, 3, 7, 8], type)], kernel_shape=[3, 2], pads=[1, 1, 1, 1])


@pytest.mark.parametrize(("spatial", "attributes"), _WINDOWS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool_takes_roots(spatial: list[int], attributes: dict[str, Any], p: int) -> None:
    if "dilations" in attributes or "ceil_mode" in attributes:
        pytest.skip("ONNX Runtime does not run it so")
    _check("LpPool", [numbers([2, 3, *spatial])], p=p, **attributes)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("spatial", [[5], [5, 4], [3, 4, 2]])
def test_global_pools_take_all_of_a_channel(operator: str, spatial: list[int]) -> None:
    _check(operator, [numbers([2, 3, *spatial])])


def test_global_lp_pool_takes_any_p() -> None:
    _check("GlobalLpPool", [numbers([2, 3, 4, 5])], rtol=1e-4, p=3)


@pytest.mark.parametrize("shape", [None, [1, 2, 7, 9]])
def test_max_unpool_puts_elements_back(shape: list[int] | None) -> None:
    places = np.random.default_rng(0).permutation(1 * 2 * 6 * 8)[:24].reshape(1, 2, 3, 4)
    inputs: list[Array | None] = [numbers([1, 2, 3, 4]), places.astype(np.int64)]
    if shape is not None:
        inputs.append(np.array(shape, np.int64))
    model = one_node("MaxUnpool", inputs, known=[2] if shape else [], kernel_shape=[2, 2], strides=[2, 2])
    given = feed(inputs, [2])
    assert_same(computed(model, given), evaluated(model, given))


def test_max_roi_pool_takes_the_maxima_of_regions() -> None:
    corners = np.array([[0, 1, 1, 6, 5], [1, 0, 2, 3, 3], [1, 4, 4, 12, 14], [0, 2, 2, 2, 2]], np.float32)
    _check("MaxRoiPool", [numbers([2, 3, 8, 9]), corners], pooled_shape=[2, 3], spatial_scale=0.5)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2])
def test_roi_align_takes_means_of_interpolated_elements(mode: str, samples: int) -> None:
    corners = np.array([[0, 1, 6, 5], [1, 0.5, 3.25, 3], [2, 4, 11, 14], [5, 5, 5.5, 5.25]], np.float32)
    inputs: list[Array | None] = [numbers([2, 3, 8, 9]), corners, np.array([0, 1, 1, 0], np.int64)]
    sizes = {"output_height": 3, "output_width": 2, "sampling_ratio": samples, "spatial_scale": 0.75}
    _check("RoiAlign", inputs, coordinate_transformation_mode=mode, **sizes)


def test_known_channels_of_one_dimension_have_a_maximum_each() -> None:
    x = np.arange(10, dtype=np.float32).reshape(1, 2, 5)
    model = one_node("GlobalMaxPool", [x], known=(0,))
    assert_same(computed(model, {}), [np.array([[[4], [9]]], np.float32)])


@pytest.mark.parametrize(
    ("operator", "sizes", "attributes", "wanted"),
    [
        ("GlobalMaxPool", [0, 2, 2], {}, [0, 2, 1]),
        ("GlobalAveragePool", [2, 0, 3, 3], {}, [2, 0, 1, 1]),
        ("MaxPool", [2, 0, 0], {"kernel_shape": [1], "strides": [2]}, [2, 0, 0]),
        ("MaxPool", [0, 2, 7], {"kernel_shape": [3], "auto_pad": "SAME_UPPER"}, [0, 2, 7]),
        ("LpPool", [2, 2, 0], {"kernel_shape": [1], "strides": [2]}, [2, 2, 0]),
        ("AveragePool", [0, 3, 7, 8], {"kernel_shape": [3, 2], "strides": [2, 2]}, [0, 3, 3, 4]),
    ],
)
def test_no_elements_are_pooled_into_none(
    operator: str, sizes: list[int], attributes: dict[str, Any], wanted: list[int]
) -> None:
    x = np.zeros(sizes, np.float32)
    (result,) = computed(one_node(operator, [x], opset=21, **attributes), feed([x]))
    assert (result.shape, result.dtype) == (tuple(wanted), x.dtype)


def test_no_elements_are_convolved_into_none() -> None:
    inputs = [np.zeros([2, 2, 2, 0], np.float32), np.ones([1, 2, 1, 1], np.float32)]
    (result,) = computed(one_node("Conv", inputs, opset=21, strides=[1, 2]), feed(inputs))
    assert (result.shape, result.dtype) == ((2, 1, 2, 0), np.float32)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "pads": [0, 1, 0, 0]},
        {"kernel_shape": [1, 1], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_windows_that_the_evaluator_pads_otherwise_are_refused(attributes: dict[str, Any]) -> None:
    x = numbers([1, 2, 5, 5], np.float64)
    with pytest.raises(dml.Unsupported, match="onnx's evaluator does not pad such windows as ONNX says"):
        computed(one_node("MaxPool", [x], opset=21, **attributes), feed([x]), evaluator=True)


@pytest.mark.parametrize("side", ["UPPER", "LOWER"])
@pytest.mark.parametrize(("size", "wanted"), [(4, [1, 3]), (5, [1, 3, 5])])
def test_windows_that_reach_less_far_than_their_stride_are_not_padded(
    side: str, size: int, wanted: list[int]
) -> None:
    x = np.arange(1, size + 1, dtype=np.float32).reshape(1, 1, size)
    options = {"strides": [2], "auto_pad": f"SAME_{side}"}
    pooled = computed(one_node("MaxPool", [x], kernel_shape=[1], **options), feed([x]))[0]
    weight = np.ones((1, 1, 1), np.float32)
    convolved = computed(one_node("Conv", [x, weight], **options), feed([x, weight]))[0]
    assert pooled.reshape(-1).tolist() == convolved.reshape(-1).tolist() == wanted
