"""Descriptions of tiled contractions: all that decides their machine code beside the pattern of the epilogue.

Words are those of BLIS. A is the operand whose elements are broadcast, B the one whose vectors are loaded. A
micro-panel of A has the rows of one tile of results, a panel of B its columns. Both are stored part by part:
a part has the products that are added up in registers (kc).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from opendml.late_dataclass import light_dataclass, replace
from opendml.program.node import Operation
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Step
from opendml.targets.cpu.contraction.narrow import Narrow
from opendml.targets.cpu.pattern import LINE, CpuPattern, WalkPattern

T = TypeVar("T")

REGISTERS, REGISTER_ROWS, REGISTER_BYTES = 8, 16, 1024
"""The matrix registers of AMX, their rows of 64 bytes each, and their bytes."""
DEPTH = 256
"""Products (or groups) of a part (kc): a micro-panel of A and a tile of B stay in the first cache."""
BF16_PARTS, STEP = 3, 32
"""The bfloat16 parts of a float32, and the products that one AMX instruction adds up for each result."""


FEW_ROWS = 5
"""The most rows of a tile that leave registers for more vectors of columns."""
PANELS_TOGETHER = 4
"""The panels of B that one row reads side by side. A hardware prefetcher follows each of them. On Zen 3, two
threads read 26 GB/s in four streams, and 20 in one with prefetch instructions; one thread 17 and 12."""
NARROW_PANELS_TOGETHER = 2
"""The panels of a narrow B that one row reads side by side. The sums of one alone would wait for each other;
sums and parameters of more would not fit 16 registers."""


class Instructions(Enum):
    """The instructions that multiply, which decide how packed operands are laid out."""

    FMA = "vector multiply-adds"
    """A broadcast element times a vector, of floats or of groups of integers that share 32 bits."""
    DOTS = "dot products"
    """Vectors along k of both operands."""
    DIGITS = "dot products of digits"
    """Four neighbours along k of A in digits of 8 bits, times vectors of four narrow numbers each."""
    AMX_BF16 = "AMX of bfloat16 parts"
    AMX_INT8 = "AMX of 8-bit integers"

    @property
    def are_amx(self) -> bool:
        """True if results are in matrix registers."""
        return self in (Instructions.AMX_BF16, Instructions.AMX_INT8)


class Storage(Enum):
    """The memory in which micro-kernels find an operand."""

    PACKED = "packed"
    """Each item packs its part into the scratch memory of the thread."""
    AHEAD = "packed ahead"
    """A launch before packs the whole operand into the arena."""
    STREAMED = "packed ahead, read by few rows"
    """Only B. Its parts are those for many rows. Few rows read a share of each at a time, once."""
    NARROW = "packed ahead in a narrow type"
    """Only B. Each item widens its part into the scratch memory of the thread."""
    NARROW_STREAMED = "packed ahead in a narrow type, read by few rows"
    """Only B. It is packed as for many rows, but micro-kernels widen it in registers."""
    PANELS = "packed ahead for vectors"
    """Only B. Each item splits its part for AMX into the scratch memory of the thread."""
    IN_PLACE = "in place"
    """Whole panels are read where they lie. A last panel that is not whole is packed."""
    WINDOWS = "windows of an image"
    """Each item packs the image. A table of distances finds the elements of a window."""

    @property
    def is_ahead(self) -> bool:
        """True if a launch of its own packs the operand as micro-kernels read it."""
        return self in (Storage.AHEAD, Storage.STREAMED)

    @property
    def is_narrow(self) -> bool:
        """True if a launch of its own packs the operand in a narrow type."""
        return self in (Storage.NARROW, Storage.NARROW_STREAMED)

    @property
    def has_launch(self) -> bool:
        """True if a launch of its own packs the operand."""
        return self.is_ahead or self.is_narrow or self is Storage.PANELS


@light_dataclass(frozen=True, slots=True)
class MicroKernel:
    """The size of a tile of results in registers: rows, and vectors of columns."""

    rows: int
    vectors: int


@light_dataclass(frozen=True, slots=True)
class Packing:
    """The way to read an operand. The first `majors` row loops of the pattern are those of its major
    dimension. The other row loops and the innermost loop are those of its minor dimension, which is k if
    `along_depth`.

    Elements are packed in `type`. Narrow ones are grouped: neighbours along k share 32 bits. The pattern's
    first value is packed. A part of 8-bit elements ends with a row of sums along k. Then follows a row of
    what is subtracted from each element, the pattern's second value if it has one.
    """

    pattern: CpuPattern
    majors: int
    along_depth: bool
    type: ScalarType = ScalarType.FLOAT32

    @property
    def group(self) -> int:
        """The elements that share 32 bits."""
        return 4 // self.type.bytes

    @property
    def is_plain(self) -> bool:
        """True if the operand is a float32 matrix in memory, whose rows are those of the major dimension."""
        pattern = self.pattern
        if (len(pattern.loads), len(pattern.values), pattern.rows, self.majors) != (1, 1, 1, 1):
            return False
        (load,), (value,) = pattern.loads, pattern.values
        in_memory = load.type is ScalarType.FLOAT32 and load.step is Step.CONTIGUOUS and not load.counter
        return in_memory and value.operation is Operation.SOURCE


@light_dataclass(frozen=True, slots=True)
class DigitRows:
    """The layout of a part of rows in digits (`digits.py`).

    First come the digits of each group. Then each block has its two sums of digits, and its scale. Last comes
    a list of rests, which are floats, and their positions.

    Args:
        depth: the products of a part.
        block: those of a block.
        lanes: of a vector.
        together: the rows that are multiplied together. The sums of three fit the registers, for all digits.
    """

    depth: int
    block: int
    lanes: int
    together: int

    @property
    def blocks_at(self) -> int:
        """The distance of the first block in bytes."""
        return 4 * self.depth

    @property
    def count_at(self) -> int:
        """The distance of the number of rests. In the first row, the number of rows follows."""
        return self.blocks_at + self.depth // self.block * 16

    @property
    def rests_at(self) -> int:
        """The distance of the first rest."""
        return self.count_at + LINE

    @property
    def positions_at(self) -> int:
        """The distance of the position of the first rest."""
        return self.rests_at + 4 * (self.depth + self.lanes)

    @property
    def row_bytes(self) -> int:
        """The bytes from one row to the next."""
        return odd_lines((self.positions_at + 4 * (self.depth + self.lanes)) // 4)


@light_dataclass(frozen=True, slots=True)
class OperandA(WalkPattern):
    """The layout of A: micro-panels of `rows` rows, in parts of `depth` products.

    For FMA the elements of a column follow each other; rows in place follow each other instead, as all rows
    do for DOTS. For AMX_INT8 rows of groups follow each other, then what belongs to rows. Packing may write
    less than a vector behind the last column, or behind each row. A kernel that packs it ahead has depth 0 if
    the depth is its parameter (`packs_any_depth`).
    """

    packing: Packing
    instructions: Instructions
    storage: Storage
    rows: int
    depth: int
    block: int = 0
    """The neighbours along k that share a scale, for DIGITS."""

    def digit_rows(self, lanes: int) -> DigitRows:
        """Return the layout of rows in digits."""
        together = next(count for count in (3, 2, 1) if self.rows % count == 0)
        return DigitRows(self.depth, self.block, lanes, together)

    @property
    def amx_row_bytes(self) -> int:
        """Bytes from one row of groups to the next for AMX_INT8."""
        return odd_lines(self.groups)

    @property
    def lies_in_rows(self) -> bool:
        """True if packed rows follow each other."""
        return self.storage is Storage.IN_PLACE or self.instructions is Instructions.DOTS

    @property
    def groups(self) -> int:
        """The columns of a part, of one element or of a group of them."""
        return self.depth // self.packing.group

    @property
    def is_line(self) -> bool:
        """True if packed elements follow each other, because there is one row and no groups."""
        return self.rows == 1 and self.packing.group == 1

    def strides(self, lanes: int) -> tuple[int, int]:
        """Return the bytes from one row of a part to the next, and from one column to the next."""
        if self.lies_in_rows:
            return odd_lines(self.depth + lanes), 4
        # Columns are stored in their order, so the vector of one may reach into the next.
        is_dense = self.is_line or (self.packing.group == 1 and self.rows < lanes <= 2 * self.rows)
        return 4, 4 * (self.rows if is_dense else -(-self.rows // lanes) * lanes)

    def part_bytes(self, lanes: int) -> int:
        """Return the bytes of a part, with all that packing may write."""
        if self.instructions is Instructions.AMX_BF16:
            return bf16_bytes(self.rows, self.depth)
        if self.instructions is Instructions.AMX_INT8:
            return self.rows * (self.amx_row_bytes + 2 * 4)
        if self.instructions is Instructions.DIGITS:
            return self.rows * self.digit_rows(lanes).row_bytes
        row, column = self.strides(lanes)
        size = self.rows * row if self.lies_in_rows else (self.groups + lanes) * column
        return -(-size // LINE) * LINE


@light_dataclass(frozen=True, slots=True)
class OperandB(WalkPattern):
    """The layout of B: panels of `columns` columns, in parts of `depth` products. The rows of a part
    follow each other; packing may write less than a vector of rows more. A kernel that packs it ahead has
    depth 0 if the depth is its parameter (`packs_any_depth`).

    If B is `narrow`, a panel has no parts. The parameters of all its blocks come before its rows of numbers.
    """

    packing: Packing
    instructions: Instructions
    storage: Storage
    columns: int
    depth: int
    narrow: Narrow | None = None

    def part_bytes(self, elements: int, lanes: int) -> int:
        """Return the bytes of a part if `elements` products are summed."""
        depth = min(elements, self.depth)
        if self.instructions is Instructions.AMX_BF16:
            return bf16_bytes(self.columns, depth)
        return (-(-depth // self.packing.group) + lanes) * self.columns * 4

    def panel_bytes(self, elements: int, lanes: int) -> int:
        """Return the bytes of a panel if `elements` products are summed."""
        if self.narrow is None:
            return -(-elements // self.depth) * self.part_bytes(elements, lanes)
        size = -(-elements // self.narrow.block) * self.narrow.parameter_bytes(self.columns)
        return -(-(size + elements * self.narrow.row_bytes(self.columns)) // LINE) * LINE


def packs_any_depth(operand: OperandA | OperandB) -> bool:
    """Return whether kernels that pack an operand ahead for all depths of parts share their code.

    Products of 245, 252 and 256 in a part are in one network of convolutions.
    """
    return operand.instructions is Instructions.FMA and operand.packing.group == 1 and not _is_narrow(operand)


def _is_narrow(operand: OperandA | OperandB) -> bool:
    return isinstance(operand, OperandB) and operand.narrow is not None


def packs_unaligned(pattern: CpuPattern) -> bool:
    """Return whether a kernel that packs an operand ahead reads elements at any address.

    Tensors in ONNX files lie anywhere, and a copy would take as long as packing. Loads of vectors cost the
    same. Gathers of narrow elements read the aligned words around them.
    """
    walk = pattern.walk
    if not isinstance(walk, OperandA | OperandB) or _is_narrow(walk):
        return False
    if not packs_any_depth(walk) and walk.instructions is not Instructions.AMX_BF16:
        return False
    return all(load.counter or load.type.bytes >= 4 for load in pattern.loads)


def bf16_bytes(rows: int, depth: int) -> int:
    """Return the bytes of a part of rows in bfloat16 parts, with the cache line that states its form."""
    return LINE + -(-depth // STEP) * BF16_PARTS * (rows // REGISTER_ROWS) * REGISTER_BYTES


def odd_lines(elements: int) -> int:
    """Return the bytes of float32 elements, rounded up to an odd number of cache lines. Rows with that
    distance lie in different sets of a cache."""
    return (-(-elements * 4 // LINE) | 1) * LINE


@light_dataclass(frozen=True, slots=True)
class ImageWindow:
    """The windows along one dimension of an image. Each has `extent` elements, `dilation` apart. The next
    window begins `stride` elements further on. One of both distances is 1.

    The image is packed in phases: of each first element that windows see, every stride-th one from there.
    """

    extent: int
    stride: int
    dilation: int

    @property
    def phases(self) -> int:
        """The number of phases."""
        return min(self.stride, self.extent)

    @property
    def reach(self) -> int:
        """Elements of a phase behind those at which windows begin, at most."""
        return self.beyond(0)

    def beyond(self, phase: int) -> int:
        """Return the elements of one phase behind those at which windows begin."""
        return (self.extent - 1 - phase) * self.dilation // self.stride

    def place(self, tap: int) -> tuple[int, int]:
        """Return the phase in which a window finds an element, and its distance from the window's begin."""
        return tap % self.phases, tap * self.dilation // self.stride


