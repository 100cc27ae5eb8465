"""Attention over a cache of keys and values that grows: its kernels, its results, and caches in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

from opendml import onnx as dml_onnx
from opendml.compiler.kernel import KernelProgram
from opendml.compiler.sized import plain
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.program.program import Program
from opendml.runtime.graphs.traced_model import TracedModel
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cpu.planning import CpuTracedProgram
from opendml.targets.cuda.planning import fused
from tests.cuda.compiled import MACHINES
from tests.onnx.models import Array

HEADS, SIZE = 3, 16
_CACHES = "past_key, past_value"
_NODES = {
    "MultiHeadAttention": f"com.microsoft.MultiHeadAttention <num_heads = {HEADS}> (q, k, v,,,, {_CACHES})",
    "GroupQueryAttention": f"com.microsoft.GroupQueryAttention <num_heads = {HEADS}, kv_num_heads = {HEADS}> "
    f"(q, k, v, {_CACHES}, lengths, total_length)",
    "Attention": f"Attention <q_num_heads = {HEADS}, kv_num_heads = {HEADS}, is_causal = 1> "
    f"(q, k, v,, {_CACHES})",
}
_EXPORTED = """
    present_key = Concat <axis: int = 2> (past_key, k)
    present_value = Concat <axis: int = 2> (past_value, v)
    nothing = Constant <value = float {0.0}> ()
    half = Constant <value = float {0.5}> ()
    mask = CastLike (nothing, q)
    zero = CastLike (nothing, q)
    factor = CastLike (half, q)
    turned = Transpose <perm: ints = [0, 1, 3, 2]> (present_key)
    left = Mul (q, factor)
    right = Mul (turned, factor)
    products = MatMul (left, right)
    scores = Add (products, mask)
    softmax = Softmax <axis: int = -1> (scores)
    is_nan = IsNaN (softmax)
    weights = Where (is_nan, zero, softmax)
    y = MatMul (weights, present_value)
