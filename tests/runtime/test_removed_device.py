"""Removed devices answer every later call with their reason; other questions to devices."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import (
    FLOAT32,
    FLOAT64,
    INT4,
    INT64,
    UINT4,
    UINT64,
    Device,
    DeviceRemoved,
    FeatureLevel,
    InvalidArgument,
    TensorDataType,
    descs,
)
from tests.running import same_bits
from tests.runtime.object_model import PACKED, SIZES, VALUES, celu, initialized
from tests.runtime.test_compile_graph import two_nodes
from tests.runtime.test_recorder import recorded, table_for


class Prepared:
    """A device with everything that one may have created on it."""

    def __init__(self) -> None:
        self.device = device = Device("cpu")
        self.operator = device.create_operator(descs.ActivationCelu(PACKED, PACKED))
        self.compiled, self.other = celu(device), celu(device)
        initialized(device, self.compiled)
        self.x, self.y = VALUES.copy(), np.full_like(VALUES, 7)
        self.bound = self.compiled.bind([self.x], [self.y])
        self.held = self.bound.dispatch
        self.table = table_for(self.compiled, [self.x], [self.y])
        self.recorder = recorded((self.compiled, self.table))
        self.initializer = device.create_operator_initializer([self.other])
        self.graph = two_nodes(device)
        graph = dml.Graph()
        self.outputs = {"y": dml.activation_celu(graph.input("x", FLOAT32, SIZES))}
        self.symbolic = graph
        self.model = graph.compile(self.outputs, device=device)
        self.model(x=self.x)
        self.bound_model = self.model.bind({"x": self.x}, {"y": self.y})
        self.held_model = self.bound_model.dispatch
        self.recording = device.record([self.bound, self.bound_model])
        self.held_recording = self.recording.dispatch
        dml.activation_celu(self.x, device=device)


CALLS: dict[str, Callable[[Prepared], Any]] = {
    "create_operator": lambda p: p.device.create_operator(p.operator.desc),
    "compile_operator": lambda p: p.device.compile_operator(p.operator),
    "compile_graph": lambda p: p.device.compile_graph(p.graph),
    "create_operator_initializer": lambda p: p.device.create_operator_initializer([]),
    "initializer.reset": lambda p: p.initializer.reset(),
    "create_binding_table": lambda p: p.device.create_binding_table(p.compiled),
    "table.reset": lambda p: p.table.reset(p.compiled),
    "table.bind_inputs": lambda p: p.table.bind_inputs([p.x]),
    "table.bind_outputs": lambda p: p.table.bind_outputs([p.y]),
    "table.bind_temporary_resource": lambda p: p.table.bind_temporary_resource(None),
    "table.bind_persistent_resource": lambda p: p.table.bind_persistent_resource(None),
    "create_command_recorder": lambda p: p.device.create_command_recorder(),
    "record_dispatch": lambda p: p.recorder.record_dispatch(p.compiled, p.table),
    "execute": lambda p: p.device.execute(p.recorder),
    "bind": lambda p: p.compiled.bind([p.x], [p.y]),
    "dispatch": lambda p: p.bound.dispatch(),
    "enqueue": lambda p: p.bound.enqueue(0),
    "record": lambda p: p.device.record([p.bound]),
    "create_buffer": lambda p: p.device.create_buffer(16),
    "empty": lambda p: p.device.empty([2]),
    "upload": lambda p: p.device.upload(p.x),
    "download": lambda p: p.device.download(p.x),
    "synchronize": lambda p: p.device.synchronize(),
    "check_feature_support": lambda p: p.device.check_feature_support(FLOAT32),
    "immediate, as before": lambda p: dml.activation_celu(p.x, device=p.device),
    "immediate, new": lambda p: dml.activation_tanh(p.x, device=p.device),
    "Graph.compile": lambda p: p.symbolic.compile(p.outputs, device=p.device),
    "model": lambda p: p.model(x=p.x),
    "model.run": lambda p: p.model.run({"x": p.x}, {"y": p.y}),
    "model.bind": lambda p: p.model.bind({"x": p.x}, {"y": p.y}),
    "bound model": lambda p: p.bound_model.dispatch(),
    "recording": lambda p: p.recording.dispatch(),
    "dispatch, held": lambda p: p.held(),
    "bound model's dispatch, held": lambda p: p.held_model(),
    "recording's dispatch, held": lambda p: p.held_recording(),
}


@pytest.fixture(scope="module")
def removed() -> Prepared:
    """All of it, on a device that was removed."""
    prepared = Prepared()
    assert prepared.device.removed_reason is None
    prepared.y.fill(7)
    prepared.device.remove("pulled out")
    return prepared


@pytest.mark.parametrize("call", CALLS)
def test_a_removed_device_answers_every_call_with_its_reason(call: str, removed: Prepared) -> None:
    with pytest.raises(DeviceRemoved, match="cpu: pulled out") as error:
        CALLS[call](removed)
    assert error.value is removed.device.removed_reason
    assert (removed.y == 7).all()


@pytest.mark.parametrize("call", [name for name in CALLS if name != "enqueue"])
def test_without_removal_these_calls_work(call: str) -> None:
    prepared = Prepared()
    if call.startswith("table.bind"):
        prepared.recorder.reset()
    CALLS[call](prepared)


def test_the_first_reason_stays() -> None:
    device = Device("cpu")
    device.remove("first")
    device.remove("second")
    assert str(device.removed_reason) == "cpu: first"


def test_other_devices_go_on() -> None:
    Device("cpu").remove("pulled out")
    celu(Device("cpu"))
    dml.activation_celu(VALUES)


@pytest.fixture
def defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Default devices of the test's own, which it may remove."""
    monkeypatch.setattr("opendml.runtime.objects.device._defaults", {})


