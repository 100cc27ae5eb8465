"""Orders the loops of a kernel: which dimensions merge, and which is innermost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opendml.compiler.kernel import Access, Kernel
from opendml.late_dataclass import light_dataclass, replace
from opendml.program.sizes import Size, hint_of, hints_of


@light_dataclass(frozen=True, slots=True)
class Loop:
    """One loop: its count and the bytes that each access (loads, then stores) moves per step."""

    count: int
    strides: tuple[int, ...]


@light_dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops of a kernel: `groups` over kept dimensions, `rows` over reduced ones, outermost first, and
    `inner`."""

    groups: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    inner: Loop
    inner_reduced: bool


LONG = 8
"""Steps from which on the innermost loop of an element-wise kernel fills vectors. A shorter loop is innermost
only if there is no such loop."""

WIDEST_BUNDLE = 8
"""Accesses of a bundle, at most."""


def loops_over(kernel: Kernel, dimensions: Iterable[int]) -> list[Loop]:
    """Return the loops over some dimensions of a kernel."""
    domain, strides = kernel.domain, [access.strides for access in kernel.accesses]
    return [Loop(domain[each], tuple([own[each] for own in strides])) for each in dimensions]


MergedLoops = tuple[list[Loop], list[Loop]]
"""The loops of a kernel over kept and over reduced dimensions, merged if memory allows."""


def loop_nest(
    kernel: Kernel, keeps_inner: bool = False, inner: int | None = None, merged: MergedLoops | None = None
) -> LoopNest:
    """Return the loops of a kernel, merged if memory allows.

    Args:
        kernel: the kernel.
        keeps_inner: whether the innermost loop is over a kept dimension, if there is one.
        inner: the number of the innermost loop that `innermost_loop` returned for other sizes. None: choose
            the one along which most of the traffic is contiguous.
        merged: the loops of `merged_loops`, if they are known.
    """
    kept, reduced = merged or merged_loops(kernel)
    if not kept and not reduced:
        still = (0,) * len(kernel.accesses)
        return LoopNest((), (), Loop(1, still), bool(kernel.axes))
    number = _innermost(kernel, kept, reduced, keeps_inner) if inner is None else inner
    innermost, row = (kept + reduced)[number], number - len(kept)
    groups = (*kept[:number], *kept[number + 1 :])
    rows = (*reduced[:row], *reduced[row + 1 :]) if row >= 0 else tuple(reduced)
    return LoopNest(groups, rows, innermost, row >= 0)


class NumberedLoop(NamedTuple):
    """A loop of a nest by its number, among loops over kept dimensions, then others."""

    number: int
    kept: int
    """The number of loops over kept dimensions."""
    reduced: int
    """The number of loops over others."""


def innermost_loop(
    kernel: Kernel,
    keeps_inner: bool = False,
    traced: Kernel | None = None,
    merged: MergedLoops | None = None,
) -> NumberedLoop:
    """Return the innermost loop of a nest.

    Args:
        kernel: the kernel.
        keeps_inner: whether the innermost loop is over a kept dimension, if there is one.
        traced: the same kernel with traced sizes, whose loop is numbered; None: the kernel itself.
        merged: the loops of `traced`, if they are known.

    Plain sizes may merge loops that traced ones do not, or leave out loops of one step. Then loops have other
    numbers. The loop is chosen anew by the hints of traced sizes. It is reduced if that of plain sizes is.
    """
    kept, reduced = merged_loops(kernel)
    number = _innermost(kernel, kept, reduced, keeps_inner)
    loops = (kept, reduced) if traced is None else merged or merged_loops(traced)
    counts = len(loops[0]), len(loops[1])
    if traced is None or counts == (len(kept), len(reduced)):
        return NumberedLoop(number, *counts)
    traced_kept, traced_reduced = map(_with_hints, loops)
    if number < len(kept):
        return NumberedLoop(_innermost(traced, traced_kept, [], True), *counts)
    return NumberedLoop(len(traced_kept) + _innermost(traced, traced_reduced, [], True), *counts)


def innermost_by_hints(kernel: Kernel, keeps_inner: bool, merged: MergedLoops) -> NumberedLoop:
    """Return the innermost loop of the nest of a kernel with traced sizes, chosen by their hints.

    Args:
        kernel: the kernel.
        keeps_inner: whether the innermost loop is over a kept dimension, if there is one.
        merged: its loops.
    """
    kept, reduced = map(_with_hints, merged)
    return NumberedLoop(_innermost(kernel, kept, reduced, keeps_inner), len(kept), len(reduced))


def _with_hints(loops: Iterable[Loop]) -> list[Loop]:
    return [Loop(hint_of(each.count), tuple(hints_of(each.strides))) for each in loops]


