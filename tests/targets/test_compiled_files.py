"""Compiled files: quick where they were written, compiled elsewhere, and no code of strangers."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import opendml as dml
from opendml.cli import main
from opendml.later import finish
from opendml.runtime.graphs import shared
from opendml.targets import compiled_files, object_cache
from opendml.targets.cpu import engine, executable, machine_code, planning
from tests.conftest import MadeOnce

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(28)
X = RANDOM.standard_normal((1, 1, 40, 64), np.float32)
W = RANDOM.standard_normal((1, 1, 64, 96), np.float32)


class Machine:
    """A machine with a cache of its own, and counts of what loading and running take."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, made_once: MadeOnce) -> None:
        self.file, self._patch, self._folder = folder / "model.odml", monkeypatch, folder
        self._made_once = made_once
        self.counts = dict.fromkeys(("fused", "assembled", "packed"), 0)
        monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")
        self.use("first")
        for owner, function, name in (
            (planning, "fuse", "fused"),
            (engine, "kernel_assembly", "assembled"),
            (executable.CpuExecutable, "initialize", "packed"),
        ):
            monkeypatch.setattr(owner, function, self._counted(getattr(owner, function), name))

    def _counted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self.counts[name] += 1
            return function(*arguments)

        return counted

    def use(self, name: str) -> None:
        """Use the cache of another machine from now on."""
        self._patch.setenv("OPENDML_CACHE_DIRECTORY", str(self._folder / name))

    def copy(self, name: str, make: Callable[[Path], None]) -> None:
        """Copy the files and the cache that `make` leaves in a folder, once per run, to this machine."""
        shutil.copytree(self._made_once(name, make), self._folder, dirs_exist_ok=True)

    def without_objects(self) -> None:
        """Remove all code and plans of the cache, but not the records of compiled files."""
        finish()  # A thread writes plans.
        for path in (self._folder / "first").iterdir():
            if path.suffix != ".file":
                path.unlink()

    def of(self, run: Callable[[], Any]) -> tuple[Any, dict[str, int]]:
        """Return the result of `run` as if in a new process, and what it took."""
        self._patch.setattr(machine_code, "_codes", {})
        self.counts |= dict.fromkeys(self.counts, 0)
        return run(), dict(self.counts)


NOTHING = {"fused": 0, "assembled": 0, "packed": 0}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_once: MadeOnce) -> Machine:
    return Machine(tmp_path, monkeypatch, made_once)


def compiled_graph(machine: Machine) -> bytes:
    """Write a compiled file of a product with packed weights, and return its result."""
    graph = dml.Graph()
    y = dml.gemm(graph.input("x", dml.FLOAT32, X.shape), graph.constant(W))
    model = graph.compile({"y": dml.activation_relu(y)})
    model.save(machine.file, compiled=True)
    return bytes(model(X)["y"].tobytes())


def loaded_graph(machine: Machine, **options: Any) -> bytes:
    model = dml.load(machine.file, **options)
    assert isinstance(model, dml.Model)
    return bytes(model(X)["y"].tobytes())


def compiled_onnx(machine: Machine) -> bytes:
    """Write a compiled file of an ONNX model on the command line, and return its result."""
    machine.copy("compiled onnx", _compile_onnx)
    return machine.file.with_name("expected").read_bytes()


def _compile_onnx(folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 1, n, 64] x) => (float[1, 1, n, 96] y) { p = MatMul (x, w) y = Relu (p) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(W, "w"))
    path, x = folder / "model.onnx", folder / "x.npy"
    onnx.save(model, path)
    np.save(x, X)
    command = ["compile", str(path), "-o", str(path.with_suffix(".odml")), "--input", f"x={x}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENDML_CACHE_DIRECTORY", str(folder / "first"))
        patch.setenv(object_cache.PLANS_VARIABLE, "1")
        subprocess.run([sys.executable, "-m", "opendml", *command], check=True)
        (folder / "expected").write_bytes(dml.onnx.load(path)(X)["y"].tobytes())


def loaded_onnx(machine: Machine, **options: Any) -> bytes:
    return bytes(dml.onnx.load(machine.file, **options)(X)["y"].tobytes())


KINDS = pytest.mark.parametrize(
    ("compiled", "loaded"),
    [(compiled_graph, loaded_graph), (compiled_onnx, loaded_onnx)],
    ids=["saved", "onnx"],
)


@KINDS
def test_a_compiled_file_needs_no_compiling_and_no_packing(
    compiled: Any, loaded: Any, machine: Machine
) -> None:
    expected = compiled(machine)
    machine.without_objects()
    assert machine.of(lambda: loaded(machine)) == (expected, NOTHING)


