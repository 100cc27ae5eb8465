"""Stubs for type checkers and editors of the modules whose content is made from the operators' facts.

Nothing here imports what opendml depends on: the build hook runs where none of it is installed.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import opendml.spec
from opendml.frontends.pydirectml.docstrings import function_docstring as row_docstring
from opendml.frontends.pydirectml.table import MODULES, OUTPUTS, row_of
from opendml.spec.docstrings import desc_docstring, function_docstring, outputs_docstring, paragraphs
from opendml.spec.enumeration import named_members
from opendml.spec.facts import enum_facts
from opendml.spec.naming import camel_case
from opendml.spec.parameters import (
    desc_parameters,
    function_parameters,
    has_outputs_class,
    has_plain_result,
    is_source,
    optional_outputs,
    out_type,
    output_type,
    outputs_class,
    result_type,
    stored_type,
)
from opendml.spec.schema import OperatorSchema, operators

PACKAGE = Path(opendml.spec.__file__).parent.parent

_HEAD = '"""Written from opendml/spec/data by `python -m tools.generate`."""\n\n'
_FUNCTION_IMPORTS = """\
from collections.abc import Sequence
from typing import Literal, TypeVar, overload

from opendml.outputs import *
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.host_array import Array
from opendml.runtime.objects.device import Device
from opendml.spec.enums import *
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.values import DataTypeLike

T = TypeVar("T")
"""
_DESC_IMPORTS = """\
from collections.abc import Sequence

from opendml.spec.enums import *
from opendml.spec.operator_desc import OperatorDesc as OperatorDesc
from opendml.spec.operator_desc import ScaleBias as ScaleBias
from opendml.spec.operator_desc import Size2D as Size2D
from opendml.spec.values import DataTypeLike
from opendml.spec.tensor_desc import TensorDesc

def desc_class(operator: str) -> type[OperatorDesc]: ...
"""
_OUTPUT_IMPORTS = 'from typing import Generic, NamedTuple, TypeVar\n\nT = TypeVar("T")\n'
_PYDIRECTML_IMPORTS = """\
from collections.abc import Sequence
from typing import NamedTuple

