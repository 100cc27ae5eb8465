"""Sizes that an ONNX model leaves open are traced, so that one trace serves several sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx

from opendml import onnx as dml_onnx
from opendml.errors import Error
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.frontends.onnx.trace import Steps, Tracer, TraceStep
from opendml.runtime.graphs.traced_model import TracedModel
from tests.running import same_bits

Array = np.ndarray[Any, Any]

MODELS = {
    "reshape by computed sizes": """(float[n, m, 6] x) => (float[p, q, r, s] y) {
        sizes = Shape (x)  zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
        axes = Constant <value_ints = [0]> ()
        two = Constant <value_ints = [2]> ()  three = Constant <value_ints = [3]> ()
        a = Gather (sizes, zero)  b = Gather (sizes, one)
        a1 = Unsqueeze (a, axes)  b1 = Unsqueeze (b, axes)
        wanted = Concat <axis = 0> (a1, b1, two, three)
        r = Reshape (x, wanted)  y = Transpose <perm = [0, 2, 1, 3]> (r)
    }""",
    "reshape with a rest": """(float[n, m] x) => (float[k] y, int64[1] c) {
        sizes = Constant <value_ints = [-1]> ()  y = Reshape (x, sizes)  c = Shape (y) }""",
    "products, quotients and remainders": """(float[n, m] x) => (int64[5] y) {
        s = Shape (x)  two = Constant <value_ints = [2]> ()  five = Constant <value_ints = [5]> ()
        a = Mul (s, two)  b = Div (s, two)  c = Mod (s, five)  d = ReduceProd <keepdims = 1> (s)
        e = Sub (d, a)  f = Concat <axis = 0> (a, b, c)  some = Constant <value_ints = [0, 2, 4]> ()
        g = Gather (f, some)  y = Concat <axis = 0> (g, e)
    }""",
    "a sum of all sizes": """(float[n, m] x) => (int64[2] y) <int64[0] none = {}> {
        s = Shape (x)  a = ReduceSum (s, none)
        b = ReduceSum <keepdims = 1> (s)  y = Concat <axis = 0> (a, b)
    }""",
    "a causal mask": """(float[n, n] x) => (float[n, n] y) {
        s = Shape (x)  zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
        n = Gather (s, zero)  r = Range (zero, n, one)
        a0 = Constant <value_ints = [0]> ()  a1 = Constant <value_ints = [1]> ()
        p = Add (n, n)  after = Range (n, p, one)  later = Sub (after, n)
        row = Unsqueeze (later, a0)  column = Unsqueeze (r, a1)
        seen = LessOrEqual (row, column)
        hidden = Constant <value_float = -100.0> ()
        y = Where (seen, x, hidden)
    }""",
    "zeros of computed sizes": """(float[n, m] x) => (float[n, k] y) {
        s = Shape (x)  z = ConstantOfShape (s)  y = Concat <axis = 1> (x, z) }""",
    "expanded to sizes": """(float[n, 1] x, float[m] w) => (float[n, m] y) {
        a = Shape <end = 1> (x)  b = Shape (w)  s = Concat <axis = 0> (a, b)
        e = Expand (x, s)  y = Mul (e, w)
    }""",
    "cut and padded by sizes": """(float[n, m] x) => (float[n, k] y) {
        s = Shape <start = 1> (x)  one = Constant <value_ints = [1]> ()  end = Sub (s, one)
        zero = Constant <value_ints = [0]> ()  c = Slice (x, one, end, one)
        pads = Constant <value_ints = [0, 2, 0, 1]> ()  y = Pad (c, pads)
    }""",
    "resized by float arithmetic": """(float[1, 2, h, w] x) => (float[1, 2, k, l] y) {
        s = Shape <start = 2> (x)  f = Cast <to = 1> (s)  half = Constant <value_floats = [2.0, 2.0]> ()
        p = Mul (f, half)  q = Floor (p)  i = Cast <to = 7> (q)
        front = Constant <value_ints = [1, 2]> ()  sizes = Concat <axis = 0> (front, i)
        y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
            (x, , , sizes)
    }""",
    "a growing cache": """(float[1, 2, q, 4] x, float[1, 2, p, 4] past)
        => (float[a, b, q, d] y, float[a, b, c, d] new) {
        new = Concat <axis = 2> (past, x)  t = Transpose <perm = [0, 1, 3, 2]> (new)
        s = MatMul (x, t)  w = Softmax (s)  y = MatMul (w, new) }""",
    "causal attention over other keys": """(float[1, 2, n, 4] q, float[1, 2, m, 4] k)
        => (float[1, 2, n, 4] y) { y = Attention <is_causal = 1> (q, k, k) }""",
    "causal attention behind a cache": """
        (float[1, 2, n, 4] q, float[1, 2, m, 4] k, float[1, 2, p, 4] c)
        => (float[1, 2, n, 4] y, float[1, 2, t, 4] d)
        { y, d = Attention <is_causal = 1> (q, k, k, , c, c) }""",
    "tables of integers cut and repeated to lengths": """(float[n, m] x) => (float[n, m] y, int64[n, k] r)
        <int64[1, 64] table = {"""
    + ", ".join(map(str, range(64)))
    + """}> {
        s = Shape (x)  zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()
        m = Gather (s, one)  t = Slice (table, zero, m, one)  f = Cast <to = 1> (t)  y = Add (x, f)
        n = Gather (s, zero)  o = Concat <axis = 0> (n, one)  r = Expand (table, o)
    }""",
    "a size as data": """(float[n, m] x) => (float[n, m] y) {
        c = Size (x)  f = Cast <to = 1> (c)  t = ReduceSum <keepdims = 0> (x)  a = Div (t, f)  y = Sub (x, a)
    }""",
}


STEP = """(int64[1, length] tokens, float[1, past, 8] keys, float[16, 8] words, float[64, 8] places)
    => (float[1, length, 8] y, float[1, total, 8] present) {
        zero = Constant <value_int = 0> ()  one = Constant <value_int = 1> ()
        first = Constant <value_ints = [0]> ()  second = Constant <value_ints = [1]> ()
        past_sizes = Shape (keys)  past = Gather (past_sizes, one)
        sizes = Shape (tokens)  length = Gather (sizes, one)  total = Add (past, length)
        positions = Range (past, total, one)  embedded = Gather (places, positions)
        word = Gather (words, tokens)  x = Add (word, embedded)
        present = Concat <axis = 1> (keys, x)
        all = Range (zero, total, one)  row = Unsqueeze (all, first)  column = Unsqueeze (positions, second)
        seen = LessOrEqual (row, column)
        turned = Transpose <perm = [0, 2, 1]> (present)  scores = MatMul (x, turned)
        hidden = Constant <value_float = -1e9> ()
        masked = Where (seen, scores, hidden)  weights = Softmax (masked)  y = MatMul (weights, present)
    }"""
"""A step of a transformer with a growing cache, as exporters write it."""


def loaded(text: str) -> dml_onnx.OnnxModel:
    head = '<ir_version: 10, opset_import: ["" : 23]> g '
    return dml_onnx.load(onnx.parser.parse_model(head + text))


def traces(model: dml_onnx.OnnxModel) -> list[TraceStep]:
    """All steps that were traced."""

    def below(steps: Steps) -> Iterator[TraceStep]:
        for step in itertools.chain(*steps.values()):
            yield step
            yield from below(step.next_steps)

    return list(below(model._tracer._first_steps))


def given(model: dml_onnx.OnnxModel, **sizes: int) -> dict[str, Array]:
    """Inputs of a model with sizes by the names of dimensions."""
    found = {}
    for number, each in enumerate(model.inputs):
        shape = [sizes[size] if isinstance(size, str) else size for size in each.sizes or ()]
        found[each.name] = np.random.default_rng(number).standard_normal(shape).astype(np.float32)
    return found


def exactly(text: str, inputs: Mapping[str, Array]) -> dict[str, Any]:
    """The outputs of a model that was loaded for sizes of these inputs alone."""
    model = loaded(text)
    model._tracer._symbols, model._tracer._traces_sizes = {}, False
    return model.run(inputs)


@pytest.mark.parametrize("name", MODELS)
def test_one_trace_serves_all_sizes(name: str) -> None:
    text = MODELS[name]
    model = loaded(text)
    names = sorted({size for each in model.inputs for size in each.sizes or () if isinstance(size, str)})
    for values in ((3, 5, 7), (4, 9, 6), (11, 2, 13), (17, 40, 23)):
        inputs = given(model, **dict(zip(names, values, strict=False)))
        found, expected = model.run(inputs), exactly(text, inputs)
        for output, array in expected.items():
            np.testing.assert_allclose(found[output], array, 1e-5, 1e-5)
    # Of 3 elements, one is left when the ends are cut. A size of 1 has a trace of its own.
    assert len(traces(model)) == (2 if name == "cut and padded by sizes" else 1)


@pytest.mark.parametrize("lengths", [(1,), (2, 5)])
def test_steps_with_a_growing_cache_are_traced_once(lengths: tuple[int, ...]) -> None:
    model = loaded(STEP)
    tables = {"words": np.eye(16, 8, dtype=np.float32), "places": np.eye(64, 8, dtype=np.float32)}
    for past in range(33, 53):
        for length in lengths:
            inputs: dict[str, Array] = {**tables, "tokens": np.arange(length)[None]}
            inputs["keys"] = np.ones((1, past, 8), np.float32)
            found, expected = model.run(inputs), exactly(STEP, inputs) if past == 40 else {}
            assert found["present"].shape == (1, past + length, 8)
            for name, array in expected.items():
                np.testing.assert_allclose(found[name], array, 1e-5, 1e-5)
    assert len(traces(model)) == 1


def test_sizes_of_0_and_those_of_1_that_repeat_have_traces_of_their_own() -> None:
    text = "(float[n, m] x, float[k, m] w) => (float[p, m] y) { y = Add (x, w) }"
    model = loaded(text)
    for n, k in ((3, 3), (1, 3), (3, 1), (5, 1), (1, 1), (5, 5), (1, 7)):
        inputs = given(model, n=n, k=k, m=4)
        assert same_bits(model.run(inputs)["y"], inputs["x"] + inputs["w"])
    assert len(traces(model)) == 3  # Of equal sizes, and two in which the first or the second repeats.
    assert model.run(given(model, n=0, k=1, m=4))["y"].shape == (0, 4)


def test_a_slice_that_is_whole_for_one_size_needs_no_trace_of_its_own() -> None:
    model = loaded("""(float[n, m] x, float[8, m] table) => (float[n, m] y) {
        zero = Constant <value_ints = [0]> ()  one = Constant <value_ints = [1]> ()
        s = Shape (x)  n = Slice (s, zero, one)  t = Slice (table, zero, n)
        r = Relu (t)  y = Add (x, r) }""")
    for n in (5, 8, 3, 1):
        inputs = given(model, n=n, m=4)
        assert same_bits(model.run(inputs)["y"], inputs["x"] + np.maximum(inputs["table"][:n], 0))
    assert len(traces(model)) == 1


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [(-1, 2), (2, -1), (-2, -1)])
def test_negative_pads_cut_before_the_rest_is_continued(pads: tuple[int, int], mode: Any) -> None:
    begin, end = pads
    model = loaded(f"""(float[2, n] x) => (float[2, k] y) {{
        pads = Constant <value_ints = [0, {begin}, 0, {end}]> ()  y = Pad <mode = "{mode}"> (x, pads) }}""")
    for n in (6, 5, 9):
        inputs = given(model, n=n)
        kept = inputs["x"][:, max(0, -begin) : n - max(0, -end)]
        around: Any = [(0, 0), (max(0, begin), max(0, end))]
        assert same_bits(model.run(inputs)["y"], np.pad(kept, around, mode))


def test_sizes_that_were_equal_by_chance_may_differ() -> None:
    model = loaded(
        "(float[n, m] x, float[k] w) => (float[n, m] y, float[k] z) { y = Relu (x)  z = Relu (w) }"
    )
    for n, m, k in ((4, 4, 4), (4, 5, 6), (6, 5, 4)):
        inputs = given(model, n=n, m=m, k=k)
        for name, x in zip("yz", inputs.values(), strict=True):
            assert same_bits(model.run(inputs)[name], np.maximum(x, 0))


def test_dimensions_of_one_name_may_have_several_sizes() -> None:
    model = loaded("(float[n] x, float[n] w) => (float[n] y, float[n] z) { y = Neg (x)  z = Neg (w) }")
    for n, k in ((4, 4), (4, 5), (5, 4), (1, 4), (7, 7)):
        x, w = np.ones(n, np.float32), np.ones(k, np.float32)
        found = model.run({"x": x, "w": w})
        assert (found["y"].shape, found["z"].shape) == ((n,), (k,))


def test_a_failed_guard_makes_another_trace() -> None:
    text = """(float[n] x) => (float[k] y) {
        zero = Constant <value_ints = [0]> ()  ten = Constant <value_ints = [10]> ()
        y = Slice (x, zero, ten) }"""
    model = loaded(text)
    for n in (20, 30, 10, 9, 4, 25):
        x = np.arange(n, dtype=np.float32)
        assert same_bits(model.run({"x": x})["y"], x[:10])
    assert len(traces(model)) == 3  # for more than 10, 10 itself, and fewer


def test_sizes_that_depend_on_data_are_traced() -> None:
    text = """(float[n] x) => (float[k] y) {
        i = NonZero (x)  t = Transpose (i)  g = GatherND (x, t)  y = Neg (g) }"""
    model, count = loaded(text), 0
    for pattern in ("10110", "11100", "1111100000", "1010101"):
        x = np.array([float(each) for each in pattern], np.float32)
        assert same_bits(model.run({"x": x})["y"], -x[x != 0])
        count = count or len(traces(model))
    assert len(traces(model)) == count


def test_numbers_that_decide_about_sizes_are_traced() -> None:
    model = loaded("(float[n] x, int64[2] s) => (float[a, b] y) { r = Reshape (x, s)  y = Neg (r) }")
    for sizes in ((2, 3), (4, 5), (7, 2), (6, 6)):
        x = np.arange(np.prod(sizes), dtype=np.float32)
        assert same_bits(model.run({"x": x, "s": np.array(sizes)})["y"], -x.reshape(sizes))
    count = len(traces(model))
    assert same_bits(model.run({"x": x, "s": np.array([4, -1])})["y"], -x.reshape(4, -1))
    assert len(traces(model)) > count


def test_numbers_that_are_axes_stay_exact() -> None:
    model = loaded("(float[2, 3, 7, 6] x, int64 a) => (float[p, q, r, s] y) { y = CumSum (x, a) }")
    x = np.arange(2 * 3 * 7 * 6, dtype=np.float32).reshape(2, 3, 7, 6)
    for axis in (2, 3, 1, 2):
        found = model.run({"x": x, "a": np.array(axis)})["y"]
        np.testing.assert_array_equal(found, np.cumsum(x, axis))


def test_plans_are_chosen_for_sizes_that_meet_the_guards_of_their_graph() -> None:
    model = loaded("""(float[n] x, float[m] y, float[k] z) => (float[k] r) {
        c = Concat <axis = 0> (x, y)  r = Add (c, z) }""")
    for n in (20, 21, 28):
        given = {name: np.ones(size, np.float32) for name, size in (("x", n), ("y", 5), ("z", n + 5))}
        model.run(given)
    (segment,) = {each.work for each in traces(model) if isinstance(each.work, CompiledSegment)}
    assert isinstance(segment.model, TracedModel)
    plans = list(itertools.chain(*segment.model._plans.values()))
    assert len(plans) == 2
    assert all(plan.hints["n"] + plan.hints["m"] == plan.hints["k"] for plan in plans)


def test_a_size_whose_elements_lie_two_apart_is_served_by_the_plan_of_its_range() -> None:
    model = loaded(
        "(float[3, n, 16] x) => (float[3, 16, n] y) { t = Transpose <perm = [0, 2, 1]> (x)  y = Neg (t) }"
    )
    x = np.arange(96, dtype=np.float32).reshape(3, 2, 16)
    assert np.array_equal(model.run({"x": x})["y"], -x.transpose(0, 2, 1))
    (segment,) = {each.work for each in traces(model) if isinstance(each.work, CompiledSegment)}
    assert isinstance(segment.model, TracedModel)
    plans = itertools.chain(*segment.model._plans.values())
    assert [plan.hints["n"] for plan in plans] == [3]


def test_attention_has_the_same_bits_whether_few_or_many_queries_came_first() -> None:
    # Columns of values do not lie side by side, so attention of few rows does not read them.
    text = """(float[n, 24] x, float[8, n] v) => (float[n, 8] y) {
        t = Transpose (x)  s = MatMul (x, t)  w = Softmax <axis = -1> (s)
        u = Transpose (v)  y = MatMul (w, u) }"""
    random = np.random.default_rng(1)
    given = [
        {"x": random.standard_normal((n, 24), np.float32), "v": random.standard_normal((8, n), np.float32)}
        for n in (5, 300)
    ]
    found = []
    for order in (given, given[::-1]):
        model = loaded(text)
        found.append({len(each["x"]): model.run(each)["y"] for each in order})
    assert all(same_bits(found[0][n], found[1][n]) for n in (5, 300))


def test_inputs_in_another_order_are_traced_once() -> None:
    model = loaded("(float[n] x, float[m] y) => (float[k] z) { z = Concat <axis = 0> (x, y) }")
    x, y = np.ones(3, np.float32), np.zeros(4, np.float32)
    for given in ({"x": x, "y": y}, {"y": y, "x": x}):
        assert same_bits(model.run(given)["z"], np.concatenate([x, y]))
    assert len(traces(model)) == 1


def test_open_sizes_without_names_are_traced() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 23]> g (float[n, m] x) => (float[n, m] y, int64[2] c) {
            pads = Constant <value_ints = [0, 3, 0, 1]> ()  p = Pad <mode = "reflect"> (x, pads)
            s = Shape (p)  rank = Size (s)  two = Constant <value_ints = [1]> ()  c = Expand (rank, two)
            y = Relu (p) }"""
    )
    for dimension in model.graph.input[0].type.tensor_type.shape.dim:
        dimension.Clear()
    loaded = dml_onnx.load(model)
    for n, m in ((4, 9), (5, 12), (2, 10), (1, 11)):
        x = np.random.default_rng(n).standard_normal((n, m), np.float32)
        found = loaded.run({"x": x})
        padded = np.maximum(np.pad(x, ((0, 0), (3, 1)), "reflect"), 0)
        np.testing.assert_array_equal(found["y"], padded)
        assert found["c"].tolist() == [2]
    assert len(traces(loaded)) == 1


