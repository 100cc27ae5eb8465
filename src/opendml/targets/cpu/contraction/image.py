"""Finds the windows of an image among the operands of sums of products, and says how the image is packed."""

from __future__ import annotations

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
    broadcast: bool
    """Whether their elements are broadcast, and not those of vectors."""
    rows: tuple[Window, int | None, int | None]
    columns: tuple[Window, int | None, int | None]
    channels: tuple[int, ...]

    @property
    def image(self) -> Image:
        """How the image is packed."""
        return Image(self.rows[0], self.columns[0], machine().l2_bytes // 4 // F32.bytes)

    @property
    def part(self) -> Kernel:
        """The operand that they are."""
        return self.roles.a if self.broadcast else self.roles.b

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
        domain = list(self.part.domain)
        phases = []
        for window, position, tap in (self.rows, self.columns):
            if position is not None:
                domain[position] += window.reach
            if tap is not None:
                domain[tap] = window.phases
                phases += [tap] * (window.phases > 1)
        part = replace(self.part, domain=tuple(domain))
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
    return 1 if dimension is None else roles.a.domain[dimension]


def seen_by(roles: Roles, broadcast: bool) -> Seen | None:
    """The windows that an operand consists of, the one whose elements are broadcast or the other one; None if
    it does not."""
    part, dimensions = (roles.a, roles.rows) if broadcast else (roles.b, roles.columns)
    image = dimensions[-2:]
    outer = (*roles.outer, *dimensions[: -len(image)])
    channels = list(roles.depth)
    found: list[tuple[Window, int | None, int | None]] = []
    for position in image:
        tap = next((each for each in channels if _window(part, position, each)), None)
        if tap is not None:
            channels.remove(tap)
        window = _window(part, position, tap) if tap is not None else None
        found.append((window or _ONE, position, tap))
    taps = [tap for _, _, tap in found if tap is not None]
    if not taps:
        return None
    found = [(_ONE, None, None)] * (2 - len(found)) + found
    roles = replace(roles, outer=outer, depth=(*channels, *taps))
    roles = replace(roles, rows=image) if broadcast else replace(roles, columns=image)
    return Seen(roles, broadcast, found[0], found[1], tuple(channels))


def _window(part: Kernel, position: int, tap: int) -> Window | None:
    """The windows that lie one after the other along one dimension, and have their elements along another
    one, where neighbours share some; None if there are none."""
    strides = {(load.strides[position], load.strides[tap]) for load in part.loads} - {(0, 0)}
    if not strides or any(not one or not other for one, other in strides):
        return None
    ratio, *others = {Fraction(one, other) for one, other in strides}
    stride, dilation = ratio.numerator, ratio.denominator
    overlap = 0 < stride < part.domain[tap] and dilation < part.domain[position]
    if others or not overlap or 1 not in (stride, dilation):
        return None
    return Window(part.domain[tap], stride, dilation)
