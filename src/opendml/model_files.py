"""Files of models, read within the limits of the model that they belong to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from opendml.budget import meter
from opendml.errors import InvalidArgument
from opendml.folders import open_within


def open_file(path: Path, where: object, folder: Path | None = None) -> BinaryIO:
    """Open a file for reading.

    Args:
        path: the file.
        where: what errors call it.
        folder: the folder that it must lie in; None: any.

    Raises:
        InvalidArgument: it cannot be read, lies elsewhere, or is a folder, a device or a pipe, which may
            never end.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidArgument(f"{where}: not a file")
        return path.open("rb") if folder is None else open_within(folder, path.absolute())
    except (OSError, ValueError) as error:  # the latter of a path with a zero byte
        raise InvalidArgument(f"{where}: {getattr(error, 'strerror', None) or error}") from error


def read_file(path: Path, where: object, folder: Path | None = None) -> bytes:
    """Return the content of a file, whose bytes the model holds from now on.

    Args:
        path: the file.
        where: what errors call it.
        folder: the folder that it must lie in; None: any.

    Raises:
        InvalidArgument: it cannot be read, as for `open_file`.
        LimitExceeded: it has more bytes than the model may hold.
    """
    with open_file(path, where, folder) as file:
        try:
            return read_all(file, where)
        except OSError as error:
            raise InvalidArgument(f"{where}: {error.strerror or error}") from error


def read_all(file: BinaryIO, where: object) -> bytes:
    """Return the content of an open file, whose bytes the model holds from now on.

    Raises:
        OSError: it cannot be read.
        LimitExceeded: it has more bytes than the model may hold.
    """
    size = os.fstat(file.fileno()).st_size  # also those of holes, which take no disk space
    meter().hold(size, where)
    return file.read(size)
