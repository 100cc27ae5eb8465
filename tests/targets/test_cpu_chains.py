"""A softmax between products as one kernel on the CPU, in every way that it has, against NumPy's float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Kernel
from opendml.operators.softmax import softmax1
from opendml.program.carriers import carried
from opendml.program.functions import equal, select
from opendml.program.node import Node, contraction, convert
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted, reshaped
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.contraction.chain import (
    ChainedRoles,
    Way,
    amx_ways,
    chained_roles,
    is_chained,
    launch_of_way,
    vector_ways,
    ways,
)
from opendml.targets.cpu.contraction.tiling import Chaining, ChainStep
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import CpuMode
from opendml.targets.cpu.planning import plan
from opendml.targets.cpu.schedule import schedule
from tests.programs import layout_of, sources
from tests.targets.kernels import run_launches
from tests.targets.test_cpu_matrix_registers import HERE, X86, assert_compiles, with_matrix_registers
from tests.tolerances import assert_within

FLOAT32 = ScalarType.FLOAT32
Scores = Callable[[Node], Node]
Kind = Callable[[ChainedRoles], Iterator[Way]]


def attended(
    q: Node, k: Node, v: Node, scores: Scores = lambda scores: scores, replaced: Scores | None = None
) -> Node:
    """The results, (heads, queries, size), of tensors (heads, queries or keys, size)."""
    heads, queries, depth = q.sizes
    keys, size = v.sizes[1:]
    q, k, v = (convert(each, FLOAT32) for each in (q, k, v))
    rows, columns = reshaped(q, (heads, queries, 1, depth)), reshaped(k, (k.sizes[0], 1, keys, depth))
    products = reshaped(contraction(rows, columns, [3]), (heads, queries, keys))
    weights = softmax1(scores(products), axes=[2])
    weights = reshaped(replaced(weights) if replaced else weights, (heads, queries, 1, keys))
    values = reshaped(permuted(v, (0, 2, 1)), (v.sizes[0], 1, size, keys))
    return reshaped(contraction(weights, values, [3]), (heads, queries, size))


def chain(result: Node, *arrays: Array) -> Kernel:
    """The one kernel of a result made of arrays."""
    layouts = tuple(map(layout_of, arrays))
    program = Program(layouts, (packed(result.type, result.sizes),), (result,))
    (kernel,) = fuse(program, Abilities(computes_attention=lambda kernel: True)).kernels
    return kernel


def expected(q: Array, k: Array, v: Array, added: Array | float = 0.0) -> Array:
    """The results in float64."""
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) + added
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v.astype(np.float64))


def tensors(heads: int, queries: int, keys: int, depth: int, size: int) -> list[Array]:
    """Queries, of which products with keys are about one, keys and values."""
    generator = np.random.default_rng(depth + keys)
    sizes = [(heads, queries, depth), (heads, keys, depth), (heads, keys, size)]
    q, k, v = (generator.standard_normal(each).astype(np.float32) for each in sizes)
    return [q / np.float32(depth**0.5), k, v]


def roles_of(*arrays: Array) -> ChainedRoles:
    """Those of queries, keys and values."""
    return chained(chain(attended(*sources(*arrays)), *arrays))


def chained(kernel: Kernel) -> ChainedRoles:
    """The roles of a kernel that is a chain."""
    roles = chained_roles(kernel)
    assert roles is not None
    return roles


def computed(kind: Kind, arrays: list[Array], kernel: Kernel | None = None) -> Array:
    """The results of queries, keys and values, and whatever else a kernel reads, computed in the cheapest way
    of a kind."""
    roles = chained(kernel) if kernel else roles_of(*arrays)
    way = min(kind(roles), key=lambda way: way.item_cycles)
    out = np.full((*arrays[0].shape[:2], arrays[2].shape[2]), np.nan, np.float32)
    run_launches([launch_of_way(roles, way)], [*arrays, out])
    return out


def across(array: Array) -> Array:
    """The same values, whose last dimension lies across memory."""
    return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)


KINDS = pytest.mark.parametrize("kind", [vector_ways, pytest.param(amx_ways, marks=HERE)])


@KINDS
def test_every_way_is_accurate_and_gives_the_same_bits(kind: Kind) -> None:
    arrays = tensors(2, 141, 257, 33, 49)
    wanted, found = expected(*arrays), set()
    tried = {(each.micro, each.rows): each for each in kind(roles_of(*arrays))}
    for way in tried.values():
        out = np.full(wanted.shape, np.nan, np.float32)
        run_launches([launch_of_way(roles_of(*arrays), way)], [*arrays, out], at_once=1)
        assert_within("MULTIHEAD_ATTENTION1", out, wanted, what=str(way))
        found.add(out.tobytes())
    assert len(tried) > 2
    assert len(found) == 1


@KINDS
@pytest.mark.parametrize(
    "sizes",
    [(2, 28, 2, 2, 2), (2, 27, 255, 5, 3), (1, 27, 530, 256, 20), (3, 41, 40, 64, 256), (1, 16, 273, 31, 33)],
    ids=str,
)
def test_any_sizes_are_accurate(sizes: tuple[int, ...], kind: Kind) -> None:
    arrays = tensors(*sizes)
    assert_within("MULTIHEAD_ATTENTION1", computed(kind, arrays), expected(*arrays))


AT_ODDS = {
    "not a number": np.nan,
    "infinite": np.inf,
    "minus infinite": -np.inf,
    "largest": np.finfo(np.float32).max,
    "large": 2.0**40,
    "above the window": np.nextafter(np.float32(2.0**29), np.float32(np.inf)),
    "greatest of the window": 2.0**29,
    "least of the window": 2.0**-49,
    "below the window": np.nextafter(np.float32(2.0**-49), np.float32(0)),
    "denormal": 1e-40,
    "minus zero": -0.0,
}


@KINDS
@pytest.mark.parametrize("value", AT_ODDS.values(), ids=AT_ODDS)
@pytest.mark.parametrize("which", [0, 1, 2], ids=["query", "key", "value"])
def test_any_number_may_stand_among_others(which: int, value: float, kind: Kind) -> None:
    """In one query, key or value of several panels and of two parts of the keys: no other row or column is
    wrong then. Scores beyond FLOAT32 are infinite."""
    arrays = tensors(1, 70, 300, 40, 50)
    arrays[which][0, 37, 3] = value
    with np.errstate(all="ignore"):
        wanted, found = expected(*arrays), computed(kind, arrays)
        scores = arrays[0].astype(np.float64) @ arrays[1].astype(np.float64).swapaxes(1, 2)
    wanted[(scores > np.finfo(np.float32).max).any(axis=2)] = np.nan
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_array_equal(found[~finite], wanted[~finite].astype(np.float32))
    largest = np.abs(np.where(np.isfinite(arrays[2]), arrays[2], 0)).max(axis=1, keepdims=True)
    error = np.abs(np.where(finite, found, 0) - np.where(finite, wanted, 0)) / largest
    assert error.max() <= 2e-6


@KINDS
@pytest.mark.parametrize("size", [2.0**-140, 2.0**-60, 2.0**-40, 2.0**28, 2.0**100])
def test_values_of_any_size_are_weighted_alike(size: float, kind: Kind) -> None:
    arrays = tensors(1, 40, 300, 16, 24)
    arrays[2] *= np.float32(size)
    wanted, least = expected(*arrays), 2.0**-149
    np.testing.assert_allclose(computed(kind, arrays), wanted, rtol=2e-6, atol=2e-6 * size + 2 * least)


@KINDS
@pytest.mark.parametrize("size", [2.0**-60, 2.0**-49, 2.0**-30, 2.0**14])
def test_tiny_factors_of_scores_count(size: float, kind: Kind) -> None:
    """Of queries and keys, all about as large; scores are made of their products by a large number."""
    generator = np.random.default_rng(7)
    q, k, v = tensors(1, 40, 70, 64, 24)
    for each in (q, k):
        each[:] = np.copysign(generator.uniform(1, 2, each.shape), each)
    back = size**-2 / 16
    small = [each * np.float32(size) for each in (q, k)]
    kernel = chain(attended(*sources(*small, v), lambda scores: scores * back), *small, v)
    found = computed(kind, [*small, v], kernel)
    assert_within("MULTIHEAD_ATTENTION1", found, expected(q / 16, k, v))


@KINDS
@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min], ids=["infinite", "lowest"])
def test_hidden_keys_weigh_nothing(hidden: float, kind: Kind) -> None:
    """In some rows all that come first are hidden, in one all keys: it is not a number where scores are
    -infinity, and the mean of all values where they are the lowest number."""
    arrays = tensors(1, 40, 530, 32, 32)
    mask = np.where(np.random.default_rng(3).random((1, 40, 530)) < 0.5, 0, hidden).astype(np.float32)
    mask[0, 5:20, :300] = hidden
    mask[0, :, 0] = 0
    mask[0, 30] = hidden
    q, k, v, added = sources(*arrays, mask)
    kernel = chain(attended(q, k, v, lambda scores: scores + added), *arrays, mask)
    with np.errstate(invalid="ignore"):
        wanted = expected(*arrays, mask.astype(np.float64))
    if np.isfinite(hidden):
        wanted[0, 30] = arrays[2][0].astype(np.float64).mean(axis=0)
    found = computed(kind, [*arrays, mask], kernel)
    assert_within("MULTIHEAD_ATTENTION1", found, wanted)
    assert np.isnan(found[0, 30]).all() != np.isfinite(hidden)


@KINDS
def test_small_weights_beside_large_ones_count(kind: Kind) -> None:
    """What the greatest score weighs is zero; so the results are what others add, by ever smaller weights."""
    queries, keys = 32, 64
    distance = np.linspace(0, 60, queries).astype(np.float32)
    q = np.stack([distance, np.zeros_like(distance)], axis=-1)[None]
    k = np.zeros((1, keys, 2), np.float32)
    k[0, 1:, 0] = -1
    v = np.ones((1, keys, 16), np.float32)
    v[0, 0] = 0
    np.testing.assert_allclose(computed(kind, [q, k, v]), expected(q, k, v), rtol=1e-6)


@X86
def test_code_for_matrix_registers_is_made_on_any_machine() -> None:
    with assumed(with_matrix_registers()):
        roles = roles_of(*tensors(2, 128, 128, 64, 64))
        patterns = {way: launch_of_way(roles, way).pattern for way in amx_ways(roles)}
        assert all(pattern.walk_as(Chaining).a.instructions.are_amx for pattern in patterns.values())
        assert_compiles(next(iter(patterns.values())))


@HERE
def test_matrix_registers_are_taken_where_the_processor_has_them() -> None:
    roles = roles_of(*tensors(1, 128, 128, 64, 64))
    assert all(way.instructions.are_amx for way in ways(roles))
    with assumed(machine().without_matrix_registers):
        found = ways(roles)
        assert found == list(vector_ways(roles))


@HERE
@pytest.mark.parametrize("sizes", [(3, 128, 128, 64, 64), (2, 700, 300, 64, 64)], ids=str)
def test_threads_change_no_bits_in_matrix_registers(sizes: tuple[int, ...]) -> None:
    arrays = tensors(*sizes)
    found = set()
    for threads in (1, 2, 7):
        with assumed(replace(machine(), threads=threads)):
            launches = schedule(chain(attended(*sources(*arrays)), *arrays))
        assert [launch.pattern.walk_as(Chaining).a.instructions.are_amx for launch in launches] == [True]
        out = np.full((*sizes[:2], sizes[4]), np.nan, np.float32)
        run_launches(launches, [*arrays, out])
        found.add(out.tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("which", [0, 1, 2])
def test_operands_may_lie_across_memory(which: int) -> None:
    arrays = tensors(2, 28, 70, 12, 24)
    wanted = expected(*arrays)
    arrays[which] = across(arrays[which])
    out = np.full(wanted.shape, np.nan, np.float32)
    launches = schedule(chain(attended(*sources(*arrays)), *arrays))
    assert [launch.pattern.mode for launch in launches] == [CpuMode.CONTRACTION_CHAIN]
    run_launches(launches, [*arrays, out])
    assert_within("MULTIHEAD_ATTENTION1", out, wanted)


def test_small_caches_divide_the_rows() -> None:
    arrays = tensors(1, 490, 20, 64, 64)
    with assumed(replace(machine(), l2_bytes=64 * 1024)):
        launches = schedule(chain(attended(*sources(*arrays)), *arrays))
    assert launches[0].items > 5
    out = np.full((1, 490, 64), np.nan, np.float32)
    run_launches(launches, [*arrays, out])
    assert_within("MULTIHEAD_ATTENTION1", out, expected(*arrays))


def test_scores_and_results_may_be_computed_with() -> None:
    arrays = tensors(2, 28, 300, 8, 16)
    mask = np.random.default_rng(1).integers(0, 2, (1, 28, 300)).astype(np.int32)
    q, k, v, hidden = sources(*arrays, mask)
    result = attended(q, k, v, lambda scores: scores + select(hidden < 1, -5.0, convert(hidden, FLOAT32)))
    result = convert(result * 2.0, ScalarType.FLOAT16)
    out = np.zeros(result.sizes, np.float16)
    run_launches(schedule(chain(result, *arrays, mask)), [*arrays, mask, out])
    wanted = 2 * expected(*arrays, np.where(mask == 0, -5.0, 1.0))
    assert_within("MULTIHEAD_ATTENTION1", out, wanted)


def test_heads_that_share_keys_are_rows_of_one_product() -> None:
    q, k, v = tensors(3, 10, 40, 8, 16)
    k, v = k[:1], v[:1]
    out = np.zeros(q.shape[:2] + v.shape[2:], np.float32)
    kernel = chain(attended(*sources(q, k, v)), q, k, v)
    roles = chained_roles(kernel)
    assert roles is not None
    assert (roles.scores.count(roles.scores.rows), roles.scores.outer) == (30, ())
    run_launches(schedule(kernel), [q, k, v, out])
    assert_within("MULTIHEAD_ATTENTION1", out, expected(q, k, v))


@pytest.mark.parametrize("sizes", [(1, 20, 40, 257, 8), (1, 20, 40, 8, 257)], ids=["depth", "width"])
def test_wide_heads_are_products_of_their_own(sizes: tuple[int, ...]) -> None:
    arrays = tensors(*sizes)
    result = attended(*sources(*arrays))
    assert not is_chained(chain(result, *arrays))
    program = Program(tuple(map(layout_of, arrays)), (packed(FLOAT32, result.sizes),), (result,))
    assert len(fuse(program, Abilities(computes_attention=is_chained)).kernels) == 3


FEW = [
    (2, 1, 2, 2, 2),
    (3, 1, 530, 64, 64),
    (4, 5, 257, 33, 49),
    (2, 15, 1100, 20, 256),
    (1, 3, 512, 256, 31),
]


@pytest.mark.parametrize("sizes", FEW, ids=str)
@pytest.mark.parametrize("cache", [np.float32, np.float16])
def test_few_queries_read_keys_and_values_where_they_lie(sizes: tuple[int, ...], cache: type) -> None:
    """Long sequences of keys are divided among items, and threads change no bit."""
    q, *both = tensors(*sizes)
    arrays = [q, *[each.astype(cache) for each in both]]
    kernel, found = chain(attended(*sources(*arrays)), *arrays), set()
    for threads in (1, 2, 7):
        with assumed(replace(machine(), threads=threads)):
            launches = schedule(kernel)
        steps = [launch.pattern.walk_as(Chaining).step for launch in launches]
        assert steps == ([ChainStep.WHOLE] if sizes[2] <= 512 else [ChainStep.PARTIAL, ChainStep.COMBINE])
        out = np.full((*sizes[:2], sizes[4]), np.nan, np.float32)
        run_launches(launches, [*arrays, out])
        assert_within("MULTIHEAD_ATTENTION1", out, expected(*arrays))
        found.add(out.tobytes())
    assert len(found) == 1


@X86
@pytest.mark.parametrize(("features", "vector_bytes"), [("+fma,+f16c,+avx2", 32), ("+fma,+f16c,-avx2", 16)])
def test_few_queries_in_narrow_vectors(features: str, vector_bytes: int) -> None:
    q, *both = tensors(4, 5, 257, 33, 49)
    arrays = [q, *[each.astype(np.float16) for each in both]]
    out = np.full((4, 5, 49), np.nan, np.float32)
    with assumed(replace(machine(), features=features, vector_bytes=vector_bytes)):
        run_launches(schedule(chain(attended(*sources(*arrays)), *arrays)), [*arrays, out])
    assert_within("MULTIHEAD_ATTENTION1", out, expected(*arrays))


@pytest.mark.parametrize("type", ["bfloat16", dml.FLOAT16], ids=str)
def test_a_cache_of_16_bits_is_neither_widened_nor_copied(type: str | dml.TensorDataType) -> None:
    graph = dml.Graph()
    q, k, v = (graph.input(name, type, [4, 1, rows, 64]) for name, rows in (("q", 1), ("k", 300), ("v", 300)))
    q, k, v = (dml.cast(each, output_type="FLOAT32") for each in (q, k, v))
    scores = dml.gemm(q, k, trans_b=dml.MatrixTransform.TRANSPOSE, alpha=0.125)
    model = graph.compile({"y": dml.gemm(dml.activation_softmax1(scores, axes=[3]), v)})
    assert len(plan(carried(model._program)).kernels.kernels) == 1


def without_nan(weights: Node) -> Node:
    """Weights of which those that are NaN become 0.25."""
    return select(equal(weights, weights), weights, 0.25)


@pytest.mark.parametrize("queries", [3, 20])
@pytest.mark.parametrize("keys", [300, 700])
def test_odd_numbers_are_those_of_three_kernels(queries: int, keys: int) -> None:
    """All keys of some queries are hidden, and what takes the place of their weights may be a number."""
    q, k, v = arrays = tensors(2, queries, keys, 32, 16)
    mask = np.zeros((2, queries, keys), np.float32)
    mask[0, 1], mask[1, 2, :290] = -np.inf, -np.inf
    v[1, 5, 3], v[1, 6] = np.inf, np.finfo(np.float32).max
    k[1, 7] *= 1e30
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = expected(q, k, v, mask)
    for replaced in (None, without_nan):
        given = sources(*arrays, mask)
        result = attended(*given[:3], lambda scores, added=given[3]: scores + added, replaced)
        out = np.zeros(result.sizes, np.float32)
        run_launches(schedule(chain(result, *arrays, mask)), [*arrays, mask, out])
        if replaced:
            wanted[0, 1] = 0.25 * v[0].astype(np.float64).sum(axis=0)
        finite = np.isfinite(wanted) & (np.abs(wanted) < np.finfo(np.float32).max)
        assert_within("MULTIHEAD_ATTENTION1", out[finite], wanted[finite])
        assert (np.isnan(out) == np.isnan(wanted)).all()


Tensor = dml.GraphTensor


def products(a: Tensor, b: Tensor) -> Tensor:
    """Those of the rows of two tensors."""
    return dml.gemm(a, b, trans_b=dml.MatrixTransform.TRANSPOSE)


def weights(a: Tensor, b: Tensor) -> Tensor:
    """The softmax of such products."""
    return dml.activation_softmax1(products(a, b), axes=[3])


def first(tensor: Tensor, *sizes: int) -> Tensor:
    """The first elements, so many along each dimension."""
    return dml.slice1(
        tensor, input_window_offsets=[0] * 4, input_window_sizes=sizes, input_window_strides=[1] * 4
    )


@pytest.mark.parametrize(
    "graph",
    [
        lambda q, k: products(weights(q, k), weights(k, q)),
        lambda q, k: dml.gemm(dml.activation_softmax1(dml.gemm(weights(q, k), k), axes=[3]), k),
        lambda q, k: dml.gemm(first(weights(q, k), 1, 1, 24, 24), first(k, 1, 1, 24, 24)),
        lambda q, k: dml.gemm(first(weights(q, k), 1, 2, 1, 24), k),
    ],
    ids=["both operands are weights", "weights of weighted sums", "of the first head", "of the first query"],
)
def test_what_is_more_or_less_than_a_chain_is_computed_too(graph: Callable[..., Tensor]) -> None:
    given = np.random.default_rng(5).standard_normal((2, 1, 2, 24, 24)).astype(np.float32)
    results = []
    for device in ("cpu", "reference"):
        made = dml.Graph()
        q, k = (made.input(name, dml.FLOAT32, [1, 2, 24, 24]) for name in "qk")
        model = made.compile({"y": graph(q, k)}, device=device)
        results.append(model(q=given[0], k=given[1])["y"])
    assert_within("MULTIHEAD_ATTENTION1", *results)
