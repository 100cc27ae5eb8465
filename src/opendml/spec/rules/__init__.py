"""Rules between the fields of one desc, which yield faults.

The facts of operators state those that many share (`shared`). Those of a family are in its file (`declared`).
"""

from __future__ import annotations

from opendml.spec.enums import FeatureLevel
from opendml.spec.rules.declared import declared_rules, declared_shape, is_open
from opendml.spec.rules.rule import Rule
from opendml.spec.rules.shared import shared_rules
from opendml.spec.schema import OperatorSchema

__all__ = ["Rule", "declared_shape", "is_open", "rule_texts", "rules_of"]


def rules_of(operator: OperatorSchema, level: FeatureLevel) -> list[Rule]:
    """Return the rules between the operator's fields at that level: of types, basic ones, others."""
    rules = [*shared_rules(operator, level), *declared_rules(operator, level)]
    return sorted(rules, key=lambda rule: 0 if rule.name == "equal_types" else 1 if rule.basic else 2)


def rule_texts(operator: OperatorSchema, level: FeatureLevel) -> list[str]:
    """Return the texts of the rules that go beyond the operator's facts: sizes, and decisions of opendml."""
    return [rule.text for rule in rules_of(operator, level) if rule.text]
