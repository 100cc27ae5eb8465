"""Docstrings of the functions of the table, with the examples of the immediate functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from opendml.frontends.pydirectml.table import OUTPUTS, Parameter, Row
from opendml.spec.docstrings import renamed, wrapped
from opendml.spec.facts import example_facts
from opendml.spec.feature_level import full_name
from opendml.spec.naming import camel_case, snake_case
from opendml.spec.schema import operator
from opendml.spec.wording import meaning

_PROMPT = f"{'>>>'} "
_FUSED = re.compile(r"dml\.descs\.Activation(\w+)")
_MEANINGS = {
    "sizes": "The sizes of the output.",
    "output_type": "The type of the output.",
    "graph": "The graph of the operator, which has no inputs.",
}


def function_docstring(row: Row, module: str) -> str:
    """Compose the docstring of a function from the facts of its operator."""
    facts = operator(row.operator)
    names = {each.field.name: each.name for each in row.parameters if each.field is not None}
    lines = [*wrapped(renamed(facts.summary, names)), ""]
    lines += [*wrapped(renamed(facts.formula, names), "    ", "        "), ""]
    page = f"DirectML's DML_{row.operator}_OPERATOR_DESC, from {full_name(facts.introduced)}"
    lines += [*wrapped(f"{page}. `opendml.{facts.function_name}` says more."), "", "Args:"]
    for each in row.parameters:
        lines += wrapped(f"{each.name}: {_meaning(each, names)}", "    ", "        ")
    fields = f"{row.result}: {', '.join(OUTPUTS[row.result])}." if row.result in OUTPUTS else f"{row.result}."
    lines += ["", "Returns:", f"    {fields}"]
    lines += ["", "Raises:", "    TypeError: an argument has another type."]
    lines += ["    ValueError: an argument breaks a rule of the operator."]
    example = list(_example(row)) if module == "directml" else []
    return "\n".join([*lines, *(["", "Example:"] if example else []), *example]) + "\n"


def _meaning(parameter: Parameter, names: dict[str, str]) -> str:
    if parameter.field is not None:
        return renamed(meaning(parameter.field), names)
    return _MEANINGS.get(parameter.argument, f"The {parameter.name.replace('_', ' ')}.")


def _example(row: Row) -> Iterator[str]:
    """Yield the immediate function's example as one of this function; nothing if it has other arguments."""
    facts = example_facts()[row.operator]
    *before, last = ast.parse("\n".join(facts["code"])).body
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return
    inputs = [field.argument_name for field in operator(row.operator).inputs]
    given = dict(zip(inputs, last.value.args, strict=False))
    given |= {each.arg: each.value for each in last.value.keywords if each.arg is not None}
    arguments = []
    for each, source in zip(row.parameters, (text for text in row.source if text != "*"), strict=True):
        value, default = given.pop(each.argument, None), source.partition(" = ")[2]
        if value is not None:
            arguments.append(f"{each.name}={_value(each, value)}")
        elif default in ("", "REQUIRED") or not _is_usual(each, default):
            return
    call = f"output = dml.{row.name}({', '.join(arguments)})"
    if given:
        return
    statements = ["import numpy as np", "import opendml.directml as dml"]
    statements += ["graph = dml.Graph(dml.Device(use_gpu=False))", *map(ast.unparse, before)]
    yield from (f"    {_PROMPT}{each}" for each in statements)
    yield from wrapped(call, f"    {_PROMPT}", "    ...     ")
    if row.result == "Expression":
        yield f"    {_PROMPT}graph.compile([output])()[0]"
        yield from (f"    {line or '<BLANKLINE>'}" for line in facts.get("result", ()))


def _is_usual(parameter: Parameter, default: str) -> bool:
    """Return whether a default is that of the immediate function."""
    usual = parameter.field.default if parameter.field is not None else None
    return usual is None or default in ("None", "()", repr(usual)) or default.rpartition(".")[2] == usual


def _value(parameter: Parameter, value: ast.expr) -> str:
    """Return the source of an argument."""
    text, field = ast.unparse(value), parameter.field
    if field is None or field.enum == "TENSOR_DATA_TYPE":
        return text.replace("dml.", "dml.TensorDataType.")
    if field.is_array and isinstance(value, ast.List):
        return f"[{', '.join(f'graph.constant({ast.unparse(each)})' for each in value.elts)}]"
    if field.kind == "INPUT_TENSOR":
        return f"graph.constant({text})"
    if field.enum is not None and isinstance(value, ast.Constant):
        return f"dml.{camel_case(field.enum)}.{value.value!s}"
    if field.type == "OPERATOR_DESC":
        return _FUSED.sub(lambda found: f"dml.FusedActivation.{snake_case(found[1])}", text)
    return text.removeprefix("dml.descs.Size2D") if field.type == "SIZE_2D" else text
