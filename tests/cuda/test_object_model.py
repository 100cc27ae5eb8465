"""The object model on a device with memory of its own: what is copied, what is used in place, and what
becomes of what was made on a lost device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import BufferArrayBinding, Device, DeviceRemoved, InvalidArgument
from tests.cuda import fake
from tests.runtime.object_model import (
    BIAS,
    SCALE,
    VALUES,
    celu,
    elu,
    initialized,
    normalization,
    normalized,
    zeros,
)
from tests.runtime.test_compile_graph import reinterpreting
from tests.runtime.test_recorder import recorded, table_for


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A fake CUDA device."""
    fake.install(monkeypatch)
    return Device("cuda")


def log(device: Device) -> list[Any]:
    """What was asked of its streams."""
    from opendml.targets.cuda import driver

    return driver.device(device.index or 0).log  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("on_device", [True, False])
def test_owned_tensors_are_on_the_device_after_initialization(device: Device, on_device: bool) -> None:
    operator = normalization(device)
    given = [device.upload(SCALE), device.upload(BIAS)] if on_device else [SCALE.copy(), BIAS.copy()]
    persistent = initialized(device, operator, [None, *given])
    held = device.download(persistent).view(np.float32)
    assert (held[:24] == SCALE.ravel()).all()
    assert (held[64:88] == BIAS.ravel()).all()
    for x, y in ((device.upload(VALUES), zeros(device)), (VALUES.copy(), np.zeros_like(VALUES))):
        device.execute(recorded((operator, table_for(operator, [x, None, None], [y], persistent))))
        result = y if isinstance(y, np.ndarray) else device.download(y)
        assert np.allclose(result, normalized(), rtol=1e-5, atol=1e-5)


def test_bind_copies_owned_tensors_of_the_host_once(device: Device) -> None:
    scale, bias, y = SCALE.copy(), BIAS.copy(), np.zeros_like(VALUES)
    bound = normalization(device).bind([VALUES, scale, bias], [y])
    scale.fill(99)
    bias.fill(99)
    bound.dispatch()
    assert np.allclose(y, normalized(), rtol=1e-5, atol=1e-5)


def test_resources_must_be_on_the_device(device: Device) -> None:
    initializer = device.create_operator_initializer([normalization(device)])
    table = device.create_binding_table(initializer)
    host = Device("cpu").create_buffer(512)
    with pytest.raises(InvalidArgument, match="must be in memory on cuda:0; Device"):
        table.bind_outputs([host])
    table.bind_inputs([BufferArrayBinding([None, SCALE, BIAS])])


def test_tensors_of_one_dispatch_are_in_one_memory(device: Device) -> None:
    operator = celu(device)
    with pytest.raises(InvalidArgument, match="all arrays of a call must be in the same memory"):
        recorded((operator, table_for(operator, [VALUES], [zeros(device)])))


def test_a_recorder_is_added_to_a_stream(device: Device) -> None:
    operator, y, z = celu(device), zeros(device), zeros(device)
    initialized(device, operator)
    recorder = recorded(
        (operator, table_for(operator, [device.upload(VALUES)], [y])),
        (operator, table_for(operator, [y], [z])),
    )
    log(device).clear()
    device.execute(recorder, 123)
    assert log(device) == [("run", 123), ("run", 123)]
    assert np.allclose(device.download(z), elu(elu(VALUES)), rtol=1e-6)


def test_streams_are_refused_for_host_memory_before_anything_runs(device: Device) -> None:
    operator, y = celu(device), zeros(device)
    initialized(device, operator)
    host = table_for(operator, [VALUES], [np.zeros_like(VALUES)])
    recorder = recorded((operator, table_for(operator, [device.upload(VALUES)], [y])), (operator, host))
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: the tensors are in host memory; streams are"):
        device.execute(recorder, 123)
    assert not device.download(y).any()


def test_stages_of_a_graph_run_on_the_device(device: Device) -> None:
    compiled = reinterpreting(device)
    x, y = device.upload(VALUES), zeros(device)
    bound = compiled.bind([x], [y])
    log(device).clear()
    bound.enqueue(123)
    assert log(device) == [("run", 123)] * 3
    assert np.allclose(device.download(y), np.tanh(elu(VALUES)), rtol=1e-6)
    z = np.zeros_like(VALUES)
    compiled.bind([VALUES], [z]).dispatch()
    assert np.allclose(z, np.tanh(elu(VALUES)), rtol=1e-6)


def test_a_debug_device_shows_what_is_enqueued(monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch)
    shown: list[dml.Intermediate] = []
    device = Device("cuda", debug=shown.append)
    bound = reinterpreting(device).bind([device.upload(VALUES)], [zeros(device)])
    bound.enqueue(123)
    assert [each.operator for each in shown] == [
        "ACTIVATION_CELU",
        "ELEMENT_WISE_IDENTITY",
        "ACTIVATION_TANH",
    ]
    assert np.allclose(shown[0].values, elu(VALUES), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="record"):
        device.record([bound])


def test_a_lost_device_is_removed(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = device.upload(VALUES), zeros(device)
    other = celu(device).bind([x], [y])

    def lost(self: Any, stream: int) -> None:
        raise DeviceRemoved("cuda: running a kernel: CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(fake.FakeInstance, "enqueue", lost)
    bound = celu(device).bind([x], [y])
    with pytest.raises(DeviceRemoved, match="ILLEGAL_ADDRESS"):
        bound.enqueue(123)
    monkeypatch.undo()
    for call in (other.dispatch, lambda: other.enqueue(123), lambda: device.create_buffer(16)):
        with pytest.raises(DeviceRemoved, match="ILLEGAL_ADDRESS") as error:
            call()
        assert error.value is device.removed_reason


def test_constants_of_a_graph_go_to_the_device_once(device: Device) -> None:
    nodes = [
        dml.ConstantNode(VALUES),
        dml.OperatorNode(
            device.create_operator(
                dml.descs.ActivationCelu(
                    dml.TensorDesc(dml.FLOAT32, VALUES.shape),
                    dml.TensorDesc(dml.FLOAT32, VALUES.shape),
                    alpha=0.5,
                )
            )
        ),
    ]
    desc = dml.GraphDesc(0, 1, nodes, [], [dml.OutputEdge(1, 0, 0)], [dml.IntermediateEdge(0, 0, 1, 0)])
    compiled = device.compile_graph(desc)
    for y in (zeros(device), np.zeros_like(VALUES)):
        compiled.bind([], [y]).dispatch()
        result = y if isinstance(y, np.ndarray) else device.download(y)
        assert np.allclose(result, elu(VALUES), rtol=1e-6)
