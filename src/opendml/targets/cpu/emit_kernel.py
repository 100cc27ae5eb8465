"""The function of a kernel pattern in LLVM assembly, by the code of its mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opendml.program import half_math, vector_math
from opendml.program.narrow import is_narrow
from opendml.program.node import FUNCTIONS, Node, rebuild
from opendml.targets.cpu import exponential_math, ir, table_math
from opendml.targets.cpu.code import I64, POINTER, Code
from opendml.targets.cpu.column_code import BoundedColumnCode, ColumnCode
from opendml.targets.cpu.contraction.dispatch import chain_code, contraction_code
from opendml.targets.cpu.contraction.packers import pack_ahead_code
from opendml.targets.cpu.contraction.tiling import expanded_walk
from opendml.targets.cpu.element_code import ElementCode
from opendml.targets.cpu.kernel_code import KernelCode
from opendml.targets.cpu.pattern import ColumnWalk, CpuMode, CpuPattern
from opendml.targets.cpu.placing_code import ScatterCode, ScatterColumnCode
from opendml.targets.cpu.positions_code import PositionsCode
from opendml.targets.cpu.row_code import RowCode
from opendml.targets.cpu.scan_code import ScanColumnCode, ScanRowCode
from opendml.targets.cpu.tables import has_tables
from opendml.targets.cpu.top_code import TopCode

_CODE: dict[CpuMode, Callable[[Code, CpuPattern], KernelCode]] = {
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
    CpuMode.CONTRACTION: contraction_code,
    CpuMode.CONTRACTION_PACK: pack_ahead_code,
    CpuMode.CONTRACTION_CHAIN: chain_code,
}
"""The code of each mode. A contraction's depends on its tiling too."""


def emit_kernel(module: ir.Module, name: str, pattern: CpuPattern, lanes: int) -> None:
    """Add the function kernel(begin, end, parameters, buffers, scratch) of `pattern` to the module."""
    function = ir.Function(module, ir.VOID, [I64, I64, POINTER, POINTER, POINTER], name)
    # Loops that fill or copy stay loops.
    function.attributes += ["nounwind", '"no-builtins"']
    for argument in function.args[2:]:
        argument.add_attribute("noalias")
    _code_of(pattern)(Code(function, lanes), _with_expanded(pattern)).emit()


def _code_of(pattern: CpuPattern) -> Callable[[Code, CpuPattern], KernelCode]:
    """Return the code of a pattern: that of its mode, unless rows of columns end at a bound."""
    if isinstance(pattern.walk, ColumnWalk) and pattern.walk.bounded:
        return BoundedColumnCode
    return _CODE[pattern.mode]


def _with_expanded(pattern: CpuPattern) -> CpuPattern:
    """Return the pattern with all functions in basic operations."""
    walk = expanded_walk(pattern.walk, _with_expanded)
    return replace(pattern, values=rebuild(pattern.values, _expanded), walk=walk)


def _expanded(node: Node) -> Node:
    """Return a function in basic operations."""
    if node.operation not in FUNCTIONS:
        return node
    if is_narrow(node):
        return table_math.expand_narrow(node) if has_tables() else half_math.expand(node)
    return exponential_math.expand(node) if has_tables() else vector_math.expand(node)
