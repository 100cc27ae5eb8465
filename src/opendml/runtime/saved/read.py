"""Read models and compiled operators from files."""

from __future__ import annotations

import mmap
from os import PathLike
from pathlib import Path

from opendml.budget import Limits, meter, metered
from opendml.errors import InvalidArgument, located
from opendml.json_files.node import JsonNode
from opendml.logs import progress_shown
from opendml.model_files import hold_file, open_file, read_file
from opendml.program.atoms import Relation
from opendml.program.sizes import Size, is_traced
from opendml.program.traced_floats import TracedFloat
from opendml.runtime.graphs.base import GraphBase, build
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.steps import (
    ConstantStep,
    GraphData,
    InputStep,
    NumberStep,
    OperatorStep,
    RoundStep,
    Step,
    ViewStep,
)
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.device import Device, as_device
from opendml.runtime.saved.container import array_in, opened_file
from opendml.runtime.saved.traced import Sizes, traced_from_json
from opendml.runtime.saved.values import desc_from_json, from_json, tensor_from_json
from opendml.spec.enums import ExecutionFlags, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.targets.compiled_files import MAGIC, CompiledFile, is_compiled_file, reading
from opendml.targets.object_cache import trusted_file

_UINT32_MAX = 2**32 - 1


def load(
    path: str | PathLike[str],
    device: str | Device | None = None,
    *,
    limits: Limits | None = None,
    trusted: bool = False,
    progress: bool = False,
) -> Model | CompiledOperator:
    """Load a file (`opendml.load`)."""
    try:
        file = Path(path)
    except TypeError as error:
        raise InvalidArgument(f"{path!r}: {error}") from error
    shown = progress_shown(progress)
    with shown, metered(limits, name=str(path)) as limit, limit.timed("compile_seconds", path):
        compiled = _compiled_file(file, path)
        if compiled is None:
            data = read_file(file, path)
            with located(path):
                return loaded(data, device)
        if compiled.kind != "saved":
            raise InvalidArgument(f"{path}: a compiled ONNX model, which opendml.onnx.load reads")
        with located(path), reading(trusted_file(compiled, trusted, str(path))):
            return loaded(compiled.model, device)


def _compiled_file(path: Path, where: object) -> CompiledFile | None:
    """Map a compiled file. None: it is another one."""
    with open_file(path, where) as file:
        try:
            if not is_compiled_file(file.read(len(MAGIC))):
                return None
            hold_file(file, where)
            return CompiledFile(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), str(where))
        except OSError as error:
            raise InvalidArgument(f"{where}: {error.strerror or error}") from error


def loaded(data: bytes | memoryview, device: str | Device | None = None) -> Model | CompiledOperator:
    """Compile what the bytes of a file hold; see `load`."""
    program, content = opened_file(data)
    known = ("device", "flags", "feature_level", "inputs", "steps", "outputs", "dimensions", "choices")
    program.members(known)
    device = _device(program.member("device")) if device is None else as_device(device)
    graph = Graph(feature_level=as_feature_level(program.member("feature_level").string()))
    _add_dimensions(program, graph)
    given, flags = _graph(program, content, _sizes(graph)), program.optional("flags")
    if flags is None:
        with located("$"):
            outputs = build(graph, given)
        return graph.compile(outputs, device)
    if program.optional("dimensions") is not None:
        program.member("dimensions").fail("no named dimensions of a compiled operator")
    execution = ExecutionFlags(flags.integer(0, sum(ExecutionFlags)))
    operators = [step for step in given.steps if isinstance(step, OperatorStep)]
    if len(operators) == 1 and not operators[0].name:
        return device.compile_operator(device.create_operator(operators[0].desc), execution)
    base = GraphBase(given.feature_level)
    with located("$"):
        return device._compile_graph(base, list(build(base, given).values()), execution)


def _device(node: JsonNode) -> Device:
    """Return the device of calls, if the file names an equal one, or a new one."""
    level, threads = node.member("feature_level").string(), node.optional("threads")
    usual = as_device(node.member("kind").string())
    wanted = Device(
        usual.kind, feature_level=level, threads=threads.integer(1, _UINT32_MAX) if threads else None
    )
    is_usual = (wanted.feature_level, wanted.threads) == (usual.feature_level, usual.threads)
    return usual if is_usual else wanted


