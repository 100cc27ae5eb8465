"""Windows that slide over a tensor, as attributes of ONNX say them: for convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opendml.frontends.onnx.conversion import Conversion, NotExpressible
from opendml.frontends.pooling_windows import end_padding, pooling_fields


@dataclass(frozen=True)
class Windows:
    """Where windows lie, per spatial dimension.

    Args:
        kernel, strides, dilations: of the windows.
        start, end: padding that the attributes ask for.
        outputs: how many windows there are; none at times over no elements.
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
        """The end padding that the last window reaches into: less than `end` where no window begins there,
        more where the number of windows is rounded up."""
        return end_padding(self.outputs, self.strides, self.kernel, self.dilations, self.spatial, self.start)

    @property
    def fields(self) -> dict[str, Any]:
        """As operators of pooling have them."""
        return pooling_fields(self.kernel, self.strides, self.dilations, self.start, self.reached)


def windows_of(node: Conversion, kernel: Sequence[int]) -> Windows:
    """The windows of a node over its input 0 (`auto_pad`, `pads`, `strides`, `dilations`, `ceil_mode`).

    Raises:
        NotExpressible: attributes of other numbers of dimensions, negative padding, no window.
    """
    spatial = node.sizes(0)[2:]
    count = len(spatial)
    strides, dilations = _per_dimension(node, "strides", count), _per_dimension(node, "dilations", count)
    if len(kernel) != count or count == 0:
        raise NotExpressible(f"a kernel of {len(kernel)} dimensions over {count} spatial ones")
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    start, end = padding_of(
        node, [-(-size // step) for size, step in zip(spatial, strides, strict=True)], strides, reach
    )
    if min(*start, *end) < 0:
        raise NotExpressible(f"negative padding {[*start, *end]}")
    rounded_up = bool(node.attribute("ceil_mode", 0))
    each = zip(spatial, start, end, reach, strides, strict=True)
    outputs = tuple(_windows(*dimension, rounded_up) for dimension in each)
    if min(outputs) < (0 if 0 in spatial else 1):
        raise NotExpressible(f"windows of sizes {reach} do not fit into {list(spatial)}")
    return Windows(tuple(kernel), strides, dilations, start, end, outputs, tuple(spatial))


def padding_of(
    node: Conversion, same: Sequence[int], strides: Sequence[int], reach: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding at the starts and at the ends.

    Args:
        same: the numbers of windows where `auto_pad` says SAME.
    """
    spatial, mode = node.sizes(0)[2:], node.attribute("auto_pad", "NOTSET") or "NOTSET"
    count = len(spatial)
    if mode == "NOTSET":
        pads = node.attribute("pads", [0] * 2 * count) or [0] * 2 * count
        if len(pads) != 2 * count:
            raise NotExpressible(f"pads {pads} of {count} spatial dimensions")
        return tuple(pads[:count]), tuple(pads[count:])
    if mode == "VALID":
        return (0,) * count, (0,) * count
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise NotExpressible(f"auto_pad {mode!r}")
    each = zip(same, strides, reach, spatial, strict=True)
    total = [max(0, (windows - 1) * stride + size - length) for windows, stride, size, length in each]
    return shared(total, mode == "SAME_UPPER")


def shared(total: Sequence[int], is_upper: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding divided between starts and ends; the odd one lies at the end if `is_upper`."""
    less, more = tuple(each // 2 for each in total), tuple(each - each // 2 for each in total)
    return (less, more) if is_upper else (more, less)


def _windows(length: int, start: int, end: int, reach: int, stride: int, rounded_up: bool) -> int:
    """How many windows fit. Of those rounded up none begins behind the input's last element."""
    room = length + start + end - reach
    if not rounded_up:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= length + start else count


def _per_dimension(node: Conversion, name: str, count: int) -> tuple[int, ...]:
    given = tuple(node.attribute(name, [1] * count) or [1] * count)
    if len(given) != count:
        raise NotExpressible(f"{name} {list(given)} of {count} spatial dimensions")
    return given