@light_dataclass(frozen=True, slots=True)
class Image:
    """An operand of windows, packed once for all windows that see it. The last two dimensions of a product
    are the rows and columns of a window. Windows that begin at neighbours lie beside each other. Between two
    rows of windows lie some that are none.
    """

    rows: ImageWindow
    columns: ImageWindow
    elements: int
    """The most that are packed at a time."""

    @property
    def taps(self) -> int:
        """The elements of a window."""
        return self.rows.extent * self.columns.extent

    @property
    def phases(self) -> int:
        """The phases of each channel."""
        return self.rows.phases * self.columns.phases


@light_dataclass(frozen=True, slots=True)
class Tiling(WalkPattern):
    """The way to compute sums of products: in blocks of at most `rows` x `columns` results, from A and B.

    `parts_together` is the number of parts whose sums are added up before they are added to those of others;
    0 adds all parts to one sum. `image` is that of the operand whose storage is WINDOWS. The one load of an
    operand that is packed ahead counts where its panels lie.
    """

    a: OperandA
    b: OperandB
    micro: MicroKernel
    rows: int
    columns: int
    parts_together: int = 0
    image: Image | None = None
    turns: bool = False
    """True if results are neighbours in memory along the rows of tiles. The rows of the pattern are then the
    columns of tiles."""
    continues: bool = False
    """True if the products of parts that belong together are added one by one, as if all were of one part."""

    @property
    def instructions(self) -> Instructions:
        """The instructions that multiply."""
        return self.a.instructions

    @property
    def windows(self) -> str:
        """The operand that is windows of an image: "a", "b", or "" if none is."""
        storages = {"a": self.a.storage, "b": self.b.storage}
        return next((name for name, each in storages.items() if each is Storage.WINDOWS), "")

    @property
    def depth(self) -> int:
        """The products of a part (kc)."""
        return self.a.depth


