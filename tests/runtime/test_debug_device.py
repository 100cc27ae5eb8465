"""Debug devices and removed devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import (
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT4,
    INT64,
    UINT4,
    UINT64,
    Device,
    DeviceRemoved,
    FeatureLevel,
    GraphDesc,
    InputEdge,
    Intermediate,
    IntermediateEdge,
    InvalidArgument,
    OperatorNode,
    OutputEdge,
    TensorDataType,
    TensorDesc,
    Unsupported,
    descs,
)
from tests.running import same_bits
from tests.runtime.object_model import PACKED, SIZES, VALUES, celu, elu, initialized
from tests.runtime.test_compile_graph import two_nodes
from tests.runtime.test_recorder import recorded, table_for

FLAT = TensorDesc(FLOAT32, [24])


@pytest.fixture(params=["reference", "cpu", "cuda"])
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of device that is here."""
    try:
        Device(request.param)
    except Unsupported as error:
        pytest.skip(str(error))
    return str(request.param)


def graph_desc(device: Device) -> GraphDesc:
    """CELU, tanh over the same bytes as one dimension, CELU."""
    nodes = [
        OperatorNode(device.create_operator(descs.ActivationCelu(PACKED, PACKED, alpha=0.5)), "first one"),
        OperatorNode(device.create_operator(descs.ActivationTanh(FLAT, FLAT))),
        OperatorNode(device.create_operator(descs.ActivationCelu(FLAT, FLAT, alpha=0.5))),
    ]
    between = [IntermediateEdge(0, 0, 1, 0), IntermediateEdge(1, 0, 2, 0)]
    return GraphDesc(1, 1, nodes, [InputEdge(0, 0, 0)], [OutputEdge(2, 0, 0)], between)


def test_every_tensor_of_a_graph_is_shown_by_name(kind: str) -> None:
    shown: list[Intermediate] = []
    device = Device(kind, debug=shown.append)
    y = np.zeros(24, np.float32)
    bound = device.compile_graph(graph_desc(device)).bind([VALUES], [y])
    assert not shown
    bound.dispatch()
    assert [each.name for each in shown] == [
        "nodes[0:first one].ACTIVATION_CELU.OutputTensor",
        "nodes[1].ACTIVATION_TANH.OutputTensor",
        "nodes[2].ACTIVATION_CELU.OutputTensor",
    ]
    assert [(each.sequence, each.operator, each.output) for each in shown] == [
        (0, "ACTIVATION_CELU", "OutputTensor"),
        (1, "ACTIVATION_TANH", "OutputTensor"),
        (2, "ACTIVATION_CELU", "OutputTensor"),
    ]
    assert np.allclose(shown[0].values, elu(VALUES), rtol=1e-6)
    assert np.allclose(shown[1].values, np.tanh(elu(VALUES)).ravel(), rtol=1e-6)
    assert same_bits(shown[2].values, y)
    bound.dispatch()
    assert [each.sequence for each in shown] == list(range(6))
    assert same_bits(shown[1].values, shown[4].values)


@pytest.mark.parametrize("data_type", [FLOAT32, FLOAT16])
def test_debugging_changes_no_result(kind: str, data_type: Any) -> None:
    x = np.linspace(-3, 3, 360).reshape(3, 10, 12).astype("f4" if data_type == FLOAT32 else "f2")
    graph = dml.Graph()
    a = graph.input("a", data_type, x.shape)
    b = dml.mean_variance_normalization1(dml.activation_gelu(a), axes=[1])
    outputs = {"y": dml.activation_tanh(b), "z": dml.mean_variance_normalization1(b, axes=[2])}
    shown: list[Intermediate] = []
    plain = graph.compile(outputs, device=Device(kind))(a=x)
    debugged = graph.compile(outputs, device=Device(kind, debug=shown.append))(a=x)
    assert all(same_bits(plain[name], debugged[name]) for name in outputs)
    assert {each.name for each in shown} == {
        "nodes[0].ACTIVATION_GELU.OutputTensor",
        "nodes[1].MEAN_VARIANCE_NORMALIZATION1.OutputTensor",
        "nodes[2].ACTIVATION_TANH.OutputTensor",
        "nodes[3].MEAN_VARIANCE_NORMALIZATION1.OutputTensor",
    }
    by_name = {each.name: each.values for each in shown}
    assert same_bits(by_name["nodes[2].ACTIVATION_TANH.OutputTensor"], plain["y"])


def test_only_what_the_outputs_need_is_shown() -> None:
    graph = dml.Graph()
    a = graph.input("a", FLOAT32, SIZES)
    dml.activation_tanh(a)
    shown: list[Intermediate] = []
    model = graph.compile({"y": dml.activation_celu(a)}, device=Device("cpu", debug=shown.append))
    model(a=VALUES)
    assert [each.name for each in shown] == ["nodes[1].ACTIVATION_CELU.OutputTensor"]


def test_a_single_operator_is_shown(kind: str) -> None:
    shown: list[Intermediate] = []
    device = Device(kind, debug=shown.append)
    y = np.zeros_like(VALUES)
    celu(device).bind([VALUES], [y]).dispatch()
    assert [each.name for each in shown] == ["ACTIVATION_CELU.OutputTensor"]
    assert same_bits(shown[0].values, y)


