"""Rules between the fields of one desc: functions from a desc to messages.

Those that many operators share are chosen by the operators' facts; those of a family are in its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opendml.spec.enums import FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.arrays import counted_dimensions
from opendml.spec.rules.axes import valid_axes
from opendml.spec.rules.broadcasting import broadcastable, given_together, one_element
from opendml.spec.rules.declared import declared_rules, declared_shape, is_open
from opendml.spec.rules.equality import equal_tensors
from opendml.spec.rules.rule import Rule
from opendml.spec.rules.scalars import fitting_scalar, type_of_tensor
from opendml.spec.rules.sizes import Sizes
from opendml.spec.schema import Operator

__all__ = ["Rule", "has_open_shape", "rule_texts", "rules_of", "shape_of"]


def rules_of(operator: Operator, level: FeatureLevel) -> list[Rule]:
    """The rules that hold between the operator's fields at that level: of types, basic ones, others."""
    rules = [*_shared_rules(operator, level), *declared_rules(operator, level)]
    return [*_rules_of_types(operator, level), *sorted(rules, key=lambda rule: not rule.basic)]


def rule_texts(operator: Operator, level: FeatureLevel) -> list[str]:
    """The texts of the rules that go beyond the operator's facts: sizes, and decisions of opendml."""
    return [rule.text for rule in rules_of(operator, level) if rule.text]


def shape_of(operator: Operator, desc: OperatorDesc) -> Mapping[str, Sizes]:
    """The sizes of outputs that follow from inputs and attributes, by the outputs' Python names.

    Args:
        operator: its facts.
        desc: its desc, whose inputs and attributes are valid; the outputs are not read.
    """
    return declared_shape(operator, desc)


def has_open_shape(operator: Operator) -> bool | None:
    """Whether the operator's shape leaves sizes of the first output to the call; None: it has no shape."""
    return is_open(operator)


def _rules_of_types(operator: Operator, level: FeatureLevel) -> Iterator[Rule]:
    for same in operator.same:
        if "DataType" in same.what and (same.below is None or level < same.below):
            yield equal_tensors(operator, same, "DataType")


def _shared_rules(operator: Operator, level: FeatureLevel) -> Iterator[Rule]:
    for same in operator.same:
        for what in same.what:
            if what != "DataType":
                yield equal_tensors(operator, same, what)
    for together in operator.together:
        if together.below is None or level < together.below:
            yield given_together(operator, together)
    for broadcast in operator.broadcast:
        for name in broadcast.tensors:
            yield broadcastable(operator, name, broadcast, level)
    for name in operator.one_element:
        yield one_element(operator, name)
    for field in operator.fields:
        if field.rank_of:
            yield counted_dimensions(operator, field, field.rank_of)
        if field.axis_of:
            yield valid_axes(operator, field, field.axis_of)
        if field.same_type_as:
            yield type_of_tensor(operator, field, field.same_type_as)
        if field.data_type_field:
            yield fitting_scalar(operator, field, field.data_type_field)
