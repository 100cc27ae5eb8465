"""Malformed models: the message names the JSON path, what was expected and given; nothing is written."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opendml import Device
from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends.dxdispatch import DispatchModel, prepare

ABSENT = object()

X = ("resources", "x")
CELU = ("dispatchables", "celu")
INPUT = (*CELU, "desc", "InputTensor")
BINDINGS = ("commands", 0, "bindings")
WRITE = ("commands", 2)

MUTATIONS: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    # the root
    "no resources": (("resources",), ABSENT, "$.resources: missing"),
    "resources no object": (("resources",), [], "$.resources: expected an object, got an array of 0"),
    "commands no array": (("commands",), {}, "$.commands: expected an array, got an object"),
    "unknown root field": (("command",), [], '$.command: unknown field; did you mean "commands"?'),
    # resources
    "resource null": (X, None, "$.resources.x: expected an object, got null"),
    "no values": ((*X, "initialValues"), ABSENT, "$.resources.x.initialValues: missing"),
    "values empty": (
        (*X, "initialValues"),
        [],
        "$.resources.x.initialValues: expected at least one value, got an array of 0",
    ),
    "values of wrong kind": (
        (*X, "initialValues"),
        3,
        "$.resources.x.initialValues: expected an array or an object, got 3",
    ),
    "value no number": (
        (*X, "initialValues", 2),
        "three",
        '$.resources.x.initialValues[2]: expected a number, "nan", "inf" or "-inf", got "three"',
    ),
    "value a boolean": (
        (*X, "initialValues", 0),
        True,
        '$.resources.x.initialValues[0]: expected a number, "nan", "inf" or "-inf", got true',
    ),
    "value beyond FLOAT32": (
        (*X, "initialValues", 1),
        1e39,
        '$.resources.x.initialValues[1]: expected a number within the range of FLOAT32 (or "inf"), got 1e+39',
    ),
    "no data type": (
        (*X, "initialValuesDataType"),
        ABSENT,
        "$.resources.x.initialValues[0]: expected an object with type and value, "
        "because initialValuesDataType is UNKNOWN, got 1",
    ),
    "unknown data type": (
        (*X, "initialValuesDataType"),
        "FLOAT23",
        "$.resources.x.initialValuesDataType: expected a value of DML_TENSOR_DATA_TYPE, "
        'got "FLOAT23"; did you mean "FLOAT32"?',
    ),
    "no value count": (
        ("resources", "y", "initialValues", "valueCount"),
        ABSENT,
        "$.resources.y.initialValues.valueCount: missing",
    ),
    "value count zero": (
        ("resources", "y", "initialValues", "valueCount"),
        0,
        "$.resources.y.initialValues.valueCount: expected an integer from 1 to 4294967295, got 0",
    ),
    "value and sequence": (
        ("resources", "y", "initialValues", "valueStart"),
        1,
        "$.resources.y.initialValues: expected either value or valueStart with valueDelta, got both",
    ),
    "size too small": (
        (*X, "sizeInBytes"),
        23,
        "$.resources.x.sizeInBytes: expected at least 24: 24 bytes of values from byte 0 on, got 23",
    ),
    "file absent": (
        (*X, "initialValues"),
        {"sourcePath": "no.npy"},
        "$.resources.x.initialValues.sourcePath: expected a file in {folder} "
        "(--input-directory; --allow-any-path reads others too), "
        'got "no.npy"',
    ),
    "path with a space": (("resources", "a b"), 1, '$.resources["a b"]: expected an object, got 1'),
    "type no buffer": ((*X, "type"), "texture", '$.resources.x.type: expected "buffer", got "texture"'),
    # dispatchables
    "no type": ((*CELU, "type"), ABSENT, "$.dispatchables.celu.type: missing"),
    "unknown operator": (
        (*CELU, "type"),
        "DML_OPERATOR_ACTIVATION_CELLU",
        '$.dispatchables.celu.type: expected the type of an operator, got "ACTIVATION_CELLU"; '
        'did you mean "ACTIVATION_CELU"?',
    ),
    "attribute missing": (
        (*CELU, "desc", "Alpha"),
        ABSENT,
        "$.dispatchables.celu.desc.Alpha: missing; ACTIVATION_CELU requires it",
    ),
    "tensor null": (
        INPUT,
        None,
        "$.dispatchables.celu.desc.InputTensor: missing; ACTIVATION_CELU requires it",
    ),
    "attribute no number": (
        (*CELU, "desc", "Alpha"),
        "1.0",
        '$.dispatchables.celu.desc.Alpha: expected a number, "nan", "inf" or "-inf", got "1.0"',
    ),
    "unknown field": (
        (*CELU, "desc", "alpha"),
        1,
        '$.dispatchables.celu.desc.alpha: unknown field; did you mean "Alpha"?',
    ),
    "size no integer": (
        (*INPUT, "Sizes", 2),
        2.0,
        "$.dispatchables.celu.desc.InputTensor.Sizes[2]: expected an integer from 0 to 4294967295, got 2.0",
    ),
    "size beyond 32 bits": (
        (*INPUT, "Sizes", 0),
        2**32,
        "$.dispatchables.celu.desc.InputTensor.Sizes[0]: expected an integer from 0 to 4294967295, "
        "got 4294967296",
    ),
    "dimension count": (
        (*INPUT, "DimensionCount"),
        3,
        "$.dispatchables.celu.desc.InputTensor.DimensionCount: expected 4, "
        "the number of elements in Sizes, got 3",
    ),
    "no sizes": ((*INPUT, "Sizes"), ABSENT, "$.dispatchables.celu.desc.InputTensor.Sizes: missing"),
    "unknown flag": (
        (*INPUT, "Flags"),
        ["NONE", "OWNED"],
        "$.dispatchables.celu.desc.InputTensor.Flags[1]: expected a value of DML_TENSOR_FLAG, "
        'got "OWNED"; did you mean "OWNED_BY_DML"?',
    ),
    "unknown tensor field": (
        (*INPUT, "Size"),
        [1],
        '$.dispatchables.celu.desc.InputTensor.Size: unknown field; did you mean "Sizes"?',
    ),
    "tensor type": (
        (*INPUT, "Type"),
        "INVALID",
        '$.dispatchables.celu.desc.InputTensor.Type: expected "BUFFER", got "INVALID"',
    ),
    "unknown execution flag": (
        (*CELU, "executionFlags"),
        "FAST",
        '$.dispatchables.celu.executionFlags: expected a value of DML_EXECUTION_FLAG, got "FAST"; '
        'expected one of "NONE", "ALLOW_HALF_PRECISION_COMPUTATION", "DISABLE_META_COMMANDS", '
        '"DESCRIPTORS_VOLATILE"',
    ),
    "compile type": (
        (*CELU, "dmlCompileType"),
        "Graph",
        '$.dispatchables.celu.dmlCompileType: expected one of "DmlCompileOp", "DmlCompileGraph", got "Graph"',
    ),
    # bindings
    "binding missing": (
        (*BINDINGS, "InputTensor"),
        ABSENT,
        "$.commands[0].bindings.InputTensor: missing; the desc has this tensor",
    ),
    "binding of no tensor": (
        (*BINDINGS, "Input"),
        "x",
        '$.commands[0].bindings.Input: unknown field; did you mean "InputTensor"?',
    ),
    "binding to no resource": (
        (*BINDINGS, "InputTensor"),
        "z",
        '$.commands[0].bindings.InputTensor: expected the name of a resource, got "z"; '
        'expected one of "x", "y"',
    ),
    "binding of several": (
        (*BINDINGS, "InputTensor"),
        ["x", "y"],
        "$.commands[0].bindings.InputTensor: expected 1 resources, one for each tensor, got 2",
    ),
    "resource too small": (
        ("resources", "x", "initialValues"),
        [1, 2, 3],
        "$.commands[0].bindings.InputTensor: expected a resource with 24 bytes for the tensor, "
        'got 12 from byte 0 of "x"',
    ),
    "offset beyond the resource": (
        (*BINDINGS, "InputTensor"),
        {"name": "x", "elementOffset": 4},
        "$.commands[0].bindings.InputTensor: expected a resource with 24 bytes for the tensor, "
        'got 8 from byte 16 of "x"',
    ),
    "offset unaligned": (
        (*BINDINGS, "InputTensor"),
        {"name": "x", "elementOffset": 1},
        "$.commands[0].bindings.InputTensor: expected an offset that is a multiple of 16 bytes, got byte 4",
    ),
    "count beyond the resource": (
        (*BINDINGS, "InputTensor"),
        {"name": "x", "elementCount": 7},
        "$.commands[0].bindings.InputTensor.elementCount: expected at most 6, "
        "what the resource holds from byte 0, got 7",
    ),
    "initial binding of a tensor that is not owned": (
        (*CELU, "bindings"),
        {"InputTensor": "x"},
        "$.dispatchables.celu.bindings.InputTensor: expected no binding at initialization, "
        'because the tensor is not flagged OWNED_BY_DML, got "x"',
    ),
    "owned tensor without initial binding": (
        (*INPUT, "Flags"),
        "OWNED_BY_DML",
        "$.dispatchables.celu.bindings.InputTensor: missing; the desc has this tensor",
    ),
    # commands
    "unknown command": (
        ("commands", 1, "type"),
        "show",
        '$.commands[1].type: expected "dispatch", "print" or "writeFile", got "show"',
    ),
    "unknown dispatchable": (
        ("commands", 0, "dispatchable"),
        "cellu",
        '$.commands[0].dispatchable: expected the name of a dispatchable, got "cellu"; did you mean "celu"?',
    ),
    "unknown resource": (
        ("commands", 1, "resource"),
        "Y",
        '$.commands[1].resource: expected the name of a resource, got "Y"; expected one of "x", "y"',
    ),
    "thread groups": (
        ("commands", 0, "threadGroupCount"),
        [1, 1],
        "$.commands[0].threadGroupCount: expected an array of 3 integers, got an array of 2",
    ),
    "no target": (
        (*WRITE, "targetPath"),
        "",
        '$.commands[2].targetPath: expected the name of a file, got ""',
    ),
    "target no name": (
        (*WRITE, "targetPath"),
        "a\0b",
        '$.commands[2].targetPath: expected the name of a file, got "a\\u0000b"',
    ),
    "source no name": (
        (*X, "initialValues"),
        {"sourcePath": "n" * 300},
        "$.resources.x.initialValues.sourcePath: expected a file in {folder} "
        "(--input-directory; --allow-any-path reads others too), "
        f'got "{"n" * 56}...',
    ),
    "target in a file": (
        (*WRITE, "targetPath"),
        "model.json/y.npy",
        "$.commands[2].targetPath: expected a file in a folder that can be written, "
        "got {folder}/model.json/y.npy",
    ),
    "dimensions beyond the resource": (
        (*WRITE, "dimensions"),
        [2, 4],
        "$.commands[2].dimensions: expected at most the 6 elements of the resource, got 8",
    ),
    "picture without dimensions": (
        (*WRITE, "targetPath"),
        "y.png",
        "$.commands[2].dimensions: expected [1, C, H, W] or [1, H, W, C] with 1, 3 or 4 channels, got none",
    ),
}

Load = Callable[[Any], DispatchModel]


@pytest.mark.parametrize("name", MUTATIONS)
def test_one_wrong_value_is_reported_with_its_path(
    name: str, model: dict[str, Any], load: Load, tmp_path: Path
) -> None:
    path, value, message = MUTATIONS[name]
    mutated: Any = copy.deepcopy(model)
    parent = mutated
    for key in path[:-1]:
        parent = parent[key]
    if value is ABSENT:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
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
def test_text_that_is_no_model_is_reported_with_its_position(text: str, message: str, load: Load) -> None:
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
def test_files_of_dispatchables_are_there(kind: str, model: dict[str, Any], load: Load) -> None:
    model["dispatchables"]["celu"] = {"type": kind, "sourcePath": "a"}
    with pytest.raises(InvalidArgument, match=r"^\$\.dispatchables\.celu\.sourcePath: expected a file in"):
        load(model)
    model["dispatchables"]["celu"] = {"type": kind, "desc": {}}
    with pytest.raises(InvalidArgument, match=r"^\$\.dispatchables\.celu\.desc: unknown field"):
        load(model)


def test_deferred_resources_are_unsupported(model: dict[str, Any], load: Load) -> None:
    model["resources"]["x"] = {"initialValues": "deferred"}
    with pytest.raises(Unsupported, match=r"^\$\.resources\.x\.initialValues"):
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
def test_no_wrong_value_anywhere_crashes_the_parser(garbage: Any, model: dict[str, Any], load: Load) -> None:
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
