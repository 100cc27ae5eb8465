"""ONNX models that another process has run: neither parsed, nor traced, fused or scheduled again."""

from __future__ import annotations

import ast
import errno
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import opendml as dml
from opendml.compiler import stored_kernels
from opendml.folders import Folder
from opendml.frontends.onnx import known, known_runs
from opendml.frontends.onnx.evaluate import EvaluatorWarning
from opendml.frontends.onnx.trace import Tracer
from opendml.runtime.graphs import initialization
from opendml.runtime.graphs.plan_maker import PlanMaker
from opendml.targets import object_cache
from opendml.targets.cpu import engine, linker, machine_code, planning
from opendml.targets.cpu.compile_workers import WorkerPool
from opendml.targets.cpu.executable import CpuExecutable, CpuInstance
from opendml.targets.cpu.native import FUNCTIONS
from tests.calls import note_calls
from tests.known_work import NOTHING, Work
from tests.processes import has_fork, succeeds_in_child

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(28)
X = RANDOM.standard_normal((3, 48), np.float32)
W = RANDOM.standard_normal((48, 40), np.float32)
V = RANDOM.standard_normal((40, 32), np.float32)
TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 48] x) => (float[n, 32] y, bool[n, 32] positive) {
  h = MatMul (x, w)
  r = Relu (h)
  t = Constant <value_ints = [1, 0]> ()
  BODY
  zero = Constant <value_float = 0.0> ()
  positive = Greater (y, zero)
}
"""


def model(body: str = "y = MatMul (r, v)", **weights: Array) -> bytes:
    """Return a model of two products with weights in its initializers."""
    read = onnx.parser.parse_model(TEXT.replace("BODY", body))
    for name, array in ({"w": W, "v": V} | weights).items():
        read.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return bytes(read.SerializeToString())


def folded(**weights: Array) -> bytes:
    """Return such a model, whose second product has weights computed from an initializer."""
    return model("f = Mul (v, v)\n  y = MatMul (r, f)", **weights)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(tmp_path, monkeypatch, planning, "schedule")


def results(source: Any, *xs: Array, **options: Any) -> list[bytes]:
    loaded = dml.onnx.load(source, **options)
    return [each.tobytes() for x in xs for each in loaded(x).values()]


@pytest.mark.parametrize("kind", ["bytes", "path"])
@pytest.mark.parametrize("make", [model, folded])
def test_a_known_model_is_neither_parsed_nor_traced(
    make: Callable[[], bytes], kind: str, work: Work, tmp_path: Path
) -> None:
    source: Any = make()
    if kind == "path":
        (tmp_path / "model.onnx").write_bytes(source)
        source = tmp_path / "model.onnx"
    expected, first = work.of(lambda: results(source, X, X[:1], X))
    assert first["parsed"] == 1
    assert first["fused"] > 0
    found, second = work.of(lambda: results(source, X, X[:1], X))
    assert second == NOTHING
    assert found == expected


@pytest.mark.usefixtures("compile_workers_start")
def test_workers_start_before_a_new_model_is_traced(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    monkeypatch.setenv("OPENDML_THREADS", "2")
    note_calls(monkeypatch, events, Tracer, "steps")
    note_calls(monkeypatch, events, WorkerPool, "start")
    note_calls(monkeypatch, events, WorkerPool, "close")
    for module in (engine, machine_code):
        note_calls(monkeypatch, events, module, "compile_object")
    monkeypatch.setattr(machine_code, "_runtime", {})
    source = model()
    expected, _ = work.of(lambda: results(source, X))
    assert set(machine_code._runtime) == set(FUNCTIONS)
    assert events.index("start") < events.index("steps")
    assert events[-1] == "close"
    assert "compile_object" not in events  # Workers compile all, and the native runtime.
    events.clear()
    assert work.of(lambda: results(source, X))[0] == expected
    assert events == []


BRANCHES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 48] x, int64 rate, bool[1] doubles) => (float[n, 48] y) {
  known = Constant <value_int = 16000> ()
  is_known = Equal (rate, known)
  scaled = If (is_known) <
    then_branch = f () => (float[n, 48] a) { a = Exp (x) },
    else_branch = g () => (float[n, 48] b) {
      number = Cast <to = 1> (rate)
      b = Mul (x, number)
    }
  >
  y = If (doubles) <
    then_branch = h () => (float[n, 48] c) { c = Add (scaled, scaled) },
    else_branch = k () => (float[n, 48] d) { d = Identity (scaled) }
  >
}
"""


