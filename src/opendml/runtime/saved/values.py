"""The arguments of calls and the fields of descs as JSON, and back."""

from __future__ import annotations

import math
from enum import IntEnum, IntFlag
from typing import Any

from opendml.errors import InvalidArgument, Unsupported
from opendml.json_files.node import JsonNode
from opendml.program.sizes import is_traced
from opendml.runtime.saved.traced import NO_SIZES, Sizes, traced_from_json, traced_to_json
from opendml.spec import descs
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import shown

_TENSOR = ("data_type", "sizes", "strides", "flags", "total_tensor_size_in_bytes", "alignment")


def to_json(value: Any) -> object:
    """Return a value as JSON. Members of enumerations are their names.

    Raises:
        Unsupported: something that no call and no desc has.
    """
    match value:
        case IntFlag():
            return "NONE" if not value else value.name
        case IntEnum():
            return value.name
        case int() | float() if is_traced(value):
            return traced_to_json(value)  # type: ignore[arg-type]
        case float() if not math.isfinite(value):
            return {"float": str(value)}
        case None | bool() | int() | float() | str():
            return value
        case ScaleBias():
            return {"scale_bias": [to_json(each) for each in value]}
        case Size2D():
            return {"size_2d": [to_json(each) for each in value]}
        case tuple() | list():
            return [to_json(each) for each in value]
        case TensorDesc():
            return {"tensor": tensor_to_json(value)}
        case OperatorDesc():
            fields = {name: to_json(getattr(value, name)) for name in value.fields}
            return {"operator": value.operator, "fields": fields}
        case _:
            raise Unsupported(f"{shown(value)} cannot be saved")


def from_json(node: JsonNode, sizes: Sizes = NO_SIZES) -> Any:
    """Return the value that `to_json` has made JSON of, members of enumerations as their names.

    Args:
        node: the JSON.
        sizes: the sizes of named dimensions.

    Raises:
        InvalidArgument: it has not.
    """
    value = node.value
    if isinstance(value, list):
        return tuple([from_json(each, sizes) for each in node.elements()])
    if not isinstance(value, dict):
        return value
    if "size" in value or "traced" in value:
        return traced_from_json(node, sizes)
    if "float" in value:
        node.members(("float",))
        return node.member("float").number()
    for name, kind in (("scale_bias", ScaleBias), ("size_2d", Size2D)):
        if name in value:
            node.members((name,))
            pair = from_json(node.member(name), sizes)
            if not isinstance(pair, tuple) or len(pair) != 2:
                node.fail("two numbers")
            return kind(*pair)
    if "tensor" in value:
        node.members(("tensor",))
        return tensor_from_json(node.member("tensor"), sizes)
    return desc_from_json(node, sizes)


def desc_from_json(node: JsonNode, sizes: Sizes = NO_SIZES) -> OperatorDesc:
    """Return the desc of an operator, which nobody has checked.

    Raises:
        InvalidArgument: none.
    """
    node.members(("operator", "fields"))
    try:
        facts = operator(node.member("operator").string())
    except InvalidArgument as error:
        raise InvalidArgument(f"{node.path}: {error}") from error
    kind = descs.desc_class(facts.name)
    fields = node.member("fields").members(kind.fields)
    missing = [name for name in kind.fields if name not in fields]
    if missing:
        raise InvalidArgument(f"{node.member('fields').at(missing[0])}: missing")
    return kind(**{name: from_json(field, sizes) for name, field in fields.items()})


def tensor_to_json(tensor: TensorDesc) -> dict[str, object]:
    """Return a TensorDesc as JSON."""
    values = (*(getattr(tensor, name) for name in _TENSOR[:-1]), tensor.guaranteed_base_offset_alignment)
    return dict(zip(_TENSOR, map(to_json, values), strict=True))


def tensor_from_json(node: JsonNode, sizes: Sizes = NO_SIZES) -> TensorDesc:
    """Return a TensorDesc, which nobody has checked."""
    fields = {name: from_json(field, sizes) for name, field in node.members(_TENSOR).items()}
    return TensorDesc(
        fields.get("data_type", ""),
        fields.get("sizes", ()),
        fields.get("strides"),
        fields.get("flags", "NONE"),
        total_tensor_size_in_bytes=fields.get("total_tensor_size_in_bytes"),
        guaranteed_base_offset_alignment=fields.get("alignment", 0),
    )
