"""Models and compiled operators from the bytes of a file, by saying again what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from opendml.budget import Limits, meter, metered
from opendml.errors import Error, InvalidArgument
from opendml.frontends.json_files.node import Node
from opendml.frontends.saved.container import array_in, opened_file
from opendml.frontends.saved.values import desc_from_json, from_json
from opendml.model_files import read_file
from opendml.runtime.calls.arguments import CAST
from opendml.runtime.calls.call import Call, flattened
from opendml.runtime.calls.operator_call import told_of_call
from opendml.runtime.graphs.desc import (
    ConstantNode,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
)
from opendml.runtime.graphs.graph import Graph, call_in_graph
from opendml.runtime.graphs.indexing import Window
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.device import Device, as_device
from opendml.spec.enums import ExecutionFlags
from opendml.spec.schema import operators

_UINT32_MAX = 2**32 - 1


def load(
    path: str | PathLike[str], device: str | Device | None = None, *, limits: Limits | None = None
) -> Model | CompiledOperator:
    """The same as `opendml.load`."""
    try:
        file = Path(path)
    except TypeError as error:
        raise InvalidArgument(f"{path!r}: {error}") from error
    with metered(limits, name=str(path)) as limit, limit.timed("compile_seconds", path):
        data = read_file(file, path)
        return _located(path, data, device)


def _located(path: Any, data: bytes, device: str | Device | None) -> Model | CompiledOperator:
    """What the bytes of a file hold; errors name the file."""
    try:
        return loaded(data, device)
    except Error as error:
        raise error._within(path) from error


def loaded(data: bytes, device: str | Device | None = None) -> Model | CompiledOperator:
    """What the bytes of a file hold; see `load`."""
    program, content = opened_file(data)
    device = _device(program.member("device")) if device is None else as_device(device)
    kind = program.member("kind").string()
    if kind == "graph":
        return _graph(program, content, device)
    if kind not in ("graph_desc", "operator"):
        program.member("kind").fail('"graph", "graph_desc" or "operator"')
    flags = ExecutionFlags(program.member("flags").integer(0, sum(ExecutionFlags)))
    if kind == "operator":
        op = device.create_operator(desc_from_json(program.member("desc")))
        return device.compile_operator(op, flags)
    return device.compile_graph(_graph_desc(program, content, device), flags)


def _device(node: Node) -> Device:
    """A device as it was saved; the one that calls use by themselves, where that is such a one."""
    level, threads = node.member("feature_level").string(), node.optional("threads")
    usual = as_device(node.member("kind").string())
    wanted = Device(
        usual.kind, feature_level=level, threads=threads.integer(1, _UINT32_MAX) if threads else None
    )
    is_usual = (wanted.feature_level, wanted.threads) == (usual.feature_level, usual.threads)
    return usual if is_usual else wanted


def _graph(program: Node, content: memoryview, device: Device) -> Model:
    program.members(("kind", "device", "feature_level", "steps", "outputs"))
    graph = Graph(feature_level=program.member("feature_level").string())
    tensors: list[GraphTensor] = []
    meter().require("graph_parts", len(program.member("steps").elements()), "steps of the graph")
    for step in program.member("steps").elements():
        try:
            tensors += _made(step, graph, tensors, content)
        except Error as error:
            raise error if str(error).startswith(step.path) else error._within(step.path) from error
    outputs = {name: _tensor(number, tensors) for name, number in program.member("outputs").members().items()}
    return graph.compile(outputs, device)


def _made(step: Node, graph: Graph, tensors: Sequence[GraphTensor], content: memoryview) -> list[GraphTensor]:
    """The tensors that a step makes."""
    members = step.members()
    if "input" in members:
        step.members(("input", "data_type", "sizes", "strides"))
        type, sizes = step.member("data_type").string(), from_json(step.member("sizes"))
        return [graph.input(step.member("input").string(), type, sizes, strides=_optional(step, "strides"))]
    if "constant" in members:
        step.members(("constant",))
        return [graph.constant(array_in(step.member("constant"), content))]
    if "reinterpret" in members:
        step.members(("reinterpret", "sizes", "strides"))
        tensor, sizes = _tensor(step.member("reinterpret"), tensors), from_json(step.member("sizes"))
        return [tensor.reinterpret(sizes, strides=_optional(step, "strides"))]
    if "slice" in members:
        step.members(("slice", "first", "sizes", "strides"))
        tensor = _tensor(step.member("slice"), tensors)
        window = Window(
            _integers(step.member("first")),
            _integers(step.member("sizes")),
            _integers(step.member("strides")),
        )
        if not window.lies_in(tensor.sizes):
            step.fail(f"a window of a tensor of sizes {list(tensor.sizes)}")
        return [tensor._window(window)]
    return _called(step, tensors)


def _called(step: Node, tensors: Sequence[GraphTensor]) -> list[GraphTensor]:
    """The outputs of a call."""
    step.members(("call", "tensors", "attributes", "output_type", "sizes", "wanted"))
    facts = operators().get(step.member("call").string())
    if facts is None:
        step.member("call").fail("an operator of DirectML")
    optional = [output for output in facts.outputs if output.optional]
    given = [_given(each, tensors) for each in step.member("tensors").elements()]
    attributes = [from_json(each) for each in step.member("attributes").elements()]
    wanted = [each.boolean() for each in step.member("wanted").elements()]
    for what, values, fields in (
        ("tensors", given, facts.inputs),
        ("attributes", attributes, facts.attributes),
        ("wanted", wanted, optional),
    ):
        if len(values) != len(fields):
            step.member(what).fail(f"{len(fields)} of {facts.name}")
    told = told_of_call(facts.name, _optional(step, "output_type"), _optional(step, "sizes"), wanted)
    flat, lengths = flattened(facts.name, tuple(given))
    if not any(isinstance(each, GraphTensor) for each in flat):
        step.member("tensors").fail("a tensor of the graph at least")
    result = call_in_graph(Call(facts.name, flat, tuple(attributes), None, None, told, CAST, lengths))
    several = result if isinstance(result, tuple) else (result,)
    return [each for each in several if each is not None]


def _given(node: Node, tensors: Sequence[GraphTensor]) -> Any:
    """A tensor of a call, a number, None, or several of them."""
    match node.value:
        case None | bool():
            return node.value
        case int():
            return node.value
        case list():
            return tuple(_given(each, tensors) for each in node.elements())
        case dict() if "tensor" in node.value:
            node.members(("tensor",))
            return _tensor(node.member("tensor"), tensors)
        case dict():
            node.members(("float",))
            return node.member("float").number()
        case _:
            return node.number()


def _tensor(node: Node, tensors: Sequence[GraphTensor]) -> GraphTensor:
    number = node.integer(0, _UINT32_MAX)
    if number >= len(tensors):
        node.fail(f"one of the {len(tensors)} tensors that are there by then")
    return tensors[number]


def _integers(node: Node) -> tuple[int, ...]:
    return tuple(each.integer(-_UINT32_MAX, _UINT32_MAX) for each in node.elements())


def _optional(node: Node, name: str) -> Any:
    found = node.optional(name)
    return None if found is None else from_json(found)


def _graph_desc(program: Node, content: memoryview, device: Device) -> GraphDesc:
    program.members(
        (
            "kind",
            "device",
            "flags",
            "input_count",
            "output_count",
            "nodes",
            "input_edges",
            "output_edges",
            "intermediate_edges",
        )
    )
    meter().require("graph_parts", len(program.member("nodes").elements()), "nodes of the graph")
    return GraphDesc(
        program.member("input_count").integer(0, _UINT32_MAX),
        program.member("output_count").integer(0, _UINT32_MAX),
        [_node(node, content, device) for node in program.member("nodes").elements()],
        [InputEdge(*_edge(edge, 3)) for edge in program.member("input_edges").elements()],
        [OutputEdge(*_edge(edge, 3)) for edge in program.member("output_edges").elements()],
        [IntermediateEdge(*_edge(edge, 4)) for edge in program.member("intermediate_edges").elements()],
    )


def _node(node: Node, content: memoryview, device: Device) -> OperatorNode | ConstantNode:
    name = node.member("name").string()
    if node.optional("constant") is not None:
        return ConstantNode(array_in(node.member("constant"), content), name)
    return OperatorNode(device.create_operator(desc_from_json(node.member("desc"))), name)


def _edge(node: Node, count: int) -> tuple[Any, ...]:
    """The numbers of an edge, so many, and its name."""
    elements = node.elements()
    if len(elements) != count + 1:
        node.fail(f"{count} numbers and a name")
    return (*(each.integer(0, _UINT32_MAX) for each in elements[:-1]), elements[-1].string())
