"""Faults of the system: the n-th allocation, file operation or start of a thread fails, or a limit is met. A
graph is compiled, run, saved, loaded and exported, and an ONNX model and a model of DxDispatch are run, all
from nothing.

What fails is an error with a text, or changes nothing. No half of a file is left, no descriptor is left open,
no lock is held, and the same work succeeds afterwards, in another thread, with the same bits.
"""

from __future__ import annotations

import builtins
import errno
import gc
import io
import json
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np

import opendml as dml
from opendml.digests import digest_of
from opendml.frontends import dxdispatch
from opendml.targets import object_cache
from opendml.targets.cpu import machine_code
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

POINTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "memory": ((np, "empty"), (np, "zeros"), (np, "concatenate"), (np, "frombuffer")),
    "mapping": ((mmap, "mmap"),),
    "files": (
        *((os, name) for name in ("open", "replace", "mkdir", "fstat", "unlink", "stat", "utime", "listdir")),
        *((io, "open"), (builtins, "open")),
    ),
    "threads": ((threading.Thread, "start"),),
}
"""The functions whose n-th call fails, by the kind of fault."""
LIMITS = {"descriptors": "RLIMIT_NOFILE", "file size": "RLIMIT_FSIZE"}
"""Limits of the system that are met."""
MOST = {"memory": 50, "mapping": 4, "files": 165, "threads": 2, "descriptors": 8, "file size": 40}
"""Faults of each kind, about: as many as the work has such calls."""
_BYTES = 512
"""A file may have so many bytes times the number of the fault."""

_SIZES = [3, 70_001]
"""So many elements that threads share them."""


def _error(kind: str) -> Exception:
    match kind:
        case "memory":
            return MemoryError()
        case "mapping":
            return OSError(errno.ENOMEM, "Cannot allocate memory")
        case "files":
            return OSError(errno.ENOSPC, "No space left on device")
        case _:
            return RuntimeError("can't start new thread")


@contextmanager
def _failing(kind: str, number: int) -> Iterator[None]:
    """Lets a call fail, from 0 on, of those that the kind concerns."""
    calls = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number + 1:
                raise _error(kind)
            return function(*arguments, **keywords)

        return call

    with ExitStack() as patches:
        for owner, name in POINTS[kind]:
            patches.enter_context(mock.patch.object(owner, name, counted(getattr(owner, name))))
        yield


@contextmanager
def _limited(kind: str, number: int) -> Iterator[None]:
    """Sets a limit of the system, and the former one afterwards."""
    which = getattr(resource, LIMITS[kind])
    before = resource.getrlimit(which)
    least = max(map(int, os.listdir("/proc/self/fd"))) if kind == "descriptors" else 0
    resource.setrlimit(which, (least + number if kind == "descriptors" else number * _BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


def _work(folder: Path) -> list[bytes]:
    """The bits of all results."""
    x = np.linspace(-3, 3, 3 * 70_001, dtype=np.float32).reshape(_SIZES)
    weights = np.linspace(1, 2, 70_001, dtype=np.float32)
    device = dml.Device("cpu", threads=2)
    graph = dml.Graph()
    given = graph.input("x", dml.FLOAT32, _SIZES)
    scaled = dml.activation_relu(given) * graph.constant(weights)
    model = graph.compile({"y": scaled, "sum": dml.reduce(scaled, function="SUM", axes=[1])}, device=device)
    results = [*model(x=x).values()]
    model.save(folder / "saved.dml")
    loaded = dml.load(folder / "saved.dml", device)
    assert isinstance(loaded, dml.Model)
    outputs = {name: np.zeros_like(array) for name, array in zip(("y", "sum"), results, strict=True)}
    loaded.run({"x": x}, outputs)
    results += outputs.values()
    results += _serialized(folder)
    results.append(_dxdispatch(folder))
    results += _onnx(folder)
    return [array.tobytes() for array in results]


def _serialized(folder: Path) -> list[Any]:
    device = dml.Device("cpu", threads=1)
    tensor = dml.TensorDesc(dml.FLOAT32, [4])
    add = device.create_operator(dml.descs.ElementWiseAdd(tensor, tensor, tensor))
    nodes = [dml.OperatorNode(add), dml.ConstantNode(np.arange(4, dtype=np.float32), "w")]
    edges = [dml.InputEdge(0, 0, 0, "x")], [dml.OutputEdge(0, 0, 0, "y")], [dml.IntermediateEdge(1, 0, 0, 1)]
    graph = dml.serialized.SerializedGraph.of(dml.GraphDesc(1, 1, nodes, *edges))
    dml.serialized.write(graph, folder / "graph.bin")
    return [*dml.serialized.load(folder / "graph.bin", device)(np.ones(4, np.float32)).values()]


def _dxdispatch(folder: Path) -> Any:
    resources = {"x": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2]}}
    commands = [{"type": "writeFile", "resource": "x", "targetPath": "new/x.npy"}]
    text = {"resources": resources, "dispatchables": {}, "commands": commands}
    with _open(folder / "model.json", "wb") as file:
        file.write(json.dumps(text).encode())
    model = dxdispatch.load(folder / "model.json", folder)
    for _ in dxdispatch.prepare(model, dml.Device("cpu")).run():
        pass
    with _open(folder / "new" / "x.npy", "rb") as file:
        return np.frombuffer(file.read()[-8:], np.uint8)


