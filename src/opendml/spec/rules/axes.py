"""Attributes that number the dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Field, Operator
from opendml.spec.wording import dimensions


def valid_axes(operator: Operator, field: Field, tensor_name: str) -> Rule:
    """An axis, or each of several, is a dimension of the tensor, and none is listed twice."""
    tensor_field = operator.field(tensor_name)
    is_array = field.type == "UINT_ARRAY"

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, str]]:
        value = getattr(desc, field.python_name)
        axes: tuple[int, ...] = value if is_array else (value,)
        for _, tensor in given_tensors(desc, tensor_field):
            rank = len(tensor.sizes)
            if len(axes) > rank:
                yield field, f": {len(axes)} axes; {tensor_name} has {dimensions(rank)}"
                continue
            for i, axis in enumerate(axes):
                index = f"[{i}]" if is_array else ""
                if axis >= rank:
                    allowed = f"{tensor_name} has {dimensions(rank)}, numbered from 0"
                    yield field, f"{index}: {axis}; {allowed}"
                elif axis in axes[:i]:
                    yield field, f"{index}: {axis} is listed twice; axes must be distinct"

    return Rule("valid_axes", (field, tensor_field), check, basic=True)
