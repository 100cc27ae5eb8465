"""Pictures as resources and as files that commands write."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opendml.errors import InvalidArgument, Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel

from .conftest import AddOneDevice

Image = pytest.importorskip("PIL.Image")
Load = Callable[[Any], DispatchModel]


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
def test_png_round_trip_keeps_every_step(
    data_type: str, channels: int, nhwc: bool, load: Load, tmp_path: Path
) -> None:
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
def test_wrong_picture_fields_are_refused(
    fields: dict[str, Any], message: str, load: Load, tmp_path: Path
) -> None:
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


def test_pictures_without_pillow_are_refused_before_anything_runs(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
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
