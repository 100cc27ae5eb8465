"""The table of kinds of devices, and the search for the device of an array.

A backend is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument
from opendml.spec.wording import shown
from opendml.targets.backend import DeviceBackend, StreamBackend
from opendml.targets.memory import Place

KINDS = ("cpu", "cuda", "reference")
_NUMBERED = ("cuda",)
"""The kinds of which there may be several devices."""


def backend_of(kind: str) -> DeviceBackend:
    """Return the backend of a device. It is not opened.

    Args:
        kind: "cpu", "reference", "cuda" (the first device) or "cuda:1" (the second one).

    Raises:
        InvalidArgument: no device has this name.
    """
    name, colon, number = kind.partition(":") if isinstance(kind, str) else ("", "", "")
    if name not in KINDS or (colon and not (name in _NUMBERED and number.isdecimal())):
        raise InvalidArgument(f"device: {shown(kind)}; opendml knows {', '.join(KINDS)}")
    if name in _NUMBERED:
        return backend_at(Place(name, int(number or 0)))
    return _host_backend(name)


# Targets are imported when first used: LLVM alone takes longer to load than all of opendml.


@cache
def _host_backend(name: str) -> DeviceBackend:
    with importing:
        if name == "cpu":
            from opendml.targets.cpu.backend import CpuBackend

            return CpuBackend()
        from opendml.targets.reference.backend import ReferenceBackend

        return ReferenceBackend()


@cache
def backend_at(place: Place) -> StreamBackend:
    """Return the backend of the device that owns a memory."""
    with importing:
        from opendml.targets.cuda.backend import CudaBackend

        return CudaBackend(place)


def place_of(value: Any) -> Place | None:
    """Return the device that an array of any library is on; None for arrays in host memory and everything
    else."""
    if isinstance(value, np.ndarray):
        return None
    for find in _finders():
        if (place := find(value)) is not None:
            return place
    return None


@cache
def _finders() -> tuple[Callable[[Any], Place | None], ...]:
    """Return a function for each kind with memory of its own, which finds the device of an array."""
    with importing:
        from opendml.targets.cuda import place

        return (place.place_of,)
