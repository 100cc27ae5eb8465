"""Floats that keep how they follow from sizes, and their bits as words."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from opendml.program.atoms import Relation

if TYPE_CHECKING:
    from opendml.program.sizes import Size
    from opendml.program.trace import Trace

    _Integer = int
    _Float = float
else:
    _Integer = _Float = object

_EXACT = 2**53
"""The magnitude up to which a float has all whole numbers."""


def rounded(format: str, value: float) -> float:
    """Return a float in one of the formats of `struct`, infinite if that cannot hold it."""
    try:
        (result,) = struct.unpack(format, struct.pack(format, value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(result)


def _float_operator(operation: str, *, other_first: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operation on two numbers."""

    def method(self: Any, other: Any) -> Any:
        return float_result(operation, *((other, self) if other_first else (self, other)))

    return method


class TracedFloat(_Float):
    """A float that keeps how it follows from sizes: an operation of Python on sizes and floats.

    Its value for other sizes has the bits that Python computes from these. At run time it is no subclass of
    `float`; what needs a plain one guards that the number equals its hint.
    """

    __slots__ = ("_hash", "operands", "operation", "trace")

    trace: Trace
    operation: str
    operands: tuple[Any, ...]
    _hash: int

    def __new__(cls, operation: str, *operands: Any) -> TracedFloat:
        """Return a new number; at least one operand is a size or a number."""
        self = object.__new__(cls)
        self.trace = next(each.trace for each in operands if not _is_plain(each))
        self.operation, self.operands = operation, operands
        self._hash = hash((operation, operands))
        return self

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return float

    @property
    def hint(self) -> float:
        """The value in the run that is traced."""
        return float(FLOAT_OPERATIONS[self.operation](*map(_hint_of, self.operands)))

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of the values."""
        return _number_range(self.operation, list(map(_range_of, self.operands)))

    def value(self, sizes: Mapping[Size, int]) -> float:
        """Return the value for the values of the sizes that it is made of."""
        values = [
            each.value(sizes) if type(each) is TracedFloat else sizes[each] if _is_size(each) else each
            for each in self.operands
        ]
        return float(FLOAT_OPERATIONS[self.operation](*values))

    def sizes(self) -> Iterator[Size]:
        """Yield the sizes that it is made of."""
        for each in self.operands:
            if type(each) is TracedFloat:
                yield from each.sizes()
            elif _is_size(each):
                yield each

    def __repr__(self) -> str:
        return f"<{self.operation} {' '.join(map(repr, self.operands))}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(float(self), specification) if specification else repr(self)

    def __hash__(self) -> int:
        return self._hash

    def __float__(self) -> float:
        self.trace.note(Relation.ZERO, None)
        if not self._is_alike(self.hint):
            self.trace.guard(Relation.ZERO, TracedFloat("-", self, self.hint))
        return self.hint

    def __int__(self) -> int:
        return int(float(self))

    __trunc__ = __int__

    def __floor__(self) -> int:
        """Return a size for the product of a size and a float that is exact, such as size * 1.5."""
        size, *others = sorted(self.operands, key=lambda each: not _is_size(each))
        if self.operation == "*" and _is_size(size) and type(others[0]) is float:
            above, below = others[0].as_integer_ratio()
            if max(map(abs, _range_of(size * above))) <= _EXACT:
                whole: int = size * above // below
                return whole
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def is_integer(self) -> bool:
        """Return whether the number is whole, which is guarded by its value."""
        return float(self).is_integer()

    def __bool__(self) -> bool:
        return self != 0

    __add__: Any = _float_operator("+")
    __radd__: Any = _float_operator("+", other_first=True)
    __sub__: Any = _float_operator("-")
    __rsub__: Any = _float_operator("-", other_first=True)
    __mul__: Any = _float_operator("*")
    __rmul__: Any = _float_operator("*", other_first=True)
    __truediv__: Any = _float_operator("/")
    __rtruediv__: Any = _float_operator("/", other_first=True)
    __floordiv__: Any = _float_operator("//")
    __rfloordiv__: Any = _float_operator("//", other_first=True)
    __pow__: Any = _float_operator("**")

    def __neg__(self) -> Any:
        return float_result("*", -1.0, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __eq__(self, other: object) -> bool:
        self.trace.note(Relation.ZERO, None)
        if self is other or self._is_alike(other):
            return True
        if not _is_number(other):
            return False
        if _compared(self, other) == -1 or _compared(other, self) == -1:
            return False
        is_equal: bool = self.hint == _hint_of(other)
        self.trace.guard(Relation.ZERO if is_equal else Relation.NOT_ZERO, TracedFloat("-", self, other))
        return is_equal

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: Any) -> Any:
        return self._is_at_least(self, other) if _is_number(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return self._is_at_least(other, self) if _is_number(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return not self._is_at_least(other, self) if _is_number(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return not self._is_at_least(self, other) if _is_number(other) else NotImplemented

    def __copy__(self) -> TracedFloat:
        return self

    def __deepcopy__(self, memo: object) -> TracedFloat:
        return self

    def _is_alike(self, other: object) -> bool:
        """Return whether another number is the same expression."""
        return type(other) is TracedFloat and (self.operation, self.operands) == (
            other.operation,
            other.operands,
        )

    def _is_at_least(self, first: Any, second: Any) -> bool:
        """Return whether a number, which is this one or compared with it, is not less than another."""
        self.trace.note(Relation.NOT_NEGATIVE, None)
        if (known := _compared(first, second)) is not None:
            return known > 0
        is_met: bool = _hint_of(first) >= _hint_of(second)
        difference = TracedFloat("-", first, second) if is_met else TracedFloat("-", second, first)
        self.trace.guard(Relation.NOT_NEGATIVE, difference)
        if not is_met:
            self.trace.guard(Relation.NOT_ZERO, difference)
        return is_met


FLOAT_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "**": operator.pow,
    "float": float,
    "sqrt": math.sqrt,
    "FLOAT16": partial(rounded, "e"),
    "FLOAT32": partial(rounded, "f"),
}
_RISING = frozenset({"float", "sqrt", "FLOAT16", "FLOAT32"})


def float_result(operation: str, first: Any, second: Any) -> Any:
    """Return the number that an operation on floats, sizes and numbers makes."""
    if not _is_number(first) or not _is_number(second):
        return NotImplemented
    return TracedFloat(operation, first, second)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))


def _is_plain(value: Any) -> bool:
    """Return whether a number is Python's own. The classes of others only pretend to be."""
    return issubclass(type(value), (int, float))


