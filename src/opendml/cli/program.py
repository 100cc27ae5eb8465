"""The end of a command: error messages and exit statuses."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TextIO

import click

CANNOT = 1
"""Exit status: the input is right, but cannot be processed here."""
WRONG = 2
"""Exit status: the input is wrong."""
INTERRUPTED = 130
"""Exit status: Ctrl-C, with 128 and the number of the signal as in shells."""


class CommandGroup(click.Group):
    """A group of commands that return their exit status, or None for 0.

    It reports all failures that a user can cause without a traceback.
    """

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that the arguments name; exit in standalone mode."""
        extra.setdefault("color", _color())
        run = partial(super().main, args, prog_name, complete_var, False, **extra)
        if standalone_mode:
            sys.exit(_status(run))
        return run()


def report(messages: Iterable[str]) -> None:
    """Print a line for each failure to standard error."""
    title = click.style("Error:", fg="red", bold=True)
    with _ignoring_full_stderr():
        for message in messages:
            click.echo(f"{title} {message}", err=True, color=_color())


def warn(message: str) -> None:
    """Print a warning to standard error."""
    title = click.style("Warning:", fg="yellow", bold=True)
    with _ignoring_full_stderr():
        click.echo(f"{title} {message}", err=True, color=_color())


def _color() -> bool | None:
    """Return False if colours are unwanted; None: use them on a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def _status(run: Callable[[], object]) -> int:
    """Run a command, flush its output or report its failure, and return the exit status."""
    try:
        return _reported(run)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        # A closed pipe is no failure: its reader has seen enough.
        if error.errno != errno.EPIPE:
            report([f"{error.filename or 'standard output'}: {error.strerror or error}"])
        _abandon(sys.stdout)
        return CANNOT


def _reported(run: Callable[[], object]) -> int:
    from opendml.errors import Error, InvalidArgument

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # Names that the terminal cannot show.
    try:
        if sys.stdout is None:
            raise Error("standard output is closed")
        status = run()
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        with _ignoring_full_stderr():
            error.show()
        return error.exit_code
    except Error as error:
        report(str(error).splitlines())
        return WRONG if isinstance(error, InvalidArgument) else CANNOT
    except MemoryError:
        report(["not enough memory"])
        return CANNOT


@contextmanager
def _ignoring_full_stderr() -> Iterator[None]:
    """Continue after the block if standard error is full or closed: the exit status is enough."""
    try:
        yield
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: TextIO | None) -> None:
    """Discard unwritten output of a stream, so that the exit of the process does not retry."""
    with suppress(OSError, ValueError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
