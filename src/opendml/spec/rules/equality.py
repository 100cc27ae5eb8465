"""Tensors that must agree in type, number of dimensions or sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opendml.spec.fault import Fault, path_text, wrong_rank, wrong_sizes, wrong_type
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.rules.rule import Rule, given_tensors
from opendml.spec.schema import Field, Operator, Same
from opendml.spec.tensor_desc import TensorDesc

_Difference = Callable[[TensorDesc, TensorDesc, str], Fault | None]


def equal_tensors(operator: Operator, same: Same, what: str) -> Rule:
    """The tensors agree in `what`, one of those that `same` names, with the first of them that is given."""
    fields = tuple(operator.field(name) for name in same.tensors)
    rule_name, difference = _COMPARE[what]

    def check(desc: OperatorDesc) -> Iterator[tuple[Field, Fault]]:
        first: TensorDesc | None = None
        first_name = ""
        for field in fields:
            for path, tensor in given_tensors(desc, field):
                if first is None:
                    first, first_name = tensor, f"{{{field.name}}}{path_text(path)}"
                elif fault := difference(tensor, first, first_name):
                    yield field, fault.within(*path)

    return Rule(rule_name, fields, check, basic=what == "DimensionCount")


def _data_type(tensor: TensorDesc, other: TensorDesc, name: str) -> Fault | None:
    given, needed = tensor.data_type, other.data_type
    if given is needed:
        return None
    return wrong_type(given, f"must have the data type of {name}, {needed.name}", needed)


def _dimension_count(tensor: TensorDesc, other: TensorDesc, name: str) -> Fault | None:
    given, needed = len(tensor.sizes), len(other.sizes)
    return None if given == needed else wrong_rank(given, f"must have as many as {name}, {needed}")


def _sizes(tensor: TensorDesc, other: TensorDesc, name: str) -> Fault | None:
    if tensor.sizes == other.sizes:
        return None
    return wrong_sizes(tensor.sizes, f"must be those of {name}, {list(other.sizes)}")


_COMPARE: dict[str, tuple[str, _Difference]] = {
    "DataType": ("equal_types", _data_type),
    "DimensionCount": ("equal_ranks", _dimension_count),
    "Sizes": ("equal_sizes", _sizes),
}
