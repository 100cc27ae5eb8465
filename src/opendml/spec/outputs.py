"""The outputs of calls: sizes and types that follow from inputs, attributes and the call.

The sizes come from the operator's shape (`spec.rules`), from tensors of equal sizes, or from the call; the
types from tensors of equal types, from the call, or from its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from opendml.errors import InvalidArgument
from opendml.spec.enums import ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules import declared_shape, is_open
from opendml.spec.rules.rule import Size, Sizes
from opendml.spec.schema import Field, OperatorSchema, operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import shown


class RequestedOutputs(NamedTuple):
    """The requests of a call for its outputs.

    Attributes:
        type: the type of the output whose type a call may choose (`Field.has_call_type`, or the first one).
        sizes: the sizes of the first output; for SPLIT, those of the parts along its axis.
        written: the arrays that are to be written, by the outputs' Python names: their types and sizes decide
            where nothing else does.
        wanted: the optional outputs that it asks for, by their Python names.
    """

    type: TensorDataType | None = None
    sizes: Any = None
    written: Mapping[str, TensorDesc | tuple[TensorDesc, ...]] = MappingProxyType({})
    wanted: frozenset[str] = frozenset()

    def written_type(self, output: Field) -> TensorDataType | None:
        """Return the type of the array that is to be written."""
        given = self.written.get(output.python_name)
        first = given[0] if isinstance(given, tuple) else given
        return None if first is None else first.data_type


NO_REQUESTS = RequestedOutputs()


def output_arguments(facts: OperatorSchema) -> tuple[str, ...]:
    """Return the arguments of a call about its outputs: "output_type", "sizes", both or neither."""
    has_type = any(output.has_call_type for output in facts.outputs)
    return ("output_type",) * has_type + ("sizes",) * _is_open(facts, facts.outputs[0])


def has_usual_sizes(facts: OperatorSchema) -> bool:
    """Return whether a call that leaves out the sizes of the first output takes usual ones."""
    return bool(is_open(facts)) and facts.sizes != "required"


def _is_open(facts: OperatorSchema, output: Field) -> bool:
    """Return whether a call may say the sizes of the first output: they do not follow, or not alone."""
    open_shape = is_open(facts)
    if open_shape is not None or output.is_array:
        return open_shape is not False
    tied = {
        name
        for same in facts.same
        if "Sizes" in same.what and output.name in same.tensors
        for name in same.tensors
    }
    required = {field.name for field in facts.inputs if not field.optional}
    return output.name not in facts.one_element and not required & tied


def with_outputs(desc: OperatorDesc, requested: RequestedOutputs = NO_REQUESTS) -> OperatorDesc:
    """Return the desc with its outputs.

    Args:
        desc: inputs and attributes that are valid (`failures(desc, outputs=False)` finds nothing).
        requested: what the call says.

    Raises:
        InvalidArgument: sizes or a type do not follow, and the call does not say them.
    """
    facts = operator(desc.operator)
    shapes = declared_shape(facts, desc)
    outputs = facts.outputs
    for output in outputs:
        if output.optional and output.python_name not in requested.wanted:
            continue
        if output.is_array:
            made: Any = _parts(facts, output, desc, requested)
        else:
            sizes = _sizes(facts, output, desc, shapes.get(output.python_name), requested)
            made = TensorDesc(_data_type(facts, output, desc, requested), sizes)
        desc = desc._with(**{output.python_name: made})
    return desc


def _parts(
    facts: OperatorSchema, output: Field, desc: OperatorDesc, requested: RequestedOutputs
) -> tuple[TensorDesc, ...]:
    """Return the parts of SPLIT."""
    values: Any = desc
    sizes, axis, along_axis = values.input_tensor.sizes, values.axis, requested.sizes
    written = requested.written.get(output.python_name)
    if along_axis is None and isinstance(written, tuple):
        along_axis = [part.sizes[axis] if axis < len(part.sizes) else 1 for part in written]
    if along_axis is None:
        raise _open_sizes(facts)
    if not isinstance(along_axis, list | tuple) or not along_axis:
        raise InvalidArgument(
            f"{facts.function_name}.sizes: {shown(along_axis)}; one for each part, along the axis, is needed"
        )
    data_type = _data_type(facts, output, desc, requested)
    return tuple(TensorDesc(data_type, (*sizes[:axis], size, *sizes[axis + 1 :])) for size in along_axis)


def _sizes(
    facts: OperatorSchema, output: Field, desc: OperatorDesc, shape: Sizes | None, requested: RequestedOutputs
) -> Any:
    """Return the sizes of an output: those that the call says, or those that follow.

    The array that is to be written counts where they do not follow, or not alone.
    """
    if requested.sizes is not None and output is facts.outputs[0]:
        return requested.sizes
    written: Any = requested.written.get(output.python_name)
    if shape is not None:
        if written is None or all(isinstance(size, int) for size in shape):
            sizes = tuple(_usual(facts, size) for size in shape)
            if any(size < 1 for size in sizes):
                problem = "each must be at least 1; the input is too small"
                raise InvalidArgument(f"{facts.function_name}: sizes of the output {list(sizes)}; {problem}")
            return sizes
        return written.sizes
    for tensors in (same.tensors for same in facts.same if "Sizes" in same.what):
        if output.name in tensors and (other := _first_given(facts, desc, tensors)) is not None:
            return other.sizes
    if output.name in facts.one_element:
        given = _first_given(facts, desc, tuple(field.name for field in facts.inputs))
        return (1,) * len(given.sizes if given is not None else (1,))
    if written is None:
        raise _open_sizes(facts)
    return written.sizes


def _usual(facts: OperatorSchema, size: Size) -> int:
    if size is None:
        raise _open_sizes(facts)
    return size if isinstance(size, int) else size[0]


def _open_sizes(facts: OperatorSchema) -> InvalidArgument:
    return InvalidArgument(f"{facts.function_name}: neither sizes nor out; one of them is needed")


def _first_given(facts: OperatorSchema, desc: OperatorDesc, names: tuple[str, ...]) -> TensorDesc | None:
    """Return the first of those tensors that the desc has."""
    for name in names:
        value = getattr(desc, facts.field(name).python_name)
        tensor = value[0] if isinstance(value, tuple) and value else value
        if isinstance(tensor, TensorDesc):
            return tensor
    return None


_SEARCHES = (ReduceFunction.ARGMIN, ReduceFunction.ARGMAX)


def _data_type(
    facts: OperatorSchema, output: Field, desc: OperatorDesc, requested: RequestedOutputs
) -> TensorDataType:
    """Return the type of an output.

    The call decides, or else a tensor that must have the same type, the array to write, or the default. An
    input whose type need not be the output's decides only where nothing else does.
    """
    is_only = len(facts.outputs) == 1
    if requested.type is not None and (is_only or output.has_call_type):
        return requested.type
    written = requested.written_type(output)
    if any(getattr(desc, "function", None) is search for search in _SEARCHES):
        return written or TensorDataType.UINT32
    for attribute in facts.attributes:
        value = getattr(desc, attribute.python_name)
        if attribute.same_type_as == output.name and isinstance(value, TensorDataType):
            return value
    for tensors in (same.tensors for same in facts.same if "DataType" in same.what):
        if output.name in tensors and (other := _first_given(facts, desc, tensors)) is not None:
            return other.data_type
    if output.type_of is not None:
        name, index = output.type_of
        members: Any = getattr(desc, facts.field(name).python_name)
        if len(members) > index:
            return members[index].data_type  # type: ignore[no-any-return]
    if written is not None:
        return written
    if output.has_call_type:
        if output.call_type is None:
            message = "neither output_type nor out; one of them is needed"
            raise InvalidArgument(f"{facts.function_name}: {message}")
        return TensorDataType[output.call_type]
    allowed = facts.support[0].tensors[output.name].types
    first = _first_given(facts, desc, tuple(field.name for field in facts.inputs))
    return first.data_type if first is not None and len(allowed) > 1 else TensorDataType[allowed[0]]
