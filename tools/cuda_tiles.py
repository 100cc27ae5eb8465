"""Launches of contractions, and of a softmax between them, in tiles chosen by hand, to check each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from opendml.compiler.kernel import Kernel
from opendml.program.node import Operation, ordered
from opendml.targets.cuda.launch import CudaLaunch
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.planning import Scheduler
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_attention import (
    ATTENTION_TILES,
    AttentionShape,
    AttentionTile,
)
from opendml.targets.cuda.schedule_chain import CHAIN_TILES, ChainShape, ChainTile, chain_tiles
from opendml.targets.cuda.schedule_contraction import TILES, CudaTileChoice, Shape, Tile, launch_of
from opendml.targets.cuda.schedule_warpgroups import warpgroup_tiles
from opendml.targets.cuda.warpgroup_tile import (
    BYTE_TILES,
    BYTE_WINDOW_TILES,
    PART_WINDOW_TILES,
    PARTS_TILES,
    WARPGROUP_TILES,
    WINDOW_TILES,
    WarpgroupTile,
)

SPLITS = (1, 3)
"""Numbers of blocks that share a tile."""


def modes_of(case: str) -> tuple[str, ...]:
    """Return the modes of tiles that the case of a contraction, or of a softmax between them, is for, by its
    name; of warpgroups only those that the copy engine can load."""
    if "of bytes" in case:
        if "moved windows" in case:
            return "imma", "wgmma_byte_windows"
        return ("imma", "wgmma_bytes") if "copied" in case else ("imma",)
    if "FLOAT16" not in case:
        if "moved windows" in case:
            return "fma", "wgmma_part_windows"
        return ("fma", "wgmma_parts") if "copied" in case else ("fma",)
    if case.startswith("chain"):
        return "mma", "wgmma"
    more = ("wgmma",) if "copied" in case else ("wgmma_windows",) if "moved windows" in case else ()
    return ("mma", *more)


def in_tiles(
    tile: Tile | WarpgroupTile, splits: int, kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]
) -> CudaLaunch:
    """The launch of a kernel in a tile if that can compute it; else as it is."""
    if any(node.operation is Operation.CONTRACTION for node in ordered(kernel.values)):
        shape = Shape(kernel, alignments)
        if isinstance(tile, Tile):
            takes = shape.takes(tile)
        else:
            takes = any(each == tile for each, _, _ in warpgroup_tiles(shape, machine))
        if takes:
            return launch_of(shape, CudaTileChoice(tile, splits), machine)
    return schedule(kernel, machine, alignments)


def in_chain_tile(
    tile: ChainTile | AttentionTile, kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]
) -> CudaLaunch:
    """Return the launch of a softmax between products in a tile if that can compute it; else the launch that
    is chosen."""
    shape = ChainShape.of(kernel)
    if shape is None:
        return schedule(kernel, machine, alignments)
    if isinstance(tile, AttentionTile):
        attention = AttentionShape(shape, alignments)
        is_loadable = machine.multiplies_by_warpgroups and attention.is_loadable
        if is_loadable and attention.takes(tile, machine):
            return attention.launch(attention.choice(tile, machine), machine)
    elif tile in chain_tiles(shape, machine, alignments):
        return shape.launch(tile, alignments)
    return schedule(kernel, machine, alignments)


def chain_schedulers() -> Iterator[tuple[str, Scheduler]]:
    """Yield names and schedulers, for every tile of a softmax between products."""
    for tile in CHAIN_TILES:
        yield (
            f"{tile.mode.value} {tile.rows}x{tile.keys} / {tile.stages} by {tile.threads}",
            partial(in_chain_tile, tile),
        )
    for each in ATTENTION_TILES:
        yield (
            f"{each.mode.value} {each.rows}x{each.keys} of {each.width}",
            partial(in_chain_tile, each),
        )


def schedulers() -> Iterator[tuple[str, Scheduler]]:
    """Yield names and schedulers, for every tile and number of blocks that share it."""
    for tile in TILES:
        for splits in SPLITS:
            name = f"{tile.mode.value} {tile.rows}x{tile.columns} by {tile.threads} / {splits}"
            yield name + " of copies" * tile.copied, partial(in_tiles, tile, splits)
    for each in (
        *(*WARPGROUP_TILES, *WINDOW_TILES, *BYTE_TILES, *BYTE_WINDOW_TILES),
        *(*PARTS_TILES, *PART_WINDOW_TILES),
    ):
        for splits in SPLITS:
            name = f"{each.mode.value} {each.rows}x{each.columns} by {each.threads}"
            name += " in turn" * each.turns + " exchanged" * each.exchanged
            name += f" in {each.cluster}x{each.across} / {splits}"
            yield name, partial(in_tiles, each, splits)
