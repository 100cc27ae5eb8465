"""Expressions: what operators of a graph compute, recorded until it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar, cast

from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.frontends.pydirectml.tensors import TensorDesc, TensorPolicy
from opendml.runtime.calls.operator_call import desc_of_call
from opendml.runtime.objects.tensor_fields import tensor_fields
from opendml.spec import tensor_desc
from opendml.spec.enums import TensorFlags
from opendml.spec.feature_level import as_feature_level
from opendml.spec.operator_desc import OperatorDesc, ScaleBias
from opendml.spec.outputs import NOTHING, Told
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc as Tensor

Scale = Callable[[float], tuple[float, float]]

_CAST = "an input of {type}"
"""What messages propose for a tensor of another type: not every PyDirectML has a cast."""


@dataclass(frozen=True, eq=False)
class Source:
    """An input of the graph."""

    index: int


@dataclass(frozen=True, eq=False)
class Node:
    """An operator of the graph.

    Args:
        desc: with its outputs.
        inputs: where each of its input tensors comes from, None for an absent one.
    """

    desc: OperatorDesc
    inputs: tuple[Origin | None, ...]


@dataclass(frozen=True)
class Origin:
    """An input of the graph, or one of a node's outputs."""

    of: Source | Node
    output: int = 0


class Scope:
    """What the expressions of one graph have in common."""

    expression: ClassVar[type[Expression]]
    """The class of its expressions."""

    def __init__(self, policy: TensorPolicy | None = None) -> None:
        self.sources: dict[int, Source] = {}
        self.policy = policy or TensorPolicy()
        """How what its operators compute lies in memory."""

    def __repr__(self) -> str:
        count = len(self.sources)
        return f"<dml.{type(self).__name__}: {count} input{'s' if count != 1 else ''}>"

    def add_input(self, index: int, desc: TensorDesc) -> Expression:
        """An input of the graph.

        Raises:
            Refused: there is one of that number.
        """
        if index in self.sources:
            raise Refused(f"input_tensor.input_index: {index}; there is such an input already")
        self.sources[index] = Source(index)
        return self.expression._made(self, Origin(self.sources[index]), desc._desc)


class Expression:
    """A tensor of a graph: an input, or what an operator computes."""

    __array_ufunc__ = None  # NumPy's numbers leave it to the expression beside them

    def __init__(self) -> None:
        self._scope: Scope | None = None
        self._origin: Origin | None = None
        self._desc: Tensor | None = None

    def __repr__(self) -> str:
        return f"<Expression {self._desc}>"

    @classmethod
    def _made(cls, scope: Scope, origin: Origin, desc: Tensor) -> Self:
        made = object.__new__(cls)
        made._scope, made._origin, made._desc = scope, origin, desc
        return made

    def get_output_desc(self) -> TensorDesc:
        """The desc of the tensor.

        Raises:
            Refused: an expression that nothing was assigned to.
        """
        return TensorDesc._of(known(self, "get_output_desc").desc)

    def __add__(self, other: Expression | float) -> Self:
        return self._with(other, "ELEMENT_WISE_ADD", lambda number: (1.0, number))

    def __sub__(self, other: Expression | float) -> Self:
        return self._with(other, "ELEMENT_WISE_SUBTRACT", lambda number: (1.0, -number))

    def __mul__(self, other: Expression | float) -> Self:
        return self._with(other, "ELEMENT_WISE_MULTIPLY", lambda number: (number, 0.0))

    def __truediv__(self, other: Expression | float) -> Self:
        return self._with(other, "ELEMENT_WISE_DIVIDE", _divided)

    def __mod__(self, other: Expression) -> Self:
        return self._with(other, "ELEMENT_WISE_MODULUS_FLOOR", None)

    def __radd__(self, other: float) -> Self:
        return self._scaled(other, lambda number: (1.0, number))

    def __rsub__(self, other: float) -> Self:
        return self._scaled(other, lambda number: (-1.0, number))

    def __rmul__(self, other: float) -> Self:
        return self._scaled(other, lambda number: (number, 0.0))

    def __rtruediv__(self, other: float) -> Self:
        return self._one("ELEMENT_WISE_RECIP", {"input": self}) * _number(other)

    def __neg__(self) -> Self:
        return self._one("ELEMENT_WISE_NEGATE", {"input": self})

    def _with(self, other: Any, name: str, scale: Scale | None) -> Self:
        """The operator of that name with an expression, or with a number what `scale` makes of it."""
        if isinstance(other, Expression):
            return self._one(name, {"a": self, "b": other})
        if scale is None:
            raise TypeError(f"%: {type(other).__name__}; another Expression is needed")
        return self._scaled(other, scale)

    def _scaled(self, number: Any, scale: Scale) -> Self:
        """The expression times a number plus another, which `scale` makes of one."""
        return self._one(
            "ELEMENT_WISE_IDENTITY", {"input": self}, scale_bias=ScaleBias(*scale(_number(number)))
        )

    def _one(self, name: str, tensors: Tensors, **attributes: Any) -> Self:
        """The output of an operator, of the class of all expressions of the graph."""
        return cast(Self, one(name, tensors, attributes))


