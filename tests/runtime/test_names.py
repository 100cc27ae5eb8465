"""Names that users give to objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, InvalidArgument
from tests.runtime.object_model import PACKED, VALUES, celu

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
