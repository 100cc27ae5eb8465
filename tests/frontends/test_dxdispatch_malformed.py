"""Malformed JSON models, and models of others."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opendml import Device
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel, PreparedModel, Printed, prepare
from opendml.json_files import text as json_text
from opendml.operators.registry import implemented
from opendml.spec.enums import FeatureLevel
from opendml.spec.validator import validate

Load = Callable[[Any], DispatchModel]


def _mistakes() -> list[tuple[str, str, str]]:
    """The paths, values and messages of `dxdispatch_mistakes.txt`."""
    lines = Path(__file__).with_name("dxdispatch_mistakes.txt").read_text(encoding="utf-8").splitlines()[2:]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [(*line.split(" = ", 1), message.strip()) for line, message in pairs]  # type: ignore[misc]


@pytest.mark.parametrize(("path", "value", "message"), _mistakes())
def test_one_wrong_value_is_reported_with_its_path(
    path: str,
    value: str,
    message: str,
    model: dict[str, Any],
    load: Callable[[Any], DispatchModel],
    tmp_path: Path,
) -> None:
    mutated: Any = copy.deepcopy(model)
    parent = mutated
    keys = [name or json.loads(key) for name, key in re.findall(r"\.(\w+)|\[([^]]*)\]", path)]
    for key in keys[:-1]:
        parent = parent[key]
    if value == "nothing":
        del parent[keys[-1]]
    else:
        parent[keys[-1]] = json.loads(value)
    with pytest.raises(InvalidArgument) as caught:
        load(mutated)
    assert caught.value.failures[0] == message.replace("{folder}", str(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]


def test_all_that_is_wrong_is_reported_at_once(model: dict[str, Any], load: Load) -> None:
    model["resources"]["x"]["initialValues"][1] = "one"
    model["resources"]["x"]["initialValues"][3] = "three"
    model["dispatchables"]["celu"]["desc"]["Alpha"] = None
    model["dispatchables"]["celu"]["desc"]["OutputTensor"]["Sizes"] = "many"
    with pytest.raises(InvalidArgument) as caught:
        load(model)
    assert [failure.split(":")[0] for failure in caught.value.failures] == [
        "$.resources.x.initialValues[1]",
        "$.resources.x.initialValues[3]",
        "$.dispatchables.celu.desc.OutputTensor.Sizes",
        "$.dispatchables.celu.desc.Alpha",
    ]


def test_no_stage_hides_what_is_wrong_in_the_next(model: dict[str, Any], tmp_path: Path) -> None:
    tensor = model["dispatchables"]["celu"]["desc"]["InputTensor"]
    model["surplus"] = {}
    model["resources"]["x"]["initialValues"][1] = "one"
    model["resources"]["small"] = {"initialValuesDataType": "FLOAT32", "initialValues": [1], "size": 4}
    model["dispatchables"]["shader"] = {"type": "hlsl"}
    wrong = {**tensor, "Sizes": [7]}
    relu = {"type": "ACTIVATION_RELU", "desc": {"InputTensor": tensor, "OutputTensor": wrong}}
    fine = {"type": "ACTIVATION_RELU", "desc": {"InputTensor": tensor, "OutputTensor": tensor}}
    model["dispatchables"] |= {"relu": relu, "fine": fine}
    model["commands"] = [
        {"type": "print", "resource": "z"},
        {"type": "dispatch", "dispatchable": "no", "bindings": {}, "threadGroupCount": [1]},
        {"type": "dispatch", "dispatchable": "fine", "bindings": {"InputTensor": "y", "Out": "y"}},
        {"type": "dispatch", "dispatchable": "shader", "bindings": {}},
        {"type": "print", "resource": "small", "verbose": 1},
    ]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    with pytest.raises(InvalidArgument) as caught:
        dxdispatch.load(path, feature_level=FeatureLevel.LEVEL_6_4)
    assert [failure.split(":")[0] for failure in caught.value.failures] == [
        "$.surplus",
        "$.resources.x.initialValues[1]",
        "$.resources.small.size",
        "$.dispatchables.shader.type",
        "$.dispatchables.relu",
        "$.commands[0].resource",
        "$.commands[1].threadGroupCount",
        "$.commands[1].dispatchable",
        "$.commands[2].bindings.Out",
        "$.commands[2].bindings.OutputTensor",
        "$.commands[4].verbose",
    ]


def test_what_compiling_and_binding_find_is_reported_at_once(model: dict[str, Any], load: Load) -> None:
    tensor = model["dispatchables"]["celu"]["desc"]["InputTensor"]
    odd = {
        "type": "ACTIVATION_RELU",
        "desc": {"InputTensor": tensor, "OutputTensor": {**tensor, "Sizes": [3]}},
    }
    model["dispatchables"]["odd"] = odd
    model["resources"]["x"]["sizeInBytes"] = 256
    overlapping = {"InputTensor": "x", "OutputTensor": {"name": "x", "elementOffset": 4}}
    model["commands"] = [{"type": "dispatch", "dispatchable": "celu", "bindings": overlapping}]
    with pytest.raises(InvalidArgument) as caught:
        prepare(load(model), Device("reference"))
    assert [failure.split(":")[0] for failure in caught.value.failures] == [
        "$.dispatchables.odd",
        "$.commands[0].bindings",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "$: not valid JSON at line 1, column 1: Expecting value"),
        ('{\n  "resources": }', "$: not valid JSON at line 2, column 16: Expecting value"),
        ("[1, 2] 3", "$: not valid JSON at line 1, column 8: Extra data"),
        ('{"a": NaN}', '$: not valid JSON: NaN is no JSON number; write the string "nan"'),
        ("[]", "$: expected an object, got an array of 0"),
        ('{"resources": {}, "resources": {}}', "$.resources: expected each name once, got it more than once"),
    ],
)
def test_text_that_is_no_model_has_its_position(
    text: str, message: str, load: Callable[[Any], DispatchModel]
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load(text)
    assert caught.value.failures[0] == message


def test_deep_nesting_is_an_error_and_no_crash(load: Load) -> None:
    with pytest.raises(InvalidArgument, match="more than 32 arrays and objects within each other"):
        load("[" * 100_000)


@pytest.mark.parametrize(
    ("depth", "message"),
    [
        (10, r"^\$\.dispatchables\.celu: ELEMENT_WISE_ADD1\.FusedActivation: "),
        (300, "more than 32 arrays and objects within each other"),
    ],
)
def test_nested_fused_activations_are_an_error_and_no_crash(
    depth: int, message: str, model: dict[str, Any], load: Load
) -> None:
    tensor = model["dispatchables"]["celu"]["desc"]["InputTensor"]
    desc: dict[str, Any] = {"ATensor": tensor, "BTensor": tensor, "OutputTensor": tensor}
    model["dispatchables"]["celu"] = {"type": "ELEMENT_WISE_ADD1", "desc": desc}
    model["commands"] = []
    for _ in range(depth):
        desc["FusedActivation"] = {"Type": "ELEMENT_WISE_ADD1", "Desc": {}}
        desc = desc["FusedActivation"]["Desc"]
    with pytest.raises(InvalidArgument, match=message):
        prepare(load(model), Device("reference"))


def test_bytes_that_are_no_text_are_an_error(tmp_path: Path) -> None:
    from opendml.frontends import dxdispatch

    path = tmp_path / "model.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidArgument, match="not UTF-8 text"):
        dxdispatch.load(path)


@pytest.mark.parametrize("kind", ["hlsl", "HLSL"])
def test_shaders_need_direct3d(kind: str, model: dict[str, Any], load: Load) -> None:
    model["dispatchables"]["celu"] = {"type": kind, "sourcePath": "a"}
    shader = r'"celu" is an HLSL compute shader, which needs Direct3D'
    with pytest.raises(Unsupported, match=rf"^\$\.dispatchables\.celu\.type: {shader}"):
        load(model)


@pytest.mark.parametrize("kind", ["ONNX", "dmlSerializedGraph"])
def test_files_of_dispatchables_exist(
    kind: str, model: dict[str, Any], load: Callable[[Any], DispatchModel]
) -> None:
    model["dispatchables"]["celu"] = {"type": kind, "sourcePath": "a"}
    with pytest.raises(InvalidArgument, match=r"^\$\.dispatchables\.celu\.sourcePath: expected a file in"):
        load(model)
    model["dispatchables"]["celu"] = {"type": kind, "desc": {}}
    with pytest.raises(InvalidArgument, match=r"^\$\.dispatchables\.celu\.desc: unknown field"):
        load(model)


def test_deferred_resources_are_for_outputs_of_onnx_models(model: dict[str, Any], load: Load) -> None:
    model["resources"]["x"] = {"initialValues": "deferred"}
    with pytest.raises(InvalidArgument, match=r"InputTensor: expected a resource with values, got .* ONNX"):
        load(model)


GARBAGE: list[Any] = [
    *[None, True, 0, -1, 2**64, 10**400, 0.5, -1e308],
    *["", "x", "nan", "\0", "\ud800", "ü" * 300],
    *[[], [[]], [None], {}, {"": {}}],
    *[{"type": "ACTIVATION_RELU"}, {"name": "x"}, {"sourcePath": "."}, {"valueCount": 2**32 - 1, "value": 0}],
]


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all values inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from _paths(child, (*path, key))


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage)[:20])
def test_no_wrong_value_crashes_it(
    garbage: Any, model: dict[str, Any], load: Callable[[Any], DispatchModel]
) -> None:
    for path in _paths(copy.deepcopy(model)):
        mutated: Any = copy.deepcopy(model)
        parent = mutated
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = garbage
        try:
            load(mutated)
        except InvalidArgument as error:
            unlocated = [failure for failure in error.failures if not failure.startswith("$")]
            if unlocated:
                pytest.fail(f"{path}: {unlocated}")


ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "models" / "dxdispatch"

# What each model prints last, for each resource.
EXPECTED: dict[str, list[list[float]]] = {
    "dml_convolution_2d": [[6, 8, 12, 14]],
    "dml_cumulative_product": [[2, 8, 64, 192]],
    "dml_element_wise_add": [[6, 10, -2]],
    "dml_element_wise_add1": [[6, 10, -0.432332]],
    "dml_element_wise_add_npy": [[2, 4, 6, 8, 10, 12]],
    "dml_element_wise_clip": [[-2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5]],
    "dml_element_wise_identity": [[12, 14, 16]],
    "dml_fill_value_sequence": [[3.2, 4.7, 6.2, 7.7, 9.2]],
    "dml_gemm": [[6, 7, 8, 10, 12, 14, 14, 17, 20]],
    "dml_gemm_graph": [[32] * 1024],
    "dml_reduce": [list(range(1, 10)), [6, 15, 24]],
    "dml_scalar_union_fp16": [[2, 2, 3, 4, 4]],
    "dml_slice": [[7, 9, 12, 14, 17, 19]],
    "dml_split": [[1, 2], [3, 4], [5, 6]],
}

EXAMPLES: dict[str, list[list[float]]] = {
    "celu": [
        [-np.inf, -4, -1, -0.25, 0, 0.25, 1, 4, np.inf],
        [-0.5, -0.499832, -0.432332, -0.196735, 0, 0.25, 1, 4, np.inf],
    ],
    "hard_sigmoid": [list(range(-4, 5)), [0, 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1, 1]],
    "mean_variance_normalization1": [
        list(range(1, 17)),
        [
            0,
            0,
            0,
            0,
            0.218218,
            0.654653,
            1.09109,
            1.52752,
            0,
            0,
            0,
            2.81782,
            7.18218,
            11.5465,
            15.9109,
            20.2752,
        ],
    ],
}

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"{SHARED.name} models are not beside the checkout"
)


def _prints(program: PreparedModel) -> Iterator[list[float]]:
    for event in program.run():
        if isinstance(event, Printed):
            yield [float(number) for number in event.text.split(", ")]


def _check(model: DispatchModel, device: str, expected: list[list[float]]) -> None:
    prints = list(_prints(dxdispatch.prepare(model, Device(device))))
    assert len(prints) == len(expected)
    for printed, wanted in zip(prints, expected, strict=True):
        np.testing.assert_allclose(printed, wanted, rtol=1e-3, atol=1e-3)


@needs_shared
def test_every_model_has_an_expected_result() -> None:
    assert {path.stem for path in SHARED.glob("*.json")} == set(EXPECTED)


@needs_shared
@pytest.mark.parametrize("name", EXPECTED)
def test_models_of_the_tool_are_read_and_valid(name: str, tmp_path: Path) -> None:
    for dispatchable in dxdispatch.load(SHARED / f"{name}.json", tmp_path).dispatchables.values():
        validate(dispatchable.desc)


@needs_shared
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", EXPECTED)
def test_models_of_the_tool_run_or_name_the_operator(name: str, device: str, tmp_path: Path) -> None:
    model = dxdispatch.load(SHARED / f"{name}.json", tmp_path)
    desc: Any = next(iter(model.dispatchables.values())).desc
    operator = desc.operator
    if operator in implemented():
        _check(model, device, EXPECTED[name])
    else:
        with pytest.raises(Unsupported, match=rf"^\$\.dispatchables\.\w+: {operator}"):
            dxdispatch.prepare(model, Device(device))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_their_results(name: str, device: str) -> None:
    _check(dxdispatch.load(ROOT / "examples" / f"{name}.json"), device, EXAMPLES[name])


def test_every_example_has_an_expected_result() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.json")} == set(EXAMPLES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2,]", [1, 2]),
        ('{"a": 1, }', {"a": 1}),
        ("// first\n[1] // last", [1]),
        ("[1, /* two,\n lines */ 2]", [1, 2]),
        ('{"a": [1, // one\n], }', {"a": [1]}),
        ('["// no comment", "/* nor */ this", ",]"]', ["// no comment", "/* nor */ this", ",]"]),
        (r'["a quote \" // inside"]', ['a quote " // inside']),
        ('["ü"]', ["ü"]),
    ],
)
def test_text_is_read(text: str, value: Any) -> None:
    assert json_text.parse(text) == value


def test_positions_in_errors_count_comments() -> None:
    with pytest.raises(InvalidArgument, match="line 3, column 7"):
        json_text.parse("{\n  /* a,\n b */ 1\n}")


def test_two_commas_stay_an_error() -> None:
    with pytest.raises(InvalidArgument, match="not valid JSON"):
        json_text.parse("[1,,]")


# Each of these took a time that grew with the square of its length: with this one, hours.
_LONG = 400_000


@pytest.mark.parametrize(
    "text",
    [
        '["' + r"\"" * _LONG,
        r"\"" * _LONG,
        '"' * _LONG,
        '["' + "\\\\" * _LONG + '"',
        "/*" * _LONG,
        "/*/" * _LONG,
        "[1" + "," * _LONG + "]",
        "[1" + ", " * _LONG + "]",
        "[1," + " " * _LONG,
    ],
    ids=lambda text: text[:8],
)
def test_reading_takes_time_in_proportion_to_the_text(text: str) -> None:
    with pytest.raises(InvalidArgument, match="not valid JSON"):
        json_text.parse(text)


def test_long_strings_of_escaped_quotes_are_read() -> None:
    assert json_text.parse('["' + r"\"" * _LONG + '"]') == ['"' * _LONG]


@pytest.mark.parametrize("text", ["[1] /*", "[1]/*/", '["a', '["a\\', '["/*"', "[1], /* ]"])
def test_what_is_not_closed_is_an_error(text: str) -> None:
    with pytest.raises(InvalidArgument, match="not valid JSON at line 1"):
        json_text.parse(text)


@pytest.mark.parametrize("depth", [33, 300, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a": ', "}"), ('{"a": [', "]}")])
def test_deep_nesting_is_refused(depth: int, opened: str, closed: str) -> None:
    with pytest.raises(InvalidArgument, match="more than 32 arrays and objects within each other"):
        json_text.parse(opened * depth + "1" + closed * depth)


def test_nesting_that_models_have_is_read() -> None:
    assert json_text.parse("[" * 32 + '"a"' + "]" * 32)


@pytest.mark.parametrize("text", [r'{"\ud800": 1}', r'["a\udfff"]', r'[{"a": [{"b": "\udc00\ud800"}]}]'])
def test_half_of_a_surrogate_pair_is_no_text(text: str) -> None:
    with pytest.raises(InvalidArgument, match="half of a surrogate pair in"):
        json_text.parse(text)


def test_whole_surrogate_pairs_are_text() -> None:
    assert json_text.parse(r'["\ud83d\ude00"]') == ["\U0001f600"]