"""
"""Attention as PyTorch exports it. The factors of queries and keys multiply to 1 / sqrt(16)."""


def model_of(kind: str, type: str = "float") -> onnx.ModelProto:
    """A model with the outputs y, present_key and present_value. The axis of `count` has new rows."""
    if kind == "exported":
        new, body = f"[1, {HEADS}, count, {SIZE}]", _EXPORTED
    else:
        new = f"[1, count, {HEADS * SIZE}]"
        body = f"y, present_key, present_value = {_NODES[kind]}"
    cache, longer = (f"{type}[1, {HEADS}, {length}, {SIZE}]" for length in ("length", "total"))
    lengths = ", int32[1] lengths, int32 total_length" if kind == "GroupQueryAttention" else ""
    text = f"""<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]> g (
        {type}{new} q, {type}{new} k, {type}{new} v, {cache} past_key, {cache} past_value{lengths}
    ) => ({type} y, {longer} present_key, {longer} present_value)
    {{ {body} }}"""
    return onnx.parser.parse_model(text)


def tensors(kind: str, count: int, length: int, type: type = np.float32) -> dict[str, Array]:
    """Random inputs."""
    generator = np.random.default_rng(100 * length + count)
    new = (1, HEADS, count, SIZE) if kind == "exported" else (1, count, HEADS * SIZE)
    sizes = {**dict.fromkeys("qkv", new), **dict.fromkeys(_CACHES.split(", "), (1, HEADS, length, SIZE))}
    found: dict[str, Array] = {
        name: generator.standard_normal(each).astype(type) for name, each in sizes.items()
    }
    return found | lengths(kind, count, length)


def lengths(kind: str, count: int, length: int) -> dict[str, Array]:
    """The numbers that GroupQueryAttention reads beside tensors."""
    if kind != "GroupQueryAttention":
        return {}
    total = length + count
    return {"lengths": np.array([total - 1], np.int32), "total_length": np.array(total, np.int32)}


def attended(inputs: dict[str, Array], is_causal: bool = False) -> dict[str, Array]:
    """The outputs in float64."""

    def heads(x: Array) -> Array:
        return x if x.ndim == 4 else x.reshape(1, -1, HEADS, SIZE).swapaxes(1, 2)

    q, k, v = (heads(inputs[name]).astype(np.float64) for name in "qkv")
    keys, values = (
        np.concatenate([inputs[name], new], axis=2)
        for name, new in zip(_CACHES.split(", "), (k, v), strict=True)
    )
    scores = q @ keys.swapaxes(2, 3) / SIZE**0.5
    if is_causal:
        scores += np.triu(np.full(scores.shape[2:], -np.inf), 1 + keys.shape[2] - q.shape[2])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    y = weights / weights.sum(axis=-1, keepdims=True) @ values
    y = y if inputs["q"].ndim == 4 else y.swapaxes(1, 2).reshape(inputs["q"].shape)
    return {"y": y, "present_key": keys, "present_value": values}


KINDS = ["exported", *_NODES]
CASES = [(kind, type) for kind in KINDS for type in ("float", "float16")]


MOST_TRACED = {"exported": 8, "MultiHeadAttention": 8, "Attention": 8, "GroupQueryAttention": 12}
"""Traces of 12 runs: sizes of 0 and 1 are structure, and a known total length is a step of its own."""


def loaded(kind: str, type: str = "float") -> dml_onnx.OnnxModel:
    return dml_onnx.load(model_of(kind, type))


def cpu_kernels(program: Program) -> KernelProgram:
    """The kernels of a program on the CPU."""
    return CpuTracedProgram(program, 1).kernels


def cuda_kernels(program: Program) -> KernelProgram:
    """The kernels of a program on an H100."""
    return fused(program, MACHINES[90])


def kinds_of(
    model: dml_onnx.OnnxModel, inputs: dict[str, Array], kernels_of: Callable[[Program], KernelProgram]
) -> list[list[KernelKind]]:
    """The kinds of the kernels of a model's last graph, as it is and with caches in place."""
    *_, step = model._tracer.steps(dict(inputs), {})
    assert isinstance(step.work, CompiledSegment)
    traced = step.work.model
    assert isinstance(traced, TracedModel)
    in_place = traced.in_place({"present_key": "past_key", "present_value": "past_value"})
    assert in_place is not None
    programs = [each._program for each in (traced, in_place.traced)]
    kernels = [plain(kernels_of(each)).kernels for each in programs if each is not None]
    return [[kind_of(kernel) for kernel in each] for each in kernels]


@pytest.mark.parametrize("kernels_of", [cpu_kernels, cuda_kernels])
@pytest.mark.parametrize(("kind", "type"), CASES)
def test_attention_of_one_row_is_one_kernel_that_reads_the_cache_in_its_type(
    kind: str, type: str, kernels_of: Callable[[Program], KernelProgram]
) -> None:
    """Others copy the cache, and store the new rows. In place, nothing is copied."""
    given = tensors(kind, 1, 37, np.dtype(type if type != "float" else "float32").type)
    elements = KernelKind.ELEMENT_WISE
    usual, in_place = kinds_of(loaded(kind, type), given, kernels_of)
    assert sorted(usual, key=lambda each: each.value) == [
        KernelKind.ATTENTION,
        *[elements] * (len(usual) - 1),
    ]
    assert len(usual) <= 5
    assert len(in_place) == len(usual) - 2


@pytest.mark.parametrize(("kind", "type"), CASES)
def test_results_of_a_growing_cache_are_those_in_float64(kind: str, type: str) -> None:
    dtype = np.dtype(type if type != "float" else "float32").type
    tolerance = {"rtol": 2e-3, "atol": 2e-3} if dtype is np.float16 else {"rtol": 2e-5, "atol": 2e-6}
    model = loaded(kind, type)
    state = model.state()
    past = {name: np.zeros((1, HEADS, 0, SIZE), dtype) for name in _CACHES.split(", ")}
    for step, count in enumerate([5, 1, 1, 1, 4, 1, 60, 1, 1, 600, 1, 1]):
        new = {name: each for name, each in tensors(kind, count, step, dtype).items() if name in "qkv"}
        new |= lengths(kind, count, past["past_key"].shape[2])
        wanted = attended(new | past, is_causal=kind in ("Attention", "GroupQueryAttention"))
        plain_outputs, outputs = model.run(new | past), state.run(new)
        for found in (plain_outputs["y"], outputs["y"]):
            np.testing.assert_allclose(found, wanted["y"], **tolerance)
        past = {name: plain_outputs[name.replace("past", "present")] for name in past}
        for name, each in past.items():
            assert np.array_equal(each, wanted[name.replace("past", "present")])
            assert np.array_equal(state[name], each)
    assert state.length == 677
    assert model._tracer.traced_count <= MOST_TRACED[kind]


