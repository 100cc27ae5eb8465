"""The ways to fill a buffer, for every data type."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opendml.errors import InvalidArgument
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel, values
from opendml.frontends.dxdispatch.model import WriteFile
from opendml.spec.enums import TensorDataType

from .conftest import AddOneDevice

Load = Callable[[Any], DispatchModel]
DATA_TYPES = [data_type for data_type in TensorDataType if data_type is not TensorDataType.UNKNOWN]


def _buffer(load: Load, resource: dict[str, Any]) -> npt.NDArray[np.uint8]:
    """What the buffer of a model's only resource holds at the start."""
    model = load({"resources": {"r": resource}, "dispatchables": {}, "commands": []})
    return np.array(dxdispatch.prepare(model, AddOneDevice()).buffers["r"])


@pytest.mark.parametrize("data_type", DATA_TYPES)
@pytest.mark.parametrize("prefix", ["", "DML_TENSOR_DATA_TYPE_"])
def test_array_of_every_data_type(data_type: TensorDataType, prefix: str, load: Load) -> None:
    buffer = _buffer(
        load, {"initialValuesDataType": prefix + data_type.name, "initialValues": [1, 2, 3, 7, 5]}
    )
    assert buffer.size == (values.byte_count(data_type, 5) + 3) // 4 * 4
    assert values.decode(buffer, data_type, 5).tolist() == [1, 2, 3, 7, 5]
    assert not buffer[values.byte_count(data_type, 5) :].any()


@pytest.mark.parametrize("data_type", DATA_TYPES)
def test_constant_of_every_data_type(data_type: TensorDataType, load: Load) -> None:
    initial = {"valueCount": 4, "value": 5}
    buffer = _buffer(load, {"initialValuesDataType": data_type.name, "initialValues": initial})
    assert values.decode(buffer, data_type, 4).tolist() == [5] * 4


@pytest.mark.parametrize("data_type", DATA_TYPES)
def test_sequence_of_every_data_type(data_type: TensorDataType, load: Load) -> None:
    initial = {"valueCount": 3, "valueStart": 1, "valueDelta": 3}
    buffer = _buffer(load, {"initialValuesDataType": data_type.name, "initialValues": initial})
    assert values.decode(buffer, data_type, 3).tolist() == [1, 4, 7]


@pytest.mark.parametrize(
    "data_type", [data_type for data_type in DATA_TYPES if not values.is_float(data_type)]
)
def test_integers_keep_their_extremes_and_nothing_beyond_fits(data_type: TensorDataType, load: Load) -> None:
    low, high = values.integer_range(data_type)
    buffer = _buffer(load, {"initialValuesDataType": data_type.name, "initialValues": [low, high]})
    assert values.decode(buffer, data_type, 2).tolist() == [low, high]
    for beyond in (low - 1, high + 1, 0.5, "nan"):
        with pytest.raises(InvalidArgument, match=rf"expected an integer from {low} to {high}, got"):
            _buffer(load, {"initialValuesDataType": data_type.name, "initialValues": [beyond]})


def test_integer_sequences_wrap_around(load: Load) -> None:
    initial = {"valueCount": 4, "valueStart": 200, "valueDelta": 50}
    assert _buffer(load, {"initialValuesDataType": "UINT8", "initialValues": initial}).tolist() == [
        200,
        250,
        44,
        94,
    ]


def test_float_sequences_are_rounded_after_each_step(load: Load) -> None:
    initial = {"valueCount": 300, "valueStart": 0, "valueDelta": 0.1}
    buffer = _buffer(load, {"initialValuesDataType": "FLOAT16", "initialValues": initial})
    expected = np.float16(0)
    for _ in range(299):
        expected = expected + np.float16(0.1)
    assert buffer.view(np.float16)[299] == expected
    assert expected != np.float16(29.9)


