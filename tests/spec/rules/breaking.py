"""Descs that break one rule: valid ones with a few fields changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.naming import snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.spec.valid_descs import changed, valid_desc

NEWEST = FeatureLevel.LEVEL_6_4


class Broken(NamedTuple):
    """A rule, and a desc that breaks it.

    Attributes:
        rule: its name.
        operator: whose valid desc is changed.
        changes: values by DirectML's names; a list of numbers gives a tensor other sizes, a data type another
            type; a list of either does so to the tensors of an array.
        messages: all that the validator says, without the operator's name.
        having: a tensor that the desc must have before the change.
        level: where the rule holds.
    """

    rule: str
    operator: str
    changes: dict[str, Any]
    messages: list[str]
    having: str | None = None
    level: FeatureLevel = NEWEST

    def __str__(self) -> str:
        return f"{self.rule}-{self.operator}-{'-'.join(self.changes)}"

    def check(self) -> None:
        """The desc is valid before the change, and after it only the expected messages come."""
        before = valid_desc(self.operator, self.level, having=self.having)
        assert failures(before, self.level) == []
        found = failures(with_changes(before, self.changes), self.level)
        assert found == [self.operator + each for each in self.messages]


class Valid(NamedTuple):
    """Another form of a desc that is valid too; the fields are those of `Broken`."""

    operator: str
    changes: dict[str, Any]
    having: str | None = None

    def __str__(self) -> str:
        return f"{self.operator}-{'-'.join(self.changes)}"

    def check(self) -> None:
        before = valid_desc(self.operator, NEWEST, having=self.having)
        assert failures(with_changes(before, self.changes)) == []


def wrong_sizes(field: str, given: list[int], needed: str, reason: str) -> str:
    """The message on sizes of which some must be others."""
    return f".{field}: sizes {given}; must be {needed} for {reason}"


def no_sizes(field: str, given: list[int], needed: str, reason: str) -> str:
    """The message on sizes that cannot be right because one of them would be below 1."""
    return f".{field}: sizes {given}; none are right, because {reason} would make them {needed}"


def with_changes(desc: OperatorDesc, changes: dict[str, Any]) -> OperatorDesc:
    """The desc with other sizes, types and attributes."""
    values = {snake_case(name): value for name, value in changes.items()}
    return desc.replace(**{name: _value(getattr(desc, name), value) for name, value in values.items()})


def _value(before: Any, value: Any) -> Any:
    if isinstance(before, tuple) and before and isinstance(before[0], TensorDesc) and isinstance(value, list):
        pairs = zip((*before, *before[-1:] * len(value)), value, strict=False)
        return [_value(tensor, each) for tensor, each in pairs]
    if isinstance(before, TensorDesc) and isinstance(value, list):
        return changed(before, sizes=value)
    if isinstance(before, TensorDesc) and isinstance(value, TensorDataType):
        return changed(before, data_type=value)
    return value
