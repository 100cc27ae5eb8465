"""The native runtime: forks, signals, the host's floating-point mode, small stacks and threads."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, Unsupported
from opendml.runtime.memory.host_array import Array
from opendml.signals import deferred_signals
from opendml.targets.cpu import engine, machine_code
from opendml.targets.cpu import pool as pool_module
from opendml.targets.cpu.engine import kernel_assembly
from opendml.targets.cpu.pool import Pool, pool
from tests.processes import has_fork
from tests.running import same_bits

LARGE = 300_007


def python(script: str, **environment: str) -> None:
    """Runs a script in a process of its own, which must succeed."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    result = subprocess.run(
        command, timeout=120, check=False, env=os.environ | environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


# Forks

FORK_WHILE_COMPILING = """
import os, sys, threading
import numpy as np, opendml as dml
x = np.linspace(-3, 3, 1000, dtype=np.float32)
dml.activation_relu(x)
stop = threading.Event()
def compile_others():
    alpha = 1.0
    while not stop.is_set():
        alpha += 0.25
        dml.activation_celu(x, alpha=alpha)
threading.Thread(target=compile_others, daemon=True).start()
for number in range(6):
    child = os.fork()
    if child == 0:
        stop.set()
        dml.activation_elu(x, alpha=100.0 + number)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
stop.set()
"""


@has_fork
def test_a_child_compiles_though_another_thread_did_at_the_fork(tmp_path: Any) -> None:
    python(FORK_WHILE_COMPILING, OPENDML_CACHE_DIRECTORY=str(tmp_path))


FORK_AMID_DISPATCHES = """
import os, threading, time
import numpy as np, opendml as dml
def threads():
    return len(os.listdir("/proc/self/task"))
x, y = np.linspace(-3, 3, 2_000_003, dtype=np.float32), np.empty(2_000_003, np.float32)
device = dml.Device("cpu", threads=3)
graph = dml.Graph()
a = graph.input("a", dml.FLOAT32, x.shape)
model = graph.compile({"y": dml.activation_tanh(a)}, device=device)
before = model(a=x)["y"]
bound = model.bind({"a": x}, {"y": y})
bound.dispatch()
stop = threading.Event()
def work():
    other = model.bind({"a": x}, {"y": np.empty_like(x)})
    while not stop.is_set():
        other.dispatch()
        model(a=x)
workers = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for worker in workers:
    worker.start()
for _ in range(6):
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        assert threads() == 1
        y.fill(0)
        for _ in range(3):
            bound.dispatch()
            assert (y == before).all()
        assert (model(a=x)["y"] == before).all()
        assert threads() == 3, threads()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
for worker in workers:
    worker.join()
"""


@has_fork
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="this system does not list threads")
def test_children_of_a_fork_amid_dispatches_have_workers_again() -> None:
    python(FORK_AMID_DISPATCHES)


FORK_IN_A_HANDLER = """
import os, signal
import numpy as np, opendml as dml
x = np.ones((16, 2**20), np.float32)
y = np.empty_like(x)
device = dml.Device("cpu", threads=THREADS)
graph = dml.Graph()
a = t = graph.input("a", dml.FLOAT32, x.shape)
for _ in range(24):
    t = dml.activation_tanh(t)
bound = graph.compile({"y": t}, device=device).bind({"a": x}, {"y": y})
children = []
def handle(*_):
    children.append(os.fork())
# Time that this process computes: the alarm comes within the dispatch on a busy machine too.
signal.signal(signal.SIGVTALRM, handle)
signal.setitimer(signal.ITIMER_VIRTUAL, 0.03)
try:
    bound.dispatch()
except dml.Unsupported as error:
    assert children == [0] and "forked" in str(error)
    os._exit(7)
if children == [0]:
    os._exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == STATUS
"""


