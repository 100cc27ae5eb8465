"""Immediate functions: one per operator, arrays in, arrays out.

A function is made when it is first asked for. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

from typing import Any

from opendml.operators.texts import definition_text
from opendml.runtime.calls.arguments import unexpected, without_unknown
from opendml.runtime.calls.immediate import call, call_several
from opendml.spec.docstrings import function_docstring
from opendml.spec.enums import *  # noqa: F403
from opendml.spec.facts import operator_facts
from opendml.spec.making import made_function
from opendml.spec.outputs import output_arguments
from opendml.spec.parameters import (
    function_parameters,
    has_outputs_class,
    optional_outputs,
    result_type,
)
from opendml.spec.schema import OperatorSchema, operator

_OPERATORS = {name.lower(): name for name in operator_facts()}
_CALLED = (call, call_several, unexpected)

__all__ = sorted(_OPERATORS)


def __getattr__(name: str) -> Any:
    if name not in _OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    return globals().setdefault(name, _made_function(operator(_OPERATORS[name])))


def __dir__() -> list[str]:
    return __all__


def _made_function(facts: OperatorSchema) -> Any:
    name, parameters = facts.function_name, function_parameters(facts)
    body = f"if unknown:\n    raise unexpected({name}, unknown)\nreturn {_call(facts)}"
    made = made_function(name, [*parameters, "**unknown: Never"], result_type(facts), body, globals())
    made.__doc__ = function_docstring(facts, definition_text(facts.name)[1:])
    made.__signature__ = without_unknown(made)
    return made


def _call(facts: OperatorSchema) -> str:
    """Return the source of the call that runs the operator."""
    inputs = "".join(f"{field.argument_name}, " for field in facts.inputs)
    attributes = "".join(f"{field.python_name}, " for field in facts.attributes)
    arguments = [repr(facts.name), f"({inputs})", f"({attributes})", "out", "device"]
    arguments += [f"{name}={name}" for name in output_arguments(facts)]
    if optional := optional_outputs(facts):
        wanted = "".join(f"{field.argument_name}, " for field in optional)
        arguments.append(f"wanted=({wanted})")
    is_one = not has_outputs_class(facts) and not any(field.is_array for field in facts.tensors)
    return f"{'call' if is_one else 'call_several'}({', '.join(arguments)})"
