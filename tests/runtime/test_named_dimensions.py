"""Models with named dimensions: one compiled graph for arrays of any sizes."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler import sized
from opendml.errors import InvalidArgument
from opendml.later import finish
from opendml.program.atoms import Dimension
from opendml.program.buckets import ranges_of
from opendml.program.trace import Trace
from opendml.runtime.graphs import traced_model
from opendml.runtime.graphs.named_model import NamedModel
from opendml.runtime.graphs.plan_maker import PlanMaker, hints_in
from opendml.runtime.graphs.steps import ViewStep
from opendml.runtime.saved.read import loaded
from opendml.targets.cpu import engine, planning, schedule
from opendml.targets.cpu.executable import CpuInstance, CpuSizedInstance
from tests.frontends.test_saved_models import file_of, program_of
from tests.plans import check_words, exactly, plans_of, traces_of

Array = np.ndarray[Any, Any]


def model_of(device: str = "cpu") -> dml.Model:
    """Return a model of element-wise operators."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 7, 3])
    return graph.compile({"y": dml.activation_tanh(dml.activation_relu(x))}, device)


def values(*sizes: int) -> Array:
    return np.random.default_rng(sum(sizes)).standard_normal(sizes, np.float32)


def expected(x: Array) -> Array:
    return np.tanh(np.maximum(x, 0))


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_model_with_named_dimensions_is_called_with_arrays_of_any_sizes(device: str) -> None:
    model = model_of(device)
    for batch in (3, 1, 2, 4, 7, 8, 9, 100, 5, 3, 1):
        x = values(batch, 7, 3)
        y = model(x)["y"]
        assert y.shape == x.shape
        np.testing.assert_allclose(y, expected(x), atol=1e-6)
    assert repr(model) == f"<Model {device}: x FLOAT32 [batch, 7, 3] -> y FLOAT32 [batch, 7, 3]>"
    assert model.temporary_bytes == model.persistent_bytes == 0


def test_a_new_size_in_a_known_bucket_neither_fuses_nor_schedules_nor_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_of()
    for batch in (4, 8, 16):
        model(values(batch, 7, 3))

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a known bucket is planned again")

    for name in ("fuse", "schedule", "KernelCompiler"):
        monkeypatch.setattr(planning, name, refused)
    monkeypatch.setattr(engine, "compile_object", refused)
    for batch in (5, 7, 9, 15, 20, 31):
        x = values(batch, 7, 3)
        np.testing.assert_allclose(model(x)["y"], expected(x), atol=1e-6)
    assert len(plans_of(model)) == 3


def test_the_trace_of_larger_sizes_serves_1_if_no_operator_repeats_it() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 3, 8, 8])
    y: Any = dml.activation_relu(dml.convolution(x, values(4, 3, 3, 3), values(1, 4, 1, 1)))
    model = graph.compile({"y": dml.join([y, y * 2], axis=1).reshape(x.sizes[0], -1) + values(1, 288)})
    for batch in (3, 1, 2):
        given = {"x": values(batch, 3, 8, 8)}
        np.testing.assert_allclose(model(given["x"])["y"], exactly(model, given)["y"], atol=1e-5)
        assert check_words(model, batch=batch) == 1
    assert len(traces_of(model)) == 1
    first = model_of()  # A trace that begins with 1 is for 1 alone.
    assert [first(values(batch, 7, 3))["y"].shape[0] for batch in (1, 3, 1)] == [1, 3, 1]
    assert len(traces_of(first)) == 2


@pytest.mark.parametrize("function", ["SUM", "MULTIPLY", "MAX", "MIN", "L2", "ARGMAX", "ARGMIN"])
def test_a_reduction_over_several_elements_serves_one(function: str) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [2, "length", 6])
    model = graph.compile({"y": dml.reduce(x, function=function, axes=[1])})
    for length in (5, 1, 40, 1):
        given = values(2, length, 6)
        expected = dml.reduce(given, function=function, axes=[1], device="reference")
        np.testing.assert_allclose(model(given)["y"], expected, rtol=1e-5, atol=1e-6)
        assert check_words(model, length=length) == 1
    assert len(traces_of(model)) == 1


