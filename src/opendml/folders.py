"""Open folders, in which names are resolved without following links: no link, planted or swapped at any time,
leads out of them. Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_HAS_AT = os.open in os.supports_dir_fd
"""Whether the system opens names relative to an open folder. Windows does not: there, paths are resolved,
checked and then opened."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # A pipe without a writer would be waited for.
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", os.O_RDONLY)

TEMPORARY = r"opendml-[0-9a-f]{16}\.tmp"
"""The pattern of names of files that are being written."""


class Folder:
    """An open folder. None of its methods follows a link.

    Args:
        path: where it is, without links, or its name in another open folder.
        parent: that other folder.

    Raises:
        OSError: there is no such folder, or it is a link.
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
        """Whether the descriptor is still the folder's. A program may close all files that it does not know,
        and then open others."""
        try:
            return self._identity in (None, _identity(self.status()))
        except OSError as error:
            return error.errno != errno.EBADF

    def is_there(self) -> bool:
        """Whether the folder is still open, and was not removed."""
        try:
            return self._is_own() and self.status().st_nlink > 0
        except FileNotFoundError:  # of a path, where there are no descriptors of folders
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
            OSError: there is none of that name: nothing, a link, a folder, a pipe or a device.
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
        """Return what opens a name with the flags of `open` and some more."""

        def opened(name: str, flags: int) -> int:
            with _naming(os.path.join(self.path, name)):
                return os.open(self._name(name), flags | more | _NO_FOLLOW, mode, dir_fd=self._fd)

        return opened

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Make a folder, unless something has that name."""
        with suppress(FileExistsError), _naming(os.path.join(self.path, name)):
            os.mkdir(self._name(name), mode, dir_fd=self._fd)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._name(name), dir_fd=self._fd)

    @contextmanager
    def replacing(self, name: str, mode: int = 0o666) -> Iterator[BinaryIO]:
        """Write a file: readers see the one before, or all of the new one. If the block raises, nothing of
        the new one is left.

        Args:
            name: of the file. A regular file or a link that has it is replaced.
            mode: the permissions of a new file, less the process's umask.

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
    """Make errors name a whole path: the system knows the name in the folder alone."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def within(folder: str | os.PathLike[str], name: str | os.PathLike[str]) -> tuple[str, Sequence[str]] | None:
    """Resolve the name of a file in a folder, through all links that are there now.

    Args:
        folder: the folder.
        name: a path, relative to the folder.

    Returns:
        The folder without links, and the parts of the path from there to the file; None if the path leads
        out of the folder, or to the folder itself.
    """
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, name))
    if not Path(path).is_relative_to(root) or path == root:
        return None
    return root, Path(path).relative_to(root).parts


def _parent_within(
    folder: str | os.PathLike[str], name: str | os.PathLike[str], *, make: bool
) -> tuple[Folder, str]:
    """Open the folder of a file that lies in another folder, at any depth; return it and the file's own
    name."""
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
    """Open a regular file in a folder for reading, and nothing that lies outside of it.

    Raises:
        OSError: there is no such file, or links or `..` lead out of the folder.
    """
    parent, last = _parent_within(folder, name, make=False)
    return parent.open_file(last)


@contextmanager
def replacing_within(folder: str | os.PathLike[str], name: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file in a folder whole or not at all, and nothing that lies outside of it. Folders on the way
    there are made.

    Raises:
        OSError: the file cannot be written, or links or `..` lead out of the folder.
    """
    parent, last = _parent_within(folder, name, make=True)
    with parent.replacing(last) as file:
        yield file


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write the file at a path that the user has said, whole or not at all. A link stays, and the file that
    it leads to is written. What is no regular file, such as a device or a pipe, is written as it comes.

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
