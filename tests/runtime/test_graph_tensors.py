"""Tensors of a graph as arrays: Python's operators, indices and methods mean what NumPy means by them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, Graph, GraphTensor, InvalidArgument
from tests.running import same_bits

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROW = np.arange(1, 5, dtype=np.float32)

OPERATORS: dict[str, Callable[[Any], Any]] = {
    "+ array": lambda t: t + ROW,
    "array +": lambda t: ROW + t,
    "- tensor": lambda t: t - t[1:],
    "number -": lambda t: 1 - t,
    "* twice": lambda t: 2 * t * ROW,
    "/ number": lambda t: t / 2,
    "number /": lambda t: 1 / (t + 1),
    "** number": lambda t: t**2,
    "number **": lambda t: 2 ** (t / 8),
    "** array": lambda t: (t + 1) ** (ROW / 4),
    "NumPy's number *": lambda t: np.float32(3) * t,
    "-": lambda t: -t,
    "+": lambda t: +t,
    "abs": lambda t: abs(t - 3),
    "==": lambda t: (t == 3) * np.uint8(1),
    "!=": lambda t: (t != 3) * np.uint8(1),
    "<": lambda t: (t < ROW) * np.uint8(1),
    "array <": lambda t: operator.lt(ROW, t) * np.uint8(1),
    "<=": lambda t: (t <= 5) * np.uint8(1),
    ">=": lambda t: (t >= 5) * np.uint8(1),
    "matrix on the right": lambda t: t @ np.ones((4, 5), np.float32),
    "matrices on the right": lambda t: t @ np.arange(40, dtype=np.float32).reshape(2, 4, 5),
    "one of several matrices": lambda t: t[:1] @ np.arange(40, dtype=np.float32).reshape(2, 4, 5),
    "five dimensions": lambda t: t[None, :, None] @ t.reshape(2, 1, 4, 3)[:, None],
    "matrix on the left": lambda t: np.arange(15, dtype=np.float32).reshape(5, 3) @ t,
    "column": lambda t: t @ ROW,
    "row": lambda t: np.ones(3, np.float32) @ t,
    "integer": lambda t: t[0],
    "integers at the end": lambda t: t[..., -1],
    "steps": lambda t: t[1, ..., ::-2],
    "backwards": lambda t: t[:, 2:0:-1, ::3],
    "new dimensions": lambda t: t[None, :, 1:, None],
    "all": lambda t: t[...],
    "reshape": lambda t: t.reshape(6, -1),
    "reshape by a list": lambda t: t.reshape([24]),
    "transpose": lambda t: t.transpose(2, 0, 1) * ROW[:, None, None],
    "transpose by the end": lambda t: t.transpose((0, -1, 1)),
    "T": lambda t: t.T,
}


def test_operators_indices_and_methods_are_those_of_arrays(device: Device) -> None:
    graph = Graph()
    t = graph.input("x", FLOAT32, X.shape)
    model = graph.compile({name: build(t) for name, build in OPERATORS.items()}, device)
    results = model(X)
    for name, build in OPERATORS.items():
        expected = build(X)
        assert results[name].shape == expected.shape, name
        assert results[name].dtype == expected.dtype, name
        np.testing.assert_allclose(results[name], expected, rtol=1e-6, err_msg=name)


def test_slices_of_every_kind_are_numpys() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 5, 6)).astype(np.float32)
    graph = Graph()
    t = graph.input("x", FLOAT32, x.shape)
    wanted: dict[str, Any] = {}
    while len(wanted) < 30:
        index = tuple(_index(random, size) for size in x.shape)
        if x[index].size and x[index].ndim:
            wanted[str(index)] = index
    results = graph.compile({name: t[index] for name, index in wanted.items()})(x)
    for name, index in wanted.items():
        assert same_bits(results[name], np.ascontiguousarray(x[index])), name


def _index(random: np.random.Generator, size: int) -> Any:
    if random.random() < 0.3:
        return int(random.integers(-size, size))
    ends = [None if random.random() < 0.3 else int(random.integers(-size - 2, size + 2)) for _ in range(2)]
    return slice(*ends, int(random.choice([-3, -2, -1, 1, 2, 3])))


def test_a_matrix_product_at_an_old_level_has_its_four_dimensions() -> None:
    graph = Graph(feature_level="2_0")
    t = graph.input("x", FLOAT32, [1, 2, 3, 4])
    result = t.reshape(1, 1, 6, 4) @ np.ones((1, 1, 4, 2), np.float32)
    assert result.shape == (1, 1, 6, 2)


def test_tensors_say_what_they_are_as_arrays_do() -> None:
    t = Graph().input("x", dml.FLOAT16, [2, 3])
    assert (t.shape, t.ndim, t.dtype) == ((2, 3), 2, np.dtype(np.float16))


def test_tensors_are_keys_and_equal_to_nothing_else() -> None:
    t = Graph().input("x", FLOAT32, [2])
    assert {t: 1}[t] == 1
    assert t in [t]
    assert (t == None) is False  # noqa: E711 - what a caller may write
    assert (t != "x") is True


def _tensor() -> GraphTensor:
    return Graph().input("x", FLOAT32, [2, 3, 4])


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (bool, "truth value of a tensor of a graph is not known before the graph runs"),
        (len, r"has no len\(\); \.shape has its sizes"),
        (iter, "cannot be iterated over; dml.split makes several"),
        (np.asarray, "has no values before the graph is compiled and called"),
        (lambda t: t + "a", "unsupported operand"),
        (lambda t: t + 1j, "unsupported operand"),
        (lambda t: t @ 2, "unsupported operand"),
    ],
)
def test_what_a_symbol_cannot_do_is_an_error_of_types(use: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        use(_tensor())


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda t: t + np.ones(4), "element_wise_add.b: FLOAT64; must have the data type of a, FLOAT32"),
        (lambda t: t + np.ones(3, np.float32), "element_wise_add.b: 1 dimension; must have as many as a, 3"),
        (lambda t: t + _tensor(), "element_wise_add.b: not a tensor of this graph; it is one of another"),
        (lambda t: t[2], "index of dimension 0: 2; -2 to 1 are there"),
        (lambda t: t[0, 0, 0], "no dimension is left"),
        (lambda t: t[0, 0, 0, 0], "4 indices of a tensor with 3 dimensions"),
        (lambda t: t[..., ...], "one ... at most"),
        (lambda t: t[1:1], "slice(1, 1, None) selects nothing of 2 elements"),
        (lambda t: t[::0], "slice step cannot be zero"),
        (lambda t: t["a":], "index of dimension 0: slice('a', None, None)"),
        (lambda t: t[t], "dml.gather takes tensors of them"),
        (lambda t: t[(None,) * 6], "9 dimensions"),
        (lambda t: t.reshape(5, -1), "reshape: [5, -1]; sizes of 24 elements, as [2, 3, 4] has"),
        (lambda t: t.reshape(-1, -1), "one of them may be -1"),
        (lambda t: t.reshape("a"), "reshape: ('a',); whole numbers are needed"),
        (lambda t: t.permute(0, 1), "permute: [0, 1]; each of the 3 dimensions once is needed"),
        (lambda t: t.permute(0, 1, 1), "each of the 3 dimensions once"),
        (lambda t: t @ t, "@ of sizes [2, 3, 4] and [2, 3, 4]: 4 columns and 3 rows"),
        (lambda t: t @ np.ones((3, 4, 5), np.float32), "[2] and [3] matrices cannot be repeated"),
        (lambda t: t[0, 0] @ ROW, "a number, which is no tensor of DirectML"),
        (lambda t: dml.cast(t, output_type="INT32") / 2, "/ of INT32: a quotient of integers is a float"),
        (lambda t: dml.cast(t, output_type="INT32") + 1.5, "1.5; a whole number that INT32 holds"),
        (lambda t: -dml.cast(t, output_type="UINT8"), "element_wise_negate.input: UINT8"),
        (lambda t: dml.cast(t, output_type="INT32") @ np.ones((4, 1), np.int32), "gemm.a: INT32"),
    ],
)
def test_what_directml_cannot_say_is_a_clear_error(use: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        use(_tensor())
    assert message in str(error.value)


def test_graphs_repeat_sizes_as_calls_do(device: Device) -> None:
    calls: list[Callable[[Any, Any], Any]] = [
        dml.element_wise_add,
        lambda x, row: dml.element_wise_if(x < row, row, x),
        lambda x, row: dml.mean_variance_normalization1(x, row, row[None], axes=[2]),
        lambda x, row: dml.mean_variance_normalization2(x, row, row, axes=[1, 2], use_variance=True),
        lambda x, row: dml.mean_variance_normalization1(x, 0.5, None, axes=[0]),
    ]
    graph = Graph()
    x, row = graph.input("x", FLOAT32, X.shape), graph.input("row", FLOAT32, ROW.shape)
    model = graph.compile({str(number): call(x, row) for number, call in enumerate(calls)}, device)
    results = model(X, ROW)
    for number, call in enumerate(calls):
        expected = np.where(X < ROW, ROW, X) if number == 1 else call(X, ROW)
        np.testing.assert_allclose(results[str(number)], expected, rtol=1e-6, atol=1e-6)


def test_a_row_is_not_taken_for_statistics_of_channels() -> None:
    for x in (X, _tensor()):
        with pytest.raises(InvalidArgument, match=r"batch_normalization\.mean: 1 dimension"):
            dml.batch_normalization(x, ROW, ROW, ROW, ROW, epsilon=0.1)
