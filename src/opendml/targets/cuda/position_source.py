"""Prints where the elements of an access lie: byte offsets from its first element."""

from __future__ import annotations

from opendml.targets.common.pattern import Step
from opendml.targets.cuda.cxx import function, template
from opendml.targets.cuda.parameters import words_of
from opendml.targets.cuda.pattern import CudaMode, CudaPattern


def positions(pattern: CudaPattern) -> list[str]:
    """Return the structure Offsets, and the functions that give the offsets of groups, rows and units."""
    own = [number for number in range(len(pattern.accesses)) if pattern.offset(number) == number]
    offsets = "".join(f" Index a{number};" for number in own)
    broken = broken_accesses(pattern)
    if broken:
        offsets += "".join(f" Index next{number};" for number in broken) + " Index row; int turn;"
    in_row = [
        f"to.a{number} += at * V * (Index){step_of(pattern, number)};"
        for number in own
        if pattern.accesses[number].step not in (Step.NONE, Step.BROKEN)
        and not pattern.accesses[number].still
    ]
    if broken:
        in_group = [
            "const Index row = divide(unit * V, p.row_length), last = p.rows - 1;",
            "to = in_row<V>(p, to, unit);",
            "to.row = row;",
            "to.turn = (int)((row + 1) * (Index)p.row_length.count - unit * V);",
            "const Offsets next = at_row(p, to, row < last ? row + 1 : last);",
            *(f"to.next{number} = next.a{number};" for number in broken),
            "return at_row(p, to, row);",
        ]
    elif pattern.flat:
        in_group = ["return in_row<V>(p, to, unit);"]
    elif pattern.columns or pattern.mode in (CudaMode.POINTWISE, CudaMode.TRANSPOSED):
        in_group = ["return at_row(p, to, unit);"]
    elif pattern.row_loops and "row_length" in words_of(pattern.mode).divisors:
        in_group = [
            "const Index row = divide(unit, p.row_length);",
            "return in_row<V>(p, at_row(p, to, row), unit - row * (Index)p.row_length.count);",
        ]
    else:
        in_group = ["return in_row<V>(p, to, unit);"]
    return [
        "// Bytes from the first element of each access; where units run over the ends of rows, also\n"
        "// those in the next row, and the lane with which that begins.\n"
        f"struct Offsets {{{offsets} }};",
        function(
            "Offsets at_group(const Parameters& p, Index at)",
            ["Offsets to = {};", *_loops(pattern, "group", 0, pattern.group_loops), "return to;"],
        ),
        function(
            "Offsets at_row(const Parameters& p, Offsets to, Index at)",
            [*loops_of_rows(pattern, 0, pattern.row_loops), "return to;"],
        ),
        template("Offsets in_row(const Parameters& p, Offsets to, Index at)", [*in_row, "return to;"]),
        template("Offsets in_group(const Parameters& p, Offsets to, Index unit)", in_group),
    ]


def item_position(pattern: CudaPattern) -> str:
    """Return the function that finds the start of an item: a group, or the groups side by side of a unit."""
    lines = ["return at_group(p, item);"]
    if pattern.columns:
        lines = [
            "const Index group = divide(item, p.column_tiles);",
            "return in_row<VECTOR>(p, at_group(p, group), item - group * (Index)p.column_tiles.count);",
        ]
    return function("Offsets at_item(const Parameters& p, Index item)", lines)


def broken_accesses(pattern: CudaPattern) -> list[int]:
    """Return the accesses that change at the ends of rows, within units."""
    return [number for number, a in enumerate(pattern.accesses) if a.step is Step.BROKEN]


def loops_of_rows(pattern: CudaPattern, first: int, last: int) -> list[str]:
    """Split the index `at` into those of the loops over rows from `first` up to `last`, and move `to`."""
    return _loops(pattern, "row", first, last)


def _loops(pattern: CudaPattern, kind: str, first: int, last: int) -> list[str]:
    """Split the index `at` into the indices of nested loops, and move `to` along each."""
    lines = ["Index rest, index;"] if last > first else []
    for loop in reversed(range(first, last)):
        if loop > first:
            lines.append(f"rest = divide(at, p.{kind}_count{loop});")
            lines.append(f"index = at - rest * (Index)p.{kind}_count{loop}.count;")
            lines.append("at = rest;")
        else:
            lines.append("index = at;")
        for number, access in enumerate(pattern.accesses):
            moves = (access.groups if kind == "group" else access.rows)[loop]
            known = access.strides[loop] if kind == "row" and access.strides else None
            stride = f"p.{kind}{number}_{loop}" if known is None else known
            if moves and pattern.offset(number) == number:
                lines.append(f"to.a{number} += index * (Index){stride};")
    return lines


def step_of(pattern: CudaPattern, number: int) -> str:
    """Return the bytes from one element to the next along the innermost loop."""
    if pattern.accesses[number].still:
        return "0"
    first = pattern.offset(number)
    access = pattern.accesses[first]
    if access.step is not Step.STRIDED:
        return str(access.type.bytes)
    return f"p.step{first}" if access.stride is None else f"({access.stride})"
