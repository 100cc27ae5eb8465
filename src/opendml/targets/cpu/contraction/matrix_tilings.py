"""The divisions of products into tiles of matrix registers that may be worth it, with their cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from opendml.targets.cpu.contraction.costs import (
    COPIED,
    STARTED,
    block_sizes,
    copied_cycles,
    far_cycles,
    packing_cycles,
)
from opendml.targets.cpu.contraction.operands import is_contiguous
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.roles import Roles
from opendml.targets.cpu.contraction.tiles import PRODUCTS_IN_PIECES, Tiles, groups_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import PIECES, REGISTER_ROWS, STEP, MicroKernel

MOST_MATRIX_RESULTS = 512, 256
"""The most rows and columns of a block."""

_SHAPES = (2, 2), (1, 3)
"""Of tiles, in registers: these, and what they take in, are eight at most."""
_PRODUCTS = PIECES * (PIECES + 1) // 2
"""Of pieces, for one of FLOAT32."""

# Cycles of one core, fitted on an Intel Xeon with AMX and 2 MB of second cache, November 2026.
_MULTIPLIED = 16.0
"""Cycles for the products of two registers, and until the next ones may begin."""
_WAITED = 52.0
"""Cycles until a sum is there to be added to."""
_PUT_DOWN = 40.0
"""Cycles to add a register's sums to those of other parts."""
_SPLIT = 8.0
"""Cycles to take a vector apart."""
_FETCHED = 1.5
"""Cycles to fetch, from the second cache, what was a vector."""


def matrix_tilings(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """Each tile, with each division of the results into blocks."""
    if roles.types[0] is not F32 or not machine().has("amx-bf16"):
        return
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    a, b = (each + _SPLIT for each in packing_cycles(roles, lanes))
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else copied_cycles(False)
    far = far_cycles(roles.b, roles.b.loads), far_cycles(roles.a, roles.a.loads)
    a_work = groups_of(roles, roles.a) * m * k * a / lanes
    b_work = groups_of(roles, roles.b) * n * k * b / lanes
    for rows_of_registers, vectors in _SHAPES:
        micro = MicroKernel(rows_of_registers * REGISTER_ROWS, vectors)
        width = vectors * lanes
        most_rows, most_columns = (
            most // unit * unit for most, unit in zip(MOST_MATRIX_RESULTS, (micro.rows, width), strict=True)
        )
        registers = rows_of_registers * vectors
        step = _PRODUCTS * max(registers * _MULTIPLIED, _WAITED)
        tile = -(-k // STEP) * step + -(-k // PRODUCTS_IN_PIECES) * registers * _PUT_DOWN
        for rows, columns in product(
            block_sizes(m, micro.rows, most_rows), block_sizes(n, width, most_columns)
        ):
            panels, tiles = -(-rows // micro.rows), -(-columns // width)
            item = STARTED + panels * tiles * tile + rows * columns * stored / lanes
            a_packed, b_packed = rows * k * a / lanes, columns * k * b / lanes
            a_fetched, b_fetched = (
                count * k * (_FETCHED + each) / lanes
                for count, each in zip((rows, columns), far, strict=True)
            )
            yield Tiles(roles, micro, rows, columns, item + a_packed + b_packed, in_pieces=True)
            yield Tiles(
                roles, micro, rows, columns, item + a_fetched + b_packed, True, a_work, in_pieces=True
            )
            yield Tiles(
                roles,
                micro,
                rows,
                columns,
                item + a_packed + b_fetched,
                packing_work=b_work,
                b_ahead=True,
                in_pieces=True,
            )
