"""Multi-head attention against its formula in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import MultiheadAttentionMaskType as MaskType
from tests.peers.peer import examples
from tests.running import device_kinds, on_arrays
from tests.tolerances import assert_within

every_device = pytest.mark.parametrize("device", device_kinds())
FILTER = -50.0
NAMES = (
    "query_tensor",
    "key_tensor",
    "value_tensor",
    "stacked_query_key_tensor",
    "stacked_key_value_tensor",
    "stacked_query_key_value_tensor",
    "bias_tensor",
    "mask_tensor",
    "relative_position_bias_tensor",
    "past_key_tensor",
    "past_value_tensor",
    "past_sequence_lengths_tensor",
)


class Sizes(NamedTuple):
    """The sizes of a call."""

    batch: int = 2
    queries: int = 3
    new: int = 5
    past: int = 0
    heads: int = 4
    shared: int = 2
    size: int = 6
    value: int = 4

    @property
    def total(self) -> int:
        return self.new + self.past

    def tensors(self, seed: int, dtype: Any = np.float32) -> dict[str, Array]:
        """Query, key and value, and the past where there is one."""
        generator = np.random.default_rng(seed)

        def made(*shape: int) -> Array:
            return generator.uniform(-1, 1, shape).astype(dtype)

        result = {
            "query_tensor": made(self.batch, self.queries, self.heads * self.size),
            "key_tensor": made(self.batch, self.new, self.shared * self.size),
            "value_tensor": made(self.batch, self.new, self.shared * self.value),
        }
        if self.past:
            result["past_key_tensor"] = made(self.batch, self.shared, self.past, self.size)
            result["past_value_tensor"] = made(self.batch, self.shared, self.past, self.value)
        return result


def _by_head(x: Array, heads: int) -> Array:
    """(batch, sequence, hidden) as (batch, heads, sequence, size), in float64."""
    batch, length, hidden = x.shape
    return x.astype(np.float64).reshape(batch, length, heads, hidden // heads).transpose(0, 2, 1, 3)


def _attended(q: Array, k: Array, v: Array, added: Array | float = 0.0, scale: float = 0.5) -> Array:
    """The formula for tensors by head; `added` to the scores (batch, heads, queries, keys)."""
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each, groups, axis=1) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale + added
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result = weights / weights.sum(axis=-1, keepdims=True) @ v
    return np.asarray(result.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1))


def _whole(sizes: Sizes, given: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Queries, and all keys and values."""
    q = _by_head(given["query_tensor"], sizes.heads)
    k, v = (_by_head(given[name], sizes.shared) for name in ("key_tensor", "value_tensor"))
    if sizes.past:
        k = np.concatenate([given["past_key_tensor"].astype(np.float64), k], axis=2)
        v = np.concatenate([given["past_value_tensor"].astype(np.float64), v], axis=2)
    return q, k, v


def _computed(
    sizes: Sizes,
    given: dict[str, Array],
    device: str,
    mask_type: MaskType = MaskType.NONE,
    present: tuple[Array, Array] | None = None,
) -> list[Array]:
    dtype = next(iter(given.values())).dtype
    output = np.zeros((sizes.batch, sizes.queries, sizes.heads * sizes.value), dtype)
    return on_arrays(
        descs.MultiheadAttention1,
        [given.get(name) for name in NAMES],
        [output, *(present or (None, None))],
        device,
        scale=0.5,
        mask_filter_value=FILTER,
        query_head_count=sizes.heads,
        key_value_head_count=sizes.shared,
        mask_type=mask_type,
    )


@every_device
@given(
    queries=st.integers(1, 20),
    new=st.integers(1, 40),
    past=st.integers(0, 9),
    size=st.integers(1, 20),
    seed=st.integers(0, 2**31),
)
@examples
def test_any_sizes(device: str, queries: int, new: int, past: int, size: int, seed: int) -> None:
    shared = 1 + seed % 3
    sizes = Sizes(
        queries=queries, new=new, past=past, size=size, shared=shared, heads=shared * (1 + seed % 2)
    )
    given = sizes.tensors(seed)
    assert_within(
        "MULTIHEAD_ATTENTION1", _computed(sizes, given, device)[0], _attended(*_whole(sizes, given))
    )


