"""A transformer block and a sampler, as programs of `directml` write them for diffusion models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from opendml import directml

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def device() -> Any:
    return directml.Device(use_gpu=False)


def random(*sizes: int) -> Any:
    return (np.random.default_rng(sum(sizes)).standard_normal(sizes) / 2).astype(np.float32)


def close(result: Any, exact: Any, tolerance: float = 1e-4) -> None:
    np.testing.assert_allclose(result, exact.detach().numpy(), rtol=tolerance, atol=tolerance)


def tensor(array: Any) -> Any:
    return torch.from_numpy(array)


class Layers:
    """Layers of a diffusion model, which see tensors through strides."""

    def __init__(self, device: Any, dtype: Any = np.float32) -> None:
        self.graph, self.dtype = directml.Graph(device), dtype

    def constant(self, array: Any, sizes: Any = None) -> Any:
        return self.graph.constant(array, self.dtype, sizes=sizes)

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        wide = directml.broadcast(self.constant(bias), [*x.shape[:-1], weight.shape[0]])
        weights = self.constant(weight, [1, 1, *weight.shape])
        weights = directml.broadcast(weights, [x.shape[0], 1, *weight.shape])
        return directml.gemm(x, weights, wide, trans_b=directml.MatrixTransform.TRANSPOSE)

    def scaled(self, x: Any, weight: Any, bias: Any, sizes: list[int]) -> Any:
        scale, shift = (directml.broadcast(self.constant(each, sizes), x.shape) for each in (weight, bias))
        return x * scale + shift

    def group_norm(self, x: Any, weight: Any, bias: Any, groups: int) -> Any:
        n, c, h, w = x.shape
        grouped = directml.reinterpret(x, [n, groups, c // groups, h * w])
        normal = directml.mean_variance_normalization(grouped, axes=[2, 3], epsilon=1e-6)
        return self.scaled(directml.reinterpret(normal, x.shape), weight, bias, [1, c, 1, 1])

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        normal = directml.mean_variance_normalization(x, axes=[3])
        return self.scaled(normal, weight, bias, [1, 1, 1, x.shape[3]])

    def tokens(self, x: Any) -> Any:
        n, c, h, w = x.shape
        return directml.reinterpret(x, [n, 1, h * w, c], [c * h * w, c * h * w, 1, h * w])

    def image(self, x: Any, height: int, width: int) -> Any:
        n, _, tokens, c = x.shape
        return directml.reinterpret(x, [n, c, height, width], [c * tokens, 1, width * c, c])

    def heads(self, x: Any, count: int) -> Any:
        n, _, tokens, c = x.shape
        size = c // count
        return directml.reinterpret(x, [n, count, tokens, size], [tokens * c, size, c, 1])

    def joined(self, x: Any) -> Any:
        n, count, tokens, size = x.shape
        turned = directml.reinterpret(
            x, [n, tokens, count, size], [count * tokens * size, size, tokens * size, 1]
        )
        return directml.reinterpret(directml.activation_identity(turned), [n, 1, tokens, count * size])

    def attended(self, query: Any, key: Any, value: Any, count: int) -> Any:
        query, key, value = (self.heads(each, count) for each in (query, key, value))
        scores = directml.gemm(
            query, key, trans_b=directml.MatrixTransform.TRANSPOSE, alpha=1 / math.sqrt(query.shape[3])
        )
        return self.joined(directml.gemm(directml.activation_softmax(scores, axes=[3]), value))


@pytest.mark.parametrize("fused", [False, True], ids=["three operators", "one operator"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float16, 1e-2)])
def test_a_transformer_block_over_an_image(fused: bool, dtype: Any, tolerance: float, device: Any) -> None:
    layers = Layers(device, dtype)
    sizes, channels, heads = (2, 8, 3, 4), 8, 2
    norm, inner = (random(8) + 1, random(8)), (random(8) / 4 + 0.5, random(8) / 4)
    matrices, rows = [random(8, 8 + index)[:, :8].copy() for index in range(4)], [random(8) for _ in range(4)]

    x = layers.graph.input(sizes, dtype)
    y = layers.group_norm(x, *norm, groups=4)
    y = directml.multiply(y, directml.activation_sigmoid(y))
    tokens = directml.activation_identity(layers.tokens(y))
    normal = layers.layer_norm(tokens, *inner)
    query, key, value = (layers.linear(normal, *each) for each in zip(matrices[:3], rows[:3], strict=True))
    if fused:
        scale = 1 / math.sqrt(channels // heads)
        mixed = directml.multihead_attention(query, key, value, head_count=heads, scale=scale)
    else:
        mixed = layers.attended(query, key, value, heads)
    mixed = layers.linear(mixed, matrices[3], rows[3])
    op = layers.graph.compile([layers.image(directml.add(tokens, mixed), 3, 4) + x])

    image = random(*sizes)
    given = tensor(image)
    y = torch.nn.functional.group_norm(given, 4, *map(tensor, norm), eps=1e-6)
    plain = torch.nn.functional.silu(y).reshape(2, 8, 12).swapaxes(1, 2)
    normal = torch.nn.functional.layer_norm(plain, (8,), *map(tensor, inner))
    query, key, value = (
        (normal @ tensor(m).T + tensor(r)).reshape(2, 12, heads, -1).swapaxes(1, 2)
        for m, r in zip(matrices[:3], rows[:3], strict=True)
    )
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    mixed = mixed.swapaxes(1, 2).reshape(2, 12, 8) @ tensor(matrices[3]).T + tensor(rows[3])
    exact = (plain + mixed).swapaxes(1, 2).reshape(sizes) + given
    (result,) = op({x: image})
    assert result.dtype == dtype
    close(result, exact, tolerance)


def test_a_graph_computes_in_the_type_that_it_is_given(device: Any) -> None:
    a, b = np.arange(1, 13).reshape(3, 4) / 7, np.arange(1, 21).reshape(4, 5) / 7
    for dtype, tolerance in ((np.float32, 1e-6), (directml.TensorDataType.FLOAT16, 1e-3)):
        graph = directml.Graph(device)
        left, right = graph.input([1, 1, 3, 4], dtype), graph.input([1, 1, 4, 5], dtype)
        (result,) = graph.compile([directml.gemm(left, right)])({left: a, right: b})
        assert result.dtype == left.dtype
        np.testing.assert_allclose(result[0, 0], a @ b, rtol=tolerance)


def test_steps_of_a_sampler_stay_on_the_device(device: Any) -> None:
    """The output of each step is the next one's input, without copies to arrays between."""
    graph = directml.Graph(device)
    x, sigma = (
        graph.input([1, 4, 8, 8], np.float16, name="latent"),
        graph.input([1], np.float16, name="sigma"),
    )
    step = directml.broadcast(directml.reinterpret(sigma, [1, 1, 1, 1]), x.shape)
    op = graph.compile([x - x * step])
    latent = exact = random(1, 4, 8, 8).astype(np.float16)
    held: Any = directml.Buffer(device, latent)
    for rate in (0.5, 0.25, 0.125):
        (held,) = op({"latent": held, "sigma": np.float16([rate])}, readback=False)
        exact = exact - exact * np.float16(rate)
    np.testing.assert_allclose(held.numpy(), exact, rtol=2e-3, atol=1e-3)
