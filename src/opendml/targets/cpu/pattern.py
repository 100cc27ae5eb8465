"""Patterns of kernels: all that decides the machine code, apart from sizes, strides and addresses, which are
parameters at run time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple, TypeVar

from opendml.late_dataclass import light_dataclass
from opendml.program.node import ordered
from opendml.targets.common.launch import NUMBER
from opendml.targets.common.pattern import AccessPattern, KernelPattern, Level

TILE = 512
"""Groups in a tile of columns, at most. Their states and statistics lie in the thread's scratch memory."""
WIDE_TILE = 2048
"""Groups in a tile of columns whose elements are read once, at most: wide tiles read longer runs."""
MATRIX_TILE = 4096
"""Groups in a tile of columns with many rows, at most: each row is read through more pages."""
LINE = 64
"""Bytes of a cache line."""


class CpuMode(Enum):
    """The way in which a kernel walks its domain. An item is one unit of work.

    Properties read `_value_`, because `value` is a descriptor, which takes ten times as long.
    """

    POINTWISE = "pointwise"
    """Element-wise; an item is a block of one row."""
    TRANSPOSED = "transposed"
    """Element-wise, with operands that are contiguous along another loop; an item is a block of both."""
    SHORT_ROWS = "short rows"
    """Element-wise, with results in short rows that follow each other; an item is a row."""
    SHARED_ROWS = "shared rows"
    """Element-wise, where neighbouring rows read the same; an item is a block of rows and columns."""
    ROWS = "rows"
    """Groups whose innermost dimension is reduced; an item is a batch of groups."""
    ROWS_PARTIAL = "rows partial"
    """One pass over one chunk of such a group, its state into the arena; an item is a chunk."""
    ROWS_COMBINE = "rows combine"
    """The state of such a group from those of its chunks, and after the last pass what is stored once for a
    group; an item is a group."""
    ROWS_MAP = "rows map"
    """The elements of one chunk of such a group from the state of the group."""
    COLUMNS = "columns"
    """Groups side by side in memory; an item is a tile of neighbouring groups."""
    COLUMNS_PARTIAL = "columns partial"
    """One pass over some rows of such a tile."""
    COLUMNS_COMBINE = "columns combine"
    """The states of such a tile from those of its rows, and after the last pass what is stored once for a
    group."""
    COLUMNS_MAP = "columns map"
    """The elements of some rows of such a tile from the states of its groups."""

    SCAN_ROWS = "scan rows"
    """Running sums or products along the innermost loop; an item is a batch of lines."""
    SCAN_ROWS_COMBINE = "scan rows combine"
    """From the totals of a line's chunks what comes before each; an item is a line."""
    SCAN_ROWS_MAP = "scan rows map"
    """The results of one chunk."""
    SCAN_COLUMNS = "scan columns"
    """Running results of lines side by side in memory; an item is a tile of neighbouring lines."""
    SCAN_COLUMNS_COMBINE = "scan columns combine"
    SCAN_COLUMNS_MAP = "scan columns map"

    SCATTER = "scatter"
    """Positions along the innermost loop to the places that elements say; an item is a batch of lines."""
    SCATTER_COLUMNS = "scatter columns"
    """A scatter to lines side by side in memory; an item is a tile of neighbouring lines."""
    SCATTER_TILES = "scatter columns in scratch memory"
    """A scatter to a tile of lines that lies in the scratch memory of the thread meanwhile."""
    SCATTER_STRIPS = "scatter columns in scratch memory, a vector at a time"
    """A scatter to a vector of lines that lies in the scratch memory of the thread meanwhile."""
    POSITIONS_CHUNKS = "positions of chunks"
    """The positions along the innermost loop of what holds, into the arena; an item is a chunk of a line."""
    POSITIONS = "positions"
    """The results for positions, which begin where those of the chunks before end."""
    TOP = "top"
    """The least elements along the innermost loop, in order; an item is a batch of lines."""
    TOP_CHUNKS = "top chunks"
    """Those of a chunk of a line, into the arena."""
    TOP_MERGE = "top merge"
    """The least elements of a line from those of its chunks; an item is a line."""

    CONTRACTION = "contraction"
    """Sums of products in tiles; an item is a block of rows and columns of the results."""
    CONTRACTION_PACK = "contraction pack"
    """Packs an operand of a contraction ahead; an item is a panel."""
    CONTRACTION_CHAIN = "contraction chain"
    """Products, a softmax of these, and products with its weights; an item is a block of rows."""

    @property
    def columns(self) -> bool:
        """True if lanes run over groups rather than within one."""
        return "columns" in self._value_

    @property
    def has_tiles(self) -> bool:
        """True if lanes run over groups that are reduced."""
        return self._value_.startswith("columns")

    @property
    def walks_groups(self) -> bool:
        """True if groups are reduced or scanned."""
        return self._value_.startswith(("rows", "columns", "scan"))


@light_dataclass(frozen=True, slots=True)
class CpuAccess(AccessPattern):
    """One load or store of a CPU kernel. A `streamed` store bypasses the caches."""

    level: Level
    streamed: bool


