"""Parse JSON with comments and trailing commas, and with exact positions in errors.

DxDispatch reads its models with both extensions switched on, and its guide uses them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from opendml.budget import meter
from opendml.errors import InvalidArgument

STANDARD_INPUT = Path("-")

# Unclosed strings and comments match up to the end of the text, where the JSON parser names what is missing.
# Matches never backtrack (*+), so every character is read once.
_KEPT = r'(?P<kept>"(?:\\.|[^"\\])*+"?'
_COMMENT = re.compile(rf"//[^\n]*|/\*.*?\*/|{_KEPT}|/\*.*)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf",(?=\s*[\]}}])|{_KEPT})", re.DOTALL)
_NOT_A_LINE_BREAK = re.compile(r"[^\n]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPELLINGS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
_LARGEST_FILE = 2**30
"""Bytes. The endless /dev/zero must not fill the memory, and larger data belong in .npy files."""
_EXPANSION = 8
"""Bytes that a value takes for each byte of its text: a list holds 8 for `0,`, which is one object."""
_DEEPEST = 32
"""Arrays and objects within each other. A model needs fewer than ten, and recursive readers stay safe."""


class JsonObject(dict[str, object]):
    """A JSON object that remembers which names its text gave more than once (the last value stays)."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.repeated = tuple(name for name, count in counts.items() if count > 1)


def read(path: Path) -> object:
    """Return the value in a JSON file; the path "-" is standard input.

    Raises:
        InvalidArgument: it cannot be read, or is no JSON.
    """
    name = "standard input" if path == STANDARD_INPUT else str(path)
    try:
        data = _bytes(path)
        if len(data) > _LARGEST_FILE:
            raise InvalidArgument(
                f"{name}: longer than {_LARGEST_FILE} bytes; large values belong in .npy files"
            )
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidArgument(f"{name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except ValueError as error:  # a path with a zero byte
        raise InvalidArgument(f"{name}: {error}") from error
    return parse(text)


def _bytes(path: Path) -> bytes:
    """Return the bytes of a file: of one that is too long, one more than is allowed."""
    if path != STANDARD_INPUT:
        with path.open("rb") as file:
            meter().require_memory(_EXPANSION * min(path.stat().st_size, _LARGEST_FILE), path)
            return file.read(_LARGEST_FILE + 1)
    if sys.stdin is None:
        raise OSError("closed")
    return sys.stdin.buffer.read(_LARGEST_FILE + 1)


def parse(text: str) -> object:
    """Return the value of a JSON text.

    Raises:
        InvalidArgument: it is no JSON, with line and column.
    """
    try:
        value = json.loads(_plain(text), object_pairs_hook=JsonObject, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidArgument(f"$: not valid JSON at {where}: {error.msg}") from error
    except RecursionError as error:
        _fail_deep(error)
    except ValueError as error:
        raise InvalidArgument(f"$: not valid JSON: {error}") from error
    _check(value)
    return value


def _check(value: object) -> None:
    """Refuse values that nest too deeply, and strings that are no text."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return
    _fail_deep(None)


def _inner(value: object) -> Iterator[object]:
    """Yield the arrays and objects directly within a value, and check its strings."""
    children = (
        [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    for child in children:
        if isinstance(child, dict | list):
            yield child
        elif isinstance(child, str) and _SURROGATE.search(child):
            raise InvalidArgument(f"$: not valid JSON: half of a surrogate pair in {json.dumps(child)}")


def _fail_deep(cause: Exception | None) -> NoReturn:
    raise InvalidArgument(f"$: more than {_DEEPEST} arrays and objects within each other") from cause


def _plain(text: str) -> str:
    """Replace comments and trailing commas by blanks; every other character keeps its position."""
    return _TRAILING_COMMA.sub(_blank_unless_kept, _COMMENT.sub(_blank_unless_kept, text))


def _blank_unless_kept(match: re.Match[str]) -> str:
    kept: str | None = match["kept"]
    return kept if kept is not None else _NOT_A_LINE_BREAK.sub(" ", match.group())


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f'{name} is no JSON number; write the string "{_SPELLINGS[name]}"')
