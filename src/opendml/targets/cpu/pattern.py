"""Patterns of kernels: all that decides the machine code, apart from sizes, strides and addresses, which are
parameters at run time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from opendml.compiler.kernel import fingerprint
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step

TILE = 512
"""Groups in a tile of columns, at most; their states and statistics live in the thread's room."""
WIDE_TILE = 2048
"""Groups in a tile of columns whose elements are read once, at most: the wider the better for the memory."""

MATRIX_TILE = 4096
"""The same where a vector is multiplied by a matrix of many rows: each is read through more pages."""


LINE = 64
"""Bytes of a cache line."""

REGISTERS, REGISTER_ROWS, REGISTER_BYTES = 8, 16, 1024
"""Matrix registers, their rows of a line each, and their bytes."""
PIECES, STEP = 3, 32
"""The pieces of bfloat16 of a FLOAT32, and the products of one instruction."""


class CpuMode(Enum):
    """How a kernel walks its domain; `item` says what one unit of work is."""

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
    """The same for lines side by side in memory; an item is a tile of neighbouring lines."""
    SCATTER_TILES = "scatter columns in a room"
    """Likewise, where a tile of the results lies in the thread's room meanwhile."""
    SCATTER_STRIPS = "scatter columns in a room, a vector at a time"
    """Likewise, where the results of a vector of lines do."""
    POSITIONS_CHUNKS = "positions of chunks"
    """The positions along the innermost loop of what holds, into the arena; an item is a chunk of a line."""
    POSITIONS = "positions"
    """What is made of them, from where those of the chunks before end."""
    TOP = "top"
    """The least elements along the innermost loop, in order; an item is a batch of lines."""
    TOP_CHUNKS = "top chunks"
    """Those of a chunk of a line, into the arena."""
    TOP_MERGE = "top merge"
    """The least elements of a line from those of its chunks; an item is a line."""

    CONTRACTION = "contraction"
    """Sums of products in tiles; an item is a block of rows and columns of the results."""
    CONTRACTION_DOTS = "contraction of rows"
    CONTRACTION_MATRICES = "contraction in matrix registers"
    CONTRACTION_IMAGE = "contraction of windows"
    """Likewise, of windows of an image; a block's columns are whole rows of windows."""
    CONTRACTION_MATRICES_IMAGE = "contraction of windows in matrix registers"
    CONTRACTION_BROADCAST_IMAGE = "contraction of broadcast windows"
    """Likewise, where windows are the rows of a block."""
    CONTRACTION_PANELS = "contraction panels"
    """Packs an operand of them ahead; an item is a panel of its rows."""
    CONTRACTION_STRIPS = "contraction strips"
    """Packs the other operand ahead; an item is a strip of its columns."""
    CONTRACTION_CHAIN = "contraction chain"
    """Products, a softmax of these, and products with its weights; an item is a block of rows."""
    CONTRACTION_CHAIN_MATRICES = "contraction chain in matrix registers"

    @property
    def reduces_rows(self) -> bool:
        """Whether lanes run within a group, and are put together at its end."""
        return self in (CpuMode.ROWS, CpuMode.ROWS_PARTIAL)

    @property
    def columns(self) -> bool:
        """Whether lanes run over groups rather than within one."""
        return "columns" in self.value

    @property
    def has_tiles(self) -> bool:
        """Whether lanes run over groups that are reduced."""
        return self.columns and "scan" not in self.value and "scatter" not in self.value


@dataclass(frozen=True, slots=True)
class CpuAccess:
    """One load or store as the code sees it. `streamed` stores bypass the caches. A `counter` is a load whose
    value is its own offset."""

    type: ScalarType
    step: Step
    level: Level
    streamed: bool = False
    counter: bool = False


class Reading(NamedTuple):
    """What a load reads along a row: `number` is that of all loads of the same, `line` of those that read
    near each other under the same conditions, `distance` the bytes from where the line begins."""

    number: int
    line: int
    distance: int