def _add_dimensions(program: JsonNode, graph: Graph) -> None:
    """Add the named dimensions of a file to a graph, with the guards of the program that built it."""
    dimensions, choices = program.optional("dimensions"), program.optional("choices")
    for name, ends in {} if dimensions is None else dimensions.members().items():
        least, greatest = _pair(ends, "a least and a greatest size")
        graph.dimension(name, least=_number(least), greatest=_number(greatest))
    for choice in [] if choices is None else choices.elements():
        relation, value = _pair(choice, "a relation and a size")
        if relation.string() not in Relation.__members__:
            relation.fail("a relation")
        size = traced_from_json(value, _sizes(graph))
        if not is_traced(size) or graph._trace is None:
            value.fail("a size that changes")
        graph._trace.guards[Relation[relation.string()], size] = "a place that the file does not name"


def _pair(node: JsonNode, expected: str) -> list[JsonNode]:
    elements = node.elements()
    return elements if len(elements) == 2 else node.fail(expected)


def _sizes(graph: Graph) -> Sizes:
    trace = graph._trace
    return {} if trace is None else {name: trace.size(name) for name in trace.dimensions}


def _graph(program: JsonNode, content: memoryview, sizes: Sizes) -> GraphData:
    """Return the steps of a file, which nobody has checked."""
    steps = program.member("steps").elements()
    meter().require("graph_parts", len(steps), "steps of the graph")
    inputs = [each.string() for each in program.member("inputs").elements()]
    if len(set(inputs)) < len(inputs):
        program.member("inputs").fail("different names")
    outputs = {
        name: each.integer(0, _UINT32_MAX) for name, each in program.member("outputs").members().items()
    }
    level = as_feature_level(program.member("feature_level").string())
    return GraphData(level, tuple(inputs), tuple(_step(step, content, sizes) for step in steps), outputs)


def _step(step: JsonNode, content: memoryview, sizes: Sizes) -> Step:
    members = step.members()
    if "input" in members:
        step.members(("input", "tensor", "is_bfloat16"))
        kind = step.optional("is_bfloat16")
        tensor_desc = tensor_from_json(step.member("tensor"), sizes)
        return InputStep(_number(step.member("input")), tensor_desc, kind is not None and kind.boolean())
    if "constant" in members:
        step.members(("constant", "tensor"))
        tensor = step.optional("tensor")
        array = array_in(step.member("constant"), content)
        return ConstantStep(array, None if tensor is None else tensor_from_json(tensor), is_unchanging=True)
    if "number" in members:
        step.members(("number", "data_type"))
        value = from_json(step.member("number"), sizes)
        if type(value) not in (int, float, Size, TracedFloat):
            step.member("number").fail("a number")
        return NumberStep(value, _data_type(step.member("data_type")))
    if "view" in members:
        step.members(("view", "data_type", "sizes", "strides", "offset", "of_bytes"))
        strides = step.optional("strides")
        return ViewStep(
            _number(step.member("view")),
            _data_type(step.member("data_type")),
            tuple(_size(each, 0, sizes) for each in step.member("sizes").elements()),
            None if strides is None else tuple(_size(each, -(2**63), sizes) for each in strides.elements()),
            _size(step.member("offset"), 0, sizes),
            step.member("of_bytes").boolean(),
        )
    if "round" in members:
        step.members(("round",))
        return RoundStep(_number(step.member("round")))
    step.members(("desc", "inputs", "name"))
    inputs = tuple(None if each.value is None else _number(each) for each in step.member("inputs").elements())
    return OperatorStep(desc_from_json(step.member("desc"), sizes), inputs, step.member("name").string())


def _size(node: JsonNode, least: int, sizes: Sizes) -> int:
    if isinstance(node.value, dict):
        value: int = traced_from_json(node, sizes)
        if isinstance(value, float) or (not is_traced(value) and not least <= value <= 2**63):
            node.fail(f"a whole number from {least}")
        return value
    return node.integer(least, 2**63)


def _number(node: JsonNode) -> int:
    return node.integer(0, _UINT32_MAX)


def _data_type(node: JsonNode) -> TensorDataType:
    name = node.string()
    if name not in TensorDataType.__members__ or name == "UNKNOWN":
        node.fail("a data type")
    return TensorDataType[name]
