"""The base of the generated desc classes: immutable values with DirectML's fields."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

from opendml.spec.plain import as_plain

_set = object.__setattr__


class ScaleBias(NamedTuple):
    """g(x) = x * scale + bias, applied to each input element before the operator (DML_SCALE_BIAS)."""

    scale: float
    bias: float


class Size2D(NamedTuple):
    """A width and a height in elements (DML_SIZE_2D)."""

    width: int
    height: int


class OperatorDesc:
    """The description of one operator: immutable, hashable, equal by value.

    The constructors check nothing; `opendml.validate` does.
    """

    __slots__ = ("_hash",)
    _hash: int

    operator: ClassVar[str]
    """DirectML's name of the operator, without DML_OPERATOR_."""

    fields: ClassVar[tuple[str, ...]]
    """The Python names of the fields in DirectML's order, without the counts."""

    def _fill(self, *values: Any) -> None:
        for name, value in zip(self.fields, values, strict=True):
            _set(self, name, as_plain(value))

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.fields])

    def replace(self, **changes: Any) -> Self:
        """A copy in which the named fields have other values.

        Raises:
            TypeError: a name that is no field of this desc.
        """
        return type(self)(**(dict(zip(self.fields, self._values(), strict=True)) | changes))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, OperatorDesc) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            _set(self, "_hash", hash((self.operator, self._values())))
            return self._hash

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{type(self).__name__}({shown})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._values())


def _rebuild(desc_class: type[OperatorDesc], values: tuple[Any, ...]) -> OperatorDesc:
    """A pickled desc."""
    return desc_class(**dict(zip(desc_class.fields, values, strict=True)))
