"""Divisions of results into tiles in registers and blocks, and where their operands are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opendml.compiler.kernel import Kernel
from opendml.late_dataclass import light_dataclass
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.costs import lane_count, turns_results
from opendml.targets.cpu.contraction.image import ViewedImage
from opendml.targets.cpu.contraction.narrow import PART
from opendml.targets.cpu.contraction.roles import Roles, moves
from opendml.targets.cpu.contraction.tiling import DEPTH, Instructions, MicroKernel, Storage
from opendml.targets.cpu.launch import CLAIM_CYCLES
from opendml.targets.cpu.machine import machine

PARTS_TOGETHER = 8
"""Parts whose sums are added up before they are added to those of others. So rounding errors grow with k /
2048."""
MOST_ROWS = 8
"""The most rows that are few. They read a large constant once, from its panels."""
ROWS_TOGETHER = 32
"""Products of a part if B is read in place, or by few rows: the rows are read side by side, a tile of
each."""
VECTORS_TOGETHER = 128
"""Vectors of a part of DOTS, whose lanes are added up then."""
PRODUCTS_IN_REGISTERS = 128
"""Products (or groups) of a part for AMX: parts of a micro-panel and of a panel stay in the first cache."""
ITEMS = 8
"""Items that a job should have, at least, so that threads finish together."""
_COLUMNS_IN_PLACE = 4096
"""The most columns of a block whose B is read in place."""
COLUMNS_OF_DOTS = 1024
"""The most columns of a block of DOTS."""
MOST_AMX_RESULTS = 512, 512
"""The most rows and columns of a block for AMX."""

_ALONE_CYCLES = 10_000
"""Cycles of a launch up to which the caller does it alone: sharing saves less than it costs to wait for a
thread that is late."""


@light_dataclass(frozen=True, slots=True)
class TileChoice:
    """The choice of tiles in plain numbers. With the sizes of a kernel it determines the launches."""

    exchanged: bool
    """True if B is the first operand."""
    instructions: Instructions
    micro: MicroKernel
    rows: int
    """The rows of a block; if A is windows of an image, the rows of windows."""
    columns: int
    """The columns of a block; if B is windows of an image, the rows of windows."""
    a: Storage
    b: Storage
    grain: int
    """The items that a thread takes at a time."""
    item_cycles: int
    """The estimated cycles of one block."""
    span: int = 0
    """The columns of scratch memory for sums of windows that are B."""
    turns: bool = False
    """True if results are turned, since they lie contiguous along the rows."""


@light_dataclass(frozen=True, slots=True)
class Tiles:
    """A priced division of results into tiles in registers, and blocks of `rows` x `columns`."""

    roles: Roles
    instructions: Instructions
    micro: MicroKernel
    rows: int
    columns: int
    item_cycles: float
    """The estimated cycles of one block."""
    a: Storage = Storage.PACKED
    b: Storage = Storage.PACKED
    packing_work: float = 0.0
    """The estimated cycles of all threads in a launch that packs one of the operands."""
    viewed: ViewedImage | None = None
    """The windows of which the operand consists whose storage is WINDOWS."""

    @property
    def depth(self) -> int:
        """The products (or groups) of a part."""
        if self.viewed:
            return self.viewed.depth
        if self.instructions.are_amx:
            return PRODUCTS_IN_REGISTERS
        if self.instructions is Instructions.DOTS:
            return VECTORS_TOGETHER * lane_count()
        if self.instructions is Instructions.DIGITS:
            return PART
        if self.b is Storage.NARROW_STREAMED and self.roles.narrow:
            return min(ROWS_TOGETHER, self.roles.narrow[0].block)
        return ROWS_TOGETHER if self.reads_b_once else DEPTH

    @property
    def continues(self) -> bool:
        """True if parts are read one after the other, but their products are added as those of one part of
        DEPTH. So more than few rows have the same bits if B is packed and if it is read in place."""
        is_in_place = self.b is Storage.IN_PLACE and self.instructions is Instructions.FMA
        return is_in_place and self.micro.rows > MOST_ROWS

    @property
    def products_of_a_sum(self) -> int:
        """The products (or groups) that are added to one sum, before this is added to others."""
        return DEPTH if self.continues else self.depth

    @property
    def reads_b_once(self) -> bool:
        """True if tiles have all rows, and read B a few rows at a time."""
        return self.b in (Storage.IN_PLACE, Storage.STREAMED, Storage.NARROW_STREAMED)

    @property
    def packed_depth(self) -> int:
        """The products (or groups) of a part that is packed ahead."""
        if self.b.is_narrow:
            return PART
        return DEPTH if self.b in (Storage.STREAMED, Storage.PANELS) else self.depth

    @property
    def parts_together(self) -> int:
        """The parts whose sums are added up before they are added to those of others."""
        if self.continues:
            return DEPTH // ROWS_TOGETHER
        products = self.depth if self.b is Storage.NARROW_STREAMED else ROWS_TOGETHER
        return DEPTH * PARTS_TOGETHER // products if self.reads_b_once else PARTS_TOGETHER

    @property
    def packed_ahead(self) -> Kernel | None:
        """The operand that a launch of its own packs."""
        return self.roles.a if self.a.is_ahead else self.roles.b if self.b.has_launch else None

    @property
    def items(self) -> int:
        """The number of blocks."""
        outer, m, n, _ = self.roles.sizes
        return outer * -(-m // self.rows) * -(-n // self.columns)

    @property
    def choice(self) -> TileChoice:
        """The choice of these tiles."""
        grain, cycles = self.items, self.items * self.item_cycles
        if cycles > _ALONE_CYCLES:
            grain = max(1, min(grain // (4 * ITEMS), int(CLAIM_CYCLES // self.item_cycles)))
        rows, columns = self.rows, self.columns
        if self.viewed and self.viewed.broadcast:
            rows //= self.viewed.width
        elif self.viewed:
            columns //= self.viewed.width
        return TileChoice(
            self.roles.exchanged,
            self.instructions,
            self.micro,
            rows,
            columns,
            self.a,
            self.b,
            grain,
            round(self.item_cycles),
            self.span,
            self.turns,
        )

    @property
    def turns(self) -> bool:
        """True if results are turned, since they lie contiguous along the rows."""
        is_in_vectors = self.instructions is Instructions.FMA and not self.reads_b_once
        return is_in_vectors and self.b is not Storage.WINDOWS and turns_results(self.roles)

    @property
    def span(self) -> int:
        """The columns of scratch memory for sums of windows that are B, or 0. Between two rows of windows lie
        some that are none."""
        if self.viewed is None or self.viewed.broadcast:
            return 0
        return image_columns(self.viewed.span(self.columns // self.viewed.width), self.width)

    @property
    def width(self) -> int:
        """The columns of a tile."""
        return self.micro.vectors * (1 if self.instructions is Instructions.DOTS else lane_count())

    def most_results(self, span: int) -> tuple[int, int]:
        """Return the most rows and columns of a block of this kind, in whole tiles. Scratch memory has room
        for them, so that few sizes need code of their own.

        Args:
            span: the columns of scratch memory for sums of windows that are B.
        """
        rows, columns = block_in_cache()
        if self.instructions is Instructions.DOTS:
            return self.micro.rows, COLUMNS_OF_DOTS
        if self.b is Storage.WINDOWS:
            rows, columns = rows_in_cache(span), span
        elif self.instructions.are_amx:
            rows, columns = MOST_AMX_RESULTS
        elif self.reads_b_once:
            rows = self.micro.rows
            columns = columns_in_place(rows) if self.b is Storage.IN_PLACE else self.columns
        return in_tiles((rows, columns), self.micro.rows, self.width)


Worth = Callable[[float, int, int], bool]
"""Returns whether blocks may be the best, by the cycles of each, and its rows and columns. No `Tiles` are
made of others. The cycles are exact: with more work more threads join, so a bound of them would bound
nothing."""
BlockWay = tuple[float, Storage, Storage, float]
"""The cycles of a block, where A and B are stored, and the cycles of all threads to pack one of them ahead.
It is a plain tuple, because a search makes thousands."""
Division = tuple[int, int, float, Storage, Storage, float]
"""The rows and columns of blocks, and a `BlockWay`."""


@light_dataclass(frozen=True, slots=True)
class Family:
    """The divisions into blocks of one kind of tiles."""

    roles: Roles
    instructions: Instructions
    micro: MicroKernel
    least: float
    """The cycles of all threads that any division takes: those of the products in whole tiles."""
    blocks: Iterable[tuple[int, int]]
    """The rows and columns of blocks."""
    ways: Callable[[int, int], Iterable[BlockWay]]
    """Returns the ways to store the operands of blocks of this size, with their costs."""
    viewed: ViewedImage | None = None
    packs_tiles: bool = False
    """True if items pack B tile by tile."""

    @property
    def broadcasts(self) -> bool:
        """True if A is windows of an image."""
        return self.viewed is not None and self.viewed.broadcast

    def divisions(self) -> list[Division]:
        """Return all divisions."""
        return [(*block, *way) for block in self.blocks for way in self.ways(*block)]

    def tiles(self, division: Division) -> Tiles:
        """Return the tiles of a division."""
        return Tiles(self.roles, self.instructions, self.micro, *division, self.viewed)


def steps_of(part: Kernel) -> int:
    """Return the steps of a recurrence in which an operand is the same."""
    return min((load.steps for load in part.loads if load.buffer is not None), default=1)


def is_fixed(part: Kernel) -> bool:
    """Return whether an operand is the same in every run."""
    fixed = [load.fixed for load in part.loads if load.buffer is not None]
    return bool(fixed) and all(fixed)


def groups_of(roles: Roles, part: Kernel) -> int:
    """Return the number of matrices that an operand has."""
    return roles.count(number for number in roles.outer if moves(part, number))


def block_in_cache() -> tuple[int, int]:
    """Return the most rows and columns of a block: its results take a quarter of a core's own cache at most,
    and its part of B less."""
    columns = 256 if machine().l2_bytes >= 1024 * 1024 else 128
    return rows_in_cache(columns), columns


def columns_in_place(rows: int) -> int:
    """Return the most columns of a block of some rows whose B is read in place. Its results take a quarter of
    a core's own cache at most, too."""
    return min(_COLUMNS_IN_PLACE, rows_in_cache(rows))


def image_columns(span: int, width: int) -> int:
    """Return the columns of scratch memory for `span` sums beside each other, one of few sizes: each is code
    of its own."""
    size = 128
    while size < span:
        size *= 2
    return -(-size // width) * width


def rows_in_cache(columns: int) -> int:
    """Return the rows of these columns whose results take a quarter of a core's own cache, at least one."""
    return max(1, machine().l2_bytes // 4 // (columns * F32.bytes))


def in_tiles(results: tuple[int, int], rows: int, columns: int) -> tuple[int, int]:
    """Return rows and columns rounded up to whole tiles."""
    return -(-results[0] // rows) * rows, -(-results[1] // columns) * columns
