"""Read and write the files of resources: NumPy arrays, pictures and raw bytes."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from opendml.budget import meter
from opendml.folders import open_within, replacing, replacing_within
from opendml.frontends.dxdispatch import images
from opendml.frontends.dxdispatch.values import Bytes, Elements, byte_count, decode, element_count
from opendml.spec.enums import TensorDataType
from opendml.spec.four_bit import numpy_type


def opened(path: Path, folder: Path | None) -> BinaryIO:
    """Open a file for reading.

    Args:
        path: the file.
        folder: the folder that it must lie in; None: any.

    Raises:
        OSError: there is no such file, or it lies elsewhere.
    """
    return path.open("rb") if folder is None else open_within(folder, path.absolute())


def read_npy(file: BinaryIO) -> tuple[Elements, TensorDataType]:
    """Return the elements of a .npy file in row-major order, in the host's byte order, and their type.
    Booleans become UINT8.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged or of another type.
        LimitExceeded: its elements take more memory than the model may hold.
    """
    shape, is_column_major, dtype = _read_npy_header(file)
    name = "UINT8" if dtype == np.bool_ else dtype.name.upper()
    if name not in TensorDataType.__members__:
        raise ValueError(f"elements of type {dtype.name}, which DirectML has not")
    needed, given = prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
    if needed > given:
        raise ValueError(f"{given} bytes of elements; the header promises {needed} for shape {shape}")
    meter().hold(needed, file.name)
    elements = np.fromfile(file, dtype, prod(shape))
    if is_column_major:
        elements = elements.reshape(shape[::-1]).T
    data_type = TensorDataType[name]
    return np.ascontiguousarray(elements, dtype.newbyteorder("=")).view(numpy_type(data_type)), data_type


def _read_npy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the shape, whether it is in column-major order, and the type of elements from a .npy file.

    Raises ValueError when the header is damaged.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, is_column_major, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, is_column_major, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise ValueError(f"version {version[0]}.{version[1]}, which only structured types need")
    except Exception as error:  # NumPy evaluates the header as Python, which fails in many ways
        raise ValueError(f"damaged header of a .npy file: {error}") from error
    if any(size < 0 for size in shape):
        raise ValueError(f"damaged header of a .npy file: shape {shape}")
    return shape, is_column_major, dtype


def problem_of_picture(path: Path, data_type: TensorDataType, dimensions: tuple[int, ...]) -> str:
    """Return why elements are no picture of the kind that a file name says; "": they are, or it says none."""
    if path.suffix.lower() not in images.EXTENSIONS:
        return ""
    axis = images.channel_axis(dimensions)
    if not images.holds_pixels(data_type) or axis is None:
        needed = "FLOAT16, FLOAT32, FLOAT64 or UINT8 with sizes [1, C, H, W] or [1, H, W, C], C = 1, 3 or 4"
        return f"{data_type.name} {list(dimensions)}; {needed}, is needed"
    return "JPEG has no alpha channel" if dimensions[axis] == 4 and path.suffix.lower() != ".png" else ""


def write(
    path: Path,
    folder: Path | None,
    data: Bytes,
    data_type: TensorDataType,
    dimensions: tuple[int, ...] | None,
) -> None:
    """Write a buffer to a file, whole or not at all, in the format of its extension. Folders on the way are
    made.

    Args:
        path: the file.
        folder: the folder that it must lie in; None: any.
        data: the buffer.
        data_type: the type of its elements.
        dimensions: their sizes; None: one dimension with all elements, which is no picture (the parser sees
            to that).

    Raises:
        OSError: the file cannot be written.
        MemoryError: memory is out.
    """
    (folder or path.parent).mkdir(parents=True, exist_ok=True)
    with replacing(path) if folder is None else replacing_within(folder, path.absolute()) as file:
        _write(file, path.suffix.lower(), data, data_type, dimensions)


def _write(
    file: BinaryIO,
    extension: str,
    data: Bytes,
    data_type: TensorDataType,
    dimensions: tuple[int, ...] | None,
) -> None:
    if extension not in (".npy", *images.EXTENSIONS):
        file.write(data.data)
        return
    if dimensions is None:
        dimensions = (element_count(data_type, data.size),)
    count = int(np.prod(dimensions, dtype=np.int64))
    elements = decode(data[: byte_count(data_type, count)], data_type, count)
    if extension == ".npy":
        np.save(file, elements.reshape(dimensions), allow_pickle=False)
    else:
        images.write(file, extension, elements, dimensions)
