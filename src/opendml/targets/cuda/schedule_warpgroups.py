"""Schedules contractions of FLOAT16, BFLOAT16, bytes and FLOAT32 on compute capability 9.0.

The copy engine (TMA) loads tiles. Warpgroups multiply them (wgmma). The grid is persistent: it has no more
blocks than run at once, and each block computes one tile after another.

Tensor cores multiply FLOAT32 as TF32 parts: three products in place of one.

The copy engine must be able to load the operands. They are not computed, are contiguous along k or along
their rows, and all other strides and addresses are multiples of 16 bytes. Images of convolutions have
contiguous channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Access, Kernel, number_of
from opendml.compiler.loops import Loop, merged_neighbours
from opendml.compiler.prices import operation_count
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import least
from opendml.targets.common.differences import BYTES
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.common.launch import loop_words
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.launch import CudaLaunch, tiled_pattern
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaAccess, CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.tensor_map import (
    ADDRESS_ALIGNMENT,
    MOST_DIMENSIONS,
    ROW_BYTES,
    TensorMap,
    WindowMap,
)
from opendml.targets.cuda.warpgroup_source import UNIT, ResidualKind, residual_kind
from opendml.targets.cuda.warpgroup_tile import (
    ALL_TILES,
    OWN_COLUMNS,
    STAGED_BYTES,
    WarpgroupTile,
    clusters_at_once,
)
from opendml.targets.cuda.warpgroups import ROWS_OF_BOX, SHARED_SLACK
from opendml.targets.cuda.windows import Windows, parameters, windows_of

if TYPE_CHECKING:
    from opendml.targets.cuda.schedule_contraction import Shape

_DEPTH = 64
"""Elements along k of a tile of FLOAT16: a row of ROW_BYTES."""
_MOST_PADDING = 4
"""Most channels of a tap in a tile, padded, over the channels that exist. With 16 channels tiles take half
the time of `mma.sync`; with 8 they take 1.3 times as long (H100)."""
_MOST_LOOPS_K = 2
"""Loops along k of a product, at most: tensor maps have a dimension for each."""
_MOST_SPLITS = 32
"""Slices of a tile along k, at most; an estimate: each adds a page of sums to write and to read."""
_LEAST_SPLIT_STEPS = 4
"""Steps along k of each slice of a tile, at least; an estimate."""
_BEGIN_CYCLES, _CLUSTER_CYCLES = 700, 370
"""Cycles of a launch before the first products are under way (barriers, tensor maps, the first load), and
more where blocks of a cluster wait for each other. These figures and the next are fitted as
`WARPGROUP_TILES` says."""
_LEAST_STEP = 228
"""Least cycles of a step along k: the latency of a load over the stages; fitted on an H100."""
_TILE_CYCLES, _STORE_RATE = 2250, 6.4
"""Cycles between the last products of a tile and the first of the next, without storing results, and results
that a block stores in a cycle; fitted on an H100."""
_ROUNDING_OPERATIONS, _WIDENING_OPERATIONS, _FEW_OPERATIONS = 10, 2, 10
"""Operations that round a number to BFLOAT16 and that widen one, in place of which there is an instruction.
Few others of a result do not count."""
_JOIN_CYCLES, _JOIN_RATE = 1000, 24.0
"""Cycles in which blocks of a cluster exchange sums of a tile, and bytes that a block receives in a cycle;
fitted on an H100."""
_SLICE_CYCLES, _SLICE_RATE = 3100, 7.7
"""Cycles in which slices of a tile meet, and sums that a block writes or reads in a cycle; fitted on an
H100."""
_LINE_BYTES, _BROKEN_LINES = 128, 1.15
"""Bytes of a cache line, and bytes read over bytes needed for rows that do not begin at a line."""
_BEYOND = 1.44
"""Time to load the columns' operand if its only box reaches beyond the tensor, over that if it does not."""
_OF_BYTES = 1250, 340, 2500, _STORE_RATE / 2
"""`_BEGIN_CYCLES`, `_LEAST_STEP`, `_TILE_CYCLES` and `_STORE_RATE` of bytes, whose results are INT32. The
chosen tile takes 4 percent longer than the fastest in the mean, for 11 products on an H100."""
_OF_PARTS = 1250, 330, 2900
"""`_BEGIN_CYCLES`, `_LEAST_STEP` and `_TILE_CYCLES` of TF32 parts."""


