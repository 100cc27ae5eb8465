"""Products of matrices and layers of networks, said in the way of each contender. Libraries are imported
late: their threads are limited before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import opendml as dml

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[], Any]

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
    """One computation; the first contender is opendml."""

    name: str
    operations: int
    contenders: dict[str, Callable[[], Run]]
    """What makes their runs, or raises ImportError."""


def cases(threads: int) -> Iterator[Case]:
    """All products and layers."""
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
    for layer in LAYERS:
        arrays = [
            _random(1, layer.channels, layer.size, layer.size),
            _random(*layer.filter_sizes),
            _random(layer.filters),
        ]
        attributes = {
            "strides": [layer.stride] * 2,
            "pads": [layer.margin] * 4,
            "group": layer.groups,
        }
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


def _random(*sizes: int) -> Array:
    return np.random.default_rng(len(sizes)).standard_normal(sizes, np.float32)


def _opendml_product(a: Array, b: Array, threads: int) -> Run:
    graph = dml.Graph()
    left, right = (
        graph.input(name, dml.FLOAT32, list(each.shape)) for name, each in zip("ab", (a, b), strict=True)
    )
    return _opendml(graph, dml.gemm(left, right), {"a": a, "b": b}, threads)


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
    return _opendml(graph, result, {"x": x}, threads)


def _opendml(graph: dml.Graph, result: dml.GraphTensor, inputs: dict[str, Array], threads: int) -> Run:
    out = np.empty(result.sizes, np.float32)
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


def _onnx_model(operator: str, inputs: list[Array], attributes: dict[str, Any], fed: int) -> bytes:
    """A model of one operator, and ReLU behind a convolution; inputs behind the first `fed` are constant."""
    from onnx import TensorProto, helper, numpy_helper

    names = [f"x{index}" for index in range(len(inputs))]
    nodes = [helper.make_node(operator, names, ["y"], **attributes)]
    if operator == "Conv":
        nodes.append(helper.make_node("Relu", ["y"], ["z"]))
    graph = helper.make_graph(
        nodes,
        operator,
        [helper.make_tensor_value_info(names[i], TensorProto.FLOAT, inputs[i].shape) for i in range(fed)],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(inputs[i], names[i]) for i in range(fed, len(inputs))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _onnxruntime(
    operator: str, inputs: list[Array], attributes: dict[str, Any], fed: int, threads: int
) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    model = _onnx_model(operator, inputs, attributes, fed)
    session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    feed = {f"x{index}": inputs[index] for index in range(fed)}
    return lambda: session.run(None, feed)[0]


def _openvino(operator: str, inputs: list[Array], attributes: dict[str, Any], fed: int, threads: int) -> Run:
    import openvino

    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": str(threads),
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = openvino.Core()
    model = core.read_model(_onnx_model(operator, inputs, attributes, fed))
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    feed = {f"x{index}": inputs[index] for index in range(fed)}
    return lambda: request.infer(feed, share_inputs=True, share_outputs=True)[0]
