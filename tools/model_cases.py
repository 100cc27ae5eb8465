"""Parts of networks, as graphs of public operators with constant weights, for the table of kernels.

They show what single operators do not: copies and conversions between layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import opendml as dml
from opendml.program.program import Program
from opendml.runtime.graphs.tensor import GraphTensor

Build = Callable[["Network"], GraphTensor]
FLOATS = ("float32", "float16")
BYTES = ("uint8", "int8")


@dataclass(frozen=True, eq=False)
class ModelCase:
    """A part of a network whose input has a type."""

    name: str
    dtype: str
    build: Build

    @property
    def type(self) -> str:
        """Return DirectML's name of the type."""
        return self.dtype.upper()

    @property
    def program(self) -> Program:
        """Return the program that a device compiles for the graph."""
        network = Network(self.dtype)
        return network.program(self.build(network))


class Network:
    """A graph of layers whose weights are constants of one type; all weights are zero."""

    def __init__(self, dtype: str) -> None:
        self.graph, self.dtype = dml.Graph(), dtype

    def input(self, *sizes: int) -> GraphTensor:
        """Add the input of the network."""
        return self.graph.input("x", self.dtype.upper(), sizes)

    def weights(self, *sizes: int, dtype: str = "") -> GraphTensor:
        """Add a constant."""
        return self.graph.constant(np.zeros(sizes, dtype or self.dtype))

    def program(self, result: GraphTensor) -> Program:
        """Return the program that a device compiles for the graph up to a result."""
        return self.graph.compile({"out": result}, "reference")._program

    def convolution(
        self, x: GraphTensor, outputs: int, side: int, stride: int = 1, *, depthwise: bool = False
    ) -> GraphTensor:
        """Add a convolution with a bias."""
        channels = x.sizes[1]
        filters = self.weights(outputs, 1 if depthwise else channels, side, side)
        return convolved(x, filters, self.weights(1, outputs, 1, 1), stride, depthwise=depthwise)

    def linear(self, x: GraphTensor, outputs: int) -> GraphTensor:
        """Add a product with a matrix of weights, transposed as networks store them, and a bias."""
        product = dml.gemm(x, self.weights(1, 1, outputs, x.sizes[-1]), trans_b="TRANSPOSE")
        return product + self.weights(1, 1, 1, outputs)

    def normalized(self, x: GraphTensor) -> GraphTensor:
        """Add a normalization of tokens."""
        scale, bias = (self.weights(1, 1, 1, x.sizes[-1]) for _ in range(2))
        return dml.mean_variance_normalization1(x, scale, bias, axes=[3])


