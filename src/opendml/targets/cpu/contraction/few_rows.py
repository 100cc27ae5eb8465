"""Schedules of attention of few queries, as in the generation of text.

Each key and value is read once, where it lies and in its own type. Items are the queries of one head that
share keys. Long sequences of keys are divided among items, whose results a second launch merges. How they are
divided depends on sizes alone, so that threads change no bit.
"""

from __future__ import annotations

from dataclasses import replace

from opendml.late_dataclass import dataclass
from opendml.targets.common.candidates import Candidate, Estimate, Refusal
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.chain import (
    FEWEST_ROWS,
    KEYS,
    TILES,
    WEIGHT,
    WIDEST,
    chained_roles,
    launch_of_chain,
    takes_few_rows,
)
from opendml.targets.cpu.contraction.costs import STARTED, lane_count
from opendml.targets.cpu.contraction.schedule import ProductQuery
from opendml.targets.cpu.contraction.tiling import (
    Chaining,
    ChainStep,
    Instructions,
    MicroKernel,
    odd_lines,
)
from opendml.targets.cpu.launch import CLAIM_CYCLES, CpuLaunch, Table
from opendml.targets.cpu.machine import machine

_ROWS = FEWEST_ROWS
"""Rows of the tile that holds queries and results, for all counts of queries."""
_SPAN = 2 * KEYS
"""Keys of an item if a head has more. In a core's own cache they take about 15 microseconds."""
_MULTIPLIED = 1.25
"""Cycles to read a vector of keys or values, and to multiply and add it."""


@dataclass(frozen=True, slots=True)
class FewRows:
    """A way to compute attention of few queries.

    Attributes:
        vectors: the vectors of a row of results.
        item_cycles: the estimated cycles of an item.
        grain: items that a thread takes at a time.
        is_divided: whether the keys of a head are divided among items.
    """

    vectors: int
    item_cycles: int
    grain: int
    is_divided: bool


def _price(query: ProductQuery) -> Estimate[FewRows] | Refusal:
    """Price attention of few queries for the thread that works longest."""
    roles = chained_roles(query.kernel)
    if roles is None or not takes_few_rows(roles):
        return Refusal(f"{FEWEST_ROWS} queries or more, or keys and values that lie across memory")
    scores, results, lanes = roles.scores, roles.results, lane_count()
    m, keys = scores.count(scores.rows), scores.count(scores.columns)
    depth, width = scores.count(scores.depth), results.count(results.columns)
    vectors = -(-depth // lanes) + -(-width // lanes)
    is_divided = keys > _SPAN
    span = _SPAN if is_divided else keys
    item = STARTED + m * span * (vectors * _MULTIPLIED + WEIGHT / lanes)
    items = results.count(results.outer) * -(-keys // span)
    joining = max(1, min(query.threads, int(items * item // CLAIM_CYCLES)))
    grain = max(1, min(items // 32, int(CLAIM_CYCLES // item)))
    choice = FewRows(-(-width // lanes), round(item), grain, is_divided)
    return Estimate(choice, {"products": -(-items // joining) * item})


def _construct(query: ProductQuery, choice: FewRows) -> list[CpuLaunch]:
    """Return the launches of attention of few queries."""
    roles = chained_roles(query.kernel)
    if roles is None or not takes_few_rows(roles):
        raise ValueError("the kernel has no few queries")
    lanes = lane_count()
    tiles = MicroKernel(_ROWS, machine().registers // 2), MicroKernel(_ROWS, choice.vectors)
    row = max(odd_lines(WIDEST + lanes) // F32.bytes, WIDEST + lanes)
    how = roles, tiles, Instructions.DOTS, _ROWS * row
    groups = roles.results.count(roles.results.outer)
    if not choice.is_divided:
        launch = launch_of_chain(*how, _ROWS, 1)
        return [replace(launch, grain=choice.grain, work=groups * choice.item_cycles)]
    keys, m = roles.scores.count(roles.scores.columns), roles.scores.count(roles.scores.rows)
    parts = -(-keys // _SPAN)
    vectors = 2 - (-roles.results.count(roles.results.columns) // lanes)
    launch = launch_of_chain(*how, _SPAN, parts)
    state = launch.items * m * vectors * lanes * F32.bytes
    partial, combine = (
        replace(
            launch,
            pattern=replace(launch.pattern, walk=replace(launch.pattern.walk_as(Chaining), step=step)),
            partial_bytes=state,
        )
        for step in (ChainStep.PARTIAL, ChainStep.COMBINE)
    )
    return [
        replace(partial, grain=choice.grain, work=launch.items * choice.item_cycles),
        replace(combine, items=groups),
    ]


ATTENTION: Table = (TILES, Candidate("attention of few queries", _price, _construct))
"""The candidates for attention: tiles of many queries, and few queries."""
