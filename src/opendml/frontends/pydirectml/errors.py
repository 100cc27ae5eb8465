"""The error of what PyDirectML refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opendml.errors import InvalidArgument


class Refused(InvalidArgument, ValueError, RuntimeError):  # noqa: N818 - as InvalidArgument
    """An argument breaks a rule. PyDirectML raises ValueError for what it checks itself and RuntimeError for
    what DirectML refuses: clauses for either catch it."""


@contextmanager
def refused() -> Iterator[None]:
    """Raises what opendml refuses inside as Refused."""
    try:
        yield
    except Refused:
        raise
    except InvalidArgument as error:
        raise Refused(error.failures) from error