@every_device
def test_a_bias_is_added_before_the_products_and_is_part_of_the_present(device: str) -> None:
    sizes = Sizes(past=2)
    given = sizes.tensors(2)
    lengths = [each.shape[-1] for each in list(given.values())[:3]]
    bias = np.random.default_rng(3).uniform(-1, 1, sum(lengths)).astype(np.float32)
    parts = np.split(bias, np.cumsum(lengths)[:2])
    biased = dict(given)
    for name, part in zip(NAMES, parts, strict=False):
        biased[name] = given[name].astype(np.float64) + part
    _, k, v = _whole(sizes, biased)
    present = np.zeros(k.shape, np.float32), np.zeros(v.shape, np.float32)
    results = _computed(sizes, given | {"bias_tensor": bias}, device, present=present)
    assert_within("MULTIHEAD_ATTENTION1", results[0], _attended(*_whole(sizes, biased)))
    assert_within("MULTIHEAD_ATTENTION1", results[1], k)
    assert_within("MULTIHEAD_ATTENTION1", results[2], v)


@every_device
@pytest.mark.parametrize("repeated", [(), (0,), (1,), (2,), (3,), (0, 1)], ids=str)
def test_relative_positions_and_masks_are_repeated(repeated: tuple[int, ...], device: str) -> None:
    sizes = Sizes()
    given = sizes.tensors(4)
    generator = np.random.default_rng(5)
    shape = [sizes.batch, sizes.heads, sizes.queries, sizes.total]
    shape = [1 if axis in repeated else size for axis, size in enumerate(shape)]
    bias = generator.uniform(-1, 1, shape).astype(np.float32)
    mask = generator.integers(0, 3, shape).astype(np.int32)
    more = {"relative_position_bias_tensor": bias, "mask_tensor": mask}
    expected = _attended(*_whole(sizes, given), bias + np.where(mask == 0, FILTER, 0.0))
    assert_within(
        "MULTIHEAD_ATTENTION1", _computed(sizes, given | more, device, MaskType.BOOLEAN)[0], expected
    )


@every_device
@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_a_mask_may_lack_leading_dimensions_or_have_a_fifth(rank: int, device: str) -> None:
    sizes = Sizes()
    given = sizes.tensors(4)
    shape = (1, 1, sizes.heads, sizes.queries, sizes.total)[5 - rank :]
    mask = np.random.default_rng(6).integers(0, 2, shape).astype(np.int32)
    expected = _attended(*_whole(sizes, given), np.where(mask == 0, FILTER, 0.0).reshape(shape[-4:]))
    assert_within(
        "MULTIHEAD_ATTENTION1",
        _computed(sizes, given | {"mask_tensor": mask}, device, MaskType.BOOLEAN)[0],
        expected,
    )


LENGTHS = {
    MaskType.KEY_SEQUENCE_LENGTH: np.array([[2, 5]]),
    MaskType.KEY_SEQUENCE_END_START: np.array([[4, 5], [1, 3]]),
    MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END: np.array([2, 5, 0, 3, 6, 0, 5, 10]),
}


@every_device
@pytest.mark.parametrize("kind", LENGTHS)
def test_the_filter_value_is_added_outside_of_lengths(kind: MaskType, device: str) -> None:
    sizes = Sizes()
    given = sizes.tensors(6)
    mask = LENGTHS[kind]
    ends = mask.reshape(-1)[: sizes.batch, None, None, None]
    starts = mask[1][:, None, None, None] if kind is MaskType.KEY_SEQUENCE_END_START else 0
    places = np.arange(sizes.total)
    expected = _attended(*_whole(sizes, given), np.where((places < starts) | (places >= ends), FILTER, 0.0))
    result = _computed(sizes, given | {"mask_tensor": mask.astype(np.int32)}, device, kind)[0]
    assert_within("MULTIHEAD_ATTENTION1", result, expected)


@every_device
@pytest.mark.parametrize("names", [("query", "key"), ("key", "value"), ("query", "key", "value")], ids=str)
def test_stacked_tensors_are_those_alone(names: tuple[str, ...], device: str) -> None:
    sizes = Sizes(shared=4, value=6, queries=5)
    given = sizes.tensors(7)
    parts = [given[f"{name}_tensor"].reshape(sizes.batch, -1, sizes.heads, 1, sizes.size) for name in names]
    stacked = {name: array for name, array in given.items() if name.removesuffix("_tensor") not in names}
    stacked["_".join(["stacked", *names, "tensor"])] = np.concatenate(parts, axis=3)
    result = _computed(sizes, stacked, device)[0]
    np.testing.assert_array_equal(result, _computed(sizes, given, device)[0])


