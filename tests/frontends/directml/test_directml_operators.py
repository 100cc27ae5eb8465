"""Functions of `directml` against NumPy, or against the immediate functions of their operators.

The examples in the docstrings show that functions pass their arguments on. The cases here are those of
functions that change their arguments, of defaults, and of several outputs.
"""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import directml
from opendml.frontends.pydirectml.expressions import record
from opendml.frontends.pydirectml.table import MODULES, row_of
from tests.for_each import for_each

Build = Callable[..., Any]


def computed(build: Build, *arrays: Any) -> list[Any]:
    """What a graph gives for arrays, on the CPU."""
    graph = directml.Graph(directml.Device(use_gpu=False))
    inputs = [graph.input(each.shape, each.dtype) for each in arrays]
    built = build(*inputs)
    outputs = [each for each in built if each is not None] if isinstance(built, list | tuple) else [built]
    results: list[Any] = graph.compile(outputs)(dict(zip(inputs, arrays, strict=True)))
    for expression, result in zip(outputs, results, strict=True):
        assert (result.shape, result.dtype) == (expression.shape, expression.dtype)
    return results


def one(build: Build, *arrays: Any) -> Any:
    (result,) = computed(build, *arrays)
    return result


def random(*sizes: int) -> Any:
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32)


X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(1, 1, 3, 4)
IMAGE, SMALL, ROW = random(2, 4, 6, 5), random(2, 3, 2, 2), np.array([[[[1, 3, 2, 0.5]]]], np.float32)
FILTER, HALVES = random(3, 4, 3, 3), np.float32([0.5, 1.5, -1.5, 2.4])
STATE = np.arange(6, dtype=np.uint32).reshape(1, 1, 1, 6)
QUERY, KEY, VALUE = random(2, 1, 3, 8), random(2, 1, 5, 8), random(2, 1, 5, 12)
GRU = random(1, 3, 2, 4), random(1, 1, 15, 4), random(1, 1, 15, 5)
REGIONS, BATCH = np.float32([[[[0, 0, 4, 4], [1, 2, 5, 6]]]]), np.uint32([[[[0, 1]]]])
GRADIENT, SCALE = random(2, 4, 2, 3), np.float32([[[[0.5, 2]]]])
WINDOWS: Any = {"strides": [2, 2], "start_padding": [1, 0], "end_padding": [0, 1]}
fused, modes, types = directml.FusedActivation, directml.InterpolationMode, directml.QuantizationType
backward, down = directml.ConvolutionDirection.BACKWARD, directml.AxisDirection.DECREASING
ROI: dict[str, Any] = {
    "reduction_function": directml.ReduceFunction.AVERAGE,
    "interpolation_mode": modes.LINEAR,
    "spatial_scale_x": 1.0,
    "spatial_scale_y": 0.5,
    "input_pixel_offset": 0.5,
    "output_pixel_offset": -0.5,
    "minimum_samples_per_output": 1,
    "maximum_samples_per_output": 2,
    "align_regions_to_corners": False,
}
PLAIN_ROI = ROI | {"reduction_function": "AVERAGE", "interpolation_mode": "LINEAR"}
SIZES = {"batch_size": 2, "image_height": 6, "image_width": 5}


def heads(tensor: Any) -> Any:
    return tensor.reshape(2, tensor.shape[2], 2, -1).transpose(0, 2, 1, 3)


SCORES = np.exp(0.5 * heads(QUERY) @ heads(KEY).swapaxes(2, 3))
ATTENDED = (SCORES / SCORES.sum(-1, keepdims=True) @ heads(VALUE)).transpose(0, 2, 1, 3).reshape(2, 1, 3, 12)
ATTENTION: Any = {"head_count": 2, "scale": 0.5}
STATES = dml.gru(
    *GRU,
    activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
    direction="FORWARD",
    linear_before_reset=True,
    output_sequence=True,
    output_single=True,
)
GRADIENTS = dml.roi_align_grad(
    *(IMAGE, GRADIENT, REGIONS, BATCH),
    **PLAIN_ROI,
    output_gradient=True,
    output_roi_gradient=True,
    sizes=[2, 4, 6, 5],
)
MAXIMA = dml.max_pooling2(IMAGE, window_size=[3, 2], output_indices=True, **WINDOWS)


