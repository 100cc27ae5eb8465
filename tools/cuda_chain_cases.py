"""Programs for the checks of the CUDA target with a softmax between products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from opendml.operators.softmax import softmax1
from opendml.program.functions import rounded, select
from opendml.program.node import Node, contraction, convert, index, source
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted, reshaped
from tools.cuda_case import Case
from tools.cuda_view_cases import program

FLOAT32, FLOAT16 = ScalarType.FLOAT32, ScalarType.FLOAT16
ROUNDED = 2e-4
"""What the rounding of weights to FLOAT16 changes at most in results of these cases."""
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
Scores = Callable[[Node], Node]


def attended(q: Node, k: Node, v: Node, *, scores: Scores = lambda scores: scores) -> Node:
    """The results, (heads, queries, size), of tensors (heads, queries or keys, size)."""
    heads, queries, depth = q.sizes
    keys, size = v.sizes[1:]
    q, k, v = (convert(each, FLOAT32) for each in (q, k, v))
    rows, columns = reshaped(q, (heads, queries, 1, depth)), reshaped(k, (k.sizes[0], 1, keys, depth))
    products = reshaped(contraction(rows, columns, [3]), (heads, queries, keys))
    weights = rounded(softmax1(scores(products), axes=[2]))
    values = reshaped(permuted(v, (0, 2, 1)), (v.sizes[0], 1, size, keys))
    sums = contraction(reshaped(weights, (heads, queries, 1, keys)), values, [3])
    return reshaped(sums, (heads, queries, size))


def tensors(
    type: ScalarType, sizes: tuple[int, ...], heads_of_keys: int | None = None
) -> tuple[Node, Node, Node]:
    """The sources of queries, keys and values."""
    heads, queries, keys, depth, size = sizes
    shared = heads_of_keys or heads
    q, k = source(0, type, (heads, queries, depth)), source(1, type, (shared, keys, depth))
    return q, k, source(2, type, (shared, keys, size))


def chain_cases() -> Iterator[Case]:
    """All of them."""
    for type in (FLOAT32, FLOAT16):
        for sizes in SIZES:
            yield _case(f"{type.name} {sizes}", convert(attended(*tensors(type, sizes)), type))
        plain = attended(*tensors(type, SIZES[0]))
        yield _case(f"{type.name} misaligned", convert(plain, type), offset=1)
        q, k, v = tensors(type, SIZES[0])
        turned = [
            source(number, type, (3, each.sizes[2], each.sizes[1])) for number, each in enumerate((q, k, v))
        ]
        across = [permuted(each, (0, 2, 1)) for each in turned]
        yield _case(f"{type.name} across memory", convert(attended(*across), type))
        shared = attended(*tensors(type, SIZES[0], 1))
        yield _case(f"{type.name} of shared keys", convert(shared, type))
        mask = source(3, ScalarType.INT32, (1, 70, 130))

        def masked(scores: Node, mask: Node = mask) -> Node:
            return scores * 0.5 + select(mask < 1, -2.0, convert(mask, FLOAT32) * 0.25)

        residual = convert(source(4, type, q.sizes[:2] + v.sizes[2:]), FLOAT32)
        yield _case(f"{type.name} masked", convert(attended(q, k, v, scores=masked) * 2.0 + residual, type))
        doubled = [rounded(convert(convert(each, FLOAT32) * 2.0, type)) for each in (q, k, v)]
        yield _case(f"{type.name} of computed operands", convert(attended(*doubled), type))
        for heads, queries, keys, depth in CAUSAL:
            q, k, v = tensors(type, (heads, queries, keys, depth, depth))
            seen = attended(q, k, v, scores=partial(causal, filter_value=-math.inf))
            yield _case(f"{type.name} causal {queries} {keys} of {depth}", convert(seen, type))
        filtered = attended(*tensors(type, (2, 200, 200, 64, 64)), scores=partial(causal, filter_value=-9.0))
        yield _case(f"{type.name} causal by a number", convert(filtered, type))
    for size in (192, 256):
        wide = attended(*tensors(FLOAT16, (2, 150, 200, size, size)))
        yield _case(f"FLOAT16 of {size} elements", convert(wide, FLOAT16))
    narrow = attended(*tensors(FLOAT16, (2, 150, 200, 256, 40)))
    yield _case("FLOAT16 of 256 elements misaligned", convert(narrow, FLOAT16), offset=1)
    kept = attended(*tensors(FLOAT16, (2, 200, 300, 64, 64)))
    yield _case("FLOAT16 with FLOAT32 results", kept)


def causal(scores: Node, filter_value: float) -> Node:
    """Scores, (heads, queries, keys), of which those of keys behind a query have a number."""
    _, queries, keys = scores.sizes
    diagonal = index(ScalarType.INT64, (1, queries, keys), 0, (0, -1, 1))
    return select(diagonal >= keys - queries + 1, filter_value, scores * 0.5)


def _case(name: str, result: Node, offset: int = 0) -> Case:
    absolute = ROUNDED if result.type is FLOAT16 else 1e-5
    return Case(f"chain {name}", program(result), offset=offset, deviation=0.5, absolute=absolute)
