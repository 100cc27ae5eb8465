"""Removal of devices: the end of all that was made on them."""

from __future__ import annotations

from opendml.errors import DeviceRemoved, InvalidArgument
from opendml.runtime.locked import Locked
from opendml.runtime.objects.named import Named
from opendml.spec.wording import shown


class Removable(Named, Locked):
    """A device that may be lost. Safe to use from several threads."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self._removed: DeviceRemoved | None = None

    @property
    def removed_reason(self) -> DeviceRemoved | None:
        """Why the device was removed, or None: the error that every later call of it and of all that was
        created on it raises."""
        return self._removed

    def remove(self, reason: str) -> None:
        """Remove the device, as a lost one is, so that programs can try what they do then. Later calls
        change nothing; dispatches that run go on to their end.

        A device that was made for calls and graphs without one, or with the name of a kind, is replaced by a
        new one in the next such call.

        Raises:
            InvalidArgument: a reason that is no text.
        """
        if not isinstance(reason, str):
            raise InvalidArgument(f"remove: {shown(reason)}; a reason in words is needed")
        self._lose(DeviceRemoved(f"{self._with_name(self.kind)}: {reason}"))

    def _lose(self, error: DeviceRemoved) -> None:
        """Make `error` the reason why the device is removed, unless it is removed."""
        with self._lock:
            self._removed = self._removed or error

    def _require_present(self) -> None:
        """Check that the device is not removed.

        Raises:
            DeviceRemoved: it is.
        """
        if self._removed is not None:
            raise self._removed.with_traceback(None)
