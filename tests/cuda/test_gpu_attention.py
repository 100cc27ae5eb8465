"""Attention of FLOAT16 on a CUDA device, from public operators, against float64; skipped where no device
is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import opendml as dml

pytestmark = pytest.mark.usefixtures("gpu")

Array = np.ndarray[Any, Any]
BOUND = 1
"""The bound that the operator's page promises, in steps of 2^-10 at the greatest magnitude of the results."""
SIZES = (
    (1, 2, 2, 200, 300, 64),
    (2, 4, 2, 129, 257, 64),
    (2, 3, 3, 17, 1, 64),
    (1, 2, 1, 1000, 130, 128),
    (3, 2, 2, 16, 77, 40),
    (1, 2, 2, 300, 200, 8),
    (1, 2, 2, 150, 333, 192),
    (1, 2, 1, 140, 200, 256),
    (1, 8, 2, 1, 5000, 128),
    (2, 3, 3, 1, 3000, 64),
    (1, 4, 4, 5, 2000, 192),
    (2, 8, 2, 4, 3000, 128),
    (1, 32, 1, 1, 9000, 64),
)
"""Batches, heads, those of keys, queries, keys, and elements of a head."""


def drawn(*sizes: int, deviation: float = 1.0, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *sizes)).normal(scale=deviation, size=sizes).astype(np.float16)


def operands(sizes: tuple[int, ...], deviation: float = 1.0) -> dict[str, Array]:
    """Return queries, keys and values, each (batch, heads, length, elements)."""
    batch, heads, shared, queries, keys, size = sizes
    return {
        "q": drawn(batch, heads, queries, size, deviation=deviation, seed=1),
        "k": drawn(batch, shared, keys, size, deviation=deviation, seed=2),
        "v": drawn(batch, shared, keys, size, seed=3),
    }


def exact(given: Mapping[str, Array], added: Array | float = 0.0) -> Array:
    """Return the results in float64; NaN for queries that see no key."""
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    k, v = (np.repeat(each, q.shape[1] // k.shape[1], axis=1) for each in (k, v))
    with np.errstate(invalid="ignore"):
        scores = q @ k.swapaxes(2, 3) * q.shape[3] ** -0.5 + added
        weights = np.exp(scores - scores.max(axis=3, keepdims=True))
        result: Array = weights / weights.sum(axis=3, keepdims=True) @ v
    return result


def flat(tensor: Array) -> Array:
    batch, heads, length, size = tensor.shape
    return np.ascontiguousarray(tensor.swapaxes(1, 2)).reshape(batch, length, heads * size)


def operator(given: Mapping[str, Array], **options: Any) -> Array:
    """Return MULTIHEAD_ATTENTION1 on the device."""
    heads, shared = given["q"].shape[1], given["k"].shape[1]
    result = dml.multihead_attention1(
        *(flat(given[name]) for name in "qkv"),
        **{"mask_type": "NONE", **options},
        scale=given["q"].shape[3] ** -0.5,
        query_head_count=heads,
        key_value_head_count=shared,
        device="cuda",
    )
    batch, length, _ = result.shape
    return np.asarray(result).reshape(batch, length, heads, -1).swapaxes(1, 2)


def require_near(found: Array, wanted: Array) -> None:
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    there = ~np.isnan(wanted)
    error = np.abs(found.astype(np.float64) - wanted)[there].max()
    # Half a step is the rounding of the result.
    assert error <= (BOUND + 0.5) * 2**-10 * np.abs(wanted[there]).max()


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_results_are_those_of_float64(sizes: tuple[int, ...]) -> None:
    given = operands(sizes)
    require_near(operator(given), exact(given))


def test_large_scores_choose_one_key_each() -> None:
    given = operands((1, 2, 2, 200, 300, 64), deviation=30.0)
    require_near(operator(given), exact(given))


@pytest.mark.parametrize("sizes", [(2, 4, 4, 150, 200, 64), (2, 4, 4, 1, 3000, 64)], ids=str)
def test_masks_and_biases_are_added(sizes: tuple[int, ...]) -> None:
    given = operands(sizes)
    batch, heads, _, queries, keys, _ = sizes
    bias = drawn(1, heads, queries, keys)
    require_near(operator(given, relative_position_bias=bias), exact(given, bias.astype(np.float64)))
    mask = np.random.default_rng(1).integers(0, 2, (batch, 1, queries, keys)).astype(np.int32)
    mask[1, :, :, 100:] = 0
    found = operator(given, mask=mask, mask_type="BOOLEAN", mask_filter_value=-math.inf)
    require_near(found, exact(given, np.where(mask, 0.0, -math.inf)))


def test_a_query_that_sees_no_key_gives_nan() -> None:
    given = operands((2, 2, 2, 150, 200, 64))
    mask = np.ones((1, 1, 150, 1), np.int32)
    mask[0, 0, 7] = 0
    found = operator(given, mask=np.repeat(mask, 200, 3), mask_type="BOOLEAN", mask_filter_value=-math.inf)
    assert np.isnan(found[:, :, 7]).all()
    assert np.isfinite(np.delete(found, 7, axis=2)).all()


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 2, 300, 300, 64),
        (1, 2, 2, 5, 2000, 64),
        (2, 3, 3, 150, 700, 64),
        (1, 2, 2, 400, 150, 64),
        (1, 2, 2, 513, 513, 128),
    ],
    ids=str,
)
@pytest.mark.parametrize("filter_value", [-math.inf, -9.0])
def test_a_causal_graph_computes_what_its_operators_say(sizes: tuple[int, ...], filter_value: float) -> None:
    """Products, a fill of diagonals and a softmax; of more queries than keys the first see none."""
    given = operands(sizes)
    _, _, _, queries, keys, size = sizes
    graph = dml.Graph()
    q, k, v = (graph.input(name, dml.FLOAT16, given[name].shape) for name in "qkv")
    wide = [dml.cast(each, output_type=dml.FLOAT32) for each in (q, k, v)]
    scores = dml.gemm(*wide[:2], trans_b="TRANSPOSE", alpha=size**-0.5)
    first = keys - queries + 1
    scores = dml.diagonal_matrix1(
        scores, value=filter_value, diagonal_fill_begin=first, diagonal_fill_end=keys
    )
    weights = dml.activation_softmax1(scores, axes=[3])
    result = dml.cast(dml.gemm(weights, wide[2]), output_type=dml.FLOAT16)
    model = graph.compile({"result": result}, device="cuda")
    found = np.asarray(model(**given)["result"])
    hidden = np.arange(keys) - np.arange(queries)[:, None] >= first
    q64, k64, v64 = (given[name].astype(np.float64) for name in "qkv")
    with np.errstate(invalid="ignore"):
        exact_scores = np.where(hidden, filter_value, q64 @ k64.swapaxes(2, 3) * size**-0.5)
        weights64 = np.exp(exact_scores - exact_scores.max(axis=3, keepdims=True))
        require_near(found, weights64 / weights64.sum(axis=3, keepdims=True) @ v64)


@pytest.mark.parametrize("sizes", [(8, 12, 12, 520, 520, 64), (2, 8, 2, 1, 9000, 128)], ids=str)
def test_results_have_the_same_bits_in_every_run(sizes: tuple[int, ...]) -> None:
    given = operands(sizes)
    first = operator(given)
    for _ in range(5):
        np.testing.assert_array_equal(operator(given).view(np.uint16), first.view(np.uint16))