def warpgroup_tiles(shape: Shape, machine: CudaMachine) -> Iterator[tuple[WarpgroupTile, int, float]]:
    """Yield the tiles that can compute a contraction, the numbers of slices along k, and their cycles."""
    if not machine.multiplies_by_warpgroups:
        return
    for tiles in ALL_TILES:
        kinds = {tile.exchanged: tile for tile in tiles}
        ways = {exchanged: in_warpgroups(shape, tile) for exchanged, tile in kinds.items()}
        warpgroups = ways[False]
        if not warpgroups.is_loadable:
            continue
        for tile in tiles:
            warpgroups = ways[tile.exchanged]
            if tile.columns > warpgroups.most_columns:
                continue
            if not warpgroups.takes(tile) or not clusters_at_once(tile.blocks_of_cluster, machine):
                continue
            steps = -(-warpgroups.k // warpgroups.depth)
            splits = 1
            while True:
                way = tile if warpgroups.fits_clusters(tile, splits, machine) else replace(tile, joined=False)
                yield way, splits, warpgroups.cycles(way, splits, machine)
                splits *= 2
                if splits > _MOST_SPLITS or steps < splits * _LEAST_SPLIT_STEPS:
                    break
        # A plain product needs no windows.
        if warpgroups.batch_count == 1:
            break


def in_warpgroups(shape: Shape, tile: WarpgroupTile) -> WarpgroupShape:
    """Return a contraction as warpgroups compute it in a tile: as a product of matrices, or over windows."""
    if tile.mode is CudaMode.WGMMA_BFLOAT16:
        return Bfloat16Shape(shape, tile.exchanged)
    if tile.exchanged:
        return WarpgroupShape(shape, exchanged=True)
    shapes: dict[CudaMode, type[WarpgroupShape]] = {
        CudaMode.WGMMA_WINDOWS: ConvolutionShape,
        CudaMode.WGMMA_BFLOAT16_WINDOWS: Bfloat16ConvolutionShape,
        CudaMode.WGMMA_BYTES: BytesShape,
        CudaMode.WGMMA_BYTE_WINDOWS: ByteConvolutionShape,
        CudaMode.WGMMA_PARTS: PartsShape,
        CudaMode.WGMMA_PART_WINDOWS: PartConvolutionShape,
    }
    return shapes.get(tile.mode, WarpgroupShape)(shape)


class WarpgroupShape:
    """A contraction as a batch of matrix products.

    The innermost loops over rows and columns span the matrices; the loops around them are part of the batch.
    Results are contiguous along the columns, or along the rows if these are `exchanged`. The operands change
    places where that is necessary, and the second one is `A`.
    """

    mode = CudaMode.MMA
    """The mode of contractions of this kind."""
    types: tuple[ScalarType, ...] = (ScalarType.FLOAT16,)
    """The types of their operands."""
    depth = _DEPTH
    """Elements along k of a tile."""
    products = 1.0
    """Products of FLOAT16 that take as long as one product of this kind."""
    begin_cycles, least_step, tile_cycles, store_rate = _BEGIN_CYCLES, _LEAST_STEP, _TILE_CYCLES, _STORE_RATE

    def __init__(self, shape: Shape, exchanged: bool = False) -> None:
        self._shape, self.kernel, self.accesses = shape, shape.kernel, shape.accesses
        self._exchanged = exchanged
        a, b = shape.operands
        m, n, k = (shape.loops[role] for role in ("m", "n", "k"))
        if shape.mode is CudaMode.MMA and shape.is_across:
            m, n = m or _loop_of_one(self.kernel, a), n or _loop_of_one(self.kernel, b)
        first = len(self.kernel.loads)
        is_along_m = m and n and self._is_contiguous(first, m[-1]) and not self._is_contiguous(first, n[-1])
        if bool(is_along_m) is not exchanged:
            a, b, m, n = b, a, n, m
        self._operands = a, b
        self._rows, self._columns, self._k = tuple(m[-1:]), tuple(n[-1:]), k
        self.groups = (*shape.loops["batch"], *m[:-1], *n[:-1])
        self.batch_count = math.prod(loop.count for loop in self.groups)
        self.m, self.n, self.k = (
            math.prod(loop.count for loop in loops) for loops in (self._rows, self._columns, k)
        )

    @property
    def loops_k(self) -> int:
        """Return the number of loops along k whose positions the code finds."""
        return len(self._k)

    def _is_contiguous(self, number: int, loop: Loop) -> bool:
        return loop.strides[number] == self.accesses[number].type.bytes

    @cached_property
    def is_loadable(self) -> bool:
        """Return whether the copy engine can load both operands, and no access is guarded."""
        if not (self._is_of_type and self._rows and self._columns and 1 <= len(self._k) <= _MOST_LOOPS_K):
            return False
        # A tile lies within the inner loop along k.
        if len(self._k) > 1 and self._k[-1].count % self.depth:
            return False
        if any(each.operation is not Operation.SOURCE or each.operands for each in self._operands):
            return False
        return not guards_of(self.kernel.values) and all(
            self._is_tensor(load, rows) for load, rows in self._sides
        )

    @property
    def _is_of_type(self) -> bool:
        is_of_types = all(each.type in self.types for each in self._operands)
        return self._shape.mode is self.mode and is_of_types and self._shape.is_summed

    def takes(self, tile: WarpgroupTile) -> bool:
        """Return whether boxes of the columns' operand fit a tile.

        Boxes have as many columns as a tile is deep if columns are contiguous. If k is contiguous, they have
        any number of columns.
        """
        if tile.exchanged is not self._exchanged or not self._stores_as_given:
            return False
        return tile.columns % self.depth == 0 or self._along_k(number_of(self._operands[1]))

    @property
    def _sides(self) -> tuple[tuple[int, Loop], ...]:
        a, b = map(number_of, self._operands)
        return (a, self._rows[-1]), (b, self._columns[-1])

    def _is_tensor(self, load: int, rows: Loop) -> bool:
        """Return whether a tensor map can describe an operand."""
        access, (*outer, along_k) = self.kernel.loads[load], self._k
        strides = [loop.strides[load] for loop in (rows, along_k)]
        if access.buffer is None or self._shape.alignments[load] < ADDRESS_ALIGNMENT:
            return False
        if access.type.bytes not in strides:
            return False
        # Boxes that reach beyond few contiguous rows load slowly: 8 rows took twice as long as by threads.
        if not self._along_k(load) and rows.count * access.type.bytes < ROW_BYTES:
            return False
        strides.remove(access.type.bytes)
        strides += [loop.strides[load] for loop in outer]
        strides += [loop.strides[load] for loop in self.groups if loop.strides[load]]
        sizes = [loop.count for loop in (rows, along_k, *self.groups)]
        return (
            len(strides) < MOST_DIMENSIONS
            and all(0 < stride < 2**40 and stride % ADDRESS_ALIGNMENT == 0 for stride in strides)
            and all(size < 2**31 - 2**12 for size in sizes)
        )

    def _along_k(self, load: int) -> bool:
        return self._is_contiguous(load, self._k[-1])

    @property
    def most_columns(self) -> int:
        """Return the columns of the widest tile that is worth while: results, in whole boxes."""
        box = OWN_COLUMNS if self._along_k(number_of(self._operands[1])) else self.depth
        return -(-self.n // box) * box

    def fits_clusters(self, tile: WarpgroupTile, slices: int, machine: CudaMachine) -> bool:
        """Return whether all clusters run at once if each has the slices of one tile. If they do not, slices
        that meet in global memory take less time: 45 us in place of 65 for 512 x 768 results of 3072 summands
        in FLOAT32 (H100)."""
        tiles = self.batch_count * -(-self.m // tile.rows) * -(-self.n // tile.columns)
        return slices == 1 or tiles <= clusters_at_once(slices, machine)

    def cycles(self, tile: WarpgroupTile, splits: int, machine: CudaMachine) -> float:
        """Return the estimated cycles of all tiles."""
        down = -(-self.m // (tile.rows * tile.cluster))
        items = self.batch_count * down * -(-self.n // (tile.columns * tile.across)) * splits
        is_joined = tile.joins(splits, machine)
        cluster = splits if is_joined else tile.blocks_of_cluster
        places = clusters_at_once(cluster, machine) * cluster // tile.blocks_of_cluster
        steps = math.ceil(math.ceil(self.k / self.depth) / splits)
        rounds = -(-items // (places * tile.blocks))
        # Blocks on a multiprocessor share its tensor cores and its way to the L2 cache.
        together = min(tile.blocks, -(-items // places))
        area = tile.rows * tile.columns
        products = area * self.depth * self.products / (tile.rate * machine.half_products)
        a, b = map(number_of, self._operands)
        columns = tile.columns * (_BEYOND if self.n < tile.columns else 1) / tile.cluster
        lines = tile.rows / tile.across * self._line_factor(a) + columns * self._line_factor(b)
        # All multiprocessors share the bandwidth of the L2 cache.
        busy = min(items, places) * tile.blocks_of_cluster / machine.multiprocessors
        reading = lines * ROW_BYTES * busy / machine.cache_rate
        step = max(together * max(products, reading), self.least_step)
        # Blocks of a multiprocessor store beside each other's products, but share the way to memory.
        storing = area * (1 + together) / 2 / self.store_rate
        between = self.tile_cycles + storing + area * self._operations / machine.operation_rate
        if is_joined:
            between += _JOIN_CYCLES + tile.received_bytes(splits) / _JOIN_RATE
        elif splits > 1:
            between += _SLICE_CYCLES + area * (1 + splits) / _SLICE_RATE
        begin, along_k = self.begin_cycles + _CLUSTER_CYCLES * (cluster > 1), steps * step
        if tile.turns:
            # One warpgroup computes the last results, at half of the rate. A product of 512 x 3072 x 768 with
            # GELU took 10.8 us rather than 8.8, with a bias 11.3 rather than 9.8 (H100).
            last = 2 * area * self._costly_operations / machine.operation_rate
            return begin + rounds * max(along_k, (along_k + between) / 2) + between + last
        return begin + rounds * (along_k + between)

    @cached_property
    def _operations(self) -> int:
        """The operations that make a result of a sum."""
        known = {id(self._shape.contraction)}
        nodes = ordered(self.kernel.values, known)
        return operation_count(node.operation for node in nodes if node.operands and id(node) not in known)

    @cached_property
    def _costly_operations(self) -> int:
        """The operations that make a result, without a few and without those that convert BFLOAT16."""
        conversions = [each for each in ordered(self.kernel.values) if each.operation is Operation.CONVERT]
        rounded = sum(each.type is ScalarType.UINT16 for each in conversions)
        widened = sum(each.operands[0].type is ScalarType.UINT16 for each in conversions)
        few = _FEW_OPERATIONS + _ROUNDING_OPERATIONS * rounded + _WIDENING_OPERATIONS * widened
        return max(0, self._operations - few)

    def _line_factor(self, load: int) -> float:
        """Return the bytes that are read of an operand, over those that it has."""
        strides = [loop.strides[load] for loop in (dict(self._sides)[load], self._k[-1])]
        whole = all(stride % _LINE_BYTES == 0 for stride in strides if stride > ROW_BYTES)
        return 1.0 if whole else _BROKEN_LINES

    def launch(self, tile: WarpgroupTile, splits: int, machine: CudaMachine) -> CudaLaunch:
        """Return the launch in a tile.

        Raises:
            ValueError: the tile cannot compute the contraction.
        """
        if not self.is_loadable or not self.takes(tile):
            raise ValueError(f"{self.kernel} does not fit {tile}")
        steps = -(-self.k // self.depth)
        slice_steps = -(-steps // splits)
        splits = -(-steps // slice_steps)
        down, across = -(-self.m // (tile.rows * tile.cluster)), -(-self.n // (tile.columns * tile.across))
        clusters = self.batch_count * down * across
        tiles = clusters * tile.blocks_of_cluster
        producer, consumer = tile.registers()
        a, b = map(number_of, self._operands)
        rows, columns = self._rows, self._columns
        staged_unit = self._staged_unit()
        patterns = self._patterns(staged_unit or UNIT)
        staged = STAGED_BYTES if staged_unit else 0
        slices = index(splits) if tile.joins(splits, machine) else 1
        splits = 1 if slices > 1 else splits
        more_bytes = tile.staged(staged) + (tile.received_bytes(slices) if slices > 1 else 0)
        stages = tile.stages(machine, more_bytes)
        constants = {
            "KERNELS": 1,
            "THREADS": tile.threads,
            "BLOCKS": tile.blocks,
            "ROWS": tile.rows,
            "COLUMNS_OF_TILE": tile.columns,
            "DEPTH": self.depth,
            "STAGES": stages,
            "STAGED_BYTES": staged,
            "STAGED_UNIT": staged_unit,
            "CONSUMERS": tile.consumers,
            "CLUSTER": tile.cluster,
            "CLUSTER_ACROSS": tile.across,
            "EXCHANGED": int(tile.exchanged),
            "PRODUCER_REGISTERS": producer,
            "CONSUMER_REGISTERS": consumer,
            "TURNS": int(tile.turns),
            "SPLIT": int(splits > 1),
            "SLICES": slices,
            "LOOPS_M": len(rows),
            "LOOPS_N": len(columns),
            "LOOPS_K": self.loops_k,
            "A_LOAD": a,
            "B_LOAD": b,
            "A_ALONG_K": int(self._along_k(a)),
            "B_ALONG_K": int(self._along_k(b)),
            "A_FIXED": int(self.kernel.loads[a].fixed),
            "B_FIXED": int(self.kernel.loads[b].fixed),
            **self._more_constants(),
        }
        words = launch_words(
            tile.mode,
            items=clusters * splits,
            m=self.m,
            n=self.n,
            k=self.k,
            split_depth=slice_steps * self.depth,
            splits=splits,
            tiles_across=across,
            tiles_down=down,
            matrix_tiles=down * across,
            **self._more_values(),
        )
        steps_of_lanes = {f"step{number}": stride for number, stride in enumerate(self._fast[-1].strides)}
        places = clusters_at_once(tile.blocks_of_cluster, machine) * tile.blocks
        # Blocks that share a tile along k have one tile each.
        blocks = tiles * slices if slices > 1 else least(clusters * splits, places) * tile.blocks_of_cluster
        loops, largest = (*self.groups, *rows, *columns), tiles * splits * max(tile.rows, tile.columns)
        return CudaLaunch(
            tiled_pattern(tile.mode, self.kernel, patterns, loops, largest, constants),
            blocks,
            tile.threads,
            {
                **loop_words(self.kernel, self.groups, (*rows, *columns)),
                **words,
                **steps_of_lanes,
            },
            shared_bytes=stages * tile.stage_bytes + tile.beside_bytes + more_bytes + SHARED_SLACK,
            counters_bytes=4 * tiles * tile.consumers if splits > 1 else 0,
            scratch_bytes=tiles * splits * tile.rows * tile.columns * 4 if splits > 1 else 0,
            # Boxes that reach beyond the tensor load more slowly. The kernel expects the bytes of this box.
            maps=self._maps(
                least(tile.rows // tile.across, -(-self.m // ROWS_OF_BOX) * ROWS_OF_BOX),
                tile.columns // tile.cluster,
            ),
        )

    @cached_property
    def _stores_as_given(self) -> bool:
        """Return whether results can be stored if rows and columns are exchanged, where they are."""
        return not self._exchanged or self._staged_unit() > 0

    @property
    def _fast(self) -> tuple[Loop, ...]:
        """Return the loops along the last of which results are contiguous."""
        return self._rows if self._exchanged else self._columns

    @property
    def _slow(self) -> tuple[Loop, ...]:
        return self._columns if self._exchanged else self._rows

    def _staged_unit(self) -> int:
        """Return how many results move together if all go through shared memory; 0 if they do not. These
        results have one type of 2 bytes and are contiguous. What they need beside the sum is read in the same
        units."""
        return next(filter(self._is_staged, (UNIT, UNIT // 2, UNIT // 4, 1)), 0)

    def _is_staged(self, unit: int) -> bool:
        """Return whether results, and what they need, lie in whole units."""
        patterns, loads = self._patterns(unit), len(self.kernel.loads)
        values, total, type = self.kernel.values, self._shape.contraction, patterns[loads].type
        beside = [node for node in ordered(values, {id(total)}) if node.operation is Operation.SOURCE]
        kinds = [
            residual_kind(patterns[number_of(node)], type, len(self._rows), self._exchanged)
            for node in beside
        ]
        return (
            self._fast[-1].count % unit == 0
            and type in (ScalarType.FLOAT16, ScalarType.UINT16)
            and all(each.type is type and each.step is Step.CONTIGUOUS for each in patterns[loads:])
            and None not in kinds
            # Pairs of columns are read together.
            and (unit > 1 or ResidualKind.COLUMNS not in kinds)
        )

    def _more_constants(self) -> Mapping[str, int]:
        """Return the constants that only some shapes have."""
        return {}

    def _more_values(self) -> Mapping[str, int]:
        """Return the parameters that only some shapes have."""
        return {"inner_k": self._k[-1].count}

    def _maps(self, *box_rows: int) -> tuple[TensorMap, ...]:
        """Return the tensor maps of both operands, for the rows of each in a box."""
        sides = zip(self._sides, box_rows, strict=True)
        return tuple(self._map(load, rows, count) for (load, rows), count in sides)

    def _map(self, load: int, rows: Loop, box_rows: int) -> TensorMap:
        """Return the tensor map of an operand: first the contiguous dimension, last those over matrices."""
        (*outer_k, along_k), access = self._k, self.kernel.loads[load]
        around = [*outer_k, *(loop for loop in reversed(self.groups) if loop.strides[load])]
        along = self._along_k(load)
        first, second = (along_k, rows) if along else (rows, along_k)
        outer = [second, *around]
        box = (self.depth, box_rows) if along else (ROW_BYTES // access.type.bytes, self.depth)
        return TensorMap(
            load,
            access.type,
            tuple(loop.count for loop in (first, *outer)),
            tuple(loop.strides[load] for loop in outer),
            (*box, *(1 for _ in around)),
        )

    def _patterns(self, unit: int) -> tuple[CudaAccess, ...]:
        """Return how all accesses move."""
        return tuple(self._pattern(number, unit) for number in range(len(self.accesses)))

    def _pattern(self, number: int, unit: int) -> CudaAccess:
        """Return how an access moves: in units where it is contiguous and aligned along the loop along which
        results are contiguous."""
        access, rows, columns = self.accesses[number], self._rows, self._columns
        return CudaAccess(
            access.type,
            self._step(number, access, unit),
            tuple(loop.strides[number] != 0 for loop in self.groups),
            tuple(loop.strides[number] != 0 for loop in (*rows, *columns)),
            counter=access.buffer is None,
        )

    def _step(self, number: int, access: Access, unit: int) -> Step:
        *others, along = *self.groups, *self._slow, *self._fast
        if not along.strides[number]:
            return Step.NONE
        if access.buffer is None or not self._is_contiguous(number, along):
            return Step.STRIDED
        bytes = min(VECTOR_BYTES, unit * access.type.bytes)
        aligned = self._shape.alignments[number] % bytes == 0
        aligned = aligned and all(loop.strides[number] % bytes == 0 for loop in others)
        return Step.CONTIGUOUS if aligned else Step.STRIDED


def _loop_of_one(kernel: Kernel, vector: Node) -> tuple[Loop, ...]:
    """Return the loop over the only row of a vector, at the least distance that tensor maps take."""
    loads = loads_of([vector])
    return (Loop(1, tuple(ADDRESS_ALIGNMENT * (each in loads) for each in range(len(kernel.accesses)))),)


class Bfloat16Shape(WarpgroupShape):
    """A product of matrices of BFLOAT16, whose bits are UINT16 in memory."""

    types = (ScalarType.UINT16,)


class BytesShape(WarpgroupShape):
    """A product of matrices of integers of 8 bits, which `wgmma` takes only if k is contiguous."""

    mode = CudaMode.IMMA
    types = BYTES
    depth = ROW_BYTES
    products = 0.5
    begin_cycles, least_step, tile_cycles, store_rate = _OF_BYTES

    def _is_tensor(self, load: int, rows: Loop) -> bool:
        return self._along_k(load) and super()._is_tensor(load, rows)


class PartsShape(WarpgroupShape):
    """A product of FLOAT32 matrices, as products of TF32 parts."""

    mode = CudaMode.FMA
    types = (ScalarType.FLOAT32,)
    depth = ROW_BYTES // 4
    products = 6
    begin_cycles, least_step, tile_cycles = _OF_PARTS


class ConvolutionShape(WarpgroupShape):
    """A convolution of images whose channels are contiguous, as a product of matrices (implicit GEMM).

    The matrix of results has pixels by channels, or channels by pixels, as they lie in memory. Along k are
    the channels of each tap of the window, padded to a multiple of the depth of a tile. The copy engine fills
    with zeros what lies outside an image or beyond its channels.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._windows: Windows | None = None
        self._images_are_b = False
        if not self._is_of_type or shape.loops["batch"]:
            return
        m, n = shape.loops["m"], shape.loops["n"]
        a, b = shape.operands
        if any(each.operation is not Operation.SOURCE for each in (a, b)):
            return
        for image, rows, weights, filters in ((a, m, b, n), (b, n, a, m)):
            if self._windows is None and len(filters) == 1:
                self._find(image, rows, weights, filters[0])

    def _find(self, image: Node, rows: Sequence[Loop], weights: Node, filters: Loop) -> None:
        """Set one operand as images and the other as weights, if the copy engine can load them so."""
        load, other, first = number_of(image), number_of(weights), len(self.kernel.loads)
        if any(self._shape.alignments[each] < ADDRESS_ALIGNMENT for each in (load, other)):
            return
        if weights.operands or set(guards_of(self.kernel.values)) - {load}:
            return
        channels = [
            loop
            for loop in self._shape.loops["k"]
            if self._is_contiguous(load, loop) and self._is_contiguous(other, loop)
        ]
        taps = [loop for loop in self._shape.loops["k"] if not any(loop is each for each in channels)]
        guarding = loads_of(image.operands)
        if len(channels) != 1 or any(channels[0].strides[each] for each in guarding):
            return
        windows = windows_of(self.accesses, image, rows, taps)
        if windows is None or not windows.is_loadable:
            return
        over_weights = [axis.along_k for axis in windows.axes]
        strides = [loop.strides[other] for loop in (*over_weights, filters) if loop]
        if not all(0 < each < 2**40 and each % ADDRESS_ALIGNMENT == 0 for each in strides):
            return
        # Only results, and what is read beside them, move along these loops. Guards and images are the map's.
        used = [number not in guarding and number != load for number in range(len(self.accesses))]
        pixels = tuple(
            merged_neighbours(
                [
                    Loop(loop.count, tuple(map(math.prod, zip(loop.strides, used, strict=True))))
                    for loop in windows.rows
                ]
            )
        )
        self.groups, self._windows = (), windows
        if self._is_contiguous(first, filters):
            self._operands, self._rows, self._columns = (image, weights), pixels, (filters,)
        elif pixels and self._is_contiguous(first, pixels[-1]):
            self._operands, self._rows, self._columns = (weights, image), (filters,), pixels
            self._images_are_b = True
            # A unit of results must not cross the end of the last loop, so each image is a matrix of its own.
            if pixels[-1].count % UNIT and not self._staged_unit():
                self.groups, self._columns = pixels[:-1], pixels[-1:]
        else:
            self._windows = None
            return
        self._channels, self._filters = channels[0].count, filters
        self._padded = -(-self._channels // self.depth) * self.depth
        self.batch_count = math.prod(loop.count for loop in self.groups)
        self.m, self.n = (math.prod(loop.count for loop in loops) for loops in (self._rows, self._columns))
        self.k = self._padded * math.prod(axis.taps for axis in windows.axes)

    @cached_property
    def is_loadable(self) -> bool:
        """Return whether the copy engine can move the window, and tiles are not mostly zeros."""
        if self._windows is None or not self._rows:
            return False
        return self._padded <= _MOST_PADDING * self._channels

    @property
    def loops_k(self) -> int:
        """Return 1: the copy engine moves along channels and taps."""
        return 1

    def _along_k(self, load: int) -> bool:
        return True

    def _line_factor(self, load: int) -> float:
        """Return the bytes that are read of an operand, over those that are needed."""
        return 1.0 if self._channels * self.accesses[load].type.bytes % _LINE_BYTES == 0 else _BROKEN_LINES

    def _more_constants(self) -> Mapping[str, int]:
        """Return the constant that says which operand the images are."""
        return {"IMAGES_ARE_B": int(self._images_are_b)}

    def _more_values(self) -> Mapping[str, int]:
        """Return the parameters that say how the window moves."""
        assert self._windows is not None
        return parameters(self._windows, self._channels, self._padded)

    def _maps(self, *box_rows: int) -> tuple[TensorMap, ...]:
        """Return the tensor maps of images and weights, as operands are ordered."""
        if self._images_are_b:
            return tuple(reversed(self._maps_of(*reversed(box_rows))))
        return self._maps_of(*box_rows)

    def _maps_of(self, pixels: int, filters: int) -> tuple[TensorMap, TensorMap]:
        """Return the tensor maps of images and weights, for the pixels and filters in a box."""
        windows = self._windows
        assert windows is not None
        (first, second), images = windows.axes, windows.images
        load, other = map(number_of, self._operands[:: -1 if self._images_are_b else 1])
        taps = [axis.along_k.strides[other] if axis.along_k else ADDRESS_ALIGNMENT for axis in windows.axes]
        type = self.accesses[load].type
        return (
            WindowMap(
                load,
                type,
                (self._channels, first.size, second.size, images.size),
                (first.bytes, second.bytes, images.bytes),
                (self.depth, pixels),
                windows.offset,
                (-first.before, -second.before),
                (first.upper, second.upper),
                (first.stride, second.stride),
            ),
            TensorMap(
                other,
                type,
                (self._channels, first.taps, second.taps, self._filters.count),
                (*taps, self._filters.strides[other]),
                (self.depth, 1, 1, filters),
            ),
        )


class Bfloat16ConvolutionShape(ConvolutionShape, Bfloat16Shape):
    """A convolution of BFLOAT16."""


class ByteConvolutionShape(ConvolutionShape, BytesShape):
    """A convolution of integers of 8 bits, over images without padding or padded with zeros."""


class PartConvolutionShape(ConvolutionShape, PartsShape):
    """A convolution of FLOAT32, as products of TF32 parts."""
