"""Pieces of Python source that all generated files share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 110


def header(summary: str, more: str = "") -> str:
    """The head of a generated module."""
    origin = "Generated from opendml/spec/data by `python -m tools.generate`: change the data instead."
    note = textwrap.fill(f"{more} {origin}".strip(), WIDTH)
    return f'"""{summary}\n\n{note}\n"""\n\nfrom __future__ import annotations\n'


def wrap(text: str, indent: str, hanging: str = "") -> str:
    """`text` in lines of at most WIDTH; the later lines are indented by `hanging` more."""
    return _fill(escape(text), indent, indent + hanging)


def first_lines(summary: str) -> str:
    """The beginning of a docstring of a class or function body: the quotes and the summary."""
    return _fill(f'"""{escape(summary)}', "    ", "    ")


def escape(text: str) -> str:
    """`text` as it must stand within a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def call_lines(head: str, arguments: Iterable[str], tail: str, indent: str) -> str:
    """A signature or call with one argument a line, which ruff's formatter keeps as it is."""
    inner = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{indent}{head}(\n{inner}{indent}){tail}\n"


def _fill(text: str, first: str, later: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