@every_device
def test_all_keys_may_be_past(device: str) -> None:
    sizes = Sizes(past=5)
    given = sizes.tensors(8)
    past = {name: given[name] for name in ("query_tensor", "past_key_tensor", "past_value_tensor")}
    q, k, v = _whole(sizes, given)
    result = _computed(sizes, past, device)[0]
    assert_within("MULTIHEAD_ATTENTION1", result, _attended(q, k[:, :, :5], v[:, :, :5]))


@every_device
@pytest.mark.parametrize("room", [9, 12, 7])
def test_new_keys_follow_each_batch_s_own_past(room: int, device: str) -> None:
    sizes = Sizes(past=4, new=3)
    given = sizes.tensors(9)
    lengths = np.array([1, 4], np.int32)
    keys, values = (
        np.full((sizes.batch, sizes.shared, room, size), 7, np.float32) for size in (sizes.size, sizes.value)
    )
    more = {"past_sequence_lengths_tensor": lengths}
    results = _computed(sizes, given | more, device, present=(keys, values))
    q, k, v = _whole(sizes, given)
    for batch, length in enumerate(lengths):
        chosen = [*range(length), *range(sizes.past, sizes.total)]
        own = slice(batch, batch + 1)
        expected = _attended(q[own], k[own][:, :, chosen], v[own][:, :, chosen])
        assert_within("MULTIHEAD_ATTENTION1", results[0][own], expected)
        for present, whole in ((results[1], k), (results[2], v)):
            assert_within("MULTIHEAD_ATTENTION1", present[own][:, :, : len(chosen)], whole[own][:, :, chosen])
            assert not present[own][:, :, len(chosen) :].any()


@every_device
def test_a_negative_length_is_none_and_one_beyond_the_past_reads_zeros(device: str) -> None:
    sizes = Sizes(past=2, new=2, value=3)
    given = sizes.tensors(10)
    present = tuple(np.zeros((2, 2, 6, size), np.float32) for size in (sizes.size, sizes.value))
    more = {"past_sequence_lengths_tensor": np.array([-5, 3], np.int32)}
    results = _computed(sizes, given | more, device, present=(present[0], present[1]))
    _, k, _ = _whole(sizes, given)
    assert_within("MULTIHEAD_ATTENTION1", results[1][0, :, :2], k[0, :, 2:])
    np.testing.assert_array_equal(results[1][1, :, 2], 0)
    assert_within("MULTIHEAD_ATTENTION1", results[1][1, :, 3:5], k[1, :, 2:])


@every_device
def test_the_older_operator_has_one_head_count(device: str) -> None:
    sizes = Sizes(shared=4, past=2)
    given = sizes.tensors(11)
    result = dml.multihead_attention(
        *(given.get(name) for name in NAMES[:-1]),
        scale=0.5,
        mask_filter_value=FILTER,
        head_count=4,
        mask_type=MaskType.NONE,
        device=device,
    )
    assert isinstance(result, np.ndarray)
    assert_within("MULTIHEAD_ATTENTION1", result, _attended(*_whole(sizes, given)))


@every_device
def test_nan_of_a_query_stays_in_its_row(device: str) -> None:
    sizes = Sizes(shared=1)
    given = sizes.tensors(12)
    given["query_tensor"][1, 2, 0] = np.nan
    result = _computed(sizes, given, device)[0]
    head = slice(0, sizes.value)
    assert np.isnan(result[1, 2, head]).all()
    result[1, 2, head] = 0
    assert np.isfinite(result).all()


def _with_bias(device: str, keys: int, change: Callable[[Array], None]) -> tuple[Array, Array]:
    """The results of 20 queries by head, where what is added to the scores is 0 but for a change, and the
    expected ones."""
    sizes = Sizes(batch=1, queries=20, new=keys, heads=1, shared=1, size=8)
    given = sizes.tensors(14)
    bias = np.zeros((1, 1, sizes.queries, sizes.total), np.float32)
    change(bias[0, 0])
    with np.errstate(invalid="ignore"):
        expected = _attended(*_whole(sizes, given), bias)
    return _computed(sizes, given | {"relative_position_bias_tensor": bias}, device)[0][0], expected[0]


