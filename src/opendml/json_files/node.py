"""JSON values that know their path in the document, so that every message says where."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import NoReturn, TypeVar

from opendml.errors import InvalidArgument, Unsupported
from opendml.json_files.text import JsonObject
from opendml.late_dataclass import dataclass
from opendml.spelling import MOST_COMPARED, close_matches

T = TypeVar("T")

UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1
MOST_MESSAGES = 32
"""Mistakes that one error lists. A file may have any number, and each costs a search for similar names."""

_PLAIN_NAME = re.compile(r"[A-Za-z_$][\w$-]*")
_SPECIAL_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class UnknownPartError(Exception):
    """A value depends on a part of the document that is not known.

    The part is wrong, which its own message says, or it is in a file, and files are not to be read.
    """


class Failures:
    """The mistakes in several places, so that one run of a parser names all of them.

    An object is a context manager. At its end it raises what was collected, and with it the mistake that
    ended the block: `MOST_MESSAGES` at most. The error is Unsupported if nothing is wrong, but something
    cannot be done here.
    """

    def __init__(self) -> None:
        self._messages: list[str] = []
        self._has_mistake = False
        self._is_full = False

    def __enter__(self) -> Failures:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if self._is_full:
            return
        if isinstance(error, InvalidArgument | Unsupported):
            self._add(error)
        if error is None or isinstance(error, InvalidArgument | Unsupported | UnknownPartError):
            self.raise_any()

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect an InvalidArgument or Unsupported that is raised inside, and go on after the block."""
        try:
            yield
        except (InvalidArgument, Unsupported) as error:
            self._add(error)
        if len(self._messages) > MOST_MESSAGES:
            self._messages[MOST_MESSAGES:] = ["there are more mistakes, which are not listed"]
            self._is_full = True
            self.raise_any()

    def _add(self, error: InvalidArgument | Unsupported) -> None:
        if isinstance(error, InvalidArgument):
            self._messages += error.failures
            self._has_mistake = True
        else:
            self._messages += str(error).splitlines()

    @property
    def messages(self) -> tuple[str, ...]:
        """The messages that were collected so far."""
        return tuple(self._messages)

    @property
    def has_mistake(self) -> bool:
        """True if something is wrong, and not only impossible here."""
        return self._has_mistake

    def raise_any(self) -> None:
        """Raise what was collected, if anything was.

        Raises:
            InvalidArgument: all of it, if there is a mistake.
            Unsupported: all of it, if there is none.
        """
        if self._has_mistake:
            raise InvalidArgument(self._messages)
        if self._messages:
            raise Unsupported("\n".join(self._messages))


@dataclass(frozen=True, slots=True)
class JsonNode:
    """One value of a JSON document. Its methods return it as a Python type, or raise InvalidArgument."""

    value: object
    path: str = "$"

    def fail(self, expected: str, given: str | None = None) -> NoReturn:
        """Raise InvalidArgument with the path, what was expected, and what was given."""
        raise InvalidArgument(f"{self.path}: expected {expected}, got {given or _shown(self.value)}")

    def at(self, key: str | int) -> str:
        """Return the path of a member or an element, whether it exists or not."""
        if isinstance(key, int):
            return f"{self.path}[{key}]"
        return f"{self.path}.{key}" if _PLAIN_NAME.fullmatch(key) else f"{self.path}[{json.dumps(key)}]"

    def members(self, known: Collection[str] | None = None) -> dict[str, JsonNode]:
        """Return the members of an object. With `known`, any other name is an error."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        with Failures() as failures:
            for name in self.value.repeated if isinstance(self.value, JsonObject) else ():
                with failures.collected():
                    raise InvalidArgument(f"{self.at(name)}: expected each name once, got it more than once")
            for name in self.value if known is not None else ():
                if known is not None and name not in known:
                    with failures.collected():
                        raise InvalidArgument(f"{self.at(name)}: unknown field{suggestion(name, known)}")
        return {name: JsonNode(value, self.at(name)) for name, value in self.value.items()}

    def known_members(self, known: Collection[str], failures: Failures) -> dict[str, JsonNode]:
        """Return the known members of an object. All others are collected as mistakes."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        with failures.collected():
            self.members(known)
        return {name: JsonNode(value, self.at(name)) for name, value in self.value.items() if name in known}

    def member(self, name: str) -> JsonNode:
        """Return a member of an object, which must exist."""
        node = self.optional(name)
        if node is None:
            raise InvalidArgument(f"{self.at(name)}: missing")
        return node

    def optional(self, name: str) -> JsonNode | None:
        """Return a member of an object, or None if it is absent or null."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        value = self.value.get(name)
        return None if value is None else JsonNode(value, self.at(name))

    def elements(self) -> list[JsonNode]:
        """Return the elements of an array."""
        if not isinstance(self.value, list):
            self.fail("an array")
        return [JsonNode(value, self.at(index)) for index, value in enumerate(self.value)]

    def each(self, parse: Callable[[JsonNode], T]) -> tuple[T, ...]:
        """Parse the elements of an array, and raise what is wrong with any of them."""
        values = list[T]()
        with Failures() as failures:
            for element in self.elements():
                with failures.collected():
                    values.append(parse(element))
        return tuple(values)

    def string(self) -> str:
        """Return the value, which must be a string."""
        if not isinstance(self.value, str):
            self.fail("a string")
        return self.value

    def boolean(self) -> bool:
        """Return true or false. Numbers are neither."""
        if not isinstance(self.value, bool):
            self.fail("true or false")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`. 1.0 is none, as in DxDispatch."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            self.fail(f"an integer from {low} to {high}")
        return self.value

    def uint(self) -> int:
        """Return an integer of 32 bits without sign."""
        return self.integer(0, UINT32_MAX)

    def number(self) -> float:
        """Return a number, or that of one of the strings "nan", "inf", "-inf" in any case."""
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
    """Return '; did you mean X?' for a known name that contains `name` or is spelt alike.

    If there is none, return all known names, unless they are many.
    """
    compared = islice(known, MOST_COMPARED)
    containing = [other for other in compared if len(name) > 2 and name.upper() in other.upper()]
    nearest = containing or close_matches(name, known)
    if nearest:
        return f'; did you mean "{nearest[0]}"?'
    return f"; expected one of {quoted(known)}" if 0 < len(known) <= 12 else ""


def quoted(names: Collection[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(f'"{name}"' for name in names)


def _shown(value: object) -> str:
    """Return a value in short, as the file has it."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"an array of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
