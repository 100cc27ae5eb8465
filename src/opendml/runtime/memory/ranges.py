"""Ranges of bytes in memories, and the checks of overlaps and places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.program.program import Layout, packed
from opendml.program.scalar_type import ScalarType
from opendml.targets.memory import Place

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """A range of bytes in a memory (None: the host's), and the object that keeps it alive."""

    address: int
    size: int
    owner: Any
    place: Place | None = None

    def overlaps(self, other: MemoryRange) -> bool:
        """Return whether two ranges share a byte."""
        return (
            self.place == other.place
            and self.address < other.address + other.size
            and other.address < self.address + self.size
        )


def check_overlap(
    owner: str,
    inputs: Sequence[tuple[str, MemoryRange, Layout] | None],
    outputs: Sequence[tuple[str, MemoryRange, Layout]],
    in_place: frozenset[str],
    shares: Callable[[MemoryRange, MemoryRange], bool] = MemoryRange.overlaps,
) -> None:
    """Reject bindings that overlap where DirectML does not allow it.

    An output may lie exactly on an input named in `in_place` that has the same layout. No other output may
    share memory with an input or an output, by the function `shares`.

    Raises:
        InvalidArgument: two bindings overlap.
    """
    for index, (name, output, layout) in enumerate(outputs):
        for other_name, other, _ in outputs[:index]:
            if shares(output, other):
                raise InvalidArgument(f"{owner}.{name}: overlaps {other_name}; outputs must not share memory")
        for item in inputs:
            if item is None or not shares(output, item[1]):
                continue
            input_name, input, input_layout = item
            if input_name not in in_place:
                allowed = (
                    f"only {', '.join(sorted(in_place))} may be"
                    if in_place
                    else "this operator does not run in place"
                )
                raise InvalidArgument(f"{owner}.{name}: shares memory with {input_name}; {allowed}")
            if output.address != input.address or layout != input_layout:
                raise InvalidArgument(
                    f"{owner}.{name}: overlaps {input_name} in part; "
                    "in place means the same memory, laid out alike"
                )


def as_bytes(name: str, memory: MemoryRange | None) -> tuple[str, MemoryRange, Layout] | None:
    """Return a resource as a tensor of bytes, for `check_overlap`."""
    return None if memory is None else (name, memory, packed(ScalarType.UINT8, [memory.size]))


def common_place(owner: str, places: Sequence[tuple[str, Place | None]]) -> Place | None:
    """Return the memory that all arrays are in; None: the host's.

    Args:
        owner: the operator or model, for messages.
        places: each array's name and its memory.

    Raises:
        InvalidArgument: they are in different memories.
    """
    for name, place in places[1:]:
        if place != places[0][1]:
            raise InvalidArgument(
                f"{owner}.{name}: {_place_name(place)}, but {places[0][0]} is {_place_name(places[0][1])}; "
                "all arrays of a call must be in the same memory"
            )
    return places[0][1] if places else None


def require_device(owner: str, name: str, place: Place | None, device: Device) -> None:
    """Check that an array is on the device. Arrays in host memory serve every device.

    Raises:
        InvalidArgument: it is elsewhere.
    """
    if place is not None and device._backend.place != place:
        raise InvalidArgument(
            f"{owner}.{name}: {_place_name(place)}, but the device is {device.kind!r}; "
            "arrays on a device stay there"
        )


def _place_name(place: Place | None) -> str:
    return "in host memory" if place is None else f"on {place}"
