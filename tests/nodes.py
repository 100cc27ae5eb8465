"""Programs that are built node by node, for tests of single parts of the compiler. `tools.operator_case`
makes the programs of public operators, which users run."""

from __future__ import annotations

from collections.abc import Callable

from opendml.operators.softmax import softmax1
from opendml.program.functions import rounded, select
from opendml.program.node import Node, Operation, contraction, convert, index, ordered, source
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted, reshaped, view, windows

FLOAT32, FLOAT16 = ScalarType.FLOAT32, ScalarType.FLOAT16
Scores = Callable[[Node], Node]


def program(*results: Node) -> Program:
    """Return the program over packed tensors."""
    sources = {node.attribute: node for node in ordered(results) if node.operation is Operation.SOURCE}
    inputs = [packed(sources[number].type, sources[number].sizes) for number in range(len(sources))]
    return Program(tuple(inputs), tuple(packed(each.type, each.sizes) for each in results), results)


def matrix_product(
    type: ScalarType,
    sizes: tuple[int, int, int],
    a_turned: bool = False,
    b_turned: bool = False,
    batch: int = 1,
) -> Node:
    """Return the product [batch, m, n, 1] of the sources 0 and 1. Turned sources lie transposed in memory."""
    rows, columns = operands_of((type, type), sizes, a_turned, b_turned, batch)
    return contraction(_wide(rows), _wide(columns), (3,))


def operands_of(
    types: tuple[ScalarType, ScalarType],
    sizes: tuple[int, int, int],
    a_turned: bool,
    b_turned: bool,
    batch: int = 1,
) -> tuple[Node, Node]:
    """Return the operands of such a product, of two types."""
    m, n, k = sizes
    a = source(0, types[0], (batch, k, m) if a_turned else (batch, m, k))
    b = source(1, types[1], (batch, n, k) if b_turned else (batch, k, n))
    still, a_row, a_column = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1)
    b_row, b_column = (0, 0, 0, 1), (0, 0, 1, 0)
    a_steps = (still, a_column, a_row) if a_turned else (still, a_row, a_column)
    b_steps = (still, b_column, b_row) if b_turned else (still, b_row, b_column)
    rows = view(a, (batch, m, 1, k), (0, 0, 0), a_steps)
    columns = view(b, (batch, 1, n, k), (0, 0, 0), b_steps)
    return rows, columns


def convolution(
    type: ScalarType,
    images: tuple[int, int, int, int],
    filters: tuple[int, int, int],
    *,
    groups: int = 1,
    stride: int = 1,
    dilation: int = 1,
    before: int = 0,
    after: int = 0,
) -> Node:
    """Return the convolution of the sources 0 and 1: [n, groups, outputs / groups, height, width, 1, 1, 1].
    `filters` are outputs, height, width.
    """
    n, channels, *image = images
    outputs, *window = filters
    counts = [
        (size + before + after - (tap - 1) * dilation - 1) // stride + 1
        for size, tap in zip(image, window, strict=True)
    ]
    per_group = channels // groups
    x = reshaped(source(0, type, images), (n, groups, per_group, *image))
    seen = windows(x, counts, window, (stride,) * 2, (dilation,) * 2, (before,) * 2)
    # From [n, g, c, out, window] to [n, g, 1, out, c, window].
    sizes = (n, groups, 1, *counts, per_group, *window)
    steps = [[0] * 8 for _ in range(7)]
    for row, column in enumerate((0, 1, 5, 3, 4, 6, 7)):
        steps[row][column] = 1
    patches = view(seen, sizes, (0,) * 7, steps)
    weights = source(1, type, (outputs, per_group, *window))
    weights = reshaped(weights, (1, groups, outputs // groups, 1, 1, per_group, *window))
    return contraction(_wide(weights), _wide(patches), (5, 6, 7))


def _wide(value: Node) -> Node:
    return convert(value, FLOAT32) if value.type is FLOAT16 else value


def attended(q: Node, k: Node, v: Node, *, scores: Scores = lambda scores: scores) -> Node:
    """Return the results of attention, (heads, queries, size), of tensors (heads, queries or keys, size)."""
    heads, queries, depth = q.sizes
    keys, size = v.sizes[1:]
    q, k, v = (convert(each, FLOAT32) for each in (q, k, v))
    rows, columns = reshaped(q, (heads, queries, 1, depth)), reshaped(k, (k.sizes[0], 1, keys, depth))
    products = reshaped(contraction(rows, columns, [3]), (heads, queries, keys))
    weights = rounded(softmax1(scores(products), axes=[2]))
    values = reshaped(permuted(v, (0, 2, 1)), (v.sizes[0], 1, size, keys))
    sums = contraction(reshaped(weights, (heads, queries, 1, keys)), values, [3])
    return reshaped(sums, (heads, queries, size))


def causal(scores: Node, filter_value: float) -> Node:
    """Return half of scores, (heads, queries, keys), and a number where the key is behind the query."""
    _, queries, keys = scores.sizes
    diagonal = index(ScalarType.INT64, (1, queries, keys), 0, (0, -1, 1))
    return select(diagonal >= keys - queries + 1, filter_value, scores * 0.5)


def tensors(
    type: ScalarType, sizes: tuple[int, ...], heads_of_keys: int | None = None
) -> tuple[Node, Node, Node]:
    """Return the sources of queries, keys and values."""
    heads, queries, keys, depth, size = sizes
    shared = heads_of_keys or heads
    q, k = source(0, type, (heads, queries, depth)), source(1, type, (shared, keys, depth))
    return q, k, source(2, type, (shared, keys, size))
