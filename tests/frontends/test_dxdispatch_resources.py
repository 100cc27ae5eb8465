"""Resources and pictures of JSON models."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel, values
from opendml.frontends.dxdispatch.model import WriteFile
from opendml.spec.enums import TensorDataType
from opendml.spec.rules.shared import integer_range

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
    low, high = integer_range(data_type)
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


Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def pixels() -> npt.NDArray[np.uint8]:
    """Every one of the 256 steps, in 3 channels: height 8, width 64."""
    return np.arange(8 * 64 * 3).reshape(8, 64, 3).astype(np.uint8)


def _run(load: Load, resource: dict[str, Any], **command: Any) -> npt.NDArray[np.uint8]:
    """Runs a model that only has a resource and, with `command`, writes it; returns the buffer."""
    commands = [{"type": "writeFile", "resource": "r", **command}] if command else []
    program = dxdispatch.prepare(
        load({"resources": {"r": resource}, "dispatchables": {}, "commands": commands}), AddOneDevice()
    )
    list(program.run())
    return np.array(program.buffers["r"])


@pytest.mark.parametrize(("data_type", "dtype"), [("FLOAT16", "f2"), ("FLOAT32", "f4"), ("FLOAT64", "f8")])
def test_floats_are_fractions_in_channel_order(
    data_type: str, dtype: str, pixels: npt.NDArray[np.uint8], load: Load, tmp_path: Path
) -> None:
    Image.fromarray(pixels).save(tmp_path / "a.png")
    resource = {"initialValuesDataType": data_type, "initialValues": {"sourcePath": "a.png"}}
    planes = _run(load, resource | {"resampleSize": [1, 3, 8, 64]}).view(dtype).reshape(3, 8, 64)
    np.testing.assert_allclose(planes, pixels.transpose(2, 0, 1) / 255, rtol=5e-4)
    interleaved = _run(load, resource | {"resampleSize": [1, 8, 64, 3]}).view(dtype).reshape(8, 64, 3)
    np.testing.assert_array_equal(interleaved, planes.transpose(1, 2, 0))


@pytest.mark.parametrize("data_type", ["FLOAT16", "FLOAT32", "FLOAT64", "UINT8"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("nhwc", [False, True])
def test_png_keeps_every_step(data_type: str, channels: int, nhwc: bool, load: Load, tmp_path: Path) -> None:
    original = np.arange(8 * 64 * channels).reshape(8, 64, channels).astype(np.uint8)
    Image.fromarray(original[:, :, 0] if channels == 1 else original).save(tmp_path / "a.png")
    dimensions = [1, 8, 64, channels] if nhwc else [1, channels, 8, 64]
    resource = {"initialValuesDataType": data_type, "initialValues": {"sourcePath": "a.png"}}
    _run(load, resource | {"resampleSize": dimensions}, targetPath="out/b.png", dimensions=dimensions)
    written = np.asarray(Image.open(tmp_path / "out" / "b.png")).reshape(original.shape)
    np.testing.assert_array_equal(written, original)


def test_picture_is_scaled_to_the_given_size(load: Load, tmp_path: Path) -> None:
    Image.new("RGB", (40, 30), (255, 0, 51)).save(tmp_path / "a.png")
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.png"}}
    small = _run(load, resource | {"resampleSize": [1, 3, 6, 8], "resampleMode": "scale"}).view("f4")
    np.testing.assert_allclose(small.reshape(3, 48).T, [(1.0, 0.0, 0.2)] * 48, rtol=1e-6)


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3), ("P", 3), ("RGBA", 4), ("LA", 4)])
def test_picture_without_size_keeps_its_own(mode: str, channels: int, load: Load, tmp_path: Path) -> None:
    Image.new(mode, (5, 4)).save(tmp_path / "a.png")
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "a.png"}}
    assert _run(load, resource).size == 5 * 4 * channels


def test_values_outside_of_the_range_are_clipped_and_nan_is_black(load: Load, tmp_path: Path) -> None:
    values = [-1, 0.5, 2, "nan", "inf", "-inf"]
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": values}
    _run(load, resource, targetPath="a.png", dimensions=[1, 1, 2, 3])
    assert np.asarray(Image.open(tmp_path / "a.png")).tolist() == [[0, 128, 255], [0, 255, 0]]


def test_jpeg_is_written_and_read(load: Load, tmp_path: Path) -> None:
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 3 * 64, "value": 0.5}}
    _run(load, resource, targetPath="a.jpg", dimensions=[1, 3, 8, 8])
    again = {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.jpg"}}
    np.testing.assert_allclose(_run(load, again).view("f4"), 0.5, atol=2 / 255)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resampleSize": [3, 8, 8]}, r"resampleSize: expected \[1, C, H, W\] or .* got \[3, 8, 8\]"),
        ({"resampleSize": [1, 2, 8, 8]}, r"resampleSize: expected .* got \[1, 2, 8, 8\]"),
        ({"resampleSize": [2, 3, 8, 8]}, r"resampleSize: expected .* got \[2, 3, 8, 8\]"),
        ({"resampleMode": "crop"}, 'resampleMode: expected "scale", got "crop"'),
        (
            {"initialValuesDataType": "INT32"},
            "initialValuesDataType: expected FLOAT16, FLOAT32, FLOAT64 or UINT8",
        ),
    ],
)
def test_wrong_fields_are_refused(fields: dict[str, Any], message: str, load: Load, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    with pytest.raises(InvalidArgument, match=message):
        _run(load, {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.png"}} | fields)


def test_picture_that_no_memory_holds_is_refused(load: Load, tmp_path: Path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.png"}}
    with pytest.raises(InvalidArgument, match="sourcePath: expected a readable file"):
        _run(load, resource | {"resampleSize": [1, 3, 2**32 - 1, 2**32 - 1]})


def test_jpeg_with_alpha_is_refused_before_anything_runs(load: Load) -> None:
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3, 4]}
    with pytest.raises(InvalidArgument, match=r"targetPath: expected a \.png file"):
        _run(load, resource, targetPath="a.jpg", dimensions=[1, 4, 1, 1])


def test_pictures_without_pillow_are_refused_at_first(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    resource = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3, 4]}
    with pytest.raises(Unsupported, match="pip install pillow"):
        load(
            {
                "resources": {"r": resource},
                "dispatchables": {},
                "commands": [
                    {"type": "writeFile", "resource": "r", "targetPath": "a.png", "dimensions": [1, 1, 2, 2]}
                ],
            }
        )


@pytest.mark.parametrize("keep", [0, 8, 60, 100])
def test_damaged_picture_is_refused(keep: int, load: Load, tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)).save(tmp_path / "a.png")
    path = tmp_path / "a.png"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InvalidArgument, match="sourcePath: expected a readable file"):
        _run(load, {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "a.png"}})
