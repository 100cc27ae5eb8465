"""A JSON value together with the path that leads to it, so that every complaint says where."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

from opendml.errors import InvalidArgument
from opendml.json_files.text import JsonObject
from opendml.spelling import MOST_COMPARED, close_matches

_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$-]*")
_SPECIAL_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


MOST_MESSAGES = 32
"""Mistakes that one error lists: a file may have any number, each with a name that is looked for."""


class Failures:
    """Gathers what is wrong in several places, so that one run of the parser names all of it, or the first
    `MOST_MESSAGES` of it."""

    def __init__(self) -> None:
        self._messages: list[str] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Notes an InvalidArgument raised inside and goes on after the block."""
        try:
            yield
        except InvalidArgument as error:
            self._messages.extend(error.failures)
        if len(self._messages) > MOST_MESSAGES:
            self._messages[MOST_MESSAGES:] = ["there are more mistakes, which are not listed"]
            self.raise_any()

    def raise_any(self) -> None:
        """Raises InvalidArgument with all that was collected, if anything was."""
        if self._messages:
            raise InvalidArgument(self._messages)


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a JSON document. The readers return it as a Python type or raise InvalidArgument."""

    value: object
    path: str = "$"

    def fail(self, expected: str, given: str | None = None) -> NoReturn:
        """Raises InvalidArgument: path, what was expected, what was given."""
        raise InvalidArgument(f"{self.path}: expected {expected}, got {given or _shown(self.value)}")

    def at(self, key: str | int) -> str:
        """The path of member or element `key`, whether it exists or not."""
        if isinstance(key, int):
            return f"{self.path}[{key}]"
        return f"{self.path}.{key}" if _PLAIN_NAME.fullmatch(key) else f"{self.path}[{json.dumps(key)}]"

    def members(self, known: Collection[str] | None = None) -> dict[str, Node]:
        """The members of an object. With `known`, any other name is an error, with the nearest known one."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        failures = Failures()
        for name in self.value.repeated if isinstance(self.value, JsonObject) else ():
            with failures.collected():
                raise InvalidArgument(f"{self.at(name)}: expected each name once, got it more than once")
        for name in self.value if known is not None else ():
            if known is not None and name not in known:
                with failures.collected():
                    raise InvalidArgument(f"{self.at(name)}: unknown field{suggestion(name, known)}")
        failures.raise_any()
        return {name: Node(value, self.at(name)) for name, value in self.value.items()}

    def member(self, name: str) -> Node:
        """The member `name` of an object, which must be there."""
        node = self.optional(name)
        if node is None:
            raise InvalidArgument(f"{self.at(name)}: missing")
        return node

    def optional(self, name: str) -> Node | None:
        """The member `name` of an object; None when it is absent or null."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        value = self.value.get(name)
        return None if value is None else Node(value, self.at(name))

    def elements(self) -> list[Node]:
        """The elements of an array."""
        if not isinstance(self.value, list):
            self.fail("an array")
        return [Node(value, self.at(index)) for index, value in enumerate(self.value)]

    def string(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            self.fail("a string")
        return self.value

    def boolean(self) -> bool:
        """true or false; numbers don't count."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`; 1.0 is none, as for DxDispatch."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            self.fail(f"an integer from {low} to {high}")
        return self.value

    def number(self) -> float:
        """A number, or one of the strings "nan", "inf", "-inf" in any case."""
        if isinstance(self.value, str) and self.value.lower() in _SPECIAL_NUMBERS:
            return _SPECIAL_NUMBERS[self.value.lower()]
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail('a number, "nan", "inf" or "-inf"')
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            self.fail("a number within the range of FLOAT64")
        return number


def suggestion(name: str, known: Collection[str]) -> str:
    """'; did you mean X?' for the one of `known` that contains `name` or is near to it; else all that is
    known, unless that is much."""
    compared = islice(known, MOST_COMPARED)
    containing = [other for other in compared if len(name) > 2 and name.upper() in other.upper()]
    nearest = containing or close_matches(name, known)
    if nearest:
        return f'; did you mean "{nearest[0]}"?'
    return f"; expected one of {listed(known)}" if 0 < len(known) <= 12 else ""


def listed(names: Collection[str]) -> str:
    """The names, quoted and separated by commas."""
    return ", ".join(f'"{name}"' for name in names)


def _shown(value: object) -> str:
    """A value as the reader of the file would know it again, shortened."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"an array of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
