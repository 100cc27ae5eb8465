"""Outputs as calls make them: sizes and types that follow from inputs, attributes and what a call says.

The sizes come from the operator's shape (`spec.rules`), from tensors of equal sizes, or from the call; the
types from tensors of equal types, from the call, or from its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opendml.errors import InvalidArgument
from opendml.spec.enums import ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules import shape_of
from opendml.spec.rules.sizes import Size, Sizes
from opendml.spec.schema import Field, Operator, operator
from opendml.spec.tensor_desc import TensorDesc


@dataclass(frozen=True, slots=True)
class Told:
    """What a call says of its outputs.

    Attributes:
        types: types by the outputs' Python names.
        sizes: the sizes of the first output; for SPLIT, those of the parts along its axis.
        wanted: the optional outputs that it asks for, by their Python names.
    """

    types: Mapping[str, TensorDataType] = field(default_factory=dict)
    sizes: tuple[int, ...] | None = None
    wanted: frozenset[str] = frozenset()


def with_outputs(desc: OperatorDesc, told: Told) -> OperatorDesc:
    """The desc with its outputs.

    Args:
        desc: inputs and attributes, valid by themselves and with each other.
        told: what the call says.

    Raises:
        InvalidArgument: sizes or a type do not follow, and the call does not say them.
    """
    facts = operator(desc.operator)
    shapes = shape_of(facts, desc)
    first = True
    for output in outputs_of(facts):
        if not output.optional or output.python_name in told.wanted:
            desc = desc.replace(
                **{
                    output.python_name: _output(
                        facts, output, desc, shapes, told, told.sizes if first else None
                    )
                }
            )
        first = False
    return desc


def outputs_of(facts: Operator) -> list[Field]:
    """The operator's outputs, in DirectML's order."""
    return [each for each in facts.tensors if each.kind == "OUTPUT_TENSOR"]


def _output(
    facts: Operator,
    output: Field,
    desc: OperatorDesc,
    shapes: Mapping[str, Sizes],
    told: Told,
    sizes: tuple[int, ...] | None,
) -> TensorDesc | tuple[TensorDesc, ...]:
    data_type = _data_type(facts, output, desc, told)
    if output.type == "TENSOR_DESC_ARRAY":
        return _parts(facts, output, desc, data_type, sizes)
    if sizes is None:
        sizes = _sizes(facts, output, desc, shapes.get(output.python_name))
    return TensorDesc(data_type, sizes)


def _parts(
    facts: Operator,
    output: Field,
    desc: OperatorDesc,
    data_type: TensorDataType,
    along_axis: tuple[int, ...] | None,
) -> tuple[TensorDesc, ...]:
    """The parts of SPLIT."""
    if along_axis is None:
        raise InvalidArgument(f"{facts.name}.{output.name}: sizes of the parts along the axis are needed")
    values: Any = desc
    sizes, axis = values.input_tensor.sizes, values.axis
    return tuple(TensorDesc(data_type, (*sizes[:axis], size, *sizes[axis + 1 :])) for size in along_axis)


def _sizes(facts: Operator, output: Field, desc: OperatorDesc, shape: Sizes | None) -> tuple[int, ...]:
    if shape is not None:
        return tuple(_usual(facts, output, size) for size in shape)
    for tensors in (same.tensors for same in facts.same if "Sizes" in same.what):
        if output.name in tensors and (other := _first_given(facts, desc, tensors)) is not None:
            return other.sizes
    if output.name in facts.one_element:
        inputs = tuple(each.name for each in facts.tensors if each.kind == "INPUT_TENSOR")
        given = _first_given(facts, desc, inputs)
        return (1,) * len(given.sizes if given is not None else (1,))
    raise _open_sizes(facts, output)


def _usual(facts: Operator, output: Field, size: Size) -> int:
    if size is None:
        raise _open_sizes(facts, output)
    return size if isinstance(size, int) else size[0]


def _open_sizes(facts: Operator, output: Field) -> InvalidArgument:
    message = "do not follow from inputs and attributes; give sizes, or an array to write"
    return InvalidArgument(f"{facts.name}.{output.name}: its sizes {message}")


def _first_given(facts: Operator, desc: OperatorDesc, names: tuple[str, ...]) -> TensorDesc | None:
    """The first of those tensors that the desc has."""
    for name in names:
        value = getattr(desc, facts.field(name).python_name)
        tensor = value[0] if isinstance(value, tuple) else value
        if tensor is not None:
            return tensor  # type: ignore[no-any-return]
    return None


_SEARCHES = frozenset({ReduceFunction.ARGMIN, ReduceFunction.ARGMAX})


def _data_type(facts: Operator, output: Field, desc: OperatorDesc, told: Told) -> TensorDataType:
    """The type of an output: what the call says, that of what must have the same type, or the default."""
    said = told.types.get(output.python_name)
    if said is not None:
        return said
    for attribute in facts.attributes:
        if attribute.same_type_as == output.name:
            return TensorDataType(getattr(desc, attribute.python_name))
    function = getattr(desc, "function", None)
    if facts.name == "REDUCE" and function in _SEARCHES:
        return TensorDataType.UINT32
    for tensors in (same.tensors for same in facts.same if "DataType" in same.what):
        if output.name in tensors and (other := _first_given(facts, desc, tensors)) is not None:
            return other.data_type
    if output.has_call_type:
        if output.call_type is None:
            raise InvalidArgument(
                f"{facts.name}.{output.name}: its type does not follow; output_type is needed"
            )
        return TensorDataType[output.call_type]
    allowed = facts.support[0].tensors[output.name].types
    first = _first_given(
        facts, desc, tuple(each.name for each in facts.tensors if each.kind == "INPUT_TENSOR")
    )
    return (
        first.data_type
        if first is not None and first.data_type.name in allowed
        else TensorDataType[allowed[0]]
    )
