"""Arguments of foreign classes, and numbers beyond all floats, get errors of opendml."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import functions


class Unprintable:
    """Whose repr fails."""

    def __repr__(self) -> str:
        raise ValueError


class Unreadable:
    """Claims to be an array."""

    def __dlpack__(self, **versions: Any) -> Any:
        raise AttributeError

    def __dlpack_device__(self) -> Any:
        raise KeyError


class Placeless:
    """Claims to be on a CUDA device."""

    is_cuda = True

    def get_device(self) -> str:
        return "somewhere"


class Interfaced:
    """An array without anything."""

    __cuda_array_interface__: dict[str, Any] = {}  # noqa: RUF012


def nested() -> dml.OperatorDesc:
    desc = dml.descs.ActivationRelu()
    outer: dml.OperatorDesc = desc
    for _ in range(3000):
        outer = dml.descs.ElementWiseAdd1(fused_activation=outer)
    return outer


ODD: list[Any] = [
    True,
    -1,
    10**400,
    -(10**5000),
    float("nan"),
    "x",
    b"bytes",
    1j,
    [],
    [None],
    [[1]],
    [10**400],
    {},
    set(),
    object,
    object(),
    Unprintable(),
    Unreadable(),
    Placeless(),
    Interfaced(),
    nested(),
    np.zeros(0),
    np.array(None),
    np.ones((1,) * 12, np.float32),
    np.zeros(3, [("field", "f4")]),
    dml.ScaleBias("1", None),  # type: ignore[arg-type]
    dml.TensorDesc(dml.FLOAT32, "sizes"),
    dml.FLOAT32,
]
X = np.ones((2, 3), np.float32)
REQUIRED: dict[str, Any] = {"axes": [0], "axis": 0, "function": "SUM", "sizes": [2], "output_type": "FLOAT32"}


@pytest.mark.parametrize("name", functions.__all__)
def test_calls_raise_errors_of_their_own(name: str) -> None:
    function = getattr(dml, name)
    parameters = inspect.signature(function).parameters.values()
    inputs = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    fixed = {
        each.name: REQUIRED.get(each.name, 1.0)
        for each in parameters
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    }
    tensor = dml.Graph().input("x", dml.FLOAT32, [2, 3])
    for given, odd in itertools.product((X, tensor), ODD):
        for changed in [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]:
            arguments = {each.name: given for each in inputs} | fixed | {changed: odd}
            with contextlib.suppress(dml.Error):
                function(**arguments)


def test_numbers_beyond_all_floats_are_refused_by_name() -> None:
    with pytest.raises(dml.InvalidArgument, match=r"activation_linear\.alpha: 1000.*must fit a 32-bit float"):
        dml.activation_linear(X, alpha=10**400, beta=0.0)
    with pytest.raises(dml.InvalidArgument, match=r"element_wise_add\.b: 1000.*number that FLOAT32 holds"):
        dml.element_wise_add(X, 10**400)


@pytest.mark.parametrize("odd", ODD, ids=[str(number) for number in range(len(ODD))])
def test_bindings_and_models_raise_errors_of_their_own(odd: Any) -> None:
    device, tensor = dml.Device("cpu"), dml.TensorDesc(dml.FLOAT32, [2, 3])
    compiled = device.compile_operator(device.create_operator(dml.descs.ActivationRelu(tensor, tensor)))
    graph = dml.Graph()
    model = graph.compile({"y": dml.activation_relu(graph.input("x", dml.FLOAT32, [2, 3]))})
    bindings = (odd, dml.BufferBinding(odd), dml.BufferBinding(X, odd), dml.BufferBinding(X, 0, odd))
    for binding in (*bindings, dml.BufferArrayBinding(odd), dml.BufferArrayBinding([odd])):
        with contextlib.suppress(dml.Error):
            compiled.bind([binding], [X.copy()])
        with contextlib.suppress(dml.Error):
            compiled.bind([X], [binding])
    for pair in ((odd, [X.copy()]), ([X], odd)):
        with contextlib.suppress(dml.Error):
            compiled.bind(*pair)
    for arrays in (
        (odd, {"y": X.copy()}),
        ({"x": odd}, {"y": X.copy()}),
        ({"x": X}, odd),
        ({"x": X}, {"y": odd}),
    ):
        for run in (model.run, model.bind):
            with contextlib.suppress(dml.Error):
                run(*arrays)
    with contextlib.suppress(dml.Error):
        model(x=odd)
    for arguments in ((odd, dml.FLOAT32, [2]), ("a", odd, [2]), ("b", dml.FLOAT32, odd)):
        with contextlib.suppress(dml.Error):
            graph.input(*arguments)


@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_the_arguments_of_a_tensor_are_named_as_the_caller_has_them(kind: str) -> None:
    with pytest.raises(
        dml.InvalidArgument, match=r"^empty\.sizes\[0\]: -1; must be a whole number from 1 to [0-9]+$"
    ):
        dml.Device(kind).empty([-1])
