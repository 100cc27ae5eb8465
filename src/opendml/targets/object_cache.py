"""Compiled objects on disk, shared between processes: read whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from opendml.logs import log

_DIGEST_BYTES = 32
_SHARED_SOURCES = ("program", "compiler", "targets/common")


@cache
def compiler_digest(target: str) -> str:
    """A digest of all sources of opendml that code of a target depends on: programs, the compiler, what
    targets share, and the target's own."""
    package = Path(__file__).parents[1]
    folders = [*(package / name for name in _SHARED_SOURCES), package / "targets" / target]
    sources = sorted(
        path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".cuh")
    )
    content = hashlib.sha256()
    for path in sources:
        content.update(f"{path.relative_to(package).as_posix()}\0".encode())
        content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def cache_directory() -> Path | None:
    """Where compiled objects are kept: OPENDML_CACHE_DIRECTORY, or the user's cache directory; None where the
    user has no home: folders that all users may write to are no place for machine code."""
    chosen = os.environ.get("OPENDML_CACHE_DIRECTORY")
    if chosen:
        return Path(chosen)
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return Path(local or Path.home() / "AppData" / "Local") / "opendml" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "opendml"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opendml"
    except RuntimeError:
        return None


def read_object(key: str) -> bytes | None:
    """The cached object, or None where there is none or it is damaged."""
    directory = cache_directory()
    if directory is None:
        return None
    path = directory / f"{key}.o"
    try:
        content = path.read_bytes()
    except OSError:
        log.debug("not in the cache: %s", path)
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    whole = hashlib.sha256(code).digest() == digest
    log.debug("from the cache: %s" if whole else "damaged in the cache: %s", path)
    return code if whole else None


def write_object(key: str, code: bytes) -> None:
    """Stores an object so that other processes see all of it or nothing; a directory that cannot be written
    is no error, and nothing is left there."""
    directory = cache_directory()
    if directory is None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=directory, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(name).replace(directory / f"{key}.o")
    except BaseException as error:
        with suppress(OSError):
            Path(name).unlink()
        if not isinstance(error, OSError):
            raise
