"""The content of a page of the reference. Texts are plain: each printer marks them up in its own way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """Lines that keep their breaks: a formula (language "text") or a program ("python")."""

    text: str
    language: str = "text"


@dataclass(frozen=True)
class Items:
    """Statements that stand beside each other."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = str | Code | Items | Table
"""A paragraph, or one of the others."""


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """A title, the paragraphs in front of the first heading, and the sections."""

    title: str
    lead: tuple[str, ...]
    sections: tuple[Section, ...]
