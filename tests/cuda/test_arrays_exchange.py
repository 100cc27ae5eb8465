"""Arrays on a device: in place, on the right stream, of the caller's kind, with clear errors. On a device
that is not there: see `fake`; `test_arrays.py` asks the same of real libraries on a GPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.memory.host_array import Array
from tests.cuda import fake
from tests.cuda.fake import (
    LIBRARY_STREAM,
    OWN_STREAM,
    FakeArray,
    FakeDevice,
    InterfaceArray,
    UnversionedArray,
)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[FakeDevice]:
    return fake.install(monkeypatch)


def values(*sizes: int) -> Array:
    count = int(np.prod(sizes))
    return (np.arange(count, dtype=np.float32).reshape(sizes) - count // 2) / 8


def relu(array: Array) -> Array:
    return np.maximum(array, 0)


@pytest.mark.parametrize("kind", [FakeArray, UnversionedArray, InterfaceArray])
def test_result_is_of_the_callers_kind(devices: list[FakeDevice], kind: type[Any]) -> None:
    x = values(3, 5)
    y = dml.activation_relu(kind(x))
    assert isinstance(y, FakeArray)
    np.testing.assert_array_equal(y.values, relu(x))


def test_input_is_ready_on_the_stream_that_the_work_is_on(devices: list[FakeDevice]) -> None:
    x = FakeArray(values(4))
    dml.activation_relu(x)
    assert set(x.streams) == {OWN_STREAM}
    assert ("run", OWN_STREAM) in devices[0].log


def test_result_is_ready_on_the_consumers_stream(devices: list[FakeDevice]) -> None:
    dml.activation_relu(FakeArray(values(4)))
    run, order = devices[0].log.index(("run", OWN_STREAM)), ("order", OWN_STREAM, LIBRARY_STREAM)
    assert order in devices[0].log[run:]


def test_stream_of_the_array_interface_is_waited_for(devices: list[FakeDevice]) -> None:
    dml.activation_relu(InterfaceArray(values(4)))
    assert ("order", LIBRARY_STREAM, OWN_STREAM) in devices[0].log


def test_later_calls_of_the_same_form_use_their_own_arrays(devices: list[FakeDevice]) -> None:
    for shift in range(3):
        x = values(2, 3) + shift
        np.testing.assert_array_equal(dml.activation_relu(FakeArray(x)).values, relu(x))


@pytest.mark.parametrize("strided", [False, True])
def test_strides_are_followed(devices: list[FakeDevice], strided: bool) -> None:
    x = values(6, 8)[::2, ::-1] if strided else values(6, 8).T
    np.testing.assert_array_equal(dml.activation_relu(FakeArray(x)).values, relu(x))


def test_out_is_written_and_done_on_return(devices: list[FakeDevice]) -> None:
    x, out = values(3, 4), np.zeros((3, 4), np.float32)
    target = FakeArray(out)
    assert dml.activation_relu(FakeArray(x), out=target) is target
    np.testing.assert_array_equal(out, relu(x))
    assert devices[0].log[-1] == ("synchronize", OWN_STREAM)


def test_in_place(devices: list[FakeDevice]) -> None:
    x = values(3, 4)
    expected = relu(x)
    array = FakeArray(x)
    dml.activation_relu(array, out=array)
    np.testing.assert_array_equal(x, expected)


def test_optional_tensors_may_be_absent(devices: list[FakeDevice]) -> None:
    x, bias = values(2, 3, 4), values(1, 3, 1)
    y = dml.mean_variance_normalization1(FakeArray(x), None, FakeArray(bias), axes=[2])
    expected = dml.mean_variance_normalization1(x, None, bias, axes=[2], device="reference")
    np.testing.assert_array_equal(y.values, expected)


@pytest.mark.parametrize("versioned", [False, True])
def test_arrays_of_jax_are_never_written(
    devices: list[FakeDevice], monkeypatch: pytest.MonkeyPatch, versioned: bool
) -> None:
    out = FakeArray(values(4), writable=False) if versioned else UnversionedArray(values(4))
    if not versioned:
        monkeypatch.setattr(UnversionedArray, "__module__", "jaxlib._jax")
    before = out.values.copy()
    with pytest.raises(dml.InvalidArgument, match=r"activation_relu.out: a read-only array"):
        dml.activation_relu(FakeArray(values(4)), out=out)
    np.testing.assert_array_equal(out.values, before)


@pytest.mark.parametrize("view", [(slice(5, 25),), (slice(19, None, -1),)], ids=["shifted", "reversed"])
def test_in_place_holds_for_every_input_that_shares_memory(
    devices: list[FakeDevice], view: tuple[slice, ...]
) -> None:
    memory = values(40)
    x, y, before = FakeArray(memory[:20]), FakeArray(memory[view]), memory.copy()
    dml.element_wise_add(x, FakeArray(values(40)[view]), out=FakeArray(values(20)))
    for first, second, name in ((x, y, "b"), (y, x, "a")):
        with pytest.raises(dml.InvalidArgument, match=f"element_wise_add.out: overlaps {name} in part"):
            dml.element_wise_add(first, second, out=x)
    np.testing.assert_array_equal(memory, before)
    assert dml.element_wise_add(x, x, out=x) is x
    np.testing.assert_array_equal(memory[:20], 2 * before[:20])


@pytest.mark.usefixtures("devices")
def test_several_outputs_and_lists_are_of_the_callers_kind() -> None:
    x = values(2, 3)
    for _ in range(2):
        parts = dml.split(FakeArray(x), axis=1, sizes=[1, 1, 1])
        assert type(parts) is tuple
        np.testing.assert_array_equal(dml.join(parts, axis=1).values, x)
        np.testing.assert_array_equal(dml.join(parts[1:], axis=1).values, x[:, 1:])
        value, index = dml.top_k1(FakeArray(x), k=3, axis_direction="INCREASING")
        np.testing.assert_array_equal(value.values, x)
        np.testing.assert_array_equal(index.values, [[0, 1, 2]] * 2)
        image = FakeArray(x[None, None])
        assert isinstance(dml.max_pooling2(image, window_size=[1, 1]), FakeArray)
        both = dml.max_pooling2(image, window_size=[1, 1], output_indices=True)
        np.testing.assert_array_equal(both.output_indices.values.ravel(), range(6))


def test_several_outputs_are_written_and_done_on_return(devices: list[FakeDevice]) -> None:
    x, out = values(2, 3), (FakeArray(values(2, 3)), FakeArray(np.zeros((2, 3), np.uint32)))
    result = dml.top_k1(FakeArray(x), k=3, axis_direction="INCREASING", out=out)
    assert result.output_value is out[0]
    assert result.output_index is out[1]
    np.testing.assert_array_equal(out[0].values, x)
    np.testing.assert_array_equal(out[1].values, [[0, 1, 2]] * 2)
    assert devices[0].log[-1] == ("synchronize", OWN_STREAM)


@pytest.mark.usefixtures("devices")
def test_misfits_among_several_outputs_and_lists_are_named() -> None:
    x, index = values(3), np.zeros(3, np.uint32)
    outs: list[tuple[tuple[Any, Any], str]] = [
        ((FakeArray(x), FakeArray(index)), "out.output_value: shares memory with input"),
        ((FakeArray(x.copy()), FakeArray(index, writable=False)), "out.output_index: a read-only array"),
        ((FakeArray(x.copy()), index), "out.output_index: in host memory, but input is on cuda:0"),
        (
            (FakeArray(index.view(np.float32)), FakeArray(index)),
            "out.output_index: overlaps out.",
        ),
    ]
    for out, text in outs:
        with pytest.raises(dml.InvalidArgument, match=f"^top_k1.{re.escape(text)}"):
            dml.top_k1(FakeArray(x), k=3, axis_direction="INCREASING", out=out)
    part = FakeArray(values(2, 1))
    with pytest.raises(
        dml.InvalidArgument, match=r"^join\.inputs\[1\]: in host memory, but inputs\[0\] is on"
    ):
        dml.join([part, values(2, 1)], axis=1)
    with pytest.raises(
        dml.InvalidArgument, match=r"^join\.inputs\[1\]: on cuda:1, but inputs\[0\] is on cuda:0"
    ):
        dml.join([part, FakeArray(values(2, 1), device=1)], axis=1)


def misfit(problem: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of MEAN_VARIANCE_NORMALIZATION1 of a call that must fail."""
    x, scale = FakeArray(values(2, 4)), FakeArray(values(1, 4))
    match problem:
        case "two devices":
            return [x, FakeArray(values(1, 4), device=1)], {}
        case "host scale":
            return [x, values(1, 4)], {}
        case "host input":
            return [values(2, 4), scale], {}
        case "host out":
            return [x, scale], {"out": np.zeros((2, 4), np.float32)}
        case "no array":
            return [x, [1.0, 2.0]], {}
        case "asked for cpu":
            return [x, scale], {"device": "cpu"}
        case "asked for another":
            return [x, scale], {"device": "cuda:1"}
        case "elements":
            return [FakeArray(values(2, 4).astype(np.int32)), scale], {}
        case "sizes of out":
            return [x, scale], {"out": FakeArray(values(2, 5))}
        case "overlap in part":
            memory = values(3, 4)
            return [FakeArray(memory[:2]), scale], {"out": FakeArray(memory[1:])}
        case _:
            return [x, scale], {"out": FakeArray(np.broadcast_to(values(1, 4), (2, 4)))}


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ("two devices", "scale: on cuda:1, but input is on cuda:0"),
        ("host scale", "scale: in host memory, but input is on cuda:0"),
        ("host input", "scale: on cuda:0, but input is in host memory"),
        ("host out", "out: in host memory, but input is on cuda:0"),
        ("no array", "scale: list; an array is needed"),
        ("asked for cpu", "input: on cuda:0, but the device is 'cpu'"),
        ("asked for another", "input: on cuda:0, but the device is 'cuda:1'"),
        ("elements", "input: INT32"),
        ("sizes of out", r"out: sizes \[2, 5\]; \[2, 4\] are needed"),
        ("overlap in part", "out: shares memory with input"),
        ("overlap of out", "out: strides"),
    ],
)
def test_misfits_are_named_and_nothing_runs(devices: list[FakeDevice], problem: str, text: str) -> None:
    tensors, arguments = misfit(problem)
    with pytest.raises(dml.InvalidArgument, match="mean_variance_normalization1." + text):
        dml.mean_variance_normalization1(*tensors, axes=[1], **arguments)
    assert not any(entry[0] == "run" for device in devices for entry in device.log)


