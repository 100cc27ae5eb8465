"""From a kernel pattern to its function in LLVM assembly."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from llvmlite import ir

from opendml.program import half_math, vector_math
from opendml.program.narrow import is_narrow
from opendml.program.node import FUNCTIONS, Node, rebuild
from opendml.targets.cpu import exponential_math, table_math
from opendml.targets.cpu.code import I64, POINTER
from opendml.targets.cpu.column_code import BoundedColumnCode, ColumnCode
from opendml.targets.cpu.contraction.chain_code import ChainCode
from opendml.targets.cpu.contraction.code import ContractionCode
from opendml.targets.cpu.contraction.dot_code import DotCode
from opendml.targets.cpu.contraction.image_code import BroadcastImageCode, ImageContractionCode
from opendml.targets.cpu.contraction.matrix_chain_code import MatrixChainCode
from opendml.targets.cpu.contraction.matrix_code import (
    MatrixCode,
    MatrixImageCode,
    MatrixPanelCode,
    MatrixStripCode,
    WordMatrixCode,
    WordMatrixPanelCode,
)
from opendml.targets.cpu.contraction.packing import PanelCode, StripCode
from opendml.targets.cpu.contraction.patterns import Chaining, Packing, Panels, Strips, Tiling
from opendml.targets.cpu.contraction.words import WordPanelCode, WordStripCode
from opendml.targets.cpu.element_code import ElementCode
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.pattern import ColumnWalk, CpuMode, CpuPattern
from opendml.targets.cpu.placing_code import ScatterCode, ScatterColumnCode
from opendml.targets.cpu.positions_code import PositionsCode
from opendml.targets.cpu.row_code import RowCode
from opendml.targets.cpu.scan_code import ScanColumnCode, ScanRowCode
from opendml.targets.cpu.tables import has_tables
from opendml.targets.cpu.top_code import TopCode

_CODE: dict[CpuMode, type[KernelCode]] = {
    CpuMode.POINTWISE: ElementCode,
    CpuMode.TRANSPOSED: ElementCode,
    CpuMode.SHORT_ROWS: ElementCode,
    CpuMode.SHARED_ROWS: ElementCode,
    CpuMode.ROWS: RowCode,
    CpuMode.ROWS_PARTIAL: RowCode,
    CpuMode.ROWS_COMBINE: RowCode,
    CpuMode.ROWS_MAP: RowCode,
    CpuMode.COLUMNS: ColumnCode,
    CpuMode.COLUMNS_PARTIAL: ColumnCode,
    CpuMode.COLUMNS_COMBINE: ColumnCode,
    CpuMode.COLUMNS_MAP: ColumnCode,
    CpuMode.SCAN_ROWS: ScanRowCode,
    CpuMode.SCAN_ROWS_COMBINE: ScanRowCode,
    CpuMode.SCAN_ROWS_MAP: ScanRowCode,
    CpuMode.SCAN_COLUMNS: ScanColumnCode,
    CpuMode.SCAN_COLUMNS_COMBINE: ScanColumnCode,
    CpuMode.SCAN_COLUMNS_MAP: ScanColumnCode,
    CpuMode.SCATTER: ScatterCode,
    CpuMode.SCATTER_COLUMNS: ScatterColumnCode,
    CpuMode.SCATTER_TILES: ScatterColumnCode,
    CpuMode.SCATTER_STRIPS: ScatterColumnCode,
    CpuMode.POSITIONS_CHUNKS: PositionsCode,
    CpuMode.POSITIONS: PositionsCode,
    CpuMode.TOP: TopCode,
    CpuMode.TOP_CHUNKS: TopCode,
    CpuMode.TOP_MERGE: TopCode,
    CpuMode.CONTRACTION: ContractionCode,
    CpuMode.CONTRACTION_DOTS: DotCode,
    CpuMode.CONTRACTION_MATRICES: MatrixCode,
    CpuMode.CONTRACTION_MATRICES_IMAGE: MatrixImageCode,
    CpuMode.CONTRACTION_IMAGE: ImageContractionCode,
    CpuMode.CONTRACTION_BROADCAST_IMAGE: BroadcastImageCode,
    CpuMode.CONTRACTION_PANELS: PanelCode,
    CpuMode.CONTRACTION_STRIPS: StripCode,
    CpuMode.CONTRACTION_CHAIN: ChainCode,
    CpuMode.CONTRACTION_CHAIN_MATRICES: MatrixChainCode,
}

_WORD_CODE: dict[CpuMode, type[KernelCode]] = {
    CpuMode.CONTRACTION_PANELS: WordPanelCode,
    CpuMode.CONTRACTION_STRIPS: WordStripCode,
}
"""Of operands whose elements are narrower than words."""

_MATRIX_CODE: dict[CpuMode, type[KernelCode]] = {
    CpuMode.CONTRACTION_PANELS: MatrixPanelCode,
    CpuMode.CONTRACTION_STRIPS: MatrixStripCode,
}
"""Of operands in pieces."""


class _Numbers:
    """A scope in which values are named by numbers: that a name is free need not be found out."""

    def __init__(self) -> None:
        self._names = map(str, count())

    def register(self, name: str, deduplicate: bool = False) -> str:
        """A new name."""
        return next(self._names)


def emit_kernel(module: ir.Module, name: str, pattern: CpuPattern, lanes: int) -> None:
    """Adds the function kernel(begin, end, parameters, buffers, room) of `pattern` to the module."""
    signature = ir.FunctionType(ir.VoidType(), [I64, I64, POINTER, POINTER, POINTER])
    function = ir.Function(module, signature, name)
    function.scope = _Numbers()
    function.attributes.add("nounwind")
    # Loops that fill or copy stay loops. llvmlite knows no attribute of this kind, but writes it as it is.
    set.add(function.attributes, '"no-builtins"')
    for argument in function.args[2:]:
        argument.add_attribute("noalias")
    _code_of(pattern)(function, _with_expanded(pattern), lanes).emit()


def _code_of(pattern: CpuPattern) -> type[KernelCode]:
    """What writes the code of a pattern."""
    tiling = pattern.walk
    if isinstance(tiling, Tiling) and tiling.a.turned:
        return WordMatrixCode
    if isinstance(tiling, Panels | Strips):
        if isinstance(tiling, Panels) and tiling.turned:
            return WordMatrixPanelCode
        if tiling.packing.in_pieces:
            return _MATRIX_CODE[pattern.mode]
        if tiling.packing.group > 1:
            return _WORD_CODE[pattern.mode]
    if isinstance(tiling, ColumnWalk) and tiling.bounded:
        return BoundedColumnCode
    return _CODE[pattern.mode]


def _with_expanded(pattern: CpuPattern) -> CpuPattern:
    """The pattern with all functions in basic operations."""
    tiling = pattern.walk
    if isinstance(tiling, Tiling):
        a = replace(tiling.a, packing=_packing(tiling.a.packing))
        tiling = replace(tiling, a=a, b=_packing(tiling.b))
    elif isinstance(tiling, Chaining):
        tiling = replace(
            tiling,
            a=replace(tiling.a, packing=_packing(tiling.a.packing)),
            b=_packing(tiling.b),
            weighted=_packing(tiling.weighted),
            scores=_with_expanded(tiling.scores),
        )
    elif isinstance(tiling, Panels | Strips):
        tiling = replace(tiling, packing=_packing(tiling.packing))
    return replace(pattern, values=rebuild(pattern.values, _expanded), walk=tiling)


def _packing(packing: Packing) -> Packing:
    return replace(packing, pattern=_with_expanded(packing.pattern))


def _expanded(node: Node) -> Node:
    """Return a function in basic operations."""
    if node.operation not in FUNCTIONS:
        return node
    if is_narrow(node):
        return table_math.expand_narrow(node) if has_tables() else half_math.expand(node)
    return exponential_math.expand(node) if has_tables() else vector_math.expand(node)
