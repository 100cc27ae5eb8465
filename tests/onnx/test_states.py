"""States of traces: what they share, and how little a long chain of them copies."""

from __future__ import annotations

from collections import ChainMap
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import helper

from opendml.frontends.onnx.evaluate import Evaluator
from opendml.frontends.onnx.node import nodes_of
from opendml.frontends.onnx.states import Pending, Values, extended
from opendml.frontends.onnx.values import Known
from tests.onnx.models import computed


def _nodes(*edges: tuple[str, str]) -> Any:
    return nodes_of([helper.make_node("Relu", [read], [made]) for read, made in edges], {"": 20})


def test_nodes_are_taken_in_their_order_those_of_a_body_first() -> None:
    a, b, c = _nodes(("x", "a"), ("a", "b"), ("x", "c"))
    first, rest = Pending().prepended([a, b, c]).popped()
    body = _nodes(("a", "p"), ("p", "b"))
    second, inside = rest.prepended(body).popped()
    assert (first, second) == (a, body[0])
    taken = []
    while inside:
        node, inside = inside.popped()
        taken.append(node)
    assert taken == [body[1], b, c]


def test_what_is_read_later_is_known_without_a_look_at_all_nodes() -> None:
    _, rest = Pending().prepended(_nodes(("x", "a"), ("a", "b"), ("b", "c"))).popped()
    assert [name for name in "xabc" if rest.reads(name)] == ["a", "b"]
    inside = rest.prepended(_nodes(("x", "p"), ("p", "q")))
    assert [name for name in "xabcpq" if inside.reads(name)] == ["x", "a", "b", "p"]
    _, last = inside.popped()
    assert [name for name in "xabcpq" if last.reads(name)] == ["a", "b", "p"]


def test_extensions_copy_each_value_a_few_times_and_change_no_layer() -> None:
    count, copies, values = 1000, 0, Values()
    earlier: list[tuple[Values, int]] = []
    for number in range(count):
        before = values
        values = extended(values, {str(number): Known(number)})
        copies += sum(len(layer) for layer in values.maps if not any(layer is each for each in before.maps))
        if number % 100 == 0:
            earlier.append((values, number))
    assert copies < count * np.log2(count)
    assert len(values.maps) <= np.log2(count) + 1
    assert all(values[str(number)].content == number for number in range(count))  # type: ignore[union-attr]
    for each, number in earlier:
        assert len(each) == number + 1


def test_what_comes_later_counts() -> None:
    values = extended(extended(ChainMap({"a": Known(1)}), {"a": Known(2)}), {"b": Known(3)})
    assert values["a"] == Known(2)


def test_a_chain_outside_of_directml_copies_no_state_at_each_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its nodes see the tensors that they read, and nothing else."""
    seen: list[list[str]] = []

    class Watched(Evaluator):
        def __call__(self, contents: Any) -> dict[str, Any]:
            seen.append(list(contents))
            return super().__call__(contents)

    monkeypatch.setattr("opendml.frontends.onnx.trace.Evaluator", Watched)
    count = 20
    names = ["x", *(f"t{number}" for number in range(count))]
    nodes = [helper.make_node("Sin", [read], [made]) for read, made in pairwise(names)]
    x, y = (
        helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, [3]) for name in (names[0], names[-1])
    )
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (result,) = computed(model, {"x": np.ones(3)}, evaluator=True)
    wanted = np.ones(3)
    for _ in range(count):
        wanted = np.sin(wanted)
    np.testing.assert_allclose(result, wanted, rtol=1e-12)
    assert seen == [[name] for name in names[:-1]]
