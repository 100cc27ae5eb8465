"""Judges descs: one engine that reads the operators' facts, for every operator and every feature level."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from opendml.errors import Failure, InvalidArgument
from opendml.spec.attribute_rules import attribute_check
from opendml.spec.enums import FeatureLevel, ReduceFunction
from opendml.spec.facts import operator_facts
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.fused_activation import fusion_message
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules import Rule, rules_of
from opendml.spec.schema import Field, Operator, operator
from opendml.spec.tensor_rules import Problems, tensor_problems, tensor_slot
from opendml.spec.wording import shown

_Check = Callable[[Any], Problems | None]


def validate(desc: OperatorDesc, feature_level: FeatureLevel | str | int | None = None) -> None:
    """Checks that the desc is valid at a feature level.

    Args:
        desc: an operator's desc with its tensors.
        feature_level: a member of FeatureLevel or a name such as "2_0"; None is the newest.

    Raises:
        InvalidArgument: one message per broken rule, the first field first.
    """
    found = failures(desc, feature_level)
    if found:
        raise InvalidArgument(found)


def failures(
    desc: OperatorDesc, feature_level: FeatureLevel | str | int | None = None, *, outputs: bool = True
) -> list[Failure]:
    """One failure for every rule that the desc breaks at the level, the first field first.

    Args:
        desc: an operator's desc.
        feature_level: a member of FeatureLevel or a name such as "2_0"; None is the newest.
        outputs: whether the desc has its outputs; otherwise only what else it has is judged.

    Raises:
        InvalidArgument: no such feature level.
    """
    level = as_feature_level(feature_level)
    name = _operator_name(desc)
    if name is None:
        must = "must be the desc of an operator, such as opendml.descs.ActivationCelu(...)"
        return [Failure(f"{shown(desc)}; {must}", value=shown(desc), allowed=must)]
    facts = operator(name)
    if level < facts.introduced:
        exists = f"exists from {full_name(facts.introduced)}"
        message = f"{name}: not in {full_name(level)}; {exists}"
        return [Failure(message, name, None, name, exists, facts.introduced)]
    messages = _messages(desc, facts, level, fused=False, outputs=outputs)
    return [_failure(name, message) for message in messages]


_PARTS = re.compile(r"\.(?P<field>[\w.\[\]]+)(?:: |\s)(?P<value>.*?)(?:; (?P<allowed>.*))?", re.DOTALL)
_SINCE = re.compile(r"(?:from|below) DML_FEATURE_LEVEL_(\w+)")


def _failure(name: str, message: str) -> Failure:
    """A message that continues an operator's name, in its parts: the field, what was given, and what is
    allowed, perhaps only from a later level on."""
    parts = _PARTS.fullmatch(message)
    if parts is None:
        return Failure(name + message, name)
    later = _SINCE.search(message)
    since = as_feature_level(later[1]) if later else None
    return Failure(name + message, name, parts["field"], parts["value"], parts["allowed"], since)


class _Plan(NamedTuple):
    """The checks of an operator at a level."""

    fields: tuple[tuple[Field, str, _Check], ...]
    rules: tuple[Rule, ...]
    order: dict[str, int]


def _messages(
    desc: OperatorDesc, facts: Operator, level: FeatureLevel, *, fused: bool, outputs: bool = True
) -> Iterator[str]:
    """Messages that continue the operator's name: ".Alpha: ..."."""
    plan = _plan(facts.name, level, _function(desc, facts), fused)
    found: list[tuple[int, str]] = []
    malformed: set[str] = set()
    for field, name, check in plan.fields:
        if not outputs and field.kind == "OUTPUT_TENSOR":
            continue
        problems = check(getattr(desc, name, None))
        if problems is not None:
            position = plan.order[field.name]
            found += [(position, f".{field.name}{message}") for message in problems.messages]
            if not problems.usable:
                malformed.add(field.name)
    for rule in plan.rules:
        if malformed and any(field.name in malformed for field in rule.fields):
            continue
        if not outputs and any(field.is_array and field.kind == "OUTPUT_TENSOR" for field in rule.fields):
            continue
        for field, message in rule.check(desc):
            if not outputs and field.kind == "OUTPUT_TENSOR":
                continue
            found.append((plan.order[field.name], f".{field.name}{message}"))
            if rule.basic:
                malformed.add(field.name)
    found.sort(key=lambda item: item[0])
    return (message for _, message in found)


