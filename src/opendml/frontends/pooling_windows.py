"""Windows of pooling as DirectML's operators have them, where a framework says how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def end_padding(
    counts: Sequence[int],
    strides: Sequence[int],
    window: Sequence[int],
    dilations: Sequence[int],
    sizes: Sequence[int],
    start_padding: Sequence[int],
) -> tuple[int, ...]:
    """The padding that the last of so many windows reaches into, per spatial dimension. What none reaches
    changes nothing, but for how many windows there are."""
    each = zip(counts, strides, window, dilations, sizes, start_padding, strict=True)
    return tuple(
        max(0, (count - 1) * stride + (length - 1) * dilation + 1 - size - start)
        for count, stride, length, dilation, size, start in each
    )


def pooling_fields(
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> dict[str, Any]:
    """The fields of windows that operators of pooling share, as a call has them."""
    return {
        "strides": strides,
        "window_size": window,
        "start_padding": start_padding,
        "end_padding": end_padding,
        "dilations": dilations,
    }