def branched(x: Array, rate: int, doubles: bool) -> Array:
    with np.errstate(over="ignore"):
        scaled = np.exp(x) if rate == 16000 else x * np.float32(rate)
    return np.asarray(2 * scaled if doubles else scaled)


@pytest.mark.parametrize("rows", ["n", "3"])
def test_numbers_of_inputs_that_decide_what_runs_are_told_apart(rows: str, work: Work) -> None:
    source = onnx.parser.parse_model(BRANCHES.replace("[n,", f"[{rows},")).SerializeToString()
    rates = [16000, 8000, 0, 1, -3, 2**40, 16000, 16001, 1]

    def run() -> list[bytes]:
        loaded, found = dml.onnx.load(source), list[bytes]()
        for rate in rates:
            for doubles in (True, False):
                (y,) = loaded(X, np.array(rate), np.array([doubles])).values()
                np.testing.assert_allclose(y, branched(X, rate, doubles), 1e-6)
                found.append(y.tobytes())
        return found

    expected, _ = work.of(run)
    found, counts = work.of(run)
    assert found == expected
    assert counts["parsed"] == 1  # Negative numbers and those of more than 31 bits are no sizes.
    del rates[4:6]
    found, counts = work.of(run)
    assert found == [*expected[:8], *expected[12:]]
    assert counts == NOTHING


def test_inputs_that_decide_what_runs_stay_known_after_runs_without_them(work: Work) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n] x, int64[m] sizes) => (float[a] y) { y = Expand (x, sizes) }"""
    source = onnx.parser.parse_model(text).SerializeToString()
    x, sizes = np.arange(3, dtype=np.float32), np.array([2, 3])

    def run(*every: Array) -> list[Array]:
        loaded = dml.onnx.load(source)
        return [loaded(x, each)["y"] for each in every]

    work.of(lambda: run(sizes))
    work.of(lambda: run(np.zeros(0, np.int64)))
    found, counts = work.of(lambda: run(sizes))
    assert counts == NOTHING
    np.testing.assert_array_equal(found, [np.broadcast_to(x, sizes)])


def test_a_compiled_file_has_the_branch_that_numbers_of_inputs_chose(work: Work, tmp_path: Path) -> None:
    loaded, path = dml.onnx.load(onnx.parser.parse_model(BRANCHES)), tmp_path / "model.odml"
    inputs = X, np.array(16000), np.array([True])
    expected = loaded(*inputs)["y"]
    loaded.save(path, compiled=True)
    work._patch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path / "other"))
    found, counts = work.of(lambda: dml.onnx.load(path, trusted=True)(*inputs)["y"])
    assert counts == NOTHING
    np.testing.assert_array_equal(found, expected)


def test_declarations_of_a_known_model_are_those_of_the_model(work: Work) -> None:
    def declared() -> Any:
        loaded = dml.onnx.load(model())
        loaded(X)
        return loaded.inputs, loaded.outputs, loaded.input_names, loaded.output_names, repr(loaded)

    expected, _ = work.of(declared)
    found, counts = work.of(declared)
    assert found == expected
    assert counts == NOTHING


def test_a_known_model_may_have_bfloat16(work: Work) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (bfloat16[n, 48] x) => (bfloat16[n, 64] y) { y = MatMul (x, w) }"""
    read = onnx.parser.parse_model(text)
    w = RANDOM.standard_normal((48, 64), np.float32).astype(ml_dtypes.bfloat16)
    read.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    source, x = read.SerializeToString(), X.astype(ml_dtypes.bfloat16)
    expected, _ = work.of(lambda: results(source, x, x[1:]))
    np.testing.assert_allclose(
        np.frombuffer(expected[0], ml_dtypes.bfloat16).astype(np.float32).reshape(3, 64),
        x.astype(np.float32) @ w.astype(np.float32),
        rtol=2**-7,
        atol=0.05,
    )
    assert work.of(lambda: results(source, x, x[1:])) == (expected, NOTHING)