@every_device
def test_rows_of_scores_that_are_not_finite_are_nan_and_minus_infinity_weighs_nothing(device: str) -> None:
    def change(scores: Array) -> None:
        scores[1, 3], scores[2, 290], scores[3] = np.nan, np.inf, -np.inf
        scores[4, :280], scores[5, 10:] = -np.inf, -np.inf

    result, expected = _with_bias(device, 300, change)
    assert np.isnan(result[1:4]).all()
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    assert_within("MULTIHEAD_ATTENTION1", np.delete(result, [1, 2, 3], 0), np.delete(expected, [1, 2, 3], 0))


@every_device
def test_scores_may_grow_from_key_to_key(device: str) -> None:
    def change(scores: Array) -> None:
        scores[0] = np.arange(700) * 0.02
        scores[1] = np.arange(700)[::-1] * 0.02
        scores[2, ::2] = -1000
        scores[3] = 16384

    result, expected = _with_bias(device, 700, change)
    assert_within("MULTIHEAD_ATTENTION1", np.delete(result, 3, 0), np.delete(expected, 3, 0))
    np.testing.assert_allclose(result[3], expected[3], rtol=2e-3, atol=2e-3)


@every_device
def test_the_greatest_values_do_not_overflow(device: str) -> None:
    sizes = Sizes(batch=1, queries=20, new=300)
    given = sizes.tensors(15)
    given["value_tensor"][...] = np.float32(3.4e38)
    (result, *_) = _computed(sizes, given, device)
    assert_within("MULTIHEAD_ATTENTION1", result, np.full(result.shape, np.float32(3.4e38)))


@every_device
@pytest.mark.parametrize("queries", [3, 20])
def test_weights_that_are_denormal_numbers_count(queries: int, device: str) -> None:
    sizes = Sizes(batch=1, queries=queries, heads=1, shared=1, value=2)
    given = sizes.tensors(18)
    bias = np.zeros((1, 1, queries, sizes.new), np.float32)
    bias[..., 3] = -95
    given["value_tensor"][...], given["value_tensor"][0, 3] = 0, (1e38, np.inf)
    result = _computed(sizes, given | {"relative_position_bias_tensor": bias}, device)[0]
    with np.errstate(invalid="ignore"):
        expected = _attended(*_whole(sizes, given), bias)
    # A weight has but ten bits there.
    np.testing.assert_allclose(result, expected, rtol=1e-3)
    assert np.isposinf(result[..., 1]).all()


@every_device
def test_beside_an_infinite_value_nothing_is_finite_also_where_its_weight_is_zero(device: str) -> None:
    sizes = Sizes(batch=1, queries=20, new=700, heads=1, shared=1, value=2)
    given = sizes.tensors(20)
    bias = np.zeros((1, 1, 20, 700), np.float32)
    # The greatest score grows from one block of keys to the next.
    bias[..., 300:600], bias[..., 600:] = 60, 120
    given["value_tensor"][0, 3, 0] = np.inf
    result = _computed(sizes, given | {"relative_position_bias_tensor": bias}, device)[0]
    assert not np.isfinite(result[..., 0]).any()
    assert np.isfinite(result[..., 1]).all()


def _between_large_and_small_values(device: str, queries: int) -> tuple[Array, Array]:
    """The results of queries that see less and less of 400 values whose sum overflows, and the expected
    ones."""
    sizes = Sizes(batch=1, queries=queries, new=700, heads=1, shared=1, size=1, value=2)
    given = sizes.tensors(19)
    given["query_tensor"][0, :, 0] = 2 * np.arange(queries)
    given["key_tensor"][...], given["key_tensor"][0, :400] = 0, -2
    given["value_tensor"][0] = np.stack([np.full(700, 1e-37), np.cos(np.arange(700))], axis=1)
    given["value_tensor"][0, :400, 0] = np.float32(3.3e38)
    given["relative_position_bias_tensor"] = np.zeros((1, 1, queries, 700), np.float32)
    expected = _attended(*_whole(sizes, given))
    return _computed(sizes, given, device)[0][0], expected[0]


@every_device
def test_sums_of_large_values_overflow_no_row_and_change_no_bit_of_others(device: str) -> None:
    result, expected = _between_large_and_small_values(device, 40)
    np.testing.assert_allclose(result, expected, rtol=3e-6, atol=1e-42)
    for queries in (17, 33):
        np.testing.assert_array_equal(_between_large_and_small_values(device, queries)[0], result[:queries])


