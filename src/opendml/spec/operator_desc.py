"""The base of the generated desc classes: immutable values with DirectML's fields."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any, ClassVar, Self

from opendml.errors import InvalidArgument
from opendml.spec.schema import attribute_keys
from opendml.spec.values import ScaleBias, Size2D, as_plain, text_of

__all__ = ["OperatorDesc", "ScaleBias", "Size2D"]

_set = object.__setattr__


class OperatorDesc:
    """The description of one operator: immutable, hashable, equal where DirectML sees the same.

    The constructors check nothing; `opendml.validate` does.
    """

    __slots__ = ("_key",)
    _key: tuple[Hashable, ...]

    operator: ClassVar[str] = ""
    """DirectML's name of the operator, without DML_OPERATOR_."""

    fields: ClassVar[tuple[str, ...]] = ()
    """The Python names of the fields in DirectML's order, without the counts."""

    def _fill(self, *values: Any) -> None:
        for name, value in zip(self.fields, values, strict=True):
            _set(self, name, as_plain(value))

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.fields])

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which the named fields have other values.

        Raises:
            TypeError: a name that is no field of this desc.
        """
        return type(self)(**(dict(zip(self.fields, self._values(), strict=True)) | changes))

    def _with(self, **changes: Any) -> Self:
        """Return a copy like `replace`, with values that need no conversion."""
        made = object.__new__(type(self))
        for name in self.fields:
            _set(made, name, changes[name] if name in changes else getattr(self, name))
        return made

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, OperatorDesc) or type(self) is not type(other):
            return NotImplemented
        try:
            return self._exact() == other._exact()
        except RecursionError as error:
            raise self._too_deep() from error

    def __hash__(self) -> int:
        try:
            return hash(self._exact())
        except RecursionError as error:
            raise self._too_deep() from error

    def _exact(self) -> tuple[Hashable, ...]:
        """Return the values as keys: zeros of different signs are different, all NaNs are alike."""
        try:
            return self._key
        except AttributeError:
            pass
        keys = attribute_keys(self.operator)
        values = [
            keys[name](value) if name in keys else value
            for name, value in zip(self.fields, self._values(), strict=True)
        ]
        _set(self, "_key", (self.operator, *values))
        return self._key

    def _too_deep(self) -> InvalidArgument:
        return InvalidArgument(
            f"{self.operator}: descs within descs, more deeply than Python can compare; "
            "a fused activation has none of its own"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text_of(getattr(self, name))}" for name in self.fields)
        return f"{type(self).__name__}({shown})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **dict(zip(self.fields, self._values(), strict=True))), ()
