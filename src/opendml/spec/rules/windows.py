"""Windows that slide over spatial dimensions: how many positions they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opendml.spec.rules.rule import SizeSpan


class SlidingWindow(NamedTuple):
    """A window of `extent` elements, `dilation` apart, that moves in steps of `stride` along a dimension."""

    size: int
    extent: int
    stride: int
    dilation: int
    start: int
    end: int

    @property
    def span(self) -> int:
        """The elements from the window's first to its last.

        DirectML's pages of the dilated poolings leave the dilation out of their formula; ONNX Runtime's
        DirectML provider does not.
        """
        return (self.extent - 1) * self.dilation + 1

    @property
    def positions(self) -> SizeSpan:
        """The numbers of windows in the padded dimension: rounded down, and rounded up where that is more."""
        room = self.size + self.start + self.end - self.span
        if room < 0:
            return SizeSpan(0, 0, 0)
        least = room // self.stride + 1
        return SizeSpan(least, least, -(-room // self.stride) + 1)

    @property
    def origins(self) -> SizeSpan:
        """The sizes over which the window has `size` positions, rounded down: as many sizes as the stride."""
        least = (self.size - 1) * self.stride + self.span - self.start - self.end
        greatest, least = least + self.stride - 1, max(1, least)
        return SizeSpan(least, least, greatest) if greatest > 0 else SizeSpan(0, 0, 0)


def windows(
    sizes: Sequence[int],
    extents: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int] | None,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> list[SlidingWindow]:
    """Return a window for each spatial dimension. No dilations are all 1."""
    dilations = (1,) * len(strides) if dilations is None else dilations
    return list(map(SlidingWindow, sizes, extents, strides, dilations, start_padding, end_padding))
