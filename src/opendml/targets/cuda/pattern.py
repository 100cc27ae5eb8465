"""The properties of a kernel that decide its CUDA code, apart from sizes, strides and addresses, which are
parameters at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from opendml.compiler.kernel import fingerprint
from opendml.program.node import REDUCTIONS, Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.pattern import Level, Step


class CudaMode(Enum):
    """The way in which threads share a kernel's domain; the value names the file in `kernels`."""

    POINTWISE = "pointwise"
    """Element-wise, along the innermost loop."""
    TRANSPOSED = "transposed"
    """Element-wise, some operands being contiguous along another loop."""
    WARPS = "warps"
    """Groups within a warp."""
    STAGED = "staged"
    """Small groups through shared memory."""
    TILE = "tile"
    """Groups in the registers of a block."""
    HELD = "held"
    """Groups in the shared memory of a block."""
    SPREAD = "spread"
    """Groups in the shared memory of several blocks, which meet in global memory."""
    TEAM = "team"
    """Groups that are read twice, by several blocks each."""
    REDUCE = "reduce"
    """Groups that are reduced in any way, and read once for each pass."""
    RESIDENT = "resident"
    """Groups that are reduced in any way, in the registers of a warp or a block."""
    PASSES = "passes"
    """Groups that are reduced in any way, in units that blocks keep or read in each pass, by several blocks
    where one does not do."""
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
    """Sums of products of FLOAT16 in tiles, on tensor cores."""
    IMMA = "imma"
    """Sums of products of integers of 8 bits in tiles, on tensor cores."""
    WGMMA = "wgmma"
    """Sums of products of FLOAT16 in tiles that the copy engine loads and warpgroups multiply."""
    WGMMA_WINDOWS = "wgmma_windows"
    """Convolutions of FLOAT16 in such tiles: the copy engine moves the window over the images."""
    WGMMA_PARTS = "wgmma_parts"
    """Sums of products of FLOAT32 in such tiles, as products of TF32 parts."""
    FMA_CHAIN = "fma_chain"
    """A softmax between products, by ordinary arithmetic."""
    MMA_CHAIN = "mma_chain"
    """A softmax between products of FLOAT16, on tensor cores."""
    WGMMA_CHAIN = "wgmma_chain"
    """A softmax between products of FLOAT16 in tiles that the copy engine loads and warpgroups multiply."""


HALF_TILES = (CudaMode.MMA, CudaMode.MMA_CHAIN)
"""The modes whose tiles are of FLOAT16, as tensor cores want them."""
WARPGROUP_MODES = (CudaMode.WGMMA, CudaMode.WGMMA_WINDOWS, CudaMode.WGMMA_PARTS)
"""The modes whose tiles the copy engine loads, as tensor maps say."""
COLLECTIVE = (
    *(
        CudaMode.REDUCE,
        CudaMode.SCATTER,
        CudaMode.SCATTER_LINES,
        CudaMode.POSITIONS,
        CudaMode.FMA,
        CudaMode.IMMA,
    ),
    *(CudaMode.FMA_CHAIN, CudaMode.WGMMA_CHAIN),
    *HALF_TILES,
    *WARPGROUP_MODES,
)
"""The modes whose code reads one element at a time, where it needs it."""


class Form(IntEnum):
    """Over which loops units run on; `kernels/block.cuh` knows the values."""

    PLAIN = 0
    """The innermost one."""
    FLAT = 1
    """The rows of a group and the innermost one."""
    ABREAST = 2
    """The last loop over groups and the innermost one, which is reduced: groups lie side by side."""


@dataclass(frozen=True, slots=True)
class CudaAccess:
    """One load or store as the code sees it.

    `groups` and `rows` tell for each of those loops whether it moves the access. A `turned` load goes through
    shared memory. A `counter` is a load whose value is its own offset. A `guarded` load is another one
    wherever what guards it moves: along rows if it `follows`; it is contiguous only where nothing of that
    changes along the innermost loop, and else strided, though perhaps `still` itself.

    Accesses move `like` the first one that all loops move alike, and share its offset; those that begin near
    it have its address, too, and are `ahead` by so many bytes. What an element-wise kernel knows of small
    numbers is part of the code, so that neighbouring lanes share what they read: the `stride` along the
    innermost loop, `strides` along rows, and the `first` number of a counter.
    """

    type: ScalarType
    step: Step
    groups: tuple[bool, ...]
    rows: tuple[bool, ...]
    turned: bool = False
    counter: bool = False
    guarded: bool = False
    follows: bool = False
    still: bool = False
    like: int | None = None
    near: int | None = None
    ahead: int = 0
    stride: int | None = None
    strides: tuple[int | None, ...] = ()
    first: int | None = None


@dataclass(frozen=True, slots=True)
class CudaPattern:
    """Kernels of equal pattern share one function.

    `vector` elements of the innermost loop are one unit. `columns`: that loop is not reduced, its lanes are
    groups of their own. `wide`: indices and byte offsets take 64 bits. `constants` are names and values that
    the mode's code uses.
    """

    mode: CudaMode
    vector: int
    columns: bool
    wide: bool
    loads: tuple[CudaAccess, ...]
    stores: tuple[CudaAccess, ...]
    values: tuple[Node, ...]
    constants: tuple[tuple[str, int], ...]

    @property
    def accesses(self) -> tuple[CudaAccess, ...]:
        """Loads, then stores."""
        return (*self.loads, *self.stores)

    def offset(self, number: int) -> int:
        """The access whose offset one has."""
        like = self.accesses[number].like
        return number if like is None else like

    def base(self, number: int) -> int:
        """The access from whose address one is `ahead`."""
        near = self.accesses[number].near
        return number if near is None else near

    @property
    def flat(self) -> bool:
        """Whether units run over the ends of rows."""
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
        """The level at which the access moves. Element-wise kernels have no groups: it is the element's."""
        if self.mode in (CudaMode.POINTWISE, CudaMode.TRANSPOSED):
            return Level.ELEMENT
        return Level.ELEMENT if moves_in_group(access, self.columns) else Level.GIVEN

    @property
    def numbers(self) -> int:
        """How many numbers the values are given."""
        return sum(node.operation is Operation.PARAMETER for node in ordered(self.values))

    def reduced(self) -> tuple[Node, ...]:
        """The distinct values that are reduced."""
        return reduced(self.values)

    def text(self) -> str:
        """A text that is equal for patterns with equal code."""
        head = (
            f"{self.mode.value} {self.vector} {self.columns} {self.wide} {len(self.loads)} {self.constants}"
        )
        accesses = [
            f"{a.type.name} {a.step.name} {a.groups} {a.rows} {a.turned} {a.counter} {a.guarded} "
            f"{a.follows} {a.still} {a.like} {a.near} {a.ahead} {a.stride} {a.strides} {a.first}"
            for a in self.accesses
        ]
        return "\n".join([head, *accesses, fingerprint(self.values)])


def moves_in_group(access: CudaAccess, columns: bool) -> bool:
    """Whether the access is another for each element of a group; `columns` as in a pattern."""
    if access.step in (Step.FLAT, Step.BROKEN):
        return True
    return any(access.rows) or access.follows or (access.step is not Step.NONE and not columns)


def reduced(values: tuple[Node, ...]) -> tuple[Node, ...]:
    """The distinct values that are reduced."""
    nodes = {id(n.operands[0]): n.operands[0] for n in ordered(values) if n.operation in REDUCTIONS}
    return tuple(nodes.values())
