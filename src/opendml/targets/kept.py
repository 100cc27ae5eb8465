"""Memory made of a program's constants. It is filled once before all dispatches, which read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from opendml.compiler.memory import aligned
from opendml.compiler.recipe import Recipe
from opendml.late_dataclass import dataclass
from opendml.program.program import Layout
from opendml.targets.executable import Instance


@dataclass(frozen=True, slots=True)
class Kept:
    """Memory that an executable's dispatches read, made of constants alone.

    Programs of several sizes may keep the same: memory with an equal recipe, over equal constants, holds the
    same bytes.

    Args:
        size: its bytes.
        recipe: how it is made.
        step: the number of the step of the initialization that fills it.
        is_computed: whether it may hold indices that kernels do not check again.
        copied_from: the offset of a constant's lowest byte, if the memory is a copy of its bytes.
        reads_unaligned: whether the constants that the step reads may lie at any address. Otherwise each
            address is a multiple of its elements' size.
    """

    size: int
    recipe: Recipe
    step: int
    is_computed: bool = False
    copied_from: int | None = None
    reads_unaligned: bool = False


def kept_bytes(kept: Sequence[Kept]) -> int:
    """Return the bytes of one piece of memory that has all."""
    return sum(aligned(each.size) for each in kept)


def addresses_within(kept: Sequence[Kept], address: int) -> list[int]:
    """Return the addresses of all, one behind the other from an address on."""
    return list(accumulate((aligned(each.size) for each in kept[:-1]), initial=address)) if kept else []


@lru_cache(maxsize=256)
def _text_of_copy(layout: Layout) -> str:
    """Return the text of the recipe of a copy. A model has many constants of few layouts."""
    return f"copy of {layout}"


class KeptConstants:
    """The constants that dispatches read as they are: copies, each filled by a step of its own.

    Args:
        layouts: the layouts of these constants by their numbers.
        first_step: the step that fills the first of them.
    """

    def __init__(self, layouts: Mapping[int, Layout], first_step: int) -> None:
        self.layouts = layouts
        self._first_step = first_step
        self.starts = [(number, layout.span[0]) for number, layout in layouts.items()]
        """The numbers of the constants, and where they begin relative to their first elements."""
        self.kept = [
            Kept(
                layout.span[1] - layout.span[0],
                Recipe(_text_of_copy(layout), (number,)),
                step,
                copied_from=layout.span[0],
            )
            for step, (number, layout) in enumerate(self.layouts.items(), first_step)
        ]

    def bind(self, instance: Instance, addresses: Sequence[int]) -> None:
        """Bind the copies, which begin at these addresses."""
        for (number, start), address in zip(self.starts, addresses, strict=True):
            instance.bind(number, address - start)