@pytest.mark.usefixtures("defaults")
@pytest.mark.parametrize("kind", [None, "cpu", "reference"])
def test_after_a_default_device_is_removed_the_next_call_gets_a_new_one(kind: str | None) -> None:
    graph = dml.Graph()
    outputs = {"y": dml.activation_celu(graph.input("x", FLOAT32, SIZES))}
    model = graph.compile(outputs, device=kind)
    expected = dml.activation_celu(VALUES, device=kind)
    zero = dml.activation_celu(VALUES, alpha=0.0, device=kind)
    model.device.remove("pulled out")
    with pytest.raises(DeviceRemoved, match="pulled out"):
        model(x=VALUES)
    for _ in range(2):
        assert same_bits(dml.activation_celu(VALUES, device=kind), expected)
        assert same_bits(dml.activation_celu(VALUES, alpha=0.0, device=kind), zero)
        assert same_bits(graph.compile(outputs, device=kind)(x=VALUES)["y"], expected)
    assert graph.compile(outputs, device=kind).device is graph.compile(outputs, device=kind).device


@pytest.mark.usefixtures("defaults")
def test_threads_share_the_new_default_device() -> None:
    graph = dml.Graph()
    outputs = {"y": dml.activation_celu(graph.input("x", FLOAT32, SIZES))}
    graph.compile(outputs).device.remove("pulled out")
    with ThreadPoolExecutor(8) as threads:
        devices = list(threads.map(lambda _: graph.compile(outputs).device, range(8)))
    assert len({id(device) for device in devices}) == 1
    assert devices[0].removed_reason is None


def test_feature_support() -> None:
    device = Device("cpu", feature_level="3_0")
    assert device.check_feature_support(FLOAT32) is True
    assert device.check_feature_support("float32") is device.check_feature_support(np.float32) is True
    later = {TensorDataType.UINT4, TensorDataType.INT4}
    for data_type in TensorDataType:
        expected = data_type is not TensorDataType.UNKNOWN and data_type not in later
        assert device.check_feature_support(data_type) is expected
    assert device.check_feature_support(["1_0", "5_0", "2_0"]) == FeatureLevel.LEVEL_2_0
    assert device.check_feature_support(list(FeatureLevel)) == FeatureLevel.LEVEL_3_0
    with pytest.raises(InvalidArgument, match="the device has feature levels up to DML_FEATURE_LEVEL_3_0"):
        device.check_feature_support(["5_0"])
    for wrong in (3, "2_0", None):
        with pytest.raises(InvalidArgument, match="a TensorDataType or a list of feature levels is needed"):
            device.check_feature_support(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        device.check_feature_support(["9_9"])


def test_a_data_type_is_supported_from_its_feature_level_on() -> None:
    oldest, newest = Device("cpu", feature_level="1_0"), Device("cpu")
    for data_type in (FLOAT64, INT64, UINT64, INT4, UINT4):
        assert oldest.check_feature_support(data_type) is False
        assert newest.check_feature_support(data_type) is True
    assert Device("cpu", feature_level="3_0").check_feature_support(FLOAT64) is True
    assert Device("cpu", feature_level="6_2").check_feature_support(INT4) is False
    assert Device("cpu", feature_level="6_3").check_feature_support(INT4) is True


def test_only_operators_are_compiled() -> None:
    with pytest.raises(
        InvalidArgument, match="compile_operator: ActivationCelu; create_operator makes operators"
    ):
        Device("cpu").compile_operator(descs.ActivationCelu(PACKED, PACKED))
