"""Every statement of the facts is checked by a rule, or says why it is not (statements.json).

A statement is a constraint, or what the facts say of a tensor or an attribute ("Name: text"). Constraints of
the form "A, B: same DataType, Sizes" are compared with the facts themselves. Others stand in one of these:

- "checked": the rules that check it, by name, or one of the CHECKS below; "a|b": either, by operator;
- "meaning": it says what a field means and demands nothing;
- "unchecked": why it, or a part of it, is not checked: it depends on values at run time, it is advice, or
  it was decided otherwise;
- "beyond": rules that no statement asks for, and why they are there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import operator_facts
from opendml.spec.rules import Rule, rules_of
from opendml.spec.schema import Field, operator
from tests.spec.valid_descs import NAMES

FOUND: dict[str, Any] = json.loads((Path(__file__).parent / "statements.json").read_text(encoding="utf-8"))

SAME = re.compile(r"(\w+(?:, \w+)*): same (\w+(?:(?:, | and )\w+)*)(?: \(.*differ.*\)| \(field text\))?")

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


class Statement(NamedTuple):
    operator: str
    field: Field | None
    text: str


def statements(name: str) -> Iterator[Statement]:
    facts = operator_facts()[name]
    for text in facts.get("constraints", ()):
        yield Statement(name, None, text)
    for field, text in (facts["tensors"] | facts.get("attributes", {})).items():
        yield Statement(name, operator(name).field(field), f"{field}: {text}")


ALL = [statement for name in NAMES for statement in statements(name)]


@cache
def rules(name: str) -> list[Rule]:
    """The rules of an operator at any level."""
    facts = operator(name)
    return [rule for level in FeatureLevel if level >= facts.introduced for rule in rules_of(facts, level)]


def verified(statement: Statement, name: str) -> bool:
    """Whether what is named beside a statement exists for its operator and reads its field."""
    if name in CHECKS:
        return CHECKS[name](statement.operator, statement.field)
    field = statement.field
    return any(
        rule.name == name and (field is None or field.is_count or field in rule.fields)
        for rule in rules(statement.operator)
    )


@pytest.mark.parametrize("name", NAMES)
def test_constraints_of_equality_are_in_the_facts(name: str) -> None:
    for text in operator_facts()[name].get("constraints", ()):
        match = SAME.fullmatch(text)
        if match:
            tensors, what = set(match[1].split(", ")), re.split(", | and ", match[2])
            for each in what:
                assert any(
                    tensors <= set(same.tensors) and each in same.what and same.below is None
                    for same in operator(name).same
                ), text


@pytest.mark.parametrize("name", NAMES)
def test_every_statement_is_accounted_for(name: str) -> None:
    for statement in statements(name):
        text = statement.text
        if SAME.fullmatch(text):
            continue
        assert text in FOUND["checked"] or text in FOUND["meaning"] or text in FOUND["unchecked"], text
        for alternatives in FOUND["checked"].get(text, "").split(", "):
            if alternatives:
                assert any(verified(statement, each) for each in alternatives.split("|")), (
                    text,
                    alternatives,
                )


@pytest.mark.parametrize("section", ["checked", "meaning", "unchecked"])
def test_nothing_is_accounted_for_that_is_not_said(section: str) -> None:
    assert set(FOUND[section]) <= {statement.text for statement in ALL}


def test_a_statement_either_demands_something_or_not() -> None:
    assert not set(FOUND["meaning"]) & {*FOUND["checked"], *FOUND["unchecked"]}
    for reason in FOUND["unchecked"].values():
        assert re.match("(run time|advice|decision): ", reason)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_comes_from_a_statement_or_says_why_it_is_there(name: str) -> None:
    named = {
        each
        for statement in statements(name)
        for each in re.split(r", |\|", FOUND["checked"].get(statement.text, ""))
    }
    shared = {"equal_types", "equal_ranks", "equal_sizes"}
    assert {rule.name for rule in rules(name)} - named - shared <= set(FOUND["beyond"]), name


def test_rules_beyond_the_statements_exist() -> None:
    assert set(FOUND["beyond"]) <= {rule.name for name in NAMES for rule in rules(name)}
