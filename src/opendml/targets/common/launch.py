"""The loops of a kernel as schedules see them, and the queries and launch words that targets share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, TypeVar

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest
from opendml.late_dataclass import dataclass
from opendml.targets.common.lines import placing_in
from opendml.targets.common.passes import pass_count

NUMBER = "number"
"""The first part of the names of words that are the numbers of a kernel."""


@dataclass(frozen=True)
class KernelNest(LoopNest):
    """The loops of a kernel, with the numbers by which its schedule is chosen."""

    kernel: Kernel

    @property
    def all_accesses(self) -> tuple[Access, ...]:
        """The loads, then the stores of the kernel."""
        return (*self.kernel.loads, *self.kernel.stores)

    @cached_property
    def group_count(self) -> int:
        """Steps of all group loops together."""
        return math.prod(loop.count for loop in self.groups)

    @cached_property
    def row_count(self) -> int:
        """Steps of all row loops together."""
        return math.prod(loop.count for loop in self.rows)

    @cached_property
    def has_elements(self) -> bool:
        """True if elements are stored, and not only results of groups."""
        return any(store.strides[axis] for store in self.kernel.stores for axis in self.kernel.axes)

    @property
    def passes(self) -> int:
        """Passes over a group that its reductions need."""
        return pass_count(self.kernel.values)

    @property
    def readings(self) -> int:
        """The number of times that the elements of a group are read: in each pass, and for their results."""
        return self.passes + self.has_elements

    @property
    def reads_once(self) -> bool:
        """True if a group need not stay in a cache, as nothing is read twice."""
        return self.readings == 1

    @property
    def lies_across(self) -> bool:
        """True if more bytes are contiguous from group to group than along the innermost loop."""

        def contiguous(loop: Loop) -> int:
            loads = zip(loop.strides, self.kernel.loads, strict=False)
            return sum(
                load.type.bytes
                for stride, load in loads
                if load.buffer is not None and stride == load.type.bytes
            )

        return bool(self.groups) and contiguous(self.groups[-1]) > contiguous(self.inner)

    @property
    def placed_count(self) -> int:
        """The places of a line, of a kernel that places along lines."""
        return placing_in(self.kernel.values).count

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of an element of the widest operand."""
        return max(access.type.bytes for access in self.all_accesses if access.buffer is not None)

    @cached_property
    def step_bytes(self) -> int:
        """Bytes of a step of the innermost loop: an element of each operand that moves along it."""
        moving = zip(self.all_accesses, self.inner.strides, strict=True)
        return max(1, sum(a.type.bytes for a, stride in moving if stride and a.buffer is not None))

    @property
    def group_bytes(self) -> int:
        """Bytes of the widest operand of a group; where groups lie side by side, of all of them."""
        return self.row_count * self.inner.count * self.element_bytes


def nest_of(kernel: Kernel, loops: LoopNest) -> KernelNest:
    """Return the loops of a kernel."""
    return KernelNest(loops.groups, loops.rows, loops.inner, loops.inner_reduced, kernel)


Nest = TypeVar("Nest", bound=KernelNest)
Machine = TypeVar("Machine")


@dataclass(frozen=True)
class Query(Generic[Nest, Machine]):
    """A kernel that is to be scheduled, and the machine that runs it."""

    nest: Nest
    machine: Machine

    @property
    def kernel(self) -> Kernel:
        """The kernel of the loops."""
        return self.nest.kernel


def loop_words(kernel: Kernel, groups: Sequence[Loop], rows: Sequence[Loop]) -> dict[str, int]:
    """Return the words of outer loops and of numbers by name.

    They are the counts of loops, the bytes that a step of each moves each access, and the numbers.
    """
    words = {f"{NUMBER}{index}": word for index, word in enumerate(kernel.numbers)}
    for kind, loops in (("group", groups), ("row", rows)):
        for position, loop in enumerate(loops):
            words[f"{kind}_count{position}"] = loop.count
            words |= {f"{kind}{number}_{position}": stride for number, stride in enumerate(loop.strides)}
    return words


def inner_words(inner: Loop) -> dict[str, int]:
    """Return the bytes that a step of the innermost loop moves each access, by name."""
    return {f"step{number}": stride for number, stride in enumerate(inner.strides)}


def needs_64_bits(loops: Sequence[Loop], *units: int) -> bool:
    """Return whether an index or an offset may need more than 31 bits; `units` has the greatest indices."""
    distances = [[(loop.count - 1) * abs(stride) for stride in loop.strides] for loop in loops]
    reaches = map(sum, zip(*distances, strict=True))
    # A grid may reach a little past the last unit.
    return any(reach >= 2**31 - 2**22 for reach in (*units, *reaches))


def power_of_two(count: int) -> int:
    """Return the least power of two that is not below `count`."""
    return 1 << (count - 1).bit_length()


def power_of_two_within(count: int) -> int:
    """Return the greatest power of two that is not above `count`, or 1."""
    return 1 << max(1, count).bit_length() - 1
