"""What must hold of a model before it is traced: the rules of ONNX on which the tracer relies.

Contents of tensors are checked where they are read, sizes and types where nodes are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

import onnx

from opendml.budget import meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.node import domain_of, graphs_of, opsets_of

_MOST_LEVELS = 30
"""Of graphs in each other; files of more cannot be parsed."""


def require_valid(model: onnx.ModelProto, name: str) -> None:
    """Checks a model.

    Args:
        name: what errors call it.

    Raises:
        InvalidArgument: names that are there twice, functions that call themselves, attributes of wrong
            types, and the like.
        Unsupported: operator sets that are too new.
        LimitExceeded: functions that amount to too many nodes.
    """
    try:
        opsets = _checked_opsets(model.opset_import)
        _require_graphs([model.graph], opsets)
        for function in model.functions:
            _require_text("a function", [function.name, function.domain, function.overload])
            _require_text("a tensor", [*function.input, *function.output])
            _require_unique("tensor", (name for node in function.node for name in node.output if name))
            for node in function.node:
                own = {**opsets, **_checked_opsets(function.opset_import)}
                _require_node(node, own)
                _require_graphs(graphs_of(node), own)
        _require_functions(model)
        for tensor in tensors_of(model):
            _require_tensor(tensor)
    except Error as error:
        raise error._within(name) from error


def tensors_of(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """All tensors that a model stores."""
    for function in model.functions:
        yield from _attribute_tensors(function.attribute_proto)
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    graphs = [model.graph, *(graph for node in nodes for graph in _all_graphs(graphs_of(node)))]
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        nodes.extend(graph.node if graph is not model.graph else ())
    for node in nodes:
        yield from _attribute_tensors(node.attribute)


def _attribute_tensors(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        sparse = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
        for each in (*sparse, *attribute.sparse_tensors):
            yield from (each.values, each.indices)


def _all_graphs(outermost: Iterable[onnx.GraphProto]) -> Iterator[onnx.GraphProto]:
    """Graphs, and the graphs in their nodes."""
    waiting = [(graph, 1) for graph in outermost]
    while waiting:
        graph, level = waiting.pop()
        if level > _MOST_LEVELS:
            raise InvalidArgument(f"graphs are nested in more than {_MOST_LEVELS} levels")
        yield graph
        waiting.extend((inner, level + 1) for node in graph.node for inner in graphs_of(node))


def _checked_opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    _require_text("an operator set", (each.domain for each in imports))
    opsets, newest = opsets_of(imports), onnx.defs.onnx_opset_version()
    version = opsets.get("")
    if version is not None and version < 1:
        raise InvalidArgument(f"opset {version}; ONNX's operator sets begin with 1")
    if version is not None and version > newest:
        raise Unsupported(f"opset {version}; the onnx package that is installed knows opsets up to {newest}")
    return opsets


def _require_graphs(graphs: Iterable[onnx.GraphProto], opsets: Mapping[str, int]) -> None:
    for graph in list(_all_graphs(graphs)):  # how deep they are is checked first
        inputs = [each.name for each in graph.input]
        stored = [each.name for each in graph.initializer]
        stored += [each.values.name for each in graph.sparse_initializer]
        made = [name for node in graph.node for name in node.output if name]
        _require_text("a tensor", [*inputs, *stored, *(each.name for each in graph.output)])
        _require_unique("input", inputs)
        _require_unique("initializer", stored)
        _require_unique("tensor", [*made, *{*inputs, *stored}])
        for value in (*graph.input, *graph.output):
            element = value.type.tensor_type.elem_type
            if element not in onnx.TensorProto.DataType.values():
                raise InvalidArgument(f"{value.name!r} is of element type {element}, which ONNX has not")
        for node in graph.node:
            _require_node(node, opsets)


def _require_text(what: str, names: Iterable[object]) -> None:
    """Checks that names are text: protobuf gives out bytes where they are not."""
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgument(f"{what} has the name {name!r}, which is not UTF-8")


def _require_unique(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidArgument(f"{kind} {name!r} is there twice; names must be unique")
        seen.add(name)


@cache
def _schema(operator: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(operator, version, domain)
    except (onnx.defs.SchemaError, TypeError):  # the latter of a version that is no 32-bit number
        return None


def _require_node(node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
    """Checks what a node has against its operator's schema, where ONNX has one."""
    words = [node.name, node.op_type, node.domain, node.overload, *node.input, *node.output]
    _require_text("a node", [*words, *(each.name for each in node.attribute)])
    domain = domain_of(node.domain)
    text = f"node {node.name or next(filter(None, node.output), node.op_type)!r} ({node.op_type})"
    if not domain and "" not in opsets:
        raise InvalidArgument(f"{text}: the model imports no operator set of ONNX")
    schema = _schema(node.op_type, opsets.get(domain, 1), domain)
    if schema is None:
        return
    for kind, names, least, most in (
        ("inputs", node.input, schema.min_input, schema.max_input),
        ("outputs", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(names) <= most:
            raise InvalidArgument(f"{text}: {len(names)} {kind}; the operator has {least} to {most}")
    _require_attributes(node, schema, text)


def _require_attributes(node: onnx.NodeProto, schema: onnx.defs.OpSchema, text: str) -> None:
    given = {each.name: each for each in node.attribute}
    unknown = [name for name in given if name not in schema.attributes and not name.startswith("__")]
    if unknown:
        names = ", ".join(sorted(schema.attributes)) or "none"
        raise InvalidArgument(f"{text}: attribute {unknown[0]!r} is unknown; the operator has {names}")
    for name, declared in schema.attributes.items():
        if name not in given:
            if declared.required:
                raise InvalidArgument(f"{text}: attribute {name} is missing")
            continue
        type = given[name].type
        wanted = int(declared.type.value)
        if type != wanted:
            names = onnx.AttributeProto.AttributeType
            found = names.Name(type) if type in names.values() else str(type)
            raise InvalidArgument(
                f"{text}: attribute {name} is of type {found}; must be {names.Name(wanted)}"
            )


def _require_functions(model: onnx.ModelProto) -> None:
    """Functions must not call themselves, and written out be of a size that can be compiled."""
    calls: dict[tuple[str, str, str], list[tuple[str, str, str]]] = {}
    for function in model.functions:
        key = (domain_of(function.domain), function.name, function.overload)
        if key in calls:
            raise InvalidArgument(f"function {function.name!r} is there twice; names must be unique")
        calls[key] = _calls(function.node)
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        raise InvalidArgument(f"function {error.args[1][0][1]!r} calls itself") from error
    sizes: dict[tuple[str, str, str], int] = {}
    for key in order:
        sizes[key] = 1 + sum(sizes[each] for each in calls.get(key, ()))
    count = sum(sizes.get(key, 1) for key in _calls(model.graph.node))
    meter().require("graph_parts", count, "nodes with all functions written out")


def _calls(nodes: Iterable[onnx.NodeProto]) -> list[tuple[str, str, str]]:
    """What nodes call, those too of their graphs."""
    every = list(nodes)
    every += [inner for node in every for graph in _all_graphs(graphs_of(node)) for inner in graph.node]
    return [(domain_of(node.domain), node.op_type, node.overload) for node in every]


def _require_tensor(tensor: onnx.TensorProto) -> None:
    """Checks that a tensor is all there; that of a file of its own has been read by now."""
    name = f"tensor {tensor.name!r}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise InvalidArgument(f"{name} lies in a file of its own; such models are loaded by their path")
    if min(tensor.dims, default=0) < 0:
        raise InvalidArgument(f"{name} has sizes {list(tensor.dims)}; must not be negative")
