"""Tensors made of nothing but attributes."""

from __future__ import annotations

from opendml.operators.registry import defines
from opendml.program.functions import multiply_add
from opendml.program.node import Node, Number, constant, convert, element_number
from opendml.program.scalar_type import ScalarType, number_in
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc


@defines("FILL_VALUE_CONSTANT")
def fill_value_constant(*, value_data_type: TensorDataType, value: Number) -> Node:
    """Value everywhere"""
    type = ScalarType.of(value_data_type)
    return constant(number_in(value, type), type)


@defines("FILL_VALUE_SEQUENCE", output=True)
def fill_value_sequence(
    *, value_data_type: TensorDataType, value_start: Number, value_delta: Number, output: TensorDesc
) -> Node:
    """ValueStart + i * ValueDelta for the i-th element in row-major order; integers wrap

    Floats are computed in FLOAT64 and rounded once, so that no error adds up along the sequence.
    """
    type = ScalarType.of(value_data_type)
    start, delta = number_in(value_start, type), number_in(value_delta, type)
    number = element_number(output.sizes)
    if type.is_float:
        return multiply_add(convert(number, ScalarType.FLOAT64), delta, start)
    return convert(number, type) * delta + start
