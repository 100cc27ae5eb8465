"""The terms of the costs of contractions: tiles in registers, blocks, and the cycles of one core for packing
and multiplying."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import loops_over, merged_neighbours
from opendml.late_dataclass import replace
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.operands import a_along_depth, b_along_depth, is_contiguous
from opendml.targets.cpu.contraction.roles import Roles
from opendml.targets.cpu.contraction.tiling import MicroKernel
from opendml.targets.cpu.machine import machine

_MICRO_KERNELS = {
    32: (MicroKernel(14, 2), MicroKernel(9, 3), MicroKernel(6, 4)),
    16: (MicroKernel(6, 2), MicroKernel(4, 3)),
}
"""The largest tiles that leave some vector registers for the operands, by the number of registers."""
_FEW, _MANY = 8, 256
"""The rows of a tile if their count varies, and the count from which on these are the most. Eight divide most
counts well. Such tiles take 1.00 to 1.06 times as long as those of an even division of 16 to 112 rows. Tiles
of 14 rows take up to 1.65 times as long (Zen 4)."""
_DIVISIONS = (1, 2, 3, 4, 6, 8, 16, 32)
"""Factors by which blocks along one dimension are smaller than the largest that fit a cache."""

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
COPIED, GATHERED, _TRANSPOSED = 6.0, 24.0, 2.0
"""Cycles to store a vector of an operand (or of results) that lies contiguous, or scattered, and the cycles
that are added if it is transposed."""
_FAR, _FAR_IN_ROWS = 18.0, 8.0
"""Additional cycles for a vector in no cache of a core's own, read in tiles, or in many rows at once."""
ROW = 10.0
"""Cycles to begin with a row."""
STARTED = 400.0
"""Cycles of an item beside its work."""
_FETCHED = 0.25
"""Additional cycles to fetch a vector from the second cache while products are added."""
LATENCY = 4.0
"""Cycles of a multiply-add from its operands to its result."""
_INSTRUCTIONS = {ScalarType.INT16: 2, ScalarType.INT32: 3}
"""Instructions of a multiply-add, by the type of packed elements; 1 for other types."""


def far_cycles(kernel: Kernel, loads: Sequence[Access], in_rows: bool = False) -> float:
    """Return the additional cycles to fetch a vector of an operand larger than a core's own cache."""
    spans = (
        sum((size - 1) * abs(stride) for size, stride in zip(kernel.domain, load.strides, strict=True))
        for load in loads
        if load.buffer is not None
    )
    if max(spans, default=0) <= machine().l2_bytes:
        return 0.0
    return _FAR_IN_ROWS if in_rows else _FAR


def copied_cycles(contiguous: bool) -> float:
    """Return the cycles to copy a vector whose elements are contiguous, or lie apart."""
    return COPIED if contiguous else GATHERED


def stored_cycles(roles: Roles, scattered: float = GATHERED) -> float:
    """Return the cycles to store a vector of results. They are `scattered` if its elements lie apart."""
    return COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else scattered


def turns_results(roles: Roles) -> bool:
    """Return whether tiles of vectors turn their results, since these lie contiguous along the rows."""
    stores = roles.epilogue.stores
    is_turned = is_contiguous(stores, roles.rows) and not is_contiguous(stores, roles.columns)
    return is_turned and roles.types[0] is F32 and roles.count(roles.rows) >= lane_count()


def packing_cycles(roles: Roles) -> tuple[float, float]:
    """Return the cycles to pack a vector of A, and of B, with what begins and ends each contiguous run."""
    result, lanes = [], lane_count()
    for part, across, along_depth in (
        (roles.a, roles.rows, a_along_depth(roles)),
        (roles.b, roles.columns, b_along_depth(roles)),
    ):
        minor = roles.depth if along_depth else across
        vector = copied_cycles(is_contiguous(part.loads, minor)) + far_cycles(part, part.loads)
        vector += _TRANSPOSED if along_depth else 0.0
        loops = merged_neighbours(loops_over(part, minor))
        run = loops[-1].count if loops else 1
        result.append(lanes * (-(-run // lanes) * vector + ROW) / run)
    return result[0], result[1]


def tile_cycles(micro: MicroKernel, packed: ScalarType = F32) -> float:
    """Return the cycles for one product (or group) of each result of a tile.

    A core starts two multiply-adds and two loads in a cycle. No multiply-add begins before the one before it
    ends. Fetching vectors of B from the second cache adds a little.
    """
    loads = (micro.rows + micro.vectors) / 2
    multiplied = micro.rows * micro.vectors / 2 * _INSTRUCTIONS.get(packed, 1)
    return max(multiplied, loads, LATENCY) + _FETCHED * micro.vectors


def even_part(count: int, most: int) -> int:
    """Return the size of the fewest parts of at most `most` elements, all about as large."""
    return -(-count // -(-count // most))


def row_tiles(count: int, few: bool) -> list[MicroKernel]:
    """Return the largest tiles, each with as many rows as the fewest parts of `count` rows have.

    Each is code of its own. If `few` serve counts that vary, there is one with a fixed number of rows.
    """
    if few:
        largest = largest_tiles()[0]
        return [replace(largest, rows=min(largest.rows, _FEW)) if count < _MANY else largest]
    return [replace(each, rows=even_part(count, each.rows)) for each in largest_tiles()]


@lru_cache(maxsize=1024)
def block_sizes(count: int, unit: int, most: int) -> list[int]:
    """Return sizes of equal parts of `count` in multiples of a unit, none larger than `most`."""
    fewest = -(-count // most)
    return sorted({unit * -(-count // (fewest * parts * unit)) for parts in _DIVISIONS})


def lane_count() -> int:
    """Return the number of float32 in a vector register."""
    return machine().lanes


def has_low_tiles() -> bool:
    """Return whether tiles have few rows, because there are 16 vector registers.

    Such tiles read few rows at once, so a hardware prefetcher follows them where they lie, however long they
    are. Packing them for each block takes a tenth of the time of its products (Zen 3).
    """
    return machine().registers == 16


def largest_tiles() -> tuple[MicroKernel, ...]:
    """Return the largest tiles that leave some vector registers for the operands."""
    return _MICRO_KERNELS[machine().registers]
