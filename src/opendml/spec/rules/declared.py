"""Rules of particular operators, written as functions of the fields that they read.

A function's parameters are fields by their Python names. A parameter with a default may be absent, from the
desc or from the operator; where another one is None, the rule does not apply. The function yields
(parameter, message) for everything that breaks the rule. It can rely on what the fields must be by
themselves and on the basic rules: types, ranges, the ranks of the tables and of `same`, array lengths, axes.
Its docstring is shown to users: it says what the rule is, and why where Microsoft's page does not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from opendml.spec.enums import FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule
from opendml.spec.schema import Field, Operator

Broken = Iterator[tuple[str, str]]
"""The breaches of a rule: the parameter to blame, and a message that continues the field's name."""

Function = TypeVar("Function", bound=Callable[..., Broken])


class _Declaration(NamedTuple):
    function: Callable[..., Broken]
    bound: dict[str, str | int]
    basic: bool
    below: FeatureLevel | None


_declarations: dict[str, list[_Declaration]] = {}


def rule(
    *operators: str, basic: bool = False, below: FeatureLevel | None = None, **bound: str | int
) -> Callable[[Function], Function]:
    """Registers a rule for operators.

    Args:
        operators: their names.
        basic: see `Rule`.
        below: the level from which it holds no longer.
        bound: for a parameter that no field is named after, the field that it is (a DirectML name), or its
            value.
    """

    def register(function: Function) -> Function:
        for operator in operators:
            _declarations.setdefault(operator, []).append(_Declaration(function, bound, basic, below))
        return function

    return register


def declared_rules(operator: Operator, level: FeatureLevel) -> list[Rule]:
    """The rules that were registered for the operator and hold at that level.

    Raises:
        TypeError: a rule has a parameter without default that is no field of the operator.
    """
    return [
        _rule(operator, declaration)
        for declaration in _declarations.get(operator.name, ())
        if declaration.below is None or level < declaration.below
    ]


def _rule(operator: Operator, declaration: _Declaration) -> Rule:
    function, bound, basic, _ = declaration
    by_name = {field.name: field for field in operator.fields}
    by_name |= {field.python_name: field for field in operator.fields if not field.is_count}
    arguments: list[Any] = []
    read: list[tuple[int, str, bool]] = []
    fields: dict[str, Field] = {}
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        value = bound.get(parameter.name, parameter.name)
        required = parameter.default is inspect.Parameter.empty
        arguments.append(parameter.default)
        if isinstance(value, int):
            arguments[position] = value
        elif value in by_name:
            fields[parameter.name] = by_name[value]
            read.append((position, by_name[value].python_name, required))
        elif required or parameter.name in bound:
            raise TypeError(f"{operator.name}: {function.__name__} reads {value}, which is no field")

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, str]]:
        values = arguments.copy()
        for position, name, required in read:
            value = getattr(desc, name)
            if value is None and required:
                return
            values[position] = value
        for parameter, message in function(*values):
            yield fields[parameter], message

    text = " ".join((function.__doc__ or "").split())
    return Rule(function.__name__, tuple(fields.values()), check, basic, text)
