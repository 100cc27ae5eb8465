"""An ONNX node as converters see it: inputs, attributes, and outputs in ONNX's sizes and types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.errors import Unsupported
from opendml.frontends.common.conversion import Conversion
from opendml.frontends.common.tensors import broadcast_sizes, shaped, with_rank
from opendml.frontends.common.types import NotExpressible, data_type_of, require_expressible
from opendml.frontends.onnx.values import (
    BOOLEAN,
    FLOAT32,
    Array,
    Computed,
    Known,
    KnownSizes,
    Type,
    Value,
    carrier_of,
    is_bfloat16,
)
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.shared import content_key
from opendml.runtime.graphs.tensor import GraphTensor

if TYPE_CHECKING:
    from opendml.frontends.onnx.node import OnnxNode

Result = GraphTensor | Computed | Known | tuple[GraphTensor | Computed | Known | None, ...]
"""The outputs of a node, None for those that the converter does not make. A tensor of the graph has ONNX's
sizes and type as it is; `OnnxConversion.result` states others."""


class NotRunnable(Unsupported):
    """Neither DirectML's operators nor onnx's evaluator compute a node; the message says why."""


class ValueNeeded(Exception):  # noqa: N818 - a question, not an error
    """A converter needs the content of a tensor that is not known yet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class OnnxConversion(Conversion):
    """An ONNX node with the values of its inputs, while it becomes operators of a graph.

    Args:
        node: the node.
        graph: the graph that receives the operators.
        values: the inputs, None for absent ones.
        tensors: returns the graph's tensor of an input, by its number.
    """

    def __init__(
        self,
        node: OnnxNode,
        graph: Graph,
        values: Sequence[Value | None],
        tensors: Callable[[int], GraphTensor],
    ) -> None:
        super().__init__(graph)
        self.node = node
        self._values, self._tensors = values, tensors

    def constant(self, content: Any, type: Any = None) -> GraphTensor:
        """Return an array that nobody writes to as a tensor of the graph. A number has one dimension.

        Graphs of all sizes share what is packed of constants with equal values.

        Args:
            type: NumPy's type of the elements; None: that of the content.
        """
        array = np.ascontiguousarray(np.atleast_1d(np.asarray(content, type)))
        return self.graph._unchanging(array, content_key(array))

    @property
    def version(self) -> int:
        """The version of the operator set."""
        return self.node.version

    @property
    def input_count(self) -> int:
        """The number of inputs that the node names, absent ones included."""
        return len(self._values)

    def has(self, number: int) -> bool:
        """Return whether the node has an input."""
        return number < len(self._values) and self._values[number] is not None

    def wants(self, number: int) -> bool:
        """Return whether the node has an output."""
        return number < len(self.node.outputs) and bool(self.node.outputs[number])

    def attribute(self, name: str) -> Any:
        """Return an attribute, or its default in the operator's schema; None if it has none."""
        return self.node.attribute(name)

    def flag(self, name: str) -> bool:
        """Return whether an attribute, or its default, is not 0."""
        return bool(self.node.attribute(name))

    def required(self, name: str) -> Any:
        """Return an attribute that has no default.

        Raises:
            NotExpressible: it is missing.
        """
        if name not in self.node.attributes:
            raise NotExpressible(f"attribute {name} is missing")
        return self.node.attributes[name]

    def list_attribute(self, name: str, count: int, default: int = 1) -> list[int]:
        """Return an attribute with `count` integers, which are `default` if it is absent.

        Raises:
            NotExpressible: it has another number of integers.
        """
        given = list(self.attribute(name) or [default] * count)
        if len(given) != count:
            raise NotExpressible(f"{name} {given}: {count} numbers are needed")
        return given

    def listed(self, name: str, number: int, since: int) -> list[int] | None:
        """Return integers that are an attribute and, from a version on, an input; None: there are none."""
        if self.version < since:
            given: list[int] | None = self.attribute(name)
            return given
        return self.known_list(number) if self.has(number) else None

    def type_attribute(self, name: str) -> Type | None:
        """Return the element type that an attribute names; None if it names none.

        Raises:
            NotExpressible: there is no such type.
        """
        try:
            return self.node.type_attribute(name)
        except KeyError as error:
            raise NotExpressible(f"{name}: {self.attribute(name)} is no type") from error

    def axis(self, value: int, rank: int) -> int:
        """Return an axis counted from the front.

        Raises:
            NotExpressible: there is no such axis.
        """
        if not -rank <= value < rank:
            raise NotExpressible(f"axis {value} of {rank} dimensions")
        return index(value % rank)

    def axis_attribute(self, rank: int | None = None) -> int:
        """Return the attribute `axis` counted from the front.

        Args:
            rank: the number of dimensions; None: that of input 0.

        Raises:
            NotExpressible: there is no such axis.
        """
        return self.axis(self.attribute("axis"), len(self.sizes(0)) if rank is None else rank)

    def sizes(self, number: int) -> tuple[int, ...]:
        """Return ONNX's sizes of an input; () for a scalar."""
        sizes = self.value(number).sizes
        if sizes is None:
            raise NotExpressible(f"input {number} is no tensor")
        return sizes

    def type(self, number: int) -> Type:
        """Return NumPy's element type of an input, `bool` for truth values, float32 for bfloat16."""
        type = self.value(number).type
        if type is None:
            raise NotExpressible(f"input {number} is no tensor")
        return FLOAT32 if is_bfloat16(type) else type

    def is_known(self, number: int) -> bool:
        """Return whether an input is the same in every run: a weight, or computed from sizes."""
        return isinstance(self.value(number), Known)

    def known(self, number: int) -> Array:
        """Return the content of an input, float32 for bfloat16. If it is not known yet, the model is compiled
        for each of its values, so ask for sizes, axes and the like alone.

        Raises:
            NotExpressible: there is no such input.
        """
        value = self.value(number)
        if not isinstance(value, Known):
            raise ValueNeeded(self.node.inputs[number])
        content = np.asarray(value.content)
        return content.astype(FLOAT32) if is_bfloat16(content.dtype) else content

    def known_list(self, number: int) -> list[int]:
        """Return the integers of a known input, of which some may follow from sizes."""
        value = self.value(number)
        if isinstance(value, KnownSizes):
            return list(value.elements.flat)
        return [int(each) for each in self.known(number).reshape(-1)]

    def known_integer(self, number: int) -> int:
        """Return the first integer of a known input."""
        return self.known_list(number)[0]

    def tensor(self, number: int, rank: int | None = None) -> GraphTensor:
        """Return an input as a tensor of the graph. A scalar has one dimension.

        Args:
            rank: the least number of dimensions; new ones have size 1 and lie in front.

        Raises:
            NotExpressible: DirectML has no such tensor: of strings, without elements, of 9 dimensions ...
        """
        return self._taken(number, self.type(number), rank)

    def moved(self, number: int, rank: int | None = None) -> GraphTensor:
        """Return an input whose elements are only moved, as `tensor` otherwise.

        Elements of types that DirectML lacks, such as floats of 8 bits, are integers then. The result must
        state the type of the input.
        """
        return self._taken(number, carrier_of(self.type(number)), rank)

    def _taken(self, number: int, type: Type, rank: int | None) -> GraphTensor:
        data_type_of(type, f"input {number}")
        require_expressible(self.sizes(number), f"input {number}")
        tensor = self._tensors(number)
        return tensor if rank is None else with_rank(tensor, rank)

    def optional(self, number: int) -> GraphTensor | None:
        """Return an input as a tensor of the graph; None if the node lacks it."""
        return self.tensor(number) if self.has(number) else None

    def common_sizes(self, *numbers: int) -> tuple[int, ...]:
        """Return the sizes to which inputs are repeated.

        Raises:
            NotExpressible: there are none, or they have too many dimensions.
        """
        return broadcast_sizes(*map(self.sizes, numbers))

    def operands(self, *numbers: int) -> list[GraphTensor]:
        """Return inputs with the number of dimensions of their common sizes; calls repeat them."""
        rank = max(1, len(self.common_sizes(*numbers)))
        return [self.tensor(number, rank) for number in numbers]

    def result(self, tensor: GraphTensor, sizes: Sequence[int] | None = None, type: Any = None) -> Computed:
        """Return an output with ONNX's sizes and type, where the tensor has others.

        Args:
            type: NumPy's type; None: that of the tensor's elements.
        """
        found = tuple(tensor.sizes if sizes is None else sizes)
        return Computed(shaped(tensor, found), found, numpy_type(tensor) if type is None else np.dtype(type))

    def reshaped(self, sizes: Sequence[int]) -> Computed:
        """Return input 0 in other sizes."""
        return self.result(self.moved(0), sizes, self.type(0))

    def truth(self, tensor: GraphTensor, sizes: Sequence[int] | None = None) -> Computed:
        """Return an output of truth values."""
        return self.result(tensor, sizes, BOOLEAN)

    def empty(self, sizes: Sequence[int], type: Any = None) -> Known:
        """Return an output without elements.

        Args:
            type: NumPy's type; None: that of input 0.
        """
        return Known(np.empty(tuple(sizes), self.type(0) if type is None else type))

    def value(self, number: int) -> Value:
        """Return the value of an input.

        Raises:
            NotExpressible: it is missing.
        """
        value = self._values[number] if number < len(self._values) else None
        if value is None:
            raise NotExpressible(f"input {number} is missing")
        return value


def numpy_type(tensor: GraphTensor) -> Type:
    """Return NumPy's type of the elements of a tensor."""
    return np.dtype(ScalarType.of(tensor.data_type).numpy)
