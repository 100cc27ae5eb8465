"""Compiled objects on disk, shared between the processes of a user: read whole or not at all.

Objects are run as machine code. So the folder, each folder above it and each file must belong to the user or
to root, and nobody else may write to them. OpenSSH demands the same of keys. If others can change the folder,
it is not used, and the process compiles all code.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from opendml.digests import DIGEST_BYTES, digest_of
from opendml.errors import InvalidArgument
from opendml.folders import TEMPORARY, Folder
from opendml.later import later
from opendml.logs import log
from opendml.spec.wording import shown
from opendml.targets.compiled_files import CompiledFile, current_file, recorder

_LARGEST_OBJECT = 2**28
"""Bytes of an object, at most. Kernels are far smaller. Larger files are not read into memory."""
_SHARED_SOURCES = ("program", "compiler", "targets/common")
_FILE = re.compile(rf"[0-9a-f]{{64}}\.(o|plan|file)|{TEMPORARY}")
"""The files that are the cache's own. No others are ever removed."""

MOST_PLANS = 24
"""Plans for one purpose, as those of a bucket of sizes, at most. On a CUDA device kernels ask by what sizes
can be divided. So a recognizer of text needs 7 plans for 8 widths of a bucket."""
PLANS_VARIABLE = "OPENDML_CACHE_PLANS"
BYTES_VARIABLE = "OPENDML_CACHE_BYTES"
_DEFAULT_BYTES = 2**30
_SCANS = 64
"""Scans of the folder, about, while as many bytes are written as it may hold: a scan of 50,000 files takes
0.2 s, as long as compiling a dozen kernels."""
_KEPT = 0.875
"""Fraction of the allowed bytes that is left when files are removed."""
_USED_AGAIN = 3600
"""Seconds after which a file that is read counts as used again. Noting each use would write to the disk."""
_ABANDONED = 3600
"""Seconds after which a file that was never finished belongs to no living process."""


@cache
def compiler_digest(target: str) -> str:
    """Return a digest of all sources of opendml that code of a target depends on: programs, the compiler,
    what targets share, and the target's own."""
    package = Path(__file__).parents[1]
    folders = [*(package / name for name in _SHARED_SOURCES), package / "targets" / target]
    # Paths as objects take twice as long.
    sources = [
        f"{folder}{os.sep}{name}"
        for each in folders
        for folder, _, names in os.walk(each)
        for name in names
        if name.endswith((".py", ".cuh"))
    ]
    content, prefix = digest_of(), len(f"{package}{os.sep}")
    for path in sorted(sources):
        content.update(f"{path[prefix:].replace(os.sep, '/')}\0".encode())
        with open(path, "rb", buffering=0) as file:
            content.update(digest_of(file.read()).digest())
    return content.hexdigest()


def plans_are_kept() -> bool:
    """Return whether OPENDML_CACHE_PLANS allows plans and known models."""
    return os.environ.get(PLANS_VARIABLE) != "0"


@cache
def sources_stamp() -> str:
    """Return a digest of the names, sizes and times of change of all sources of opendml.

    Reading all of them would take 15 ms, a fifth of what a known model needs until its first result.
    """
    found, folders = list[str](), [str(Path(__file__).parents[1])]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".json", ".cuh", ".ll")):
                    status = entry.stat()
                    found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return digest_of("\n".join(sorted(found)).encode()).hexdigest()


_settings: ContextVar[tuple[Path, int]] = ContextVar("opendml_cache_settings")
"""The folder of the cache and the bytes that it may hold, while `write_later` does a job."""


def write_later(job: Callable[[], object]) -> None:
    """Do a job that writes to the cache in another thread, so that no call waits for the disk.

    The job uses the folder of now. What this process reads may be older until `later.finish` is called, as it
    is before a model is loaded. A recorder needs what the job writes, so with one it is done at once.
    """
    try:
        settings = cache_directory(), cache_bytes()
    except OSError:
        settings = None
    if recorder() is not None or settings is None:
        job()
        return
    token = _settings.set(settings)
    try:
        later(job)
    finally:
        _settings.reset(token)


