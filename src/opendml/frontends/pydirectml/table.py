"""The table of the functions that PyDirectML's modules have for DirectML's operators: `functions.json`.

A row is DirectML's operator, the parameters in their order, and behind `->` the class of several outputs.
Parameters after `*` are given by keyword only. `name:argument` names the argument of the immediate function.
It is an input, an attribute, an optional output, `sizes` or `output_type`. `name!` is none of them, but
`adaptations` makes them of it. In `name=default`, a word is a member of the attribute's enumeration.

Nothing here imports what opendml depends on, so that stubs are made where none of it is installed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from opendml.spec.schema import Field, operator

_FACTS: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("functions.json").read_bytes())
_ELEMENT_WISE = {
    name: [row.format(name.upper())]
    for row, names in _FACTS["element_wise"].items()
    for name in " ".join(names).split()
}

MODULES: Mapping[str, Mapping[str, list[str]]] = {
    "pydirectml": _FACTS["both"] | _FACTS["pydirectml"],
    "directml": _FACTS["both"] | _FACTS["directml"] | _ELEMENT_WISE,
}
"""The lines of the rows of Microsoft's module and of the fork, by the function's name."""

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    name: tuple(" ".join(fields).split()) for name, fields in _FACTS["outputs"].items()
}
"""The fields of the classes of several outputs, in the operators' order."""

_ANNOTATIONS = {
    "TensorDesc | None": "Expression",
    "TensorDesc": "Expression",
    "OperatorDesc": "FusedActivation",
    "ScaleBias": "tuple[float, float]",
    "Size2D": "Size2D | tuple[int, int]",
    "TensorDataType": "DataType",
    "graph": "Graph",
    "output_options": "OutputOptions",
    "output_type": "DataType",
    "quantization_parameters": "Sequence[Expression]",
    "sizes": "Sequence[int]",
}
"""Annotations by words of a field's annotation, or by the argument where there is no field; else int."""
_FIELD_WORDS = re.compile("|".join(re.escape(each) for each in _ANNOTATIONS if each[0].isupper()))


class Parameter(NamedTuple):
    """A parameter of a function, and the argument that it is in the immediate function."""

    name: str
    argument: str
    field: Field | None


class Row(NamedTuple):
    """A row of the table. The source text of its parameters and its result is that of a function's head."""

    name: str
    operator: str
    parameters: list[Parameter]
    source: list[str]
    result: str


@cache
def row_of(module: str, name: str) -> Row:
    """Return a row of a module, or raise ValueError if the operator has no argument for a parameter."""
    line, _, result = " ".join(MODULES[module][name]).partition(" -> ")
    operator_name, *words = line.split()
    facts = operator(operator_name)
    fields = {field.argument_name: field for field in facts.fields if not field.is_count}
    parameters, source = list[Parameter](), list[str]()
    for word in words:
        if word == "*":
            source.append(word)
            continue
        names, _, default = word.partition("=")
        parameter, _, argument = names.rstrip("!").partition(":")
        argument = argument or parameter
        field = fields.get(argument)
        if field is None and argument not in ("sizes", "output_type") and not names.endswith("!"):
            raise ValueError(f"{name}.{parameter}: {argument}; {operator_name} has no such argument")
        if not default and "*" not in source and any("=" in each for each in source):
            default = "REQUIRED"
        source.append(_source(parameter, argument, field, default))
        parameters.append(Parameter(parameter, argument, field))
    plain = "list[Expression]" if facts.outputs[0].is_array else "Expression"
    return Row(name, operator_name, parameters, source, result or plain)


def _source(name: str, argument: str, field: Field | None, default: str) -> str:
    """Return a parameter as source text."""
    if field is None:
        annotation = _ANNOTATIONS.get(argument, "int")
    elif field.kind == "OUTPUT_TENSOR":
        annotation = "bool"
    else:
        annotation = _FIELD_WORDS.sub(lambda word: _ANNOTATIONS[word[0]], field.codec.annotation)
    if default == "None":
        return f"{name}: {annotation} | None = None"
    if default.isidentifier() and default not in ("True", "False", "REQUIRED"):
        default = f"{annotation.replace('DataType', 'TensorDataType')}.{default}"
    return f"{name}: {annotation} = {default}" if default else f"{name}: {annotation}"
