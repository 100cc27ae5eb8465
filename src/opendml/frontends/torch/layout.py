"""Layouts of tensors in memory, by sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


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


def with_strides(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor with these strides, and with its elements in memory."""
    lying = zip(tensor.shape, tensor.stride(), strides, strict=True)
    # The memory of a lazy tensor has the negatives of its elements, or there is none for its zeros.
    is_lazy = tensor.is_neg() or tensor._is_zerotensor()
    if not is_lazy and all(size == 1 or own == stride for size, own, stride in lying):
        return tensor
    copy = tensor.new_empty_strided(tensor.shape, strides)
    first = tuple(slice(None if stride else 1) for stride in strides)  # what is repeated is written once
    copy[first].copy_(tensor[first])
    return copy
