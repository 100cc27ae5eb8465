"""A handler of a signal, or a finalizer, may use the model whose run it interrupts. It used to wait for the
lock that its own thread held, for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.targets.cpu.pool import Pool
from tests.processes import has_fork

has_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarms")


def python(script: str, **environment: str) -> None:
    """Runs a script in a process of its own, which must succeed before long."""
    command = [sys.executable, "-c", script]
    result = subprocess.run(
        command, timeout=120, check=False, env=os.environ | environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


INTERRUPTED = """
import signal
import numpy as np, opendml as dml
x = np.linspace(-1, 1, 2**20, dtype=np.float32).reshape(64, -1)
device = dml.Device("cpu", threads=THREADS)
tensor = dml.TensorDesc(dml.FLOAT32, x.shape)

def interrupted(run, handler):
    # The alarms end: each of the handler's own runs would be interrupted too, and so on.
    left = [2]
    def handle(*_):
        if left[0]:
            left[0] -= 1
            handler()
    signal.signal(signal.SIGVTALRM, handle)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.02, 0.02)
    try:
        while left[0]:
            run()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
"""

MODEL = (
    INTERRUPTED
    + """
graph = dml.Graph()
a = t = graph.input("a", dml.FLOAT32, x.shape)
for _ in range(30):
    t = dml.activation_tanh(t)
# What it returns needs memory for what lies between.
model = graph.compile({"y": t, "z": dml.reduce(t, function="SUM", axes=[0, 1])}, device=device)
expected = model(a=x)

def same(found):
    assert found.keys() == expected.keys()
    assert all((found[name] == expected[name]).all() for name in expected)

# Calls within runs, and runs within calls.
call = lambda: same(model(a=x))
def run():
    outputs = {name: np.empty_like(array) for name, array in expected.items()}
    model.run({"a": x}, outputs)
    same(outputs)
interrupted(call, run)
interrupted(run, call)
# Other values within do no harm.
other = model(a=x / 2)
def others():
    found = model(a=x / 2)
    assert all((found[name] == other[name]).all() for name in other)
interrupted(call, others)
# What is bound runs once at a time.
outputs = {name: np.empty_like(array) for name, array in expected.items()}
bound = model.bind({"a": x}, outputs)
refused = []
def again():
    try:
        bound.dispatch()
    except dml.Error as error:
        refused.append(str(error))
    call()
def dispatch():
    bound.dispatch()
    same(outputs)
interrupted(dispatch, again)
assert refused and "this dispatch is running" in refused[0]
dispatch()
def rebound():
    model.bind({"a": x}, {name: np.empty_like(array) for name, array in expected.items()}).dispatch()
interrupted(dispatch, rebound)
# An error of the handler's ends the run, and nothing else.
class Stop(Exception):
    pass
def stop():
    call()
    raise Stop
for run in (call, dispatch):
    try:
        interrupted(run, stop)
        raise SystemExit("not stopped")
    except Stop:
        pass
    run()
"""
)


@has_timers
@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_may_call_the_model_that_it_interrupts(threads: int) -> None:
    python(MODEL.replace("THREADS", str(threads)))


OBJECTS = (
    INTERRUPTED
    + """
desc = dml.descs.ElementWisePow(tensor, tensor, tensor)
# DirectML's object model: a recorder.
compiled = device.compile_operator(device.create_operator(desc))
def executed():
    outputs = [device.create_buffer(x.nbytes)]
    table = device.create_binding_table(compiled)
    table.bind_inputs([np.abs(x) + 1, x])
    table.bind_outputs(outputs)
    if compiled.binding_properties.temporary_resource_size:
        table.bind_temporary_resource(device.create_buffer(compiled.binding_properties.temporary_resource_size))
    recorder = device.create_command_recorder()
    for _ in range(10):
        recorder.record_dispatch(compiled, table)
    return recorder, outputs
initializer = device.create_operator_initializer([compiled])
table = device.create_binding_table(initializer)
recorder = device.create_command_recorder()
recorder.record_dispatch(initializer, table)
device.execute(recorder)
recorder, (first,) = executed()
device.execute(recorder)
expected = np.array(first)
errors = []
def again():
    try:
        device.execute(recorder)
    except dml.Error as error:
        errors.append(error)
def execute():
    first[:] = 0
    device.execute(recorder)
    assert (first == expected).all()
interrupted(execute, again)
execute()
# Calls: within their own kind.
result = dml.element_wise_pow(np.abs(x) + 1, x, device=device)
def call():
    for _ in range(10):
        assert (dml.element_wise_pow(np.abs(x) + 1, x, device=device) == result).all()
interrupted(call, call)
"""
)


@has_timers
def test_a_handler_may_use_the_objects_that_it_interrupts() -> None:
    python(OBJECTS.replace("THREADS", "2"))


FINALIZED = """
import gc, weakref
import numpy as np, opendml as dml
x, other = np.linspace(-1, 1, 300_007, dtype=np.float32), np.linspace(2, 3, 300_007, dtype=np.float32)
device = dml.Device("cpu", threads=2)
graph = dml.Graph()
model = graph.compile({"y": dml.activation_tanh(graph.input("a", dml.FLOAT32, x.shape))}, device=device)
expected, others = model(x)["y"], model(other)["y"]
ran = []

