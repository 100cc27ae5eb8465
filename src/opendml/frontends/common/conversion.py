"""The base of what converters receive: the graph, and tensors that converters add to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from opendml.frontends.common.types import data_type_of
from opendml.program.scalar_type import ScalarType
from opendml.program.sizes import Size, is_traced
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.descs import FillValueSequence
from opendml.spec.enums import TensorDataType
from opendml.spec.tensor_desc import TensorDesc


class Conversion:
    """A node of a framework's graph while it becomes operators of a DirectML graph.

    Args:
        graph: the graph that receives the operators.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def constant(self, content: Any, type: Any = None) -> GraphTensor:
        """Return an array as a tensor of the graph. A number has one dimension.

        Args:
            type: NumPy's type of the elements; None: that of the content.
        """
        return self.graph.constant(np.ascontiguousarray(np.atleast_1d(np.asarray(content, type))))

    def filled(self, value: float, sizes: tuple[int, ...], type: TensorDataType) -> GraphTensor:
        """Return a tensor with the same number in all elements. It takes the memory of one."""
        sizes = sizes or (1,)
        if is_traced(value):
            return self.filled(0, sizes, type) + value
        single = self.constant(np.full(1, value, ScalarType.of(type).numpy))
        return single.reinterpret(sizes, strides=(0,) * len(sizes))

    def sequence(self, count: int, type: Any, start: int = 0, step: int = 1) -> GraphTensor:
        """Return integers from a first one on as a tensor of one dimension.

        Args:
            count: how many; a size that changes makes them in each run.
            type: NumPy's type.
        """
        if not isinstance(count, Size):
            return self.constant(start + step * np.arange(count), type)
        data_type = data_type_of(np.dtype(type))
        desc = FillValueSequence(
            TensorDesc(data_type, [count]), value_data_type=data_type, value_start=start, value_delta=step
        )
        return self.graph._operator(desc, [])[0]
