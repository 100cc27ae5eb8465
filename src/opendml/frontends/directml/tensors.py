"""What tensors of graphs and of devices say of themselves."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from opendml.frontends.directml.call import require_alike
from opendml.frontends.pydirectml import expressions
from opendml.frontends.pydirectml.data_types import numpy_type
from opendml.frontends.pydirectml.tensors import TensorDesc


class Described:
    """A tensor with a desc."""

    @property
    def desc(self) -> TensorDesc:
        """The desc of the tensor."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension."""
        return tuple(self.desc.sizes)

    @property
    def strides(self) -> tuple[int, ...] | None:
        """Elements from one index to the next, per dimension; None: packed."""
        strides = self.desc.strides
        return None if strides is None else tuple(strides)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return numpy_type(self.desc.data_type)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.desc.sizes)

    def __repr__(self) -> str:
        return f"<dml.{type(self).__name__} {self.dtype.name} {list(self.shape)}>"


class Expression(Described, expressions.Expression):
    __doc__ = expressions.Expression.__doc__

    def __init__(self) -> None:
        raise TypeError(
            "directml.Expression: no constructor; inputs and operators of a graph make expressions"
        )

    @property
    def desc(self) -> TensorDesc:
        """The desc of the tensor."""
        return self.get_output_desc()

    def _with(self, other: Any, name: str, scale: expressions.Scale | None) -> expressions.Expression:
        if isinstance(other, expressions.Expression):
            require_alike(name.lower(), self, other)
        return super()._with(other, name, scale)
