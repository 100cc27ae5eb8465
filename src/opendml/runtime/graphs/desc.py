"""Descriptions of graphs as DirectML has them: nodes by number, and edges between them (DML_GRAPH_DESC)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from opendml.late_dataclass import dataclass
from opendml.runtime.described import buffer_text
from opendml.runtime.objects.operator import Operator
from opendml.spec.values import text_of
from opendml.spec.wording import shown


class _Described:
    __slots__ = ()

    def __repr__(self) -> str:
        values = [f"{each.name}={text_of(getattr(self, each.name))}" for each in fields(self)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(values)})"


@dataclass(frozen=True, slots=True, repr=False)
class OperatorNode(_Described):
    """A node that computes (DML_OPERATOR_GRAPH_NODE_DESC). The name is for debugging."""

    operator: Operator
    name: str = ""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ConstantNode:
    """A node whose output is known (DML_CONSTANT_DATA_GRAPH_NODE_DESC).

    Args:
        data: an array in row-major order of the tensor's type or of uint8, or any object with the buffer
            protocol. It is in host memory, and copied when the graph is compiled.
        name: a name for debugging.
    """

    data: Any
    name: str = ""

    def __repr__(self) -> str:
        name = "" if isinstance(self.name, str) and not self.name else f", name={shown(self.name)}"
        return f"ConstantNode({buffer_text(self.data)}{name})"


def content_of(node: ConstantNode) -> npt.NDArray[np.uint8]:
    """Return the bytes of a constant with valid data, in row-major order."""
    data = np.ascontiguousarray(node.data) if isinstance(node.data, np.ndarray) else node.data
    return np.frombuffer(data, np.uint8)


@dataclass(frozen=True, slots=True, repr=False)
class InputEdge(_Described):
    """From an input of the graph to an input of a node (DML_INPUT_GRAPH_EDGE_DESC). The inputs of a node are
    numbered in the desc's order, absent ones included."""

    graph_input_index: int
    to_node_index: int
    to_node_input_index: int
    name: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class OutputEdge(_Described):
    """From an output of a node to an output of the graph (DML_OUTPUT_GRAPH_EDGE_DESC)."""

    from_node_index: int
    from_node_output_index: int
    graph_output_index: int
    name: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class IntermediateEdge(_Described):
    """From an output of a node to an input of another (DML_INTERMEDIATE_GRAPH_EDGE_DESC).

    Both ends are the same bytes. They may have other types and sizes, if these have as many bytes.
    """

    from_node_index: int
    from_node_output_index: int
    to_node_index: int
    to_node_input_index: int
    name: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class GraphDesc(_Described):
    """A graph for Device.compile_graph.

    Args:
        input_count: inputs of the graph. One without an edge is absent: nothing is bound to it.
        output_count: outputs of the graph, each with one edge.
        nodes: in any order.
        input_edges: from the inputs of the graph; one input may lead to several nodes. Inputs of nodes with
            OWNED_BY_DML are connected to inputs of the graph, which are then bound at initialization.
        output_edges: to the outputs of the graph.
        intermediate_edges: between nodes, without a cycle.
    """

    input_count: int
    output_count: int
    nodes: Sequence[OperatorNode | ConstantNode]
    input_edges: Sequence[InputEdge] = ()
    output_edges: Sequence[OutputEdge] = ()
    intermediate_edges: Sequence[IntermediateEdge] = ()
