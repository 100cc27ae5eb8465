"""Threads and forks: the same bits, and nobody waits for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, Device, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.spec.operator_desc import OperatorDesc
from tests.processes import has_fork
from tests.running import FLOATS, numpy_type, run, same_bits

LARGE = 300_007
"""Elements of a dispatch that several threads share."""


def tanh_desc(count: int, data_type: TensorDataType = FLOAT32) -> OperatorDesc:
    tensor = TensorDesc(data_type, [count])
    return descs.ActivationTanh(tensor, tensor)


def values(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(count, np.float32)


@pytest.mark.parametrize("count", [1, 1000, 24_576, 24_577, LARGE, 2_000_003])
@pytest.mark.parametrize("data_type", FLOATS)
def test_any_number_of_threads_gives_the_same_bits(count: int, data_type: TensorDataType) -> None:
    desc = tanh_desc(count, data_type)
    x = values(count).astype(numpy_type(desc.input_tensor))
    alone = run(desc, [x], Device("cpu", threads=1))
    for threads in (2, 3, 8, None):
        assert same_bits(run(desc, [x], Device("cpu", threads=threads)), alone)


def test_python_threads_dispatch_at_the_same_time(device: Device) -> None:
    compiled = device.compile_operator(device.create_operator(tanh_desc(LARGE)))
    inputs = [values(LARGE, seed) for seed in range(4)]
    alone = Device("cpu", threads=1) if device.kind == "cpu" else device
    expected = [run(tanh_desc(LARGE), [x], alone) for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        result = np.empty(LARGE, np.float32)
        bound = compiled.bind([inputs[number]], [result])
        for _ in range(100):
            result.fill(0)
            bound.dispatch()
            if not same_bits(result, expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_python_threads_call_immediate_functions_at_the_same_time() -> None:
    x = values(5000)
    expected = dml.activation_gelu(x)
    wrong: list[int] = []

    def work(number: int) -> None:
        for round_ in range(200):
            count = 1 + (number * 37 + round_ * 11) % 4000
            if not same_bits(dml.activation_gelu(x[:count]), expected[:count]):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_python_threads_run_one_model_in_turns() -> None:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, [LARGE])
    model = graph.compile({"y": dml.activation_tanh(x)})
    inputs = [values(LARGE, seed) for seed in range(3)]
    expected = [model(x=given)["y"] for given in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            if not same_bits(model(x=inputs[number])["y"], expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("count", [100, LARGE])
def test_ten_thousand_dispatches_in_a_row(count: int, device: Device) -> None:
    x, y = values(count), np.zeros(count, np.float32)
    bound = device.compile_operator(device.create_operator(descs_relu(count))).bind([x], [y])
    for _ in range(10_000):
        bound.dispatch()
    assert same_bits(y, np.maximum(x, 0))


def descs_relu(count: int) -> OperatorDesc:
    tensor = TensorDesc(FLOAT32, [count])
    return descs.ActivationRelu(tensor, tensor)


def test_dispatches_after_workers_went_to_sleep(device: Device) -> None:
    x, y = values(LARGE), np.zeros(LARGE, np.float32)
    bound = device.compile_operator(device.create_operator(descs_relu(LARGE))).bind([x], [y])
    for _ in range(5):
        y.fill(-1)
        bound.dispatch()
        assert same_bits(y, np.maximum(x, 0))
        time.sleep(0.05)


def test_a_bound_operator_keeps_its_memory_alive(device: Device) -> None:
    count = 1000
    y = np.zeros(count, np.float32)
    compiled = device.compile_operator(device.create_operator(descs_relu(count)))
    dispatch = compiled.bind([values(count)], [y]).dispatch
    del compiled
    trash = [np.full(count, 9.0, np.float32) for _ in range(50)]
    dispatch()
    assert same_bits(y, np.maximum(values(count), 0))
    assert len(trash) == 50


FORK = """
import os, sys
import numpy as np, opendml as dml
x = np.linspace(-3, 3, {count}, dtype=np.float32)
before = dml.activation_tanh(x)
child = os.fork()
same = all((dml.activation_tanh(x) == before).all() for _ in range(20))
other = dml.activation_sigmoid(x)
same = same and abs(other - 1 / (1 + np.exp(-x))).max() < 1e-6
if child == 0:
    os._exit(0 if same else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or (0 if same else 4))
"""


@has_fork
@pytest.mark.parametrize("count", [100, LARGE])
def test_a_forked_child_and_its_parent_both_go_on(count: int) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK.format(count=count)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


FORK_AMID_FIRST_CALLS = """
import os, signal, sys, threading, time
import numpy as np, opendml as dml
x = np.linspace(-3, 3, 100, dtype=np.float32)
threading.Thread(target=dml.activation_relu, args=(x,)).start()
time.sleep({delay})
child = os.fork()
if child == 0:
    signal.alarm(40)
    os._exit(0 if (dml.activation_relu(x) == np.maximum(x, 0)).all() else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@has_fork
@pytest.mark.parametrize("delay", [0.01, 0.05, 0.1])
def test_a_child_of_a_fork_amid_the_first_call_calls_too(delay: float) -> None:
    code = FORK_AMID_FIRST_CALLS.format(delay=delay)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


FORK_AMID_AN_IMPORT = """
import os, signal, sys, threading, time
from importlib.abc import MetaPathFinder
import numpy as np, opendml as dml
begun = threading.Event()
class Slowly(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            begun.set()
            time.sleep(0.2)
sys.meta_path.insert(0, Slowly())
x = np.linspace(-3, 3, 100, dtype=np.float32)
threading.Thread(target=dml.activation_relu, args=(x,)).start()
assert begun.wait(20)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if (dml.activation_relu(x) == np.maximum(x, 0)).all() else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@has_fork
@pytest.mark.parametrize(
    "module",
    [
        "opendml.targets.cpu.backend",
        "opendml.targets.cpu.executable",
        "opendml.targets.cpu.emit_kernel",
        "opendml.operators.activation",
    ],
)
def test_a_child_of_a_fork_amid_an_import_calls_too(module: str, tmp_path: Path) -> None:
    code = FORK_AMID_AN_IMPORT.format(module=module)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    # A process that finds machine code emits none.
    variables = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path)}
    assert subprocess.run(command, timeout=60, check=False, env=variables).returncode == 0


def test_a_process_with_idle_workers_ends() -> None:
    code = f"import numpy as np, opendml as dml; dml.activation_tanh(np.zeros({LARGE}, np.float32))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_float16_and_float32_devices_share_the_pool() -> None:
    devices = [Device("cpu", threads=threads) for threads in (2, 5)]
    for data_type in (FLOAT32, FLOAT16):
        desc = tanh_desc(LARGE, data_type)
        x = values(LARGE).astype(numpy_type(desc.input_tensor))
        assert same_bits(*(run(desc, [x], device) for device in devices))