class ChainStep(Enum):
    """The part of a softmax between products that a launch computes."""

    WHOLE = "whole"
    PARTIAL = "partial"
    """The states of some queries for a part of the keys."""
    COMBINE = "combine"
    """The results of some queries from these states."""


@light_dataclass(frozen=True, slots=True)
class Chaining(WalkPattern):
    """The way to compute a softmax between products, `keys` keys at a time. Micro-panels of the queries and
    panels of the keys give products, the last load of `scores`. Scores and panels of the values give results.

    `micro` is the tile of scores, `weighting` that of results; both have as many rows. Packed queries and
    results of an item have at most `elements` elements each, at most `widest` for each row. For few queries,
    keys and values are read in place, and the vectors of `micro` are those of values read together.
    """

    a: OperandA
    b: OperandB
    scores: CpuPattern
    weighted: OperandB
    micro: MicroKernel
    weighting: MicroKernel
    keys: int
    elements: int
    widest: int
    step: ChainStep = ChainStep.WHOLE


def expanded_walk(walk: WalkPattern, expand: Callable[[CpuPattern], CpuPattern]) -> WalkPattern:
    """Return a walk with all patterns of operands and scores expanded."""

    def operand(given: T) -> T:
        assert isinstance(given, OperandA | OperandB)
        packing = replace(given.packing, pattern=expand(given.packing.pattern))
        return replace(given, packing=packing)

    if isinstance(walk, OperandA | OperandB):
        return operand(walk)
    if isinstance(walk, Tiling):
        return replace(walk, a=operand(walk.a), b=operand(walk.b))
    if isinstance(walk, Chaining):
        a, b, weighted = operand(walk.a), operand(walk.b), operand(walk.weighted)
        return replace(walk, a=a, b=b, weighted=weighted, scores=expand(walk.scores))
    return walk
