"""Finds the window that moves over the images of a convolution, in the loops and guards of its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opendml.compiler.kernel import Access, number_of
from opendml.compiler.loops import Loop
from opendml.late_dataclass import dataclass
from opendml.program.node import Node, Operation
from opendml.targets.common.candidates import Refusal
from opendml.targets.cuda.tensor_map import (
    ADDRESS_ALIGNMENT,
    CORNERS,
    MOST_OFFSET,
    MOST_TRAVERSED,
)

_AXES = 2
"""Axes of an image along which the copy engine moves windows; the third axis is the batch."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of images along which a window moves.

    Args:
        bytes: the distance of neighbouring pixels.
        size: the number of pixels.
        before: how many pixels the first window begins before the first pixel: the start padding.
        stride: the pixels from one window to the next.
        dilation: the pixels from one tap of a window to the next.
        rows: the loop over windows; None if there is one window.
        along_k: the loop over taps; None if there is one tap.
    """

    bytes: int
    size: int
    before: int = 0
    stride: int = 1
    dilation: int = 1
    rows: Loop | None = None
    along_k: Loop | None = None

    @property
    def outputs(self) -> int:
        """Return the number of windows."""
        return self.rows.count if self.rows else 1

    @property
    def taps(self) -> int:
        """Return the number of pixels of a window."""
        return self.along_k.count if self.along_k else 1

    @property
    def upper(self) -> int:
        """Return where the last window begins, counted from the last pixel."""
        return (self.outputs - 1) * self.stride - self.before - (self.size - 1)

    @property
    def is_plain(self) -> bool:
        """Return whether windows are single pixels, one after the other."""
        return self.taps == self.stride == 1 and not self.before and self.outputs == self.size

    @property
    def is_loadable(self) -> bool:
        """Return whether the copy engine can move the window."""
        return (
            self.bytes % ADDRESS_ALIGNMENT == 0
            and 0 < self.bytes < 2**40
            and 0 < self.size < 2**31 - 2**12
            and 1 <= self.stride <= MOST_TRAVERSED
            and self.dilation >= 1
            and (self.taps - 1) * self.dilation <= MOST_OFFSET
            and all(CORNERS.start <= corner < CORNERS.stop for corner in (-self.before, self.upper))
        )


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a convolution.

    Args:
        axes: the two axes of the images.
        images: the axis of the batch.
        offset: the bytes from the first address that a kernel loads to the first pixel.
    """

    axes: tuple[Axis, Axis]
    images: Axis
    offset: int

    @property
    def is_loadable(self) -> bool:
        """Return whether the copy engine can move the windows."""
        return self.images.is_plain and all(axis.is_loadable for axis in (*self.axes, self.images))

    @property
    def rows(self) -> tuple[Loop, ...]:
        """Return the loops over results, outermost first."""
        first, second = self.axes
        return tuple(axis.rows for axis in (self.images, second, first) if axis.rows)


def windows_of(
    accesses: Sequence[Access], image: Node, rows: Sequence[Loop], along_k: Sequence[Loop]
) -> Windows | None:
    """Return the windows in which a kernel reads an operand; None if that is no convolution.

    Args:
        accesses: those of the kernel.
        image: the load of the operand, with its guard.
        rows: the loops over results that move it.
        along_k: the loops over what is summed, apart from that over channels.
    """
    bounds = bounds_of(accesses, image.operands)
    if bounds is None:
        return None
    load, rows, along_k = number_of(image), list(rows), list(along_k)
    axes = []
    for counter, limit in bounds.items():
        axis = _guarded(accesses[counter], counter, limit, load, rows, along_k)
        if axis is None:
            return None
        axes.append(axis)
        rows = [loop for loop in rows if loop is not axis.rows]
        along_k = [loop for loop in along_k if loop is not axis.along_k]
    for taps in along_k:
        near = min(rows, key=lambda loop: _distance(loop, taps, load), default=None)
        axes.append(_free(load, near, taps))
        rows = [loop for loop in rows if loop is not near]
    axes += [_free(load, loop, None) for loop in rows]
    offset = sum(axis.before * axis.bytes for axis in axes)
    # Sort from the innermost axis outwards. Windows move along the first two axes.
    axes.sort(key=lambda axis: axis.bytes)
    if not all(axis.is_plain for axis in axes[_AXES:]):
        axes.sort(key=lambda axis: axis.is_plain)
    axes += [Axis(ADDRESS_ALIGNMENT, 1)] * (_AXES + 1 - len(axes))
    first, second, images = *axes[:_AXES], axes[_AXES]
    if len(axes) > _AXES + 1:
        return None
    return Windows((first, second), images, offset)