@every_device
def test_what_is_added_to_rows_that_would_overflow_is_added_once(device: str) -> None:
    q, k, x = np.zeros((1, 1, 20, 4)), np.zeros((1, 1, 300, 4)), np.full((1, 1, 20, 4), 1e38)
    v = np.full((1, 1, 300, 4), 2e38)
    given = {name: each.astype(np.float32) for name, each in zip("qkvx", (q, k, v, x), strict=True)}
    graph = dml.Graph()
    tensors = [graph.input(name, dml.FLOAT32, each.shape) for name, each in given.items()]
    scores = dml.gemm(tensors[0], tensors[1], trans_b=dml.MatrixTransform.TRANSPOSE)
    weights = dml.activation_softmax1(scores, axes=[3])
    added = dml.activation_relu(
        dml.cumulative_summation(dml.element_wise_multiply(tensors[3], 0.125), axis=3)
    )
    model = graph.compile({"y": dml.gemm(weights, tensors[2], added)}, device)
    expected = 2e38 + np.broadcast_to(np.arange(1, 5) * 0.125e38, x.shape)
    np.testing.assert_allclose(model(**given)["y"], expected, rtol=2e-6)


@every_device
def test_a_key_beyond_its_type_is_infinite_as_in_the_present(device: str) -> None:
    sizes = Sizes(batch=1, heads=1, shared=1)
    given = sizes.tensors(16, np.float16)
    given["key_tensor"][0, 1, 2] = 6e4
    given["bias_tensor"] = np.zeros(2 * sizes.size + sizes.value, np.float16)
    given["bias_tensor"][sizes.size + 2] = 6e4
    presents = np.zeros((1, 1, sizes.new, sizes.size)), np.zeros((1, 1, sizes.new, sizes.value))
    present_key, present_value = (each.astype(np.float16) for each in presents)
    result, key, _ = _computed(sizes, given, device, present=(present_key, present_value))
    assert key[0, 0, 1, 2] == np.inf
    np.testing.assert_array_equal(np.isnan(result[0]).all(axis=1), given["query_tensor"][0, :, 2] > 0)


@every_device
@pytest.mark.parametrize("queries", [3, 20])
def test_a_weight_below_float32_is_zero_also_beside_an_infinite_value(queries: int, device: str) -> None:
    sizes = Sizes(batch=1, queries=queries, heads=1, shared=1)
    given = sizes.tensors(17)
    given["relative_position_bias_tensor"] = np.zeros((1, 1, queries, sizes.new), np.float32)
    given["relative_position_bias_tensor"][0, 0, 1, 3] = -300
    given["value_tensor"][0, 3] = np.inf
    result = _computed(sizes, given, device)[0][0]
    assert np.isnan(result[1]).all()
    assert np.isposinf(np.delete(result, 1, 0)).all()


@every_device
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_many_queries_and_keys_with_a_past_and_a_mask(dtype: Any, device: str) -> None:
    sizes = Sizes(queries=70, new=400, past=130, size=20, value=33)
    given = sizes.tensors(16, dtype)
    mask = np.random.default_rng(17).integers(0, 2, (2, 1, 70, 530)).astype(np.int32)
    result = _computed(sizes, given | {"mask_tensor": mask}, device, MaskType.BOOLEAN)[0]
    assert_within(
        "MULTIHEAD_ATTENTION1", result, _attended(*_whole(sizes, given), np.where(mask == 0, FILTER, 0.0))
    )


@every_device
def test_a_graph_gives_the_same_bits(device: str) -> None:
    sizes = Sizes(past=3)
    given = sizes.tensors(13)
    graph = dml.Graph()
    tensors = {name: graph.input(name, dml.FLOAT32, array.shape) for name, array in given.items()}
    attributes: dict[str, Any] = {
        "scale": 0.5,
        "mask_filter_value": FILTER,
        "query_head_count": sizes.heads,
        "key_value_head_count": sizes.shared,
        "mask_type": MaskType.NONE,
    }
    outputs = dml.multihead_attention1(
        *(tensors.get(name) for name in NAMES), **attributes, output_present_key=True
    )
    assert outputs.output_present_key is not None
    model = graph.compile({"y": outputs.output, "k": outputs.output_present_key}, device)
    present = np.zeros((2, 2, 8, 6), np.float32), np.zeros((2, 2, 8, 4), np.float32)
    expected = _computed(sizes, given, device, present=present)
    results = model(**given)
    np.testing.assert_array_equal(results["y"], expected[0])
    np.testing.assert_array_equal(results["k"], expected[1])
