"""The options that say what a model may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opendml.budget import Limits


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options, and run it under the limits that they say."""

    @wraps(command)
    def limited(*arguments: Any, limit_texts: Iterable[str], untrusted: bool, **others: Any) -> Any:
        from opendml.budget import metered

        with metered(_limits(limit_texts, untrusted)):
            return command(*arguments, **others)

    result: Callable[..., Any] = limited
    result = click.option(
        "--limit",
        "limit_texts",
        multiple=True,
        metavar="NAME=VALUE",
        help="What a model may take, such as memory_bytes=2e9 or kernel_steps=inf, by the names of "
        "dml.Limits; may be repeated.",
    )(result)
    return click.option(
        "--untrusted",
        is_flag=True,
        help="Hold the model to the limits for files from strangers (dml.Limits.untrusted). --limit changes "
        "single ones.",
    )(result)


def _limits(texts: Iterable[str], untrusted: bool) -> Limits:
    """Return the limits that the options say."""
    from opendml.budget import Limits

    limits = Limits.untrusted() if untrusted else Limits()
    names = [each.name for each in fields(Limits)]
    changes = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in names:
            raise click.UsageError(f"--limit {text}: NAME=VALUE is needed; a name is {', '.join(names)}")
        try:
            changes[name] = int(value) if value.isascii() and value.isdecimal() else float(value)
        except ValueError as error:
            raise click.UsageError(f"--limit {text}: a number is needed, or inf") from error
    return replace(limits, **changes)
