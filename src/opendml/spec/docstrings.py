"""Docstrings of desc classes, immediate functions and named tuples, composed from the operators' facts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import example_facts, tolerance_facts
from opendml.spec.feature_level import full_name, short_name
from opendml.spec.outputs import has_usual_sizes, output_arguments
from opendml.spec.parameters import (
    has_outputs_class,
    has_plain_result,
    is_source,
    optional_outputs,
    outputs_class,
)
from opendml.spec.rank_defaults import rank_default
from opendml.spec.schema import Field, OperatorSchema
from opendml.spec.wording import join, meaning, ranks

WIDTH = 100
"""Characters of the longest line of a docstring, without the indentation of its function."""


def desc_docstring(operator: OperatorSchema) -> str:
    """Compose the docstring of a desc class."""
    names = python_names(operator, {field: field.python_name for field in operator.fields})
    lines = [*_head(operator, names, "output_tensor"), "Tensors:"]
    for field in operator.tensors:
        kind = "input" if field.kind == "INPUT_TENSOR" else "output"
        plural = "s" if field.is_array else ""
        text = f"{field.python_name}: {kind}{plural}, {_tensor(operator, field, names)}"
        lines += wrapped(text, "    ", "        ")
    if operator.attributes:
        lines += ["", "Attributes:"]
    for field in operator.attributes:
        optional = ", optional" if field.optional else ""
        text = f"{field.python_name}: {field.codec.annotation}{optional}. {renamed(meaning(field), names)}"
        lines += wrapped(text, "    ", "        ")
    return "\n".join(lines) + "\n"


def function_docstring(operator: OperatorSchema, decisions: Iterable[str]) -> str:
    """Compose the docstring of an immediate function.

    Args:
        operator: the facts of the operator.
        decisions: the paragraphs that the definition of the operator adds to its formula.
    """
    names = python_names(operator, {field: field.argument_name for field in operator.fields})
    lines = list(_head(operator, names, "out"))
    for paragraph in itertools.chain(decisions, _accuracy(operator)):
        lines += [*wrapped(renamed(paragraph, names)), ""]
    lines.append("Args:")
    for name, text in _arguments(operator, names):
        lines += wrapped(f"{name}: {text}", "    ", "        ")
    lines += ["", "Returns:", *_returns(operator, names), "", "Raises:"]
    for name, text in _raises(operator):
        lines += wrapped(f"{name}: {text}", "    ", "        ")
    return "\n".join([*lines, "", *_example(operator)]) + "\n"


def outputs_docstring(operator: OperatorSchema) -> str:
    """Compose the docstring of the named tuple of an operator's outputs."""
    return f"The outputs of `opendml.{operator.function_name}`, whose docstring describes them."


def paragraphs(docstring: str) -> list[str]:
    """Return the paragraphs of a docstring, each on one line."""
    parts = re.split(r"\n\s*\n", docstring)
    return [" ".join(part.split()) for part in parts if part.strip()]


def _head(operator: OperatorSchema, names: Mapping[str, str], output: str) -> Iterator[str]:
    """Yield the summary, the formula, and the paragraph with the source of the rules and aliasing."""
    yield from wrapped(renamed(operator.summary, names))
    yield ""
    formula = _WORD.sub(lambda word: names.get(word[0], word[0]), operator.formula)
    yield from wrapped(formula, "    ", "        ")
    yield ""
    in_place = join([names[each] for each in operator.in_place], "or") if operator.in_place else ""
    memory = f"`{output}` may be the same memory as {in_place}." if in_place else "Not in place."
    page = f"DirectML's DML_{operator.name}_OPERATOR_DESC, from {full_name(operator.introduced)}"
    yield from wrapped(f"{page}. {memory}")
    yield ""


def _accuracy(operator: OperatorSchema) -> Iterator[str]:
    distances = [
        f"{type} {fact['measured']:g}"
        for type, fact in tolerance_facts().get(operator.name, {}).items()
        if fact["unit"] == "ulp"
    ]
    if distances:
        yield f"Greatest distance from the exact result, in ULP: {', '.join(distances)}."


