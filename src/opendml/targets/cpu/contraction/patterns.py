"""Tilings of sums of products: how operands are packed, and how tiles of results are computed from them."""

from __future__ import annotations

from dataclasses import dataclass

from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Step
from opendml.targets.cpu.pattern import LINE, CpuPattern, Walk

REGISTERS, REGISTER_ROWS, REGISTER_BYTES = 8, 16, 1024
"""Matrix registers, their rows of a line each, and their bytes."""
PIECES, STEP = 3, 32
"""The pieces of bfloat16 of a FLOAT32, and the products of one instruction."""


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


@dataclass(frozen=True, slots=True)
class Panels(Walk):
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


@dataclass(frozen=True, slots=True)
class Strips(Walk):
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


def pieces_bytes(rows: int, depth: int) -> int:
    """The bytes of so many rows of `depth` products in pieces, and of a line that says how they are."""
    return LINE + -(-depth // STEP) * PIECES * (rows // REGISTER_ROWS) * REGISTER_BYTES


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


@dataclass(frozen=True, slots=True)
class Tiling(Walk):
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


@dataclass(frozen=True, slots=True)
class Chaining(Walk):
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
