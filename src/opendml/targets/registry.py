"""The kinds of devices: their backends, each of which is imported when it is first needed, and where arrays
are."""

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
    """The backend of the device that a kind names: "cpu", "reference", "cuda" (the first of them) or "cuda:1"
    (the second). It is not opened.

    Raises:
        InvalidArgument: no kind of device.
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
    """The backend of the device whose memory a place is."""
    with importing:
        from opendml.targets.cuda.backend import CudaBackend

        return CudaBackend(place)


def place_of(value: Any) -> Place | None:
    """The device that an array of any library is on; None for arrays in host memory and everything else."""
    if isinstance(value, np.ndarray):
        return None
    for find in _finders():
        if (place := find(value)) is not None:
            return place
    return None


@cache
def _finders() -> tuple[Callable[[Any], Place | None], ...]:
    """What finds the place of an array, for each kind with memory of its own."""
    with importing:
        from opendml.targets.cuda import place

        return (place.place_of,)
