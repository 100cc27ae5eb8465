"""Scalars whose type another attribute tells."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from opendml.spec.enums import DATA_TYPE_BITS, TensorDataType
from opendml.spec.fault import Fault
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Field, Operator
from opendml.spec.wording import shown

_LARGEST_FLOAT = {
    TensorDataType.FLOAT16: 65504.0,
    TensorDataType.FLOAT32: float.fromhex("0x1.fffffep127"),
    TensorDataType.FLOAT64: float.fromhex("0x1.fffffffffffffp1023"),
}


def type_of_tensor(operator: Operator, field: Field, tensor_name: str) -> Rule:
    """A data type attribute is the type of the tensor."""
    tensor_field = operator.field(tensor_name)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        data_type: TensorDataType = getattr(desc, field.python_name)
        for _, tensor in given_tensors(desc, tensor_field):
            if tensor.data_type is not data_type:
                allowed = f"must be the type of {{{tensor_name}}}, {tensor.data_type.name}"
                yield field, Fault(data_type.name, allowed)

    return Rule("type_of_tensor", (field, tensor_field), check)


def fitting_scalar(operator: Operator, field: Field, type_name: str) -> Rule:
    """A DML_SCALAR_UNION holds a value of the type that the attribute `type_name` tells."""
    type_field = operator.field(type_name)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        value: int | float = getattr(desc, field.python_name)
        data_type: TensorDataType = getattr(desc, type_field.python_name)
        largest = _LARGEST_FLOAT.get(data_type)
        if largest is not None:
            if abs(value) > largest and not (isinstance(value, float) and isinf(value)):
                yield field, Fault(shown(value), f"must fit {data_type.name}, the {{{type_name}}}")
        elif data_type in DATA_TYPE_BITS:
            low, high = integer_range(data_type)
            if not isinstance(value, int) or not low <= value <= high:
                allowed = f"must be a whole number from {low} to {high} for {data_type.name}"
                yield field, Fault(shown(value), f"{allowed}, the {{{type_name}}}")

    return Rule("fitting_scalar", (field, type_field), check)


def integer_range(data_type: TensorDataType) -> tuple[int, int]:
    """The smallest and largest value of an integer type."""
    bits = DATA_TYPE_BITS[data_type]
    if data_type.name.startswith("U"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