def test_floats_may_be_special_numbers_in_any_case(load: Load) -> None:
    buffer = _buffer(
        load, {"initialValuesDataType": "FLOAT16", "initialValues": ["NaN", "inf", "-Inf", 65504]}
    )
    np.testing.assert_array_equal(
        buffer.view(np.float16), np.array([np.nan, np.inf, -np.inf, 65504], np.float16)
    )


@pytest.mark.parametrize(
    ("data_type", "number"), [("FLOAT16", 65520), ("FLOAT32", -3.5e38), ("FLOAT64", 10**400)]
)
def test_finite_numbers_never_become_infinite(data_type: str, number: float, load: Load) -> None:
    with pytest.raises(InvalidArgument, match=f"within the range of {data_type}"):
        _buffer(load, {"initialValuesDataType": data_type, "initialValues": [number]})


def test_list_of_several_types_is_laid_out_without_gaps(load: Load) -> None:
    initial = [
        {"name": "count", "type": "UINT32", "value": 6},
        {"type": "FLOAT32", "value": 0.5},
        {"type": "DML_TENSOR_DATA_TYPE_INT8", "value": -1},
    ]
    buffer = _buffer(load, {"initialValuesDataType": "UNKNOWN", "initialValues": initial, "sizeInBytes": 256})
    assert buffer.size == 256
    assert buffer[:12].tobytes() == b"\x06\0\0\0\0\0\0\x3f\xff\0\0\0"


def test_values_start_at_their_offset(load: Load) -> None:
    resource = {
        "initialValuesDataType": "UINT8",
        "initialValues": [1, 2],
        "initialValuesOffsetInBytes": 3,
        "sizeInBytes": 8,
    }
    assert _buffer(load, resource).tolist() == [0, 0, 0, 1, 2, 0, 0, 0]


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", ">f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", ">i8", "u8", "?"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_file_of_every_type_and_order(dtype: str, order: str, load: Load, tmp_path: Path) -> None:
    array = np.asarray(np.arange(6).reshape(2, 3) % 2, dtype=dtype, order="F" if order == "F" else "C")
    np.save(tmp_path / "a.npy", array)
    buffer = _buffer(load, {"initialValues": {"sourcePath": "a.npy"}})
    native = np.uint8 if dtype == "?" else array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(buffer[: array.nbytes].view(native), [0, 1, 0, 1, 0, 1])


def test_npy_file_of_another_type_is_refused(load: Load, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(InvalidArgument, match=r"expected elements of type FLOAT32 .* got FLOAT64"):
        _buffer(load, {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.npy"}})


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "a readable file"), (b"\x93NUMPY\x01\x00", "a readable file"), (b"no array", "a readable file")],
)
def test_damaged_npy_file_is_refused(content: bytes, message: str, load: Load, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(
        InvalidArgument, match=rf"^\$\.resources\.r\.initialValues\.sourcePath: expected {message}"
    ):
        _buffer(load, {"initialValues": {"sourcePath": "a.npy"}})


@pytest.mark.parametrize("array", [np.zeros(2, complex), np.array(["a"]), np.array([{}], object)])
def test_npy_file_with_other_elements_is_refused(array: npt.NDArray[Any], load: Load, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InvalidArgument, match=r"expected a readable file, got a\.npy"):
        _buffer(load, {"initialValues": {"sourcePath": "a.npy"}})


def test_raw_file_needs_a_type_and_whole_elements(load: Load, tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(bytes(range(6)))
    source = {"sourcePath": "a.dat"}
    assert _buffer(load, {"initialValuesDataType": "UINT16", "initialValues": source}).size == 8
    with pytest.raises(
        InvalidArgument, match="expected a multiple of 4 bytes, the size of FLOAT32, got 6 bytes"
    ):
        _buffer(load, {"initialValuesDataType": "FLOAT32", "initialValues": source})
    with pytest.raises(InvalidArgument, match="initialValuesDataType: missing or UNKNOWN"):
        _buffer(load, {"initialValues": source})


def test_empty_file_is_refused(load: Load, tmp_path: Path) -> None:
    (tmp_path / "a.dat").touch()
    with pytest.raises(InvalidArgument, match="expected at least one value"):
        _buffer(load, {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "a.dat"}})


def test_source_beside_the_model_comes_before_the_current_directory_if_any_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.dat").write_bytes(b"bb")
    monkeypatch.chdir(elsewhere)
    path = tmp_path / "model.json"
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "a.dat"}}
    path.write_text(json.dumps({"resources": {"x": resource}, "dispatchables": {}, "commands": []}))
    with pytest.raises(InvalidArgument, match="expected a file in"):
        dxdispatch.load(path)
    assert dxdispatch.load(path, allow_any_path=True).resources["x"].size_in_bytes == 2
    (tmp_path / "a.dat").write_bytes(b"a")
    assert dxdispatch.load(path, allow_any_path=True).resources["x"].size_in_bytes == 1
    assert dxdispatch.load(path).resources["x"].size_in_bytes == 1


