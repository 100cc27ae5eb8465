"""Nodes of an ONNX graph, with attributes as Python values and resolved versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import Message  # type: ignore[import-untyped,unused-ignore]

from opendml.across_forks import cached_property
from opendml.frontends.onnx.attribute_values import value_of
from opendml.frontends.onnx.attributes import defaults_of
from opendml.frontends.onnx.element_types import dtype_of
from opendml.frontends.onnx.package import is_imported, onnx
from opendml.frontends.onnx.schemas import whole_schema_of
from opendml.late_dataclass import dataclass

_LONGEST = 200
"""Characters of a name that a message shows."""
_CONTAINERS = frozenset({"AttributeProto", "FunctionProto", "GraphProto", "NodeProto", "SparseTensorProto"})
"""Messages that may contain nodes or tensors."""
M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class OnnxNode:
    """A node of a graph, of a function's body or of a branch.

    Args:
        operator: ONNX's name of the operator.
        domain: "" for ONNX's own.
        version: of the operator set of its domain that the model imports.
        name: its name in errors: its own, or that of its first output.
        inputs, outputs: names of tensors, "" for absent ones.
        attributes: Python values by name; tensors and graphs are messages.
        opsets: the versions of all domains, for the nodes of its graphs.
        message: the node's message.
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

    def attribute(self, name: str) -> Any:
        """Return an attribute, or its default in the operator's schema; None if it has none."""
        if name in self.attributes:
            return self.attributes[name]
        return defaults_of(self.domain, self.operator, self.version).get(name)

    def type_attribute(self, name: str) -> np.dtype[Any] | None:
        """Return the element type that an attribute names; None if it is 0 or absent.

        Raises:
            KeyError: there is no such type.
        """
        named = self.attribute(name)
        return dtype_of(named) if named else None

    @property
    def schema(self) -> onnx.defs.OpSchema | None:
        """ONNX's whole schema of the operator, if there is one."""
        return whole_schema_of(self.operator, self.version, self.domain)

    @cached_property
    def cache(self) -> dict[object, Any]:
        """Results of analyses that all traces share, by the analysis."""
        return {}

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names of all tensors that the node reads: its inputs, and those that its graphs capture."""
        return frozenset(filter(None, self.inputs)) | captured(self.message)


def onnx_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the exceptions that the `onnx` package raises for an invalid node, and others."""
    found = (*others, LookupError, RuntimeError, TypeError, ValueError)
    if not is_imported():
        return found
    return (
        *found,
        onnx.checker.ValidationError,
        onnx.defs.SchemaError,
        onnx.shape_inference.InferenceError,
    )


def messages_in(root: Message, kind: type[M]) -> Iterator[M]:
    """Yield all messages of a kind within a model, a graph or a function, at any depth."""
    waiting: list[Message] = [root]
    while waiting:
        message = waiting.pop()
        for name, is_wanted, is_container in _message_fields(message.DESCRIPTOR, kind.DESCRIPTOR):
            found = getattr(message, name)
            if isinstance(found, Message):
                found = [found] if message.HasField(name) else []
            if is_wanted:
                yield from found
            if is_container:
                waiting.extend(found)


@cache
def _message_fields(owner: Any, kind: Any) -> tuple[tuple[str, bool, bool], ...]:
    """Return the fields with messages of a kind or with containers: names, and which of both they have."""
    found = ((each.name, each.message_type) for each in owner.fields if each.message_type)
    facts = ((name, type is kind, type.name in _CONTAINERS) for name, type in found)
    return tuple(each for each in facts if any(each[1:]))


def captured(message: onnx.NodeProto) -> frozenset[str]:
    """Return the tensors that a node's graphs capture from outside."""
    return frozenset().union(*(free_names(graph) for graph in graphs_of(message)))


def graphs_of(message: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the graphs among a node's attributes."""
    found = []
    for attribute in message.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            found.append(attribute.g)
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            found.extend(attribute.graphs)
    return found


def free_names(graph: onnx.GraphProto) -> frozenset[str]:
    """Return the tensors that a graph reads and does not make."""
    made = {each.name for each in (*graph.input, *graph.initializer)}
    made.update(each.values.name for each in graph.sparse_initializer)
    read: set[str] = set()
    for message in graph.node:
        read.update(filter(None, message.input), captured(message))
        made.update(message.output)
    read.update(each.name for each in graph.output)
    return frozenset(read - made)


def domain_of(name: str) -> str:
    """Return a domain, where "ai.onnx" and "" are the same."""
    return "" if name == "ai.onnx" else name


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return the imported versions of operator sets by domain."""
    return {domain_of(each.domain): each.version for each in imports}


def nodes_of(messages: Iterable[onnx.NodeProto], opsets: Mapping[str, int]) -> tuple[OnnxNode, ...]:
    """Return the nodes of a graph or of a function's body, in order."""
    return tuple(_node(message, opsets) for message in messages)


def _node(message: onnx.NodeProto, opsets: Mapping[str, int]) -> OnnxNode:
    domain = domain_of(message.domain)
    name = message.name or next(filter(None, message.output), message.op_type)
    attributes = {each.name: value_of(each) for each in message.attribute if not each.ref_attr_name}
    inputs, outputs = tuple(message.input), tuple(message.output)
    version = opsets.get(domain, 1)
    return OnnxNode(message.op_type, domain, version, name, inputs, outputs, attributes, opsets, message)
