"""The error of PyDirectML."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opendml.errors import InvalidArgument


class Refused(InvalidArgument, ValueError, RuntimeError):  # noqa: N818 - as InvalidArgument
    """An argument breaks a rule. PyDirectML raises ValueError for its own checks and RuntimeError for those
    of DirectML. Clauses for either catch this error."""


@contextmanager
def refused() -> Iterator[None]:
    """Raise an InvalidArgument of the block as Refused."""
    try:
        yield
    except Refused:
        raise
    except InvalidArgument as error:
        raise Refused(error.failures) from error
