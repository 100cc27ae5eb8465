"""Caches that grow in place on a CUDA device: kernels run on the processor, over arrays of a fake device."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

import opendml as dml
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.targets.cuda import job, planning
from opendml.targets.cuda.device_array import DeviceArray
from opendml.targets.cuda.driver import CudaDevice
from opendml.targets.cuda.executable import CudaInstance
from opendml.targets.cuda.planning import compiled_program
from tests.cuda.fake import FakeArray, FakeDevice, install
from tools.cuda_emulator import COMPILER

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler"),
    pytest.mark.usefixtures("emulated_kernels"),
]
SIZE = 4


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, compiled_program)


def cached(*, joined: bool = True) -> dml.Model:
    """A model with rows of a cache: `total` are their sums, times two."""
    graph = dml.Graph()
    past = graph.input("past", dml.FLOAT32, [2, "length", SIZE])
    new = graph.input("new", dml.FLOAT32, [2, "count", SIZE])
    rows = dml.join([past, new] if joined else [new, past], axis=1)
    total = dml.reduce(rows * 2.0, function="SUM", axes=[1])
    return graph.compile({"present": rows, "total": total}, device="cuda")


def rows(count: int, value: float) -> Array:
    return np.full((2, count, SIZE), value, np.float32)


def test_outputs_in_the_memory_of_inputs_have_only_new_rows_written() -> None:
    """Rows that a run may not write are poisoned after it has read them: they come back as they were."""
    model, buffer, total = cached(), np.full((2, 50, SIZE), np.nan, np.float32), np.empty((2, 1, SIZE), "f4")
    buffer[:, :20] = rows(20, 1)
    for length, count in ((20, 1), (21, 1), (22, 3), (25, 1)):
        buffer[:, :length] *= 2  # A run reads what it finds.
        before, end = buffer.copy(), length + count
        model.run(
            {"past": FakeArray(buffer[:, :length]), "new": FakeArray(rows(count, length))},
            {"present": FakeArray(buffer[:, :end]), "total": FakeArray(total)},
        )
        assert (buffer[:, length:end] == length).all()
        sums = before[:, :length].sum(axis=1, keepdims=True) + count * length
        assert np.array_equal(total, 2 * sums)
        buffer[:, length:end] = np.nan
        assert np.array_equal(buffer, before, equal_nan=True)
        buffer[:, length:end] = 1


def test_no_kernel_copies_the_cache_onto_itself() -> None:
    """Writing the same rows again would change nothing that a test could see."""
    model = cached()
    buffer, total = np.zeros((2, 50, SIZE), np.float32), np.empty((2, 1, SIZE), np.float32)
    buffer[:, :20] = 1
    outputs = {"present": FakeArray(buffer[:, :21]), "total": FakeArray(total)}
    model.run({"past": FakeArray(buffer[:, :20]), "new": FakeArray(rows(1, 2))}, outputs)
    (traces,) = model._traces.values()  # type: ignore[attr-defined]
    (usual,) = traces
    in_place = usual.in_place({"present": "past"})
    assert in_place is not None
    past, present = 0, 2
    copies = [
        [
            kernel
            for kernel in each.maker.traced.kernels.kernels
            if past in {load.buffer for load in kernel.loads}
            and present in {store.buffer for store in kernel.stores}
        ]
        for each in (usual, in_place.traced)
    ]
    assert [len(each) for each in copies] == [1, 0]


def test_attention_over_a_cache_needs_no_code_for_new_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, sizes = dml.Graph(), (1, 2, 1, 16)
    q, k, v = (graph.input(name, dml.FLOAT32, sizes) for name in "qkv")
    past = [graph.input(f"past_{name}", dml.FLOAT32, [1, 2, "length", 16]) for name in "kv"]
    keys, values = (dml.join([old, new], axis=2) for old, new in zip(past, (k, v), strict=True))
    scores = dml.gemm(q, keys, trans_b="TRANSPOSE", alpha=0.25)
    y = dml.gemm(dml.activation_softmax1(scores, axes=[3]), values)
    model = graph.compile({"y": y, "present_k": keys, "present_v": values}, device="cuda")
    compiled = list[object]()
    cubins_of: Any = planning.cubins_of

    def counted(patterns: Sequence[object], architecture: str) -> Any:
        compiled.extend(patterns)
        return cubins_of(patterns, architecture)

    monkeypatch.setattr(planning, "cubins_of", counted)
    generator = np.random.default_rng(1)
    buffers = generator.standard_normal((2, 1, 2, 80, 16)).astype(np.float32)
    for length in (40, 41, 50, 57):
        del compiled[:]
        given = {name: generator.standard_normal(sizes).astype(np.float32) for name in "qkv"}
        found = np.empty(sizes, np.float32)
        model.run(
            {name: FakeArray(each) for name, each in given.items()}
            | {
                f"past_{name}": FakeArray(each[:, :, :length])
                for name, each in zip("kv", buffers, strict=True)
            },
            {"y": FakeArray(found)}
            | {
                f"present_{name}": FakeArray(each[:, :, : length + 1])
                for name, each in zip("kv", buffers, strict=True)
            },
        )
        wide = buffers[:, :, :, : length + 1].astype(np.float64)
        weights = np.exp(given["q"] @ wide[0].swapaxes(2, 3) / 4)
        wanted = weights / weights.sum(axis=3, keepdims=True) @ wide[1]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert np.array_equal(buffers[0, :, :, length], given["k"][:, :, 0])
        assert bool(compiled) is (length == 40)


def test_sizes_that_return_to_the_shared_memory_of_before_find_their_launchers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [2, "length", SIZE])
    model = graph.compile({"y": dml.activation_relu(x)}, device="cuda")
    made, usual, decide = list[object](), job.launcher, job.CudaJob._decide

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return usual(*arguments)

    def decided(each: job.CudaJob) -> None:
        decide(each)
        each._shared = each._shared + more[-1]

    monkeypatch.setattr(job, "launcher", counted)
    monkeypatch.setattr(job.CudaJob, "_decide", decided)
    counts, more = list[int](), list[int]()
    for length, bytes in (600, 0), (700, 0), (1000, 512), (520, 0), (900, 512), (650, 512), (990, 0):
        del made[:]
        more.append(bytes)
        given = np.random.default_rng(length).standard_normal((2, length, SIZE), np.float32)
        found = np.full_like(given, np.nan)
        model.run({"x": FakeArray(given)}, {"y": FakeArray(found)})
        np.testing.assert_array_equal(found, np.maximum(given, 0))
        counts.append(len(made))
    # The first two lengths have instances of their own.
    assert counts == [1, 1, 1, 0, 0, 0, 0]


def test_a_step_makes_only_the_launches_again_that_sizes_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels before those that read the cache have one size."""
    graph = dml.Graph()
    past = graph.input("past", dml.FLOAT32, [2, "length", SIZE])
    x = graph.input("x", dml.FLOAT32, [2, 1, SIZE])
    scale = dml.reduce(x, function="SUM", axes=[2])
    new = dml.activation_softmax1(x * scale, axes=[2])
    rows_now = dml.join([past, new], axis=1)
    model = graph.compile(
        {
            "present": rows_now,
            "total": dml.reduce(rows_now, function="SUM", axes=[1]),
            "new": new,
            "other": dml.activation_softmax1(x, axes=[0]),
            "wide": dml.activation_relu(rows_now),
        },
        device="cuda",
    )
    made, usual = list[object](), job.launcher

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return usual(*arguments)

    monkeypatch.setattr(job, "launcher", counted)
    generator = np.random.default_rng(1)
    buffer = generator.standard_normal((2, 1000, SIZE)).astype(np.float32)
    counts = list[int]()
    outputs = {name: np.empty((2, 1, SIZE), np.float32) for name in ("total", "new", "other")}
    given = generator.standard_normal((2, 1, SIZE)).astype(np.float32)
    for length in (600, 601, 602, 603, 604, 900):
        del made[:]
        presents = {"present": FakeArray(buffer[:, : length + 1])}
        outputs["wide"] = np.empty((2, length + 1, SIZE), np.float32)
        model.run(
            {"past": FakeArray(buffer[:, :length]), "x": FakeArray(given)},
            presents | {name: FakeArray(each) for name, each in outputs.items()},
        )
        wide = given.astype(np.float64) * given.sum(axis=2, keepdims=True, dtype=np.float64)
        wanted = np.exp(wide - wide.max(axis=2, keepdims=True))
        wanted /= wanted.sum(axis=2, keepdims=True)
        np.testing.assert_allclose(outputs["new"], wanted, rtol=1e-5)
        assert np.array_equal(buffer[:, length], outputs["new"][:, 0])
        total = buffer[:, : length + 1].sum(axis=1, keepdims=True, dtype=np.float64)
        np.testing.assert_allclose(outputs["total"], total, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(outputs["wide"], np.maximum(buffer[:, : length + 1], 0))
        counts.append(len(made))
    # The first two lengths have instances of their own. With the last one, the grid of `wide` alone grows.
    assert counts[:5] == [4, 4, 0, 0, 0]
    assert counts[5] <= 1


def test_sizes_of_host_arrays_share_an_instance_until_they_come_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [2, "length", SIZE])
    model = graph.compile({"y": dml.activation_softmax1(x * 2.0, axes=[2])}, device="cuda")
    made, usual = list[int](), CudaInstance.__init__

    def counted(*arguments: Any, **named: Any) -> None:
        made.append(1)
        usual(*arguments, **named)

    monkeypatch.setattr(CudaInstance, "__init__", counted)
    counts, generator = list[int](), np.random.default_rng(1)
    for length in (40, 48, 56, 56, 48, 56, 48, 56, 48, 56, 48, 56):
        given = generator.standard_normal((2, length, SIZE)).astype(np.float32)
        wide = 2 * given.astype(np.float64)
        wanted = np.exp(wide - wide.max(axis=2, keepdims=True))
        found = model(x=given)["y"]
        np.testing.assert_allclose(found, wanted / wanted.sum(axis=2, keepdims=True), rtol=1e-5)
        counts.append(len(made))
    # The first size has an instance of its own, and so has one that comes for the fourth time.
    assert counts[1:] == [2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3]


