"""Data files that are damaged in any way: a message that names the file's field, and nothing else."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch import DispatchModel
from tests.frontends.conftest import Load

MAGIC = b"\x93NUMPY\x01\x00"


def _load(load: Load, path: Path) -> DispatchModel:
    resource: dict[str, Any] = {"initialValues": {"sourcePath": path.name}}
    if path.suffix != ".npy":
        resource["initialValuesDataType"] = "FLOAT32"
    return load({"resources": {"r": resource}, "dispatchables": {}, "commands": []})


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode("latin1")
    return MAGIC + len(text).to_bytes(2, "little") + text + data


HEADERS = {
    "descr without end": "{'descr': '<f4",
    "no dictionary": "[1, 2, 3]\n",
    "other keys": "{'descr': '<f4', 'shape': (3,)}\n",
    "unknown type": "{'descr': '<q9', 'fortran_order': False, 'shape': (3,)}\n",
    "type no text": "{'descr': 7, 'fortran_order': False, 'shape': (3,)}\n",
    "type a tuple": "{'descr': ('<f4',), 'fortran_order': False, 'shape': (3,)}\n",
    "Python objects": "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}\n",
    "structured type": "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}\n",
    "shape no tuple": "{'descr': '<f4', 'fortran_order': False, 'shape': 3}\n",
    "shape of floats": "{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}\n",
    "negative shape": "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}\n",
    "two negative sizes": "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -3)}\n",
    "shape beyond the file": "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}\n",
    "shape beyond memory": f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**60},)}}\n",
    "shape beyond 64 bits": f"{{'descr': '<f4', 'fortran_order': True, 'shape': ({2**62}, {2**62})}}\n",
    "thousand dimensions": f"{{'descr': '<f4', 'fortran_order': True, 'shape': ({'1,' * 1000})}}\n",
    "deep nesting": "{'descr': " + "[" * 5000,
    "a call": "__import__('os').system('true')\n",
    "text after it": "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} + 1\n",
    "open bracket of Python 2": "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,\n",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_npy_headers_that_mean_nothing_are_refused(header: str, load: Load, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(_npy(header, np.ones(3, np.float32).tobytes()))
    with pytest.raises(InvalidArgument, match=r"^\$\.resources\.r\.initialValues\.sourcePath: .* a\.npy"):
        _load(load, path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93",
        MAGIC,
        MAGIC + b"\xff\xff",
        b"\x93NUMPY\x09\x00" + bytes(100),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    ],
    ids=repr,
)
def test_npy_files_without_header_are_refused(content: bytes, load: Load, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=r"^\$\.resources\.r\.initialValues\.sourcePath: .* a\.npy"):
        _load(load, path)


def test_pickled_objects_are_never_loaded(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{}, None]), allow_pickle=True)
    with pytest.raises(InvalidArgument, match="elements of type object, which DirectML has not"):
        _load(load, path)


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    np.save(tmp_path / "c.npy", pixels)
    np.save(tmp_path / "f.npy", np.asfortranarray(pixels.astype(">f4")))
    Image.fromarray(pixels).save(tmp_path / "rgb.png")
    Image.fromarray(pixels).quantize(16).save(tmp_path / "palette.png")
    Image.fromarray(pixels).save(tmp_path / "a.jpg")
    return sorted(tmp_path.iterdir())


@pytest.mark.parametrize("seed", range(20))
def test_random_damage_is_read_or_refused(seed: int, sources: list[Path], load: Load) -> None:
    draw = random.Random(seed)
    for path in sources:
        whole = path.read_bytes()
        for _ in range(10):
            damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
            for _ in range(draw.choice([0, 1, 1, 2, 8])):
                if damaged:
                    # Headers are where files say the most.
                    place = min(
                        draw.choice([draw.randrange(128), draw.randrange(len(damaged))]), len(damaged) - 1
                    )
                    damaged[place] = draw.choice([draw.randrange(256), 0, 255, *b"0129(),<>{}'"])
            path.write_bytes(damaged)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the libraries, about odd files
                _load_or_refuse(load, path)


def _load_or_refuse(load: Load, path: Path) -> None:
    try:
        _load(load, path)
    except InvalidArgument as error:
        (failure,) = error.failures
        if not failure.startswith("$.resources.r."):
            pytest.fail(failure)
