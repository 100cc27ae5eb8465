"""ONNX's shape inference for single nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import index

import numpy as np

from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.inlining import type_of
from opendml.frontends.onnx.node import OnnxNode, graphs_of, onnx_errors
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Array, Value, is_same, sizes_of_type

_EQUATION = re.compile(r"[A-Za-z., ]*(->[A-Za-z. ]*)?")


def inferred_outputs(
    node: OnnxNode, values: Mapping[str, Value], exact: bool = False
) -> Mapping[str, onnx.TypeProto]:
    """Infer the types of a node's outputs by name; an invalid node has none.

    Args:
        node: the node.
        values: the values of the tensors that it reads.
        exact: whether sizes that change have their values of this run, from now on in all runs. Otherwise
            they are names, and what follows from them is not known.
    """
    given = {name: value for name in node.inputs if name and (value := values.get(name)) is not None}
    try:
        schema = node.schema
        if schema is None or not is_safe(node.message):
            return {}
        sizes = {name: value.sizes for name, value in given.items()}
        if exact:
            sizes = {name: each and tuple(map(index, each)) for name, each in sizes.items()}
        types = {name: type_of(sizes[name], value.type) for name, value in given.items()}
        known = {
            name: onnx.numpy_helper.from_array(value.content, name)
            for name, value in given.items()
            if is_same(value) and isinstance(value.unread, np.ndarray) and value.unread.size <= 64
        }
        imports = [onnx.helper.make_opsetid(domain, version) for domain, version in node.opsets.items()]
        typed = {name: each for name, each in types.items() if each is not None}
        inferred: Mapping[str, onnx.TypeProto] = onnx.shape_inference.infer_node_outputs(
            schema, node.message, typed, known, opset_imports=imports
        )
    except onnx_errors():
        return {}
    return inferred


def is_safe(message: onnx.NodeProto) -> bool:
    """Return whether ONNX's inference can take a node.

    It does not check some attributes, so that it loops for ever or reads foreign memory.
    """
    match message.op_type:
        case "Einsum":
            equations = [each.s for each in message.attribute if each.name == "equation"]
            return all(_EQUATION.fullmatch(each.decode(errors="replace")) for each in equations)
        case "GatherND":
            return all(each.i >= 0 for each in message.attribute if each.name == "batch_dims")
        case _:
            return all(is_safe(inner) for graph in graphs_of(message) for inner in graph.node)


def empty_of(type: onnx.TypeProto) -> Array | None:
    """Return an empty tensor of a type; None: the type has elements or unknown sizes."""
    sizes = [size if isinstance(size, int) else -1 for size in sizes_of_type(type) or ()]
    if 0 not in sizes or min(sizes) < 0 or not type.tensor_type.elem_type:
        return None
    try:
        return np.empty(sizes, dtype_of(type.tensor_type.elem_type))
    except ValueError:  # NumPy limits the number and the product of dimensions.
        return None
