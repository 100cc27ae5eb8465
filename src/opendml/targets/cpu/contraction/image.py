"""Finds the windows of an image among the operands of sums of products, and decides how the image is packed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from opendml.compiler.kernel import Kernel
from opendml.compiler.loops import Loop, LoopNest, merged_neighbours
from opendml.targets.cpu.contraction.packing import F32
from opendml.targets.cpu.contraction.roles import Roles, loops_over
from opendml.targets.cpu.launch import pattern_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import LINE, Image, Mode, Packing, Window

_ONE = Window(1, 1, 1)


@dataclass(frozen=True, slots=True)
class Seen:
    """Windows of an image that are multiplied: the roles in which they are, the dimensions of each along the
    rows and columns of the image (None: there is none), and the channels."""

    roles: Roles
    rows: tuple[Window, int | None, int | None]
    columns: tuple[Window, int | None, int | None]
    channels: tuple[int, ...]

    @property
    def image(self) -> Image:
        """How the image is packed."""
        return Image(self.rows[0], self.columns[0], machine().l2_bytes // 4 // F32.bytes)

    @property
    def width(self) -> int:
        """Windows beside each other."""
        return _size(self.roles, self.columns[1])

    @property
    def height(self) -> int:
        """Rows of windows."""
        return _size(self.roles, self.rows[1])

    @property
    def pitch(self) -> int:
        """Elements from one row of the image to the next."""
        return self.width + self.image.columns.reach

    def depth(self, products: int) -> int:
        """The products of whole channels that are added up at a time, at most so many."""
        return products // self.image.taps * self.image.taps

    def elements(self, rows: int, products: int) -> int:
        """Elements of the image's part that so many rows of windows see of so many products' channels."""
        image = self.image
        line = LINE // F32.bytes
        plane = -(-(rows + image.rows.reach) * self.pitch // line) * line + line
        return products // image.taps * image.phases * plane

    def packing(self, outer: list[Loop]) -> tuple[Packing, LoopNest]:
        """How the image is read, and its loops: those of channels, then of phases, rows and columns."""
        domain = list(self.roles.b.domain)
        phases = []
        for window, position, tap in (self.rows, self.columns):
            if position is not None:
                domain[position] += window.reach
            if tap is not None:
                domain[tap] = window.phases
                phases += [tap] * (window.phases > 1)
        part = replace(self.roles.b, domain=tuple(domain))
        still = Loop(1, (0,) * len(part.loads))
        channels = merged_neighbours(loops_over(part, self.channels))
        rows, columns = (
            loops_over(part, [position])[0] if position is not None else still
            for _, position, _ in (self.rows, self.columns)
        )
        majors = [*(channels or [still]), *loops_over(part, phases)]
        nest = LoopNest(tuple(outer), (*majors, rows), columns, False)
        return Packing(pattern_of(part, nest, Mode.CONTRACTION), len(majors), False), nest


def _size(roles: Roles, dimension: int | None) -> int:
    return 1 if dimension is None else roles.b.domain[dimension]


def seen_by(roles: Roles) -> Seen | None:
    """The windows that the operand whose elements are vectors consists of; None if it does not, or they are
    not multiplied channel by channel."""
    columns = roles.columns[-2:]
    outer = (*roles.outer, *roles.columns[: -len(columns)])
    taps = list(roles.depth)
    found: list[tuple[Window, int | None, int | None]] = []
    for position in reversed(columns):
        pair = next(_pairs(roles.b, position, taps[-1:]), None)
        if pair:
            taps.pop()
        found.append((pair or _ONE, position, roles.depth[len(taps)] if pair else None))
    if all(tap is None for _, _, tap in found):
        return None
    found.append((_ONE, None, None))
    return Seen(replace(roles, outer=outer, columns=columns), found[1], found[0], tuple(taps))


def _pairs(part: Kernel, position: int, taps: list[int]) -> Iterator[Window]:
    """The windows that lie one after the other along one dimension, and have their elements along another
    one: neighbours share some."""
    for tap in taps:
        strides = {(load.strides[position], load.strides[tap]) for load in part.loads} - {(0, 0)}
        if not strides or any(not one or not other for one, other in strides):
            continue
        ratios = {Fraction(one, other) for one, other in strides}
        (ratio, *others) = ratios
        stride, dilation = ratio.numerator, ratio.denominator
        overlaps = 0 < stride < part.domain[tap] and dilation < part.domain[position]
        if not others and overlaps and 1 in (stride, dilation):
            yield Window(part.domain[tap], stride, dilation)
