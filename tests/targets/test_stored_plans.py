"""Plans on disk: what is found again, what is not, and that neither changes a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.later import finish
from opendml.program.digest import program_digest
from opendml.runtime.program import program_of
from opendml.targets import object_cache
from opendml.targets.cpu import machine_code, planning, stored_plan
from opendml.targets.cpu.machine import assumed, machine
from tests.known_work import recurrent
from tests.plans import check_words
from tools.machines import PROCESSORS

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(28)
X = RANDOM.standard_normal((1, 1, 40, 64), np.float32)


def result(w: Array, device: dml.Device | None = None, activation: Any = dml.activation_relu) -> bytes:
    """A product with packed weights, an activation, and a sum that is prepared from a constant."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, X.shape)
    y = activation(dml.gemm(x, graph.constant(w)))
    total = dml.reduce(graph.constant(w), function="SUM", axes=[2])
    model = graph.compile({"y": dml.element_wise_add(y, total)}, device)
    return bytes(model(X)["y"].tobytes())


class Cache:
    """A cache of its own, and the calls that fuse and schedule."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.fused, self.scheduled = folder, 0, 0
        self._patch = monkeypatch
        monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(folder))
        monkeypatch.setenv(object_cache.PLANS_VARIABLE, "1")
        monkeypatch.setattr(planning, "fuse", self._counted(planning.fuse, "fused"))
        monkeypatch.setattr(planning, "schedule", self._counted(planning.schedule, "scheduled"))

    def _counted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            setattr(self, name, getattr(self, name) + 1)
            return function(*arguments, **named)

        return counted

    @property
    def plans(self) -> list[Path]:
        finish()
        return sorted(self.folder.glob("*.plan"))

    def in_new_process(self) -> Cache:
        """Forget the machine code of this process, and begin to count."""
        self._patch.setattr(machine_code, "_codes", {})
        self.fused = self.scheduled = 0
        return self


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    return Cache(tmp_path / "cache", monkeypatch).in_new_process()


W = RANDOM.standard_normal((1, 1, 64, 64), np.float32)


def test_a_known_graph_is_neither_fused_nor_scheduled(cache: Cache) -> None:
    first = result(W)
    assert cache.fused == 1
    assert cache.scheduled >= 2
    cache.in_new_process()
    assert result(W) == first
    assert (cache.fused, cache.scheduled) == (0, 0)


def test_other_weights_have_the_same_plan(cache: Cache) -> None:
    result(W)
    cache.in_new_process()
    expected = np.maximum(X @ (W + 1), 0) + (W + 1).sum(2, keepdims=True)
    np.testing.assert_allclose(
        np.frombuffer(result(W + 1), np.float32).reshape(X.shape), expected, 1e-4, 1e-4
    )
    assert cache.fused == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_another_number_of_threads_has_a_plan_of_its_own(threads: int, cache: Cache) -> None:
    first = result(W, dml.Device("cpu", threads=2))
    assert result(W, dml.Device("cpu", threads=threads)) == first
    assert len(cache.plans) == cache.fused == 2


def test_another_graph_has_a_plan_of_its_own(cache: Cache) -> None:
    assert result(W) != result(W, activation=dml.activation_tanh)
    assert len(cache.plans) == cache.fused == 2


def test_another_version_of_the_compiler_has_plans_of_its_own(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    result(W)
    monkeypatch.setattr(stored_plan, "environment", lambda: "another version")
    result(W)
    assert len(cache.plans) == cache.fused == 2


def test_a_plan_whose_machine_code_is_gone_is_made_anew(cache: Cache) -> None:
    first = result(W)
    for path in cache.folder.glob("*.o"):
        path.unlink()
    cache.in_new_process()
    assert result(W) == first
    assert cache.fused == 1


def _cut(plan: bytes) -> bytes:
    return plan[: len(plan) // 2]


def _changed(plan: bytes) -> bytes:
    return plan.replace(b'"arena_bytes":', b'"arena_bytes":1', 1)


@pytest.mark.parametrize("damage", [_cut, _changed, lambda _: b"", lambda _: b"{}"])
def test_a_damaged_plan_is_ignored_and_made_anew(damage: Callable[[bytes], bytes], cache: Cache) -> None:
    first = result(W)
    (path,) = cache.plans
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    cache.in_new_process()
    assert result(W) == first
    assert cache.fused == 1
    assert cache.plans == [path]
    assert path.read_bytes() == sound


def test_without_plans_nothing_is_written(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.PLANS_VARIABLE, "0")
    result(W)
    assert cache.plans == []


def test_steps_of_recurrences_come_from_a_plan(cache: Cache) -> None:
    first = recurrent()
    cache.in_new_process()
    assert recurrent() == first
    assert cache.fused == 0


def attention() -> dml.Model:
    """Return a graph with named dimensions, packed weights, and numbers that follow from sizes."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 1, "length", 64])
    y = x @ graph.constant(W)
    centred = dml.mean_variance_normalization1(y, None, None, axes=[2])
    scores = dml.gemm(centred, x, trans_b="TRANSPOSE")
    return graph.compile({"y": dml.activation_softmax1(scores, axes=[3]), "z": y.reshape(-1, 64)})


