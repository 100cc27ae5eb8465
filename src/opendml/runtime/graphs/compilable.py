"""Prepare operators and graphs for compilation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from opendml.errors import InvalidArgument
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.base import GraphBase, build
from opendml.runtime.graphs.steps import GraphData
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.graphs.work import Work
from opendml.runtime.memory.host_array import Array
from opendml.runtime.objects.tensor_fields import TensorField, tensor_fields
from opendml.spec.enums import FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator

_NEWEST = max(FeatureLevel)


@dataclass(frozen=True, slots=True)
class Compilable:
    """An operator or a graph over buffers.

    Args:
        name: the name in messages.
        inputs: its input tensors; absent ones keep their place.
        outputs: its output tensors; absent ones keep their place.
        work: its programs, over inputs and constants, then outputs.
        buffers: the buffers of inputs that are present, by their places.
        constants: the bytes of the constants, by their buffers.
        data: the steps.
        in_place: names of inputs that an output may lie on.
    """

    name: str
    inputs: tuple[TensorField, ...]
    outputs: tuple[TensorField, ...]
    work: Work
    buffers: Mapping[int, int]
    constants: Mapping[int, Array]
    data: GraphData
    in_place: frozenset[str] = field(default_factory=frozenset)


def compilable_of(desc: OperatorDesc, level: FeatureLevel = _NEWEST) -> Compilable:
    """Prepare a single valid operator.

    Args:
        desc: the desc.
        level: what it was checked against.

    Raises:
        Unsupported: it cannot be run yet.
    """
    graph, inputs = GraphBase(level), tensor_fields(desc, "INPUT_TENSOR")
    tensors = [None if field.tensor is None else graph._input(field.name, field.tensor) for field in inputs]
    made = iter(graph._add(desc, tensors, ""))
    outputs = tensor_fields(desc, "OUTPUT_TENSOR")
    named = {field.name: next(made) for field in outputs if field.tensor is not None}
    return _compilable(desc.operator, graph, inputs, tensors, outputs, named)


def compilable_of_graph(graph: GraphBase, outputs: Sequence[GraphTensor]) -> Compilable:
    """Prepare a graph over buffers. Inputs that the outputs do not need are absent.

    Raises:
        InvalidArgument: no outputs, or tensors of another graph.
    """
    if not outputs or any(tensor.graph is not graph for tensor in outputs):
        raise InvalidArgument(f"outputs: {outputs}; one tensor or more of this graph are needed")
    named = {f"outputs[{number}]": tensor for number, tensor in enumerate(outputs)}
    data = graph._data(named, keep_inputs=False)
    if len(data.steps) < len(graph._steps):
        graph = GraphBase(graph.feature_level)
        named = build(graph, data)
    tensors = list(graph._inputs.values())
    inputs = [
        TensorField(f"inputs[{number}]", f"inputs[{number}]", None if each is None else each._value.tensor)
        for number, each in enumerate(tensors)
    ]
    fields = [TensorField(name, name, each._value.tensor) for name, each in named.items()]
    return _compilable("graph", graph, inputs, tensors, fields, named)


def _compilable(
    name: str,
    graph: GraphBase,
    inputs: Sequence[TensorField],
    tensors: Sequence[GraphTensor | None],
    outputs: Sequence[TensorField],
    named: Mapping[str, GraphTensor],
) -> Compilable:
    buffers = {
        number: each._value.buffer
        for number, each in enumerate(tensors)
        if each is not None and each._value.buffer is not None
    }
    owned = {buffer for number, buffer in buffers.items() if inputs[number].is_owned}
    values = [tensor._value for tensor in named.values()]
    work = graph._stages.work(values, {*owned, *graph._constants}, only_needed=False)
    data = graph._data(named, keep_inputs=True)
    in_place = frozenset() if name == "graph" else frozenset(operator(name).in_place)
    constants = dict(graph._constants)
    return Compilable(name, tuple(inputs), tuple(outputs), work, buffers, constants, data, in_place)
