"""Attributes that calls may leave out: their usual value depends on the tensors' dimensions or types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import Field, OperatorSchema, operator


def rank_default(operator: OperatorSchema, field: Field) -> str | None:
    """Return in words what a call takes where it is not given the attribute.

    None means that the attribute must be given, or that its default does not depend on the tensors.
    """
    if field.usual == "last axis":
        return "the last axis"
    if _is_type_of_input(operator, field):
        return f"that of {operator.inputs[0].argument_name}"
    return None if field.usual is None else f"{field.usual} for each dimension"


def _is_type_of_input(operator: OperatorSchema, field: Field) -> bool:
    """Return whether the attribute is the type of an output that has the first input's."""
    return bool(operator.inputs) and any(
        "DataType" in same.what and {field.same_type_as, operator.inputs[0].name} <= set(same.tensors)
        for same in operator.same
    )


def with_rank_defaults(desc: OperatorDesc) -> OperatorDesc:
    """Return the desc with such attributes in place of None."""
    facts = operator(desc.operator)
    values: dict[str, Any] = {}
    for field in facts.attributes:
        if getattr(desc, field.python_name) is not None:
            continue
        if _is_type_of_input(facts, field):
            tensor = getattr(desc, facts.inputs[0].python_name)
            values[field.python_name] = None if tensor is None else tensor.data_type
        elif field.usual == "last axis":
            values[field.python_name] = len(desc.input_tensor.sizes) - 1  # type: ignore[attr-defined]
        elif field.usual is not None:
            values[field.python_name] = (field.usual,) * _array_length(desc, facts, field)
    return desc._with(**values) if values else desc


def _array_length(desc: OperatorDesc, facts: OperatorSchema, field: Field) -> int:
    """Return the number of dimensions that an array has an element for.

    A call has yet to make an output, so the length of another array counts where the tensor is absent.
    """
    count = next(each for each in facts.fields if field.name in each.count_of)
    assert count.rank_of is not None
    tensor = getattr(desc, facts.field(count.rank_of).python_name)
    if tensor is not None:
        return max(len(tensor.sizes) - (2 if count.spatial else 0), 0)
    arrays = (getattr(desc, facts.field(name).python_name) for name in count.count_of)
    return next((len(each) for each in arrays if isinstance(each, Sequence)), 0)