def forward_windows(
    accesses: Sequence[Access], image: Node, rows: Sequence[Loop], along_k: Sequence[Loop]
) -> Windows | Refusal:
    """Return the windows of `windows_of` if threads can follow them forwards, along two axes of images."""
    windows = windows_of(accesses, image, rows, along_k)
    if windows is None or not windows.images.is_plain:
        return Refusal("no windows over images")
    if any(axis.bytes < 1 or axis.stride < 1 or axis.dilation < 1 for axis in windows.axes):
        return Refusal("windows move backwards")
    return windows


def bounds_of(accesses: Sequence[Access], guards: Sequence[Node]) -> dict[int, int] | None:
    """Return the counters that a guard compares with limits; None if it is anything else."""
    found: dict[int, int] = {}
    left = list(guards)
    if len(left) > 1:
        return None
    while left:
        node = left.pop()
        if node.operation is Operation.AND:
            left += node.operands
            continue
        if node.operation is not Operation.LESS:
            return None
        if any(each.operation is not Operation.SOURCE or each.operands for each in node.operands):
            return None
        counter, limit = map(number_of, node.operands)
        still = not any(accesses[limit].strides) and not accesses[limit].advance
        if not still or any(accesses[each].buffer is not None for each in (counter, limit)):
            return None
        if counter in found or accesses[counter].advance:
            return None
        found[counter] = accesses[limit].offset
    return found


def _guarded(
    counting: Access, counter: int, limit: int, load: int, rows: Sequence[Loop], along_k: Sequence[Loop]
) -> Axis | None:
    """Return the axis whose pixels a counter below a limit numbers; None if there is none."""
    over_rows, taps = ([loop for loop in loops if loop.strides[counter]] for loops in (rows, along_k))
    own = over_rows + taps
    if max(len(over_rows), len(taps)) > 1 or not own or min(loop.strides[counter] for loop in own) < 1:
        return None
    (bytes, rest), *others = {divmod(loop.strides[load], loop.strides[counter]) for loop in own}
    if rest or others:
        return None
    axis = Axis(bytes, limit, -counting.offset)
    if over_rows:
        axis = replace(axis, stride=over_rows[0].strides[counter], rows=over_rows[0])
    if taps:
        axis = replace(axis, dilation=taps[0].strides[counter], along_k=taps[0])
    return axis


def _free(load: int, rows: Loop | None, taps: Loop | None) -> Axis:
    """Return the axis of loops that nothing guards: it has the pixels that they reach."""
    strides = [loop.strides[load] for loop in (rows, taps) if loop]
    bytes = _common(*strides)
    if bytes <= 0:
        return Axis(0, 0)
    axis = Axis(
        bytes,
        0,
        0,
        rows.strides[load] // bytes if rows else 1,
        taps.strides[load] // bytes if taps else 1,
        rows,
        taps,
    )
    size = (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1
    return replace(axis, size=size)


def _common(first: int, second: int = 0) -> int:
    """Return the greatest common divisor of two sizes, which may be traced."""
    first, second = abs(first), abs(second)
    while second:
        first, second = second, first % second
    return first


def _distance(rows: Loop, taps: Loop, load: int) -> int:
    """Return how many pixels both loops move by together, if they move along one axis. Loops over outputs and
    taps of one axis have the least."""
    strides = rows.strides[load], taps.strides[load]
    common = _common(*strides)
    return sum(abs(stride) for stride in strides) // common if common else 2**62


def parameters(windows: Windows, channels: int, padded: int) -> Mapping[str, int]:
    """Return the parameters of a kernel that say how the window moves. Each tap has `channels`, and `padded`
    elements along k."""
    first, second = windows.axes
    found = {"pixels0": first.outputs, "pixels1": second.outputs, "taps0": first.taps}
    found |= {"channels": padded, "own_channels": channels}
    for number, axis in enumerate(windows.axes):
        found[f"begin{number}"] = -axis.before
        found[f"stride{number}"] = axis.stride
        found[f"dilation{number}"] = axis.dilation
    return found
