"""The choice of how a softmax between products is computed: the tiles in registers, and the blocks of rows.

The division of rows changes no bit of the results: each row takes in the same keys in the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from operator import index

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import loops_over, merged_neighbours
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass
from opendml.program.sizes import greatest, is_surely_less
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.common.roles import attention_roles
from opendml.targets.cpu.contraction.amx_tilings import AMX_TILE, SPLIT, amx_tile_cycles
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.costs import (
    COPIED,
    STARTED,
    block_sizes,
    lane_count,
    packing_cycles,
    row_tiles,
    tile_cycles,
)
from opendml.targets.cpu.contraction.operands import (
    b_along_depth,
    common_loops,
    epilogue_nest,
    is_contiguous,
    packing_of_a,
    packing_of_b,
)
from opendml.targets.cpu.contraction.roles import Roles, Varying, by_stride, epilogue_of, part_of, varies
from opendml.targets.cpu.contraction.schedule import ProductQuery
from opendml.targets.cpu.contraction.tiling import (
    STEP,
    Chaining,
    Instructions,
    MicroKernel,
    OperandA,
    OperandB,
    Storage,
    bf16_bytes,
)
from opendml.targets.cpu.launch import (
    CLAIM_CYCLES,
    CpuLaunch,
    Numbers,
    buffers_of,
    parameters_of,
    pattern_of,
)
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import CpuMode

KEYS = 256
"""Keys that are taken in at a time. Scores of a panel of queries and a tile of values stay in the first
cache. It is also the number of products that are added to one sum."""
WIDEST = 256
"""The most elements of a query or value; it is also the number of products that are added to one sum."""
FEWEST_ROWS = 16
"""The fewest queries for which packing their keys pays."""
WEIGHT = 24.0
"""Cycles for a vector of scores to become weights."""


@dataclass(frozen=True, slots=True)
class ChainedRoles:
    """The two products of a chain over the same rows. The epilogue of the first computes scores, and stores
    none. The operand A of the second is the weights, which are not in memory."""

    scores: Roles
    results: Roles

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The parts of the chain, in the order of their parameters."""
        scores, results = self.scores, self.results
        return results.epilogue, scores.a, scores.b, scores.epilogue, results.b


@dataclass(frozen=True, slots=True)
class Way:
    """Tiles in registers, the rows and the estimated cycles of each item, the items that a thread takes at a
    time, and the instructions that multiply."""

    micro: MicroKernel
    weighting: MicroKernel
    rows: int
    item_cycles: int
    grain: int
    instructions: Instructions = Instructions.FMA

    @property
    def name(self) -> str:
        """The name of this kind of tiles."""
        micro, weighting = self.micro, self.weighting
        kind = "matrices" if self.instructions.are_amx else "tiles"
        return f"attention in {kind} of {micro.rows}x{micro.vectors} and {weighting.rows}x{weighting.vectors}"


def is_chained(kernel: Kernel) -> bool:
    """Return whether a kernel is a softmax between products that is better computed as one.

    Queries of traced sizes count as many, unless they are few for all sizes. The hints are those of the sizes
    that came first, and kernels are fused for all sizes.
    """
    roles = chained_roles(plain(kernel))
    if roles is None:
        return False
    rows = math.prod([kernel.domain[dimension] for dimension in roles.scores.rows])
    return not is_surely_less(rows, FEWEST_ROWS) or takes_few_rows(roles)


def takes_few_rows(roles: ChainedRoles) -> bool:
    """Return whether a chain has few queries, and reads keys and values along their elements."""
    scores, results = roles.scores, roles.results
    return (
        scores.count(scores.rows) < FEWEST_ROWS
        and b_along_depth(scores)
        and len(merged_neighbours(loops_over(scores.b, scores.depth))) == 1
        and is_contiguous(results.b.loads, results.columns)
        and not b_along_depth(results)
    )


def _price_chain(query: ProductQuery) -> Estimate[Way] | Refusal:
    found = list(_alternatives(query))
    return (
        min(found, key=lambda each: each.cycles) if found else Refusal("operands cannot be walked in tiles")
    )


