"""Each function of PyDirectML against the immediate function of its operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import directml, pydirectml
from opendml.frontends.pydirectml.expressions import Expression

BOTH = pytest.mark.parametrize("module", [pydirectml, directml], ids=["pydirectml", "directml"])
BUILD = Callable[..., Expression | Sequence[Expression]]


def run(module: Any, build: BUILD, *arrays: Any) -> list[Any]:
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
SMALL = random(2, 3, 2, 2)
RELU = dml.descs.ActivationRelu()


@BOTH
@pytest.mark.parametrize("name", ["relu", "sigmoid", "identity", "tanh"])
def test_activations(module: Any, name: str) -> None:
    (result,) = run(module, getattr(module, f"activation_{name}"), IMAGE)
    np.testing.assert_array_equal(result, getattr(dml, f"activation_{name}")(IMAGE))


@BOTH
def test_linear_and_arithmetic(module: Any) -> None:
    a, b = IMAGE, random(2, 4, 6, 5) + 3
    results = run(
        module,
        lambda x, y: [
            module.activation_linear(x, 2.0, 0.5),
            module.add(x, y),
            module.subtract(x, y),
            module.multiply(x, y),
            module.divide(x, y),
            module.add(x, y, module.FusedActivation(module.OperatorType.ACTIVATION_RELU)),
        ],
        a,
        b,
    )
    for result, exact in zip(
        results, [2 * a + 0.5, a + b, a - b, a * b, a / b, np.maximum(a + b, 0)], strict=True
    ):
        np.testing.assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


@BOTH
def test_convolutions(module: Any) -> None:
    relu = module.FusedActivation(module.OperatorType.ACTIVATION_LEAKY_RELU, 0.25)
    (result,) = run(
        module,
        lambda x, f, b: module.convolution(
            x,
            f,
            b,
            strides=[2, 1],
            dilations=[1, 2],
            start_padding=[1, 0],
            end_padding=[0, 2],
            fused_activation=relu,
        ),
        IMAGE,
        FILTER,
        BIAS,
    )
    exact = dml.convolution(
        IMAGE,
        FILTER,
        BIAS,
        strides=[2, 1],
        dilations=[1, 2],
        start_padding=[1, 0],
        end_padding=[0, 2],
        fused_activation=dml.descs.ActivationLeakyRelu(alpha=0.25),
    )
    np.testing.assert_array_equal(result, exact)


@BOTH
def test_transposed_convolutions_take_larger_output_sizes_as_output_padding(module: Any) -> None:
    filter = random(3, 2, 3, 3)
    backward = module.ConvolutionDirection.BACKWARD
    results = run(
        module,
        lambda x, f: [
            module.convolution(x, f, direction=backward, strides=[2, 2], output_sizes=[2, 2, 6, 6]),
            module.convolution(x, f, direction=backward, strides=[2, 2]),
        ],
        SMALL,
        filter,
    )
    options: Any = {"direction": "BACKWARD", "strides": [2, 2]}
    np.testing.assert_array_equal(
        results[0], dml.convolution(SMALL, filter, output_padding=[1, 1], **options)
    )
    np.testing.assert_array_equal(results[1], dml.convolution(SMALL, filter, **options))


@BOTH
@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "LINEAR"])
def test_up_sampling(module: Any, mode: str) -> None:
    size = module.Size2D(3, 2)
    assert (size.width, size.height) == (3, 2)
    (result,) = run(module, lambda x: module.up_sample_2d(x, size, module.InterpolationMode[mode]), IMAGE)
    exact = dml.upsample_2d(IMAGE, scale_size=dml.Size2D(3, 2), interpolation_mode=mode)
    np.testing.assert_array_equal(result, exact)


@BOTH
@pytest.mark.parametrize("mode", ["CONSTANT", "EDGE", "REFLECTION"])
def test_padding(module: Any, mode: str) -> None:
    start, end = [0, 0, 1, 2], [0, 0, 2, 0]
    (result,) = run(module, lambda x: module.padding(x, module.PaddingMode[mode], 1.5, start, end), IMAGE)
    exact = dml.padding(IMAGE, padding_mode=mode, padding_value=1.5, start_padding=start, end_padding=end)
    np.testing.assert_array_equal(result, exact)


@BOTH
def test_slices_and_value_scales(module: Any) -> None:
    results = run(
        module,
        lambda x: [
            module.slice(x, [0, 1, 0, 1], [2, 2, 6, 4], [1, 1, 2, -3]),
            module.value_scale_2d(module.slice(x, [0] * 4, [2, 3, 6, 5], [1] * 4), 2.0, [1.0, 2.0, 3.0]),
        ],
        IMAGE,
    )
    np.testing.assert_array_equal(results[0], IMAGE[:, 1:3, ::2, 4:0:-3])
    np.testing.assert_allclose(results[1], IMAGE[:, :3] * 2 + np.arange(1, 4).reshape(1, 3, 1, 1), rtol=1e-6)


@BOTH
def test_batch_and_local_response_normalization(module: Any) -> None:
    channels = [np.abs(random(1, 4, 1, 1)) + index for index in range(4)]
    results = run(
        module,
        lambda x, m, v, s, b: [
            module.batch_normalization(x, m, v, s, b, True, 1e-3),
            module.local_response_normalization(x, True, 3, 0.5, 0.75, 1.0),
        ],
        IMAGE,
        *channels,
    )
    exact = dml.batch_normalization(IMAGE, *channels, spatial=True, epsilon=1e-3)
    np.testing.assert_array_equal(results[0], exact)
    options: Any = {"cross_channel": True, "local_size": 3, "alpha": 0.5, "beta": 0.75, "bias": 1.0}
    np.testing.assert_array_equal(results[1], dml.local_response_normalization(IMAGE, **options))


def test_mean_variance_normalization_of_pydirectml() -> None:
    scale, bias, build = random(1, 4, 1, 1), random(1, 4, 1, 1) + 1, pydirectml.mean_variance_normalization
    relu = pydirectml.FusedActivation(pydirectml.OperatorType.ACTIVATION_RELU)
    (result,) = run(pydirectml, lambda x, s, b: build(x, s, b, [2, 3], True, 1e-5, relu), IMAGE, scale, bias)
    exact = dml.mean_variance_normalization1(
        IMAGE, scale, bias, axes=[2, 3], normalize_variance=True, epsilon=1e-5, fused_activation=RELU
    )
    np.testing.assert_array_equal(result, exact)


@pytest.mark.parametrize("mean", [False, True])
def test_mean_variance_normalization_of_directml_has_the_mean_before_epsilon(mean: bool) -> None:
    build = directml.mean_variance_normalization
    (result,) = run(directml, lambda x: build(x, None, None, [2, 3], True, mean, 1e-5), IMAGE)
    exact = dml.mean_variance_normalization2(
        IMAGE, axes=[2, 3], use_mean=mean, use_variance=True, epsilon=1e-5
    )
    np.testing.assert_array_equal(result, exact)


def test_average_pooling_has_dilations_before_the_padding_in_directml_only() -> None:
    arguments = ([2, 2], [3, 2], [1, 0], [0, 1])
    options: Any = dict(
        zip(["strides", "window_size", "start_padding", "end_padding"], arguments, strict=True)
    )
    (result,) = run(pydirectml, lambda x: pydirectml.average_pooling(x, *arguments, True), IMAGE)
    np.testing.assert_array_equal(result, dml.average_pooling(IMAGE, **options, include_padding=True))
    (result,) = run(directml, lambda x: directml.average_pooling(x, *arguments, [2, 1], False), IMAGE)
    exact = dml.average_pooling1(IMAGE, **options, dilations=[2, 1], include_padding=False)
    np.testing.assert_array_equal(result, exact)


def test_softmax() -> None:
    rows = random(3, 5)
    (result,) = run(pydirectml, pydirectml.activation_soft_max, rows)
    np.testing.assert_array_equal(result, dml.activation_softmax(rows))
    results = run(
        directml,
        lambda x: [
            directml.activation_softmax(x),
            directml.activation_softmax(x, [0]),
            directml.activation_gelu(x),
        ],
        rows,
    )
    np.testing.assert_array_equal(results[0], dml.activation_softmax(rows))
    np.testing.assert_array_equal(results[1], dml.activation_softmax1(rows, axes=[0]))
    np.testing.assert_array_equal(results[2], dml.activation_gelu(rows))


@BOTH
def test_gemm(module: Any) -> None:
    a, b, c = random(1, 1, 3, 4), random(1, 1, 5, 4), random(1, 1, 3, 5)
    transposed = module.MatrixTransform.TRANSPOSE
    (result,) = run(
        module, lambda x, y, z: module.gemm(x, y, z, trans_b=transposed, alpha=0.5, beta=2.0), a, b, c
    )
    np.testing.assert_allclose(result, 0.5 * a @ b.swapaxes(2, 3) + 2 * c, rtol=1e-5, atol=1e-6)


@BOTH
def test_max_pooling_gives_indices_when_asked(module: Any) -> None:
    def build(x: Any) -> Any:
        both = module.max_pooling(x, [2, 2], strides=[2, 2], output_indices=True)
        alone = module.max_pooling(x, window_sizes=[3, 2], start_padding=[1, 0], dilations=[1, 2])
        if module is pydirectml:
            with pytest.raises(dml.InvalidArgument, match="empty"):
                alone.indices.get_output_desc()
        else:
            assert alone.indices is None
        return [both.values, both.indices, alone.values]

    results = run(module, build, IMAGE)
    pooled = dml.max_pooling2(IMAGE, window_size=[2, 2], strides=[2, 2], output_indices=True)
    np.testing.assert_array_equal(results[0], pooled.output)
    np.testing.assert_array_equal(results[1], pooled.output_indices)
    assert results[1].dtype == np.uint32
    exact = dml.max_pooling2(IMAGE, window_size=[3, 2], start_padding=[1, 0], dilations=[1, 2])
    np.testing.assert_array_equal(results[2], exact)


@BOTH
def test_reinterpreted_tensors_are_the_same_bytes(module: Any) -> None:
    types = module.TensorDataType

    def build(x: Any) -> Any:
        doubled = x * 2.0
        repeated = module.reinterpret(
            module.slice(x, [0, 0, 0, 0], [1, 1, 1, 5], [1] * 4), types.FLOAT32, [3, 5], [0, 1]
        )
        return [
            module.reinterpret(doubled, types.FLOAT32, [8, 30], None),
            module.activation_relu(module.reinterpret(x, types.FLOAT32, [30, 8], [1, 30])),
            repeated,
            module.reinterpret(x, types.INT32, [240], None),
        ]

    results = run(module, build, IMAGE)
    np.testing.assert_array_equal(results[0], 2 * IMAGE.reshape(8, 30))
    np.testing.assert_array_equal(results[1], np.maximum(IMAGE.reshape(8, 30).T, 0))
    np.testing.assert_array_equal(results[2], np.tile(IMAGE[0, 0, 0], (3, 1)))
    np.testing.assert_array_equal(results[3], IMAGE.reshape(-1).view(np.int32))


@BOTH
def test_reinterpreting_needs_the_same_number_of_bytes(module: Any) -> None:
    with pytest.raises(dml.InvalidArgument, match=r"reinterpret: \[241\] of FLOAT32; 964 bytes, but .* 960"):
        run(module, lambda x: module.reinterpret(x, module.TensorDataType.FLOAT32, [241], None), IMAGE)


@BOTH
def test_join_and_gather(module: Any) -> None:
    indices = np.array([[[[2, 0]]]], np.uint32)
    results = run(
        module,
        lambda x, y: [module.join([x, x * 2.0], 1), module.gather(x, y, 3, 1)],
        IMAGE,
        indices,
    )
    np.testing.assert_array_equal(results[0], np.concatenate([IMAGE, 2 * IMAGE], 1))
    np.testing.assert_array_equal(results[1], dml.gather(IMAGE, indices, axis=3, index_dimensions=1))


@BOTH
@pytest.mark.parametrize("option", ["Both", "Sequence", "Single"])
def test_gru(module: Any, option: str) -> None:
    x, w, r = random(1, 3, 2, 4), random(1, 1, 15, 4), random(1, 1, 15, 5)
    types, forward = module.OperatorType, module.RecurrentNetworkDirection.FORWARD
    activations = [
        module.FusedActivation(types.ACTIVATION_SIGMOID),
        module.FusedActivation(types.ACTIVATION_TANH),
    ]

    def build(*tensors: Any) -> Any:
        outputs = module.gru(
            *tensors,
            activation_descs=activations,
            direction=forward,
            output_options=module.OutputOptions[option],
        )
        return [
            each
            for name, each in (("Sequence", outputs.sequence), ("Single", outputs.single))
            if option in (name, "Both")
        ]

    results = run(module, build, x, w, r)
    exact = dml.gru(
        x,
        w,
        r,
        activation_descs=[dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()],
        direction="FORWARD",
        linear_before_reset=True,
        output_sequence=True,
        output_single=True,
    )
    wanted = [
        each for name, each in zip(("Sequence", "Single"), exact, strict=True) if option in (name, "Both")
    ]
    for result, each in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(result, each)


@BOTH
def test_expressions_with_expressions_and_numbers(module: Any) -> None:
    a, b = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2), np.full((1, 1, 2, 2), 2.5, np.float32)

    def build(x: Any, y: Any) -> Any:
        z = x * 1.0
        z += y
        z -= 1
        z *= y
        z /= 2.0
        z %= y
        return [
            x + y,
            x - y,
            x * y,
            x / y,
            x % y,
            x + 1,
            x - 1.5,
            x * 2,
            x / 2,
            1 + x,
            1 - x,
            3.0 * x,
            3 / x,
            -x,
            z,
        ]

    results = run(module, build, a, b)
    z = ((a + b - 1) * b / 2) % b
    exact = [
        a + b,
        a - b,
        a * b,
        a / b,
        a % b,
        a + 1,
        a - 1.5,
        a * 2,
        a / 2,
        1 + a,
        1 - a,
        3 * a,
        3 / a,
        -a,
        z,
    ]
    for result, each in zip(results, exact, strict=True):
        np.testing.assert_allclose(result, each, rtol=1e-6)


@BOTH
def test_a_remainder_has_the_sign_of_the_divisor_as_in_python(module: Any) -> None:
    a, b = np.array([-7, -1, 1, 7], np.int32), np.full(4, 5, np.int32)
    (result,) = run(module, lambda x, y: x % y, a, b)
    np.testing.assert_array_equal(result, a % b)


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
def test_other_operands_are_type_errors(module: Any) -> None:
    def build(x: Any) -> Any:
        for wrong in ("1", None, [1]):
            with pytest.raises(TypeError):
                x + wrong
            with pytest.raises(TypeError):
                wrong / x
            with pytest.raises(TypeError):
                x *= wrong
        with pytest.raises(TypeError):
            x % 2.0
        with pytest.raises(dml.InvalidArgument, match="divided by the number 0"):
            x / 0
        return x

    run(module, build, SMALL)


@BOTH
def test_values_of_another_enumeration_are_type_errors(module: Any) -> None:
    def build(x: Any, f: Any) -> Any:
        with pytest.raises(
            TypeError, match=r"convolution\.mode: OperatorType\.CONVOLUTION; a ConvolutionMode"
        ):
            module.convolution(x, f, mode=module.OperatorType.CONVOLUTION)
        with pytest.raises(TypeError, match=r"gemm\.trans_a: int\.1; a MatrixTransform"):
            module.gemm(x, f, trans_a=1)
        return x

    run(module, build, IMAGE, FILTER)


@BOTH
def test_sizes_that_do_not_fit_are_named(module: Any) -> None:
    problem = {pydirectml: r"element_wise_add\.b: sizes", directml: r"element_wise_add: .* shapes differ"}
    with pytest.raises(dml.InvalidArgument, match=problem[module]):
        run(module, lambda x, y: x + y, IMAGE, SMALL)


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
