"""A whole tensor program: nodes between tensors that lie somewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import hint_of, index_range, is_unit

if TYPE_CHECKING:
    from opendml.program.node import Node


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of a tensor's elements: the one at index i is i . strides bytes after the first."""

    type: ScalarType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def span(self) -> tuple[int, int]:
        """The first byte that the tensor touches and the one after the last, relative to its first
        element."""
        before, after = index_range(self.sizes, self.strides)
        return before, after + self.type.bytes

    @property
    def element_count(self) -> int:
        """The product of the sizes."""
        return math.prod(self.sizes)

    def reshaped(self, sizes: Sequence[int]) -> Layout | None:
        """Return the same elements in row-major order as a tensor of other sizes; None if they lie such that
        it has no strides."""
        old = [
            (size, stride) for size, stride in zip(self.sizes, self.strides, strict=True) if not is_unit(size)
        ]
        strides = [0] * len(sizes)
        position = len(sizes) - 1
        while old:
            size, stride = old.pop()
            step, left = stride, size
            while not is_unit(left):
                while position >= 0 and is_unit(sizes[position]):
                    position -= 1
                wanted = sizes[position]
                strides[position] = step
                while hint_of(left % wanted) or left % wanted:
                    # The next outer dimension must go on where this one ends.
                    if not old or left * step != old[-1][1]:
                        return None
                    left *= old.pop()[0]
                left //= wanted
                step *= wanted
                position -= 1
        return Layout(self.type, tuple(sizes), tuple(strides))


def packed(type: ScalarType, sizes: Sequence[int]) -> Layout:
    """Return the dense layout, last dimension innermost."""
    strides = []
    step = type.bytes
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return Layout(type, tuple(sizes), tuple(reversed(strides)))


@dataclass(frozen=True, slots=True)
class Program:
    """`results[k]`, over SOURCE nodes that stand for the tensors `inputs`, is to be written to the tensor
    `outputs[k]`. The inputs with the numbers `constants` are the same in every run.

    The pairs `in_place` have the numbers of an output and of an input that begin at the same address, with
    the same strides. The output is the input joined with more.
    """

    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    results: tuple[Node, ...]
    constants: frozenset[int] = frozenset()
    in_place: frozenset[tuple[int, int]] = frozenset()
