"""Buckets of sizes, within which the costs of kernels change little.

A bucket reaches from a power of two to the next. It reaches over two powers of two for a dimension that alone
is large.
"""

from __future__ import annotations

from collections.abc import Collection

Bucket = tuple[int, ...]
"""A bucket, as the greatest size of each dimension of a trace."""
WIDE = 64
"""The least size whose bucket reaches over two powers of two, if no other dimension has such a size.

Plans are made for sizes near the end of a bucket. From 64 on, BERT-base then takes 1.00 to 1.02 times as long
(Zen 4). A recognizer of text takes 0.97 to 1.05 times at widths from 100 on. Images have two large
dimensions. In such a bucket they would have up to 16 times as many elements, which lie in other caches."""


def ranges_of(sizes: Collection[int]) -> list[tuple[int, int]]:
    """Return the least and the greatest size of the bucket of each dimension."""
    are_wide = sum([size >= WIDE for size in sizes]) == 1
    ranges = []
    for size in sizes:
        bits = size.bit_length()
        is_wide = are_wide and size >= WIDE
        first = bits - (bits - WIDE.bit_length()) % 2 if is_wide else bits
        ranges.append((1 << first >> 1, (1 << first + is_wide) - 1))
    return ranges


def bucket_of(sizes: Collection[int]) -> Bucket:
    """Return the bucket of the sizes of all dimensions."""
    return tuple([greatest for _, greatest in ranges_of(sizes)])
