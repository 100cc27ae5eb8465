"""`opendml ops`: the operator reference in the terminal."""

from __future__ import annotations

import click
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from opendml.cli.console import console
from opendml.operators.registry import implemented
from opendml.reference.content import Block, Code, Items, Section, Table
from opendml.reference.lists import operator_table, operators_at
from opendml.reference.names import find_operators
from opendml.reference.operator_page import operator_page
from opendml.spec.feature_level import as_feature_level, full_name


def list_operators(feature_level: str | None) -> None:
    """Prints a table of all operators that exist at the level."""
    shown = operators_at(feature_level)
    out = console()
    out.print(_table(operator_table(shown)))
    count = sum(operator.name in implemented() for operator in shown)
    out.print(f"\n{len(shown)} operators at {full_name(as_feature_level(feature_level))}; {count} run.")


def describe_operator(name: str, feature_level: str | None) -> None:
    """Prints all that is known of the operator of that name, with a level only the table that holds there; of
    several operators that have it, a line each.

    Raises InvalidArgument with the nearest names when there is no such operator.
    """
    found = find_operators(name)
    if len(found) > 1:
        click.echo(f"{name} may be one of {len(found)} operators:")
        for operator in found:
            click.echo(f"  {operator.name}: {operator.summary}")
        return
    page = operator_page(found[0], feature_level)
    subtitle, *lead = page.lead
    out = console()
    out.print(Text(page.title, style="bold"), f"({subtitle})")
    for paragraph in lead:
        out.print(paragraph)
    for section in page.sections:
        _print(section)


def _print(section: Section) -> None:
    """A heading and indented blocks."""
    out = console()
    out.print()
    out.print(Text(section.title, style="bold"))
    for index, block in enumerate(section.blocks):
        if index and isinstance(block, Code):
            out.print()
        for part in _renderables(block):
            out.print(Padding(part, (0, 0, 0, 2), expand=False))


def _renderables(block: Block) -> list[RenderableType]:
    match block:
        case Table():
            return [_table(block)]
        case Items(texts):
            return list(texts)
        case Code(text):
            return [text]
        case _:
            return [block]


def _table(table: Table) -> RichTable:
    result = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="underline")
    for index, column in enumerate(table.columns):
        result.add_column(column, no_wrap=index == 0, overflow="fold")
    for row in table.rows:
        result.add_row(*row)
    return result
