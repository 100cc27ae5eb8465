"""Programs for the checks of the CUDA target with a softmax between products: attention, and graphs of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import opendml as dml
from opendml.program.carriers import carried
from opendml.program.program import Program
from opendml.program.scalar_type import ScalarType
from tools.cuda_case import Case
from tools.operator_case import Form, Sizes, Strided, graph_program

FLOATS = ("FLOAT32", "FLOAT16")
SIZES = (
    (3, 70, 130, 40, 24),
    (2, 128, 256, 64, 64),
    (1, 33, 300, 128, 128),
    (5, 17, 1, 3, 100),
    (1, 200, 65, 16, 1),
)
"""Heads, queries, keys, the elements of these and of values."""
CAUSAL = ((2, 300, 300, 64), (3, 150, 400, 128), (1, 400, 150, 40))
"""Heads, queries, keys, and elements of them all; the first queries of the last one see no key."""
FEW_QUERIES = ((3, 3, 1, 500, 64, 40), (8, 2, 1, 300, 128, 128), (6, 2, 3, 300, 24, 200))
"""Heads, those of keys, queries, keys, and elements of keys and of values: decoding with a cache."""
_BLIND = (*(("FLOAT32", (1, 2, rows, 24)) for rows in (2, 70, 70)), ("FLOAT32", (1, 1, 2, 1)))
"""Queries, keys and values, and what is added to the scores of a query."""
SCALE = 0.5
ROUNDED = 2e-4
"""Largest change of results of these cases by rounding weights to FLOAT16."""


def chain_cases() -> Iterator[Case]:
    """Yield all of them."""
    heads, queries, keys, _, size = SIZES[0]
    for type in FLOATS:
        for sizes in SIZES:
            yield _case(f"{type} {sizes}", _attention(type, sizes[0], _tensors(*sizes)))
        plain = _tensors(*SIZES[0])
        yield _case(f"{type} misaligned", _attention(type, heads, plain), offset=1)
        across = {name: Strided(each, (0, 1, each[1])) for name, each in plain.items()}
        yield _case(f"{type} across memory", _attention(type, heads, across))
        yield _case(f"{type} of shared keys", _shared(type))
        further: dict[str, Sizes] = {
            "mask": Strided((1, heads, queries, keys), (0, 0, keys, 1)),
            "relative_position_bias": (1, heads, queries, keys),
        }
        masked = _attention(type, heads, plain | further, mask_type="BOOLEAN", mask_filter_value=-2.0)
        yield _case(f"{type} masked", masked)
        inputs = [(type, each) for each in plain.values()]
        residual = type, (1, queries, heads * size)
        yield _case(f"{type} with residual", graph_program(_with_residual, *inputs, residual), times=2.0)
        yield _case(f"{type} of computed operands", graph_program(_of_computed, *inputs))
        for heads_of_causal, rows, columns, elements in CAUSAL:
            causal = _causal(type, (heads_of_causal, rows, columns, elements), -math.inf)
            yield _case(f"{type} causal {rows} {columns} of {elements}", causal)
        yield _case(f"{type} causal by a number", _causal(type, (2, 200, 200, 64), -9.0))
    yield _case("FLOAT16 of windows", _attention("FLOAT16", 6, _tensors(6, 49, 49, 32, 32)))
    for rows, columns, elements in ((150, 208, 64), (80, 48, 40)):
        given: dict[str, Sizes] = dict(_tensors(4, rows, columns, elements, elements))
        given |= {"mask": Strided((1, 4, rows, columns), (0, 0, columns, 1))}
        masked = _attention("FLOAT16", 4, given, mask_type="BOOLEAN", mask_filter_value=-2.0)
        yield _case(f"FLOAT16 of heads that share a mask of {columns} keys", masked)
    for elements in (192, 256):
        wide = _attention("FLOAT16", 2, _tensors(2, 150, 200, elements, elements))
        yield _case(f"FLOAT16 of {elements} elements", wide)
    misaligned = _attention("FLOAT16", 2, _tensors(2, 150, 200, 256, 40))
    yield _case("FLOAT16 of 256 elements misaligned", misaligned, offset=1)
    for type, each in product(FLOATS, FEW_QUERIES):
        yield _case(f"{type} of few queries {each}", _few_queries(type, *each))
    yield _case("FLOAT32 of few queries, misaligned", _few_queries("FLOAT32", *FEW_QUERIES[0]), offset=1)
    yield _case("FLOAT32 of few queries without NaN", graph_program(_with_blind_queries, *_BLIND))
    replaced = [("FLOAT32", (1, 2, rows, 24)) for rows in (2, 70, 1, 70, 1)]
    is_new = "FLOAT32", (1, 1, 70, 1)
    yield _case("FLOAT32 of few queries over replaced rows", graph_program(_over_replaced, *replaced, is_new))
    biased = _few_queries("FLOAT16", *FEW_QUERIES[0], relative_position_bias=(1, 3, 1, 500))
    yield _case("FLOAT16 of few queries with a bias", biased)
    yield _case("FLOAT16 of few queries, causal", _causal("FLOAT16", (2, 5, 400, 64), -math.inf))
    wide_results = _causal("FLOAT16", (2, 5, 400, 64), None, result="FLOAT32")
    yield _case("FLOAT16 of few queries with FLOAT32 results", wide_results)
    inputs = [("FLOAT16", each) for each in plain.values()]
    mask = [("INT32", (1, 1, 1, 2 * keys)), ("INT64", (1, 1, 1, keys))]
    yield _case("FLOAT16 with a gathered mask", graph_program(_with_gathered_mask, *inputs, *mask))
    # Most numbers are 0, so that all queries of some warps have the same ones, and those of others have not.
    mask = [("INT32", (1, 1, queries, 1)), ("INT32", (1, 1, 1, keys))]
    yield _case("FLOAT16 with a mask of queries and keys", graph_program(_with_two_masks, *inputs, *mask))
    wide_results = _causal("FLOAT16", (2, 200, 300, 64), None, result="FLOAT32")
    yield _case("FLOAT16 with FLOAT32 results", wide_results)
    for sizes in ((3, 70, 136, 40, 24), (2, 128, 256, 64, 64), (1, 40, 300, 128, 128)):
        # Bits of numbers near 1, as results are: they and their weights are rounded to 8 bits.
        program = _of_bfloat16(*sizes)
        yield Case(f"chain BFLOAT16 {sizes}", program, mean=0x3F80, deviation=20, absolute=2**-5)


def _tensors(heads: int, queries: int, keys: int, depth: int, size: int) -> dict[str, Any]:
    return {
        "query": (1, queries, heads * depth),
        "key": (1, keys, heads * depth),
        "value": (1, keys, heads * size),
    }


def _attention(type: str, heads: int, tensors: Mapping[str, Sizes], **further: Any) -> Program:
    attributes = {"scale": SCALE, "head_count": heads, "mask_type": "NONE"} | further
    return Form("MULTIHEAD_ATTENTION", "", tensors, attributes).case(type).program


def _of_bfloat16(*sizes: int) -> Program:
    """Return sums of neighbouring results of attention of BFLOAT16, which are rounded to it."""
    graph, tensors = dml.Graph(), _tensors(*sizes)
    q, k, v = (graph.input(name, "bfloat16", each) for name, each in tensors.items())
    found = dml.multihead_attention(q, k, v, scale=SCALE, head_count=sizes[0], mask_type="NONE").rounded()
    in_pairs = found.reinterpret((1, sizes[1], sizes[0] * sizes[4] // 2, 2))
    return carried(graph.compile({"y": dml.reduce(in_pairs, function="SUM", axes=[3])}, "reference")._program)


def _few_queries(
    type: str, heads: int, shared: int, queries: int, keys: int, depth: int, size: int, **further: Any
) -> Program:
    tensors = {
        "query": (1, queries, heads * depth),
        "key": (1, keys, shared * depth),
        "value": (1, keys, shared * size),
    }
    counts = {"query_head_count": heads, "key_value_head_count": shared}
    attributes = {"scale": SCALE, "mask_type": "NONE"} | counts
    return Form("MULTIHEAD_ATTENTION1", "", tensors | further, attributes).case(type).program


def _shared(type: str) -> Program:
    """Return attention in which all heads of queries read the same keys and values."""
    heads, queries, keys, depth, size = SIZES[0]
    tensors = {"query": (1, queries, heads * depth), "key": (1, keys, depth), "value": (1, keys, size)}
    counts = {"query_head_count": heads, "key_value_head_count": 1}
    attributes = {"scale": SCALE, "mask_type": "NONE"} | counts
    return Form("MULTIHEAD_ATTENTION1", "", tensors, attributes).case(type).program


def _causal(
    type: str, sizes: tuple[int, int, int, int], filter_value: float | None, result: str = ""
) -> Program:
    """Return attention in which scores of keys behind a query are a number, as a graph computes it; with
    None all keys are seen. `result`: the type of the results, if not that of the operands."""
    heads, queries, keys, elements = sizes
    inputs = [(type, (1, heads, rows, elements)) for rows in (queries, keys, keys)]
    return graph_program(
        partial(_causally_attended, filter_value=filter_value, result=result or type), *inputs
    )


def _causally_attended(q: Any, k: Any, v: Any, *, filter_value: float | None, result: str) -> Any:
    q, k, v = (dml.cast(each, output_type="FLOAT32") for each in (q, k, v))
    scores = dml.gemm(q, k, trans_b="TRANSPOSE", alpha=SCALE)
    rows, columns = scores.sizes[2:]
    if filter_value is not None:
        begin = columns - rows + 1
        scores = dml.diagonal_matrix1(
            scores, value=filter_value, diagonal_fill_begin=begin, diagonal_fill_end=columns
        )
    return dml.cast(dml.gemm(dml.activation_softmax1(scores, axes=[3]), v), output_type=result)


def _over_replaced(q: Any, k: Any, new_k: Any, v: Any, new_v: Any, is_new: Any) -> Any:
    """Return attention over a cache of a fixed length, whose rows are replaced if `is_new` is positive."""
    chosen = is_new > dml.activation_relu(is_new * 0.0)
    k, v = (dml.element_wise_if(chosen, new, old) for new, old in ((new_k, k), (new_v, v)))
    scores = dml.gemm(q, k, trans_b="TRANSPOSE", alpha=SCALE)
    return dml.gemm(dml.activation_softmax1(scores, axes=[3]), v)


def _with_blind_queries(q: Any, k: Any, v: Any, added: Any) -> Any:
    """Return attention in which queries that see no key have zeros, as PyTorch exports it."""
    scores = dml.gemm(q, k, trans_b="TRANSPOSE", alpha=SCALE)
    # The logarithm of 0 is -infinity.
    weights = dml.activation_softmax1(scores + dml.element_wise_log(dml.activation_relu(added)), axes=[3])
    return dml.gemm(dml.element_wise_if(dml.element_wise_is_nan(weights), 0.0, weights), v)


def _attended(q: Any, k: Any, v: Any) -> Any:
    return dml.multihead_attention(q, k, v, scale=SCALE, head_count=SIZES[0][0], mask_type="NONE")


def _with_residual(q: Any, k: Any, v: Any, residual: Any) -> Any:
    return dml.activation_linear(_attended(q, k, v), alpha=2.0, beta=0.0) + residual


def _with_gathered_mask(q: Any, k: Any, v: Any, mask: Any, indices: Any) -> Any:
    return dml.multihead_attention(
        *(q, k, v),
        mask=dml.gather(mask, indices, axis=3, index_dimensions=1),
        mask_type="BOOLEAN",
        mask_filter_value=-2.0,
        scale=SCALE,
        head_count=SIZES[0][0],
    )


def _with_two_masks(q: Any, k: Any, v: Any, rows: Any, columns: Any) -> Any:
    options: dict[str, Any] = {"mask_type": "BOOLEAN", "mask_filter_value": -2.0, "scale": SCALE}
    return dml.multihead_attention(q, k, v, mask=rows + columns, head_count=SIZES[0][0], **options)


def _of_computed(*operands: Any) -> Any:
    return _attended(*(dml.activation_linear(each, alpha=2.0, beta=0.0) for each in operands))


def _case(name: str, program: Program, offset: int = 0, times: float = 1.0) -> Case:
    """Return a case whose results are attention `times` a number."""
    absolute = times * (ROUNDED if program.outputs[0].type is ScalarType.FLOAT16 else 1e-5)
    return Case(f"chain {name}", program, offset=offset, deviation=0.5, absolute=absolute)
