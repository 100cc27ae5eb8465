"""Source of opendml/functions.py: one immediate function per operator."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from opendml.catalog.definitions import definition_text
from opendml.spec.facts import tolerance_facts
from opendml.spec.naming import camel_case
from opendml.spec.outputs import has_usual_sizes, output_arguments
from opendml.spec.rank_defaults import rank_default
from opendml.spec.schema import Field, Operator, operators
from opendml.spec.wording import meaning
from tools.generate.desc_source import argument_type, default_source, import_line
from tools.generate.output_source import (
    class_name,
    has_class,
    has_plain_result,
    may_be_absent,
    optional_outputs,
)
from tools.generate.prose import docstring_head, tensor_line
from tools.generate.text import WIDTH, call_lines, header, wrap

_HEAD = """
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Never, TypeVar, overload

from opendml.runtime.calls.arguments import hide_unknown, unexpected
from opendml.runtime.calls.immediate import call, call_several
{imports}
if TYPE_CHECKING:
{outputs}    from opendml.runtime.memory.host_array import Array
    from opendml.runtime.objects.device import Device

T = TypeVar("T")
"""

_TAIL = """

hide_unknown(globals()[_name] for _name in __all__)
"""


_OUTPUT_ARGUMENTS = {
    "output_type": "output_type: DataTypeLike | None = None",
    "sizes": "sizes: Sequence[int] | None = None",
}


def function_source() -> str:
    """The whole module, with a function for each operator, in DirectML's order."""
    chosen = list(operators().values())
    functions = "".join(_function(each) for each in chosen)
    classes = sorted(class_name(each) for each in chosen if has_class(each))
    outputs = textwrap.indent(import_line("opendml.outputs", classes), "    ")
    imports = _enum_imports(chosen) + _desc_imports(functions)
    exported = "".join(f'    "{name}",\n' for name in sorted(each.function_name for each in chosen))
    text = header("Immediate functions: one per operator, arrays in, arrays out.") + _HEAD.format(
        outputs=outputs, imports=imports
    )
    return f"{text}\n__all__ = [\n{exported}]\n{functions}{_TAIL}"


def _enum_imports(chosen: list[Operator]) -> str:
    enums = {camel_case(field.enum) for each in chosen for field in each.attributes if field.enum}
    return import_line("opendml.spec.enums", sorted(enums - {"TensorDataType"}))


def _desc_imports(functions: str) -> str:
    names = [name for name in ("OperatorDesc", "ScaleBias", "Size2D") if f": {name}" in functions]
    imports = f"from opendml.spec.operator_desc import {', '.join(names)}\n" if names else ""
    return imports + ("from opendml.spec.plain import DataTypeLike\n" if "DataTypeLike" in functions else "")


def _function(operator: Operator) -> str:
    result = _result(operator)
    arguments = [
        *_positional(operator),
        "*",
        *(_keyword(operator, field) for field in operator.attributes),
        *(f"{field.argument_name}: bool = False" for field in optional_outputs(operator)),
        *(_OUTPUT_ARGUMENTS[name] for name in output_arguments(operator)),
        f"out: {_out(operator)} | None = None",
        "device: str | Device | None = None",
    ]
    overloads = "".join(f"@overload\n{each}\n\n" for each in _overloads(operator, arguments, result))
    arguments.append("**unknown: Never")
    signature = call_lines(f"def {operator.function_name}", arguments, f" -> {result}:", "")
    docstring = "\n".join(_docstring(operator))
    check = f"    if unknown:\n        raise unexpected({operator.function_name}, unknown)\n"
    called = _called(operator, result)
    return f"\n\n{overloads}{signature}{docstring}\n{check}{called}    return results\n"