def test_other_weights_are_used(work: Work) -> None:
    work.of(lambda: results(model(), X))
    found, counts = work.of(lambda: results(model(w=W + 1), X))
    assert counts == NOTHING
    assert found[0] == work.of(lambda: results(onnx.load_from_string(model(w=W + 1)), X))[0][0]


def test_initializers_that_a_trace_has_read_are_compared(work: Work) -> None:
    work.of(lambda: results(folded(), X))
    expected = np.maximum(X @ W, 0) @ (2 * V * V * 2)
    (found, _), counts = work.of(lambda: results(folded(v=2 * V), X))
    assert counts["parsed"] == 1
    np.testing.assert_allclose(np.frombuffer(found, np.float32).reshape(3, 32), expected, 1e-4, 1e-4)


def rows(count: int) -> Array:
    return np.resize(X, (count, 48)) + np.arange(count, dtype=np.float32)[:, None]


def test_a_known_bucket_serves_other_sizes(work: Work) -> None:
    work.of(lambda: results(model(), rows(9)))
    expected = [results(onnx.load_from_string(model()), rows(count)) for count in (11, 15, 9)]
    found, counts = work.of(lambda: results(model(), rows(11), rows(15), rows(9)))
    assert counts == NOTHING
    assert found == [each for some in expected for each in some]


