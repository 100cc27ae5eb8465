"""Attention and RotaryEmbedding of ONNX's own domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.attention_modes import planned_modes
from tests.onnx.models import Array, assert_same, computed, evaluated, feed, numbers, one_node

_MASKS = {
    "none": None,
    "floats": numbers([3, 5]),
    "truth": numbers([2, 1, 3, 5]) > -0.5,
    "heads": numbers([4, 3, 5]),
    "short": numbers([3, 4]),
    "nothing": np.array([[True] * 5, [False] * 5, [True] * 5]),
}


def _check(inputs: list[Array | None], outputs: int = 1, opset: int = 24, **options: Any) -> None:
    model = one_node("Attention", inputs, outputs=outputs, opset=opset, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)), 1e-4)


def _four() -> list[Array | None]:
    """Four heads of three queries, two of five keys and values."""
    return [numbers([2, 4, 3, 6]), numbers([2, 2, 5, 6]), numbers([2, 2, 5, 7])]


@pytest.mark.parametrize("mask", list(_MASKS))
@pytest.mark.parametrize("causal", [0, 1])
def test_masks_hide_keys(mask: str, causal: int) -> None:
    _check([*_four(), _MASKS[mask]], is_causal=causal)


def test_scores_are_seen_before_the_cap() -> None:
    inputs = _four()
    query, keys = numbers([2, 4, 3, 6]), np.repeat(numbers([2, 2, 5, 6]), 2, 1)
    model = one_node("Attention", inputs, outputs=4, opset=24, softcap=0.7, scale=0.5)
    wanted = query @ keys.transpose(0, 1, 3, 2) * np.float32(0.5)
    assert_same(computed(model, feed(inputs))[3:], [wanted], 1e-4)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_scores_are_seen_at_each_stage(mode: int) -> None:
    inputs = [*_four(), _MASKS["truth"]]
    model = one_node("Attention", inputs, outputs=4, opset=24, softcap=0.7, qk_matmul_output_mode=mode)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)), 1e-4)


@pytest.mark.parametrize("causal", [0, 1])
def test_past_keys_come_first(causal: int) -> None:
    inputs = [*_four(), None, numbers([2, 2, 3, 6], seed=1), numbers([2, 2, 3, 7], seed=1)]
    _check(inputs, outputs=3, is_causal=causal, scale=0.3)


@pytest.mark.parametrize("causal", [0, 1])
def test_lengths_hide_the_keys_behind_them(causal: int) -> None:
    inputs = [*_four(), None, None, None, np.array([5, 2], np.int64)]
    _check(inputs, is_causal=causal)


def test_queries_have_heads_side_by_side() -> None:
    inputs: list[Array | None] = [numbers([2, 3, 24]), numbers([2, 5, 12]), numbers([2, 5, 14])]
    _check(inputs, outputs=3, q_num_heads=4, kv_num_heads=2)


@pytest.mark.parametrize(("left", "right"), [(1, -1), (-1, 1), (1, 0)])
def test_windows_bound_what_is_seen(left: int, right: int) -> None:
    _check(_four(), opset=25, left_window_size=left, right_window_size=right)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4])
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("by_heads", [False, True])
def test_pairs_are_turned_by_their_positions(
    interleaved: int, turned: int, placed: bool, by_heads: bool
) -> None:
    sizes, half = ([2, 3, 5, 6] if by_heads else [2, 5, 18]), (turned or 6) // 2
    caches = [8, half] if placed else [2, 5, half]
    inputs: list[Array | None] = [numbers(sizes), numbers(caches, seed=1), numbers(caches, seed=2)]
    inputs += [np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]], np.int64)] if placed else []
    options = {"interleaved": interleaved, "rotary_embedding_dim": turned}
    options |= {} if by_heads else {"num_heads": 3}
    model = one_node("RotaryEmbedding", inputs, opset=23, **options)
    assert_same(computed(model, feed(inputs)), evaluated(model, feed(inputs)))


@pytest.mark.parametrize("case", ["plain", "causal", "shared", "causal and shared", "masked", "longer"])
def test_attention_of_float16_is_one_product_for_warpgroups(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = 2 if "shared" in case else 4
    keys = 56 if case == "longer" else 40
    sizes = ([2, 4, 40, 64], [2, shared, keys, 64], [2, shared, keys, 64])
    inputs: list[Array | None] = [numbers(each).astype(np.float16) for each in sizes]
    if case == "masked":
        inputs.append(numbers([40, 40]).astype(np.float16))
    options = {"is_causal": 1} if "causal" in case else {}
    model = one_node("Attention", inputs, outputs=1, opset=24, **options)
    with planned_modes(monkeypatch) as modes:
        found = computed(model, feed(inputs))
    assert [mode for mode in modes if mode != "resident"] == ["wgmma_chain"]
    # The evaluator rounds scores and weights to FLOAT16.
    for result, expected in zip(found, evaluated(model, feed(inputs)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)