@pytest.mark.parametrize("what", ["attention", "normalization", "sums of products"])
def test_attention_and_normalization_over_several_elements_serve_one(what: str) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, "length", 8])
    heads = x.reshape(1, x.sizes[1], 2, 4).permute(0, 2, 1, 3)
    y: Any = x.permute(0, 2, 1) @ x
    if what == "attention":
        weights = dml.activation_softmax1(heads @ heads.permute(0, 1, 3, 2), axes=[3])
        y = (weights @ heads).permute(0, 2, 1, 3).reshape(1, x.sizes[1], 8)
    elif what == "normalization":
        y = dml.mean_variance_normalization1(x, axes=[1])
    model = graph.compile({"y": y})
    for length in (9, 1, 70, 2, 1):
        given = {"x": values(1, length, 8)}
        expected = exactly(model, given)["y"]
        np.testing.assert_allclose(model(given["x"])["y"], expected, rtol=1e-4, atol=1e-5)
        assert check_words(model, length=length) >= 1
    assert len(traces_of(model)) == 1


def counting(patch: pytest.MonkeyPatch, *functions: tuple[Any, str]) -> Counter[str]:
    """Return a table that counts the calls of functions, each of a module and a name."""
    counted = Counter[str]()

    def replace(module: Any, name: str) -> None:
        function = getattr(module, name)

        def call(*arguments: Any) -> Any:
            counted[name] += 1
            return function(*arguments)

        patch.setattr(module, name, call)

    for each in functions:
        replace(*each)
    return counted


def test_a_new_bucket_takes_the_launches_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = counting(
        monkeypatch,
        (schedule, "decide"),
        (schedule, "construct_traced"),
        (engine, "kernel_assembly"),
    )
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 16, "height", "width"])
    y: Any = dml.activation_relu(dml.convolution(x, values(32, 16, 3, 3)))
    outputs = {"y": dml.activation_sigmoid(y) * y}
    model = graph.compile(outputs)
    fresh = graph.compile(outputs)
    for batch in (3, 5, 13):
        given = {"x": values(batch, 16, 20, 20)}
        results, made = model(given["x"]), dict(counted)
        np.testing.assert_allclose(results["y"], exactly(model, given)["y"], atol=1e-5, rtol=1e-5)
        assert check_words(model, batch=batch, height=20, width=20) >= 1
        assert bool(made.keys() & {"decide", "construct_traced"}) is (batch == 3)
        counted.clear()
    assert len(plans_of(model)) >= 3
    np.testing.assert_array_equal(fresh(given["x"])["y"], results["y"])


def test_a_plan_for_all_sizes_takes_choices_of_one_for_a_single_height_and_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = counting(monkeypatch, (schedule, "decide"), (schedule, "construct_traced"))
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 16, "height", "width"])
    windows = dml.activation_relu(dml.convolution(x, values(32, 16, 3, 3)))
    pixels = dml.convolution(windows, values(24, 32, 1, 1))
    outputs = {"pixels": pixels, "most": dml.max_pooling(pixels, window_size=[3, 3], strides=[1, 1])}
    model, other = graph.compile(outputs), graph.compile(outputs)
    first, second = values(1, 16, 70, 90), values(1, 16, 150, 130)
    model(first)
    assert counted["decide"] == 3
    counted.clear()
    results = model(second)
    # Windows in tiles have choices for their width.
    assert counted == {"decide": 1, "construct_traced": 3}
    assert check_words(model, height=150, width=130) == 1
    for name, expected in exactly(model, {"x": second}).items():
        np.testing.assert_allclose(results[name], expected, atol=1e-4, rtol=1e-5)
    for given in (second, first):
        for name, own in other(given).items():
            np.testing.assert_array_equal(model(given)[name], own)


def test_the_values_of_kernels_are_the_same_objects_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", "columns"])
    weights = dml.activation_softmax1(x, axes=[1])
    model = graph.compile({"y": dml.cumulative_summation(weights, axis=0)})
    first, second = values(40, 70), values(5, 9)
    model(first)
    monkeypatch.setattr(sized._Replaced, "_node", lambda *_: pytest.fail("values are made again"))
    results = model(second)["y"]
    np.testing.assert_allclose(results, exactly(model, {"x": second})["y"], atol=1e-6, rtol=1e-5)


