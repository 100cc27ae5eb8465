"""Rules and shapes of particular operators, written as functions of the fields that they read.

A function's parameters are fields by their Python names. A parameter with a default may be absent, from the
desc or from the operator. Where another one is None, the function does not apply. `**given` are the input
tensors that are given. A function can rely on what the fields must be by themselves and on the basic rules:
types, ranges, the ranks of the tables and of `same`, array lengths, axes. Its docstring is shown to users. It
says what the rule is, and why where Microsoft's page does not.

A rule yields (parameter, fault) for everything that breaks it. A shape gives the sizes of the outputs: the
validator compares with them, and calls take them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from opendml.spec.declarations import Declarations
from opendml.spec.enums import FeatureLevel
from opendml.spec.fault import Fault
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, Sizes, right_aligned, sizes_fault
from opendml.spec.schema import Field, OperatorSchema, operator

Function = TypeVar("Function", bound=Callable[..., Any])


class _Declaration(NamedTuple):
    """A function with what its parameters are bound to; what comes after `below` is for shapes alone."""

    function: Callable[..., Any]
    bound: Mapping[str, str | int]
    basic: bool = False
    below: FeatureLevel | None = None
    outputs: tuple[str, ...] = ()
    reason: str = ""
    leading_ones: bool = False
    is_open: bool = False


_rules: Declarations[_Declaration] = Declarations("opendml.spec.rules")
_shapes: Declarations[_Declaration] = Declarations("opendml.spec.rules")


def rule(
    *operators: str, basic: bool = False, below: FeatureLevel | None = None, **bound: str | int
) -> Callable[[Function], Function]:
    """Register a rule of operators.

    Args:
        operators: their names.
        basic: see `Rule`.
        below: the level from which it holds no longer.
        bound: for a parameter that no field is named after, its field (a DirectML name) or its value.
    """

    def register(function: Function) -> Function:
        _rules.add(operators, function.__name__, _Declaration(function, bound, basic, below))
        return function

    return register


def shape(
    *operators: str,
    reason: str,
    outputs: tuple[str, ...] = ("OutputTensor",),
    leading_ones: bool = False,
    is_open: bool = False,
    **bound: str | int,
) -> Callable[[Function], Function]:
    """Register the shape of operators: a function from inputs and attributes to the sizes of the outputs.

    Where these differ it gives a mapping from the outputs' Python names.

    Args:
        operators: their names.
        reason: what the sizes follow from, as in "must be [2, 3] for the input and axes given". Empty where
            all of them are `Usual`, so that there is nothing to check.
        outputs: DirectML's names of the outputs that have the sizes, where it gives no mapping.
        leading_ones: outputs may have more dimensions than the shape, or fewer, of size 1 in front.
        is_open: some sizes of the first output do not follow, or are one of several: a call may say them.
        bound: as of `rule`.
    """

    def register(function: Function) -> Function:
        declaration = _Declaration(
            function, bound, outputs=outputs, reason=reason, leading_ones=leading_ones, is_open=is_open
        )
        _shapes.add(operators, "shape", declaration)
        return function

    return register


def declared_rules(operator: OperatorSchema, level: FeatureLevel) -> list[Rule]:
    """Return the rules that were registered for the operator and hold at that level, and that of its shape.

    Raises:
        TypeError: a rule has a parameter without default that is no field of the operator.
    """
    found = [
        _rule(operator, declaration)
        for declaration in _rules.of(operator.name).values()
        if declaration.below is None or level < declaration.below
    ]
    declared = _shape_of(operator)
    return [*found, _rule_of_shape(operator, declared)] if declared and declared.reason else found


def declared_shape(operator: OperatorSchema, desc: OperatorDesc) -> Mapping[str, Sizes]:
    """Return the sizes of outputs that follow from inputs and attributes, by the outputs' Python names.

    Args:
        operator: its facts.
        desc: a desc whose inputs and attributes are valid; its outputs are not read.
    """
    bound = _bound_shape(operator.name)
    return {} if bound is None else bound.shape(desc)


def is_open(operator: OperatorSchema) -> bool | None:
    """Return whether the shape leaves sizes of the first output to the call; None: there is no shape."""
    declaration = _shape_of(operator)
    return None if declaration is None else declaration.is_open


def _shape_of(operator: OperatorSchema) -> _Declaration | None:
    return _shapes.of(operator.name).get("shape")


class _Bound:
    """A declared function with the fields of one operator for its parameters."""

    def __init__(self, operator: OperatorSchema, declaration: _Declaration) -> None:
        self.function, self.fields = declaration.function, dict[str, Field]()
        self._constants: dict[str, int] = {}
        self._required: set[str] = set()
        self._output_names = declaration.outputs
        self._outputs = {field.name: field.python_name for field in operator.outputs}
        by_name = {field.name: field for field in operator.fields}
        by_name |= {field.python_name: field for field in operator.fields if not field.is_count}
        for name, parameter in inspect.signature(self.function).parameters.items():
            value = declaration.bound.get(name, name)
            required = parameter.default is inspect.Parameter.empty
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self.fields |= {field.python_name: field for field in operator.inputs}
            elif isinstance(value, int):
                self._constants[name] = value
            elif value in by_name:
                self.fields[name] = by_name[value]
                self._required |= {name} if required else set()
            elif required or name in declaration.bound:
                raise TypeError(f"{operator.name}: {self.function.__name__} reads {value}, which is no field")

    @property
    def text(self) -> str:
        """The function's docstring as one paragraph."""
        return " ".join((self.function.__doc__ or "").split())

    def result(self, desc: OperatorDesc) -> Any:
        """Return the result of the function for a desc; None where it does not apply."""
        values = {name: getattr(desc, field.python_name) for name, field in self.fields.items()}
        given = {name: value for name, value in values.items() if value is not None}
        return self.function(**self._constants, **given) if self._required <= given.keys() else None

    def shape(self, desc: OperatorDesc) -> Mapping[str, Sizes]:
        """Return the sizes that a shape gives, by the outputs' Python names."""
        found = self.result(desc)
        if found is None:
            return {}
        if isinstance(found, Mapping):
            return {name: found[name] for name in self._outputs.values()}
        return {self._outputs[name]: found for name in self._output_names}


@cache
def _bound_shape(name: str) -> _Bound | None:
    """Return the shape of an operator, bound to its fields."""
    facts = operator(name)
    declaration = _shape_of(facts)
    return None if declaration is None else _Bound(facts, declaration)


def _rule(operator: OperatorSchema, declaration: _Declaration) -> Rule:
    bound = _Bound(operator, declaration)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        for parameter, fault in bound.result(desc) or ():
            yield bound.fields[parameter], fault

    return Rule(bound.function.__name__, tuple(bound.fields.values()), check, declaration.basic, bound.text)


def _rule_of_shape(operator: OperatorSchema, declaration: _Declaration) -> Rule:
    """Make the rule that the outputs which are given have the sizes of the shape."""
    bound = _Bound(operator, declaration)
    outputs = {field.python_name: field for field in operator.outputs}

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        for name, expected in bound.shape(desc).items():
            tensor = getattr(desc, name)
            if tensor is None:
                continue
            if declaration.leading_ones:
                expected = right_aligned(expected, len(tensor.sizes))
            if fault := sizes_fault(tensor, expected, declaration.reason):
                yield outputs[name], fault

    fields = (*bound.fields.values(), *outputs.values())
    return Rule(bound.function.__name__, fields, check, text=bound.text)
