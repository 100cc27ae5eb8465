"""One ONNX node on its way into a graph: what a converter asks of it, and how it says what DirectML lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from opendml.errors import Error, Unsupported
from opendml.frontends.onnx.node import OnnxNode
from opendml.frontends.onnx.values import (
    BOOLEAN,
    Array,
    Computed,
    Known,
    Type,
    Value,
    carrier_of,
    data_type_of,
    most_dimensions,
)
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.tensor import GraphTensor

T = TypeVar("T")

Result = GraphTensor | Computed | Known | tuple[GraphTensor | Computed | Known | None, ...]
"""What a converter returns: the outputs, None for those that the node has not. A graph's tensor stands for
ONNX's sizes and type as it is; `Conversion.result` says others."""


class NotExpressible(Error):  # noqa: N818 - says a fact about the node, caught where nodes are taken
    """DirectML cannot say what the node means; the message says why."""


class NotRunnable(Unsupported):
    """Neither DirectML nor onnx's evaluator computes what a node means; the message says why."""


class ValueNeeded(Exception):  # noqa: N818 - a question, not an error
    """A converter needs to know the content of a tensor that is not known yet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Conversion:
    """A node with its inputs' values, while it becomes operators of a graph.

    Args:
        node: the node.
        graph: where its operators go.
        values: the inputs, None for absent ones.
        tensors: gives the graph's tensor of an input, by its number.
    """

    def __init__(self, node: OnnxNode, graph: Graph, values: Sequence[Value | None], tensors: Any) -> None:
        self.node, self.graph = node, graph
        self._values, self._tensors = values, tensors

    @property
    def version(self) -> int:
        """Of the operator set."""
        return self.node.version

    @property
    def input_count(self) -> int:
        """How many inputs the node names, absent ones too."""
        return len(self._values)

    def has(self, number: int) -> bool:
        """Whether the node has that input."""
        return number < len(self._values) and self._values[number] is not None

    def wants(self, number: int) -> bool:
        """Whether the node has that output."""
        return number < len(self.node.outputs) and bool(self.node.outputs[number])

    def attribute(self, name: str, default: T) -> T:
        """An attribute, or its default."""
        value: T = self.node.attributes.get(name, default)
        return value

    def required(self, name: str) -> Any:
        """An attribute that must be there.

        Raises:
            NotExpressible: it is missing.
        """
        if name not in self.node.attributes:
            raise NotExpressible(f"attribute {name} is missing")
        return self.node.attributes[name]

    def sizes(self, number: int) -> tuple[int, ...]:
        """ONNX's sizes of an input; () for a scalar."""
        sizes = self._value(number).sizes
        if sizes is None:
            raise NotExpressible(f"input {number} is no tensor")
        return sizes

    def type(self, number: int) -> Type:
        """The element type of an input as NumPy has it, `bool` for truth values."""
        type = self._value(number).type
        if type is None:
            raise NotExpressible(f"input {number} is no tensor")
        return type

    def is_known(self, number: int) -> bool:
        """Whether the content of an input is the same in every run: weights, sizes computed from sizes."""
        return isinstance(self._value(number), Known)

    def known(self, number: int) -> Array:
        """The content of an input. If it is not known yet, the model is compiled for each of its values: for
        sizes, axes and the like alone.

        Raises:
            NotExpressible: there is no such input.
        """
        value = self._value(number)
        if not isinstance(value, Known):
            raise ValueNeeded(self.node.inputs[number])
        return np.asarray(value.content)

    def known_list(self, number: int) -> list[int]:
        """The integers of such an input, in a list."""
        return [int(each) for each in self.known(number).reshape(-1)]

    def tensor(self, number: int, dimensions: int | None = None) -> GraphTensor:
        """An input as a tensor of the graph. A scalar has one dimension.

        Args:
            dimensions: fill up with sizes of 1 in front to so many.

        Raises:
            NotExpressible: DirectML has no such tensor: of strings, without elements, of 9 dimensions ...
        """
        return self._taken(number, self.type(number), dimensions)

    def moved(self, number: int, dimensions: int | None = None) -> GraphTensor:
        """An input whose elements are but moved, as `tensor` otherwise: those of types that DirectML has not,
        such as bfloat16, are of an integer type then. The result must say the input's type."""
        return self._taken(number, carrier_of(self.type(number)), dimensions)

    def _taken(self, number: int, type: Type, dimensions: int | None) -> GraphTensor:
        require_expressible(self.sizes(number), type, f"input {number}")
        tensor: GraphTensor = self._tensors(number)
        missing = 0 if dimensions is None else dimensions - len(tensor.sizes)
        return tensor.reinterpret([1] * missing + list(tensor.sizes)) if missing > 0 else tensor

    def optional(self, number: int) -> GraphTensor | None:
        """An input as a tensor of the graph, None if the node has it not."""
        return self.tensor(number) if self.has(number) else None

    def constant(self, content: Any, type: Any = None) -> GraphTensor:
        """An array of the converter's own as a tensor of the graph."""
        array = np.atleast_1d(np.asarray(content, type))
        return self.graph.constant(np.ascontiguousarray(array))

    def result(self, tensor: GraphTensor, sizes: Sequence[int] | None = None, type: Any = None) -> Computed:
        """An output with ONNX's sizes, if they differ from the tensor's, and its type: `bool` for UINT8."""
        found = tuple(tensor.sizes if sizes is None else sizes)
        shaped = tensor if (found or (1,)) == tuple(tensor.sizes) else tensor.reinterpret(found or (1,))
        return Computed(shaped, found, numpy_type(tensor) if type is None else np.dtype(type))

    def empty(self, sizes: Sequence[int], type: Any) -> Known:
        """An output without elements."""
        return Known(np.empty(tuple(sizes), type))

    def truth(self, tensor: GraphTensor, sizes: Sequence[int] | None = None) -> Computed:
        """An output of truth values."""
        return self.result(tensor, sizes, BOOLEAN)

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front.

        Raises:
            NotExpressible: there is no such axis.
        """
        if not -rank <= value < rank:
            raise NotExpressible(f"axis {value} of {rank} dimensions")
        return value % rank

    def _value(self, number: int) -> Value:
        value = self._values[number] if number < len(self._values) else None
        if value is None:
            raise NotExpressible(f"input {number} is missing")
        return value


def numpy_type(tensor: GraphTensor) -> Type:
    """The type of a tensor's elements as NumPy has it."""
    return np.dtype(ScalarType.of(tensor.data_type).numpy)


def require_expressible(sizes: Sequence[int], type: Type, name: str) -> None:
    """Checks that DirectML has tensors of these sizes and this type.

    Raises:
        NotExpressible: it has not.
    """
    if data_type_of(type) is None:
        raise NotExpressible(f"{name} is of type {type.name}")
    if 0 in sizes:
        raise NotExpressible(f"{name} of sizes {list(sizes)} has no elements")
    if len(sizes) > most_dimensions():
        raise NotExpressible(f"{name} has {len(sizes)} dimensions")
