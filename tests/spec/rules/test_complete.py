"""Every rule is broken by some desc of the tests beside this one, or tested over all operators elsewhere."""

from __future__ import annotations

import importlib

import pytest

from opendml.spec.rules import FAMILIES, rules_of
from opendml.spec.schema import operators
from tests.spec.rules.breaking import NEWEST, Broken

TESTED: dict[str, list[Broken]] = {
    family: importlib.import_module(f"tests.spec.rules.test_{family}").BROKEN for family in FAMILIES
}
RULES = {
    (operator.name, rule.name)
    for operator in operators().values()
    for level in (operator.introduced, NEWEST)
    for rule in rules_of(operator, level)
}

# In test_field_rules.py.
ELSEWHERE = {
    "broadcastable",
    "counted_dimensions",
    "equal_ranks",
    "equal_sizes",
    "equal_types",
    "fitting_scalar",
    "type_of_tensor",
    "valid_axes",
}


def test_every_rule_is_broken_somewhere() -> None:
    tested = {broken.rule for family in TESTED.values() for broken in family}
    assert {rule for _, rule in RULES} == tested | ELSEWHERE


@pytest.mark.parametrize("family", FAMILIES)
def test_the_operators_have_the_rules_that_are_tested_on_them(family: str) -> None:
    for broken in TESTED[family]:
        assert (broken.operator, broken.rule) in RULES
