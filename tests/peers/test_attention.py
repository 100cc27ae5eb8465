"""Multi-head attention against PyTorch and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from opendml.runtime.memory.host_array import Array
from tests.tolerances import assert_within

from .onnx_peer import onnx_results
from .peer import DEVICES, Random, exact, examples, seeds

every_device = pytest.mark.parametrize("device", DEVICES)


def _by_head(torch: Any, x: Array, heads: int) -> Any:
    """(batch, sequence, hidden) as (batch, heads, sequence, size), in float64."""
    batch, length, _ = x.shape
    return torch.from_numpy(exact(x).reshape(batch, length, heads, -1).transpose(0, 2, 1, 3).copy())


@every_device
@pytest.mark.parametrize("masked", [False, True])
@given(random=seeds)
@examples
def test_attention_is_that_of_pytorch(masked: bool, device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch, queries, keys, size, shared = (int(each) for each in random.generator.integers(1, 7, 5))
    groups = int(random.generator.integers(1, 4))
    heads = groups * shared

    def tensor(length: int, count: int) -> Array:
        return random.values(np.dtype("float32"), (batch, length, count * size), -2, 2, special=False)

    query, key, value = tensor(queries, heads), tensor(keys, shared), tensor(keys, shared)
    added = random.values(np.dtype("float32"), (batch, heads, queries, keys), -3, 3, special=False)
    scale = 1 / size**0.5
    mask: Array | None = None
    allowed = exact(added)
    if masked:
        mask = random.generator.integers(0, 2, (batch, 1, queries, keys)).astype(np.int32)
        mask[..., 0] = 1
        allowed = np.where(mask, allowed, -np.inf)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(_by_head(torch, each, count) for each, count in ((query, heads), (key, shared), (value, shared))),
        attn_mask=torch.from_numpy(allowed),
        scale=float(np.float32(scale)),
        enable_gqa=True,
    )
    result = dml.multihead_attention1(
        query,
        key,
        value,
        mask=None if mask is None else np.broadcast_to(mask, added.shape).copy(),
        relative_position_bias=added,
        scale=scale,
        mask_filter_value=-1e9,
        query_head_count=heads,
        key_value_head_count=shared,
        mask_type="BOOLEAN" if masked else "NONE",
        device=device,
    )
    assert isinstance(result, np.ndarray)
    expected = wanted.numpy().transpose(0, 2, 1, 3).reshape(result.shape)
    assert_within("MULTIHEAD_ATTENTION1", result, expected)


@every_device
@given(random=seeds)
@examples
def test_attention_with_a_past_is_that_of_onnx_runtime_and_pytorch(device: str, random: Random) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    batch, heads, past = (int(each) for each in random.generator.integers(1, 5, 3))
    # Many queries are computed otherwise. Here ONNX Runtime has as many new keys as queries.
    new, size = int(random.generator.choice([1, 3, 20])), 4 * int(random.generator.integers(1, 4))
    f32 = np.dtype("float32")
    given_ = [random.values(f32, (batch, new, heads * size), -2, 2, special=False) for _ in range(3)]
    pasts = [random.values(f32, (batch, heads, past, size), -2, 2, special=False) for _ in range(2)]
    added = random.values(f32, (batch, heads, new, past + new), -3, 3, special=False)
    bias = random.values(f32, (3 * heads * size,), -1, 1, special=False)
    scale = float(np.float32(1 / size**0.5))
    found = dml.multihead_attention(
        *given_,
        bias=bias,
        relative_position_bias=added,
        past_key=pasts[0],
        past_value=pasts[1],
        scale=scale,
        head_count=heads,
        mask_type="NONE",
        output_present_key=True,
        output_present_value=True,
        device=device,
    )
    expected = onnx_results(
        "runtime",
        "MultiHeadAttention",
        [*given_, bias, None, added, *pasts],
        ["float32"] * 3,
        domain="com.microsoft",
        num_heads=heads,
        scale=scale,
    )
    for result, wanted in zip(found, expected, strict=True):
        assert_within("MULTIHEAD_ATTENTION", result, wanted, peer=True)

    biased = [each + part for each, part in zip(given_, np.split(bias, 3), strict=True)]
    q, k, v = (_by_head(torch, each, heads) for each in biased)
    keys, values = (
        torch.cat([torch.from_numpy(exact(old)), each], 2) for old, each in zip(pasts, (k, v), strict=True)
    )
    wanted = torch.nn.functional.scaled_dot_product_attention(
        q, keys, values, attn_mask=torch.from_numpy(exact(added)), scale=scale
    )
    by_query = wanted.numpy().transpose(0, 2, 1, 3).reshape(found[0].shape)
    for result, own in zip(found, (by_query, keys.numpy(), values.numpy()), strict=True):
        assert_within("MULTIHEAD_ATTENTION", result, own)
