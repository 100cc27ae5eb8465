"""Models with named dimensions on a CUDA device, against exact graphs on the CPU; skipped where no device
is."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opendml as dml
from tests.plans import plans_of
from tests.runtime.test_random_plans import FEATURES, PARTS

pytestmark = pytest.mark.usefixtures("gpu")

Array = np.ndarray[Any, Any]
SIZES = ((2, 3), (3, 2), (5, 5), (4, 7), (9, 40), (12, 33), (8, 64), (1, 6), (6, 1), (9, 40), (16, 48))
"""Pairs of a batch and a length, one of them twice."""
WIDTH, HEADS = 128, 2


def values(*sizes: int, type: Any = np.float32) -> Array:
    return np.random.default_rng(sizes).standard_normal(sizes).astype(type)


def random_graph(seed: int, batch: Any, length: Any) -> tuple[dml.Graph, dml.GraphTensor]:
    """Return the graph of a seed, with sizes or names of dimensions."""
    chance = random.Random(seed)
    graph = dml.Graph()
    y = graph.input("x", dml.FLOAT32, [batch, length, FEATURES])
    for part in chance.sample(PARTS, 4):
        y = part(y, chance)
    return graph, y


def layer(batch: Any, length: Any, type: dml.TensorDataType) -> tuple[dml.Graph, dml.GraphTensor]:
    """Return a transformer layer, with sizes or names of dimensions."""
    graph = dml.Graph()
    x = graph.input("x", type, [batch, length, WIDTH])
    numpy = x.dtype

    def product(y: dml.GraphTensor, columns: int) -> dml.GraphTensor:
        rows = y.sizes[-1]
        weights: Array = (values(rows, columns) / rows**0.5).astype(numpy)
        return y @ weights

    def heads(y: dml.GraphTensor) -> dml.GraphTensor:
        return y.reshape(*x.sizes[:2], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    normal = dml.mean_variance_normalization1(x, axes=[2], normalize_variance=True)
    q, k, v = (heads(product(normal, WIDTH)) for _ in range(3))
    scores = (q @ k.permute(0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5
    read = (dml.activation_softmax1(scores, axes=[3]) @ v).permute(0, 2, 1, 3).reshape(*x.sizes)
    between = x + product(read, WIDTH)
    return graph, between + product(dml.activation_gelu(product(between, 4 * WIDTH)), WIDTH)


@pytest.mark.parametrize("seed", range(12))
def test_plans_of_random_graphs_give_what_exact_graphs_give(seed: int) -> None:
    graph, y = random_graph(seed, "batch", "length")
    model = graph.compile({"y": y}, "cuda")
    for batch, length in SIZES:
        x = values(batch, length, FEATURES)
        exact, wanted = random_graph(seed, batch, length)
        expected = exact.compile({"y": wanted}, "cpu")(x=x)["y"]
        bound = 3e-4 * np.abs(expected).max()
        np.testing.assert_allclose(
            model(x=x)["y"], expected, rtol=3e-4, atol=bound, err_msg=f"{batch, length}"
        )


@pytest.mark.parametrize(("type", "bound"), [(dml.FLOAT32, 2e-4), (dml.FLOAT16, 2e-2)])
def test_plans_of_a_transformer_layer_give_what_exact_graphs_give(
    type: dml.TensorDataType, bound: float
) -> None:
    graph, y = layer("batch", "length", type)
    model = graph.compile({"y": y}, "cuda")
    for batch, length in (*SIZES, (2, 128), (3, 200), (2, 255), (4, 512), (2, 131)):
        x = values(batch, length, WIDTH, type=y.dtype)
        exact, wanted = layer(batch, length, dml.FLOAT32)
        expected = exact.compile({"y": wanted}, "cpu")(x=x.astype(np.float32))["y"]
        found = model(x=x)["y"].astype(np.float32)
        limit = bound * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=limit, err_msg=f"{batch, length}")
    assert plans_of(model)


def test_pictures_of_any_size_and_threads_share_plans() -> None:
    filters = values(16, 8, 3, 3) / 8

    def build(batch: Any, height: Any, width: Any) -> tuple[dml.Graph, dml.GraphTensor]:
        graph = dml.Graph()
        x = graph.input("x", dml.FLOAT32, [batch, 8, height, width])
        options = {"strides": [1, 1], "start_padding": [1, 1], "end_padding": [1, 1]}
        y = dml.convolution(x, filters, **options, fused_activation=dml.descs.ActivationRelu())
        return graph, dml.max_pooling2(y, window_size=[2, 2], strides=[2, 2])

    graph, y = build("batch", "height", "width")
    model = graph.compile({"y": y}, "cuda")

    def check(sizes: tuple[int, int, int]) -> None:
        batch, height, width = sizes
        x = values(batch, 8, height, width)
        exact, wanted = build(*sizes)
        expected = exact.compile({"y": wanted}, "cpu")(x=x)["y"]
        np.testing.assert_allclose(model(x=x)["y"], expected, rtol=1e-4, atol=1e-3, err_msg=str(sizes))

    every = [(2, 32, 32), (3, 31, 40), (5, 17, 33), (2, 64, 48), (7, 20, 20), (1, 32, 32), (2, 33, 47)]
    for sizes in every:
        check(sizes)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, every * 3))
