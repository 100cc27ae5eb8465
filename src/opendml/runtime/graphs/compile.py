"""Graphs in DirectML's form as work.

All operators become one program, which is fused. Where the two ends of an edge see the same bytes in other
sizes, strides or types of one width, elements move within the program; only where that cannot be said of
elements does the tensor lie in memory between two programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opendml.operators.registry import define
from opendml.program.node import Node, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.compilable import Compilable
from opendml.runtime.graphs.desc import ConstantNode, GraphDesc, OperatorNode
from opendml.runtime.graphs.reinterpret import reinterpreted
from opendml.runtime.graphs.wiring import Port, Wiring, node_name, wiring_of
from opendml.runtime.graphs.work import Watched, Work, WorkStage
from opendml.runtime.objects.slots import Slot
from opendml.runtime.program import buffer_layout_of, layout_of, loaded, stored
from opendml.spec.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


def compilable_of_graph(desc: GraphDesc, device: Device) -> Compilable:
    """A valid graph.

    Raises:
        InvalidArgument: every rule for graphs that it breaks.
        Unsupported: one of its operators cannot be run yet.
    """
    wiring = wiring_of(desc, device)
    readers: dict[int, list[Port]] = {}
    for port, origin in wiring.sources.items():
        if isinstance(origin, int):
            readers.setdefault(origin, []).append(port)
    inputs = tuple(_input_slot(number, readers.get(number, ()), wiring) for number in range(desc.input_count))
    outputs = tuple(_output_slot(number, wiring) for number in range(desc.output_count))
    constants = {
        number: _content(node) for number, node in enumerate(desc.nodes) if isinstance(node, ConstantNode)
    }
    graph = _Graph(desc, wiring, inputs, list(constants))
    for number in wiring.order:
        graph.add(number)
    layouts = [slot.layout for slot in inputs if slot.layout is not None]
    layouts += [packed(ScalarType.UINT8, [len(content)]) for content in constants.values()]
    results = [slot.layout for slot in outputs if slot.layout is not None]
    work = Work(tuple(layouts), tuple(results), graph.stages(), tuple(graph.between.values()))
    given = tuple(constants.values())
    return Compilable("graph", inputs, outputs, work, given, source=_unchanging(desc, constants))


def _unchanging(desc: GraphDesc, constants: Mapping[int, bytes]) -> GraphDesc:
    """The graph with these bytes as its constants, which no caller changes later."""
    nodes = tuple(
        ConstantNode(constants[number], node.name) if number in constants else node
        for number, node in enumerate(desc.nodes)
    )
    edges = (tuple(desc.input_edges), tuple(desc.output_edges), tuple(desc.intermediate_edges))
    return GraphDesc(desc.input_count, desc.output_count, nodes, *edges)


def _input_slot(number: int, readers: Sequence[Port], wiring: Wiring) -> Slot:
    """An input of the graph as the ports see it that read it: with the most bytes and the greatest alignment
    of all. Absent, if there are none."""
    name = f"inputs[{number}]"
    tensors = [tensor for node, index in readers if (tensor := wiring.inputs[node][index].tensor)]
    if not tensors:
        return Slot(name, name, None)
    widest = max(tensors, key=lambda tensor: buffer_layout_of(tensor).span[1])
    size = max(tensor.size_in_bytes for tensor in tensors)
    alignment = max(tensor.guaranteed_base_offset_alignment for tensor in tensors)
    if (size, alignment) != (widest.size_in_bytes, widest.guaranteed_base_offset_alignment):
        widest = TensorDesc(
            widest.data_type,
            widest.sizes,
            widest.strides,
            widest.flags,
            total_tensor_size_in_bytes=size,
            guaranteed_base_offset_alignment=alignment,
        )
    return Slot(name, name, widest)


def _output_slot(number: int, wiring: Wiring) -> Slot:
    node, index = wiring.results[number]
    name = f"outputs[{number}]"
    return Slot(name, name, wiring.outputs[node][index].tensor)


def _content(node: ConstantNode) -> bytes:
    return node.data.tobytes() if isinstance(node.data, np.ndarray) else bytes(node.data)


@dataclass(slots=True)
class _Stage:
    """A program while it is made."""

    inputs: list[Layout] = field(default_factory=list)
    outputs: list[Layout] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    """The buffers of the inputs."""
    written: list[int] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    sources: dict[tuple[int, Layout], Node] = field(default_factory=dict)

    def load(self, buffer: int, tensor: TensorDesc) -> Node:
        """A buffer read as a tensor."""
        layout = buffer_layout_of(tensor)
        if (buffer, layout) not in self.sources:
            self.sources[buffer, layout] = source(len(self.inputs), layout.type, layout.sizes)
            self.inputs.append(layout)
            self.read.append(buffer)
        return loaded(tensor, self.sources[buffer, layout])

    def store(self, buffer: int, tensor: TensorDesc, value: Node) -> None:
        """A value written to a buffer as a tensor."""
        self.outputs.append(buffer_layout_of(tensor))
        self.results.append(stored(tensor, value))
        self.written.append(buffer)


class _Graph:
    """The stages of a graph, in their order, over one table of buffers: the inputs that are present, the
    constants, the outputs, then the tensors between the stages."""

    def __init__(
        self, desc: GraphDesc, wiring: Wiring, inputs: tuple[Slot, ...], constants: list[int]
    ) -> None:
        self._desc, self._wiring = desc, wiring
        present = [number for number, slot in enumerate(inputs) if slot.tensor is not None]
        self._inputs = {number: buffer for buffer, number in enumerate(present)}
        self._constants = {number: len(present) + index for index, number in enumerate(constants)}
        owned = {self._inputs[number] for number in present if inputs[number].is_owned}
        self._fixed = owned.union(self._constants.values())
        self._first_output = len(present) + len(constants)
        self._tensor_count = self._first_output + desc.output_count
        self._stages: list[_Stage] = []
        self._stage_of: dict[int, int] = {}
        self._values: dict[Port, Node] = {}
        self._results: dict[Port, list[int]] = {}
        """The outputs of the graph that each port is."""
        for output, port in sorted(wiring.results.items()):
            self._results.setdefault(port, []).append(output)
        self._buffers: dict[Port, int] = {}
        self.between: dict[Port, int] = {}
        """The tensors between the stages, and their bytes."""

    def add(self, number: int) -> None:
        """Adds a node whose sources are there."""
        node = self._desc.nodes[number]
        if not isinstance(node, OperatorNode):
            return
        desc, slots = node.operator.desc, self._wiring.inputs[number]
        ports = [(number, index) for index in range(len(slots))]
        step = max((self._earliest(port) for port in ports), default=0)
        if step == len(self._stages):
            self._stages.append(_Stage())
        stage, self._stage_of[number] = self._stages[step], step
        values = [self._input(port, step) for port in ports]
        present = [
            (index, slot, slot.tensor)
            for index, slot in enumerate(self._wiring.outputs[number])
            if slot.tensor is not None
        ]
        results = define(desc, values, [ScalarType.of(tensor.data_type) for _, _, tensor in present])
        for (index, slot, tensor), result in zip(present, results, strict=True):
            self._values[number, index] = result
            name = f"{node_name(self._desc, number)}.{slot.name}"
            stage.watched.append(Watched(name, desc.operator, slot.name, result, tensor.sizes))
            for output in self._results.get((number, index), ()):
                stage.store(self._first_output + output, tensor, result)

    def _earliest(self, port: Port) -> int:
        """The first stage that may read this input."""
        origin = self._wiring.sources.get(port)
        if not isinstance(origin, tuple) or origin[0] in self._constants:
            return 0
        step = self._stage_of[origin[0]]
        return step if self._seen(origin, port) is not None else step + 1

    def _seen(self, origin: Port, port: Port) -> Node | None:
        """What an input reads of a value of its own stage, if that needs no memory between them."""
        written, read = (
            self._wiring.outputs[origin[0]][origin[1]].tensor,
            self._wiring.inputs[port[0]][port[1]].tensor,
        )
        if written is None or read is None:
            return None
        value, a, b = self._values[origin], layout_of(written), layout_of(read)
        # A number has no dimensions until it fills a tensor.
        if value.sizes == b.sizes and _normal(a) == _normal(b):
            return value
        return reinterpreted(value, a, b)

    def _input(self, port: Port, step: int) -> Node | None:
        """An input of a node in its stage."""
        tensor = self._wiring.inputs[port[0]][port[1]].tensor
        origin = self._wiring.sources.get(port)
        if origin is None or tensor is None:
            return None
        stage = self._stages[step]
        if not isinstance(origin, tuple):
            return stage.load(self._inputs[origin], tensor)
        if origin[0] in self._constants:
            return stage.load(self._constants[origin[0]], tensor)
        if self._stage_of[origin[0]] == step and (value := self._seen(origin, port)) is not None:
            return value
        return stage.load(self._buffer_of(origin), tensor)

    def _buffer_of(self, origin: Port) -> int:
        """The buffer in which a tensor lies for later stages."""
        tensor = self._wiring.outputs[origin[0]][origin[1]].tensor
        if origin not in self.between and tensor is not None:
            self._buffers[origin] = self._tensor_count + len(self.between)
            self.between[origin] = tensor.size_in_bytes
            stage = self._stages[self._stage_of[origin[0]]]
            stage.store(self._buffers[origin], tensor, self._values[origin])
        return self._buffers[origin]

    def stages(self) -> tuple[WorkStage, ...]:
        """The programs of the stages."""
        return tuple(
            WorkStage(
                Program(
                    tuple(stage.inputs),
                    tuple(stage.outputs),
                    tuple(stage.results),
                    frozenset(number for number, buffer in enumerate(stage.read) if buffer in self._fixed),
                ),
                (*stage.read, *stage.written),
                tuple(stage.watched),
            )
            for stage in self._stages
        )


def _normal(layout: Layout) -> Layout:
    """A layout whose strides do not matter where there is one element."""
    strides = zip(layout.sizes, layout.strides, strict=True)
    return Layout(layout.type, layout.sizes, tuple(stride if size > 1 else 0 for size, stride in strides))
