"""The operands of sums of products that are windows of an image, and how the image is packed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from opendml.across_forks import cached_property
from opendml.compiler.kernel import Access, Kernel, number_of, operations_of
from opendml.compiler.loops import Loop, LoopNest, loops_over, merged_neighbours
from opendml.compiler.sized import plain
from opendml.late_dataclass import dataclass, replace
from opendml.program.node import Operation, ordered
from opendml.program.sizes import hint_of, is_traced, least, names_of
from opendml.targets.cpu.contraction.arithmetic import F32
from opendml.targets.cpu.contraction.roles import Roles, roles_of
from opendml.targets.cpu.contraction.tiling import BF16_PARTS, DEPTH, STEP, Image, ImageWindow, Packing
from opendml.targets.cpu.launch import pattern_of
from opendml.targets.cpu.machine import machine
from opendml.targets.cpu.pattern import LINE, CpuMode

WindowAlong = tuple[ImageWindow, int | None, int | None]
"""The windows along a dimension of an image, with the dimensions of positions and of elements, if there are
any."""
_ONE = ImageWindow(1, 1, 1)


@dataclass(frozen=True)
class ViewedImage:
    """An image whose windows are an operand.

    `rows` and `columns` are the windows along the rows and columns of the image.
    """

    roles: Roles
    broadcast: bool
    """True if they are A, and not B."""
    rows: WindowAlong
    columns: WindowAlong
    channels: tuple[int, ...]
    """The dimensions of channels, of narrow integers those of groups."""
    sharing: tuple[int, ...] = ()
    """The dimension of the channels of a group, if there are several."""
    in_bf16: bool = False
    """True if AMX multiplies them in bfloat16 parts, STEP channels at a time."""

    @cached_property
    def image(self) -> Image:
        """The way to pack the image."""
        return Image(self.rows[0], self.columns[0], machine().l2_bytes // 4 // F32.bytes)

    @cached_property
    def part(self) -> Kernel:
        """The operand."""
        return self.roles.a if self.broadcast else self.roles.b

    @cached_property
    def width(self) -> int:
        """The windows beside each other."""
        return _size(self.roles, self.columns[1])

    @cached_property
    def height(self) -> int:
        """The rows of windows."""
        return _size(self.roles, self.rows[1])

    @cached_property
    def pitch(self) -> int:
        """The elements from one row of the image to the next."""
        return self.width + self.image.columns.reach

    @property
    def part_taps(self) -> int:
        """The elements of a window in a part that AMX multiplies: a row of the window, or all of it if its
        rows have one element each."""
        rows, columns = self.rows[0].extent, self.columns[0].extent
        return columns if columns > 1 else rows

    @property
    def depth(self) -> int:
        """The products (or groups) of whole channels in a part. For AMX these are the products of a row of a
        window of STEP channels."""
        if self.in_bf16:
            return STEP * self.part_taps
        return DEPTH // self.image.taps * self.image.taps

    @property
    def most_plane_elements(self) -> int:
        """The most elements that a plane of one channel and phase may have.

        Scratch memory has room for so many: each plane takes whole lines, and one more.
        """
        image, line, products = self.image, LINE // F32.bytes, least(self.depth, self.roles.k_groups)
        planes = image.phases * (STEP * BF16_PARTS // 2 if self.in_bf16 else products // image.taps)
        return (image.elements // planes // line - 1) * line

    def plane_elements(self, rows: int) -> int:
        """Return the elements of a plane of one channel and phase that `rows` rows of windows read."""
        return (rows + self.image.rows.reach) * self.pitch

    def span(self, lines: int) -> int:
        """Return the elements from the first of `lines` rows of windows to the last."""
        return (lines - 1) * self.pitch + self.width

    def packing(self, outer: list[Loop]) -> tuple[Packing, LoopNest]:
        """Return how the image is read, and its loops: those of channels, then of phases, rows, channels of a
        group, and columns."""
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
        nest = LoopNest(tuple(outer), (*majors, rows, *loops_over(part, self.sharing)), columns, False)
        type = self.roles.types[0 if self.broadcast else 1]
        pattern = pattern_of(part, nest, CpuMode.CONTRACTION)
        return Packing(pattern, len(majors), False, type), nest


def _size(roles: Roles, dimension: int | None) -> int:
    return 1 if dimension is None else roles.a.domain[dimension]


def viewed_image(roles: Roles, broadcast: bool, in_bf16: bool = False) -> ViewedImage | None:
    """Return the image whose windows are A (if `broadcast`) or B. None: there is no such image, or groups
    would have elements of several windows."""
    group = STEP if in_bf16 else roles.group
    if roles.types[0] is not F32 and (broadcast or roles.group == 1):
        return None
    part, dimensions = (roles.a, roles.rows) if broadcast else (roles.b, roles.columns)
    image = dimensions[-2:]
    outer = (*roles.outer, *dimensions[: -len(image)])
    found = windows_along(image, roles.depth, part.domain, [load.strides for load in part.loads])
    taps = [tap for _, _, tap in found if tap is not None]
    if not taps:
        return None
    channels = [each for each in roles.depth if each not in taps]
    found = [(_ONE, None, None)] * (2 - len(found)) + found
    sharing: tuple[int, ...] = ()
    if group > 1:
        if not channels or not _fills_groups(roles, channels[-1], group) or _subtracts_by(roles.b, image):
            return None
        sharing = (len(roles.a.domain),)
        roles = _divided(roles, channels[-1], group)
    roles = replace(roles, outer=outer, depth=(*channels, *taps, *sharing))
    roles = replace(roles, rows=image) if broadcast else replace(roles, columns=image)
    return ViewedImage(roles, broadcast, found[0], found[1], tuple(channels), sharing, in_bf16)


def windows_along(
    image: Sequence[int], summed: Sequence[int], domain: Sequence[int], strides: Sequence[Sequence[int]]
) -> list[WindowAlong]:
    """Return the windows along each dimension of an image.

    Args:
        image: the dimensions of positions.
        summed: the dimensions of which those of elements are found.
        domain: the sizes of all dimensions.
        strides: those of each load of the image.
    """
    found: list[WindowAlong] = []
    taps = list(summed)
    for position in image:
        own: WindowAlong = _ONE, position, None
        for tap in taps:
            window = _window(position, tap, domain, strides)
            if window is not None:
                own = window, position, tap
                taps.remove(tap)
                break
        found.append(own)
    return found


def image_dimensions_of(kernel: Kernel) -> frozenset[str]:
    """Return the dimensions of the image whose windows a kernel multiplies.

    There are none unless both height and width vary.
    """
    if not any(map(is_traced, kernel.domain)) or Operation.CONTRACTION not in operations_of(kernel.values):
        return frozenset()
    roles = roles_of(plain(kernel), False)
    image = None if roles is None else viewed_image(roles, False)
    if image is None:
        return frozenset()
    sizes = [kernel.domain[number] for _, number, _ in (image.rows, image.columns) if number is not None]
    names = [names_of(size) for size in sizes]
    return frozenset().union(*names) if len(names) == 2 and all(names) else frozenset()


def _fills_groups(roles: Roles, channel: int, group: int) -> bool:
    """Return whether neighbours along a dimension of B fill groups, and are equal functions of memory."""
    counted = any(load.strides[channel] for load in roles.b.loads if load.buffer is None)
    return not counted and roles.a.domain[channel] % group == 0


def _subtracts_by(part: Kernel, dimensions: Sequence[int]) -> bool:
    """Return whether what is subtracted from elements differs along some dimensions."""
    loads = [node for node in ordered(part.values[1:]) if node.operation is Operation.SOURCE]
    return any(part.loads[number_of(load)].strides[each] for load in loads for each in dimensions)


def _divided(roles: Roles, channel: int, group: int) -> Roles:
    """Return the roles with the channels of a group as a dimension of their own, behind all others."""

    def divided(part: Kernel) -> Kernel:
        domain = list(part.domain)
        domain[channel] //= group
        loads, stores = ([along_both(each) for each in accesses] for accesses in (part.loads, part.stores))
        return replace(part, domain=(*domain, group), loads=tuple(loads), stores=tuple(stores))

    def along_both(access: Access) -> Access:
        strides = list(access.strides)
        strides[channel] *= group
        return replace(access, strides=(*strides, access.strides[channel]))

    a, b, epilogue = map(divided, (roles.a, roles.b, roles.epilogue))
    return replace(roles, a=a, b=b, epilogue=epilogue)


def _window(
    position: int, tap: int, domain: Sequence[int], strides: Sequence[Sequence[int]]
) -> ImageWindow | None:
    """Return the windows that follow each other along one dimension, have their elements along another one,
    and share some. None: there are none."""
    pairs = {(each[position], each[tap]) for each in strides} - {(0, 0)}
    if not pairs:
        return None
    for one, other in pairs:
        if not one or not other:
            return None
    one, other = next(iter(pairs))
    stride, dilation = max(1, hint_of(one) // hint_of(other)), max(1, hint_of(other) // hint_of(one))
    if stride >= hint_of(domain[tap]) or dilation >= hint_of(domain[position]):
        return None  # No guard: channels lie as far apart as rows of a window only for some heights.
    if any(one * dilation != other * stride for one, other in pairs):
        return None
    if stride >= domain[tap] or dilation >= domain[position]:
        return None
    # Code is made for each extent of windows.
    return ImageWindow(index(domain[tap]), stride, dilation)
