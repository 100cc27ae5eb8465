"""Plans of CUDA programs on disk: what is found again, what is not, and that neither changes a result.

Kernels run on the processor, over arrays of a fake device.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import opendml as dml
from opendml.program.sizes import is_traced
from opendml.targets import object_cache
from opendml.targets.cuda import backend, cubins, planning, stored_plan, traced_launches
from tests.cuda.fake import FakeArray, install
from tests.known_work import NOTHING, Work, recurrent
from tests.plans import plans_of
from tools.cuda_emulator import COMPILER

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler"),
    pytest.mark.usefixtures("emulated_kernels"),
]
Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(28)
X = RANDOM.standard_normal((1, 1, 12, 16), np.float32)
W, V = RANDOM.standard_normal((1, 1, 16, 16), np.float32), RANDOM.standard_normal((16, 8), np.float32)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    if find_spec("cuda") is None:  # Plans have the version of NVRTC in their keys.
        bindings = ModuleType("cuda.bindings")
        bindings.nvrtc = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
        monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    install(monkeypatch, planning.compiled_program)
    monkeypatch.setattr(backend, "known_executable", stored_plan.known_executable)
    return Work(tmp_path, monkeypatch, planning, "_planned")


def result(activation: Any = dml.activation_relu, w: Array = W) -> bytes:
    """A product, an activation, and a sum that is prepared from a constant."""
    graph = dml.Graph()
    y = activation(dml.gemm(graph.input("x", dml.FLOAT32, X.shape), graph.constant(w)))
    total = dml.reduce(graph.constant(w), function="SUM", axes=[2])
    model = graph.compile({"y": dml.element_wise_add(y, total)}, "cuda")
    return bytes(model(X)["y"].tobytes())


def test_a_known_graph_is_neither_fused_nor_scheduled(work: Work) -> None:
    expected, first = work.of(result)
    assert (first["fused"], first["scheduled"]) == (1, 1)
    wanted = np.maximum(X @ W, 0) + W.sum(2, keepdims=True)
    np.testing.assert_allclose(np.frombuffer(expected, np.float32).reshape(X.shape), wanted, 1e-4, 1e-4)
    assert work.of(result) == (expected, NOTHING)
    assert work.of(lambda: result(w=2 * W))[1] == NOTHING
    assert work.of(lambda: result(dml.activation_tanh))[1]["fused"] == 1


@pytest.mark.parametrize("what", ["name", "machine", "driver_version", "library", "compiler"])
def test_another_device_driver_or_version_has_a_plan_of_its_own(
    what: str, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = work.of(result)
    owner: Any = stored_plan.device(0)
    if what == "library":
        monkeypatch.setattr(stored_plan, "environment", lambda: "NVRTC 99.0")
    elif what == "compiler":
        monkeypatch.setattr(cubins, "compiler_digest", lambda _: "another version")
        monkeypatch.setattr(stored_plan, "environment", cubins.environment.__wrapped__)
    else:
        other = replace(owner.machine, l2_bytes=1) if what == "machine" else 7
        monkeypatch.setattr(owner, what, other)
    found, counts = work.of(result)
    assert (found, counts["fused"], len(work.plans)) == (expected, 1, 2)


def _cut(plan: bytes) -> bytes:
    return plan[: len(plan) // 2]


def _changed(plan: bytes) -> bytes:
    return plan.replace(b'"dispatched":', b'"dispatched":1', 1)


@pytest.mark.parametrize("damage", [_cut, _changed, lambda _: b"", lambda _: b"{}"])
def test_a_damaged_plan_is_ignored_and_made_anew(damage: Callable[[bytes], bytes], work: Work) -> None:
    expected, _ = work.of(result)
    (path,) = work.plans
    sound = path.read_bytes()
    path.write_bytes(damage(sound))
    found, counts = work.of(result)
    assert (found, counts["fused"]) == (expected, 1)
    assert path.read_bytes() == sound


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"codes": []}', b'{"codes": [], "buffers": 1}'])
def test_a_plan_that_another_version_may_have_written_is_ignored(content: bytes, work: Work) -> None:
    expected, _ = work.of(result)
    (path,) = work.plans
    object_cache.write_object(path.stem, content, "plan")
    found, counts = work.of(result)
    assert (found, counts["fused"]) == (expected, 1)


def test_a_plan_whose_machine_code_is_gone_is_made_anew(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = work.of(result)
    monkeypatch.setattr(stored_plan, "cubins_of_keys", cubins.cubins_of_keys)  # The cache has no code.
    found, counts = work.of(result)
    assert (found, counts["fused"]) == (expected, 1)


def test_without_plans_nothing_is_written(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(object_cache.PLANS_VARIABLE, "0")
    work.of(result)
    assert work.plans == []


def test_steps_of_recurrences_come_from_a_plan(work: Work) -> None:
    expected, _ = work.of(lambda: recurrent("cuda"))
    assert work.of(lambda: recurrent("cuda")) == (expected, NOTHING)


def attended(*shapes: tuple[int, int]) -> list[bytes]:
    """Return results of a graph with named dimensions, constants, and numbers that follow from sizes."""
    graph, found = dml.Graph(), list[bytes]()
    x = graph.input("x", dml.FLOAT32, ["batch", 1, "length", 16])
    y = x @ graph.constant(W)
    centred = dml.mean_variance_normalization1(y, None, None, axes=[2])
    scores = dml.gemm(centred, x, trans_b="TRANSPOSE")
    outputs = {"y": dml.activation_softmax1(scores, axes=[3]), "z": y.reshape(-1, 16)}
    model = graph.compile(outputs, "cuda")
    for batch, length in shapes:
        values = np.random.default_rng(length).standard_normal((batch, 1, length, 16), np.float32)
        found += [each.tobytes() for each in model(values).values()]
    return found


def test_a_known_graph_of_traced_sizes_is_neither_fused_nor_scheduled(work: Work) -> None:
    shapes = (3, 20), (2, 31), (3, 25)
    expected, first = work.of(lambda: attended(*shapes))
    assert first["fused"] > 0
    assert work.of(lambda: attended(*shapes)) == (expected, NOTHING)
    other, counts = work.of(lambda: attended((3, 70), shapes[0]))
    assert other[2:] == expected[:2]
    assert counts["fused"] > 0
    assert work.of(lambda: attended((3, 70), shapes[0])) == (other, NOTHING)


@pytest.mark.parametrize("damage", [_cut, lambda _: b"", lambda _: b"{}"])
def test_damaged_plans_of_traced_sizes_are_ignored(damage: Callable[[bytes], bytes], work: Work) -> None:
    expected, _ = work.of(lambda: attended((3, 20)))
    for path in work.plans:
        path.write_bytes(damage(path.read_bytes()))
    found, counts = work.of(lambda: attended((3, 20)))
    assert found == expected
    assert counts["fused"] > 0
    assert work.of(lambda: attended((3, 20))) == (expected, NOTHING)


@pytest.mark.parametrize("is_traced", [False, True])
def test_a_stored_plan_serves_tensors_that_are_not_aligned(is_traced: bool, work: Work) -> None:
    """Other launches are made of the kernels in the plan, which are read for them alone."""

    def run(size: int) -> bytes:
        graph = dml.Graph()
        x = graph.input("x", dml.FLOAT32, [3, "length" if is_traced else 24])
        model = graph.compile({"y": dml.activation_softmax1(x * 2.0, axes=[1])}, "cuda")
        room = np.zeros(3 * size + 1, np.float32)
        room[1:] = np.random.default_rng(1).standard_normal(3 * size)
        y = np.full((3, size), np.nan, np.float32)
        model.run({"x": FakeArray(room[1:].reshape(3, size))}, {"y": FakeArray(y)})
        powers = np.exp(2 * room[1:].reshape(3, size).astype(np.float64))
        np.testing.assert_allclose(y, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
        return y.tobytes()

    expected, first = work.of(lambda: run(24))
    found, counts = work.of(lambda: run(24))
    assert (found, counts["fused"]) == (expected, 0)
    assert first["scheduled"] == counts["scheduled"] + 1 > 1
    if is_traced:
        run(28)


def test_a_mean_over_an_open_axis_is_right_for_tensors_that_are_not_aligned(work: Work) -> None:
    """Its kernel divides by a size."""

    def run() -> list[bytes]:
        graph = dml.Graph()
        x = graph.input("x", dml.FLOAT32, [3, "length", 8])
        mean = dml.reduce(x, function="AVERAGE", axes=[1])
        named, found = graph.compile({"y": dml.activation_tanh(x - mean)}, "cuda"), list[bytes]()
        for size in (24, 28, 21):
            room = np.zeros(3 * size * 8 + 1, np.float32)
            values = room[1:].reshape(3, size, 8)
            values[:] = np.random.default_rng(size).standard_normal(values.shape)
            y = np.zeros_like(values)
            named.run({"x": FakeArray(values)}, {"y": FakeArray(y)})
            np.testing.assert_allclose(y, np.tanh(values - values.mean(1, keepdims=True)), 1e-4, 1e-5)
            found.append(y.tobytes())
        return found

    expected, _ = work.of(run)
    assert work.of(run)[0] == expected


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_floats_that_follow_from_sizes_are_stored(padding: str, work: Work) -> None:
    """Some of them are in code, whose plan serves the sizes from which they follow alone."""
    node = onnx.helper.make_node(
        "GridSample", ["x", "grid"], ["y"], mode="cubic", padding_mode=padding, align_corners=1
    )
    x, grid, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, sizes)
        for name, sizes in (("x", [2, 1, "n", 5]), ("grid", [2, 1, "n", 2]), ("y", [2, 1, 1, "n"]))
    )
    graph = onnx.helper.make_graph([node], "sampled", [x, grid], [y])
    opsets = [onnx.helper.make_opsetid("", 20)]
    source = onnx.helper.make_model(graph, ir_version=9, opset_imports=opsets).SerializeToString()

    def run(*sizes: int, device: str = "cuda") -> list[Array]:
        loaded, found = dml.onnx.load(source, device), list[Array]()
        for size in sizes:
            random = np.random.default_rng(size)
            values = random.standard_normal((2, 1, size, 5), np.float32)
            places = random.uniform(-1.5, 1.5, (2, 1, size, 2)).astype(np.float32)
            found.append(loaded(values, places)["y"])
        return found

    sizes = 3, 17, 2, 5, 24
    wanted = run(*sizes, device="cpu")
    for _ in range(2):
        found, counts = work.of(lambda: run(*sizes))
        for result, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(result, expected, 1e-4, 1e-4)
    assert counts == NOTHING


TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 16] x) => (float[n, 8] y, bool[n, 8] positive) {
  h = MatMul (x, w)
  r = Relu (h)
  f = Mul (v, v)
  y = MatMul (r, f)
  zero = Constant <value_float = 0.0> ()
  positive = Greater (y, zero)
}
"""