def cache_directory() -> Path:
    """Return the folder of compiled objects: OPENDML_CACHE_DIRECTORY, or one in the user's cache folder.

    Raises:
        OSError: the user has no home, or OPENDML_CACHE_DIRECTORY is a relative path, which would lead to
            any folder of that name, depending on the current one.
    """
    settings = _settings.get(None)
    if settings is not None:
        return settings[0]
    chosen = os.environ.get("OPENDML_CACHE_DIRECTORY")
    if chosen:
        if not os.path.isabs(chosen):
            raise OSError(errno.EINVAL, "OPENDML_CACHE_DIRECTORY must be an absolute path", chosen)
        return Path(chosen)
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return Path(local or Path.home() / "AppData" / "Local") / "opendml" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "opendml"
        given = os.environ.get("XDG_CACHE_HOME", "")
        # The specification of XDG says to ignore relative paths.
        return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "opendml"
    except RuntimeError as error:
        raise OSError(errno.ENOENT, "the user has no home folder", "~") from error


def cache_bytes() -> int:
    """Return how many bytes the cache may hold: OPENDML_CACHE_BYTES, or 1 GiB. 0: nothing is kept.

    Raises:
        InvalidArgument: OPENDML_CACHE_BYTES is no whole number.
    """
    settings = _settings.get(None)
    if settings is not None:
        return settings[1]
    text = os.environ.get(BYTES_VARIABLE)
    if not text:
        return _DEFAULT_BYTES
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise InvalidArgument(
            f"{BYTES_VARIABLE}: {shown(text)}; a whole number of bytes is needed (0 keeps nothing), or no "
            "such variable"
        )
    return int(text)


def read_object(key: str, kind: str = "o") -> bytes | None:
    """Return a cached object, or None if there is none, it is damaged, or the folder cannot be trusted.

    Args:
        key: 64 hexadecimal digits, which stand for all that the object depends on.
        kind: "o" (machine code), "plan", "file" (the record of a compiled file), or "host" (what LLVM tells
            of this computer).

    Raises:
        InvalidArgument: OPENDML_CACHE_BYTES is no whole number.
    """
    file, found = current_file(), None
    if file is not None:
        found = file.object(f"{key}.{kind}")
    if found is None:
        found = _read_cached(key, kind)
    if found is not None and (noted := recorder()) is not None:
        noted.objects[f"{key}.{kind}"] = found
    return found


def _read_cached(key: str, kind: str) -> bytes | None:
    """Return an object of the cache folder; see `read_object`."""
    if not cache_bytes():
        return None
    try:
        folder = _folder(make=False)
        with folder.open_file(f"{key}.{kind}") as file:
            status = os.fstat(file.fileno())
            _require_trust(os.path.join(folder.path, f"{key}.{kind}"), status)
            content = file.read(min(status.st_size, _LARGEST_OBJECT))
            if time.time() - status.st_mtime > _USED_AGAIN and os.utime in os.supports_fd:
                with suppress(OSError):
                    os.utime(file.fileno())
    except FileNotFoundError:
        log.debug("not in the cache: %s", key)
        return None
    except (OSError, MemoryError) as error:
        _warn(error)
        return None
    digest, code = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    whole = _digest(key, code) == digest
    log.debug("from the cache: %s" if whole else "damaged in the cache: %s", key)
    return code if whole else None


def numbered_keys(key: str) -> list[str]:
    """Return the keys of the plans for one purpose, which has a key itself."""
    return [digest_of(f"{key} {number}".encode()).hexdigest() for number in range(MOST_PLANS)]


def free_key(key: str) -> str:
    """Return the first of the numbered keys that has no plan in the cache; the last one if all have."""
    keys = numbered_keys(key)
    return next((each for each in keys if read_object(each, "plan") is None), keys[-1])


def write_object(key: str, code: bytes, kind: str = "o", *, warns: bool = True) -> None:
    """Store an object, so that other processes see all of it or nothing. If that fails, nothing is left of
    it, and a warning is logged once if it `warns`. Now and then the objects that were used longest ago are
    removed.

    Args:
        key, kind: as of `read_object`.
        code: the object.
        warns: whether the process compiles more if it is not stored.

    Raises:
        InvalidArgument: OPENDML_CACHE_BYTES is no whole number.
    """
    if (noted := recorder()) is not None:
        noted.objects[f"{key}.{kind}"] = code
    most = cache_bytes()
    if len(code) > most * _KEPT:
        return
    try:
        folder = _folder(make=True)
        with folder.replacing(f"{key}.{kind}", 0o600) as file:
            file.write(_digest(key, code))
            file.write(code)
        # Keys are as good as random numbers.
        if int(key[:8], 16) * most < 2**32 * _SCANS * len(code):
            _remove_oldest(folder, most)
    except (OSError, MemoryError) as error:
        if warns:
            _warn(error)
        else:
            log.debug("%s is not written to the cache: %s", key, error)


