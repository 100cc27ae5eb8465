"""What callers hand over and get back, whatever it is."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as dml_onnx

_HEAD = '<ir_version: 10, opset_import: ["" : 20]>'
_X = np.array([1, -2, 3], np.float32)


def _loaded(text: str) -> dml_onnx.OnnxModel:
    return dml_onnx.load(onnx.parser.parse_model(f"{_HEAD} {text}"))


@pytest.fixture
def model() -> dml_onnx.OnnxModel:
    return _loaded("g (float[n] x, float[1] b) => (float[n] y) <float[1] b = {1}> { y = Add (x, b) }")


def test_an_input_is_given_once(model: dml_onnx.OnnxModel) -> None:
    with pytest.raises(dml.InvalidArgument, match="input 'x' is given by its place and by its name"):
        model(_X, x=_X)


class Refusing:
    """An array of another library, which gives nothing out, as those of PyTorch that need gradients."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("detach it first")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0], [2.0, 3.0]], "input 'x' is no array"),
        (None, "input 'x' is of type object; must be float32"),
        (Refusing(), "input 'x' is no array: detach it first"),
        ({"x": _X}, "input 'x' is a dict; an array is needed: `run` takes a dict of arrays by their names"),
        (_X.reshape(1, 3), r"input 'x' has sizes \[1, 3\]"),
    ],
)
def test_what_is_no_such_array_is_refused(model: dml_onnx.OnnxModel, given: Any, message: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=message):
        model(given)


def test_a_run_takes_arrays_by_their_names(model: dml_onnx.OnnxModel) -> None:
    with pytest.raises(dml.InvalidArgument, match="inputs: ndarray; a dict is needed, of arrays by their"):
        model.run(_X)  # type: ignore[arg-type]


def test_initializers_are_overridden_by_what_they_are_declared_as(model: dml_onnx.OnnxModel) -> None:
    np.testing.assert_array_equal(model(_X, b=np.array([2], np.float32))["y"], _X + 2)
    with pytest.raises(dml.InvalidArgument, match="input 'b' is of type float64; must be float32"):
        model(_X, b=np.array([2.0]))
    with pytest.raises(dml.InvalidArgument, match=r"input 'b' has sizes \[3\]; must be \[1\]"):
        model(_X, b=_X)


def test_arrays_of_the_other_byte_order_are_read(model: dml_onnx.OnnxModel) -> None:
    np.testing.assert_array_equal(model(_X.astype(_X.dtype.newbyteorder()))["y"], _X + 1)


@pytest.mark.filterwarnings("ignore::opendml.onnx.EvaluatorWarning")
def test_callers_may_write_into_outputs() -> None:
    model = _loaded(
        """g (float[n] x) => (seq(float[n]) s, float[n] y, float[n] z)
        <float[2] w = {1, 2}, int64 first = {1}>
        { s = SequenceConstruct (x, w)
          y = SequenceAt (s, first)
          z = Identity (y) }"""
    )
    x = _X.copy()
    for _ in range(2):
        results = model(x)
        np.testing.assert_array_equal(results["s"][0], _X)
        for each in (results["s"][1], results["y"], results["z"]):
            np.testing.assert_array_equal(each, [1, 2])
        for each in (*results["s"], results["y"], results["z"]):
            each[:] = 9
        np.testing.assert_array_equal(x, _X)


def test_a_loop_without_trips_leaves_its_inputs_alone() -> None:
    model = _loaded(
        """g (float[n] x) => (float[n] y) <int64 trips = {0}>
        { y = Loop (trips, , x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w)
          { d = Identity (c)
            w = Neg (v) }> }"""
    )
    x = _X.copy()
    model(x)["y"][:] = 9
    np.testing.assert_array_equal(x, _X)


def test_models_say_that_they_are_not_pickled(model: dml_onnx.OnnxModel) -> None:
    with pytest.raises(dml.Unsupported, match="load it where it runs"):
        pickle.dumps(model)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_compiles_though_a_thread_did(model: dml_onnx.OnnxModel) -> None:
    begun, done = threading.Event(), threading.Event()

    def compiling() -> None:
        with model._tracer._lock:
            begun.set()
            done.wait()

    thread = threading.Thread(target=compiling)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if np.array_equal(model(_X)["y"], _X + 1) else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_indices_that_are_not_there_are_the_nearest_ones_or_nobodys() -> None:
    places = np.array([7, -9, 1])
    gathered = _loaded("g (float[n] x, int64[m] i) => (float[m] y) { y = Gather (x, i) }")
    assert gathered(_X, places)["y"].tolist() == [_X[-1], _X[0], _X[1]]
    scattered = _loaded(
        "g (float[n] x, int64[m] i, float[m] u) => (float[n] y) { y = ScatterElements <axis = 0> (x, i, u) }"
    )
    wanted = [_X[0], 30.0, *_X[2:].tolist()]
    assert scattered(_X, places, np.array([10, 20, 30], np.float32))["y"].tolist() == wanted
