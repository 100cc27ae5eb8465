"""Where the arrays of a call are: in host memory, or in that of a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opendml.errors import InvalidArgument
from opendml.targets.memory import Place

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


def common_place(owner: str, places: Sequence[tuple[str, Place | None]]) -> Place | None:
    """Return where all arrays of `owner` are; None if they are in host memory.

    Args:
        owner: the operator or model, for messages.
        places: each array's name and where it is.

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
    """Check that an array is where the work is to run. Arrays in host memory serve every device.

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
