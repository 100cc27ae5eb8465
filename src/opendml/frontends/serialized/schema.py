"""The schema of serialized graphs: tables, unions, structs and numbers by their names.

A table is a dict of its fields, a union a pair of the name and the value, a struct a tuple of numbers.
"""

from __future__ import annotations

from typing import Final

ROOT: Final = "DmlGraphDesc"

Fields = tuple[tuple[str, str], ...]
"""Names and kinds of fields, in the order of their slots: the name of a table, union or number, "string", or
one of these in brackets for a vector."""

TABLES: Final[dict[str, Fields]] = {
    "DmlGraphDesc": (
        ("nodes", "[DmlGraphNode]"),
        ("graphInputNames", "[string]"),
        ("graphOutputNames", "[string]"),
    ),
    "DmlGraphNode": (
        ("desc", "NodeDesc"),
        ("name", "string"),
        ("inputNames", "[string]"),
        ("outputNames", "[string]"),
    ),
    "OperatorNodeDesc": (
        ("type", "string"),
        ("inputs", "[DmlBufferTensorDesc]"),
        ("outputs", "[DmlBufferTensorDesc]"),
        ("attributes", "[AttributeDesc]"),
    ),
    "DmlBufferTensorDesc": (
        ("dataType", "string"),
        ("sizes", "[uint32]"),
        ("strides", "[uint32]"),
        ("totalTensorSizeInBytes", "uint64"),
    ),
    "ConstantNodeDesc": (("data", "ConstantNodeDescDetail"),),
    "ConstantName": (("name", "string"),),
    "ConstantRawData": (("data", "[uint8]"),),
    "AttributeDesc": (("name", "string"), ("val", "AttributeFieldVariant")),
    "Activation": (("type", "string"), ("attributes", "[AttributeDesc]")),
    "ActivationArray": (("data", "[Activation]"),),
    "UIntArray": (("data", "[uint32]"),),
    "IntArray": (("data", "[int32]"),),
    "FloatArray": (("data", "[float32]"),),
    "ScalarUnionData": (("data", "ScalarVariant"),),
}

UNIONS: Final[dict[str, tuple[str, ...]]] = {
    "NodeDesc": ("OperatorNodeDesc", "ConstantNodeDesc"),
    "ConstantNodeDescDetail": ("ConstantName", "ConstantRawData"),
    "AttributeFieldVariant": (
        "Activation",
        "ActivationArray",
        "UInt32",
        "UInt64",
        "Int32",
        "Float32",
        "UIntArray",
        "IntArray",
        "FloatArray",
        "ScaleBias",
        "Size2D",
        "ScalarUnionData",
        "Bool",
    ),
    "ScalarVariant": (
        "ByteArray",
        "Int8",
        "UInt8",
        "Int16",
        "UInt16",
        "Int32",
        "UInt32",
        "Int64",
        "UInt64",
        "Float32",
        "Float64",
    ),
}
"""The members, whose number is their position, from 1; 0 is none."""

STRUCTS: Final[dict[str, str]] = {
    "Int8": "<b",
    "UInt8": "<B",
    "Int16": "<h",
    "UInt16": "<H",
    "Int32": "<i",
    "UInt32": "<I",
    "Int64": "<q",
    "UInt64": "<Q",
    "Float32": "<f",
    "Float64": "<d",
    "ScaleBias": "<2f",
    "Size2D": "<2I",
    "ByteArray": "<8B",
    "Bool": "<?",
}
"""The numbers of structs, which unions keep outside of their table, as formats of `struct`."""

NUMBERS: Final[dict[str, str]] = {
    "uint8": "<B",
    "int32": "<i",
    "uint32": "<I",
    "float32": "<f",
    "uint64": "<Q",
}
