"""Buckets of sizes: the numbers from a power of two to the next, within which costs change little."""

from __future__ import annotations

from collections.abc import Iterable

Bucket = tuple[int, ...]
"""The numbers of bits of all dimensions of a trace."""


def bucket_of(sizes: Iterable[int]) -> Bucket:
    """Return the bucket of the sizes of all dimensions."""
    return tuple([size.bit_length() for size in sizes])


def range_of(size: int) -> tuple[int, int]:
    """Return the least and the greatest size of the bucket of a dimension."""
    return 1 << size.bit_length() - 1, (1 << size.bit_length()) - 1
