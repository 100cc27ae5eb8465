"""Tensors that must agree in type, number of dimensions or sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Field, Operator, Same
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import dimensions

_Difference = Callable[[TensorDesc, TensorDesc, str], str | None]


def equal_tensors(operator: Operator, same: Same, what: str) -> Rule:
    """The tensors agree in `what`, one of those that `same` names, with the first of them that is given."""
    fields = tuple(operator.field(name) for name in same.tensors)
    rule_name, difference = _COMPARE[what]

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, str]]:
        first: TensorDesc | None = None
        first_name = ""
        for field in fields:
            for index, tensor in given_tensors(desc, field):
                if first is None:
                    first, first_name = tensor, field.name + index
                    continue
                message = difference(tensor, first, first_name)
                if message:
                    yield field, index + message

    return Rule(rule_name, fields, check, basic=what == "DimensionCount")


def _data_type(tensor: TensorDesc, other: TensorDesc, name: str) -> str | None:
    if tensor.data_type is other.data_type:
        return None
    return f": {tensor.data_type.name}; must have the data type of {name}, {other.data_type.name}"


def _dimension_count(tensor: TensorDesc, other: TensorDesc, name: str) -> str | None:
    if len(tensor.sizes) == len(other.sizes):
        return None
    return f": {dimensions(len(tensor.sizes))}; must have as many as {name}, {len(other.sizes)}"


def _sizes(tensor: TensorDesc, other: TensorDesc, name: str) -> str | None:
    if tensor.sizes == other.sizes:
        return None
    return f": sizes {list(tensor.sizes)}; must be those of {name}, {list(other.sizes)}"


_COMPARE: dict[str, tuple[str, _Difference]] = {
    "DataType": ("equal_types", _data_type),
    "DimensionCount": ("equal_ranks", _dimension_count),
    "Sizes": ("equal_sizes", _sizes),
}
