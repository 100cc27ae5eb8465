"""Multi-head attention: where query, key and value come from, and what all sizes follow from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from opendml.spec.enums import MultiheadAttentionMaskType as MaskType
from opendml.spec.fault import Fault
from opendml.spec.naming import camel_case
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Size, Sizes, Usual, expect, right_aligned
from opendml.spec.tensor_desc import TensorDesc

_SOURCES = {
    "query": ("query_tensor", "stacked_query_key_tensor", "stacked_query_key_value_tensor"),
    "key": (
        "key_tensor",
        "stacked_query_key_tensor",
        "stacked_key_value_tensor",
        "stacked_query_key_value_tensor",
    ),
    "value": ("value_tensor", "stacked_key_value_tensor", "stacked_query_key_value_tensor"),
}


@rule("MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1", basic=True)
def one_source_each(**given: TensorDesc) -> Broken:
    """Query, key and value have one source each, alone or stacked.

    Key and value may also be all in the past, without new ones: ONNX Runtime gives the keys and values of
    cross attention so.
    """
    for role, sources in _SOURCES.items():
        present = [name for name in sources if name in given]
        for name in present[1:]:
            yield name, Fault("given", f"the {role} must have one source, and {_field(present[0])} is one")
        if not present and not (role != "query" and _only_past(given)):
            allowed = ", ".join(map(_field, sources))
            yield sources[0], Fault("missing", f"the {role} must have one source of {allowed}")


def _only_past(given: Mapping[str, TensorDesc]) -> bool:
    past = {"past_key_tensor", "past_value_tensor"} <= given.keys()
    return past and given.keys().isdisjoint({*_SOURCES["key"], *_SOURCES["value"]})


def _field(parameter: str) -> str:
    return f"{{{camel_case(parameter)}}}"


@rule("MULTIHEAD_ATTENTION", query_head_count="HeadCount", key_value_head_count="HeadCount", basic=True)
@rule("MULTIHEAD_ATTENTION1", basic=True)
def whole_heads(
    query_head_count: int,
    key_value_head_count: int,
    query_tensor: TensorDesc | None = None,
    value_tensor: TensorDesc | None = None,
    stacked_query_key_tensor: TensorDesc | None = None,
    stacked_query_key_value_tensor: TensorDesc | None = None,
) -> Broken:
    """Query heads share key heads in equal groups, stacked ones not at all; hidden sizes are whole heads."""
    heads, shared = query_head_count, key_value_head_count
    if heads % shared:
        yield "key_value_head_count", Fault(shared, f"must divide {{QueryHeadCount}}, {heads}")
    elif heads != shared and (stacked_query_key_tensor or stacked_query_key_value_tensor):
        allowed = f"must be {{QueryHeadCount}}, {heads}, where query and key are stacked"
        yield "key_value_head_count", Fault(shared, allowed)
    hidden = (("query_tensor", query_tensor, heads), ("value_tensor", value_tensor, shared))
    for parameter, tensor, count in hidden:
        if tensor is not None and tensor.sizes[-1] % count:
            path = ("Sizes", len(tensor.sizes) - 1)
            yield parameter, Fault(tensor.sizes[-1], f"must be a multiple of {count}, the head count", path)


@rule("MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1", basic=True)
def typed_mask(mask_tensor: TensorDesc, mask_type: MaskType) -> Broken:
    """A mask has a type; without a mask the type says nothing."""
    if mask_type is MaskType.NONE:
        yield "mask_type", Fault("NONE", "must be another type while {MaskTensor} is given")


_REASON = "the query, key, value and heads given"


@rule("MULTIHEAD_ATTENTION", query_head_count="HeadCount", key_value_head_count="HeadCount")
@rule("MULTIHEAD_ATTENTION1")
def attention_sizes(
    query_head_count: int, key_value_head_count: int, mask_type: MaskType, **given: TensorDesc
) -> Broken:
    """All sizes follow from those of query, key and value; unstacked tensors may have leading ones.

    Where DirectML's pages are silent or at odds: past and present values have the head size of the value, not
    of the key; the relative position bias and a BOOLEAN mask are [batch, heads, queries, keys], with any of
    them 1 and repeated; with PastSequenceLengthsTensor, past and present may be longer buffers, as ONNX
    Runtime uses them, so that the number of keys is free.
    """
    batch, queries, heads, shared, head_size, value_size, keys, past, total = _lengths(
        given, query_head_count, key_value_head_count
    )
    key_size, all_values = shared * head_size, shared * value_size
    expected: dict[str, tuple[Size, ...]] = {
        "query_tensor": (batch, queries, heads * head_size),
        "key_tensor": (batch, keys, key_size),
        "value_tensor": (batch, keys, all_values),
        "stacked_query_key_tensor": (batch, queries, heads, 2, head_size),
        "stacked_key_value_tensor": (batch, keys, shared, 2, head_size),
        "stacked_query_key_value_tensor": (batch, queries, heads, 3, head_size),
        "bias_tensor": (heads * head_size + key_size + all_values,),
        "relative_position_bias_tensor": _repeated(batch, heads, queries, total),
        "past_key_tensor": (batch, shared, past, head_size),
        "past_value_tensor": (batch, shared, past, value_size),
        "past_sequence_lengths_tensor": (batch,),
    }
    if "mask_tensor" in given:
        expected["mask_tensor"] = _mask(mask_type, batch, heads, queries, total)
    for name, tensor in given.items():
        sizes = right_aligned(expected[name], len(tensor.sizes))
        yield from expect(name, tensor, sizes, "the query, key, value, heads and mask type given")


@shape(
    "MULTIHEAD_ATTENTION",
    query_head_count="HeadCount",
    key_value_head_count="HeadCount",
    reason=_REASON,
    leading_ones=True,
)
@shape("MULTIHEAD_ATTENTION1", reason=_REASON, leading_ones=True)
def attention_output_sizes(
    query_head_count: int, key_value_head_count: int, **given: TensorDesc
) -> Mapping[str, Sizes]:
    """A vector for each query; present keys and values are the past ones and the new ones."""
    found = _lengths(given, query_head_count, key_value_head_count)
    total = Usual(found.keys + found.past) if found.total is None else found.total
    present = (found.batch, found.shared, total)
    return {
        "output_tensor": (found.batch, found.queries, found.heads * found.value_size),
        "output_present_key_tensor": (*present, found.head_size),
        "output_present_value_tensor": (*present, found.value_size),
    }


class _Lengths(NamedTuple):
    """The lengths that all sizes follow from; `total` is None where the number of keys is free."""

    batch: int
    queries: int
    heads: int
    shared: int
    head_size: int
    value_size: int
    keys: int
    past: int
    total: int | None


def _lengths(given: Mapping[str, TensorDesc], heads: int, shared: int) -> _Lengths:
    batch, queries, head_size = _query(given, heads)
    keys = _key_length(given, queries)
    past = given["past_key_tensor"].sizes[-2] if "past_key_tensor" in given else 0
    total = None if "past_sequence_lengths_tensor" in given else keys + past
    value_size = _value_size(given, shared, head_size)
    return _Lengths(batch, queries, heads, shared, head_size, value_size, keys, past, total)


def _mask(kind: MaskType, batch: int, heads: int, queries: int, total: int | None) -> tuple[Size, ...]:
    expected: dict[MaskType, tuple[Size, ...]] = {
        MaskType.KEY_SEQUENCE_LENGTH: (1, batch),
        MaskType.KEY_SEQUENCE_END_START: (2, batch),
        MaskType.KEY_QUERY_SEQUENCE_LENGTH_START_END: (3 * batch + 2,),
        MaskType.BOOLEAN: _repeated(batch, heads, queries, total),
    }
    return expected[kind]


def _query(given: Mapping[str, TensorDesc], heads: int) -> tuple[int, int, int]:
    """Return batch size, sequence length and head size, from the tensor that has the query."""
    if "query_tensor" in given:
        batch, queries, hidden = given["query_tensor"].sizes[-3:]
        return batch, queries, hidden // heads
    stacked = given.get("stacked_query_key_tensor") or given["stacked_query_key_value_tensor"]
    return stacked.sizes[0], stacked.sizes[1], stacked.sizes[4]


def _key_length(given: Mapping[str, TensorDesc], queries: int) -> int:
    """Return the number of new keys: 0 where all are in the past."""
    if "key_tensor" in given:
        return given["key_tensor"].sizes[-2]
    if "stacked_key_value_tensor" in given:
        return given["stacked_key_value_tensor"].sizes[1]
    return 0 if "query_tensor" in given else queries


def _value_size(given: Mapping[str, TensorDesc], heads: int, head_size: int) -> int:
    """Return the size of one head of the value."""
    if "value_tensor" in given:
        return given["value_tensor"].sizes[-1] // heads
    if _only_past(given):
        return given["past_value_tensor"].sizes[-1]
    return head_size


def _repeated(*sizes: int | None) -> tuple[Size, ...]:
    return tuple(None if size is None else (1, size) for size in sizes)
