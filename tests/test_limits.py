"""Limits on what a model may take, at the doors that need no other package."""

from __future__ import annotations

import copy
import json
import math
import pickle
import time
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import opendml as dml
from opendml import budget, serialized
from opendml.budget import NO_LIMITS, Meter, meter, metered
from opendml.cli import main
from opendml.host_memory import group_memory, host_memory
from opendml.program.steps import steps_of
from opendml.runtime.program import program_of
from opendml.runtime.saved.container import Arrays, packed_file
from opendml.serialized import SerializedGraph, SerializedNode
from tests.targets.test_cpu_threads import groups


@pytest.mark.parametrize("value", [0, -1, math.nan, "1", None, True, [1]])
def test_limits_are_numbers_above_zero(value: Any) -> None:
    with pytest.raises(dml.InvalidArgument, match=r"Limits\.kernel_steps: .*; a number above 0 is needed"):
        dml.Limits(kernel_steps=value)


def test_limits_are_given_by_name_and_do_not_change() -> None:
    with pytest.raises(TypeError):
        dml.Limits(1)  # type: ignore[misc]
    limits = dml.Limits(kernel_steps=math.inf)
    with pytest.raises(FrozenInstanceError):
        limits.kernel_steps = 1  # type: ignore[misc]
    assert copy.copy(limits) == pickle.loads(pickle.dumps(limits)) == limits != dml.Limits()


def test_limits_for_strangers_are_tighter_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    own, strangers = dml.Limits(), dml.Limits.untrusted()
    assert all(getattr(strangers, name) < getattr(own, name) for name in dml.Limits.__slots__)
    monkeypatch.setattr(budget, "host_memory", lambda: 1000)
    assert (dml.Limits().memory_bytes, dml.Limits.untrusted().memory_bytes) == (900, 500)


def test_an_excess_says_what_is_needed_what_is_allowed_and_how_to_raise_it() -> None:
    error = dml.LimitExceeded("memory_bytes", 5000, 1024, "node 'a'")
    assert str(error) == (
        "node 'a': memory_bytes 5,000; the limit is 1,024; for a model that you trust, raise it: "
        "limits=dml.Limits(memory_bytes=...), or --limit memory_bytes=..."
    )
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.limit, again.needed, again.allowed) == (str(error), "memory_bytes", 5000, 1024)
    assert (error._within("file").where, error._within("node 'a'").where) == ("file: node 'a'", "node 'a'")


# Memory


def test_the_memory_of_a_process_is_that_of_the_machine_at_most() -> None:
    assert 2**20 < host_memory() < 2**60


