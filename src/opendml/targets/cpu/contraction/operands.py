"""The loops in which operands of products are walked, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest, loops_over, merged_neighbours
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.roles import Roles
from opendml.targets.cpu.contraction.tiling import Packing
from opendml.targets.cpu.launch import pattern_of
from opendml.targets.cpu.pattern import CpuMode


def packing_of_a(roles: Roles, part: Kernel, outer: Sequence[Loop]) -> tuple[Packing, LoopNest]:
    """Return how A is read, and its loops. `part` is what computes it, or counts where its panels are."""
    along_depth = a_along_depth(roles)
    orders = (roles.rows, roles.depth) if along_depth else (roles.depth, roles.rows)
    return _packing(part, outer, orders, along_depth, roles.types[0])


def packing_of_b(roles: Roles, part: Kernel, outer: Sequence[Loop]) -> tuple[Packing, LoopNest]:
    """Return how B is read, and its loops. `part` is what computes it, or counts where its panels are."""
    along_depth = b_along_depth(roles)
    orders = (roles.columns, roles.depth) if along_depth else (roles.depth, roles.columns)
    return _packing(part, outer, orders, along_depth, roles.types[1])


def _packing(
    part: Kernel,
    outer: Sequence[Loop],
    orders: tuple[Sequence[int], Sequence[int]],
    along_depth: bool,
    type: ScalarType,
) -> tuple[Packing, LoopNest]:
    """Return how an operand is read whose major and minor dimensions are given."""
    major, minor = (merged_neighbours(loops_over(part, each)) for each in orders)
    inner = minor[-1] if minor else Loop(1, (0,) * len(part.loads))
    nest = LoopNest(tuple(outer), (*major, *minor[:-1]), inner, False)
    return Packing(pattern_of(part, nest, CpuMode.CONTRACTION), len(major), along_depth, type), nest


def a_along_depth(roles: Roles) -> bool:
    """Return whether the minor dimension of A is k, as it is read."""
    contiguous = is_contiguous(roles.a.loads, roles.depth) or not is_contiguous(roles.a.loads, roles.rows)
    return contiguous and _begins_groups(roles, roles.a)


def b_along_depth(roles: Roles) -> bool:
    """Return whether the minor dimension of B is k, as it is read."""
    contiguous = is_contiguous(roles.b.loads, roles.depth) and not is_contiguous(roles.b.loads, roles.columns)
    return contiguous and _begins_groups(roles, roles.b)


def _begins_groups(roles: Roles, part: Kernel) -> bool:
    """Return whether each run of an operand along k begins a group."""
    loops = merged_neighbours(loops_over(part, roles.depth))
    return len(loops) < 2 or loops[-1].count % roles.group == 0


def is_contiguous(accesses: Sequence[Access], dimensions: Sequence[int]) -> bool:
    """Return whether neighbours along the innermost of the dimensions are neighbours in memory in some
    access."""
    return any(
        access.strides[number] == access.type.bytes for access in accesses for number in dimensions[-1:]
    )


def common_loops(parts: Sequence[Kernel], dimensions: Sequence[int]) -> list[list[Loop]]:
    """Return the loops of each part over some dimensions. Loops are merged if all parts allow it."""
    each = [loops_over(part, dimensions) for part in parts]
    joint = [
        Loop(loops[0].count, tuple(stride for loop in loops for stride in loop.strides))
        for loops in zip(*each, strict=True)
    ]
    merged = merged_neighbours(joint)
    result, first = [], 0
    for part in parts:
        last = first + len(part.loads) + len(part.stores)
        result.append([Loop(loop.count, loop.strides[first:last]) for loop in merged])
        first = last
    return result


def epilogue_nest(roles: Roles, outer: Sequence[Loop], turns: bool = False) -> LoopNest:
    """Return the loops of the epilogue: those over rows, and one over columns. Its last load, the sums, moves
    with the columns. If it `turns`, the columns of tiles are its rows."""
    part = roles.epilogue
    position = len(part.loads) - 1
    still = (0,) * (position + 1 + len(part.stores))
    dimensions = (roles.columns, roles.rows) if turns else (roles.rows, roles.columns)
    rows, (columns,) = (merged_neighbours(loops_over(part, each)) or [Loop(1, still)] for each in dimensions)
    strides = (*columns.strides[:position], F32.bytes, *columns.strides[position + 1 :])
    return LoopNest(tuple(outer), tuple(rows), Loop(columns.count, strides), False)