def _is_size(value: Any) -> bool:
    return not _is_plain(value) and type(value) is not TracedFloat


def _hint_of(value: Any) -> Any:
    return value if _is_plain(value) else value.hint


def _range_of(value: Any) -> tuple[float, float]:
    return (value, value) if _is_plain(value) else value.range


def _compared(first: Any, second: Any) -> int | None:
    """Return 1 if a number is not less than another by their ranges, -1 if it is less, else None."""
    own, other = _range_of(first), _range_of(second)
    if own[0] >= other[1]:
        return 1
    return -1 if own[1] < other[0] else None


def _number_range(operation: str, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return bounds of what an operation makes of numbers within bounds. Rounding keeps their order."""
    unknown = -math.inf, math.inf
    if operation in _RISING:
        ((least, greatest),) = ranges
        made = FLOAT_OPERATIONS[operation]
        return (made(least), made(greatest)) if least >= 0 or operation != "sqrt" else unknown
    (first, second) = ranges
    is_divided = operation in ("/", "//")
    if operation == "**" or not all(map(math.isfinite, (*first, *second))):
        return unknown
    if is_divided and second[0] <= 0 <= second[1]:
        return unknown
    try:
        ends = [float(FLOAT_OPERATIONS[operation](a, b)) for a in first for b in second]
    except OverflowError:
        return unknown
    return min(ends), max(ends)


def bits_in(format: str, number: float) -> int:
    """Return the bits of a float in a format of `struct`, as an integer with a sign."""
    return int.from_bytes(struct.pack(format, number), "little", signed=True)


class TracedWord(_Integer):
    """The bits of a number in a float type, as an integer of 64 bits with a sign.

    Args:
        number: the number.
        format: the float type, as a format of `struct` of 8 bytes.
    """

    __slots__ = ("format", "number")

    number: TracedFloat
    format: str

    def __new__(cls, number: TracedFloat, format: str) -> TracedWord:
        """Return the bits of a number."""
        self = object.__new__(cls)
        self.number, self.format = number, format
        return self

    def bits_of(self, number: float) -> int:
        """Return the bits that the word has if its number is this one."""
        return bits_in(self.format, number)

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> type:
            """The class that `isinstance` sees."""
            return int

    @property
    def hint(self) -> int:
        """The bits in the run that is traced."""
        return self.bits_of(self.number.hint)

    def __repr__(self) -> str:
        return f"<bits {self.number!r}>"

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash((self.number, self.format))

    def __eq__(self, other: object) -> bool:
        if type(other) is TracedWord:
            return self.format == other.format and self.number._is_alike(other.number)
        return self.__index__() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __index__(self) -> int:
        return self.bits_of(float(self.number))

    __int__ = __index__
