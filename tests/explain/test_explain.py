"""Explanations of models and operators."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.program.node import ordered
from opendml.runtime.explain import measure
from opendml.runtime.explain.explanation import ExplainedGraph
from opendml.runtime.explain.wording import bytes_text, count_text, share_text, time_text
from opendml.runtime.program import program_of
from opendml.targets.cuda import driver as cuda_driver
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.planning import plan
from tests.cuda.fake_driver import FakeDriver, Result

FLOAT32 = dml.FLOAT32


def layers(device: str | dml.Device = "cpu") -> dml.Model:
    """A product, a bias, an activation, a normalization over rows, and a product of that."""
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [1, 1, 32, 64])
    weights, bias = (np.ones((1, 1, rows, 64), np.float32) for rows in (64, 1))
    first = dml.gemm(x, graph.constant(weights))
    relu = dml.activation_relu(dml.element_wise_add(first, graph.constant(bias)))
    rows = dml.mean_variance_normalization1(relu, axes=[3])
    return graph.compile({"y": dml.gemm(rows, graph.constant(weights))}, device=device)


def of(build: Callable[[dml.Graph], dict[str, Any]]) -> ExplainedGraph:
    graph = dml.Graph()
    return graph.compile(build(graph)).explain()


def test_operators_are_in_the_kernels_that_compute_them() -> None:
    found = layers().explain()
    product, add, relu, normalization, last = found.operators
    assert [each.label for each in found.operators][:2] == ["nodes[0].GEMM", "nodes[1].ELEMENT_WISE_ADD"]
    assert product.kernels == add.kernels == relu.kernels == (0,)
    assert found.kernels[0].operators == (product.label, add.label, relu.label)
    assert found.kernels[0].name == "GEMM + ELEMENT_WISE_ADD + ACTIVATION_RELU"
    assert normalization.kernels != product.kernels
    assert last.kernels == (found.kernels[-1].number,)
    assert relu.outputs == ("OutputTensor FLOAT32 [1, 1, 32, 64]",)


def test_operators_read_operators_inputs_and_constants() -> None:
    product, add, relu, normalization, last = layers().explain().operators
    assert product.reads == ("x", "constant 0")
    assert add.reads == ("nodes[0].GEMM", "constant 1")
    assert (relu.reads, normalization.reads) == ((add.label,), (relu.label,))
    assert last.reads == (normalization.label, "constant 2")


def test_bytes_and_operations_of_a_product_are_those_of_the_matrices() -> None:
    (kernel,) = of(
        lambda graph: {
            "y": dml.gemm(graph.input("a", FLOAT32, [1, 1, 8, 16]), graph.input("b", FLOAT32, [1, 1, 16, 32]))
        }
    ).kernels
    assert kernel.bytes_read == 4 * (8 * 16 + 16 * 32)
    assert kernel.bytes_written == 4 * 8 * 32
    assert 2 * 8 * 16 * 32 <= kernel.operations <= 2 * 8 * 16 * 32 + 4 * 8 * 32
    assert (kernel.times, kernel.bound) in ((1, "memory"), (1, "arithmetic"))


def test_what_overlaps_or_is_repeated_is_counted_once() -> None:
    def build(graph: dml.Graph) -> dict[str, Any]:
        x, row = graph.input("x", FLOAT32, [1, 1, 16, 64]), graph.input("row", FLOAT32, [1, 1, 1, 64])
        pooled = dml.max_pooling(
            x, strides=[1, 1], window_size=[3, 3], start_padding=[1, 1], end_padding=[1, 1]
        )
        return {"p": pooled, "y": dml.element_wise_add(x, row)}

    found = of(build)
    (pooling,) = (each for each in found.kernels if each.name == "MAX_POOLING")
    (add,) = (each for each in found.kernels if each.name == "ELEMENT_WISE_ADD")
    assert pooling.bytes_read == pooling.bytes_written == 4 * 16 * 64
    assert add.bytes_read == 4 * (16 * 64 + 64)


def test_what_is_gathered_is_counted_by_what_is_asked_for() -> None:
    def build(graph: dml.Graph) -> dict[str, Any]:
        table, places = (
            graph.input("table", FLOAT32, [1, 1, 1000, 8]),
            graph.input("i", dml.UINT32, [1, 1, 1, 5]),
        )
        return {"y": dml.gather(table, places, axis=2, index_dimensions=1)}

    *_, kernel = of(build).kernels
    assert kernel.bytes_read == 4 * 5 * 8 + 4 * 5  # and the places
    assert kernel.operators == ("nodes[0].GATHER",)


def test_steps_of_a_recurrence_are_one_kernel_that_runs_many_times() -> None:
    def build(graph: dml.Graph) -> dict[str, Any]:
        x = graph.input("x", FLOAT32, [1, 6, 4, 16])
        weights = graph.constant(np.ones((1, 1, 3 * 16, 16), np.float32))
        gates = [dml.descs.ActivationSigmoid(), dml.descs.ActivationTanh()]
        found = dml.gru(
            x, weights, weights, activation_descs=gates, linear_before_reset=False, output_single=True
        )
        return {"y": found.output_single}

    found = of(build)
    stepped = [kernel for kernel in found.kernels if kernel.times > 1]
    assert stepped
    assert {kernel.times for kernel in stepped} == {6}
    assert all(kernel.operators == ("nodes[0].GRU",) for kernel in stepped)


def test_an_operator_that_only_moves_elements_has_no_kernel_or_one_that_it_shares() -> None:
    def build(graph: dml.Graph) -> dict[str, Any]:
        x = graph.input("x", FLOAT32, [4, 8])
        part = dml.slice(x, offsets=[0, 2], sizes=[4, 4], strides=[1, 1])
        return {"y": dml.activation_tanh(part)}

    found = of(build)
    (kernel,) = found.kernels
    assert kernel.operators == ("nodes[0].SLICE", "nodes[1].ACTIVATION_TANH")
    assert kernel.bytes_read == kernel.bytes_written == 4 * 16


def test_the_plan_of_the_memory_lies_within_the_arena_and_shares_no_bytes_in_use() -> None:
    found = layers().explain()
    assert found.temporaries
    for each in found.temporaries:
        assert 0 <= each.first <= each.last < len(found.kernels)
        assert each.offset + each.size <= found.temporary_bytes
        for other in found.temporaries:
            together = each.first <= other.last and other.first <= each.last
            apart = each.offset + each.size <= other.offset or other.offset + other.size <= each.offset
            assert each is other or not together or apart
    assert found.persistent_bytes > 0


def test_times_and_floors_are_positive_and_the_largest_comes_first() -> None:
    found = layers().explain()
    assert found.seconds > 0
    assert all(kernel.seconds >= 0 and kernel.floor_seconds > 0 for kernel in found.kernels)
    assert found.largest_first[0].seconds == max(kernel.seconds for kernel in found.kernels)
    assert found.kernel_seconds == sum(kernel.seconds for kernel in found.kernels)
    assert found.operation_rate is not None
    assert [size for size, _ in found.bandwidth] == sorted(size for size, _ in found.bandwidth)


def test_explaining_changes_no_result_and_no_later_compilation() -> None:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [8, 33])
    y = dml.activation_softmax1(dml.activation_tanh(dml.element_wise_add(x, x)), axes=[1])
    model, values = graph.compile({"y": y}), np.linspace(-3, 3, 8 * 33, dtype=np.float32).reshape(8, 33)
    before = model(x=values)["y"]
    model.explain(x=values)
    np.testing.assert_array_equal(model(x=values)["y"], before)
    np.testing.assert_array_equal(graph.compile({"y": y})(x=values)["y"], before)
    first, again = model.explain(), graph.compile({"y": y}).explain()
    assert [each.operators for each in first.kernels] == [each.operators for each in again.kernels]


def test_models_know_no_origins_before_somebody_asks() -> None:
    model = layers()
    nodes = ordered(model._program.results)
    assert {node.origin for node in nodes} == {None}
    model.explain()
    assert {node.origin for node in nodes} > {None}


def test_given_inputs_are_measured_with_and_are_checked() -> None:
    model = layers()
    x = np.full((1, 1, 32, 64), 0.5, np.float32)
    for found in (model.explain(x=x), model.explain(x), model.explain({"x": x})):
        assert found.kernels
    assert np.all(x == 0.5)
    with pytest.raises(dml.InvalidArgument, match="2 arrays; the graph has x"):
        model.explain(x, x)
    with pytest.raises(dml.InvalidArgument, match="x is given twice"):
        model.explain(x, x=x)
    with pytest.raises(dml.InvalidArgument, match=r"explain: input z is unknown; the graph has x"):
        model.explain(z=x)
    with pytest.raises(dml.InvalidArgument, match="x"):
        model.explain(x=x[:, :, :8])


def test_on_the_reference_operators_are_told_and_kernels_are_not() -> None:
    found = layers("reference").explain()
    assert found.operators[0].operator == "GEMM"
    assert found.kernels == found.temporaries == ()
    assert found.seconds > 0
    assert "it has no kernels" in str(found)
    assert "it has no kernels" in found.html()


def test_a_debug_device_is_refused() -> None:
    model = layers(dml.Device("cpu", debug=lambda each: None))
    with pytest.raises(dml.Unsupported, match="compile it on a device without debug="):
        model.explain()


def test_compiled_operators_are_explained_too() -> None:
    device = dml.Device("cpu")
    owned = dml.TensorDesc(FLOAT32, [1, 1, 64, 64], flags=dml.TensorFlags.OWNED_BY_DML)
    tensor = dml.TensorDesc(FLOAT32, [1, 1, 8, 64])
    desc = dml.descs.Gemm(tensor, owned, None, tensor, fused_activation=dml.descs.ActivationRelu())
    found = device.compile_operator(device.create_operator(desc)).explain()
    assert found.title.startswith("GEMM: ATensor FLOAT32 [1, 1, 8, 64], BTensor")
    assert [each.label for each in found.operators] == ["GEMM"]
    assert found.operators[0].reads == ("ATensor", "BTensor")
    assert all(kernel.operators == ("GEMM",) for kernel in found.kernels)


def test_graphs_of_several_programs_are_explained_as_one() -> None:
    device = dml.Device("cpu")
    packed, spread = (dml.TensorDesc(FLOAT32, [4, 6], strides) for strides in (None, [1, 4]))
    odd = dml.TensorDesc(dml.TensorDataType.UINT8, [4, 6, 4])
    nodes = [
        dml.OperatorNode(device.create_operator(dml.descs.ActivationTanh(packed, spread))),
        dml.OperatorNode(device.create_operator(dml.descs.ElementWiseIdentity(odd, odd))),
    ]
    graph = dml.GraphDesc(
        input_count=1,
        output_count=1,
        nodes=nodes,
        input_edges=[dml.InputEdge(0, 0, 0)],
        output_edges=[dml.OutputEdge(1, 0, 0)],
        intermediate_edges=[dml.IntermediateEdge(0, 0, 1, 0)],
    )
    found = device.compile_graph(graph).explain()
    assert [each.operator for each in found.operators] == ["ACTIVATION_TANH", "ELEMENT_WISE_IDENTITY"]
    assert found.operators[1].reads == ("nodes[0].ACTIVATION_TANH",)
    assert len(found.kernels) == 2


def test_json_has_all_and_the_trace_has_every_kernel_in_its_order() -> None:
    found = layers().explain()
    data = json.loads(found.json())
    assert data == found.as_dict()
    assert [each["seconds"] for each in data["kernels"]] == [each.seconds for each in found.kernels]
    events = json.loads(found.trace())["traceEvents"]
    spans = [each for each in events if each["ph"] == "X"]
    assert [each["name"] for each in spans] == [each.name for each in found.kernels]
    for span, kernel, following in zip(spans, found.kernels, [*spans[1:], None], strict=True):
        assert span["dur"] == pytest.approx(kernel.seconds * 1e6)
        assert following is None or following["ts"] == pytest.approx(span["ts"] + span["dur"])
    assert max(each["args"]["bytes"] for each in events if each["ph"] == "C") >= found.temporaries[0].size


def test_the_text_names_kernels_and_what_there_is() -> None:
    found = layers().explain()
    text = str(found)
    assert "x FLOAT32 [1, 1, 32, 64] -> y FLOAT32 [1, 1, 32, 64]" in text
    assert f"5 operators in {len(found.kernels)} kernels" in text
    assert "GEMM + ELEMENT_WISE_ADD + ACTIVATION_RELU" in " ".join(text.split())


def test_kernels_of_equal_operators_are_told_apart_by_the_sizes_of_their_results() -> None:
    found = layers().explain()
    assert [kernel.result for kernel in found.kernels] == [(1, 1, 32, 64)] * len(found.kernels)
    assert " -> [1, 1, 32, 64]" in " ".join(str(found).split())
    assert "<small>[1, 1, 32, 64]</small>" in found.html()


def test_of_a_kernel_too_short_to_be_measured_no_time_and_no_ratio_is_claimed() -> None:
    found = layers().explain()
    shortest = replace(found.kernels[0], seconds=0.0)
    assert shortest.floors is None
    assert replace(shortest, seconds=1e-6, floor_seconds=5e-7).floors == 2.0
    shown = replace(found, operators=(), kernels=(shortest,))
    assert "< 100 ns  < 1 %" in str(shown)
    assert "&lt; 100 ns</td><td>&lt; 1 %</td><td></td>" in shown.html()


def test_the_repr_is_one_line() -> None:
    found = replace(layers().explain(), seconds=0.0123)
    assert repr(found).startswith("<ExplainedGraph cpu: 12.3 ms for a dispatch; 5 operators in ")
    assert "\n" not in repr(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (share_text(0.425), "42 %"),
        (share_text(0.004), "< 1 %"),
        (time_text(0.0123), "12.3 ms"),
        (time_text(1.5e-6), "1.50 µs"),
        (time_text(2e-9), "2 ns"),
        (time_text(123.4), "123 s"),
        (bytes_text(999), "999 B"),
        (bytes_text(4_000_000), "4.00 MB"),
        (count_text(2.1e9), "2.10 G"),
        (count_text(12), "12"),
    ],
)
def test_numbers_have_three_digits(text: str, expected: str) -> None:
    assert text == expected


H200 = CudaMachine(90, 132, 233_472)


def test_each_kernel_of_a_gpu_is_one_launch_whose_mode_is_told() -> None:
    tensor = dml.TensorDesc(dml.FLOAT32, [4, 1000])
    planned = plan(program_of(dml.descs.ActivationSoftmax1(tensor, tensor, axes=[1])), H200)
    assert [len(each) for each in planned.launches] == [1] * len(planned.kernels.kernels)
    assert all(name and name == name.lower() for (name,) in planned.launches)


def test_operators_are_in_the_kernels_of_a_gpu_too() -> None:
    (stage,) = layers("reference")._work.work.stages
    measure._claim(stage)
    kernels = plan(stage.program, H200).kernels.kernels
    first = {node.origin for node in ordered(kernels[0].values) if node.operands}
    assert first == {"nodes[0].GEMM", "nodes[1].ELEMENT_WISE_ADD", "nodes[2].ACTIVATION_RELU"}


class Events(FakeDriver):
    """A driver that has events, 2 ms apart, and notes what it is asked for."""

    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=0)

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[Any, ...]] = []
        self.made = 0

    def cuCtxSetCurrent(self, context: str) -> tuple[Result]:  # noqa: N802 - the driver's name
        return (Result(0),)

    def cuEventCreate(self, flags: int) -> tuple[Result, int]:  # noqa: N802
        self.made += 1
        return Result(0), self.made

    def cuEventRecord(self, event: int, stream: str) -> tuple[Result]:  # noqa: N802
        self.log.append(("record", event, stream))
        return (Result(0),)

    def cuEventSynchronize(self, event: int) -> tuple[Result]:  # noqa: N802
        self.log.append(("wait", event))
        return (Result(0),)

    def cuEventElapsedTime(self, begin: int, end: int) -> tuple[Result, float]:  # noqa: N802
        return Result(0), 2.0 * (end - begin)

    def cuEventDestroy(self, event: int) -> tuple[Result]:  # noqa: N802
        self.log.append(("destroy", event))
        return (Result(0),)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Events:
    fake = Events()
    monkeypatch.setattr(cuda_driver, "driver_module", lambda: fake)
    return fake


def device() -> CudaDevice:
    made = CudaDevice.__new__(CudaDevice)
    made.alone, made._context, made.stream, made._entered = True, "context", "own", cuda_driver._Entered()
    return made


def test_work_is_timed_between_two_events_on_the_devices_own_stream(events: Events) -> None:
    seconds = device().seconds(lambda: events.log.append(("work",)))
    assert seconds == pytest.approx(2e-3)
    assert events.log == [
        ("record", 1, "own"),
        ("work",),
        ("record", 2, "own"),
        ("wait", 2),
        ("destroy", 1),
        ("destroy", 2),
    ]


def test_events_are_given_back_where_work_fails(events: Events) -> None:
    def fail() -> None:
        raise dml.DeviceRemoved("it failed")

    with pytest.raises(dml.DeviceRemoved, match="it failed"):
        device().seconds(fail)
    assert events.log[-2:] == [("destroy", 1), ("destroy", 2)]