def trusted_file(file: CompiledFile, trusted: bool, where: str) -> CompiledFile | None:
    """Return a compiled file if its code may run: the caller trusts it, or the cache records it."""
    if trusted or is_recorded(file.digest):
        return file
    log.warning(
        "%s: its code is not used, and the model is compiled: the cache does not record that this machine "
        "wrote the file; `opendml compile` writes it here, and trusted=True says that you trust its writer",
        where,
    )
    return None


def is_recorded(digest: str) -> bool:
    """Return whether the cache folder records a compiled file by the digest of its code."""
    return _read_cached(digest, "file") is not None


def record_file(digest: str) -> None:
    """Record in the cache folder that this machine has made a compiled file."""
    write_object(digest, b"", "file")


def _digest(key: str, code: bytes) -> bytes:
    """Return the digest of a key and its code. With the key, no file can replace another one."""
    digest = digest_of(key.encode())
    digest.update(code)
    return digest.digest()


_known: tuple[str, Folder] | None = None
"""The path and the folder that were opened last. Opening it takes 60 microseconds, a tenth of what linking an
object takes."""


def _folder(*, make: bool) -> Folder:
    """Return the open folder of the cache, which nobody else can write to.

    Args:
        make: make it if there is none, for the user alone.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be opened or trusted.
    """
    global _known
    path = str(cache_directory())
    if _known is not None and _known[0] == path:
        folder = _known[1]
        if folder.is_there():
            _require_trust(path, folder.status())
            return folder
    folder = _opened(os.path.realpath(path), make=make)
    _known = path, folder
    return folder


def _opened(path: str, *, make: bool) -> Folder:
    """Open the folder at a path without links; see `_folder`."""
    if not hasattr(os, "geteuid"):
        # On Windows, access lists protect the user's profile; os.stat does not show them.
        if make:
            os.makedirs(path, exist_ok=True)
        return Folder(path)
    root, *parts = Path(path).parts
    folder = Folder(root)
    _require_trust(root, folder.status(), is_last=not parts)
    for number, part in enumerate(parts, 1):
        try:
            folder = Folder(part, folder)
        except FileNotFoundError:
            if not make:
                raise
            folder.make_folder(part, 0o700)
            folder = Folder(part, folder)
        _require_trust(folder.path, folder.status(), is_last=number == len(parts))
    return folder


def _require_trust(path: str, status: os.stat_result, *, is_last: bool = True) -> None:
    """Check that only the user and root can change a file, or a folder's entries.

    Args:
        path: of the file or the folder.
        status: its own.
        is_last: whether it is a file or the cache's own folder. In folders above, others may have entries of
            their own if the sticky bit keeps them from renaming the user's, as in /tmp.

    Raises:
        PermissionError: others can.
    """
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(
            errno.EACCES, f"belongs to user {status.st_uid}, who could put machine code there", path
        )
    if status.st_mode & 0o022 and (is_last or not status.st_mode & stat.S_ISVTX):
        problem = f"others may write to it (mode {stat.S_IMODE(status.st_mode):04o}); `chmod go-w` forbids it"
        raise PermissionError(errno.EACCES, problem, path)


def _remove_oldest(folder: Folder, most: int) -> None:
    """Remove files that were used longest ago, if all take more than `most` bytes, and those that were never
    finished. Other processes may do the same, or write and read at the same time."""
    now, files, total = time.time(), list[tuple[float, int, str]](), 0
    for name in folder.names():
        if not _FILE.fullmatch(name):
            continue
        with suppress(FileNotFoundError):
            status = folder.status(name)
            total += status.st_size
            if not name.endswith(".tmp"):
                files.append((status.st_mtime, status.st_size, name))
            elif now - status.st_mtime > _ABANDONED:
                files.append((0, status.st_size, name))
    wanted = most * _KEPT if total > most else most
    for used, size, name in sorted(files):
        if used and total <= wanted:
            break
        with suppress(FileNotFoundError):
            folder.remove(name)
        total -= size


_warned: set[str] = set()
"""The settings for which a warning was logged."""


def _warn(error: OSError | MemoryError) -> None:
    """Log why the cache is not used, and what helps: once for each setting."""
    setting = os.environ.get("OPENDML_CACHE_DIRECTORY", "")
    level = logging.DEBUG if setting in _warned else logging.WARNING
    _warned.add(setting)
    reason = "there is no memory for it"
    if isinstance(error, OSError):
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    log.log(
        level,
        "opendml compiles without its cache on disk: %s. OPENDML_CACHE_DIRECTORY may name another folder, "
        "which you own and others cannot write to; OPENDML_CACHE_BYTES=0 goes without one.",
        reason,
    )