def test_array_elsewhere_is_not_taken_for_an_absent_one(devices: list[FakeDevice]) -> None:
    x, bias = FakeArray(values(2, 4)), FakeArray(values(1, 4))
    dml.mean_variance_normalization1(x, None, bias, axes=[1])
    for scale in (values(1, 4), FakeArray(values(1, 4), device=1)):
        with pytest.raises(dml.InvalidArgument, match=r"scale: .*, but input is on cuda:0"):
            dml.mean_variance_normalization1(x, scale, bias, axes=[1])


def test_array_that_cannot_be_exported_is_named(
    devices: list[FakeDevice], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise BufferError("sharded")

    monkeypatch.setattr(FakeArray, "__dlpack__", refuse)
    with pytest.raises(dml.InvalidArgument, match=r"^activation_relu.input: FakeArray .*sharded"):
        dml.activation_relu(FakeArray(values(4)))


def test_host_arrays_are_copied_there_and_back(devices: list[FakeDevice]) -> None:
    x = values(3, 4)
    y = dml.activation_relu(x, device="cuda")
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, relu(x))
    assert ("run", OWN_STREAM) in devices[0].log


def bound_relu(device: dml.Device, x: Any, y: Any) -> dml.BoundOperator:
    tensor = dml.TensorDesc(dml.FLOAT32, [3, 4])
    compiled = device.compile_operator(device.create_operator(dml.descs.ActivationRelu(tensor, tensor)))
    return compiled.bind([x], [y])


