"""Python's parameters of desc classes and immediate functions, as source text.

`opendml.spec.descs` and `opendml.functions` compile this text. `tools.generate` writes it into stubs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from string import digits
from typing import Final

from opendml.spec.naming import camel_case
from opendml.spec.outputs import output_arguments
from opendml.spec.rank_defaults import rank_default
from opendml.spec.schema import Field, OperatorSchema, operators
from opendml.spec.wording import join
from opendml.spelling import close_matches

_OUTPUT_PARAMETERS: Final = {
    "output_type": "output_type: DataTypeLike | None = None",
    "sizes": "sizes: Sequence[int] | None = None",
}


def stored_type(field: Field) -> str:
    """Return the type of the value that a desc holds for a field."""
    stored = field.codec.stored_annotation
    return f"{stored} | None" if field.optional and not field.is_tensor else stored


def desc_parameters(operator: OperatorSchema) -> list[str]:
    """Return the parameters of the constructor of a desc class, after `self`."""
    tensors = [
        f"{field.python_name}: {_argument_type(field)} = {'()' if field.is_array else 'None'}"
        for field in operator.tensors
    ]
    attributes = [_attribute(field) for field in operator.attributes]
    return [*tensors, "*", *attributes] if attributes else tensors


def function_parameters(operator: OperatorSchema) -> list[str]:
    """Return the parameters of an immediate function. T is an array or a tensor of a graph."""
    return [
        *_inputs(operator),
        "*",
        *(_attribute(field, rank_default(operator, field) is not None) for field in operator.attributes),
        *(f"{field.argument_name}: bool = False" for field in optional_outputs(operator)),
        *(_OUTPUT_PARAMETERS[name] for name in output_arguments(operator)),
        f"out: {out_type(operator)} | None = None",
        "device: str | Device | None = None",
        *(["graph: Graph | None = None"] if is_source(operator) else []),
    ]


def is_source(operator: OperatorSchema) -> bool:
    """Return whether an operator may have no input at all, so that a call names the graph that it is for."""
    return len(operator.inputs) < 2 and all(field.optional for field in operator.inputs)


def unexpected_keyword(
    called: str, keyword: str, facts: OperatorSchema, parameters: Callable[[OperatorSchema], list[str]]
) -> TypeError:
    """Return the error of a call with a keyword that it does not take.

    The message names the variants of the operator that take it, such as TOP_K1 of TOP_K, or else the
    parameter that is spelt alike.

    Args:
        called: the function or the class, as the caller names it.
        keyword: the keyword.
        facts: the operator.
        parameters: returns the parameters of that kind of function, by operator.
    """
    stem = facts.name.rstrip(digits)
    others = [each for name, each in operators().items() if name.rstrip(digits) == stem and each is not facts]
    is_class = called == facts.class_name
    having = [
        f"{each.class_name if is_class else each.function_name}()"
        for each in others
        if keyword in _names(parameters(each))
    ]
    if having:
        hint = f"; {join(having, 'and')} {'has' if len(having) == 1 else 'have'} it"
    else:
        near = close_matches(keyword, _names(parameters(facts)))
        hint = f"; did you mean {near[0]!r}?" if near else ""
    return TypeError(f"{called}() got an unexpected keyword argument {keyword!r}{hint}")


def _names(parameters: Iterable[str]) -> list[str]:
    return [each.partition(":")[0] for each in parameters if each != "*"]


def result_type(operator: OperatorSchema) -> str:
    """Return the type of the result of an immediate function."""
    if operator.outputs[0].is_array:
        return "tuple[T, ...]"
    if not has_outputs_class(operator):
        return "T"
    named = f"{outputs_class(operator)}[T]"
    return f"T | {named}" if has_plain_result(operator) else named


def out_type(operator: OperatorSchema) -> str:
    """Return the type of what an immediate function takes as `out`, without None."""
    if operator.outputs[0].is_array:
        return "Sequence[T]"
    if not has_outputs_class(operator):
        return "T"
    fields = ", ".join(output_type(operator, output) for output in operator.outputs)
    return f"T | tuple[{fields}]" if has_plain_result(operator) else f"tuple[{fields}]"


def output_type(operator: OperatorSchema, output: Field) -> str:
    """Return the type of one of several outputs. A named tuple of one optional output always has that one."""
    is_required = has_plain_result(operator) and len(operator.outputs) == 2
    return "T | None" if output.optional and not is_required else "T"


def outputs_class(operator: OperatorSchema) -> str:
    """Return the name of the operator's class in `opendml.outputs`."""
    return f"{operator.class_name}Outputs"


def has_outputs_class(operator: OperatorSchema) -> bool:
    """Return whether the operator may have several outputs, which come as a named tuple."""
    return len(operator.outputs) > 1


def has_plain_result(operator: OperatorSchema) -> bool:
    """Return whether a call without optional outputs returns its only required output, not a tuple."""
    return [output.optional for output in operator.outputs].count(False) == 1


def optional_outputs(operator: OperatorSchema) -> list[Field]:
    """Return the outputs that a call may ask for."""
    return [output for output in operator.outputs if output.optional]


def _inputs(operator: OperatorSchema) -> Iterator[str]:
    """Yield the input tensors. Optional ones default to None, except those before a required one.

    One of several tensors may be a number.
    """
    inputs = operator.inputs
    single = "T" if len(inputs) == 1 else "T | float"
    last_required = max((i for i, field in enumerate(inputs) if not field.optional), default=-1)
    for i, field in enumerate(inputs):
        kind = "Sequence[T]" if field.is_array else single
        optional = " | None" if field.optional else ""
        yield f"{field.argument_name}: {kind}{optional}{' = None' if i > last_required else ''}"


def _attribute(field: Field, has_rank_default: bool = False) -> str:
    if has_rank_default:
        return f"{field.python_name}: {_argument_type(field)} | None = None"
    default = _default(field)
    return f"{field.python_name}: {_argument_type(field)}{f' = {default}' if default else ''}"


def _argument_type(field: Field) -> str:
    name = field.codec.argument_annotation
    return f"{name} | None" if field.optional and not field.is_tensor else name


def _default(field: Field) -> str | None:
    """Return the default of an attribute as source text; None where the caller must give the attribute."""
    if field.optional:
        return "None"
    if not field.has_default:
        return None
    return f"{camel_case(field.enum)}.{field.default}" if field.enum else repr(field.default)
