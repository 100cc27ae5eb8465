"""Find for which other sizes a choice computes the bits that their own choices compute."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from opendml.compiler.kernel import Kernel
from opendml.late_dataclass import dataclass
from opendml.program.sizes import hint_of
from opendml.targets.cpu.contraction.amx_tilings import fewest_in_amx
from opendml.targets.cpu.contraction.costs import lane_count
from opendml.targets.cpu.contraction.image import WindowAlong, windows_along
from opendml.targets.cpu.contraction.image_tilings import most_width
from opendml.targets.cpu.contraction.schedule import LAUNCHED, ProductQuery
from opendml.targets.cpu.contraction.tiles import MOST_ROWS, TileChoice, is_fixed
from opendml.targets.cpu.contraction.tiling import Instructions, Storage

_LONG_BLOCK = 96
"""Rows of a block from which on more rows do not pay: about half of those that fit the cache."""
_CLEARLY = 2.0
"""The factor by which rows have to take less time in tiles than without them, so that more threads or fewer
rows change nothing."""


@dataclass(frozen=True, slots=True)
class _Limit:
    """The least and the greatest product of some sizes of a kernel's domain."""

    dimensions: tuple[int, ...]
    least: int = 1
    most: int = sys.maxsize

    def covers(self, sizes: Sequence[int]) -> bool:
        return self.least <= math.prod([sizes[each] for each in self.dimensions]) <= self.most


@dataclass(frozen=True, slots=True)
class _Windows:
    """The windows that meet constant filters, which small images have along fewer dimensions.

    Args:
        loads: the numbers of the kernel's loads of the image.
        image: the dimensions of positions.
        summed: the dimensions of which those of elements are found.
        found: the windows along each dimension of the image.
    """

    loads: tuple[int, ...]
    image: tuple[int, ...]
    summed: tuple[int, ...]
    found: list[WindowAlong]

    def are_those_of(self, kernel: Kernel, sizes: Sequence[int]) -> bool:
        strides = [tuple(map(hint_of, kernel.loads[each].strides)) for each in self.loads]
        return windows_along(self.image, self.summed, sizes, strides) == self.found


@dataclass(frozen=True, slots=True)
class Reach:
    """The sizes for which a choice computes the same bits as their own choice does.

    Args:
        limits: those of sizes; (): all sizes have the same bits.
        windows: those that the sizes must have; None: any.
    """

    limits: tuple[_Limit, ...] = ()
    windows: _Windows | None = None

    def covers(self, kernel: Kernel, sizes: Sequence[int]) -> bool:
        """Return whether a kernel's hints, of which `sizes` are those of its domain, are among the sizes."""
        if not all(each.covers(sizes) for each in self.limits):
            return False
        return self.windows is None or self.windows.are_those_of(kernel, sizes)


def reach_of_filters(query: ProductQuery) -> Reach | None:
    """Return the reach of any choice for a query that adds in one way, whose filters are constant.

    None: their own sizes alone, since a part of products has no whole window.

    Up to MOST_ROWS pixels are never among them: these are rows that stream a constant.
    """
    filters = next(roles for roles in query.roles if is_fixed(roles.a))
    image = filters.columns[-2:]
    viewed = query.viewed(filters, False)
    if viewed is None:
        strides = [load.strides for load in filters.b.loads]
        found = windows_along(image, filters.depth, query.kernel.domain, strides)
    else:
        found = [viewed.rows, viewed.columns][-len(image) :]
    loads = tuple([query.kernel.loads.index(load) for load in filters.b.loads])
    windows = _Windows(loads, image, filters.depth, found)
    if viewed is not None and not viewed.depth:
        return None
    if viewed is not None:
        limits = _Limit(filters.columns, MOST_ROWS + 1), _Limit(image[-1:], most=most_width(viewed))
        return Reach(limits, windows)
    fewest = fewest_in_amx(filters)
    if filters.count(filters.columns) < fewest:
        return Reach((_Limit(filters.columns, MOST_ROWS + 1, fewest - 1),), windows)
    return Reach((_Limit(filters.columns, max(MOST_ROWS + 1, fewest)),), windows)


def reach_of_rows(query: ProductQuery, choice: TileChoice) -> Reach | None:
    """Return the reach of tiles in which many rows meet a constant; None: their own sizes alone."""
    roles = query.roles[choice.exchanged]
    is_usual = is_fixed(roles.b) and choice.b is Storage.AHEAD and choice.instructions is Instructions.FMA
    if not is_usual or not roles.rows:
        return None
    if any(each.family.instructions.are_amx for each in query.families):
        return None  # AMX may take less time for other numbers of rows.
    _, m, n, k = roles.sizes
    cycles = -(-m // choice.rows) * -(-n // choice.columns) * choice.item_cycles / m
    gain = query.any_reduction[1] / roles.count((*roles.outer, *roles.rows)) / _CLEARLY - cycles
    if n < lane_count() or gain <= 0:
        return None  # A reduction without tiles may take less time for other numbers of rows.
    least = max(MOST_ROWS + 1, math.ceil((LAUNCHED + k * n) / gain))
    block = sys.maxsize if choice.rows >= _LONG_BLOCK else choice.rows
    return Reach((_Limit(roles.rows, least, min(block, fewest_in_amx(roles) - 1)),))


def windows_of(query: ProductQuery, choice: TileChoice) -> tuple[WindowAlong, WindowAlong] | None:
    """Return the windows of an image that are an operand of tiles; None if there are none."""
    if Storage.WINDOWS not in (choice.a, choice.b):
        return None
    is_a, in_bf16 = choice.a is Storage.WINDOWS, choice.instructions is Instructions.AMX_BF16
    viewed = query.viewed(query.roles[choice.exchanged], is_a, in_bf16)
    assert viewed is not None
    return viewed.rows, viewed.columns
