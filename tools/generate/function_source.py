"""Source of opendml/functions.py: one immediate function per operator that can be run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opendml.spec.facts import accuracy_facts
from opendml.spec.naming import camel_case
from opendml.spec.rank_defaults import rank_default
from opendml.spec.schema import Field, Operator, operator
from opendml.spec.wording import meaning
from tools.generate.desc_source import argument_type, default_source
from tools.generate.prose import docstring_head, tensor_line
from tools.generate.text import WIDTH, call_lines, header, wrap

_HEAD = """
from collections.abc import Sequence
from typing import TYPE_CHECKING, Never, TypeVar, overload

from opendml.runtime.arguments import hide_unknown, unexpected
from opendml.runtime.immediate import call
{imports}
if TYPE_CHECKING:
    from opendml.runtime.device import Device
    from opendml.runtime.host_array import Array

T = TypeVar("T")
"""

_TAIL = """

hide_unknown(globals()[_name] for _name in __all__)
"""


_OUTPUT_ARGUMENTS = {
    "output_type": "output_type: DataTypeLike | None = None",
    "sizes": "sizes: Sequence[int] | None = None",
}


def function_source(names: Iterable[str]) -> str:
    """The whole module, with a function for each operator named, in that order."""
    chosen = [operator(name) for name in names]
    functions = "".join(_function(each) for each in chosen)
    imports = _enum_imports(chosen) + _desc_imports(functions)
    exported = "".join(f'    "{name}",\n' for name in sorted(each.function_name for each in chosen))
    text = header("Immediate functions: one per operator, arrays in, arrays out.") + _HEAD.format(
        imports=imports
    )
    if "Sequence[" not in functions:
        text = text.replace("from collections.abc import Sequence\n", "")
    return f"{text}\n__all__ = [\n{exported}]\n{functions}{_TAIL}"


def _enum_imports(chosen: list[Operator]) -> str:
    enums = {camel_case(field.enum) for each in chosen for field in each.attributes if field.enum}
    names = sorted(enums - {"TensorDataType"})
    return f"from opendml.spec.enums import {', '.join(names)}\n" if names else ""


def _desc_imports(functions: str) -> str:
    names = [name for name in ("OperatorDesc", "ScaleBias", "Size2D") if f": {name}" in functions]
    imports = f"from opendml.spec.operator_desc import {', '.join(names)}\n" if names else ""
    return imports + ("from opendml.spec.plain import DataTypeLike\n" if "DataTypeLike" in functions else "")


def _function(operator: Operator) -> str:
    inputs = [field for field in operator.tensors if field.kind == "INPUT_TENSOR"]
    outputs = operator.outputs
    result = "T" if len(outputs) == 1 else f"tuple[{', '.join('T' for _ in outputs)}]"
    arguments = [
        *_positional(inputs),
        "*",
        *(_keyword(operator, field) for field in operator.attributes),
        *(_OUTPUT_ARGUMENTS[name] for name in operator.output_arguments),
        f"out: {result} | None = None",
        "device: str | Device | None = None",
    ]
    overloads = "" if _is_of_the_inputs_type(operator) else _overloads(operator, arguments, result)
    arguments.append("**unknown: Never")
    tensors = _tuple(field.argument_name for field in inputs)
    attributes = _tuple(field.python_name for field in operator.attributes)
    passed = [f'"{operator.name}"', tensors, attributes, "out", "device"]
    passed += [f"{name}={name}" for name in operator.output_arguments]
    called = f"    results: {result} = call({', '.join(passed)})\n"
    if len(called) > WIDTH + 1:
        called = call_lines(f"results: {result} = call", passed, "", "    ")
    signature = call_lines(f"def {operator.function_name}", arguments, f" -> {result}:", "")
    docstring = "\n".join(_docstring(operator, inputs))
    check = f"    if unknown:\n        raise unexpected({operator.function_name}, unknown)\n"
    return f"\n\n{overloads}{signature}{docstring}\n{check}{called}    return results\n"


def _is_of_the_inputs_type(operator: Operator) -> bool:
    """Whether an array comes back with the type and sizes of those that were given."""
    first, last = operator.tensors[0].name, operator.tensors[-1].name
    tied = [what for same in operator.same if {first, last} <= set(same.tensors) for what in same.what]
    return first != last and {"DataType", "Sizes"} <= set(tied)


def _overloads(operator: Operator, arguments: list[str], result: str) -> str:
    """The signature for NumPy's arrays, of which another one comes back, and for those of other libraries and
    tensors of graphs, which are of one class."""
    if len(operator.tensors) == 1:
        given = [re.sub(r"^out: .*", "out: T", each) for each in arguments]
        arrays = [re.sub(r"^out: .*", "out: None = None", each) for each in arguments]
    else:
        given = arguments
        arrays = [re.sub(r"\bT\b", "Array", each) for each in arguments]
    name, of_arrays = f"def {operator.function_name}", re.sub(r"\bT\b", "Array", result)
    for_arrays = call_lines(name, arrays, f" -> {of_arrays}: ...", "")
    return f"@overload\n{for_arrays}\n\n@overload\n{call_lines(name, given, f' -> {result}: ...', '')}\n\n"


def _positional(inputs: list[Field]) -> Iterator[str]:
    """Optional tensors default to None, but not those in front of a required one; one of several may be a
    number.
    """
    single = "T" if len(inputs) == 1 else "T | float"
    last_required = max((i for i, field in enumerate(inputs) if not field.optional), default=-1)
    for i, field in enumerate(inputs):
        kind = "Sequence[T]" if field.type == "TENSOR_DESC_ARRAY" else single
        optional = " | None" if field.optional else ""
        default = " = None" if i > last_required else ""
        yield f"{field.argument_name}: {kind}{optional}{default}"


def _keyword(operator: Operator, field: Field) -> str:
    if rank_default(operator, field) is not None:
        return f"{field.python_name}: {argument_type(field)} | None = None"
    default = default_source(field)
    return f"{field.python_name}: {argument_type(field)}{f' = {default}' if default else ''}"


def _tuple(names: Iterable[str]) -> str:
    listed = list(names)
    if not listed:
        return "()"
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


def _docstring(operator: Operator, inputs: list[Field]) -> Iterator[str]:
    yield from docstring_head(operator)
    accuracy = [
        f"{type} {fact['measured']:g}" for type, fact in accuracy_facts().get(operator.name, {}).items()
    ]
    if accuracy:
        yield f"    Greatest distance from the exact result, in ULP: {', '.join(accuracy)}."
        yield ""
    yield "    Args:"
    for field in inputs:
        yield wrap(f"{field.argument_name}: {tensor_line(operator, field)}", "        ", "    ")
    for field in operator.attributes:
        default = rank_default(operator, field)
        each = "" if default is None else f" When None, {default} for each dimension."
        yield wrap(f"{field.python_name}: {meaning(field)}{each}", "        ", "    ")
    for name in operator.output_arguments:
        yield wrap(f"{name}: {_output_text(operator, name)}", "        ", "    ")
    yield wrap("out: Where to write; a new array (of the inputs' kind) when None.", "        ", "    ")
    yield wrap("device: Where to run; the default device when None.", "        ", "    ")
    yield ""
    yield "    Returns:"
    for field in operator.outputs:
        name = f"{field.argument_name}: " if len(operator.outputs) > 1 else ""
        text = tensor_line(operator, field).removeprefix("output, ")
        yield wrap(f"{name}{text}", "        ", "    " if name else "")
    yield '    """'


def _output_text(operator: Operator, name: str) -> str:
    """The meaning of an argument that is about the output."""
    if name == "sizes":
        return "The sizes of the output; those of `out` when None."
    (output,) = (field for field in operator.outputs if field.has_call_type)
    ties = [
        tensor
        for same in operator.same
        if "DataType" in same.what and output.name in same.tensors
        for tensor in same.tensors
    ]
    default = f", or {output.call_type}" if output.call_type else ""
    tied = "".join(f", or that of {tensor}" for tensor in ties if tensor != output.name)
    return f"The type of the output; that of `out` when None{tied}{default}."
