"""The machine, threads and their shares of launches, and reads at the end of memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, InvalidArgument
from opendml.compiler.fuse import fuse
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.targets.cpu import machine as machines
from opendml.targets.cpu.executable import CpuExecutable
from opendml.targets.cpu.host_facts import host_facts
from opendml.targets.cpu.machine import _cache_bytes, detected, machine
from opendml.targets.cpu.native import BACKWARDS, FIRST, HEADER, LAUNCH, MOST_CLAIMS, PATIENCE, THREADS
from opendml.targets.cpu.planning import compile_plan
from opendml.targets.cpu.pool import Pool, pool
from opendml.targets.cpu.schedule import schedule
from opendml.targets.cpu.threads import available_threads, quota


def groups(root: Path, lines: str, **files: str) -> Path:
    """A system whose process is in these groups; files have "__" for "/"."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(lines)
    for name, text in files.items():
        path = (
            root
            / "sys/fs/cgroup"
            / name.replace("__", "/")
            .replace("cpu_max", "cpu.max")
            .replace("cfs_quota", "cpu.cfs_quota_us")
            .replace("cfs_period", "cpu.cfs_period_us")
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_system_without_groups_has_no_quota(tmp_path: Path) -> None:
    assert quota(tmp_path) is None


def test_the_narrowest_group_around_the_process_counts(tmp_path: Path) -> None:
    root = groups(
        tmp_path,
        "0::/pod/box\n",
        pod__box__cpu_max="max 100000\n",
        pod__cpu_max="250000 100000\n",
        cpu_max="800000 100000\n",
    )
    assert quota(root) == 2.5


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    assert quota(groups(tmp_path, "0::/system/box\n", cpu_max="150000 50000\n")) == 3


def test_groups_of_version_1_count(tmp_path: Path) -> None:
    root = groups(
        tmp_path,
        "4:memory:/box\n3:cpu,cpuacct:/box\n",
        **{"cpu,cpuacct__box__cfs_quota": "400000\n", "cpu,cpuacct__box__cfs_period": "100000\n"},
        **{"cpu,cpuacct__cfs_quota": "-1\n", "cpu,cpuacct__cfs_period": "100000\n"},
    )
    assert quota(root) == 4


def test_no_quota_is_any_number(tmp_path: Path) -> None:
    assert quota(groups(tmp_path, "0::/\n", cpu_max="max 100000\n")) is None


@pytest.mark.parametrize(
    ("rows", "width", "cached", "threads"),
    [(1, 128, 1, 1), (1, 128, 250, 1), (256, 128, 1, 2), (1, 2048, 1, 2)],
)
def test_layers_that_take_a_few_microseconds_each_run_in_the_calling_thread(
    rows: int, width: int, cached: int, threads: int
) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 1, rows, width])
    weights = np.ones((1, 1, width, width), np.float32)
    y: Any = x
    outputs: dict[str, Any] = {}
    for layer in range(6):
        y = dml.activation_softmax1(dml.gemm(y, weights), axes=[3])
        past = graph.input(f"past{layer}", dml.FLOAT32, [1, 1, cached, width])
        outputs[f"present{layer}"] = dml.join([past, y], axis=2)
    model = graph.compile({"y": y, **outputs}, Device("cpu", threads=2))
    assert model._prepared.instance._job.words[THREADS] == threads


def test_starting_no_workers_leaves_handlers_of_signals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Pool()
    monkeypatch.setattr(signal, "signal", None)
    made.start(0)


