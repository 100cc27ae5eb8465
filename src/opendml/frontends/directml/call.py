"""Operators of `directml`: arguments of functions become the fields of an operator that is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opendml.frontends.directml.tensors import Expression
from opendml.frontends.pydirectml import enumerations
from opendml.frontends.pydirectml.activations import activation_desc
from opendml.frontends.pydirectml.data_types import DataType, as_data_type
from opendml.frontends.pydirectml.expressions import Scope, record
from opendml.frontends.pydirectml.functions import member
from opendml.spec import enums
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import ScaleBias, Size2D
from opendml.spec.outputs import Told
from opendml.spec.schema import Field, operator


def outputs(
    name: str,
    arguments: Mapping[str, Any],
    *,
    sizes: Sequence[int] | None = None,
    dtype: DataType | None = None,
    wanted: Sequence[str] = (),
    graph: Scope | None = None,
) -> list[Expression | None]:
    """The outputs of an operator, None for those that are not wanted.

    Args:
        name: DirectML's name of the operator.
        arguments: its inputs and attributes by their Python names; what else is there is left alone.
        sizes: those of the first output, where they do not follow.
        dtype: the type of the output that may have one or the other.
        wanted: the optional outputs to compute.
        graph: where an operator without inputs is recorded.
    """
    facts = operator(name)
    tensors = {field.argument_name: arguments.get(field.argument_name) for field in facts.inputs}
    attributes = {
        field.python_name: _attribute(field, arguments.get(field.python_name), facts.function_name)
        for field in facts.attributes
    }
    told = Told(
        None if dtype is None else enums.TensorDataType(int(as_data_type(dtype))),
        None if sizes is None else tuple(sizes) or None,
        wanted=frozenset(f"{each}_tensor" for each in wanted),
    )
    made: list[Any] = [*record(name, tensors, attributes, told=told, scope=graph)]
    return made


def output(
    name: str,
    arguments: Mapping[str, Any],
    *,
    sizes: Sequence[int] | None = None,
    dtype: DataType | None = None,
    graph: Scope | None = None,
) -> Expression:
    """The one output of an operator; as `outputs`."""
    made = outputs(name, arguments, sizes=sizes, dtype=dtype, graph=graph)
    (result,) = (each for each in made if each is not None)
    return result


def present(expression: Expression | None) -> Expression:
    """An output that an operator always has."""
    assert expression is not None
    return expression


def _attribute(field: Field, value: Any, function: str) -> Any:
    """An argument as DirectML's field has it."""
    what = f"{function}.{field.python_name}"
    if field.type == "OPERATOR_DESC":
        return activation_desc(value)
    if value is None:
        return None
    if field.type == "OPERATOR_DESC_ARRAY":
        return tuple(activation_desc(each) for each in value)
    if field.enum is not None:
        kind = getattr(enumerations, camel_case(field.enum))
        return getattr(enums, camel_case(field.enum))(member(kind, value, what))
    if field.type == "BOOL":
        return truth(value, what)
    if field.type in _PAIRS:
        return _PAIRS[field.type](*_pair(value, what))
    return (tuple(value) or None) if field.type.endswith("_ARRAY") else value


def truth(value: Any, what: str) -> bool:
    """A truth value, which may be a number.

    Raises:
        TypeError: none, such as an array.
    """
    try:
        return bool(value)
    except ValueError:
        raise TypeError(f"{what}: {type(value).__name__}; True or False is needed") from None


_PAIRS: Mapping[str, Any] = {"SCALE_BIAS": ScaleBias, "SIZE_2D": Size2D}


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{what}: {value!r}; two numbers, as a tuple, are needed")
    return value[0], value[1]
