"""The devices of this machine by name, as DxDispatch chooses and prints adapters."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from opendml.errors import Error, InvalidArgument


def adapters() -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of each device, those of GPUs first."""
    with suppress(Error):
        from opendml.targets.cuda.driver import CudaDevice

        for index in count():
            device = CudaDevice(index)  # One beyond the last is an error.
            yield f"cuda:{index}" if index else "cuda", device.name
    yield "cpu", _processor()
    yield "reference", "NumPy in float64"


def kind_named(text: str) -> str:
    """Return the kind of the first device whose name contains a text, in any case.

    "NVIDIA" is cuda on every machine, so that one without such a GPU says what is missing.

    Raises:
        InvalidArgument: no device has the text in its name.
    """
    if text.upper() == "NVIDIA":
        return "cuda"
    known = list(adapters())
    for kind, name in known:
        if text and text.lower() in name.lower():
            return kind
    listed = ", ".join(f"{kind} ({name})" for kind, name in known)
    raise InvalidArgument(f"device: {text!r}; no device has that name; there are {listed}")


def name_of(kind: str) -> str:
    """Return the name of a device of this machine."""
    return next((name for each, name in adapters() if each == kind), kind)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            field, _, value = line.partition(":")
            if field.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()
