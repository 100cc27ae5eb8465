"""Convert models to serialized graphs.

Operators become nodes. A view becomes strides of the tensors that read it if their operator takes such
strides, and a copy otherwise. A window becomes SLICE1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opendml.errors import Unsupported
from opendml.frontends.serialized.graph import SerializedGraph, SerializedNode
from opendml.late_dataclass import dataclass
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.stages import window_of
from opendml.runtime.graphs.steps import (
    ConstantStep,
    GraphData,
    InputStep,
    NumberStep,
    OperatorStep,
    Step,
    ViewStep,
)
from opendml.runtime.memory.host_array import Array, data_type_of
from opendml.runtime.memory.packing import to_buffer
from opendml.runtime.program import tensors_of
from opendml.spec import descs
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc, packed_strides
from opendml.spec.validator import failures


@dataclass(frozen=True)
class _Tensor:
    """A tensor of the graph: the name of its bytes, and its layout."""

    name: str
    desc: TensorDesc
    bytes: int

    @property
    def is_packed(self) -> bool:
        return self.desc.effective_strides == packed_strides(self.desc.sizes)

    def viewed(self, sizes: Sequence[int], strides: Sequence[int] | None) -> _Tensor:
        """Return the bytes of the tensor with other sizes and strides."""
        if strides is not None and tuple(strides) == packed_strides(sizes):
            strides = None
        desc = TensorDesc(self.desc.data_type, sizes, strides)
        if desc.size_in_bytes != self.bytes:
            desc = TensorDesc(self.desc.data_type, sizes, strides, total_tensor_size_in_bytes=self.bytes)
        return _Tensor(self.name, desc, self.bytes)

    def repeated(self, sizes: Sequence[int]) -> _Tensor:
        """Repeat the tensor to sizes of as many dimensions or more."""
        own = self.desc.sizes
        if own == tuple(sizes):
            return self
        leading = [0] * (len(sizes) - len(own))
        pairs = zip(own, self.desc.effective_strides, sizes[len(leading) :], strict=True)
        strides = [0 if size == 1 and wanted > 1 else step for size, step, wanted in pairs]
        return self.viewed(sizes, [0 if size > 1 else 1 for size in sizes[: len(leading)]] + strides)


def graph_of_model(model: Model, name: str = "serialized graph") -> SerializedGraph:
    """Return the graph of a compiled model, with the names of its inputs and outputs.

    Args:
        model: what `Graph.compile` or `opendml.load` has made.
        name: for messages.

    Raises:
        Unsupported: a model of another kind, or a tensor that DirectML's IDENTITY cannot copy.
    """
    data = model._data
    if data is None:
        raise Unsupported(f"{name}: this model was not made by Graph.compile")
    writer = _Writer(data, name)
    for step in data.steps:
        writer.add(step)
    for output, number in data.outputs.items():
        writer.give(output, number)
    return SerializedGraph(data.inputs, tuple(data.outputs), tuple(writer.nodes), name)


class _Writer:
    def __init__(self, data: GraphData, title: str) -> None:
        self.nodes: list[SerializedNode] = []
        self._title, self._level, self._inputs = title, data.feature_level, data.inputs
        self._taken = {*data.inputs, *data.outputs}
        self._tensors: list[_Tensor] = []
        self._unread: dict[str, int] = {}
        """The nodes of outputs that nothing reads yet, by the outputs' names."""

    def add(self, step: Step) -> None:
        """Add the nodes and the tensors of a step."""
        match step:
            case InputStep():
                made = [_Tensor(self._inputs[step.position], step.tensor, step.tensor.size_in_bytes)]
            case ConstantStep():
                made = [self._constant(step.values())]
            case NumberStep():
                number = np.array([step.value], ScalarType.of(step.data_type).numpy)
                made = [self._constant(number)]
            case ViewStep():
                made = [self._view(self._tensors[step.of], step)]
            case OperatorStep():
                made = self._operator(step)
        self._tensors += made

    def give(self, name: str, number: int) -> None:
        """Make a tensor an output of the graph: a copy, if others read it or it is a view."""
        tensor = self._tensors[number]
        node = self._unread.pop(tensor.name, None)
        if node is None or tensor.desc not in tensors_of(_desc(self.nodes[node]), "OUTPUT_TENSOR"):
            self._copy(tensor, name)
            return
        outputs = tuple(name if each == tensor.name else each for each in self.nodes[node].outputs)
        self.nodes[node] = replace(self.nodes[node], outputs=outputs)
        self._tensors = [
            replace(each, name=name) if each.name == tensor.name else each for each in self._tensors
        ]

    def _name(self, kind: str) -> str:
        name = f"{kind}{len(self.nodes)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _constant(self, array: Array) -> _Tensor:
        name = self._name("constant")
        self.nodes.append(SerializedNode(to_buffer(array), (), (name,), name))
        desc = TensorDesc(data_type_of(array, "constant"), array.shape)
        return _Tensor(name, desc, desc.size_in_bytes)

    def _copy(self, tensor: _Tensor, name: str) -> _Tensor:
        """Add a packed copy of a tensor."""
        desc = TensorDesc(tensor.desc.data_type, tensor.desc.sizes)
        copy = descs.ElementWiseIdentity(tensor.desc, desc)
        self._require_valid(copy)
        self._add(copy, [tensor], (name,))
        return _Tensor(name, desc, desc.size_in_bytes)

    def _packed(self, tensor: _Tensor) -> _Tensor:
        return tensor if tensor.is_packed else self._copy(tensor, self._name("node"))

    def _view(self, tensor: _Tensor, view: ViewStep) -> _Tensor:
        """Return a view as strides, or a window by SLICE1, which wants its least and greatest index."""
        window = window_of(tensor.desc.sizes, view)
        if window is None:
            return self._packed(tensor).viewed(view.sizes, view.strides)
        if view.sizes == tensor.desc.sizes and all(step == 1 for step in window[1]):
            return tensor
        steps = [step if size > 1 else 1 for size, step in zip(view.sizes, window[1], strict=True)]
        spans = [(size - 1) * step for size, step in zip(view.sizes, steps, strict=True)]
        offsets = [first + min(span, 0) for first, span in zip(window[0], spans, strict=True)]
        written = TensorDesc(tensor.desc.data_type, view.sizes)
        desc = descs.Slice1(
            tensor.desc,
            written,
            input_window_offsets=offsets,
            input_window_sizes=[abs(span) + 1 for span in spans],
            input_window_strides=steps,
        )
        name = self._name("node")
        self._append(desc, [tensor], (name,))
        return _Tensor(name, written, written.size_in_bytes)

    def _operator(self, step: OperatorStep) -> list[_Tensor]:
        wanted, written = (tensors_of(step.desc, f"{kind}_TENSOR") for kind in ("INPUT", "OUTPUT"))
        read = [
            None if number is None or tensor is None else self._tensors[number].repeated(tensor.sizes)
            for number, tensor in zip(step.inputs, wanted, strict=True)
        ]
        base = self._name("node")
        names = tuple("" if each is None else f"{base}.{index}" for index, each in enumerate(written))
        self._append(step.desc, read, names)
        return [
            _Tensor(name, tensor, tensor.size_in_bytes)
            for name, tensor in zip(names, written, strict=True)
            if tensor is not None
        ]

    def _append(self, desc: OperatorDesc, read: Sequence[_Tensor | None], outputs: tuple[str, ...]) -> None:
        """Add an operator, and copies of its inputs if it does not take their strides."""
        lying = _reading(desc, read)
        if list(failures(lying, self._level)):
            read = [None if each is None else self._packed(each) for each in read]
            lying = _reading(desc, read)
            self._require_valid(lying)
        self._add(lying, read, outputs)

    def _add(self, desc: OperatorDesc, read: Sequence[_Tensor | None], outputs: tuple[str, ...]) -> None:
        inputs = tuple("" if each is None else each.name for each in read)
        for name in inputs:
            self._unread.pop(name, None)
        self._unread |= {name: len(self.nodes) for name in outputs if name}
        self.nodes.append(SerializedNode(desc, inputs, outputs))

    def _require_valid(self, desc: OperatorDesc) -> None:
        problems = list(failures(desc, self._level))
        if problems:
            raise Unsupported(f"{self._title}: nodes[{len(self.nodes)}]: {problems[0]}")


def _desc(node: SerializedNode) -> OperatorDesc:
    assert isinstance(node.content, OperatorDesc)
    return node.content


def _reading(desc: OperatorDesc, read: Sequence[_Tensor | None]) -> OperatorDesc:
    """Return the desc with the layouts of its inputs."""
    tensors = iter([None if each is None else each.desc for each in read])
    changes: dict[str, Any] = {}
    for each in operator(desc.operator).inputs:
        value = getattr(desc, each.python_name)
        is_list = isinstance(value, tuple)
        changes[each.python_name] = tuple(next(tensors) for _ in value) if is_list else next(tensors)
    return desc.replace(**changes)
