"""The tiles in which warpgroups multiply on compute capability 9.0: their shapes, their shared memory, and
the rates that they reach."""

from __future__ import annotations

from dataclasses import replace

from opendml.late_dataclass import dataclass
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.pattern import PARTS_MODES, CudaMode
from opendml.targets.cuda.tensor_map import ROW_BYTES
from opendml.targets.cuda.warpgroups import RESERVED_BYTES, SHARED_SLACK, registers_of, threads_of

OWN_COLUMNS = 32
"""Columns of a tile that a block stores are a multiple of this, if blocks share the tile along k."""
STAGED_BYTES = 16 * 128
"""Bytes of shared memory through which a warp stores its results: 16 rows of a line each."""
_SHIFT_BYTES = 8
"""Bytes of shared memory of each row and column for zero points."""
_PRODUCER_REGISTERS = 40
"""Registers of a thread that loads."""
_MOST_STAGES = 16
"""Tiles of each operand in the ring, at most; only tiles of 64 x 32 leave shared memory for more."""
_MOST_JOINED = 8
"""Blocks of a cluster that share a tile along k, at most (CUDA's portable limit)."""
_LEAST_STAGES = 3
"""Stages that are left, at least, if blocks of a cluster share a tile along k; an estimate."""
_CLUSTERED = 0.9
"""Multiprocessors that run clusters of more than two blocks at once, as a fraction. Groups of multiprocessors
have different sizes: 32 clusters of 4 blocks took two rounds on an H100."""
_RATES = {
    64: {32: 0.73, 64: 0.52, 96: 0.71, 128: 0.79, 160: 0.80, 192: 0.84, 256: 0.97},
    128: {32: 0.59, 64: 0.63, 128: 0.66, 144: 1.0, 160: 0.88, 192: 0.91},
}
"""Fraction of the tensor cores' rate that is reached along k, by the rows of a warpgroup and the columns."""
_RATES_IN_CLUSTERS = {
    (64, 64, 2, 1): 0.44,
    (64, 96, 4, 1): 0.93,
    (64, 128, 4, 1): 0.70,
    (64, 256, 4, 1): 0.76,
    (128, 64, 1, 2): 0.50,
    (128, 64, 1, 4): 0.70,
    (128, 96, 1, 4): 0.79,
    (128, 128, 1, 2): 0.89,
    (192, 96, 1, 2): 0.65,
    (192, 128, 1, 2): 0.84,
    (256, 160, 2, 1): 0.78,
}
"""That fraction for some tiles in clusters, by rows, columns, and the tiles of a cluster down and across."""
_RATES_OF_PARTS = {
    **{(128, 128): 0.56, (128, 96): 0.55, (128, 64): 0.48},
    **{(64, 128): 0.42, (64, 64): 0.39, (64, 32): 0.28},
}
"""Fraction of the rate that TF32 parts reach, by the rows and the columns of a tile.

With these figures and `_OF_PARTS` of `schedule_warpgroups.py`, the chosen tile takes 2 percent longer than
the fastest in the mean. That is for 37 products on an H100, of which one takes 17 percent longer.
"""


