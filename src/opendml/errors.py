"""The errors that opendml raises for its callers' mistakes and for what it cannot do."""

from __future__ import annotations

from collections.abc import Iterable


class Error(Exception):
    """Base class of every error that opendml raises on purpose."""


class InvalidArgument(Error):  # noqa: N818 - DirectML's word
    """A description or an argument breaks DirectML's rules (DirectML's E_INVALIDARG).

    `failures` holds one message for every broken rule, the first field first.
    """

    failures: tuple[str, ...]

    def __init__(self, failures: str | Iterable[str]) -> None:
        self.failures = (failures,) if isinstance(failures, str) else tuple(failures)
        super().__init__("\n".join(self.failures))

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[tuple[str, ...]]]:
        return type(self), (self.failures,)


class Unsupported(Error):  # noqa: N818 - DirectML's word
    """Valid in DirectML, but not something that opendml (or the chosen device) can run."""


class DeviceRemoved(Error):  # noqa: N818 - DirectML's word
    """The device was lost while it worked; everything that was created on it is void."""
