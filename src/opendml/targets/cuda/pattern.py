"""The properties of a kernel that decide its CUDA code, apart from sizes, strides and addresses, which are
parameters at run time.
"""

from __future__ import annotations

from enum import Enum

from opendml.late_dataclass import dataclass
from opendml.targets.common.pattern import AccessPattern, KernelPattern, Level, Step


class CudaMode(Enum):
    """The way in which threads share a kernel's domain; the value names the file in `kernels`."""

    POINTWISE = "pointwise"
    """Element-wise, along the innermost loop."""
    TRANSPOSED = "transposed"
    """Element-wise, some operands being contiguous along another loop."""
    REDUCE = "reduction"
    """Reductions of any kind."""
    SCAN = "scan"
    """Running sums and products."""
    SCATTER = "scatter"
    """Positions, or values that are summed, to the places that elements say."""
    SCATTER_LINES = "scatter_lines"
    """Positions to the places that elements say, in the shared memory of blocks that have whole lines."""
    POSITIONS = "positions"
    """The positions of what holds along lines, in their order."""
    TOP = "top"
    """The least elements of lines, found among those that may be."""
    SORT = "sort"
    """The least elements of lines, all of whose elements are sorted."""
    FMA = "fma"
    """Sums of products in tiles, by ordinary arithmetic."""
    MMA = "mma"
    """Sums of products of FLOAT16 or BFLOAT16 in tiles, on tensor cores."""
    IMMA = "imma"
    """Sums of products of integers of 8 bits in tiles, on tensor cores."""
    WGMMA = "wgmma"
    """Sums of products of FLOAT16 in tiles that the copy engine loads and warpgroups multiply."""
    WGMMA_BFLOAT16 = "wgmma_bfloat16"
    """Sums of products of BFLOAT16 in such tiles."""
    WGMMA_WINDOWS = "wgmma_windows"
    """Convolutions of FLOAT16 in such tiles: the copy engine moves the window over the images."""
    WGMMA_BFLOAT16_WINDOWS = "wgmma_bfloat16_windows"
    """Convolutions of BFLOAT16 in such tiles."""
    WGMMA_BYTES = "wgmma_bytes"
    """Sums of products of integers of 8 bits in such tiles."""
    WGMMA_BYTE_WINDOWS = "wgmma_byte_windows"
    """Convolutions of integers of 8 bits in such tiles."""
    WGMMA_PARTS = "wgmma_parts"
    """Sums of products of FLOAT32 in such tiles, as products of TF32 parts."""
    WGMMA_PART_WINDOWS = "wgmma_part_windows"
    """Convolutions of FLOAT32 in such tiles, as products of TF32 parts."""
    DEPTHWISE = "depthwise"
    """Convolutions of each channel alone, with channels last."""
    SHORT_SUMS = "short_sums"
    """Sums of few products of FLOAT16 or BFLOAT16, whose rows warps load into registers."""
    FMA_CHAIN = "fma_chain"
    """A softmax between products, by ordinary arithmetic."""
    MMA_CHAIN = "mma_chain"
    """A softmax between products of FLOAT16, on tensor cores."""
    WGMMA_CHAIN = "wgmma_chain"
    """A softmax between products of FLOAT16 in tiles that the copy engine loads and warpgroups multiply."""
    FEW_ROWS_CHAIN = "few_rows_chain"
    """A softmax between products of few queries, by ordinary arithmetic."""


