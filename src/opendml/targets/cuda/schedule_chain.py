"""Decides how a softmax between products is computed: by blocks that have some queries each, and take some
keys in at a time.

How queries are divided changes no bit of the results: each takes the same keys in, in the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from opendml.compiler.kernel import Kernel
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass
from opendml.program.carriers import bits_of_bfloat16
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import is_surely_less
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.guards import loads_of
from opendml.targets.common.launch import loop_words, power_of_two
from opendml.targets.common.roles import AttentionRoles, attention_roles, count_of, loops_from_results
from opendml.targets.cuda.contraction_source import half_of
from opendml.targets.cuda.launch import CudaLaunch, Table, tiled_pattern
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.schedule_attention import ATTENTION_TILES, AttentionChoice, AttentionShape
from opendml.targets.cuda.schedule_contraction import CudaProductQuery
from opendml.targets.cuda.schedule_few_rows import FewRowsChoice, FewRowsShape
from opendml.targets.cuda.tiled_operand import TiledOperand, access_patterns

_WIDEST, _WIDEST_HALF = 128, 256
"""Most elements of a query or a value: the columns whose results a thread can hold. FLOAT16 may have more
where warpgroups multiply."""
_LEAST_WIDTH = 16
"""Elements to which shorter ones are filled up."""
_FEWEST_ROWS = 16
"""Queries that share keys from which on a block of them pays. Warpgroups take fewer where that is faster."""
_RESERVED_BYTES = 1024
"""Bytes of shared memory that the system takes for itself in each block."""
_STEP_LATENCY = 3000
"""Cycles that a block waits for some keys, their scores and weights, one after the other."""
_ROLES = ("batch", "m", "n", "depth", "keys")


@dataclass(frozen=True, slots=True)
class ChainTile:
    """A tile of `rows` queries, which a block multiplies by `keys` keys at a time.

    Args:
        mode: the code.
        rows, keys: the queries of a block, and the keys of a step.
        threads: those of a block.
        stages: the tiles of keys and values in shared memory.
        blocks: the least number of blocks that a multiprocessor runs.
        rate: the products that a multiprocessor adds up in a cycle, about.
        width: the least number of elements of a value, filled up, that the tile is for.
    """

    mode: CudaMode
    rows: int
    keys: int
    threads: int
    stages: int
    blocks: int
    rate: int
    width: int = 0


CHAIN_TILES = (
    ChainTile(CudaMode.FMA_CHAIN, 128, 64, 256, 2, 1, 80),
    ChainTile(CudaMode.FMA_CHAIN, 64, 64, 256, 2, 1, 55),
    ChainTile(CudaMode.FMA_CHAIN, 64, 32, 256, 2, 2, 50),
    ChainTile(CudaMode.FMA_CHAIN, 64, 32, 256, 1, 2, 40),
    ChainTile(CudaMode.MMA_CHAIN, 64, 64, 128, 2, 2, 500),
    ChainTile(CudaMode.MMA_CHAIN, 64, 64, 128, 1, 4, 520),
    ChainTile(CudaMode.MMA_CHAIN, 128, 64, 256, 1, 2, 510),
    ChainTile(CudaMode.MMA_CHAIN, 128, 64, 128, 1, 2, 620, width=128),
    ChainTile(CudaMode.MMA_CHAIN, 128, 64, 256, 1, 1, 510, width=256),
)
"""The candidates; rates are estimates."""


_Choice = AttentionChoice | ChainTile | FewRowsChoice


def is_chained(kernel: Kernel, machine: CudaMachine) -> bool:
    """Return whether a kernel is a softmax between products that is computed as one.

    Queries of traced sizes count as many, unless they are few for all sizes. The hints are those of the sizes
    that came first, and kernels are fused for all sizes.
    """
    plainly, alignments = plain(kernel), [VECTOR_BYTES] * len(kernel.accesses)
    if FewRowsShape.of(plainly, alignments) is not None:
        return True
    shape = ChainShape.of(plainly)
    if shape is None or (shape.is_wide and not machine.multiplies_by_warpgroups):
        return False
    if not is_surely_less(math.prod([kernel.domain[each] for each in shape.queries]), _FEWEST_ROWS):
        return True
    attention = AttentionShape(shape, alignments)
    return machine.multiplies_by_warpgroups and attention.is_loadable and attention.pays_for_few_rows(machine)


def chain_cycles(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> float:
    """Return the cycles of a softmax between products in the tile that is taken."""
    best = _price(CudaProductQuery(kernel, machine, alignments))
    assert isinstance(best, Estimate)
    return best.cycles


def _estimates(query: CudaProductQuery) -> Iterator[Estimate[_Choice]]:
    """Yield the estimates of all tiles, and of few queries. Tiles of others than warpgroups are for more
    queries, and operands that the copy engine cannot load."""
    shape, machine, alignments = ChainShape.of(query.kernel), query.machine, query.alignments
    few_rows = FewRowsShape.of(query.kernel, alignments)
    warpgroups = [] if shape is None else list(_by_warpgroups(shape, machine, alignments))
    # Warpgroups take 3 to 25 percent less time for 2 to 12 queries, and 5 to 13 more for one (H100).
    if few_rows is not None and (few_rows.m == 1 or not warpgroups):
        choice, cycles = few_rows.choice(machine)
        yield Estimate(choice, {"products": cycles}, name=f"few rows in {choice.slices} slices")
        return
    if shape is None or warpgroups:
        yield from warpgroups
        return
    tiles = list(chain_tiles(shape, machine, alignments))
    # How many keys are taken in at a time depends on nothing but their sizes and the device.
    keys = max((tile.keys for tile in tiles), default=0)
    for tile in tiles:
        if tile.keys == keys:
            name = f"{tile.mode.value} {tile.rows}x{tile.keys} in {tile.stages} stages"
            yield Estimate(tile, {"products": shape.cycles(tile, machine, alignments)}, name=name)


def _by_warpgroups(
    shape: ChainShape, machine: CudaMachine, alignments: Sequence[int]
) -> Iterator[Estimate[_Choice]]:
    """Yield the estimates of tiles that the copy engine loads."""
    attention = AttentionShape(shape, alignments)
    if machine.multiplies_by_warpgroups and attention.is_loadable:
        for each in ATTENTION_TILES:
            if attention.takes(each, machine) and attention.fills(each, machine):
                cycles, name = attention.cycles(each, machine), f"{each.mode.value} {each.rows}x{each.keys}"
                yield Estimate(attention.choice(each, machine), {"products": cycles}, name=name)


def _price(query: CudaProductQuery) -> Estimate[_Choice] | Refusal:
    best = min(_estimates(query), key=lambda each: each.cycles, default=None)
    return best or Refusal("heads are too wide, or operands are not in memory")


def _construct(query: CudaProductQuery, choice: _Choice) -> CudaLaunch:
    if isinstance(choice, FewRowsChoice):
        few_rows = FewRowsShape.of(query.kernel, query.alignments)
        if few_rows is None:
            raise ValueError(f"{query.kernel} is no attention of few queries")
        return few_rows.launch(choice, query.machine)
    shape = ChainShape.of(query.kernel)
    if shape is None:
        raise ValueError(f"{query.kernel} is no attention in tiles")
    if isinstance(choice, AttentionChoice):
        return AttentionShape(shape, query.alignments).launch(choice, query.machine)
    if choice not in chain_tiles(shape, query.machine, query.alignments):
        raise ValueError(f"{query.kernel} does not fit {choice}")
    return shape.launch(choice, query.alignments)


ATTENTION: Table = (Candidate("attention in tiles", _price, _construct, alternatives=_estimates),)
"""The ways to compute a softmax between products."""


def chain_tiles(shape: ChainShape, machine: CudaMachine, alignments: Sequence[int]) -> Iterator[ChainTile]:
    """Yield the tiles that fit into shared memory."""
    for tile in CHAIN_TILES:
        fits = shape.shared_bytes(tile, alignments) <= machine.shared_bytes - _RESERVED_BYTES
        fits = fits and (shape.padded[1] >= tile.width or shape.is_wide)
        # Results of wide heads take half of the registers of a thread, so only the tile made for them fits.
        fits = fits and shape.is_wide is (tile.width > _WIDEST)
        if fits and (tile.mode is CudaMode.MMA_CHAIN) is shape.half:
            yield tile


class ChainShape:
    """The loops of a softmax between products by their roles, and its operands.

    Queries and keys have the loops `depth` in common. The values of keys lie along `n`.
    """

    def __init__(self, kernel: Kernel, roles: AttentionRoles) -> None:
        self.kernel = kernel
        operands = [roles.queries, roles.keys, roles.nodes.weighted]
        halves = list(map(half_of, operands))
        self.half = all(each.type is ScalarType.FLOAT16 for each in halves)
        self.values = halves if self.half else operands
        bits = [each for operand in operands if (each := bits_of_bfloat16(operand)) is not None]
        self.tensors = halves if self.half else bits if len(bits) == len(operands) else []
        """The operands that warpgroups may multiply: FLOAT16, or the bits of BFLOAT16."""
        own = roles.batch, roles.m, roles.n, roles.depth, roles.k
        self.loops = {
            role: loops_from_results(kernel, dimensions) for role, dimensions in zip(_ROLES, own, strict=True)
        }
        self.batch_count, self.m, self.n, self.depth, self.keys = (
            count_of(self.loops[role]) for role in _ROLES
        )
        self.queries = roles.m
        """The dimensions over queries."""
        self.queries_first = roles.nodes.products.operands[0] is roles.queries

    @classmethod
    def of(cls, kernel: Kernel) -> ChainShape | None:
        """Return the shape of a kernel; None if it is no chain, or its heads are too wide."""

        def is_read(value: Node) -> bool:
            return any(kernel.loads[number].buffer is not None for number in loads_of([value]))

        for roles in attention_roles(kernel):
            is_plain = roles.nodes.blind is None
            if is_plain and all(map(is_read, (roles.queries, roles.keys, roles.nodes.weighted))):
                found = cls(kernel, roles)
                return found if found._is_taken() else None
        return None

    def _is_taken(self) -> bool:
        widest = _WIDEST_HALF if self.half else _WIDEST
        counts = self.batch_count, self.m, self.keys
        return self.depth <= widest and self.n <= widest and all(count < 2**30 for count in counts)

    @property
    def is_wide(self) -> bool:
        """Return whether heads have more elements than devices without warpgroups take."""
        return max(self.padded) > _WIDEST

    @property
    def padded(self) -> tuple[int, int]:
        """The elements of a query, and of what is weighted, filled up."""
        depth, width = (max(_LEAST_WIDTH, power_of_two(count)) for count in (self.depth, self.n))
        return depth, width

    def cycles(self, tile: ChainTile, machine: CudaMachine, alignments: Sequence[int]) -> float:
        """Return the cycles of a tile. The rate has those of operands that are only loaded; computed ones
        take more: queries once in each block, keys and values once for each of its tiles of keys."""
        blocks = self.batch_count * -(-self.m // tile.rows)
        waves = -(-blocks // machine.multiprocessors)
        each = tile.rows * tile.keys * sum(self.padded) / tile.rate
        together = min(waves, tile.blocks)
        depth, width = self.padded
        tiles = (tile.rows, depth), (tile.keys, depth), (width, tile.keys)
        q, k, v = (
            0.0 if value.operation is Operation.SOURCE else machine.operation_cycles(operand.loading(*sizes))
            for value, operand, sizes in zip(self.values, self.operands(alignments), tiles, strict=True)
        )
        step = max(each + k + v, _STEP_LATENCY / tile.stages / together)
        return waves * (q + -(-self.keys // tile.keys) * step)

    def operands(self, alignments: Sequence[int]) -> tuple[TiledOperand, TiledOperand, TiledOperand]:
        """Return queries, keys and values as operands that go to shared memory in tiles."""
        loops = self.loops
        directions = (("m", "depth"), ("keys", "depth"), ("n", "keys"))
        q, k, v = (
            TiledOperand(value, self.kernel, alignments, loops["batch"], loops[rows], loops[depth])
            for value, (rows, depth) in zip(self.values, directions, strict=True)
        )
        return q, k, v

    def shared_bytes(self, tile: ChainTile, alignments: Sequence[int]) -> int:
        """Return the bytes of shared memory of a block.

        It has one tile of queries, the stages of keys and values, and weights that are not in registers."""
        q, k, v = self.operands(alignments)
        depth, width = self.padded
        stage = k.bytes(tile.keys, depth) + v.bytes(width, tile.keys)
        weights = 0 if self.half else 4 * tile.keys * (tile.rows + 4)
        return q.bytes(tile.rows, depth) + tile.stages * stage + weights

    def launch(self, tile: ChainTile, alignments: Sequence[int]) -> CudaLaunch:
        """Return the launch of a tile."""
        down = -(-self.m // tile.rows)
        grid = self.batch_count * down
        depth, width = self.padded
        rows = tuple(loop for role in _ROLES[1:] for loop in self.loops[role])
        constants = {
            "THREADS": tile.threads,
            "BLOCKS": tile.blocks,
            "ROWS": tile.rows,
            "KEYS": tile.keys,
            "DEPTH": depth,
            "WIDTH": width,
            "STAGES": tile.stages,
            "QUERIES_FIRST": int(self.queries_first),
            **{f"LOOPS_{role.upper()}": len(self.loops[role]) for role in _ROLES[1:]},
        }
        operands = self.operands(alignments)
        for name, operand in zip("QKV", operands, strict=True):
            constants |= {f"{name}_{key}": value for key, value in operand.constants().items()}
        patterns = access_patterns(self.kernel, self.loops["batch"], rows, operands)
        loops = (*self.loops["batch"], *rows)
        pattern = tiled_pattern(tile.mode, self.kernel, patterns, loops, grid, constants)
        words = launch_words(tile.mode, m=self.m, n=self.n, keys=self.keys, depth=self.depth, tiles_down=down)
        for operand in operands:
            words |= operand.lane_steps()
        return CudaLaunch(
            pattern,
            grid,
            tile.threads,
            loop_words(self.kernel, self.loops["batch"], rows) | words,
            shared_bytes=self.shared_bytes(tile, alignments),
        )