def test_few_pixels_have_the_bits_of_their_own_launches_after_a_bucket_of_many() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, [1, 64, 1, "width"])
    outputs = {"y": dml.convolution(x, graph.constant(values(128, 64, 1, 1)))}
    few, first = values(1, 64, 1, 5), graph.compile(outputs)
    second = graph.compile(outputs)
    first(values(1, 64, 1, 20))
    np.testing.assert_array_equal(first(few)["y"], second(few)["y"])


@pytest.mark.parametrize(
    ("filters", "given", "sizes"),
    [
        ((64, 4, 1, 1), {"group_count": 2}, [(4, 8, 3, 7), (2, 8, 17, 8)]),
        (
            (64, 32, 5, 5),
            {"group_count": 2, "dilations": [2, 2], "start_padding": [4, 4], "end_padding": [4, 4]},
            [(4, 64, 2, 17), (2, 64, 14, 7)],
        ),
        ((17, 8, 3, 3), {"dilations": [2, 2]}, [(2, 8, 17, 56), (2, 8, 7, 7), (2, 8, 5, 28)]),
    ],
    ids=["few pixels", "windows of one element", "one row of results"],
)
@pytest.mark.parametrize("keeps_plans", [False, True])
def test_bits_do_not_depend_on_earlier_sizes_of_images(
    filters: tuple[int, ...],
    given: dict[str, Any],
    sizes: list[tuple[int, ...]],
    keeps_plans: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Few pixels have other tiles than many, and small images may see smaller windows."""
    monkeypatch.setenv("OPENDML_CACHE_PLANS", "1" if keeps_plans else "0")
    monkeypatch.setenv("OPENDML_CACHE_DIRECTORY", str(tmp_path))
    weights = values(*filters)
    found = dict[tuple[int, ...], set[bytes]]()
    for order in (sizes, sizes[::-1], *([each] for each in sizes)):
        graph = dml.Graph()
        x = graph.input("x", dml.FLOAT32, ["batch", sizes[0][1], "height", "width"])
        model = graph.compile({"y": dml.convolution(x, graph.constant(weights), **given)}, "cpu")
        for each in order:
            found.setdefault(each, set()).add(model(values(*each))["y"].tobytes())
        finish()
    assert {each: len(results) for each, results in found.items()} == dict.fromkeys(sizes, 1)


def test_bits_of_products_with_few_columns_do_not_depend_on_earlier_sizes() -> None:
    weights, x = values(128, 2), values(33, 128)

    def made() -> dml.Model:
        graph = dml.Graph()
        return graph.compile({"y": graph.input("x", dml.FLOAT32, ["rows", 128]) @ graph.constant(weights)})

    alone, model = made()(x)["y"], made()
    model(values(100, 128))
    np.testing.assert_array_equal(model(x)["y"], alone)


def test_words_of_plans_are_those_of_exact_launches() -> None:
    model = model_of()
    for batch in (2, 5, 4, 8, 12, 700, 5000):
        x = values(batch, 7, 3)
        np.testing.assert_array_equal(model(x)["y"], exactly(model, {"x": x})["y"])
        assert check_words(model, batch=batch)


def test_words_are_right_beyond_2_to_31_elements() -> None:
    model, sizes = model_of(), {"batch": 180_000_000}
    assert isinstance(model, NamedModel)
    # The model is made, and nothing is run.
    assert model._at(sizes)._output_layouts[0].element_count == 21 * 180_000_000
    assert check_words(model, **sizes)


def test_saved_models_keep_named_dimensions(tmp_path: Path) -> None:
    model = model_of()
    model.save(tmp_path / "model.dml")
    for again in (dml.load(tmp_path / "model.dml"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert isinstance(again, dml.Model)
        assert repr(again) == repr(model)
        for batch in (5, 1, 6):
            x = values(batch, 7, 3)
            np.testing.assert_array_equal(again(x)["y"], model(x)["y"])


def two_inputs() -> dml.Model:
    graph = dml.Graph()
    x, y = (graph.input(name, dml.FLOAT32, ["rows", "columns"]) for name in "xy")
    return graph.compile({"sum": dml.element_wise_add(x, y)})


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            (2, 3),
            (2, 4),
            r"y: sizes \[2, 4\]; the graph has \[rows, columns\]; columns is 3 in x, dimension 1",
        ),
        ((2, 3), (2,), r"y: sizes \[2\]; the graph has \[rows, columns\]; 2 dimensions are needed"),
        ((0, 3), (0, 3), r"rows is 1 to 2147483647"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(x: tuple[int, ...], y: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        two_inputs()(np.zeros(x, np.float32), np.zeros(y, np.float32))


def test_a_fixed_size_beside_named_ones_is_checked() -> None:
    with pytest.raises(InvalidArgument, match=r"x: sizes \[2, 7, 4\].*\[2, 7, 3\] is needed"):
        model_of()(values(2, 7, 4))
    with pytest.raises(InvalidArgument, match="x is missing"):
        model_of()()


def test_dimensions_of_equal_size_are_not_taken_for_one() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["a", "b"])
    model = graph.compile({"y": dml.activation_relu(x.permute(1, 0))})
    for sizes in ((5, 5), (5, 6), (2, 2), (2, 3), (7, 7), (1, 5), (5, 1), (1, 1), (8, 4), (100, 2)):
        x_now = values(*sizes)
        np.testing.assert_array_equal(model(x_now)["y"], np.maximum(x_now.T, 0))


def test_a_graph_that_was_built_by_a_comparison_of_sizes_serves_what_that_allows() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 3])
    y = dml.activation_relu(x) if x.shape[0] > 4 else x
    model = graph.compile({"y": y})
    assert model(values(5, 3))["y"].shape == (5, 3)
    for each in (model, pickle.loads(pickle.dumps(model))):
        with pytest.raises(InvalidArgument, match=r"batch=4: .* -5\+batch >= 0, because .* compared sizes"):
            each(values(4, 3))


def test_limits_of_a_loaded_model_hold_for_sizes_that_it_meets(tmp_path: Path) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 4])
    graph.compile({"y": x @ x.T}).save(tmp_path / "model.dml")
    for limits in (dml.Limits(memory_bytes=3_000_000), dml.Limits(tensor_elements=20_000)):
        model = dml.load(tmp_path / "model.dml", limits=limits)
        assert isinstance(model, dml.Model)
        for each in (model, copy.deepcopy(model)):
            for batch in (1, 5, 100):
                assert each(values(batch, 4))["y"].shape == (batch, batch)
            with pytest.raises(dml.LimitExceeded):
                each(values(1000, 4))
            with pytest.raises(dml.LimitExceeded):
                each.warm_up({"batch": 1000})
            with pytest.raises(dml.LimitExceeded):
                each.explain(x=values(1000, 4))


def test_threads_call_a_model_with_different_sizes_at_once() -> None:
    model, problems = model_of(), list[object]()

    def call(first: int) -> None:
        try:
            for batch in range(first, 200, 7):
                x = values(batch, 7, 3)
                np.testing.assert_allclose(model(x)["y"], expected(x), atol=1e-6)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=call, args=(first,)) for first in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not problems


def test_all_sizes_of_a_plan_share_one_instance_and_new_ones_only_write_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_of()
    model(values(33, 7, 3))
    counts, make, resize = Counter[str](), CpuInstance.__init__, CpuSizedInstance.resize

    def counted_make(*given: Any) -> None:
        counts["made"] += 1
        make(*given)

    def counted_resize(*given: Any) -> None:
        counts["resized"] += 1
        resize(*given)

    monkeypatch.setattr(CpuInstance, "__init__", counted_make)
    monkeypatch.setattr(CpuSizedInstance, "resize", counted_resize)
    for batch in (34, 40, 40, 63, 35, 35, 33):
        x = values(batch, 7, 3)
        np.testing.assert_allclose(model(x)["y"], expected(x), atol=1e-6)
    # The first size has a model of its own.
    assert counts == {"made": 1, "resized": 4}
    (plan,) = plans_of(model)
    assert len(plan.instances_on(None).free) == 1


def test_a_call_that_fails_leaves_the_instance_of_its_plan_usable() -> None:
    model = model_of()
    model(values(33, 7, 3))
    for batch in (34, 35, 36):
        x = values(batch, 7, 3)
        with pytest.raises(InvalidArgument):
            model(x.astype(np.float64))
        np.testing.assert_allclose(model(x[::-1].copy()[::-1])["y"], expected(x), atol=1e-6)
        np.testing.assert_allclose(model(x)["y"], expected(x), atol=1e-6)
    (plan,) = plans_of(model)
    assert len(plan.instances_on(None).free) == 1


def test_models_with_named_dimensions_run_into_arrays_bind_and_explain() -> None:
    model, x = model_of(), values(6, 7, 3)
    y = np.zeros_like(x)
    model.run({"x": x}, {"y": y})
    np.testing.assert_allclose(y, expected(x), atol=1e-6)
    y[:] = 0
    model.bind({"x": x}, {"y": y}).dispatch()
    np.testing.assert_allclose(y, expected(x), atol=1e-6)
    with pytest.raises(InvalidArgument, match=r"y: .*\[5, 7, 3\]"):
        model.run({"x": x}, {"y": np.zeros((5, 7, 3), np.float32)})
    for found in (model.explain(x=x), model.explain(x), model.explain({"x": x})):
        assert "ACTIVATION_TANH" in found.kernels[0].name
    with pytest.raises(InvalidArgument, match="explain: x is missing"):
        model.explain()


def test_a_recurrence_has_as_many_steps_as_its_sequence_in_each_bucket() -> None:
    graph, activations = dml.Graph(), [dml.descs.ActivationSigmoid(), *[dml.descs.ActivationTanh()] * 2]
    x = graph.input("x", dml.FLOAT32, [1, "length", "batch", 24])
    weights = [graph.constant(values(1, 2, 64, size)) for size in (24, 16)]
    both: dict[str, Any] = {"activation_descs": activations * 2, "direction": "BIDIRECTIONAL"}
    result = dml.lstm(x, *weights, output_sequence=True, **both)[0]
    assert result is not None
    model = graph.compile({"y": result}, "cpu")
    for length, batch in ((5, 2), (5, 3), (7, 3), (1, 4)):
        inputs = {"x": values(1, length, batch, 24)}
        np.testing.assert_array_equal(model(inputs)["y"], exactly(model, inputs)["y"])


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3)])
def test_the_tensors_of_a_kernel_are_found_for_each_bucket(sizes: tuple[int, ...]) -> None:
    """Gates of a batch of 3 begin within one line of a cache, those of larger ones do not."""
    graph, activations = dml.Graph(), [dml.descs.ActivationSigmoid(), *[dml.descs.ActivationTanh()] * 2]
    x = graph.input("x", dml.FLOAT32, [1, 3, "batch", 3])
    weights = [graph.constant(values(1, 1, *each)) for each in ((12, 3), (12, 3), (1, 24))]
    result = dml.lstm(x, *weights, output_sequence=True, activation_descs=activations)[0]
    assert result is not None
    model = graph.compile({"y": result}, "cpu")
    for batch in sizes:
        inputs = {"x": values(1, 3, batch, 3)}
        np.testing.assert_array_equal(model(inputs)["y"], exactly(model, inputs)["y"])
    for batch in sizes:
        assert check_words(model, batch=batch)


def test_weights_are_packed_once_for_all_sizes_and_threads() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", 96])
    model = graph.compile({"y": dml.activation_relu(x @ values(96, 128)) @ values(128, 96)})
    copies, found = [model, copy.deepcopy(model)], set[int]()
    for rows in (1, 2, 3, 8, 16, 17, 70, 300, 1000):
        for each in copies:
            each(values(rows, 96))
        found.add(model.persistent_bytes)
    # Few and many rows may read different forms of a weight, if the processor has units for tiles.
    assert max(found) <= 2.2 * 4 * (96 * 128 + 128 * 96)
    assert len(plans_of(model)) >= 6


def test_constants_are_read_when_a_graph_is_compiled() -> None:
    graph, weight = dml.Graph(), values(96, 128)
    x = graph.input("x", dml.FLOAT32, ["rows", 96])
    model, wanted = graph.compile({"y": x @ weight}), weight.copy()
    for rows in (2, 40):
        weight[:] = np.nan
        given = values(rows, 96)
        np.testing.assert_allclose(model(given)["y"], given @ wanted, rtol=1e-4, atol=1e-4)


def test_sizes_that_cannot_be_traced_are_compiled_exactly_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise TypeError("a plain integer is needed")

    for place, message in (
        ("opendml.targets.cpu.planning.plain", "through launches: TypeError"),
        ("opendml.runtime.graphs.traced_model.carried", "through a graph: TypeError"),
    ):
        monkeypatch.setattr(place, refuse)
        model, x = model_of(), values(5, 7, 3)
        np.testing.assert_allclose(model(x)["y"], expected(x), atol=1e-6)
        assert message in caplog.text
        assert not plans_of(model)


def test_dimensions_with_a_range_allow_what_only_sizes_of_the_range_do(tmp_path: Path) -> None:
    table = values(64, 8)
    graph = dml.Graph()
    length = graph.dimension("length", least=2, greatest=64)
    x = graph.input("x", dml.FLOAT32, [length, 8])
    model = graph.compile({"y": x + dml.activation_tanh(graph.constant(table)[:length])})
    model.save(tmp_path / "model.dml")
    again = dml.load(tmp_path / "model.dml")
    assert isinstance(again, dml.Model)
    for each in (model, again):
        for rows in (2, 3, 40, 63, 64):
            x_now = values(rows, 8)
            np.testing.assert_allclose(each(x_now)["y"], x_now + np.tanh(table[:rows]), atol=1e-6)
            assert check_words(each, length=rows)
        for rows in (1, 65):
            with pytest.raises(InvalidArgument, match="length is 2 to 64"):
                each(values(rows, 8))


@pytest.mark.parametrize(
    ("name", "ends", "message"),
    [
        ("x", {}, "already exists"),
        (" ", {}, "not a name"),
        ("y", {"least": 0}, "whole numbers from 1"),
        ("y", {"least": 4, "greatest": 4}, "the greatest more than the least"),
    ],
)
def test_dimensions_without_a_name_or_a_range_are_refused(
    name: str, ends: dict[str, int], message: str
) -> None:
    graph = dml.Graph()
    graph.dimension("x")
    with pytest.raises(InvalidArgument, match=message):
        graph.dimension(name, **ends)


def test_one_plan_finds_positions_in_lines_of_any_length() -> None:
    graph = dml.Graph()
    _, found = dml.nonzero_coordinates(graph.input("x", dml.FLOAT32, ["batch", "length"]))
    model = graph.compile({"y": found}, "cpu")
    for batch, length in ((16, 40), (17, 63), (31, 33)):
        x = values(batch, length) * (values(batch, length) > 0)
        y = model({"x": x})["y"]
        assert (y[: np.count_nonzero(x)] == np.argwhere(x)).all()
    assert len(plans_of(model)) == 1


def test_a_bucket_is_wide_if_one_dimension_alone_is_large() -> None:
    assert ranges_of([63]) == [(32, 63)]
    assert [ranges_of([size]) for size in (64, 255, 256, 1023)] == [[(64, 255)]] * 2 + [[(256, 1023)]] * 2
    assert ranges_of([5, 100]) == [(4, 7), (64, 255)]
    assert ranges_of([5, 100, 300]) == [(4, 7), (64, 127), (256, 511)]
    for sizes in ([2], [77], [9, 4000], [64, 64]):
        assert all(first <= size <= last for size, (first, last) in zip(sizes, ranges_of(sizes), strict=True))


def test_hints_lie_in_their_ranges() -> None:
    for least, greatest in itertools.combinations_with_replacement(range(2, 40), 2):
        for size, multiple in itertools.product({least, greatest}, (1, 8)):
            assert least <= hints_in({"n": (least, greatest)}, {"n": size}, multiple)["n"] <= greatest


def test_hints_follow_powers_of_two_then_remainders_of_sizes() -> None:
    maker = PlanMaker(Trace({"n": Dimension(100, 2, 1000)}), {}, 8, None)
    ranges = maker.ranges([100])
    found = {n: [each["n"] for each in maker.candidates(ranges, {"n": n})] for n in (100, 77, 120)}
    assert found == {100: [248, 252, 228, 100], 77: [248, 255, 237, 77], 120: [248, 120]}


def test_hints_of_images_are_their_height_and_width_for_all_batches() -> None:
    names = ("batch", "height", "width")
    maker = PlanMaker(Trace({name: Dimension(100, 2, 1000) for name in names}), {}, 8, None)

    def candidates(*sizes: int) -> list[tuple[int, ...]]:
        named = dict(zip(names, sizes, strict=True))
        return [tuple(each.values()) for each in maker.candidates(maker.ranges(sizes), named)]

    assert candidates(6, 320, 256) == [(7, 504, 488), (6, 480, 416), (7, 320, 256), (6, 320, 256)]
    assert candidates(5, 320, 256)[2] == (7, 320, 256)


@pytest.mark.parametrize("sizes", [(100, 101, 128), (101, 128, 100), (128, 100, 101)])
def test_the_plan_of_a_size_does_not_depend_on_which_size_came_first(sizes: tuple[int, ...]) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["length", 8])
    model = graph.compile({"y": dml.activation_softmax1(x @ x.permute(1, 0), axes=[1])}, "cpu")
    for size in sizes:
        model(values(size, 8))
    for traced in traces_of(model):
        for size in sizes:
            plan = traced.plan_at({"length": size})
            assert plan is not None
            assert plan.hints == {"length": 255}


def test_the_only_size_of_images_has_a_plan_of_its_own_with_the_bits_of_the_plan_for_all_sizes() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 16, "height", "width"])
    filters = graph.constant(values(32, 16, 3, 3))
    padding = {"start_padding": [1, 1], "end_padding": [1, 1]}
    seen = dml.convolution(x[:, :, ::8, ::8], filters, **padding)
    y = dml.convolution(seen, graph.constant(values(200, 32, 1, 1)))
    first, second = values(3, 16, 80, 80), values(2, 16, 96, 72)
    results = []
    for order in ((first, second), (second, first)):
        model = graph.compile({"y": y}, "cpu")
        results.append({given.shape: model(given)["y"] for given in order})
        own, usual = plans_of(model)
        sizes = [
            dict(zip(("batch", "height", "width"), shape[::2] + shape[3:], strict=True))
            for shape in (order[0].shape, order[1].shape)
        ]
        assert [[plan.serves(each) for each in sizes] for plan in (own, usual)] == [
            [True, False],
            [True, True],
        ]
        assert own.executable.parts.job.sizes != usual.executable.parts.job.sizes
        assert own.serves({**sizes[0], "batch": 5 - sizes[0]["batch"]})
        assert len(plans_of(model)) == 2
    for shape, result in results[0].items():
        np.testing.assert_array_equal(result, results[1][shape])
    assert own.hints == usual.hints


def test_a_size_that_guards_fix_has_its_plan() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["n", "n"])
    model = graph.compile({"y": dml.activation_softmax1(x, axes=[0])[:, 1:]})
    for size in (2, 3, 2):
        given = values(size, size)
        np.testing.assert_allclose(model(given)["y"], exactly(model, {"x": given})["y"], rtol=1e-6)


def test_plans_of_few_buckets_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_model, "MOST_BUCKETS", 2)
    model = model_of()
    for batch in (2, 4, 8, 16, 2):
        np.testing.assert_allclose(model(values(batch, 7, 3))["y"], expected(values(batch, 7, 3)), rtol=1e-6)
    assert len(plans_of(model)) == 2


def test_dimensions_that_no_input_has_are_refused() -> None:
    for multiple in (1, 2):
        graph = dml.Graph()
        rows = graph.dimension("rows")
        x = graph.input("x", dml.FLOAT32, [3, 4] if multiple == 1 else [multiple * rows, 4])
        y = graph.constant(values(500, 4))[:rows]
        with pytest.raises(InvalidArgument, match="'rows': no input has it among its sizes"):
            graph.compile({"x": x, "y": y})


def test_files_with_fractions_for_sizes_are_refused() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 4])
    data = graph.compile({"y": x[:, 1:]})._saved()
    program, arrays = program_of(data)
    (view,) = [step for step in program["steps"] if "view" in step]
    for wrong in ({"traced": ["/", {"size": [[1, ["batch"]]]}, 2]}, {"size": [[-3, []]]}):
        view["sizes"][0] = wrong
        with pytest.raises(InvalidArgument, match="a whole number from 0"):
            loaded(file_of(program, arrays))


def test_errors_of_sizes_name_them() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["batch", 40])
    model = graph.compile({"y": x.reinterpret([x.shape[0] - 5, 40], strides=[40, 1])})
    with pytest.raises(InvalidArgument, match=r"^batch=3: .*-2"):
        model(values(3, 40))


def test_files_whose_sizes_cannot_be_computed_are_refused() -> None:
    graph = dml.Graph()
    data = graph.compile({"y": graph.input("x", dml.FLOAT32, ["batch", 4])[:, 1:]})._saved()
    program, arrays = program_of(data)
    (view,) = [step for step in program["steps"] if "view" in step]
    view["offset"] = {"size": [[1, [[[[1, []]], [[1, ["batch"]], [-5, []]]]]]]}
    again = loaded(file_of({**program, "choices": []}, arrays))
    assert isinstance(again, dml.Model)
    with pytest.raises(InvalidArgument, match=r"^batch=5: "):
        again(values(5, 4))
    choice = ["NOT_NEGATIVE", {"size": [[2**61, ["batch", "batch"]], [2**61, ["batch"]], [2**62, []]] * 3}]
    far = loaded(file_of({**program, "choices": [choice]}, arrays))
    assert isinstance(far, dml.Model)
    with pytest.raises(InvalidArgument, match=r"^batch=5: "):
        far(values(5, 4))


def test_positions_are_found_in_a_changing_size_that_is_one_by_a_guard() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["length"])
    found = dml.nonzero_coordinates(x[x.shape[0] // 2 :])
    model = graph.compile({"count": found.output_count, "coordinates": found.output_coordinates})
    for length in (2, 3, 2, 5):
        outputs = model(np.ones(length, np.float32))
        count = length - length // 2
        assert outputs["count"].tolist() == [count]
        assert outputs["coordinates"][:, 0].tolist() == list(range(count))


@pytest.mark.parametrize("type", [np.int64, np.float32])
def test_numbers_that_follow_from_sizes_are_those_of_each_call(type: Any, tmp_path: Path) -> None:
    graph = dml.Graph()
    x = graph.input("x", type, ["rows", 3])
    moved = graph.constant(np.arange(3, dtype=type)) + x.shape[0]
    model = graph.compile({"y": x + moved.reshape(1, 3) * x.shape[0], "moved": moved})
    model.save(tmp_path / "model")
    for each, rows in itertools.product((model, dml.load(tmp_path / "model")), (1, 2, 5, 40)):
        assert isinstance(each, NamedModel)
        found = each(np.zeros((rows, 3), type))
        np.testing.assert_array_equal(found["moved"], np.arange(3) + rows)
        np.testing.assert_array_equal(found["y"], np.tile((np.arange(3) + rows) * rows, (rows, 1)))


def test_an_input_that_is_read_in_two_ways_is_bound_as_both() -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", 4])
    step = ViewStep(x._number, dml.INT32, x.sizes, None, of_bytes=True)  # As a file may have it.
    bits = graph._view(step)
    assert bits is not None
    model = graph.compile({"bits": dml.element_wise_identity(bits), "doubled": x * 2.0})
    for rows in (3, 1, 7):
        values = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
        found = model(x=values)
        assert np.array_equal(found["bits"], values.view(np.int32))
        assert np.array_equal(found["doubled"], values * 2)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float64])
def test_bytes_of_named_sizes_are_reinterpreted(dtype: Any, tmp_path: Path) -> None:
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", 4])
    columns = 16 // np.dtype(dtype).itemsize
    model = graph.compile({"y": dml.element_wise_identity(x.reinterpret(dtype, [x.sizes[0], columns]))})
    model.save(tmp_path / "model.dml")
    copied = dml.load(tmp_path / "model.dml")
    assert isinstance(copied, dml.Model)
    for each in (model, copied):
        for rows in (3, 1, 7):
            values = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4)
            assert np.array_equal(each(x=values)["y"], values.view(dtype), equal_nan=dtype == np.float64)


@pytest.mark.parametrize("lengths", [(200, 300), (300, 200), (63, 700)])
def test_sums_are_added_as_for_their_own_length_whatever_ran_before(lengths: tuple[int, int]) -> None:
    """Rows of 256 elements and more are added up in several vectors of states."""
    graph = dml.Graph()
    x = graph.input("x", dml.FLOAT32, ["rows", "length"])
    model = graph.compile({"y": dml.reduce(x, function="SUM", axes=[1])})
    for length in lengths:
        np.testing.assert_array_equal(model(np.ones((37, length), np.float32))["y"], length)
    for length in lengths:
        assert check_words(model, rows=37, length=length)
