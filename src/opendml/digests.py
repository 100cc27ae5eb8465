"""Digests of contents, which name them in caches and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b as _blake2b
else:
    try:
        # It is what `hashlib` returns. `hashlib` also loads OpenSSL: 4 MB and 3 ms.
        from _blake2 import blake2b as _blake2b
    except ImportError:  # pragma: no cover  # A Python without this module of its own.
        from hashlib import blake2b as _blake2b

DIGEST_BYTES = 32


def digest_of(content: bytes | bytearray | memoryview = b"") -> _blake2b:
    """Return the BLAKE2b digest of 256 bits of a content, which may be updated with more.

    It takes 1 ms for each MB. OpenSSL's SHA-256 takes 0.55 ms on processors with instructions for it.
    """
    return _blake2b(content, digest_size=DIGEST_BYTES)