from opendml.frontends.pydirectml.enumerations import DataType
from opendml.frontends.pydirectml.functions import REQUIRED
from opendml.frontends.pydirectml.functions import broadcast as broadcast
from opendml.frontends.pydirectml.functions import input_tensor as input_tensor
from opendml.frontends.pydirectml.functions import multihead_attention as multihead_attention
from opendml.frontends.pydirectml.functions import {reinterpret} as reinterpret
"""
_ENUM_IMPORTS = "from typing import Final\n\nfrom opendml.spec.enumeration import Enumeration, Flags\n"


def stubs() -> dict[str, str]:
    """Return the text of every stub by its path within the package."""
    every = list(operators().values())
    several = [operator for operator in every if has_outputs_class(operator)]
    functions = [operator.function_name for operator in every]
    return {
        "functions.pyi": _module(_FUNCTION_IMPORTS, functions, map(_function, every)),
        "outputs.pyi": _module(_OUTPUT_IMPORTS, map(outputs_class, several), map(_outputs_class, several)),
        "spec/descs.pyi": _HEAD + _DESC_IMPORTS + "".join(map(_desc_class, every)),
        "spec/enums.pyi": _HEAD + _ENUM_IMPORTS + "".join(_enumerations()),
        "directml.pyi": _pydirectml("directml", PACKAGE / "directml.py"),
        "pydirectml/__init__.pyi": _pydirectml("pydirectml", PACKAGE / "pydirectml" / "__init__.py"),
    }


def write_stubs(package: Path = PACKAGE) -> list[Path]:
    """Write the stubs that are absent or differ from the facts, and return their paths."""
    written = []
    for name, text in stubs().items():
        path = package / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            written.append(path)
    return written


def _module(imports: str, names: Iterable[str], content: Iterable[str]) -> str:
    exported = "".join(f'    "{name}",\n' for name in sorted(names))
    return f"{_HEAD}{imports}\n__all__ = [\n{exported}]\n{''.join(content)}"


def _function(operator: OperatorSchema) -> str:
    """Return an immediate function, or its overloads, of which the first has the docstring."""
    name = f"def {operator.function_name}"
    forms = list(_overloads(operator))
    decisions = _decisions().get(operator.name, [])
    docstring = _docstring(function_docstring(operator, decisions))
    decorator = "@overload\n" if len(forms) > 1 else ""
    first, *others = [f"\n{decorator}{_call_lines(name, given, f' -> {type}:')}" for given, type in forms]
    return f"{first[:-1]}\n{docstring}" + "".join(f"{each[:-1]} ...\n" for each in others)


def _pydirectml(module: str, path: Path) -> str:
    """Return the stub of a module of PyDirectML: its classes, and the functions of its table."""
    hand_written = "reinterpret_in_either_form" if module == "directml" else "reinterpret"
    lines = [_HEAD, _PYDIRECTML_IMPORTS.format(reinterpret=hand_written)]
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef):
            lines.append(f"{ast.unparse(node)}\n")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for key, names in zip(node.value.keys, node.value.values, strict=True):
                lines += _imported(ast.unparse(key or names), names)
    lines.append("class FusedActivation(activations.FusedActivation):\n")
    for name in enum_facts()["fused_activation"]["activations"]:
        method = name.removeprefix("ACTIVATION_").lower()
        source = [each for each in row_of("directml", name.lower()).source[1:] if each != "*"]
        lines.append(f"    @staticmethod\n    def {method}({', '.join(source)}) -> FusedActivation: ...\n")
    rows = [row_of(module, name) for name in sorted(MODULES[module])]
    for name in sorted({row.result for row in rows} & OUTPUTS.keys()):
        lines.append(f"class {name}({'NamedTuple' if module == 'directml' else ''}):\n")
        for field in OUTPUTS[name]:
            ignored = "  # type: ignore[assignment]" if field == "count" and module == "directml" else ""
            lines.append(f"    {field}: Expression{ignored}\n")
    for row in rows:
        head = _call_lines(f"def {row.name}", row.source, f" -> {row.result}:")
        lines.append(f"{head[:-1]}\n{_docstring(row_docstring(row, module))}")
    return "".join(lines)


def _imported(module: str, names: ast.expr) -> list[str]:
    path = "opendml.spec.enums" if module == "enums" else f"opendml.frontends.pydirectml.{module}"
    known = [str(each.value) for each in ast.walk(names) if isinstance(each, ast.Constant)]
    return [f"from {path} import {each} as {each}\n" for each in known if each != "FusedActivation"]


def _overloads(operator: OperatorSchema) -> Iterator[tuple[list[str], str]]:
    """Yield the parameters and the results of the overloads.

    The first ones are for NumPy's arrays, of which other ones come back. Then come those for arrays of other
    libraries and for tensors of graphs, which are of one class.
    """
    forms = list(_forms(operator, function_parameters(operator)))
    if len(forms) == 1 and _keeps_the_type(operator) and not is_source(operator):
        yield from forms
        return
    if is_source(operator):
        for given, type in forms:
            if operator.inputs:
                yield [each.replace("input: T | None = None", "input: T") for each in given], type
                given = [each.replace("input: T | None", "input: None") for each in given]
            yield _without_inputs(given, "None = None", "None = None"), re.sub(r"\bT\b", "Array", type)
            yield _without_inputs(given, "T", "None = None"), type
            yield _without_inputs(given, "None = None", "Graph"), re.sub(r"\bT\b", "GraphTensor", type)
        return
    for given, type in forms:
        yield [re.sub(r"\bT\b", "Array", each) for each in given], re.sub(r"\bT\b", "Array", type)
    yield from forms


def _forms(operator: OperatorSchema, parameters: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield parameters and results: without optional outputs, then with each of them."""
    result = result_type(operator)
    if not has_outputs_class(operator) or not has_plain_result(operator):
        yield parameters, result
        return
    asked = [f"{output.argument_name}: bool = False" for output in optional_outputs(operator)]
    plain, named = result.split(" | ", 1)
    plain_out, named_out = out_type(operator).split(" | ", 1)
    none = [each.replace("bool = ", "Literal[False] = ") if each in asked else each for each in parameters]
    yield _with_out(none, f"{plain_out} | None = None"), plain
    for one in asked:
        given = [
            each.replace("bool = False", "Literal[True]") if each == one else each for each in parameters
        ]
        yield _with_out(given, f"{named_out} | None = None"), named