@pytest.fixture
def model_with_files() -> dict[str, Any]:
    """A model of which no file is there: what can only be known from them is left open."""
    tensor = {"DataType": "FLOAT32", "Sizes": [4]}
    desc = {"InputTensor": tensor, "OutputTensor": tensor}
    bindings = {"InputTensor": "x", "OutputTensor": "y"}
    return {
        "resources": {
            "x": {"initialValues": {"sourcePath": "no.npy"}},
            "y": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "no.png"}},
        },
        "dispatchables": {"relu": {"type": "ACTIVATION_RELU", "desc": desc}},
        "commands": [
            {"type": "dispatch", "dispatchable": "relu", "bindings": bindings},
            {"type": "print", "resource": "x"},
            {
                "type": "writeFile",
                "resource": "y",
                "targetPath": "/nowhere/y.png",
                "dimensions": [1, 1, 2, 2],
            },
        ],
    }


def test_operators_are_read_without_files(
    model_with_files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model_with_files))
    (relu,) = dxdispatch.parse_operators(dxdispatch.read(path)).values()
    desc: Any = relu.desc
    assert (relu.name, desc.operator) == ("relu", "ACTIVATION_RELU")
    with pytest.raises(InvalidArgument, match=r"x\.initialValues\.sourcePath: expected a file in "):
        dxdispatch.load(path)


def test_without_files_all_else_is_still_checked(model_with_files: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    model_with_files["resources"]["x"]["size"] = 3
    model_with_files["commands"][1]["resource"] = "z"
    path.write_text(json.dumps(model_with_files))
    with pytest.raises(InvalidArgument) as caught:
        dxdispatch.parse_operators(dxdispatch.read(path))
    assert caught.value.failures[0].startswith("$.resources.x.size: unknown field")
    model_with_files["resources"]["x"].pop("size")
    path.write_text(json.dumps(model_with_files))
    with pytest.raises(InvalidArgument) as caught:
        dxdispatch.parse_operators(dxdispatch.read(path))
    assert caught.value.failures == (
        '$.commands[1].resource: expected the name of a resource, got "z"; expected one of "x", "y"',
    )


def test_files_are_written_to_the_current_directory_unless_told(
    model_with_files: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "model.json"
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": [1]}
    commands = [{"type": "writeFile", "resource": "x", "targetPath": "x.npy"}]
    path.write_text(json.dumps({"resources": {"x": resource}, "dispatchables": {}, "commands": commands}))
    monkeypatch.chdir(tmp_path)
    (command,) = dxdispatch.load(path).commands
    assert isinstance(command, WriteFile)
    assert command.target.absolute() == tmp_path / "x.npy"


def test_source_files_are_sought_in_the_input_directory(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    np.save(tmp_path / "inputs" / "a.npy", np.ones(3, np.float32))
    path = tmp_path / "model.json"
    resource = {"initialValues": {"sourcePath": "a.npy"}}
    path.write_text(json.dumps({"resources": {"x": resource}, "dispatchables": {}, "commands": []}))
    model = dxdispatch.load(path, input_directory=tmp_path / "inputs")
    assert model.resources["x"].size_in_bytes == 12
