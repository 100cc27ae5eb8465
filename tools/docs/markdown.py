"""The reference's content as Markdown. Names of operators and enumerations become links."""

from __future__ import annotations

import re
from collections.abc import Iterable

from opendml.catalog.content import Block, CodeBlock, Items, Page, Section, Table
from opendml.spec.facts import enum_facts
from opendml.spec.naming import camel_case
from opendml.spec.schema import operators

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|$~&@^])")
_LIST_MARKER = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s)")
_NAME = re.compile(r"\b([A-Z][A-Z0-9_]+)\b")


def page(content: Page) -> str:
    """Return the whole file of an operator's page.

    No table of contents lists it: a tree of all operators beside each of them would be most of the site. Its
    family's page leads to it.
    """
    subtitle, *lead = content.lead
    parts = ["---\norphan: true\n---", f"# {_escaped(content.title)}", f"[{_escaped(subtitle)}](index.md)"]
    parts += [text(paragraph, content.title) for paragraph in lead]
    parts += [section(each, content.title) for each in content.sections]
    return document(parts)


def document(parts: Iterable[str]) -> str:
    """Join paragraphs to a file."""
    return "\n\n".join(parts) + "\n"


def section(content: Section, own: str = "") -> str:
    """Format a section with a heading of the second level; `own` is the operator whose page this is."""
    return "\n\n".join([f"## {_escaped(content.title)}", *(block(each, own) for each in content.blocks)])


def block(content: Block, own: str = "") -> str:
    """Format a block of a section."""
    match content:
        case Table():
            return table(content, own)
        case Items(texts):
            return "\n".join(f"- {text(each, own)}" for each in texts)
        case CodeBlock(code, language):
            return f"```{language}\n{code}\n```"
        case _:
            return text(content, own)


def table(content: Table, own: str = "") -> str:
    """Format a table, a line for each row."""
    rows = [content.columns, tuple("---" for _ in content.columns), *content.rows]
    lines = [_row(rows[0], own), f"|{'|'.join(rows[1])}|", *(_row(row, own) for row in rows[2:])]
    return "\n".join(lines)


def text(plain: str, own: str = "") -> str:
    """Escape a paragraph, so that it shows as it reads, and add links to operators."""
    parts = _NAME.split(plain)
    linked = "".join(_linked(part, own) if index % 2 else _escaped(part) for index, part in enumerate(parts))
    return _LIST_MARKER.sub(r"\1\\\2", linked)


def path_of(name: str) -> str:
    """Return the path of an operator's page from the top of the documentation."""
    operator = operators()[name]
    return f"operators/{operator.family}/{operator.function_name}.md"


def _linked(name: str, own: str) -> str:
    if name in operators() and name != own:
        return f"[{_escaped(name)}](/{path_of(name)})"
    if name in enum_facts()["enums"]:
        return f"[{_escaped(name)}](/reference/enumerations.md#{camel_case(name).lower()})"
    return _escaped(name)


def _row(cells: Iterable[str], own: str) -> str:
    return f"| {' | '.join(text(cell, own) for cell in cells)} |"


def _escaped(plain: str) -> str:
    return _MARKUP.sub(r"\\\1", plain)