def model(text: str = TEXT, **weights: Array) -> bytes:
    read = onnx.parser.parse_model(text)
    for name, array in ({"w": W[0, 0], "v": V} | weights).items():
        read.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return bytes(read.SerializeToString())


def rows(count: int) -> Array:
    return np.random.default_rng(count).standard_normal((count, 16), np.float32)


def results(source: bytes, *counts: int, device: Any = "cuda") -> list[bytes]:
    loaded = dml.onnx.load(source, device)
    return [each.tobytes() for count in counts for each in loaded(rows(count)).values()]


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("[n,", "[9,")])
def test_a_known_model_is_neither_parsed_nor_traced(text: str, work: Work) -> None:
    source = model(text)
    counts = (9, 9, 9) if "[9," in text else (9, 14, 9)
    expected, first = work.of(lambda: results(source, *counts))
    assert min(first.values()) > 0
    assert work.of(lambda: results(source, *counts)) == (expected, NOTHING)
    assert work.of(lambda: results(source, *counts, device=dml.Device("cuda"))) == (expected, NOTHING)
    y = np.maximum(rows(9) @ W[0, 0], 0) @ (V * V)
    np.testing.assert_allclose(np.frombuffer(expected[0], np.float32).reshape(9, 8), y, 1e-4, 1e-4)