@dataclass(frozen=True, slots=True)
class Together:
    """Neighbouring rows that are computed together. `readings`: for each of them, what each load reads; None
    where others read nothing of it. `alone`: what loads read in rows that are left over. `alike`: for each
    access the first one that moves like it."""

    readings: tuple[tuple[Reading | None, ...], ...]
    alone: tuple[Reading | None, ...]
    alike: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CpuPattern:
    """Kernels of equal pattern share one function.

    `stage` is the pass of a mode that makes only one. `in_order`: positions grow as a lane goes through its
    group. `long_rows`: several vectors of a row are worth keeping states of their own. `stashes`: the last
    load counts where elements are kept between the last pass and the results.
    `whole_rows`: a tile of columns is as wide as the rows are. `wide_tile`: it may be wider than TILE.
    `bundles`: accesses that together have all elements along the innermost loop, in their order.
    `streams`: stores whose rows together follow each other and are put together before they are written.
    `row_steps`: those of a row of an element-wise kernel, if it is a few full vectors; else 0.
    `many_rows`: rows are taken in many at once, and the next asked for.
    `together`: what rows that are computed together read.
    `bounded`: loops over rows that end where the load which is the position there shows that no further
    element counts; of a loop and that load, the numbers.
    `tiling`: how sums of products are computed; the pattern itself is that of what follows them.
    """

    mode: CpuMode
    groups: int
    rows: int
    loads: tuple[CpuAccess, ...]
    stores: tuple[CpuAccess, ...]
    values: tuple[Node, ...]
    stage: int = 0
    in_order: bool = True
    long_rows: bool = False
    stashes: bool = False
    whole_rows: bool = False
    wide_tile: bool = False
    bundles: tuple[tuple[int, ...], ...] = ()
    streams: tuple[tuple[int, ...], ...] = ()
    row_steps: int = 0
    many_rows: bool = False
    together: Together | None = None
    bounded: tuple[tuple[int, int], ...] = ()
    tiling: Tiling | Panels | Strips | Chaining | None = None

    def text(self) -> str:
        """A text that is equal for patterns with equal code."""
        accesses = [
            f"{a.type.name} {a.step.name} {a.level.name} {a.streamed} {a.counter}"
            for a in (*self.loads, *self.stores)
        ]
        head = f"{self.mode.name} {self.groups} {self.rows} {len(self.loads)} {self.stage} {self.in_order}"
        head += f" {self.long_rows} {self.stashes} {self.whole_rows} {self.wide_tile} {self.bundles}"
        head += f" {self.streams} {self.row_steps} {self.many_rows} {self.together} {self.bounded}"
        tiling = [self.tiling.text()] if self.tiling else []
        return "\n".join([head, *accesses, fingerprint(self.values), *tiling])

    @property
    def lane_bytes(self) -> int:
        """Bytes of a vector register that a lane takes: an element of 32 bits, or of the widest type if that
        is narrower. Wider elements take several registers."""
        if self.mode not in (CpuMode.POINTWISE, CpuMode.SHORT_ROWS, CpuMode.SHARED_ROWS):
            return 4
        types = {node.type for node in ordered(self.values)} | {a.type for a in (*self.loads, *self.stores)}
        return min(4, max(type.bytes for type in types))


@dataclass(frozen=True, slots=True)
class MicroKernel:
    """What computes one tile of sums of products in registers: so many rows of so many vectors."""

    rows: int
    vectors: int


@dataclass(frozen=True, slots=True)
class Packing:
    """How an operand of products is read: its rows are the loops before `majors` (of k, or of m or n) and
    those behind (of the other one), its innermost loop is of the latter; that is k if `along_depth`.

    `type` is that of the elements as they are packed; of narrow ones, neighbours along k share a word of 32
    bits. What is packed is the pattern's first value; of 8 bits, each part ends with a row of the sums along
    k, and one of what is subtracted from each element, the second value if there is one. `in_pieces`: as
    matrix registers multiply FLOAT32."""

    pattern: CpuPattern
    majors: int
    along_depth: bool
    type: ScalarType = ScalarType.FLOAT32
    in_pieces: bool = False

    @property
    def group(self) -> int:
        """How many elements share a word."""
        return 4 // self.type.bytes

    @property
    def is_plain(self) -> bool:
        """Whether the operand is but a matrix of FLOAT32 in memory, whose rows are those of the major
        dimension."""
        pattern = self.pattern
        if (len(pattern.loads), len(pattern.values), pattern.rows, self.majors) != (1, 1, 1, 1):
            return False
        (load,), (value,) = pattern.loads, pattern.values
        in_memory = load.type is ScalarType.FLOAT32 and load.step is Step.CONTIGUOUS and not load.counter
        return in_memory and value.operation is Operation.SOURCE

    def text(self) -> str:
        """A text that is equal for packings with equal code."""
        head = f"{self.majors} {self.along_depth} {self.type.name} {self.in_pieces}"
        return f"{head}\n{self.pattern.text()}"