def _called(operator: Operator, result: str) -> str:
    """The statement that runs the operator."""
    tensors = _tuple(field.argument_name for field in operator.inputs)
    attributes = _tuple(field.python_name for field in operator.attributes)
    passed = [f'"{operator.name}"', tensors, attributes, "out", "device"]
    passed += [f"{name}={name}" for name in output_arguments(operator)]
    is_one = not has_class(operator) and not any(field.is_array for field in operator.tensors)
    if optional := optional_outputs(operator):
        passed.append(f"wanted={_tuple(field.argument_name for field in optional)}")
    call = f"results: {result} = {'call' if is_one else 'call_several'}"
    called = f"    {call}({', '.join(passed)})\n"
    return called if len(called) <= WIDTH + 1 else call_lines(call, map(_lines, passed), "", "    ")


def _lines(argument: str) -> str:
    """An argument in a line of its own, or where it is a tuple that does not fit, one for each item."""
    if len(f"        {argument},") <= WIDTH:
        return argument
    return call_lines("", argument.strip("()").split(", "), "", "        ").strip()


def _result(operator: Operator) -> str:
    """The type of what the function returns."""
    if operator.outputs[0].is_array:
        return "tuple[T, ...]"
    if not has_class(operator):
        return "T"
    named = f"{class_name(operator)}[T]"
    return f"T | {named}" if has_plain_result(operator) else named


def _out(operator: Operator) -> str:
    """The type of what the function may be given to write."""
    if operator.outputs[0].is_array:
        return "Sequence[T]"
    if not has_class(operator):
        return "T"
    fields = ", ".join("T | None" if may_be_absent(operator, output) else "T" for output in operator.outputs)
    return f"T | tuple[{fields}]" if has_plain_result(operator) else f"tuple[{fields}]"


def _is_of_the_inputs_type(operator: Operator) -> bool:
    """Whether an array comes back with the type and sizes of those that were given."""
    first, last = operator.tensors[0].name, operator.tensors[-1].name
    tied = [what for same in operator.same if {first, last} <= set(same.tensors) for what in same.what]
    return first != last and {"DataType", "Sizes"} <= set(tied)


def _overloads(operator: Operator, arguments: list[str], result: str) -> Iterator[str]:
    """The signatures for NumPy's arrays, of which other ones come back, and for those of other libraries and
    tensors of graphs, which are of one class; for each, without optional outputs and with them."""
    forms = list(_forms(operator, arguments, result))
    if len(forms) == 1 and _is_of_the_inputs_type(operator):
        return
    name = f"def {operator.function_name}"
    for given, returned in forms:
        arrays = [re.sub(r"\bT\b", "Array", each) for each in given]
        if not operator.inputs:
            arrays = [re.sub(r"^out: .*", "out: None = None", each) for each in given]
        yield call_lines(name, arrays, " -> " + re.sub(r"\bT\b", "Array", returned) + ": ...", "")
    for given, returned in forms:
        if not operator.inputs:
            given = [re.sub(r"^out: .*", "out: T", each) for each in given]
        yield call_lines(name, given, f" -> {returned}: ...", "")


def _forms(operator: Operator, arguments: list[str], result: str) -> Iterator[tuple[list[str], str]]:
    """The arguments and results of a function: where it returns its one required output, none of the optional
    ones is asked for; else one of them is, and the others may be."""
    if not has_class(operator) or not has_plain_result(operator):
        yield arguments, result
        return
    asked = [f"{output.argument_name}: bool = False" for output in optional_outputs(operator)]
    plain, named = result.split(" | ", 1)
    of_plain, of_named = _out(operator).split(" | ", 1)
    none = [each.replace("bool = ", "Literal[False] = ") if each in asked else each for each in arguments]
    yield [f"out: {of_plain} | None = None" if each.startswith("out:") else each for each in none], plain
    for one in asked:
        given = [each.replace("bool = False", "Literal[True]") if each == one else each for each in arguments]
        yield [f"out: {of_named} | None = None" if each.startswith("out:") else each for each in given], named


