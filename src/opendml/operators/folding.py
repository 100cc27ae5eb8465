"""Images and the columns of their windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opendml.operators.registry import defines
from opendml.program.functions import reduce_sum
from opendml.program.node import Node, convert, counted
from opendml.program.scalar_type import ScalarType
from opendml.program.view import gathered, joined, permuted, reshaped, sliced, whole_quotient, windows
from opendml.spec.tensor_desc import TensorDesc


@defines("UNFOLD", stored=True, output=True)
def unfold(
    x: Node,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    output: TensorDesc,
) -> Node:
    """x at o * Strides + k * Dilations - StartPadding; 0 in the padding

    A column is a window o, counted in row-major order; its rows are the channels, each with the elements k
    of its window in row-major order.
    """
    counts = _counts(x.sizes[2:], window_sizes, strides, dilations, start_padding, end_padding)
    viewed = windows(x, counts, window_sizes, strides, dilations, start_padding)
    spatial = len(counts)
    order = (0, 1, *range(2 + spatial, 2 + 2 * spatial), *range(2, 2 + spatial))
    return reshaped(permuted(viewed, order), output.sizes)


@defines("FOLD", output=True)
def fold(
    x: Node,
    *,
    window_sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    output: TensorDesc,
) -> Node:
    """sum of all elements that UNFOLD would take from the place

    Sums are made in float64 and rounded once. What lies in the padding is left out; a place that is in no
    window is 0.
    """
    batch, channels, *image = output.sizes
    counts = _counts(image, window_sizes, strides, dilations, start_padding, end_padding)
    columns = reshaped(x, (batch, channels, *window_sizes, *counts))
    return folded(columns, image, strides, dilations, start_padding, ScalarType.of(output.data_type))


def folded(
    columns: Node,
    image: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    type: ScalarType,
    share: float = 1.0,
) -> Node:
    """Return the sums, at each place of an image, of the elements that windows have there.

    Columns are (N, C, extents, counts). Window o has its element k at o * stride + k * dilation - before. The
    sums times `share` are rounded to a type.
    """
    batch, channels = columns.sizes[:2]
    extents = columns.sizes[2 : 2 + len(image)]
    counts = columns.sizes[2 + len(image) :]
    folds = list(map(_folding, image, extents, counts, strides, dilations, before))
    sums = _phase_by_phase(columns, folds, image, 0)
    sums = convert(sums if share == 1.0 else sums * share, type)
    whole = reshaped(sums, (batch, channels, *(each.blocks * each.phases for each in folds)))
    return sliced(whole, (0, 0, *(each.start for each in folds)), (batch, channels, *image))


def _phase_by_phase(columns: Node, folds: Sequence[_Folding], image: Sequence[int], axis: int) -> Node:
    """Return the sums at all places, from a dimension on.

    Phases with different numbers of elements are summed apart, but not along the last dimension, where they
    are neighbours.
    """
    if axis == len(folds) - 1:
        return _sums(columns, folds)
    each, extent = folds[axis], columns.sizes[2 + axis]
    is_whole = each.start == 0 and each.blocks * each.phases == image[axis]
    apart = is_whole and extent % each.phases != 0 and each.phases <= _MOST_PHASES
    ways = [each.of_phase(phase, extent) for phase in range(each.phases)] if apart else [each]
    parts = [
        _phase_by_phase(columns, [*folds[:axis], way, *folds[axis + 1 :]], image, axis + 1) for way in ways
    ]
    return joined(parts, 3 + 2 * axis)


MOST_IDLE = 64
"""Places by which a stride exceeds the image, at most, before windows are looked for from the image's places:
otherwise all places between two windows are computed."""
_MOST_PHASES = 4
"""Phases of a dimension that are computed apart, at most: each is a kernel of its own."""


def _sums(columns: Node, folds: Sequence[_Folding]) -> Node:
    """Return the sums: (N, C, blocks and phases of each dimension, and as many of size 1)."""
    batch, channels = columns.sizes[:2]
    spatial = len(folds)
    places = [size for each in folds for size in (each.blocks, each.phases)]
    sizes = (batch, channels, *places, *(each.taps for each in folds))
    offsets, steps, computed = [0, 0], [moving(sizes, {0: 1}), moving(sizes, {1: 1})], {}
    for axis, each in enumerate(folds):
        phase, tap = 3 + 2 * axis, 2 + 2 * spatial + axis
        offsets.append(each.element)
        steps.append(moving(sizes, {phase: -1 if each.turned else 1, tap: each.spacing}))
    for axis, each in enumerate(folds):
        block, phase, tap = 2 + 2 * axis, 3 + 2 * axis, 2 + 2 * spatial + axis
        steps_of_window = moving(sizes, {block: 1, phase: int(each.turned), tap: -each.tap_step})
        if each.divisor == 1:
            offsets.append(each.first)
            steps.append(steps_of_window)
        else:
            offsets.append(0)
            steps.append(moving(sizes, {}))
            number = counted(sizes, each.first, steps_of_window)
            computed[2 + spatial + axis] = whole_quotient(number, each.divisor)
    viewed = gathered(columns, sizes, computed, offsets, steps)
    return reduce_sum(viewed, range(2 + 2 * spatial, len(sizes)))


class _Folding(NamedTuple):
    """The windows and elements that meet at the places of a dimension.

    From `start` on, the place block * `phases` + phase is in the windows (`first` + block - tap * `tap_step`)
    / `divisor`, as their element `element` + phase + tap * `spacing`. With `turned` phases count elements
    down. Of two phases the second is then the first one of the next block, so blocks begin where the image
    does.
    """

    blocks: int
    phases: int
    taps: int
    spacing: int
    first: int
    tap_step: int
    divisor: int
    start: int
    element: int = 0
    turned: bool = False

    def of_phase(self, phase: int, extent: int) -> _Folding:
        """Return the windows of one phase along a dimension."""
        element = self.element - phase if self.turned else self.element + phase
        taps = max(1, -(-(extent - element) // self.spacing))
        first = self.first + phase if self.turned else self.first
        return self._replace(phases=1, taps=taps, first=first, element=element, turned=False)


def _folding(size: int, extent: int, count: int, stride: int, dilation: int, before: int) -> _Folding:
    if stride == 0:
        # All windows are the image.
        return _Folding(1, size, count, 0, 0, -1, 1, 0)
    if stride > 1 and (dilation > 1 or stride > size + MOST_IDLE):
        return _Folding(size, 1, extent, 1, before, dilation, stride, 0)
    if stride == 2 and before % 2:
        blocks, taps = -(-size // 2), -(-extent // 2)
        return _Folding(blocks, 2, taps, 2, before // 2, dilation, 1, 0, element=1, turned=True)
    first, last = before // stride, (before + size - 1) // stride
    taps = -(-extent // stride)
    return _Folding(last - first + 1, stride, taps, stride, first, dilation, 1, before - first * stride)


def _counts(
    image: Sequence[int],
    extents: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
) -> list[int]:
    """Return the windows along each dimension."""
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(extents, dilations, strict=True)]
    each = zip(image, spans, strides, before, after, strict=True)
    return [(size + start + end - span) // stride + 1 for size, span, stride, start, end in each]


def moving(sizes: Sequence[int], steps: dict[int, int]) -> list[int]:
    """Return the step of each dimension of `sizes`, which is 0 where none is given."""
    return [steps.get(column, 0) for column in range(len(sizes))]
