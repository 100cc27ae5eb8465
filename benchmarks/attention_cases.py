"""Attention of a text with itself, said in the way of each contender. Libraries are imported late: their
threads are limited before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import opendml as dml
from benchmarks.contraction_cases import Array, Case, Run, bound
from benchmarks.sessions import onnxruntime_session

_SIZE = 64
"""Elements of a head."""


@dataclass(frozen=True)
class Attention:
    """So many heads of queries, which share those of keys and values in groups."""

    tokens: int
    heads: int
    shared: int

    @property
    def operations(self) -> int:
        """A multiply-add being two."""
        return 4 * self.heads * self.tokens**2 * _SIZE

    def tensors(self) -> list[Array]:
        """Queries, keys and values: (1, tokens, heads times their size)."""
        generator = np.random.default_rng(self.tokens)
        counts = self.heads, self.shared, self.shared
        return [generator.standard_normal((1, self.tokens, n * _SIZE), np.float32) for n in counts]

    def __str__(self) -> str:
        return f"attention of {self.tokens} tokens, {self.heads} heads, {self.shared} of keys"


ATTENTIONS = [Attention(tokens, 12, shared) for shared in (12, 4) for tokens in (128, 1024)]


def attention_cases(threads: int) -> Iterator[Case]:
    """All of them."""
    for each in ATTENTIONS:
        arrays = each.tensors()
        yield Case(
            str(each),
            each.operations,
            {
                "opendml": partial(_opendml, each, arrays, threads),
                "torch": partial(_torch, each, arrays),
                "onnxruntime": partial(_onnxruntime, each, arrays, threads),
            },
        )


def _opendml(attention: Attention, arrays: list[Array], threads: int) -> Run:
    graph = dml.Graph()
    inputs = dict(zip("qkv", arrays, strict=True))
    given = [graph.input(name, dml.FLOAT32, list(array.shape)) for name, array in inputs.items()]
    result = dml.multihead_attention1(
        *given,
        scale=_SIZE**-0.5,
        query_head_count=attention.heads,
        key_value_head_count=attention.shared,
        mask_type=dml.MultiheadAttentionMaskType.NONE,
    )
    return bound(graph, result, inputs, threads)


def _torch(attention: Attention, arrays: list[Array]) -> Run:
    import torch

    counts = attention.heads, attention.shared, attention.shared
    q, k, v = (
        torch.from_numpy(array).view(1, attention.tokens, count, _SIZE).transpose(1, 2)
        for array, count in zip(arrays, counts, strict=True)
    )
    attended = torch.nn.functional.scaled_dot_product_attention
    is_grouped = attention.heads != attention.shared
    return lambda: attended(q, k, v, enable_gqa=is_grouped).transpose(1, 2).reshape(arrays[0].shape)


def _onnxruntime(attention: Attention, arrays: list[Array], threads: int) -> Run:
    """ONNX Runtime's own operator, which is faster, but for heads that share keys."""
    from onnx import TensorProto, helper

    if attention.heads == attention.shared:
        own = "com.microsoft"
        node = helper.make_node(
            "MultiHeadAttention", ["q", "k", "v"], ["y"], domain=own, num_heads=attention.heads
        )
    else:
        counts = {"q_num_heads": attention.heads, "kv_num_heads": attention.shared}
        node = helper.make_node("Attention", ["q", "k", "v"], ["y"], **counts)
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for name, array in zip("qkvy", [*arrays, arrays[0]], strict=True)
    ]
    graph = helper.make_graph([node], "attention", tensors[:3], tensors[3:])
    versions = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    session = onnxruntime_session(model.SerializeToString(), threads)
    feed = dict(zip("qkv", arrays, strict=True))
    return lambda: session.run(None, feed)[0]
