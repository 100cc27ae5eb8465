"""Nodes of an ONNX graph as the importer sees them: names, attributes as Python values, versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import onnx

MICROSOFT = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds."""

ONNX_ERRORS = (
    onnx.checker.ValidationError,
    onnx.defs.SchemaError,
    onnx.shape_inference.InferenceError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the `onnx` package raises over a node that is not valid."""
_LONGEST = 200
"""Characters of a name in a message: a file may say any number."""
OWN = "opendml"
"""The domain of the parts that operators of ONNX are taken apart into."""


@dataclass(frozen=True)
class Node:
    """One node.

    Args:
        operator: ONNX's name of the operator.
        domain: "" for ONNX's own.
        version: of the operator set of its domain that the model imports.
        name: as errors say it; the node's own, or made from its first output.
        inputs, outputs: names of tensors, "" for absent ones.
        attributes: by name, as Python values; tensors and graphs as ONNX has them.
        opsets: the versions of all domains, for what a body of the node is made of.
        message: the node as the file has it.
    """

    operator: str
    domain: str
    version: int
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opsets: Mapping[str, int] = field(repr=False)
    message: onnx.NodeProto = field(repr=False)

    def __str__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        return f"node {self.name[:_LONGEST]!r} ({domain}{self.operator[:_LONGEST]}-{self.version})"

    @cached_property
    def kept(self) -> dict[object, Any]:
        """What is found out about the node once, for all traces, by who finds it out."""
        return {}

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names of all tensors that the node needs: its inputs, and what its graphs take from outside."""
        return frozenset(filter(None, self.inputs)) | captured(self.message)


def captured(message: onnx.NodeProto) -> frozenset[str]:
    """The tensors that a node's graphs (branches, bodies of loops) take from outside."""
    return frozenset().union(*(free_names(graph) for graph in graphs_of(message)))


def graphs_of(message: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    found = []
    for attribute in message.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            found.append(attribute.g)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            found.extend(attribute.graphs)
    return found


def free_names(graph: onnx.GraphProto) -> frozenset[str]:
    """The tensors that a graph reads and does not make."""
    made = {each.name for each in (*graph.input, *graph.initializer)}
    made.update(each.values.name for each in graph.sparse_initializer)
    read: set[str] = set()
    for message in graph.node:
        read.update(filter(None, message.input), captured(message))
        made.update(message.output)
    read.update(each.name for each in graph.output)
    return frozenset(read - made)


def domain_of(name: str) -> str:
    """ONNX's own domain has two names."""
    return "" if name == "ai.onnx" else name


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """The versions of the operator sets that a model or a function imports, by domain."""
    return {domain_of(each.domain): each.version for each in imports}


def nodes_of(messages: Iterable[onnx.NodeProto], opsets: Mapping[str, int]) -> tuple[Node, ...]:
    """The nodes of a graph or of a function's body, in their order."""
    return tuple(_node(message, opsets) for message in messages)


def _node(message: onnx.NodeProto, opsets: Mapping[str, int]) -> Node:
    domain = domain_of(message.domain)
    name = message.name or next(filter(None, message.output), message.op_type)
    attributes = {each.name: _attribute(each) for each in message.attribute if not each.ref_attr_name}
    inputs, outputs = tuple(message.input), tuple(message.output)
    version = opsets.get(domain, 1)
    return Node(message.op_type, domain, version, name, inputs, outputs, attributes, opsets, message)


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [each.decode("utf-8", "replace") for each in value]
    return list(value) if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS) else value
