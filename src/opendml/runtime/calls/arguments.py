"""Validation of calls, whose messages name the function and its arguments, not a desc's fields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from opendml.errors import Failure, InvalidArgument
from opendml.runtime.calls.call import returns_tuple
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, QuantizationType, ReduceFunction, TensorDataType
from opendml.spec.fault import SIZES, TYPE, Fault, FieldNames, path_text
from opendml.spec.four_bit import CARRIERS
from opendml.spec.naming import snake_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NO_REQUESTS, RequestedOutputs
from opendml.spec.schema import Field, OperatorSchema, operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failure_of, faults

NUMPY_CAST = "{argument}.astype(np.{numpy})"
CAST = "opendml.cast({argument}, output_type=opendml.{type})"
"""The expression by which a caller gives an input another type."""


def validate_call(
    desc: OperatorDesc, level: FeatureLevel, requested: RequestedOutputs | None, cast: str
) -> None:
    """Check the desc of a call: first without its outputs, then what its outputs add.

    Args:
        desc: the desc.
        level: the feature level that it must be valid at.
        requested: what the call says of its outputs; None: the desc has no outputs yet. Otherwise all else
            that it has is valid.
        cast: the expression by which the caller gives an input another type.

    Raises:
        InvalidArgument: what `validate` finds, in terms of the arguments.
    """
    found = faults(desc, level, inputs=requested is None, outputs=requested is not None)
    if found:
        raise InvalidArgument([_failure(desc, level, *each, requested, cast) for each in found])


def validate_tensor(name: str, tensor: TensorDesc, level: FeatureLevel) -> None:
    """Check a tensor as an input of IDENTITY, or of DEQUANTIZE if its elements have 4 bits.

    No operator allows a tensor that these refuse.

    Args:
        name: its name in messages.
        tensor: the tensor, made of the arguments `data_type`, `sizes` and so on.
        level: the feature level that it must be valid at.

    Raises:
        InvalidArgument: what `validate` finds, in terms of the arguments.
    """
    desc: OperatorDesc
    if isinstance(tensor.data_type, TensorDataType) and tensor.data_type in CARRIERS:
        floats = TensorDesc(TensorDataType.FLOAT32, tensor.sizes)
        desc = descs.Dequantize(tensor, [floats], floats, quantization_type=QuantizationType.SCALE)
    else:
        desc = descs.ElementWiseIdentity(tensor, TensorDesc(tensor.data_type, tensor.sizes))
    messages = [
        f"{name}{snake_case(path_text(fault.path))}: {fault.text(FieldNames())}"
        for _, field, fault in faults(desc, level)
        if field is not None and field.name == "InputTensor"
    ]
    if messages:
        raise InvalidArgument(messages)


@cache
def _argument_names(name: str) -> FieldNames:
    """Return the names of an operator's fields as arguments of its function, without remarks on counts."""
    facts = operator(name)
    is_alone = len(facts.outputs) == 1
    names = {each.name: "" if each.is_count else each.argument_name for each in facts.fields}
    alone = {each.name: "the output" for each in facts.outputs if is_alone and not each.is_array}
    return FieldNames(names | alone)


def _failure(
    desc: OperatorDesc,
    level: FeatureLevel,
    facts: OperatorSchema | None,
    field: Field | None,
    fault: Fault,
    requested: RequestedOutputs | None,
    cast: str,
) -> Failure:
    """Return a fault of a call in the words of its caller. The parts keep DirectML's names."""
    failure = failure_of(facts, field, fault)
    if facts is None:
        return failure
    text, place, fix = fault.text(_argument_names(facts.name)), facts.function_name, None
    if field is None:
        message = f"{place}: {text}"
    elif field.kind == "OUTPUT_TENSOR":
        message = f"{place}.{_output_place(desc, facts, field, fault, requested or NO_REQUESTS)}: {text}"
    else:
        message = f"{place}.{field.argument_name}{path_text(fault.path)}: {text}"
        if type := _fitting_type(desc, facts, level, field, fault):
            fix = cast.format(argument=field.argument_name, numpy=type.name.lower(), type=type.name)
            message += f"; use {fix}"
    return failure.reworded(message, fix)


def _output_place(
    desc: OperatorDesc, facts: OperatorSchema, field: Field, fault: Fault, requested: RequestedOutputs
) -> str:
    """Return the argument that a fault of an output comes from, with the place in it."""
    path, place = fault.path, path_text(fault.path)
    if fault.is_about(SIZES) and requested.sizes is not None and field is facts.outputs[0]:
        sizes = path.index("Sizes") if "Sizes" in path else len(path)
        return f"sizes{path_text(path[:sizes] if field.is_array else path[sizes + 1 :])}"
    if requested.type is not None and (field.has_call_type or len(facts.outputs) == 1):
        return f"output_type{place}"
    if field.optional and getattr(desc, field.python_name) is None:
        return f"{field.argument_name}{place}"
    is_named = returns_tuple(facts.name, requested.wanted) and not field.is_array
    return f"out.{field.argument_name}{place}" if is_named else f"out{place}"


def _fitting_type(
    desc: OperatorDesc, facts: OperatorSchema, level: FeatureLevel, field: Field, fault: Fault
) -> TensorDataType | None:
    """Return the type that would do, if the fault is one of the type of an input."""
    tensor = getattr(desc, field.python_name)
    if fault.subject != TYPE or not isinstance(tensor, TensorDesc):
        return None
    function = getattr(desc, "function", None)
    table = facts.support_at(level, function.name if isinstance(function, ReduceFunction) else None)
    allowed: Sequence[str] = table.tensors[field.name].types if table else ()
    if fault.needed is not None and fault.needed.name in allowed:
        return fault.needed
    if allowed and tensor.data_type.name not in allowed:
        return TensorDataType["FLOAT32" if "FLOAT32" in allowed else allowed[0]]
    return None
