"""Each operator of `directml` against NumPy, or against opendml's own function of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import directml

Build = Callable[..., Any]


def computed(build: Build, *arrays: Any) -> list[Any]:
    """What a graph gives for arrays, on the CPU."""
    graph = directml.Graph(directml.Device(use_gpu=False))
    inputs = [graph.input(each.shape, each.dtype) for each in arrays]
    built = build(*inputs)
    outputs = [each for each in built if each is not None] if isinstance(built, list | tuple) else [built]
    results = graph.compile(outputs)(dict(zip(inputs, arrays, strict=True)))
    for expression, result in zip(outputs, results, strict=True):
        assert (result.shape, result.dtype) == (expression.shape, expression.dtype)
    return results


def one(build: Build, *arrays: Any) -> Any:
    (result,) = computed(build, *arrays)
    return result


def random(*sizes: int) -> Any:
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32)


X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(1, 1, 3, 4)
UNIT = X / 2.5
POSITIVE = X + 2.25
IMAGE = random(2, 4, 6, 5)
BITS = np.array([[1, 6], [255, 4096]], np.uint32)

SCALED: dict[str, tuple[Any, Any]] = {
    "identity": (lambda x: x, X),
    "abs": (np.abs, X),
    "acos": (np.arccos, UNIT),
    "asin": (np.arcsin, UNIT),
    "atan": (np.arctan, X),
    "ceil": (np.ceil, X),
    "cos": (np.cos, X),
    "exp": (np.exp, X),
    "floor": (np.floor, X),
    "log": (np.log, POSITIVE),
    "recip": (np.reciprocal, POSITIVE),
    "sin": (np.sin, X),
    "sqrt": (np.sqrt, POSITIVE),
    "tan": (np.tan, UNIT),
    "erf": (np.vectorize(math.erf), X),
    "sinh": (np.sinh, X),
    "cosh": (np.cosh, X),
    "tanh": (np.tanh, X),
    "asinh": (np.arcsinh, X),
    "acosh": (np.arccosh, POSITIVE + 1),
    "atanh": (np.arctanh, UNIT),
}
BINARY: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "mean": lambda a, b: (a + b) / 2,
    "difference_square": lambda a, b: (a - b) ** 2,
    "atan_yx": np.arctan2,
    "modulus_truncate": np.fmod,
    "modulus_floor": np.mod,
}
BITWISE: dict[str, Any] = {
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_shift_left": np.left_shift,
    "bit_shift_right": np.right_shift,
}
COMPARISONS: dict[str, Any] = {
    "equals": np.equal,
    "greater_than": np.greater,
    "greater_than_or_equal": np.greater_equal,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
}
ACTIVATIONS: dict[str, dict[str, float]] = {
    "relu": {},
    "sigmoid": {},
    "identity": {},
    "tanh": {},
    "gelu": {},
    "softsign": {},
    "linear": {"alpha": 2.0, "beta": 0.5},
    "elu": {"alpha": 2.0},
    "celu": {"alpha": 2.0},
    "hard_sigmoid": {"alpha": 0.3, "beta": 0.4},
    "leaky_relu": {"alpha": 0.1},
    "parametric_softplus": {"alpha": 2.0, "beta": 0.5},
    "scaled_elu": {"alpha": 1.5, "gamma": 2.0},
    "scaled_tanh": {"alpha": 2.0, "beta": 0.5},
    "shrink": {"bias": 0.5, "threshold": 1.0},
    "softplus": {"steepness": 2.0},
    "thresholded_relu": {"alpha": 1.0},
}


def test_functions_of_one_tensor() -> None:
    """All in one graph, with a scale and a bias of the input as well."""
    for name, (exact, x) in SCALED.items():
        build = getattr(directml, name)
        plain, scaled = computed(lambda x, build=build: [build(x), build(x, scale_bias=(0.5, 0.25))], x)
        np.testing.assert_allclose(plain, exact(x), rtol=1e-5, atol=1e-6, err_msg=name)
        if name != "acosh":
            np.testing.assert_allclose(scaled, exact(x * 0.5 + 0.25), rtol=1e-5, atol=1e-6, err_msg=name)


def test_signs_and_negations() -> None:
    truths = np.array([0, 1, 2, 0], np.uint8)
    results = computed(
        lambda x, t, b: [
            directml.sign(x),
            directml.negate(x),
            directml.logical_not(t),
            directml.bit_not(b),
            directml.bit_count(b),
            directml.bit_count(b, output_dtype=np.uint32),
        ],
        X,
        truths,
        BITS,
    )
    counts = np.bitwise_count(BITS)
    for result, exact in zip(results, [np.sign(X), -X, truths == 0, ~BITS, counts, counts], strict=True):
        np.testing.assert_array_equal(result, exact)
    assert [each.dtype.name for each in results[-2:]] == ["uint8", "uint32"]


def test_functions_of_two_tensors() -> None:
    a, b = random(2, 3, 4), random(2, 3, 4) + 3
    results = computed(lambda a, b: [getattr(directml, name)(a, b) for name in BINARY], a, b)
    for (name, exact), result in zip(BINARY.items(), results, strict=True):
        np.testing.assert_allclose(result, exact(a, b), rtol=1e-5, atol=1e-6, err_msg=name)
    other = np.array([[3, 2], [7, 1]], np.uint32)
    results = computed(lambda a, b: [getattr(directml, name)(a, b) for name in BITWISE], BITS, other)
    for (name, exact), result in zip(BITWISE.items(), results, strict=True):
        np.testing.assert_array_equal(result, exact(BITS, other), name)


def test_logic_and_comparisons() -> None:
    a: Any
    b: Any
    a, b = np.array([0, 0, 1, 2], np.uint8), np.array([0, 3, 0, 4], np.uint8)
    names = ("logical_and", "logical_or", "logical_xor")
    results = computed(lambda a, b: [getattr(directml, name)(a, b) for name in names], a, b)
    for name, result in zip(names, results, strict=True):
        np.testing.assert_array_equal(result, getattr(np, name)(a, b), name)
    a, b = np.array([1, 2, 3, 4], np.float32), np.array([4, 2, 2, 1], np.float32)
    for dtype in (np.uint8, np.uint32):
        results = computed(
            lambda a, b, dtype=dtype: [
                getattr(directml, name)(a, b, output_dtype=dtype) for name in COMPARISONS
            ],
            a,
            b,
        )
        for (name, exact), result in zip(COMPARISONS.items(), results, strict=True):
            np.testing.assert_array_equal(result, exact(a, b), name)
            assert result.dtype == dtype


def test_element_wise_operators_with_parameters() -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    signs, modes = directml.IsInfinityMode, directml.RoundingMode
    halves = np.float32([0.5, 1.5, -1.5, 2.4])
    results = computed(
        lambda x, o, h: [
            directml.clip(x, min=-1, max=0.5),
            directml.clip(x, min=-1, max=0.5, scale_bias=(2.0, 1.0)),
            directml.threshold(x, min=0.25),
            directml.is_nan(o),
            directml.is_infinity(o),
            directml.is_infinity(o, infinity_mode=signs.NEGATIVE),
            directml.round(h),
            directml.round(h, rounding_mode=modes.TOWARD_ZERO),
            directml.round(h, rounding_mode=modes.TOWARD_INFINITY),
            directml.cast(h, dtype=np.int32),
            directml.cast(h, dtype=directml.TensorDataType.FLOAT16),
            directml.pow(h, 3.0),
            directml.pow(directml.abs(h), h, scale_bias=(2.0, 1.0)),
        ],
        X,
        odd,
        halves,
    )
    exact = [
        np.clip(X, -1, 0.5),
        np.clip(2 * X + 1, -1, 0.5),
        np.maximum(X, 0.25),
        [1, 0, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 0],
        [0, 2, -2, 2],
        [0, 1, -1, 2],
        [1, 2, -2, 2],
        [0, 1, -1, 2],
        halves,
        halves**3,
        (2 * np.abs(halves) + 1) ** halves,
    ]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-3)
    assert [each.dtype.name for each in results[9:11]] == ["int32", "float16"]


def test_where_takes_what_a_condition_says() -> None:
    condition = np.array([1, 0, 2, 0], np.uint8)
    a, b = np.float32([1, 2, 3, 4]), np.float32([5, 6, 7, 8])
    assert one(directml.where, condition, a, b).tolist() == [1, 6, 3, 8]


def test_expressions_take_operators() -> None:
    a, b = POSITIVE, random(1, 1, 3, 4) + 4
    results = computed(
        lambda x, y: [x + y, x - y, x * y, x / y, x % y, -x, x + 1, 2.5 - x, 2 * x, 3 / x, x / 4, x - 1], a, b
    )
    exact = [a + b, a - b, a * b, a / b, a % b, -a, a + 1, 2.5 - a, 2 * a, 3 / a, a / 4, a - 1]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-5, atol=1e-6)


def test_an_expression_in_place_is_a_new_one() -> None:
    graph = directml.Graph(directml.Device(use_gpu=False))
    x = alias = graph.input([2])
    x += 1.0
    assert x is not alias
    assert graph.compile([x])({alias: np.zeros(2)})[0].tolist() == [1, 1]
    assert not hasattr(directml.Expression, "__iadd__")


def test_activations() -> None:
    names = list(ACTIVATIONS)
    results = computed(
        lambda x: [getattr(directml, f"activation_{name}")(x, **ACTIVATIONS[name]) for name in names], X
    )
    for name, result in zip(names, results, strict=True):
        exact = getattr(dml, f"activation_{name}")(X, **ACTIVATIONS[name])
        np.testing.assert_array_equal(result, exact, name)


def test_activations_of_rows_and_with_slopes() -> None:
    row, slope = np.float32([[[[1, 3, 2, 0.5]]]]), np.float32([[[[0.1, 0.2, 0.3, 0.4]]]])
    results = computed(
        lambda x, s: [
            directml.activation_hardmax(x),
            directml.activation_log_softmax(x),
            directml.activation_softmax(x, axes=[3]),
            directml.activation_parameterized_relu(x - 2.0, s),
        ],
        row,
        slope,
    )
    powers = np.exp(row)
    shifted = row - 2
    exact = [
        [[[[0, 1, 0, 0]]]],
        np.log(powers / powers.sum()),
        powers / powers.sum(),
        np.where(shifted > 0, shifted, slope * shifted),
    ]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-5, atol=1e-6)


def test_fused_activations_follow_what_an_operator_computes() -> None:
    a, b, fused = random(1, 1, 3, 4), random(1, 1, 3, 4), directml.FusedActivation
    results = computed(
        lambda x, y: [
            directml.add(x, y, fused_activation=fused.relu()),
            directml.add(x, y, fused_activation=fused.none()),
            directml.gemm(
                x, y, trans_b=directml.MatrixTransform.TRANSPOSE, fused_activation=fused.leaky_relu(0.5)
            ),
        ],
        a,
        b,
    )
    product = a @ b.swapaxes(2, 3)
    for result, each in zip(
        results, [np.maximum(a + b, 0), a + b, np.where(product > 0, product, product / 2)], strict=True
    ):
        np.testing.assert_allclose(result, each, rtol=1e-5, atol=1e-6)


def test_gemm_is_alpha_times_a_product_plus_beta_times_c() -> None:
    a, b, c = random(1, 1, 3, 4), random(1, 1, 5, 4), random(1, 1, 3, 5)
    transposed = directml.MatrixTransform.TRANSPOSE
    result = one(lambda *t: directml.gemm(*t, trans_b=transposed, alpha=0.5, beta=2.0), a, b, c)
    np.testing.assert_allclose(result, 0.5 * a @ b.swapaxes(2, 3) + 2 * c, rtol=1e-5, atol=1e-6)


def test_convolutions_forward_and_backward() -> None:
    filter, bias, small = random(3, 4, 3, 3), random(1, 3, 1, 1), random(2, 3, 2, 2)
    options: Any = {"strides": [2, 1], "start_padding": [1, 0], "end_padding": [0, 2]}
    result = one(lambda *t: directml.convolution(*t, **options), IMAGE, filter, bias)
    np.testing.assert_array_equal(result, dml.convolution(IMAGE, filter, bias, **options))
    backward = directml.ConvolutionDirection.BACKWARD
    result = one(lambda *t: directml.convolution(*t, direction=backward, strides=[2, 2]), small, filter)
    np.testing.assert_array_equal(
        result, dml.convolution(small, filter, direction="BACKWARD", strides=[2, 2])
    )


def test_pooling() -> None:
    options: Any = {"strides": [2, 2], "start_padding": [1, 0], "end_padding": [0, 1]}
    results = computed(
        lambda x: [
            directml.average_pooling(x, window_sizes=[3, 2], include_padding=True, **options),
            directml.average_pooling(x, strides=[2, 2], window_sizes=[2, 2]),
            *directml.max_pooling(x, window_sizes=[3, 2], output_indices=True, **options),
        ],
        IMAGE,
    )
    average = dml.average_pooling1(IMAGE, window_size=[3, 2], include_padding=True, **options)
    maxima = dml.max_pooling2(IMAGE, window_size=[3, 2], output_indices=True, **options)
    np.testing.assert_array_equal(results[0], average)
    np.testing.assert_allclose(
        results[1], IMAGE[..., :4].reshape(2, 4, 3, 2, 2, 2).mean((3, 5)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(results[2], maxima.output)
    np.testing.assert_array_equal(results[3], maxima.output_indices)
    assert computed(lambda x: directml.max_pooling(x, window_sizes=[2, 2]), IMAGE)[0].shape == (2, 4, 5, 4)


def test_normalizations() -> None:
    scale, bias, mean, variance = (np.abs(random(1, 4, 1, 1)) + each for each in range(1, 5))
    results = computed(
        lambda x, s, b, m, v: [
            directml.mean_variance_normalization(x, s, b, axes=[2, 3]),
            directml.mean_variance_normalization(x, axes=[2, 3], normalize_mean=False, epsilon=1e-3),
            directml.batch_normalization(x, m, v, s, b),
            directml.local_response_normalization(
                x, cross_channel=True, local_size=3, alpha=0.5, beta=0.75, bias=1.0
            ),
            directml.value_scale_2d(
                directml.slice(
                    x,
                    input_window_offsets=[0] * 4,
                    input_window_sizes=[2, 3, 6, 5],
                    input_window_strides=[1] * 4,
                ),
                scale=2.0,
                bias=[1.0, 2.0, 3.0],
            ),
        ],
        IMAGE,
        scale,
        bias,
        mean,
        variance,
    )
    average = IMAGE.mean((2, 3), keepdims=True)
    centred = (IMAGE - average) / np.sqrt(IMAGE.var((2, 3), keepdims=True) + 1e-5)
    exact = [
        scale * centred + bias,
        dml.mean_variance_normalization2(IMAGE, axes=[2, 3], use_mean=False, use_variance=True, epsilon=1e-3),
        scale * (IMAGE - mean) / np.sqrt(variance + 1e-5) + bias,
        dml.local_response_normalization(
            IMAGE, cross_channel=True, local_size=3, alpha=0.5, beta=0.75, bias=1.0
        ),
        2 * IMAGE[:, :3] + np.float32([1, 2, 3]).reshape(1, 3, 1, 1),
    ]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-4, atol=1e-5)


def test_attention_is_a_softmax_between_two_products_for_each_head() -> None:
    query, key, value = random(2, 1, 3, 8), random(2, 1, 5, 8), random(2, 1, 5, 12)
    result = one(lambda *t: directml.multihead_attention(*t, head_count=2, scale=0.5), query, key, value)

    def heads(tensor: Any) -> Any:
        return tensor.reshape(2, tensor.shape[2], 2, -1).transpose(0, 2, 1, 3)

    scores = np.exp(0.5 * heads(query) @ heads(key).swapaxes(2, 3))
    attended = scores / scores.sum(-1, keepdims=True) @ heads(value)
    exact = attended.transpose(0, 2, 1, 3).reshape(2, 1, 3, 12)
    np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-6)
    result = one(
        lambda q, k, v: directml.multihead_attention(q, k, v, head_count=2, scale=0.5),
        *(each[:, 0] for each in (query, key, value)),
    )
    np.testing.assert_allclose(result, exact[:, 0], rtol=1e-4, atol=1e-6)


def test_attention_reads_tensors_through_their_strides() -> None:
    packed, turned = random(2, 1, 3, 4), random(2, 1, 4, 3)

    def build(x: Any, y: Any) -> Any:
        view = directml.reinterpret(y, [2, 1, 3, 4], [12, 12, 1, 3])
        return [
            directml.multihead_attention(view, x, view, head_count=1, scale=0.5),
            directml.multihead_attention(
                directml.activation_identity(view), x, directml.identity(view), head_count=1, scale=0.5
            ),
        ]

    strided, copied = computed(build, packed, turned)
    np.testing.assert_allclose(strided, copied, rtol=1e-6)


@pytest.mark.parametrize("option", ["Both", "Sequence", "Single"])
def test_gru_gives_the_states_asked_for(option: str) -> None:
    tensors = random(1, 3, 2, 4), random(1, 1, 15, 4), random(1, 1, 15, 5)
    fused = directml.FusedActivation
    given: list[Any] = []

    def build(*inputs: Any) -> Any:
        options = directml.GRUOutputOptions[option]
        activations = [fused.sigmoid(), fused.tanh()]
        given.append(directml.gru(*inputs, activation_descs=activations, output_options=options))
        return given[0]

    results = computed(build, *tensors)
    exact = dml.gru(
        *tensors,
        activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
        direction="FORWARD",
        linear_before_reset=True,
        output_sequence=True,
        output_single=True,
    )
    asked = [option in ("Both", name) for name in ("Sequence", "Single")]
    assert [each is not None for each in given[0]] == asked
    for result, each in zip(results, [e for e, a in zip(exact, asked, strict=True) if a], strict=True):
        np.testing.assert_array_equal(result, each)


def test_windows_padding_joins_splits_and_tiles() -> None:
    modes = directml.PaddingMode
    results = computed(
        lambda x: [
            directml.slice(
                x,
                input_window_offsets=[0, 1, 0, 1],
                input_window_sizes=[2, 2, 6, 4],
                input_window_strides=[1, 1, 2, -3],
            ),
            directml.padding(x, start_padding=[0, 0, 1, 2], end_padding=[0, 0, 0, 1]),
            directml.padding(
                x, padding_mode=modes.EDGE, start_padding=[0, 0, 1, 2], end_padding=[0, 0, 0, 1]
            ),
            directml.join([x, -x], axis=1),
            directml.tile(x, repeats=[1, 2, 1, 3]),
            *directml.split(x, axis=1, output_axis_sizes=[1, 3]),
        ],
        IMAGE,
    )
    margins = ((0, 0), (0, 0), (1, 0), (2, 1))
    exact = [
        IMAGE[:, 1:3, ::2, 4:0:-3],
        np.pad(IMAGE, margins),
        np.pad(IMAGE, margins, "edge"),
        np.concatenate([IMAGE, -IMAGE], 1),
        np.tile(IMAGE, (1, 2, 1, 3)),
        IMAGE[:, :1],
        IMAGE[:, 1:],
    ]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_array_equal(result, each)


def test_images_in_other_sizes() -> None:
    modes, down = directml.InterpolationMode, directml.AxisDirection.DECREASING
    x = random(1, 2, 3, 4)
    results = computed(
        lambda x: [
            directml.upsample_2d(x, scale_size=(3, 2), interpolation_mode=modes.NEAREST_NEIGHBOR),
            directml.resample(
                x,
                output_sizes=[1, 2, 6, 8],
                mode=modes.NEAREST_NEIGHBOR,
                rounding_direction=down,
                input_pixel_offsets=[0.0] * 4,
                output_pixel_offsets=[0.0] * 4,
            ),
            directml.resample(x, output_sizes=[1, 2, 5, 7], mode=modes.LINEAR),
            directml.resample(x, output_sizes=[1, 2, 2, 2], mode=modes.LINEAR, antialiased=True),
        ],
        x,
    )
    twice = np.repeat(np.repeat(x, 2, 2), 2, 3)
    np.testing.assert_array_equal(results[0], np.repeat(np.repeat(x, 2, 2), 3, 3))
    np.testing.assert_array_equal(results[1], twice)
    options: Any = {"interpolation_mode": "LINEAR", "rounding_direction": "INCREASING"}
    for result, sizes, antialiased in ((results[2], [5, 7], False), (results[3], [2, 2], True)):
        scales = [1, 1, sizes[0] / 3, sizes[1] / 4]
        exact = dml.resample3(x, scales=scales, sizes=[1, 2, *sizes], antialiased=antialiased, **options)
        np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("order", ["DEPTH_COLUMN_ROW", "COLUMN_ROW_DEPTH"])
def test_blocks_of_an_image_are_channels_and_back(order: str) -> None:
    x, orders = random(1, 2, 4, 6), directml.DepthSpaceOrder
    blocks, image = computed(
        lambda x: [
            directml.space_to_depth(x, block_size=2, order=orders[order]),
            directml.depth_to_space(
                directml.space_to_depth(x, block_size=2, order=orders[order]),
                block_size=2,
                order=orders[order],
            ),
        ],
        x,
    )
    np.testing.assert_array_equal(blocks, dml.space_to_depth1(x, block_size=2, order=order))
    np.testing.assert_array_equal(image, x)


def test_gathers_scatters_and_searches() -> None:
    a = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    columns = np.array([[[[3, 0], [1, 1], [2, 2]]]], np.uint32)
    places = np.array([[[[0, 1], [2, 3]]]], np.uint32)
    lengths = np.array([[[[2], [4], [1]]]], np.uint32)
    updates, marks = np.full((1, 1, 3, 2), -1, np.float32), np.float32([[[[50, 60]]]])
    results = computed(
        lambda x, c, p, u, m, n: [
            directml.gather(x, p, axis=3, index_dimensions=2),
            directml.gather_elements(x, c, axis=3),
            directml.gather_nd(x, p, input_dimension_count=2, indices_dimension_count=2),
            directml.scatter_elements(x, c, u, axis=3),
            directml.scatter_nd(x, p, m, input_dimension_count=2, indices_dimension_count=2),
            directml.reverse_subsequences(x, n, axis=3),
            *directml.top_k(x, axis=3, k=2),
            directml.top_k(x, axis=2, k=1, axis_direction=directml.AxisDirection.INCREASING).values,
            *directml.non_zero_coordinates(x),
        ],
        a,
        columns,
        places,
        updates,
        marks,
        lengths,
    )
    scattered, marked, reversed_rows = a.copy(), a.copy(), a.copy()
    np.put_along_axis(scattered, columns.astype(np.int64), updates, 3)
    marked[0, 0, [0, 2], [1, 3]] = [50, 60]
    for row, length in enumerate((2, 4, 1)):
        reversed_rows[0, 0, row, :length] = a[0, 0, row, :length][::-1]
    np.testing.assert_array_equal(results[0], dml.gather(a, places, axis=3, index_dimensions=2))
    np.testing.assert_array_equal(results[1], np.take_along_axis(a, columns.astype(np.int64), 3))
    assert results[2].ravel().tolist() == [1, 11]
    np.testing.assert_array_equal(results[3], scattered)
    np.testing.assert_array_equal(results[4], marked)
    np.testing.assert_array_equal(results[5], reversed_rows)
    assert results[6].tolist() == [[[[3, 2], [7, 6], [11, 10]]]]
    assert results[7].tolist() == [[[[3, 2]] * 3]]
    assert results[8].ravel().tolist() == [0, 1, 2, 3]
    assert results[9].ravel()[0] == 11
    np.testing.assert_array_equal(results[10][:11, 2:], np.argwhere(a[0, 0]))


def test_one_hot_sets_a_value_at_each_index() -> None:
    indices, values = np.array([[[[0], [2]]]], np.uint32), np.float32([[[[0, 1]]]])
    result = one(lambda i, v: directml.one_hot(i, v, output_length=4, axis=3), indices, values)
    np.testing.assert_array_equal(result[0, 0], np.eye(4)[[0, 2]])
    with pytest.raises(ValueError, match=r"one_hot\.axis: 4; the indices have 4"):
        one(lambda i, v: directml.one_hot(i, v, output_length=4, axis=4), indices, values)


REDUCTIONS: dict[str, Any] = {
    "SUM": lambda x: x.sum(3),
    "AVERAGE": lambda x: x.mean(3),
    "MAX": lambda x: x.max(3),
    "MIN": lambda x: x.min(3),
    "MULTIPLY": lambda x: x.prod(3),
    "SUM_SQUARE": lambda x: (x * x).sum(3),
    "L1": lambda x: np.abs(x).sum(3),
    "L2": lambda x: np.sqrt((x * x).sum(3)),
    "LOG_SUM": lambda x: np.log(x.sum(3)),
    "LOG_SUM_EXP": lambda x: np.log(np.exp(x).sum(3)),
    "ARGMAX": lambda x: x.argmax(3),
    "ARGMIN": lambda x: x.argmin(3),
}


def test_reductions_and_running_sums() -> None:
    functions, down = directml.ReduceFunction, directml.AxisDirection.DECREASING
    results = computed(
        lambda x: [
            *(
                directml.reduce(
                    x, function=functions[name], axes=[3], output_dtype=np.int32 if "ARG" in name else None
                )
                for name in REDUCTIONS
            ),
            directml.reduce(x, function=functions.SUM),
            directml.cumulative_summation(x, axis=3),
            directml.cumulative_summation(x, axis=3, axis_direction=down, has_exclusive_sum=True),
            directml.cumulative_product(x, axis=2),
            directml.cumulative_product(x, axis=3, has_exclusive_product=True),
        ],
        POSITIVE,
    )
    for (name, exact), result in zip(REDUCTIONS.items(), results, strict=False):
        np.testing.assert_allclose(result[..., 0], exact(POSITIVE), rtol=1e-5, err_msg=name)
    assert results[len(REDUCTIONS) - 1].dtype == np.int32
    x, rest = POSITIVE.astype(np.float64), results[len(REDUCTIONS) :]
    behind = x[..., ::-1].cumsum(3)[..., ::-1] - x
    before = np.concatenate([np.ones_like(x[..., :1]), x[..., :-1].cumprod(3)], 3)
    exact_rest = [x.sum(keepdims=True), x.cumsum(3), behind, x.cumprod(2), before]
    for result, each in zip(rest, exact_rest, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-5, atol=1e-5)


def test_fills_need_no_inputs() -> None:
    graph = directml.Graph(directml.Device(use_gpu=False))
    filled = [
        directml.fill_value_constant(graph, sizes=[2, 2], value=2.5),
        directml.fill_value_constant(graph, sizes=[3], value=-3, dtype=np.int32),
        directml.fill_value_sequence(graph, sizes=[2, 3], value_start=1.0, value_delta=0.5),
        directml.fill_value_sequence(
            graph, sizes=[3], value_start=7, value_delta=-2, dtype=directml.TensorDataType.INT64
        ),
    ]
    results = graph.compile(filled)()
    assert [each.tolist() for each in results] == [
        [[2.5, 2.5], [2.5, 2.5]],
        [-3, -3, -3],
        [[1, 1.5, 2], [2.5, 3, 3.5]],
        [7, 5, 3],
    ]
    assert [each.dtype.name for each in results] == ["float32", "int32", "float32", "int64"]
    with pytest.raises(ValueError, match="value=300: no uint8"):
        directml.fill_value_constant(graph, sizes=[1], value=300, dtype=np.uint8)
    with pytest.raises(TypeError, match="graph: Device; a Graph is needed"):
        directml.fill_value_constant(directml.Device(use_gpu=False), sizes=[1], value=1)


def test_random_bits_follow_from_their_state() -> None:
    state = np.arange(6, dtype=np.uint32).reshape(1, 1, 1, 6)
    values, after = computed(lambda s: directml.random_generator(s, output_sizes=[1, 1, 1, 4]), state)
    exact = dml.random_generator(state, sizes=[1, 1, 1, 4], output_state=True)
    np.testing.assert_array_equal(values, exact.output)
    np.testing.assert_array_equal(after, exact.output_state)
    graph = directml.Graph(directml.Device(use_gpu=False))
    x = graph.input(state.shape, np.uint32)
    assert directml.random_generator(x, output_sizes=[4], output_state=False).state is None


def test_quantized_numbers_and_back() -> None:
    x, scale = np.float32([[[[0, 1, 2, 3]]]]), np.full((1, 1, 1, 4), 0.5, np.float32)
    zero = np.full((1, 1, 1, 4), 2, np.uint8)
    quantized, back = computed(
        lambda x, s, z: [
            directml.quantize_linear(x, s, z),
            directml.dequantize_linear(directml.quantize_linear(x, s, z), s, z),
        ],
        x,
        scale,
        zero,
    )
    assert (quantized.ravel().tolist(), quantized.dtype) == ([2, 4, 6, 8], np.uint8)
    np.testing.assert_array_equal(back, x)


def test_a_number_may_dequantize_a_block_of_elements() -> None:
    types = directml.QuantizationType
    x, scale, zero = (
        np.uint8([[[[0, 2, 4, 6]]]]),
        np.float32([[[[1, 10]]]]),
        np.uint8([[[[1, 2]]]]),
    )
    result = one(
        lambda x, s, z: directml.dequantize(x, [s, z], quantization_type=types.SCALE_ZERO_POINT),
        x,
        scale,
        zero,
    )
    assert result.ravel().tolist() == [-1, 1, 20, 40]
    result = one(
        lambda x, s: directml.dequantize(x, [s], quantization_type=types.SCALE),
        x.astype(np.int8),
        scale.astype(np.float16),
    )
    assert (result.ravel().tolist(), result.dtype) == ([0, 2, 40, 60], np.float16)


def test_unsigned_numbers_without_a_zero_point_are_dequantized_around_the_middle_of_their_range() -> None:
    scale = np.float32([[[[0.5, 2]]]])
    for numbers, exact in (
        (np.uint8([[[[0, 100, 200, 255]]]]), [-64, -14, 144, 254]),
        (np.int8([[[[-2, 0, 2, 4]]]]), [-1, 0, 4, 8]),
    ):
        result = one(
            lambda x, s: directml.dequantize(x, [s], quantization_type=directml.QuantizationType.SCALE),
            numbers,
            scale,
        )
        assert result.ravel().tolist() == exact


def windows(image: Any, filter: Any) -> Any:
    """The sums of products of a filter of 2 x 2 with an image of 3 x 3."""
    return np.array(
        [
            [(image[0, 0, i : i + 2, j : j + 2].astype(np.int64) * filter[0, 0]).sum() for j in range(2)]
            for i in range(2)
        ]
    )


def test_convolutions_of_whole_numbers() -> None:
    image, filter = np.arange(1, 10, dtype=np.uint8).reshape(1, 1, 3, 3), np.uint8([[[[1, 0], [0, 2]]]])
    zero, bias = np.uint8([[[[1]]]]), np.int32([[[[100]]]])
    one_number, four = np.float32([[[[1]]]]), np.float32([[[[4]]]])
    results = computed(
        lambda x, f, z, s, o, b: [
            directml.convolution_integer(x, f),
            directml.convolution_integer(x, f, z, z),
            directml.quantized_linear_convolution(x, s, f, s, o, output_dtype=np.uint8),
            directml.quantized_linear_convolution(
                x, s, f, s, o, bias=b, output_zero_point=z, output_dtype=np.uint8
            ),
        ],
        image,
        filter,
        zero,
        one_number,
        four,
        bias,
    )
    sums, shifted = windows(image, filter), windows(image.astype(int) - 1, filter.astype(int) - 1)
    exact = [sums, shifted, np.round(sums / 4), np.round((sums + 100) / 4) + 1]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_array_equal(result[0, 0], each)
    assert [each.dtype.name for each in results] == ["int32", "int32", "uint8", "uint8"]


ROI: dict[str, Any] = {
    "reduction_function": directml.ReduceFunction.AVERAGE,
    "interpolation_mode": directml.InterpolationMode.LINEAR,
    "spatial_scale_x": 1.0,
    "spatial_scale_y": 0.5,
    "input_pixel_offset": 0.5,
    "output_pixel_offset": -0.5,
    "minimum_samples_per_output": 1,
    "maximum_samples_per_output": 2,
    "align_regions_to_corners": False,
}
REGIONS, BATCH = np.float32([[[[0, 0, 4, 4], [1, 2, 5, 6]]]]), np.uint32([[[[0, 1]]]])


def test_regions_in_one_size() -> None:
    result = one(
        lambda x, r, b: directml.roi_align(
            x, r, b, **ROI, out_of_bounds_input_value=0.0, output_height=2, output_width=3
        ),
        IMAGE,
        REGIONS,
        BATCH,
    )
    named = ROI | {"reduction_function": "AVERAGE", "interpolation_mode": "LINEAR"}
    exact = dml.roi_align1(IMAGE, REGIONS, BATCH, **named, out_of_bounds_input_value=0.0, sizes=[2, 4, 2, 3])
    np.testing.assert_array_equal(result, exact)


def test_gradients_of_regions_are_those_asked_for() -> None:
    gradient, image = random(2, 4, 2, 3), {"batch_size": 2, "image_height": 6, "image_width": 5}
    named = ROI | {"reduction_function": "AVERAGE", "interpolation_mode": "LINEAR"}
    both = {"compute_output_gradient": True, "compute_output_roi_gradient": True}
    results = computed(
        lambda g, r, b, x: directml.roi_align_grad(g, r, b, x, **ROI, **image, **both),
        gradient,
        REGIONS,
        BATCH,
        IMAGE,
    )
    alone = computed(
        lambda g, r, b: directml.roi_align_grad(g, r, b, **ROI, **image), gradient, REGIONS, BATCH
    )
    exact = dml.roi_align_grad(
        IMAGE,
        gradient,
        REGIONS,
        BATCH,
        **named,
        output_gradient=True,
        output_roi_gradient=True,
        sizes=[2, 4, 6, 5],
    )
    np.testing.assert_array_equal(results[0], exact.output_gradient)
    np.testing.assert_array_equal(results[1], exact.output_roi_gradient)
    np.testing.assert_array_equal(alone[0], exact.output_gradient)
    with pytest.raises(RuntimeError, match=r"roi_align_grad\.input: missing"):
        computed(
            lambda g, r, b: directml.roi_align_grad(g, r, b, **ROI, **image, **both),
            gradient,
            REGIONS,
            BATCH,
        )
    with pytest.raises(ValueError, match="neither gradient is asked for"):
        computed(
            lambda g, r, b: directml.roi_align_grad(g, r, b, **ROI, **image, compute_output_gradient=False),
            gradient,
            REGIONS,
            BATCH,
        )


def test_gradients_of_clips_slices_and_resampling() -> None:
    window: Any = {
        "input_window_offsets": [0, 0, 1, 1],
        "input_window_sizes": [1, 1, 2, 3],
        "input_window_strides": [1, 1, 1, 1],
    }
    nearest, large = directml.InterpolationMode.NEAREST_NEIGHBOR, random(1, 1, 6, 8)
    gradient = random(1, 1, 2, 3)
    results = computed(
        lambda x, g, w: [
            directml.clip_grad(x, x * 3.0, min=-1.0, max=1.0),
            directml.slice_grad(g, output_gradient_sizes=[1, 1, 3, 4], **window),
            directml.resample_grad(w, output_sizes=[1, 1, 3, 4], mode=nearest),
        ],
        X,
        gradient,
        large,
    )
    zeros = np.zeros_like(X)
    zeros[0, 0, 1:3, 1:4] = gradient
    np.testing.assert_allclose(results[0], np.where((X >= -1) & (X <= 1), 3 * X, 0), rtol=1e-6)
    np.testing.assert_array_equal(results[1], zeros)
    np.testing.assert_allclose(results[2], large.reshape(1, 1, 3, 2, 4, 2).sum((3, 5)), rtol=1e-5, atol=1e-6)


def test_normalization_by_the_batch_itself_and_its_gradients() -> None:
    x, scale, bias, more = random(2, 3, 4, 4), random(1, 3, 1, 1), random(1, 3, 1, 1) + 1, random(2, 3, 4, 4)
    y, mean, variance = computed(directml.batch_normalization_training, x, scale, bias, more)
    average, spread = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    normal = (x - average) / np.sqrt(spread + 1e-5)
    for result, each in ((mean, average), (variance, spread), (y, scale * normal + bias + more)):
        np.testing.assert_allclose(result, each, rtol=1e-4, atol=1e-5)
    gradient = random(2, 3, 4, 4) * 2
    held = computed(directml.batch_normalization_grad, x, gradient, average, spread, scale)
    own = computed(directml.batch_normalization_training_grad, x, gradient, average, spread, scale)
    inverse, axes = scale / np.sqrt(spread + 1e-5), {"axis": (0, 2, 3), "keepdims": True}
    means = gradient.mean(**axes) + normal * (gradient * normal).mean(**axes)
    np.testing.assert_allclose(held[0], gradient * inverse, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(own[0], (gradient - means) * inverse, rtol=1e-3, atol=1e-4)
    for results in (held, own):
        np.testing.assert_allclose(results[1], (gradient * normal).sum(**axes), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(results[2], gradient.sum(**axes), rtol=1e-3, atol=1e-4)
