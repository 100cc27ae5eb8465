"""JSON as model files are written: with comments and trailing commas, and exact positions in errors.

DxDispatch reads its models with both extensions switched on, and its guide uses them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import NoReturn

from opendml.errors import InvalidArgument

_STRING = r'"(?:\\.|[^"\\])*"'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[\]}}])", re.DOTALL)
_NOT_A_LINE_BREAK = re.compile(r"[^\n]")
_SPELLINGS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


class JsonObject(dict[str, object]):
    """A JSON object that remembers which names its text gave more than once (the last value stays)."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.repeated = tuple(name for name, count in counts.items() if count > 1)


def read(path: Path) -> object:
    """The value in the JSON file at `path`. Raises InvalidArgument when it can't be read or is no JSON."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidArgument(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    return parse(text)


def parse(text: str) -> object:
    """The value that `text` describes. Raises InvalidArgument with line and column when it is no JSON."""
    try:
        return json.loads(_plain(text), object_pairs_hook=JsonObject, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidArgument(f"$: not valid JSON at {where}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"$: not valid JSON: {error}") from error


def _plain(text: str) -> str:
    """`text` with comments and trailing commas blanked out; every other character keeps its position."""
    without_comments = _STRING_OR_COMMENT.sub(_blank_unless_string, text)
    return _STRING_OR_TRAILING_COMMA.sub(_blank_unless_string, without_comments)


def _blank_unless_string(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith('"') else _NOT_A_LINE_BREAK.sub(" ", found)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is no JSON number; write the string "{_SPELLINGS[name]}"')
