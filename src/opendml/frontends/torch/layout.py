"""Layouts of tensors in memory, by sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence


def written_order(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the dimensions from the greatest stride to the smallest."""
    return sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis))


def is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether elements lie side by side, each in its own place."""
    expected = 1
    for axis in reversed(written_order(sizes, strides)):
        if sizes[axis] > 1:
            if strides[axis] != expected:
                return False
            expected *= sizes[axis]
    return True


def overlaps(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether a dimension repeats the same memory, as that of an expanded tensor does."""
    # PyTorch's symbolic strides are not 0; to ask would add guards to its graph.
    steps = zip(sizes, strides, strict=True)
    return any(isinstance(stride, int) and stride == 0 and size > 1 for size, stride in steps)