@pytest.mark.parametrize(
    ("lines", "files", "expected"),
    [
        ("0::/inner\n", {"memory.max": "max", "inner/memory.max": "4096"}, 4096),
        ("0::/inner\n", {"memory.max": "2048", "inner/memory.max": "4096"}, 2048),
        ("0::/inner\n", {"inner/memory.max": "max"}, None),
        ("4:memory:/inner\n", {"memory/inner/memory.limit_in_bytes": "8192"}, 8192),
        ("", {}, None),
    ],
)
def test_the_memory_of_control_groups_is_found(
    lines: str, files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    root = groups(tmp_path, lines)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    assert group_memory(root) == expected


# Meters


def test_outside_of_a_model_nothing_is_limited() -> None:
    assert meter().limits == NO_LIMITS
    with metered(dml.Limits(kernel_steps=5)) as outer, metered() as inner:
        assert (inner.limits, meter()) == (outer.limits, inner)
    assert meter().limits == NO_LIMITS


def test_time_counts_for_the_innermost_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    counted = Meter(dml.Limits(compile_seconds=10, evaluator_seconds=5))
    with counted.timed("compile_seconds", "outer"):
        now[0] += 3
        with counted.timed("evaluator_seconds", "inner"):
            now[0] += 4
        assert (counted.seconds_left("compile_seconds"), counted.seconds_left("evaluator_seconds")) == (7, 1)
        now[0] += 8
        with pytest.raises(dml.LimitExceeded, match="outer: compile_seconds 11") as caught:
            counted.check_time()
        assert caught.value.allowed == 10
        now[0] -= 8


@pytest.mark.parametrize(
    ("error", "kind"), [(MemoryError(), dml.Unsupported), (RecursionError(), dml.InvalidArgument)]
)
def test_what_python_runs_out_of_is_an_error_of_the_model(error: Exception, kind: type[dml.Error]) -> None:
    with pytest.raises(kind, match=r"^file: "), metered(name="file"):
        raise error


def test_steps_are_elements_and_products() -> None:
    x, w, y = (dml.TensorDesc(dml.FLOAT32, [1, 1, *sizes]) for sizes in ([2, 3], [3, 5], [2, 5]))
    products, scaled, written = 30, 10, 10
    assert steps_of(program_of(dml.descs.Gemm(x, w, None, y)).results) == products + scaled + written
    large = dml.TensorDesc(dml.FLOAT32, [2**20, 2**20])
    assert steps_of(program_of(dml.descs.ActivationRelu(large, large)).results) >= 2**40


# Doors


def _saved(path: Path, steps: list[Any], outputs: dict[str, int] | None = None) -> Path:
    device = {"kind": "reference", "feature_level": "6_4", "threads": None}
    program = {
        "kind": "graph",
        "device": device,
        "feature_level": "6_4",
        "steps": steps,
        "outputs": outputs or {"y": 0},
    }
    path.write_bytes(packed_file(program, Arrays()))
    return path


@pytest.mark.parametrize(
    "sizes",
    [[0, 2**32 - 1, 2**32 - 1, 2**32 - 1], [2**32 - 1] * 8, [0, 2**32 - 1, 2**31], [2**32 - 1, 0, 2**32 - 1]],
)
def test_saved_constants_of_impossible_sizes_are_refused(sizes: list[int], tmp_path: Path) -> None:
    constant = {"start": 0, "type": "FLOAT32", "sizes": sizes, "order": list(range(len(sizes)))}
    path = _saved(tmp_path / "m", [{"constant": constant}])
    with pytest.raises(dml.InvalidArgument, match=r"constant"):
        dml.load(path)


def test_saved_models_have_limits(tmp_path: Path) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 1, 4000, 4000])
    graph.compile({"y": dml.activation_relu(x)}, "reference").save(tmp_path / "m")
    assert isinstance(dml.load(tmp_path / "m", limits=dml.Limits.untrusted()), dml.Model)
    for limit in ("memory_bytes", "tensor_elements", "kernel_steps", "graph_parts"):
        value = 1 if limit == "graph_parts" else 10**6
        with pytest.raises(dml.LimitExceeded, match=f"m: .*{limit} "):
            dml.load(tmp_path / "m", limits=dml.Limits(**{limit: value}))
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(dml.LimitExceeded, match="hole: memory_bytes 21,474,836,480"):
        dml.load(tmp_path / "hole", limits=dml.Limits.untrusted())


def test_serialized_graphs_have_limits(tmp_path: Path) -> None:
    tensor = dml.TensorDesc(dml.FLOAT32, [1000, 1000])
    node = SerializedNode(dml.descs.ActivationRelu(tensor, tensor), ("x",), ("y",))
    path, *_ = serialized.write(SerializedGraph(("x",), ("y",), (node,)), tmp_path / "g.bin")
    serialized.load(path, limits=dml.Limits.untrusted())
    for limit, value in (("memory_bytes", 10**6), ("tensor_elements", 10**5), ("kernel_steps", 10**5)):
        with pytest.raises(dml.LimitExceeded, match=limit):
            serialized.load(path, limits=dml.Limits(**{limit: value}))
    done = CliRunner().invoke(main, ["run", str(path), "--limit", "kernel_steps=1e5"])
    assert done.exit_code == 1
    assert "kernel_steps" in done.stderr


def _json_model(path: Path, **resource: Any) -> Path:
    values = {"valueCount": 4, "value": 1, **resource.pop("values", {})}
    content = {
        "resources": {"a": {"initialValuesDataType": "FLOAT32", "initialValues": values, **resource}},
        "dispatchables": {},
        "commands": [{"type": "print", "resource": "a"}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("resource", [{"values": {"valueCount": 2**32 - 1}}, {"sizeInBytes": 2**40}])
def test_resources_of_json_models_have_limits(resource: dict[str, Any], tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["run", str(_json_model(tmp_path / "m.json", **resource)), "--untrusted"])
    assert done.exit_code == 1
    assert "$.resources.a: memory_bytes" in done.stderr


def test_the_options_name_the_limits(tmp_path: Path) -> None:
    path = str(_json_model(tmp_path / "m.json"))
    assert (
        CliRunner().invoke(main, ["run", path, "--limit", "kernel_steps=inf", "--untrusted"]).exit_code == 0
    )
    for text, problem in (("x=1", "a name is memory_bytes"), ("kernel_steps=x", "a number is needed")):
        done = CliRunner().invoke(main, ["run", path, "--limit", text])
        assert (done.exit_code, problem in " ".join(done.stderr.split())) == (2, True)
    done = CliRunner().invoke(main, ["run", path, "--limit", "kernel_steps=0"])
    assert (done.exit_code, "a number above 0" in done.stderr) == (2, True)
