"""Commands of JSON models run in their order, and are timed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import (
    Dispatched,
    DispatchModel,
    PreparedModel,
    Printed,
    Repetition,
    Written,
    timing,
)
from opendml.frontends.dxdispatch.timing import Statistics, cold_and_hot, measure
from opendml.spec.enums import ExecutionFlags
from opendml.spec.operator_desc import OperatorDesc

from .conftest import AddOneBound, AddOneCompiled, AddOneDevice

Load = Callable[[Any], DispatchModel]


def _bound(program: PreparedModel) -> AddOneBound:
    """The operator of the first dispatch command."""
    bound = next(iter(program.bound.values()))
    assert isinstance(bound, AddOneBound)
    return bound


def _prints(program: PreparedModel) -> list[str]:
    return [event.text for event in program.run() if isinstance(event, Printed)]


def test_commands_run_in_order(
    model: dict[str, Any], load: Load, device: AddOneDevice, tmp_path: Path
) -> None:
    dispatch, print_y, write = model["commands"]
    model["commands"] = [print_y, dispatch, print_y, write]
    events = list(dxdispatch.prepare(load(model), device).run())
    assert [type(event) for event in events] == [Printed, Dispatched, Printed, Written]
    assert [event.text for event in events if isinstance(event, Printed)] == [
        "0, 0, 0, 0, 0, 0",
        "2, 3, 4, 0, -1, -2",
    ]
    assert np.load(tmp_path / "y.npy").tolist() == [2, 3, 4, 0, -1, -2]


def test_each_dispatch_runs_all_iterations(model: dict[str, Any], load: Load, device: AddOneDevice) -> None:
    model["commands"][0]["bindings"]["OutputTensor"] = "x"
    program = dxdispatch.prepare(load(model), device)
    dispatched = next(program.run(Repetition(iterations=5)))
    assert isinstance(dispatched, Dispatched)
    assert len(dispatched.seconds) == 5
    assert program.buffers["x"].view(np.float32).tolist() == [6, 7, 8, 4, 3, 2]


def test_nothing_runs_or_is_written_before_the_events_are_asked_for(
    model: dict[str, Any], load: Load, device: Any, tmp_path: Path
) -> None:
    program = dxdispatch.prepare(load(model), device)
    assert not program.buffers["y"].any()
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_binding_may_see_part_of_a_resource(model: dict[str, Any], load: Load, device: AddOneDevice) -> None:
    model["resources"]["big"] = {
        "initialValuesDataType": "UINT8",
        "initialValues": {"valueCount": 64, "valueStart": 0, "valueDelta": 1},
    }
    binding = {
        "name": "big",
        "elementSizeInBytes": 4,
        "elementOffset": 8,
        "elementCount": 6,
        "format": "R32_FLOAT",
    }
    model["commands"][0]["bindings"]["InputTensor"] = binding
    source = _bound(dxdispatch.prepare(load(model), device)).inputs[0]
    assert source is not None
    assert source.tolist() == list(range(32, 64))


def test_element_offset_counts_the_elements_that_the_resource_was_given(
    model: dict[str, Any], load: Load, device: Any
) -> None:
    model["resources"]["big"] = {
        "initialValuesDataType": "INT16",
        "initialValues": {"valueCount": 40, "valueStart": 0, "valueDelta": 1},
    }
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "big", "elementOffset": 16}
    source = _bound(dxdispatch.prepare(load(model), device)).inputs[0]
    assert source is not None
    assert source.view(np.int16).tolist() == list(range(16, 40))


def test_offsets_keep_the_guaranteed_alignment(model: dict[str, Any], load: Load) -> None:
    model["resources"]["big"] = {
        "initialValuesDataType": "FLOAT32",
        "initialValues": {"valueCount": 64, "value": 0},
    }
    model["dispatchables"]["celu"]["desc"]["InputTensor"]["GuaranteedBaseOffsetAlignment"] = 64
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "big", "elementOffset": 4}
    with pytest.raises(InvalidArgument, match="a multiple of 64 bytes, got byte 16"):
        load(model)


def test_resources_are_aligned_for_vectors(model: dict[str, Any], load: Load, device: Any) -> None:
    buffers = dxdispatch.prepare(load(model), device).buffers
    assert all(buffer.ctypes.data % 64 == 0 for buffer in buffers.values())


@pytest.fixture
def normalization(model: dict[str, Any]) -> dict[str, Any]:
    """A desc with optional tensors between the others."""
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 3]}
    model["dispatchables"]["celu"] = {
        "type": "MEAN_VARIANCE_NORMALIZATION1",
        "desc": {
            "InputTensor": tensor,
            "ScaleTensor": None,
            "BiasTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 1]},
            "OutputTensor": tensor,
            "Axes": [2, 3],
            "NormalizeVariance": True,
            "Epsilon": 1e-5,
        },
    }
    model["resources"]["b"] = {"initialValuesDataType": "FLOAT32", "initialValues": [5]}
    model["commands"][0]["bindings"]["BiasTensor"] = "b"
    return model


def test_absent_tensors_keep_places(normalization: dict[str, Any], load: Load, device: AddOneDevice) -> None:
    bound = _bound(dxdispatch.prepare(load(normalization), device))
    assert [None if data is None else data.size for data in bound.inputs] == [24, None, 4]
    assert len(bound.outputs) == 1


def test_absent_tensors_cannot_be_bound(normalization: dict[str, Any], load: Load) -> None:
    normalization["commands"][0]["bindings"]["ScaleTensor"] = "b"
    with pytest.raises(
        InvalidArgument, match=r"bindings\.ScaleTensor: expected no binding, because the tensor is null"
    ):
        load(normalization)


def test_owned_tensors_are_read_once(normalization: dict[str, Any], load: Load, device: AddOneDevice) -> None:
    dispatchable = normalization["dispatchables"]["celu"]
    dispatchable["desc"]["BiasTensor"]["Flags"] = "OWNED_BY_DML"
    dispatchable["bindings"] = {"BiasTensor": "b"}
    with pytest.raises(
        InvalidArgument, match=r"^\$\.commands\[0\]\.bindings\.BiasTensor: expected no binding at dispatch"
    ):
        load(normalization)
    del normalization["commands"][0]["bindings"]["BiasTensor"]
    program = dxdispatch.prepare(load(normalization), device)
    program.buffers["b"][:] = 0
    bias = _bound(program).inputs[2]
    assert bias is not None
    assert bias.view(np.float32).tolist() == [5]


def test_arrays_of_tensors_are_bound_in_their_order(load: Load, device: Any) -> None:
    def part(first: int) -> dict[str, Any]:
        return {"initialValuesDataType": "FLOAT32", "initialValues": [first, first + 1]}

    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 2]}
    model = {
        "resources": {"a": part(1), "b": part(3), "y": part(0)},
        "dispatchables": {
            "split": {
                "type": "SPLIT",
                "desc": {
                    "InputTensor": tensor,
                    "OutputCount": 2,
                    "OutputTensors": [tensor, tensor],
                    "Axis": 3,
                },
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "split",
                "bindings": {"InputTensor": "y", "OutputTensors": ["b", "a"]},
            }
        ],
    }
    first, second = _bound(dxdispatch.prepare(load(model), device)).outputs
    assert first is not None
    assert second is not None
    assert (first.view(np.float32).tolist(), second.view(np.float32).tolist()) == ([3, 4], [1, 2])


@pytest.fixture
def half_owned() -> dict[str, Any]:
    """A join of three tensors, the second of which is OWNED_BY_DML."""
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 2]}
    inputs = [tensor, {**tensor, "Flags": "OWNED_BY_DML"}, tensor]
    output = {**tensor, "Sizes": [1, 1, 1, 6]}
    desc = {"InputTensors": inputs, "OutputTensor": output, "Axis": 3}
    values = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 6, "value": 0}}
    pairs = {
        name: {"initialValuesDataType": "FLOAT32", "initialValues": [number, number]}
        for name, number in (("a", 1), ("b", 2), ("c", 3))
    }
    bindings = {"InputTensors": ["a", None, "c"], "OutputTensor": "y"}
    return {
        "resources": {**pairs, "y": values},
        "dispatchables": {
            "join": {"type": "JOIN", "desc": desc, "bindings": {"InputTensors": [None, "b", None]}}
        },
        "commands": [{"type": "dispatch", "dispatchable": "join", "bindings": bindings}],
    }


def test_arrays_may_be_owned_in_part(half_owned: dict[str, Any], load: Load, device: Any) -> None:
    inputs = _bound(dxdispatch.prepare(load(half_owned), device)).inputs
    assert [data is not None and data.view(np.float32)[0] for data in inputs] == [1, 2, 3]


def test_each_tensor_of_an_array_is_bound_in_its_place(half_owned: dict[str, Any], load: Load) -> None:
    half_owned["dispatchables"]["join"]["bindings"]["InputTensors"] = ["a", "b", None]
    half_owned["commands"][0]["bindings"]["InputTensors"] = [None, "b", "c"]
    with pytest.raises(InvalidArgument) as caught:
        load(half_owned)
    at_dispatch = "expected null, because this tensor of the array is bound at dispatch (not OWNED_BY_DML)"
    at_start = "expected null, because this tensor of the array is bound at initialization (OWNED_BY_DML)"
    path = "bindings.InputTensors"
    assert caught.value.failures == (
        f'$.dispatchables.join.{path}[0]: {at_dispatch}, got "a"',
        f"$.commands[0].{path}[0]: expected the name of a resource, or an object with it, got null",
        f'$.commands[0].{path}[1]: {at_start}, got "b"',
    )


class RefusingDevice(AddOneDevice):
    """Raises `error` at one of the steps."""

    def __init__(self, step: str, error: Error) -> None:
        super().__init__()
        self.step, self.error = step, error

    def create_operator(self, desc: OperatorDesc) -> OperatorDesc:
        return self._at("create", desc)

    def compile_operator(self, operator: OperatorDesc, flags: ExecutionFlags) -> AddOneCompiled:
        self._at("compile", operator)
        return RefusingCompiled(self)

    def _at(self, step: str, value: OperatorDesc) -> OperatorDesc:
        if step == self.step:
            raise self.error
        return value


class RefusingCompiled(AddOneCompiled):
    def __init__(self, device: RefusingDevice) -> None:
        self.device = device

    def bind(self, inputs: Any, outputs: Any) -> AddOneBound:
        if self.device.step == "bind":
            raise self.device.error
        return super().bind(inputs, outputs)


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (
            "create",
            InvalidArgument(["A.B: 1", "A.C: 2"]),
            "$.dispatchables.celu: A.B: 1\n$.dispatchables.celu: A.C: 2",
        ),
        ("compile", Unsupported("no such operator"), "$.dispatchables.celu: no such operator"),
        ("bind", InvalidArgument("overlap"), "$.commands[0].bindings: overlap"),
    ],
)
def test_what_the_device_refuses_is_located(
    step: str, error: Error, message: str, model: dict[str, Any], load: Load, tmp_path: Path
) -> None:
    with pytest.raises(type(error)) as caught:
        dxdispatch.prepare(load(model), RefusingDevice(step, error))
    assert str(caught.value) == message
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_a_buffer_beyond_memory_is_an_error(model: dict[str, Any], load: Load, device: AddOneDevice) -> None:
    model["resources"]["x"]["sizeInBytes"] = 2**63
    with pytest.raises(Error, match=rf"^\$\.resources\.x: cannot allocate {2**63} bytes$"):
        dxdispatch.prepare(load(model), device)


@pytest.mark.parametrize(
    ("resource", "verbose", "text"),
    [
        (
            {"initialValuesDataType": "FLOAT32", "initialValues": [0.1, 1e10, "nan", "-inf"]},
            False,
            "0.1, 1e+10, nan, -inf",
        ),
        ({"initialValuesDataType": "FLOAT16", "initialValues": [1, 2, 3]}, False, "1, 2, 3"),
        ({"initialValuesDataType": "UINT64", "initialValues": [2**64 - 1]}, False, "18446744073709551615"),
        ({"initialValuesDataType": "INT4", "initialValues": [-8, 7, -1]}, False, "-8, 7, -1"),
        ({"initialValuesDataType": "UINT8", "initialValues": [7], "sizeInBytes": 64}, False, "7"),
        (
            {"initialValuesDataType": "FLOAT32", "initialValues": [0.1, -2]},
            True,
            "[0] 0.1 (0x3DCCCCCD)\n[1] -2.0 (0xC0000000)",
        ),
        ({"initialValuesDataType": "INT8", "initialValues": [-1]}, True, "[0] -1 (0xFF)"),
    ],
)
def test_print(resource: dict[str, Any], verbose: bool, text: str, load: Load, device: Any) -> None:
    command = {"type": "print", "resource": "r", "verbose": verbose}
    model = load({"resources": {"r": resource}, "dispatchables": {}, "commands": [command]})
    assert _prints(dxdispatch.prepare(model, device)) == [text]


@pytest.mark.parametrize("command", ["print", "Print", "PRINT"])
def test_types_of_commands_may_have_any_case(command: str, load: Load, device: Any) -> None:
    resource = {"initialValuesDataType": "INT32", "initialValues": [1]}
    commands = [{"type": command, "resource": "r"}]
    model = load({"resources": {"r": resource}, "dispatchables": {}, "commands": commands})
    assert _prints(dxdispatch.prepare(model, device)) == ["1"]


MIXED = {"initialValuesDataType": "UNKNOWN", "initialValues": [{"type": "UINT32", "value": 6}]}


@pytest.mark.parametrize(
    "command", [{"type": "print"}, {"type": "writeFile", "targetPath": "a.npy"}], ids=["print", "npy"]
)
def test_values_of_several_types_have_no_type_to_print_or_store(command: dict[str, Any], load: Load) -> None:
    commands = [command | {"resource": "r"}]
    with pytest.raises(InvalidArgument, match=r'a resource whose values have one type, got "r" with several'):
        load({"resources": {"r": MIXED}, "dispatchables": {}, "commands": commands})


def _write(load: Load, resource: dict[str, Any], **command: Any) -> None:
    commands = [{"type": "writeFile", "resource": "r", **command}]
    model = load({"resources": {"r": resource}, "dispatchables": {}, "commands": commands})
    list(dxdispatch.prepare(model, AddOneDevice()).run())


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_npy_round_trip_keeps_every_bit(dtype: str, load: Load, tmp_path: Path) -> None:
    original = np.random.default_rng(1).integers(0, 256, 48, np.uint8).view(dtype).reshape(2, -1)
    np.save(tmp_path / "a.npy", original)
    _write(
        load, {"initialValues": {"sourcePath": "a.npy"}}, targetPath="b.npy", dimensions=list(original.shape)
    )
    written = np.load(tmp_path / "b.npy")
    assert (written.dtype, written.shape) == (original.dtype, original.shape)
    assert written.tobytes() == original.tobytes()


def test_npy_without_dimensions_has_one(load: Load, tmp_path: Path) -> None:
    _write(load, {"initialValuesDataType": "INT16", "initialValues": [1, 2, 3]}, targetPath="a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "resource", [MIXED, {"initialValuesDataType": "UINT8", "initialValues": [6, 0, 0, 0]}]
)
def test_raw_file_has_the_bytes_of_the_resource(resource: dict[str, Any], load: Load, tmp_path: Path) -> None:
    _write(load, resource, targetPath="new/folder/a.dat")
    assert (tmp_path / "new" / "folder" / "a.dat").read_bytes() == b"\x06\0\0\0"


def test_npy_extension_may_have_any_case(load: Load, tmp_path: Path) -> None:
    _write(load, {"initialValuesDataType": "INT16", "initialValues": [1, 2]}, targetPath="a.NPY")
    assert np.load(tmp_path / "a.NPY").tolist() == [1, 2]


def test_raw_file_has_no_padding_that_nobody_asked_for(load: Load, tmp_path: Path) -> None:
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3, 4, 5]}
    _write(load, resource, targetPath="a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"\x01\x02\x03\x04\x05"
    _write(load, resource | {"sizeInBytes": 7}, targetPath="a.bin")
    assert (tmp_path / "a.bin").read_bytes() == b"\x01\x02\x03\x04\x05\0\0"


def test_a_text_that_memory_has_no_room_for_is_an_error(
    model: dict[str, Any], load: Load, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(elements: Any) -> str:
        raise MemoryError

    monkeypatch.setattr("opendml.frontends.dxdispatch.execution._one_line", nothing)
    with pytest.raises(Error, match=r"^\$\.commands\[\d\]: cannot print \w+: no memory for \d+ elements$"):
        _prints(dxdispatch.prepare(load(model), device))


def test_a_file_that_cannot_be_written_is_an_error(load: Load, tmp_path: Path) -> None:
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1]}
    name = "n" * 300
    with pytest.raises(Error, match=rf"^\$\.commands\[0\]: cannot write {tmp_path}/{name}: "):
        _write(load, resource, targetPath=name)


def test_files_go_to_the_output(
    model: dict[str, Any], load: Load, device: AddOneDevice, tmp_path: Path
) -> None:
    load(model)
    output = tmp_path / "output"
    read = dxdispatch.load(tmp_path / "model.json", output)
    list(dxdispatch.prepare(read, device).run())
    assert [file.name for file in output.iterdir()] == ["y.npy"]


class Clock:
    """Stands still but when something sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


