"""The desc classes of all operators, such as `ActivationCelu`, made from `data/operators.json`.

A class is made when it is first asked for, by its own name or that of the struct in C
(`DML_ACTIVATION_CELU_OPERATOR_DESC`). Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from opendml.across_forks import importing
from opendml.spec.docstrings import desc_docstring
from opendml.spec.enums import *  # noqa: F403
from opendml.spec.facts import operator_facts
from opendml.spec.making import made_function
from opendml.spec.naming import camel_case, nearest, operator_name, snake_case
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.parameters import desc_parameters, stored_type, unexpected_keyword
from opendml.spec.schema import OperatorSchema, operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import DataTypeLike, as_member, as_truth, as_tuple

if TYPE_CHECKING:
    from inspect import Signature

# Compiled constructors and their annotations use these names.
_USED = (Sequence, ScaleBias, Size2D, DataTypeLike, as_member, as_truth, as_tuple, TensorDesc)


class _Docstring:
    """The docstring of a desc class, composed when it is read."""

    def __init__(self, facts: OperatorSchema) -> None:
        self._facts = facts

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return desc_docstring(self._facts)


class _Signature:
    """The signature of a desc class, made when it is read.

    It leaves out `self`, and `**unknown`, by which the constructor finds misspelt keywords.
    """

    def __get__(self, instance: object, owner: type[OperatorDesc]) -> Signature:
        with importing:
            from inspect import signature
        found = signature(owner.__init__)
        given = [each for name, each in found.parameters.items() if name not in ("self", "unknown")]
        return found.replace(parameters=given)


def _unexpected(name: str, unknown: Mapping[str, object]) -> TypeError:
    """Return the error of a call with keywords that the desc class of that operator does not have."""
    facts = operator(name)
    return unexpected_keyword(facts.class_name, next(iter(unknown)), facts, desc_parameters)


@cache
def desc_class(operator: str) -> type[OperatorDesc]:
    """Return the desc class of the operator of that DirectML name, such as "ACTIVATION_CELU".

    Raises:
        AttributeError: no such operator.
    """
    name = camel_case(operator)
    made = globals().get(name) if name in _operators() else None
    return made or __getattr__(name)


@cache
def _operators() -> dict[str, str]:
    """Return the operators by the names of their classes."""
    return {camel_case(each): each for each in operator_facts()}


def _made_class(facts: OperatorSchema) -> type[OperatorDesc]:
    stored = [field for field in facts.fields if not field.is_count]
    names = tuple(field.python_name for field in stored)
    body = f"self._fill({', '.join(field.codec.conversion.format(field.python_name) for field in stored)})"
    body = f"if unknown:\n    raise _unexpected({facts.name!r}, unknown)\n{body}"
    parameters = ["self", *desc_parameters(facts), "**unknown: Never"]
    constructor = made_function("__init__", parameters, "None", body, globals())
    constructor.__qualname__ = f"{facts.class_name}.__init__"
    namespace = {
        "__module__": __name__,
        "__doc__": _Docstring(facts),
        "__signature__": _Signature(),
        "__slots__": names,
        "__annotations__": {field.python_name: stored_type(field) for field in stored},
        "__init__": constructor,
        "operator": facts.name,
        "fields": names,
    }
    return type(facts.class_name, (OperatorDesc,), namespace)


def __getattr__(name: str) -> Any:
    classes = _operators()
    if name == "__all__":
        return [*classes, "OperatorDesc", "ScaleBias", "Size2D", "desc_class"]
    if name.startswith("DML_") and (struct := operator_name(name)) in operator_facts():
        return desc_class(struct)
    if name not in classes:
        meant = operator_name(snake_case(name).upper())
        near = camel_case(meant) if meant in operator_facts() else nearest(name, classes)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
    # Of two threads that make the same class, both get the first one.
    return globals().setdefault(name, _made_class(operator(classes[name])))


def __dir__() -> list[str]:
    return sorted(__getattr__("__all__"))