def test_a_new_bucket_of_a_known_model_is_planned_from_its_kernels(work: Work) -> None:
    source = model()
    expected, _ = work.of(lambda: results(source, 9, 200))
    for path in work.plans:
        path.unlink()
    work.of(lambda: results(source, 9))
    found, counts = work.of(lambda: results(source, 200))
    assert found == expected[2:]
    assert (counts["parsed"], counts["fused"]) == (0, 0)
    assert counts["scheduled"] > 0
    assert work.of(lambda: results(source, 200)) == (found, NOTHING)


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans serve sizes that some numbers divide as they divide the hints, so many hints are refused."""
    compiled = planning.CudaTracedProgram.compile

    def compile(program: planning.CudaTracedProgram) -> Any:
        size = next(each for layout in program.program.inputs for each in layout.sizes if is_traced(each))
        _ = [size % each == 0 for each in (2, 4, 3, 8, 5)]  # Each makes a guard.
        return compiled(program)

    monkeypatch.setattr(planning.CudaTracedProgram, "compile", compile)


DIVIDED = [*range(66, 120, 3)]
"""Sizes that need many plans of one bucket."""


@pytest.mark.usefixtures("divided")
def test_many_sizes_of_a_bucket_are_read_and_not_planned(work: Work) -> None:
    source = model()
    expected, _ = work.of(lambda: results(source, *DIVIDED))
    assert len(work.plans) > 12
    assert work.of(lambda: results(source, *DIVIDED)) == (expected, NOTHING)
    assert work.of(lambda: results(source, *DIVIDED[::-1]))[1] == NOTHING


@pytest.mark.usefixtures("divided")
def test_a_plan_that_is_known_is_not_made_again_for_a_size_whose_better_hints_are_refused(work: Work) -> None:
    source = model()
    work.of(lambda: results(source, *DIVIDED[::2]))
    expected, counts = work.of(lambda: results(source, *DIVIDED))
    assert counts["parsed"] == 0
    plans = work.plans
    assert work.of(lambda: results(source, *DIVIDED)) == (expected, NOTHING)
    assert work.plans == plans


@pytest.mark.usefixtures("divided")
def test_a_known_plan_whose_machine_code_is_gone_is_made_again(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = model()
    work.of(lambda: results(source, 66, 72))
    expected, _ = work.of(lambda: results(source, 66, 72, 84))
    monkeypatch.setattr(stored_plan, "cubins_of_keys", cubins.cubins_of_keys)  # The cache has no code.
    found, counts = work.of(lambda: results(source, 84, 66))
    assert found == [*expected[4:], *expected[:2]]
    assert counts["parsed"] == 0


@pytest.mark.usefixtures("divided")
def test_many_sizes_of_a_graph_are_read_and_not_planned(work: Work) -> None:
    shapes = [(3, size) for size in DIVIDED]
    expected, _ = work.of(lambda: attended(*shapes))
    assert work.of(lambda: attended(*shapes)) == (expected, NOTHING)


def test_plans_of_devices_are_their_own(work: Work) -> None:
    """A plan for the CPU runs on no other device, and the other way round."""
    source = model()
    on_cpu, _ = work.of(lambda: results(source, 9, device="cpu"))
    found, counts = work.of(lambda: results(source, 9))
    assert counts["parsed"] == 1
    again, counts = work.of(lambda: results(source, 9, device="cpu"))
    assert (again, counts["parsed"]) == (on_cpu, 0)
    np.testing.assert_allclose(np.frombuffer(found[0], "f4"), np.frombuffer(on_cpu[0], "f4"), 1e-4, 1e-4)


def test_other_weights_that_a_trace_has_folded_are_folded_again(work: Work) -> None:
    large = RANDOM.standard_normal((16, 80), np.float32)
    text = TEXT.replace("float[n, 8]", "float[n, 80]").replace("bool[n, 8]", "bool[n, 80]")
    work.of(lambda: results(model(text, v=large), 9))
    found, counts = work.of(lambda: results(model(text, v=2 * large), 9))
    assert counts["parsed"] == 1
    y = np.maximum(rows(9) @ W[0, 0], 0) @ (4 * large * large)
    np.testing.assert_allclose(np.frombuffer(found[0], "f4").reshape(9, 80), y, 1e-4, 1e-3)


@pytest.mark.parametrize("what", ["name", "driver_version"])
def test_a_known_model_is_traced_again_on_another_device(
    what: str, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _ = work.of(lambda: results(model(), 9))
    monkeypatch.setattr(stored_plan.device(0), what, "another")
    found, counts = work.of(lambda: results(model(), 9))
    assert found == expected
    assert min(counts.values()) > 0


def test_compiled_files_are_for_the_cpu(work: Work, tmp_path: Path) -> None:
    loaded = dml.onnx.load(model(), "cuda")
    loaded(rows(9))
    with pytest.raises(dml.Unsupported, match="compiled=True"):
        loaded.save(tmp_path / "model.dml", compiled=True)
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [3, "n"])
    named = graph.compile({"y": dml.activation_relu(x)}, "cuda")
    named(np.ones((3, 9), np.float32))
    with pytest.raises(dml.Unsupported, match="compiled=True"):
        named.save(tmp_path / "model.dml", compiled=True)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_of_a_join_that_are_near_each_other_for_some_sizes_are_right_for_all(
    parts: int, work: Work
) -> None:
    """A kernel stores all parts. Where a part begins depends on the size, so no code may have it."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 1, "n"])
    joined = dml.join([x, *[x * float(each) for each in range(2, parts + 1)], x], axis=2)
    named = graph.compile({"y": joined}, "cuda")
    for size in (5, 2, 6, 3, 7, 4, 9, 8, 15):
        values = np.random.default_rng(size).standard_normal((1, 1, size), np.float32)
        scaled = [values * np.float32(each) for each in (*range(1, parts + 1), 1)]
        np.testing.assert_array_equal(named(values)["y"], np.concatenate(scaled, axis=2), str(size))


