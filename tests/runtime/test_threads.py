"""Threads and forks, memory, models that are kept, and calls of models."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, Device, Graph, InvalidArgument, Model, TensorDataType, TensorDesc, descs
from opendml.host_memory import host_memory
from opendml.runtime.calls import immediate
from opendml.runtime.graphs import layout_copies, model_cache
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.shared import Footprint, SharedMemory
from opendml.runtime.memory.constant_store import ConstantStore, PreparedMemory
from opendml.runtime.memory.host_array import Array
from opendml.spec.operator_desc import OperatorDesc
from opendml.targets.arenas import Arenas
from opendml.targets.cpu import executable
from opendml.targets.cpu.scratch import Scratch
from opendml.targets.memory import HostMemory
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    "module",
    [
        "opendml.targets.cpu.backend",
        "opendml.targets.cpu.executable",
        "llvmlite.ir",
        "opendml.operators.activation",
    ],
)
def test_a_child_of_a_fork_amid_an_import_calls_too(module: str) -> None:
    code = FORK_AMID_AN_IMPORT.format(module=module)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_a_process_with_idle_workers_ends() -> None:
    code = f"import numpy as np, opendml as dml; dml.activation_tanh(np.zeros({LARGE}, np.float32))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_float16_and_float32_devices_share_the_pool() -> None:
    devices = [Device("cpu", threads=threads) for threads in (2, 5)]
    for data_type in (FLOAT32, FLOAT16):
        desc = tanh_desc(LARGE, data_type)
        x = values(LARGE).astype(numpy_type(desc.input_tensor))
        assert same_bits(*(run(desc, [x], device) for device in devices))


ROW = 2_000_000


def total(x: Array) -> Any:
    """A reduction whose partial sums need scratch memory."""
    return dml.mean_variance_normalization1(x, axes=[0])


def test_a_thread_has_one_scratch_memory_of_its_greatest_need(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, Any]] = []

    class Counted(HostMemory):
        def __init__(self, size: int) -> None:
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
    monkeypatch.setattr("opendml.targets.cpu.executable._MILLISECONDS", 1)
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
    model(x=x)  # what it needs beside its results is there
    monkeypatch.setattr(np, "empty", nothing)
    problem = r"no memory for a tensor of type FLOAT32 and sizes \[2000000\]: 8,000,000 bytes"
    for call in (lambda: model(x=x), lambda: device.empty([ROW])):
        with pytest.raises(dml.Unsupported, match=problem):
            call()


def test_the_reference_says_which_of_its_tensors_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise MemoryError("no 8 GiB")

    monkeypatch.setattr("opendml.targets.reference.evaluate.converted", nothing)
    graph = dml.Graph()
    x = graph.input("x", "FLOAT32", [3])
    with pytest.raises(dml.Unsupported, match=r"has no memory for \w+ of sizes \[3\]: no 8 GiB"):
        graph.compile({"y": x + 1.0}, "reference")(x=np.ones(3, np.float32))


@pytest.fixture(autouse=True)
def _entries_take_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_cache, "_ENTRY_BYTES", 0)


@dataclass(eq=False)
class Size:
    """An entry that tells when it is dropped."""

    footprint: Footprint
    log: list[Size] = field(default_factory=list)

    def forget(self) -> None:
        self.log.append(self)


def memory(size: int) -> PreparedMemory:
    return PreparedMemory(HostMemory(size), size)


def test_what_was_used_longest_ago_goes_first() -> None:
    kept, dropped = ModelCache(250), list[Size]()
    sizes = [Size(Footprint(100), dropped) for _ in range(5)]
    for each in (*sizes[:3], sizes[0]):
        kept.use([each])
    assert (dropped, kept.bytes) == ([], 300)
    kept.use([sizes[3]])
    assert (dropped, kept.bytes) == ([sizes[1]], 300)
    kept.use([sizes[4]])
    assert dropped == [sizes[1], sizes[2]]
    kept.use([sizes[1]])
    assert dropped == [sizes[1], sizes[2], sizes[0]]


def test_what_runs_is_never_dropped_and_counts_for_nothing() -> None:
    kept, dropped = ModelCache(0), list[Size]()
    path = [Size(Footprint(1000), dropped) for _ in range(3)]
    for _ in range(2):
        kept.use(path)
    assert (dropped, kept.bytes) == ([], 3000)
    other = Size(Footprint(10), dropped)
    kept.use([path[0], other])
    assert (dropped, kept.bytes) == ([path[2], path[1]], 1010)


def test_shared_memory_counts_once_and_drops_nothing() -> None:
    weights, own = memory(1000), memory(50)
    kept, dropped = ModelCache(60), list[Size]()
    first, second, third = (
        Size(Footprint(5, frozenset(memories)), dropped)
        for memories in ([weights], [weights, own], [weights])
    )
    for each in (first, second, third):
        kept.use([each])
    assert (dropped, kept.bytes) == ([], 1065)
    kept.use([Size(Footprint(5, frozenset([weights])), dropped)])
    assert (dropped, kept.bytes) == ([first], 1065)
    kept.use([Size(Footprint(2), dropped)])
    assert len(dropped) == 4
    assert kept.bytes == 2


def test_an_arena_that_only_old_sizes_need_is_freed_with_them() -> None:
    kept, dropped = ModelCache(1000), list[Size]()
    arenas = kept.shared.arenas

    def run(bytes: int) -> None:
        arenas.give(arenas.take(bytes))
        kept.use([Size(Footprint(1, arena_bytes=bytes), dropped)])

    for bytes in (100, 5000, 5000, 200):
        run(bytes)
    assert len(dropped) == 3
    assert arenas.most == arenas.free_bytes + 200 == 200
    run(900)
    run(300)
    assert arenas.free_bytes == 900
    assert len(dropped) == 3


def test_arenas_grow_to_the_largest_need_and_are_as_many_as_run_at_once() -> None:
    arenas = Arenas()
    first, second = arenas.take(100), arenas.take(300)
    assert first is not second
    arenas.give(first)
    arenas.give(second)
    assert arenas.take(200) is second
    third = arenas.take(250)
    assert third.bytes.size == 250
    arenas.shrink(200)
    arenas.give(third)
    arenas.give(second)
    assert arenas.free_bytes == 0


def test_a_store_has_what_somebody_keeps() -> None:
    store = ConstantStore()
    first, second = memory(10), memory(10)
    assert store.found("a") is None
    assert store.added("a", first) is first
    assert store.added("a", second) is first
    assert (store.found("a"), store.bytes) == (first, 10)
    del first
    gc.collect()
    assert (store.found("a"), store.bytes) == (None, 0)


def test_arrays_of_equal_values_are_one_as_long_as_somebody_has_it() -> None:
    shared = SharedMemory()
    array, key = shared.unchanging(np.arange(6, dtype=np.float32), None)
    assert shared.unchanging(np.arange(6, dtype=np.float32), None)[0] is array
    for other in (np.arange(6, dtype=np.int32), np.arange(6, dtype=np.float32).reshape(2, 3), -array):
        found, another = shared.unchanging(other, None)
        assert found is other
        assert another != key
    named = np.zeros(3, np.float32)
    assert shared.unchanging(named, "weights")[0] is named
    assert shared.unchanging(named, "weights")[1] == shared.unchanging(array[:3], "weights")[1]


def test_the_bound_follows_the_memory_of_the_machine() -> None:
    assert ModelCache().most_bytes == host_memory() // 4 > 0


@pytest.mark.parametrize("most", [-1, 0.5, "8"])
def test_bounds_are_numbers_of_bytes(most: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^option: .*; a number of bytes from 0 on is needed, or None"):
        ModelCache(most, "option")


A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = A[::-1].copy() / 4


def difference(device: Device | None = None, **strides: Any) -> Model:
    graph = Graph()
    a, b = graph.input("a", FLOAT32, [3, 4], **strides), graph.input("b", FLOAT32, [3, 4])
    return graph.compile({"y": a - b}, device)


def test_inputs_are_given_by_position_or_by_name(device: Device) -> None:
    model = difference(device)
    for result in (model(A, B), model(A, b=B), model(b=B, a=A)):
        assert same_bits(result["y"], A - B)


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((A, B, A), {}, "inputs: 3 arrays; the graph has a, b"),
        ((A,), {"a": A, "b": B}, "inputs: a is given twice, by position and by name"),
        ((A,), {}, "inputs: b is missing; the graph has a, b"),
        ((A,), {"B": B}, "inputs: b is missing, B is unknown (did you mean b?); the graph has a, b"),
        ((A, B), {"zzz": B}, "inputs: zzz is unknown; the graph has a, b"),
    ],
)
def test_missing_and_unknown_inputs_are_named(
    arrays: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument) as error:
        difference()(*arrays, **named)
    assert str(error.value) == message


def laid_out() -> list[Any]:
    """The elements of A, in other strides than packed ones."""
    wide = np.zeros((6, 9), np.float32)
    wide[::2, 1::2] = A
    return [np.asfortranarray(A), A[::-1, ::-1].copy()[::-1, ::-1], wide[::2, 1::2]]


def test_arrays_of_any_strides_are_read_and_written(device: Device) -> None:
    model = difference(device)
    expected = A - B
    for array in laid_out():
        assert same_bits(model(array, B)["y"], expected)
        y = np.zeros((6, 9), np.float32)[::2, 1::2]
        model.run({"a": array, "b": B.copy("F")}, {"y": y})
        np.testing.assert_array_equal(y, expected)
        assert not y.base[1::2].any()  # type: ignore[index, union-attr]


def test_copies_of_other_strides_live_while_the_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made, alive = list[weakref.ref[HostMemory]](), list[bool]()

    class Watched(HostMemory):
        def __init__(self, size: int) -> None:
            super().__init__(size)
            made.append(weakref.ref(self))

    model = difference()
    instance = model._prepared.instance
    monkeypatch.setattr(layout_copies, "HostMemory", Watched)
    monkeypatch.setattr(instance, "dispatch", lambda: alive.extend(each() is not None for each in made))
    model.run({"a": A.copy("F"), "b": B}, {"y": np.zeros((3, 8), np.float32)[:, ::2]})
    assert alive == [True, True]
    assert [each() for each in made] == [None, None]


def test_strides_of_single_elements_are_of_no_consequence() -> None:
    graph = Graph()
    model = graph.compile({"y": graph.input("x", FLOAT32, [1, 4]) * 2.0})
    row = np.lib.stride_tricks.as_strided(A, (1, 4), (0, 4))
    found = model._called_on_host({"x": row})
    assert found is not None
    assert same_bits(found["y"], row * 2)
    assert same_bits(model(row)["y"], row * 2)


def test_arrays_that_are_not_aligned_are_read() -> None:
    odd = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)
    odd[...] = A
    assert not odd.flags.aligned
    assert same_bits(difference()(odd, B)["y"], A - B)


def test_repeated_elements_are_read(device: Device) -> None:
    row = np.broadcast_to(A[0], (3, 4))
    assert same_bits(difference(device)(row, B)["y"], row - B)


def test_other_libraries_arrays_of_any_strides_are_read() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.from_numpy(A.T.copy()).T, torch.from_numpy(B)
    assert torch.equal(difference()(a, b)["y"], a - b)


def test_inputs_compiled_for_strides_take_packed_arrays(device: Device) -> None:
    model = difference(device, strides=[1, 3])
    assert same_bits(model(A, B)["y"], A - B)
    assert same_bits(model(np.asfortranarray(A), B)["y"], A - B)


def test_elements_that_share_memory_are_not_made_of_others() -> None:
    model = difference(strides=[0, 1])
    assert same_bits(model(np.broadcast_to(A[1], (3, 4)), B)["y"], A[1] - B)
    with pytest.raises(
        InvalidArgument, match=r"a: strides \[16, 4\] bytes; .* \[0, 4\], where elements share"
    ):
        model(A, B)


def test_outputs_of_other_strides_share_no_memory_either() -> None:
    a = A.copy()
    with pytest.raises(InvalidArgument, match=r"graph\.y: shares memory with a"):
        difference().run({"a": a, "b": B}, {"y": a[::-1]})
    repeated = np.lib.stride_tricks.as_strided(a, (3, 4), (0, 4))
    with pytest.raises(InvalidArgument, match="must not overlap itself"):
        difference().run({"a": A, "b": B}, {"y": repeated})


def test_bound_arrays_lie_as_compiled() -> None:
    with pytest.raises(InvalidArgument, match=r"a: strides .* run copies such arrays, bind does not"):
        difference().bind({"a": np.asfortranarray(A), "b": B}, {"y": np.empty_like(A)})
    assert isinstance(difference().bind({"a": A, "b": B}, {"y": np.empty_like(A)}), dml.BoundModel)