def merged_loops(kernel: Kernel) -> MergedLoops:
    """Return the loops over kept and over reduced dimensions, merged if memory allows."""
    kept: list[Loop] = []
    reduced: list[Loop] = []
    for dimension, loop in enumerate(loops_over(kernel, range(len(kernel.domain)))):
        if loop.count > 1:
            (reduced if dimension in kernel.axes else kept).append(loop)
    counters = [
        number for number, access in enumerate(kernel.accesses) if access.buffer is None and kernel.axes
    ]
    return _merged(kept, counters), _merged(reduced, counters)


def _innermost(kernel: Kernel, kept: list[Loop], reduced: list[Loop], keeps_inner: bool) -> int:
    accesses = kernel.accesses
    candidates = kept if keeps_inner and kept else kept + reduced
    footprints = [
        access.type.bytes * math.prod(loop.count for loop in kept + reduced if loop.strides[position])
        for position, access in enumerate(accesses)
    ]

    def worth(number: int) -> tuple[bool, int, int]:
        loop = candidates[number]
        is_long = bool(kernel.axes) or loop.count >= LONG
        return is_long, _contiguous(loop, accesses, footprints), loop.count

    return max(range(len(candidates)), key=worth, default=0)


def line_nest(kernel: Kernel) -> LoopNest:
    """Return the loops of a kernel with its first axis innermost, whatever is contiguous; others are rows."""
    first, *others = kernel.axes
    loops = loops_over(kernel, range(len(kernel.domain)))
    lines = [loop for axis, loop in enumerate(loops) if loop.count > 1 and axis not in kernel.axes]
    rows = [loops[axis] for axis in others if loops[axis].count > 1]
    return LoopNest(tuple(_merged(lines, ())), tuple(_merged(rows, ())), loops[first], True)


def _merged(loops: Sequence[Loop], counters: Sequence[int]) -> list[Loop]:
    """Return the loops ordered by strides, those of some counters and of stores first, with neighbours
    merged."""

    def distance(loop: Loop) -> tuple[int, ...]:
        return *(loop.strides[number] for number in counters), *reversed(loop.strides)

    return merged_neighbours(sorted(loops, key=distance, reverse=True))


def merged_neighbours(loops: Sequence[Loop]) -> list[Loop]:
    """Return loops, outermost first, with neighbours merged along which every access moves evenly."""
    if len(loops) < 2:
        return list(loops)
    result: list[Loop] = []
    for loop in loops:
        if result and _continues(loop, result[-1].strides):
            result[-1] = Loop(result[-1].count * loop.count, loop.strides)
        else:
            result.append(loop)
    return result


def _continues(loop: Loop, outer: Sequence[int]) -> bool:
    """Return whether the strides of another loop are those of all steps of a loop."""
    count = loop.count
    for stride, step in zip(outer, loop.strides, strict=True):  # noqa: SIM110 - Most calls end at once.
        if stride != step * count:
            return False
    return True


def _contiguous(loop: Loop, accesses: Sequence[Access], footprints: Sequence[int]) -> int:
    """Return the bytes of accesses that are contiguous along a loop, alone or in bundles."""
    bundled = {number for bundle in bundles(accesses, loop.strides) for number in bundle}
    return sum(
        footprint
        for number, (access, footprint) in enumerate(zip(accesses, footprints, strict=True))
        if access.buffer is not None and (loop.strides[number] == access.type.bytes or number in bundled)
    )


def _may_be_bundled(access: Access, step: int) -> bool:
    """Return False if neighbours along the loop are neighbours in memory, or too far apart for a bundle.

    A size that changes is the width of no bundle, since code is made for each width.
    """
    size = access.type.bytes
    return access.buffer is not None and type(step) is not Size and 2 * size <= step <= WIDEST_BUNDLE * size


def bundles(accesses: Sequence[Access], steps: Sequence[int]) -> list[tuple[int, ...]]:
    """Return bundles of accesses, by their numbers, that together have all elements along a loop.

    For example, each of three accesses has every third element. No access is in two bundles.

    Args:
        accesses: loads, or stores; of a mixture bundles may have both.
        steps: the bytes that each moves with a step of the loop.
    """
    for each in zip(accesses, steps, strict=False):
        if _may_be_bundled(*each):
            break
    else:
        return []
    free = {access: number for number, access in reversed(list(enumerate(accesses)))}
    result = []
    for access in sorted(free, key=lambda access: hint_of(access.offset)):
        if access not in free or not _may_be_bundled(access, steps[free[access]]):
            continue
        size = access.type.bytes
        width, rest = divmod(steps[free[access]], size)
        if rest:
            continue
        bundle = [replace(access, offset=access.offset + number * size) for number in range(width)]
        if all(each in free for each in bundle):
            result.append(tuple(free.pop(each) for each in bundle))
    return sorted(result)