class InPlace(Expression):
    """An expression with operators in place."""

    def __iadd__(self, other: Expression | float) -> Self:
        return self._become(self + other)

    def __isub__(self, other: Expression | float) -> Self:
        return self._become(self - other)

    def __imul__(self, other: Expression | float) -> Self:
        return self._become(self * other)

    def __itruediv__(self, other: Expression | float) -> Self:
        return self._become(self / other)

    def __imod__(self, other: Expression) -> Self:
        return self._become(self % other)

    def _become(self, other: Expression) -> Self:
        """In place, as in C++: all names of this object are names of the result."""
        self._scope, self._origin, self._desc = other._scope, other._origin, other._desc
        return self


def _number(value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"{type(value).__name__} beside an Expression; another Expression or a number is needed"
        )
    return float(value)


def _divided(number: float) -> tuple[float, float]:
    if number == 0:
        raise Refused("/: 0.0; an expression cannot be divided by the number 0")
    return 1.0 / number, 0.0


@dataclass(frozen=True)
class Known:
    """An expression that has a value."""

    scope: Scope
    origin: Origin
    desc: Tensor


def known(expression: Any, name: str) -> Known:
    """The parts of an expression.

    Raises:
        TypeError: it is none.
        Refused: nothing was assigned to it.
    """
    if not isinstance(expression, Expression):
        raise TypeError(f"{name}: {type(expression).__name__}; an Expression is needed")
    scope, origin, desc = expression._scope, expression._origin, expression._desc
    if scope is None or origin is None or desc is None:
        raise Refused(f"{name}: an empty Expression; operators and input_tensor make others")
    return Known(scope, origin, desc)


Tensors = Mapping[str, Expression | Sequence[Expression] | None]


def record(
    name: str,
    tensors: Tensors,
    attributes: Mapping[str, Any] | None = None,
    *,
    told: Told = NOTHING,
    scope: Scope | None = None,
) -> list[Expression | None]:
    """The outputs of an operator, None for those that are not wanted.

    Args:
        name: DirectML's name of the operator.
        tensors: its inputs by the names of the immediate function's arguments.
        attributes: its attributes by their Python names; those that are left out are None.
        told: of its outputs, what does not follow.
        scope: the graph of an operator without inputs.

    Raises:
        TypeError: something else than expressions.
        Refused: what `validate` finds, or expressions of several graphs.
    """
    facts, attributes = operator(name), attributes or {}
    grouped, origins, scopes = [], list[Origin | None](), [] if scope is None else [scope]
    for field in facts.inputs:
        given = tensors.get(field.argument_name)
        several = list(given) if isinstance(given, list | tuple) else [given]
        parts = [known(each, f"{name.lower()}.{field.argument_name}") for each in several if each is not None]
        if field.is_array and not parts and not field.optional:
            raise Refused(f"{name.lower()}.{field.argument_name}: empty; at least one Expression is needed")
        scopes += [each.scope for each in parts]
        origins += [each.origin for each in parts] or [None]
        grouped.append(tuple(each.desc for each in parts) if field.is_array else _first(parts))
    if any(scope is not scopes[0] for scope in scopes):
        raise Refused(f"{name.lower()}: expressions of several graphs")
    values = [attributes.get(field.python_name) for field in facts.attributes]
    with refused():
        desc = desc_of_call(name, grouped, values, as_feature_level(None), told, _CAST)
    scope = scopes[0]
    desc = _laid_out(desc, scope.policy)
    node = Node(desc, tuple(origins))
    return [
        None if slot.tensor is None else scope.expression._made(scope, Origin(node, number), slot.tensor)
        for number, slot in enumerate(tensor_fields(desc, "OUTPUT_TENSOR"))
    ]


def _laid_out(desc: OperatorDesc, policy: TensorPolicy) -> OperatorDesc:
    """The desc with its outputs as the graph has them in memory."""
    outputs: dict[str, Any] = {}
    for field in operator(desc.operator).outputs:
        made = getattr(desc, field.python_name)
        several = tuple(policy.applied(each) for each in (made if field.is_array else [made]) if each)
        if several:
            outputs[field.python_name] = several if field.is_array else several[0]
    return desc.replace(**outputs)


def _first(parts: Sequence[Known]) -> Tensor | None:
    return parts[0].desc if parts else None


def one(
    name: str,
    tensors: Tensors,
    attributes: Mapping[str, Any] | None = None,
    *,
    told: Told = NOTHING,
    scope: Scope | None = None,
) -> Expression:
    """The one output of an operator; as `record`."""
    (result,) = (
        each for each in record(name, tensors, attributes, told=told, scope=scope) if each is not None
    )
    return result


_Expression = TypeVar("_Expression", bound=Expression)


def reinterpreted(
    expression: _Expression, data_type: Any, sizes: Sequence[int], strides: Sequence[int] | None
) -> _Expression:
    """The same bytes as another tensor. An input that is handed over at initialization stays one."""
    parts = known(expression, "reinterpret.input")
    with refused():
        total = tensor_desc.calc_buffer_tensor_size(data_type, sizes, strides)
    is_input = isinstance(parts.origin.of, Source)
    if total > parts.desc.size_in_bytes or (total < parts.desc.size_in_bytes and not is_input):
        given = f"{list(sizes)} with strides {list(strides)}" if strides is not None else f"{list(sizes)}"
        problem = f"{total} bytes, but the expression has {parts.desc.size_in_bytes}"
        raise Refused(f"reinterpret: {given} of {data_type.name}; {problem}")
    flags = parts.desc.flags if is_input else TensorFlags.NONE
    desc = Tensor(data_type, tuple(sizes), None if strides is None else tuple(strides), flags)
    return type(expression)._made(parts.scope, parts.origin, desc)