class Work:
    """Takes some time, and remembers when each run began."""

    def __init__(self, clock: Clock, seconds: float = 0.0) -> None:
        self.starts: list[float] = []
        self.clock = clock
        self.seconds = seconds

    def __call__(self) -> None:
        self.starts.append(self.clock.perf_counter())
        self.clock.sleep(self.seconds)


@pytest.mark.parametrize(("iterations", "repeat"), [(1, 1), (5, 1), (1, 3), (4, 2)])
def test_every_iteration_runs_its_repeats(iterations: int, repeat: int, clock: Clock) -> None:
    work = Work(clock)
    assert len(measure(work, Repetition(iterations, repeat))) == iterations
    assert len(work.starts) == iterations * repeat


def test_a_measurement_is_the_mean_of_its_repeats(clock: Clock) -> None:
    assert measure(Work(clock, 0.25), Repetition(repeat=5)) == (0.25,)


def test_measurements_go_on_until_the_time_has_passed(clock: Clock) -> None:
    assert len(measure(Work(clock, 0.25), Repetition(minimum_seconds=2))) == 8
    assert clock.now == 2


def test_iterations_are_a_minimum_beside_the_time(clock: Clock) -> None:
    assert len(measure(Work(clock, 1), Repetition(iterations=7, minimum_seconds=3))) == 7