def test_a_cleared_state_starts_again_with_another_batch() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[batch, length, 2] past, float[batch, count, 2] new) => (float[batch, total, 2] present) {
        present = Concat <axis: int = 1> (past, new)
    }"""
    state = dml_onnx.load(onnx.parser.parse_model(text).SerializeToString()).state()
    for batch in (2, 1, 3):
        state.run({"new": np.ones((batch, 4, 2), np.float32)})
        assert state["past"].shape == (batch, 4, 2)
        state.clear()


def test_a_cache_of_its_full_length_has_rows_in_its_middle_written() -> None:
    """GroupQueryAttention may be given more rows than there are keys. It returns as many."""
    model, kind = loaded("GroupQueryAttention"), "GroupQueryAttention"
    for count, length in ((1, 20), (1, 21), (3, 20), (1, 39), (5, 0), (40, 0)):
        given = tensors(kind, count, 40) | lengths(kind, count, length)
        before = {name: given[name][:, :, :length] for name in _CACHES.split(", ")}
        wanted, found = attended(given | before, is_causal=True), model.run(given)
        np.testing.assert_allclose(found["y"], wanted["y"], rtol=2e-5, atol=2e-6)
        for name in ("key", "value"):
            whole = given[f"past_{name}"].copy()
            whole[:, :, : length + count] = wanted[f"present_{name}"]
            assert np.array_equal(found[f"present_{name}"], whole)


def test_states_of_one_model_are_independent_in_threads() -> None:
    model = loaded("MultiHeadAttention")

    def generated(seed: int) -> list[Array]:
        state = model.state()
        inputs = [
            tensors("MultiHeadAttention", 3 if step == 0 else 1, 10 * seed + step) for step in range(40)
        ]
        return [state.run({name: each[name] for name in "qkv"})["y"] for each in inputs]

    wanted = [generated(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(generated, range(3), timeout=60))
    for own, other in zip(found, wanted, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(own, other, strict=True))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("caches") / "model.onnx"
    onnx.save(model_of("exported"), place)
    return place


def bound(
    session: dml_onnx.InferenceSession, new: dict[str, Array], views: Sequence[Array]
) -> dml_onnx.IOBinding:
    """A binding of new rows, and of the keys and values before and after them."""
    binding = session.io_binding()
    for name in "qkv":
        binding.bind_cpu_input(name, new[name])
    for name, before, after in (("key", views[0], views[1]), ("value", views[2], views[3])):
        binding.bind_ortvalue_input(f"past_{name}", dml_onnx.OrtValue.ortvalue_from_numpy(before))
        binding.bind_ortvalue_output(f"present_{name}", dml_onnx.OrtValue.ortvalue_from_numpy(after))
    binding.bind_output("y")
    return binding


def test_bound_caches_that_overlap_have_only_new_rows_written(path: Path) -> None:
    session = dml_onnx.InferenceSession(str(path))
    buffers = np.random.default_rng(1).standard_normal((2, 1, HEADS, 60, SIZE)).astype(np.float32)
    keys, values = buffers
    for length in (20, 21, 24, 30):
        new, before = tensors("exported", 1, length), buffers.copy()
        views = [each[:, :, :end] for each in (keys, values) for end in (length, length + 1)]
        binding = bound(session, new, views)
        session.run_with_iobinding(binding)
        given = {"past_key": before[0][:, :, :length], "past_value": before[1][:, :, :length]}
        wanted = attended({**new, **given})
        y, *presents = sorted(binding.copy_outputs_to_cpu(), key=lambda each: each.shape[2])
        np.testing.assert_allclose(y, wanted["y"], rtol=2e-5, atol=2e-6)
        assert {each.shape[2] for each in presents} == {length + 1}
        assert np.array_equal(keys[:, :, length], new["k"][:, :, 0])
        assert np.array_equal(values[:, :, length], new["v"][:, :, 0])
        buffers[:, :, :, length] = before[:, :, :, length]
        assert np.array_equal(buffers, before)
        buffers[:, :, :, :length] += 1  # The next run reads what it finds.


def test_bound_caches_that_overlap_otherwise_are_refused(path: Path) -> None:
    session = dml_onnx.InferenceSession(str(path))
    buffers = np.zeros((2, 1, HEADS, 60, SIZE), np.float32)
    keys, values = buffers
    right = values[:, :, :20], values[:, :, :21]
    for views, problem in (
        ((keys[:, :, 1:21], keys[:, :, :21]), "must begin with it"),
        ((keys[:, :, :20], keys[:, :, :23]), r"sizes \[1, 3, 23, 16\]; must be \[1, 3, 21, 16\]"),
        ((keys[:, :, :20], values[:, :, :21]), "must begin with it"),
    ):
        binding = bound(session, tensors("exported", 1, 20), [*views, *right])
        with pytest.raises(InvalidArgument, match=problem):
            session.run_with_iobinding(binding)
        assert not buffers.any()


def batch_of_two() -> onnx.ModelProto:
    """GroupQueryAttention of four heads, two of keys, over two texts of lengths of their own."""
    size, cache = 4 * SIZE, f"2, length, {SIZE}"
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]> g (
        float[2, count, {size}] q, float[2, count, {size // 2}] k, float[2, count, {size // 2}] v,
        float[2, {cache}] past_key, float[2, {cache}] past_value, int32[2] lengths, int32 total_length
    ) => (float y, float present_key, float present_value) {{
        y, present_key, present_value = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>
            (q, k, v, past_key, past_value, lengths, total_length)
    }}""")