_open = open


def _onnx(folder: Path) -> list[Any]:
    try:
        import onnx
    except ImportError:
        return []
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "xy")
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["t"]), onnx.helper.make_node("Exp", ["t"], ["y"])]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y], [tensor]))
    model.opset_import[0].version, model.ir_version = 18, 8
    with _open(folder / "model.onnx", "wb") as file:
        file.write(model.SerializeToString())
    with _open(folder / "w.bin", "wb") as file:
        file.write(np.arange(4, dtype=np.float32).tobytes())
    return [*dml.onnx.load(folder / "model.onnx")(np.ones(4, np.float32)).values()]


@contextmanager
def _cold() -> Iterator[Path]:
    """An empty folder, in which there is also a cache, for a process that has compiled nothing."""
    with TemporaryDirectory() as folder, ExitStack() as patches:
        path = Path(folder)
        patches.enter_context(mock.patch.dict(os.environ, OPENDML_CACHE_DIRECTORY=str(path / "cache")))
        patches.enter_context(mock.patch.object(machine_code, "_codes", {}))
        patches.enter_context(mock.patch.object(object_cache, "_known", None))
        patches.enter_context(mock.patch.object(object_cache, "_warned", {str(path / "cache")}))
        yield path


@cache
def _expected() -> list[bytes]:
    """What nothing disturbs."""
    with _cold() as folder:
        return _work(folder)


@dataclass(frozen=True, repr=False)
class OnFault(Case):
    """A fault of the system.

    Attributes:
        kind: what fails.
        number: which call of it does, or how far the limit is.
    """

    kind: str
    number: int

    @property
    def subject(self) -> str:
        return self.kind

    def check(self) -> None:
        expected = _expected()
        fault = _limited if self.kind in LIMITS else _failing
        with _cold() as folder:
            gc.collect()
            before = _descriptors()
            try:
                with fault(self.kind, self.number):
                    found = _work(folder)
            except MemoryError:
                pass
            except (dml.Error, OSError) as error:
                _require_text(error)
            else:
                assert found == expected
            gc.collect()
            # The cache keeps its folder open.
            assert _descriptors() <= before + 1, "a descriptor is left open"
            _check_files(folder)
            again = _in_a_thread(lambda: _work(folder))
            assert again == expected
            _check_files(folder)


def _require_text(error: Exception) -> None:
    assert str(error), f"{error!r} says nothing"


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def _check_files(folder: Path) -> None:
    """Checks that all files are whole."""
    for path in folder.rglob("*"):
        assert path.suffix != ".tmp", f"{path} is left"
        if path.suffix == ".o":
            content = path.read_bytes()
            assert content[:32] == digest_of(path.stem.encode() + content[32:]).digest(), f"{path} is damaged"
    if (folder / "saved.dml").exists():
        dml.load(folder / "saved.dml", "reference")
    if (folder / "graph.bin").exists():
        dml.serialized.read(folder / "graph.bin")
    if (folder / "new" / "x.npy").exists():
        np.load(folder / "new" / "x.npy")


def _in_a_thread(work: Callable[[], list[bytes]]) -> list[bytes]:
    """What work returns in another thread: it waits for locks that this one has not given back."""
    results: list[list[bytes]] = []
    thread = threading.Thread(target=lambda: results.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert results, "it failed, or waits for ever"
    return results[0]


def make(choices: Choices) -> OnFault:
    """Any fault."""
    kinds = [*POINTS, *(LIMITS if resource is not None and os.path.isdir("/proc/self/fd") else ())]
    kind = choices.of(kinds)
    return OnFault(kind, choices.below(MOST[kind]))