def test_an_output_that_does_not_begin_with_its_input_is_copied() -> None:
    model, buffer, total = cached(joined=False), rows(30, 1), np.empty((2, 1, SIZE), np.float32)
    model.run(
        {"past": FakeArray(buffer[:, :20]), "new": FakeArray(rows(1, 2))},
        {"present": FakeArray(buffer[:, :21]), "total": FakeArray(total)},
    )
    assert buffer[0, :, 0].tolist() == [2.0, *[1.0] * 29]
    assert (total == 44).all()


def test_memory_that_is_shared_otherwise_is_refused() -> None:
    model, buffer, total = cached(), rows(30, 1), np.zeros((2, 1, SIZE), np.float32)
    with pytest.raises(dml.InvalidArgument, match="must begin with it"):
        model.run(
            {"past": FakeArray(buffer[:, 1:21]), "new": FakeArray(rows(1, 2))},
            {"present": FakeArray(buffer[:, :21]), "total": FakeArray(total)},
        )
    assert (buffer == 1).all()
    assert (total == 0).all()


@pytest.mark.parametrize("library", ["numpy", "fakelib"])
def test_a_state_keeps_its_rows_on_the_device(library: str) -> None:
    def given(array: Array) -> Array | FakeArray:
        return array if library == "numpy" else FakeArray(array)

    def content(array: Array | FakeArray) -> Array:
        assert isinstance(array, np.ndarray if library == "numpy" else FakeArray)
        return array if isinstance(array, np.ndarray) else array.values

    state = cached().state(capacity=4)
    outputs = state.run({"past": given(rows(3, 1)), "new": given(rows(1, 2))})
    wanted = np.concatenate([rows(3, 1), rows(1, 2)], axis=1)
    for step, count in enumerate([1, 2, 70, 1], 3):
        outputs = state.run({"new": given(rows(count, step))})
        wanted = np.concatenate([wanted, rows(count, step)], axis=1)
        kept = state["past"]
        assert isinstance(kept, DeviceArray)
        assert np.array_equal(kept.to_host(), wanted)
        assert np.array_equal(content(outputs["total"]), 2 * wanted.sum(axis=1, keepdims=True))
    other = copy.copy(state)
    other.run({"new": given(rows(1, 5))})
    assert np.array_equal(state["past"].to_host(), wanted)
    assert state.length == other.length - 1 == wanted.shape[1]


