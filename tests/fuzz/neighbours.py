"""Every operator in a graph, between element-wise ones and beside constants: what it means alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import opendml as dml
from opendml import Device, OperatorDesc, TensorDesc
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.descs import desc_class
from opendml.spec.validator import failures
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.descs import inputs_of
from tests.fuzz.judgement import assert_right
from tests.fuzz.random_descs import any_desc
from tests.running import elements, laid_out, memory_for, run, run_all, same_bits

BEFORE = ("", "ELEMENT_WISE_NEGATE", "ELEMENT_WISE_IDENTITY", "ELEMENT_WISE_ABS")
AFTER = ("", "ELEMENT_WISE_NEGATE", "ELEMENT_WISE_IDENTITY")
"""Operators that round nothing, so that the operator between is judged as if it were alone."""


@dataclass(frozen=True, repr=False)
class OnNeighbours(Case):
    """A graph of an operator, of what makes its inputs and of what takes its outputs.

    Attributes:
        desc: the operator.
        before: what makes each of its inputs of packed ones, "" for none.
        constants: whether each of the graph's inputs is a constant.
        after: what takes each of its outputs, and makes packed ones.
        values: chooses the inputs' values; see `filled`.
        device: where the graph runs.
    """

    desc: OperatorDesc
    before: tuple[str, ...]
    constants: tuple[bool, ...]
    after: tuple[str, ...]
    values: int
    device: str

    @property
    def subject(self) -> str:
        return f"{self.device} {self.desc.operator}"

    def check(self) -> None:
        if failures(self.desc):
            return
        given = inputs_of(self.desc, self.values)
        tensors = tensors_of(self.desc, "INPUT_TENSOR")
        made, memory = list(given), list(given)
        for number, (tensor, each) in enumerate(zip(tensors, given, strict=True)):
            neighbour = _neighbour(self.before[number], tensor, made=True)
            if neighbour is not None and tensor is not None and each is not None:
                memory[number] = np.ascontiguousarray(elements(each, tensor)).reshape(-1)
                made[number] = laid_out(run(neighbour, [memory[number]], "reference"), tensor)
        results = self._graph(memory)
        references = run_all(self.desc, made, "reference")
        undone = [
            -result if name == "ELEMENT_WISE_NEGATE" else result
            for result, name in zip(results, self._names_after(), strict=True)
        ]
        if self.device == "reference":
            pairs = zip(undone, references, strict=True)
            assert all(same_bits(*pair) for pair in pairs), f"{self.subject}: other bits than alone"
        else:
            assert_right(self.desc, made, undone, references)

    def _names_after(self) -> list[str]:
        """What takes each output that there is."""
        outputs = zip(self.after, tensors_of(self.desc, "OUTPUT_TENSOR"), strict=True)
        return [
            name if _neighbour(name, tensor, made=False) is not None else ""
            for name, tensor in outputs
            if tensor is not None
        ]

    def _graph(self, memory: Sequence[Array | None]) -> list[Array]:
        """The outputs of the graph."""
        device = Device(self.device)
        nodes: list[dml.OperatorNode | dml.ConstantNode] = [
            dml.OperatorNode(device.create_operator(self.desc))
        ]
        input_edges: list[dml.InputEdge] = []
        edges: list[dml.IntermediateEdge] = []
        output_edges: list[dml.OutputEdge] = []
        bound: list[Array] = []

        def node(desc: OperatorDesc) -> int:
            nodes.append(dml.OperatorNode(device.create_operator(desc)))
            return len(nodes) - 1

        for number, tensor in enumerate(tensors_of(self.desc, "INPUT_TENSOR")):
            data, to, at = memory[number], 0, number
            if data is None:
                continue
            neighbour = _neighbour(self.before[number], tensor, made=True)
            if neighbour is not None:
                to, at = node(neighbour), 0
                edges.append(dml.IntermediateEdge(to, 0, 0, number))
            if self.constants[number]:
                nodes.append(dml.ConstantNode(_in_words(data)))
                edges.append(dml.IntermediateEdge(len(nodes) - 1, 0, to, at))
            else:
                input_edges.append(dml.InputEdge(len(bound), to, at))
                bound.append(data)
        rooms: list[Array] = []
        layouts: list[TensorDesc] = []
        for number, tensor in enumerate(tensors_of(self.desc, "OUTPUT_TENSOR")):
            if tensor is None:
                continue
            origin, layout = (0, number), tensor
            neighbour = _neighbour(self.after[number], tensor, made=False)
            if neighbour is not None:
                origin, layout = (node(neighbour), 0), _packed(tensor)
                edges.append(dml.IntermediateEdge(0, number, origin[0], 0))
            output_edges.append(dml.OutputEdge(*origin, len(rooms)))
            rooms.append(memory_for(layout))
            layouts.append(layout)
        desc = dml.GraphDesc(len(bound), len(rooms), nodes, input_edges, output_edges, edges)
        device.compile_graph(desc).bind(bound, rooms).dispatch()
        return [elements(room, layout) for room, layout in zip(rooms, layouts, strict=True)]


def _packed(tensor: TensorDesc) -> TensorDesc:
    return TensorDesc(tensor.data_type, tensor.sizes)


def _in_words(memory: Array) -> Array:
    """The bytes of a tensor, of which there are as many as whole words have."""
    data = memory.tobytes()
    return np.frombuffer(data + bytes(-len(data) % 4), np.uint8)


def _neighbour(name: str, tensor: TensorDesc | None, *, made: bool) -> OperatorDesc | None:
    """The element-wise operator that makes, or takes, a tensor; None where there is none for it."""
    if not name or tensor is None:
        return None
    pair = (_packed(tensor), tensor) if made else (tensor, _packed(tensor))
    desc = desc_class(name)(*pair)
    return None if failures(desc) else desc


def make(choices: Choices) -> OnNeighbours:
    """A graph of up to as many operators as one has tensors, and one more."""
    desc = any_desc(choices)
    inputs, outputs = (tensors_of(desc, kind) for kind in ("INPUT_TENSOR", "OUTPUT_TENSOR"))
    return OnNeighbours(
        desc,
        tuple(choices.of(BEFORE) for _ in inputs),
        tuple(choices.rarely(3) for _ in inputs),
        tuple(choices.of(AFTER) for _ in outputs),
        choices.below(1 << 16),
        choices.of(("cpu", "reference")),
    )
