"""Sizes that change: integers that keep the arithmetic by which they follow from named dimensions.

A `Size` behaves as an integer. It has the value of the present run, which is its hint, and an expression
over the dimensions of its `Trace`. A comparison is decided from the ranges of the dimensions where these
suffice. Otherwise the hints decide, and the trace records a guard: what was made with these sizes serves all
sizes that meet its guards. Code that needs a plain integer (`range`, slices, NumPy, `struct`) calls
`__index__`, which guards that the size equals its hint. So no expression is lost without a guard.

Expressions are polynomials with integer coefficients over atoms. An atom is a dimension or a quotient,
rounded down, of two polynomials. Equal polynomials are equal sizes, so most rules about sizes are decided
without a guard. `size_values` computes many expressions for given dimensions in one generated function.

>>> from opendml.program.atoms import Dimension
>>> from opendml.program.size_values import Values
>>> from opendml.program.trace import Trace
>>> trace = Trace({"batch": Dimension(4), "length": Dimension(50)})
>>> batch, length = trace.size("batch"), trace.size("length")
>>> elements = batch * length * 3
>>> elements // batch == length * 3, elements > 11
(True, True)
>>> trace.guards
{}
>>> length > batch, list(trace.guards)
(True, [(<Relation.NOT_NEGATIVE: 0>, <-1-batch+length>)])
>>> Values([elements, length // 8, 7])({"batch": 2, "length": 17}).tolist()
[102, 2, 7]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from opendml.program.atoms import Relation, meets
from opendml.program.polynomials import (
    Interval,
    Polynomial,
    constant_polynomial,
    polynomial_product,
    polynomial_sum,
    scaled,
)
from opendml.program.traced_floats import FLOAT_OPERATIONS, TracedFloat, TracedWord, float_result

if TYPE_CHECKING:
    from opendml.program.trace import Trace

    _Integer = int
else:
    _Integer = object


class Size(_Integer):
    """An integer that keeps how it follows from the dimensions of a trace.

    At run time it is no subclass of `int`, so that code in C cannot take its value without a guard.
    `isinstance(size, int)` holds all the same. No size is constant: the arithmetic returns plain integers
    then.
    """

    __slots__ = ("_hinted", "polynomial", "trace")

    trace: Trace
    polynomial: Polynomial
    _hinted: tuple[object, int]
    """The hint, behind the hints of atoms from which it was found."""

    def __new__(cls, trace: Trace, polynomial: Polynomial) -> Size:
        """Return a new size. Others call `Trace.of`, so that equal sizes are one object."""
        self = object.__new__(cls)
        self.trace, self.polynomial, self._hinted = trace, polynomial, (None, 0)
        return self

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return int

    @property
    def name(self) -> str | None:
        """The name of a dimension; None for other expressions."""
        if len(self.polynomial) != 1 or self.polynomial[0][1] != 1 or len(self.polynomial[0][0]) != 1:
            return None
        atom = self.trace.atoms[self.polynomial[0][0][0]]
        return atom.name if atom.name in self.trace.dimensions else None

    @property
    def hint(self) -> int:
        """The value in the run that is traced."""
        hints = self.trace.hints
        known = self._hinted
        if known[0] is not hints:
            known = self._hinted = hints, self.trace.hint(self.polynomial)
        return known[1]

    @property
    def range(self) -> Interval:
        """Bounds of the values."""
        return self.trace.range(self.polynomial)

    def __repr__(self) -> str:
        return f"<{self.trace.text(self.polynomial)}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(self.__index__(), specification) if specification else repr(self)

    __hash__ = object.__hash__  # Equal sizes of a trace are one object.

    def __index__(self) -> int:
        value = self.hint
        self.trace.holds(Relation.ZERO, polynomial_sum(self.polynomial, constant_polynomial(-value)))
        return value

    __int__ = __trunc__ = __floor__ = __ceil__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return self.trace.holds(Relation.NOT_ZERO, self.polynomial)

    def __add__(self, other: Any) -> Any:
        if type(other) is int and not other:
            return self
        own = self._polynomial_of(other)
        return (
            float_result("+", self, other)
            if own is None
            else self.trace_value(polynomial_sum(self.polynomial, own))
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        own = self._polynomial_of(other)
        if own is None:
            return float_result("-", self, other)
        return self.trace_value(polynomial_sum(self.polynomial, scaled(own, -1)))

    def __rsub__(self, other: Any) -> Any:
        own = self._polynomial_of(other)
        if own is None:
            return float_result("-", other, self)
        return self.trace_value(polynomial_sum(scaled(self.polynomial, -1), own))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            return other * self.__index__()
        if type(other) is int:
            return self if other == 1 else self.trace_value(scaled(self.polynomial, other) if other else ())
        own = self._polynomial_of(other)
        if own is None:
            return float_result("*", self, other)
        return self.trace_value(polynomial_product(self.polynomial, own))

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self.trace_value(scaled(self.polynomial, -1))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __invert__(self) -> Any:
        return -self - 1

    def __pow__(self, exponent: int, modulo: None = None) -> Any:  # type: ignore[override]
        return math.prod([self] * exponent)

    def __floordiv__(self, other: Any) -> Any:
        return self._divided(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._divided(other, self)

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient, self - quotient * other

    def __rdivmod__(self, other: Any) -> Any:
        quotient = other // self
        return quotient, other - quotient * self

    def __truediv__(self, other: Any) -> Any:
        return _quotient_of(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _quotient_of(other, self)

    def __lshift__(self, other: int) -> Any:
        return self * (1 << other)

    def __rshift__(self, other: int) -> Any:
        return self // (1 << other)

    def __rlshift__(self, other: int) -> Any:
        return other << self.__index__()

    def __rrshift__(self, other: int) -> Any:
        return other >> self.__index__()

    def __and__(self, other: Any) -> Any:
        if type(other) is int and other >= 0 and other & (other + 1) == 0:
            return self % (other + 1)
        if type(other) is int and other < 0 and -other & (-other - 1) == 0:
            return self // -other * -other
        return self.__index__() & other

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return self.__index__() | other

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return self.__index__() ^ other

    __rxor__ = __xor__

    def bit_length(self) -> int:
        """Return the number of bits, with guards for all sizes that have as many."""
        length = self.hint.bit_length()
        if length and self >= 1 << length - 1 and self < 1 << length:
            return length
        return self.__index__().bit_length()

    def __eq__(self, other: object) -> bool:
        if self is other or (
            type(other) is Size and self.polynomial == other.polynomial and self.trace is other.trace
        ):
            return True
        if type(other) is int and self.trace._answers is None:
            least, greatest = self.trace.range(self.polynomial)
            if not least <= other <= greatest:
                return False
        if isinstance(other, float) and not (type(other) is float and other.is_integer()):
            return False if type(other) is float else other == self
        difference = self._minus(other)
        return False if difference is None else self.trace.holds(Relation.ZERO, difference)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> Any:
        result = self.__ge__(other)
        return result if result is NotImplemented else not result

    def __ge__(self, other: Any) -> Any:
        if type(other) is float and math.isfinite(other):
            other = math.ceil(other)
        if type(other) is int and (known := self.trace.is_at_least(self.polynomial, other)) is not None:
            return known
        difference = self._minus(other)
        if difference is None:
            return other == -math.inf if type(other) is float else NotImplemented
        return self.trace.holds(Relation.NOT_NEGATIVE, difference)

    def __gt__(self, other: Any) -> Any:
        result = self.__le__(other)
        return result if result is NotImplemented else not result

    def __le__(self, other: Any) -> Any:
        if type(other) is float and math.isfinite(other):
            other = math.floor(other)
        if type(other) is int and (known := self.trace.is_at_least(self.polynomial, other + 1)) is not None:
            return not known
        difference = self._minus(other)
        if difference is None:
            return other == math.inf if type(other) is float else NotImplemented
        return self.trace.holds(Relation.NOT_NEGATIVE, scaled(difference, -1))

    def __copy__(self) -> Size:
        return self

    def __deepcopy__(self, memo: object) -> Size:
        return self

    def trace_value(self, polynomial: Polynomial) -> int:
        """Return a size of the same trace, or a plain integer for a constant."""
        if not polynomial:
            return 0
        if len(polynomial) == 1 and not polynomial[0][0]:
            return polynomial[0][1]
        return self.trace.of(polynomial)

    def _polynomial_of(self, other: Any) -> Polynomial | None:
        """Return another integer as a polynomial; None for what is no integer."""
        if type(other) is Size:
            if other.trace is not self.trace:
                raise ValueError("sizes of two traces")
            return other.polynomial
        if type(other) is int:
            return (((), other),) if other else ()
        if isinstance(other, (int, np.integer)):
            return constant_polynomial(int(other))
        return None

    def _divided(self, above: Any, below: Any) -> Any:
        first, second = self._polynomial_of(above), self._polynomial_of(below)
        if first is None or second is None:
            return float_result("//", above, below)
        if not second or (type(below) is Size and not below):
            raise ZeroDivisionError("integer division or modulo by zero")
        return self.trace_value(self.trace.quotient(first, second))

    def _minus(self, other: object) -> Polynomial | None:
        own = self._polynomial_of(other)
        return None if own is None else polynomial_sum(self.polynomial, scaled(own, -1))


def _quotient_of(above: Any, below: Any) -> Any:
    """Return the quotient of a size and another number, which is plain if the sizes cancel each other."""
    if type(above) is Size and type(below) is Size and above.trace is below.trace:
        first, second = above.trace._without_common_factors(above.polynomial, below.polynomial)
        if scaled(first, second[-1][1]) == scaled(second, first[-1][1]):
            return first[-1][1] / second[-1][1]
        above, below = above.trace_value(first), below.trace_value(second)
    return float_result("/", above, below)


_TRACED = frozenset({Size, TracedFloat, TracedWord})
N = TypeVar("N", int, float)


def is_traced(value: object) -> bool:
    """Return whether a value is a size, a float or a word that is traced."""
    return type(value) in _TRACED


def hint_of(value: N) -> N:
    """Return the value of a size, a number or a word in the traced run, without a guard.

    Other numbers are their own hints.
    """
    return value.hint if type(value) in _TRACED else value  # type: ignore[attr-defined]


def hints_of(values: Iterable[N]) -> list[N]:
    """Return the hints of some values. Most numbers are plain, and calls for all of them would take time."""
    return [each if type(each) is int else hint_of(each) for each in values]


def value_at(value: N, sizes: Mapping[str, int]) -> N:
    """Return a size, a float or a word for dimensions by name, which may be sizes of another trace.

    Other numbers stay.
    """
    if type(value) is Size:
        return value.trace.value(value.polynomial, sizes)
    if type(value) is TracedWord:
        number = value_at(value.number, sizes)
        return TracedWord(number, value.format) if type(number) is TracedFloat else value.bits_of(number)
    if type(value) is TracedFloat:
        made = traced_operation(value.operation)
        return cast(N, made(*[value_at(each, sizes) for each in value.operands]))
    return value


def is_met(relation: Relation, value: Size | TracedFloat, sizes: Mapping[str, int]) -> bool:
    """Return whether a guard holds for dimensions by name."""
    try:
        return meets(relation, value_at(value, sizes))
    except ArithmeticError:
        return False


class NotServedError(Exception):
    """A guard does not hold for the sizes that a block of a trace must serve."""


def names_of(size: float) -> frozenset[str]:
    """Return the names of the dimensions that a number follows from; none for plain numbers.

    >>> from opendml.program.atoms import Dimension
    >>> from opendml.program.trace import Trace
    >>> trace = Trace({"length": Dimension(50), "batch": Dimension(2)})
    >>> sorted(names_of((trace.size("length") + 7) // 8 * 3))
    ['length']
    """
    if type(size) is TracedFloat:
        return frozenset().union(*map(names_of, size.sizes()))
    if type(size) is not Size:
        return frozenset()
    found, pending = set[str](), [size.polynomial]
    while pending:
        for monomial, _ in pending.pop():
            for atom in [size.trace.atoms[number] for number in monomial]:
                if atom.above is None:
                    found.add(atom.name)
                else:
                    pending += [atom.above, atom.below or ()]
    return frozenset(found)


def as_number(value: float) -> float:
    """Return `float(value)`, which keeps how it follows from sizes."""
    if type(value) is Size:
        return TracedFloat("float", value)
    return value if type(value) is TracedFloat else float(value)


def in_float_type(value: float, name: str) -> float:
    """Return a number rounded to FLOAT16, FLOAT32 or FLOAT64, which keeps how it follows from sizes."""
    number = as_number(value)
    if name == "FLOAT64":
        return number
    return TracedFloat(name, number) if type(number) is TracedFloat else FLOAT_OPERATIONS[name](number)


def square_root(value: float) -> float:
    """Return `math.sqrt(value)`, which keeps how it follows from sizes."""
    return TracedFloat("sqrt", value) if type(value) in _TRACED else math.sqrt(value)


_TRACED_OPERATIONS: dict[str, Callable[..., Any]] = {
    "float": as_number,
    "sqrt": square_root,
    "FLOAT16": partial(in_float_type, name="FLOAT16"),
    "FLOAT32": partial(in_float_type, name="FLOAT32"),
}


def traced_operation(name: str) -> Callable[..., Any]:
    """Return an operation of FLOAT_OPERATIONS whose result keeps its expression over sizes."""
    return _TRACED_OPERATIONS.get(name) or FLOAT_OPERATIONS[name]


def is_unit(size: int) -> bool:
    """Return whether a dimension of a size has one element, so that steps along it do not count.

    If the size is above 1 in the traced run, this returns False and records no guard. Steps along a dimension
    are right for one element, too, so the result also serves a size of 1.
    """
    return hint_of(size) < 2 and size < 2


def greatest(first: int, *others: int) -> int:
    """Return the greatest integer as an expression, without a guard.

    >>> from opendml.program.atoms import Dimension
    >>> from opendml.program.size_values import Values
    >>> from opendml.program.trace import Trace
    >>> trace = Trace({"length": Dimension(50)})
    >>> blocks = greatest(trace.size("length") // 16, 4)
    >>> blocks, len(trace.guards), Values([blocks])({"length": 160}).tolist()
    (<4+max(-4+(length//(16)),0)>, 0, [10])
    """
    return reduce(_greater, others, first)


def least(first: int, *others: int) -> int:
    """Return the least integer as an expression, without a guard."""
    return reduce(lambda a, b: a + b - _greater(a, b), others, first)


def are_same(first: Any, second: Any) -> bool:
    """Return whether integers, or tuples of them, are equal for all sizes that meet the guards so far.

    No guard is recorded: those that are equal for some sizes are not the same.
    """
    if type(first) is tuple:
        is_alike = type(second) is tuple and len(first) == len(second)
        return is_alike and all(map(are_same, first, second))
    size = first if type(first) is Size else second
    if type(size) is not Size or first is second or hint_of(first) != hint_of(second):
        return first is second or (type(size) is not Size and bool(first == second))
    return size.trace.is_zero(size._minus(first if size is second else second))


def is_surely_less(first: int, second: int) -> bool:
    """Return whether an integer is less than another one for all sizes in range, without a guard."""
    size = first if type(first) is Size else second
    if type(size) is not Size:
        return first < second
    difference = size._polynomial_of(second - first)
    assert difference is not None
    is_less = size.trace.range(difference)[0] > 0
    if is_less:
        size.trace.note(Relation.NOT_NEGATIVE, polynomial_sum(difference, constant_polynomial(-1)))
    return is_less


def index_range(sizes: Iterable[int], steps: Iterable[int]) -> tuple[int, int]:
    """Return the least and the greatest number that steps . i has for the indices i of a tensor of sizes."""
    before = after = 0
    for size, step in zip(sizes, steps, strict=True):
        reach = (size - 1) * step
        if type(reach) is Size:
            below = least(reach, 0)
            before, after = before + below, after + reach - below
        elif reach < 0:
            before += reach
        else:
            after += reach
    return before, after


def _greater(first: int, second: int) -> int:
    size = first if type(first) is Size else second
    if type(size) is not Size:
        return max(first, second)
    difference = size._polynomial_of(first - second)
    assert difference is not None
    return second + size.trace_value(size.trace.positive(difference))
