"""Judges descs: one engine that reads the operators' facts, for every operator and every feature level."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

from opendml.errors import Failure, InvalidArgument
from opendml.spec.enums import FeatureLevel, ReduceFunction
from opendml.spec.facts import operator_facts
from opendml.spec.fault import Fault, FieldNames, path_text
from opendml.spec.feature_level import as_feature_level, full_name
from opendml.spec.fused_activation import fusion_fault
from opendml.spec.kinds import Check, Demands, desc_array_check
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules import Rule, rules_of
from opendml.spec.schema import Field, OperatorSchema, operator
from opendml.spec.tensor_rules import tensor_demands, tensor_faults
from opendml.spec.wording import shown


def validate(desc: OperatorDesc, feature_level: FeatureLevel | str | int | None = None) -> None:
    """Check that the desc is valid at a feature level.

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
    """Return one failure for every rule that the desc breaks at the level, the first field first.

    Args:
        desc: an operator's desc.
        feature_level: a member of FeatureLevel or a name such as "2_0"; None is the newest.
        outputs: whether the desc has its outputs; otherwise only what else it has is judged.

    Raises:
        InvalidArgument: no such feature level.
    """
    return [failure_of(*each) for each in faults(desc, feature_level, outputs=outputs)]


Located = tuple[OperatorSchema | None, Field | None, Fault]
"""A fault with its operator and field. A fault of a whole desc has no field; one of no desc has neither."""


def faults(
    desc: OperatorDesc,
    feature_level: FeatureLevel | str | int | None = None,
    *,
    inputs: bool = True,
    outputs: bool = True,
) -> list[Located]:
    """Return the faults that `failures` puts into words.

    Args:
        desc: an operator's desc.
        feature_level: a member of FeatureLevel or a name such as "2_0"; None is the newest.
        inputs: whether to judge inputs and attributes; False: they are valid, and the outputs are judged.
        outputs: whether the desc has its outputs; False: only inputs and attributes are judged.
    """
    level = as_feature_level(feature_level)
    name = _operator_name(desc)
    if name is None:
        must = "must be the desc of an operator, such as opendml.descs.ActivationCelu(...)"
        return [(None, None, Fault(shown(desc), must))]
    facts = operator(name)
    if level < facts.introduced:
        exists = f"exists from {full_name(facts.introduced)}"
        return [(facts, None, Fault(f"not in {full_name(level)}", exists, since=facts.introduced))]
    found = _faults(desc, facts, level, fused=False, inputs=inputs, outputs=outputs)
    return [(facts, field, fault) for field, fault in found]


def failure_of(facts: OperatorSchema | None, field: Field | None, fault: Fault) -> Failure:
    """Return a fault in DirectML's names."""
    names = FieldNames()
    if facts is not None:
        names.update({each.name: f" ({each.name})" for each in facts.fields if each.is_count})
    name = None if facts is None else facts.name
    where = None if field is None else field.name + path_text(fault.path)
    place = ".".join(filter(None, (name, where)))
    given, allowed = fault.given_text, fault.allowed.format_map(names) or None
    return Failure(
        ": ".join(filter(None, (place, fault.text(names)))), name, where, given, allowed, fault.since
    )


class _Plan(NamedTuple):
    """The checks of an operator at a level, of those fields that are to be judged."""

    fields: tuple[tuple[Field, str, Check], ...]
    rules: tuple[Rule, ...]
    order: dict[str, int]


