"""Open folders that resolve names without links, and files that are written atomically.

No link leads out of such a folder, even if somebody swaps it between a check and its use.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_HAS_AT = os.open in os.supports_dir_fd
"""True if the system opens names relative to an open folder. On Windows, paths are checked and then
opened."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # Do not wait for the writer of a pipe.
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)

TEMPORARY = r"opendml-[0-9a-f]{16}\.tmp"
"""The pattern of names of unfinished files."""


class Folder:
    """An open folder, whose methods follow no links.

    Args:
        path: its path without links, or its name in `parent`.
        parent: the open folder that contains it.

    Raises:
        OSError: the folder does not exist, or is a link.
    """

    def __init__(self, path: str, parent: Folder | None = None) -> None:
        self._fd: int | None = None
        self._identity: tuple[int, int] | None = None
        self.path: str = path if parent is None else os.path.join(parent.path, path)
        if _HAS_AT:
            with _naming(self.path):
                self._fd = os.open(path, _FOLDER | _NO_FOLLOW, dir_fd=parent._fd if parent else None)
        elif not os.path.isdir(self.path) or os.path.islink(self.path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.path)
        self._identity = _identity(self.status())

    def __del__(self) -> None:
        if self._fd is not None and self._is_own():
            os.close(self._fd)

    def _is_own(self) -> bool:
        """Return whether the descriptor is still the folder's: the application may have closed all files."""
        try:
            return self._identity in (None, _identity(self.status()))
        except OSError as error:
            return error.errno != errno.EBADF

    def is_there(self) -> bool:
        """Return whether the folder is still open and exists."""
        try:
            return self._is_own() and self.status().st_nlink > 0
        except FileNotFoundError:  # Systems without descriptors of folders.
            return False

    def _name(self, name: str) -> str:
        return name if _HAS_AT else os.path.join(self.path, name)

    def status(self, name: str | None = None) -> os.stat_result:
        """Return the status of an entry, or of the folder itself."""
        if name is None:
            return os.stat(self.path if self._fd is None else self._fd)
        return os.stat(self._name(name), dir_fd=self._fd, follow_symlinks=False)

    def names(self) -> list[str]:
        """Return the names of all entries."""
        if self._fd is None:
            return os.listdir(self.path)
        readable = os.open(".", os.O_RDONLY | _NO_FOLLOW, dir_fd=self._fd)
        try:
            return os.listdir(readable)
        finally:
            os.close(readable)

    def open_file(self, name: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            OSError: the name belongs to nothing, a link, a folder, a pipe or a device.
        """
        file = open(name, "rb", opener=self._opener(_NO_WAIT))  # noqa: SIM115 - the caller closes it
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", os.path.join(self.path, name))
        except BaseException:
            file.close()
            raise
        return file

    def _opener(self, more: int, mode: int = 0o666) -> Callable[[str, int], int]:
        """Return an opener that adds flags to those of `open`."""

        def opened(name: str, flags: int) -> int:
            with _naming(os.path.join(self.path, name)):
                return os.open(self._name(name), flags | more | _NO_FOLLOW, mode, dir_fd=self._fd)

        return opened

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Make a folder unless the name exists."""
        with suppress(FileExistsError), _naming(os.path.join(self.path, name)):
            os.mkdir(self._name(name), mode, dir_fd=self._fd)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._name(name), dir_fd=self._fd)

    @contextmanager
    def replacing(self, name: str, mode: int = 0o666) -> Iterator[BinaryIO]:
        """Write a file atomically: readers see the old or the complete new one. An exception leaves no new
        file.

        Args:
            name: the name. A regular file or a link of this name is replaced.
            mode: the permissions of a new file, before the umask.

        Raises:
            OSError: the file cannot be written, or the name belongs to something else.
        """
        with suppress(FileNotFoundError):
            before = self.status(name).st_mode
            if not stat.S_ISREG(before) and not stat.S_ISLNK(before):
                raise OSError(errno.EINVAL, "not a regular file", os.path.join(self.path, name))
        temporary = f"opendml-{os.urandom(8).hex()}.tmp"
        try:
            with open(temporary, "xb", opener=self._opener(0, mode)) as file:
                yield file
            with _naming(os.path.join(self.path, name)):
                os.replace(self._name(temporary), self._name(name), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            with suppress(OSError):
                self.remove(temporary)
            raise


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Put the whole path into errors, which have only the name in the folder."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def within(folder: str | os.PathLike[str], name: str | os.PathLike[str]) -> tuple[str, Sequence[str]] | None:
    """Resolve the name of a file in a folder, through all current links.

    Args:
        folder: the folder.
        name: a path, relative to the folder.

    Returns:
        The folder without links, and the parts of the path from there to the file. None if the path leaves
        the folder, or is the folder itself.
    """
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name))
    if not Path(path).is_relative_to(root) or path == root:
        return None
    return root, Path(path).relative_to(root).parts


def _parent_within(
    folder: str | os.PathLike[str], name: str | os.PathLike[str], *, make: bool
) -> tuple[Folder, str]:
    """Open the folder of a file below another folder; return it and the file's own name."""
    found = within(folder, name)
    if found is None:
        raise PermissionError(errno.EACCES, f"not in the folder {os.fspath(folder)}", os.fspath(name))
    root, (*parents, last) = found
    inner = Folder(root)
    for parent in parents:
        if make:
            inner.make_folder(parent)
        inner = Folder(parent, inner)
    return inner, last


def open_within(folder: str | os.PathLike[str], name: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file in a folder for reading.

    Raises:
        OSError: the file does not exist, or links or `..` lead out of the folder.
    """
    parent, last = _parent_within(folder, name, make=False)
    return parent.open_file(last)


@contextmanager
def replacing_within(folder: str | os.PathLike[str], name: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file in a folder atomically, and make the folders on the way.

    Raises:
        OSError: the file cannot be written, or links or `..` lead out of the folder.
    """
    parent, last = _parent_within(folder, name, make=True)
    with parent.replacing(last) as file:
        yield file


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write the file at a user's path atomically.

    A link stays, and its target is written. A device or a pipe is written directly.

    Raises:
        OSError: the file cannot be written.
    """
    path, mode = os.fsdecode(path), None
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    folder, name = os.path.split(os.path.realpath(path))
    with Folder(folder).replacing(name) as file:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
        yield file
