"""Values of attributes in Python's types."""

from __future__ import annotations

from typing import Any

from opendml.frontends.onnx.package import onnx

_Attribute = onnx.AttributeProto
_FIELDS = {
    _Attribute.FLOAT: "f",
    _Attribute.INT: "i",
    _Attribute.STRING: "s",
    _Attribute.TENSOR: "t",
    _Attribute.SPARSE_TENSOR: "sparse_tensor",
    _Attribute.GRAPH: "g",
    _Attribute.TYPE_PROTO: "tp",
}
_LISTS = {
    _Attribute.FLOATS: "floats",
    _Attribute.INTS: "ints",
    _Attribute.STRINGS: "strings",
    _Attribute.TENSORS: "tensors",
    _Attribute.SPARSE_TENSORS: "sparse_tensors",
    _Attribute.GRAPHS: "graphs",
    _Attribute.TYPE_PROTOS: "type_protos",
}


def value_of(attribute: onnx.AttributeProto) -> Any:
    """Return the value of an attribute in Python's types. Tensors and graphs stay ONNX's messages.

    Raises:
        ValueError: it names an attribute of a function, or is of an unknown type.
    """
    type = attribute.type
    if attribute.ref_attr_name:
        raise ValueError(f"attribute {attribute.name!r} has the value of {attribute.ref_attr_name!r}")
    if type in _LISTS:
        values = list(getattr(attribute, _LISTS[type]))
        return [each.decode("utf-8", "replace") for each in values] if type == _Attribute.STRINGS else values
    if type in _FIELDS:
        value = getattr(attribute, _FIELDS[type])
        return value.decode("utf-8", "replace") if type == _Attribute.STRING else value
    if type == _Attribute.UNDEFINED:
        return None
    raise ValueError(f"attribute {attribute.name!r} is of type {type}, which ONNX has not")