def gru(option: str) -> Build:
    options = directml.GRUOutputOptions[option]
    given = {"activation_descs": [fused.sigmoid(), fused.tanh()], "output_options": options}
    return lambda *tensors: directml.gru(*tensors, **given)


def resized(sizes: list[int], antialiased: bool) -> Any:
    scales = [1, 1, sizes[2] / 3, sizes[3] / 4]
    given: Any = {"interpolation_mode": "LINEAR", "rounding_direction": "INCREASING", "scales": scales}
    return dml.resample3(X, sizes=sizes, antialiased=antialiased, **given)


CASES: list[tuple[Build, tuple[Any, ...], list[Any]]] = [
    (lambda x: directml.exp(x, scale_bias=(0.5, 0.25)), (X,), [np.exp(X * 0.5 + 0.25)]),
    (lambda x: directml.clip(x, min=-1, max=0.5, scale_bias=(2.0, 1.0)), (X,), [np.clip(2 * X + 1, -1, 0.5)]),
    (lambda x: directml.round(x), (HALVES,), [[0, 2, -2, 2]]),
    (
        lambda x: directml.round(x, rounding_mode=directml.RoundingMode.TOWARD_ZERO),
        (HALVES,),
        [[0, 1, -1, 2]],
    ),
    (lambda x: directml.cast(x, dtype=directml.TensorDataType.FLOAT16), (HALVES,), [HALVES]),
    (lambda x: directml.pow(x, 3.0), (HALVES,), [HALVES**3]),
    (
        lambda x: directml.pow(directml.abs(x), x, scale_bias=(2.0, 1.0)),
        (HALVES,),
        [(2 * np.abs(HALVES) + 1) ** HALVES],
    ),
    (lambda a, b: directml.equals(a, b, output_dtype=np.uint32), (X, X), [np.ones_like(X)]),
    (lambda c, a: directml.where(c, a, -a), (np.uint8([1, 0, 2, 0]), HALVES), [[0.5, -1.5, -1.5, -2.4]]),
    (lambda x, y: x % y, (np.int32([-7, -1, 1, 7]), np.full(4, 5, np.int32)), [[3, 4, 1, 2]]),
    (
        lambda x: directml.activation_softmax(x, axes=[1]),
        (IMAGE,),
        [np.exp(IMAGE) / np.exp(IMAGE).sum(1, keepdims=True)],
    ),
    (directml.activation_softmax, (ROW[0, 0],), [np.exp(ROW[0, 0]) / np.exp(ROW).sum()]),
    (directml.activation_scaled_elu, (X,), [np.where(X > 0, X, 1.67326324 * np.expm1(X)) * 1.05070098]),
    (lambda x, y: directml.add(x, y, fused.relu()), (X, X), [np.maximum(2 * X, 0)]),
    (lambda x, y: directml.add(x, y, fused_activation=fused.none()), (X, X), [2 * X]),
    (
        lambda a, b: directml.gemm(
            *(a, b), trans_b=directml.MatrixTransform.TRANSPOSE, fused_activation=fused.leaky_relu(0.5)
        ),
        (X, X),
        [(lambda p: np.where(p > 0, p, p / 2))(X @ X.swapaxes(2, 3))],
    ),
    (
        lambda x, f: directml.convolution(x, f, strides=[2, 1], start_padding=[1, 0], end_padding=[0, 2]),
        (IMAGE, FILTER),
        [dml.convolution(IMAGE, FILTER, strides=[2, 1], start_padding=[1, 0], end_padding=[0, 2])],
    ),
    (
        lambda x, f: directml.convolution(x, f, direction=backward, strides=[2, 2]),
        (SMALL, FILTER),
        [dml.convolution(SMALL, FILTER, direction="BACKWARD", strides=[2, 2])],
    ),
    (
        lambda x, f: directml.convolution(
            x, f, direction=backward, strides=[2, 2], output_sizes=[2, 4, 6, 6]
        ),
        (SMALL, FILTER),
        [dml.convolution(SMALL, FILTER, direction="BACKWARD", strides=[2, 2], output_padding=[1, 1])],
    ),
    (
        lambda x: directml.average_pooling(x, window_sizes=[3, 2], include_padding=True, **WINDOWS),
        (IMAGE,),
        [dml.average_pooling1(IMAGE, window_size=[3, 2], include_padding=True, **WINDOWS)],
    ),
    (
        lambda x: directml.max_pooling(x, window_sizes=[3, 2], output_indices=True, **WINDOWS),
        (IMAGE,),
        [*MAXIMA],
    ),
    (lambda x: directml.max_pooling(x, window_sizes=[3, 2], **WINDOWS), (IMAGE,), [MAXIMA.output]),
    (
        lambda x: directml.mean_variance_normalization(x, axes=[2, 3], normalize_mean=False, epsilon=1e-3),
        (IMAGE,),
        [dml.mean_variance_normalization2(IMAGE, axes=[2, 3], use_mean=False, epsilon=1e-3)],
    ),
    (
        lambda x: directml.local_response_normalization(x, True, 3, 0.5, 0.75, 1.0),
        (IMAGE,),
        [
            dml.local_response_normalization(
                IMAGE, cross_channel=True, local_size=3, alpha=0.5, beta=0.75, bias=1.0
            )
        ],
    ),
    (lambda q, k, v: directml.multihead_attention(q, k, v, **ATTENTION), (QUERY, KEY, VALUE), [ATTENDED]),
    (
        lambda q, k, v: directml.multihead_attention(q, k, v, **ATTENTION),
        (QUERY[:, 0], KEY[:, 0], VALUE[:, 0]),
        [ATTENDED[:, 0]],
    ),
    (
        lambda q, k, v: directml.multihead_attention(
            *(q, directml.reinterpret(k, [2, 1, 5, 8], [40, 40, 1, 5]), v), **ATTENTION
        ),
        (QUERY, np.ascontiguousarray(KEY.swapaxes(2, 3)), VALUE),
        [ATTENDED],
    ),
    (gru("Both"), GRU, [*STATES]),
    (gru("Sequence"), GRU, [STATES.output_sequence]),
    (gru("Single"), GRU, [STATES.output_single]),
    (
        lambda x: directml.padding(x, start_padding=[0, 0, 1, 2], end_padding=[0, 0, 0, 1]),
        (IMAGE,),
        [np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (2, 1)))],
    ),
    (lambda x: directml.join([x, -x], axis=1), (IMAGE,), [np.concatenate([IMAGE, -IMAGE], 1)]),
    (
        lambda x: directml.split(x, axis=1, output_axis_sizes=[1, 3]),
        (IMAGE,),
        [IMAGE[:, :1], IMAGE[:, 1:]],
    ),
    (
        lambda x: directml.upsample_2d(x, scale_size=(3, 2), interpolation_mode=modes.NEAREST_NEIGHBOR),
        (X,),
        [np.repeat(np.repeat(X, 2, 2), 3, 3)],
    ),
    (
        lambda x: directml.resample(x, output_sizes=[1, 1, 5, 7], mode=modes.LINEAR),
        (X,),
        [resized([1, 1, 5, 7], False)],
    ),
    (
        lambda x: directml.resample(x, output_sizes=[1, 1, 2, 2], mode=modes.LINEAR, antialiased=True),
        (X,),
        [resized([1, 1, 2, 2], True)],
    ),
    (
        lambda x: directml.resample_grad(x, output_sizes=[1, 1, 3, 4], mode=modes.NEAREST_NEIGHBOR),
        (np.ones((1, 1, 6, 8), np.float32),),
        [np.full((1, 1, 3, 4), 4)],
    ),
    (
        lambda x: directml.slice_grad(
            x,
            output_gradient_sizes=[1, 1, 4, 6],
            input_window_offsets=[0, 0, 1, 1],
            input_window_sizes=[1, 1, 3, 4],
            input_window_strides=[1, 1, 1, 1],
        ),
        (X,),
        [np.pad(X, ((0, 0), (0, 0), (1, 0), (1, 1)))],
    ),
    (lambda x: directml.top_k(x, axis=3, k=2), (ROW,), [[[[[3, 2]]]], [[[[1, 2]]]]]),
    (
        lambda x: directml.top_k(x, axis=3, k=1, axis_direction=directml.AxisDirection.INCREASING).indices,
        (ROW,),
        [[[[[3]]]]],
    ),
    (lambda x: directml.non_zero_coordinates(x).count, (ROW,), [[[[[4]]]]]),
    (
        lambda i, v: directml.one_hot(i, v, output_length=4, axis=3),
        (np.uint32([[[[0], [2]]]]), np.float32([[[[0, 1]]]])),
        [np.eye(4, dtype=np.float32)[[0, 2]][None, None]],
    ),
    (lambda x: directml.reduce(x, function=directml.ReduceFunction.SUM), (ROW,), [[[[[6.5]]]]]),
    (
        lambda x: directml.reduce(
            x, function=directml.ReduceFunction.ARGMAX, axes=[3], output_dtype=np.int32
        ),
        (ROW,),
        [[[[[1]]]]],
    ),
    (
        lambda x: directml.cumulative_summation(x, axis=3, axis_direction=down, has_exclusive_sum=True),
        (ROW,),
        [[[[[5.5, 2.5, 0.5, 0]]]]],
    ),
    (
        lambda s: directml.random_generator(s, output_sizes=[1, 1, 1, 4]),
        (STATE,),
        [*dml.random_generator(STATE, sizes=[1, 1, 1, 4], output_state=True)],
    ),
    (
        lambda x, s: directml.dequantize(x, [s], quantization_type=types.SCALE),
        (np.uint8([[[[0, 100, 200, 255]]]]), SCALE),
        [[[[[-64, -14, 144, 254]]]]],
    ),
    (
        lambda x, s: directml.dequantize(x, [s], quantization_type=types.SCALE),
        (np.int8([[[[-2, 0, 2, 4]]]]), SCALE),
        [[[[[-1, 0, 4, 8]]]]],
    ),
    (
        lambda x, s, z: directml.dequantize(x, [s, z], quantization_type=types.SCALE_ZERO_POINT),
        (np.uint8([[[[0, 2, 4, 6]]]]), SCALE, np.uint8([[[[1, 2]]]])),
        [[[[[-0.5, 0.5, 4, 8]]]]],
    ),
    (
        lambda x, s, f, o: directml.quantized_linear_convolution(x, s, f, s, o, output_dtype=np.uint8),
        (
            np.arange(1, 10, dtype=np.uint8).reshape(1, 1, 3, 3),
            np.float32([[[[1]]]]),
            np.uint8([[[[1, 0], [0, 2]]]]),
            np.float32([[[[4]]]]),
        ),
        [[[[[3, 4], [5, 6]]]]],
    ),
    (
        lambda x, r, b: directml.roi_align(
            *(x, r, b), **ROI, out_of_bounds_input_value=0.0, output_height=2, output_width=3
        ),
        (IMAGE, REGIONS, BATCH),
        [
            dml.roi_align1(
                *(IMAGE, REGIONS, BATCH), **PLAIN_ROI, out_of_bounds_input_value=0.0, sizes=[2, 4, 2, 3]
            )
        ],
    ),
    (
        lambda g, r, b, x: directml.roi_align_grad(
            *(g, r, b, x), **ROI, **SIZES, compute_output_roi_gradient=True
        ),
        (GRADIENT, REGIONS, BATCH, IMAGE),
        [*GRADIENTS],
    ),
    (
        lambda g, r, b: directml.roi_align_grad(g, r, b, **ROI, **SIZES),
        (GRADIENT, REGIONS, BATCH),
        [GRADIENTS.output_gradient],
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_functions_compute_their_operators(case: int) -> None:
    build, arrays, exact = CASES[case]
    results = computed(build, *arrays)
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-3 if result.dtype == np.float16 else 1e-4, atol=1e-5)