class Garbage:
    def __init__(self):
        self.me = self
    def __del__(self):
        ran.append("finalizer")
        assert (model(other)["y"] == others).all()

def callback(_):
    ran.append("callback")
    assert (model(other)["y"] == others).all()
    model._free_temporaries()

class Interrupted:
    '''An instance that garbage is collected before and behind.'''
    def __init__(self, instance):
        self.bind, self.run = instance.bind, instance.dispatch
    def dispatch(self):
        for _ in range(2):
            garbage = Garbage()
            reference = weakref.ref(garbage, callback)
            del garbage
            gc.collect()
            self.run()

model._prepared.__dict__["instance"] = Interrupted(model._prepared.instance)
assert (model(x)["y"] == expected).all()
assert ran == ["finalizer", "callback"] * 2 or ran == ["callback", "finalizer"] * 2, ran
model._prepared.__dict__["instance"] = Interrupted(model._prepared.instance)
y = np.empty_like(x)
model.run({"a": x}, {"y": y})
assert (y == expected).all()
assert (model(x)["y"] == expected).all()
"""


def test_finalizers_and_callbacks_may_call_the_model_whose_run_they_interrupt() -> None:
    python(FINALIZED)


DOORS = """
import numpy as np, opendml as dml
from opendml.frontends.onnx import trace
from onnx import helper
import opendml.onnx
x, y = (helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy")
made = helper.make_model(helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "g", [x], [y]))
made.opset_import[0].version, made.ir_version = 18, 8
model = dml.onnx.load(made)
nested = []
stage = trace.Tracer._trace
def interrupted(tracer, *given, **named):
    # While it is traced, under its lock.
    if not nested:
        nested.append(None)
        for size in (3, 4):
            nested.append(model(np.full(size, 0.5, np.float32))["y"])
    return stage(tracer, *given, **named)
trace.Tracer._trace = interrupted
found = model(np.full(3, 0.5, np.float32))["y"]
assert (found == nested[1]).all() and nested[2].shape == (4,) and (nested[2] == found[0]).all()
assert (model(np.full(4, 0.5, np.float32))["y"] == found[0]).all()
"""


def test_what_interrupts_the_trace_of_an_onnx_model_may_run_it() -> None:
    pytest.importorskip("onnx")
    python(DOORS)


def test_every_lock_admits_its_owner_again() -> None:
    """But those that stand in other modules' hands: none are left."""
    source = Path(dml.__file__).parent
    names = {path.name for path in source.rglob("*.py") if "threading.Lock()" in path.read_text("utf-8")}
    assert names == set()


def test_a_finalizer_may_need_workers_while_they_start(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    own = Pool()

    class FakeThread:
        def __init__(self, args: tuple[int, int], **_: object) -> None:
            self.arguments = args

        def start(self) -> None:
            own.start(5)  # as a finalizer would, in the thread that starts it
            started.append(self.arguments[1])

    monkeypatch.setattr(threading, "Thread", FakeThread)
    own.start(2)
    assert started == [1, 2, 3, 4, 5]


def test_an_initialization_within_another_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    device = dml.Device("reference")
    tensor = dml.TensorDesc(dml.FLOAT32, [4], flags="OWNED_BY_DML")
    plain = dml.TensorDesc(dml.FLOAT32, [4])
    compiled = device.compile_operator(device.create_operator(dml.descs.ElementWiseAdd(plain, tensor, plain)))
    size = compiled.binding_properties.persistent_resource_size

    def initialized(value: float) -> None:
        initializer = device.create_operator_initializer([compiled])
        table = device.create_binding_table(initializer)
        table.bind_inputs([dml.BufferArrayBinding([None, np.full(4, value, np.float32)])])
        table.bind_outputs([device.create_buffer(size)])
        recorder = device.create_command_recorder()
        recorder.record_dispatch(initializer, table)
        device.execute(recorder)

    prepare = compiled._prepare

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(compiled, "_prepare", prepare)
        initialized(2)
        return prepare(*arguments)

    monkeypatch.setattr(compiled, "_prepare", interrupted)
    with pytest.raises(dml.InvalidArgument, match="initialized already"):
        initialized(1)
    assert compiled.is_initialized


FORKED = """
import os, signal, threading
import numpy as np, opendml as dml
x = np.linspace(-1, 1, 2**20, dtype=np.float32)
device = dml.Device("cpu", threads=2)
graph = dml.Graph()
a = t = graph.input("a", dml.FLOAT32, x.shape)
for _ in range(20):
    t = dml.activation_tanh(t)
model = graph.compile({"y": t}, device=device)
expected = model(a=x)["y"]
y = np.empty_like(x)
bound = model.bind({"a": x}, {"y": y})
stop = threading.Event()
def work():
    while not stop.is_set():
        bound.dispatch()
        model(a=x)
worker = threading.Thread(target=work)
worker.start()
for _ in range(2):
    child = os.fork()
    if child == 0:
        # What the other thread was doing is over.
        def counted(self):
            os._exit(9)
        type(model._prepared).again = counted
        for _ in range(2):
            assert (model(a=x)["y"] == expected).all()
            y[:] = 0
            bound.dispatch()
            assert (y == expected).all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
worker.join()
"""


@has_fork
def test_a_child_does_not_take_what_another_thread_did_for_an_interrupted_run() -> None:
    python(FORKED)
