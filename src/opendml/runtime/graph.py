"""Graphs: the immediate functions on symbolic tensors, compiled as one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument
from opendml.operators.registry import define
from opendml.program.node import Node, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.device import Device, as_device
from opendml.runtime.host_array import Array, layout_of_array
from opendml.runtime.model import Model
from opendml.runtime.operator_call import desc_of_call, input_names
from opendml.runtime.program import layout_of
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, TensorDataType
from opendml.spec.feature_level import as_feature_level
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import validate


class GraphTensor:
    """A tensor of a graph: what the immediate functions return when they are called on tensors of a graph."""

    __slots__ = ("data_type", "graph", "node", "sizes")

    def __init__(self, graph: Graph, node: Node, data_type: TensorDataType) -> None:
        self.graph = graph
        self.node = node
        self.data_type = data_type
        self.sizes = node.sizes

    def __repr__(self) -> str:
        return f"GraphTensor({self.data_type.name}, {list(self.sizes)})"


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

    def input(
        self,
        name: str,
        data_type: TensorDataType,
        sizes: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
    ) -> GraphTensor:
        """An input that is given at every run.

        Args:
            name: how `Model` calls it; an identifier makes it a keyword.
            data_type: type of its elements.
            sizes: 1 to 8 sizes, outermost first.
            strides: elements from one index to the next, per dimension; None: packed.

        Raises:
            InvalidArgument: a name that is taken, or a tensor that DirectML does not allow.
        """
        if not isinstance(name, str) or name in self._names:
            raise InvalidArgument(
                f"graph input {name!r}: {'already exists' if name in self._names else 'not a name'}"
            )
        tensor = TensorDesc(data_type, sizes, strides)
        # Every tensor type and layout is valid as an input of the identity operator or of none.
        packed_output = TensorDesc(data_type, sizes)
        validate(descs.ElementWiseIdentity(tensor, packed_output), self.feature_level)
        return self._source(name, layout_of(tensor))

    def constant(self, array: Array) -> GraphTensor:
        """A tensor whose values are known now: an array, which must not change while models of this graph are
        used.

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
        if not outputs:
            raise InvalidArgument("outputs: none; a model computes at least one tensor")
        for name, tensor in outputs.items():
            if not isinstance(tensor, GraphTensor) or tensor.graph is not self:
                raise InvalidArgument(f"outputs[{name!r}]: not a tensor of this graph")
        layouts = tuple(packed(tensor.node.type, tensor.sizes) for tensor in outputs.values())
        program = Program(tuple(self._layouts), layouts, tuple(tensor.node for tensor in outputs.values()))
        return Model(program, tuple(self._names), dict(self._constants), tuple(outputs), as_device(device))

    def _source(self, name: str | None, layout: Layout) -> GraphTensor:
        node = source(len(self._names), layout.type, layout.sizes)
        self._names.append(name)
        self._layouts.append(layout)
        return GraphTensor(self, node, layout.type.data_type)


def call_in_graph(
    name: str, tensors: Sequence[Any], attributes: Sequence[Any], out: Any, device: str | Device | None
) -> GraphTensor:
    """The operator as a node of the graph that its tensors belong to.

    Raises:
        InvalidArgument: what `validate` finds, arrays among the tensors, tensors of several graphs, `out` or
        a device.
    """
    if out is not None or device is not None:
        raise InvalidArgument(f"{name}: out and device belong to the compiled graph, not to its operators")
    graph = next(tensor.graph for tensor in tensors if isinstance(tensor, GraphTensor))
    for tensor, label in zip(tensors, input_names(name), strict=True):
        if tensor is not None and not (isinstance(tensor, GraphTensor) and tensor.graph is graph):
            raise InvalidArgument(
                f"{name}.{label}: not a tensor of this graph; make arrays constants of the graph"
            )
    inputs = [None if tensor is None else TensorDesc(tensor.data_type, tensor.sizes) for tensor in tensors]
    desc = desc_of_call(name, inputs, attributes)
    validate(desc, graph.feature_level)
    data_type = next(tensor.data_type for tensor in tensors if tensor is not None)
    nodes = [None if tensor is None else tensor.node for tensor in tensors]
    (result,) = define(desc, nodes, [ScalarType.of(data_type)])
    return GraphTensor(graph, result, data_type)
