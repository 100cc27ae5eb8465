"""What ways to compute products are made of, and what each part costs: tiles in registers, blocks, and the
cycles of one core for packing and multiplying."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import merged_neighbours
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.operands import a_along_depth, b_along_depth, is_contiguous
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import MicroKernel
from opendml.targets.cpu.contraction.roles import Roles, loops_over
from opendml.targets.cpu.machine import machine

_MICRO_KERNELS = {
    32: (MicroKernel(14, 2), MicroKernel(9, 3), MicroKernel(6, 4)),
    16: (MicroKernel(6, 2), MicroKernel(4, 3)),
}
"""By the number of vector registers, the largest tiles that leave some for the operands."""
_DIVISIONS = (1, 2, 3, 4, 6, 8, 16, 32)
"""How many blocks of results there are along one dimension: so many times as few as fit a cache each."""

# Cycles of one core, fitted on an Intel Xeon with AVX-512 and 2 MB of second cache, November 2026.
COPIED, GATHERED, _TRANSPOSED = 6.0, 24.0, 2.0
"""Cycles to put down a vector of an operand that lies contiguous (or of results that do), or scattered, and
what it takes more where it lies across."""
_FAR, _FAR_IN_ROWS = 18.0, 8.0
"""Cycles more for a vector that is in no cache of a core's own, read in tiles, or in many rows at once."""
ROW = 10.0
"""Cycles to begin with a row."""
STARTED = 400.0
"""Cycles that an item takes apart from its work."""
_FETCHED = 0.25
"""Cycles that fetching a vector from the second cache takes longer than what else goes on meanwhile."""
LATENCY = 4.0
"""Cycles of a multiply-add from its operands to its result."""
CLAIMED = 60_000
"""Cycles of work that a thread claims at a time."""
_INSTRUCTIONS = {ScalarType.INT16: 2, ScalarType.INT32: 3}
"""Instructions of a multiply-add, by the type of what is packed, where it is not one."""


def far_cycles(kernel: Kernel, loads: Sequence[Access], in_rows: bool = False) -> float:
    """Cycles by which fetching a vector takes longer because an operand is larger than a core's own cache."""
    spans = (
        sum((size - 1) * abs(stride) for size, stride in zip(kernel.domain, load.strides, strict=True))
        for load in loads
        if load.buffer is not None
    )
    if max(spans, default=0) <= machine().l2_bytes:
        return 0.0
    return _FAR_IN_ROWS if in_rows else _FAR


def copied_cycles(contiguous: bool) -> float:
    return COPIED if contiguous else GATHERED


def packing_cycles(roles: Roles, lanes: int) -> tuple[float, float]:
    """Cycles for as many elements of either operand as a vector has lanes, with what begins and ends each
    part that lies together."""
    a_minor = roles.depth if a_along_depth(roles) else roles.rows
    b_minor = roles.depth if b_along_depth(roles) else roles.columns
    a = copied_cycles(is_contiguous(roles.a.loads, a_minor)) + far_cycles(roles.a, roles.a.loads)
    b = copied_cycles(is_contiguous(roles.b.loads, b_minor)) + far_cycles(roles.b, roles.b.loads)
    if a_along_depth(roles):
        a += _TRANSPOSED
    if b_along_depth(roles):
        b += _TRANSPOSED
    result = []
    for part, minor, vector in ((roles.a, a_minor, a), (roles.b, b_minor, b)):
        loops = merged_neighbours(loops_over(part, minor))
        run = loops[-1].count if loops else 1
        result.append(lanes * (-(-run // lanes) * vector + ROW) / run)
    return result[0], result[1]


def tile_cycles(micro: MicroKernel, packed: ScalarType = F32) -> float:
    """Cycles for one product of each result of a tile, or one word of such, of what is packed in a type: two
    multiply-adds each, and none before the one before it is done; two loads each; and what fetching b's
    vectors from the second cache adds."""
    loads = (micro.rows + micro.vectors) / 2
    multiplied = micro.rows * micro.vectors / 2 * _INSTRUCTIONS.get(packed, 1)
    return max(multiplied, loads, LATENCY) + _FETCHED * micro.vectors


def even_part(count: int, most: int) -> int:
    """The size of as few parts as have at most so many elements, all about as large."""
    return -(-count // -(-count // most))


def block_sizes(count: int, unit: int, most: int) -> list[int]:
    """Sizes of equal parts of `count` in multiples of a unit, none larger than `most`."""
    fewest = -(-count // most)
    return sorted({unit * -(-count // (fewest * parts * unit)) for parts in _DIVISIONS})


def lane_count() -> int:
    """Return the FLOAT32 lanes of a vector register."""
    return machine().lanes


def largest_tiles() -> tuple[MicroKernel, ...]:
    """The largest tiles that leave some vector registers for the operands."""
    return _MICRO_KERNELS[machine().registers]