def test_measurements_keep_the_interval(clock: Clock) -> None:
    work = Work(clock, 0.25)
    measure(work, Repetition(iterations=3, interval_seconds=1))
    assert work.starts == [0, 1, 2]


@pytest.mark.parametrize(
    ("count", "warmup", "cold"), [(1, 2, 0), (2, 2, 1), (3, 2, 2), (4, 2, 2), (4, 0, 0), (1, 0, 0)]
)
def test_warmup_leaves_at_least_one_hot_measurement(count: int, warmup: int, cold: int) -> None:
    seconds = [float(index) for index in range(count)]
    assert cold_and_hot(seconds, warmup) == (seconds[:cold], seconds[cold:])


def test_statistics() -> None:
    assert Statistics.of([5.0, 1.0, 2.0, 3.0, 4.0]) == Statistics(
        5, 3.0, 1.0, 3.0, 4.6, pytest.approx(4.96), 5.0
    )
    assert Statistics.of([2.0]) == Statistics(1, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: count} for name in ("iterations", "repeat") for count in (0, -1)),
        *(
            {name: seconds}
            for name in ("minimum_seconds", "interval_seconds")
            for seconds in (math.nan, math.inf, -math.inf, -1e-9)
        ),
    ],
    ids=str,
)
def test_repetitions_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidArgument, match=f"^{name}: "):
        Repetition(**wrong)
