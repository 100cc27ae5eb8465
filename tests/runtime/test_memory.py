"""Memory that calls take while they run, and results that do not fit."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.calls import immediate
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu import executable
from opendml.targets.cpu.scratch import Scratch
from opendml.targets.memory import HostMemory
from tests.running import same_bits

ROW = 2_000_000


def total(x: Array) -> Any:
    """A reduction whose partial sums need scratch memory."""
    return dml.mean_variance_normalization1(x, axes=[0])


def test_a_thread_has_one_scratch_memory_of_its_greatest_need(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, Any]] = []

    class Counted(HostMemory):
        def __init__(self, size: int) -> None:
            assert all(memory() is None for _, memory in made), "what was too small is not freed first"
            super().__init__(size)
            made.append((size, weakref.ref(self)))

    monkeypatch.setattr("opendml.targets.cpu.scratch.HostMemory", Counted)
    monkeypatch.setattr(executable, "_scratch", Scratch())
    results = []

    def work() -> None:
        for count in (ROW, 3 * ROW, 2 * ROW, ROW, 3 * ROW):
            x = np.ones(count, np.float32)
            results.append(np.abs(total(x)).max())
        assert [size for size, memory in made if memory() is not None] == [max(size for size, _ in made)]

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [0] * 5
    assert 1 <= len(made) <= 2
    assert all(memory() is None for _, memory in made)


BOUNDED = """
import numpy as np, opendml as dml
def own():
    # MiB but for files, of which the system takes pages away and brings them back.
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1]) / 1024
x = np.ones((1, 64, 130, 130), np.float32)
def call(height, width):
    dml.local_response_normalization(x[:, :, :height, :width], cross_channel=True, local_size=17)
call(130, 130)
before = own()
for number in range(40):
    call(90 + number, 130)
small = np.ones(2000, np.float32)
for number in range(1000):
    dml.activation_relu(small[: 1000 + number])
grown = own() - before
assert grown < 40, grown
"""


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read as Linux shows it")
def test_memory_stays_bounded_over_a_thousand_different_calls() -> None:
    subprocess.run([sys.executable, "-c", BOUNDED], check=True, timeout=300)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarms")
def test_a_handler_may_call_what_it_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opendml.targets.cpu.planning._MILLISECONDS", 1)
    x = np.random.default_rng(0).standard_normal(ROW + 1, np.float32)
    other = x[::-1].copy()
    expected, expected_other = total(x), total(other)
    inside: list[Array] = []
    monkeypatch.setattr(immediate, "_plans", type(immediate._plans)())
    before = signal.signal(signal.SIGALRM, lambda *_: inside.append(total(other)))
    try:
        while len(inside) < 5:
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            assert same_bits(total(x), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(same_bits(each, expected_other) for each in inside)


@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_results_that_do_not_fit_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise MemoryError

    device, graph = dml.Device(kind), dml.Graph()
    x = np.ones(ROW, np.float32)
    model = graph.compile({"y": graph.input("x", "FLOAT32", [ROW]) + 1.0}, device)
    kept = model(x=x)  # what it needs beside its results is there
    monkeypatch.setattr(np, "empty", nothing)
    problem = r"no memory for a tensor of type FLOAT32 and sizes \[2000000\]: 8,000,000 bytes"
    for call in (lambda: model(x=x), lambda: device.empty([ROW])):
        with pytest.raises(dml.Unsupported, match=problem):
            call()
    address = kept["y"].ctypes.data
    del kept
    assert model(x=x)["y"].ctypes.data == address  # the memory of results that were dropped


def test_the_reference_says_which_of_its_tensors_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise MemoryError("no 8 GiB")

    monkeypatch.setattr("opendml.targets.reference.evaluate.converted", nothing)
    graph = dml.Graph()
    x = graph.input("x", "FLOAT32", [3])
    with pytest.raises(dml.Unsupported, match=r"has no memory for \w+ of sizes \[3\]: no 8 GiB"):
        graph.compile({"y": x + 1.0}, "reference")(x=np.ones(3, np.float32))
