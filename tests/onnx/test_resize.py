"""Resize and Upsample in ONNX models."""

from __future__ import annotations

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
    run_by_onnxruntime,
)

_COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


def _inputs(array: Array, scales: list[float] | None, sizes: list[int] | None = None) -> list[Array | None]:
    factors = None if scales is None else np.array(scales, np.float32)
    return [array, None, factors, *([np.array(sizes, np.int64)] if sizes is not None else [])]


def _check(inputs: list[Array | None], operator: str = "Resize", atol: float = 1e-5, **options: Any) -> None:
    known = [number for number, each in enumerate(inputs) if number and each is not None]
    model = one_node(operator, inputs, known=known, **options)
    given = feed(inputs, known)
    wanted = run_by_onnxruntime(model, given) if options.get("opset", 19) < 11 else evaluated(model, given)
    assert_same(computed(model, given), wanted, 1e-4, atol)


@pytest.mark.parametrize("coordinates", _COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 1.5], [1.0, 1.0, 0.6, 0.75], [1.0, 1.0, 0.2, 3.0]])
def test_coordinates_are_those_of_the_mode(coordinates: str, mode: str, scales: list[float]) -> None:
    inputs, options = _inputs(numbers([1, 2, 5, 8]), scales), {"coordinate_transformation_mode": coordinates}
    if (
        coordinates == "pytorch_half_pixel" and scales[2] == 0.2
    ):  # ONNX's evaluator does what its text does not
        model, given = (
            one_node("Resize", inputs, known=(2,), opset=19, mode=mode, **options),
            feed(inputs, (2,)),
        )
        assert_as_onnxruntime(model, given, 1e-4, 1e-5)
    else:
        _check(inputs, mode=mode, **options)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("type", [np.float32, np.uint8, np.int64, np.float16])
def test_nearest_elements_of_all_types_are_copied(nearest: str, type: Any) -> None:
    inputs = _inputs(numbers([1, 2, 4, 6], type), None, [1, 2, 8, 3])
    _check(inputs, mode="nearest", nearest_mode=nearest)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("options", [{"antialias": 1}, {"exclude_outside": 1}, {"cubic_coeff_a": -0.5}])
def test_filters_have_weights(mode: str, options: dict[str, Any]) -> None:
    _check(_inputs(numbers([1, 2, 9, 8]), [1.0, 1.0, 0.4, 1.75]), mode=mode, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_region_of_the_input_is_resized_and_extrapolated(mode: str) -> None:
    region = np.array([0, 0, 0.4, -0.1, 1, 1, 1.2, 0.8], np.float32)
    inputs = [numbers([1, 2, 6, 7]), region, None, np.array([1, 2, 4, 9], np.int64)]
    _check(inputs, mode=mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.5)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("axes", [[2, 3], [3, 2], [3]])
def test_axes_keep_their_aspect_ratio(policy: str, axes: list[int]) -> None:
    inputs = _inputs(numbers([1, 2, 6, 8]), None, [5, 11][: len(axes)])
    options = {"keep_aspect_ratio_policy": policy, "axes": axes, "mode": "linear"}
    _check(inputs, **options)


def test_five_dimensions_are_interpolated() -> None:
    _check(_inputs(numbers([1, 2, 3, 4, 5]), [1.0, 1.0, 2.0, 1.5, 0.8]), mode="linear")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_bytes_are_rounded_and_kept_within_their_limits(mode: str) -> None:
    inputs = _inputs(numbers([1, 1, 6, 7], np.uint8), [1.0, 1.0, 1.7, 2.3])
    _check(inputs, mode=mode, atol=1)  # halves are rounded by the last bit of float32


def test_tf_half_pixel_for_nn_has_no_second_half() -> None:
    inputs: list[Array | None] = [numbers([1, 1, 5, 6]), np.zeros(0, np.float32)]
    inputs.append(np.array([1.0, 1.0, 0.6, 1.5], np.float32))
    options = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}
    model = one_node("Resize", inputs, known=[1, 2], opset=11, **options)
    wanted = run_by_onnxruntime(model, feed(inputs, [1, 2]))
    assert_same(computed(model, feed(inputs, [1, 2])), wanted)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("opset", [7, 9])
def test_upsample_has_scales_as_attribute_or_input(mode: str, opset: int) -> None:
    scales = [1.0, 1.0, 2.0, 3.0]
    if opset == 7:
        _check([numbers([1, 2, 4, 5])], "Upsample", mode=mode, scales=scales, opset=opset)
    else:
        _check([numbers([1, 2, 4, 5]), np.array(scales, np.float32)], "Upsample", mode=mode, opset=opset)


@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 1.5], [1.0, 1.0, 0.6, 0.75]])
def test_resize_10_rounds_up_where_it_shrinks(scales: list[float]) -> None:
    _check([numbers([1, 2, 5, 8]), np.array(scales, np.float32)], opset=10)


def test_one_element_lies_at_the_first_of_pytorchs_pixels() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    inputs: list[Array | None] = [x, None, None, np.array([1, 1, 1, 2])]
    for known in ((3,), (0, 3)):
        options = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
        model = one_node("Resize", inputs, known=known, **options)
        assert_same(computed(model, feed(inputs, known)), [np.array([[[[0.40625, 2.59375]]]], np.float32)])


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize(("length", "output"), [(7, 17)])
def test_a_rounding_beside_an_element_it_is_that_element(
    rounding: str, coordinates: str, length: int, output: int
) -> None:
    places = np.arange(output, dtype=np.int64)  # exactly, as numerators and a denominator
    exact = {
        "half_pixel": ((2 * places + 1) * length - output, 2 * output),
        "asymmetric": (places * length, output),
        "align_corners": (places * (length - 1), output - 1),
    }
    above, below = exact[coordinates]
    wanted = {
        "floor": above // below,
        "ceil": -(-above // below),
        "round_prefer_floor": -((below - 2 * above) // (2 * below)),
        "round_prefer_ceil": (2 * above + below) // (2 * below),
    }[rounding]
    x = np.arange(length, dtype=np.float32)
    inputs = _inputs(x, None, [output])
    options = {"nearest_mode": rounding, "coordinate_transformation_mode": coordinates}
    model = one_node("Resize", inputs, known=(3,), mode="nearest", **options)
    assert_same(computed(model, feed(inputs, (3,))), [np.clip(wanted, 0, length - 1).astype(np.float32)])


def test_no_elements_are_resized_into_none() -> None:
    inputs = _inputs(np.zeros([1, 0, 2, 2], np.float32), None, [1, 0, 1, 2])
    options = {"mode": "nearest", "coordinate_transformation_mode": "pytorch_half_pixel"}
    (result,) = computed(one_node("Resize", inputs, known=(3,), **options), feed(inputs, (3,)))
    assert result.shape == (1, 0, 1, 2)
