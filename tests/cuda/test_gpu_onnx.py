"""ONNX sessions over the memory of a CUDA device, with PyTorch's tensors; skipped where no device is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

from opendml import onnx as ort
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.memory import Memory
from opendml.targets.object_cache import PLANS_VARIABLE
from tests.onnx.models import Array
from tests.onnx.test_caches import HEADS, SIZE, attended, model_of, tensors

pytestmark = pytest.mark.usefixtures("gpu")

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")

CACHES = "past_key", "past_value"


def session_of(model: onnx.ModelProto) -> ort.InferenceSession:
    return ort.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of all copies between host and device."""
    found = list[int]()
    for kind, name, size_at in ((Memory, "read", 2), (Memory, "write", 2), (CudaDevice, "copy_in_order", 3)):
        usual = getattr(kind, name)

        def counted(*arguments: Any, usual: Any = usual, size_at: int = size_at) -> None:
            found.append(arguments[size_at])
            usual(*arguments)

        monkeypatch.setattr(kind, name, counted)
    return found


@pytest.mark.parametrize("type", ["float", "float16"])
@pytest.mark.parametrize("kind", ["exported", "MultiHeadAttention"])
def test_bound_caches_have_only_new_rows_written(kind: str, type: str, copied: list[int]) -> None:
    dtype: Any = np.float32 if type == "float" else np.float16
    session = session_of(model_of(kind, type))
    buffers = torch.randn(2, 1, HEADS, 900, SIZE, device="cuda").to(getattr(torch, np.dtype(dtype).name))
    for length in (20, 21, 24, 300, 301, 800):
        new, before = tensors(kind, 1, length, dtype), buffers.clone()
        y = torch.full(new["q"].shape, torch.nan, device="cuda", dtype=buffers.dtype)
        binding = session.io_binding()
        for name in "qkv":
            binding.bind_cpu_input(name, new[name])
        for name, each in zip(("key", "value"), buffers, strict=True):
            binding.bind_ortvalue_input(f"past_{name}", ort.OrtValue(each[:, :, :length]))
            binding.bind_ortvalue_output(f"present_{name}", ort.OrtValue(each[:, :, : length + 1]))
        binding.bind_output("y", "cuda", 0, dtype, list(y.shape), y.data_ptr())
        del copied[:]
        session.run_with_iobinding(binding)
        assert sum(copied) == 3 * new["q"].nbytes
        past: dict[str, Array] = {
            name: each[:, :, :length].cpu().numpy() for name, each in zip(CACHES, before, strict=True)
        }
        wanted, bound = attended(new | past), 3e-3 if type == "float16" else 2e-5
        np.testing.assert_allclose(y.cpu().numpy(), wanted["y"], rtol=bound, atol=bound)
        for each, name in zip(buffers, ("present_key", "present_value"), strict=True):
            assert np.array_equal(each[:, :, length].cpu().numpy(), wanted[name][:, :, length])
        buffers[:, :, :, length] = before[:, :, :, length]
        assert torch.equal(buffers, before)
        buffers[:, :, :, :length] *= -1  # On PyTorch's stream: the next run reads what it finds.


@pytest.mark.parametrize("kind", ["exported", "MultiHeadAttention", "GroupQueryAttention"])
def test_the_state_of_a_model_lies_on_the_device(kind: str, copied: list[int]) -> None:
    model = ort.load(model_of(kind), "cuda")
    state = model.state(capacity=64)
    past = {name: np.zeros((1, HEADS, 0, SIZE), np.float32) for name in CACHES}
    for step, count in enumerate([5, 1, 1, 4, 1, 60, 1, 600, 1, 1]):
        new = {name: each for name, each in tensors(kind, count, step).items() if name in "qkv"}
        total = past["past_key"].shape[2] + count
        numbers: dict[str, Array] = {}
        if kind == "GroupQueryAttention":
            lengths, whole = np.array([total - 1], np.int32), np.array(total, np.int32)
            numbers = {"lengths": lengths, "total_length": whole}
        del copied[:]
        found = state.run(new | numbers)["y"]
        if step in (2, 9):
            given = [*new.values(), *numbers.values(), found]
            assert sum(copied) <= sum(each.nbytes for each in given) + 64
        wanted = attended(new | past, is_causal=kind == "GroupQueryAttention")
        np.testing.assert_allclose(found, wanted["y"], rtol=2e-5, atol=2e-6)
        past = {name: wanted[name.replace("past", "present")].astype(np.float32) for name in past}
        for name, each in past.items():
            assert np.array_equal(torch.from_dlpack(state[name]).cpu().numpy(), each)


