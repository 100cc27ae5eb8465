"""Launches of contractions, and of a softmax between them, in tiles chosen by hand, to check each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from opendml.compiler.kernel import Kernel
from opendml.program.node import Operation, ordered
from opendml.targets.cuda.executable import Scheduler
from opendml.targets.cuda.launch import Launch
from opendml.targets.cuda.machine import Machine
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_chain import CHAIN_TILES, ChainShape, ChainTile, chain_tiles
from opendml.targets.cuda.schedule_contraction import TILES, Candidate, Shape, Tile

SPLITS = (1, 3)
"""Numbers of blocks that share a tile."""


def mode_of(case: str) -> str:
    """The mode of tiles that the case of a contraction, or of a softmax between them, is for, by its name."""
    return "imma" if "of bytes" in case else "mma" if "FLOAT16" in case else "fma"


def in_tiles(tile: Tile, splits: int, kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch of a kernel in a tile if that can compute it; else as it is."""
    if any(node.operation is Operation.CONTRACTION for node in ordered(kernel.values)):
        shape = Shape(kernel, alignments)
        if shape.takes(tile):
            return shape.launch(Candidate(tile, splits, 0.0))
    return schedule(kernel, machine, alignments)


def in_chain_tile(tile: ChainTile, kernel: Kernel, machine: Machine, alignments: Sequence[int]) -> Launch:
    """The launch of a softmax between products in a tile if that can compute it; else as it is."""
    shape = ChainShape.of(kernel)
    if shape is not None and tile in chain_tiles(shape, machine, alignments):
        return shape.launch(tile, alignments)
    return schedule(kernel, machine, alignments)


def chain_schedulers() -> Iterator[tuple[str, Scheduler]]:
    """By name, for every tile of a softmax between products."""
    for tile in CHAIN_TILES:
        yield (
            f"{tile.mode.value} {tile.rows}x{tile.keys} / {tile.stages} by {tile.threads}",
            partial(in_chain_tile, tile),
        )


def schedulers() -> Iterator[tuple[str, Scheduler]]:
    """By name, for every tile and number of blocks that share it."""
    for tile in TILES:
        for splits in SPLITS:
            name = f"{tile.mode.value} {tile.rows}x{tile.columns} by {tile.threads} / {splits}"
            yield name + " of copies" * tile.copied, partial(in_tiles, tile, splits)
