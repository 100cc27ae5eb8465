"""Immediate functions: one per operator, arrays in, arrays out.

A function is made when it is first asked for. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Signature, signature
from typing import Any

from opendml.operators.texts import definition_text
from opendml.runtime.calls.immediate import call
from opendml.spec.docstrings import function_docstring
from opendml.spec.enums import *  # noqa: F403
from opendml.spec.facts import operator_facts
from opendml.spec.making import made_function
from opendml.spec.outputs import output_arguments
from opendml.spec.parameters import (
    function_parameters,
    is_source,
    optional_outputs,
    result_type,
    unexpected_keyword,
)
from opendml.spec.schema import OperatorSchema, operator

_OPERATORS = {name.lower(): name for name in operator_facts()}
_USED = call  # Compiled functions use the name.
_made: dict[str, Any] = {}

__all__ = sorted(_OPERATORS)


def __getattr__(name: str) -> Any:
    if name not in _OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return globals().setdefault(name, _documented(name))


def __dir__() -> list[str]:
    return __all__


def undocumented(name: str) -> Any:
    """Return the function of that name, perhaps without signature and docstring.

    The package's own calls need neither. To compose a docstring imports the definitions of all operators.
    """
    if (made := _made.get(name)) is None:
        # Of two threads that make the same function, both get the first one.
        made = _made.setdefault(name, _made_function(operator(_OPERATORS[name])))
    return made


def _documented(name: str) -> Any:
    facts, made = operator(_OPERATORS[name]), undocumented(name)
    made.__doc__ = function_docstring(facts, definition_text(facts.name)[1:])
    made.__signature__ = _without_unknown(made)
    return made


def _made_function(facts: OperatorSchema) -> Any:
    name, parameters = facts.function_name, function_parameters(facts)
    body = f"if unknown:\n    raise _unexpected({facts.name!r}, unknown)\nreturn {_call(facts)}"
    return made_function(name, [*parameters, "**unknown: Never"], result_type(facts), body, globals())


def _call(facts: OperatorSchema) -> str:
    """Return the source of the call that runs the operator."""
    inputs = "".join(f"{field.argument_name}, " for field in facts.inputs)
    attributes = ", ".join(f'"{field.python_name}": {field.python_name}' for field in facts.attributes)
    wanted = ", ".join(f'"{each.python_name}": {each.argument_name}' for each in optional_outputs(facts))
    arguments = [repr(facts.name), f"({inputs})", f"{{{attributes}}}", "out", "device"]
    arguments += [f"{name}={name}" for name in output_arguments(facts)]
    if wanted:
        arguments.append(f"wanted={{{wanted}}}")
    if is_source(facts):
        arguments.append("graph=graph")
    return f"call({', '.join(arguments)})"


def _without_unknown(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function without `**unknown`, by which it finds misspelt keywords."""
    found = signature(function)
    named = [each for each in found.parameters.values() if each.kind is not each.VAR_KEYWORD]
    return found.replace(parameters=named)


def _unexpected(name: str, unknown: Mapping[str, object]) -> TypeError:
    """Return the error of a call with keywords that the function of that operator does not have."""
    facts = operator(name)
    return unexpected_keyword(facts.function_name, next(iter(unknown)), facts, function_parameters)
