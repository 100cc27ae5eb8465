"""Check a GraphDesc, find what each input of its nodes reads, and build the graph.

The rules are those of DML_GRAPH_DESC's page. Where it is silent, an input of a node has one edge at most, an
output of the graph exactly one, and a constant at least one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as data_field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, TypeGuard

from opendml.errors import InvalidArgument
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.base import GraphBase
from opendml.runtime.graphs.desc import (
    ConstantNode,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
    content_of,
)
from opendml.runtime.graphs.steps import ConstantStep
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.memory.buffers import whole_buffer
from opendml.runtime.objects.operator import Operator
from opendml.runtime.objects.tensor_fields import TensorField, tensor_fields
from opendml.runtime.program import buffer_layout_of
from opendml.spec.feature_level import full_name, method_since, value_since
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device

Port = tuple[int, int]
"""A node, and one of its inputs or outputs."""

MOST_TENSORS = 65_536
"""Inputs or outputs of a graph, at most. A count that is wrong must not take all memory."""


@dataclass(slots=True)
class Wiring:
    """The edges of a graph by their ends.

    Args:
        desc: the graph.
        inputs: the inputs of each node; none of a constant.
        outputs: the outputs of each node; none of a constant.
        sources: the graph's input, or the output of a node, that each input of a node reads.
        results: the output of a node that each output of the graph is.
        order: the nodes, each after those that it reads.
    """

    desc: GraphDesc
    inputs: list[tuple[TensorField, ...]] = data_field(default_factory=list)
    outputs: list[tuple[TensorField, ...]] = data_field(default_factory=list)
    sources: dict[Port, int | Port] = data_field(default_factory=dict)
    results: dict[int, Port] = data_field(default_factory=dict)
    order: list[int] = data_field(default_factory=list)

    def input_name(self, port: Port) -> str:
        """Return the name of an input of a node."""
        return f"{self.node_name(port[0])}.{self.inputs[port[0]][port[1]].name}"

    def output_name(self, port: Port) -> str:
        """Return the name of an output of a node."""
        fields = self.outputs[port[0]]
        return f"{self.node_name(port[0])}.{fields[port[1]].name}" if fields else self.node_name(port[0])

    def node_name(self, number: int) -> str:
        """Return the name of a node, such as "nodes[2].ACTIVATION_CELU" or
        "nodes[2:blur].ACTIVATION_CELU"."""
        node = self.desc.nodes[number]
        label = label_of(number, node.name)
        return f"{label}.{node.operator.desc.operator}" if isinstance(node, OperatorNode) else label


def label_of(number: int, name: str) -> str:
    """Return the number of a node, with its name if it has one: "nodes[2]" or "nodes[2:blur]"."""
    return f"nodes[{number}:{name}]" if name else f"nodes[{number}]"


def wiring_of(desc: GraphDesc, device: Device) -> Wiring:
    """Return the wiring of a valid graph.

    Raises:
        InvalidArgument: every rule that it breaks.
    """
    if not isinstance(desc, GraphDesc):
        raise InvalidArgument(f"compile_graph: {shown(desc)}; a GraphDesc is needed")
    first, level = method_since("COMPILE_GRAPH"), device.feature_level
    if level < first:
        raise InvalidArgument(f"compile_graph: exists from {full_name(first)}, not in {full_name(level)}")
    _require_none(_malformed(desc, device))
    wiring = Wiring(desc)
    for node in desc.nodes:
        of = node.operator.desc if isinstance(node, OperatorNode) else None
        wiring.inputs.append(tensor_fields(of, "INPUT_TENSOR") if of else ())
        wiring.outputs.append(tensor_fields(of, "OUTPUT_TENSOR") if of else ())
    _require_none(_connect(wiring))
    _require_none([*_unconnected(wiring), *_owned_problems(wiring), *_size_problems(wiring)])
    reads: dict[int, list[int]] = {number: [] for number in range(len(desc.nodes))}
    for (node_number, _), source in wiring.sources.items():
        if isinstance(source, tuple):
            reads[node_number].append(source[0])
    wiring.order = _ordered(reads)
    return wiring


def _require_none(failures: Iterator[str] | Sequence[str]) -> None:
    found = list(failures)
    if found:
        raise InvalidArgument(f"graph.{message}" for message in found)


def _malformed(desc: GraphDesc, device: Device) -> Iterator[str]:
    """Yield the mistakes that keep the desc from being read at all."""
    for name, least in (("input_count", 0), ("output_count", 1)):
        count = getattr(desc, name)
        if type(count) is not int or not least <= count <= MOST_TENSORS:
            yield f"{name}: {shown(count)}; an integer from {least} to {MOST_TENSORS} is needed"
    if not isinstance(desc.nodes, Sequence) or not desc.nodes:
        yield f"nodes: {shown(desc.nodes)}; a list of one or more nodes is needed"
        return
    for number, node in enumerate(desc.nodes):
        if isinstance(node, OperatorNode | ConstantNode) and not isinstance(node.name, str):
            yield f"nodes[{number}].name: {shown(node.name)}; a string is needed"
        if isinstance(node, ConstantNode):
            first, level = value_since("GRAPH_NODE_TYPE", "CONSTANT"), device.feature_level
            if level < first:
                exists = f"exists from {full_name(first)}, not in {full_name(level)}"
                yield f"nodes[{number}]: ConstantNode; {exists}"
            try:
                whole_buffer(node.data, False, f"nodes[{number}].data")
            except InvalidArgument as error:
                yield str(error)
        elif not isinstance(node, OperatorNode) or not isinstance(node.operator, Operator):
            yield f"nodes[{number}]: {shown(node)}; an OperatorNode or a ConstantNode is needed"
        elif node.operator.device is not device:
            yield f"nodes[{number}]: {node.operator._title} was created by another device"
    for name, kind in _EDGES.items():
        edges = getattr(desc, name)
        if not isinstance(edges, Sequence) or not all(isinstance(edge, kind) for edge in edges):
            yield f"{name}: {shown(edges)}; a list of {kind.__name__} is needed"


_EDGES: dict[str, type] = {
    "input_edges": InputEdge,
    "intermediate_edges": IntermediateEdge,
    "output_edges": OutputEdge,
}


def _connect(wiring: Wiring) -> Iterator[str]:
    """Add all edges, and yield what is wrong with each."""
    desc = wiring.desc
    for name in _EDGES:
        for number, edge in enumerate(getattr(desc, name)):
            at, problems = f"{name}[{number}]", list[str]()
            source: Any = None
            if isinstance(edge, InputEdge):
                source = edge.graph_input_index
                problems += _index_problems(f"{at}.graph_input_index", source, desc.input_count, "inputs")
            else:
                source = edge.from_node_index, edge.from_node_output_index
                problems += _port_problems(wiring, at, "from", "output", source)
            if isinstance(edge, OutputEdge):
                output = edge.graph_output_index
                problems += _index_problems(f"{at}.graph_output_index", output, desc.output_count, "outputs")
                if not problems and not _computes(desc.nodes[source[0]]):
                    problems = [f"{at}: from a constant; outputs of the graph come from operators"]
                if not problems and wiring.results.setdefault(output, source) is not source:
                    problems = [f"{at}: outputs[{output}] of the graph has an edge already"]
            else:
                port = edge.to_node_index, edge.to_node_input_index
                wrong = _port_problems(wiring, at, "to", "input", port)
                if not wrong and port in wiring.sources:
                    wrong = [f"{at}: {wiring.input_name(port)} has an edge already"]
                problems += wrong
                if not problems:
                    wiring.sources[port] = source
            yield from problems


def _index_problems(name: str, index: Any, count: int, what: str) -> list[str]:
    if type(index) is int and 0 <= index < count:
        return []
    return [f"{name}: {shown(index)}; there are {count} {what}, the first is 0"]


def _port_problems(wiring: Wiring, at: str, side: str, kind: str, port: Port) -> list[str]:
    """Return what is wrong with an end of an edge at a node."""
    nodes = wiring.desc.nodes
    if problems := _index_problems(f"{at}.{side}_node_index", port[0], len(nodes), "nodes"):
        return problems
    fields = (wiring.inputs if kind == "input" else wiring.outputs)[port[0]]
    count = 1 if kind == "output" and not _computes(nodes[port[0]]) else len(fields)
    name = f"{at}.{side}_node_{kind}_index"
    if problems := _index_problems(name, port[1], count, f"{kind}s of the node"):
        return problems
    if fields and fields[port[1]].tensor is None:
        named = wiring.input_name(port) if kind == "input" else wiring.output_name(port)
        return [f"{at}: {side} {named}, which is absent in its desc"]
    return []


def _computes(node: Any) -> TypeGuard[OperatorNode]:
    return isinstance(node, OperatorNode)


def _unconnected(wiring: Wiring) -> Iterator[str]:
    """Yield tensors without an edge. An output that the operator need not have may go nowhere."""
    used = {source for source in wiring.sources.values() if isinstance(source, tuple)}
    used |= set(wiring.results.values())
    for number, node in enumerate(wiring.desc.nodes):
        for index, field in enumerate(wiring.inputs[number]):
            if field.tensor is not None and (number, index) not in wiring.sources:
                yield f"{wiring.input_name((number, index))}: no edge leads to it"
        if not _computes(node):
            if (number, 0) not in used:
                yield f"nodes[{number}]: no edge leaves this constant"
            continue
        facts = operator(node.operator.desc.operator)
        for index, field in enumerate(wiring.outputs[number]):
            needed = field.tensor is not None and not facts.field(field.field).optional
            if needed and (number, index) not in used:
                yield f"{wiring.output_name((number, index))}: no edge leaves it"
    for index in range(wiring.desc.output_count):
        if index not in wiring.results:
            yield f"outputs[{index}]: no edge leads to it"


def _owned_problems(wiring: Wiring) -> Iterator[str]:
    owned: dict[int, bool] = {}
    for port, source in wiring.sources.items():
        is_owned = wiring.inputs[port[0]][port[1]].is_owned
        if isinstance(source, tuple):
            if is_owned:
                needed = "OWNED_BY_DML tensors must be connected to inputs of the graph"
                yield f"{wiring.input_name(port)}: {needed}"
        elif owned.setdefault(source, is_owned) != is_owned:
            leads = f"inputs[{source}] of the graph leads to tensors with and without OWNED_BY_DML"
            yield f"{wiring.input_name(port)}: {leads}"


def _size_problems(wiring: Wiring) -> Iterator[str]:
    """Yield the edges whose ends have different numbers of bytes."""
    for port, source in wiring.sources.items():
        tensor = wiring.inputs[port[0]][port[1]].tensor
        if not isinstance(source, tuple) or tensor is None:
            continue
        node = wiring.desc.nodes[source[0]]
        if isinstance(node, ConstantNode):
            type = ScalarType.of(tensor.data_type)
            given = whole_buffer(node.data, False, f"graph.nodes[{source[0]}].data", type).size
        else:
            output = wiring.outputs[source[0]][source[1]].tensor
            given = output.size_in_bytes if output else 0
        if given != tensor.size_in_bytes:
            leads = f"but {wiring.output_name(source)}, which leads to it, has {given}"
            yield f"{wiring.input_name(port)}: {tensor.size_in_bytes} bytes, {leads}"


def _ordered(reads: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the nodes, each after those that it reads."""
    order, sorter = list[int](), TopologicalSorter(reads)
    with suppress(CycleError):  # what no cycle blocks is still there
        sorter.prepare()
    while ready := sorted(sorter.get_ready()):
        order += ready
        sorter.done(*ready)
    if len(order) < len(reads):
        left = sorted(reads.keys() - set(order))
        raise InvalidArgument(f"graph.nodes{left}: they are, or wait for, a cycle of edges")
    return order


