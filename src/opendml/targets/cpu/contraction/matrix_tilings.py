"""The divisions of products into tiles of matrix registers that may be worth it, with their cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from opendml.targets.cpu.contraction.arithmetic import BYTES
from opendml.targets.cpu.contraction.costs import (
    COPIED,
    ROW,
    STARTED,
    block_sizes,
    copied_cycles,
    far_cycles,
    packing_cycles,
)
from opendml.targets.cpu.contraction.image import Seen
from opendml.targets.cpu.contraction.image_tilings import (
    MOST_COLUMNS,
    block_lines,
    image_columns,
    image_cycles,
    image_rows,
)
from opendml.targets.cpu.contraction.operands import is_contiguous
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.roles import Roles
from opendml.targets.cpu.contraction.tiles import DEPTH, PRODUCTS_IN_REGISTERS, Tiles, groups_of
from opendml.targets.cpu.contraction.tilings import SCATTERED
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import PIECES, REGISTER_ROWS, STEP, MicroKernel

MOST_MATRIX_RESULTS = 512, 512
"""The most rows and columns of a block."""

MATRIX_MICRO_KERNELS = MicroKernel(2 * REGISTER_ROWS, 2), MicroKernel(REGISTER_ROWS, 3)
"""Of whose registers, and those of what they take in, there are eight at most."""
_MOST_TAPS = 9
"""Of windows whose products are added up with those of STEP channels."""
_PRODUCTS = PIECES * (PIECES + 1) // 2
"""Of pieces, for one of FLOAT32."""

# Cycles of one core, fitted on an Intel Xeon with AMX and 2 MB of second cache, November 2026.
_MULTIPLIED = 20.0
"""Cycles for the products of two registers, and until the next ones may begin: of zeros 16, but of other
numbers the processor becomes slower."""
_WAITED = 52.0
"""Cycles until a sum is there to be added to."""
_PUT_DOWN = 40.0
"""Cycles to add a register's sums to those of other parts."""
SPLIT = 8.0
"""Cycles to take a vector apart."""
_FETCHED = 1.5
"""Cycles to fetch, from the second cache, what was a vector."""
_PUT_AHEAD = 14.0
"""Cycles to write that to memory, where it is packed ahead."""
_ASKED = 0.7
"""The share of what it takes to fetch from afar that is saved where items ask for it ahead."""
_TURNED = 1.0
"""Cycles to turn words into rows, for as many integers as a vector has words."""
_WORDS_PUT_DOWN = 60.0
"""Cycles to add a register's sums of integers to those of other parts, less what is to be subtracted."""
_ROW = 30.0
"""Cycles to begin with a row of results."""