@KINDS
def test_code_of_another_machine_runs_only_if_it_is_trusted(
    compiled: Any, loaded: Any, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    expected = compiled(machine)
    machine.use("second")
    found, counts = machine.of(lambda: loaded(machine))
    assert found == expected
    assert min(counts.values()) > 0
    (message,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "its code is not used" in message
    assert "trusted=True" in message
    machine.use("third")
    assert machine.of(lambda: loaded(machine, trusted=True)) == (expected, NOTHING)


@KINDS
def test_a_file_of_another_processor_is_compiled(
    compiled: Any, loaded: Any, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compiled(machine)
    monkeypatch.setenv("OPENDML_THREADS", "1" if os.environ.get("OPENDML_THREADS") != "1" else "2")
    machine.without_objects()
    found, counts = machine.of(lambda: loaded(machine))
    assert found == expected
    assert counts["fused"] > 0


@KINDS
@pytest.mark.parametrize("place", ["head", "brace", "index", "objects", "end"])
def test_damaged_files_are_refused(compiled: Any, loaded: Any, place: str, machine: Machine) -> None:
    compiled(machine)
    content = bytearray(machine.file.read_bytes())
    brace, objects = compiled_files._HEAD.size, content.index(b"scratch_bytes")
    at = {"head": 20, "brace": brace, "index": 100, "objects": objects, "end": 0}[place]
    if place == "end":
        del content[-5000:]
    else:
        content[at] ^= 1
    machine.file.write_bytes(content)
    with pytest.raises(dml.InvalidArgument, match=r"model\.odml: "):
        loaded(machine, trusted=True)


@KINDS
def test_damaged_weights_are_refused_when_they_are_needed(
    compiled: Any, loaded: Any, machine: Machine
) -> None:
    compiled(machine)
    content = bytearray(machine.file.read_bytes())
    *_, (begin, size, _) = index_of(content)["constants"].values()
    whole = bytes(content)
    word = next(at for at in range(begin, begin + size, 8) if whole[at : at + 8] != whole[at + 8 : at + 16])
    turned = whole[word + 8 : word + 16] + whole[word : word + 8]
    last = begin + size - 1
    for at, other in ((begin, [whole[begin] ^ 1]), (last, [whole[last] ^ 1]), (word, turned)):
        content[at : at + len(other)] = other
        machine.file.write_bytes(content)
        with pytest.raises(
            dml.InvalidArgument, match=r"model\.odml: a damaged compiled file: its packed weights"
        ):
            loaded(machine)
        content[:] = whole
    machine.file.write_bytes(content)
    loaded(machine)


def index_of(content: bytearray) -> dict[str, Any]:
    """Return the index of a compiled file."""
    _, _, size, _ = compiled_files._HEAD.unpack_from(content)
    found: dict[str, Any] = json.loads(content[compiled_files._HEAD.size :][:size])
    return found


def test_each_loader_names_the_other(machine: Machine) -> None:
    compiled_graph(machine)
    with pytest.raises(dml.InvalidArgument, match=r"a saved model, which opendml\.load reads"):
        loaded_onnx(machine)
    compiled_onnx(machine)
    with pytest.raises(dml.InvalidArgument, match=r"which opendml\.onnx\.load reads"):
        loaded_graph(machine)
    for command in ("run", "check", "explain"):
        result = CliRunner().invoke(main, [command, str(machine.file)])
        assert result.exit_code == 1
        assert "a saved or compiled model, which" in result.stderr


def test_what_cannot_be_compiled_to_a_file_is_an_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = dml.Graph()
    y = dml.activation_relu(graph.input("x", dml.FLOAT32, [4]))
    for device in ("reference", "cpu"):
        monkeypatch.setenv(object_cache.PLANS_VARIABLE, "0")
        with pytest.raises(dml.Unsupported, match="one program for the CPU, with plans switched on"):
            graph.compile({"y": y}, device).save(machine.file, compiled=True)
    named = dml.Graph()
    model = named.compile({"y": dml.activation_relu(named.input("x", dml.FLOAT32, ["batch", 4]))})
    with pytest.raises(dml.Unsupported, match="no sizes of its named dimensions have plans"):
        model.save(machine.file, compiled=True)
    assert not machine.file.exists()


def test_a_compiled_file_has_the_plans_of_sizes_that_were_warmed_up(machine: Machine) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 1, "length", 64])
    y = dml.activation_relu(x @ graph.constant(W))
    model = graph.compile({"y": y, "scores": y @ y.permute(0, 1, 3, 2)})
    for sizes in ({"batch": 1, "length": 1}, {"batch": [1, 3], "length": 40}):
        machine.of(lambda: model.warm_up(sizes))  # noqa: B023

    def results(model: Any) -> list[bytes]:
        sizes = ((1, 1), (1, 40), (3, 40), (2, 33), (1, 60))
        inputs = [np.resize(X, (batch, 1, length, 64)) for batch, length in sizes]
        return [each.tobytes() for x in inputs for each in model(x).values()]

    expected = machine.of(lambda: results(model))[0]
    machine.of(lambda: model.save(machine.file, compiled=True))
    machine.without_objects()
    assert machine.of(lambda: results(dml.load(machine.file))) == (expected, NOTHING)
    machine.use("second")
    found, counts = machine.of(lambda: results(dml.load(machine.file)))
    assert found == expected
    assert min(counts.values()) > 0


def test_a_compiled_onnx_file_serves_other_sizes_of_its_bucket(machine: Machine) -> None:
    compiled_onnx(machine)
    other = np.resize(X, (1, 1, 50, 64))
    expected = dml.onnx.load(machine.file.with_suffix(".onnx"))(other)["y"].tobytes()
    machine.without_objects()
    assert machine.of(lambda: dml.onnx.load(machine.file)(other)["y"].tobytes()) == (expected, NOTHING)


def test_a_session_uses_a_compiled_file(machine: Machine) -> None:
    expected = compiled_onnx(machine)
    machine.without_objects()

    def run() -> bytes:
        return bytes(dml.onnx.InferenceSession(machine.file).run(None, {"x": X})[0].tobytes())

    assert machine.of(run) == (expected, NOTHING)


def test_a_compiled_file_does_not_replace_its_model(machine: Machine) -> None:
    compiled_onnx(machine)
    path = str(machine.file.with_suffix(".onnx"))
    content = Path(path).read_bytes()
    found = CliRunner().invoke(main, ["compile", path, "-o", path])
    assert (found.exit_code, "is the model" in found.output) == (2, True)
    assert Path(path).read_bytes() == content


def test_constants_of_a_file_are_its_own_memory(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = compiled_graph(machine)
    mapped = []

    class Noted(compiled_files.MappedConstant):
        def __init__(self, bytes: Array) -> None:
            super().__init__(bytes)
            mapped.append(bytes.nbytes)

    monkeypatch.setattr(compiled_files, "MappedConstant", Noted)
    monkeypatch.setattr(shared.ConstantStore, "bytes", 0)
    assert loaded_graph(machine) == expected
    assert sum(mapped) >= W.nbytes


def test_indices_that_kernels_trust_cannot_be_changed(machine: Machine) -> None:
    x = np.arange(64, dtype=np.float32).reshape(1, 1, 64, 1)
    graph = dml.Graph()
    indices = graph.constant(np.array([[[[3, 7, 11, 13]]]], np.int32))
    twice = dml.element_wise_add(indices, indices)
    picked = dml.gather(graph.input("x", dml.FLOAT32, x.shape), twice, axis=2, index_dimensions=1)
    graph.compile({"y": picked}).save(machine.file, compiled=True)
    prepared, outside = (np.array(each, np.int32).tobytes() for each in ([6, 14, 22, 26], [1 << 28] * 4))
    content = machine.file.read_bytes()
    assert content.count(prepared) == 1
    machine.file.write_bytes(content.replace(prepared, outside))
    for trusted in (False, True):
        with pytest.raises(dml.InvalidArgument, match="damaged"):
            dml.load(machine.file, trusted=trusted)


def test_code_that_changes_after_its_check_is_not_used(machine: Machine) -> None:
    expected = compiled_graph(machine)
    content = bytearray(machine.file.read_bytes())
    file = compiled_files.CompiledFile(memoryview(content), "a file")
    content[:] = bytes(len(content))
    objects = {name: file.object(name) for name in file._objects}
    assert any(name.endswith(".o") for name in objects)
    assert all(each is not None and any(each) for each in objects.values())
    assert loaded_graph(machine) == expected


def test_parts_that_overlap_take_no_memory(machine: Machine) -> None:
    parts: dict[str, list[int]] = {f"{number}.o": [0, 1 << 20] for number in range(3)}
    for objects, constants in ((parts, {}), ({}, {name: [*part, 0] for name, part in parts.items()})):
        index = {"kind": "saved", "objects": objects, "model": [0, 0], "constants": constants, "checked": []}
        text = json.dumps(index).encode()
        head = compiled_files._HEAD.pack(compiled_files.MAGIC, compiled_files._VERSION, len(text), bytes(32))
        machine.file.write_bytes((head + text).ljust(1 << 20))
        with pytest.raises(dml.InvalidArgument, match="parts overlap"):
            dml.load(machine.file)
