"""Tensor descs in JSON: {DataType, Sizes, ...}, bare or as {Type: "BUFFER", Desc: {...}}."""

from __future__ import annotations

from opendml.frontends.dxdispatch.enums import enum_value, flags_value
from opendml.json_files.node import Failures, Node
from opendml.spec.enums import TensorDataType, TensorFlags, TensorType
from opendml.spec.tensor_desc import TensorDesc

_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_FIELDS = (
    "DataType",
    "Flags",
    "DimensionCount",
    "Sizes",
    "Strides",
    "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment",
)


def parse_tensor_desc(node: Node) -> TensorDesc:
    """A DML_TENSOR_DESC. DataType and Sizes are required; a total size of 0 stands for the implied one."""
    type_node, inner = node.optional("Type"), node.optional("Desc")
    if type_node is not None and enum_value(type_node, "TENSOR_TYPE", TensorType) is not TensorType.BUFFER:
        type_node.fail('"BUFFER"')
    if inner is None:
        node.members(("Type", *_FIELDS))
        return _parse_buffer(node)
    node.members(("Type", "Desc"))
    inner.members(_FIELDS)
    return _parse_buffer(inner)


def _parse_buffer(node: Node) -> TensorDesc:
    failures = Failures()
    with failures.collected():
        data_type = enum_value(node.member("DataType"), "TENSOR_DATA_TYPE", TensorDataType)
    with failures.collected():
        sizes = _uints(node.member("Sizes"))
        count = node.optional("DimensionCount")
        if count is not None and count.integer(0, _UINT32_MAX) != len(sizes):
            count.fail(f"{len(sizes)}, the number of elements in Sizes")
    with failures.collected():
        strides_node = node.optional("Strides")
        strides = _uints(strides_node) if strides_node else ()
    with failures.collected():
        flags_node = node.optional("Flags")
        flags = flags_value(flags_node, "TENSOR_FLAGS", TensorFlags) if flags_node else TensorFlags.NONE
    with failures.collected():
        total_size = _uint(node, "TotalTensorSizeInBytes", _UINT64_MAX)
        alignment = _uint(node, "GuaranteedBaseOffsetAlignment", _UINT32_MAX)
    failures.raise_any()
    return TensorDesc(
        data_type,
        sizes,
        strides or None,
        flags,
        total_tensor_size_in_bytes=total_size or None,
        guaranteed_base_offset_alignment=alignment,
    )


def _uint(node: Node, name: str, high: int) -> int:
    child = node.optional(name)
    return child.integer(0, high) if child else 0


def _uints(node: Node) -> tuple[int, ...]:
    failures = Failures()
    values = []
    for element in node.elements():
        with failures.collected():
            values.append(element.integer(0, _UINT32_MAX))
    failures.raise_any()
    return tuple(values)
