"""The words with which messages and pages name what was given, what the levels allow and what fields mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from opendml.spec.feature_level import full_name
from opendml.spec.values import text_of

if TYPE_CHECKING:
    from opendml.spec.schema import Field, Same, Support

T = TypeVar("T")

_LONGEST = 80

_SAID_ELSEWHERE = re.compile(
    r"^(optional\b[;.,:]? ?)?((BOOL|FLOAT|UINT|INT|SCALAR_UNION|DML_SCALAR_UNION)[;,]? )?"
)


def shown(value: object) -> str:
    """Return a short repr on one line of any object, also of one whose repr fails."""
    text = " ".join(text_of(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def member_words(members: type[IntEnum], names: Iterable[str]) -> str:
    """Return the demand on a member of an enumeration: "must be a PaddingMode: CONSTANT, EDGE"."""
    allowed = [name for name in names if name not in ("UNKNOWN", "INVALID")]
    article = "an" if members.__name__[0] in "AEIOU" else "a"
    return f"must be {article} {members.__name__}: {', '.join(allowed)}"


def ranks(dims: tuple[int, int]) -> str:
    """Return numbers of dimensions in words: "4" or "1 to 8"."""
    return str(dims[0]) if dims[0] == dims[1] else f"{dims[0]} to {dims[1]}"


def same_words(same: Same) -> str:
    """Return the demand that tensors agree: "ATensor, BTensor: same DataType and Sizes"."""
    below = f" below {full_name(same.below)}" if same.below else ""
    return f"{', '.join(same.tensors)}: same {join(same.what, 'and')}{below}"


def counted(count: int, one: str, several: str) -> str:
    """Return a number with its noun: "1 dispatch" or "3 dispatches"."""
    return f"{count} {one if count == 1 else several}"


def dimensions(count: int) -> str:
    """Return a number of dimensions in words: "1 dimension" or "3 dimensions"."""
    return counted(count, "dimension", "dimensions")


def allowance(
    level_name: str,
    tables: Sequence[Support],
    held: Support,
    part: Callable[[Support], T],
    says: Callable[[T], str],
) -> str:
    """Return the allowance of the table that holds at a level: "DML_FEATURE_LEVEL_2_0 allows 4 to 5".

    Where no newer table changes that part: "DML_FEATURE_LEVEL_3_0 and above allow 1 to 8", with the first
    level that said so.

    Args:
        level_name: the level that was asked for.
        tables: all tables, newest first.
        held: the one that holds at that level.
        part: what of a table the message is about.
        says: that part in words.
    """
    position = tables.index(held)
    if any(part(table) != part(held) for table in tables[:position]):
        return f"{level_name} allows {says(part(held))}"
    first = held
    for table in tables[position + 1 :]:
        if part(table) != part(held):
            break
        first = table
    return f"{full_name(first.level)} and above allow {says(part(held))}"


def meaning(field: Field) -> str:
    """Return the meaning of a field, without its type and without "optional", which stand beside it."""
    return sentence(_SAID_ELSEWHERE.sub("", field.description))


def sentence(text: str) -> str:
    """Return `text` with a full stop, and a capital first letter unless it begins with a name or formula."""
    text = text.strip()
    if not text:
        return ""
    if text[0].islower() and text.split(" ", 1)[0].strip(",;:").isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def join(words: Iterable[str], conjunction: str) -> str:
    """Return words as English lists them: "A, B and C"."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
