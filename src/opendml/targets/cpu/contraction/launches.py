"""The launches that compute sums of products in tiles."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import loops_over, merged_neighbours
from opendml.late_dataclass import replace
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import greatest
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.costs import lane_count
from opendml.targets.cpu.contraction.image import viewed_image
from opendml.targets.cpu.contraction.operands import common_loops, epilogue_nest, packing_of_a, packing_of_b
from opendml.targets.cpu.contraction.roles import Roles, moves, roles_of
from opendml.targets.cpu.contraction.tiles import TileChoice, Tiles, is_fixed, steps_of
from opendml.targets.cpu.contraction.tiling import (
    Instructions,
    OperandA,
    OperandB,
    Storage,
    Tiling,
    packs_any_depth,
)
from opendml.targets.cpu.launch import (
    CLAIM_CYCLES,
    CpuLaunch,
    Numbers,
    buffers_of,
    parameters_of,
    pattern_of,
)
from opendml.targets.cpu.pattern import CpuMode, ParameterTable


def construct(kernel: Kernel, choice: TileChoice) -> list[CpuLaunch]:
    """Return the launches that compute a kernel's sums of products, by integer arithmetic alone."""
    roles = roles_of(kernel, choice.exchanged)
    assert roles is not None
    viewed = None
    if Storage.WINDOWS in (choice.a, choice.b):
        viewed = viewed_image(
            roles, choice.a is Storage.WINDOWS, choice.instructions is Instructions.AMX_BF16
        )
        assert viewed is not None
        roles = viewed.roles
    rows, columns = choice.rows, choice.columns
    if viewed is not None:
        rows, columns = (rows * viewed.width, columns) if viewed.broadcast else (rows, columns * viewed.width)
    numbers = choice.instructions, choice.micro, rows, columns
    return _launches(Tiles(roles, *numbers, 0.0, choice.a, choice.b, viewed=viewed), choice)


def launches_of(tiles: Tiles) -> list[CpuLaunch]:
    """Return the launches that compute sums of products in these tiles."""
    return _launches(tiles, tiles.choice)