def matrix_tilings(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """Each tile, with each division of the results into blocks."""
    if roles.types[0] is not F32 or not machine().has("amx-bf16"):
        return
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    a, b = (each + SPLIT for each in packing_cycles(roles, lanes))
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else SCATTERED
    far = far_cycles(roles.a, roles.a.loads), far_cycles(roles.b, roles.b.loads)
    a_work = groups_of(roles, roles.a) * m * k * (a + _PUT_AHEAD) / lanes
    b_work = groups_of(roles, roles.b) * n * k * (b + _PUT_AHEAD) / lanes
    a, b = (each - _ASKED * distant for each, distant in zip((a, b), far, strict=True))
    for micro in MATRIX_MICRO_KERNELS:
        width = micro.vectors * lanes
        most_rows, most_columns = (
            most // unit * unit for most, unit in zip(MOST_MATRIX_RESULTS, (micro.rows, width), strict=True)
        )
        tile = matrix_tile_cycles(micro, k, PRODUCTS_IN_REGISTERS)
        for rows, columns in product(
            block_sizes(m, micro.rows, most_rows), block_sizes(n, width, most_columns)
        ):
            panels, tiles = -(-rows // micro.rows), -(-columns // width)
            item = STARTED + panels * tiles * tile + rows * (_ROW + columns * stored / lanes)
            a_packed, b_packed = rows * k * a / lanes, columns * k * b / lanes
            a_fetched, b_fetched = (
                count * k * (_FETCHED + each) / lanes
                for count, each in zip((rows, columns), far, strict=True)
            )
            yield Tiles(roles, micro, rows, columns, item + a_packed + b_packed, in_registers=True)
            yield Tiles(
                roles, micro, rows, columns, item + a_fetched + b_packed, True, a_work, in_registers=True
            )
            yield Tiles(
                roles,
                micro,
                rows,
                columns,
                item + a_packed + b_fetched,
                packing_work=b_work,
                b_ahead=True,
                in_registers=True,
            )


def matrix_image_tilings(seen: Seen, lanes: int) -> Iterator[Tiles]:
    """The same where b is windows of an image: blocks have whole rows of windows."""
    roles, image = seen.roles, seen.image
    if not machine().has("amx-bf16") or image.taps > _MOST_TAPS:
        return
    m, k = roles.count(roles.rows), roles.count(roles.depth)
    a, _ = packing_cycles(roles, lanes)
    stored = copied_cycles(is_contiguous(roles.epilogue.stores, roles.columns))
    for micro in MATRIX_MICRO_KERNELS:
        width = micro.vectors * lanes
        tile = matrix_tile_cycles(micro, k, seen.depth(DEPTH))
        for lines in block_lines(seen):
            span = lines * seen.pitch - image.columns.reach
            if span > MOST_COLUMNS:
                break
            columns = image_columns(span, width)
            most_rows = max(micro.rows, image_rows(columns) // micro.rows * micro.rows)
            for rows in block_sizes(m, micro.rows, most_rows):
                item = STARTED + -(-rows // micro.rows) * -(-span // width) * tile
                item += image_cycles(seen, lines, lanes)
                item += rows * lines * (ROW + -(-seen.width // lanes) * stored)
                packing = groups_of(roles, roles.a) * m * k * (a + SPLIT) / lanes
                item += rows * k * _FETCHED / lanes
                yield Tiles(
                    roles, micro, rows, lines * seen.width, item, True, packing, seen=seen, in_registers=True
                )


def word_matrix_tilings(roles: Roles, lanes: int) -> Iterator[Tiles]:
    """The same of 8-bit integers in words."""
    if roles.types[0] not in BYTES or not machine().has("amx-int8"):
        return
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    a, b = packing_cycles(roles, lanes)
    stored = COPIED if is_contiguous(roles.epilogue.stores, roles.columns) else SCATTERED
    a_work = groups_of(roles, roles.a) * m * k * (a + _TURNED) / lanes
    for micro in MATRIX_MICRO_KERNELS:
        width = micro.vectors * lanes
        registers = micro.rows // REGISTER_ROWS * micro.vectors
        tile = -(-roles.words // REGISTER_ROWS) * max(registers * _MULTIPLIED, _WAITED)
        tile += -(-roles.words // PRODUCTS_IN_REGISTERS) * registers * _WORDS_PUT_DOWN
        most_rows, most_columns = (
            most // unit * unit for most, unit in zip(MOST_MATRIX_RESULTS, (micro.rows, width), strict=True)
        )
        for rows, columns in product(
            block_sizes(m, micro.rows, most_rows), block_sizes(n, width, most_columns)
        ):
            item = STARTED + -(-rows // micro.rows) * -(-columns // width) * tile
            item += rows * (_ROW + columns * stored / lanes) + columns * k * b / lanes
            packed, fetched = rows * k * (a + _TURNED) / lanes, rows * roles.words * _FETCHED / lanes
            yield Tiles(roles, micro, rows, columns, item + packed, in_registers=True)
            yield Tiles(roles, micro, rows, columns, item + fetched, True, a_work, in_registers=True)


def matrix_tile_cycles(micro: MicroKernel, k: int, together: int) -> float:
    """Cycles for a tile, of which so many products are added up together."""
    registers = micro.rows // REGISTER_ROWS * micro.vectors
    step = _PRODUCTS * max(registers * _MULTIPLIED, _WAITED)
    return -(-k // STEP) * step + -(-k // together) * registers * _PUT_DOWN
