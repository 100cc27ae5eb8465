"""Operator descs in JSON: fields by DirectML's names, for every operator, from the table of operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch.enums import enum_value
from opendml.frontends.dxdispatch.model import BindPoint
from opendml.frontends.dxdispatch.tensor_descs import parse_tensor_desc
from opendml.frontends.dxdispatch.values import scalar
from opendml.json_files.node import Failures, Node, suggestion
from opendml.spec import enums
from opendml.spec.descs import desc_class
from opendml.spec.enums import TensorDataType
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import OperatorDesc, ScaleBias, Size2D
from opendml.spec.schema import Field, Operator, operator, operators

_UINT32 = (0, 2**32 - 1)
_INT32 = (-(2**31), 2**31 - 1)
_PREFIX = "DML_OPERATOR_"


def parse_operator_desc(node: Node, *, beside: Collection[str]) -> OperatorDesc:
    """A dispatchable's desc: {type, desc: {fields}} or {type, fields}. `beside` names its other members."""
    return _parse_desc(node, beside, nested=False)


def _parse_activation_desc(node: Node) -> OperatorDesc:
    """A desc inside another one: an activation, which has no tensors of its own."""
    return _parse_desc(node, (), nested=True)


def _parse_desc(node: Node, beside: Collection[str], *, nested: bool) -> OperatorDesc:
    type_node = node.optional("Type") or node.member("type")
    name = type_node.string().removeprefix(_PREFIX)
    if name not in operators():
        type_node.fail("the type of an operator", f'"{name}"{suggestion(name, operators())}')
    inner = node.optional("Desc") or node.optional("desc")
    known = {"Type", "type", "Desc", "desc", *beside}
    if inner is None:
        fields = {key: child.value for key, child in node.members().items() if key not in known}
        inner = Node(fields, node.path)
    else:
        node.members(known)
    return _parse_fields(operator(name), inner, nested=nested)


def bind_points(desc: OperatorDesc) -> tuple[BindPoint, ...]:
    """The tensor fields of a desc in DirectML's order, with the tensors that they have."""
    return tuple(
        BindPoint(field.name, field.kind == "OUTPUT_TENSOR", _tensors(getattr(desc, field.python_name)))
        for field in operator(desc.operator).tensors
    )


def _tensors(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _parse_fields(kind: Operator, node: Node, *, nested: bool) -> OperatorDesc:
    """The desc with the fields in `node`, where null is as good as absent."""
    members = node.members([field.name for field in kind.fields])
    given = {name: child for name, child in members.items() if child.value is not None}
    failures = Failures()
    values: dict[str, Any] = {}
    for field in kind.fields:
        with failures.collected():
            if field.name in given:
                values[field.name] = _parse_field(field, given[field.name], given)
            elif not (field.optional or field.is_count or (nested and field.is_tensor)):
                raise InvalidArgument(f"{node.at(field.name)}: missing; {kind.name} requires it")
    for field in kind.fields:
        if field.is_count and field.name in values:
            with failures.collected():
                _check_count(given[field.name], values.pop(field.name), field.count_of, values)
    failures.raise_any()
    return desc_class(kind.name)(**{kind.field(name).python_name: value for name, value in values.items()})


def _check_count(node: Node, count: int, arrays: Collection[str], values: Mapping[str, Any]) -> None:
    """A field that counts the elements of arrays may be left out, but must be right when it is there."""
    for array in arrays:
        if array in values and len(values[array]) != count:
            node.fail(f"{len(values[array])}, the number of elements in {array}")


def _parse_field(field: Field, node: Node, siblings: Mapping[str, Node]) -> Any:
    if field.enum is not None:
        return enum_value(node, field.enum, getattr(enums, camel_case(field.enum)))
    if field.type == "SCALAR_UNION":
        return _parse_scalar_union(node, field.data_type_field, siblings)
    if field.type.endswith("_ARRAY"):
        return _parse_array(node, _PARSERS[field.type.removesuffix("_ARRAY")])
    return _PARSERS[field.type](node)


def _parse_array(node: Node, parse: Callable[[Node], Any]) -> tuple[Any, ...]:
    failures = Failures()
    values = []
    for element in node.elements():
        with failures.collected():
            values.append(parse(element))
    failures.raise_any()
    return tuple(values)


def _parse_uint(node: Node) -> int:
    return node.integer(*_UINT32)


def _parse_int(node: Node) -> int:
    return node.integer(*_INT32)


def _parse_float(node: Node) -> float:
    """A FLOAT attribute, rounded to the float32 that DirectML's struct holds."""
    return scalar(node, TensorDataType.FLOAT32)


def _parse_scale_bias(node: Node) -> ScaleBias:
    node.members(("Scale", "Bias"))
    return ScaleBias(_parse_float(node.member("Scale")), _parse_float(node.member("Bias")))


def _parse_size_2d(node: Node) -> Size2D:
    node.members(("Width", "Height"))
    return Size2D(_parse_uint(node.member("Width")), _parse_uint(node.member("Height")))


def _parse_scalar_union(node: Node, data_type_field: str | None, siblings: Mapping[str, Node]) -> int | float:
    """A number, or an object with the union's member for the data type: {"Float32": 2.5}. FLOAT16 has no
    member of its own; there UInt16 holds its bits."""
    data_type_node = siblings.get(data_type_field or "")
    if data_type_node is None:
        node.fail(f"{data_type_field} beside it, which says the type of the value")
    data_type = enum_value(data_type_node, "TENSOR_DATA_TYPE", TensorDataType)
    if data_type is TensorDataType.UNKNOWN:
        data_type_node.fail("a data type other than UNKNOWN")
    if not isinstance(node.value, dict):
        return scalar(node, data_type)
    is_half = data_type is TensorDataType.FLOAT16
    member = "UInt16" if is_half else data_type.name.capitalize().replace("Uint", "UInt")
    node.members((member,))
    if is_half:
        return float(np.uint16(scalar(node.member(member), TensorDataType.UINT16)).view(np.float16))
    return scalar(node.member(member), data_type)


_PARSERS: dict[str, Callable[[Node], Any]] = {
    "TENSOR_DESC": parse_tensor_desc,
    "OPERATOR_DESC": _parse_activation_desc,
    "UINT": _parse_uint,
    "INT": _parse_int,
    "FLOAT": _parse_float,
    "BOOL": Node.boolean,
    "SCALE_BIAS": _parse_scale_bias,
    "SIZE_2D": _parse_size_2d,
}
