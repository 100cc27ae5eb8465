"""The logger "opendml": compilations, their reasons and times at DEBUG, and avoidable slowness at WARNING."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

log = logging.getLogger("opendml")

_shown: ContextVar[bool] = ContextVar("opendml_progress", default=False)


@contextmanager
def progress_shown(shown: bool) -> Iterator[None]:
    """Print what `tell` says in the block on standard error, if `shown`."""
    token = _shown.set(shown)
    try:
        yield
    finally:
        _shown.reset(token)


def tell(message: str, *arguments: object) -> None:
    """Log a step that takes long at DEBUG, and print it where progress is shown."""
    log.debug(message, *arguments)
    if _shown.get():
        print(message % arguments, file=sys.stderr, flush=True)
