"""Rules between the fields of one desc: functions from a desc to messages, chosen by the operator's facts."""

from __future__ import annotations

from opendml.spec.enums import FeatureLevel
from opendml.spec.rules.arrays import equal_lengths
from opendml.spec.rules.axes import valid_axes
from opendml.spec.rules.broadcasting import broadcastable, given_together
from opendml.spec.rules.equality import equal_tensors
from opendml.spec.rules.rule import Rule
from opendml.spec.rules.scalars import fitting_scalar, type_of_tensor
from opendml.spec.schema import Operator

__all__ = ["Rule", "rules_of"]


def rules_of(operator: Operator, level: FeatureLevel) -> list[Rule]:
    """The rules that hold between the operator's fields at that level."""
    rules = [equal_tensors(operator, same) for same in operator.same]
    rules += [given_together(operator, rule) for rule in operator.together if level < rule.below]
    rules += [
        broadcastable(operator, name, rule, level) for rule in operator.broadcast for name in rule.tensors
    ]
    for field in operator.fields:
        if field.is_count and len(field.count_of) > 1:
            rules.append(equal_lengths(operator, field))
        if field.axis_of:
            rules.append(valid_axes(operator, field, field.axis_of))
        if field.same_type_as:
            rules.append(type_of_tensor(operator, field, field.same_type_as))
        if field.data_type_field:
            rules.append(fitting_scalar(operator, field, field.data_type_field))
    return rules