SHORT_TILES = (CudaMode.MMA, CudaMode.MMA_CHAIN)
"""The modes whose tiles have elements of 16 bits, which tensor cores multiply."""
WINDOW_MODES = (
    CudaMode.WGMMA_WINDOWS,
    CudaMode.WGMMA_BFLOAT16_WINDOWS,
    CudaMode.WGMMA_BYTE_WINDOWS,
    CudaMode.WGMMA_PART_WINDOWS,
)
"""The modes of convolutions whose tiles the copy engine loads."""
WARPGROUP_MODES = (
    CudaMode.WGMMA,
    CudaMode.WGMMA_BFLOAT16,
    CudaMode.WGMMA_BYTES,
    CudaMode.WGMMA_PARTS,
    *WINDOW_MODES,
)
"""The modes whose tiles the copy engine loads, as tensor maps say."""
EARLY_MODES = (*WARPGROUP_MODES, CudaMode.WGMMA_CHAIN)
"""The modes that gain if they are launched before the previous kernel has ended. Their grids have at most one
block for each place on the device, and the blocks have barriers to start and weights to load meanwhile. Of
kernels with many small blocks, those that wait would take the places of others: with all kernels launched
early, BERT-base takes 1.87 ms rather than 1.81 (batch 32, H100). Depthwise convolutions and sums of few
products lose, too: MobileNetV2 takes 0.70 ms rather than 0.65."""
BFLOAT16_MODES = (CudaMode.WGMMA_BFLOAT16, CudaMode.WGMMA_BFLOAT16_WINDOWS)
"""The modes whose products are of BFLOAT16."""
PARTS_MODES = (CudaMode.WGMMA_PARTS, CudaMode.WGMMA_PART_WINDOWS)
"""Those that multiply TF32 parts."""
COLLECTIVE = (
    CudaMode.SCATTER,
    CudaMode.SCATTER_LINES,
    CudaMode.POSITIONS,
    CudaMode.FMA,
    CudaMode.IMMA,
    CudaMode.DEPTHWISE,
    CudaMode.SHORT_SUMS,
    CudaMode.FMA_CHAIN,
    CudaMode.WGMMA_CHAIN,
    CudaMode.FEW_ROWS_CHAIN,
    *SHORT_TILES,
    *WARPGROUP_MODES,
)
"""The modes whose code reads one element at a time, where it needs it."""


@dataclass(frozen=True, slots=True)
class CudaAccess(AccessPattern):
    """One load or store of a CUDA kernel.

    A guarded load is strided if its guard changes along the innermost loop.

    Attributes:
        groups: for each loop over groups, whether it moves the access.
        rows: for each loop over rows, whether it moves the access.
        turned: the load goes through shared memory.
        guarded: the load reads under a condition or at a computed distance.
        follows: the guard changes along rows.
        still: the load is strided for its guard alone, and does not move itself.
        like: the first access that all loops move alike; both share an offset.
        near: the first access that moves alike and begins near this one; both share an address.
        ahead: bytes from that one.
        stride: a small stride along the innermost loop of an element-wise kernel. Small numbers are part of
            the code, so that neighbouring lanes share what they read.
        strides: small strides along rows.
        first: the small first number of a counter.
    """

    groups: tuple[bool, ...]
    rows: tuple[bool, ...]
    turned: bool = False
    guarded: bool = False
    follows: bool = False
    still: bool = False
    like: int | None = None
    near: int | None = None
    ahead: int = 0
    stride: int | None = None
    strides: tuple[int | None, ...] = ()
    first: int | None = None

    def unit_bytes(self, vector: int) -> int:
        """Return the bytes that the access moves for a unit of `vector` elements."""
        return self.type.bytes * (1 if self.step is Step.NONE else vector)


@dataclass(frozen=True, slots=True)
class CudaPattern(KernelPattern[CudaMode, CudaAccess]):
    """A pattern of CUDA kernels.

    Attributes:
        vector: elements of the innermost loop that are one unit.
        columns: the innermost loop is not reduced, so its lanes are groups of their own.
        wide: indices and byte offsets take 64 bits.
        constants: names and values that the code of the mode uses.
    """

    vector: int
    columns: bool
    wide: bool
    constants: tuple[tuple[str, int], ...]

    def offset(self, number: int) -> int:
        """Return the access whose offset one shares."""
        like = self.accesses[number].like
        return number if like is None else like

    def base(self, number: int) -> int:
        """Return the access from whose address one is `ahead`."""
        near = self.accesses[number].near
        return number if near is None else near

    @property
    def flat(self) -> bool:
        """True if units run over the ends of rows."""
        return any(access.step in (Step.FLAT, Step.BROKEN) for access in self.accesses)

    @property
    def group_loops(self) -> int:
        """The number of loops over groups, or over rows of an element-wise kernel."""
        return len(self.accesses[0].groups)

    @property
    def row_loops(self) -> int:
        """The number of loops over rows of a group."""
        return len(self.accesses[0].rows)

    def level(self, access: CudaAccess) -> Level:
        """Return the level at which an access moves. All values of element-wise kernels are elements."""
        if self.mode in (CudaMode.POINTWISE, CudaMode.TRANSPOSED):
            return Level.ELEMENT
        return Level.ELEMENT if moves_in_group(access, self.columns) else Level.GIVEN


def moves_in_group(access: CudaAccess, columns: bool) -> bool:
    """Return whether an access differs between the elements of a group; `columns` as in a pattern."""
    if access.step in (Step.FLAT, Step.BROKEN):
        return True
    return any(access.rows) or access.follows or (access.step is not Step.NONE and not columns)