def test_a_state_that_begins_with_one_row_grows_in_place() -> None:
    """A cache of one row has plain sizes, but the strides of its buffer."""
    graph = dml.Graph()
    past = graph.input("past", dml.FLOAT32, [1, 2, "length", SIZE])
    new = graph.input("new", dml.FLOAT32, [1, 2, "count", SIZE])
    keys = dml.join([past, new], axis=2)
    total = dml.reduce(keys * 2.0, function="SUM", axes=[2])
    state = graph.compile({"present": keys, "total": total}, device="cuda").state()
    count = 0
    for step in (1, 17, 1, 5):
        rows = np.full((1, 2, step, SIZE), 1, np.float32)
        given = {"new": rows} if count else {"past": rows[:, :, :1], "new": rows}
        count += step + (0 if count else 1)
        assert (state.run(given)["total"] == 2 * count).all()
        assert state["past"].to_host().shape == (1, 2, count, SIZE)


def test_other_outputs_of_a_state_are_copied() -> None:
    state = cached(joined=False).state()
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    for _ in range(3):
        total = state.run({"new": rows(1, 3)})["total"]
    assert state["past"].to_host()[0, :, 0].tolist() == [3, 3, 3, 2, 1, 1]
    assert (total == 26).all()


def test_a_part_of_a_device_array_is_written_and_read_where_its_elements_lie() -> None:
    device = cast(CudaDevice, FakeDevice(0))
    whole = DeviceArray(device, (2, 5, SIZE), ScalarType.FLOAT32)
    before, after = rows(5, 2), rows(3, 2)
    whole.copy_from(before)
    part = whole.part(1, 3)
    np.testing.assert_array_equal(part.to_host(), before[:, :3])
    part.copy_from(after)
    np.testing.assert_array_equal(whole.to_host(), np.concatenate([after, before[:, 3:]], axis=1))
    with pytest.raises(dml.InvalidArgument, match=r"160 bytes given, float32 \[2, 3, 4\] has 96"):
        part.copy_from(before)
