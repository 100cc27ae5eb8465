"""Windows of pooling as DirectML's operators have them."""

from __future__ import annotations

from collections.abc import Sequence


def end_padding(
    counts: Sequence[int],
    strides: Sequence[int],
    window: Sequence[int],
    dilations: Sequence[int],
    sizes: Sequence[int],
    start_padding: Sequence[int],
) -> tuple[int, ...]:
    """Return the padding at the ends that gives a number of windows, per spatial dimension.

    DirectML computes the number of windows from the padding. Frameworks state the number, which may be
    rounded up, so that the last window reaches behind the padding that they state.
    """
    each = zip(counts, strides, window, dilations, sizes, start_padding, strict=True)
    return tuple(
        max(0, (count - 1) * stride + (length - 1) * dilation + 1 - size - start)
        for count, stride, length, dilation, size, start in each
    )
