"""Products, windows, normalizations, attention and resizing in ONNX models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

import opendml as dml
from opendml import InvalidArgument
from opendml.frontends.onnx.check import check
from tests.attention_modes import planned_modes
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    check_node,
    computed,
    evaluated,
    feed,
    numbers,
    one_node,
    run_by_onnxruntime,
)


def _array(sizes: list[int], type: Any = np.float32) -> Array:
    random = np.random.default_rng(sum(sizes) + len(sizes))
    if np.dtype(type).kind == "f":
        return random.standard_normal(sizes).astype(type)
    return random.integers(0, 100, sizes).astype(type)


def test_gemm_takes_integers() -> None:
    inputs = [_array([3, 2], np.int32), _array([3, 4], np.int32), _array([4], np.int32)]
    check_node("Gemm", inputs, transA=1)


@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("ij->ji", [[2, 3]]),
        ("ij->i", [[2, 3]]),
        ("ij->", [[2, 3]]),
        ("ii->i", [[3, 3]]),
        ("...ii->...i", [[2, 3, 3]]),
        ("ii", [[3, 3]]),
        ("ba", [[2, 3]]),
        ("...ij->...ji", [[2, 4, 2, 3]]),
        ("ij,jk", [[2, 3], [3, 4]]),
        ("bij,bjk->bik", [[5, 2, 3], [5, 3, 4]]),
        ("...ij,...jk->...ik", [[5, 2, 3], [6, 1, 3, 4]]),
        ("i,j->ij", [[2], [3]]),
        ("i,i->", [[3], [3]]),
        ("ij,jk,kl->il", [[2, 3], [3, 4], [4, 5]]),
        ("bhqd,bhkd->bhqk", [[2, 3, 4, 5], [2, 3, 6, 5]]),
        ("ij,ij->ij", [[2, 3], [2, 3]]),
        ("ij,kl->", [[2, 3], [4, 5]]),
        (" a b , b -> a ", [[2, 3], [3]]),
        (",i->i", [[], [3]]),
        ("ij,j->ij", [[2, 1], [4]]),
        ("iji,jk->k", [[2, 3, 2], [3, 4]]),
        ("abcdefg,gh->abcdefh", [[1, 2, 1, 2, 1, 2, 3], [3, 2]]),
    ],
)
def test_einsum_multiplies_and_sums(equation: str, sizes: list[list[int]]) -> None:
    check_node("Einsum", [_array(each) for each in sizes], equation=equation)


def test_einsum_of_integers() -> None:
    check_node("Einsum", [_array([2, 3], np.int32), _array([3, 4], np.int32)], equation="ij,jk->ik")


def _check_convolution(operator: str, inputs: list[Array | None], atol: float = 1e-4, **options: Any) -> None:
    model = one_node(operator, inputs, opset=21, **options)
    assert_as_onnxruntime(model, feed(inputs), 1e-4, atol)


@pytest.mark.parametrize(
    ("spatial", "kernel", "attributes"),
    [
        ([9], [3], {}),
        ([9], [3], {"pads": [2, 1], "strides": [2]}),
        ([7, 8], [3, 2], {"pads": [1, 0, 2, 1], "strides": [2, 3]}),
        ([7, 8], [3, 2], {"dilations": [2, 3]}),
        ([7, 8], [3, 4], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ([7, 8], [3, 4], {"auto_pad": "SAME_LOWER", "strides": [3, 2]}),
        ([7, 8], [3, 4], {"auto_pad": "VALID", "kernel_shape": [3, 4]}),
        ([4, 5, 6], [2, 3, 2], {"pads": [1, 1, 0, 0, 1, 1], "strides": [1, 2, 1]}),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_conv_slides_as_its_attributes_say(
    spatial: list[int], kernel: list[int], attributes: dict[str, Any], group: int
) -> None:
    inputs: list[Array | None] = [numbers([2, 4, *spatial]), numbers([6, 4 // group, *kernel]), numbers([6])]
    _check_convolution("Conv", inputs, group=group, **attributes)


@pytest.mark.parametrize(
    ("spatial", "kernel", "attributes"),
    [
        ([5], [3], {"strides": [2]}),
        ([5, 4], [3, 2], {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
        ([5, 4], [3, 2], {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 2]}),
        ([5, 4], [3, 2], {"strides": [3, 3], "output_padding": [2, 1]}),
        ([5, 4], [3, 3], {"dilations": [2, 2]}),
        ([5, 4], [3, 3], {"strides": [2, 2], "output_shape": [10, 8]}),
        ([5, 4], [3, 3], {"strides": [2, 2], "output_shape": [10, 8], "auto_pad": "SAME_UPPER"}),
        ([5, 4], [3, 3], {"strides": [2, 2], "output_shape": [11, 10], "output_padding": [0, 1]}),
        ([5, 4], [3, 3], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ([5, 4], [3, 3], {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ([3, 3, 2], [2, 2, 3], {"strides": [2, 1, 2]}),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_conv_transpose_sizes_its_output(
    spatial: list[int], kernel: list[int], attributes: dict[str, Any], group: int
) -> None:
    inputs: list[Array | None] = [numbers([2, 4, *spatial]), numbers([4, 3, *kernel]), numbers([3 * group])]
    _check_convolution("ConvTranspose", inputs, group=group, **attributes)


@pytest.mark.parametrize("sizes", [[1, 4, 6], [2, 4, 6, 5]])
@pytest.mark.parametrize("per_channel", [False, True])
def test_qlinear_conv_takes_scales_of_channels(sizes: list[int], per_channel: bool) -> None:
    kernel, lines = [4, 2, *[3] * (len(sizes) - 2)], [4] if per_channel else []
    inputs: list[Array | None] = [
        numbers(sizes, np.uint8),
        np.array(0.02, np.float32),
        np.array(120, np.uint8),
        numbers(kernel, np.int8),
        np.asarray(np.abs(numbers(lines)) * np.float32(0.01) + np.float32(0.01)),
        np.zeros(lines, np.int8),
        np.array(0.3, np.float32),
        np.array(100, np.uint8),
        numbers([4], np.int32) * 50,
    ]
    _check_convolution("QLinearConv", inputs, atol=1, group=2, pads=[1] * 2 * (len(sizes) - 2))


def _check_pooling(operator: str, inputs: list[Array | None], rtol: float = 1e-5, **options: Any) -> None:
    model = one_node(operator, inputs, opset=21, **options)
    assert_as_onnxruntime(model, feed(inputs), rtol)


def test_global_lp_pool_takes_any_p() -> None:
    _check_pooling("GlobalLpPool", [numbers([2, 3, 4, 5])], rtol=1e-4, p=3)


def test_max_roi_pool_takes_the_maxima_of_regions() -> None:
    corners = np.array([[0, 1, 1, 6, 5], [1, 0, 2, 3, 3], [1, 4, 4, 12, 14], [0, 2, 2, 2, 2]], np.float32)
    _check_pooling("MaxRoiPool", [numbers([2, 3, 8, 9]), corners], pooled_shape=[2, 3], spatial_scale=0.5)


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
        ("GroupNormalization", [0, 4, 3], {"num_groups": 2}, [0, 4, 3]),
        ("GroupNormalization", [2, 4, 0], {"num_groups": 2}, [2, 4, 0]),
        ("MaxPool", [1, 2, 2, 5], {"kernel_shape": [3, 3]}, [1, 2, 0, 3]),
        ("AveragePool", [1, 2, 2, 5], {"kernel_shape": [3, 3]}, [1, 2, 0, 3]),
        ("LpPool", [1, 2, 2, 2], {"kernel_shape": [3, 3]}, [1, 2, 0, 0]),
    ],
)
def test_no_elements_and_windows_that_do_not_fit_give_none(
    operator: str, sizes: list[int], attributes: dict[str, Any], wanted: list[int]
) -> None:
    inputs = [np.zeros(sizes, np.float32)]
    if operator == "GroupNormalization":
        inputs += [np.ones(sizes[1], np.float32)] * 2
    (result,) = computed(one_node(operator, inputs, opset=21, **attributes), feed(inputs))
    assert (result.shape, result.dtype) == (tuple(wanted), np.float32)


def test_no_elements_are_convolved_into_none() -> None:
    inputs = [np.zeros([2, 2, 2, 0], np.float32), np.ones([1, 2, 1, 1], np.float32)]
    (result,) = computed(one_node("Conv", inputs, opset=21, strides=[1, 2]), feed(inputs))
    assert (result.shape, result.dtype) == ((2, 1, 2, 0), np.float32)


@pytest.mark.parametrize(("operator", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
@pytest.mark.parametrize("batch", [2, 0])
@pytest.mark.parametrize("layout", [0, 1])
def test_sequences_without_steps_leave_states_as_they_are(
    operator: str, gates: int, batch: int, layout: int
) -> None:
    count = 2 if operator == "LSTM" else 1
    sizes, states = ([batch, 0, 3], [batch, 2, 4]) if layout else ([0, batch, 3], [2, batch, 4])
    inputs: list[Array | None] = [numbers(sizes), numbers([2, gates * 4, 3]), numbers([2, gates * 4, 4])]
    options = {"hidden_size": 4, "direction": "bidirectional", "layout": layout}
    for given in ([], [numbers(states, seed=each) for each in range(count)]):
        every = inputs if not given else [*inputs, None, None, *given]
        model = one_node(operator, every, outputs=1 + count, opset=21, **options)
        sequence, *found = computed(model, feed(every))
        assert sequence.shape == ((batch, 0, 2, 4) if layout else (0, 2, batch, 4))
        assert_same(found, given or [np.zeros(states, np.float32)] * count)


@pytest.mark.parametrize(
    ("sizes", "filter_sizes", "wanted"),
    [
        ([0, 4, 4, 2], [4, 3, 3, 1], (0, 6, 4, 2)),
        ([1, 4, 4, 0], [4, 3, 3, 1], (1, 6, 4, 0)),
        ([1, 4, 4, 2], [4, 0, 3, 1], (1, 0, 4, 2)),
    ],
)
def test_transposed_convolutions_of_no_elements_have_the_sizes_of_others(
    sizes: list[int], filter_sizes: list[int], wanted: tuple[int, ...]
) -> None:
    inputs = [np.zeros(sizes, np.float32), np.ones(filter_sizes, np.float32)]
    model = one_node("ConvTranspose", inputs, opset=21, pads=[1, 0, 1, 0], group=2)
    (result,) = computed(model, feed(inputs))
    assert (result.shape, result.dtype) == (wanted, np.float32)


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
def test_windows_shorter_than_their_stride_are_not_padded(side: str, size: int, wanted: list[int]) -> None:
    x = np.arange(1, size + 1, dtype=np.float32).reshape(1, 1, size)
    options = {"strides": [2], "auto_pad": f"SAME_{side}"}
    pooled = computed(one_node("MaxPool", [x], kernel_shape=[1], **options), feed([x]))[0]
    weight = np.ones((1, 1, 1), np.float32)
    convolved = computed(one_node("Conv", [x, weight], **options), feed([x, weight]))[0]
    assert pooled.reshape(-1).tolist() == convolved.reshape(-1).tolist() == wanted


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
    check_node("BatchNormalization", [numbers([2, 4, 3], np.float16), *_statistics(4)], 4e-3, 4e-3)


def test_layer_normalization_of_float16_has_statistics_in_float32() -> None:
    inputs: list[Array | None] = [numbers([3, 8], np.float16), numbers([8], np.float16, 1)]
    model = one_node("LayerNormalization", inputs, opset=17, outputs=3)
    assert_as_onnxruntime(model, feed(inputs), 4e-3, 4e-3)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("sizes", [[2, 6], [2, 6, 4, 3]])
def test_group_normalization_scales_groups_and_later_channels(opset: int, sizes: list[int]) -> None:
    count = 3 if opset == 18 else 6
    inputs: list[Array | None] = [numbers(sizes), numbers([count], seed=1), numbers([count], seed=2)]
    check_node("GroupNormalization", inputs, 1e-4, 1e-4, opset=opset, num_groups=3)


@pytest.mark.parametrize("place", ["graph", "branch", "function"])
@pytest.mark.parametrize(
    "operator", ["GroupNormalization <num_groups = 2> (x, s, s)", "MeanVarianceNormalization (x)"]
)
def test_other_nodes_read_normalizations_without_inferred_types(operator: str, place: str) -> None:
    nodes = f"n = {operator}  y = Relu (n)"
    bodies = {
        "graph": nodes,
        "branch": f"y = If (c) <then_branch = a () => (float[b, 4, h, w] y) {{ {nodes} }},"
        " else_branch = d () => (float[b, 4, h, w] y) { y = Relu (x) }>",
        "function": "y = local.normalized (x, s)",
    }
    function = f'<domain: "local", opset_import: ["" : 21]> normalized (x, s) => (y) {{ {nodes} }}'

    def parsed(place: str) -> onnx.ModelProto:
        return onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
            "g (float[b, 4, h, w] x, float[4] s, bool c) => (float[b, 4, h, w] y)"
            f"{{ {bodies[place]} }} {function if place == 'function' else ''}"
        )

    model = dml.onnx.load(parsed(place))
    for sizes in ([2, 4, 3, 5], [1, 4, 6, 6]):
        given = {"x": numbers(sizes), "s": numbers([4]), "c": np.array(True)}
        # ONNX Runtime refuses such functions too.
        wanted = run_by_onnxruntime(parsed("graph"), given)
        assert_same(list(model.run(given).values()), wanted, 1e-4, 1e-4)


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
    check_node("MeanVarianceNormalization", [array], 1e-4, 1e-4, **({} if axes is None else {"axes": axes}))


def _four() -> list[Array | None]:
    """Four heads of three queries, two of five keys and values."""
    return [numbers([2, 4, 3, 6]), numbers([2, 2, 5, 6]), numbers([2, 2, 5, 7])]


@pytest.mark.parametrize(("left", "right"), [(1, -1), (-1, 1), (1, 0)])
def test_windows_bound_what_is_seen(left: int, right: int) -> None:
    check_node("Attention", _four(), 1e-4, opset=25, left_window_size=left, right_window_size=right)


@pytest.mark.parametrize("case", ["plain", "causal", "shared", "causal and shared", "masked", "longer"])
def test_attention_of_float16_is_one_warpgroup_product(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = 2 if "shared" in case else 4
    keys = 56 if case == "longer" else 40
    sizes = ([2, 4, 40, 64], [2, shared, keys, 64], [2, shared, keys, 64])
    inputs: list[Array | None] = [numbers(each).astype(np.float16) for each in sizes]
    if case == "masked":
        inputs.append(numbers([40, 40]).astype(np.float16))
    options = {"is_causal": 1} if "causal" in case else {}
    model = one_node("Attention", inputs, outputs=1, opset=24, **options)
    with planned_modes(monkeypatch) as modes:
        found = computed(model, feed(inputs))
    assert [mode for mode in modes if mode != "reduce"] == ["wgmma_chain"]
    # The evaluator rounds scores and weights to FLOAT16.
    for result, expected in zip(found, evaluated(model, feed(inputs)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)


_COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]


def _inputs(array: Array, scales: list[float] | None, sizes: list[int] | None = None) -> list[Array | None]:
    factors = None if scales is None else np.array(scales, np.float32)
    return [array, None, factors, *([np.array(sizes, np.int64)] if sizes is not None else [])]


def _check_resize(
    inputs: list[Array | None], operator: str = "Resize", atol: float = 1e-5, **options: Any
) -> None:
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
        _check_resize(inputs, mode=mode, **options)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("type", [np.float32, np.uint8, np.int64, np.float16])
def test_nearest_elements_of_all_types_are_copied(nearest: str, type: Any) -> None:
    inputs = _inputs(numbers([1, 2, 4, 6], type), None, [1, 2, 8, 3])
    _check_resize(inputs, mode="nearest", nearest_mode=nearest)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_bytes_are_rounded_and_kept_within_their_limits(mode: str) -> None:
    inputs = _inputs(numbers([1, 1, 6, 7], np.uint8), [1.0, 1.0, 1.7, 2.3])
    _check_resize(inputs, mode=mode, atol=1)  # halves are rounded by the last bit of float32


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
        _check_resize([numbers([1, 2, 4, 5])], "Upsample", mode=mode, scales=scales, opset=opset)
    else:
        _check_resize(
            [numbers([1, 2, 4, 5]), np.array(scales, np.float32)], "Upsample", mode=mode, opset=opset
        )


@pytest.mark.parametrize("scales", [[1.0, 1.0, 2.0, 1.5], [1.0, 1.0, 0.6, 0.75]])
def test_resize_10_rounds_up_where_it_shrinks(scales: list[float]) -> None:
    _check_resize([numbers([1, 2, 5, 8]), np.array(scales, np.float32)], opset=10)


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
def test_beside_an_element_it_is_that(rounding: str, coordinates: str, length: int, output: int) -> None:
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


RANDOM = np.random.default_rng(3)
BOXES = RANDOM.uniform(0, 1, (2, 40, 4)).astype(np.float32)
SCORES = RANDOM.uniform(0, 1, (2, 3, 40)).round(1).astype(np.float32)  # some of which are equal


def _inputs_suppression(
    most: int | None = 6, overlap: float | None = 0.3, least: float | None = 0.4
) -> list[Any]:
    limits = (most, np.int64), (overlap, np.float32), (least, np.float32)
    return [BOXES, SCORES, *(None if each is None else np.array([each], type) for each, type in limits)]


def test_boxes_without_an_area_and_none_at_all() -> None:
    boxes = np.array([[[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]]], np.float32)
    given: list[Array | None] = [boxes, np.array([[[4, 3, 2, 1]]], np.float32), np.array([9])]
    model = one_node("NonMaxSuppression", given, opset=11)
    assert computed(model, feed(given))[0][:, 2].tolist() == [0, 1, 2]
    assert computed(model, {**feed(given), "x2": np.array([0])})[0].shape == (0, 3)
    given = given[:2]
    model = one_node("NonMaxSuppression", given, opset=11)
    assert computed(model, feed(given))[0].shape == (0, 3)  # as many as nothing says: none


def test_other_sizes_are_named() -> None:
    given = [BOXES[:, :39], SCORES, np.array([3])]
    with pytest.raises(InvalidArgument, match=r"boxes \[2, 39, 4\] and scores \[2, 3, 40\]; must"):
        computed(one_node("NonMaxSuppression", given, opset=11), feed(given))
    several = [BOXES, SCORES, np.array([3, 4])]
    with pytest.raises(InvalidArgument, match="each is one number"):
        computed(one_node("NonMaxSuppression", several, opset=11), feed(several))


def test_a_check_says_that_the_host_runs_it() -> None:
    found = check(one_node("NonMaxSuppression", _inputs_suppression(), opset=11))
    assert (found.unsupported, found.evaluated) == ((), ())
    assert found.unknown[0].reason.startswith("runs on the host")


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft_cuts_or_pads_to_its_length(parts: int, axis: int, length: int | None, inverse: int) -> None:
    counts = None if length is None else np.array(length, np.int64)
    inputs: list[Array | None] = [numbers([3, 6, 7, parts]), counts, np.array(axis, np.int64)]
    known = [number for number in (1, 2) if inputs[number] is not None]
    check_node("DFT", inputs, known=known, inverse=inverse)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("windowed", [False, True])
def test_stft_transforms_frames(parts: int, windowed: bool) -> None:
    window = np.abs(numbers([8])) if windowed else None
    inputs: list[Array | None] = [
        numbers([2, 29, parts]),
        np.array(3, np.int64),
        window,
        np.array(8, np.int64),
    ]
    check_node("STFT", inputs, known=[1, 3], onesided=int(parts == 1))


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


_BLOCK = """
<ir_version: 10, opset_import: ["" : 22]>
block (bfloat16[batch, 5, 16] x, bfloat16[16, 48] w, bfloat16[16] scale, bfloat16[16, 16] last)
    => (bfloat16[batch, 5, 16] y, float[batch, 5, 16] wide)
{
    normal = LayerNormalization<axis = -1>(x, scale)
    all = MatMul(normal, w)
    q, k, v = Split<axis = -1, num_outputs = 3>(all)
    keys = Transpose<perm = [0, 2, 1]>(k)
    scores = MatMul(q, keys)
    weights = Softmax<axis = -1>(scores)
    read = MatMul(weights, v)
    active = Gelu(read)
    out = MatMul(active, last)
    y = Add(x, out)
    wide = Cast<to = 1>(y)
}
"""


def test_a_network_of_bfloat16_is_one_graph_whose_nodes_round_once() -> None:
    given = [numbers(sizes) / 4 for sizes in ((2, 5, 16), (16, 48), (16,), (16, 16))]
    names = ["x", "w", "scale", "last"]
    narrow = {name: each.astype(ml_dtypes.bfloat16) for name, each in zip(names, given, strict=True)}
    model = onnx.parser.parse_model(_BLOCK)
    y, wide = computed(model, narrow)
    assert (y.dtype, wide.dtype) == (ml_dtypes.bfloat16, np.float32)
    np.testing.assert_array_equal(y.astype(np.float32), wide)
    exact = onnx.parser.parse_model(_BLOCK.replace("bfloat16[", "float["))
    expected, _ = computed(exact, {name: each.astype(np.float32) for name, each in narrow.items()})
    np.testing.assert_allclose(wide, expected, atol=2.0**-6 * np.abs(expected).max())