def _launches(tiles: Tiles, choice: TileChoice) -> list[CpuLaunch]:
    roles, viewed = tiles.roles, tiles.viewed
    groups, m, n, k = roles.sizes
    a_part, b_part = roles.a, roles.b
    launches, arena_bytes = [], 0
    if tiles.b.has_launch:
        packing, b_part = _packing_ahead(tiles, False)
        launches.append(packing)
        # Panels lie in a buffer of their own, and A may be packed beside them.
        arena_bytes = 0 if tiles.b is Storage.PANELS else packing.partial_bytes
    if tiles.a.is_ahead:
        packing, a_part = _packing_ahead(tiles, True)
        launches.append(packing)
        arena_bytes = packing.partial_bytes
    narrow = roles.narrow[0] if tiles.b.is_narrow and roles.narrow else None
    parts = (a_part, b_part, roles.epilogue)
    a_outer, b_outer, outer = common_loops(parts, roles.outer)
    a, a_nest = packing_of_a(roles, a_part, a_outer)
    b, b_nest = packing_of_b(roles, b_part, b_outer)
    if viewed and viewed.broadcast:
        a, a_nest = viewed.packing(a_outer)
    elif viewed:
        b, b_nest = viewed.packing(b_outer)
    depth = tiles.depth * roles.group
    b_depth = tiles.packed_depth * roles.group
    block = narrow.block if narrow and tiles.instructions is Instructions.DIGITS else 0
    rows, columns = tiles.most_results(choice.span)
    _check_room(tiles, choice, rows, columns)
    tiling = Tiling(
        OperandA(a, tiles.instructions, tiles.a, tiles.micro.rows, depth, block),
        OperandB(b, tiles.instructions, tiles.b, tiles.width, b_depth, narrow),
        tiles.micro,
        rows,
        columns,
        tiles.parts_together if roles.types[0] is F32 and k > tiles.parts_together * depth else 0,
        viewed.image if viewed else None,
        choice.turns,
        tiles.continues,
    )
    nest = epilogue_nest(roles, outer, choice.turns)
    pattern = replace(pattern_of(roles.epilogue, nest, CpuMode.CONTRACTION), walk=tiling)
    blocks, chunks = -(-n // tiles.columns), -(-m // tiles.rows)
    items = groups * chunks * blocks
    numbers = Numbers(tiles.columns, blocks, n if choice.turns else m, tiles.rows, chunks, k, groups)
    parameters = parameters_of(roles.epilogue, nest, numbers)
    before_b = 0
    for part, part_nest in ((a_part, a_nest), (b_part, b_nest)):
        before_b = len(parameters.words)
        parameters += parameters_of(part, part_nest, Numbers(1, 1, 1))
    reads = buffers_of(load for part in parts for load in part.loads)
    launch = CpuLaunch(
        pattern,
        parameters.words,
        0,
        items,
        choice.grain,
        arena_bytes,
        reads,
        work=items * choice.item_cycles,
        rebound=parameters.rebound,
        packed_at=before_b + ParameterTable(b.pattern).buffer(0) if tiles.b is Storage.PANELS else 0,
    )
    return [*launches, launch]


def _check_room(tiles: Tiles, choice: TileChoice, rows: int, columns: int) -> None:
    """Check that scratch memory has room for a block.

    The choice made sure of it for the sizes that it was made for. Of other sizes, traced ones record here
    what they have to be.
    """
    viewed = tiles.viewed
    fits = tiles.rows <= rows and (viewed is not None or tiles.columns <= columns)
    if viewed is not None:
        lines = choice.rows if viewed.broadcast else choice.columns
        fits = fits and viewed.plane_elements(lines) <= viewed.most_plane_elements
        if viewed.broadcast:
            fits = fits and viewed.width % tiles.micro.rows == 0 and tiles.columns <= columns
        else:
            fits = fits and viewed.span(lines) <= columns
    if not fits:
        raise ValueError(f"blocks of {tiles.rows}x{tiles.columns} results do not fit the chosen tiles")


def _packing_ahead(tiles: Tiles, packs_a: bool) -> tuple[CpuLaunch, Kernel]:
    """Return the launch that packs an operand ahead, and the kernel that counts where its panels are."""
    roles, lanes = tiles.roles, lane_count()
    part = roles.a if packs_a else roles.b
    moving = [number for number in roles.outer if moves(part, number)]
    outer = merged_neighbours(loops_over(part, moving))
    k, groups = roles.count(roles.depth), roles.count(moving)
    depth = (tiles.depth if packs_a else tiles.packed_depth) * roles.group
    operand: OperandA | OperandB
    if packs_a:
        across, size = roles.rows, tiles.micro.rows
        packing, nest = packing_of_a(roles, part, outer)
        operand = OperandA(packing, tiles.instructions, Storage.AHEAD, size, depth)
        panel_bytes = -(-k // depth) * operand.part_bytes(lanes)
    else:
        across, size, narrow = roles.columns, tiles.width, None
        # What items widen or split has the same form for all instructions.
        instructions = tiles.instructions if tiles.b.is_ahead else Instructions.FMA
        if tiles.b.is_narrow and roles.narrow:
            narrow, part = roles.narrow
        packing, nest = packing_of_b(roles, part, outer)
        operand = OperandB(packing, instructions, Storage.AHEAD, size, depth, narrow)
        panel_bytes = operand.panel_bytes(k, lanes)
    elements = roles.count(across)
    count = -(-elements // size)
    group_bytes = count * panel_bytes
    block = 1
    if packs_any_depth(operand):
        operand, block = replace(operand, depth=0), depth
    parameters = parameters_of(part, nest, Numbers(block, 1, elements, size, count, k, groups))
    launch = CpuLaunch(
        replace(packing.pattern, mode=CpuMode.CONTRACTION_PACK, walk=operand),
        parameters.words,
        0,
        groups * count,
        greatest(1, CLAIM_CYCLES // (size * k)),
        groups * group_bytes,
        buffers_of(part.loads),
        is_fixed(part),
        steps_of(part) > 1,
        rebound=parameters.rebound,
    )
    return launch, _counter(roles, moving, group_bytes)


def _counter(roles: Roles, dimensions: Sequence[int], group_bytes: int) -> Kernel:
    """Return the kernel whose one load counts the bytes to a group's panels. Groups follow each other over
    these dimensions."""
    domain = roles.a.domain
    strides, step = [0] * len(domain), group_bytes
    for number in reversed(dimensions):
        strides[number], step = step, step * domain[number]
    return Kernel(domain, (), (Access(None, ScalarType.INT64, 0, tuple(strides)),), (), ())