class WalkPattern:
    """The part of a pattern that only some modes have: one class for each way to walk a domain."""

    __slots__ = ()


class Reading(NamedTuple):
    """The elements that a load reads along a row. Loads of the same elements have equal readings.

    Attributes:
        number: counts distinct readings.
        line: counts readings that lie near each other under the same conditions.
        distance: bytes from the begin of the line.
    """

    number: int
    line: int
    distance: int


@light_dataclass(frozen=True, slots=True)
class SharedReadings:
    """The readings of neighbouring rows that are computed together.

    Attributes:
        readings: of each row, the reading of each load; None where no other row reads the same.
        alone: the reading of each load in rows that are left over; None: all rows are computed together.
        alike: for each access the first one that moves like it.
    """

    readings: tuple[tuple[Reading | None, ...], ...]
    alone: tuple[Reading | None, ...] | None
    alike: tuple[int, ...]


IMAGE_BYTES = 24 * 1024
"""Bytes of the part of an image that is copied for the rows of a block, at most: three quarters of a first
cache of 32 KiB."""


class ImagePlace(NamedTuple):
    """The element of an image that a load reads in the first row and column: that of a plane, in a row and a
    column of it."""

    plane: int
    row: int
    column: int


@light_dataclass(frozen=True, slots=True)
class CopiedImage:
    """An image with margins whose windows are rows of a kernel.

    It is copied to scratch, in planes of every `strides[0]`th row and every `strides[1]`th column. There
    windows read vectors that follow each other, and zeros outside the image. If its rows fit a vector, they
    are loaded whole instead, and vectors of windows are shuffled from them.

    Attributes:
        strides: the rows and the columns from one window to the next.
        planes: the first row and the first column of each plane.
        places: the place of each load in the first row and column; None if it does not read the image.
        bounds: the loads whose values are the numbers of rows and columns of the image.
        together: the number of rows of windows that are computed together.
        alike: for each access the first one that moves like it.
        fits_vectors: rows of the image and of windows fit a vector.
    """

    strides: tuple[int, int]
    planes: tuple[tuple[int, int], ...]
    places: tuple[ImagePlace | None, ...]
    bounds: tuple[int, int]
    together: int
    alike: tuple[int, ...]
    fits_vectors: bool = False

    def reach(self, plane: int | None = None) -> tuple[range, range]:
        """Return the rows and the columns that windows of the first row and column read in a plane; None: in
        any plane."""
        places = [each for each in self.places if each is not None and plane in (None, each.plane)]
        rows, columns = [each.row for each in places], [each.column for each in places]
        return range(min(rows), max(rows) + 1), range(min(columns), max(columns) + 1)

    def columns_of(self, rows: int, bytes: int) -> int:
        """Return the columns of a block of some rows of windows, at most, with elements of `bytes`."""
        down, along = map(len, self.reach())
        return IMAGE_BYTES // (len(self.planes) * (rows + down - 1) * bytes) - along + 1

    def rows_of(self, columns: int, bytes: int) -> int:
        """Return the rows of a block of some columns of windows, at most, with elements of `bytes`."""
        down, along = map(len, self.reach())
        return IMAGE_BYTES // (len(self.planes) * (columns + along - 1) * bytes) - down + 1


@light_dataclass(frozen=True, slots=True)
class ElementWalk(WalkPattern):
    """A walk over elements, row by row.

    Attributes:
        bundles: accesses that together have all elements along the innermost loop, in their order.
        row_steps: the length of a row, if it is a few full vectors that begin where the row does; else 0.
        streams: stores whose short rows follow each other in memory and are joined before they are written.
        shared_rows: what rows that are computed together read, if they share it.
    """

    bundles: tuple[tuple[int, ...], ...] = ()
    row_steps: int = 0
    streams: tuple[tuple[int, ...], ...] = ()
    shared_rows: SharedReadings | CopiedImage | None = None


@light_dataclass(frozen=True, slots=True)
class GroupWalk(WalkPattern):
    """A walk over groups that are reduced or scanned.

    Attributes:
        stage: the pass of a mode that makes only one.
        in_order: positions grow as a lane goes through its group.
        stashes: elements are kept between the last pass and the results; the last load counts where.
    """

    stage: int = 0
    in_order: bool = True
    stashes: bool = False


@light_dataclass(frozen=True, slots=True)
class RowWalk(GroupWalk):
    """A walk whose lanes run within a group. `long_rows` are worth several vectors of states."""

    long_rows: bool = False


class RowOrder(Enum):
    """The order in which a tile of columns visits its rows."""

    BATCHES = "batches"
    """Several rows at a visit."""
    WHOLE = "whole"
    """Row by row: the tile is as wide as the rows are."""
    MANY = "many"
    """Many rows at a visit, with sums of their own; the next ones are prefetched."""


@light_dataclass(frozen=True, slots=True)
class ColumnWalk(GroupWalk):
    """A walk whose lanes run over neighbouring groups.

    Attributes:
        tile: groups of a tile, at most.
        order: the order of rows.
        bounded: pairs of a row loop that may end early and the load that is the position along it.
    """

    tile: int = TILE
    order: RowOrder = RowOrder.BATCHES
    bounded: tuple[tuple[int, int], ...] = ()


