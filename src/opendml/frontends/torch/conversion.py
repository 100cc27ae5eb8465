"""A node of PyTorch's graph as converters see it: the types and sizes that PyTorch's trace has for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.fx import Node
from torch.fx.node import map_arg

from opendml.errors import Error
from opendml.frontends.common.calls import dml
from opendml.frontends.common.conversion import Conversion
from opendml.frontends.common.tensors import aligned, cast, shaped
from opendml.frontends.common.types import NotExpressible, computed_type_of, require_expressible
from opendml.frontends.torch.registry import Operand, converter_of
from opendml.frontends.torch.symbols import TENSORS, TracedTensor
from opendml.program.sizes import Size, as_number, hint_of, is_traced
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


class TorchConversion(Conversion):
    """A node of PyTorch's graph, while it becomes operators of a graph of DirectML.

    Args:
        node: the node; `meta["val"]` has the sizes, types and strides of what it computes.
        graph: the graph that receives the operators.
        tensors: returns the graph's tensor of a node. A tensor without dimensions has one.
    """

    def __init__(self, node: Node, graph: Graph, tensors: Callable[[Node], GraphTensor]) -> None:
        super().__init__(graph)
        self.node = node
        self._tensors = tensors

    @property
    def name(self) -> str:
        """The overload, such as "aten.relu.default"."""
        return str(self.node.target)

    @property
    def sizes(self) -> tuple[int, ...]:
        """PyTorch's sizes of the output, or of the first one."""
        return tuple(outputs_of(self.node)[0].shape)

    @property
    def data_type(self) -> TensorDataType:
        """DirectML's type of the output, or of the first one."""
        return computed_type_of(self._dtype)

    @property
    def is_float(self) -> bool:
        """True if the output, or the first one, is of floats."""
        is_float: bool = self._dtype.is_floating_point
        return is_float

    @property
    def is_truth(self) -> bool:
        """True if the output, or the first one, is of truth values."""
        return self._dtype is torch.bool

    @property
    def wanted(self) -> tuple[bool, ...]:
        """For each output, whether the graph reads it."""
        return wanted_of(self.node)

    @property
    def common_type(self) -> TensorDataType:
        """The type in which PyTorch compares the arguments."""
        values = [each.meta["val"] if isinstance(each, Node) else each for each in self.node.args]
        numbers = [_sample(each) for each in values if isinstance(each, TENSORS | bool | int | float)]
        kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
        return computed_type_of(elementwise_dtypes(*numbers, type_promotion_kind=kind)[1])

    def given(self, argument: int, element: int | None = None) -> Any:
        """Return the tensor of an argument, or of an element of a list, as PyTorch's trace has it."""
        node = self.node.args[argument]
        node = node if element is None else node[element]
        assert isinstance(node, Node)
        return node.meta["val"]

    def is_truth_value(self, argument: int) -> bool:
        """Return whether the tensor of an argument is of truth values."""
        return self.given(argument).dtype is torch.bool

    def cast(self, tensor: GraphTensor) -> GraphTensor:
        """Return a tensor in the type of the output."""
        return cast(tensor, self.data_type)

    def truth(self, tensor: GraphTensor, argument: int) -> GraphTensor:
        """Return whether the elements of an argument are not 0, as UINT8."""
        return tensor if self.is_truth_value(argument) else tensor != 0

    def operands(self, *values: Operand, type: TensorDataType | None = None) -> list[Operand]:
        """Return tensors in one type and with as many dimensions. Numbers remain numbers.

        Args:
            type: the type; None: that of the output.
        """
        type = self.data_type if type is None else type
        tensors = [cast(each, type) for each in values if isinstance(each, GraphTensor)]
        number = as_number if type.name.startswith("FLOAT") else _whole
        each = iter(aligned(*tensors))
        return [next(each) if isinstance(value, GraphTensor) else number(value) for value in values]

    def converted(self) -> tuple[GraphTensor | None, ...]:
        """Return the node's outputs in the graph, None for those that it has not.

        Raises:
            NotExpressible: DirectML's operators do not express the node.
        """
        converter = converter_of(self.node.target)
        if converter is None:
            raise NotExpressible("opendml has no mapping to DirectML's operators")
        arguments = map_arg(self.node.args, self._tensors)
        keywords: Mapping[str, Any] = map_arg(self.node.kwargs, self._tensors)
        try:
            result = converter(self, *arguments, **keywords)
            several = result if isinstance(result, tuple) else (result,)
            return tuple(
                None if tensor is None else _finished(tensor, output)
                for tensor, output in zip(several, outputs_of(self.node), strict=True)
            )
        except NotExpressible:
            raise
        except Error as error:
            raise NotExpressible(str(error)) from error

    @property
    def _dtype(self) -> torch.dtype:
        return outputs_of(self.node)[0].dtype


def _sample(value: Any) -> Any:
    """Return what PyTorch's rules of types take for a tensor or a number of a trace."""
    if isinstance(value, TracedTensor):
        return torch.empty([1] * value.dim(), dtype=value.dtype, device="meta")
    return hint_of(value) if is_traced(value) else value


def _whole(value: float) -> int:
    """Return a number as an integer, which keeps how it follows from sizes."""
    return value if type(value) is Size else int(value)


def _finished(tensor: GraphTensor, output: Any) -> GraphTensor:
    """Return a result in the type and the sizes that PyTorch has for it."""
    sizes, data_type = tuple(output.shape), computed_type_of(output.dtype)
    if tensor.data_type is not data_type:
        if output.dtype is torch.bool:
            raise NotExpressible(f"{tensor.data_type.name} as truth values")
        tensor = dml.cast(tensor, output_type=data_type)
    if math.prod(sizes) != math.prod(tensor.sizes):
        raise NotExpressible(f"sizes {list(tensor.sizes)} where PyTorch has {list(sizes)}")
    tensor = shaped(tensor, sizes)
    if output.dtype is torch.bfloat16:
        return tensor.rounded()
    return dml.cast(tensor, output_type=data_type) if tensor.is_rounded else tensor


def outputs_of(node: Node) -> tuple[Any, ...]:
    """Return what a node computes, as PyTorch's tensors without content."""
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def wanted_of(node: Node) -> tuple[bool, ...]:
    """Return for each output of a node whether it is read. Nodes that take one of several outputs read it."""
    if not isinstance(node.meta.get("val"), tuple | list):
        return (True,)
    taken = {user.args[1] for user in node.users}
    return tuple(number in taken for number in range(len(outputs_of(node))))


def require_tensor(tensor: Any) -> None:
    """Check that DirectML has a tensor for what a node computes.

    Raises:
        NotExpressible: it has none: no elements, another type or layout, too many dimensions ...
    """
    if not isinstance(tensor, TENSORS):
        raise NotExpressible(f"{type(tensor).__name__}, not a tensor")
    if tensor.layout is not torch.strided:
        raise NotExpressible(f"a tensor of layout {tensor.layout}")
    computed_type_of(tensor.dtype, "a tensor")
    require_expressible(tensor.shape, "a tensor")