def convolved(
    x: GraphTensor, filters: GraphTensor, bias: Any, stride: int = 1, *, depthwise: bool = False
) -> GraphTensor:
    """Add a convolution that is padded by half its window."""
    margin = [filters.sizes[-1] // 2] * 2
    result: GraphTensor = dml.convolution(
        x,
        filters,
        bias,
        strides=[stride] * 2,
        start_padding=margin,
        end_padding=margin,
        group_count=x.sizes[1] if depthwise else 1,
    )
    return result


def model_cases() -> Iterator[ModelCase]:
    """Yield all parts of networks, in each type."""
    for dtype in FLOATS:
        for batch in (1, 32):
            yield ModelCase(f"ResNet-50's stem, batch {batch}", dtype, _stem(batch))
            yield ModelCase(
                f"ResNet-50's first stage, batch {batch}", dtype, _bottlenecks(batch, 64, 56, 64, 1)
            )
            yield ModelCase(
                f"ResNet-50's third stage, batch {batch}", dtype, _bottlenecks(batch, 512, 28, 256, 2)
            )
            yield ModelCase(f"MobileNetV2's blocks of 24 channels, batch {batch}", dtype, _inverted(batch))
        for batch, tokens in ((1, 128), (32, 128)):
            yield ModelCase(f"BERT-base's layer, {batch}x{tokens}", dtype, _transformer(batch, tokens))
        yield ModelCase("BERT-base's layer of products, 8x128", dtype, _transformer_of_products(8, 128))
        yield ModelCase("GPT-2's token after 512", dtype, _token(512))
        yield ModelCase("a product of activated rows, 512x3072x768", dtype, _activated_product)
        yield ModelCase("a product with dequantized weights, 512x3072x768", dtype, _dequantized_product(512))
        yield ModelCase("a product with dequantized weights, 1x3072x768", dtype, _dequantized_product(1))
    for dtype in BYTES:
        yield ModelCase("convolutions between quantizations, batch 8", dtype, _quantized_convolutions)
        yield ModelCase("products between quantizations, 512x3072x768", dtype, _quantized_products)


def _stem(batch: int) -> Build:
    def build(network: Network) -> GraphTensor:
        x = dml.activation_relu(network.convolution(network.input(batch, 3, 224, 224), 64, 7, 2))
        window: dict[str, Any] = {"window_size": [3, 3], "strides": [2, 2]}
        pooled: GraphTensor = dml.max_pooling(x, **window, start_padding=[1, 1], end_padding=[1, 1])
        return pooled

    return build


def _bottlenecks(batch: int, channels: int, size: int, narrow: int, stride: int) -> Build:
    """Return two blocks, of which the first one changes sizes."""

    def build(network: Network) -> GraphTensor:
        x, wide = network.input(batch, channels, size, size), 4 * narrow
        for step in (stride, 1):
            y = dml.activation_relu(network.convolution(x, narrow, 1))
            y = dml.activation_relu(network.convolution(y, narrow, 3, step))
            y = network.convolution(y, wide, 1)
            other = network.convolution(x, wide, 1, step) if x.sizes[1] != wide else x
            x = dml.activation_relu(y + other)
        return x

    return build


def _inverted(batch: int) -> Build:
    """Return a block and the beginning of the next one."""

    def build(network: Network) -> GraphTensor:
        x = network.input(batch, 24, 56, 56)
        for outputs, stride in ((24, 1), (32, 2)):
            y = _relu6(network.convolution(x, 144, 1))
            y = _relu6(network.convolution(y, 144, 3, stride, depthwise=True))
            y = network.convolution(y, outputs, 1)
            x = y + x if y.sizes == x.sizes else y
        return x

    return build


def _relu6(x: GraphTensor) -> GraphTensor:
    result: GraphTensor = dml.element_wise_clip(x, min=0.0, max=6.0)
    return result


HEADS, WIDTH = 12, 768


def _transformer(batch: int, tokens: int) -> Build:
    """Return a layer of an encoder, by the operator for attention."""

    def build(network: Network) -> GraphTensor:
        x = network.input(1, 1, batch * tokens, WIDTH)
        q, k, v = (network.linear(x, WIDTH).reshape([batch, tokens, WIDTH]) for _ in range(3))
        attended = dml.multihead_attention(
            q, k, v, scale=(WIDTH // HEADS) ** -0.5, head_count=HEADS, mask_type="NONE"
        )
        return _rest(network, x, attended.reshape(x.sizes))

    return build


def _rest(network: Network, x: GraphTensor, attended: GraphTensor) -> GraphTensor:
    """Return the layer behind its attention."""
    x = network.normalized(network.linear(attended, WIDTH) + x)
    wide = dml.activation_gelu(network.linear(x, 4 * WIDTH))
    return network.normalized(network.linear(wide, WIDTH) + x)


def _transformer_of_products(batch: int, tokens: int) -> Build:
    """Return the layer as importers make it: attention of products, a mask and a softmax."""

    def build(network: Network) -> GraphTensor:
        x = network.input(1, 1, batch * tokens, WIDTH)
        q, k, v = (_by_heads(network.linear(x, WIDTH), batch, tokens) for _ in range(3))
        scores = dml.gemm(q, k, trans_b="TRANSPOSE", alpha=(WIDTH // HEADS) ** -0.5)
        weights = dml.activation_softmax1(scores + network.weights(batch, 1, 1, tokens), axes=[3])
        attended = dml.gemm(weights, v).transpose(0, 2, 1, 3).reshape(x.sizes)
        return _rest(network, x, attended)

    return build


def _by_heads(x: GraphTensor, batch: int, tokens: int) -> GraphTensor:
    return x.reshape([batch, tokens, HEADS, WIDTH // HEADS]).transpose(0, 2, 1, 3)


def _token(past: int) -> Build:
    """Return the layer of a decoder for one token, with keys and values of those before."""

    def build(network: Network) -> GraphTensor:
        x = network.input(1, 1, 1, WIDTH)
        normal = network.normalized(x)
        q, k, v = (network.linear(normal, WIDTH).reshape([1, 1, WIDTH]) for _ in range(3))
        type, sizes = network.dtype.upper(), (1, HEADS, past, WIDTH // HEADS)
        keys, values = (network.graph.input(name, type, sizes) for name in ("keys", "values"))
        attended = dml.multihead_attention(
            q,
            k,
            v,
            past_key=keys,
            past_value=values,
            scale=(WIDTH // HEADS) ** -0.5,
            head_count=HEADS,
            mask_type="NONE",
        )
        x = network.linear(attended.reshape(x.sizes), WIDTH) + x
        wide = dml.activation_gelu(network.linear(network.normalized(x), 4 * WIDTH))
        return network.linear(wide, WIDTH) + x

    return build


def _activated_product(network: Network) -> GraphTensor:
    return network.linear(dml.activation_relu(network.input(1, 1, 512, WIDTH)), 4 * WIDTH)


def _dequantized_product(rows: int) -> Build:
    """Return a product with weights of 8 bits, with a scale for each row."""

    def build(network: Network) -> GraphTensor:
        x = network.input(1, 1, rows, WIDTH)
        weights = network.weights(1, 1, 4 * WIDTH, WIDTH, dtype="int8")
        scales = network.weights(1, 1, 4 * WIDTH, 1)
        wide = dml.element_wise_dequantize_linear(
            weights, scales, network.weights(1, 1, 4 * WIDTH, 1, dtype="int8")
        )
        result: GraphTensor = dml.gemm(x, wide, trans_b="TRANSPOSE")
        return result

    return build


def _dequantized(x: GraphTensor, network: Network, zero_sizes: Sequence[int] = (1, 1, 1, 1)) -> GraphTensor:
    type = x.data_type.name.lower()
    scale, zero = network.weights(*zero_sizes, dtype="float32"), network.weights(*zero_sizes, dtype=type)
    result: GraphTensor = dml.element_wise_dequantize_linear(x, scale, zero)
    return result


def _quantized(x: GraphTensor, network: Network) -> GraphTensor:
    scale, zero = network.weights(1, 1, 1, 1, dtype="float32"), network.weights(1, 1, 1, 1)
    result: GraphTensor = dml.element_wise_quantize_linear(x, scale, zero, output_type=zero.data_type)
    return result


def _quantized_convolutions(network: Network) -> GraphTensor:
    """Return two layers as exporters quantize them: every tensor is quantized, and dequantized where it is
    read."""
    x = network.input(8, 64, 56, 56)
    for side in (3, 1):
        filters = _dequantized(network.weights(64, 64, side, side, dtype="int8"), network, (64, 1, 1, 1))
        bias = network.weights(1, 64, 1, 1, dtype="float32")
        y = dml.activation_relu(convolved(_dequantized(x, network), filters, bias))
        x = _quantized(y, network)
    return x


def _quantized_products(network: Network) -> GraphTensor:
    x = network.input(1, 1, 512, WIDTH)
    for outputs in (4 * WIDTH, WIDTH):
        weights = network.weights(1, 1, outputs, x.sizes[-1], dtype="int8")
        wide = _dequantized(weights, network, (1, 1, outputs, 1))
        y = dml.gemm(_dequantized(x, network), wide, trans_b="TRANSPOSE")
        x = _quantized(y + network.weights(1, 1, 1, outputs, dtype="float32"), network)
    return x