W = TypeVar("W", bound=WalkPattern)


@light_dataclass(frozen=True, slots=True)
class CpuPattern(KernelPattern[CpuMode, CpuAccess]):
    """A pattern of CPU kernels.

    Attributes:
        groups: the number of loops over groups.
        rows: the number of loops over rows of a group.
        walk: what only kernels of such a mode have. For a contraction it is its tiling, and the pattern
            itself is that of the epilogue.
    """

    groups: int
    rows: int
    walk: WalkPattern

    def walk_as(self, kind: type[W]) -> W:
        """Return the walk, which has to be of this class."""
        if not isinstance(self.walk, kind):
            raise TypeError(f"{self.mode} does not walk as {kind.__name__}")
        return self.walk

    @property
    def bundles(self) -> tuple[tuple[int, ...], ...]:
        """The accesses that together have all elements along the innermost loop."""
        return self.walk.bundles if isinstance(self.walk, ElementWalk) else ()

    @property
    def row_steps(self) -> int:
        """The length of a row, if its vectors need no loop; else 0."""
        return self.walk.row_steps if isinstance(self.walk, ElementWalk) else 0

    @property
    def lane_bytes(self) -> int:
        """The bytes of a vector register that a lane takes.

        They are those of an element of 32 bits, or of the widest type if that is narrower. Wider elements
        take several registers.
        """
        if self.mode not in (CpuMode.POINTWISE, CpuMode.SHORT_ROWS, CpuMode.SHARED_ROWS):
            return 4
        types = {node.type for node in ordered(self.values)} | {access.type for access in self.accesses}
        return min(4, max(type.bytes for type in types))


class Header(NamedTuple):
    """The first of a kernel's parameters, in their order."""

    inner: int
    """Steps of the innermost loop."""
    block: int
    """Steps of the innermost loop in one block (a tile, for columns)."""
    blocks: int
    """Blocks in a row."""
    units: int
    """Units of a group: blocks of its rows, or rows of its tiles."""
    chunk: int
    """Units in a chunk, or groups in a batch."""
    chunks: int
    """Chunks of a group or tile."""
    elements: int
    """Elements of a group."""
    groups: int
    """Groups of the domain."""
    partial_buffer: int = 0
    """The buffer of the states of chunks and groups; the executable sets it."""
    partial_offset: int = 0
    """The offset of these states in bytes."""
    stashed_bytes: int = 0
    """Bytes of a group's elements, where these are kept."""


@lru_cache
def parameter_names(groups: int, rows: int, accesses: int, numbers: int) -> tuple[str, ...]:
    """Return the names of the parameters of a kernel in their order.

    First comes the `Header`, then the counts of the group and row loops. Each access (loads, then stores)
    has its buffer, offset, inner stride, group strides and row strides in bytes. The bits of numbers follow.
    """
    names = [*Header._fields]
    names += [f"group_count{loop}" for loop in range(groups)]
    names += [f"row_count{loop}" for loop in range(rows)]
    for access in range(accesses):
        names += [f"buffer{access}", f"offset{access}", f"step{access}"]
        names += [f"group{access}_{loop}" for loop in range(groups)]
        names += [f"row{access}_{loop}" for loop in range(rows)]
    return *names, *[f"{NUMBER}{index}" for index in range(numbers)]


@lru_cache(maxsize=1024)
def _positions_of(groups: int, rows: int, accesses: int, numbers: int) -> Mapping[str, int]:
    """Return the positions of parameters by their names. Few counts are different."""
    names = parameter_names(groups, rows, accesses, numbers)
    return {name: position for position, name in enumerate(names)}


class ParameterTable:
    """Positions in the parameters of a kernel, which are 64-bit integers."""

    PARTIAL_BUFFER = Header._fields.index("partial_buffer")
    PARTIAL_OFFSET = Header._fields.index("partial_offset")
    STASHED_BYTES = Header._fields.index("stashed_bytes")

    def __init__(self, pattern: CpuPattern) -> None:
        counts = pattern.groups, pattern.rows, len(pattern.accesses), pattern.numbers
        self._positions = _positions_of(*counts)
        self.length = len(self._positions)

    def group_count(self, group: int) -> int:
        return self._positions[f"group_count{group}"]

    def row_count(self, row: int) -> int:
        return self._positions[f"row_count{row}"]

    def buffer(self, access: int) -> int:
        return self._positions[f"buffer{access}"]

    def offset(self, access: int) -> int:
        return self._positions[f"offset{access}"]

    def inner_stride(self, access: int) -> int:
        return self._positions[f"step{access}"]

    def group_stride(self, access: int, group: int) -> int:
        return self._positions[f"group{access}_{group}"]

    def row_stride(self, access: int, row: int) -> int:
        return self._positions[f"row{access}_{row}"]

    def number(self, index: int) -> int:
        return self._positions[f"{NUMBER}{index}"]


def crossed_block(size: int) -> tuple[int, int]:
    """Return the most rows, and steps of the innermost loop, in a block of a transposed kernel.

    The widest operand has elements of `size` bytes.
    """
    return min(1024 // size, 512), 512 // size
