"""ONNX sessions over the memory of a CUDA device: values, bindings and caches stay there. Kernels run on the
processor, over the memory of a fake device that counts what is copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

import opendml as dml
from opendml import onnx as ort
from opendml.targets.cuda.device_array import DeviceArray
from opendml.targets.cuda.planning import compiled_program
from tests.cuda.fake import FakeArray, FakeDevice, FakeMemory, install
from tests.onnx.models import Array
from tests.onnx.test_caches import HEADS, SIZE, attended, model_of, tensors
from tools.cuda_emulator import COMPILER

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler"),
    pytest.mark.usefixtures("emulated_kernels"),
]

CACHES = "past_key", "past_value"


class Copies:
    """Counts the bytes that are copied between host and device."""

    def __init__(self, device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
        self.device, self.to_host, self.to_device = device, 0, 0
        for name in ("read", "write"):
            self._count(name, monkeypatch)

    def _count(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        usual, attribute = getattr(FakeMemory, name), {"read": "to_host", "write": "to_device"}[name]

        def counted(memory: FakeMemory, address: int, size: int) -> None:
            setattr(self, attribute, getattr(self, attribute) + size)
            usual(memory, address, size)

        monkeypatch.setattr(FakeMemory, name, counted)

    def since(self) -> tuple[int, int]:
        """The bytes to the host, and those to or within the device, since the last call."""
        within = sum(size for event, *size in self.device.log if event == "copy" for size in size)
        found = self.to_host, self.to_device + within
        self.device.log.clear()
        self.to_host = self.to_device = 0
        return found


@pytest.fixture(autouse=True)
def copies(monkeypatch: pytest.MonkeyPatch) -> Copies:
    devices = install(monkeypatch, compiled_program)
    return Copies(devices[0], monkeypatch)


def session_of(model: onnx.ModelProto) -> ort.InferenceSession:
    return ort.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])


def on_device(content: Array) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(content, "cuda", 0)


PLAIN = """<ir_version: 10, opset_import: ["" : 20]>
g (float[n, 3] x, int64[n] picked, float[] scale) => (float[n, 3] y, bool[n, 3] positive, int64[n] same) {
  y = Mul (x, scale)
  zero = Constant <value_float = 0.0> ()
  positive = Greater (y, zero)
  same = Identity (picked)
}"""
X, PICKED = np.array([[1, -2, 3], [-4, 5, -6]], np.float32), np.array([4, 2], np.int64)
SCALE = np.array(3, np.float32)


def test_values_on_a_device_are_read_and_written_there() -> None:
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "cuda", 0)
    assert (value.device_name(), value.shape(), value.data_type()) == ("cuda", [2, 3], "tensor(float)")
    assert (value.element_type(), value.is_tensor(), value.has_value()) == (1, True, True)
    assert not value.numpy().any()
    value.update_inplace(X)
    np.testing.assert_array_equal(value.numpy(), X)
    taken = FakeArray(np.empty(0))
    assert value.__dlpack_device__() == taken.__dlpack_device__()
    assert value.data_ptr() == value._memory.memory.address
    assert repr(value) == "<OrtValue tensor(float) [2, 3]>"
    truth = on_device(X > 0)
    assert truth.data_type() == "tensor(bool)"
    np.testing.assert_array_equal(truth.numpy(), X > 0)
    assert on_device(SCALE).numpy().shape == ()


@pytest.mark.parametrize("device_type", ["cuda", "dml"])
def test_outputs_of_all_types_stay_on_the_device(device_type: str, copies: Copies) -> None:
    session = session_of(onnx.parser.parse_model(PLAIN))
    binding = session.io_binding()
    for name, content in (("x", X), ("picked", PICKED), ("scale", SCALE)):
        value = ort.OrtValue.ortvalue_from_numpy(content, device_type, 0)
        binding.bind_ortvalue_input(name, value)
    for name in ("y", "positive", "same"):
        binding.bind_output(name, device_type)
    session.run_with_iobinding(binding)
    copies.since()
    session.run_with_iobinding(binding)
    assert copies.since() == (0, 0)
    values = binding.get_outputs()
    assert [each.device_name() for each in values] == ["cuda"] * 3
    assert [each.data_type() for each in values] == ["tensor(float)", "tensor(bool)", "tensor(int64)"]
    for found, wanted in zip(binding.copy_outputs_to_cpu(), (3 * X, X > 0, PICKED), strict=True):
        np.testing.assert_array_equal(found, wanted)
    again = session.run(["positive"], {"x": values[0], "picked": PICKED, "scale": values[0].numpy()[0, 0]})
    np.testing.assert_array_equal(again[0], X > 0)


def test_memory_of_the_caller_is_read_and_written_in_place(copies: Copies) -> None:
    session, binding = session_of(onnx.parser.parse_model(PLAIN)), None
    given, written, truth = X.copy(), np.zeros((2, 3), np.float32), np.zeros((2, 3), np.bool_)
    binding = session.io_binding()
    binding.bind_input("x", "cuda", 0, np.float32, [2, 3], given.ctypes.data)
    binding.bind_input("scale", "cuda", 0, np.float32, [], SCALE.ctypes.data)
    binding.bind_cpu_input("picked", PICKED)
    binding.bind_output("y", "cuda", 0, np.float32, [2, 3], written.ctypes.data)
    binding.bind_output("positive", "cuda", 0, np.bool_, [2, 3], truth.ctypes.data)
    binding.bind_output("same")
    for _ in range(2):
        given *= -1
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(written, 3 * given)
        np.testing.assert_array_equal(truth, given > 0)
    np.testing.assert_array_equal(binding.get_outputs()[2].numpy(), PICKED)
    ends = [event for event in copies.device.log if event[0] == "synchronize"]
    assert ends  # Nobody else knows the stream that the memory is written on.


def test_an_output_over_its_input_is_written_after_the_run() -> None:
    session, memory = session_of(onnx.parser.parse_model(PLAIN)), on_device(X)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", memory)
    binding.bind_ortvalue_output("y", memory)
    binding.bind_cpu_input("picked", PICKED)
    binding.bind_ortvalue_input("scale", on_device(SCALE))
    for factor in (3, 9):
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(memory.numpy(), factor * X)


def test_nodes_outside_of_the_device_read_copies(copies: Copies) -> None:
    """NonZero gives sizes that depend on data, and If reads a number."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]>
    g (float[n] x, bool flag) => (float[m] y) {
        doubled = Add (x, x)
        found = NonZero (doubled)
        axes = Constant <value_ints = [0]> ()
        places = Squeeze (found, axes)
        kept = Gather (doubled, places)
        y = If (flag) <then_branch = a () => (float[m] one) { one = Neg (kept) },
                       else_branch = b () => (float[m] two) { two = Identity (kept) }>
    }""")
    session, x = session_of(model), np.array([1, 0, 2, 0, 3], np.float32)
    for flag, sign in ((True, -1), (False, 1)):
        feed = {"x": on_device(x), "flag": on_device(np.array(flag))}
        (found,) = session.run(["y"], feed)
        np.testing.assert_array_equal(found, sign * 2 * x[x > 0])


def past_and_present(buffers: Array, length: int, count: int) -> list[tuple[ort.OrtValue, ort.OrtValue]]:
    """Values over the first rows of two buffers on the device, before and after a run."""
    return [
        (ort.OrtValue(FakeArray(each[:, :, :length])), ort.OrtValue(FakeArray(each[:, :, : length + count])))
        for each in buffers
    ]


@pytest.mark.parametrize("type", ["float", "float16"])
def test_bound_caches_have_only_new_rows_written(type: str, copies: Copies) -> None:
    """Nothing but queries, new rows and the result is copied between host and device."""
    dtype: Any = np.float32 if type == "float" else np.float16
    session = session_of(model_of("exported", type))
    buffers = np.random.default_rng(1).standard_normal((2, 1, HEADS, 60, SIZE)).astype(dtype)
    for length in (20, 21, 24, 30):
        new, before = tensors("exported", 1, length, dtype), buffers.copy()
        binding = session.io_binding()
        for name in "qkv":
            binding.bind_cpu_input(name, new[name])
        for name, (past, present) in zip(("key", "value"), past_and_present(buffers, length, 1), strict=True):
            binding.bind_ortvalue_input(f"past_{name}", past)
            binding.bind_ortvalue_output(f"present_{name}", present)
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        to_host, to_device = copies.since()
        if length > 20:
            assert (to_host, to_device) == (new["q"].nbytes, 3 * new["q"].nbytes)
        wanted = attended(
            new | {name: each[:, :, :length] for name, each in zip(CACHES, before, strict=True)}
        )
        bound = 2e-3 if type == "float16" else 2e-5
        np.testing.assert_allclose(binding.get_outputs()[-1].numpy(), wanted["y"], rtol=bound, atol=bound)
        for each, name in zip(buffers, "kv", strict=True):
            assert np.array_equal(each[:, :, length], new[name][:, :, 0])
        buffers[:, :, :, length] = before[:, :, :, length]
        assert np.array_equal(buffers, before)
        buffers[:, :, :, :length] += 1  # The next run reads what it finds.


def test_caches_that_overlap_otherwise_are_refused() -> None:
    session, buffers = session_of(model_of("exported")), np.zeros((2, 1, HEADS, 60, SIZE), np.float32)
    binding, new = session.io_binding(), tensors("exported", 1, 20)
    for name in "qkv":
        binding.bind_cpu_input(name, new[name])
    for name, each in zip(("key", "value"), buffers, strict=True):
        binding.bind_ortvalue_input(f"past_{name}", ort.OrtValue(FakeArray(each[:, :, 1:21])))
        binding.bind_ortvalue_output(f"present_{name}", ort.OrtValue(FakeArray(each[:, :, :21])))
    with pytest.raises(dml.InvalidArgument, match="must begin with it"):
        session.run_with_iobinding(binding)
    assert not buffers.any()


@pytest.mark.parametrize("kind", ["exported", "MultiHeadAttention"])
def test_the_state_of_a_model_lies_on_the_device(kind: str, copies: Copies) -> None:
    model = ort.load(model_of(kind), "cuda")
    state = model.state(capacity=64)
    past = {name: np.zeros((1, HEADS, 0, SIZE), np.float32) for name in CACHES}
    for step, count in enumerate([5, 1, 1, 4, 1, 60, 1]):
        new = {name: each for name, each in tensors(kind, count, step).items() if name in "qkv"}
        copies.since()
        found = state.run(new)["y"]
        to_host, to_device = copies.since()
        wanted = attended(new | past)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, wanted["y"], rtol=2e-5, atol=2e-6)
        if step in (2, 4, 6):
            assert (to_host, to_device) == (found.nbytes, sum(each.nbytes for each in new.values()))
        past = {name: wanted[name.replace("past", "present")].astype(np.float32) for name in past}
        for name, each in past.items():
            kept = state[name]
            assert isinstance(kept, DeviceArray)
            assert np.array_equal(kept.to_host(), each)
    assert state.length == 73


def test_errors_say_what_is_allowed() -> None:
    session = session_of(onnx.parser.parse_model(PLAIN))
    feed = {"x": on_device(X), "picked": on_device(PICKED), "scale": on_device(SCALE)}
    with pytest.raises(dml.InvalidArgument, match="'x' is of type int64; must be float32"):
        session.run(None, feed | {"x": on_device(PICKED)})
    with pytest.raises(dml.InvalidArgument, match=r"sizes \[2\]; must be \['n', 3\]"):
        session.run(None, feed | {"x": on_device(SCALE.reshape(1).repeat(2))})
    elsewhere = ort.OrtValue.ortvalue_from_numpy(X, "cuda", 1)
    with pytest.raises(dml.InvalidArgument, match="'x' lies on cuda:1; the session runs on cuda:0"):
        session.run(None, feed | {"x": elsewhere})
    with pytest.raises(dml.InvalidArgument, match="device_type 'npu'; must be one of 'cpu', 'dml'"):
        ort.OrtValue.ortvalue_from_numpy(X, "npu")
    with pytest.raises(dml.InvalidArgument, match="device_id -1; the number of a device"):
        ort.OrtValue.ortvalue_from_numpy(X, "cuda", -1)
    binding = session.io_binding()
    for name, each in feed.items():
        binding.bind_ortvalue_input(name, each)
    binding.bind_ortvalue_output("y", on_device(X[:1]))
    with pytest.raises(dml.InvalidArgument, match=r"output 'y': float32 of sizes \[2, 3\] into float32 of"):
        session.run_with_iobinding(binding)
