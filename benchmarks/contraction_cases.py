"""Products of matrices and layers of networks, said in the way of each contender. Libraries are imported
late: their threads are limited before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import opendml as dml
from benchmarks.sessions import onnxruntime_session, openvino_request

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[], Any]
_FLOATS = np.dtype(np.float32)

PRODUCTS = [
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (128, 768, 768),
    (128, 768, 3072),
    (1, 4096, 4096),
    (4096, 64, 64),
    (50176, 64, 147),
]
"""m, n, k."""
INTEGER_PRODUCTS = [(512, 512, 512), (1024, 1024, 1024), (128, 768, 768), (50176, 64, 147)]
"""m, n, k of products of UINT8 and INT8."""


@dataclass(frozen=True)
class Layer:
    """A convolution of one picture, padded by half its window, with bias and ReLU. A `depthwise` one has a
    window for each channel."""

    channels: int
    size: int
    """Height and width."""
    filters: int
    window: int = 1
    stride: int = 1
    depthwise: bool = False

    @property
    def margin(self) -> int:
        return self.window // 2

    @property
    def groups(self) -> int:
        return self.channels if self.depthwise else 1

    @property
    def filter_sizes(self) -> tuple[int, int, int, int]:
        return self.filters, self.channels // self.groups, self.window, self.window

    @property
    def operations(self) -> int:
        """A multiply-add being two."""
        edge = (self.size + 2 * self.margin - self.window) // self.stride + 1
        return 2 * self.filters * self.channels // self.groups * self.window**2 * edge**2

    def __str__(self) -> str:
        kind = "depthwise" if self.depthwise else str(self.filters)
        name = f"{self.channels} x {self.size} x {self.size}, {kind} of {self.window} x {self.window}"
        return f"{name}, stride {self.stride}" if self.stride > 1 else name


def _bottlenecks(channels: int, size: int, narrow: int, stride: int) -> list[Layer]:
    """The distinct layers of one stage of ResNet-50."""
    wide, after = 4 * narrow, size // stride
    first = [
        Layer(channels, size, narrow),
        Layer(narrow, size, narrow, 3, stride),
        Layer(narrow, after, wide),
        Layer(channels, size, wide, 1, stride),
    ]
    return [*first, Layer(wide, after, narrow), Layer(narrow, after, narrow, 3)]


def _inverted(channels: int, size: int, filters: int, stride: int) -> list[Layer]:
    """The layers of one block of MobileNetV2."""
    wide = 6 * channels
    return [
        Layer(channels, size, wide),
        Layer(wide, size, wide, 3, stride, depthwise=True),
        Layer(wide, size // stride, filters),
    ]


RESNET_50 = [
    Layer(3, 224, 64, 7, 2),
    *_bottlenecks(64, 56, 64, 1),
    *_bottlenecks(256, 56, 128, 2),
    *_bottlenecks(512, 28, 256, 2),
    *_bottlenecks(1024, 14, 512, 2),
]
MOBILENET_V2 = [
    Layer(3, 224, 32, 3, 2),
    Layer(32, 112, 32, 3, depthwise=True),
    Layer(32, 112, 16),
    *_inverted(16, 112, 24, 2),
    *_inverted(24, 56, 24, 1),
    *_inverted(24, 56, 32, 2),
    *_inverted(32, 28, 32, 1),
    *_inverted(32, 28, 64, 2),
    *_inverted(64, 14, 64, 1),
    *_inverted(64, 14, 96, 1),
    *_inverted(96, 14, 96, 1),
    *_inverted(96, 14, 160, 2),
    *_inverted(160, 7, 160, 1),
    *_inverted(160, 7, 320, 1),
    Layer(320, 7, 1280),
]
LAYERS = list(dict.fromkeys([*RESNET_50, *MOBILENET_V2]))
"""The distinct ones of both networks."""


@dataclass(frozen=True)
class Case:
    """One computation; the first contender is opendml. Others whose names begin so are not its peers."""

    name: str
    operations: int
    contenders: dict[str, Callable[[], Run]]
    """What makes their runs, or raises ImportError."""


def cases(threads: int) -> Iterator[Case]:
    """All products and layers, of floats, then of integers."""
    yield from _products(threads)
    yield from _layers(threads)
    yield from _integer_products(threads)
    yield from _integer_layers(threads)


def _products(threads: int) -> Iterator[Case]:
    for m, n, k in PRODUCTS:
        a, b = _random(m, k), _random(k, n)
        yield Case(
            f"{m} x {n} x {k}",
            2 * m * n * k,
            {
                "opendml": partial(_opendml_product, a, b, threads),
                "numpy": partial(_numpy_product, a, b),
                "torch": partial(_torch_product, a, b),
                "onnxruntime": partial(_onnxruntime, "MatMul", [a, b], {}, 2, threads),
                "openvino": partial(_openvino, "MatMul", [a, b], {}, 2, threads),
            },
        )


def _layers(threads: int) -> Iterator[Case]:
    for layer in LAYERS:
        arrays = [
            _random(1, layer.channels, layer.size, layer.size),
            _random(*layer.filter_sizes),
            _random(layer.filters),
        ]
        attributes = _onnx_attributes(layer)
        yield Case(
            str(layer),
            layer.operations,
            {
                "opendml": partial(_opendml_layer, layer, arrays, threads),
                "torch": partial(_torch_layer, layer, arrays),
                "onnxruntime": partial(_onnxruntime, "Conv", arrays, attributes, 1, threads),
                "openvino": partial(_openvino, "Conv", arrays, attributes, 1, threads),
            },
        )


def _onnx_attributes(layer: Layer) -> dict[str, Any]:
    return {"strides": [layer.stride] * 2, "pads": [layer.margin] * 4, "group": layer.groups}


def _integer_products(threads: int) -> Iterator[Case]:
    """Of matrices with a zero point each, beside the same products in FLOAT32."""
    for m, n, k in INTEGER_PRODUCTS:
        a, b = _integers(np.uint8, m, k), _integers(np.int8, k, n)
        zeros = [np.array(128, np.uint8), np.array(3, np.int8)]
        rows, columns = (
            each.astype(np.float32) - np.float32(zero) for each, zero in zip((a, b), zeros, strict=True)
        )
        yield Case(
            f"{m} x {n} x {k} of integers",
            2 * m * n * k,
            {
                "opendml": partial(_opendml_integers, a, b, zeros, threads),
                "opendml float32": partial(_opendml_product, rows, columns, threads),
                "onnxruntime": partial(
                    _onnxruntime, "MatMulInteger", [a, b, *zeros], {}, 2, threads, np.dtype(np.int32)
                ),
            },
        )


def _integer_layers(threads: int) -> Iterator[Case]:
    """The layers of ResNet-50, quantized: a scale for each filter, and a bias."""
    for layer in dict.fromkeys(RESNET_50):
        x = _integers(np.uint8, 1, layer.channels, layer.size, layer.size)
        filters = _integers(np.int8, *layer.filter_sizes)
        scales = np.linspace(0.001, 0.01, layer.filters, dtype=np.float32)
        bias = np.arange(layer.filters, dtype=np.int32)
        given: list[Array] = [
            x,
            np.array(0.02, np.float32),
            np.array(128, np.uint8),
            filters,
            scales,
            np.zeros(layer.filters, np.int8),
            np.array(0.5, np.float32),
            np.array(120, np.uint8),
            bias,
        ]
        yield Case(
            f"{layer} of integers",
            layer.operations,
            {
                "opendml": partial(_opendml_integer_layer, layer, given, threads),
                "onnxruntime": partial(
                    _onnxruntime,
                    "QLinearConv",
                    given,
                    _onnx_attributes(layer),
                    1,
                    threads,
                    np.dtype(np.uint8),
                ),
            },
        )


def _integers(type: Any, *sizes: int) -> Array:
    limits = np.iinfo(type)
    return np.random.default_rng(len(sizes)).integers(limits.min, limits.max, sizes, type, endpoint=True)


def _random(*sizes: int) -> Array:
    return np.random.default_rng(len(sizes)).standard_normal(sizes, np.float32)


def _opendml_product(a: Array, b: Array, threads: int) -> Run:
    graph = dml.Graph()
    left, right = (
        graph.input(name, dml.FLOAT32, list(each.shape)) for name, each in zip("ab", (a, b), strict=True)
    )
    return bound(graph, dml.gemm(left, right), {"a": a, "b": b}, threads)


def _opendml_layer(layer: Layer, arrays: list[Array], threads: int) -> Run:
    x, filters, bias = arrays
    graph = dml.Graph()
    result = dml.convolution(
        graph.input("x", dml.FLOAT32, list(x.shape)),
        graph.constant(filters),
        graph.constant(bias.reshape(1, -1, 1, 1)),
        strides=[layer.stride] * 2,
        start_padding=[layer.margin] * 2,
        end_padding=[layer.margin] * 2,
        group_count=layer.groups,
        fused_activation=dml.descs.ActivationRelu(),
    )
    return bound(graph, result, {"x": x}, threads)


def _opendml_integers(a: Array, b: Array, zeros: list[Array], threads: int) -> Run:
    graph = dml.Graph()
    left, right = graph.input("a", dml.UINT8, list(a.shape)), graph.input("b", dml.INT8, list(b.shape))
    a_zero, b_zero = (graph.constant(zero.reshape(1, 1)) for zero in zeros)
    result = dml.matrix_multiply_integer(left, a_zero, right, b_zero)
    return bound(graph, result, {"a": a, "b": b}, threads, np.int32)


def _opendml_integer_layer(layer: Layer, given: list[Array], threads: int) -> Run:
    x, *others = given
    graph = dml.Graph()
    scale, zero, filters, filter_scale, filter_zero, out_scale, out_zero, bias = (
        graph.constant(each if each.ndim == 4 else each.reshape(1, -1, 1, 1)) for each in others
    )
    result = dml.quantized_linear_convolution(
        graph.input("x", dml.UINT8, list(x.shape)),
        scale,
        zero,
        filters,
        filter_scale,
        filter_zero,
        bias,
        out_scale,
        out_zero,
        strides=[layer.stride] * 2,
        start_padding=[layer.margin] * 2,
        end_padding=[layer.margin] * 2,
        group_count=layer.groups,
    )
    return bound(graph, result, {"x": x}, threads, np.uint8)


def bound(
    graph: dml.Graph,
    result: dml.GraphTensor,
    inputs: dict[str, Array],
    threads: int,
    type: Any = np.float32,
) -> Run:
    """A run of opendml: the graph over given arrays, into one of the type."""
    out = np.empty(result.sizes, type)
    model = graph.compile({"out": result}, device=dml.Device("cpu", threads=threads))
    dispatch = model.bind(inputs, {"out": out}).dispatch

    def run() -> Array:
        dispatch()
        return out

    return run


def _numpy_product(a: Array, b: Array) -> Run:
    return partial(np.matmul, a, b, out=np.empty((a.shape[0], b.shape[1]), np.float32))


def _torch_product(a: Array, b: Array) -> Run:
    import torch

    left, right = torch.from_numpy(a), torch.from_numpy(b)
    return partial(torch.mm, left, right, out=torch.empty(a.shape[0], b.shape[1]))


def _torch_layer(layer: Layer, arrays: list[Array]) -> Run:
    import torch

    x, filters, bias = (torch.from_numpy(each) for each in arrays)
    convolved = torch.nn.functional.conv2d
    return lambda: torch.relu_(convolved(x, filters, bias, layer.stride, layer.margin, 1, layer.groups))


def _onnx_model(
    operator: str,
    inputs: list[Array],
    attributes: dict[str, Any],
    fed: int,
    result: np.dtype[Any] = _FLOATS,
) -> bytes:
    """A model of one operator, and ReLU behind a convolution; inputs behind the first `fed` are constant."""
    from onnx import helper, numpy_helper

    def info(name: str, type: np.dtype[Any], sizes: tuple[int, ...] | None) -> Any:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(type), sizes)

    names = [f"x{index}" for index in range(len(inputs))]
    nodes = [helper.make_node(operator, names, ["y"], **attributes)]
    if operator == "Conv":
        nodes.append(helper.make_node("Relu", ["y"], ["z"]))
    graph = helper.make_graph(
        nodes,
        operator,
        [info(names[i], inputs[i].dtype, inputs[i].shape) for i in range(fed)],
        [info(nodes[-1].output[0], result, None)],
        [numpy_helper.from_array(inputs[i], names[i]) for i in range(fed, len(inputs))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _onnxruntime(
    operator: str,
    inputs: list[Array],
    attributes: dict[str, Any],
    fed: int,
    threads: int,
    result: np.dtype[Any] = _FLOATS,
) -> Run:
    session = onnxruntime_session(_onnx_model(operator, inputs, attributes, fed, result), threads)
    feed = {f"x{index}": inputs[index] for index in range(fed)}
    return lambda: session.run(None, feed)[0]


def _openvino(operator: str, inputs: list[Array], attributes: dict[str, Any], fed: int, threads: int) -> Run:
    request = openvino_request(_onnx_model(operator, inputs, attributes, fed), threads)
    feed = {f"x{index}": inputs[index] for index in range(fed)}
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)[0]