def test_bodies_of_loops_trace_what_is_open_outside() -> None:
    text = """(float[n] x, int64 trips) => (float[n] y) {
        go = Constant <value_int = 1> ()  b = Cast <to = 9> (go)
        y = Loop (trips, b, x) <body = body (int64 i, bool c, float[n] v) => (bool d, float[n] w)
            { d = Identity (c)  w = Add (v, x) }>
    }"""
    model = loaded(text)
    for n in (3, 5, 8):
        x = np.arange(n, dtype=np.float32)
        assert same_bits(model.run({"x": x, "trips": np.array(3)})["y"], x * 4)


def test_graphs_without_plans_are_traced_for_exact_sizes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    trace = Tracer._trace

    def noted(
        tracer: Tracer, state: Any, dimensions: Any, is_exact: bool = False, **options: Any
    ) -> TraceStep | None:
        made.append(is_exact)
        return trace(tracer, state, dimensions, is_exact, **options)

    monkeypatch.setattr(Tracer, "_trace", noted)
    monkeypatch.setattr(TracedModel, "at", lambda model, sizes: None)
    model = loaded("(float[n] x) => (float[n] y) { y = Neg (x) }")
    for n in (2, 3, 4, 5, 3):
        assert same_bits(model.run({"x": np.ones(n, np.float32)})["y"], -np.ones(n, np.float32))
    assert made == [False, True, False, True, True, True]


