"""Expressions: tensors of a graph that is built as they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar, Self, cast

from opendml.frontends.pydirectml import enumerations
from opendml.frontends.pydirectml.activations import activation_desc
from opendml.frontends.pydirectml.devices import Device
from opendml.frontends.pydirectml.enumerations import as_data_type
from opendml.frontends.pydirectml.errors import Refused, refused
from opendml.frontends.pydirectml.tensors import Described, Size2D, TensorDesc, TensorPolicy
from opendml.runtime.calls.operator_call import desc_of_call
from opendml.runtime.graphs.base import GraphBase
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.objects.tensor_fields import tensor_fields
from opendml.spec import descs, enums
from opendml.spec.enums import TensorDataType, TensorFlags
from opendml.spec.feature_level import as_feature_level
from opendml.spec.kinds import ArrayCodec, RecordCodec
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import RequestedOutputs
from opendml.spec.schema import Field, OperatorSchema, operator
from opendml.spec.tensor_desc import TensorDesc as Tensor
from opendml.spec.tensor_desc import calc_buffer_tensor_size

_CAST = "an input of {type}"
"""The fix that messages propose for a tensor of another type: not every PyDirectML has a cast."""


class Scope:
    """A graph that expressions are recorded for, and the device of what is compiled from it."""

    expression: ClassVar[type[Expression]]
    """The class of its expressions."""

    def __init__(self, device: Device) -> None:
        if not isinstance(device, Device):
            raise TypeError(f"{type(self).__name__}.device: {type(device).__name__}; a Device is needed")
        self._device, self.graph = device, GraphBase(as_feature_level(None))
        self.policy = TensorPolicy()
        """The layout in memory of what its operators compute."""
        self.inputs: dict[int, GraphTensor] = {}
        """The inputs by their numbers, in the order in which the graph has them."""

    def __repr__(self) -> str:
        count = len(self.inputs)
        return f"<dml.{type(self).__name__}: {count} input{'s' if count != 1 else ''}>"

    def add_input(self, index: int, desc: Tensor) -> Expression:
        """Add the input of that number, or raise Refused if there is one already."""
        if index in self.inputs:
            raise Refused(f"input_tensor.input_index: {index}; there is such an input already")
        self.inputs[index] = self.graph._input(str(index), desc)
        return self.expression._of(self, self.inputs[index], desc)

    def is_input(self, expression: Expression) -> bool:
        """Return whether an expression is an input, or its bytes as another tensor."""
        return any(expression._tensor is each for each in self.inputs.values())

    def output(self, expression: Expression) -> GraphTensor:
        """Return the tensor of an output. An input, and one reinterpreted, is copied."""
        if expression._desc == expression._tensor._value.tensor and not self.is_input(expression):
            return expression._tensor
        desc = expression._desc
        copy = descs.ElementWiseIdentity(desc, Tensor(desc.data_type, desc.sizes))
        return self.graph._operator(copy, [expression._tensor])[0]


class Expression(Described):
    """A tensor of a graph: an input, or a result of an operator."""

    __array_ufunc__ = None  # NumPy's numbers leave it to the expression beside them
    _scope: Scope
    _tensor: GraphTensor
    _desc: Tensor
    """The bytes of the tensor as they are seen, perhaps with another type and sizes."""

    def __init__(self) -> None:
        raise TypeError(
            "directml.Expression: no constructor; inputs and operators of a graph make expressions"
        )

    @classmethod
    def _of(cls, scope: Scope, tensor: GraphTensor, desc: Tensor) -> Self:
        made = object.__new__(cls)
        made._scope, made._tensor, made._desc = scope, tensor, desc
        return made

    @property
    def desc(self) -> TensorDesc:
        """The desc of the tensor."""
        return self.get_output_desc()

    def get_output_desc(self) -> TensorDesc:
        """Return the desc of the tensor.

        Raises:
            Refused: nothing was assigned to the expression.
        """
        return TensorDesc._of(known(self, "get_output_desc")._desc)

    def __add__(self, other: Expression | float) -> Self:
        return self._with("add", other, lambda number: (1.0, number))

    def __sub__(self, other: Expression | float) -> Self:
        return self._with("subtract", other, lambda number: (1.0, -number))

    def __mul__(self, other: Expression | float) -> Self:
        return self._with("multiply", other, lambda number: (number, 0.0))

    def __truediv__(self, other: Expression | float) -> Self:
        return self._with("divide", other, lambda number: (1.0 / number, 0.0))

    def __mod__(self, other: Expression) -> Self:
        if not isinstance(other, Expression):
            raise TypeError(f"%: {type(other).__name__}; another Expression is needed")
        return self._one("modulus_floor", a=self, b=other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: float) -> Self:
        return self._one("identity", input=self, scale_bias=(-1.0, _number(other)))

    def __rtruediv__(self, other: float) -> Self:
        return self._one("recip", input=self) * _number(other)

    def __neg__(self) -> Self:
        return self._one("negate", input=self)

    def _with(self, name: str, other: Any, scale: Callable[[float], tuple[float, float]]) -> Self:
        """Return the operator of that name with an expression, or the scale and bias of a number."""
        if isinstance(other, Expression):
            return self._one(name, a=self, b=other)
        number = _number(other)
        if name == "divide" and number == 0:
            raise Refused("/: 0.0; an expression cannot be divided by the number 0")
        return self._one("identity", input=self, scale_bias=scale(number))

    def _one(self, name: str, **given: Any) -> Self:
        """Return the output of an element-wise operator, of the class of all expressions of the graph."""
        return cast(Self, record(f"ELEMENT_WISE_{name.upper()}", given)[0])


class InPlace(Expression):
    """A tensor of a GraphBuilder: an input, or a result of an operator.

    Operators in place, such as `+=`, change all names of the object, as in C++.
    """

    def __init__(self) -> None:
        """Make an empty expression."""

    def __repr__(self) -> str:
        return super().__repr__() if hasattr(self, "_tensor") else "<dml.Expression: empty>"

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
        self._scope, self._tensor, self._desc = other._scope, other._tensor, other._desc
        return self


InPlace.__name__ = Expression.__name__


def _number(value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(
            f"{type(value).__name__} beside an Expression; another Expression or a number is needed"
        )
    return float(value)


def known(expression: Any, name: str) -> Expression:
    """Return an argument that is an expression with a value, or raise TypeError or Refused."""
    if not isinstance(expression, Expression):
        raise TypeError(f"{name}: {type(expression).__name__}; an Expression is needed")
    if not hasattr(expression, "_tensor"):
        raise Refused(f"{name}: an empty Expression; operators and input_tensor make others")
    return expression


def record(
    name: str, given: Mapping[str, Any], *, function: str | None = None, scope: Scope | None = None
) -> list[Any]:
    """Add an operator to the graph of its inputs, and return its outputs, None for those not asked for.

    Args:
        name: DirectML's name of the operator.
        given: inputs, attributes, optional outputs, `sizes` and `output_type`, by the names of the immediate
            function's arguments. None and () stand for what is left out.
        function: the name of the caller in messages; None: that of the immediate function.
        scope: the graph of an operator without inputs.

    Raises:
        TypeError: an argument of another kind, or one that the operator does not have.
        Refused: `validate` finds something, or the expressions belong to several graphs.
    """
    label, facts = function or name.lower(), operator(name)
    if unknown := sorted(given.keys() - _arguments(name)):
        raise TypeError(f"{label}: {', '.join(unknown)}; {name} has no such arguments")
    parts = [_expressions(field, given.get(field.argument_name), label) for field in facts.inputs]
    _require_alike(facts, parts, label)
    wanted = [
        field.python_name
        for field in facts.outputs
        if field.optional and truth(given.get(field.argument_name, False), f"{label}.{field.argument_name}")
    ]
    data_type, sizes = given.get("output_type"), given.get("sizes")
    requested = RequestedOutputs(
        None if data_type is None else as_data_type(data_type),
        None if sizes is None else tuple(sizes) or None,
        wanted=frozenset(wanted),
    )
    tensors, flat = list[Any](), list[Expression | None]()
    for field, several in zip(facts.inputs, parts, strict=True):
        seen = [None if each is None else each._desc for each in several]
        tensors.append(tuple(seen) if field.is_array else seen[0])
        flat += several
    attributes = {
        field.python_name: attribute(field, given.get(field.python_name), label) for field in facts.attributes
    }
    scopes = {id(each._scope): each._scope for each in flat if each is not None}
    scope, *others = scopes.values() or (scope,)
    if others:
        raise Refused(f"{label}: expressions of several graphs")
    with refused():
        desc = desc_of_call(name, tensors, attributes, as_feature_level(None), requested, _CAST)
        assert scope is not None  # Every operator with a valid desc has an input, or a graph.
        desc = _laid_out(desc, scope.policy)
        read = [None if each is None else each._tensor for each in flat]
        made = iter(scope.graph._operator(desc, read))
    return [
        slot.tensor and scope.expression._of(scope, next(made), slot.tensor)
        for slot in tensor_fields(desc, "OUTPUT_TENSOR")
    ]


@cache
def _arguments(name: str) -> frozenset[str]:
    """Return the names of the arguments that `record` takes for an operator."""
    return frozenset(field.argument_name for field in operator(name).fields) | {"sizes", "output_type"}


def _expressions(field: Field, value: Any, label: str) -> list[Expression | None]:
    """Return the expressions of an input: one, perhaps None, or those of an array."""
    what = f"{label}.{field.argument_name}"
    if not field.is_array:
        return [None if value is None else known(value, what)]
    several = value if isinstance(value, list | tuple) else [value]
    if not several:
        raise Refused(f"{what}: empty; at least one Expression is needed")
    return [known(each, what) for each in several]


def _require_alike(facts: OperatorSchema, parts: Sequence[Sequence[Expression | None]], label: str) -> None:
    """Raise Refused if inputs differ that must have equal sizes or types: none is repeated silently."""
    given = {field.name: each[0] for field, each in zip(facts.inputs, parts, strict=True)}
    for rule in facts.same:
        present = [each._desc for name in rule.tensors if (each := given.get(name)) is not None]
        for first, other in pairwise(present if rule.below is None else ()):
            if "Sizes" in rule.what and first.sizes != other.sizes:
                fix = "reinterpret with strides of 0, or directml.broadcast, repeats an expression"
                raise Refused(f"{label}: {_shown(first)} and {_shown(other)}: shapes differ; {fix}")
            if "DataType" in rule.what and first.data_type != other.data_type:
                problem = "element types differ; directml.cast converts an expression"
                raise Refused(f"{label}: {_shown(first)} and {_shown(other)}: {problem}")


def _shown(desc: Tensor) -> str:
    return f"{desc.data_type.name.lower()} {list(desc.sizes)}"


def attribute(field: Field, value: Any, label: str) -> Any:
    """Return an argument as the value of an operator's attribute, or raise TypeError."""
    what = f"{label}.{field.python_name}"
    if field.type == "OPERATOR_DESC":
        return activation_desc(value)
    if value is None:
        return None
    if field.type == "OPERATOR_DESC_ARRAY":
        return tuple(map(activation_desc, value))
    if field.enum == "TENSOR_DATA_TYPE":
        return as_data_type(value)
    if field.enum is not None:
        name = camel_case(field.enum)
        own = getattr(enums, name)
        return own(member(getattr(enumerations, name, own), value, what))
    if field.type == "BOOL":
        return truth(value, what)
    if isinstance(field.codec, RecordCodec):
        return field.codec.record(*_pair(value, what))
    if not isinstance(field.codec, ArrayCodec):
        return value
    # An empty list stands for the usual values, if there are any.
    return tuple(value) or (() if field.usual is None and not field.optional else None)


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    if isinstance(value, Size2D):
        return value.width, value.height
    if not isinstance(value, Sequence) or len(value) != 2:
        raise TypeError(f"{what}: {value!r}; two numbers, as a tuple, are needed")
    return value[0], value[1]