@dataclass(frozen=True, slots=True)
class Panels:
    """How the operand whose elements are broadcast lies packed: in panels of `rows` rows, each in parts of
    `depth` products. A part's columns follow each other; packing may write less than a vector of columns
    behind the last.

    `in_place`: whole panels of plain operands are not packed, but read where they lie; of a last one that is
    not whole the rows follow each other, and packing may write less than a vector behind each. `apart`: rows
    in place do not follow each other, or have several parts. `in_rows`: rows follow each other in all
    panels. `turned`: rows of words follow each other, as matrix registers take them, then what belongs to
    rows."""

    packing: Packing
    rows: int
    depth: int
    in_place: bool = False
    in_rows: bool = False
    apart: bool = False
    turned: bool = False

    @property
    def turned_row_bytes(self) -> int:
        """From one row of words to the next."""
        return odd_lines(self.words)

    @property
    def lies_in_rows(self) -> bool:
        """Whether rows that are packed follow each other."""
        return self.in_place or self.in_rows

    @property
    def words(self) -> int:
        """The columns of a part: of words, each with one product or several."""
        return self.depth // self.packing.group

    @property
    def is_line(self) -> bool:
        """Whether packed elements follow each other: those of one row, each a word."""
        return self.rows == 1 and self.packing.group == 1

    def strides(self, lanes: int) -> tuple[int, int]:
        """The bytes from one row of a part to the next, and from one column."""
        if self.lies_in_rows:
            return odd_lines(self.depth + lanes), 4
        return 4, 4 if self.is_line else -(-self.rows // lanes) * lanes * 4

    def part_bytes(self, lanes: int) -> int:
        """The bytes of a part, with all that packing may write."""
        if self.packing.in_pieces:
            return pieces_bytes(self.rows, self.depth)
        if self.turned:
            return self.rows * (self.turned_row_bytes + 2 * 4)
        row, column = self.strides(lanes)
        size = self.rows * row if self.lies_in_rows else (self.words + lanes) * column
        return -(-size // LINE) * LINE

    def text(self) -> str:
        """A text that is equal for panels with equal code."""
        head = f"{self.rows} {self.depth} {self.in_place} {self.in_rows} {self.apart} {self.turned}"
        return f"{head}\n{self.packing.text()}"


@dataclass(frozen=True, slots=True)
class Strips:
    """How the operand whose elements are vectors lies packed ahead: in strips of `width` columns, each in
    parts of `depth` products, whose rows follow each other."""

    packing: Packing
    width: int
    depth: int

    def part_bytes(self, elements: int, lanes: int) -> int:
        """The bytes of a part where so many products are summed: packing may write less than a vector of rows
        more."""
        if self.packing.in_pieces:
            return pieces_bytes(self.width, min(elements, self.depth))
        return (-(-min(elements, self.depth) // self.packing.group) + lanes) * self.width * 4

    def text(self) -> str:
        """A text that is equal for strips with equal code."""
        return f"{self.width} {self.depth}\n{self.packing.text()}"


def pieces_bytes(rows: int, depth: int) -> int:
    """The bytes of so many rows of `depth` products in pieces, and of a line that says how they are."""
    return LINE + -(-depth // STEP) * PIECES * (rows // REGISTER_ROWS) * REGISTER_BYTES


def crossed_block(size: int) -> tuple[int, int]:
    """The rows, and the steps of the innermost loop, in a block of a kernel whose operands lie across, at
    most, where the widest has elements of `size` bytes."""
    return min(1024 // size, 512), 512 // size


def odd_lines(elements: int) -> int:
    """The bytes of so many elements of FLOAT32, rounded up to an odd number of cache lines: rows that far
    apart lie in different sets of a cache."""
    return (-(-elements * 4 // LINE) | 1) * LINE


@dataclass(frozen=True, slots=True)
class ImageWindow:
    """How windows lie along one dimension of an image: each has `extent` elements, `dilation` apart, and the
    next one begins `stride` elements further on. One of the two distances is 1.

    The image is packed in phases: of each first element that windows see, every stride-th one from there."""

    extent: int
    stride: int
    dilation: int

    @property
    def phases(self) -> int:
        """How many there are."""
        return min(self.stride, self.extent)

    @property
    def reach(self) -> int:
        """Elements of a phase behind those at which windows begin, at most."""
        return self.beyond(0)

    def beyond(self, phase: int) -> int:
        """Elements of one phase behind those at which windows begin."""
        return (self.extent - 1 - phase) * self.dilation // self.stride

    def place(self, tap: int) -> tuple[int, int]:
        """The phase in which a window finds an element, and how far on from where it begins."""
        return tap % self.phases, tap * self.dilation // self.stride


@dataclass(frozen=True, slots=True)
class Image:
    """An operand that is windows of an image: what they see is packed once. A product's last two indices are
    the rows and columns of a window; an image's rows follow each other, so that windows which begin at
    neighbours lie beside each other, with some between two rows of them that are none.

    `room` is the elements of an image, at most."""

    rows: ImageWindow
    columns: ImageWindow
    room: int

    @property
    def taps(self) -> int:
        """The elements of a window."""
        return self.rows.extent * self.columns.extent

    @property
    def phases(self) -> int:
        """How many images there are of each channel."""
        return self.rows.phases * self.columns.phases

    def text(self) -> str:
        """A text that is equal for images with equal code."""
        return f"{self.rows} {self.columns} {self.room}"


@dataclass(frozen=True, slots=True)
class Tiling:
    (
        """How sums of products are computed: in blocks of at most `rows` x `columns` results and `a.depth`
    products, of both operands packed, `a` whose elements are broadcast and `b` whose are vectors.

    `ahead`: a is packed by another launch; `b_ahead`: b is. The one load of its pattern then counts where.
    `parts_together`: the sums of so many parts are added up apart from the others'; 0: of all.
    `image`: b is packed as an image, not window by window; or a is, in the mode that says so.
    `b_in_place`: whole tiles of b are not packed, but read where they lie. `strip_depth`: b is packed ahead
    in parts of so many products."""
        ""
    )

    a: Panels
    b: Packing
    micro: MicroKernel
    rows: int
    columns: int
    ahead: bool
    b_ahead: bool = False
    parts_together: int = 0
    image: Image | None = None
    b_in_place: bool = False
    strip_depth: int = 0

    def text(self) -> str:
        """A text that is equal for tilings with equal code."""
        head = f"{self.micro.rows} {self.micro.vectors} {self.rows} {self.columns}"
        head += f" {self.ahead} {self.b_ahead} {self.b_in_place} {self.parts_together} {self.strip_depth}"
        image = [self.image.text()] if self.image else []
        return "\n".join([head, self.a.text(), self.b.text(), *image])


@dataclass(frozen=True, slots=True)
class Chaining:
    """How the results of a softmax between products are computed: for `keys` of these at a time, from panels
    of the queries and tiles of the keys, by way of the `scores`, whose last load is the products, and tiles
    of what is weighted.

    `micro` makes the products, `weighting` the results; both have as many rows. Packed queries and results of
    an item have at most `room` elements each, of at most `widest` for each row."""

    a: Panels
    b: Packing
    scores: CpuPattern
    weighted: Packing
    micro: MicroKernel
    weighting: MicroKernel
    keys: int
    room: int
    widest: int

    def text(self) -> str:
        """A text that is equal for chains with equal code."""
        head = f"{self.micro.rows} {self.micro.vectors} {self.weighting.vectors} {self.keys} {self.room}"
        parts = [part.text() for part in (self.a, self.b, self.scores, self.weighted)]
        return "\n".join([f"{head} {self.widest}", *parts])


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
    """Where in it they lie, in bytes."""
    stashed_bytes: int = 0
    """Bytes of a group's elements, where these are kept."""


class ParameterTable:
    """Positions in a kernel's parameters: 64-bit integers, first the `Header`, then the counts of the group
    and row loops, then for each access (loads, then stores) its buffer, offset, inner stride, group strides
    and row strides, all in bytes, and at last the bits of the numbers."""

    PARTIAL_BUFFER = Header._fields.index("partial_buffer")
    PARTIAL_OFFSET = Header._fields.index("partial_offset")
    STASHED_BYTES = Header._fields.index("stashed_bytes")
    COUNTS = len(Header._fields)

    def __init__(self, pattern: CpuPattern) -> None:
        self.groups, self.rows = pattern.groups, pattern.rows
        self.accesses = len(pattern.loads) + len(pattern.stores)
        self._first = self.COUNTS + self.groups + self.rows
        self._width = 3 + self.groups + self.rows
        numbers = sum(node.operation is Operation.PARAMETER for node in ordered(pattern.values))
        self.length = self._first + self.accesses * self._width + numbers

    def group_count(self, group: int) -> int:
        return self.COUNTS + group

    def row_count(self, row: int) -> int:
        return self.COUNTS + self.groups + row

    def buffer(self, access: int) -> int:
        return self._first + access * self._width

    def offset(self, access: int) -> int:
        return self.buffer(access) + 1

    def inner_stride(self, access: int) -> int:
        return self.buffer(access) + 2

    def group_stride(self, access: int, group: int) -> int:
        return self.buffer(access) + 3 + group

    def row_stride(self, access: int, row: int) -> int:
        return self.buffer(access) + 3 + self.groups + row

    def number(self, index: int) -> int:
        return self._first + self.accesses * self._width + index
