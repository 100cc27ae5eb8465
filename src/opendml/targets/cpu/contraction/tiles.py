"""Divisions of results into tiles in registers and blocks, and what of an operand is packed ahead of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from opendml.compiler.kernel import Kernel
from opendml.targets.cpu.contraction.costs import lane_count
from opendml.targets.cpu.contraction.image import Seen
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import MicroKernel
from opendml.targets.cpu.contraction.roles import Roles, moves
from opendml.targets.cpu.machine import machine

DEPTH = 256
"""Products, or words of several, that are added up before they are added to the result: a panel of a and a
tile of b stay in the first cache."""
PARTS_TOGETHER = 8
"""Parts of so many products whose sums are added up before they are added to those of others, where there are
more: so rounding errors grow with the eighth part of k / 256."""
ROWS_TOGETHER = 32
"""The same where b is read in place: so many rows are read side by side, a tile of each."""
VECTORS_TOGETHER = 128
"""The same of vectors along k, whose lanes then are put together."""
PRODUCTS_IN_REGISTERS = 128
"""The same where matrix registers multiply them: a part of a panel and one of a strip, of numbers in pieces
or of words, stay in the first cache."""
ITEMS = 8
"""Items that a job should have, at least, so that threads finish together."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A division of results into tiles in registers, and blocks of so many rows and columns."""

    roles: Roles
    micro: MicroKernel
    rows: int
    columns: int
    item_cycles: float
    """Estimated, for one block."""
    ahead: bool = False
    """Whether the operand whose elements are broadcast is packed by a launch of its own, not by each item."""
    packing_work: float = 0.0
    """Estimated cycles of all threads in a launch that packs one of the operands."""
    b_ahead: bool = False
    """Whether the other operand is: a constant, the same in all steps of a recurrence, or what several images
    meet."""
    seen: Seen | None = None
    """The windows of which one operand consists, if they are packed as an image."""
    in_place: bool = False
    """Whether whole panels of the operand whose elements are broadcast are read where they lie."""
    apart: bool = False
    """Whether the rows of these do not follow each other, or have several parts."""
    b_in_place: bool = False
    """Whether whole tiles of the other operand are."""
    in_strips: bool = False
    """Whether such tiles are read from strips instead, packed ahead as for many rows."""
    dots: bool = False
    """Whether vectors lie along k, of b where it lies."""
    in_registers: bool = False
    """Whether they are multiplied in matrix registers: FLOAT32 in pieces, integers in words."""

    @property
    def in_pieces(self) -> bool:
        """Whether operands are packed in pieces."""
        return self.in_registers and self.roles.types[0] is F32

    @property
    def depth(self) -> int:
        """Products, or words of several, that are added up before they are added to the result."""
        if self.seen:
            return self.seen.depth(DEPTH)
        if self.in_registers:
            return PRODUCTS_IN_REGISTERS
        if self.dots:
            return VECTORS_TOGETHER * lane_count()
        return ROWS_TOGETHER if self.has_few_rows else DEPTH

    @property
    def has_few_rows(self) -> bool:
        """Whether sums are those of few rows, which read the other operand once."""
        return self.b_in_place or self.in_strips

    @property
    def packed_depth(self) -> int:
        """Products, or words of several, in each part of what is packed ahead."""
        return DEPTH if self.in_strips else self.depth

    @property
    def parts_together(self) -> int:
        """Parts of so many products whose sums are added up before they are added to those of others."""
        return DEPTH * PARTS_TOGETHER // ROWS_TOGETHER if self.has_few_rows else PARTS_TOGETHER


Worth = Callable[[float, int, int], bool]
"""Whether blocks may be the best, by the cycles of each, and its rows and columns. No `Tiles` are made of
others. The cycles are exact: with more work more threads join, so a bound of them would bound nothing."""


@dataclass(frozen=True, slots=True)
class Family:
    """The divisions into blocks of one kind of tiles."""

    roles: Roles
    least: float
    """Cycles of all threads that any of them takes: those of the products in whole tiles."""
    divisions: Callable[[Worth], Iterator[Tiles]]
    """Those that are worth it."""
    packs_tiles: bool = False
    """Whether items pack b, as it is, in the parts that tiles have of it."""
    broadcasts: bool = False
    """Whether the windows of an image are broadcast."""


def packed_ahead(tiles: Tiles) -> Kernel | None:
    """The operand that a launch of its own packs."""
    return tiles.roles.a if tiles.ahead else tiles.roles.b if tiles.b_ahead else None


def steps_of(part: Kernel) -> int:
    """In how many steps of a recurrence an operand is the same."""
    return min((load.steps for load in part.loads if load.buffer is not None), default=1)


def is_fixed(part: Kernel) -> bool:
    """Whether an operand is the same in every run."""
    fixed = [load.fixed for load in part.loads if load.buffer is not None]
    return bool(fixed) and all(fixed)


def groups_of(roles: Roles, part: Kernel) -> int:
    """How many groups of panels or strips an operand has."""
    return roles.count(number for number in roles.outer if moves(part, number))


def most_results() -> tuple[int, int]:
    """The most rows and columns of a block: its results take a quarter of a core's own cache at most, and its
    part of b less."""
    columns = 256 if machine().l2_bytes >= 1024 * 1024 else 128
    return machine().l2_bytes // 4 // (columns * F32.bytes), columns


def most_results_apart() -> tuple[int, int]:
    """The same where rows of the operand whose elements are broadcast are read where they lie, apart: more
    columns, for each time it comes from further away."""
    rows, columns = most_results()
    return rows, columns * 3 // 2


def in_tiles(results: tuple[int, int], micro: MicroKernel, lanes: int) -> tuple[int, int]:
    """Rows and columns rounded up to whole tiles."""
    width = micro.vectors * lanes
    return -(-results[0] // micro.rows) * micro.rows, -(-results[1] // width) * width