@cache
def _plan(name: str, level: FeatureLevel, function: str | None, fused: bool) -> _Plan:
    facts = operator(name)
    order = {field.name: position for position, field in enumerate(facts.fields)}
    checks = tuple(
        (field, field.python_name, _field_check(facts, field, level, function, fused))
        for field in facts.fields
        if not field.is_count
    )
    rules = rules_of(facts, level)
    if fused:
        rules = [rule for rule in rules if not any(field.is_tensor for field in rule.fields)]
    return _Plan(checks, tuple(rules), order)


def _field_check(
    facts: Operator, field: Field, level: FeatureLevel, function: str | None, fused: bool
) -> _Check:
    if field.is_tensor:
        return _unbound if fused else _tensor_check(facts, field, level, function)
    if field.type == "OPERATOR_DESC":
        return lambda value: None if value is None else _activation_problems(value, facts.name, level)
    if field.type == "OPERATOR_DESC_ARRAY":
        return _array_check(lambda value: _activation_problems(value, facts.name, level))
    return attribute_check(field, level)


def _tensor_check(facts: Operator, field: Field, level: FeatureLevel, function: str | None) -> _Check:
    slot = tensor_slot(facts, field, level, function, has_table=function != _UNKNOWN_FUNCTION)
    if field.type == "TENSOR_DESC_ARRAY":
        return _array_check(lambda value: tensor_problems(value, slot))
    if field.optional_at(level):
        return lambda value: None if value is None else tensor_problems(value, slot)
    since = f"required below {full_name(field.optional_since)}" if field.optional_since else "required"
    missing = Problems([f": missing; {since}"], False)
    return lambda value: missing if value is None else tensor_problems(value, slot)


def _array_check(check: _Check) -> _Check:
    """The check of a sequence of descs, of which there must be one at least."""

    def check_all(value: Any) -> Problems | None:
        if not isinstance(value, tuple) or not value:
            return Problems([f": {shown(value)}; must be a sequence of one or more descs"], False)
        found = [(f"[{i}]", problems) for i, item in enumerate(value) if (problems := check(item))]
        messages = [index + message for index, problems in found for message in problems.messages]
        return Problems(messages, all(problems.usable for _, problems in found)) if found else None

    return check_all


def _unbound(value: Any) -> Problems | None:
    if value is None:
        return None
    return Problems([": given; must be None in an activation that is part of another operator"], False)


def _activation_problems(desc: Any, outer: str, level: FeatureLevel) -> Problems | None:
    name = _operator_name(desc)
    if name is None:
        return Problems(
            [f": {shown(desc)}; must be the desc of an activation, such as opendml.descs.ActivationRelu()"],
            False,
        )
    message = fusion_message(outer, name, level)
    if message:
        return Problems([message], False)
    messages = list(_messages(desc, operator(name), level, fused=True))
    return Problems(messages, False) if messages else None


def _operator_name(desc: Any) -> str | None:
    """The operator that an object describes; None when it describes none."""
    name = getattr(type(desc), "operator", None) if isinstance(desc, OperatorDesc) else None
    return name if isinstance(name, str) and name in operator_facts() else None


_UNKNOWN_FUNCTION = "unknown"


def _function(desc: OperatorDesc, facts: Operator) -> str | None:
    """The reduce function that chooses the table, for the operator whose tables depend on it."""
    if facts.support[0].functions is None:
        return None
    function = getattr(desc, "function", None)
    return function.name if isinstance(function, ReduceFunction) else _UNKNOWN_FUNCTION
