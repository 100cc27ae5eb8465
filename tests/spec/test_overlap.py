"""`overlaps` against counting the addresses."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendml.spec.overlap import overlaps


def counted(sizes: list[int], strides: list[int]) -> bool:
    """The same by enumeration."""
    offsets = np.zeros(1, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride).ravel()
    return np.unique(offsets).size < offsets.size


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ([], [], False),
        ([1, 1], [0, 0], False),
        ([2, 3, 4], [12, 4, 1], False),
        ([2, 3, 4], [1, 2, 6], False),
        ([2, 3, 4], [100, 20, 3], False),
        ([1, 3], [0, 1], False),
        ([2, 3], [0, 1], True),
        ([2, 3], [3, 2], False),
        ([3, 3], [3, 2], False),
        ([3, 4], [3, 2], True),
        ([2, 2], [5, 5], True),
        ([2, 2, 2], [1, 1000000007, 1000000008], True),
        ([2, 2, 2], [1, 1000000007, 1000000009], False),
        ([2**31, 2], [2, 1], False),
        ([2**31, 2], [2, 2], True),
        ([3, 2**30], [2**30 + 1, 1], False),
        ([3, 2**30], [2**30 - 1, 1], True),
    ],
)
def test_decides_known_layouts(sizes: list[int], strides: list[int], expected: bool) -> None:
    assert overlaps(sizes, strides) is expected


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 60)), max_size=5))
@settings(max_examples=400, deadline=None)
def test_equals_enumeration(dimensions: list[tuple[int, int]]) -> None:
    sizes, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    assert overlaps(sizes, strides) == counted(sizes, strides)


@given(st.lists(st.tuples(st.integers(2, 4), st.integers(40, 900)), min_size=3, max_size=4))
@settings(max_examples=400, deadline=None)
def test_equals_enumeration_for_sparse_strides(dimensions: list[tuple[int, int]]) -> None:
    sizes, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    assert overlaps(sizes, strides) == counted(sizes, strides)


@pytest.mark.parametrize("rank", [3, 4, 5, 6, 7, 8])
def test_is_quick_for_irregular_strides(rank: int) -> None:
    """Sizes as large as 2^24 elements allow, with strides that share nothing: no enumeration of elements."""
    size = int(2 ** (24 / rank))
    sizes = [size] * rank
    strides = [(2**32 - 1) // (size * rank) - 7919 * i * i - i for i in range(rank)]
    start = time.perf_counter()
    overlaps(sizes, strides)
    assert time.perf_counter() - start < 5
