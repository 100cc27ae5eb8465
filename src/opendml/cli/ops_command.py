"""`opendml ops`: the operator reference in the terminal."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from opendml.cli.console import console
from opendml.errors import InvalidArgument
from opendml.operators.registry import implemented
from opendml.reference.content import Block, Code, Items, Section, Table
from opendml.reference.lists import operator_table, operators_at
from opendml.reference.operator_page import operator_page
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.schema import Operator, operators


def list_operators(feature_level: str | None) -> None:
    """Prints a table of all operators that exist at the level."""
    shown = operators_at(feature_level)
    out = console()
    out.print(_table(operator_table(shown)))
    count = sum(operator.name in implemented() for operator in shown)
    out.print(f"\n{len(shown)} operators at {full_name(as_feature_level(feature_level))}; {count} run.")


def describe_operator(name: str, feature_level: str | None) -> None:
    """Prints all that is known of one operator. With a level, only the table that holds there.

    Raises InvalidArgument with the nearest names when there is no such operator.
    """
    page = operator_page(find_operator(name), feature_level)
    subtitle, *lead = page.lead
    out = console()
    out.print(Text(page.title, style="bold"), f"({subtitle})")
    for paragraph in lead:
        out.print(paragraph)
    for section in page.sections:
        _print(section)


def find_operator(name: str) -> Operator:
    """The operator of that name in any of its spellings: ACTIVATION_CELU, DML_OPERATOR_ACTIVATION_CELU,
    activation_celu, ActivationCelu."""
    by_key = {_key(known): operator for known, operator in operators().items()}
    key = _key(name).removeprefix("DMLOPERATOR")
    if key not in by_key:
        raise InvalidArgument(f"no operator is named {name}; {_hint(key, by_key)}")
    return by_key[key]


def _hint(key: str, by_key: Mapping[str, Operator]) -> str:
    """The operators whose name contains `key`, else those with a similar name."""
    containing = [known for known in by_key if key in known] if key else []
    near = (containing or difflib.get_close_matches(key, by_key, cutoff=0.5))[:5]
    names = " or ".join(by_key[known].name for known in near)
    return f"did you mean {names}?" if names else "`opendml ops` lists them all"


def _key(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", name.upper())


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
