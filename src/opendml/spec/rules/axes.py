"""Attributes that number the dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from opendml.spec.fault import Fault
from opendml.spec.kinds import ArrayCodec
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Field, Operator
from opendml.spec.wording import dimensions


def valid_axes(operator: Operator, field: Field, tensor_name: str) -> Rule:
    """An axis, or each of several, is a dimension of the tensor, and none is listed twice."""
    tensor_field = operator.field(tensor_name)
    is_array = isinstance(field.codec, ArrayCodec)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        value = getattr(desc, field.python_name)
        axes: tuple[int, ...] = value if is_array else (value,)
        for _, tensor in given_tensors(desc, tensor_field):
            rank = len(tensor.sizes)
            if len(axes) > rank:
                yield field, Fault(f"{len(axes)} axes", f"{{{tensor_name}}} has {dimensions(rank)}")
                continue
            for i, axis in enumerate(axes):
                path = (i,) if is_array else ()
                if axis >= rank:
                    yield (
                        field,
                        Fault(axis, f"{{{tensor_name}}} has {dimensions(rank)}, numbered from 0", path),
                    )
                elif axis in axes[:i]:
                    yield field, Fault(f"{axis} is listed twice", "axes must be distinct", path)

    return Rule("valid_axes", (field, tensor_field), check, basic=True)
