"""Shuffles of LLVM vectors."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu import ir
from opendml.targets.cpu.values import llvm_type, vector_constant, vector_type

_I32 = ir.IntType(32)


def transposed(
    builder: ir.IRBuilder, rows: Sequence[ir.Value], type: ScalarType, lanes: int
) -> list[ir.Value]:
    """Return the columns of a square of vectors: as many rows as each has lanes.

    First the squares of elements within 16 bytes are transposed where they lie, since processors merge two
    vectors within each 16 bytes at the least cost. Then the squares of such parts are transposed.
    """
    part = min(lanes, 16 // type.bytes)
    bits = vector_type(ir.IntType(type.bits), lanes)
    result = [builder.bitcast(row, bits) for row in rows]
    for distance in _powers(part):
        halves = [_interleaved_elements(lanes, part, distance, half) for half in range(2)]
        result = _merged(builder, result, distance, halves)
    for distance in _powers(lanes // part):
        halves = [_every_other_part(lanes, part, half) for half in range(2)]
        result = _merged(builder, result, distance * part, halves)
    order = [_bits_reversed(number % part, part) + number // part * part for number in range(lanes)]
    return [builder.bitcast(result[number], llvm_type(type, lanes)) for number in order]


def _powers(count: int) -> list[int]:
    """Return 1, 2, 4, ... up to half of a power of two."""
    return [1 << bit for bit in range(count.bit_length() - 1)]


def _bits_reversed(number: int, count: int) -> int:
    """Reverse the bits of a number below `count`, a power of two."""
    return sum(1 << bit for bit, power in enumerate(reversed(_powers(count))) if number & power)


def _interleaved_elements(lanes: int, part: int, size: int, half: int) -> list[int]:
    """Return the lanes that interleave one half of each part of two vectors, `size` elements at a time."""
    return [
        (lane - place) + half * part // 2 + place // (2 * size) * size + place % size
        + (lanes if place & size else 0)
        for lane in range(lanes)
        for place in [lane % part]
    ]  # fmt: skip


def _every_other_part(lanes: int, part: int, half: int) -> list[int]:
    """Return the lanes of every other part of two vectors, from the first or the second part on."""
    parts = range(half, 2 * lanes // part, 2)
    return [each * part + place for each in parts for place in range(part)]


def _merged(
    builder: ir.IRBuilder, rows: Sequence[ir.Value], distance: int, halves: Sequence[Sequence[int]]
) -> list[ir.Value]:
    """Merge each row with the row `distance` after it in both ways. Results are in the places of the rows."""
    result = list(rows)
    for number in range(len(rows)):
        if not number & distance:
            for half, lanes in enumerate(halves):
                chosen = vector_constant(_I32, lanes)
                result[number + half * distance] = builder.shuffle_vector(
                    rows[number], rows[number + distance], chosen
                )
    return result