def _without_inputs(parameters: Iterable[str], out: str, graph: str) -> list[str]:
    """Return the parameters of an operator without inputs, whose result is an array or a graph tensor."""
    return [f"graph: {graph}" if each.startswith("graph: ") else each for each in _with_out(parameters, out)]


def _with_out(parameters: Iterable[str], out: str) -> list[str]:
    return [f"out: {out}" if each.startswith("out: ") else each for each in parameters]


def _keeps_the_type(operator: OperatorSchema) -> bool:
    """Return whether the output has the type and sizes of the first input, so an array's exact type."""
    first, last = operator.tensors[0].name, operator.tensors[-1].name
    tied = [what for same in operator.same if {first, last} <= set(same.tensors) for what in same.what]
    return first != last and {"DataType", "Sizes"} <= set(tied)


def _outputs_class(operator: OperatorSchema) -> str:
    fields = "".join(
        f"    {output.argument_name}: {output_type(operator, output)}\n" for output in operator.outputs
    )
    name = outputs_class(operator)
    return f"\nclass {name}(NamedTuple, Generic[T]):\n{_docstring(outputs_docstring(operator))}\n{fields}"


def _desc_class(operator: OperatorSchema) -> str:
    stored = [field for field in operator.fields if not field.is_count]
    fields = "".join(f"    {field.python_name}: {stored_type(field)}\n" for field in stored)
    constructor = _call_lines("def __init__", ["self", *desc_parameters(operator)], " -> None: ...", "    ")
    docstring = _docstring(desc_docstring(operator))
    return f"\nclass {operator.class_name}(OperatorDesc):\n{docstring}\n{fields}{constructor}"


def _enumerations() -> Iterator[str]:
    facts = enum_facts()
    yield from (f"\n{name}: Final = {value}\n" for name, value in facts["constants"].items())
    for name, values in facts["enums"].items():
        base = "Flags" if name in facts["flags"] else "Enumeration"
        members = "".join(f"    {each} = {value}\n" for each, value in named_members(name, values).items())
        yield f'\nclass {camel_case(name)}({base}):\n    """DML_{name}."""\n\n{members}'
    yield "\nDATA_TYPE_BITS: Final[dict[TensorDataType, int]]\n"


@cache
def _decisions() -> Mapping[str, list[str]]:
    """Return what definitions decide beyond their formulas, by operator, as their sources say it."""
    found: dict[str, list[str]] = {}
    for path in sorted((PACKAGE / "operators").glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.FunctionDef(decorator_list=decorators):
                    texts = paragraphs(ast.get_docstring(node) or "")[1:]
                    found |= {name: texts for name in map(_defined, decorators) if name}
    return found


def _defined(decorator: ast.expr) -> str | None:
    """Return the operator that a decorator registers a definition of, if it does."""
    match decorator:
        case ast.Call(ast.Name(name), [ast.Constant(str(operator)), *_]) if name.startswith("defines"):
            return operator
    return None


def _docstring(text: str) -> str:
    escaped = text.rstrip().replace("\\", "\\\\").replace('"""', "'''")
    end = "\n" if "\n" in escaped else ""
    return textwrap.indent(f'"""{escaped}{end}"""\n', "    ")


def _call_lines(head: str, arguments: Iterable[str], tail: str, indent: str = "") -> str:
    inner = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{indent}{head}(\n{inner}{indent}){tail}\n"