def test_other_sizes_of_a_known_bucket_share_an_instance(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.of(lambda: results(model(), rows(9)))
    loaded, _ = work.of(lambda: dml.onnx.load(model()))
    loaded(rows(9))
    monkeypatch.setattr(CpuInstance, "__init__", None)
    for count in (11, 15, 11, 9):
        assert loaded(rows(count))["y"].shape[0] == count


def test_a_bucket_is_traced_for_its_first_size_alone(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [results(onnx.load_from_string(model()), rows(count)) for count in (11, 15, 9)]
    loaded, _ = work.of(lambda: dml.onnx.load(model()))
    loaded(rows(9))
    monkeypatch.setattr(Tracer, "steps", None)
    assert [[each.tobytes() for each in loaded(rows(n)).values()] for n in (11, 15, 9)] == expected


@pytest.mark.parametrize("make", [model, folded])
def test_another_bucket_of_a_known_model_is_neither_parsed_nor_fused(
    make: Callable[[], bytes], work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [*map(rows, (9, 20, 10, 1, 300, 2))]
    with monkeypatch.context() as block:
        block.setenv(object_cache.PLANS_VARIABLE, "0")
        expected, _ = work.of(lambda: results(make(), *sizes))
    work.of(lambda: results(make(), sizes[0]))
    found, counts = work.of(lambda: results(make(), *sizes))
    assert found == expected
    assert counts["parsed"] == counts["fused"] == 0
    assert counts["scheduled"] > 0
    assert work.of(lambda: results(make(), *sizes)) == (expected, NOTHING)
    assert work.of(lambda: results(make(), rows(30)))[1] == NOTHING


def cut(path: Path, content: bytes) -> Iterator[object]:
    """Yield other content for a file of a graph, which `write_object` writes."""
    data = json.loads(content)
    graph = data["graph"]
    yield from (None, {}, *({**data, name: "?"} for name in data))
    yield from ({**data, "graph": {**graph, name: "?"}} for name in graph)
    yield {**data, "graph": {**graph, "kernels": {**graph["kernels"], "nodes": [["NO", "F", [], [], 0, 0]]}}}


def test_damaged_graphs_are_traced_again(work: Work, tmp_path: Path) -> None:
    expected, _ = work.of(lambda: results(model(), rows(9), rows(20)))
    for path in (tmp_path / "cache").glob("*.plan"):
        path.unlink()
    work.of(lambda: results(model(), rows(9)))
    files = {path: path.read_bytes()[32:] for path in (tmp_path / "cache").glob("*.plan")}
    ((graph, content),) = [each for each in files.items() if b'"graph"' in each[1]]
    for changed in cut(graph, content):
        for path in (tmp_path / "cache").glob("*.plan"):
            if path not in files:
                path.unlink()
        object_cache.write_object(graph.stem, json.dumps(changed).encode(), "plan")
        assert work.of(lambda: results(model(), rows(9), rows(20)))[0] == expected


def test_a_graph_without_a_form_in_json_is_not_kept(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as block:
        block.setattr(stored_kernels, "_JSON_TYPES", frozenset())
        expected, _ = work.of(lambda: results(model(), rows(9), rows(20)))
    assert not [each for each in (tmp_path / "cache").glob("*.plan") if b'"graph"' in each.read_bytes()]
    assert work.of(lambda: results(model(), rows(9), rows(20))) == (expected, NOTHING)


def test_threads_that_meet_other_buckets_plan_them_from_one_graph(work: Work) -> None:
    counts = [9, 20, 40, 80, 300, 3, 12, 17]
    expected = [each for n in counts for each in work.of(partial(results, model(), rows(n)))[0]]
    for path in Path(os.environ["OPENDML_CACHE_DIRECTORY"]).glob("*.plan"):
        path.unlink()
    work.of(lambda: results(model(), rows(9)))

    def run() -> list[bytes]:
        loaded = dml.onnx.load(model())
        with ThreadPoolExecutor(4) as threads:
            found = threads.map(lambda n: [each.tobytes() for each in loaded(rows(n)).values()], counts * 2)
            return [each for some in found for each in some]

    found, took = work.of(run)
    assert found == expected * 2
    assert took["parsed"] == took["fused"] == 0


def test_a_handler_runs_a_known_model_whose_plan_it_interrupts(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = work.of(lambda: results(model(), rows(40), rows(300)))
    for path in Path(os.environ["OPENDML_CACHE_DIRECTORY"]).glob("*.plan"):
        path.unlink()
    work.of(lambda: results(model(), rows(9)))
    loaded, _ = work.of(lambda: dml.onnx.load(model()))
    found, planned, plan = list[bytes](), list[Any](), PlanMaker.plan
    compiled = planning.CpuTracedProgram.compile

    def interrupted(program: planning.CpuTracedProgram) -> Any:
        monkeypatch.setattr(planning.CpuTracedProgram, "compile", compiled)
        found.extend(each.tobytes() for each in loaded(rows(300)).values())
        return compiled(program)

    def noted(maker: PlanMaker, ranges: Any, hints: Any, sizes: Any) -> Any:
        planned.append((ranges, sizes))
        return plan(maker, ranges, hints, sizes)

    monkeypatch.setattr(planning.CpuTracedProgram, "compile", interrupted)
    monkeypatch.setattr(PlanMaker, "plan", noted)
    assert [*(each.tobytes() for each in loaded(rows(40)).values()), *found] == expected
    assert planned
    for ranges, sizes in planned:
        assert all(least <= sizes[name] <= greatest for name, (least, greatest) in ranges.items())


RUN_IN_ANY_ORDER = """
import random, sys
import numpy as np, opendml as dml
loaded, order = dml.onnx.load(sys.argv[1]), [2, 3, 9, 20, 33, 70, 300, 5]
random.Random(int(sys.argv[2])).shuffle(order)
for n in order:
    x = np.linspace(-1, 1, 48 * n, dtype=np.float32).reshape(n, 48)
    print(n, *[each.tobytes().hex() for each in loaded(x).values()])
"""


def test_processes_that_write_one_store_at_once_agree(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(folded())
    variables = {"OPENDML_CACHE_DIRECTORY": str(tmp_path / "cache"), object_cache.PLANS_VARIABLE: "1"}

    def started(seed: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RUN_IN_ANY_ORDER, str(tmp_path / "model.onnx"), str(seed)]
        return subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True)

    lines = list[list[str]]()
    for seeds in ((1, 2), (3,)):
        for process in [started(seed) for seed in seeds]:
            lines.append(sorted(process.communicate()[0].splitlines()))
            assert process.returncode == 0
    assert len(lines[0]) == 8
    assert lines[0] == lines[1] == lines[2]


SEVERAL_INPUTS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[q, 4] first, float[c, 4] second, float[x, 4] third, float[a, 4] fourth) => (float[n, 4] y) {
  all = Concat <axis = 0> (first, second, third, fourth)
  y = Softmax <axis = 1> (all)
}"""
RUN_SEVERAL_INPUTS = """
import sys
import numpy as np, opendml as dml
loaded = dml.onnx.load(sys.argv[1])
for sizes in ((3, 5, 9, 17), (9, 10, 11, 12)):
    loaded.run({each.name: np.ones((n, 4), np.float32) for each, n in zip(loaded.inputs, sizes)})
"""


def test_plans_do_not_depend_on_hashes_of_names(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(onnx.parser.parse_model(SEVERAL_INPUTS).SerializeToString())
    found = []
    for seed in range(3):
        variables = {
            "OPENDML_CACHE_DIRECTORY": str(tmp_path / f"cache{seed}"),
            object_cache.PLANS_VARIABLE: "1",
            "PYTHONHASHSEED": str(seed),
        }
        command = [sys.executable, "-c", RUN_SEVERAL_INPUTS, str(tmp_path / "model.onnx")]
        subprocess.run(command, env=os.environ | variables, check=True, timeout=120)
        files = (tmp_path / f"cache{seed}").rglob("*.plan")
        found.append({each.name: each.read_bytes() for each in files})
    assert found[0]
    assert found[0] == found[1] == found[2]


SUM = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n] x, float[m] y) => (float[k] z) {
  n = Shape (x)
  count = Cast <to = 1> (n)
  shifted = Add (x, y)
  z = Div (shifted, count)
}"""


def test_dimensions_that_were_equal_at_first_are_told_apart_later(work: Work) -> None:
    def run(*sizes: tuple[int, int]) -> list[bytes]:
        loaded = dml.onnx.load(bytes(onnx.parser.parse_model(SUM).SerializeToString()))
        arrays = [(np.arange(n, dtype=np.float32), np.ones(m, np.float32)) for n, m in sizes]
        for x, y in arrays:
            np.testing.assert_array_equal(loaded(x, y)["z"], (x + y) / np.float32(len(x)))
        return []

    for sizes in (((6, 6),), ((7, 7), (5, 5)), ((5, 1), (4, 4)), ((7, 1), (1, 7), (6, 6))):
        work.of(lambda: run(*sizes))  # noqa: B023
        assert work.of(lambda: run(*sizes))[1] == NOTHING  # noqa: B023
    loaded, _ = work.of(lambda: dml.onnx.load(bytes(onnx.parser.parse_model(SUM).SerializeToString())))
    with pytest.warns(EvaluatorWarning), pytest.raises(dml.Error):
        loaded(np.ones(6, np.float32), np.ones(5, np.float32))


def test_plans_of_one_bucket_are_kept_beside_each_other(work: Work) -> None:
    """Sizes that fail the guards of a plan get another one, which does not replace the first."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 6] x) => (float[a, b] y) { s = Constant <value_ints = [-1, 4]> () y = Reshape (x, s) }"""
    source = bytes(onnx.parser.parse_model(text).SerializeToString())
    inputs = [np.arange(6 * n, dtype=np.float32).reshape(n, 6) for n in (16, 22, 30)]
    for x in inputs:
        assert work.of(lambda: results(source, x))[0] == [x.tobytes()]  # noqa: B023
    assert work.of(lambda: results(source, *inputs)) == ([x.tobytes() for x in inputs], NOTHING)


def test_limits_hold_for_new_sizes_of_a_known_bucket(work: Work) -> None:
    def run(count: int) -> Any:
        return results(model(), rows(count), limits=dml.Limits(tensor_elements=48 * 70))

    work.of(lambda: run(65))
    assert work.of(lambda: run(66))[1] == NOTHING
    with pytest.raises(dml.LimitExceeded, match="tensor_elements"):
        work.of(lambda: run(100))


@pytest.mark.parametrize(
    "change",
    [
        {"sizes": dml.onnx.Sizes({"n": 3})},
        {"limits": dml.Limits(tensor_elements=10**6)},
        {"device": "reference"},
    ],
)
def test_other_settings_are_not_those_of_a_known_model(change: dict[str, Any], work: Work) -> None:
    work.of(lambda: results(model(), X))
    _, counts = work.of(lambda: results(model(), X, **change))
    assert counts["parsed"] == 1


def test_wrong_inputs_of_a_known_model_are_named(work: Work) -> None:
    work.of(lambda: results(model(), X))
    loaded, _ = work.of(lambda: dml.onnx.load(model()))
    with pytest.raises(dml.InvalidArgument, match=r"input 'x' has sizes \[3, 47\]"):
        loaded(X[:, 1:])
    with pytest.raises(dml.InvalidArgument, match="must be float32"):
        loaded(X.astype(np.float64))
    with pytest.raises(dml.LimitExceeded):
        dml.onnx.load(model(), limits=dml.Limits(memory_bytes=100))


def test_sizes_that_are_a_dict_are_refused() -> None:
    sizes: Any = {"n": 3}
    with pytest.raises(dml.InvalidArgument, match=r"sizes: \{'n': 3\}; a dml\.onnx\.Sizes is needed"):
        dml.onnx.load(model(), sizes=sizes)


def test_damaged_files_are_ignored(work: Work, tmp_path: Path) -> None:
    expected, _ = work.of(lambda: results(model(), X))
    for path in (tmp_path / "cache").glob("*.plan"):
        path.write_bytes(path.read_bytes()[:-1])
    found, counts = work.of(lambda: results(model(), X))
    assert found == expected
    assert counts["parsed"] == 1
    assert work.of(lambda: results(model(), X)) == (expected, NOTHING)


def test_files_that_another_version_may_have_written_are_ignored(work: Work, tmp_path: Path) -> None:
    expected, _ = work.of(lambda: results(model(), X))
    found = [(path, path.read_bytes()[32:]) for path in (tmp_path / "cache").glob("*.plan")]
    for path, content in found:
        data = json.loads(content)
        damaged: list[Any] = [None, [], {}, *({**data, name: "?"} for name in data)]
        for changed in damaged:
            object_cache.write_object(path.stem, json.dumps(changed).encode(), "plan")
            assert work.of(lambda: results(model(), X))[0] == expected
        object_cache.write_object(path.stem, content, "plan")
    assert work.of(lambda: results(model(), X)) == (expected, NOTHING)


def test_a_known_model_drops_sizes_that_take_too_much(work: Work) -> None:
    rows = [X[:1], X[:2], X[:3]]
    expected = [each for x in rows for each in work.of(partial(results, model(), x))[0]]
    found, counts = work.of(lambda: results(model(), *rows, *rows, most_kept_bytes=0))
    assert counts == NOTHING
    assert found == 2 * expected


def without_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let linking and packing fail from now on."""
    monkeypatch.setattr(machine_code, "load_object", None)
    monkeypatch.setattr(CpuExecutable, "initialize", None)
    monkeypatch.setattr(known, "kept_memory", None)


@pytest.mark.parametrize("kind", ["load", "session"])
def test_loading_links_and_packs_what_the_last_process_began_with(
    kind: str, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loaded() -> Callable[[Array], Array]:
        if kind == "load":
            found = dml.onnx.load(model())
            return lambda x: found(x)["y"]
        session = dml.onnx.InferenceSession(model())
        assert session.get_inputs()[0].shape == ["n", 48]
        return lambda x: session.run(["y"], {"x": x})[0]

    def run(*counts: int) -> list[bytes]:
        found = loaded()
        return [found(rows(count)).tobytes() for count in counts]

    expected, _ = work.of(lambda: run(9, 40))
    assert work.of(lambda: run(40))[0] == expected[1:]  # From now on, 40 is what a process begins with.
    found, counts = work.of(loaded)
    assert counts == NOTHING
    with monkeypatch.context() as block:
        without_preparation(block)
        assert found(rows(40)).tobytes() == expected[1]
    assert found(rows(9)).tobytes() == expected[0]
    found, _ = work.of(loaded)
    without_preparation(monkeypatch)
    assert found(rows(40)).tobytes() == expected[1]


@pytest.mark.parametrize("shift", range(4))
def test_weights_are_packed_where_they_lie(
    shift: int, work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read, path = onnx.load_from_string(model()), tmp_path / "model.onnx"
    read.producer_name = "x" * (1 + shift)
    path.write_bytes(read.SerializeToString())
    expected, _ = work.of(lambda: results(path, X, rows(40)))
    h = np.maximum(X.astype("d") @ W, 0)
    np.testing.assert_allclose(np.frombuffer(expected[0], "f").reshape(3, 32), h @ V, 1e-4, 1e-4)
    gc.collect()
    monkeypatch.setattr(initialization, "_copied", None)
    assert work.of(lambda: results(path, X, rows(40))) == (expected, NOTHING)


def fixed(body: str = "y = MatMul (h, v)") -> bytes:
    """Return a model whose sizes are fixed."""
    read = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[3, 48] x) => (float[3, 32] y) {{ h = MatMul (x, w) {body} }}"""
    )
    for name, array in (("w", W), ("v", V)):
        read.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return bytes(read.SerializeToString())


def test_a_new_model_of_fixed_sizes_is_compiled_while_it_is_loaded(
    work: Work, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded, counts = work.of(lambda: dml.onnx.load(fixed(), progress=True))
    assert counts["fused"] > 0
    assert "traced for inputs of sizes [[3, 48]]" in capsys.readouterr().err
    with monkeypatch.context() as block:
        without_preparation(block)
        block.setattr(planning, "fuse", None)
        np.testing.assert_allclose(loaded(X)["y"], X @ W @ V, 1e-4, 1e-4)
    assert capsys.readouterr().err == ""
    expected = loaded(X)["y"]
    found, counts = work.of(lambda: dml.onnx.load(fixed()))
    assert counts == NOTHING
    without_preparation(monkeypatch)
    np.testing.assert_array_equal(found(X)["y"], expected)


def test_a_model_of_fixed_sizes_is_compiled_up_to_the_first_content(work: Work) -> None:
    body = """s = ReduceSum <keepdims = 0> (h)
    zero = Constant <value_float = 0.0> ()
    c = Greater (s, zero)
    y = If (c) <then_branch = yes () => (a) { a = MatMul (h, v) },
                else_branch = no () => (b) { m = Neg (h) b = MatMul (m, v) }>"""
    loaded, counts = work.of(lambda: dml.onnx.load(fixed(body)))
    assert counts["fused"] > 0
    for x in (X, -X):
        sign = np.sign((x @ W).sum())
        np.testing.assert_allclose(loaded(x)["y"], sign * (x @ W @ V), 1e-4, 1e-4)


def test_what_fails_to_compile_fails_in_the_run(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise dml.Unsupported("no memory")

    with monkeypatch.context() as block:
        block.setattr(planning, "fuse", full)
        loaded, _ = work.of(lambda: dml.onnx.load(fixed()))
        with pytest.raises(dml.Unsupported, match="model: no memory"):
            loaded(X)
    np.testing.assert_allclose(loaded(X)["y"], X @ W @ V, 1e-4, 1e-4)


def test_threads_that_load_a_file_at_once_pack_its_weights_once(
    work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, events = tmp_path / "model.onnx", list[str]()
    path.write_bytes(model())
    expected, _ = work.of(lambda: results(path, X))
    note_calls(monkeypatch, events, CpuExecutable, "initialize")
    gc.collect()  # Models of one file share what is packed.
    work.of(lambda: results(path, X))
    alone = len(events)
    assert alone > 0
    events.clear()
    gc.collect()
    with ThreadPoolExecutor(4) as threads:
        found, _ = work.of(lambda: list(threads.map(lambda _: dml.onnx.load(path), range(4))))
    assert len(events) == alone
    assert [[each.tobytes() for each in loaded(X).values()] for loaded in found] == 4 * [expected]


def test_an_interrupted_load_leaves_nothing_half_done(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = work.of(lambda: results(model(), X))
    with monkeypatch.context() as block:

        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        block.setattr(CpuExecutable, "initialize", interrupted)
        with pytest.raises(KeyboardInterrupt):
            work.of(lambda: dml.onnx.load(model()))
    assert work.of(lambda: results(model(), X)) == (expected, NOTHING)


def test_a_known_plan_whose_start_is_interrupted_starts_again(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = np.tile(X, (100, 1))
    expected, _ = work.of(lambda: results(model(), X, others)[2:])
    loaded, _ = work.of(lambda: dml.onnx.load(model()))

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as block:
        block.setattr(known_runs, "SizedInstances", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loaded(others)
    assert [each.tobytes() for each in loaded(others).values()] == expected


def test_what_cannot_be_prepared_fails_in_the_run_that_needs_it(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = work.of(lambda: results(model(), X))

    def full(*_: Any) -> None:
        raise dml.Unsupported("no memory")

    with monkeypatch.context() as block:
        block.setattr(CpuExecutable, "initialize", full)
        loaded, _ = work.of(lambda: dml.onnx.load(model()))
        with pytest.raises(dml.Unsupported, match="model: no memory"):
            loaded(X)
    assert [each.tobytes() for each in loaded(X).values()] == expected


def test_a_cache_that_cannot_be_written_to_serves_known_models(
    work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected, _ = work.of(lambda: results(model(), rows(9), rows(40)))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Folder, "replacing", full)
    with caplog.at_level("WARNING", "opendml"):
        assert work.of(lambda: results(model(), rows(40), rows(9))) == (expected[2:] + expected[:2], NOTHING)
    assert not caplog.records


def test_progress_says_that_loading_packs(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    work.of(lambda: results(model(), X))
    loaded, _ = work.of(lambda: dml.onnx.load(model(), progress=True))
    assert "constants packed" in capsys.readouterr().err
    loaded(X)
    assert capsys.readouterr().err == ""


@has_fork
def test_the_child_of_a_fork_runs_what_was_loaded_before(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = work.of(lambda: results(model(), X))
    loaded, _ = work.of(lambda: dml.onnx.load(model()))
    without_preparation(monkeypatch)
    assert succeeds_in_child(lambda: [each.tobytes() for each in loaded(X).values()] == expected, seconds=20)


UNIMPORTED = """
import sys
import numpy as np, opendml as dml
x = np.ones((int(sys.argv[2]), 48), np.float32)
if sys.argv[3] == "load":
    dml.onnx.load(sys.argv[1])(x)
elif sys.argv[3] == "device":
    dml.onnx.load(sys.argv[1], dml.Device("cpu", threads=2))(x)
else:
    options = dml.onnx.SessionOptions()
    options.intra_op_num_threads = 1
    dml.onnx.InferenceSession(sys.argv[1], options).run(None, {"x": x})
names = "llvmlite", "onnx", "_hashlib", "opendml.compiler.fuse", "opendml.runtime.graphs.model"
names += ("opendml.program.trace",)
print([name for name in names if name in sys.modules])
"""


@pytest.mark.parametrize("kind", ["load", "device", "session"])
def test_no_run_imports_llvm_and_a_known_one_neither_the_onnx_package_nor_the_compiler(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(model())
    env = os.environ | {"OPENDML_CACHE_DIRECTORY": str(tmp_path / "cache"), object_cache.PLANS_VARIABLE: "1"}
    env["OPENDML_THREADS"] = "2"
    command = [sys.executable, "-c", UNIMPORTED, str(tmp_path / "model.onnx")]
    runs = [
        subprocess.run(
            [*command, size, kind], env=env, check=True, capture_output=True, text=True, timeout=60
        ).stdout
        for size in ("9", "9", "14")
    ]
    first, *others = map(ast.literal_eval, runs)
    # Workers compile, and tell what LLVM knows of this computer.
    llvm = [] if linker.is_possible() else ["llvmlite"]
    own = ["opendml.compiler.fuse", "opendml.runtime.graphs.model", "opendml.program.trace"]
    assert first == [*llvm, "onnx", "_hashlib", *own]
    assert others == [llvm, llvm]