def test_intermediates_are_written_to_a_folder(tmp_path: Path) -> None:
    device = Device("cpu", debug=tmp_path / "a" / "b")
    y = np.zeros(24, np.float32)
    device.compile_graph(graph_desc(device)).bind([VALUES], [y]).dispatch()
    files = sorted((tmp_path / "a" / "b").iterdir())
    assert [file.name for file in files] == [
        "000000_nodes[0_first_one].ACTIVATION_CELU.OutputTensor.npy",
        "000001_nodes[1].ACTIVATION_TANH.OutputTensor.npy",
        "000002_nodes[2].ACTIVATION_CELU.OutputTensor.npy",
    ]
    assert same_bits(np.load(files[2]), y)


def test_what_is_neither_a_function_nor_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="debug: 3; a function or a folder is needed"):
        Device("cpu", debug=3)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument, match="cannot be a folder"):
        Device("cpu", debug=tmp_path / "file")


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    device = Device("cpu", debug=tmp_path / "gone")
    bound = celu(device).bind([VALUES], [np.zeros_like(VALUES)])
    (tmp_path / "gone").rmdir()
    with pytest.raises(dml.Error, match="debug: cannot write"):
        bound.dispatch()


class Dispatched:
    """All ways to run work on a device whose debug function is `receive`."""

    def __init__(self, kind: str, receive: Callable[[Intermediate], object]) -> None:
        self.device = device = Device(kind, debug=lambda each: receive(each))
        self.x, self.y = VALUES.copy(), np.zeros_like(VALUES)
        graph = dml.Graph()
        outputs = {"y": dml.activation_tanh(dml.activation_celu(graph.input("x", FLOAT32, SIZES)))}
        model = graph.compile(outputs, device=device)
        operator = celu(device)
        staged = device.compile_graph(graph_desc(device))
        initialized(device, operator)
        recorder = recorded((operator, table_for(operator, [self.x], [self.y])))
        bound = operator.bind([self.x], [self.y])
        self.ways: dict[str, Callable[[], object]] = {
            "model": lambda: model(x=self.x),
            "model.run": lambda: model.run({"x": self.x}, {"y": self.y}),
            "bound model": model.bind({"x": self.x}, {"y": self.y}).dispatch,
            "bound operator": bound.dispatch,
            "graph": staged.bind([self.x], [self.y]).dispatch,
            "recorder": lambda: device.execute(recorder),
            "recording": device.record([bound]).dispatch if device.index is None else bound.dispatch,
        }


WAYS = ["model", "model.run", "bound model", "bound operator", "graph", "recorder", "recording"]


@pytest.mark.parametrize("outer", WAYS)
@pytest.mark.parametrize("inner", WAYS)
def test_a_debug_function_must_not_run_work_of_its_own_device(kind: str, outer: str, inner: str) -> None:
    messages: list[str] = []

    def receive(_: Intermediate) -> None:
        work.x.fill(9)
        with pytest.raises(InvalidArgument) as error:
            work.ways[inner]()
        messages.append(str(error.value))
        work.x[...] = VALUES

    work = Dispatched(kind, receive)
    plain = Dispatched(kind, lambda _: None)
    work.ways[outer]()
    plain.ways[outer]()
    assert set(messages) == {
        "debug: the debug function runs work of its own device; use another device there"
    }
    assert same_bits(work.y, plain.y)
    work.ways[outer]()


def test_a_debug_function_may_use_other_devices_and_immediate_functions(kind: str) -> None:
    seen: list[Any] = []
    other = Dispatched(kind, lambda _: None)

    def receive(each: Intermediate) -> None:
        other.ways["model"]()
        seen.append(dml.activation_identity(each.values, device=kind))

    work = Dispatched(kind, receive)
    work.ways["bound operator"]()
    assert same_bits(seen[0], work.y)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_debug_function_raises_ends_the_dispatch_and_only_that(kind: str, way: str) -> None:
    problems = [ValueError("not again"), KeyboardInterrupt()]

    def receive(_: Intermediate) -> None:
        if problems:
            raise problems[0]

    work = Dispatched(kind, receive)
    while problems:
        with pytest.raises(type(problems[0])) as error:
            work.ways[way]()
        assert error.value is problems.pop(0)
    work.ways[way]()
    plain = Dispatched(kind, lambda _: None)
    plain.ways[way]()
    assert same_bits(work.y, plain.y)


def test_threads_that_dispatch_on_a_debug_device_each_call_its_function() -> None:
    shown: list[tuple[int, Intermediate]] = []
    device = Device("cpu", debug=lambda each: shown.append((threading.get_ident(), each)))
    graph = dml.Graph()
    model = graph.compile({"y": dml.activation_celu(graph.input("x", FLOAT32, [1]))}, device=device)

    def work(number: int) -> int:
        for _ in range(50):
            model(x=np.full(1, number, np.float32))
        return threading.get_ident()

    with ThreadPoolExecutor(4) as threads:
        names = list(threads.map(work, range(1, 5)))
    assert sorted(each.sequence for _, each in shown) == list(range(200))
    for number, name in enumerate(names, 1):
        mine = [float(each.values[0]) for ident, each in shown if ident == name]
        assert mine.count(number) == 50


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
    for wrong in (99, "2_0", None):
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
