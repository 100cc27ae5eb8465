"""The desc and the program of a call, with the outputs that follow from its tensors and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument, Unsupported
from opendml.operators.registry import define, implemented
from opendml.program.node import source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType, number_in
from opendml.runtime.calls.arguments import NUMPY_CAST, validate_call
from opendml.runtime.calls.call import Call
from opendml.runtime.memory.host_array import check_no_overlap_within
from opendml.runtime.program import tensors_of
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NO_REQUESTS, RequestedOutputs, with_outputs
from opendml.spec.rank_defaults import with_rank_defaults
from opendml.spec.schema import Field, OperatorSchema, operator
from opendml.spec.tensor_desc import TensorDesc, common_sizes
from opendml.spec.values import as_member, as_plain, as_tuple
from opendml.spec.wording import dimensions, member_words, shown


def require_running(name: str) -> None:
    """Check that an operator can be run.

    Raises:
        Unsupported: it cannot be run yet.
    """
    if name not in implemented():
        raise Unsupported(f"{name} cannot be run yet; `opendml ops` lists the operators that can")


def requested_outputs(
    name: str, output_type: Any, sizes: Any, wanted: Mapping[str, Any] | None = None
) -> RequestedOutputs:
    """Return the arguments of a call about its outputs, as DirectML's values.

    Args:
        name: DirectML's name of the operator.
        output_type: the type of the output whose type a call may choose.
        sizes: the sizes of the first output.
        wanted: for each of the optional outputs, by Python name, whether the call asks for it.

    Raises:
        InvalidArgument: no type, or no truth value.
    """
    type = as_member(TensorDataType, output_type)
    if type is not None and not isinstance(type, TensorDataType):
        allowed = member_words(TensorDataType, TensorDataType.__members__)
        raise InvalidArgument(f"{name.lower()}.output_type: {shown(output_type)}; {allowed}")
    wanted = wanted or {}
    for output in operator(name).outputs if wanted else ():
        value = wanted.get(output.python_name, False)
        if not isinstance(value, bool | np.bool_):
            problem = "True asks for this output, False does not"
            raise InvalidArgument(f"{name.lower()}.{output.argument_name}: {shown(value)}; {problem}")
    return RequestedOutputs(type, as_tuple(sizes), wanted=frozenset(each for each in wanted if wanted[each]))


def desc_of_call(
    name: str,
    inputs: Sequence[TensorDesc | tuple[TensorDesc | None, ...] | None],
    attributes: Mapping[str, Any],
    feature_level: FeatureLevel,
    requested: RequestedOutputs = NO_REQUESTS,
    cast: str = NUMPY_CAST,
) -> OperatorDesc:
    """Return the valid desc of an operator, with the outputs that follow from its inputs and attributes.

    Args:
        name: DirectML's name of the operator.
        inputs: one for each input field.
        attributes: its attributes by Python name. Those that are left out have their defaults.
        feature_level: what the desc must be valid at.
        requested: the outputs that the call asks for, with their types and sizes where it states them.
        cast: the expression by which the caller gives an input another type.

    Raises:
        InvalidArgument: what `validate` finds, or a type or sizes of an output that remain open.
    """
    facts = operator(name)
    if inputs and inputs[0] is None and not facts.tensors[0].optional:
        first = facts.tensors[0].argument_name
        raise InvalidArgument(f"{facts.function_name}.{first}: None; a tensor is needed")
    values = {field.python_name: each for field, each in zip(facts.inputs, inputs, strict=True)}
    axes = {
        field.python_name: _axes(facts, field, attributes[field.python_name], values)
        for field in facts.attributes
        if field.axis_of and field.python_name in attributes
    }
    desc = with_rank_defaults(descs.desc_class(name)(**{**values, **attributes, **axes}))
    validate_call(desc, feature_level, None, cast)
    desc = with_outputs(desc, requested)
    validate_call(desc, feature_level, requested, cast)
    return desc


def _axes(facts: OperatorSchema, field: Field, value: Any, inputs: Mapping[str, Any]) -> Any:
    """Return an axis, or several, of a tensor, with the negative ones counted from the end.

    An output, as of JOIN, has as many dimensions as the first input.

    Raises:
        InvalidArgument: a negative one before the first dimension.
    """
    of = facts.field(field.axis_of or "")
    of = of if of.python_name in inputs else facts.inputs[0]
    tensor = inputs[of.python_name]
    tensor = tensor[0] if isinstance(tensor, tuple) else tensor
    if tensor is None:
        return value
    value, rank = as_tuple(as_plain(value)), len(tensor.sizes)
    axes = value if isinstance(value, tuple) else (value,)
    for axis in axes:
        if type(axis) is int and axis < -rank:
            raise InvalidArgument(
                f"{facts.function_name}.{field.python_name}: {shown(axis)}; "
                f"{of.argument_name} has {dimensions(rank)}: {-rank} to {rank - 1}"
            )
    counted = tuple([axis + rank if type(axis) is int and axis < 0 else axis for axis in axes])
    return counted if axes is value else counted[0]


def repeated_sizes(call: Call, inputs: Sequence[tuple[int, ...] | None]) -> list[tuple[int, ...] | None]:
    """Return the sizes of the tensors of a call, repeated as NumPy does where sizes must be equal.

    Tensors of one element, and those that the operator itself repeats along the first input, get as many
    dimensions as that. DirectML repeats by strides of zero, which calls need not spell out. Tensors of lists
    stay as they are.

    Raises:
        InvalidArgument: sizes that must be equal and cannot be repeated.
    """
    result, facts = list(inputs), operator(call.name)
    names = [None if field.is_array else field.name for field in call.fields]
    rank = 0 if not inputs or inputs[0] is None else len(inputs[0])
    # Where a call does not say the axes, a row may be meant for the channels, as in other libraries.
    has_axes = any(field.name == "Axes" for field in facts.attributes)
    along_axes = {name for each in facts.broadcast for name in each.tensors if has_axes}
    for position, name in enumerate(names):
        if name in facts.one_element and result[position] in ((), (1,)):
            result[position] = (1,) * rank
        elif name in along_axes and (given := result[position]) is not None:
            result[position] = (1,) * (rank - len(given)) + given
    for same in facts.same:
        together = [position for position, name in enumerate(names) if name in same.tensors]
        present = {sizes for position in together if (sizes := result[position]) is not None}
        if "Sizes" not in same.what or len(present) < 2:
            continue
        try:
            common = common_sizes(*present)
        except ValueError:
            if same.below is None:
                raise _misfit(call, together, result) from None
            continue
        for position in together:
            if result[position] is not None:
                result[position] = common
    return result


def _misfit(call: Call, together: Sequence[int], sizes: Sequence[tuple[int, ...] | None]) -> InvalidArgument:
    """Return the error of tensors whose sizes cannot be repeated to common ones: it names the first two."""
    given = [(position, shape) for position in together if (shape := sizes[position]) is not None]
    for (first, known), (second, other) in combinations(given, 2):
        try:
            common_sizes(known, other)
        except ValueError:
            name = call.arguments[first]
            wanted = f"must be those of {name}, {list(known)}, or 1 where they differ"
            return InvalidArgument(f"{call.labels[second]}: sizes {list(other)}; {wanted}")
    raise AssertionError("sizes of which each two fit fit together")


def type_of_number(
    call: Call, requested: RequestedOutputs, position: int, types: Mapping[int, TensorDataType]
) -> ScalarType:
    """Return the type of a tensor that is given as a number.

    It is the type that the call states for an output that must have the same type. Else it is that of an
    input that must, of the first input, or one that the tensor may have.

    Args:
        call: the call.
        requested: what it says of its outputs.
        position: the position of the tensor.
        types: the types of the other tensors, by their positions.
    """
    facts, fields = operator(call.name), call.fields
    name = fields[position].name
    tied = {
        each
        for same in facts.same
        if "DataType" in same.what and name in same.tensors
        for each in same.tensors
    }
    outputs = [output for output in facts.outputs if output.name in tied]
    if outputs and requested.type is not None:
        return ScalarType.of(requested.type)
    for other, type in types.items():
        if fields[other].name in tied:
            return ScalarType.of(type)
    for output in outputs:
        if (written := requested.written_type(output)) is not None:
            return ScalarType.of(written)
    allowed = [TensorDataType[type] for type in facts.support[0].tensors[name].types]
    first = next(iter(types.values()))
    return ScalarType.of(first if first in allowed else allowed[0])


def exact_number(value: float, type: ScalarType, name: str) -> float:
    """Return a number as one of a type. A float type rounds it.

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


