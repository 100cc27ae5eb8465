"""The launches that compute sums of products in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import merged_neighbours
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.costs import CLAIMED, lane_count
from opendml.targets.cpu.contraction.image_tilings import image_columns, image_rows
from opendml.targets.cpu.contraction.matrix_tilings import MOST_MATRIX_RESULTS
from opendml.targets.cpu.contraction.operands import (
    a_along_depth,
    a_order,
    b_along_depth,
    b_order,
    common_loops,
    epilogue_nest,
    packing_of,
)
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import Panels, Strips, Tiling
from opendml.targets.cpu.contraction.roles import Roles, loops_over, moves
from opendml.targets.cpu.contraction.tiles import (
    ITEMS,
    Tiles,
    in_tiles,
    is_fixed,
    most_results,
    most_results_apart,
    packed_ahead,
    steps_of,
)
from opendml.targets.cpu.contraction.tilings import COLUMNS_IN_ROWS, COLUMNS_OF_DOTS
from opendml.targets.cpu.launch import CpuLaunch, Numbers, buffers_of, parameters_of, pattern_of
from opendml.targets.cpu.pattern import CpuMode

_ALONE = 10_000
"""Cycles of a launch up to which the caller does it alone: sharing saves less than it costs to wait for a
thread that is late."""


def launches_of(tiles: Tiles) -> list[CpuLaunch]:
    """The launches that compute sums of products so."""
    roles, micro = tiles.roles, tiles.micro
    lanes = lane_count()
    m, n, k = (roles.count(part) for part in (roles.rows, roles.columns, roles.depth))
    a_part, b_part = roles.a, roles.b
    seen = tiles.seen
    depth = tiles.depth * roles.group
    launches, room = [], 0
    if packed_ahead(tiles) is not None:
        packing, counter = _packing_ahead(tiles, tiles.packed_depth * roles.group)
        launches, room = [packing], packing.partial_bytes
        a_part, b_part = (counter, b_part) if tiles.ahead else (a_part, counter)
    parts = (a_part, b_part, roles.epilogue)
    outers, pieces = common_loops(parts, roles.outer), tiles.in_pieces
    a, a_nest = packing_of(a_part, outers[0], *a_order(roles), a_along_depth(roles), roles.types[0], pieces)
    b, b_nest = packing_of(b_part, outers[1], *b_order(roles), b_along_depth(roles), roles.types[1], pieces)
    mode, results = CpuMode.CONTRACTION, most_results()
    if seen and seen.broadcast:
        mode, (a, a_nest) = CpuMode.CONTRACTION_BROADCAST_IMAGE, seen.packing(outers[0])
    elif seen:
        mode = CpuMode.CONTRACTION_MATRICES_IMAGE if pieces else CpuMode.CONTRACTION_IMAGE
        b, b_nest = seen.packing(outers[1])
        span = tiles.columns // seen.width * seen.pitch - seen.image.columns.reach
        columns = image_columns(span, micro.vectors * lanes)
        results = image_rows(columns), columns
    groups = roles.count(roles.outer)
    nest = epilogue_nest(roles, outers[2])
    if tiles.apart:
        results = most_results_apart()
    if tiles.has_few_rows:
        results = micro.rows, COLUMNS_IN_ROWS if tiles.b_in_place else tiles.columns
    rows, columns = in_tiles(results, micro, lanes)
    if tiles.in_registers and not seen:
        mode, (rows, columns) = CpuMode.CONTRACTION_MATRICES, in_tiles(MOST_MATRIX_RESULTS, micro, lanes)
    if tiles.dots:
        mode, rows, columns = CpuMode.CONTRACTION_DOTS, micro.rows, COLUMNS_OF_DOTS
    is_long = roles.types[0] is F32 and k > tiles.parts_together * depth
    together = tiles.parts_together if is_long else 0
    turned = tiles.in_registers and not pieces
    panels = Panels(a, micro.rows, depth, tiles.in_place, tiles.dots, tiles.apart, turned)
    image = seen.image if seen else None
    ahead = tiles.ahead, tiles.b_ahead
    strip_depth = tiles.packed_depth * roles.group if tiles.b_ahead else 0
    tiling = Tiling(panels, b, micro, rows, columns, *ahead, together, image, tiles.b_in_place, strip_depth)
    pattern = replace(pattern_of(roles.epilogue, nest, mode), walk=tiling)
    blocks, chunks = -(-n // tiles.columns), -(-m // tiles.rows)
    numbers = Numbers(tiles.columns, blocks, m, tiles.rows, chunks, k, groups)
    parameters = parameters_of(roles.epilogue, nest, numbers)
    for part, part_nest in ((a_part, a_nest), (b_part, b_nest)):
        parameters += parameters_of(part, part_nest, Numbers(1, 1, 1))
    items = groups * blocks * chunks
    cycles = items * tiles.item_cycles
    grain = items
    if cycles > _ALONE:
        grain = max(1, min(items // (4 * ITEMS), int(CLAIMED // tiles.item_cycles)))
    reads = buffers_of(load for part in parts for load in part.loads)
    launch = CpuLaunch(
        pattern,
        parameters.words,
        0,
        items,
        grain,
        room,
        reads,
        work=cycles / CLAIMED,
        rebound=parameters.rebound,
    )
    return [*launches, launch]


def _packing_ahead(tiles: Tiles, depth: int) -> tuple[CpuLaunch, Kernel]:
    """The launch that packs an operand ahead, in parts of so many products, and what then counts where its
    panels or strips lie."""
    roles, lanes = tiles.roles, lane_count()
    part = roles.a if tiles.ahead else roles.b
    moving = [number for number in roles.outer if moves(part, number)]
    outer = merged_neighbours(loops_over(part, moving))
    k, groups, steady = roles.count(roles.depth), roles.count(moving), steps_of(part) > 1
    pieces = tiles.in_pieces
    tiling: Panels | Strips
    if tiles.ahead:
        mode, across, size = CpuMode.CONTRACTION_PANELS, roles.rows, tiles.micro.rows
        packing, nest = packing_of(part, outer, *a_order(roles), a_along_depth(roles), roles.types[0], pieces)
        tiling = Panels(packing, size, depth, turned=tiles.in_registers and not pieces)
        part_bytes = tiling.part_bytes(lanes)
    else:
        mode, across, size = CpuMode.CONTRACTION_STRIPS, roles.columns, tiles.micro.vectors * lanes
        packing, nest = packing_of(part, outer, *b_order(roles), b_along_depth(roles), roles.types[1], pieces)
        tiling = Strips(packing, size, depth)
        part_bytes = tiling.part_bytes(k, lanes)
    elements = roles.count(across)
    count = -(-elements // size)
    group_bytes = count * -(-k // depth) * part_bytes
    pattern = replace(packing.pattern, mode=mode, walk=tiling)
    parameters = parameters_of(part, nest, Numbers(1, 1, elements, size, count, k, groups))
    grain, room = max(1, int(CLAIMED // (size * k))), groups * group_bytes
    reads = buffers_of(part.loads)
    launch = CpuLaunch(
        pattern,
        parameters.words,
        0,
        groups * count,
        grain,
        room,
        reads,
        is_fixed(part),
        steady,
        rebound=parameters.rebound,
    )
    return launch, _counter(roles, moving, group_bytes)


def _counter(roles: Roles, dimensions: Sequence[int], group_bytes: int) -> Kernel:
    """What the operand that is packed ahead has in place of loads: the bytes to a group's panels, which
    follow each other over these dimensions."""
    domain = roles.a.domain
    strides, step = [0] * len(domain), group_bytes
    for number in reversed(dimensions):
        strides[number], step = step, step * domain[number]
    return Kernel(domain, (), (Access(None, ScalarType.INT64, 0, tuple(strides)),), (), ())
