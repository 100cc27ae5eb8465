"""Read operator descs and tensor descs from JSON, with DirectML's names of fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum, IntFlag
from functools import partial
from typing import Any, TypeVar

import numpy as np

from opendml.errors import InvalidArgument
from opendml.frontends.dxdispatch.model import BindPoint
from opendml.frontends.dxdispatch.values import scalar
from opendml.json_files.node import UINT32_MAX, UINT64_MAX, Failures, JsonNode, suggestion
from opendml.spec import enums
from opendml.spec.descs import desc_class
from opendml.spec.enums import TensorDataType, TensorFlags, TensorType
from opendml.spec.naming import camel_case, operator_name
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import Field, OperatorSchema, operator, operators
from opendml.spec.tensor_desc import TensorDesc

_Enum = TypeVar("_Enum", bound=IntEnum)
_Flag = TypeVar("_Flag", bound=IntFlag)

_TENSOR_FIELDS = (
    "DataType",
    "Flags",
    "DimensionCount",
    "Sizes",
    "Strides",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)


def enum_value(node: JsonNode, key: str, enum: type[_Enum]) -> _Enum:
    """Return the member of an enumeration that a string names, with or without its prefix in C.

    Args:
        node: the string.
        key: DirectML's name of the type without DML_.
        enum: the enumeration.
    """
    return enum[_member_name(node, f"DML_{key}_", enum)]


def data_type_at(node: JsonNode) -> TensorDataType:
    """Return a data type."""
    return enum_value(node, "TENSOR_DATA_TYPE", TensorDataType)


def flags_value(node: JsonNode, key: str, flags: type[_Flag]) -> _Flag:
    """Return the flags that a string or an array of strings names.

    The prefix is the type's name in the singular: DML_TENSOR_FLAG_NONE is one of DML_TENSOR_FLAGS.
    """
    value = flags(0)
    for element in [node] if isinstance(node.value, str) else node.elements():
        value |= flags[_member_name(element, f"DML_{key.removesuffix('S')}_", flags)]
    return value


def _member_name(node: JsonNode, prefix: str, enum: type[IntEnum] | type[IntFlag]) -> str:
    name = node.string().removeprefix(prefix)
    if name not in enum.__members__:
        node.fail(f"a value of {prefix.removesuffix('_')}", f'"{name}"{suggestion(name, enum.__members__)}')
    return name


def parse_tensor_desc(node: JsonNode) -> TensorDesc:
    """Return a tensor desc: {DataType, Sizes, ...}, bare or as {Type: "BUFFER", Desc: {...}}.

    DataType and Sizes are required. A total size of 0 stands for the implied one.
    """
    type_node, inner = node.optional("Type"), node.optional("Desc")
    if type_node is not None and enum_value(type_node, "TENSOR_TYPE", TensorType) is not TensorType.BUFFER:
        type_node.fail('"BUFFER"')
    if inner is None:
        return _parse_buffer(node, ("Type", *_TENSOR_FIELDS))
    node.members(("Type", "Desc"))
    return _parse_buffer(inner, _TENSOR_FIELDS)


def _parse_buffer(node: JsonNode, known: Collection[str]) -> TensorDesc:
    with Failures() as failures:
        node.known_members(known, failures)
        with failures.collected():
            data_type = data_type_at(node.member("DataType"))
        with failures.collected():
            sizes = node.member("Sizes").each(JsonNode.uint)
            count = node.optional("DimensionCount")
            if count is not None and count.uint() != len(sizes):
                count.fail(f"{len(sizes)}, the number of elements in Sizes")
        with failures.collected():
            strides_node = node.optional("Strides")
            strides = strides_node.each(JsonNode.uint) if strides_node else ()
        with failures.collected():
            flags_node = node.optional("Flags")
            flags = flags_value(flags_node, "TENSOR_FLAGS", TensorFlags) if flags_node else TensorFlags.NONE
        with failures.collected():
            total_size = count_at(node, "TotalTensorSizeInBytes")
            alignment = count_at(node, "GuaranteedBaseOffsetAlignment", UINT32_MAX)
    return TensorDesc(
        data_type,
        sizes,
        strides or None,
        flags,
        total_tensor_size_in_bytes=total_size or None,
        guaranteed_base_offset_alignment=alignment,
    )


def count_at(node: JsonNode, name: str, high: int = UINT64_MAX) -> int:
    """Return an optional member that is an integer from 0 on; 0 if it is absent."""
    child = node.optional(name)
    return child.integer(0, high) if child else 0


def parse_operator_desc(node: JsonNode, *, beside: Collection[str], nested: bool = False) -> OperatorDesc:
    """Return an operator's desc: {type, desc: {fields}} or {type, fields}.

    Args:
        node: the object.
        beside: the names of its other members.
        nested: it is an activation within another desc, which has no tensors of its own.
    """
    type_node = node.optional("Type") or node.member("type")
    name = operator_name(type_node.string())
    if name not in operators():
        type_node.fail("the type of an operator", f'"{name}"{suggestion(name, operators())}')
    inner = node.optional("Desc") or node.optional("desc")
    known = {"Type", "type", "Desc", "desc", *beside}
    if inner is None:
        fields = {key: child.value for key, child in node.members().items() if key not in known}
        inner = JsonNode(fields, node.path)
    else:
        node.members(known)
    return _parse_fields(operator(name), inner, nested=nested)


def bind_points(desc: OperatorDesc) -> tuple[BindPoint, ...]:
    """Return the tensor fields of a desc in DirectML's order, with the tensors that they have."""
    values = [(field, getattr(desc, field.python_name)) for field in operator(desc.operator).tensors]
    return tuple(
        BindPoint(
            field.name,
            field.kind == "OUTPUT_TENSOR",
            value if isinstance(value, tuple) else () if value is None else (value,),
        )
        for field, value in values
    )


