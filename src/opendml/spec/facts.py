"""The JSON files with DirectML's facts, read when first asked for.

The JSON states once what several operators share (see data/README.md). Here the facts are in full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

Facts = dict[str, Any]

OWN = frozenset(("introduced", "support", "examples", "flawed_examples", "notes", "corrections"))
"""The facts that an operator does not take over from those that it extends."""


class CompleteOperators(Mapping[str, Facts]):
    """The facts of operators by name, each completed when it is first asked for."""

    def __init__(self, operators: Mapping[str, Facts], common: Mapping[str, dict[str, Facts]]) -> None:
        self._operators, self._common = operators, common
        self._complete: dict[str, Facts] = {}

    def __getitem__(self, name: str) -> Facts:
        if name not in self._operators:
            raise KeyError(name)
        return self._facts(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def __contains__(self, name: object) -> bool:
        return name in self._operators

    def _facts(self, name: str) -> Facts:
        """Return the facts of an operator, or of a form."""
        if name not in self._complete:
            self._complete[name] = self._completed(self._operators.get(name) or self._common["forms"][name])
        return self._complete[name]

    def _completed(self, stated: Facts) -> Facts:
        """Return the facts of an operator or a form, with those that it extends and names."""
        complete: Facts = {}
        fields: dict[str, Facts] = {}
        for name in stated.get("extends", ()):
            elder = self._facts(name)
            complete |= {key: value for key, value in elder.items() if key not in OWN}
            fields |= {field["name"]: field for field in elder["fields"]}
        complete |= stated
        complete.pop("extends", None)
        complete["fields"] = [self._field(field, fields) for field in stated.get("fields", fields)]
        for key in ("constraints", "corrections"):
            named = self._common[key]
            given = complete.get(key, ())
            complete[key] = [named.get(each, each) if isinstance(each, str) else each for each in given]
        tensors = [field["name"] for field in complete["fields"] if field["kind"] != "ATTRIBUTE"]
        complete["support"] = [self._table(table, tensors) for table in complete.get("support", ())]
        return complete

    def _field(self, stated: str | Facts, elders: Mapping[str, Facts]) -> Facts:
        """Return a field, which is stated by name, by its change of an elder's, or in full."""
        if isinstance(stated, str):
            return elders[stated] if stated in elders else self._common["fields"][stated]
        return _changed(elders[stated["name"]], stated) if stated["name"] in elders else stated

    def _table(self, stated: Facts, tensors: list[str]) -> Facts:
        """Return a table with a row for each tensor, in the order of the fields, and its types in full."""
        lists, rows = self._common["types"], dict[str, Facts]()
        for row in stated["tensors"]:
            full = row | {"types": lists.get(row["types"], [row["types"]])}
            rows |= dict.fromkeys(row["names"], full)
        return stated | {"tensors": {name: rows[name] for name in tensors}}


def _changed(elder: Facts, change: Facts) -> Facts:
    """Return a field with what a change states; null takes away what the elder has."""
    gone = {key for key, value in change.items() if value is None and key in elder}
    return {key: value for key, value in (elder | change).items() if key not in gone}


class _Rows(Mapping[str, Facts]):
    """The members of a JSON object, which begin with one space, parsed when they are read.

    A model uses few operators. The facts of all would take 2.4 MB.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = {each[1]: each.end() for each in re.finditer(r'^ "(\w+)": ', text, re.MULTILINE)}

    def __getitem__(self, name: str) -> Facts:
        row: Facts
        row, _ = json.JSONDecoder().raw_decode(self._text, self._places[name])
        return row

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


DATA_FOLDER = Path(__file__).parent / "data"


@cache
def operator_facts() -> Mapping[str, dict[str, Any]]:
    """Return the facts of every operator by its name, with those that it shares (data/operators.json)."""
    text = _text("operators.json")
    rows = _Rows(text) if text.startswith('{\n "') else json.loads(text)  # A copy may be laid out otherwise.
    return CompleteOperators(rows, _read("common.json"))


@cache
def enum_facts() -> dict[str, Any]:
    """Return constants, enumerations, levels of late values, and fused activations (data/enums.json)."""
    return _read("enums.json")


@cache
def tolerance_facts() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the greatest distances from exact results by operator and type (data/tolerances.json).

    "bound" is what is promised, "measured" what was found over "measured_over", both in the "unit": "ulp",
    "greatest" or "terms", which `data/README.md` explains.
    """
    return _read("tolerances.json")


@cache
def peer_tolerance_facts() -> dict[str, dict[str, Any]]:
    """Return the greatest distances from results of other systems by operator (data/peer_tolerances.json).

    These systems compute in FLOAT32 themselves.
    """
    return _read("peer_tolerances.json")


@cache
def example_facts() -> dict[str, dict[str, list[str]]]:
    """Return the lines of an example ("code") and of its value ("result") by operator (data/examples.json).

    The last line of the code is an expression: a call, or, for an operator that cannot be run yet, the
    validation of a desc, which gives nothing.
    """
    return _read("examples.json")


@cache
def alias_facts() -> dict[str, dict[str, list[str]]]:
    """Return by system the operators that compute what its operator of a name does (data/aliases.json)."""
    return _read("aliases.json")


def _read(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_text(name))
    return facts


def _text(name: str) -> str:
    return (DATA_FOLDER / name).read_text(encoding="utf-8")
