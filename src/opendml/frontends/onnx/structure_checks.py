"""Rules of ONNX that a model must obey before it is traced.

Contents of tensors are checked where they are read, and sizes and types where nodes are converted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from opendml.budget import meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.node import domain_of, graphs_of, messages_in, opsets_of
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.schemas import NEWEST_IN_TABLE, Schema, schema_of

_MOST_LEVELS = 30
"""Greatest number of nested graphs; protobuf cannot parse files with more."""


def require_valid(model: onnx.ModelProto, name: str) -> None:
    """Check that a model obeys ONNX's rules.

    Args:
        model: the model.
        name: its name in errors.

    Raises:
        InvalidArgument: the model breaks a rule, such as unique names, acyclic functions or attribute types.
        Unsupported: an operator set is too new.
        LimitExceeded: inlined functions have too many nodes.
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
        for tensor in messages_in(model, onnx.TensorProto):
            _require_tensor(tensor)
    except Error as error:
        raise error._within(name) from error


def _all_graphs(outermost: Iterable[onnx.GraphProto]) -> Iterator[onnx.GraphProto]:
    """Yield graphs, and the graphs in their nodes."""
    waiting = [(graph, 1) for graph in outermost]
    while waiting:
        graph, level = waiting.pop()
        if level > _MOST_LEVELS:
            raise InvalidArgument(f"graphs are nested in more than {_MOST_LEVELS} levels")
        yield graph
        waiting.extend((inner, level + 1) for node in graph.node for inner in graphs_of(node))


def _checked_opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    _require_text("an operator set", (each.domain for each in imports))
    opsets = opsets_of(imports)
    version = opsets.get("")
    if version is not None and version < 1:
        raise InvalidArgument(f"opset {version}; ONNX's operator sets begin with 1")
    if version is not None and version > NEWEST_IN_TABLE:
        newest = onnx.defs.onnx_opset_version()
        if version > newest:
            raise Unsupported(
                f"opset {version}; the onnx package that is installed knows opsets up to {newest}"
            )
    return opsets


def _require_graphs(graphs: Iterable[onnx.GraphProto], opsets: Mapping[str, int]) -> None:
    for graph in list(_all_graphs(graphs)):  # The list checks the depth first.
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
    """Check that names are text: protobuf returns bytes for names that are not UTF-8."""
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgument(f"{what} has the name {name!r}, which is not UTF-8")


def _require_unique(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidArgument(f"{kind} {name!r} is there twice; names must be unique")
        seen.add(name)


def _require_node(node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
    """Check a node against its operator's schema, if ONNX has one."""
    words = [node.name, node.op_type, node.domain, node.overload, *node.input, *node.output]
    _require_text("a node", [*words, *(each.name for each in node.attribute)])
    domain = domain_of(node.domain)
    text = f"node {node.name or next(filter(None, node.output), node.op_type)!r} ({node.op_type})"
    if not domain and "" not in opsets:
        raise InvalidArgument(f"{text}: the model imports no operator set of ONNX")
    schema = schema_of(node.op_type, opsets.get(domain, 1), domain)
    if schema is None:
        return
    for kind, names, least, most in (
        ("inputs", node.input, schema.min_input, schema.max_input),
        ("outputs", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(names) <= most:
            raise InvalidArgument(f"{text}: {len(names)} {kind}; the operator has {least} to {most}")
    _require_attributes(node, schema, text)


def _require_attributes(node: onnx.NodeProto, schema: Schema, text: str) -> None:
    given = {each.name: each for each in node.attribute}
    unknown = [name for name in given if name not in schema.attributes and not name.startswith("__")]
    if unknown:
        names = ", ".join(sorted(schema.attributes)) or "none"
        raise InvalidArgument(f"{text}: attribute {unknown[0]!r} is unknown; the operator has {names}")
    for name, declared in schema.attributes.items():
        if name not in given:
            if declared.is_required:
                raise InvalidArgument(f"{text}: attribute {name} is missing")
            continue
        type = given[name].type
        if type != declared.type:
            names = onnx.AttributeProto.AttributeType
            found = names.Name(type) if type in names.values() else str(type)
            raise InvalidArgument(
                f"{text}: attribute {name} is of type {found}; must be {names.Name(declared.type)}"
            )


def _require_functions(model: onnx.ModelProto) -> None:
    """Check that functions do not call themselves, and count the nodes after inlining."""
    calls: dict[tuple[str, str, str], list[tuple[str, str, str]]] = {}
    for function in model.functions:
        key = (domain_of(function.domain), function.name, function.overload)
        if key in calls:
            raise InvalidArgument(f"function {function.name!r} is there twice; names must be unique")
        calls[key] = _calls(function)
    try:
        order = list(TopologicalSorter(calls).static_order())
    except CycleError as error:
        raise InvalidArgument(f"function {error.args[1][0][1]!r} calls itself") from error
    sizes: dict[tuple[str, str, str], int] = {}
    for key in order:
        sizes[key] = 1 + sum(sizes[each] for each in calls.get(key, ()))
    count = sum(sizes.get(key, 1) for key in _calls(model.graph))
    meter().require("graph_parts", count, "nodes with all functions written out")


def _calls(body: onnx.GraphProto | onnx.FunctionProto) -> list[tuple[str, str, str]]:
    """Return the operators of all nodes of a graph or function."""
    nodes = messages_in(body, onnx.NodeProto)
    return [(domain_of(node.domain), node.op_type, node.overload) for node in nodes]


def _require_tensor(tensor: onnx.TensorProto) -> None:
    """Check that a tensor has its data; external data have been read before."""
    name = f"tensor {tensor.name!r}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise InvalidArgument(f"{name} lies in a file of its own; such models are loaded by their path")
    if min(tensor.dims, default=0) < 0:
        raise InvalidArgument(f"{name} has sizes {list(tensor.dims)}; must not be negative")
