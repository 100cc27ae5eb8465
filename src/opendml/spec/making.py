"""Functions and classes that are made from the operators' facts.

Functions are compiled from source text, as dataclasses and named tuples compile theirs. So they have
the signature, the speed and the error messages of functions in a module.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import new_class
from typing import Any, ForwardRef, Generic, NamedTuple, TypeVar

from opendml.spec.docstrings import outputs_docstring
from opendml.spec.parameters import output_type, outputs_class
from opendml.spec.schema import operator

T = TypeVar("T")

_outputs_tuples: dict[str, Any] = {}


def made_function(
    name: str, parameters: Iterable[str], result: str, body: str, namespace: dict[str, Any]
) -> Any:
    """Compile a function whose module is the `__name__` of its namespace.

    Args:
        name: the name of the function.
        parameters: the parameters as source text.
        result: the annotation of the result. Annotations stay text.
        body: the statements, without indentation.
        namespace: the globals of the function, which stay as they are.
    """
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"def {name}({', '.join(parameters)}) -> {result}:\n{lines}"
    defined: dict[str, Any] = {}
    # This module's future import holds for compiled text too, so annotations stay text.
    exec(compile(source, f"<{namespace['__name__']}.{name}>", "exec"), namespace, defined)
    return defined[name]


def outputs_tuple(name: str) -> Any:
    """Return the named tuple of an operator's outputs, a class of `opendml.outputs`."""
    if (made := _outputs_tuples.get(name)) is None:
        # Of two threads that make the same class, both get the first one.
        made = _outputs_tuples.setdefault(name, _made_outputs_tuple(name))
    return made


def _made_outputs_tuple(name: str) -> Any:
    facts = operator(name)
    types = {output.argument_name: ForwardRef(output_type(facts, output)) for output in facts.outputs}
    content = {
        "__module__": "opendml.outputs",
        "__doc__": outputs_docstring(facts),
        "__annotations__": types,
    }
    bases: tuple[Any, ...] = (NamedTuple, Generic[T])  # type: ignore[index]
    return new_class(outputs_class(facts), bases, {}, lambda body: body.update(content))
