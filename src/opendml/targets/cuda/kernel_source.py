"""The CUDA C++ of a pattern: what all patterns share, what depends on the pattern, and the mode's code; the
files are in `kernels`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from opendml.targets.cuda.attention_source import AttentionPrinter
from opendml.targets.cuda.chain_source import ChainPrinter
from opendml.targets.cuda.contraction_source import ContractionPrinter
from opendml.targets.cuda.depthwise_source import DepthwisePrinter
from opendml.targets.cuda.few_rows_source import FewRowsPrinter
from opendml.targets.cuda.pattern import PARTS_MODES, WARPGROUP_MODES, WINDOW_MODES, CudaMode, CudaPattern
from opendml.targets.cuda.placing_source import PlacingPrinter, PositionsPrinter
from opendml.targets.cuda.reduction_source import ReductionPrinter
from opendml.targets.cuda.scan_source import ScanPrinter
from opendml.targets.cuda.short_sums_source import ShortSumsPrinter
from opendml.targets.cuda.source import Printer
from opendml.targets.cuda.top_source import TopPrinter
from opendml.targets.cuda.warpgroup_source import (
    ByteConvolutionPrinter,
    BytesPrinter,
    ConvolutionPrinter,
    PartConvolutionPrinter,
    PartsPrinter,
    WarpgroupPrinter,
)

_SHARED = ("instructions", "common", "quotients")
"""The files that all patterns have, before what is printed."""

_FILES = {
    CudaMode.POINTWISE: ("pointwise",),
    CudaMode.TRANSPOSED: ("transposed",),
    CudaMode.REDUCE: ("meeting", "reduction"),
    CudaMode.SCAN: ("published_values", "scan"),
    CudaMode.SCATTER: ("scatter",),
    CudaMode.SCATTER_LINES: ("scatter_lines",),
    CudaMode.POSITIONS: ("published_values", "positions"),
    CudaMode.TOP: ("words", "top"),
    CudaMode.SORT: ("words", "meeting", "sort"),
    CudaMode.FMA: ("operands", "computed", "unshifted", "fma", "contraction"),
    CudaMode.MMA: ("operands", "computed", "fragments", "warp_tile", "unshifted", "mma", "contraction"),
    CudaMode.IMMA: ("operands", "computed", "fragments", "warp_tile", "shifts", "mma", "contraction"),
    CudaMode.WGMMA: ("sm90/tiles", "sm90/product"),
    CudaMode.WGMMA_BFLOAT16: ("sm90/tiles", "sm90/product"),
    **dict.fromkeys(WINDOW_MODES, ("sm90/tiles", "sm90/convolution")),
    CudaMode.WGMMA_BYTES: ("sm90/tiles", "sm90/product"),
    CudaMode.WGMMA_PARTS: ("sm90/tiles", "sm90/product"),
    CudaMode.DEPTHWISE: ("depthwise",),
    CudaMode.SHORT_SUMS: ("short_sums",),
    CudaMode.FMA_CHAIN: ("operands", "computed", "chain_fma", "chain"),
    CudaMode.MMA_CHAIN: ("operands", "computed", "fragments", "chain_mma", "chain"),
    CudaMode.WGMMA_CHAIN: ("sm90/attention",),
    CudaMode.FEW_ROWS_CHAIN: ("few_rows",),
}
"""The files of each mode, after what is printed."""

_MAIN_LOOPS = {
    CudaMode.WGMMA_BYTES: ("sm90/shifts", "sm90/mainloop"),
    CudaMode.WGMMA_BYTE_WINDOWS: ("sm90/shifts", "sm90/mainloop"),
    **dict.fromkeys(PARTS_MODES, ("sm90/tf32_parts",)),
}
"""The main loops of warpgroups' modes, but for those of FLOAT16 and BFLOAT16."""

_HEADERS = {
    **dict.fromkeys(
        (*WARPGROUP_MODES, CudaMode.WGMMA_CHAIN), ("sm90/instructions", "sm90/units", "sm90/quads")
    ),
    **dict.fromkeys(
        (
            CudaMode.FMA,
            CudaMode.MMA,
            CudaMode.IMMA,
            CudaMode.DEPTHWISE,
            CudaMode.SHORT_SUMS,
            CudaMode.FMA_CHAIN,
            CudaMode.MMA_CHAIN,
        ),
        ("sm90/units",),
    ),
}
"""The files of modes that come before what is printed."""

_PRINTERS: dict[CudaMode, type[Printer]] = {
    CudaMode.REDUCE: ReductionPrinter,
    CudaMode.SCAN: ScanPrinter,
    CudaMode.SCATTER: PlacingPrinter,
    CudaMode.SCATTER_LINES: PlacingPrinter,
    CudaMode.POSITIONS: PositionsPrinter,
    CudaMode.TOP: TopPrinter,
    CudaMode.SORT: TopPrinter,
    CudaMode.FMA: ContractionPrinter,
    CudaMode.MMA: ContractionPrinter,
    CudaMode.IMMA: ContractionPrinter,
    CudaMode.WGMMA: WarpgroupPrinter,
    CudaMode.WGMMA_BFLOAT16: WarpgroupPrinter,
    CudaMode.WGMMA_WINDOWS: ConvolutionPrinter,
    CudaMode.WGMMA_BFLOAT16_WINDOWS: ConvolutionPrinter,
    CudaMode.WGMMA_BYTES: BytesPrinter,
    CudaMode.WGMMA_BYTE_WINDOWS: ByteConvolutionPrinter,
    CudaMode.WGMMA_PARTS: PartsPrinter,
    CudaMode.WGMMA_PART_WINDOWS: PartConvolutionPrinter,
    CudaMode.DEPTHWISE: DepthwisePrinter,
    CudaMode.SHORT_SUMS: ShortSumsPrinter,
    CudaMode.FMA_CHAIN: ChainPrinter,
    CudaMode.MMA_CHAIN: ChainPrinter,
    CudaMode.WGMMA_CHAIN: AttentionPrinter,
    CudaMode.FEW_ROWS_CHAIN: FewRowsPrinter,
}
"""Printers of the modes that need more than the others."""


def kernel_source(pattern: CudaPattern) -> str:
    """Return the whole source, whose function is `kernel`."""
    return f"{shared_source()}\n{own_source(pattern)}"


def shared_source() -> str:
    """Return the declarations with which the sources of all patterns begin."""
    return "\n".join(map(file_text, _SHARED))


def own_source(pattern: CudaPattern) -> str:
    """Return the code that follows the shared declarations."""
    headers, files = _HEADERS.get(pattern.mode, ()), _FILES[pattern.mode]
    if pattern.mode in WARPGROUP_MODES:
        files += _results_file(pattern), "sm90/ring", "sm90/cluster_slices"
        files += (*_MAIN_LOOPS.get(pattern.mode, ("sm90/unshifted", "sm90/mainloop")), "sm90/contraction")
    return "\n".join([*map(file_text, headers), printed(pattern), *map(file_text, files)])


def _results_file(pattern: CudaPattern) -> str:
    """Return the file that stores the results of warpgroups."""
    constants = dict(pattern.constants)
    if constants["EXCHANGED"]:
        return "sm90/exchanged_results"
    return "sm90/staged_results" if constants["STAGED_BYTES"] else "sm90/results"


def printed(pattern: CudaPattern) -> str:
    """Return the part of the source that depends on more than the mode."""
    return _PRINTERS.get(pattern.mode, Printer)(pattern).text()


@cache
def file_text(name: str) -> str:
    """Return the text of a file of `kernels`."""
    return (Path(__file__).parent / "kernels" / f"{name}.cuh").read_text("utf-8")