def member(enumeration: type[IntEnum], value: Any, what: str) -> int:
    """Return the number of a member of an enumeration, or raise TypeError for a member of another one."""
    if not isinstance(value, enumeration):
        raise TypeError(f"{what}: {type(value).__name__}.{value}; a {enumeration.__name__} is needed")
    return int(value)


def truth(value: Any, what: str) -> bool:
    """Return a truth value, which may be a number, or raise TypeError for what has none, such as an array."""
    try:
        return bool(value)
    except ValueError:
        raise TypeError(f"{what}: {type(value).__name__}; True or False is needed") from None


def _laid_out(desc: OperatorDesc, policy: TensorPolicy) -> OperatorDesc:
    """Return the desc with the strides that the graph's policy gives its outputs."""
    if not policy._channel_last:
        return desc

    def laid_out(tensor: Tensor) -> Tensor:
        return Tensor(tensor.data_type, tensor.sizes, policy.strides(tensor.sizes))

    outputs: dict[str, Any] = {}
    for field in operator(desc.operator).outputs:
        made = getattr(desc, field.python_name)
        outputs[field.python_name] = tuple(map(laid_out, made)) if field.is_array else made and laid_out(made)
    return desc._with(**outputs)


def reinterpreted(
    expression: Expression, data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None
) -> Expression:
    """Return the bytes of an expression as another tensor. An OWNED_BY_DML input stays one."""
    given, sizes = known(expression, "reinterpret.input"), tuple(sizes)
    strides = None if strides is None else tuple(strides)
    with refused():
        total = calc_buffer_tensor_size(data_type, sizes, strides)
    has, is_input = given._desc.size_in_bytes, given._scope.is_input(given)
    if total > has or (total < has and not is_input):
        wanted = f"{list(sizes)}" if strides is None else f"{list(sizes)} with strides {list(strides)}"
        raise Refused(
            f"reinterpret: {wanted} of {data_type.name}; {total} bytes, but the expression has {has}"
        )
    desc = Tensor(data_type, sizes, strides, given._desc.flags if is_input else TensorFlags.NONE)
    return type(given)._of(given._scope, given._tensor, desc)