def test_numbers_of_sizes_that_code_has_are_guards(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    constructed = traced_launches.construct_traced

    def constructed_with_size(decision: Any, form: Any, *others: Any) -> Any:
        launch = constructed(decision, form, *others)
        constants = (*launch.pattern.constants, ("SIZE", form.domain[-1]))
        return replace(launch, pattern=replace(launch.pattern, constants=constants))

    monkeypatch.setattr(traced_launches, "construct_traced", constructed_with_size)
    graph = dml.Graph()
    named = graph.compile({"y": dml.activation_relu(graph.input("x", dml.FLOAT32, [3, "n"]))}, "cuda")
    for size in (20, 21, 20):
        values = np.ones((3, size), np.float32)
        np.testing.assert_array_equal(named(values)["y"], values)
    codes = [each.cubin.key for plan in plans_of(named) for each in plan.executable.launches]
    assert len({*codes}) == 2


def test_copies_of_host_arrays_take_the_memory_of_one_dispatch(work: Work) -> None:
    """All instances of all plans share them."""
    loaded = dml.onnx.load(model(), "cuda")
    for count in (9, 14, 9, 200, 9, 14, 9, 14, 30, 9, 14):
        loaded(rows(count))
    copies = loaded._cache.shared.arenas.copies
    needed = sum(each.nbytes for each in (rows(200), *loaded(rows(200)).values()))
    assert needed <= copies.free_bytes == copies.most < needed + 1024
    assert loaded.kept_bytes >= needed
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [3, "n"])
    named = graph.compile({"y": dml.activation_relu(x)}, "cuda")
    for size in (9, 14, 10, 15, 14):
        named(np.ones((3, size), np.float32))
    assert named.temporary_bytes >= 2 * 3 * 15 * 4


def test_threads_have_copies_of_their_own(work: Work) -> None:
    loaded, found = dml.onnx.load(model(), "cuda"), dict[int, list[bytes]]()
    wanted = {count: np.maximum(rows(count) @ W[0, 0], 0) @ (V * V) for count in (9, 14, 30, 200)}
    for count in wanted:
        loaded(rows(count))

    def run(count: int) -> None:
        found[count] = [next(iter(loaded(rows(count)).values())).tobytes() for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, wanted))
    for count, results in found.items():
        assert len(set(results)) == 1
        y = np.frombuffer(results[0], np.float32).reshape(count, 8)
        np.testing.assert_allclose(y, wanted[count], 1e-4, 1e-4)
    copies = loaded._cache.shared.arenas.copies
    assert copies.free_bytes <= 4 * copies.most


def test_the_backend_imports_no_compiler() -> None:
    """A process that finds its plans needs none."""
    program = "import sys, opendml.targets.cuda.backend; print(*sorted(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert "opendml.targets.cuda.executable" in found
    needed = {"opendml.compiler", "opendml.compiler.recipe", "opendml.compiler.memory"}
    assert {name for name in found if name.startswith("opendml.compiler")} <= needed
    assert "opendml.targets.cuda.schedule" not in found
