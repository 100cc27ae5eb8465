"""The facts of operators in full: what several share stands once in the JSON (see data/README.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Facts = dict[str, Any]

OWN = frozenset(("introduced", "support", "examples", "flawed_examples", "notes", "corrections"))
"""What an operator does not take over from those that it extends."""


class CompleteOperators(Mapping[str, Facts]):
    """The facts of operators by name, each completed when asked for first."""

    def __init__(self, operators: Mapping[str, Facts], common: Mapping[str, dict[str, Facts]]) -> None:
        """
        Args:
            operators: what operators.json says.
            common: what common.json says.
        """
        self._operators, self._common = operators, common
        self._complete: dict[str, Facts] = {}

    def __getitem__(self, name: str) -> Facts:
        return self._facts(name, self._operators[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def __contains__(self, name: object) -> bool:
        return name in self._operators

    def _facts(self, name: str, stated: Facts) -> Facts:
        if name not in self._complete:
            self._complete[name] = self._completed(stated)
        return self._complete[name]

    def _completed(self, stated: Facts) -> Facts:
        """The facts of an operator or a form with those that it extends, and the common ones it names."""
        complete: Facts = {}
        fields: dict[str, Facts] = {}
        for name in stated.get("extends", ()):
            elder = self._facts(name, self._operators.get(name) or self._common["forms"][name])
            complete |= {key: value for key, value in elder.items() if key not in OWN}
            fields |= {field["name"]: field for field in elder["fields"]}
        complete |= stated
        complete.pop("extends", None)
        complete["fields"] = [self._field(field, fields) for field in stated.get("fields", fields)]
        for key in ("constraints", "corrections"):
            named = self._common[key]
            complete[key] = [named[each] if isinstance(each, str) else each for each in complete.get(key, ())]
        tensors = [field["name"] for field in complete["fields"] if field["kind"] != "ATTRIBUTE"]
        complete["support"] = [_table(table, tensors) for table in complete.get("support", ())]
        return complete

    def _field(self, stated: str | Facts, elders: Mapping[str, Facts]) -> Facts:
        """A field, of which an operator states the name of an elder's or a common one, a change, or all."""
        if isinstance(stated, str):
            return elders[stated] if stated in elders else self._common["fields"][stated]
        return _changed(elders[stated["name"]], stated) if stated["name"] in elders else stated


def _changed(elder: Facts, change: Facts) -> Facts:
    """A field with what a change states; null takes away what the elder has.

    Who checks a description is said of that description: another one says it anew.
    """
    gone = {key for key, value in change.items() if value is None and key in elder}
    if "description" in change:
        gone |= {"rules", "unchecked"} - change.keys()
    return {key: value for key, value in (elder | change).items() if key not in gone}


def _table(stated: Facts, tensors: list[str]) -> Facts:
    """A table with a row for each tensor, in the order of the fields."""
    rows = {name: row for row in stated["tensors"] for name in row["names"]}
    return stated | {"tensors": {name: rows[name] for name in tensors}}