class Stream:
    """A stream of cuda-core's protocol."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 5


class ForeignStream:
    """One as PyTorch's."""

    cuda_stream = 6


@pytest.mark.parametrize(("stream", "handle"), [(0, 0), (9, 9), (Stream(), 5), (ForeignStream(), 6)])
def test_bound_operator_runs_on_the_stream_given(devices: list[FakeDevice], stream: Any, handle: int) -> None:
    x, y = FakeArray(values(3, 4)), FakeArray(np.zeros((3, 4), np.float32))
    bound_relu(dml.Device("cuda"), x, y).enqueue(stream)
    np.testing.assert_array_equal(y.values, relu(x.values))
    assert devices[0].log[-1] == ("run", handle)


@pytest.mark.parametrize("stream", [-1, None, "0", 1.5, True, Stream])
def test_what_is_no_stream_is_rejected(devices: list[FakeDevice], stream: Any) -> None:
    x, y = FakeArray(values(3, 4)), FakeArray(np.zeros((3, 4), np.float32))
    with pytest.raises(dml.InvalidArgument, match=re.escape(f"stream: {stream!r}; a CUDA stream is needed")):
        bound_relu(dml.Device("cuda"), x, y).enqueue(stream)
    assert not y.values.any()


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_streams_need_device_arrays(devices: list[FakeDevice], kind: str) -> None:
    bound = bound_relu(dml.Device(kind), values(3, 4), values(3, 4))
    with pytest.raises(dml.InvalidArgument, match="the tensors are in host memory"):
        bound.enqueue(0)


@pytest.mark.parametrize("kind", ["cpu", "cuda", "reference"])
def test_memory_of_a_device_goes_there_and_back(devices: list[FakeDevice], kind: str) -> None:
    device, x = dml.Device(kind), values(3, 4)
    source, target = device.upload(x), device.empty([3, 4])
    bound_relu(device, source, target).dispatch()
    device.synchronize()
    np.testing.assert_array_equal(device.download(target), relu(x))


