"""A softmax between products as one kernel on the CPU, in every way that it has, against NumPy's float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import opendml as dml
from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.operators.softmax import softmax1
from opendml.program.functions import select
from opendml.program.node import Node, contraction, convert
from opendml.program.program import Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import permuted, reshaped
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.contraction.chain import chained_roles, is_chained, launch_of_way, ways
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import Mode
from opendml.targets.cpu.schedule import schedule
from tests.programs import layout_of, sources
from tests.targets.kernels import run_launches

FLOAT32 = ScalarType.FLOAT32
Scores = Callable[[Node], Node]


def attended(q: Node, k: Node, v: Node, scores: Scores = lambda scores: scores) -> Node:
    """The results, (heads, queries, size), of tensors (heads, queries or keys, size)."""
    heads, queries, depth = q.sizes
    keys, size = v.sizes[1:]
    q, k, v = (convert(each, FLOAT32) for each in (q, k, v))
    rows, columns = reshaped(q, (heads, queries, 1, depth)), reshaped(k, (k.sizes[0], 1, keys, depth))
    products = reshaped(contraction(rows, columns, [3]), (heads, queries, keys))
    weights = reshaped(softmax1(scores(products), axes=[2]), (heads, queries, 1, keys))
    values = reshaped(permuted(v, (0, 2, 1)), (v.sizes[0], 1, size, keys))
    return reshaped(contraction(weights, values, [3]), (heads, queries, size))


def chain(result: Node, *arrays: Array) -> Kernel:
    """The one kernel of a result made of arrays."""
    layouts = tuple(map(layout_of, arrays))
    program = Program(layouts, (packed(result.type, result.sizes),), (result,))
    (kernel,) = fuse(program, lambda kernel: True).kernels
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


def across(array: Array) -> Array:
    """The same values, whose last dimension lies across memory."""
    return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)


def test_every_way_is_accurate_and_gives_the_same_bits() -> None:
    arrays = tensors(2, 41, 257, 33, 49)
    wanted, found = expected(*arrays), set()
    roles = chained_roles(chain(attended(*sources(*arrays)), *arrays))
    assert roles is not None
    tried = {(each.micro, each.rows): each for each in ways(roles)}
    for way in tried.values():
        out = np.full(wanted.shape, np.nan, np.float32)
        run_launches([launch_of_way(roles, way)], [*arrays, out], at_once=1)
        np.testing.assert_allclose(out, wanted, rtol=2e-6, atol=2e-6, err_msg=str(way))
        found.add(out.tobytes())
    assert len(tried) > 2
    assert len(found) == 1


@pytest.mark.parametrize(
    "sizes", [(2, 28, 2, 2, 2), (2, 27, 255, 5, 3), (1, 27, 530, 256, 20), (3, 41, 40, 64, 256)], ids=str
)
def test_any_sizes_are_accurate(sizes: tuple[int, ...]) -> None:
    arrays = tensors(*sizes)
    wanted = expected(*arrays)
    out = np.full(wanted.shape, np.nan, np.float32)
    run_launches(schedule(chain(attended(*sources(*arrays)), *arrays)), [*arrays, out])
    np.testing.assert_allclose(out, wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_operands_may_lie_across_memory(which: int) -> None:
    arrays = tensors(2, 28, 70, 12, 24)
    wanted = expected(*arrays)
    arrays[which] = across(arrays[which])
    out = np.full(wanted.shape, np.nan, np.float32)
    launches = schedule(chain(attended(*sources(*arrays)), *arrays))
    assert [launch.pattern.mode for launch in launches] == [Mode.CONTRACTION_CHAIN]
    run_launches(launches, [*arrays, out])
    np.testing.assert_allclose(out, wanted, rtol=2e-6, atol=2e-6)


def test_small_caches_divide_the_rows() -> None:
    arrays = tensors(1, 490, 20, 64, 64)
    with assumed(replace(machine(), l2_bytes=64 * 1024)):
        launches = schedule(chain(attended(*sources(*arrays)), *arrays))
    assert launches[0].items > 5
    out = np.full((1, 490, 64), np.nan, np.float32)
    run_launches(launches, [*arrays, out])
    np.testing.assert_allclose(out, expected(*arrays), rtol=2e-6, atol=2e-6)


def test_scores_and_results_may_be_computed_with() -> None:
    arrays = tensors(2, 28, 300, 8, 16)
    mask = np.random.default_rng(1).integers(0, 2, (1, 28, 300)).astype(np.int32)
    q, k, v, hidden = sources(*arrays, mask)
    result = attended(q, k, v, lambda scores: scores + select(hidden < 1, -5.0, convert(hidden, FLOAT32)))
    result = convert(result * 2.0, ScalarType.FLOAT16)
    out = np.zeros(result.sizes, np.float16)
    run_launches(schedule(chain(result, *arrays, mask)), [*arrays, mask, out])
    wanted = 2 * expected(*arrays, np.where(mask == 0, -5.0, 1.0))
    np.testing.assert_allclose(out, wanted, rtol=1e-3, atol=1e-3)


def test_heads_that_share_keys_are_rows_of_one_product() -> None:
    q, k, v = tensors(3, 10, 40, 8, 16)
    k, v = k[:1], v[:1]
    out = np.zeros(q.shape[:2] + v.shape[2:], np.float32)
    kernel = chain(attended(*sources(q, k, v)), q, k, v)
    roles = chained_roles(kernel)
    assert roles is not None
    assert (roles.scores.count(roles.scores.rows), roles.scores.outer) == (30, ())
    run_launches(schedule(kernel), [q, k, v, out])
    np.testing.assert_allclose(out, expected(q, k, v), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "sizes", [(1, 15, 40, 8, 8), (1, 20, 40, 257, 8), (1, 20, 40, 8, 257)], ids=["rows", "depth", "width"]
)
def test_few_rows_and_wide_heads_are_products_of_their_own(sizes: tuple[int, ...]) -> None:
    arrays = tensors(*sizes)
    result = attended(*sources(*arrays))
    assert not is_chained(chain(result, *arrays))
    program = Program(tuple(map(layout_of, arrays)), (packed(FLOAT32, result.sizes),), (result,))
    assert len(fuse(program, is_chained).kernels) == 3


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
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)
