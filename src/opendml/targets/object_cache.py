"""Compiled objects on disk, shared between processes: read whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

_DIGEST_BYTES = 32


def cache_directory() -> Path:
    """Where compiled objects are kept: OPENDML_CACHE_DIRECTORY, or the user's cache directory."""
    chosen = os.environ.get("OPENDML_CACHE_DIRECTORY")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "opendml" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "opendml"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opendml"


def read_object(key: str) -> bytes | None:
    """The cached object, or None where there is none or it is damaged."""
    try:
        content = (cache_directory() / f"{key}.o").read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def write_object(key: str, code: bytes) -> None:
    """Stores an object so that other processes see all of it or nothing; a directory that cannot be written
    is no error."""
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=directory, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(name).replace(directory / f"{key}.o")
    except OSError:
        return
