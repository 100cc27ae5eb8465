"""The meaning of calls: the desc and the program of an operator's name, its tensors and attributes, and the
outputs that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType, number_in
from opendml.runtime.arguments import NUMPY_CAST, labels_of, validate_call
from opendml.runtime.host_array import check_no_overlap_within
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NOTHING, Told, with_outputs
from opendml.spec.plain import as_member, as_plain, as_tuple
from opendml.spec.rank_defaults import with_rank_defaults
from opendml.spec.schema import Field, Operator, operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import dimensions, member_words, shown


def input_names(name: str) -> list[str]:
    """DirectML's names of an operator's input tensors."""
    return [field.name for field in operator(name).tensors if field.kind == "INPUT_TENSOR"]


def output_names(name: str) -> list[str]:
    """DirectML's names of an operator's output tensors."""
    return [field.name for field in operator(name).outputs]


def output_of_call(name: str, output_type: Any, sizes: Any) -> Told:
    """The arguments of a call about its output, as DirectML's values.

    Raises:
        InvalidArgument: no type.
    """
    type = as_member(TensorDataType, output_type)
    if type is not None and not isinstance(type, TensorDataType):
        allowed = member_words(TensorDataType, TensorDataType.__members__)
        raise InvalidArgument(f"{name.lower()}.output_type: {shown(output_type)}; {allowed}")
    return Told(type, as_tuple(sizes))


def output_argument(told: Told) -> str:
    """The argument that says most of the output."""
    if told.type is not None:
        return "output_type"
    return "sizes" if told.written is None and told.sizes is not None else "out"


def desc_of_call(
    name: str,
    inputs: Sequence[TensorDesc | None],
    attributes: Sequence[Any],
    feature_level: FeatureLevel,
    told: Told = NOTHING,
    cast: str = NUMPY_CAST,
) -> OperatorDesc:
    """The valid desc of the operator over `inputs`, with the outputs that follow from them and from what is
    told.

    Raises:
        InvalidArgument: what `validate` finds, or a type or sizes of an output that remain open.
    """
    facts = operator(name)
    if inputs and inputs[0] is None and not facts.tensors[0].optional:
        raise InvalidArgument(f"{labels_of(name)[0]}: None; a tensor is needed")
    given = iter(inputs)
    values = {field.python_name: next(given) for field in facts.tensors if field.kind == "INPUT_TENSOR"}
    for field, value in zip(facts.attributes, attributes, strict=True):
        tensor = values[facts.field(field.axis_of).python_name] if field.axis_of else None
        values[field.python_name] = value if tensor is None else _axes(facts, field, value, tensor)
    values |= {output.python_name: None for output in facts.outputs}
    desc = with_rank_defaults(descs.desc_class(name)(**values))
    validate_call(desc, feature_level, None, cast)
    desc = with_outputs(desc, told)
    validate_call(desc, feature_level, output_argument(told), cast)
    return desc


def _axes(facts: Operator, field: Field, value: Any, tensor: TensorDesc) -> Any:
    """An axis, or several, of a tensor, with the negative ones counted from the end.

    Raises:
        InvalidArgument: a negative one before the first dimension.
    """
    value, rank = as_tuple(as_plain(value)), len(tensor.sizes)
    axes = value if isinstance(value, tuple) else (value,)
    for axis in axes:
        if type(axis) is int and axis < -rank:
            input = facts.field(field.axis_of or "").argument_name
            raise InvalidArgument(
                f"{facts.function_name}.{field.python_name}: {shown(axis)}; "
                f"{input} has {dimensions(rank)}: {-rank} to {rank - 1}"
            )
    counted = tuple([axis + rank if type(axis) is int and axis < 0 else axis for axis in axes])
    return counted if axes is value else counted[0]


def broadcast_sizes(name: str, inputs: Sequence[tuple[int, ...] | None]) -> list[tuple[int, ...] | None]:
    """The sizes of the inputs where those that must have equal sizes are repeated, as NumPy repeats them, and
    those of one element have as many dimensions as the first input.

    DirectML repeats by strides of zero, which calls need not spell out. Sizes that do not fit together stay
    as they are.
    """
    result = list(inputs)
    rank = 0 if not inputs or inputs[0] is None else len(inputs[0])
    for position, label in enumerate(input_names(name)):
        if label in operator(name).one_element and result[position] in ((), (1,)):
            result[position] = (1,) * rank
    names = input_names(name)
    for same in operator(name).same:
        together = [position for position, label in enumerate(names) if label in same.tensors]
        given = {sizes for position in together if (sizes := result[position]) is not None}
        if "Sizes" not in same.what or len(given) < 2:
            continue
        try:
            common = np.broadcast_shapes(*given)
        except ValueError:
            continue
        for position in together:
            if result[position] is not None:
                result[position] = common
    return result


def type_of_number(
    name: str, label: str, types: Mapping[str, TensorDataType], told: Told = NOTHING
) -> TensorDataType:
    """The type of a tensor that is given as a number: what the call says of an output that must have the same
    type; or that of an input that must, of the first input, or what the tensor may be at all."""
    facts = operator(name)
    tied = [
        each
        for same in facts.same
        if "DataType" in same.what and label in same.tensors
        for each in same.tensors
    ]
    is_told = any(each in output_names(name) for each in tied)
    if is_told and told.type is not None:
        return told.type
    for other in tied:
        if other in types:
            return types[other]
    if is_told and told.written is not None:
        return told.written
    allowed = [TensorDataType[type] for type in facts.support[0].tensors[label].types]
    first = next(iter(types.values()))
    return first if first in allowed else allowed[0]


def exact_number(value: float, type: ScalarType, name: str) -> float:
    """A number as one of a type; a float type rounds it.

    Raises:
        InvalidArgument: the type does not have it.
    """
    try:
        result = number_in(value, type)
    except OverflowError as error:  # a whole number beyond all floats
        raise InvalidArgument(f"{name}: {shown(value)}; a number that {type.name} holds is needed") from error
    if not type.is_float and result != value:
        raise InvalidArgument(f"{name}: {shown(value)}; a whole number that {type.name} holds is needed")
    return result


def program_of_call(
    name: str,
    inputs: Sequence[Layout | None],
    attributes: Sequence[Any],
    out: Layout | None,
    feature_level: FeatureLevel,
    told: Told = NOTHING,
    cast: str = NUMPY_CAST,
) -> Program:
    """The program of a call, whose output is packed unless `out` says otherwise. The tensors may have any
    strides, at every level; where sizes must be equal, smaller ones are repeated by strides of 0.

    Raises:
        InvalidArgument: what `validate` finds, or an output of another type or other sizes.
        Unsupported: the operator cannot be run yet.
    """
    inputs = _repeated(name, inputs)
    tensors = [None if each is None else TensorDesc(each.type.data_type, each.sizes) for each in inputs]
    if out is not None:
        sizes = out.sizes if told.sizes is None else told.sizes
        told = told._replace(sizes=sizes, written=out.type.data_type)
    desc = desc_of_call(name, tensors, attributes, feature_level, told, cast)
    present = [layout for layout in inputs if layout is not None]
    output = _packed_output(desc)
    if out is not None:
        require_array(labels_of(name)[-1], out, output)
        output = out
    check_no_overlap_within(labels_of(name)[-1], output)
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if layout is None else next(sources) for layout in inputs]
    return Program(tuple(present), (output,), define(desc, nodes, [output.type]))


def _packed_output(desc: OperatorDesc) -> Layout:
    """The one output of a desc, packed."""
    (tensor,) = (getattr(desc, field.python_name) for field in operator(desc.operator).outputs)
    return packed(ScalarType.of(tensor.data_type), tensor.sizes)


def _repeated(name: str, inputs: Sequence[Layout | None]) -> list[Layout | None]:
    sizes = broadcast_sizes(name, [None if layout is None else layout.sizes for layout in inputs])
    return [
        None
        if layout is None or wanted is None
        else replace(layout, sizes=wanted, strides=_repeating_strides(layout, wanted))
        for layout, wanted in zip(inputs, sizes, strict=True)
    ]


def _repeating_strides(layout: Layout, sizes: tuple[int, ...]) -> tuple[int, ...]:
    if sizes == layout.sizes:
        return layout.strides
    strides = [stride if size > 1 else 0 for size, stride in zip(layout.sizes, layout.strides, strict=True)]
    return (0,) * (len(sizes) - len(strides)) + tuple(strides)


def require_array(name: str, given: Layout, wanted: Layout, cast: str = "") -> None:
    """Checks an array's type and sizes. `cast` is how its caller makes it have another type.

    Raises:
        InvalidArgument: one of them differs.
    """
    if given.type is not wanted.type:
        fix = cast.format(argument=name, numpy=wanted.type.numpy.name, type=wanted.type.name)
        raise InvalidArgument(
            f"{name}: {given.type.name}; {wanted.type.name} is needed" + (f"; use {fix}" if fix else "")
        )
    if given.sizes != wanted.sizes:
        raise InvalidArgument(f"{name}: sizes {list(given.sizes)}; {list(wanted.sizes)} are needed")
