"""How the command ends: what is said about a failure, and the exit status."""

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
"""Exit status: the input is right, but what was asked for cannot be done here."""
WRONG = 2
"""Exit status: the input is wrong."""
INTERRUPTED = 130
"""Exit status: Ctrl-C (128 and the number of the signal, as shells have it)."""


class Program(click.Group):
    """A group of commands that return their exit status, or None for 0. Failures of any kind that a user can
    bring about are reported without a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command that the arguments name, and exits (in standalone mode)."""
        extra.setdefault("color", _color())
        run = partial(super().main, args, prog_name, complete_var, False, **extra)
        if standalone_mode:
            sys.exit(_status(run))
        return run()


def report(messages: Iterable[str]) -> None:
    """Prints a line for each failure to standard error."""
    title = click.style("Error:", fg="red", bold=True)
    with _even_unheard():
        for message in messages:
            click.echo(f"{title} {message}", err=True, color=_color())


def _color() -> bool | None:
    """Whether to print in colours; None: only to a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def _status(run: Callable[[], object]) -> int:
    """The exit status of a command that was run to the end of its output, or whose failure was reported."""
    try:
        return _reported(run)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OSError as error:
        # A pipe that was closed needs no words: whoever read from it has seen enough.
        if error.errno != errno.EPIPE:
            report([f"{error.filename or 'standard output'}: {error.strerror or error}"])
        _abandon(sys.stdout)
        return CANNOT


def _reported(run: Callable[[], object]) -> int:
    from opendml.errors import Error, InvalidArgument

    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show is no reason to fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if sys.stdout is None:
            raise Error("standard output is closed")
        status = run()
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        with _even_unheard():
            error.show()
        return error.exit_code
    except Error as error:
        report(str(error).splitlines())
        return WRONG if isinstance(error, InvalidArgument) else CANNOT
    except MemoryError:
        report(["not enough memory"])
        return CANNOT


@contextmanager
def _even_unheard() -> Iterator[None]:
    """Goes on after the block when standard error takes no more: the exit status still tells."""
    try:
        yield
    except OSError:
        _abandon(sys.stderr)


def _abandon(stream: TextIO | None) -> None:
    """Discards what a stream could not write, so that the end of the process does not try again."""
    with suppress(OSError, ValueError):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
