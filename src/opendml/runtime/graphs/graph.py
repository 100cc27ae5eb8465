"""Graphs: the immediate functions on symbolic tensors, compiled as one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.operators.registry import define
from opendml.program.node import Node, Operation, constant, ordered, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
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
from opendml.runtime.graphs.reinterpret import reinterpreted
from opendml.runtime.graphs.work import Watched
from opendml.runtime.memory.host_array import Array, layout_of_array
from opendml.runtime.objects.device import Device, as_device
from opendml.runtime.objects.slots import Slot, slots_of
from opendml.runtime.program import layout_of
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.spec.plain import DataTypeLike
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.wording import counted, shown


class GraphTensor:
    """A tensor of a graph: what the immediate functions return when they are called on tensors of a graph."""

    __slots__ = ("_node", "data_type", "graph", "sizes")

    def __init__(self, graph: Graph, node: Node, data_type: TensorDataType) -> None:
        self.graph = graph
        self._node = node
        self.data_type = data_type
        self.sizes = node.sizes

    def __repr__(self) -> str:
        return f"<GraphTensor {self.data_type.name} {list(self.sizes)}>"

    def reinterpret(self, sizes: Sequence[int], *, strides: Sequence[int] | None = None) -> GraphTensor:
        """The same elements in other sizes: reshaped, or transposed and repeated by strides, which count in
        the packed tensor, whatever its own strides are. It is no operator.

        >>> import opendml as dml
        >>> x = dml.Graph().input("x", dml.FLOAT32, [2, 3])
        >>> x.reinterpret([6]), x.reinterpret([3, 2], strides=[1, 3])
        (<GraphTensor FLOAT32 [6]>, <GraphTensor FLOAT32 [3, 2]>)

        Args:
            sizes: 1 to 8 sizes, outermost first.
            strides: elements from one index to the next, per dimension; None: packed, and all of them.

        Raises:
            InvalidArgument: sizes of another number of elements, or strides that reach past the last.
        """
        tensor = TensorDesc(self.data_type, sizes, strides)
        validate_tensor("reinterpret", tensor, self.graph.feature_level)
        written, read = packed(self._node.type, self.sizes), layout_of(tensor)
        node = reinterpreted(self._node, written, read)
        given = f"reinterpret: sizes {list(read.sizes)}"
        if strides is None and read.element_count != written.element_count:
            raise InvalidArgument(f"{given}; must have as many elements as {list(self.sizes)}")
        if node is None:
            problem = f"must stay within the elements of {list(self.sizes)}"
            raise InvalidArgument(f"{given} with strides {list(tensor.effective_strides)}; {problem}")
        return GraphTensor(self.graph, node, self.data_type)


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
        self._watched: list[Watched] = []
        self._operator_count = 0

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
        return self._source(name, layout_of(tensor))

    def constant(self, array: Array) -> GraphTensor:
        """A tensor whose values are known: an array, which models read when the graph is compiled, and not
        afterwards.

        Raises:
            InvalidArgument: no NumPy array, or of a type that DirectML does not have.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArgument(f"graph constant: {type(array).__name__}; a NumPy array is needed")
        self._constants[len(self._names)] = array
        return self._source(None, layout_of_array(array, "graph constant"))

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
        layouts = tuple(packed(tensor._node.type, tensor.sizes) for tensor in outputs.values())
        results = tuple(tensor._node for tensor in outputs.values())
        needed = {id(node): node for node in ordered(results)}
        read = {node.attribute for node in needed.values() if node.operation is Operation.SOURCE}
        constants = {number: array for number, array in self._constants.items() if number in read}
        program = Program(tuple(self._layouts), layouts, results, frozenset(constants))
        watched = [each for each in self._watched if id(each.node) in needed]
        return Model(program, tuple(self._names), constants, tuple(outputs), as_device(device), watched)

    def _watch(self, name: str, outputs: Sequence[Slot], results: Sequence[Node]) -> None:
        """Takes note of what an operator of the graph computes, for debug devices."""
        for slot, node in zip(outputs, results, strict=True):
            label = f"nodes[{self._operator_count}].{name}.{slot.name}"
            sizes = slot.tensor.sizes if slot.tensor is not None else ()
            self._watched.append(Watched(label, name, slot.name, node, sizes))
        self._operator_count += 1

    def _source(self, name: str | None, layout: Layout) -> GraphTensor:
        node = source(len(self._names), layout.type, layout.sizes)
        self._names.append(name)
        self._layouts.append(layout)
        return GraphTensor(self, node, layout.type.data_type)


def call_in_graph(call: Call) -> Any:
    """The operator as a node of the graph that its tensors belong to; numbers become constants.

    Raises:
        InvalidArgument: what `validate` finds, arrays among the tensors, tensors of several graphs, `out` or
        a device.
        Unsupported: the operator cannot be run yet.
    """
    if call.outs is not None or call.device is not None:
        raise InvalidArgument(
            f"{call.function}: out and device belong to the compiled graph, not to its operators"
        )
    require_running(call.name)
    graph = next(tensor.graph for tensor in call.tensors if isinstance(tensor, GraphTensor))
    nodes = _nodes(call, graph)
    sizes = repeated_sizes(call, [None if node is None else node.sizes for node in nodes])
    inputs = call.grouped([_desc(node, wanted) for node, wanted in zip(nodes, sizes, strict=True)])
    desc = desc_of_call(call.name, inputs, call.attributes, graph.feature_level, call.told, CAST)
    outputs = [slot for slot in slots_of(desc, "OUTPUT_TENSOR") if slot.tensor is not None]
    types = [TensorDataType(slot.tensor.data_type) for slot in outputs if slot.tensor is not None]
    results = define(desc, nodes, [ScalarType.of(type) for type in types])
    graph._watch(call.name, outputs, results)
    return call.result([GraphTensor(graph, *pair) for pair in zip(results, types, strict=True)])


def _nodes(call: Call, graph: Graph) -> list[Node | None]:
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
        elif tensor is None or (isinstance(tensor, GraphTensor) and tensor.graph is graph):
            nodes.append(None if tensor is None else tensor._node)
        else:
            is_foreign = isinstance(tensor, GraphTensor)
            fix = "it is one of another graph" if is_foreign else "graph.constant makes one of an array"
            raise InvalidArgument(f"{label}: not a tensor of this graph; {fix}")
    return nodes


def _desc(node: Node | None, sizes: tuple[int, ...] | None) -> TensorDesc | None:
    """A tensor of a call, repeated to `sizes`. In a program only numbers get dimensions that they lack."""
    if node is None or sizes is None:
        return None
    is_repeated = not node.sizes or len(sizes) == len(node.sizes)
    return TensorDesc(node.type.data_type, sizes if is_repeated else node.sizes)