def graph_of_desc(desc: GraphDesc, device: Device) -> tuple[GraphBase, list[GraphTensor]]:
    """Return a graph over buffers, and its outputs.

    Raises:
        InvalidArgument: every rule for graphs that the desc breaks.
        Unsupported: one of its operators cannot be run yet.
    """
    wiring = wiring_of(desc, device)
    readers: dict[int | Port, list[TensorDesc]] = {}
    for (reader, index), source in wiring.sources.items():
        tensor = wiring.inputs[reader][index].tensor
        if tensor is not None:
            readers.setdefault(source, []).append(tensor)
    graph = GraphBase(device.feature_level)
    tensors: dict[int | Port, GraphTensor] = {}
    for position in range(desc.input_count):
        name = f"inputs[{position}]"
        if position in readers:
            tensors[position] = graph._input(name, _widest(readers[position]))
        else:
            graph._inputs[name] = None
    for number, node in enumerate(desc.nodes):
        if isinstance(node, ConstantNode):
            data = content_of(node).copy()
            step = ConstantStep(data, readers[number, 0][0], is_unchanging=True)
            tensors[number, 0] = graph._constant(step, packed(ScalarType.UINT8, data.shape))
    for number in wiring.order:
        node = desc.nodes[number]
        if isinstance(node, OperatorNode):
            sources = [wiring.sources.get((number, index)) for index in range(len(wiring.inputs[number]))]
            read = [None if source is None else tensors[source] for source in sources]
            made = graph._operator(node.operator.desc, read, label_of(number, node.name))
            present = [index for index, each in enumerate(wiring.outputs[number]) if each.tensor is not None]
            tensors |= {(number, index): each for index, each in zip(present, made, strict=True)}
    return graph, [tensors[wiring.results[number]] for number in range(desc.output_count)]


def _widest(tensors: Sequence[TensorDesc]) -> TensorDesc:
    """Return the tensor that reaches furthest, with the most bytes and the greatest alignment of all."""
    widest = max(tensors, key=lambda tensor: buffer_layout_of(tensor).span[1])
    size = max(tensor.size_in_bytes for tensor in tensors)
    alignment = max(tensor.guaranteed_base_offset_alignment for tensor in tensors)
    if (size, alignment) == (widest.size_in_bytes, widest.guaranteed_base_offset_alignment):
        return widest
    return TensorDesc(
        widest.data_type,
        widest.sizes,
        widest.strides,
        widest.flags,
        total_tensor_size_in_bytes=size,
        guaranteed_base_offset_alignment=alignment,
    )
