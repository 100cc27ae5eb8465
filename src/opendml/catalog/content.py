"""The content of a page of the reference, as plain text that each printer formats."""

from __future__ import annotations

from opendml.late_dataclass import dataclass


@dataclass(frozen=True)
class CodeBlock:
    """Preformatted lines: a formula (language "text") or a program ("python")."""

    text: str
    language: str = "text"


@dataclass(frozen=True)
class Items:
    """A list of statements."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table with a cell for each column in each row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = str | CodeBlock | Items | Table
"""A paragraph, or a block of another kind."""


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """A title, the paragraphs before the first section, and the sections."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
