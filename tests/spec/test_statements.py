"""Every statement of the facts names the rules that check it, or says why it is not checked.

A statement is a constraint, or the description of a field. `statements.json` has its rules by name: functions
of `opendml.spec.rules`, or CHECKS of a field by itself. A description without any says what a field means and
demands nothing. `unchecked` says why it, or a part of it, is not checked: it depends on values at run time,
it is advice, or it was decided otherwise. Operators inherit this as they inherit their facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import DATA_FOLDER
from opendml.spec.inherit import CompleteOperators
from opendml.spec.rules import Rule, rules_of
from opendml.spec.schema import Field, operator
from tests.for_each import for_each
from tests.spec.valid_descs import NAMES

CHECKS: dict[str, Callable[[str, Field | None], bool]] = {
    "table": lambda operator, field: True,
    "type": lambda operator, field: True,
    "derived": lambda operator, field: field is not None and field.is_count,
    "enum": lambda operator, field: field is None or field.enum is not None,
    "range": lambda operator, field: field is None or field.range is not None,
    "fusion": lambda operator, field: field is not None and field.type == "OPERATOR_DESC",
    "optional": lambda operator, field: field is None or field.optional,
    "owned_by_dml": lambda operator, field: field is None or not field.owned_by_dml,
}
"""Checks of a field by itself: what must be true of the facts for the word to stand beside a statement."""


BEYOND = {
    "some_output": "the pages are silent; a dispatch without output does nothing, and ONNX Runtime's "
    "DirectML provider refuses it",
    "given_together": "every past key needs its value",
}
"""Rules that no statement asks for, and why they are there."""

EQUALITY = {"DataType": "equal_types", "DimensionCount": "equal_ranks", "Sizes": "equal_sizes"}
"""The rules of `same`, which says itself what it demands."""


class Statement(NamedTuple):
    field: Field | None
    text: str
    rules: tuple[str, ...]
    unchecked: str


@cache
def judged() -> CompleteOperators:
    """The completed facts with the rules of each statement beside its text."""
    operators, common = (
        json.loads((DATA_FOLDER / name).read_text("utf-8")) for name in ("operators.json", "common.json")
    )
    rules = json.loads((Path(__file__).parent / "statements.json").read_text("utf-8"))
    for section, owners in (("operators", operators), ("forms", common["forms"])):
        for name, facts in owners.items():
            stated = {"fields": {}, "constraints": [], **rules[section].get(name, {})}
            if "fields" in facts:
                facts["fields"] = [_judged(field, stated["fields"]) for field in facts["fields"]]
            for i, rule in enumerate(stated["constraints"]):
                if rule is not None:
                    facts["constraints"][i] = _entry(rule, text=facts["constraints"][i])
    for name, field in common["fields"].items():
        field |= _entry(rules["fields"].get(name, ""))
    common["constraints"] = {
        name: _entry(rules["constraints"][name], text=text) for name, text in common["constraints"].items()
    }
    return CompleteOperators(operators, common)


def _judged(field: Any, stated: Any) -> Any:
    """A field as it is stated. A new description does not take over who checks the elder's."""
    if isinstance(field, str):
        return field
    fresh = {"rules": None, "unchecked": None} if "description" in field else {}
    return field | fresh | (_entry(stated[field["name"]]) if field["name"] in stated else {})


def _entry(stated: Any, **more: Any) -> dict[str, Any]:
    """The rules of a statement, which stand as one text, or beside `unchecked`."""
    return more | (stated if isinstance(stated, dict) else {"rules": stated})


def statements(name: str) -> Iterator[Statement]:
    facts = judged()[name]
    for each in facts["constraints"]:
        yield Statement(None, each["text"], *_rules(each))
    for field in facts["fields"]:
        yield Statement(operator(name).field(field["name"]), field["description"], *_rules(field))


def _rules(stated: Any) -> tuple[tuple[str, ...], str]:
    return tuple((stated.get("rules") or "").split()), stated.get("unchecked") or ""


@cache
def rules(name: str) -> list[Rule]:
    """The rules of an operator at any level."""
    facts = operator(name)
    return [rule for level in FeatureLevel if level >= facts.introduced for rule in rules_of(facts, level)]


def verified(operator: str, field: Field | None, name: str) -> bool:
    """Whether what is named beside a statement exists for its operator and reads its field."""
    if name in CHECKS:
        return CHECKS[name](operator, field)
    return any(
        rule.name == name and (field is None or field.is_count or field in rule.fields)
        for rule in rules(operator)
    )


@for_each("name", NAMES)
def test_every_rule_that_a_statement_names_checks_its_operator_and_field(name: str) -> None:
    for statement in statements(name):
        for each in statement.rules:
            assert verified(name, statement.field, each), (statement.text, each)
        assert len(set(statement.rules)) == len(statement.rules), statement


@for_each("name", NAMES)
def test_every_constraint_is_checked_or_says_why_not(name: str) -> None:
    for statement in statements(name):
        assert statement.field or statement.rules or statement.unchecked, statement.text
        assert re.match("(run time|advice|decision): |$", statement.unchecked), statement


def test_a_rule_of_another_operator_or_field_and_an_unknown_one_are_found() -> None:
    padding = operator("PADDING")
    assert verified("PADDING", padding.field("StartPadding"), "padded_sizes")
    assert not verified("PADDING", padding.field("PaddingValue"), "padded_sizes")
    assert not verified("TILE", None, "padded_sizes")
    assert not verified("PADDING", None, "paded_sizes")
    assert not verified("PADDING", padding.field("PaddingValue"), "range")


@for_each("name", NAMES)
def test_equal_tensors_are_demanded_once(name: str) -> None:
    """What `same` says is no constraint in words as well."""
    for constraint in operator(name).constraints:
        assert not re.fullmatch(r"(\w+(?:, \w+)*): same (\w+(?:(?:, | and )\w+)*)", constraint), constraint


@for_each("name", NAMES)
def test_every_rule_comes_from_a_statement_or_says_why_it_is_there(name: str) -> None:
    named = {each for statement in statements(name) for each in statement.rules}
    named |= {EQUALITY[what] for same in operator(name).same for what in same.what}
    assert {rule.name for rule in rules(name)} - named <= set(BEYOND), name


def test_rules_beyond_the_statements_exist() -> None:
    assert set(BEYOND) <= {rule.name for name in NAMES for rule in rules(name)}