def _alternatives(query: ProductQuery) -> Iterator[Estimate[Way]]:
    """Yield the estimates of all tiles, for the thread that works longest of those at hand."""
    roles = chained_roles(query.kernel)
    if roles is None or takes_few_rows(roles):
        return
    results, threads = roles.results, query.threads
    groups, rows = results.count(results.outer), results.count(results.rows)
    for way in ways(roles, query.varying):
        items = groups * -(-rows // way.rows)
        joining = max(1, min(threads, items * way.item_cycles // CLAIM_CYCLES))
        yield Estimate(way, {"products": -(-items // joining) * way.item_cycles}, name=way.name)


def _construct(query: ProductQuery, way: Way) -> list[CpuLaunch]:
    roles = chained_roles(query.kernel)
    assert roles is not None
    return [launch_of_way(roles, way)]


TILES = Candidate("attention in tiles", _price_chain, _construct, alternatives=_alternatives)
"""The ways to compute a softmax between products in tiles."""


def chained_roles(kernel: Kernel) -> ChainedRoles | None:
    """Return the products of a kernel; None if it has no chain, or one that cannot be walked in tiles."""
    for each in attention_roles(kernel):
        nodes, store = each.nodes, kernel.stores
        rows, columns = by_stride(store, each.m), by_stride(store, each.n)
        if not columns:
            continue
        a, b, weighted = (part_of(kernel, (own,)) for own in (each.queries, each.keys, nodes.weighted))
        replaced = () if nodes.blind is None else (nodes.blind,)
        if any(any(load.strides) for load in part_of(kernel, replaced).loads):
            continue
        scores = epilogue_of(kernel, (nodes.scores, *replaced), nodes.products, ())
        results = epilogue_of(kernel, kernel.values, nodes.results, kernel.stores)
        shared, floats = (by_stride(store, each.batch), rows), (F32, F32)
        found = ChainedRoles(
            Roles(a, b, floats, scores, *shared, each.k, each.depth),
            Roles(weighted, weighted, floats, results, *shared, columns, each.k),
        )
        return found if _is_walked(found) else None
    return None


def _is_walked(roles: ChainedRoles) -> bool:
    """Return whether operands, scores and results are walked in one loop each along tiles, and sums are short
    enough."""
    scores, results = roles.scores, roles.results
    if scores.count(scores.depth) > WIDEST or results.count(results.columns) > WIDEST:
        return False
    alone = ((scores.epilogue, scores.columns), (results.epilogue, results.columns))
    tiles = (scores, results)
    return all(len(merged_neighbours(loops_over(part, each))) == 1 for part, each in alone) and all(
        b_along_depth(each) or len(merged_neighbours(loops_over(each.b, each.columns))) == 1 for each in tiles
    )


def ways(roles: ChainedRoles, varying: Varying = None) -> list[Way]:
    """Return the tiles, with each division of the rows. All are in matrix registers, or none is, since that
    changes bits. Those are chosen that take one thread less time."""
    rows = roles.scores.count(roles.scores.rows)
    found = [list(vector_ways(roles, varying)), list(amx_ways(roles))]

    def cycles(alike: list[Way]) -> float:
        return min(-(-rows // way.rows) * way.item_cycles for way in alike)

    return min(filter(None, found), key=cycles)


def vector_ways(roles: ChainedRoles, varying: Varying = None) -> Iterator[Way]:
    """Yield the ways whose tiles are in vector registers; few numbers of rows if sizes vary."""
    scores, results = roles.scores, roles.results
    lanes = lane_count()
    m, keys = scores.count(scores.rows), scores.count(scores.columns)
    depth, width = scores.count(scores.depth), results.count(results.columns)
    a, b = packing_cycles(scores)
    _, weighted = packing_cycles(results)
    packed = keys * (depth * b + width * weighted) / lanes
    for micro in row_tiles(m, varies(varying, scores.rows)):
        weighting = min(
            (replace(micro, vectors=vectors) for vectors in range(1, micro.vectors + 1)),
            key=lambda each: -(-width // (each.vectors * lanes)) * tile_cycles(each),
        )
        panel = keys * depth * tile_cycles(micro) / (micro.vectors * lanes)
        tiles = -(-width // (weighting.vectors * lanes))
        panel += tiles * keys * tile_cycles(weighting)
        row = depth * a + keys * WEIGHT + width * COPIED
        for rows in block_sizes(m, micro.rows, _most_rows(roles, micro, weighting, Instructions.FMA)):
            item = STARTED + packed + -(-rows // micro.rows) * panel + rows * row / lanes
            yield _way(roles, micro, weighting, rows, item)


def amx_ways(roles: ChainedRoles) -> Iterator[Way]:
    """Yield the ways whose tiles are in matrix registers, if the processor has them."""
    if not machine().has("amx-bf16"):
        return
    scores, results = roles.scores, roles.results
    lanes = lane_count()
    m, keys = scores.count(scores.rows), scores.count(scores.columns)
    depth, width = scores.count(scores.depth), results.count(results.columns)
    a, b = packing_cycles(scores)
    _, weighted = packing_cycles(results)
    packed = keys * (depth * (b + SPLIT) + width * (weighted + SPLIT)) / lanes
    row = depth * (a + SPLIT) + keys * (WEIGHT + SPLIT) + width * COPIED
    tile = AMX_TILE.vectors * lanes
    # Queries, keys, values and weights of a panel stay in the first caches.
    panel = -(-keys // tile) * amx_tile_cycles(depth, WIDEST, waited=0.0)
    panel += -(-width // tile) * amx_tile_cycles(keys, KEYS, waited=0.0)
    for rows in block_sizes(m, AMX_TILE.rows, _most_rows(roles, AMX_TILE, AMX_TILE, Instructions.AMX_BF16)):
        item = STARTED + packed + -(-rows // AMX_TILE.rows) * panel + rows * row / lanes
        yield _way(roles, AMX_TILE, AMX_TILE, rows, item, Instructions.AMX_BF16)


def _way(
    roles: ChainedRoles,
    micro: MicroKernel,
    weighting: MicroKernel,
    rows: int,
    item: float,
    instructions: Instructions = Instructions.FMA,
) -> Way:
    """Return tiles whose items take `item` cycles."""
    results = roles.results
    items = results.count(results.outer) * -(-results.count(results.rows) // rows)
    grain = max(1, min(items // 32, int(CLAIM_CYCLES // item)))
    return Way(micro, weighting, rows, round(item), grain, instructions)


def _most_elements(instructions: Instructions) -> int:
    """Return the most elements of packed queries, and of results, of an item. Each takes a quarter of a
    core's own cache, and holds a panel at least."""
    panel = 32 * WIDEST
    if instructions.are_amx:
        panel = bf16_bytes(AMX_TILE.rows, WIDEST) // F32.bytes
    return max(machine().l2_bytes // 4 // F32.bytes, panel)


def _most_rows(
    roles: ChainedRoles, micro: MicroKernel, weighting: MicroKernel, instructions: Instructions
) -> int:
    """Return the most rows of an item: as many panels as have room for packed queries and for results."""
    lanes, depth = lane_count(), roles.scores.count(roles.scores.depth)
    tile, width = weighting.vectors * lanes, roles.results.count(roles.results.columns)
    queries = (depth + lanes) * (-(-micro.rows // lanes) * lanes)
    if instructions.are_amx:
        queries = bf16_bytes(micro.rows, depth) // F32.bytes
    results = -(-width // tile) * tile * weighting.rows
    return greatest(1, _most_elements(instructions) // greatest(queries, results)) * micro.rows


def launch_of_way(roles: ChainedRoles, way: Way) -> CpuLaunch:
    """Return the launch of a chain in chosen tiles.

    Raises:
        ValueError: queries or values have more elements than those for which the tiles were chosen. Traced
            sizes record what they may be.
    """
    if way.rows > _most_rows(roles, way.micro, way.weighting, way.instructions):
        raise ValueError(f"items of {way.rows} rows do not fit the chosen tiles")
    chunks = -(-roles.scores.count(roles.scores.rows) // way.rows)
    elements = _most_elements(way.instructions)
    tiles = way.micro, way.weighting
    launch = launch_of_chain(roles, tiles, way.instructions, elements, way.rows, chunks)
    return replace(launch, grain=way.grain)


def launch_of_chain(
    roles: ChainedRoles,
    tiles: tuple[MicroKernel, MicroKernel],
    instructions: Instructions,
    elements: int,
    chunk: int,
    chunks: int,
) -> CpuLaunch:
    """Return the launch of a chain, whose items are `chunks` for each group.

    Args:
        roles: the parts of the chain.
        tiles: those of scores and of results.
        instructions: the instructions that multiply.
        elements: the most elements of packed queries, and of results, of an item.
        chunk: the queries of an item, or its keys.
        chunks: the items of a group.
    """
    scores, results = roles.scores, roles.results
    m, keys = scores.count(scores.rows), scores.count(scores.columns)
    epilogue, *others = common_loops(roles.parts, results.outer)
    a, a_nest = packing_of_a(scores, scores.a, others[0])
    (b, b_nest), (weighted, weighted_nest) = (
        packing_of_b(each, each.b, outer) for each, outer in ((scores, others[1]), (results, others[3]))
    )
    scores_nest = epilogue_nest(scores, others[2])
    nest = epilogue_nest(results, epilogue)
    depth = width = WIDEST
    if instructions.are_amx:
        depth, width = (
            index(-(-count // STEP) * STEP)
            for count in (scores.count(scores.depth), results.count(results.columns))
        )
    micro, weighting = tiles
    lanes, packed = lane_count(), (instructions, Storage.PACKED)
    chaining = Chaining(
        OperandA(a, *packed, micro.rows, depth),
        OperandB(b, *packed, micro.vectors * lanes, depth),
        pattern_of(scores.epilogue, scores_nest, CpuMode.CONTRACTION),
        OperandB(weighted, *packed, weighting.vectors * lanes, KEYS),
        micro,
        weighting,
        KEYS,
        elements,
        width,
    )
    pattern = replace(pattern_of(results.epilogue, nest, CpuMode.CONTRACTION_CHAIN), walk=chaining)
    groups = results.count(results.outer)
    parameters = parameters_of(
        results.epilogue,
        nest,
        Numbers(results.count(results.columns), 1, m, chunk, chunks, keys, groups),
    )
    parts = (scores.a, a_nest), (scores.b, b_nest), (scores.epilogue, scores_nest), (results.b, weighted_nest)
    for part, part_nest in parts:
        parameters += parameters_of(part, part_nest, Numbers(1, 1, 1, elements=scores.count(scores.depth)))
    reads = buffers_of(load for part in roles.parts for load in part.loads)
    return CpuLaunch(
        pattern, parameters.words, 0, groups * chunks, 1, reads=reads, rebound=parameters.rebound
    )
