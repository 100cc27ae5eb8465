"""Removal of devices: the end of all that was made on them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from opendml.errors import DeviceRemoved
from opendml.runtime.locked import Locked

if TYPE_CHECKING:
    from opendml.runtime.bound import Bound


class Removable(Locked):
    """A device that may be lost. Safe to use from several threads."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._removed: DeviceRemoved | None = None
        self._bound: weakref.WeakSet[Bound] = weakref.WeakSet()

    @property
    def removed_reason(self) -> DeviceRemoved | None:
        """Why the device was removed, or None: the error that every later call of it and of all that was
        created on it raises."""
        return self._removed

    def remove(self, reason: str) -> None:
        """Removes the device, as a lost one is, so that programs can try what they do then. Later calls
        change nothing."""
        self.lose(DeviceRemoved(f"{self._name}: {reason}"))

    def lose(self, error: DeviceRemoved) -> None:
        """Makes `error` the reason why the device is removed, unless it is removed."""
        with self._lock:
            self._removed = self._removed or error
            bound = list(self._bound)
        for each in bound:
            each.remove(self._removed)

    def guard(self, work: Callable[..., object]) -> Callable[..., object]:
        """`work`, whose DeviceRemoved removes this device."""

        def guarded(*arguments: object) -> object:
            try:
                return work(*arguments)
            except DeviceRemoved as error:
                self.lose(error)
                raise

        return guarded

    def require_present(self) -> None:
        """Checks that the device is not removed.

        Raises:
            DeviceRemoved: it is.
        """
        if self._removed is not None:
            raise self._removed.with_traceback(None)

    def watch(self, bound: Bound) -> None:
        """Takes note of work that ends with the device."""
        with self._lock:
            self._bound.add(bound)
        self.require_present()
