"""Names and removal of DirectML's objects."""

from __future__ import annotations

from opendml.errors import DeviceRemoved, InvalidArgument
from opendml.runtime.locked import Locked
from opendml.spec.wording import shown


class Named:
    """An object that can be given a name (IDMLObject)."""

    _given_name = ""

    @property
    def name(self) -> str:
        """The name that `set_name` gave; "" without one."""
        return self._given_name

    def set_name(self, name: str) -> None:
        """Set the name that reprs and messages show (IDMLObject::SetName); "" removes it.

        Raises:
            InvalidArgument: a name that is no text.
        """
        if not isinstance(name, str):
            raise InvalidArgument(f"set_name: {shown(name)}; a string is needed")
        self._given_name = name

    def _with_name(self, text: str) -> str:
        """Return the text, followed by the name if there is one: "GEMM 'head'"."""
        return f"{text} {shown(self._given_name)}" if self._given_name else text


class Removable(Named, Locked):
    """A device that may be lost. It is safe to use from several threads."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self._removed: DeviceRemoved | None = None

    @property
    def removed_reason(self) -> DeviceRemoved | None:
        """The error that every later call raises, or None if the device is present."""
        return self._removed

    def remove(self, reason: str) -> None:
        """Remove the device, as if it was lost, so that programs can test what they do then.

        Running dispatches end normally, and later removals change nothing. A default device of calls and
        graphs is replaced by a new one in the next call.

        Raises:
            InvalidArgument: a reason that is no text.
        """
        if not isinstance(reason, str):
            raise InvalidArgument(f"remove: {shown(reason)}; a reason in words is needed")
        self._lose(DeviceRemoved(f"{self._with_name(self.kind)}: {reason}"))

    def _lose(self, error: DeviceRemoved) -> None:
        """Remove the device because of an error, unless it is removed."""
        with self._lock:
            self._removed = self._removed or error

    def _require_present(self) -> None:
        """Check that the device is not removed.

        Raises:
            DeviceRemoved: it is.
        """
        if self._removed is not None:
            raise self._removed.with_traceback(None)