@for_each("name", sorted(MODULES["directml"]))
def test_examples_in_docstrings_run(name: str) -> None:
    docstring = getattr(directml, name).__doc__
    session = doctest.DocTestParser().get_doctest(docstring, {}, name, None, 0)
    with np.printoptions(precision=4, suppress=True):
        failures: list[str] = []
        doctest.DocTestRunner(verbose=False).run(session, out=failures.append)
    assert not failures, "".join(failures)


def test_most_functions_have_an_example() -> None:
    without = {name for name in MODULES["directml"] if ">>>" not in getattr(directml, name).__doc__}
    adapted = {
        "average_pooling",
        "dequantize",
        "fill_value_constant",
        "fill_value_sequence",
        "gru",
        "one_hot",
    }
    adapted |= {"resample", "roi_align", "roi_align_grad"}
    assert without - adapted <= {
        *("activation_scaled_elu", "gather_nd", "local_response_normalization"),
        *("mean_variance_normalization", "quantized_linear_convolution", "slice_grad"),
    }


@pytest.mark.parametrize("module", ["directml", "pydirectml"])
def test_every_parameter_of_the_table_is_an_argument_of_the_operator(module: str) -> None:
    for name in MODULES[module]:
        assert row_of(module, name).parameters


def test_a_parameter_that_no_operator_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES["directml"], "wrong", ["GATHER input indices axis rank:ranks"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"wrong\.rank: ranks; GATHER has no such argument"):
        row_of("directml", "wrong")