def test_buffers_of_a_device_are_only_for_it(devices: list[FakeDevice]) -> None:
    first, second = dml.Device("cuda"), dml.Device("cuda:1")
    x, y = first.upload(values(3, 4)), first.empty([3, 4])
    with pytest.raises(dml.InvalidArgument, match="InputTensor: on cuda:0, but the device is 'cuda:1'"):
        bound_relu(second, x, y)
    with pytest.raises(dml.InvalidArgument, match="InputTensor: on cuda:0, but the device is 'cpu'"):
        bound_relu(dml.Device("cpu"), x, y)
    with pytest.raises(dml.InvalidArgument, match="OutputTensor: in host memory, but Input"):
        bound_relu(first, x, values(3, 4))
    with pytest.raises(dml.InvalidArgument, match="download: DeviceArray; an array that empty or"):
        second.download(x)


@pytest.mark.parametrize(
    ("buffer", "text"),
    [
        (FakeArray(values(3, 3)), "36 bytes; the tensor needs 48"),
        (FakeArray(values(3, 8)[:, ::2]), "not contiguous"),
        (FakeArray(values(4, 3).T), "not contiguous in row-major order"),
        (FakeArray(values(3, 4).astype(np.int32)), "elements of int32; the tensor is FLOAT32"),
        (dml.BufferBinding(FakeArray(values(4, 3).T)), "not contiguous in row-major order"),
        (dml.BufferBinding(FakeArray(values(3, 4).astype(np.float64))), "elements of float64"),
        (FakeArray(values(3, 4), writable=False), "a read-only buffer"),
    ],
)
def test_buffers_on_a_device_are_checked(devices: list[FakeDevice], buffer: Any, text: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=f"ACTIVATION_RELU.OutputTensor: .*{text}"):
        bound_relu(dml.Device("cuda"), FakeArray(values(3, 4)), buffer)


def affine_model(device: str) -> dml.Model:
    """scale * normalized x, where the scale is a strided constant."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [2, 4])
    scale = graph.constant(values(1, 8)[:, ::2])
    return graph.compile({"y": dml.mean_variance_normalization1(x, scale, axes=[1])}, device=device)


@pytest.mark.parametrize("way", ["call", "run", "bind", "call of the host", "bind of the host"])
def test_models_run_over_arrays_of_the_device_and_of_the_host(devices: list[FakeDevice], way: str) -> None:
    x, y = values(2, 4) ** 2, np.zeros((2, 4), np.float32)
    expected = affine_model("reference")(x=x)["y"]
    is_host = way.endswith("host")
    source: Any = x if is_host else FakeArray(x)
    target: Any = y if is_host else FakeArray(y)
    model = affine_model("cuda")
    if way.startswith("call"):
        target = model(x=source)["y"]
    elif way == "run":
        model.run({"x": source}, {"y": target})
    else:
        model.bind({"x": source}, {"y": target}).dispatch()
    np.testing.assert_array_equal(target if is_host else target.values, expected)


def test_models_reject_arrays_elsewhere(devices: list[FakeDevice]) -> None:
    y = np.zeros((2, 4), np.float32)
    with pytest.raises(dml.InvalidArgument, match=r"graph\.y: in host memory, but x is on cuda:0"):
        affine_model("cuda").run({"x": FakeArray(values(2, 4))}, {"y": y})
    with pytest.raises(dml.InvalidArgument, match=r"graph\.x: on cuda:0, but the device is 'cpu'"):
        affine_model("cpu")(x=FakeArray(values(2, 4)))
    assert not y.any()


@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_recordings_run_everywhere(kind: str) -> None:
    device = dml.Device(kind)
    arrays = [values(3, 4), *(np.zeros((3, 4), np.float32) for _ in range(2))]
    recording = device.record([bound_relu(device, *arrays[:2]), bound_relu(device, *arrays[1:])])
    recording.dispatch()
    np.testing.assert_array_equal(arrays[-1], relu(arrays[0]))


def test_recordings_are_of_one_device_and_its_memory(devices: list[FakeDevice]) -> None:
    device = dml.Device("cuda")
    over_host = bound_relu(device, values(3, 4), values(3, 4))
    with pytest.raises(dml.InvalidArgument, match=r"record: \[0\] is over host memory"):
        device.record([over_host])
    with pytest.raises(dml.InvalidArgument, match=r"record: \[0\] was not bound on this device"):
        dml.Device("cuda").record([over_host])
    with pytest.raises(dml.InvalidArgument, match="record: nothing"):
        device.record([])
