"""Processes that compile machine code: they give the same objects, and losing them loses nothing."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.targets.cpu import compile_workers, engine, ir, llvm_library, machine_code, planning
from opendml.targets.cpu.compile_workers import Worker, WorkerLostError, WorkerPool, worker_count
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.object_code import Effort
from tests.calls import note_calls

pytestmark = pytest.mark.usefixtures("compile_workers_start")
ASSEMBLY = """
define i64 @kernel() {
  ret i64 7
}
"""


def compiled(*jobs: tuple[str, Effort]) -> list[bytes | None]:
    """Return the objects that two workers make of jobs."""
    pool = WorkerPool(machine())
    try:
        return [each.result(60) for each in [pool.compile(*job, 2) for job in jobs]]
    finally:
        pool.close()


def test_a_worker_makes_the_object_that_this_process_makes() -> None:
    jobs = [(ASSEMBLY, effort) for effort in Effort]
    expected = [machine_code.compile_object(*job) for job in jobs]
    assert compiled(*jobs) == expected


def test_what_llvm_refuses_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="expected"):
        compiled(("no assembly", Effort.ALL))


def test_a_lost_worker_leaves_its_job_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(machine())
    worker._process.kill()
    worker._process.wait()
    with pytest.raises(WorkerLostError):
        worker.compile(ASSEMBLY, Effort.ALL)
    worker.close()
    monkeypatch.setattr(sys, "executable", str(Path(sys.executable).parent / "no-such-python"))
    assert compiled((ASSEMBLY, Effort.ALL)) == [None]


def test_a_pool_ends_after_an_interrupt_while_it_started_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            started.append(self)
            if len(started) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(threading, "Thread", Interrupted)
    pool = WorkerPool(machine())
    with pytest.raises(KeyboardInterrupt):
        pool.start(2)
    pool.start(2)
    monkeypatch.undo()
    closing = threading.Thread(target=pool.close, daemon=True)
    closing.start()
    for each in (closing, *started):
        each.join(60)
        assert not each.is_alive()
    assert len(started) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="the wrapper is a script of a POSIX shell")
def test_a_python_that_prints_is_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "python"
    wrapper.write_text("#!/bin/sh\necho 'starting, with a message of some length'\nexec cat\n")
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapper))
    assert compiled((ASSEMBLY, Effort.ALL)) == [None]


@pytest.mark.parametrize(
    ("executable", "kernels", "threads", "count"),
    [
        ("/usr/bin/python3.12", 27, 2, 2),
        ("/usr/bin/python3.12", 27, 64, 13),
        ("/usr/bin/python3.12", 400, 64, 16),
        ("C:\\Python\\python.exe", 4, 8, 2) if sys.platform == "win32" else ("/bin/python", 4, 8, 2),
        ("/usr/bin/python3.12", 3, 8, 0),
        ("/usr/bin/python3.12", 27, 1, 0),
        ("/usr/bin/uwsgi", 27, 8, 0),
        ("", 27, 8, 0),
    ],
)
def test_workers_are_as_many_as_help(
    executable: str, kernels: int, threads: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert worker_count(kernels, threads) == count


def chain() -> bytes:
    """The result of a graph of five kernels."""
    graph = dml.Graph()
    x = y = graph.input("x", dml.FLOAT32, [1, 1, 37, 64])
    for function, axes in (("SUM", [3]), ("MAX", [2]), ("MIN", [3]), ("AVERAGE", [2])):
        y = dml.element_wise_subtract(y, dml.reduce(dml.activation_tanh(y), function=function, axes=axes))
    model = graph.compile({"y": dml.element_wise_add(x, y)})
    return bytes(model(np.linspace(-2, 2, 37 * 64, dtype=np.float32).reshape(1, 1, 37, 64))["y"].tobytes())


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process with nothing compiled and an empty cache, on two cores."""
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("OPENDML_THREADS", "2")
    monkeypatch.setattr(machine_code, "_codes", {})
    return monkeypatch


@pytest.mark.parametrize("fate", ["works", "is lost", "cannot be started"])
def test_a_graph_is_the_same_whatever_becomes_of_workers(fate: str, cold: pytest.MonkeyPatch) -> None:
    with cold.context() as patch:
        patch.setattr(engine, "worker_count", lambda kernels, threads: 0)
        expected = chain()
    cold.setattr(machine_code, "_codes", {})
    used: list[Any] = []

    class Counted(Worker):
        def __init__(self, *arguments: Any) -> None:
            if fate == "cannot be started":
                raise WorkerLostError("no process")
            super().__init__(*arguments)
            used.append(self)
            if fate == "is lost":
                self._process.kill()

    cold.setattr(compile_workers, "Worker", Counted)
    cold.setattr(machine_code, "read_object", lambda key: None)
    assert chain() == expected
    assert len(used) == (0 if fate == "cannot be started" else 2)
    assert all(each._process.poll() is not None for each in used)


def test_kernels_are_compiled_while_others_are_scheduled(cold: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    note_calls(cold, events, planning, "schedule")
    note_calls(cold, events, WorkerPool, "compile")
    chain()
    last = len(events) - events[::-1].index("schedule")
    assert "compile" in events[:last]


def test_lines_of_assembly_do_not_pile_up(cold: pytest.MonkeyPatch) -> None:
    alive: list[int] = []

    def counted(*arguments: Any) -> str:
        text = assembly(*arguments)
        blocks = [each for each in gc.get_objects() if issubclass(type(each), ir.Block)]
        alive.append(sum(len(each.lines) for each in blocks))
        return text

    assembly = engine.kernel_assembly
    cold.setattr(engine, "kernel_assembly", counted)
    chain()
    assert alive == [0] * len(alive) != []


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system lists no mapped pages")
def test_pages_of_llvm_that_its_loader_has_touched_are_released() -> None:
    llvm_library._release()
    resident, is_code = list[int](), False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            is_code = "llvmlite" in line and " r-xp " in line
        elif is_code and line.startswith("Rss:"):
            resident.append(int(line.split()[1]))
    assert resident == [0]


def test_functions_that_kernels_share_are_compiled_once(cold: pytest.MonkeyPatch) -> None:
    """Products with different epilogues have one micro-kernel."""
    compiled_parts: list[str] = []

    def noted(pool: WorkerPool, assembly: str, effort: Effort, count: int) -> Any:
        compiled_parts.append(assembly)
        return compile_part(pool, assembly, effort, count)

    compile_part = WorkerPool.compile
    cold.setattr(WorkerPool, "compile", noted)
    random = np.random.default_rng(7)
    x, w = (random.standard_normal(sizes, np.float32) for sizes in ((64, 96), (96, 96)))
    graph = dml.Graph()
    value, expected = graph.input("x", dml.FLOAT32, x.shape), x.astype("d")
    for activation, function in (
        (dml.descs.ActivationRelu(), lambda y: np.maximum(y, 0)),
        (dml.descs.ActivationTanh(), np.tanh),
        (dml.descs.ActivationSigmoid(), lambda y: 1 / (1 + np.exp(-y))),
        (None, lambda y: y),
    ):
        value = dml.gemm(value, graph.constant(w), fused_activation=activation)
        expected = function(expected @ w)
    np.testing.assert_allclose(graph.compile({"y": value})(x)["y"], expected, 1e-3, 1e-3)
    micros = [each for each in compiled_parts if 'define void @"micro.' in each]
    callers = [each for each in compiled_parts if 'declare void @"micro.' in each]
    assert len(callers) > len(set(micros)) == len(micros) > 0
