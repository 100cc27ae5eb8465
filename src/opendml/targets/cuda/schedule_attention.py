"""Schedules attention of FLOAT16 and BFLOAT16 on compute capability 9.0.

The copy engine (TMA) loads tiles of queries, keys and values. Warpgroups multiply them (wgmma). The grid is
persistent: it has no more blocks than run at once, and each block computes one tile of queries after another.

If few queries share many keys, as in decoding with a cache, several blocks read slices of the keys. The last
of these blocks adds up their results.

The copy engine must be able to load the operands: elements of queries, keys and values are contiguous, and
all other strides and addresses are multiples of 16 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from opendml.across_forks import cached_property
from opendml.compiler.attention import attention_of
from opendml.compiler.kernel import Access, number_of
from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation, ordered
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import greatest, least
from opendml.targets.common.guards import guards_of, loads_of
from opendml.targets.common.launch import loop_words
from opendml.targets.common.pattern import Step
from opendml.targets.cuda.attention_source import Scores, mask_of, terms_of
from opendml.targets.cuda.contraction_source import loads_beside
from opendml.targets.cuda.costs import reading
from opendml.targets.cuda.launch import CudaLaunch, tiled_pattern
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.parameters import launch_words
from opendml.targets.cuda.pattern import CudaAccess, CudaMode
from opendml.targets.cuda.planned_launch import VECTOR_BYTES
from opendml.targets.cuda.tensor_map import ADDRESS_ALIGNMENT, MOST_DIMENSIONS, TensorMap
from opendml.targets.cuda.warpgroup_source import UNIT
from opendml.targets.cuda.warpgroups import (
    RESERVED_BYTES,
    ROWS_OF_BOX,
    SHARED_SLACK,
    registers_of,
    threads_of,
)

if TYPE_CHECKING:
    from opendml.targets.cuda.schedule_chain import ChainShape

_BOX = 64
"""Elements of a row of a box, which has ROW_BYTES."""
_LINEAR = (Operation.ADD, Operation.SUBTRACT, Operation.CONVERT)
"""Operations that keep linear functions of counters linear."""
_PRODUCER_REGISTERS = 32
"""Registers of a thread that loads."""
_MOST_STAGES = 4
"""Tiles of keys and values in the ring, at most; an estimate."""
_MOST_ROWS = 128
"""Queries of a tile, at most, whose scores or weights take more registers than others: two warpgroups have
232 registers for each thread that multiplies, three have 160."""
_CACHED_BYTES = 16e6
"""Most bytes of keys and values in a band: a third of the L2 cache of an H100."""
_LAST_BAND = 0.75
"""Least size of the last band, as a fraction of the others. Causal attention of 64 heads of 128 over 4,096
keys took 492 us in bands of 4 on an H100. In bands of 7, the last had one matrix, and it took 519 us."""
_BEGIN_CYCLES, _TILE_CYCLES = 3000, 2200
"""Cycles of a launch before the first products are under way, and more of each tile of queries than those of
its keys."""
_PARTIAL_CYCLES = 800
"""Additional cycles of a tile of keys of which queries see a part; fitted on an H100."""
_NOT_HIDDEN = 0.4
"""Part of the cycles between tiles' products that remains if two blocks share a multiprocessor; fitted to
causal attention of heads of 64 on an H100. Over 512 to 2,048 keys two blocks take 0.83 to 1.0 of the time of
one, over 128 and 4,096 keys 1.07."""
_FEW_ROWS = 64
"""Queries of the tile whose keys several blocks may share: those of one warpgroup."""
_MOST_SLICES = 128
"""Slices of the keys of a matrix, at most; an estimate."""
_MERGE_CYCLES, _MERGE_BYTES = 2500, 24
"""Cycles in which slices of keys meet, and bytes of their sums that the last block reads in a cycle;
estimates."""
_APART_CYCLES, _APART_FACTOR = 15000, 1.25
"""Cycles of three kernels in place of one, beside reading, and their time to read keys and values over that
at full bandwidth (H100)."""
_IDLE = 0.4
"""Part of the cycles of a tile that its first 64 queries alone take; an estimate."""


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """A tile of `rows` queries of a block, 64 for each warpgroup, which reads `keys` keys at a time.

    Heads have at most `width` elements, and more than `width` - 64. `rate` is the percentage of the tensor
    cores' rate that is reached. A multiprocessor has three `blocks` if there are few keys, whose products and
    weights follow each other. It has two if causal queries see few keys: one block begins and ends tiles
    beside the products of the other.
    """

    rows: int
    keys: int
    width: int
    rate: int
    blocks: int = 1

    mode = CudaMode.WGMMA_CHAIN

    @property
    def threads(self) -> int:
        """Return the threads of a block."""
        return threads_of(self.rows // 64)

    def registers(self) -> tuple[int, int]:
        """Return the registers of a thread that loads, and of one that multiplies."""
        return registers_of(_PRODUCER_REGISTERS, self.rows // 64, self.blocks)


ATTENTION_TILES = (
    AttentionTile(_FEW_ROWS, 64, 64, 35, blocks=3),
    AttentionTile(_FEW_ROWS, 128, 64, 35),
    AttentionTile(_FEW_ROWS, 128, 64, 44, blocks=2),
    AttentionTile(_FEW_ROWS, 128, 128, 50),
    AttentionTile(_FEW_ROWS, 96, 192, 50),
    AttentionTile(_FEW_ROWS, 64, 256, 50),
    AttentionTile(192, 128, 64, 53),
    AttentionTile(128, 128, 64, 45),
    AttentionTile(128, 128, 128, 66),
    AttentionTile(128, 96, 192, 60),
    AttentionTile(128, 64, 256, 55),
)
"""The candidates. Rates of up to 128 elements were measured on an H100 with 4,096 keys; the others, and
those of few rows, are estimates."""


@dataclass(frozen=True, slots=True)
class AttentionChoice:
    """A tile, the blocks that share the keys of its queries, and the matrices of a band: blocks take all
    tiles of a band before those of the next."""

    tile: AttentionTile
    slices: int
    band: int


@dataclass(frozen=True, slots=True)
class _Linear:
    """An integer that is linear in queries and keys: `first` for the first of both, and its steps."""

    rows: int
    keys: int
    first: int

    def plus(self, other: _Linear, sign: int) -> _Linear:
        return _Linear(
            self.rows + sign * other.rows, self.keys + sign * other.keys, self.first + sign * other.first
        )


class AttentionShape:
    """The loops and operands of a softmax between products, for tiles of warpgroups.

    Tiles of queries lie along the longest loop over queries. The other loops are part of the batch. A tile of
    few queries lies along two loops if there are two: queries, and heads that share keys.
    """

    def __init__(self, chain: ChainShape, alignments: Sequence[int]) -> None:
        self._chain, self.kernel, self._alignments = chain, chain.kernel, alignments
        self.accesses: tuple[Access, ...] = (*self.kernel.loads, *self.kernel.stores)
        rows = chain.loops["m"]
        still = Loop(1, (0,) * len(self.accesses))
        self._rows: tuple[Loop, ...] = tuple(rows) or (still,)
        if len(rows) > 2 or chain.m > _FEW_ROWS:
            self._rows = (max(self._rows, key=lambda loop: loop.count),)
        self.groups = (
            *chain.loops["batch"],
            *(loop for loop in rows if not any(loop is each for each in self._rows)),
        )
        self._row_count = math.prod(loop.count for loop in self._rows)
        self._depth, self._columns, self._keys = (
            (chain.loops[role] or [still])[-1] for role in ("depth", "n", "keys")
        )
        self.batch_count = math.prod(loop.count for loop in self.groups)

    @cached_property
    def padded(self) -> tuple[int, int]:
        """Return the elements of a query and of a value, rounded up to whole boxes."""
        # The code is made for these numbers.
        depth, width = (index(-(-loop.count // _BOX) * _BOX) for loop in (self._depth, self._columns))
        return depth, width

    @property
    def _has_few_rows(self) -> bool:
        """Return whether one warpgroup computes all queries, whose keys several blocks may share."""
        return self._row_count <= _FEW_ROWS

    @cached_property
    def _parts(self) -> int:
        """Return how many numbers of the values' type a weight is the sum of: one where results are rounded
        to it, else two."""
        type = self.kernel.loads[self._loads[2]].type
        return 1 if all(store.type is type for store in self.kernel.stores) else 2

    @property
    def _is_bfloat16(self) -> bool:
        return not self._chain.half

    @cached_property
    def _loads(self) -> tuple[int, int, int]:
        q, k, v = map(number_of, self._chain.tensors)
        return q, k, v

    @cached_property
    def is_loadable(self) -> bool:
        """Return whether the copy engine can load the operands, and no access is guarded."""
        tensors = self._chain.tensors
        if not tensors or any(len(self._chain.loops[role]) > 1 for role in ("depth", "n", "keys")):
            return False
        if any(each.operation is not Operation.SOURCE or each.operands for each in tensors):
            return False
        # Few sums of BFLOAT16 would have the bits of FLOAT32.
        if self._is_bfloat16 and self._parts > 1:
            return False
        chain = attention_of(self.kernel.values)
        assert chain is not None
        if not self._guarded.isdisjoint(loads_beside(chain.results, self.kernel.values)):
            return False
        keys = (self._keys,)
        directions = ((self._depth, self._rows), (self._depth, keys), (self._columns, keys))
        return all(self._is_tensor(load, *loops) for load, loops in zip(self._loads, directions, strict=True))

    @cached_property
    def _guarded(self) -> set[int]:
        return set(guards_of(self.kernel.values))

    def _is_tensor(self, load: int, along: Loop, rows: Sequence[Loop]) -> bool:
        """Return whether a tensor map can describe an operand."""
        access = self.kernel.loads[load]
        around = [loop for loop in self.groups if loop.strides[load]]
        strides = [loop.strides[load] for loop in (*rows, *around) if loop.count > 1]
        return (
            access.buffer is not None
            and self._alignments[load] >= ADDRESS_ALIGNMENT
            and along.strides[load] == access.type.bytes
            and 1 + len(rows) + len(around) <= MOST_DIMENSIONS
            and all(0 < stride < 2**40 and stride % ADDRESS_ALIGNMENT == 0 for stride in strides)
            and all(loop.count < 2**31 - 2**12 for loop in (along, *rows, *around))
        )

    def pays_for_few_rows(self, machine: CudaMachine) -> bool:
        """Return whether one kernel takes less time than a product, a softmax and another product.

        These read keys and values once, too, if there are too few queries for tiles.
        """
        bytes = 2 * self.batch_count * self._keys.count * (self._depth.count + self._columns.count)
        apart = _APART_CYCLES + _APART_FACTOR * reading(machine, bytes)
        return any(
            self.takes(tile, machine) and self.cycles(tile, machine) <= apart for tile in ATTENTION_TILES
        )

    def fills(self, tile: AttentionTile, machine: CudaMachine) -> bool:
        """Return whether a tile is large enough: one warpgroup is for few queries, or for a device that other
        tiles do not fill."""
        if tile.blocks == 2:
            return self._shares_multiprocessor(tile)
        # Weights of two parts take more registers than several blocks leave.
        if tile.blocks > 1 and (self._keys.count > tile.keys or self._parts > 1):
            return False
        tiles = self.batch_count * -(-self._row_count // _MOST_ROWS)
        return tile.rows > _FEW_ROWS or self._has_few_rows or tiles < machine.multiprocessors

    def _shares_multiprocessor(self, tile: AttentionTile) -> bool:
        """Return whether two blocks, whose queries see few keys, hide each other's first and last steps."""
        is_pair = tile.blocks == 2 and self._parts == 1 and self._keys.count > 2 * tile.keys
        return is_pair and self._hides and not self._has_few_rows

    def takes(self, tile: AttentionTile, machine: CudaMachine) -> bool:
        """Return whether a tile is for heads of this size, and fits in shared memory."""
        # Three warpgroups have too few registers for more than plain scores and weights.
        is_plain = self._parts == 1 and self._scores.scaled_by is not None
        fits = max(self.padded) == tile.width and self._stages(tile, machine) > 1
        fits = fits and (tile.rows == _FEW_ROWS or not self._has_few_rows)
        return fits and (is_plain or tile.rows <= _MOST_ROWS)

    def _stages(self, tile: AttentionTile, machine: CudaMachine) -> int:
        depth, _ = self.padded
        free_bytes = (
            machine.shared_bytes // tile.blocks - RESERVED_BYTES - SHARED_SLACK - tile.rows * depth * 2
        )
        free_bytes -= self._term_bytes(tile)
        return min(_MOST_STAGES, free_bytes // self._stage_bytes(tile))

    def _stage_bytes(self, tile: AttentionTile) -> int:
        return tile.keys * sum(self.padded) * 2

    def _term_bytes(self, tile: AttentionTile) -> int:
        """Return the bytes of shared memory for the terms of a tile of keys, which each warp has."""
        return 4 * self._terms * tile.keys * (tile.rows // 16)

    @cached_property
    def _terms(self) -> int:
        """Return the number of parts of a score that are computed once for each key."""
        patterns = [self._pattern(number) for number in range(len(self.kernel.loads))]
        chain = attention_of(self.kernel.values)
        assert chain is not None
        return len(terms_of(self._scores.visible, chain.products, patterns).terms)

    def cycles(self, tile: AttentionTile, machine: CudaMachine) -> float:
        """Return the estimated cycles of the kernel in a tile."""
        each = tile.rows * tile.keys * sum(self.padded) / (tile.rate / 100 * machine.half_products)
        if self._has_few_rows:
            return self._slices(tile, machine)[1]
        between: float = _TILE_CYCLES + self._hides * -(-tile.rows // tile.keys) * _PARTIAL_CYCLES
        if self._shares_multiprocessor(tile):
            between *= _NOT_HIDDEN
        full, rest = divmod(self._row_count, tile.rows)
        last = _IDLE + (1 - _IDLE) * -(-rest // 64) * 64 / tile.rows
        # If there are many tiles, price a sample of them.
        step = max(1, full // 64)
        cycles = [
            self._blocks(tile, (number + 1) * tile.rows - 1) * each + between
            for number in range(0, full, step)
        ]
        total = sum(cycles) * full / max(1, len(cycles))
        longest = max(cycles, default=0.0)
        if rest:
            rest_cycles = self._blocks(tile, self._row_count - 1) * each * last + between
            total, longest = total + rest_cycles, max(longest, rest_cycles)
        total *= self.batch_count
        # Tiles of equal length end together, so the last wave counts as a whole.
        rounds = 1 if rest or self._hides else math.ceil(total / longest / machine.multiprocessors)
        return _BEGIN_CYCLES + max(total / machine.multiprocessors, rounds * longest)

    def _slices(self, tile: AttentionTile, machine: CudaMachine) -> tuple[int, float]:
        """Return how many tiles of keys a block reads of each matrix, and the cycles of the kernel."""
        each = tile.rows * tile.keys * sum(self.padded) / (tile.rate / 100 * machine.half_products)
        each = max(each, reading(machine, machine.multiprocessors * self._stage_bytes(tile)))
        blocks = -(-self._keys.count // tile.keys)
        sums = 4 * self._row_count * self.padded[1]

        def cycles(own: int) -> float:
            slices = -(-blocks // own)
            merging = (_MERGE_CYCLES + slices * sums / _MERGE_BYTES) * (slices > 1)
            rounds = -(-self.batch_count * slices // (machine.multiprocessors * tile.blocks))
            return _BEGIN_CYCLES + rounds * (own * each * tile.blocks + _TILE_CYCLES) + merging

        ways = sorted({-(-blocks // slices) for slices in range(1, min(blocks, _MOST_SLICES) + 1)})
        return min(((own, cycles(own)) for own in reversed(ways)), key=lambda way: way[1])

    def _blocks(self, tile: AttentionTile, row: int) -> int:
        """Return the tiles of keys that are read by a tile of queries whose last query is at a row."""
        return -(-self._visible_keys(row) // tile.keys)

    def choice(self, tile: AttentionTile, machine: CudaMachine) -> AttentionChoice:
        """Return how a tile is best used."""
        slices, down = 1, -(-self._row_count // tile.rows)
        if self._has_few_rows:
            own_blocks, _ = self._slices(tile, machine)
            slices = -(-self._keys.count // (tile.keys * own_blocks))
        return AttentionChoice(tile, slices, self._band(max(1, round(machine.multiprocessors / down))))

    def launch(self, choice: AttentionChoice, machine: CudaMachine) -> CudaLaunch:
        """Return the launch in a tile.

        Raises:
            ValueError: the tile cannot compute the kernel.
        """
        tile = choice.tile
        if not self.is_loadable or not self.takes(tile, machine):
            raise ValueError(f"{self.kernel} does not fit {tile}")
        down = -(-self._row_count // tile.rows)
        blocks = -(-self._keys.count // tile.keys)
        own_blocks = -(-blocks // choice.slices)
        slices = -(-blocks // own_blocks)
        items = self.batch_count * down * slices
        producer, consumer = tile.registers()
        (depth, width), stages = self.padded, self._stages(tile, machine)
        q, k, v = self._loads
        constants = {
            "THREADS": tile.threads,
            "BLOCKS": tile.blocks,
            "ROWS": tile.rows,
            "KEYS": tile.keys,
            "DEPTH": depth,
            "WIDTH": width,
            "STAGES": stages,
            "PARTS": self._parts,
            "BFLOAT16": int(self._is_bfloat16),
            "HIDES": int(self._hides),
            "SPLIT": int(slices > 1),
            "TERMS": self._terms,
            "MASKED": int(self._is_masked and tile.keys % 64 == 0),
            "PAIRED": sum(1 << number for number in range(len(self.kernel.loads)) if self._is_paired(number)),
            "PRODUCER_REGISTERS": producer,
            "CONSUMER_REGISTERS": consumer,
            "LOOPS_M": len(self._rows),
            "LOOPS_N": 1,
            "LOOPS_KEYS": 1,
            "Q_LOAD": q,
            "K_LOAD": k,
            "V_LOAD": v,
            "Q_ALONG_K": 1,
            "K_ALONG_K": 1,
            "V_ALONG_K": 0,
        }
        rows = *self._rows, self._columns, self._keys
        patterns = [self._pattern(number) for number in range(len(self.accesses))]
        loops = (*self.groups, *rows)
        pattern = tiled_pattern(tile.mode, self.kernel, patterns, loops, items * tile.rows, constants)
        band = least(choice.band, self.batch_count)
        tiles = band * down if self._hides else greatest(1, self._row_count // tile.rows)
        words = launch_words(
            pattern.mode,
            items=items,
            queries=self._row_count,
            n=self._columns.count,
            keys=self._keys.count,
            matrices=self.batch_count,
            band=band,
            tiles_down=down,
            slice_tiles=own_blocks,
            run_items=slices if slices > 1 else tiles,
        )
        steps = {f"step{number}": stride for number, stride in enumerate(self._columns.strides)}
        return CudaLaunch(
            pattern,
            least(items, machine.multiprocessors * tile.blocks),
            tile.threads,
            loop_words(self.kernel, self.groups, rows) | words | steps,
            counters_bytes=4 + 4 * self.batch_count * (slices > 1),
            scratch_bytes=4 * items * self._row_count * (width + 2) if slices > 1 else 0,
            shared_bytes=tile.rows * depth * 2
            + stages * self._stage_bytes(tile)
            + self._term_bytes(tile)
            + SHARED_SLACK,
            maps=(
                # Boxes that reach beyond the tensor load more slowly. The kernel expects the bytes of this
                # box.
                self._map(q, self._depth, self._rows, self._box_of_queries(tile)),
                self._map(k, self._depth, (self._keys,), (tile.keys,)),
                self._map(v, self._columns, (self._keys,), (tile.keys,)),
            ),
        )

    def _box_of_queries(self, tile: AttentionTile) -> tuple[int, ...]:
        """Return the queries of a box along the loops over them, the innermost first."""
        if len(self._rows) > 1:
            return tuple(loop.count for loop in reversed(self._rows))
        return (least(tile.rows, -(-self._row_count // ROWS_OF_BOX) * ROWS_OF_BOX),)

    @property
    def computed_mask(self) -> Node | None:
        """Return the truth value of each query and key that scores depend on, if nothing else that they need
        depends on keys. None if it is not computed of one tensor."""
        chain = attention_of(self.kernel.values)
        assert chain is not None
        nodes = list(ordered([self._scores.visible], {id(chain.products)}))
        numbers = [number_of(node) for node in nodes if node.operation is Operation.SOURCE]
        keyed = {number for number in numbers if self._keys.strides[number]}
        if len(keyed) != 1 or self._guarded:
            return None
        (number,) = keyed
        if self.kernel.loads[number].buffer is None or not any(loop.strides[number] for loop in self._rows):
            return None
        # Operands come before what is computed of them.
        found = next(
            (each for each in nodes if each.type is ScalarType.BOOLEAN and number in loads_of([each])), None
        )
        if found is None or found.operation is Operation.SOURCE or chain.products in ordered([found]):
            return None
        return found

    @cached_property
    def _is_masked(self) -> bool:
        """Return whether scores depend on truth values that can be read in units of 16 bytes along keys."""
        chain = attention_of(self.kernel.values)
        assert chain is not None
        patterns = [self._pattern(number) for number in range(len(self.kernel.loads))]
        mask = mask_of(self._scores.visible, chain.products, patterns)
        if mask is None or self._keys.count % VECTOR_BYTES:
            return False
        number = number_of(mask)
        strides = [loop.strides[number] for loop in (*self.groups, *self._rows)]
        is_aligned = not any(each % VECTOR_BYTES for each in (self._alignments[number], *strides))
        return is_aligned and self._keys.strides[number] == 1

    def _is_paired(self, number: int) -> bool:
        """Return whether two neighbouring keys can read an access together."""
        access, bytes = self.kernel.loads[number], 2 * self.kernel.loads[number].type.bytes
        if access.buffer is None or 2 * self._keys.strides[number] != bytes or self._keys.count % 2:
            return False
        if number in self._guarded:
            return False
        strides = [loop.strides[number] for loop in (*self.groups, *self._rows)]
        return self._alignments[number] % min(bytes, VECTOR_BYTES) == 0 and not any(
            each % bytes for each in strides
        )

    @cached_property
    def _scores(self) -> Scores:
        chain = attention_of(self.kernel.values)
        assert chain is not None
        return Scores.of(chain.scores, chain.products)

    @cached_property
    def _hides(self) -> bool:
        """Return whether positions alone hide keys from queries: all keys from one on, which is no earlier
        for later queries."""
        ahead = self._distance_beyond
        return ahead is not None and ahead.keys > 0 >= ahead.rows

    @cached_property
    def _distance_beyond(self) -> _Linear | None:
        """Return how far a key lies behind the last visible one; it is hidden if that is positive."""
        hidden = self._scores.hidden
        if hidden is None:
            return None
        smaller, greater = map(self._linear, hidden.operands)
        if smaller is None or greater is None:
            return None
        equal = int(hidden.operation is Operation.LESS_EQUAL)
        return greater.plus(smaller, -1).plus(_Linear(0, 0, equal), 1)

    def _linear(self, node: Node) -> _Linear | None:
        """Return an integer as a linear function of counters; None if it is none."""
        if node.operation is Operation.SOURCE and not node.operands:
            number = number_of(node)
            load = self.kernel.loads[number]
            steps = [loop.strides[number] for loop in self._rows if loop.strides[number]]
            if load.buffer is not None or len(steps) > 1:
                return None
            return _Linear(sum(steps), self._keys.strides[number], load.offset)
        if node.operation is Operation.CONSTANT and isinstance(node.attribute, int):
            return _Linear(0, 0, node.attribute)
        if node.operation not in _LINEAR or node.type.is_float:
            return None
        found = [each for operand in node.operands if (each := self._linear(operand)) is not None]
        if len(found) < len(node.operands):
            return None
        sign = -1 if node.operation is Operation.SUBTRACT else 1
        return found[0] if len(found) == 1 else found[0].plus(found[1], sign)

    def _visible_keys(self, row: int) -> int:
        """Return how many keys a query of the first matrix sees."""
        ahead = self._distance_beyond
        if not self._hides or ahead is None:
            return self._keys.count
        seen = -(ahead.rows * row + ahead.first) // ahead.keys + 1
        return min(max(seen, 0), self._keys.count)

    def _band(self, least: int) -> int:
        """Return the number of matrices in a band: as many as leave their keys and values in the cache, or
        `least`. A small last band would leave multiprocessors idle, so it has at least `_LAST_BAND` of that
        number."""
        kept = int(_CACHED_BYTES // (self._keys.count * sum(self.padded) * 2))
        most = min(self.batch_count, max(kept, least))
        return next(
            band for band in range(most, 0, -1) if (self.batch_count - 1) % band + 1 >= _LAST_BAND * band
        )

    def _map(self, load: int, along: Loop, rows: Sequence[Loop], box: tuple[int, ...]) -> TensorMap:
        """Return the tensor map of an operand.

        The dimensions are the contiguous one, those over rows, and those over matrices. `box` has the
        elements of a box along each dimension over rows.
        """
        around = [loop for loop in reversed(self.groups) if loop.strides[load]]
        outer = [*reversed(rows), *around]
        return TensorMap(
            load,
            self.kernel.loads[load].type,
            tuple(loop.count for loop in (along, *outer)),
            # The stride of a dimension of one element is not used, but has to be valid.
            tuple(loop.strides[load] if loop.count > 1 else ADDRESS_ALIGNMENT for loop in outer),
            (_BOX, *box, *(1 for _ in around)),
        )

    def _pattern(self, number: int) -> CudaAccess:
        """Return how an access moves: in units along the columns where it is contiguous and aligned there."""
        access = self.accesses[number]
        loops = *self._rows, self._columns, self._keys
        return CudaAccess(
            access.type,
            self._step(number, access),
            tuple(loop.strides[number] != 0 for loop in self.groups),
            tuple(loop.strides[number] != 0 for loop in loops),
            counter=access.buffer is None,
            guarded=number in self._guarded,
        )

    def _step(self, number: int, access: Access) -> Step:
        stride = self._columns.strides[number]
        if not stride:
            return Step.NONE
        if access.buffer is None or stride != access.type.bytes:
            return Step.STRIDED
        unit = min(VECTOR_BYTES, UNIT * access.type.bytes)
        aligned = self._alignments[number] % unit == 0
        aligned = aligned and all(loop.strides[number] % unit == 0 for loop in (*self.groups, *self._rows))
        return Step.CONTIGUOUS if aligned else Step.STRIDED