def _faults(
    desc: OperatorDesc,
    facts: OperatorSchema,
    level: FeatureLevel,
    *,
    fused: bool,
    inputs: bool = True,
    outputs: bool = True,
) -> list[tuple[Field, Fault]]:
    """Return the faults of all fields, the first field first."""
    plan = _plan(facts.name, level, _function(desc, facts), fused, inputs, outputs)
    found: list[tuple[Field, Fault]] = []
    malformed: set[str] = set()
    for field, name, check in plan.fields:
        for fault in check(getattr(desc, name, None)):
            found.append((field, fault))
            if fault.malformed:
                malformed.add(field.name)
    for rule in plan.rules:
        if malformed and any(field.name in malformed for field in rule.fields):
            if rule.basic:
                # What this rule would have made sure of is not known to later rules.
                malformed.update(field.name for field in rule.fields)
            continue
        for field, fault in rule.check(desc):
            if not outputs and field.kind == "OUTPUT_TENSOR":
                continue
            found.append((field, fault))
            if rule.basic:
                malformed.add(field.name)
    if len(found) > 1:
        found.sort(key=lambda item: plan.order[item[0].name])
    return found


@cache
def _plan(
    name: str, level: FeatureLevel, function: str | None, fused: bool, inputs: bool, outputs: bool
) -> _Plan:
    facts = operator(name)
    order = {field.name: position for position, field in enumerate(facts.fields)}
    checks = tuple(
        (field, field.python_name, _field_check(facts, field, level, function, fused))
        for field in facts.fields
        if not field.is_count and (outputs if field.kind == "OUTPUT_TENSOR" else inputs)
    )
    rules = rules_of(facts, level)
    if fused:
        rules = [rule for rule in rules if not any(field.is_tensor for field in rule.fields)]
    if not inputs:
        rules = [rule for rule in rules if any(field.kind == "OUTPUT_TENSOR" for field in rule.fields)]
    if not outputs:
        arrays = {field.name for field in facts.outputs if field.is_array}
        rules = [rule for rule in rules if not any(field.name in arrays for field in rule.fields)]
    return _Plan(checks, tuple(rules), order)


def _field_check(
    facts: OperatorSchema, field: Field, level: FeatureLevel, function: str | None, fused: bool
) -> Check:
    if field.is_tensor:
        return _unbound if fused else _tensor_check(facts, field, level, function)
    activation = partial(_activation_faults, outer=facts.name, level=level)
    check = field.codec.check(Demands(level, field.range_at(level), activation))
    return (lambda value: [] if value is None else check(value)) if field.optional else check


def _tensor_check(facts: OperatorSchema, field: Field, level: FeatureLevel, function: str | None) -> Check:
    demands = tensor_demands(facts, field, level, function, has_table=function != _UNKNOWN_FUNCTION)
    check: Check = partial(tensor_faults, demands=demands)
    if field.is_array:
        return desc_array_check(check)
    if field.optional_at(level):
        return lambda value: [] if value is None else check(value)
    since = field.optional_since
    allowed = f"required below {full_name(since)}" if since else "required"
    missing = [Fault("missing", allowed, since=since, malformed=True)]
    return lambda value: missing if value is None else check(value)


def _unbound(value: Any) -> list[Fault]:
    if value is None:
        return []
    return [Fault("given", "must be None in an activation that is part of another operator", malformed=True)]


def _activation_faults(desc: Any, outer: str, level: FeatureLevel) -> list[Fault]:
    name = _operator_name(desc)
    if name is None:
        must = "must be the desc of an activation, such as opendml.descs.ActivationRelu()"
        return [Fault(shown(desc), must, malformed=True)]
    if fault := fusion_fault(outer, name, level):
        return [fault]
    found = _faults(desc, operator(name), level, fused=True)
    return [fault.within(field.name)._replace(malformed=True) for field, fault in found]


def _operator_name(desc: Any) -> str | None:
    """Return the operator that an object describes; None when it describes none."""
    name = getattr(type(desc), "operator", None) if isinstance(desc, OperatorDesc) else None
    return name if isinstance(name, str) and name in operator_facts() else None


_UNKNOWN_FUNCTION = "unknown"


def _function(desc: OperatorDesc, facts: OperatorSchema) -> str | None:
    """Return the reduce function that chooses the table, for the operator whose tables depend on it."""
    if facts.support[0].functions is None:
        return None
    function = getattr(desc, "function", None)
    return function.name if isinstance(function, ReduceFunction) else _UNKNOWN_FUNCTION
