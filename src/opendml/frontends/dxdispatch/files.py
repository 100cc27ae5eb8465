"""The files that resources are read from and written to: NumPy arrays, pictures and raw bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opendml.frontends.dxdispatch import images
from opendml.frontends.dxdispatch.values import Bytes, Elements, byte_count, decode, element_count
from opendml.spec.enums import TensorDataType


def read_npy(path: Path) -> tuple[Elements, TensorDataType]:
    """The elements of a .npy file in row-major order, in the host's byte order, and their type.

    Booleans become UINT8. Raises OSError, or ValueError for a file that is damaged or of another type.
    """
    with path.open("rb") as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    name = array.dtype.name.upper()
    if name not in TensorDataType.__members__:
        raise ValueError(f"elements of type {array.dtype.name}, which DirectML has not")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")), TensorDataType[name]


def write(path: Path, data: Bytes, data_type: TensorDataType, dimensions: tuple[int, ...] | None) -> None:
    """Writes the buffer `data` in the format of the path's extension; creates folders as needed.

    Without dimensions an array has one dimension with all elements, and a picture can't be written
    (the parser sees to it).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    extension = path.suffix.lower()
    if extension not in (".npy", *images.EXTENSIONS):
        path.write_bytes(data.tobytes())
        return
    if dimensions is None:
        dimensions = (element_count(data_type, data.size),)
    count = int(np.prod(dimensions, dtype=np.int64))
    elements = decode(data[: byte_count(data_type, count)], data_type, count)
    if extension == ".npy":
        with path.open("wb") as file:  # given a path, NumPy would append .npy to .NPY
            np.save(file, elements.reshape(dimensions), allow_pickle=False)
    else:
        images.write(path, elements, dimensions)
