"""The table of kinds of devices, and the search for the device of an array.

A backend is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from opendml.across_forks import importing
from opendml.errors import InvalidArgument
from opendml.spec.wording import shown
from opendml.targets.backend import DeviceBackend, StreamBackend
from opendml.targets.memory import Place

KINDS = ("cpu", "cuda", "reference")
NUMBERED = {"cuda": "opendml.targets.cuda.backend:CudaBackend"}
"""The backends of the kinds of which there may be several devices, as a module and a class in it."""
HOSTED = {
    "cpu": "opendml.targets.cpu.backend:CpuBackend",
    "reference": "opendml.targets.reference.backend:ReferenceBackend",
}
"""The backends of devices that work in host memory."""


def backend_of(kind: str) -> DeviceBackend:
    """Return the backend of a device. It is not opened.

    Args:
        kind: "cpu", "reference", "cuda" (the first device) or "cuda:1" (the second one).

    Raises:
        InvalidArgument: no device has this name.
    """
    name, colon, number = kind.partition(":") if isinstance(kind, str) else ("", "", "")
    if name not in NUMBERED | HOSTED or (colon and not (name in NUMBERED and number.isdecimal())):
        raise InvalidArgument(f"device: {shown(kind)}; opendml knows {', '.join(KINDS)}")
    if name in NUMBERED:
        return backend_at(Place(name, int(number or 0)))
    return _host_backend(name)


# Targets are imported when first used: LLVM alone takes longer to load than all of opendml.


@cache
def _host_backend(name: str) -> DeviceBackend:
    backend: DeviceBackend = _class(HOSTED[name])()
    return backend


@cache
def backend_at(place: Place) -> StreamBackend:
    """Return the backend of the device whose memory a place is."""
    backend: StreamBackend = _class(NUMBERED[place.kind])(place)
    return backend


def _class(path: str) -> Any:
    """Import the class of a backend."""
    module, _, name = path.partition(":")
    with importing:
        return getattr(import_module(module), name)


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