def written(call: Call, layouts: Sequence[Layout]) -> RequestedOutputs:
    """Return what a call says of its outputs, with what the arrays say that it is to write."""
    descs = [TensorDesc(layout.type.data_type, layout.sizes) for layout in layouts]
    return call.requested._replace(written=call.by_output(descs))


def program_of_call(
    call: Call, inputs: Sequence[Layout | None], outs: Sequence[Layout] | None, feature_level: FeatureLevel
) -> Program:
    """Return the program of a call.

    The tensors may have any strides, at every level. Where sizes must be equal, strides of 0 repeat smaller
    ones.

    Args:
        call: the call.
        inputs: its tensors.
        outs: the arrays that it is to write; None: packed ones.
        feature_level: what it is checked against.

    Raises:
        InvalidArgument: what `validate` finds, or an output of another type or other sizes.
        Unsupported: the operator cannot be run yet.
    """
    require_running(call.name)
    inputs = [None if each is None else _with_dimension(each) for each in _repeated(call, inputs)]
    outs = None if outs is None else [_with_dimension(each) for each in outs]
    tensors = [None if each is None else TensorDesc(each.type.data_type, each.sizes) for each in inputs]
    requested = call.requested if outs is None else written(call, outs)
    desc = desc_of_call(
        call.name, call.grouped(tensors), call.attributes, feature_level, requested, call.cast
    )
    present = [layout for layout in inputs if layout is not None]
    outputs = [packed(ScalarType.of(each.data_type), each.sizes) for each in outputs_in(desc)]
    if outs is not None:
        _require_arrays(call, outs, outputs)
        outputs = list(outs)
    for label, output in zip(call.out_labels(len(outputs)), outputs, strict=True):
        check_no_overlap_within(label, output)
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if layout is None else next(sources) for layout in inputs]
    results = define(desc, nodes, [output.type for output in outputs])
    return Program(tuple(present), tuple(outputs), results)


