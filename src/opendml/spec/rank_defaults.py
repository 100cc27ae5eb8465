"""Attributes whose usual value depends on the tensors' dimensions or types, which calls may leave out: the
plain form of the operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import Field, Operator, operator

_EACH: dict[str, float] = {
    "Dilations": 1,
    "EndPadding": 0,
    "InputPixelOffsets": 0.5,
    "InputWindowOffsets": 0,
    "InputWindowStrides": 1,
    "Offsets": 0,
    "OutputPadding": 0,
    "OutputPixelOffsets": -0.5,
    "StartPadding": 0,
    "Strides": 1,
}
"""The number for every dimension, by the attribute. Pixel offsets of 0.5 and -0.5 put the centres of pixels
between whole coordinates, as ONNX's half_pixel does, and are what RESAMPLE (without offsets) means."""


_LAST = ("TOP_K", "TOP_K1")
"""Operators whose axis is usually the last one."""


def rank_default(operator: Operator, field: Field) -> str | None:
    """What a call takes where it is not given the attribute, in words; None: it must be given, or its default
    does not depend on the tensors."""
    if _is_last_axis(operator, field):
        return "the last axis"
    if _is_type_of_input(operator, field):
        return f"that of {operator.inputs[0].argument_name}"
    has_each = field.name in _EACH and _count(operator, field) is not None
    return f"{_EACH[field.name]} for each dimension" if has_each else None


def _is_last_axis(operator: Operator, field: Field) -> bool:
    return operator.name in _LAST and field.name == "Axis"


def _is_type_of_input(operator: Operator, field: Field) -> bool:
    """Whether it is the type of an output that has the first input's."""
    return bool(operator.inputs) and any(
        "DataType" in same.what and {field.same_type_as, operator.inputs[0].name} <= set(same.tensors)
        for same in operator.same
    )


def with_rank_defaults(desc: OperatorDesc) -> OperatorDesc:
    """The desc with such attributes in place of None."""
    facts = operator(desc.operator)
    values: dict[str, Any] = {}
    for field in facts.attributes:
        if getattr(desc, field.python_name) is not None:
            continue
        if _is_last_axis(facts, field):
            values[field.python_name] = len(desc.input_tensor.sizes) - 1  # type: ignore[attr-defined]
        elif _is_type_of_input(facts, field):
            tensor = getattr(desc, facts.inputs[0].python_name)
            values[field.python_name] = None if tensor is None else tensor.data_type
        elif field.name not in _EACH:
            continue
        elif (count := _count(facts, field)) is not None:
            values[field.python_name] = (_EACH[field.name],) * _counted(desc, facts, count)
    return desc.replace(**values) if values else desc


def _counted(desc: OperatorDesc, facts: Operator, count: Field) -> int:
    """The dimensions that a count stands for: the tensor's, or, where a call has yet to make it, as many as
    another attribute has numbers."""
    assert count.rank_of is not None
    tensor = getattr(desc, facts.field(count.rank_of).python_name)
    if tensor is not None:
        return max(len(tensor.sizes) - (2 if count.spatial else 0), 0)
    arrays = (getattr(desc, facts.field(name).python_name) for name in count.count_of)
    return next((len(each) for each in arrays if isinstance(each, Sequence)), 0)


def _count(operator: Operator, field: Field) -> Field | None:
    """The count whose arrays have as many elements as a tensor has dimensions."""
    return next((each for each in operator.fields if field.name in each.count_of and each.rank_of), None)