def test_parts_with_traced_sizes_are_explained_for_the_sizes_of_the_inputs() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[1, n] x, float[n, 64] y) => (float[1, 64] z) {'
    model = dml_onnx.load(onnx.parser.parse_model(f"{text} z = MatMul (x, y) }}"))
    for n in (96, 100):
        inputs = {"x": np.ones((1, n), np.float32), "y": np.ones((n, 64), np.float32)}
        (part,) = model.parts(inputs)
        assert not isinstance(part, str)
        assert [kernel.name for kernel in part.explain(**inputs).kernels] == ["GEMM"]
        np.testing.assert_array_equal(part(inputs)["z"], np.full((1, 64), n))


@pytest.mark.parametrize("first", [5, 2])
def test_windows_of_open_sizes_are_summed_along_their_own_loops(
    first: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A window that is as wide as the image leaves one column of results, whose loop is none. If plans are
    kept, they are made for such sizes."""
    monkeypatch.setenv("OPENDML_CACHE_PLANS", "1")
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    model = loaded("""(int8[1, 1, 6, 7] x, int8[3, 1, h, w] f) => (int8[1, 3, k, l] y)
        <float a = {0.25}, int8 p = {4}, float b = {0.5}, int8 q = {0}, float c = {16.0}> {
        y = QLinearConv (x, a, p, f, b, q, c, p) }""")
    random = np.random.default_rng(5)
    for size in (first, 5, 3, 1):
        image, filters = (
            random.integers(-128, 128, sizes, np.int8) for sizes in ((1, 1, 6, 7), (3, 1, size, size))
        )
        windows = np.lib.stride_tricks.sliding_window_view(image[0, 0].astype(np.int64) - 4, (size, size))
        sums = np.einsum("ijhw,fhw->fij", windows, filters[:, 0].astype(np.int64))
        wanted = np.clip(np.rint(sums * (0.25 * 0.5 / 16)) + 4, -128, 127)
        np.testing.assert_array_equal(model.run({"x": image, "f": filters})["y"][0], wanted)


@pytest.mark.parametrize("sizes", ["1, c, h, w", "1, 3, 4, 5"])
@pytest.mark.parametrize(
    ("operator", "allowed"),
    [("DepthToSpace", "channels must be a multiple of 4"), ("SpaceToDepth", "width must be multiples of 2")],
)
def test_blocks_that_do_not_divide_sizes_are_refused(operator: str, allowed: str, sizes: str) -> None:
    text = f"(float[{sizes}] x) => (float[a, b, d, e] y) {{ y = {operator} <blocksize = 2> (x) }}"
    model = loaded(text)
    if "c" in sizes:
        assert model.run({"x": np.ones((1, 4, 4, 6), np.float32)})["y"].size == 96
    with pytest.raises(Error, match=rf"{operator}.*blocksize 2 .*\[1, 3, 4, 5\]: .*{allowed}"):
        model.run({"x": np.ones((1, 3, 4, 5), np.float32)})


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (
            (1, 2, 2, 6),
            r"Conv.*over \[3, 5\] elements of .*\[1, 2, 2, 6\] with pads \[0, 1, 0, 1\]: .*at most \[2, 8\]",
        ),
        ((1, 2, 6, 2), r"over at most \[6, 4\]"),
        ((1, 2, 1, 1), r"over at most \[1, 3\]"),
        ((1, 3, 6, 6), r"\[4, 1, 3, 3\] with group 2 .*\[1, 3, 6, 6\]: .*must have 2 channels"),
        ((0, 3, 6, 6), r"must have 2 channels"),
    ],
)
def test_filters_that_do_not_fit_an_input_are_refused(sizes: tuple[int, ...], text: str) -> None:
    model = loaded("""(float[n, c, h, w] x, float[4, 1, 3, 3] f) => (float[n, 4, a, b] y) {
        y = Conv <group = 2, dilations = [1, 2], pads = [0, 1, 0, 1], strides = [2, 2]> (x, f) }""")
    filters = np.ones((4, 1, 3, 3), np.float32)
    found = model.run({"x": np.ones((1, 2, 6, 7), np.float32), "f": filters})["y"]
    assert found.shape == (1, 4, 2, 3)
    with pytest.raises(Error, match=text):
        model.run({"x": np.ones(sizes, np.float32), "f": filters})


def test_transposed_filters_of_other_channels_are_refused() -> None:
    model = loaded("(float[1, c, n] x, float[2, 3, 2] f) => (float[1, 3, m] y) { y = ConvTranspose (x, f) }")
    with pytest.raises(
        Error, match=r"ConvTranspose.*\[2, 3, 2\].*\[1, 3, 4\]: the input must have 2 channels"
    ):
        model.run({"x": np.ones((1, 3, 4), np.float32), "f": np.ones((2, 3, 2), np.float32)})


@pytest.mark.parametrize("size", [2**31, 2**61, 2**63 - 1])
def test_sizes_of_no_possible_array_are_those_that_an_input_must_have(size: int) -> None:
    model = loaded(f"(float[{size}, 4] x) => (float[n, 4] y) {{ y = Relu (x) }}")
    with pytest.raises(Error, match=rf"input 'x' has sizes \[2, 4\]; must be \[{size}, 4\]"):
        model.run({"x": np.ones((2, 4), np.float32)})


@pytest.mark.parametrize("operator", ["AveragePool", "LpPool", "MaxPool"])
def test_windows_of_which_a_stride_is_missing_give_no_elements(operator: str) -> None:
    model = loaded(
        f"(float[1, 2, h, w] x) => (float[1, 2, a, b] y) {{ y = {operator} <kernel_shape = [3, 3]> (x) }}"
    )
    for height, width in ((5, 6), (2, 6), (2, 2), (7, 2)):
        found = model.run({"x": np.ones((1, 2, height, width), np.float32)})["y"]
        assert found.shape == (1, 2, height - 2, width - 2)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_of_which_less_than_a_stride_is_missing_end_behind_the_input(operator: str) -> None:
    """ONNX Runtime has one window there, ONNX's evaluator none."""
    attributes = "kernel_shape = [3, 3], strides = [2, 2]"
    model = loaded(f"(float[1, 2, h, w] x) => (float[1, 2, a, b] y) {{ y = {operator} <{attributes}> (x) }}")
    for height, width, wanted in ((5, 7, (1, 2, 2, 3)), (1, 6, (1, 2, 0, 2)), (2, 5, (1, 2, 1, 2))):
        assert model.run({"x": np.ones((1, 2, height, width), np.float32)})["y"].shape == wanted
    x = np.arange(1, 21, dtype=np.float32).reshape(1, 2, 2, 5)
    rows = np.concatenate([x[..., :3], x[..., 2:]], axis=2).reshape(2, 2, 6)
    pooled = {"MaxPool": rows.max(2), "AveragePool": rows.mean(2), "LpPool": np.sqrt((rows**2).sum(2))}
    np.testing.assert_allclose(model.run({"x": x})["y"].reshape(2, 2), pooled[operator], rtol=1e-6)


def test_windows_behind_the_input_whose_padding_counts_are_refused() -> None:
    """ONNX Runtime divides by all elements of the window."""
    attributes = "kernel_shape = [3], strides = [2], count_include_pad = 1"
    model = loaded(f"(float[1, 2, w] x) => (float[1, 2, b] y) {{ y = AveragePool <{attributes}> (x) }}")
    with pytest.raises(Error, match=r"AveragePool.*over \[3\] elements of .*\[1, 2, 2\] .*at most \[2\]"):
        model.run({"x": np.ones((1, 2, 2), np.float32)})
