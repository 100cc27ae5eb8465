"""Model files, read within the limits of the model that they belong to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from opendml.budget import meter
from opendml.errors import InvalidArgument, NoSuchFile
from opendml.folders import open_within


def open_file(path: Path, where: object, folder: Path | None = None) -> BinaryIO:
    """Open a file for reading.

    Args:
        path: the file.
        where: the beginning of error messages.
        folder: the folder that must contain the file; None: any.

    Raises:
        NoSuchFile: there is no such file.
        InvalidArgument: the file cannot be read, lies elsewhere, or is a folder, a device or a pipe.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidArgument(f"{where}: not a file")
        return path.open("rb") if folder is None else open_within(folder, path.absolute())
    except FileNotFoundError as error:
        raise NoSuchFile(f"{where}: {error.strerror or error}") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte.
        raise InvalidArgument(f"{where}: {getattr(error, 'strerror', None) or error}") from error


def read_file(path: Path, where: object, folder: Path | None = None) -> bytes:
    """Return the content of a file, and count its bytes as held by the model.

    Args and Raises as `open_file`, and:

    Raises:
        LimitExceeded: the file has more bytes than the model may hold.
    """
    with open_file(path, where, folder) as file:
        try:
            return read_all(file, where)
        except OSError as error:
            raise InvalidArgument(f"{where}: {error.strerror or error}") from error


def read_all(file: BinaryIO, where: object) -> bytes:
    """Return the content of an open file, and count its bytes as held by the model.

    Raises:
        OSError: the file cannot be read.
        LimitExceeded: the file has more bytes than the model may hold.
    """
    return file.read(hold_file(file, where))


def hold_file(file: BinaryIO, where: object) -> int:
    """Count the bytes of an open file as held by the model, and return their number.

    Holes count too, although they take no disk space.

    Raises:
        LimitExceeded: the file has more bytes than the model may hold.
    """
    size = os.fstat(file.fileno()).st_size
    meter().hold(size, where)
    return size