def outputs_without_elements(
    call: Call, inputs: Sequence[Layout | None], feature_level: FeatureLevel
) -> list[Layout]:
    """Return the outputs of a call of which a tensor has no elements, as other libraries allow it.

    DirectML has no such tensors. Sizes of outputs are linear in those of inputs, so two other sizes in place
    of 0 tell what follows from 0.

    Raises:
        InvalidArgument: what `validate` finds for these sizes, or an output would have elements.
    """

    def outputs_at(size: int) -> list[Layout]:
        given = [
            None
            if each is None
            else packed(each.type, [size if count == 0 else count for count in each.sizes])
            for each in inputs
        ]
        return list(program_of_call(call, given, None, feature_level).outputs)

    results = []
    for two, three in zip(outputs_at(2), outputs_at(3), strict=True):
        sizes = [max(3 * a - 2 * b, 0) for a, b in zip(two.sizes, three.sizes, strict=True)]
        if 0 not in sizes:
            given = zip(call.labels, inputs, strict=True)
            label, empty = next(
                (label, each) for label, each in given if each is not None and 0 in each.sizes
            )
            problem = f"must have elements, because the output of sizes {sizes} has some"
            raise InvalidArgument(f"{label}: sizes {list(empty.sizes)}; {problem}")
        results.append(packed(two.type, sizes))
    return results


def _with_dimension(layout: Layout) -> Layout:
    """Return a layout with one dimension at least, as DirectML's tensors have."""
    return layout if layout.sizes else packed(layout.type, (1,))


def outputs_in(desc: OperatorDesc) -> list[TensorDesc]:
    """Return the output tensors that a desc has, in its order."""
    return [tensor for tensor in tensors_of(desc, "OUTPUT_TENSOR") if tensor is not None]


def _require_arrays(call: Call, given: Sequence[Layout], wanted: Sequence[Layout]) -> None:
    if len(given) != len(wanted):
        raise InvalidArgument(f"{call.function}.out: {len(given)} arrays; {len(wanted)} are needed")
    for label, each, other in zip(call.out_labels(len(given)), given, wanted, strict=True):
        require_array(label, each, other)


def _repeated(call: Call, inputs: Sequence[Layout | None]) -> list[Layout | None]:
    sizes = repeated_sizes(call, [None if layout is None else layout.sizes for layout in inputs])
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
    """Check the type and sizes of an array.

    Args:
        name: its name in messages.
        given: its layout.
        wanted: the layout that it should have.
        cast: the expression by which the caller gives it another type; "" where there is none.

    Raises:
        InvalidArgument: one of them differs.
    """
    if given.type is not wanted.type:
        fix = cast.format(argument=name, numpy=wanted.type.numpy.name, type=wanted.type.name)
        fix = fix.replace("np.bfloat16", "'bfloat16'")  # NumPy knows the type by its name alone.
        raise InvalidArgument(
            f"{name}: {given.type.name}; {wanted.type.name} is needed" + (f"; use {fix}" if fix else "")
        )
    if given.sizes != wanted.sizes:
        raise InvalidArgument(f"{name}: sizes {list(given.sizes)}; {list(wanted.sizes)} are needed")
