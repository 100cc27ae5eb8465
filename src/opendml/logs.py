"""The logger "opendml": compilations, their reasons and times at DEBUG, and avoidable slowness at WARNING."""

from __future__ import annotations

import logging
import sys
import warnings
from contextvars import ContextVar

from opendml.context import variable_set

log = logging.getLogger("opendml")

_shown: ContextVar[bool] = ContextVar("opendml_progress", default=False)


def progress_shown(shown: bool) -> variable_set[bool]:
    """Print what `tell` says in the block on standard error, if `shown`."""
    return variable_set(_shown, shown)


def tell(message: str, *arguments: object) -> None:
    """Log a step that takes long at DEBUG, and print it where progress is shown."""
    log.debug(message, *arguments)
    if _shown.get():
        print(message % arguments, file=sys.stderr, flush=True)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the innermost line outside of this package, which is the caller's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_CALLERS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_NOT_THE_CALLERS = (__name__.partition(".")[0], "contextlib", "functools")
"""The packages between a caller's line and a warning."""
