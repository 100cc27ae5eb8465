"""Calls: what is kept of them, names of objects, odd arguments and logs."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, InvalidArgument, functions
from opendml.runtime.calls import immediate
from opendml.runtime.calls.plans import Plans
from opendml.runtime.memory.host_array import Array
from tests.running import same_bits
from tests.runtime.object_model import PACKED, VALUES, celu

ONES = np.ones(4, np.float32)


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans[Any]:
    """The plans of the test alone."""
    plans: Plans[Any] = Plans()
    monkeypatch.setattr(immediate, "_plans", plans)
    return plans


def linear(alpha: Any, beta: Any = 2.0) -> Array:
    return dml.activation_linear(ONES, alpha=alpha, beta=beta)


@pytest.mark.parametrize("alias", [True, np.True_, "1.0", "0x1.0p+0", (1.0,), b"\0\0\0\0\0\0\xf0?"], ids=repr)
def test_what_is_no_number_is_refused_also_after_the_number_that_it_equals(alias: Any) -> None:
    linear(1.0)
    with pytest.raises(InvalidArgument, match=r"activation_linear\.alpha"):
        linear(alias)


def test_axes_and_flags_are_told_apart_by_their_types() -> None:
    x = np.ones((2, 2), np.float32)
    dml.reduce(x, function=dml.ReduceFunction.SUM, axes=[1])
    for axes in ([True], [1.0], (1.0,)):
        with pytest.raises(InvalidArgument, match=r"reduce\.axes\[0\]"):
            dml.reduce(x, function=dml.ReduceFunction.SUM, axes=axes)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"reduce\.function: 10"):
        dml.reduce(x, function=int(dml.ReduceFunction.SUM), axes=[1])  # type: ignore[arg-type]
    dml.cumulative_summation(x, axis=0, has_exclusive_sum=True)
    with pytest.raises(InvalidArgument, match=r"cumulative_summation\.has_exclusive_sum: 1;"):
        dml.cumulative_summation(x, axis=0, has_exclusive_sum=1)  # type: ignore[arg-type]
    dml.fill_value_constant(value_data_type=dml.INT8, value=1, sizes=[1, 2])
    for sizes in ([True, 2], [1.0, 2]):
        with pytest.raises(InvalidArgument, match=r"fill_value_constant\.sizes"):
            dml.fill_value_constant(value_data_type=dml.INT8, value=1, sizes=sizes)
    with pytest.raises(InvalidArgument, match=r"fill_value_constant\.value: 1.0"):
        dml.fill_value_constant(value_data_type=dml.INT8, value=1.0, sizes=[1, 2])


def test_zeros_within_a_fused_activation_are_told_apart() -> None:
    x = -np.zeros(4, np.float32)
    for beta in (-0.0, 0.0, -0.0):
        fused = dml.descs.ActivationLinear(alpha=1.0, beta=beta)
        result = dml.element_wise_add1(x, x, fused_activation=fused)
        assert np.signbit(result).all() == (math.copysign(1.0, beta) < 0)


def test_zeros_of_either_sign_are_told_apart_in_every_order() -> None:
    for beta in (0.0, -0.0, 0, np.float32(-0.0)):
        result = dml.activation_linear(-np.zeros(4, np.float32), alpha=1.0, beta=beta)
        assert np.signbit(result).all() == (math.copysign(1.0, beta) < 0)


def test_all_that_means_the_same_shares_a_plan(plans: Plans[Any]) -> None:
    for nan in (math.nan, float("nan"), -math.nan, np.float32("nan"), np.float64("nan")):
        assert np.isnan(linear(1.0, nan)).all()
    assert len(plans._table) == 1
    for one in (1, 1.0, np.float32(1), np.int64(1), np.array(1.0)):
        assert same_bits(linear(one), 3 * ONES)
    assert len(plans._table) == 2
    x = np.ones((2, 2), np.float32)
    for function in (dml.ReduceFunction.SUM, "SUM", "sum"):
        for axes in ([1], (1,), range(1, 2), np.array([1])):
            dml.reduce(x, function=function, axes=axes)
    assert len(plans._table) == 3
    for _ in range(2):
        dml.element_wise_add1(x, x, fused_activation=dml.descs.ActivationLinear(alpha=1, beta=math.nan))
    assert len(plans._table) == 4


def test_an_attribute_that_changes_in_place_is_read_anew() -> None:
    x, axes = np.ones((2, 3), np.float32), [0]
    assert dml.reduce(x, function="SUM", axes=axes).shape == (1, 3)
    axes[0] = 1
    assert dml.reduce(x, function="SUM", axes=axes).shape == (2, 1)


CELU = "InputTensor FLOAT32 [2, 3, 4] -> OutputTensor FLOAT32 [2, 3, 4]"
MADE: dict[str, tuple[Callable[[Device], Any], str]] = {
    "Device": (
        lambda device: Device("cpu", threads=2),
        "<Device('cpu', feature_level='6_4', threads=2) 'a'>",
    ),
    "Operator": (
        lambda device: device.create_operator(dml.descs.ActivationCelu(PACKED, PACKED)),
        f"<Operator cpu: ACTIVATION_CELU 'a': {CELU}>",
    ),
    "CompiledOperator": (celu, f"<CompiledOperator cpu: ACTIVATION_CELU 'a': {CELU}>"),
    "OperatorInitializer": (
        lambda device: device.create_operator_initializer([celu(device)]),
        "<OperatorInitializer cpu 'a': ACTIVATION_CELU>",
    ),
    "BindingTable": (lambda device: device.create_binding_table(), "<BindingTable cpu 'a': empty>"),
    "CommandRecorder": (
        lambda device: device.create_command_recorder(),
        "<CommandRecorder cpu 'a': 0 dispatches recorded>",
    ),
}


@pytest.mark.parametrize("kind", MADE)
def test_every_object_has_the_name_that_it_was_given(kind: str) -> None:
    make, text = MADE[kind]
    named = make(Device("cpu"))
    before = repr(named)
    assert named.name == ""
    named.set_name("a")
    assert named.name == "a"
    assert repr(named) == text
    named.set_name("")
    assert repr(named) == before


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("wrong", [None, 1, b"a", ["a"]])
def test_a_name_is_a_string(kind: str, wrong: Any) -> None:
    named = MADE[kind][0](Device("cpu"))
    named.set_name("a")
    with pytest.raises(InvalidArgument, match=r"set_name: .*; a string is needed"):
        named.set_name(wrong)
    assert named.name == "a"


def test_messages_name_operator_and_object() -> None:
    device = Device("cpu")
    compiled = celu(device)
    compiled.set_name("first layer")
    with pytest.raises(InvalidArgument, match=r"^ACTIVATION_CELU 'first layer'\.OutputTensor: 4 bytes"):
        compiled.bind([VALUES], [np.zeros(1, np.float32)])
    table = device.create_binding_table(compiled)
    with pytest.raises(InvalidArgument, match=r"^ACTIVATION_CELU 'first layer': no inputs are bound"):
        device.create_command_recorder().record_dispatch(compiled, table)
    operator = device.create_operator(dml.descs.ActivationCelu(PACKED, PACKED))
    operator.set_name("first layer")
    with pytest.raises(InvalidArgument, match=r"^ACTIVATION_CELU 'first layer': created by another device"):
        Device("cpu").compile_operator(operator)


def test_what_is_bound_and_what_is_initialized_show_the_name_of_the_operator() -> None:
    device = Device("cpu")
    compiled = celu(device)
    compiled.set_name("first layer")
    assert (
        repr(compiled.bind([VALUES], [VALUES.copy()])) == "<BoundOperator cpu: ACTIVATION_CELU 'first layer'>"
    )
    initializer = device.create_operator_initializer([compiled])
    assert repr(initializer) == "<OperatorInitializer cpu: ACTIVATION_CELU 'first layer'>"
    initializer.set_name("weights")
    with pytest.raises(
        InvalidArgument, match=r"^operator initializer 'weights': 2 inputs; one for each of 1"
    ):
        device.create_binding_table(initializer).bind_inputs([None, None])


def test_the_reason_of_a_removal_names_the_device() -> None:
    device = Device("reference")
    device.set_name("main")
    device.remove("pulled out")
    assert str(device.removed_reason) == "reference 'main': pulled out"
    assert repr(device).startswith("<Device('reference', feature_level='6_4') 'main', removed: ")


def test_a_long_name_is_shortened_where_it_is_shown() -> None:
    device = Device("cpu")
    device.set_name("a" * 1000)
    assert len(repr(device)) < 200
    assert device.name == "a" * 1000


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


def model(device: dml.Device) -> dml.Model:
    graph = dml.Graph()
    return graph.compile({"y": graph.input("x", dml.FLOAT32, [17]) * 1.7320508}, device)


def test_devices_compilations_and_the_cache_are_told(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    with caplog.at_level(logging.DEBUG, "opendml"):
        device = dml.Device("cpu", threads=1)
        model(device)
        dml.activation_elu(np.ones(19, np.float32), alpha=0.8765, device=device)
    assert {record.name for record in caplog.records} == {"opendml"}
    text = caplog.text
    assert "device: Device('cpu', feature_level='6_4', threads=1)" in text
    assert "compiled a graph of outputs [[17]] for cpu in" in text
    assert "compiled a call of outputs [[19]] for cpu in" in text


def test_nothing_is_told_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    model(dml.Device("cpu", threads=1))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("opendml").isEnabledFor(logging.DEBUG)