def test_an_expression_in_place_is_a_new_one() -> None:
    graph = directml.Graph(directml.Device(use_gpu=False))
    x = alias = graph.input([2])
    x += 1.0
    assert x is not alias
    assert graph.compile([x])({alias: np.zeros(2)})[0].tolist() == [1, 1]
    assert not hasattr(directml.Expression, "__iadd__")


def test_fills_need_no_inputs() -> None:
    graph = directml.Graph(directml.Device(use_gpu=False))
    int64 = directml.TensorDataType.INT64
    filled = [
        directml.fill_value_constant(graph, sizes=[2], value=2.5),
        directml.fill_value_constant(graph, sizes=[3], value=-3, dtype=np.int32),
        directml.fill_value_sequence(graph, sizes=[2, 2], value_start=1.0, value_delta=0.5),
        directml.fill_value_sequence(graph, sizes=[3], value_start=7, value_delta=-2, dtype=int64),
    ]
    results = graph.compile(filled)()
    assert [each.tolist() for each in results] == [[2.5, 2.5], [-3] * 3, [[1, 1.5], [2, 2.5]], [7, 5, 3]]
    assert [each.dtype.name for each in results] == ["float32", "int32", "float32", "int64"]


@for_each(
    ("build", "error", "problem"),
    [
        (
            lambda x: directml.one_hot(x, x, output_length=4, axis=4),
            ValueError,
            r"one_hot\.axis: 4; the indices",
        ),
        (
            lambda x: directml.roi_align_grad(x, x, x, **ROI, **SIZES, compute_output_gradient=False),
            ValueError,
            "neither gradient is asked for",
        ),
        (
            lambda x: directml.roi_align_grad(x, x, x, **ROI, **SIZES, compute_output_roi_gradient=True),
            RuntimeError,
            r"roi_align_grad\.roi: sizes",
        ),
        (
            lambda x: directml.fill_value_constant(
                directml.Graph(directml.Device(use_gpu=False)), sizes=[1], value=300, dtype=np.uint8
            ),
            ValueError,
            "value=300: no uint8",
        ),
        (
            lambda x: directml.fill_value_constant(x, sizes=[1], value=1),
            TypeError,
            "Expression; a Graph is needed",
        ),
        (lambda x: directml.exp(x, scale=2.0), TypeError, "unexpected keyword argument 'scale'"),
        (lambda x: directml.exp(x, scale_bias=2.0), TypeError, r"exp\.scale_bias: 2\.0; two numbers"),
        (
            lambda x: directml.reduce(x, function=10),
            TypeError,
            r"reduce\.function: int\.10; a ReduceFunction",
        ),
        (lambda x: directml.max(x, 1), TypeError, r"max\.b: int; an Expression is needed"),
        (lambda x: directml.gru(x, x, x), TypeError, "gru.. missing required arguments: activation_descs"),
        (lambda x: directml.reinterpret(x), TypeError, r"^reinterpret\(\) missing"),
        (
            lambda x: directml.average_pooling(x, strides=[1, 1], window_sizes=[]),
            RuntimeError,
            r"window_size: 0 elements; must be 2",
        ),
        (
            lambda x: directml.activation_softmax(directml.broadcast(x, [2, 2, 2, 2]), axes=None),
            RuntimeError,
            r"activation_softmax\.input: sizes",
        ),
        (lambda x: directml.join([], axis=0), ValueError, r"join\.inputs: empty"),
        (lambda x: record("GATHER", {"input": x, "rank": 1}), TypeError, "gather: rank; GATHER has no such"),
    ],
)
def test_wrong_arguments_are_named(build: Build, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        one(build, np.zeros((1, 1, 2, 2), np.float32))