@pytest.mark.parametrize(("share", "threads"), [(0.3, 1), (1.9, 1), (2.0, 2), (100.0, 3), (None, 3)])
def test_quotas_limit_the_threads(share: float | None, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENDML_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr("opendml.targets.cpu.threads._own_quota", lambda: share)
    assert available_threads() == threads


def test_the_environment_decides_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_THREADS", "7")
    assert available_threads() == 7


@pytest.mark.parametrize("text", ["1025", "1" * 5000, "0", "-1", "two", "1.5", " 2", "²"])
def test_a_bad_number_of_threads_is_an_error_that_says_so(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENDML_THREADS", text)
    with pytest.raises(InvalidArgument, match=r"OPENDML_THREADS: .*; a whole number from 1 to 1024 is"):
        Device("cpu")


def test_work_that_one_thread_takes_at_once_asks_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    start = Pool.start

    def started(pool: Pool, workers: int = 0) -> None:
        asked.append(workers)
        start(pool, workers)

    monkeypatch.setattr(Pool, "start", started)
    device = Device("cpu", threads=2)
    table, rows = np.zeros((1, 1, 1000, 300), np.float32), np.zeros((1, 1, 1, 10), np.uint32)
    dml.gather(table, rows, axis=2, index_dimensions=1, device=device)
    assert set(asked) <= {0}
    dml.activation_relu(table, device=device)
    assert 1 in asked


@pytest.mark.parametrize(("feature", "name"), [("fma", "FMA"), ("f16c", "F16C")])
def test_a_processor_without_a_needed_feature_is_refused_by_name(
    feature: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = f"{host_facts().features},".replace(f"+{feature},", f"-{feature},")
    without = replace(host_facts(), features=features, triple="x86_64-unknown-linux-gnu")
    monkeypatch.setattr(machines, "host_facts", lambda: without)
    detected.cache_clear()
    try:
        with pytest.raises(dml.Unsupported, match=f'no {name},.* use the device "reference"'):
            machine()
    finally:
        detected.cache_clear()


@pytest.mark.parametrize("processors", [1, 2, 4096])
def test_few_processors_share_a_large_cache(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    whole = _cache_bytes(3) or 16 * 1024 * 1024
    detected.cache_clear()
    try:
        assert machine().last_cache_bytes == min(whole, processors * 2 * 1024 * 1024)
    finally:
        detected.cache_clear()


FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 3)
Compute = Callable[[int, int, int], None]
WAIT = 60.0
"""Seconds after which a thread that nobody comes to help is given up, so that a test fails and does not
hang."""


class Job:
    """Launches whose items are computed by a Python function of the launch's number, the first item and the
    one behind the last."""

    def __init__(self, compute: Compute, launches: int, items: int, grain: int, threads: int) -> None:
        words = np.zeros(HEADER + LAUNCH * launches + 8, np.int64)
        first = -words.ctypes.data % 64 // words.itemsize
        self.words = words[first : first + HEADER + LAUNCH * launches]
        self.words[0], self.words[THREADS] = launches, threads
        self._functions = [
            FUNCTION(lambda low, high, *_, number=number: compute(number, low, high))
            for number in range(launches)
        ]
        for number, function in enumerate(self._functions):
            at = HEADER + LAUNCH * number
            self.words[at] = ctypes.cast(function, ctypes.c_void_p).value or 0
            self.words[at + FIRST : at + FIRST + 3] = 0, items, grain
            self.words[at + BACKWARDS] = number % 2
        self.workers = pool()
        self.workers.start(threads - 1)

    def dispatch(self) -> None:
        """Computes all."""
        table: Any = (ctypes.c_void_p * 1)()
        native = (ctypes.c_int64 * len(self.words)).from_buffer(self.words.data)
        self.workers.dispatch(native, table)()


def test_every_item_is_computed_once() -> None:
    for threads in (1, 2, 3, 8):
        for items, grain in ((1, 1), (7, 1), (MOST_CLAIMS, 1), (65, 1), (100, 7), (5, 9)):
            found = Counter[tuple[int, int]]()

            def compute(launch: int, low: int, high: int, found: Counter[tuple[int, int]] = found) -> None:
                found.update((launch, item) for item in range(low, high))

            job = Job(compute, 6, items, grain, threads)
            for turn in (1, 2):
                job.dispatch()
                wanted = {(launch, item): turn for launch in range(6) for item in range(items)}
                assert found == wanted


def test_a_launch_has_no_more_claims_than_bits() -> None:
    x = dml.TensorDesc(dml.FLOAT32, (1, 1, 65536, 4096))
    program = program_of(dml.descs.ActivationRelu(x, x))
    (launch,) = schedule(fuse(program).kernels[0])
    assert launch.claims > MOST_CLAIMS
    words = CpuExecutable(compile_plan(program, 2)).instantiate_without_arena()._job.words
    items, grain = words[HEADER + FIRST + 1 : HEADER + FIRST + 3]
    assert items == launch.items
    assert MOST_CLAIMS / 2 < -(-items // grain) <= MOST_CLAIMS


def test_each_thread_begins_with_its_own_share() -> None:
    """In every other launch with the last item of it."""
    threads, launches, items = 3, 20, 8
    meeting = threading.Barrier(threads)
    begun: dict[tuple[int, int], int] = {}

    def compute(launch: int, low: int, high: int) -> None:
        key = launch, threading.get_ident()
        if key not in begun:
            begun[key] = low
            meeting.wait(WAIT)

    Job(compute, launches, items, 1, threads).dispatch()
    shares = [range(3), range(3, 6), range(6, 8)]
    own: dict[int, range] = {}
    for (launch, thread), item in sorted(begun.items()):
        share = own.setdefault(thread, next(each for each in shares if item in each))
        assert item == (share[-1] if launch % 2 else share[0])
    assert len(begun) == launches * threads
    assert {id(each) for each in own.values()} == {id(each) for each in shares}
    assert own[threading.get_ident()] is shares[0]


def test_what_a_thread_is_late_with_is_done_by_another() -> None:
    """The worker does not go on before all others of its share are done."""
    items = 8
    meeting, done = threading.Barrier(2), threading.Semaphore(0)
    computed: dict[int, int] = {}

    def compute(launch: int, low: int, high: int) -> None:
        computed[low] = threading.get_ident()
        if low in (0, 4):
            meeting.wait(WAIT)
        if low == 4:
            for _ in range(items - 1):
                assert done.acquire(timeout=WAIT)
        else:
            done.release()

    Job(compute, 1, items, 1, 2).dispatch()
    caller = threading.get_ident()
    assert [each for each in range(items) if computed[each] != caller] == [4]


def test_who_is_alone_goes_back_and_forth_over_all_items() -> None:
    """The pool has no worker, though the job wants one."""
    found: list[int] = []
    job = Job(lambda launch, low, high: found.append(low), 4, 8, 1, 2)
    job.workers = Pool()
    job.dispatch()
    forth, back = list(range(8)), list(range(7, -1, -1))
    assert found == [*forth, *back, *forth, *back]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_interrupted_dispatch_drops_what_is_left(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other threads wait for the interrupt, and are slow from then on: the rest takes them seconds."""
    launches, items = 500, 9
    caller, is_interrupted, can_end = threading.get_ident(), threading.Event(), False
    computed = Counter[tuple[int, int]]()

    def compute(launch: int, low: int, high: int) -> None:
        computed.update((launch, item) for item in range(low, high))
        if threading.get_ident() != caller:
            is_interrupted.wait(WAIT)
        if not can_end:
            time.sleep(0.002)

    def interrupted(*_: object) -> None:
        is_interrupted.set()
        raise KeyboardInterrupt

    job = Job(compute, launches, items, 2, threads)
    job.words[PATIENCE] = 1
    with monkeypatch.context() as patched:
        patched.setattr(job.workers, "_go_on", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job.dispatch()
    assert set(computed.values()) == {1}
    assert (launches - 1, items - 1) not in computed
    computed.clear()
    can_end = True
    job.words[PATIENCE] = 0
    job.dispatch()
    assert computed == {(launch, item): 1 for launch in range(launches) for item in range(items)}


PAGE = mmap.PAGESIZE


@pytest.fixture
def fenced() -> Iterator[memoryview]:
    """A page between two that cannot be read."""
    memory = mmap.mmap(-1, 3 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for page in (0, 2):
        assert protect(address + page * PAGE, PAGE, 0) == 0
    yield memoryview(memory)[PAGE : 2 * PAGE]
    for page in (0, 2):
        assert protect(address + page * PAGE, PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


@pytest.mark.parametrize("count", [1, 2, 3, 5, 50, 101])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16])
def test_nothing_beyond_a_page_is_read(fenced: memoryview, dtype: type, count: int) -> None:
    size = np.dtype(dtype).itemsize
    for part in (fenced[: count * size], fenced[-count * size :]):
        x: Array = np.frombuffer(part, dtype)
        x[:] = np.arange(count).astype(dtype)
        indices = np.random.default_rng(count).integers(0, count, 77, np.int32)
        np.testing.assert_array_equal(dml.gather_elements(x, indices, axis=0), x[indices])
        backwards = dml.slice1(x, input_window_sizes=[count], input_window_strides=[-1])
        np.testing.assert_array_equal(backwards, x[::-1])
        np.testing.assert_array_equal(dml.element_wise_add(x, x), x + x)
        np.testing.assert_array_equal(dml.element_wise_add(x[::2], x[::2]), x[::2] + x[::2])
        image = x.reshape(1, 1, 1, count)
        window = {"window_size": [1, 3], "strides": [1, 2], "start_padding": [0, 9], "end_padding": [0, 9]}
        greatest = dml.max_pooling(image, **window)[0, 0, 0, 4:]
        least = np.finfo(dtype).min if dtype is np.float16 else np.iinfo(dtype).min
        padded: Array = np.concatenate([[least], x, [least]]).astype(dtype)
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3)[::2]
        np.testing.assert_array_equal(greatest[: len(windows)], np.max(windows, axis=1))
        # Results of an odd number of elements end at the page, too.
        copy = x.copy()
        dml.element_wise_add(copy, copy, out=x)
        np.testing.assert_array_equal(x, copy + copy)
