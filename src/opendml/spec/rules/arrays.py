"""Arrays with an element for each dimension of a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from opendml.spec.fault import Fault
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Field, Operator
from opendml.spec.wording import counted


def counted_dimensions(operator: Operator, count: Field, tensor_name: str) -> Rule:
    """All arrays that the field `count` counts have an element for each (spatial) dimension of the tensor."""
    tensor_field = operator.field(tensor_name)
    arrays = tuple(operator.field(name) for name in count.count_of)
    kind, others = ("spatial dimension", 2) if count.spatial else ("dimension", 0)

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        for _, tensor in given_tensors(desc, tensor_field):
            needed = len(tensor.sizes) - others
            for array in arrays:
                length = len(getattr(desc, array.python_name))
                if length != needed:
                    allowed = f"must be {needed}, one for each {kind} of {{{tensor_name}}}{{{count.name}}}"
                    yield array, Fault(counted(length, "element", "elements"), allowed)

    return Rule("counted_dimensions", (*arrays, tensor_field), check, basic=True)
