"""Calls in the words of their callers: messages name the function and its arguments, not a desc's fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import Signature, signature
from typing import Any

from opendml.errors import InvalidArgument
from opendml.runtime.calls.call import returns_tuple
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, QuantizationType, ReduceFunction, TensorDataType
from opendml.spec.four_bit import CARRIERS
from opendml.spec.naming import close_matches, snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NOTHING, Told
from opendml.spec.schema import Field, Operator, operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures

NUMPY_CAST = "{argument}.astype(np.{numpy})"
CAST = "opendml.cast({argument}, output_type=opendml.{type})"
"""How a caller makes an input have another type."""


def without_unknown(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function without `**unknown`, by which it finds misspelt keywords."""
    found = signature(function)
    named = [each for each in found.parameters.values() if each.kind is not each.VAR_KEYWORD]
    return found.replace(parameters=named)


def unexpected(function: Callable[..., Any], unknown: Mapping[str, object]) -> TypeError:
    """The error of a call with keywords that its function does not have."""
    names = list(signature(function).parameters)
    keyword = next(iter(unknown))
    near = "".join(f"; did you mean {name!r}?" for name in close_matches(keyword, names))
    return TypeError(f"{function.__name__}() got an unexpected keyword argument {keyword!r}{near}")


@cache
def in_place_arguments(name: str) -> frozenset[str]:
    """The input tensors that the output may be written over."""
    facts = operator(name)
    return frozenset(facts.field(each).argument_name for each in facts.in_place)


def validate_call(desc: OperatorDesc, level: FeatureLevel, told: Told | None, cast: str) -> None:
    """Checks the desc of a call.

    Args:
        desc: the desc.
        level: what it must be valid at.
        told: what the call says of its outputs; None: the desc is without them as yet.
        cast: how the caller makes an input have another type.

    Raises:
        InvalidArgument: what `validate` finds, in terms of the arguments.
    """
    found = failures(desc, level, outputs=told is not None)
    if not found:
        return
    facts = operator(desc.operator)
    split = [_split(facts, failure) for failure in found]
    messages = [_message(desc, facts, level, field, text, told, cast) for field, text in split]
    raise InvalidArgument([each.reworded(message) for each, message in zip(found, messages, strict=True)])


def validate_tensor(name: str, tensor: TensorDesc, level: FeatureLevel) -> None:
    """Checks a tensor as an input of the identity operator, or of DEQUANTIZE where its elements have 4 bits:
    whatever that does not allow, none does.

    Args:
        name: its name in messages.
        tensor: the tensor, made of the arguments `data_type`, `sizes` and so on.
        level: what it must be valid at.

    Raises:
        InvalidArgument: what `validate` finds, in terms of the arguments.
    """
    desc: OperatorDesc
    if isinstance(tensor.data_type, TensorDataType) and tensor.data_type in CARRIERS:
        floats = TensorDesc(TensorDataType.FLOAT32, tensor.sizes)
        desc = descs.Dequantize(tensor, [floats], floats, quantization_type=QuantizationType.SCALE)
    else:
        desc = descs.ElementWiseIdentity(tensor, TensorDesc(tensor.data_type, tensor.sizes))
    pattern = re.compile(rf"{desc.operator}\.InputTensor(\.\w+)?(.*)")
    found = map(pattern.match, failures(desc, level))
    if messages := [f"{name}{snake_case(each[1] or '')}{each[2]}" for each in found if each]:
        raise InvalidArgument(messages)


def _split(facts: Operator, failure: str) -> tuple[Field | None, str]:
    """The field that a message begins with, and what it says of it."""
    rest = failure.removeprefix(facts.name)
    found = re.match(r"\.(\w+)", rest)
    return (facts.field(found[1]), rest[found.end() :]) if found else (None, rest)


def _message(
    desc: OperatorDesc,
    facts: Operator,
    level: FeatureLevel,
    field: Field | None,
    text: str,
    told: Told | None,
    cast: str,
) -> str:
    is_alone = len(facts.outputs) == 1
    names = {each.name: each.argument_name for each in facts.fields if not each.is_count}
    names |= {each.name: "the output" for each in facts.outputs if is_alone and not each.is_array}
    # A name of one word may be meant as such, and one behind an article is an enumeration's.
    pattern = r"(?<! a )(?<! an )\b[A-Z][a-z]*[A-Z]\w*"
    said = re.sub(pattern, lambda word: names.get(word[0], word[0]), text)
    for count in filter(lambda each: each.is_count, facts.fields):
        said = said.removesuffix(f" ({count.name})")
    if field is None:
        return facts.function_name + said
    if field.kind == "OUTPUT_TENSOR":
        return f"{facts.function_name}.{_of_output(desc, facts, field, said, told or NOTHING)}"
    fixes = [
        cast.format(argument=field.argument_name, numpy=type.name.lower(), type=type.name)
        for type in _fitting_types(desc, facts, level, field, text)
    ]
    return f"{facts.function_name}.{field.argument_name}{said}" + "".join(f"; use {fix}" for fix in fixes)


def _of_output(desc: OperatorDesc, facts: Operator, field: Field, said: str, told: Told) -> str:
    """What is said of an output, after the argument that says most of it."""
    is_of_sizes = re.match(r"(\[\d+\])?(\.Sizes|: sizes|: \d+ dimension)", said) is not None
    if is_of_sizes and told.sizes is not None and field is facts.outputs[0]:
        return "sizes" + re.sub(r"^((\[\d+\])?)\.Sizes(\[\d+\])?", r"\2" if field.is_array else r"\3", said)
    if told.type is not None and (field.has_call_type or len(facts.outputs) == 1):
        return f"output_type{said}"
    if field.optional and getattr(desc, field.python_name) is None:
        return f"{field.argument_name}{said}"
    is_named = returns_tuple(facts.name, told.wanted) and not field.is_array
    return f"out.{field.argument_name}{said}" if is_named else f"out{said}"


def _fitting_types(
    desc: OperatorDesc, facts: Operator, level: FeatureLevel, field: Field, text: str
) -> Iterator[TensorDataType]:
    """The type that would do, where a message is about the type of an input."""
    tensor = getattr(desc, field.python_name)
    if field not in facts.inputs or not isinstance(tensor, TensorDesc):
        return
    if not text.startswith(f": {tensor.data_type.name};"):
        return
    function = getattr(desc, "function", None)
    table = facts.support_at(level, function.name if isinstance(function, ReduceFunction) else None)
    allowed: Sequence[str] = table.tensors[field.name].types if table else ()
    other = re.search(r"must have the data type of \w+, (\w+)$", text)
    if other and other[1] in allowed:
        yield TensorDataType[other[1]]
    elif allowed and tensor.data_type.name not in allowed:
        yield TensorDataType["FLOAT32" if "FLOAT32" in allowed else allowed[0]]