@has_fork
@pytest.mark.parametrize(("threads", "status"), [(1, 8), (2, 7)])
def test_a_fork_within_a_dispatch_ends_in_both_processes(threads: int, status: int) -> None:
    python(FORK_IN_A_HANDLER.replace("THREADS", str(threads)).replace("STATUS", str(status)))


# The pool itself


def test_threads_that_need_the_pool_at_once_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    barrier = threading.Barrier(4)

    class Slow(Pool):
        def __init__(self) -> None:
            made.append(self)
            threading.Event().wait(0.05)
            super().__init__()

    monkeypatch.setattr(pool_module, "_pool", None)
    monkeypatch.setattr(pool_module, "Pool", Slow)

    def need() -> None:
        barrier.wait()
        pool()

    threads = [threading.Thread(target=need) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_thread_that_does_not_start_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[int, int]] = []
    refuse = True

    class FakeThread:
        def __init__(self, args: tuple[int, int], **_: object) -> None:
            self.arguments = args

        def start(self) -> None:
            if refuse and len(started) == 1:
                raise RuntimeError("can't start new thread")
            started.append(self.arguments)

    workers = Pool()
    monkeypatch.setattr(threading, "Thread", FakeThread)
    workers.start(3)
    assert [index for _, index in started] == [1]
    refuse = False
    workers.start(3)
    assert [index for _, index in started] == [1, 2, 3]


AFTER_THE_MAIN_THREAD = """
import os, sys, threading
import numpy as np, opendml as dml
x = np.linspace(-3, 3, 300_007, dtype=np.float32)
def work():
    threading.main_thread().join()
    try:
        found = dml.top_k1(x, axis=0, k=5, axis_direction="DECREASING", device=dml.Device("cpu", threads=2))
        assert found.output_index.tolist() == list(range(300_006, 300_001, -1))
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
threading.Thread(target=work).start()
"""


def test_a_thread_that_outlives_the_main_one_compiles(tmp_path: Path) -> None:
    python(AFTER_THE_MAIN_THREAD, OPENDML_CACHE_DIRECTORY=str(tmp_path))


# Signals

INTERRUPTED = """
import os, signal, threading, time
import numpy as np, opendml as dml
x = np.full((64, 2**20), 0.5, np.float32)
y = np.empty_like(x)
device = dml.Device("cpu", threads=THREADS)
graph = dml.Graph()
a = t = graph.input("a", dml.FLOAT32, x.shape)
for _ in range(60):
    t = dml.activation_tanh(t)
bound = graph.compile({"y": t}, device=device).bind({"a": x}, {"y": y})
small = np.linspace(-1, 1, 200_003, dtype=np.float32)
expected = dml.activation_tanh(small)
y[-1] = 7
def interrupt():
    signal.raise_signal(signal.SIGINT)
for _ in range(2):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        bound.dispatch()
    except KeyboardInterrupt:
        assert y[-1, -1] == 7  # far from its end
    else:
        raise SystemExit("not interrupted")
    assert (dml.activation_tanh(small) == expected).all()
# Another thread than the main one, by an exception of its own.
raised = []
def work():
    try:
        bound.dispatch()
    except KeyboardInterrupt:
        raised.append(y[-1, -1] == 7)
import ctypes
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.1)
ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
thread.join()
assert raised == [True]
assert (dml.activation_tanh(small) == expected).all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no alarms")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_ends_a_long_dispatch_and_nothing_else(threads: int) -> None:
    python(INTERRUPTED.replace("THREADS", str(threads)))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end_of_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's binding would keep its lock, and other threads wait for ever."""
    texts = []

    def interrupted(pattern: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        texts.append(pattern.text())
        return kernel_assembly(pattern)

    monkeypatch.setattr(engine, "kernel_assembly", interrupted)
    monkeypatch.setattr(machine_code, "read_object", lambda _: None)
    monkeypatch.setattr(machine_code, "_codes", {})
    before = signal.getsignal(signal.SIGINT)
    x = np.linspace(-2, 2, 37, dtype=np.float32)
    with pytest.raises(KeyboardInterrupt):
        dml.activation_celu(x, alpha=0.8125)
    assert list(machine_code._codes) == [machine_code.key_of(text) for text in texts]
    assert len(texts) == 1
    assert signal.getsignal(signal.SIGINT) is before
    expected = np.where(x > 0, x, 0.8125 * np.expm1(x / 0.8125))
    np.testing.assert_allclose(dml.activation_celu(x, alpha=0.8125), expected, rtol=1e-6)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_a_compilation_that_fails_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: Any) -> str:
        signal.raise_signal(signal.SIGINT)
        raise Unsupported("no such code")

    monkeypatch.setattr(engine, "kernel_assembly", failing)
    monkeypatch.setattr(machine_code, "read_object", lambda _: None)
    monkeypatch.setattr(machine_code, "_codes", {})
    with pytest.raises(KeyboardInterrupt) as error:
        dml.activation_celu(np.ones(37, np.float32), alpha=0.9375)
    assert isinstance(error.value.__context__, Unsupported)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_workers_start_leaves_them_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    own = Pool()
    with pytest.raises(KeyboardInterrupt):
        own.start(2)
    assert own._workers == 2


