"""Graphs that calls have built become serialized ones, which compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT32, Device, Graph, Unsupported, serialized
from tests.frontends.test_saved_models import every_kind_of_call
from tests.runtime.test_graph_tensors import OPERATORS, X


def read_again(model: Any, folder: Path, device: str | Device) -> serialized.SerializedModel:
    """The model as a serialized graph, written and read."""
    serialized.write(serialized.graph_of_model(model), folder / "graph.bin")
    return serialized.load(folder / "graph.bin", device)


def assert_same(model: Any, inputs: dict[str, Any], folder: Path, device: str | Device) -> None:
    again, expected = read_again(model, folder, device), model(**inputs)
    results = again.run(inputs)
    assert list(results) == list(expected)
    for name, result in results.items():
        assert result.dtype == expected[name].dtype, name
        assert result.shape == expected[name].shape, name
        np.testing.assert_allclose(result, expected[name], rtol=2e-6, atol=1e-6, err_msg=name)


def test_what_tensors_of_graphs_do_is_written(tmp_path: Path) -> None:
    graph = Graph()
    t = graph.input("x", FLOAT32, X.shape)
    dml.activation_relu(t)  # which no output needs
    model = graph.compile({name: build(t) for name, build in OPERATORS.items()}, "reference")
    assert_same(model, {"x": X}, tmp_path, "reference")


def test_every_kind_of_call_is_written(tmp_path: Path) -> None:
    image = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(np.float32)
    graph = Graph()
    t, i = graph.input("t", FLOAT32, X.shape), graph.input("image", FLOAT32, image.shape)
    model = graph.compile(every_kind_of_call(t, i), "reference")
    assert_same(model, {"t": X / 10, "image": image}, tmp_path, "reference")


def test_inputs_with_strides_that_are_outputs_too_are_copied(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.input("x", FLOAT32, [2, 3], strides=[1, 2])
    model = graph.compile({"same": x, "again": x, "constant": graph.constant(X[0]), "T": x.T})
    given = X[0, :2, :3]
    again = read_again(model, tmp_path, "reference")
    results = again.run({"x": given.T.copy()})
    for name in ("same", "again"):
        np.testing.assert_array_equal(results[name], given)
    np.testing.assert_array_equal(results["T"], given.T)
    np.testing.assert_array_equal(results["constant"], X[0])


def test_names_of_nodes_are_not_those_of_the_graph(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.input("node0", FLOAT32, [4])
    model = graph.compile({"node1": dml.activation_relu(x), "constant0": x * np.ones(4, np.float32)})
    assert_same(model, {"node0": X[0, 0]}, tmp_path, "reference")


def test_models_of_other_kinds_and_what_files_cannot_say_are_named() -> None:
    with pytest.raises(Unsupported, match=r"serialized graph: this model was not made by Graph\.compile"):
        serialized.graph_of_model(_without_data())


def _without_data() -> Any:
    graph = Graph()
    model = graph.compile({"y": graph.input("x", FLOAT32, [1]) + 1})
    model._data = None
    return model
