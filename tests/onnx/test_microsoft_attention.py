"""Attention of ONNX Runtime's own domain, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    feed,
    one_node,
    run_by_onnxruntime,
)

_DOMAIN = "com.microsoft"
_BATCH, _LENGTH, _HEADS, _SIZE = 2, 3, 2, 4
_WIDTH = _HEADS * _SIZE


def _array(*sizes: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *sizes]).standard_normal(sizes).astype(np.float32)


def _check(
    operator: str, inputs: list[Array | None], *, atol: float = 2e-5, outputs: int = 1, **options: Any
) -> None:
    while inputs[-1] is None:
        inputs.pop()
    model = one_node(operator, inputs, outputs, opset=21, domain=_DOMAIN, **options)
    given = feed(inputs, options.get("known", ()))
    assert_as_onnxruntime(model, given, atol=atol)


def _masks(columns: int) -> dict[str, Array | None]:
    random = np.random.default_rng(columns)
    full = random.integers(0, 2, (_BATCH, _LENGTH, columns)).astype(np.int32)
    full[:, :, 0] = 1
    return {
        "none": None,
        "ends": np.array([columns, columns - 1], np.int32),
        "ends and starts": np.array([columns, columns - 1, 1, 0], np.int32),
        "keys": full[:, 0],
        "queries and keys": full,
    }


_ALL = ["none", "ends", "ends and starts", "keys", "queries and keys"]


@pytest.mark.parametrize("mask", _ALL)
@pytest.mark.parametrize(("past", "unidirectional"), [(0, 0), (0, 1), (2, 1)])
def test_attention_projects_and_remembers(mask: str, past: int, unidirectional: int) -> None:
    columns = past + _LENGTH
    inputs = [
        _array(_BATCH, _LENGTH, 5),
        _array(5, 3 * _WIDTH, seed=1),
        _array(3 * _WIDTH, seed=2),
        _masks(columns)[mask],
        _array(2, _BATCH, _HEADS, past, _SIZE, seed=3) if past else None,
        _array(_BATCH, _HEADS, _LENGTH, columns, seed=4) if mask == "keys" and not past else None,
    ]
    attributes = {"num_heads": _HEADS, "unidirectional": unidirectional}
    _check("Attention", inputs, outputs=2 if past else 1, **attributes)


def test_attention_with_values_of_another_size_and_a_scale() -> None:
    inputs = [_array(_BATCH, _LENGTH, 5), _array(5, 8 + 8 + 12, seed=1), _array(28, seed=2)]
    _check("Attention", list(inputs), num_heads=2, qkv_hidden_sizes=[8, 8, 12], scale=0.3)


@pytest.mark.parametrize("columns", [1, 3 * _WIDTH])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_quantized_attention(columns: int, unidirectional: int) -> None:
    random = np.random.default_rng(1)
    scale = np.full(columns, 0.01, np.float32)
    inputs = [
        random.integers(0, 256, (_BATCH, _LENGTH, 5)).astype(np.uint8),
        random.integers(-128, 128, (5, 3 * _WIDTH)).astype(np.int8),
        _array(3 * _WIDTH, seed=2),
        np.array(0.02, np.float32),
        scale if columns > 1 else scale.reshape(()),
        None,
        np.array(120, np.uint8),
        np.zeros(columns, np.int8) if columns > 1 else np.array(3, np.int8),
    ]
    _check("QAttention", list(inputs), num_heads=_HEADS, unidirectional=unidirectional, known=[1, 4, 7])


@pytest.mark.parametrize("mask", ["none", "ends", "keys", "queries and keys"])
@pytest.mark.parametrize(("past", "bias"), [(0, True), (2, False)])
def test_multi_head_attention(mask: str, past: int, bias: bool) -> None:
    columns = past + _LENGTH
    inputs = [
        *(_array(_BATCH, _LENGTH, _WIDTH, seed=seed) for seed in range(3)),
        _array(3 * _WIDTH, seed=3) if bias else None,
        _masks(columns)[mask],
        _array(1, _HEADS, _LENGTH, columns, seed=4) if mask == "none" else None,
        *(_array(_BATCH, _HEADS, past, _SIZE, seed=seed) if past else None for seed in (5, 6)),
    ]
    _check("MultiHeadAttention", inputs, outputs=3, num_heads=_HEADS, unidirectional=int(bias))


def test_multi_head_attention_of_other_keys_and_values() -> None:
    query, keys = _array(_BATCH, _LENGTH, _WIDTH), _array(_BATCH, 5, _WIDTH, seed=1)
    values = _array(_BATCH, 5, 6, seed=2)
    _check("MultiHeadAttention", [query, keys, values, _array(22, seed=3)], num_heads=_HEADS)
    made = [_array(_BATCH, _HEADS, 5, _SIZE, seed=seed) for seed in (1, 2)]
    _check("MultiHeadAttention", [query, *made], num_heads=_HEADS, scale=0.3)


def test_multi_head_attention_of_stacked_tensors_is_that_of_their_parts() -> None:
    stacked = _array(_BATCH, _LENGTH, _HEADS, 3, _SIZE)
    apart: list[Array | None] = [
        np.ascontiguousarray(stacked[:, :, :, i]).reshape(_BATCH, _LENGTH, _WIDTH) for i in range(3)
    ]
    expected = run_by_onnxruntime(
        one_node("MultiHeadAttention", apart, opset=21, domain=_DOMAIN, num_heads=_HEADS), feed(apart)
    )
    for inputs in ([stacked], [apart[0], np.ascontiguousarray(stacked[:, :, :, 1:])]):
        model = one_node("MultiHeadAttention", inputs, domain=_DOMAIN, num_heads=_HEADS)
        assert_same(computed(model, feed(inputs)), expected, atol=2e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", ["one", "all"])
@pytest.mark.parametrize("layout", ["3 dimensions", "4 dimensions", "a part"])
def test_rotary_embedding(layout: str, positions: str, interleaved: int) -> None:
    size, turned = 8, 4 if layout == "a part" else 8
    x = (
        _array(_BATCH, _HEADS, _LENGTH, size)
        if layout == "4 dimensions"
        else _array(_BATCH, _LENGTH, 2 * size)
    )
    tables = [_array(9, turned // 2, seed=seed) for seed in (1, 2)]
    places = np.array([4], np.int64) if positions == "one" else np.array([[0, 2, 1], [8, 7, 3]], np.int64)
    attributes = {"num_heads": _HEADS, "rotary_embedding_dim": 4} if layout == "a part" else {}
    _check("RotaryEmbedding", [x, places, *tables], interleaved=interleaved, **attributes)


def _grouped(
    length: int, past: int, total: int, ends: list[int], packed: bool = False, rotary: bool = False
) -> list[Array | None]:
    """Inputs of GroupQueryAttention for 4 heads of queries over 2 of keys and values, of 16 elements."""
    batch = len(ends)
    if packed:
        given: list[Array | None] = [_array(batch, length, 128), None, None]
    else:
        given = [_array(batch, length, 64), *(_array(batch, length, 32, seed=seed) for seed in (1, 2))]
    states = [_array(batch, 2, past, 16, seed=seed) if past else None for seed in (3, 4)]
    tables = [_array(16, 8, seed=seed) for seed in (5, 6)] if rotary else [None, None]
    return [*given, *states, np.array(ends, np.int32), np.array(total, np.int32), *tables]


@pytest.mark.parametrize(("packed", "rotary"), [(True, True), (False, False)])
@pytest.mark.parametrize(
    ("length", "past", "total", "ends"),
    [(5, 0, 5, [4, 4]), (1, 5, 6, [5, 5]), (1, 5, 6, [5, 3]), (3, 4, 7, [6])],
)
def test_group_query_attention(
    length: int, past: int, total: int, ends: list[int], packed: bool, rotary: bool
) -> None:
    inputs = _grouped(length, past, total, ends, packed, rotary)
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary)}
    model = one_node("GroupQueryAttention", inputs, 3, opset=21, domain=_DOMAIN, **attributes)
    output, *states = computed(model, feed(inputs))
    expected, *wanted = run_by_onnxruntime(model, feed(inputs))
    assert_same([output], [expected], atol=2e-5)
    for state, want in zip(states, wanted, strict=True):
        assert state.shape == want.shape
        for row, end in enumerate(ends):  # what is behind the end of a row is not defined
            assert_same([state[row, :, : end + 1]], [want[row, :, : end + 1]], atol=2e-5)


@pytest.mark.parametrize(
    "attributes",
    [
        {"softcap": 2.0},
        {"local_window_size": 2},
        {"scale": 0.3},
        {"rotary_interleaved": 1, "do_rotary": 1},
    ],
)
def test_group_query_attention_with_attributes(attributes: dict[str, Any]) -> None:
    inputs = _grouped(5, 0, 5, [4, 4], rotary="do_rotary" in attributes)
    _check("GroupQueryAttention", inputs, outputs=3, num_heads=4, kv_num_heads=2, **attributes)


def test_group_query_attention_with_a_bias() -> None:
    inputs = [*_grouped(5, 0, 5, [4, 4]), None, _array(2, 4, 5, 5, seed=9)]
    _check("GroupQueryAttention", inputs, outputs=3, num_heads=4, kv_num_heads=2)