def test_a_handler_that_comes_while_workers_start_may_need_them(monkeypatch: pytest.MonkeyPatch) -> None:
    start, own = threading.Thread.start, Pool()

    def alarmed(thread: threading.Thread) -> None:
        start(thread)
        signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda *_: own.start(3))
    try:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", alarmed)
            own.start(1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert own._workers == 3


def test_an_interrupted_instance_can_be_dispatched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opendml.targets.cpu.planning._MILLISECONDS", 1)
    x = np.linspace(-3, 3, 4_000_037, dtype=np.float32)
    for threads in (1, 2):
        graph = dml.Graph()
        a = graph.input("a", dml.FLOAT32, x.shape)
        total = dml.reduce(dml.activation_tanh(a), function=dml.ReduceFunction.SUM, axes=[0])
        outputs = {"y": dml.activation_gelu(dml.activation_tanh(a)), "total": total}
        model = graph.compile(outputs, device=Device("cpu", threads=threads))
        whole = model(a=x)
        y = {"y": np.empty_like(x), "total": np.empty(1, np.float32)}
        bound = model.bind({"a": x}, y)
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                interrupted(bound.dispatch)
            bound.dispatch()
            assert same_bits(y["y"], whole["y"])
            assert same_bits(y["total"], whole["total"])


def interrupted(work: Callable[[], object]) -> None:
    """Does work until it is done or, at some pause within it, an exception comes."""
    identity = ctypes.c_ulong(threading.get_ident())
    interrupt = ctypes.py_object(KeyboardInterrupt)
    timer = threading.Timer(0.002, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, interrupt))
    timer.start()
    while True:
        work()


# The host's floating-point mode

FLUSH_TO_ZERO = {"x86_64": 0x1F80 | 0x8040, "AMD64": 0x1F80 | 0x8040, "aarch64": 1 << 24, "arm64": 1 << 24}
UPWARD = {"x86_64": 0x1F80 | 0x4000, "AMD64": 0x1F80 | 0x4000, "aarch64": 1 << 22, "arm64": 1 << 22}
UNMASKED = {"x86_64": 0x1F80 & ~0x1A80, "AMD64": 0x1F80 & ~0x1A80, "aarch64": 0x1F00, "arm64": 0x1F00}
MODES = {"flush to zero": FLUSH_TO_ZERO, "upward": UPWARD, "unmasked": UNMASKED}

