"""Decides how contractions are launched: in tiles of which shape, by how many blocks each.

Every tile of the table is a candidate where its conditions hold, at an estimated cost in cycles of a
multiprocessor; so is reducing without tiles. The cheapest wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.program.node import REDUCTIONS, Node, ordered
from opendml.program.scalar_type import ScalarType
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.differences import difference, is_still
from opendml.targets.common.guards import loads_of
from opendml.targets.common.launch import loop_words
from opendml.targets.common.roles import count_of, loops_from_results, product_roles
from opendml.targets.cuda.contraction_source import SHORT_TYPES, contraction_of, stored_of
from opendml.targets.cuda.costs import SIDE_BY_SIDE
from opendml.targets.cuda.launch import CudaLaunch, Table, tiled_pattern
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import PARTS_MODES, CudaMode
from opendml.targets.cuda.result_units import ResultUnits, result_units
from opendml.targets.cuda.schedule_warpgroups import in_warpgroups, warpgroup_tiles
from opendml.targets.cuda.tiled_operand import TiledOperand, access_patterns
from opendml.targets.cuda.warpgroup_tile import WarpgroupTile

Choice = TypeVar("Choice")

_TYPES = (ScalarType.FLOAT32, ScalarType.INT32, ScalarType.UINT32)
"""Types of the sums of tiles."""
_STAGES = 3
"""Tiles of each operand in shared memory: one that is multiplied, the others on their way."""
_LEAST_STEP = 300
"""Cycles of a step along k, at least: what a load takes, over the steps that are under way."""
_COMPUTED_LATENCY = 1200
"""Cycles of a step along k in which a block waits for the loads of a computed operand; fitted on an H100."""
COPIED_LATENCY = 600
"""Cycles of a step in which a block waits for copies, of which two steps are in flight; fitted on an H100."""
_ALONE, _PAGE_CYCLES = 2, 400
"""The time of the rest of a step for a block alone, over that for blocks that share a multiprocessor; and the
cycles to add up the sums of one of the blocks that share a tile. With these and the latencies, estimates are
within a quarter of the times on an H100. There 16 rows by 4096 x 4096 of INT8 take 32, 22 and 19 us in 4, 8
and 16 blocks."""
_TILE_CYCLES = 3000
"""Cycles before the first and after the last step of a tile, about."""
_STORE_RATE = 16
"""Sums that a multiprocessor stores in a cycle, about."""
WINDOW_FACTOR = 2.0
"""Time of a convolution, or of a product of bytes, without the copy engine, over its estimate. On an H100 the
ratio is 1.6 to 3.8 for convolutions, and 2.3 to 2.6 for bytes that are not contiguous along k."""
FMA_FACTOR = 1.1
"""Time of a product of FLOAT32 by FMAs over its estimate, fitted on an H100."""
_PRODUCT_MODES = (CudaMode.WGMMA, CudaMode.WGMMA_BFLOAT16, CudaMode.WGMMA_BYTES)
"""Modes of warpgroups beside which no other tiles are estimated."""
_FACTORS = {
    CudaMode.WGMMA_WINDOWS: WINDOW_FACTOR,
    CudaMode.WGMMA_BFLOAT16_WINDOWS: WINDOW_FACTOR,
    CudaMode.WGMMA_BYTE_WINDOWS: WINDOW_FACTOR,
    **dict.fromkeys(PARTS_MODES, FMA_FACTOR),
}
"""Time of tiles that threads load over their estimates, if warpgroups have tiles of a mode."""
_MOST_SPLITS = 32
"""Blocks that share a tile along k, at most; an estimate: each leaves a page of sums to write and to read."""
_LEAST_SPLIT_STEPS = 4
"""Steps along k of each of the blocks that share a tile, at least; an estimate."""
_ROLES = ("batch", "m", "n", "k")
_REDUCED_INSTRUCTIONS, _LOOP_INSTRUCTIONS = 8, 6
"""Instructions for each product that is summed without tiles, and more for each loop along k and each
counter."""
_ACROSS_CYCLES, _RESIDENT = 90, 2048
"""Cycles that a thread waits for each product of sums that lie side by side, and the threads that a
multiprocessor holds. For one row by 1024 x 1024 to 4096 x 4096 of FLOAT16 and FLOAT32 an H100 takes 0.5 to
1.1 of the estimate."""
_FEW_ACROSS_CYCLES = 60
"""The former for the sums of a few rows, of which threads have several (H100)."""

_FEW_ROWS = 16
"""Rows for which warps beside each other read the same elements of a matrix, at most; an estimate."""
_ROW_CYCLES, _ROW_RATE, _FIRST_CACHE_RATE = 600, 10.0, 42.0
"""Cycles in which warps of each such row wait, at most; elements of a small matrix that a multiprocessor
takes in for it in a cycle; and bytes that it reads of its own (L1) cache in a cycle. They are fitted to 2, 4
and 8 rows by 1024 x 1024 to 4096 x 4096 of FLOAT16 and FLOAT32 on an H100."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A shape of tiles: `part` are the rows and columns of a thread (FMA) or warp (MMA, IMMA), `rate` the
    products that a multiprocessor adds up in a cycle, about; `blocks` share it at a time. `copied`: for
    operands that go to shared memory without passing registers, as few threads wait for others long; several
    blocks, which would wait for each other too, do not share such a tile.
    """

    mode: CudaMode
    rows: int
    columns: int
    depth: int
    threads: int
    part: tuple[int, int]
    blocks: int
    rate: int
    copied: bool = False


TILES = (
    Tile(CudaMode.FMA, 128, 128, 16, 256, (8, 8), 2, 100),
    Tile(CudaMode.FMA, 64, 64, 16, 128, (8, 4), 4, 80),
    Tile(CudaMode.FMA, 32, 128, 16, 128, (4, 8), 4, 75),
    Tile(CudaMode.FMA, 128, 32, 16, 128, (8, 4), 4, 75),
    Tile(CudaMode.FMA, 16, 128, 16, 128, (4, 4), 4, 50),
    Tile(CudaMode.FMA, 128, 16, 16, 128, (4, 4), 4, 50),
    Tile(CudaMode.MMA, 128, 128, 32, 256, (64, 32), 2, 900),
    Tile(CudaMode.MMA, 128, 128, 64, 128, (64, 64), 2, 1000, copied=True),
    Tile(CudaMode.MMA, 64, 64, 32, 128, (32, 32), 4, 600),
    Tile(CudaMode.MMA, 32, 128, 32, 128, (32, 32), 4, 500),
    Tile(CudaMode.MMA, 128, 32, 32, 128, (32, 32), 4, 500),
    Tile(CudaMode.MMA, 16, 128, 32, 128, (16, 32), 4, 300),
    Tile(CudaMode.MMA, 128, 16, 32, 128, (32, 16), 4, 300),
    Tile(CudaMode.IMMA, 128, 128, 64, 256, (64, 32), 2, 1500),
    Tile(CudaMode.IMMA, 128, 128, 128, 128, (64, 64), 2, 1600, copied=True),
    Tile(CudaMode.IMMA, 64, 64, 64, 128, (32, 32), 4, 1000),
    Tile(CudaMode.IMMA, 16, 128, 64, 128, (16, 32), 4, 500),
    Tile(CudaMode.IMMA, 128, 16, 64, 128, (32, 16), 4, 500),
)
"""The candidates; rates are estimates."""


@dataclass(frozen=True, slots=True)
class CudaTileChoice:
    """A tile, and the blocks that share each tile along k."""

    tile: Tile | WarpgroupTile
    splits: int

    @property
    def name(self) -> str:
        """The name of the tile, without the number of blocks."""
        tile = self.tile
        name = f"{tile.mode.value} {tile.rows}x{tile.columns}"
        if isinstance(tile, WarpgroupTile):
            side_by_side = f" in {tile.cluster}x{tile.across}"
            name += " exchanged" * tile.exchanged
            name += side_by_side if tile.across > 1 else f" in {tile.cluster}" * (tile.cluster > 1)
            return name + " in turn" * tile.turns
        return name + " of copies" * tile.copied


@dataclass(frozen=True)
class CudaProductQuery:
    """A kernel that multiplies matrices, and the device and the alignments that it is scheduled for."""

    kernel: Kernel
    machine: CudaMachine
    alignments: Sequence[int]
    inner: int | None = None
    """The number of the innermost loop of a reduction without tiles; None chooses it."""

    @cached_property
    def shape(self) -> Shape:
        """The loops by their roles, if the kernel is a contraction."""
        return Shape(self.kernel, self.alignments)


class Form(Protocol[Choice]):
    """A contraction of some form, which has a kernel of its own."""

    def estimates(self, machine: CudaMachine) -> Iterator[Estimate[Choice]]:
        """Yield the estimates of all choices."""

    def launch(self, choice: Choice, machine: CudaMachine) -> CudaLaunch:
        """Return the launch of a choice."""


def candidate_of_form(
    name: str, form_of: Callable[[Shape], Form[Choice] | Refusal], without_choices: str
) -> Candidate[CudaProductQuery, Choice, CudaLaunch]:
    """Return the candidate that takes the best choice for contractions of a form.

    Args:
        name: that of the candidate.
        form_of: returns a contraction in its form, or the reason why it has another one.
        without_choices: the reason to refuse a contraction that has no choices.
    """

    def price(query: CudaProductQuery) -> Estimate[Choice] | Refusal:
        found = form_of(query.shape)
        if isinstance(found, Refusal):
            return found
        best = min(found.estimates(query.machine), key=lambda each: each.cycles, default=None)
        return best or Refusal(without_choices)

    def construct(query: CudaProductQuery, choice: Choice) -> CudaLaunch:
        found = form_of(query.shape)
        if isinstance(found, Refusal):
            raise ValueError(found.reason)
        return found.launch(choice, query.machine)

    def alternatives(query: CudaProductQuery) -> Iterator[Estimate[Choice]]:
        found = form_of(query.shape)
        if not isinstance(found, Refusal):
            yield from found.estimates(query.machine)

    return Candidate(name, price, construct, alternatives=alternatives)


def launch_of(shape: Shape, choice: CudaTileChoice, machine: CudaMachine) -> CudaLaunch:
    """Return the launch of a contraction in tiles.

    Raises:
        ValueError: a tile that was chosen for other sizes cannot compute these.
    """
    tile = choice.tile
    if isinstance(tile, WarpgroupTile):
        return in_warpgroups(shape, tile).launch(tile, choice.splits, machine)
    return shape.launch(tile, choice.splits)


def estimates(shape: Shape, machine: CudaMachine) -> Iterator[Estimate[CudaTileChoice]]:
    """Yield the estimates of all tiles that can compute a contraction.

    If the copy engine can load the operands of a product, only tiles of warpgroups are estimated. For each of
    51 shapes on an H100, from 4096x64x64 to 8192 cubed, the best other tile took 1.1 to 3 times as long.
    Convolutions of few channels fill such tiles with zeros. Few products of FLOAT32 are faster by FMAs than
    by TF32 parts.
    """
    is_product, factor = False, 1.0
    for of_warpgroups, splits, cycles in warpgroup_tiles(shape, machine):
        is_product |= of_warpgroups.mode in _PRODUCT_MODES
        factor = _FACTORS.get(of_warpgroups.mode, 1.0)
        yield _estimate(of_warpgroups, splits, cycles)
    if is_product:
        return
    for tile in filter(shape.takes, TILES):
        latency = COPIED_LATENCY if shape.is_across else None
        if any(side.steps for side in shape.sides):
            latency = _COMPUTED_LATENCY
        steps = -(-shape.k // tile.depth)
        splits = 1
        while splits <= (1 if tile.copied else _MOST_SPLITS):
            yield _estimate(tile, splits, tile_cycles(shape, tile, splits, machine, latency) * factor)
            splits *= 2
            if steps < splits * _LEAST_SPLIT_STEPS:
                break


def _estimate(tile: Tile | WarpgroupTile, splits: int, cycles: float) -> Estimate[CudaTileChoice]:
    choice = CudaTileChoice(tile, splits)
    return Estimate(choice, {"products": cycles}, name=choice.name)


def _price_tiles(query: CudaProductQuery) -> Estimate[CudaTileChoice] | Refusal:
    found = estimates(query.shape, query.machine)
    best = min(found, key=lambda each: each.cycles, default=None)
    return best or Refusal("no tile can load the operands, add up such sums, or has so few results")


def _price_any_reduction(query: CudaProductQuery) -> Estimate[None]:
    return Estimate(None, {"products": query.shape.reduced_cycles(query.machine)})


def tile_cycles(shape: Shape, tile: Tile, splits: int, machine: CudaMachine, latency: int | None) -> float:
    """Return the estimated cycles of a product in a tile that `splits` blocks share.

    With a `latency`, for which blocks wait in each step along k, the estimate is close to measured times.
    Without one it only compares tiles whose operands are copied.
    """
    a, b = shape.sides
    tiles = shape.batch_count * -(-shape.m // tile.rows) * -(-shape.n // tile.columns)
    steps = math.ceil(shape.k / tile.depth)
    step_cycles = tile.rows * tile.columns * tile.depth / tile.rate
    step_cycles += machine.operation_cycles(
        a.loading(tile.rows, tile.depth) + b.loading(tile.columns, tile.depth)
    )
    # Blocks that share a multiprocessor hide each other's loads.
    waves = -(-tiles * splits // machine.multiprocessors)
    together = min(waves, tile.blocks)
    pages = 1 + splits if splits > 1 else 0
    area = tile.rows * tile.columns / _STORE_RATE
    alone = _LEAST_STEP if latency is None else latency + _ALONE * step_cycles
    step_cycles = max(step_cycles, alone / together)
    cycles = waves * (math.ceil(steps / splits) * step_cycles + _TILE_CYCLES / together + area * (1 + pages))
    return cycles if latency is None else cycles + pages * _PAGE_CYCLES


class Shape:
    """A contraction's loops by their roles, and its operands."""

    def __init__(self, kernel: Kernel, alignments: Sequence[int]) -> None:
        self.kernel, self.alignments = kernel, alignments
        self.accesses = kernel.accesses
        self.contraction = contraction_of(kernel.values)
        self.mode, self.operands = _mode_and_operands(kernel, self.contraction)
        roles = product_roles(kernel, *self.contraction.operands)
        self.loops = {role: loops_from_results(kernel, getattr(roles, role)) for role in _ROLES}
        self._is_alone = sum(
            node.operation in REDUCTIONS for node in ordered(kernel.values)
        ) == 1 and not any(store.strides[axis] for store in kernel.stores for axis in kernel.axes)
        self.batch_count, self.m, self.n, self.k = (count_of(self.loops[role]) for role in _ROLES)

    def takes(self, tile: Tile) -> bool:
        """Return whether a tile can compute the contraction, and may be the fastest."""
        return (
            tile.mode is self.mode
            and self.is_summed
            and self._are_read
            and ((self.m > 1 and self.n > 1) or self.is_across)
            and all(count < 2**30 for count in (self.m, self.n, self.k, self.batch_count))
            and (not tile.copied or all(side.copied for side in self.sides))
        )

    @property
    def is_summed(self) -> bool:
        """True if the kernel has one sum of products, of a type that tiles are summed in."""
        return self._is_alone and self.contraction.type in _TYPES

    @cached_property
    def is_across(self) -> bool:
        """True if a vector is multiplied by a matrix whose neighbours in memory are in other sums."""
        if (self.m > 1) is (self.n > 1) or not self._are_read:
            return False
        return not self.sides[0 if self.n == 1 else 1].along_k

    @cached_property
    def _are_read(self) -> bool:
        """Return whether both operands are made of tensors in memory."""
        loads = [loads_of([each]) for each in self.operands]
        return all(any(self.accesses[each].buffer is not None for each in own) for own in loads)

    def reduced_cycles(self, machine: CudaMachine) -> float:
        """Return the cost without tiles."""
        counters = sum(load.buffer is None for load in self.kernel.loads)
        loops = max(0, len(self.loops["k"]) - 1) + counters
        instructions = _REDUCED_INSTRUCTIONS + _LOOP_INSTRUCTIONS * loops
        sums = self.batch_count * self.m * self.n
        cycles = machine.operation_cycles(sums * self.k * instructions) / machine.cores
        if self.is_across:
            cycles = max(cycles, self._across_cycles(machine, _ACROSS_CYCLES))
        return self._with_matrix(cycles, machine) + _TILE_CYCLES

    def _with_matrix(self, cycles: float, machine: CudaMachine) -> float:
        """Return the cycles in which sums without tiles also read a matrix for each of a few rows.

        Where sums run along memory, warps beside each other read the same elements, which then come from
        memory once. Elsewhere threads wait for each product, too. Without these cycles, 2 rows of FLOAT16 by
        1024 x 1024 took 8.1 us rather than 3.3, and MobileNetV2 of FLOAT32 334 rather than 236 (batch 1,
        H100).
        """
        if min(self.m, self.n) < 2 or len(self.loops["k"]) != 1 or not self._are_read:
            return cycles
        few, count, side = min(
            (self.m, self.n, self.sides[1]), (self.n, self.m, self.sides[0]), key=lambda each: each[0]
        )
        bytes = self.batch_count * count * self.k * side.load_bytes
        rate = machine.cache_rate if bytes <= machine.l2_bytes else machine.memory_rate
        reading = bytes / rate / machine.cores
        if not side.along_k:
            return cycles + few * reading + self._across_cycles(machine, _FEW_ACROSS_CYCLES)
        if few <= _FEW_ROWS:
            each = min(_ROW_CYCLES, self.batch_count * count * self.k / _ROW_RATE / machine.cores)
            return max(cycles, reading, few * (each + bytes / _FIRST_CACHE_RATE / machine.cores))
        return cycles + few * reading

    def is_over_few_rows(self, loop: Loop) -> bool:
        """Return whether a loop is over few rows, each of which is multiplied by the same matrix."""
        if not 1 < min(self.m, self.n) <= _FEW_ROWS:
            return False
        a, b = (loads_of([each]) for each in self.operands)
        rows, matrix = (a, b) if self.m <= self.n else (b, a)
        return any(loop.strides[each] for each in rows) and not any(loop.strides[each] for each in matrix)

    def _across_cycles(self, machine: CudaMachine, cycles: float) -> float:
        """Return the cycles of sums that lie side by side, whose threads wait `cycles` for each product."""
        threads = self.batch_count * self.m * self.n * SIDE_BY_SIDE
        waves = -(-threads // (_RESIDENT * machine.multiprocessors))
        return waves * self.k / SIDE_BY_SIDE * cycles

    def launch(self, tile: Tile, splits: int) -> CudaLaunch:
        """Return the launch of a tile that `splits` blocks share.

        Raises:
            ValueError: the tile cannot compute the contraction.
        """
        if not self.takes(tile):
            raise ValueError(f"{self.kernel} does not fit {tile}")
        steps = -(-self.k // tile.depth)
        slice_steps = -(-steps // splits)
        splits = -(-steps // slice_steps)
        down, across = -(-self.m // tile.rows), -(-self.n // tile.columns)
        tiles = self.batch_count * down * across
        a, b = self.sides
        units = self._units_of_results(tile)
        constants = {
            "THREADS": tile.threads,
            "BLOCKS": tile.blocks,
            "ROWS": tile.rows,
            "COLUMNS_OF_TILE": tile.columns,
            "DEPTH": tile.depth,
            "STAGES": _STAGES,
            "SPLIT": int(splits > 1),
            "STORED_ALONG_ROWS": int(self._is_stored_along_rows),
            "UNIT": units.count,
            "UNIT_ACROSS": int(units.across),
            **{f"LOOPS_{role.upper()}": len(self.loops[role]) for role in ("m", "n", "k")},
            **dict(zip(_PARTS[tile.mode], tile.part, strict=True)),
            **{f"A_{name}": value for name, value in a.constants().items()},
            **{f"B_{name}": value for name, value in b.constants().items()},
        }
        patterns = units.moved(access_patterns(self.kernel, self.loops["batch"], self.rows, self.sides))
        loops = (*self.loops["batch"], *self.rows)
        pattern = tiled_pattern(tile.mode, self.kernel, patterns, loops, tiles * splits, constants)
        words = launch_words(
            tile.mode,
            m=self.m,
            n=self.n,
            k=self.k,
            split_depth=slice_steps * tile.depth,
            splits=splits,
            tiles_across=across,
            tiles_down=down,
            matrix_tiles=down * across,
        )
        area = tile.rows * tile.columns
        return CudaLaunch(
            pattern,
            tiles * splits,
            tile.threads,
            loop_words(self.kernel, self.loops["batch"], self.rows)
            | words
            | units.lane_steps()
            | a.lane_steps()
            | b.lane_steps(),
            shared_bytes=max(_STAGES * _bytes_of_stage(tile, a, b), _sums(tile)),
            counters_bytes=4 * tiles if splits > 1 else 0,
            scratch_bytes=tiles * splits * area * 4 if splits > 1 else 0,
        )

    @cached_property
    def sides(self) -> tuple[TiledOperand, TiledOperand]:
        """Both operands on their way to shared memory."""
        return self._operand(0, "m"), self._operand(1, "n")

    def _operand(self, number: int, rows: str) -> TiledOperand:
        loops = self.loops["batch"], self.loops[rows], self.loops["k"]
        return TiledOperand(self.operands[number], self.kernel, self.alignments, *loops)

    @cached_property
    def rows(self) -> tuple[Loop, ...]:
        """The loops over rows of the pattern."""
        return (*self.loops["m"], *self.loops["n"], *self.loops["k"])

    @cached_property
    def _is_stored_along_rows(self) -> bool:
        return self._stored_along("n") or not self._stored_along("m")

    def _units_of_results(self, tile: Tile) -> ResultUnits:
        fast, slow = ("n", "m") if self._is_stored_along_rows else ("m", "n")
        # FMA tiles keep rows of sums in shared memory, where the sums of a column are not contiguous.
        are_together = self._is_stored_along_rows or tile.mode is not CudaMode.FMA
        around = [loop for role in ("batch", "m", "n") for loop in self.loops[role]]
        return result_units(
            self.kernel, self.alignments, self.loops[fast] if are_together else (), self.loops[slow], around
        )

    def _stored_along(self, role: str) -> bool:
        """Return whether the first result is contiguous along the last of the loops of a role."""
        number, loops = len(self.kernel.loads), self.loops[role]
        return bool(loops) and loops[-1].strides[number] == self.accesses[number].type.bytes


_OF_WARPS = ("WARP_ROWS", "WARP_COLUMNS")
_PARTS = {CudaMode.FMA: ("TM", "TN"), CudaMode.MMA: _OF_WARPS, CudaMode.IMMA: _OF_WARPS}
"""The names of the constants of a tile's part."""


def _mode_and_operands(kernel: Kernel, contraction: Node) -> tuple[CudaMode, tuple[Node, ...]]:
    """Return how products are added, and what is multiplied: elements of FLOAT16 or the bits of BFLOAT16,
    loaded or computed, or integers of 8 bits before zero points are subtracted."""
    stored = tuple(map(stored_of, contraction.operands))
    for type in SHORT_TYPES:
        if all(each.type is type for each in stored):
            return CudaMode.MMA, stored
    bytes = [difference(each) for each in contraction.operands]
    if contraction.type is ScalarType.INT32 and all(each and is_still(kernel, each[1:]) for each in bytes):
        return CudaMode.IMMA, tuple(each[0] for each in bytes if each)
    return CudaMode.FMA, contraction.operands


def _bytes_of_stage(tile: Tile, a: TiledOperand, b: TiledOperand) -> int:
    """Return the bytes of shared memory of one tile of each operand."""
    return a.bytes(tile.rows, tile.depth) + b.bytes(tile.columns, tile.depth)


def _sums(tile: Tile) -> int:
    """Return the bytes of shared memory that the sums of a tile take, in rows or in columns."""
    return max(tile.rows * (tile.columns + 4), tile.columns * (tile.rows + 4)) * 4


def contractions(reductions: Callable[[CudaProductQuery, None], tuple[Table, Any]]) -> Table:
    """Return the ways to compute a contraction; `reductions` gives those of other reductions."""
    return (
        Candidate("as any reduction", _price_any_reduction, then=reductions),
        Candidate(
            "tiles",
            _price_tiles,
            lambda query, choice: launch_of(query.shape, choice, query.machine),
            alternatives=lambda query: estimates(query.shape, query.machine),
        ),
    )
