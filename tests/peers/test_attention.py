"""Multi-head attention against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import opendml as dml
from opendml.runtime.memory.host_array import Array

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
    np.testing.assert_allclose(result, expected, rtol=4e-6, atol=4e-6)