MODE_ASSEMBLY = {
    "x86_64": """
        declare void @llvm.x86.sse.stmxcsr(ptr)
        declare void @llvm.x86.sse.ldmxcsr(ptr)
        define i64 @exchange(i64 %new) {
          %word = alloca i32
          call void @llvm.x86.sse.stmxcsr(ptr %word)
          %old = load i32, ptr %word
          %narrow = trunc i64 %new to i32
          store i32 %narrow, ptr %word
          call void @llvm.x86.sse.ldmxcsr(ptr %word)
          %wide = zext i32 %old to i64
          ret i64 %wide
        }
    """,
    "aarch64": """
        declare i64 @llvm.aarch64.get.fpcr()
        declare void @llvm.aarch64.set.fpcr(i64)
        define i64 @exchange(i64 %new) {
          %old = call i64 @llvm.aarch64.get.fpcr()
          call void @llvm.aarch64.set.fpcr(i64 %new)
          ret i64 %old
        }
    """,
}


@pytest.fixture(scope="module")
def exchange_mode() -> Callable[[int], int]:
    """Sets the mode of the calling thread, and returns the one before."""
    from opendml.targets.cpu.machine import machine
    from opendml.targets.cpu.machine_code import compile_object, load_object

    triple = machine().triple
    architecture = triple.split("-")[0].replace("arm64", "aarch64")
    code = compile_object(f'target triple = "{triple}"\n{MODE_ASSEMBLY[architecture]}')
    address = load_object(code, ("exchange",))["exchange"]
    exchange = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)
    return lambda mode: int(exchange(mode))


def in_mode(mode: int, exchange: Callable[[int], int], work: Callable[[], Any]) -> tuple[Any, int]:
    """What `work` returns in a mode, and the mode that it leaves."""
    before = exchange(mode)
    try:
        result = work()
    finally:
        after = exchange(before)
    return result, after


DENORMALS = (np.arange(2_000_003) % 8000 * np.float32(1e-42)).astype(np.float32)
CONTROLS = 0xFFFF_FFC0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1000, 100_003, len(DENORMALS)])
@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_results_do_not_depend_on_the_mode_of_the_caller(
    mode: str, count: int, kind: str, exchange_mode: Callable[[int], int]
) -> None:
    import platform

    x = DENORMALS[:count]
    wanted = MODES[mode][platform.machine()]
    for threads in (1, 3):
        device = Device(kind, threads=threads if kind == "cpu" else None)
        y = np.empty_like(x)

        def call(device: Device = device, y: Array = y) -> Array:
            return dml.element_wise_multiply(x, x * 0 + 1, out=y, device=device)  # type: ignore[no-any-return]

        call()
        tensor = dml.TensorDesc(dml.FLOAT32, [count])
        desc = dml.descs.ElementWiseDivide(tensor, tensor, tensor)
        three = np.full(count, 3, np.float32)
        bound = device.compile_operator(device.create_operator(desc)).bind([x, three], [y])
        bound.dispatch()
        expected = y.copy()
        assert np.count_nonzero(expected) > count * 0.9
        y.fill(7)
        _, left = in_mode(wanted, exchange_mode, bound.dispatch)
        assert same_bits(y, expected)
        assert left & CONTROLS == wanted & CONTROLS


@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_attributes_do_not_depend_on_the_mode(kind: str, exchange_mode: Callable[[int], int]) -> None:
    import platform

    x = np.ones(10, np.float32)
    wanted = FLUSH_TO_ZERO[platform.machine()]
    result, _ = in_mode(
        wanted, exchange_mode, lambda: dml.activation_linear(x, alpha=1e-40, beta=2e-40, device=kind)
    )
    assert same_bits(result, np.full(10, 3e-40, np.float32))


# Stacks

