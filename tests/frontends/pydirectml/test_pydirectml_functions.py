"""Functions that both modules have, and expressions, in the interface with a GraphBuilder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import directml, pydirectml

BOTH = pytest.mark.parametrize("module", [pydirectml, directml], ids=["pydirectml", "directml"])
Build = Callable[..., Any]


def run(module: Any, build: Build, *arrays: Any) -> list[Any]:
    """What a graph of the module gives for arrays, on the CPU."""
    device = module.Device(use_gpu=False)
    builder = module.GraphBuilder(device)
    descs = [
        module.TensorDesc(module.TensorDataType[each.dtype.name.upper()], list(each.shape)) for each in arrays
    ]
    inputs = [module.input_tensor(builder, index, desc) for index, desc in enumerate(descs)]
    built = build(*inputs)
    outputs = list(built) if isinstance(built, list | tuple) else [built]
    model = builder.build(module.ExecutionFlags.NONE, outputs)
    bindings = [module.Binding(*pair) for pair in zip(inputs, arrays, strict=True)]
    return [np.array(each) for each in device.compute(model, bindings, outputs)]


def random(*sizes: int) -> Any:
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32)


IMAGE, FILTER, BIAS = random(2, 4, 6, 5), random(3, 4, 3, 3), random(1, 3, 1, 1)
SMALL, ROWS, INDICES = random(2, 3, 2, 2), random(3, 5), np.array([[[[2, 0]]]], np.uint32)
NORMS = [np.abs(random(1, 4, 1, 1)) + index for index in range(4)]
GRU = random(1, 3, 2, 4), random(1, 1, 15, 4), random(1, 1, 15, 5)
RELU = dml.descs.ActivationRelu()
STARTS, ENDS = [0, 0, 1, 2], [0, 0, 2, 0]
POOLING: Any = dict(
    zip(
        ("strides", "window_size", "start_padding", "end_padding"),
        ([2, 2], [3, 2], [1, 0], [0, 1]),
        strict=True,
    )
)


def relu(module: Any) -> Any:
    return module.FusedActivation(module.OperatorType.ACTIVATION_RELU)


def mvn(module: Any, x: Any, *more: Any) -> Any:
    """A normalization by the mean and the variance, whose flag for the mean only the fork has."""
    mean = [True] if module is directml else []
    return module.mean_variance_normalization(x, *more, [2, 3], True, *mean, 1e-5, relu(module))


def gru(module: Any, *tensors: Any) -> Any:
    made = module.gru(
        *tensors,
        activation_descs=[
            module.FusedActivation(module.OperatorType.ACTIVATION_SIGMOID),
            module.FusedActivation(module.OperatorType.ACTIVATION_TANH),
        ],
        direction=module.RecurrentNetworkDirection.FORWARD,
        output_options=module.OutputOptions.Single,
    )
    assert made.sequence is None or "empty" in repr(made.sequence)
    return made.single


CASES: dict[str, tuple[Build, tuple[Any, ...], Any]] = {
    "activation_linear": (lambda m, x: m.activation_linear(x, 2.0, 0.5), (IMAGE,), 2 * IMAGE + 0.5),
    "add": (lambda m, x: m.add(x, x, relu(m)), (IMAGE,), np.maximum(2 * IMAGE, 0)),
    "subtract": (lambda m, x, y: m.subtract(x, y), (ROWS, ROWS[::-1]), ROWS - ROWS[::-1]),
    "multiply": (lambda m, x, y: m.multiply(x, y), (ROWS, ROWS[::-1]), ROWS * ROWS[::-1]),
    "divide": (lambda m, x, y: m.divide(x, y), (ROWS, ROWS[::-1]), ROWS / ROWS[::-1]),
    "convolution": (
        lambda m, x, f, b: m.convolution(
            *(x, f, b),
            strides=[2, 1],
            dilations=[1, 2],
            start_padding=[1, 0],
            end_padding=[0, 2],
            fused_activation=relu(m),
        ),
        (IMAGE, FILTER, BIAS),
        dml.convolution(
            *(IMAGE, FILTER, BIAS),
            strides=[2, 1],
            dilations=[1, 2],
            start_padding=[1, 0],
            end_padding=[0, 2],
            fused_activation=RELU,
        ),
    ),
    "convolution to sizes beyond the usual ones": (
        lambda m, x, f: m.convolution(
            x, f, direction=m.ConvolutionDirection.BACKWARD, strides=[2, 2], output_sizes=[2, 4, 8, 7]
        ),
        (SMALL, FILTER),
        dml.convolution(SMALL, FILTER, direction="BACKWARD", strides=[2, 2], output_padding=[3, 2]),
    ),
    "up_sample_2d": (
        lambda m, x: m.up_sample_2d(x, m.Size2D(3, 2), m.InterpolationMode.LINEAR),
        (IMAGE,),
        dml.upsample_2d(IMAGE, scale_size=dml.Size2D(3, 2), interpolation_mode="LINEAR"),
    ),
    "padding": (
        lambda m, x: m.padding(x, m.PaddingMode.REFLECTION, 1.5, STARTS, ENDS),
        (IMAGE,),
        np.pad(IMAGE, tuple(zip(STARTS, ENDS, strict=True)), "reflect"),
    ),
    "slice": (
        lambda m, x: m.slice(x, [0, 1, 0, 1], [2, 2, 6, 4], [1, 1, 2, -3]),
        (IMAGE,),
        IMAGE[:, 1:3, ::2, 4:0:-3],
    ),
    "value_scale_2d": (
        lambda m, x: m.value_scale_2d(x, 2.0, [1.0, 2.0, 3.0]),
        (SMALL,),
        SMALL * 2 + np.float32([1, 2, 3]).reshape(1, 3, 1, 1),
    ),
    "batch_normalization": (
        lambda m, x, *more: m.batch_normalization(x, *more, True, 1e-3),
        (IMAGE, *NORMS),
        dml.batch_normalization(IMAGE, *NORMS, spatial=True, epsilon=1e-3),
    ),
    "mean_variance_normalization": (
        mvn,
        (IMAGE, *NORMS[:2]),
        dml.mean_variance_normalization1(
            *(IMAGE, *NORMS[:2]), axes=[2, 3], normalize_variance=True, epsilon=1e-5, fused_activation=RELU
        ),
    ),
    "mean_variance_normalization over no axes": (
        lambda m, x: m.mean_variance_normalization(x, axes=[], normalize_variance=True, epsilon=1e-5),
        (IMAGE,),
        dml.mean_variance_normalization1(IMAGE, axes=[], normalize_variance=True, epsilon=1e-5),
    ),
    "average_pooling": (
        lambda m, x: m.average_pooling(x, *POOLING.values(), *([[1, 1]] if m is directml else []), True),
        (IMAGE,),
        dml.average_pooling(IMAGE, **POOLING, include_padding=True),
    ),
    "activation_softmax": (
        lambda m, x: (m.activation_softmax if m is directml else m.activation_soft_max)(x),
        (ROWS,),
        dml.activation_softmax(ROWS),
    ),
    "gemm": (
        lambda m, x: m.gemm(x, x, x, trans_b=m.MatrixTransform.TRANSPOSE, alpha=0.5, beta=2.0),
        (IMAGE[..., :5, :],),
        (lambda t: 0.5 * t @ t.swapaxes(2, 3) + 2 * t)(IMAGE[..., :5, :]),
    ),
    "max_pooling": (
        lambda m, x: m.max_pooling(x, [2, 2], strides=[2, 2], output_indices=True).indices,
        (IMAGE,),
        dml.max_pooling2(IMAGE, window_size=[2, 2], strides=[2, 2], output_indices=True).output_indices,
    ),
    "reinterpret": (
        lambda m, x: m.activation_relu(m.reinterpret(x, m.TensorDataType.FLOAT32, [30, 8], [1, 30])),
        (IMAGE,),
        np.maximum(IMAGE.reshape(8, 30).T, 0),
    ),
    "reinterpret to another type": (
        lambda m, x: m.reinterpret(x * 1.0, m.TensorDataType.INT32, [240], None),
        (IMAGE,),
        IMAGE.reshape(-1).view(np.int32),
    ),
    "reinterpret with strides of 0": (
        lambda m, x: m.reinterpret(
            m.slice(x, [0, 0], [1, 5], [1, 1]), m.TensorDataType.FLOAT32, [3, 5], [0, 1]
        ),
        (ROWS,),
        np.tile(ROWS[0], (3, 1)),
    ),
    "join": (lambda m, x: m.join([x, x * 2.0], 1), (IMAGE,), np.concatenate([IMAGE, 2 * IMAGE], 1)),
    "gather": (
        lambda m, x, y: m.gather(x, y, 3, 1),
        (IMAGE, INDICES),
        dml.gather(IMAGE, INDICES, axis=3, index_dimensions=1),
    ),
    "gru": (
        gru,
        GRU,
        dml.gru(
            *GRU,
            activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
            direction="FORWARD",
            linear_before_reset=True,
            output_single=True,
            output_sequence=True,
        ).output_single,
    ),
}


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_functions_compute_their_operators(module: Any, name: str) -> None:
    build, arrays, exact = CASES[name]
    (result,) = run(module, lambda *inputs: build(module, *inputs), *arrays)
    np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


@BOTH
def test_indices_that_are_not_asked_for_are_empty_or_none(module: Any) -> None:
    def build(x: Any) -> Any:
        outputs = module.max_pooling(x, window_sizes=[3, 2], start_padding=[1, 0], dilations=[1, 2])
        if module is directml:
            assert outputs.indices is None
        else:
            with pytest.raises(dml.InvalidArgument, match="empty"):
                outputs.indices.get_output_desc()
        return outputs.values

    (result,) = run(module, build, IMAGE)
    exact = dml.max_pooling2(IMAGE, window_size=[3, 2], start_padding=[1, 0], dilations=[1, 2])
    np.testing.assert_array_equal(result, exact)


@BOTH
def test_expressions_with_expressions_and_numbers(module: Any) -> None:
    a, b = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2), np.full((1, 1, 2, 2), 2.5, np.float32)

    def values(x: Any, y: Any) -> list[Any]:
        z = x * 1.0
        z += y
        z -= 1
        z *= y
        z /= 2.0
        z %= y
        both = [x + y, x - y, x * y, x / y, x % y, z]
        return [*both, x + 1, x - 1.5, x * 2, x / 2, 1 + x, 1 - x, 3.0 * x, 3 / x, -x]

    for result, exact in zip(run(module, values, a, b), values(a, b), strict=True):
        np.testing.assert_allclose(result, exact, rtol=1e-6)


@BOTH
def test_operators_in_place_change_all_names_of_an_expression(module: Any) -> None:
    def build(x: Any) -> Any:
        y = alias = module.activation_identity(x)
        y += 1.0
        assert alias is y
        return alias

    (result,) = run(module, build, IMAGE)
    np.testing.assert_allclose(result, IMAGE + 1)


@BOTH
def test_wrong_operands_and_arguments_are_named(module: Any) -> None:
    def build(x: Any, f: Any) -> Any:
        for wrong in ("1", None, [1]):
            for call in (lambda w: x + w, lambda w: w / x, lambda w: x.__imul__(w)):
                with pytest.raises(TypeError):
                    call(wrong)
        with pytest.raises(TypeError):
            x % 2.0
        for refused, problem in (
            (lambda: x / 0, "divided by the number 0"),
            (lambda: x + f, r"element_wise_add: .* shapes differ"),
            (
                lambda: module.reinterpret(x, module.TensorDataType.FLOAT32, [241], None),
                r"reinterpret: \[241\] of FLOAT32; 964 bytes, but .* 960",
            ),
        ):
            with pytest.raises(dml.InvalidArgument, match=problem):
                refused()
        with pytest.raises(
            TypeError, match=r"convolution\.mode: OperatorType\.CONVOLUTION; a ConvolutionMode"
        ):
            module.convolution(x, f, mode=module.OperatorType.CONVOLUTION)
        with pytest.raises(TypeError, match=r"gemm\.trans_a: int\.1; a MatrixTransform"):
            module.gemm(x, f, trans_a=1)
        return x

    run(module, build, IMAGE, FILTER)


@BOTH
def test_expressions_of_two_graphs_do_not_mix(module: Any) -> None:
    device = module.Device(False)
    desc = module.TensorDesc(module.TensorDataType.FLOAT32, [2])
    x, y = (module.input_tensor(module.GraphBuilder(device), 0, desc) for _ in range(2))
    with pytest.raises(dml.InvalidArgument, match="several graphs"):
        module.add(x, y)
    builder = module.GraphBuilder(device)
    with pytest.raises(dml.InvalidArgument, match="another graph"):
        builder.build(module.ExecutionFlags.NONE, [x])
    module.input_tensor(builder, 0, desc)
    with pytest.raises(dml.InvalidArgument, match="input_index: 0; there is"):
        module.input_tensor(builder, 0, desc)
