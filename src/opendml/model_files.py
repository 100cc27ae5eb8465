"""Files of models, read within the limits of the model that they belong to."""

from __future__ import annotations

from pathlib import Path

from opendml.budget import meter
from opendml.errors import InvalidArgument


def read_file(path: Path, where: object) -> bytes:
    """Return the content of a file, whose bytes the model holds from now on.

    Args:
        path: the file.
        where: what errors call it.

    Raises:
        InvalidArgument: it cannot be read, or is a folder, a device or a pipe, which may never end.
        LimitExceeded: it has more bytes than the model may hold.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidArgument(f"{where}: not a file")
        meter().hold(path.stat().st_size, where)  # also those of holes, which take no room on the disk
        return path.read_bytes()
    except (OSError, ValueError) as error:  # the latter of a path with a zero byte
        raise InvalidArgument(f"{where}: {getattr(error, 'strerror', None) or error}") from error