SMALL_STACK = """
import threading
import numpy as np, opendml as dml
threading.stack_size(64 * 1024)
device = dml.Device("cpu", threads=3)
def work():
    random = np.random.default_rng(0)
    x = random.standard_normal((8, 60, 100, 16), np.float32)
    wide = random.standard_normal((700, 2048), np.float32)
    for axes in ([1], [1, 2], [3], [2, 3], [0, 1, 2, 3]):
        dml.activation_softmax1(x, axes=axes, device=device)
        dml.mean_variance_normalization1(x, axes=axes, device=device)
        dml.reduce(x, function=dml.ReduceFunction.LOG_SUM_EXP, axes=axes, device=device)
    for function in dml.ReduceFunction:
        for axes in ([0], [1]):
            dml.reduce(wide, function=function, axes=axes, device=device)
    for axis in (0, 1):
        dml.cumulative_summation(wide, axis=axis, device=device)
        dml.argmax(wide, axes=[axis], device=device)
    graph = dml.Graph()
    a = graph.input("a", dml.FLOAT32, [300, 2048])
    functions = [f for f in dml.ReduceFunction if f.name in ("AVERAGE", "MAX", "MIN", "SUM", "L2")]
    graph.compile({f.name: dml.reduce(a, function=f, axes=[0]) for f in functions}, device=device)(
        a=np.ones((300, 2048), np.float32)
    )
    done.append(True)
done = []
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""


def test_kernels_run_in_threads_with_small_stacks() -> None:
    python(SMALL_STACK)


SCATTERED = """
import ctypes, mmap
import numpy as np, opendml as dml

PAGE, ROOM, ANYWHERE = mmap.PAGESIZE, 16 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
x = np.linspace(-2, 2, 37, dtype=np.float32)
dml.activation_relu(x)

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def take(bytes):
    return libc.mmap(None, bytes, 0, ANYWHERE, -1, 0)


# One page is free amid 16 GiB, and none above: what does not fit into it lies gigabytes below.
hole = take(ROOM) + ROOM // 2
libc.munmap(hole, PAGE)
for _ in range(100_000):
    if take(PAGE) == hole:
        break
else:
    raise AssertionError("the page is not found")
libc.munmap(hole, PAGE)

y = dml.activation_celu(x, alpha=0.75)
assert np.allclose(y, np.where(x > 0, x, 0.75 * np.expm1(x / 0.75)), rtol=1e-6)
"""


@pytest.mark.skipif(sys.platform != "linux" or sys.maxsize < 2**40, reason="counts on how Linux gives memory")
def test_pieces_of_memory_that_are_left_may_lie_gigabytes_apart(tmp_path: Path) -> None:
    environment = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path)}
    subprocess.run([sys.executable, "-c", SCATTERED], env=environment, check=True)


has_signals = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has few signals")


class _FirstError(Exception):
    pass


class _SecondError(Exception):
    pass


@pytest.fixture
def handled() -> Iterator[list[str]]:
    """The handlers that ran; that of each of two signals raises an error."""
    ran: list[str] = []

    def handler(name: str, error: type[Exception]) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            ran.append(name)
            raise error

        return handle

    before = [
        (number, signal.signal(number, handler(number.name, error)))
        for number, error in ((signal.SIGUSR1, _FirstError), (signal.SIGUSR2, _SecondError))
    ]
    yield ran
    for number, old in before:
        signal.signal(number, old)


def _raised_within(numbers: Sequence[signal.Signals], handled: list[str]) -> None:
    """Signals that come while two blocks defer them."""
    with deferred_signals(), deferred_signals():
        for number in numbers:
            signal.raise_signal(number)
        assert handled == []


@has_signals
def test_each_of_two_signals_is_handled_though_the_first_handler_raises(handled: list[str]) -> None:
    with pytest.raises(_SecondError) as raised:
        _raised_within([signal.SIGUSR1, signal.SIGUSR2], handled)
    assert handled == ["SIGUSR1", "SIGUSR2"]
    assert isinstance(raised.value.__context__, _FirstError)


@has_signals
def test_handlers_are_those_before_whatever_is_raised(handled: list[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)]
    with pytest.raises(_FirstError):
        _raised_within([signal.SIGUSR1, signal.SIGUSR1], handled)
    assert handled == ["SIGUSR1"]
    assert [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)] == before


@has_signals
def test_other_threads_leave_handlers_alone(handled: list[str]) -> None:
    before = signal.getsignal(signal.SIGUSR1)
    seen = []

    def work() -> None:
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
    assert handled == []
