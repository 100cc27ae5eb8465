"""What tensors of graphs and of devices say of themselves."""

from __future__ import annotations

from math import prod
from typing import Any, Self

import numpy as np

from opendml.frontends.pydirectml import expressions
from opendml.frontends.pydirectml.data_types import numpy_type
from opendml.frontends.pydirectml.errors import Refused
from opendml.frontends.pydirectml.expressions import Known, known
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

    def _with(self, other: Any, name: str, scale: expressions.Scale | None) -> Self:
        if isinstance(other, Expression):
            require_alike(name.lower(), self, other)
        return super()._with(other, name, scale)


def tensor(expression: expressions.Expression, name: str) -> Known:
    """The parts of an argument: `desc` has its sizes.

    Raises:
        TypeError: no Expression.
    """
    return known(expression, name)


def require_alike(function: str, first: Expression, *others: Expression) -> None:
    """Checks that operands have the sizes and the type of the first one: nothing is repeated silently.

    Raises:
        ValueError: they differ.
    """
    wanted = tensor(first, function).desc
    for other in others:
        given = tensor(other, function).desc
        shown = f"{function}: {_shown(wanted)} and {_shown(given)}"
        if given.sizes != wanted.sizes:
            raise Refused(f"{shown}: shapes differ; broadcast(expression, shape) repeats an expression")
        if given.data_type != wanted.data_type:
            raise Refused(f"{shown}: element types differ; cast(expression, dtype=...) converts one")


def _shown(desc: Any) -> str:
    return f"{desc.data_type.name.lower()} {list(desc.sizes)}"