def attended(*shapes: tuple[int, int], model: dml.Model | None = None) -> list[bytes]:
    """Return its results for batches and lengths."""
    model, found = model or attention(), []
    for batch, length in shapes:
        values = np.random.default_rng(length).standard_normal((batch, 1, length, 64), np.float32)
        found += [each.tobytes() for each in model(values).values()]
    return found


def test_a_known_graph_of_traced_sizes_is_neither_fused_nor_scheduled(cache: Cache) -> None:
    first = attended((3, 20), (2, 31), (3, 70))
    fused = cache.fused
    cache.in_new_process()
    assert attended((3, 20), (2, 31), (3, 70)) == first
    assert (cache.fused, cache.scheduled) == (0, 0)
    cache.in_new_process()
    found = attended((3, 25), (3, 300))
    assert cache.fused == fused > 0
    cache.in_new_process()
    assert attended((3, 25), (3, 300)) == found
    assert (cache.fused, cache.scheduled) == (0, 0)


def test_words_of_stored_plans_are_those_of_exact_launches(cache: Cache) -> None:
    attended((3, 20))
    cache.in_new_process()
    model = attention()
    attended((3, 25), model=model)
    assert cache.fused == 0
    assert check_words(model, batch=3, length=25) == check_words(model, batch=2, length=31) == 1


def test_images_of_several_processes_share_a_plan_for_all_sizes(cache: Cache) -> None:
    for height, count in ((72, 1), (80, 2), (96, 2), (72, 2)):
        graph = dml.Graph()
        x = graph.input("x", dml.FLOAT32, ["batch", 3, "height", "width"])
        y = dml.convolution(x, graph.constant(np.ones((10, 3, 3, 3), np.float32)))
        graph.compile({"y": y})(np.ones((2, 3, height, 100), np.float32))
        assert len(cache.in_new_process().plans) == count


def test_dimensions_of_other_ranges_have_plans_of_their_own(cache: Cache) -> None:
    def run(greatest: int) -> bytes:
        graph = dml.Graph()
        length = graph.dimension("length", greatest=greatest)
        x = graph.input("x", dml.FLOAT32, [length, 64])
        model = graph.compile({"y": dml.activation_relu(x)})
        return bytes(model(np.ones((20, 64), np.float32))["y"].tobytes())

    assert run(100) == run(200) == run(100)
    assert cache.fused == 2


@pytest.mark.parametrize("damage", [_cut, lambda _: b"", lambda _: b"{}"])
def test_damaged_plans_of_traced_sizes_are_ignored(damage: Callable[[bytes], bytes], cache: Cache) -> None:
    first = attended((3, 20))
    for path in cache.plans:
        path.write_bytes(damage(path.read_bytes()))
    cache.in_new_process()
    assert attended((3, 20)) == first
    assert cache.fused > 0
    cache.in_new_process()
    assert attended((3, 20)) == first
    assert cache.fused == 0


@pytest.mark.parametrize(
    "change", ["[]", "{}", '{"sizes": 1}', '{"sizes": {"atoms": [], "polynomials": [3]}}']
)
def test_plans_of_traced_sizes_that_another_version_may_have_written_are_ignored(
    change: str, cache: Cache
) -> None:
    first = attended((3, 20))
    for path in cache.plans:
        object_cache.write_object(path.stem, change.encode(), "plan")
    cache.in_new_process()
    assert attended((3, 20)) == first
    assert cache.fused > 0


def test_programs_that_compute_something_else_have_other_digests() -> None:
    def digest(alpha: float, sizes: list[int], type: dml.TensorDataType = dml.FLOAT32) -> str:
        tensor = dml.TensorDesc(type, sizes)
        return program_digest(program_of(dml.descs.ActivationElu(tensor, tensor, alpha=alpha)))

    assert digest(0.5, [4, 8]) == digest(0.5, [4, 8])
    others = [digest(0.25, [4, 8]), digest(0.0, [4, 8]), digest(-0.0, [4, 8])]
    others += [digest(0.5, [8, 4]), digest(0.5, [4, 8], dml.FLOAT16)]
    assert len({digest(0.5, [4, 8]), *others}) == 6


def test_keys_of_code_follow_the_machine_that_is_assumed() -> None:
    own = machine_code.environment()
    with assumed(PROCESSORS["avx2"]):
        other = machine_code.environment()
    assert PROCESSORS["avx2"].features in other
    assert machine_code.environment() == own
    assert own != other or machine().features == PROCESSORS["avx2"].features
    with assumed(replace(machine(), vector_bytes=2 * machine().vector_bytes)):
        assert machine_code.environment() != own
