"""Caches that grow in place: states of models, and outputs in the memory of inputs."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.runtime.graphs.caches import ModelState
from opendml.runtime.graphs.named_model import NamedModel
from opendml.runtime.graphs.plan_maker import DimensionRanges, PlanMaker
from opendml.runtime.memory.host_array import Array
from tests.processes import has_fork, succeeds_in_child

SIZE = 4


def cached(type: dml.TensorDataType | str = dml.FLOAT32, *, joined: bool = True) -> dml.Model:
    """A model with rows of a cache: `total` are their sums, times two."""
    graph = dml.Graph()
    past = graph.input("past", type, [2, "length", SIZE])
    new = graph.input("new", type, [2, "count", SIZE])
    rows = dml.join([past, new] if joined else [new, past], axis=1)
    total = dml.reduce(dml.cast(rows, output_type="FLOAT32") * 2.0, function="SUM", axes=[1])
    if type == "bfloat16":
        rows = rows.rounded()
    return graph.compile({"present": rows, "total": total})


def rows(count: int, value: float, type: type = np.float32) -> Array:
    return np.full((2, count, SIZE), value, type)


@pytest.mark.parametrize("type", ["FLOAT32", "FLOAT16", "INT8", "bfloat16"])
def test_a_state_grows_by_new_rows(type: str) -> None:
    kind = {"FLOAT16": np.float16, "INT8": np.int8, "bfloat16": np.float32}.get(type, np.float32)
    if type == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        kind = ml_dtypes.bfloat16
    state = cached("bfloat16" if type == "bfloat16" else getattr(dml, type)).state(capacity=4)
    total = state.run({"past": rows(3, 1, kind), "new": rows(1, 2, kind)})["total"]
    wanted = np.concatenate([rows(3, 1, kind), rows(1, 2, kind)], axis=1)
    for step, count in enumerate([1, 2, 1, 70, 1, 1, 5, 130, 1], 3):
        total = state.run({"new": rows(count, step, kind)})["total"]
        wanted = np.concatenate([wanted, rows(count, step, kind)], axis=1)
        assert np.array_equal(state["past"].astype(np.float32), wanted.astype(np.float32))
        assert np.array_equal(total, 2 * wanted.astype(np.float32).sum(axis=1, keepdims=True))
    assert state.length == wanted.shape[1]
    state.clear()
    assert state.length == 0
    state.run({"past": rows(2, 5, kind), "new": rows(1, 6, kind)})
    assert state["past"][0, :, 0].tolist() == [5, 5, 6]


def test_a_state_refuses_other_threads_and_handlers_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    state, errors = cached().state(), list[Exception]()
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    usual = state._run

    def misused(use: Callable[[], object]) -> None:
        try:
            use()
        except dml.InvalidArgument as error:
            errors.append(error)

    def run(*given: Any) -> Mapping[str, Any]:
        for use in (lambda: state.run({"new": rows(1, 9)}), state.clear):
            misused(use)
            thread = threading.Thread(target=misused, args=(use,))
            thread.start()
            thread.join()
        return usual(*given)

    monkeypatch.setattr(state, "_run", run)
    state.run({"new": rows(1, 3)})
    assert [str(each) for each in errors] == [
        "state: a run of it has not ended; each thread needs a state of its own"
    ] * 4
    monkeypatch.undo()
    state.run({"new": rows(1, 4)})
    assert state["past"][0, :, 0].tolist() == [1, 1, 2, 3, 4]
    copy.copy(state).clear()
    assert state.length == 5


def test_an_interrupt_while_a_state_is_taken_leaves_it_free() -> None:
    class Interrupting(dict[int, object]):
        def setdefault(self, key: int, default: object = None) -> object:
            super().setdefault(key, default)
            raise KeyboardInterrupt

    state: Any = cached().state()
    state._users = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        state.clear()
    state._users = dict(state._users)
    state.clear()


def test_an_interrupt_while_caches_are_kept_leaves_all_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = dml.Graph()
    new = graph.input("new", dml.FLOAT32, [1, "count", SIZE])
    pasts = {name: graph.input(f"past_{name}", dml.FLOAT32, [1, "length", SIZE]) for name in "ab"}
    model = graph.compile({f"present_{name}": dml.join([past, new], axis=1) for name, past in pasts.items()})
    state, row = model.state(), rows(1, 1)[:1]
    state.run({"past_a": row, "past_b": row, "new": row})
    address, calls = state._cache_arrays.address, list[Array]()

    def interrupted(array: Array) -> int:
        calls.append(array)
        if len(calls) == 3:  # The first cache is kept already.
            raise KeyboardInterrupt
        return address(array)

    with monkeypatch.context() as block:
        block.setattr(state._cache_arrays, "address", interrupted, raising=False)
        with pytest.raises(KeyboardInterrupt):
            state.run({"new": row})
    assert len({state[name].shape for name in ("past_a", "past_b")}) == 1
    state.run({"new": row})


@has_fork
def test_a_state_serves_again_in_a_child_after_clear_if_the_fork_cut_off_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = cached().state()
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    usual, began, may_end = state._run, threading.Event(), threading.Event()

    def run(*given: Any) -> Mapping[str, Any]:
        began.set()
        may_end.wait()
        return usual(*given)

    def serves_again() -> bool:
        monkeypatch.undo()
        with pytest.raises(dml.InvalidArgument, match="a fork cut off a run of it; call `clear` before"):
            state.run({"new": rows(1, 9)})
        state.clear()
        state.run({"past": rows(1, 7), "new": rows(1, 8)})
        return bool(state["past"][0, :, 0].tolist() == [7, 8])

    monkeypatch.setattr(state, "_run", run)
    thread = threading.Thread(target=state.run, args=({"new": rows(1, 3)},))
    thread.start()
    began.wait()
    try:
        assert succeeds_in_child(serves_again)
    finally:
        may_end.set()
        thread.join()
    assert state["past"][0, :, 0].tolist() == [1, 1, 2, 3]


Planned = list[tuple[DimensionRanges, Mapping[str, int]]]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """The ranges and the sizes for which plans are made."""
    found, plan = Planned(), PlanMaker.plan

    def noted(
        maker: PlanMaker, ranges: DimensionRanges, hints: Mapping[str, int], sizes: Mapping[str, int]
    ) -> Any:
        found.append((ranges, sizes))
        return plan(maker, ranges, hints, sizes)

    monkeypatch.setattr(PlanMaker, "plan", noted)
    return found


def with_state(planned: Planned) -> tuple[NamedModel, ModelState]:
    """A model and a state that has had a run, whose plans are not noted."""
    model = cached()
    assert isinstance(model, NamedModel)
    state = model.state()
    state.run({"past": rows(3, 1), "new": rows(3, 1)})
    del planned[:]
    return model, state


def require_own_ranges(planned: Planned) -> None:
    for ranges, sizes in planned:
        assert all(least <= sizes[name] <= greatest for name, (least, greatest) in ranges.items())


def run_during_a_plan(monkeypatch: pytest.MonkeyPatch, model: NamedModel, run: Callable[[], None]) -> Array:
    """Call a model with sizes of a new bucket. While it makes their plan, do something else."""
    (traces,) = model._traces.values()
    (traced,) = traces
    program: Any = traced.maker.traced
    compiled = program.compile

    def interrupted() -> Any:
        monkeypatch.setattr(program, "compile", compiled)
        run()
        return compiled()

    monkeypatch.setattr(program, "compile", interrupted)
    total: Array = model(past=rows(40, 2), new=rows(3, 1))["total"]
    return total


def test_a_state_and_a_call_in_another_thread_make_plans_in_turns(
    monkeypatch: pytest.MonkeyPatch, planned: Planned
) -> None:
    """Both graphs have the sizes of one trace, which has the ranges of one bucket while it makes a plan."""
    (model, state), totals = with_state(planned), list[Array]()

    def run() -> None:
        totals.append(state.run({"past": rows(200, 1), "new": rows(1, 5)})["total"])

    thread = threading.Thread(target=run)

    def begin() -> None:
        thread.start()
        thread.join(0.2)  # It waits, unless it plans at the same time.

    total = run_during_a_plan(monkeypatch, model, begin)
    thread.join()
    assert (total == 2 * 83).all()
    assert (totals[0] == 2 * 205).all()
    assert {tuple(sizes.values())[:2] for _, sizes in planned} == {(40, 3), (200, 1)}
    require_own_ranges(planned)


def test_a_handler_runs_a_model_whose_plan_it_interrupts(
    monkeypatch: pytest.MonkeyPatch, planned: Planned
) -> None:
    (model, state), totals = with_state(planned), list[Array]()

    def handle() -> None:
        totals.append(model(past=rows(200, 1), new=rows(1, 5))["total"])
        totals.append(state.run({"past": rows(300, 1), "new": rows(1, 5)})["total"])

    total = run_during_a_plan(monkeypatch, model, handle)
    assert (total == 2 * 83).all()
    assert [each.flat[0] for each in totals] == [2 * 205, 2 * 305]
    require_own_ranges(planned)


def test_a_state_that_was_warmed_up_plans_nothing(caplog: pytest.LogCaptureFixture) -> None:
    model = cached()
    state = model.state()
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    with caplog.at_level(logging.DEBUG, "opendml"):
        state.warm_up({"length": [8, 70], "count": 1})
        assert (
            "planned a graph for sizes {'length': 8, 'capacity of caches': 64}, which no plan" in caplog.text
        )
        caplog.clear()
        for length in (9, 71):
            state.run({"past": rows(length, 3), "new": rows(1, 4)})
        assert "planned" not in caplog.text
    assert state.length == 72
    with pytest.raises(dml.InvalidArgument, match="warm_up: length: 0; a size from 1 on"):
        state.warm_up({"length": 0, "count": 1})


def test_only_new_rows_of_a_state_are_written() -> None:
    state = cached().state(capacity=100)
    state.run({"past": rows(20, 1), "new": rows(1, 2)})
    state.run({"new": rows(1, 3)})
    buffer = state["past"].base
    assert buffer is not None
    state["past"][:] = 7
    buffer[:, 22:] = np.nan
    total = state.run({"new": rows(1, 9)})["total"]
    assert state["past"][0, :, 0].tolist() == [7] * 22 + [9]
    assert (total == 2 * (22 * 7 + 9)).all()
    assert np.isnan(buffer[:, 23:]).all()


def test_outputs_in_the_memory_of_inputs_have_only_new_rows_written() -> None:
    model, buffer, total = (
        cached(),
        np.full((2, 50, SIZE), np.nan, np.float32),
        np.empty((2, 1, SIZE), np.float32),
    )
    buffer[:, :20] = rows(20, 1)
    for length in range(20, 48):
        buffer[:, :length] *= 2  # What a run only reads.
        before = buffer.copy()
        model.run(
            {"past": buffer[:, :length], "new": rows(1, length)},
            {"present": buffer[:, : length + 1], "total": total},
        )
        assert (buffer[:, length] == length).all()
        buffer[:, length] = np.nan
        assert np.array_equal(buffer, before, equal_nan=True)
        assert np.array_equal(total, 2 * (before[:, :length].sum(axis=1, keepdims=True) + length))
        buffer[:, length] = 1
        buffer[:, : length + 1] /= 2


def test_memory_of_pytorch_grows_in_place() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    model, buffer, total = cached(), torch.full((2, 50, SIZE), 5.0), torch.empty(2, 1, SIZE)
    for length in (20, 21, 22):
        buffer[:, :length] += 1  # What a run only reads.
        before = buffer.clone()
        new = torch.full((2, 1, SIZE), float(length))
        model.run(
            {"past": buffer[:, :length], "new": new}, {"present": buffer[:, : length + 1], "total": total}
        )
        assert torch.equal(buffer[:, length], new[:, 0])
        assert torch.equal(total, 2 * (before[:, :length].sum(dim=1, keepdim=True) + length))
        buffer[:, length] = before[:, length]
        assert torch.equal(buffer, before)
    state = model.state()
    outputs = state.run({"past": buffer[:, :3], "new": buffer[:, :1]})
    assert isinstance(outputs["total"], torch.Tensor)
    assert state.length == 4


def test_plans_serve_states_of_all_capacities() -> None:
    """Growth makes no plan of its own: the strides of buffers are words of launches. The other plan is for
    packed tensors, which a new trace makes."""
    model = cached()
    assert isinstance(model, NamedModel)
    lengths = [30, 25, 28]
    for capacity in (32, 60, 62, 50):
        buffer = np.zeros((2, capacity, SIZE), np.float32)
        for length in lengths:
            outputs = {"present": buffer[:, : length + 1], "total": np.empty((2, 1, SIZE), np.float32)}
            model.run({"past": buffer[:, :length], "new": rows(1, 1)}, outputs)
    (traces,) = model._traces.values()
    assert [traced.all_plan_count for traced in traces] == [2]


def test_another_output_is_copied_where_the_state_keeps_it() -> None:
    """An output that does not begin with the input is computed elsewhere, and copied."""
    state = cached(joined=False).state()
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    for _ in range(3):
        total = state.run({"new": rows(1, 3)})["total"]
    assert state["past"][0, :, 0].tolist() == [3, 3, 3, 2, 1, 1]
    assert (total == 2 * 13).all()


Buffer = Callable[[Array], tuple[Array, Array]]


@pytest.mark.parametrize(
    ("views", "problem"),
    [
        (
            lambda buffer: (buffer[:, :10], buffer[:, :10]),
            r"sizes \[2, 10, 4\]; \[2, 11, 4\] are",
        ),
        (
            lambda buffer: (buffer[:, :10], buffer[:, :12]),
            r"present.*sizes \[2, 12, 4\]; must be \[2, 11, 4\]",
        ),
        (lambda buffer: (buffer[:, 1:11], buffer[:, :11]), "must begin with it"),
        (lambda buffer: (buffer[:, :20:2], buffer[:, :11]), "must begin with it"),
        (lambda buffer: (buffer.reshape(-1)[:80].reshape(2, 10, 4), buffer[:, :11]), "must begin with it"),
    ],
    ids=["same", "other size", "behind", "every other", "other strides"],
)
def test_memory_that_is_shared_otherwise_is_one_error_and_nothing_is_written(
    views: Buffer, problem: str
) -> None:
    buffer = np.ones((2, 30, SIZE), np.float32)
    past, present = views(buffer)
    total = np.zeros((2, 1, SIZE), np.float32)
    with pytest.raises(dml.InvalidArgument, match=problem):
        cached().run({"past": past, "new": rows(1, 2)}, {"present": present, "total": total})
    assert (buffer == 1).all()
    assert (total == 0).all()


@pytest.mark.parametrize("fault", ["read-only", "two outputs"])
def test_outputs_beside_a_cache_are_checked_too(fault: str) -> None:
    buffer, other = np.ones((2, 30, SIZE), np.float32), np.zeros((2, 1, SIZE), np.float32)
    total = buffer[:, 10:11] if fault == "two outputs" else other
    total.flags.writeable = fault != "read-only"
    outputs = {"present": buffer[:, :11], "total": total}
    with pytest.raises(dml.InvalidArgument, match="read-only" if fault == "read-only" else "share memory"):
        cached().run({"past": buffer[:, :10], "new": rows(1, 2)}, outputs)
    assert (buffer == 1).all()
    assert (other == 0).all()


def test_a_copied_state_has_rows_of_its_own() -> None:
    state = cached().state(capacity=np.int64(8))
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    other = copy.copy(state)
    state.run({"new": rows(1, 3)})
    other.run({"new": rows(1, 4)})
    assert state["past"][0, :, 0].tolist() == [1, 1, 2, 3]
    assert other["past"][0, :, 0].tolist() == [1, 1, 2, 4]


def test_a_state_without_memory_is_one_error() -> None:
    state = cached().state(capacity=10**15)
    with pytest.raises(dml.Unsupported, match="'past': no memory for sizes"):
        state.run({"past": rows(2, 1), "new": rows(1, 2)})
    assert state.length == 0


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda model: model.state(5), "pairs: 5; must be a dict"),
        (lambda model: model.state({"present": "old"}), "input 'old' is unknown; the model has past, new"),
        (
            lambda model: model.state({"next": "past"}),
            "output 'next' is unknown; the model has present, total",
        ),
        (lambda model: model.state({"present": "past", "total": "past"}), "input 'past' is given twice"),
        (lambda model: model.state(capacity=-1), "capacity: -1; must be an integer, 0 or more"),
        (lambda model: model.state({"total": "past"}).run({}), "'past' is missing; the first run needs it"),
        (lambda model: model.state().run(None), "inputs: None; must be a dict of arrays by their names"),
        (
            lambda model: model.state().run([("new", 1)]),
            "inputs: .*; must be a dict of arrays by their names",
        ),
        (lambda model: model.state()["past"], "'past': no such cache, or nothing has run"),
    ],
)
def test_wrong_states_are_refused(make: Callable[[dml.Model], object], problem: str) -> None:
    with pytest.raises(dml.InvalidArgument, match=problem):
        make(cached())


def test_states_need_a_size_that_changes() -> None:
    graph = dml.Graph()
    x = graph.input("past", dml.FLOAT32, [2, 3])
    with pytest.raises(dml.InvalidArgument, match="no named dimensions"):
        graph.compile({"present": x + 1.0}).state()
    y = dml.Graph().input("past", dml.FLOAT32, [2, "n"])
    with pytest.raises(dml.InvalidArgument, match="must differ in one size, which the input leaves open"):
        y.graph.compile({"present": y + 1.0}).state()


@pytest.mark.parametrize(
    "wrong",
    [
        {"past": np.ones((2, 5, SIZE)), "new": rows(1, 1)},
        {"past": np.ones(3, np.float32), "new": rows(1, 1)},
        {"past": rows(7, 9), "new": rows(1, 1)[:1]},
        {"past": rows(7, 9)},
    ],
    ids=["type", "rank", "other input", "missing input"],
)
def test_a_run_that_fails_leaves_a_state_as_it_was(wrong: dict[str, Array]) -> None:
    state = cached().state()
    state.run({"past": rows(2, 1), "new": rows(1, 2)})
    with pytest.raises(dml.InvalidArgument):
        state.run(wrong)
    assert state["past"][0, :, 0].tolist() == [1, 1, 2]
    state.run({"new": rows(1, 3)})
    assert state["past"][0, :, 0].tolist() == [1, 1, 2, 3]
    state.clear()
    with pytest.raises(dml.InvalidArgument, match="'past' is missing; the first run needs it"):
        state.run({"new": rows(1, 3)})
