"""Inlining: bodies of functions, of ONNX's schemas and of branches replace a node.

The tensors of an inlined body get a unique prefix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opendml.frontends.onnx.element_types import element_of
from opendml.frontends.onnx.node import (
    OnnxNode,
    domain_of,
    graphs_of,
    nodes_of,
    onnx_errors,
    opsets_of,
)
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.values import Value
from opendml.program.sizes import Size

Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]
"""The functions of a model, by domain, name and overload."""


def functions_of(model: onnx.ModelProto) -> Functions:
    """Return the functions of a model."""
    return {(domain_of(each.domain), each.name, each.overload): each for each in model.functions}


def function_nodes(node: OnnxNode, functions: Functions, prefix: str) -> tuple[OnnxNode, ...] | None:
    """Inline the function of the model that a node calls; None: it calls none."""
    function = functions.get((node.domain, node.operator, node.message.overload))
    return None if function is None else inlined(node, function, prefix, {})


def has_body(node: OnnxNode) -> bool:
    """Return whether ONNX's schema defines an operator by other nodes."""
    schema = node.schema
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def schema_nodes(node: OnnxNode, values: Sequence[Value | None], prefix: str) -> tuple[OnnxNode, ...] | None:
    """Inline the body that ONNX's schema defines; None: there is none for these inputs.

    Args:
        values: the inputs, whose types may decide the body.
    """
    schema = node.schema
    if schema is None:
        return None
    function = onnx.FunctionProto()
    if schema.has_function:
        function.CopyFrom(schema.function_body)
    elif schema.has_context_dependent_function:
        types = [None if value is None else type_of(value.sizes, value.type) for value in values]
        if any(each is None for name, each in zip(node.inputs, types, strict=True) if name):
            return None  # onnx would read missing types.
        given = [(onnx.TypeProto() if each is None else each).SerializeToString() for each in types]
        try:
            found = schema.get_context_dependent_function(node.message.SerializeToString(), given)
        except onnx_errors():  # The operator does not take these types.
            found = b""
        if not found:
            return None
        function.ParseFromString(found)
    else:
        return None
    defaults = {
        name: each.default_value for name, each in schema.attributes.items() if each.default_value.name
    }
    return inlined(node, function, prefix, defaults)


def inlined(
    node: OnnxNode, function: onnx.FunctionProto, prefix: str, defaults: Mapping[str, onnx.AttributeProto]
) -> tuple[OnnxNode, ...]:
    """Inline the body of a function in place of its call."""
    attributes = {**defaults, **{each.name: each for each in function.attribute_proto}}
    attributes.update((each.name, each) for each in node.message.attribute)
    messages = [_with_attributes(message, attributes) for message in function.node]
    opsets = {**node.opsets, **opsets_of(function.opset_import)}
    return _placed(node, messages, function.input, function.output, prefix, opsets)


def branch_nodes(
    node: OnnxNode, branch: onnx.GraphProto, prefix: str
) -> tuple[tuple[OnnxNode, ...], dict[str, onnx.TensorProto]]:
    """Inline a branch in place of its `If`; return its nodes and its initializers."""
    messages = list(branch.node)
    nodes = _placed(node, messages, (), [each.name for each in branch.output], prefix, node.opsets, branch)
    return nodes, {prefix + each.name: each for each in branch.initializer}


def _placed(
    node: OnnxNode,
    messages: Sequence[onnx.NodeProto],
    inputs: Sequence[str],
    outputs: Sequence[str],
    prefix: str,
    opsets: Mapping[str, int],
    graph: onnx.GraphProto | None = None,
) -> tuple[OnnxNode, ...]:
    """Give the tensors of a body unique names, and connect it to the node's inputs and outputs."""
    made = {name for message in messages for name in message.output if name}
    made.update(each.name for each in (graph.initializer if graph else ()))
    names = {name: prefix + name for name in made}
    names.update({name: (node.inputs[i] if i < len(node.inputs) else "") for i, name in enumerate(inputs)})
    placed = [_renamed(message, names, prefix) for message in messages]
    for name, wanted in zip(outputs, node.outputs, strict=False):
        if wanted:
            placed.append(onnx.NodeProto(op_type="Identity", input=[names.get(name, name)], output=[wanted]))
    return nodes_of(placed, opsets)


def _renamed(message: onnx.NodeProto, names: Mapping[str, str], prefix: str) -> onnx.NodeProto:
    """Copy a node and rename its tensors, including those that its graphs capture."""
    new = onnx.NodeProto()
    new.CopyFrom(message)
    new.name = prefix + (message.name or next(filter(None, message.output), message.op_type))
    for tensors in (new.input, new.output):
        tensors[:] = [names.get(name, name) for name in tensors]
    for graph in graphs_of(new):
        _rename_captured(graph, names, prefix)
    return new


def _rename_captured(graph: onnx.GraphProto, names: Mapping[str, str], prefix: str) -> None:
    """Rename the captured tensors of a graph in place."""
    own = {each.name for each in (*graph.input, *graph.initializer)}
    own.update(name for message in graph.node for name in message.output)
    outside = {name: new for name, new in names.items() if name not in own}
    for message in graph.node:
        message.CopyFrom(_renamed(message, outside, ""))
    for index, output in enumerate(graph.output):
        new = outside.get(output.name)
        if new is not None:  # The output is a captured tensor.
            output.name = f"{prefix}{output.name}.{index}"
            graph.node.add(op_type="Identity", input=[new], output=[output.name])


def _with_attributes(
    message: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]
) -> onnx.NodeProto:
    """Copy a node of a function, and replace references to attributes by those of the call."""
    new = onnx.NodeProto()
    new.CopyFrom(message)
    kept = []
    for attribute in new.attribute:
        given = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if given is not None:
            copy = onnx.AttributeProto()
            copy.CopyFrom(given)
            copy.name = attribute.name
            kept.append(copy)
    for each in kept:
        for graph in [each.g] if each.type == onnx.AttributeProto.GRAPH else list(each.graphs):
            inner = [_with_attributes(node, attributes) for node in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
    del new.attribute[:]
    new.attribute.extend(kept)
    return new


def type_of(sizes: Sequence[int] | None, type: Any) -> onnx.TypeProto | None:
    """Return the ONNX type of a tensor; None: sizes or type are unknown."""
    if sizes is None or type is None:
        return None
    element = element_of(np.dtype(type))
    named = [repr(size) if isinstance(size, Size) else size for size in sizes]
    return onnx.helper.make_tensor_type_proto(element, named)
