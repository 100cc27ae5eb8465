"""Immediate functions: one per operator, arrays in, arrays out.

A function is made when it is first asked for. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Signature, signature
from typing import Any

from opendml.operators.texts import definition_text
from opendml.runtime.calls.immediate import call, latest_calls
from opendml.runtime.memory.torch_tensors import known_readers
from opendml.spec.docstrings import function_docstring
from opendml.spec.enums import *  # noqa: F403
from opendml.spec.facts import operator_facts
from opendml.spec.kinds import ArrayCodec
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
_USED = call, latest_calls, known_readers  # Compiled functions use the names.
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
    body = f"if unknown:\n    raise _unexpected({facts.name!r}, unknown)\n{_body(facts)}"
    return made_function(name, [*parameters, "**unknown: Never"], result_type(facts), body, globals())


_type = type  # Parameters have this name too.
_LATEST = """
_form = None
if _type({first}) in known_readers and out is None and device is None:
    try:
        _form = {name!r}, ({arguments}), {first}.shape
        _found = latest_calls.calls.get(_form)
    except (RuntimeError, TypeError):  # no tensor with sizes, or an argument without a hash
        _form = _found = None
    if _found is not None and (_result := _found(_form[1], {tensors})) is not None:
        return _result
"""


def _body(facts: OperatorSchema) -> str:
    """Return the source that runs the operator: by the latest call of the same form, or else by `call`."""
    optional = optional_outputs(facts)
    wanted = [(each.python_name, each.argument_name) for each in optional]
    given = [(field.python_name, field.python_name) for field in facts.attributes]
    inputs = [field.argument_name for field in facts.inputs]
    call = [repr(facts.name), f"({_row(inputs)})", _table(given), "out", "device"]
    call += [f"{name}={name}" for name in output_arguments(facts)]
    if wanted:
        call.append(f"wanted={_table(wanted)}")
    if is_source(facts):
        call.append("graph=graph")
    if is_source(facts) or any(field.is_array for field in facts.inputs):
        return f"return call({', '.join(call)})"
    lists = {field.python_name for field in facts.attributes if isinstance(field.codec, ArrayCodec)}
    lists.add("sizes")
    names = [name for _, name in (*given, *wanted)] + [*output_arguments(facts)]
    arguments = [
        f"tuple({each}) if _type({each}) is list else {each}" if each in lists else each for each in names
    ]
    row, tensors = _row(arguments), ", ".join(inputs)
    latest = _LATEST.format(first=inputs[0], name=facts.name, arguments=row, tensors=tensors)
    return f"{latest}return call({', '.join(call)}, form=_form)"


def _row(items: Iterable[str]) -> str:
    """Return the source of a tuple, without parentheses."""
    return "".join(f"{each}, " for each in items)


def _table(items: Iterable[tuple[str, str]]) -> str:
    """Return the source of a dictionary with text as keys."""
    return f"{{{', '.join(f'{key!r}: {value}' for key, value in items)}}}"


def _without_unknown(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function without `**unknown`, by which it finds misspelt keywords."""
    found = signature(function)
    named = [each for each in found.parameters.values() if each.kind is not each.VAR_KEYWORD]
    return found.replace(parameters=named)


def _unexpected(name: str, unknown: Mapping[str, object]) -> TypeError:
    """Return the error of a call with keywords that the function of that operator does not have."""
    facts = operator(name)
    return unexpected_keyword(facts.function_name, next(iter(unknown)), facts, function_parameters)