def grouped(x: Array, count: int) -> Array:
    """Heads of a text, those of keys once for each head of queries that shares them."""
    heads = x.reshape(len(x), -1, SIZE).swapaxes(0, 1)
    return np.repeat(heads, 4 // len(heads), axis=0)[None, :, :count]


@pytest.mark.parametrize("capacity", [0, 80])
def test_texts_of_a_batch_have_lengths_of_their_own_which_are_traced(capacity: int) -> None:
    """Caches are as long as the longest text, or have a fixed length."""
    model, generator = dml_onnx.load(batch_of_two()), np.random.default_rng(capacity)
    traced = list[int]()
    for count, both in (
        (1, (20, 20)),
        (1, (22, 15)),
        (3, (20, 18)),
        (1, (31, 30)),
        (4, (9, 33)),
        (1, (61, 61)),
    ):
        rows = {"q": 4, "k": 2, "v": 2}
        new = {
            name: generator.standard_normal((2, count, heads * SIZE), np.float32)
            for name, heads in rows.items()
        }
        caches = generator.standard_normal((2, 2, 2, capacity or max(both), SIZE), np.float32)
        past = dict(zip(_CACHES.split(", "), caches, strict=True))
        ends = np.array(both, np.int32) + count
        total = {"lengths": ends - 1, "total_length": ends.max()}
        found = model.run(new | past | total)
        for text, length in enumerate(both):
            given: dict[str, Array] = {name: grouped(each[text], count) for name, each in new.items()}
            given |= {name: np.repeat(each[text, :, :length], 2, axis=0)[None] for name, each in past.items()}
            wanted = attended(given, is_causal=True)
            y = found["y"][text].reshape(count, 4, SIZE).swapaxes(0, 1)
            np.testing.assert_allclose(y, wanted["y"][0], rtol=1e-4, atol=2e-6)
            for name in ("present_key", "present_value"):
                assert np.array_equal(found[name][text, :, : length + count], wanted[name][0, ::2])
        traced.append(model._tracer.traced_count)
    assert traced[-1] == traced[2]
