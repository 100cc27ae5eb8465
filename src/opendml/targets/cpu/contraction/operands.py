"""How operands of products are walked and packed: which of their dimensions lie along rows, and the loops."""

from __future__ import annotations

from collections.abc import Sequence

from opendml.compiler.kernel import Access, Kernel
from opendml.compiler.loops import Loop, LoopNest, merged_neighbours
from opendml.program.scalar_type import ScalarType
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.patterns import Packing
from opendml.targets.cpu.contraction.roles import Roles, loops_over
from opendml.targets.cpu.launch import pattern_of
from opendml.targets.cpu.pattern import CpuMode


def packing_of(
    part: Kernel,
    outer: Sequence[Loop],
    majors: Sequence[int],
    minors: Sequence[int],
    along_depth: bool,
    type: ScalarType,
    in_pieces: bool = False,
) -> tuple[Packing, LoopNest]:
    """How an operand is read and packed, and its loops."""
    major, minor = (merged_neighbours(loops_over(part, each)) for each in (majors, minors))
    inner = minor[-1] if minor else Loop(1, (0,) * len(part.loads))
    nest = LoopNest(tuple(outer), (*major, *minor[:-1]), inner, False)
    pattern = pattern_of(part, nest, CpuMode.CONTRACTION)
    return Packing(pattern, len(major), along_depth, type, in_pieces), nest


def a_along_depth(roles: Roles) -> bool:
    contiguous = is_contiguous(roles.a.loads, roles.depth) or not is_contiguous(roles.a.loads, roles.rows)
    return contiguous and _begins_words(roles, roles.a)


def b_along_depth(roles: Roles) -> bool:
    contiguous = is_contiguous(roles.b.loads, roles.depth) and not is_contiguous(roles.b.loads, roles.columns)
    return contiguous and _begins_words(roles, roles.b)


def _begins_words(roles: Roles, part: Kernel) -> bool:
    """Whether each run of an operand along k begins a word."""
    loops = merged_neighbours(loops_over(part, roles.depth))
    return len(loops) < 2 or loops[-1].count % roles.group == 0


def a_order(roles: Roles) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The major and the minor dimensions of a."""
    return (roles.rows, roles.depth) if a_along_depth(roles) else (roles.depth, roles.rows)


def b_order(roles: Roles) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The major and the minor dimensions of b."""
    return (roles.columns, roles.depth) if b_along_depth(roles) else (roles.depth, roles.columns)


def is_contiguous(accesses: Sequence[Access], dimensions: Sequence[int]) -> bool:
    """Whether neighbours along the innermost of the dimensions are neighbours in memory, of some access."""
    return any(
        access.strides[number] == access.type.bytes for access in accesses for number in dimensions[-1:]
    )


def common_loops(parts: Sequence[Kernel], dimensions: Sequence[int]) -> list[list[Loop]]:
    """The loops of all parts over some dimensions, merged where all allow it: for each part its own."""
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


def epilogue_nest(roles: Roles, outer: Sequence[Loop]) -> LoopNest:
    """The loops of the epilogue: those over rows, one over columns. Its last load, the sums, moves with the
    columns."""
    part = roles.epilogue
    position = len(part.loads) - 1
    still = (0,) * (position + 1 + len(part.stores))
    rows, (columns,) = (
        merged_neighbours(loops_over(part, each)) or [Loop(1, still)] for each in (roles.rows, roles.columns)
    )
    strides = (*columns.strides[:position], F32.bytes, *columns.strides[position + 1 :])
    return LoopNest(tuple(outer), tuple(rows), Loop(columns.count, strides), False)
