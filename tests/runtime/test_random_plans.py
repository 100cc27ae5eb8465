"""Random graphs with named dimensions, at several sizes: their plans against exact compilations."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import opendml as dml
from tests.plans import Array, check_words, exactly, plans_of

FEATURES = 24
SIZES = ((2, 3), (3, 2), (5, 5), (4, 7), (1, 6), (6, 1), (FEATURES, FEATURES), (9, 40), (12, 33))
"""Pairs of a batch and a length: also equal ones, and those of constants of the graphs."""


def weights(chance: random.Random, *sizes: int) -> Array:
    generator = np.random.default_rng(chance.randrange(2**32))
    return generator.standard_normal(sizes, np.float32) / np.float32(FEATURES**0.5)


def product(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    return x @ weights(chance, FEATURES, FEATURES) + weights(chance, FEATURES)


def attention(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    scores = x @ x.permute(0, 2, 1)
    return dml.activation_softmax1(scores * 0.2, axes=[2]) @ x


def normalized(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    return dml.mean_variance_normalization1(x, axes=[2], normalize_variance=True)


def shifted(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    """Join a tensor with its first rows reversed, and leave the first rows out."""
    return dml.join([x, x[:, ::-1]], axis=1)[:, x.sizes[1] :] * x


def averaged(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    """Subtract the mean over a changing dimension, which is divided by a size."""
    axis = chance.choice([0, 1])
    return x - dml.reduce(x, function=dml.ReduceFunction.AVERAGE, axes=[axis])


def flattened(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    batch, length, features = x.sizes
    rows = x.reshape(batch * length, features)
    return dml.activation_tanh(rows).reshape(batch, length, features)


def padded(x: dml.GraphTensor, chance: random.Random) -> dml.GraphTensor:
    made = dml.padding(x, start_padding=[0, 1, 0], end_padding=[0, 2, 0], padding_mode="CONSTANT")
    return made[:, 1:-2] + x


PARTS: tuple[Callable[[dml.GraphTensor, random.Random], dml.GraphTensor], ...] = (
    product,
    attention,
    normalized,
    shifted,
    averaged,
    flattened,
    padded,
    lambda x, chance: dml.activation_gelu(x),
    lambda x, chance: x.permute(0, 2, 1).reinterpret(x.sizes) + x,
)


@pytest.mark.parametrize("seed", range(6))
def test_plans_of_random_graphs_are_exact(seed: int) -> None:
    chance = random.Random(seed)
    graph = dml.Graph()
    y = graph.input("x", dml.FLOAT32, ["batch", "length", FEATURES])
    for part in chance.sample(PARTS, 4):
        y = part(y, chance)
    model = graph.compile({"y": y})
    for sizes in chance.sample(SIZES, 4):
        given = weights(chance, *sizes, FEATURES)
        wanted = exactly(model, {"x": given})["y"]
        np.testing.assert_allclose(model(given)["y"], wanted, atol=2e-5, rtol=2e-5, err_msg=str(sizes))
        batch, length = sizes
        assert check_words(model, batch=batch, length=length), sizes
    assert len(plans_of(model)) <= 8
