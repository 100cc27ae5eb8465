"""One node of PyTorch's graph on its way into a graph of DirectML's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.fx import Node
from torch.fx.node import map_arg

import opendml as dml
from opendml.errors import Error
from opendml.frontends.torch.registry import converter_of
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

MOST_DIMENSIONS = 8

_DATA_TYPES = {
    torch.float32: TensorDataType.FLOAT32,
    torch.float16: TensorDataType.FLOAT16,
    torch.float64: TensorDataType.FLOAT64,
    torch.bool: TensorDataType.UINT8,
    torch.uint8: TensorDataType.UINT8,
    torch.uint16: TensorDataType.UINT16,
    torch.uint32: TensorDataType.UINT32,
    torch.uint64: TensorDataType.UINT64,
    torch.int8: TensorDataType.INT8,
    torch.int16: TensorDataType.INT16,
    torch.int32: TensorDataType.INT32,
    torch.int64: TensorDataType.INT64,
}


class NotExpressible(Error):  # noqa: N818 - says a fact about the node, caught where graphs are divided
    """DirectML cannot say what the node means; the message says why."""


class Conversion:
    """A node and the graph that its operators go into.

    Args:
        node: the node; `meta["val"]` has the sizes, types and strides of what it computes.
        graph: the graph.
        tensors: gives the graph's tensor of a node. A tensor without dimensions has one.
    """

    def __init__(self, node: Node, graph: Graph, tensors: Callable[[Node], GraphTensor]) -> None:
        self.node, self.graph = node, graph
        self._tensors = tensors

    @property
    def sizes(self) -> tuple[int, ...]:
        """PyTorch's sizes of the output, or of the first one."""
        return tuple(outputs_of(self.node)[0].shape)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the output, or of the first one."""
        return self._output_type(0)

    @property
    def wanted(self) -> tuple[bool, ...]:
        """Which of several outputs are read."""
        return wanted_of(self.node)

    def given(self, argument: int | str) -> Any:
        """The tensor that is given as an argument, as the node's `meta["val"]` has it."""
        node = self.node.kwargs[argument] if isinstance(argument, str) else self.node.args[argument]
        assert isinstance(node, Node)
        return node.meta["val"]

    def converted(self) -> tuple[GraphTensor | None, ...]:
        """The node's outputs in the graph, None for those that it has not.

        Raises:
            NotExpressible: DirectML cannot say the node.
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
                None if tensor is None else self._finished(tensor, output)
                for tensor, output in zip(several, outputs_of(self.node), strict=True)
            )
        except NotExpressible:
            raise
        except Error as error:
            raise NotExpressible(str(error)) from error

    def cast(self, tensor: GraphTensor, type: torch.dtype) -> GraphTensor:
        """A tensor in a type that is not bool, where a float becomes whole as in C."""
        data_type = data_type_of(type)
        return tensor if tensor.data_type is data_type else dml.cast(tensor, output_type=data_type)

    def filled(self, value: float | bool, sizes: tuple[int, ...], type: torch.dtype) -> GraphTensor:
        """A number in all elements."""
        single = self.constant(np.full(1, value, numpy_type(type)))
        return single.reinterpret(sizes or (1,), strides=(0,) * max(1, len(sizes)))

    def constant(self, array: np.ndarray[Any, Any]) -> GraphTensor:
        """An array of the converter's own as a tensor of the graph."""
        return self.graph.constant(np.ascontiguousarray(array))

    def _output_type(self, number: int) -> torch.dtype:
        type: torch.dtype = outputs_of(self.node)[number].dtype
        return type

    def _finished(self, tensor: GraphTensor, output: Any) -> GraphTensor:
        """A result in the type and the sizes that PyTorch has for it."""
        sizes, data_type = tuple(output.shape), data_type_of(output.dtype)
        if tensor.data_type is not data_type:
            if output.dtype is torch.bool:
                raise NotExpressible(f"{tensor.data_type.name} as truth values")
            tensor = dml.cast(tensor, output_type=data_type)
        if math.prod(sizes) != math.prod(tensor.sizes):
            raise NotExpressible(f"sizes {list(tensor.sizes)} where PyTorch has {list(sizes)}")
        return reshaped(tensor, sizes)


def reshaped(tensor: GraphTensor, sizes: tuple[int, ...]) -> GraphTensor:
    """The elements in their order in other sizes; a tensor without dimensions has one here."""
    sizes = tuple(sizes) or (1,)
    return tensor if tensor.sizes == sizes else tensor.reinterpret(sizes)


def outputs_of(node: Node) -> tuple[Any, ...]:
    """What a node computes, as PyTorch's tensors without content."""
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def wanted_of(node: Node) -> tuple[bool, ...]:
    """Which outputs of a node are read: those of a node with several by nodes that take one of them."""
    if not isinstance(node.meta.get("val"), tuple | list):
        return (True,)
    taken = {user.args[1] for user in node.users}
    return tuple(number in taken for number in range(len(outputs_of(node))))


def data_type_of(type: torch.dtype) -> TensorDataType:
    """DirectML's type of elements.

    Raises:
        NotExpressible: it has none.
    """
    if type not in _DATA_TYPES:
        raise NotExpressible(f"DirectML has no tensors of {type}")
    return _DATA_TYPES[type]


def numpy_type(type: torch.dtype) -> Any:
    """NumPy's type of the elements of a DirectML tensor for `type`."""
    return np.dtype(data_type_of(type).name.lower())


def require_expressible(tensor: Any) -> None:
    """Checks that DirectML has a tensor for what a node computes.

    Raises:
        NotExpressible: it has not: sizes that are not known, no elements, other types or layouts ...
    """
    if not isinstance(tensor, torch.Tensor):
        raise NotExpressible(f"{type(tensor).__name__}, not a tensor")
    if tensor.layout is not torch.strided:
        raise NotExpressible(f"a tensor of layout {tensor.layout}")
    data_type_of(tensor.dtype)
    if tensor.dim() > MOST_DIMENSIONS:
        raise NotExpressible(f"{tensor.dim()} dimensions; DirectML has up to {MOST_DIMENSIONS}")
    if 0 in tensor.shape:
        raise NotExpressible(f"sizes {list(tensor.shape)}: no elements")
