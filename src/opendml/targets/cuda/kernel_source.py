"""The CUDA C++ of a pattern: what all patterns share, what depends on the pattern, and the mode's code; the
files are in `kernels`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from opendml.targets.cuda.attention_source import AttentionPrinter
from opendml.targets.cuda.chain_source import ChainPrinter
from opendml.targets.cuda.contraction_source import ContractionPrinter
from opendml.targets.cuda.group_source import GroupPrinter
from opendml.targets.cuda.pass_source import PassPrinter
from opendml.targets.cuda.pattern import WARPGROUP_MODES, Mode, Pattern
from opendml.targets.cuda.placing_source import PlacingPrinter, PositionsPrinter
from opendml.targets.cuda.scan_source import ScanPrinter
from opendml.targets.cuda.source import Printer
from opendml.targets.cuda.top_source import TopPrinter
from opendml.targets.cuda.warpgroup_source import ConvolutionPrinter, PartsPrinter, WarpgroupPrinter

_SHARED = ("instructions", "common", "quotients")
"""The files that all patterns have, before what is printed."""

_FILES = {
    Mode.POINTWISE: ("pointwise",),
    Mode.TRANSPOSED: ("transposed",),
    Mode.WARPS: ("moments", "warps"),
    Mode.STAGED: ("moments", "staged"),
    Mode.TILE: ("moments", "block", "alone", "tile"),
    Mode.HELD: ("moments", "block", "alone", "room", "held"),
    Mode.SPREAD: ("moments", "block", "meeting", "exchange", "room", "held"),
    Mode.TEAM: ("moments", "block", "meeting", "exchange", "room", "team"),
    Mode.REDUCE: ("reduce",),
    Mode.RESIDENT: ("states", "resident"),
    Mode.PASSES: ("states", "meeting", "passes"),
    Mode.SCAN: ("posts", "scan"),
    Mode.SCATTER: ("scatter",),
    Mode.SCATTER_LINES: ("scatter_lines",),
    Mode.POSITIONS: ("posts", "positions"),
    Mode.TOP: ("words", "top"),
    Mode.SORT: ("words", "meeting", "sort"),
    Mode.FMA: ("operands", "computed", "unshifted", "fma", "contraction"),
    Mode.MMA: ("operands", "computed", "fragments", "warp_tile", "unshifted", "mma", "contraction"),
    Mode.IMMA: ("operands", "computed", "fragments", "warp_tile", "shifts", "mma", "contraction"),
    Mode.WGMMA: ("sm90/tiles", "sm90/product"),
    Mode.WGMMA_WINDOWS: ("sm90/tiles", "sm90/convolution"),
    Mode.WGMMA_PARTS: ("sm90/tiles", "sm90/product"),
    Mode.FMA_CHAIN: ("operands", "computed", "chain_fma", "chain"),
    Mode.MMA_CHAIN: ("operands", "computed", "fragments", "chain_mma", "chain"),
    Mode.WGMMA_CHAIN: ("sm90/attention",),
}
"""The files of each mode, after what is printed."""

_HEADERS = {
    **dict.fromkeys((*WARPGROUP_MODES, Mode.WGMMA_CHAIN), ("sm90/instructions", "sm90/units", "sm90/quads")),
    **dict.fromkeys((Mode.FMA, Mode.MMA, Mode.IMMA, Mode.FMA_CHAIN, Mode.MMA_CHAIN), ("sm90/units",)),
}
"""The files of modes that come before what is printed."""

_PRINTERS: dict[Mode, type[Printer]] = {
    Mode.REDUCE: GroupPrinter,
    Mode.RESIDENT: PassPrinter,
    Mode.PASSES: PassPrinter,
    Mode.SCAN: ScanPrinter,
    Mode.SCATTER: PlacingPrinter,
    Mode.SCATTER_LINES: PlacingPrinter,
    Mode.POSITIONS: PositionsPrinter,
    Mode.TOP: TopPrinter,
    Mode.SORT: TopPrinter,
    Mode.FMA: ContractionPrinter,
    Mode.MMA: ContractionPrinter,
    Mode.IMMA: ContractionPrinter,
    Mode.WGMMA: WarpgroupPrinter,
    Mode.WGMMA_WINDOWS: ConvolutionPrinter,
    Mode.WGMMA_PARTS: PartsPrinter,
    Mode.FMA_CHAIN: ChainPrinter,
    Mode.MMA_CHAIN: ChainPrinter,
    Mode.WGMMA_CHAIN: AttentionPrinter,
}
"""What prints the modes that need more than others."""


def kernel_source(pattern: Pattern) -> str:
    """The whole source; its function is `kernel`."""
    return f"{shared_source()}\n{own_source(pattern)}"


def shared_source() -> str:
    """What the sources of all patterns begin with."""
    return "\n".join(map(file_text, _SHARED))


def own_source(pattern: Pattern) -> str:
    """Return the code that follows the shared declarations."""
    headers, files = _HEADERS.get(pattern.mode, ()), _FILES[pattern.mode]
    if pattern.mode in WARPGROUP_MODES:
        staged = dict(pattern.constants)["STAGED_BYTES"]
        files += "sm90/staged_results" if staged else "sm90/results", "sm90/ring"
        files += (
            "sm90/tf32_parts" if pattern.mode is Mode.WGMMA_PARTS else "sm90/mainloop",
            "sm90/contraction",
        )
    return "\n".join([*map(file_text, headers), printed(pattern), *map(file_text, files)])


def printed(pattern: Pattern) -> str:
    """What of the source depends on more than the mode."""
    return _PRINTERS.get(pattern.mode, Printer)(pattern).text()


@cache
def file_text(name: str) -> str:
    """A file of `kernels`."""
    return (Path(__file__).parent / "kernels" / f"{name}.cuh").read_text("utf-8")
