"""Devices that are made when something needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from opendml.across_forks import cached_property, importing
from opendml.late_dataclass import dataclass
from opendml.targets.backend import DeviceBackend
from opendml.targets.registry import backend_of

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


@dataclass(frozen=True)
class DeviceChoice:
    """The kind of a device, and the number of its threads.

    A known model needs no more. Importing DirectML's object model takes a quarter of the time until its first
    result.
    """

    kind: str
    threads: int | None
    _debug: ClassVar[None] = None  # As of a Device without a debug callback.

    @property
    def _backend(self) -> DeviceBackend:
        """The backend of the device, as a Device has it."""
        return backend_of(self.kind)

    @cached_property
    def device(self) -> Device:
        """The device."""
        with importing:
            from opendml.runtime.objects.device import Device
        return Device(self.kind, threads=self.threads)


def device_of(device: str | Device | DeviceChoice | None) -> Device:
    """Return a device, that of a choice, the default device of a kind, or that of the CPU."""
    if isinstance(device, DeviceChoice):
        return device.device
    with importing:
        from opendml.runtime.objects.device import as_device
    return as_device(device)