def _arguments(operator: OperatorSchema, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the arguments of the immediate function and their meanings."""
    for field in operator.inputs:
        yield field.argument_name, _tensor(operator, field, names)
    for field in operator.attributes:
        default = rank_default(operator, field)
        yield (
            field.python_name,
            renamed(meaning(field), names) + ("" if default is None else f" When None, {default}."),
        )
    for output in optional_outputs(operator):
        yield output.argument_name, "Whether this output is returned too."
    for name in output_arguments(operator):
        yield name, _sizes(operator) if name == "sizes" else _output_type(operator, names)
    yield "out", _out(operator)
    yield "device", "Where to run; the default device when None."
    if is_source(operator):
        yield "graph", "The graph that the operator becomes a node of; None: run it at once."


def _tensor(operator: OperatorSchema, field: Field, names: Mapping[str, str]) -> str:
    """Return the types, dimensions and meaning of a tensor."""
    since = f" from {short_name(field.optional_since)}" if field.optional_since else ""
    optional = f"optional{since}; " if field.optional else ""
    facts = f"{_types_since(operator, field.name)}; {_ranks_since(operator, field.name)}"
    return f"{optional}{facts}. {renamed(meaning(field), names)}".rstrip()


def _types_since(operator: OperatorSchema, tensor: str) -> str:
    """Return the types of a tensor at the newest level. Each group names the level that added it."""
    groups: dict[FeatureLevel, list[str]] = {}
    added: set[str] = set()
    for table in sorted(operator.support, key=lambda table: table.level):
        for name in table.tensors[tensor].types:
            if name not in added:
                added.add(name)
                groups.setdefault(table.level, []).append(name)
    first = min(groups)
    return "; ".join(
        ", ".join(names) + ("" if level == first else f" from {short_name(level)}")
        for level, names in groups.items()
    )


def _ranks_since(operator: OperatorSchema, tensor: str) -> str:
    """Return the dimension counts of a tensor at the newest level and at lower ones."""
    steps: list[tuple[FeatureLevel, tuple[int, int]]] = []
    for table in sorted(operator.support, key=lambda table: table.level):
        dims = table.tensors[tensor].dims
        if not steps or steps[-1][1] != dims:
            steps.append((table.level, dims))
    newest = ranks(steps[-1][1])
    words = f"{newest} dimension{'s' if newest != '1' else ''}"
    older = [
        f"{ranks(before[1])} below {short_name(after[0])}" for before, after in itertools.pairwise(steps)
    ]
    return f"{words} ({', '.join(reversed(older))})" if older else words


def _returns(operator: OperatorSchema, names: Mapping[str, str]) -> Iterator[str]:
    if not has_outputs_class(operator):
        (output,) = operator.outputs
        tuple_of = "A tuple: " if output.is_array else ""
        yield from wrapped(tuple_of + _tensor(operator, output, names), "    ", "    ")
        return
    named = f"opendml.outputs.{outputs_class(operator)}, a named tuple"
    if has_plain_result(operator):
        named = f"{operator.outputs[0].argument_name}, or where another output is asked for, {named}"
    yield from wrapped(f"{named}:", "    ", "    ")
    for output in operator.outputs:
        text = f"{output.argument_name}: {_tensor(operator, output, names)}"
        yield from wrapped(text, "    ", "        ")


def _raises(operator: OperatorSchema) -> Iterator[tuple[str, str]]:
    """Yield the errors of the immediate function."""
    yield (
        "InvalidArgument",
        f"An argument breaks a rule of DML_{operator.name}_OPERATOR_DESC at the device's feature level, "
        "or an array cannot be read or written. The message names the argument and what is allowed.",
    )
    yield "Unsupported", "The device cannot run the operator on these tensors."


def _example(operator: OperatorSchema) -> Iterator[str]:
    """Yield the example of the operator as an interactive session."""
    facts = example_facts()[operator.name]
    yield "Example:"
    for line in facts["code"]:
        yield f"    {'...' if line.startswith((' ', ')', '}')) else '>>>'} {line}"
    for line in facts.get("result", ()):
        yield f"    {line}".rstrip()


def _out(operator: OperatorSchema) -> str:
    """Return the meaning of `out`."""
    if operator.outputs[0].is_array:
        return "Where to write, an array for each part; new arrays (of the input's kind) when None."
    if not has_outputs_class(operator):
        return "Where to write; a new array (of the inputs' kind) when None."
    absent = ", None for those that are not asked for" if optional_outputs(operator) else ""
    several = f"a tuple with an array for each output{absent}"
    first = f"for several outputs {several}" if has_plain_result(operator) else several
    return f"Where to write, {first}; new arrays (of the inputs' kind) when None."


def _output_type(operator: OperatorSchema, names: Mapping[str, str]) -> str:
    """Return the meaning of `output_type`."""
    (output,) = (field for field in operator.outputs if field.has_call_type)
    ties = [
        tensor
        for same in operator.same
        if "DataType" in same.what and output.name in same.tensors
        for tensor in same.tensors
    ]
    default = f", or {output.call_type}" if output.call_type else ""
    tied = "".join(f", or that of {names[tensor]}" for tensor in ties if tensor != output.name)
    which = output.argument_name if has_outputs_class(operator) else "the output"
    return f"The type of {which}; that of `out` when None{tied}{default}."


def _sizes(operator: OperatorSchema) -> str:
    """Return the meaning of `sizes`."""
    first = operator.outputs[0]
    if first.is_array:
        return "The sizes of the parts along the axis; those of `out` when None."
    which = first.argument_name if has_outputs_class(operator) else "the output"
    usual = ", or the usual ones" if has_usual_sizes(operator) else ""
    return f"The sizes of {which}; those of `out` when None{usual}."


_WORD = re.compile(r"[A-Za-z]\w*")
_FIELD_NAME = re.compile(
    r"(?<! a )(?<! an )\b[A-Z][a-z]*[A-Z]\w*"  # of several parts, unless an article says that it is a type
    r"|(?:(?<=[^.!?:] )|(?<=[(\[]))[A-Z][a-z]+\b"  # of one part, within a sentence
)
"""A word of a sentence that may be the name of a field."""


def python_names(operator: OperatorSchema, names: Mapping[Field, str]) -> dict[str, str]:
    """Return Python's names by DirectML's. Texts name a tensor also without its last word, Tensor."""
    found: dict[str, str] = {}
    for field, name in names.items():
        if not field.is_count:
            found |= {field.name: name, field.name.removesuffix("Tensor"): name}
    return found


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a sentence in which DirectML's names of fields are Python's names."""
    known = {name: each for name, each in names.items() if not name.isupper()}
    return _FIELD_NAME.sub(lambda found: known.get(found[0], found[0]), text)


def wrapped(text: str, first: str = "", later: str = "") -> Iterator[str]:
    """Yield the words of a text in lines of at most `WIDTH` characters. It is faster than `textwrap`."""
    line = first
    is_empty = True
    for word in text.split():
        if not is_empty and len(line) + len(word) >= WIDTH:
            yield line
            line, is_empty = later, True
        line += word if is_empty else f" {word}"
        is_empty = False
    yield line
