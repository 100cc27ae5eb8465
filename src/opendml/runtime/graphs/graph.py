"""Graphs: the immediate functions on symbolic tensors, compiled as one program."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.operators.registry import define
from opendml.program.node import Node, Operation, constant, ordered, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.program.view import reshaped
from opendml.runtime.calls.arguments import CAST, validate_tensor
from opendml.runtime.calls.call import Call
from opendml.runtime.calls.operator_call import (
    desc_of_call,
    exact_number,
    repeated_sizes,
    require_running,
    type_of_number,
)
from opendml.runtime.described import tensor_text
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.shared import SharedMemory
from opendml.runtime.graphs.steps import (
    ConstantStep,
    InputStep,
    OperatorStep,
    Reference,
    Reinterpretation,
    Slicing,
    Step,
    recipe_of,
)
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.graphs.work import Watched
from opendml.runtime.memory.foreign import as_numpy
from opendml.runtime.memory.host_array import Array, data_type_of, layout_of_array
from opendml.runtime.objects.device import Device, as_device
from opendml.runtime.objects.slots import Slot, slots_of
from opendml.runtime.program import layout_of
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NOTHING
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.values import DataTypeLike, as_plain, as_tuple
from opendml.spec.wording import counted, shown


class Graph:
    """Operators that are compiled, fused and run together.

    >>> import numpy as np, opendml as dml
    >>> graph = dml.Graph()
    >>> x = graph.input("x", dml.FLOAT32, [4])
    >>> model = graph.compile({"y": dml.activation_relu(dml.activation_linear(x, alpha=2.0, beta=-1.0))})
    >>> model(x=np.array([0, 1, 2, 3], np.float32))["y"]
    array([0., 1., 3., 5.], dtype=float32)

    Args:
        feature_level: what the operators are checked against; None is the newest.
    """

    def __init__(self, *, feature_level: FeatureLevel | str | None = None) -> None:
        self.feature_level = as_feature_level(feature_level)
        self._names: list[str | None] = []
        self._layouts: list[Layout] = []
        self._constants: dict[int, Array] = {}
        self._identities: dict[int, Hashable] = {}
        self._held: list[int] = []
        self._watched: list[Watched] = []
        self._operator_count = 0
        self._steps: list[Step] = []
        self._tensor_count = 0

    def __repr__(self) -> str:
        names = zip(self._names, self._layouts, strict=True)
        inputs = [tensor_text(name, layout) for name, layout in names if name is not None]
        operators = counted(self._operator_count, "operator", "operators")
        return f"<Graph: {', '.join(inputs) or 'no inputs'}; {operators}>"

    def input(
        self,
        name: str,
        data_type: DataTypeLike,
        sizes: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
    ) -> GraphTensor:
        """An input that is given at every run.

        Args:
            name: how `Model` calls it; an identifier makes it a keyword.
            data_type: type of its elements: a TensorDataType, its name, or NumPy's or PyTorch's type.
            sizes: 1 to 8 sizes, outermost first.
            strides: elements from one index to the next, per dimension; None: packed.

        Raises:
            InvalidArgument: a name that is taken, or a tensor that DirectML does not allow.
        """
        if not isinstance(name, str) or name in self._names:
            problem = "already exists" if isinstance(name, str) else "not a name"
            raise InvalidArgument(f"graph input {shown(name)}: {problem}")
        tensor = TensorDesc(data_type, sizes, strides)
        validate_tensor(f"graph input {shown(name)}", tensor, self.feature_level)
        step = InputStep(name, tensor.data_type, tensor.sizes, tensor.strides)
        return self._source(name, layout_of(tensor), step)

    def constant(self, array: Array) -> GraphTensor:
        """A tensor whose values are known: an array, which models read when the graph is compiled, and not
        afterwards.

        Raises:
            InvalidArgument: no NumPy array, or of a type that DirectML does not have.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"graph constant: {type(array).__name__}; a NumPy array is needed")
        return self._constant_of(array, "graph constant")

    def compile(self, outputs: Mapping[str, GraphTensor], device: str | Device | None = None) -> Model:
        """The graph up to `outputs` as one program.

        Args:
            outputs: the tensors to compute, by the names that they get.
            device: a device, its kind, or None for the CPU.

        Raises:
            InvalidArgument: no outputs, or tensors of another graph.
        """
        if not isinstance(outputs, Mapping) or not all(isinstance(name, str) for name in outputs):
            raise InvalidArgument(f"outputs: {shown(outputs)}; a dict is needed, of tensors by their names")
        if not outputs:
            raise InvalidArgument("outputs: none; a model computes at least one tensor")
        for name, tensor in outputs.items():
            if not isinstance(tensor, GraphTensor) or tensor.graph is not self:
                raise InvalidArgument(f"outputs[{name!r}]: not a tensor of this graph")
        return self._compile(outputs, device)

    def _compile(
        self,
        outputs: Mapping[str, GraphTensor],
        device: str | Device | None,
        shared: SharedMemory | None = None,
    ) -> Model:
        """The graph up to valid outputs, as `compile` makes it, with memory that other models share."""
        layouts = tuple(packed(tensor._node.type, tensor.sizes) for tensor in outputs.values())
        results = tuple(tensor._node for tensor in outputs.values())
        needed = {id(node): node for node in ordered(results)}
        read = {node.attribute for node in needed.values() if node.operation is Operation.SOURCE}
        constants = {number: array for number, array in self._constants.items() if number in read}
        known = frozenset([*constants, *self._held])
        program = Program(tuple(self._layouts), layouts, results, known)
        watched = [each for each in self._watched if id(each.node) in needed]
        numbers = {name: tensor._number for name, tensor in outputs.items()}
        recipe = None if self._held else recipe_of(self.feature_level, self._steps, numbers)
        held = tuple(self._held)
        return Model(
            program,
            tuple(self._names),
            constants,
            tuple(outputs),
            as_device(device),
            watched,
            recipe,
            held,
            self._identities,
            shared,
        )

    def _hold(
        self, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
    ) -> GraphTensor:
        """A constant whose values are given when the model prepares (`Model._with`)."""
        tensor = TensorDesc(data_type, sizes, strides)
        validate_tensor("graph constant", tensor, self.feature_level)
        self._held.append(len(self._names))
        step = InputStep("", tensor.data_type, tensor.sizes, tensor.strides)
        return self._source(None, layout_of(tensor), step)

    def _watch(self, name: str, outputs: Sequence[Slot], results: Sequence[Node]) -> None:
        """Takes note of what an operator of the graph computes, for debug devices."""
        for slot, node in zip(outputs, results, strict=True):
            label = f"nodes[{self._operator_count}].{name}.{slot.name}"
            sizes = slot.tensor.sizes if slot.tensor is not None else ()
            self._watched.append(Watched(label, name, slot.name, node, sizes))
        self._operator_count += 1

    def _source(self, name: str | None, layout: Layout, step: Step) -> GraphTensor:
        node = source(len(self._names), layout.type, layout.sizes)
        self._names.append(name)
        self._layouts.append(layout)
        return self._made(step, [node], [layout.type.data_type])[0]

    def _unchanging(self, array: Array, identity: Hashable) -> GraphTensor:
        """A packed constant that nobody writes to; it need not be aligned. Models that share memory keep what
        is made of it once, for all constants of its identity."""
        number = len(self._names)
        self._constants[number], self._identities[number] = array, identity
        type = ScalarType.of(data_type_of(np.empty(0, array.dtype), "constant"))
        return self._source(None, packed(type, array.shape), ConstantStep(array, is_unchanging=True))

    def _constant_of(self, array: Any, label: str) -> GraphTensor:
        """An array of any library as a constant."""
        known = as_numpy(array, label)
        layout = layout_of_array(known, label)
        self._constants[len(self._names)] = known
        return self._source(None, layout, ConstantStep(known))

    def _moved(self, step: Reinterpretation | Slicing, tensor: GraphTensor, node: Node) -> GraphTensor:
        """Elements of a tensor in another order or other sizes."""
        return self._made(step, [node], [tensor.data_type])[0]

    def _made(self, step: Step, nodes: Sequence[Node], types: Sequence[TensorDataType]) -> list[GraphTensor]:
        """The tensors that a step makes."""
        self._steps.append(step)
        first = self._tensor_count
        self._tensor_count += len(nodes)
        return [
            GraphTensor(self, node, type, first + position)
            for position, (node, type) in enumerate(zip(nodes, types, strict=True))
        ]

    def _call(self, name: str, tensors: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
        """The operator `name` on tensors, of which one is this graph's."""
        return call_in_graph(Call(name, tensors, attributes, None, None, NOTHING, CAST))


def call_in_graph(call: Call) -> Any:
    """The operator as a node of the graph that its tensors belong to; numbers and arrays become constants.

    Raises:
        InvalidArgument: what `validate` finds, no tensors, those of several graphs, `out` or a device.
        Unsupported: the operator cannot be run yet.
    """
    if call.outs is not None or call.device is not None:
        raise InvalidArgument(
            f"{call.function}: out and device belong to the compiled graph, not to its operators"
        )
    require_running(call.name)
    graph = next(tensor.graph for tensor in call.tensors if isinstance(tensor, GraphTensor))
    call = call.on(tuple(map(partial(_in_graph, graph), call.tensors, call.labels)), None, CAST)
    nodes = _nodes(call)
    sizes = repeated_sizes(call, [None if node is None else node.sizes for node in nodes])
    nodes = list(map(_with_dimensions, nodes, sizes))
    inputs = call.grouped([_desc(node, wanted) for node, wanted in zip(nodes, sizes, strict=True)])
    desc = desc_of_call(call.name, inputs, call.attributes, graph.feature_level, call.told, CAST)
    outputs = [slot for slot in slots_of(desc, "OUTPUT_TENSOR") if slot.tensor is not None]
    types = [TensorDataType(slot.tensor.data_type) for slot in outputs if slot.tensor is not None]
    results = define(desc, nodes, [ScalarType.of(type) for type in types])
    graph._watch(call.name, outputs, results)
    return call.result(graph._made(_step(call, len(results), desc), results, types))


def _in_graph(graph: Graph, tensor: Any, label: str) -> Any:
    """A tensor of a call on a graph: an array becomes a constant of it."""
    if tensor is None or isinstance(tensor, int | float):
        return tensor
    if not isinstance(tensor, GraphTensor):
        return graph._constant_of(tensor, label)
    if tensor.graph is not graph:
        raise InvalidArgument(f"{label}: not a tensor of this graph; it is one of another graph")
    return tensor


def _nodes(call: Call) -> list[Node | None]:
    """The tensors of a call as nodes of the graph."""
    types = {
        position: tensor.data_type
        for position, tensor in enumerate(call.tensors)
        if isinstance(tensor, GraphTensor)
    }
    nodes: list[Node | None] = []
    for position, (label, tensor) in enumerate(zip(call.labels, call.tensors, strict=True)):
        if isinstance(tensor, int | float):
            type = type_of_number(call, call.told, position, types)
            nodes.append(constant(exact_number(tensor, type, label), type))
        else:
            nodes.append(None if tensor is None else tensor._node)
    return nodes


def _with_dimensions(node: Node | None, sizes: tuple[int, ...] | None) -> Node | None:
    """A tensor of a call with the leading dimensions that it lacks; a number gets them where it fills one."""
    if node is None or sizes is None or not node.sizes or len(sizes) == len(node.sizes):
        return node
    return reshaped(node, (1,) * (len(sizes) - len(node.sizes)) + node.sizes)


def _desc(node: Node | None, sizes: tuple[int, ...] | None) -> TensorDesc | None:
    """A tensor of a call, repeated to `sizes`."""
    return None if node is None or sizes is None else TensorDesc(node.type.data_type, sizes)


def _step(call: Call, count: int, desc: OperatorDesc) -> OperatorStep:
    """A call as a step, which later changes of its lists do not reach."""
    tensors = [Reference(each._number) if isinstance(each, GraphTensor) else each for each in call.tensors]
    told = call.told
    attributes = tuple(map(as_tuple, map(as_plain, call.attributes)))
    given = tuple(call.grouped(tensors))
    return OperatorStep(call.name, given, attributes, told.type, told.sizes, told.wanted, count, desc)
