"""The rules for graphs in DirectML's form, and what leads to what in one that keeps them.

The rules are those of DML_GRAPH_DESC's page; where it is silent: an input of a node has one edge at most, an
output of the graph exactly one, and a constant at least one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.desc import (
    ConstantNode,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
)
from opendml.runtime.memory.buffers import whole_buffer
from opendml.runtime.objects.operator import Operator
from opendml.runtime.objects.slots import Slot, slots_of
from opendml.spec.feature_level import full_name, method_since, value_since
from opendml.spec.schema import operator
from opendml.spec.wording import shown

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device

Port = tuple[int, int]
"""A node, and one of its inputs or outputs."""


@dataclass(slots=True)
class Wiring:
    """The edges of a graph by their ends.

    Args:
        inputs: the input slots of each node; none of a constant.
        outputs: the output slots of each node; none of a constant.
        sources: each connected input of a node: the number of the graph's input, or the port of a node.
        results: the port of each output of the graph.
        order: the nodes, each after those that it reads.
    """

    inputs: list[tuple[Slot, ...]] = field(default_factory=list)
    outputs: list[tuple[Slot, ...]] = field(default_factory=list)
    sources: dict[Port, int | Port] = field(default_factory=dict)
    results: dict[int, Port] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


def wiring_of(desc: GraphDesc, device: Device) -> Wiring:
    """The wiring of a valid graph.

    Raises:
        InvalidArgument: every rule that it breaks.
    """
    if not isinstance(desc, GraphDesc):
        raise InvalidArgument(f"compile_graph: {shown(desc)}; a GraphDesc is needed")
    first, level = method_since("COMPILE_GRAPH"), device.feature_level
    if level < first:
        raise InvalidArgument(f"compile_graph: exists from {full_name(first)}, not in {full_name(level)}")
    _raise(_malformed(desc, device))
    wiring = Wiring()
    for node in desc.nodes:
        of = node.operator.desc if isinstance(node, OperatorNode) else None
        wiring.inputs.append(slots_of(of, "INPUT_TENSOR") if of else ())
        wiring.outputs.append(slots_of(of, "OUTPUT_TENSOR") if of else ())
    _raise(_connect(desc, wiring))
    _raise([*_unconnected(desc, wiring), *_owned_problems(desc, wiring), *_size_problems(desc, wiring)])
    wiring.order = _ordered(len(desc.nodes), wiring)
    return wiring


def _raise(failures: Iterator[str] | Sequence[str]) -> None:
    found = list(failures)
    if found:
        raise InvalidArgument(f"graph.{message}" for message in found)


def _malformed(desc: GraphDesc, device: Device) -> Iterator[str]:
    """The mistakes that keep the desc from being read at all."""
    for name, least in (("input_count", 0), ("output_count", 1)):
        count = getattr(desc, name)
        if type(count) is not int or not least <= count <= _MOST:
            yield f"{name}: {shown(count)}; an integer from {least} to {_MOST} is needed"
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


_MOST = 65_536
"""Inputs or outputs of a graph: a count that is wrong must not take all memory."""

_EDGES: dict[str, type] = {
    "input_edges": InputEdge,
    "output_edges": OutputEdge,
    "intermediate_edges": IntermediateEdge,
}


def _connect(desc: GraphDesc, wiring: Wiring) -> Iterator[str]:
    """Enters all edges; yields what is wrong with them one by one."""
    for number, edge in enumerate(desc.input_edges):
        at = f"input_edges[{number}]"
        problems = [
            *_index_problem(f"{at}.graph_input_index", edge.graph_input_index, desc.input_count, "inputs"),
            *_input_problems(at, edge, desc, wiring),
        ]
        yield from problems
        if not problems:
            wiring.sources[edge.to_node_index, edge.to_node_input_index] = edge.graph_input_index
    for number, between in enumerate(desc.intermediate_edges):
        at = f"intermediate_edges[{number}]"
        problems = [*_output_problems(at, between, desc, wiring), *_input_problems(at, between, desc, wiring)]
        yield from problems
        if not problems:
            source = between.from_node_index, between.from_node_output_index
            wiring.sources[between.to_node_index, between.to_node_input_index] = source
    for number, out in enumerate(desc.output_edges):
        at, index = f"output_edges[{number}]", out.graph_output_index
        problems = [
            *_output_problems(at, out, desc, wiring),
            *_index_problem(f"{at}.graph_output_index", index, desc.output_count, "outputs"),
        ]
        if not problems and isinstance(desc.nodes[out.from_node_index], ConstantNode):
            problems = [f"{at}: from a constant; outputs of the graph come from operators"]
        if not problems and index in wiring.results:
            problems = [f"{at}: outputs[{index}] of the graph has an edge already"]
        yield from problems
        if not problems:
            wiring.results[index] = out.from_node_index, out.from_node_output_index


def _index_problem(name: str, index: Any, count: int, what: str) -> Iterator[str]:
    if type(index) is not int or not 0 <= index < count:
        yield f"{name}: {shown(index)}; there are {count} {what}, the first is 0"


def _input_problems(
    at: str, edge: InputEdge | IntermediateEdge, desc: GraphDesc, wiring: Wiring
) -> Iterator[str]:
    node, index = edge.to_node_index, edge.to_node_input_index
    problems = list(_index_problem(f"{at}.to_node_index", node, len(desc.nodes), "nodes"))
    if not problems:
        slots = wiring.inputs[node]
        problems = list(_index_problem(f"{at}.to_node_input_index", index, len(slots), "inputs of the node"))
    if not problems and slots[index].tensor is None:
        problems = [f"{at}: to {_input_name(desc, wiring, (node, index))}, which is absent in its desc"]
    if not problems and (node, index) in wiring.sources:
        problems = [f"{at}: {_input_name(desc, wiring, (node, index))} has an edge already"]
    yield from problems


def _output_problems(
    at: str, edge: OutputEdge | IntermediateEdge, desc: GraphDesc, wiring: Wiring
) -> Iterator[str]:
    node, index = edge.from_node_index, edge.from_node_output_index
    problems = list(_index_problem(f"{at}.from_node_index", node, len(desc.nodes), "nodes"))
    if not problems:
        slots = wiring.outputs[node]
        count = len(slots) if isinstance(desc.nodes[node], OperatorNode) else 1
        name = f"{at}.from_node_output_index"
        problems = list(_index_problem(name, index, count, "outputs of the node"))
        if not problems and slots and slots[index].tensor is None:
            problems = [
                f"{at}: from {_output_name(desc, wiring, (node, index))}, which is absent in its desc"
            ]
    yield from problems


def _unconnected(desc: GraphDesc, wiring: Wiring) -> Iterator[str]:
    """Tensors without an edge. An output that the operator need not have may go nowhere."""
    used = {source for source in wiring.sources.values() if isinstance(source, tuple)}
    used |= set(wiring.results.values())
    for number, node in enumerate(desc.nodes):
        for index, slot in enumerate(wiring.inputs[number]):
            if slot.tensor is not None and (number, index) not in wiring.sources:
                yield f"{_input_name(desc, wiring, (number, index))}: no edge leads to it"
        if isinstance(node, ConstantNode):
            if (number, 0) not in used:
                yield f"nodes[{number}]: no edge leaves this constant"
            continue
        facts = operator(node.operator.desc.operator)
        for index, slot in enumerate(wiring.outputs[number]):
            needed = slot.tensor is not None and not facts.field(slot.field).optional
            if needed and (number, index) not in used:
                yield f"{_output_name(desc, wiring, (number, index))}: no edge leaves it"
    for index in range(desc.output_count):
        if index not in wiring.results:
            yield f"outputs[{index}]: no edge leads to it"


def _owned_problems(desc: GraphDesc, wiring: Wiring) -> Iterator[str]:
    owned: dict[int, bool] = {}
    for (node, index), source in wiring.sources.items():
        is_owned = wiring.inputs[node][index].is_owned
        name = _input_name(desc, wiring, (node, index))
        if isinstance(source, tuple):
            if is_owned:
                yield f"{name}: OWNED_BY_DML tensors must be connected to inputs of the graph"
        elif owned.setdefault(source, is_owned) != is_owned:
            yield f"{name}: inputs[{source}] of the graph leads to tensors with and without OWNED_BY_DML"


def _size_problems(desc: GraphDesc, wiring: Wiring) -> Iterator[str]:
    """Both ends of an edge have the same number of bytes."""
    for port, source in wiring.sources.items():
        tensor = wiring.inputs[port[0]][port[1]].tensor
        if not isinstance(source, tuple) or tensor is None:
            continue
        node = desc.nodes[source[0]]
        if isinstance(node, ConstantNode):
            name, type = f"nodes[{source[0]}]", ScalarType.of(tensor.data_type)
            given = whole_buffer(node.data, False, f"graph.{name}.data", type).size
        else:
            output = wiring.outputs[source[0]][source[1]].tensor
            given, name = output.size_in_bytes if output else 0, _output_name(desc, wiring, source)
        if given != tensor.size_in_bytes:
            yield (
                f"{_input_name(desc, wiring, port)}: {tensor.size_in_bytes} bytes, "
                f"but {name}, which leads to it, has {given}"
            )


def _ordered(count: int, wiring: Wiring) -> list[int]:
    """The nodes, each after those that it reads."""
    reads: list[set[int]] = [set() for _ in range(count)]
    readers: list[set[int]] = [set() for _ in range(count)]
    for (node, _), source in wiring.sources.items():
        if isinstance(source, tuple):
            reads[node].add(source[0])
            readers[source[0]].add(node)
    order: list[int] = []
    waiting = list(map(len, reads))
    ready = [node for node in range(count) if not waiting[node]]
    while ready:
        order += ready
        following = []
        for node in ready:
            for reader in readers[node]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    following.append(reader)
        ready = sorted(following)
    if len(order) < count:
        left = [node for node in range(count) if waiting[node]]
        raise InvalidArgument(f"graph.nodes{left}: they are, or wait for, a cycle of edges")
    return order


def _input_name(desc: GraphDesc, wiring: Wiring, port: Port) -> str:
    return f"{node_name(desc, port[0])}.{wiring.inputs[port[0]][port[1]].name}"


def _output_name(desc: GraphDesc, wiring: Wiring, port: Port) -> str:
    return f"{node_name(desc, port[0])}.{wiring.outputs[port[0]][port[1]].name}"


def node_name(desc: GraphDesc, number: int) -> str:
    """A node in messages and in debugging: "nodes[2].ACTIVATION_CELU" or, if it has a name,
    "nodes[2:name].ACTIVATION_CELU"."""
    node = desc.nodes[number]
    name = f"nodes[{number}:{node.name}]" if node.name else f"nodes[{number}]"
    return f"{name}.{node.operator.desc.operator}" if isinstance(node, OperatorNode) else name