def _positional(operator: Operator) -> Iterator[str]:
    """Optional tensors default to None, but not those in front of a required one; one of several may be a
    number.
    """
    inputs = operator.inputs
    single = "T" if len(inputs) == 1 else "T | float"
    last_required = max((i for i, field in enumerate(inputs) if not field.optional), default=-1)
    for i, field in enumerate(inputs):
        kind = "Sequence[T]" if field.is_array else single
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


def _docstring(operator: Operator) -> Iterator[str]:
    yield from docstring_head(operator)
    for decision in definition_text(operator)[1:]:
        yield wrap(decision, "    ")
        yield ""
    accuracy = [
        f"{type} {fact['measured']:g}"
        for type, fact in tolerance_facts().get(operator.name, {}).items()
        if fact["unit"] == "ulp"
    ]
    if accuracy:
        yield f"    Greatest distance from the exact result, in ULP: {', '.join(accuracy)}."
        yield ""
    yield "    Args:"
    for field in operator.inputs:
        yield wrap(f"{field.argument_name}: {tensor_line(operator, field)}", "        ", "    ")
    for field in operator.attributes:
        default = rank_default(operator, field)
        each = "" if default is None else f" When None, {default}."
        yield wrap(f"{field.python_name}: {meaning(field)}{each}", "        ", "    ")
    for output in optional_outputs(operator):
        yield f"        {output.argument_name}: Whether this output is returned too."
    for name in output_arguments(operator):
        yield wrap(f"{name}: {_output_text(operator, name)}", "        ", "    ")
    yield wrap(f"out: {_out_text(operator)}", "        ", "    ")
    yield wrap("device: Where to run; the default device when None.", "        ", "    ")
    yield ""
    yield "    Returns:"
    yield from _returns(operator)
    yield '    """'


def _returns(operator: Operator) -> Iterator[str]:
    if not has_class(operator):
        (output,) = operator.outputs
        text = tensor_line(operator, output).removeprefix("outputs, ").removeprefix("output, ")
        yield wrap(f"A tuple: {text}" if output.is_array else text, "        ")
        return
    named = f"opendml.outputs.{class_name(operator)}, a named tuple"
    if has_plain_result(operator):
        plain = operator.outputs[0].argument_name
        yield wrap(f"{plain}, or where another output is asked for, {named}:", "        ")
    else:
        yield wrap(f"{named}:", "        ")
    for output in operator.outputs:
        text = tensor_line(operator, output).removeprefix("output, ")
        yield wrap(f"{output.argument_name}: {text}", "        ", "    ")


def _out_text(operator: Operator) -> str:
    """The meaning of `out`."""
    if operator.outputs[0].is_array:
        return "Where to write, an array for each part; new arrays (of the input's kind) when None."
    if not has_class(operator):
        return "Where to write; a new array (of the inputs' kind) when None."
    absent = ", None for those that are not asked for" if optional_outputs(operator) else ""
    several = f"a tuple with an array for each output{absent}"
    first = f"for several outputs {several}" if has_plain_result(operator) else several
    return f"Where to write, {first}; new arrays (of the inputs' kind) when None."


def _output_text(operator: Operator, name: str) -> str:
    """The meaning of an argument that is about the output."""
    if name == "sizes":
        return _sizes_text(operator)
    (output,) = (field for field in operator.outputs if field.has_call_type)
    ties = [
        tensor
        for same in operator.same
        if "DataType" in same.what and output.name in same.tensors
        for tensor in same.tensors
    ]
    default = f", or {output.call_type}" if output.call_type else ""
    tied = "".join(f", or that of {tensor}" for tensor in ties if tensor != output.name)
    which = output.argument_name if has_class(operator) else "the output"
    return f"The type of {which}; that of `out` when None{tied}{default}."


def _sizes_text(operator: Operator) -> str:
    first = operator.outputs[0]
    if first.is_array:
        return "The sizes of the parts along the axis; those of `out` when None."
    which = first.argument_name if has_class(operator) else "the output"
    usual = ", or the usual ones" if has_usual_sizes(operator) else ""
    return f"The sizes of {which}; those of `out` when None{usual}."
