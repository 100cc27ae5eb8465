"""Windows that slide over a tensor, as ONNX's attributes state them: for convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.frontends.common.pooling import end_padding
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import NotRunnable, OnnxConversion
from opendml.late_dataclass import dataclass
from opendml.program.sizes import hint_of


@dataclass(frozen=True)
class SlidingWindows:
    """The positions of windows, per spatial dimension.

    Args:
        kernel, strides, dilations: of the windows.
        start, end: the padding that the attributes ask for.
        outputs: the number of windows; 0 if a stride of the first one is missing, or over no elements.
        spatial: the input's sizes.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start: tuple[int, ...]
    end: tuple[int, ...]
    outputs: tuple[int, ...]
    spatial: tuple[int, ...]

    @property
    def reached(self) -> tuple[int, ...]:
        """The end padding that the last window reaches into.

        It is less than `end` where no window begins there, and more where the number of windows is rounded
        up.
        """
        return end_padding(self.outputs, self.strides, self.kernel, self.dilations, self.spatial, self.start)

    @property
    def pooling_fields(self) -> dict[str, Any]:
        """The keywords of DirectML's pooling."""
        return {
            "strides": self.strides,
            "window_size": self.kernel,
            "start_padding": self.start,
            "end_padding": self.reached,
            "dilations": self.dilations,
        }


def windows_of(node: OnnxConversion, kernel: Sequence[int], *, must_fit: bool = False) -> SlidingWindows:
    """Return the windows of a node over its input 0.

    Args:
        kernel: the sizes of a window.
        must_fit: refuse windows that are larger than the padded input, as ONNX Runtime's convolutions do.

    Raises:
        NotExpressible: attributes of other numbers of dimensions, or negative padding.
        NotRunnable: windows do not fit, and must fit or are not clearly none.
    """
    spatial = node.sizes(0)[2:]
    count = len(spatial)
    strides, dilations = (tuple(node.list_attribute(each, count)) for each in ("strides", "dilations"))
    if len(kernel) != count or count == 0:
        raise NotExpressible(f"a kernel of {len(kernel)} dimensions over {count} spatial ones")
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    same = [-(-size // step) for size, step in zip(spatial, strides, strict=True)]
    start, end = padding_of(node, same, strides, reach)
    if any(each < 0 for each in (*start, *end)):
        raise NotExpressible(f"negative padding {[*start, *end]}")
    every = list(zip(spatial, start, end, reach, strides, strict=True))
    outputs = tuple(_count(*each, rounded_up=node.flag("ceil_mode")) for each in every)
    if any(each < 1 for each in outputs):
        # If less than a stride is missing, ONNX Runtime and ONNX's inference have one window, which ends
        # behind the input, and ONNX's evaluator none.
        pairs = zip(outputs, every, strict=True)
        are_cut = [
            count == 0 and 0 not in spatial and (size + a + b - own) % step != 0
            for count, (size, a, b, own, step) in pairs
        ]
        are_larger = [each < 0 or (each < 1 and size) for each, size in zip(outputs, spatial, strict=True)]
        is_unclear = any(each < 0 for each in outputs) or (node.flag("count_include_pad") and any(are_cut))
        if is_unclear or (must_fit and any(are_larger)):
            sizes, pads = (list(map(hint_of, each)) for each in (node.sizes(0), (*start, *end)))
            padded = [hint_of(size + a + b) for size, a, b, *_ in every]
            raise NotRunnable(
                f"windows over {reach} elements of an input of sizes {sizes} with pads {pads}: "
                f"must be over at most {padded}"
            )
        outputs = tuple(1 if cut else count for count, cut in zip(outputs, are_cut, strict=True))
    return SlidingWindows(tuple(kernel), strides, dilations, start, end, outputs, tuple(spatial))


def padding_of(
    node: OnnxConversion, same: Sequence[int], strides: Sequence[int], reach: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding at the starts and at the ends (`auto_pad`, `pads`).

    Args:
        same: the numbers of windows where `auto_pad` is SAME_UPPER or SAME_LOWER.
    """
    spatial, mode = node.sizes(0)[2:], node.attribute("auto_pad") or "NOTSET"
    count = len(spatial)
    if mode == "NOTSET":
        pads = node.list_attribute("pads", 2 * count, 0)
        return tuple(pads[:count]), tuple(pads[count:])
    if mode == "VALID":
        return (0,) * count, (0,) * count
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotExpressible(f"auto_pad {mode!r}")
    each = zip(same, strides, reach, spatial, strict=True)
    total = [max(0, (windows - 1) * stride + size - length) for windows, stride, size, length in each]
    return shared(total, mode == "SAME_UPPER")


def shared(total: Sequence[int], is_upper: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Divide padding between starts and ends. The odd one lies at the end if `is_upper`."""
    less, more = tuple(each // 2 for each in total), tuple(each - each // 2 for each in total)
    return (less, more) if is_upper else (more, less)


def _count(length: int, start: int, end: int, reach: int, stride: int, *, rounded_up: bool) -> int:
    """Return how many windows fit. None that is rounded up begins behind the input's last element."""
    left = length + start + end - reach
    if not rounded_up:
        return left // stride + 1
    count = -(-left // stride) + 1
    return count - 1 if (count - 1) * stride >= length + start else count