def _parse_fields(kind: OperatorSchema, node: JsonNode, *, nested: bool) -> OperatorDesc:
    """Return the desc with the fields of an object, where null is the same as absent."""
    values: dict[str, Any] = {}
    with Failures() as failures:
        members = node.known_members([field.name for field in kind.fields], failures)
        given = {name: child for name, child in members.items() if child.value is not None}
        for field in kind.fields:
            with failures.collected():
                if field.name in given:
                    values[field.name] = _parse_field(field, given[field.name], given)
                elif not (field.optional or field.is_count or (nested and field.is_tensor)):
                    raise InvalidArgument(f"{node.at(field.name)}: missing; {kind.name} requires it")
        for field in kind.fields:
            if field.is_count and field.name in values:
                count = values.pop(field.name)
                with failures.collected():
                    for array in field.count_of:
                        if array in values and len(values[array]) != count:
                            given[field.name].fail(f"{len(values[array])}, the number of elements in {array}")
    return desc_class(kind.name)(**{kind.field(name).python_name: value for name, value in values.items()})


def _parse_field(field: Field, node: JsonNode, siblings: Mapping[str, JsonNode]) -> Any:
    if field.enum is not None:
        return enum_value(node, field.enum, getattr(enums, camel_case(field.enum)))
    if field.data_type_field:
        return _parse_scalar_union(node, field.data_type_field, siblings)
    if field.is_tensor:
        return node.each(parse_tensor_desc) if field.is_array else parse_tensor_desc(node)
    return field.codec.parse(node, partial(parse_operator_desc, beside=(), nested=True))


def _parse_scalar_union(
    node: JsonNode, data_type_field: str | None, siblings: Mapping[str, JsonNode]
) -> int | float:
    """Return a number, given as such or as an object with the union's member: {"Float32": 2.5}.

    FLOAT16 has no member of its own. UInt16 holds its bits.
    """
    data_type_node = siblings.get(data_type_field or "")
    if data_type_node is None:
        node.fail(f"{data_type_field} beside it, which says the type of the value")
    data_type = data_type_at(data_type_node)
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