def test_outputs_are_taken_by_pytorch_without_a_copy() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[n, 3] x) => (float[n, 3] y, bool[n, 3] p) {
        y = Add (x, x)
        zero = Sub (x, x)
        p = Greater (x, zero)
    }"""
    session = session_of(onnx.parser.parse_model(text))
    for rows in (2, 1, 500):
        x = torch.randn(rows, 3, device="cuda")
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue.from_dlpack(x))
        for name in "yp":
            binding.bind_output(name, "cuda")
        session.run_with_iobinding(binding)
        y, positive = binding.get_outputs()
        taken = torch.from_dlpack(y)
        assert taken.data_ptr() == y.data_ptr()
        assert torch.equal(taken, 2 * x)
        assert np.array_equal(positive.numpy(), (x > 0).cpu().numpy())


def test_a_number_on_the_device_decides_what_runs() -> None:
    session = session_of(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n] x, int64[1] rate) => (float[n] y) {
          known = Constant <value_ints = [16000]> ()
          is_known = Equal (rate, known)
          y = If (is_known) <
            then_branch = f () => (float[n] a) { a = Neg (x) },
            else_branch = g () => (float[n] b) { b = Add (x, x) }
          >
        }""")
    )
    for rate, size in ((16000, 5), (8000, 5), (16000, 7), (0, 7)):
        x, y = torch.randn(size, device="cuda"), torch.empty(size, device="cuda")
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue(x))
        binding.bind_ortvalue_input("rate", ort.OrtValue(torch.tensor([rate], device="cuda")))
        binding.bind_output("y", "cuda", 0, np.float32, [size], y.data_ptr())
        session.run_with_iobinding(binding)
        torch.testing.assert_close(y, -x if rate == 16000 else x + x, rtol=0, atol=0)


KNOWN = """
import sys
import numpy as np, opendml as dml
x = np.linspace(-1, 1, int(sys.argv[2]) * 48, dtype=np.float32).reshape(-1, 48)
print(dml.onnx.load(sys.argv[1], "cuda")(x)["y"].tobytes().hex())
names = "onnx", "cuda.core", "opendml.compiler.fuse", "opendml.targets.cuda.schedule"
print([name for name in names if name in sys.modules])
"""


def test_a_known_model_is_neither_parsed_nor_compiled(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[n, 48] x) => (float[n, 40] y) { h = MatMul (x, w) y = Softmax (h) }"""
    model, w = onnx.parser.parse_model(text), np.random.default_rng(1).standard_normal((48, 40), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    env = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path / "cache"), PLANS_VARIABLE: "1"}
    found = [
        subprocess.run(
            [sys.executable, "-c", KNOWN, str(tmp_path / "model.onnx"), size],
            env=env,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout.splitlines()
        for size in ("9", "9", "14")
    ]
    assert [names for _, names in found[1:]] == ["[]", "[]"]
    assert "opendml.compiler.fuse" in found[0][1]
    assert found[0][0] == found[1][0]
    for (content, _), size in zip(found, (9, 9, 14), strict=True):
        x = np.linspace(-1, 1, size * 48, dtype=np.float32).reshape(-1, 48).astype(np.float64)
        powers = np.exp(x @ w)
        y = np.frombuffer(bytes.fromhex(content), np.float32).reshape(size, 40)
        np.testing.assert_allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-4)