@dataclass(frozen=True, slots=True)
class WarpgroupTile:
    """A shape of tiles.

    Args:
        rows: the rows of a tile.
        columns: its columns.
        consumers: the warpgroups of a block that multiply.
        blocks: the blocks on a multiprocessor.
        cluster: the blocks, with tiles below each other, that share the columns' operand.
        turns: each consumer multiplies whole tiles, in turn ("ping-pong"); else they share each tile.
        mode: how the operands are loaded and multiplied.
        across: the blocks, with tiles side by side, that share the rows' operand.
        exchanged: results are contiguous along the rows of tiles; else along their columns, which are then
            multiples of 32.
        joined: slices along k meet in clusters where that is possible; else in global memory.
    """

    rows: int
    columns: int
    consumers: int
    blocks: int
    cluster: int = 1
    turns: bool = False
    mode: CudaMode = CudaMode.WGMMA
    across: int = 1
    exchanged: bool = False
    joined: bool = True

    @property
    def blocks_of_cluster(self) -> int:
        """Blocks of a cluster, each with a tile of its own."""
        return self.cluster * self.across

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return threads_of(self.consumers)

    @property
    def rate(self) -> float:
        """Return the fraction of the tensor cores' rate that is reached along k."""
        if self.mode in PARTS_MODES:
            return _RATES_OF_PARTS[self.rows, self.columns]
        own = _RATES_IN_CLUSTERS.get((self.rows, self.columns, self.cluster, self.across))
        rows = self.rows // (1 if self.turns else self.consumers)
        return own or _RATES[rows][self.columns]

    @property
    def stage_bytes(self) -> int:
        """Bytes of shared memory of one tile of each operand."""
        return (self.rows + self.columns) * ROW_BYTES

    def stages(self, machine: CudaMachine, more_bytes: int) -> int:
        """Return the stages of the ring, if a block needs some more bytes of shared memory."""
        free_bytes = machine.shared_bytes // self.blocks - RESERVED_BYTES - SHARED_SLACK - self.beside_bytes
        return min(_MOST_STAGES, (free_bytes - more_bytes) // self.stage_bytes)

    def received_bytes(self, slices: int) -> int:
        """Return the bytes of the sums that a block receives, if blocks of a cluster share a tile along k."""
        parts = self.columns // OWN_COLUMNS
        owners = next(count for count in range(slices, 0, -1) if parts % count == 0)
        return (slices - 1) * self.rows * (self.columns // owners) * 4

    def joins(self, slices: int, machine: CudaMachine) -> bool:
        """Return whether blocks of a cluster can share a tile along k."""
        is_possible = (
            self.joined
            and self.blocks_of_cluster == 1
            and not self.turns
            and not self.exchanged
            and clusters_at_once(slices, machine) > 0
        )
        if not 1 < slices <= _MOST_JOINED or not is_possible:
            return False
        more_bytes = self.received_bytes(slices) + self.staged(STAGED_BYTES)
        return self.stages(machine, more_bytes) >= _LEAST_STAGES

    @property
    def beside_bytes(self) -> int:
        """Return the bytes of shared memory that the main loop takes beside the tiles.

        TF32 parts of the columns' operand are of two kinds, in each buffer. Bytes have two numbers for each
        row and column.
        """
        if self.mode in (CudaMode.WGMMA_BYTES, CudaMode.WGMMA_BYTE_WINDOWS):
            return _SHIFT_BYTES * (self.rows + self.columns) * (self.consumers if self.turns else 1)
        buffers = 3 if self.consumers > 1 else 2
        return 2 * buffers * self.columns * ROW_BYTES if self.mode in PARTS_MODES else 0

    def staged(self, bytes: int) -> int:
        """Return the bytes of shared memory for results, from those of each warp that multiplies."""
        return 4 * self.consumers * bytes

    def registers(self) -> tuple[int, int]:
        """Return the registers of a thread that loads, and of one that multiplies."""
        return registers_of(_PRODUCER_REGISTERS, self.consumers, self.blocks)


WARPGROUP_TILES = (
    WarpgroupTile(256, 192, 2, 1),
    WarpgroupTile(256, 160, 2, 1, 2),
    WarpgroupTile(256, 144, 2, 1, 2, exchanged=True),
    WarpgroupTile(256, 128, 2, 1),
    WarpgroupTile(256, 64, 2, 1),
    WarpgroupTile(256, 32, 2, 2),
    WarpgroupTile(192, 192, 3, 1),
    WarpgroupTile(192, 128, 3, 1),
    WarpgroupTile(192, 128, 3, 1, across=2),
    WarpgroupTile(192, 96, 3, 1, across=2),
    WarpgroupTile(192, 96, 3, 1, across=2, exchanged=True),
    WarpgroupTile(192, 64, 3, 1),
    WarpgroupTile(192, 32, 3, 2),
    WarpgroupTile(128, 256, 2, 1, 2),
    WarpgroupTile(128, 256, 2, 1),
    WarpgroupTile(128, 192, 2, 1, 2),
    WarpgroupTile(128, 192, 2, 1),
    WarpgroupTile(128, 160, 2, 1),
    WarpgroupTile(128, 160, 2, 1, turns=True, across=2),
    WarpgroupTile(128, 128, 2, 1, 4),
    WarpgroupTile(128, 128, 2, 1),
    WarpgroupTile(128, 128, 2, 1, 2, turns=True),
    WarpgroupTile(128, 128, 2, 1, turns=True, across=2),
    WarpgroupTile(128, 128, 2, 1, turns=True),
    WarpgroupTile(128, 96, 2, 1, 2),
    WarpgroupTile(128, 96, 2, 1, across=4),
    WarpgroupTile(128, 96, 2, 1),
    WarpgroupTile(128, 64, 2, 1, 2),
    WarpgroupTile(128, 64, 2, 1, across=2),
    WarpgroupTile(128, 64, 2, 1, turns=True, across=4),
    WarpgroupTile(128, 64, 2, 1),
    WarpgroupTile(128, 64, 2, 2),
    WarpgroupTile(64, 256, 2, 1, 4, turns=True),
    WarpgroupTile(64, 256, 2, 1, turns=True),
    WarpgroupTile(64, 128, 2, 1, 4, turns=True),
    WarpgroupTile(64, 128, 2, 1, 2, turns=True),
    WarpgroupTile(64, 96, 2, 1, 4, turns=True),
    WarpgroupTile(64, 64, 2, 1, 2, turns=True),
    WarpgroupTile(64, 64, 2, 1, turns=True),
    WarpgroupTile(64, 64, 1, 2),
    WarpgroupTile(64, 64, 1, 3),
    WarpgroupTile(64, 32, 1, 1),
)
"""The candidates. The rates above, and the cycles in `schedule_warpgroups.py`, are fitted to 1,300 times of
98 convolutions and products on an H100. The chosen tile takes 2.4 percent longer than the fastest in the
mean."""
_PLAIN_TILES = tuple(tile for tile in WARPGROUP_TILES if not tile.exchanged)
WINDOW_TILES = tuple(
    replace(tile, mode=CudaMode.WGMMA_WINDOWS)
    for tile in _PLAIN_TILES
    if (tile.rows, tile.columns, tile.cluster) != (64, 64, 2)
)
"""The candidates of convolutions. In clusters of 64 x 64, 3x3 of 64 to 64 channels at 56x56 takes 31 us in
place of 23 (batch 32, H100)."""
BFLOAT16_TILES = tuple(replace(tile, mode=CudaMode.WGMMA_BFLOAT16) for tile in WARPGROUP_TILES)
"""The candidates of products of BFLOAT16, at the costs of those of FLOAT16."""
BFLOAT16_WINDOW_TILES = tuple(replace(tile, mode=CudaMode.WGMMA_BFLOAT16_WINDOWS) for tile in WINDOW_TILES)
"""The candidates of convolutions of BFLOAT16."""
BYTE_TILES = tuple(replace(tile, mode=CudaMode.WGMMA_BYTES) for tile in _PLAIN_TILES)
"""The candidates of products of bytes."""
BYTE_WINDOW_TILES = tuple(replace(tile, mode=CudaMode.WGMMA_BYTE_WINDOWS) for tile in _PLAIN_TILES)
"""The candidates of convolutions of bytes."""
PARTS_TILES = (
    WarpgroupTile(128, 128, 2, 1, mode=CudaMode.WGMMA_PARTS),
    WarpgroupTile(128, 96, 2, 1, mode=CudaMode.WGMMA_PARTS),
    WarpgroupTile(128, 64, 2, 1, mode=CudaMode.WGMMA_PARTS),
    WarpgroupTile(64, 128, 1, 1, mode=CudaMode.WGMMA_PARTS),
    WarpgroupTile(64, 64, 1, 2, mode=CudaMode.WGMMA_PARTS),
)
"""The candidates of products of FLOAT32."""
PART_WINDOW_TILES = tuple(
    replace(tile, mode=CudaMode.WGMMA_PART_WINDOWS) for tile in (*PARTS_TILES, WarpgroupTile(64, 32, 1, 2))
)
"""The candidates of convolutions of FLOAT32."""
ALL_TILES = (
    *(WARPGROUP_TILES, WINDOW_TILES, BFLOAT16_TILES, BFLOAT16_WINDOW_TILES),
    *(BYTE_TILES, BYTE_WINDOW_TILES, PARTS_TILES, PART_WINDOW_TILES),
)
"""All candidates, by the mode that they share."""


def clusters_at_once(size: int, machine: CudaMachine) -> int:
    """Return the clusters of `size` blocks that run at once, if a multiprocessor has one block of them."""
    fraction = _CLUSTERED if size > 2 else 1.0
    return int(machine.multiprocessors * fraction) // size
