"""Elements by their indices in ONNX models."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import helper

from opendml import InvalidArgument
from opendml import onnx as dml_onnx
from opendml.frontends.onnx.check import check
from opendml.frontends.onnx.scatter_reduction import FUNCTIONS
from tests.onnx.models import Array, assert_same, check_node, computed, feed, one_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_gather_makes_numbers() -> None:
    check_node("Gather", [X[0, 0], np.array(2)])
    check_node("Gather", [X[0, 0] > 1, np.array([2])])


def test_compress_with_a_known_condition() -> None:
    condition = np.array([False, True, True])
    check_node("Compress", [X, condition], axis=1, known=(1,))
    check_node("Compress", [X, condition], known=(1,))


def test_scatter_of_old_models() -> None:
    x: list[Array | None] = [X[0], np.array([[0, -1]]), np.array([[50, 60]], np.float32)]
    wanted = X[0].copy()
    wanted[0, 0], wanted[0, 3] = 50, 60
    assert_same(computed(one_node("Scatter", x, opset=9, axis=1), feed(x)), [wanted])


_REDUCTIONS = pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])


@_REDUCTIONS
@pytest.mark.parametrize("known", [(), (1,)])
def test_scattered_updates_of_one_element_are_reduced(reduction: str, known: tuple[int, ...]) -> None:
    random = np.random.default_rng(4)
    for axis, sizes in ((0, (7, 3, 4)), (-1, (2, 1, 9))):
        most = X.shape[axis]
        indices = random.integers(-most, most, sizes)
        updates = random.uniform(-2, 2, sizes).astype(np.float32)
        check_node("ScatterElements", [X, indices, updates], axis=axis, reduction=reduction, known=known)
    few = np.array([[0, 1, 1]], np.int32), np.array([[3, 5, 7]], np.float16)
    check_node("ScatterElements", [X[0].astype(np.float16), *few], axis=1, reduction=reduction, known=known)


@_REDUCTIONS
@pytest.mark.parametrize("known", [(), (1,)])
def test_scattered_slices_of_one_place_are_reduced(reduction: str, known: tuple[int, ...]) -> None:
    random = np.random.default_rng(4)
    for length in (1, 2, 3):
        indices = random.integers(-2, 2, (3, 5, length))
        updates = random.uniform(-2, 2, (3, 5, *X.shape[length:])).astype(np.float32)
        model = one_node("ScatterND", [X, indices, updates], reduction=reduction, known=known)
        given = feed([X, indices, updates], known)
        wanted = X.copy()
        function = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
        function.at(wanted, tuple(np.moveaxis(indices, -1, 0)), updates)
        assert_same(computed(model, given), [wanted])


def test_scattered_integers_are_added_exactly_however_many() -> None:
    indices = np.random.default_rng(4).integers(0, 5, 300)
    check_node("ScatterElements", [np.zeros(5, np.int64), indices, np.full(300, 2**40)], reduction="add")


@pytest.mark.parametrize("type", [np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.uint64, np.int32])
@_REDUCTIONS
def test_updates_of_all_types_are_reduced(reduction: str, type: Any) -> None:
    random = np.random.default_rng(5)
    data, updates = random.integers(1, 4, (6, 40)).astype(type), random.integers(1, 3, (30, 40)).astype(type)
    indices = random.integers(-6, 6, 30)
    wanted = data.astype(np.float64 if np.dtype(type).kind in "fV" else type)
    FUNCTIONS[reduction].at(wanted, indices, updates.astype(wanted.dtype))
    spread = np.ascontiguousarray(np.broadcast_to(indices[:, None], (30, 40)))
    for operator, given in (("ScatterND", indices[:, None]), ("ScatterElements", spread)):
        inputs: list[Array | None] = [data, given, updates]
        model = one_node(operator, inputs, reduction=reduction)
        assert_same(computed(model, feed(inputs)), [wanted.astype(type)], rtol=0, atol=0)


@pytest.mark.parametrize("columns", [1, 40])
@pytest.mark.parametrize("count", [0, 1, 3000])
def test_sums_at_indices_are_those_in_float64(count: int, columns: int) -> None:
    random = np.random.default_rng(6)
    data, updates = random.standard_normal((70, columns)), random.standard_normal((count, columns))
    indices = np.minimum(
        random.integers(-70, 70, count), random.integers(-70, 200, count)
    )  # most at the first
    wanted = data.copy()
    np.add.at(wanted, indices, updates)
    spread = np.ascontiguousarray(np.broadcast_to(indices[:, None], (count, columns)))
    for operator, given in (("ScatterND", indices[:, None]), ("ScatterElements", spread)):
        inputs: list[Array | None] = [data.astype(np.float32), given, updates.astype(np.float32)]
        model = one_node(operator, inputs, reduction="add")
        assert_same(computed(model, feed(inputs)), [wanted.astype(np.float32)], rtol=1e-4, atol=1e-4)


def test_a_sum_of_halves_is_rounded_once() -> None:
    inputs: list[Array | None] = [
        np.ones(1, np.float16),
        np.zeros(64, np.int64),
        np.full(64, 2**-11, np.float16),
    ]
    (result,) = computed(one_node("ScatterElements", inputs, reduction="add"), feed(inputs))
    assert result == np.float16(1 + 64 / 2**11)


@_REDUCTIONS
def test_not_a_number_stays_in_its_place(reduction: str) -> None:
    for indices, known in (([0, 2, 2], ()), ([0, 2, 3], (1,))):
        updates = np.array([[1, np.nan, np.inf]], np.float32)
        inputs: list[Array | None] = [X[0, :1], np.array([indices]), updates]
        model = one_node("ScatterElements", inputs, axis=1, reduction=reduction, known=known)
        (result,) = computed(model, feed(inputs, known))
        assert np.isnan(result).tolist() == [[False, False, True, False]]


def test_a_message_passing_layer_takes_one_pass_over_its_messages() -> None:
    random = np.random.default_rng(7)
    x, weights = random.standard_normal((20, 8)), random.standard_normal((8, 8))
    source, target = random.integers(0, 20, 90), random.integers(0, 20, 90)
    nodes = [
        helper.make_node("Gather", ["x", "source"], ["taken"]),
        helper.make_node("MatMul", ["taken", "weights"], ["messages"]),
        helper.make_node("Unsqueeze", ["target", "one"], ["column"]),
        helper.make_node("Expand", ["column", "sizes"], ["indices"]),
        helper.make_node("ScatterElements", ["x", "indices", "messages"], ["sums"], axis=0, reduction="add"),
        helper.make_node("Relu", ["sums"], ["y"]),
    ]
    constants = {"one": np.array([1]), "sizes": np.array([90, 8]), "weights": weights.astype(np.float32)}
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [20, 8]),
        *(helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [90]) for name in ("source", "target")),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    wanted = x.copy()
    np.add.at(wanted, target, x[source] @ weights)
    given = {"x": x.astype(np.float32), "source": source, "target": target}
    assert_same(computed(model, given), [np.maximum(wanted, 0).astype(np.float32)], rtol=1e-4, atol=1e-4)
    assert [gap.reason for gap in check(model).unknown] == ["runs on the host, in NumPy"]


def test_updates_out_of_range_are_left_out() -> None:
    indices = np.array([[4, 1, -4, -5, 2**40, 1]])
    row: list[Array | None] = [X[0], indices, np.arange(1, 7, dtype=np.float32)[None]]
    wanted = X[0].copy()
    wanted[0, 0], wanted[0, 1] = 3, 6
    assert_same(computed(one_node("ScatterElements", row, axis=1), feed(row)), [wanted])


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("index", [4, -5, 2**40])
def test_wrong_indices_are_refused_where_updates_are_reduced(index: int, known: tuple[int, ...]) -> None:
    updates = np.ones(2, np.float32)
    row: list[Array | None] = [X[0], np.array([[0, index]]), updates[None]]
    pairs: list[Array | None] = [X[0], np.array([[0, 1], [1, index]]), updates]
    for operator, inputs in (("ScatterElements", row), ("ScatterND", pairs)):
        attributes = {"axis": 1} if inputs is row else {}
        model = one_node(operator, inputs, reduction="add", known=known, **attributes)
        with pytest.raises(InvalidArgument, match=rf"{operator}.*index {index} is out of range.*\[-4, 3\]"):
            computed(model, feed(inputs, known))


def test_updates_of_other_sizes_are_refused_where_they_are_reduced() -> None:
    row: list[Array | None] = [X[0], np.array([[0, 0]]), np.ones((1, 3), np.float32)]
    pairs: list[Array | None] = [X[0], np.array([[0, 1], [0, 1]]), np.ones((2, 1), np.float32)]
    for operator, inputs in (("ScatterElements", row), ("ScatterND", pairs)):
        with pytest.raises(InvalidArgument, match=rf"{operator}.*indices .* and updates .* do not fit"):
            computed(one_node(operator, inputs, reduction="add"), feed(inputs))


def test_without_updates_nothing_is_reduced() -> None:
    nothing = np.zeros((0, 4), np.int64), np.zeros((0, 4), np.float32)
    check_node("ScatterElements", [X[0], *nothing], reduction="add")


def test_what_follows_nonzero_is_compiled_for_its_count() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[a, b] x) => (float[n] y, int64[n] z)
        { places = NonZero (x)
          tuples = Transpose (places)
          found = GatherND (x, tuples)
          y = Neg (found)
          z = ReduceSum <keepdims = 0> (places, axes) }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    loaded = dml_onnx.load(model)
    for count in (3, 1, 0, 3):
        x = np.zeros((2, 4), np.float32)
        x.reshape(-1)[2 : 2 + count] = 7
        results = loaded.run({"x": x})
        np.testing.assert_array_equal(results["y"], np.full(count, -7))
        np.testing.assert_array_equal(results["z"], np.sum(np.nonzero(x), 0))


@pytest.mark.parametrize("kept", [[True, False, True], [False] * 3, [True, True], [True] * 3])
def test_compress_takes_what_a_computed_condition_says(kept: list[bool]) -> None:
    check_node("Compress", [X, np.array(kept)], axis=1)
    check_node("Compress", [X, np.array(kept)], axis=-2)
    check_node("Compress", [X, np.array(kept)])


def test_a_condition_that_is_too_long_is_left_to_the_evaluator() -> None:
    check_node("Compress", [X[0], np.array([True, False, False, False])], axis=0, evaluator=True)
    check_node("NonZero", [np.array([0.0, 2.0])], evaluator=True)
