"""What the values of attributes are to their operator, as keys: equal exactly where the operator sees the
same.

Python finds True, 1 and 1.0 equal, and 0.0 and -0.0, but no NaN equal to another. As a FLOAT 1 and 1.0 are
the same, True is none, zeros of different signs are different numbers, and all NaNs are alike.

Floats other than zero and NaN are their own keys, and no other key equals a number: who needs many keys fast
need not ask for those.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import Any

from opendml.spec import enums
from opendml.spec.facts import operator_facts
from opendml.spec.naming import camel_case
from opendml.spec.plain import as_member, as_plain, as_tuple
from opendml.spec.schema import Field, operator

Key = Callable[[Any], Hashable]

_MOST_EXACT = 2**53
"""Up to here a float has every whole number."""


@cache
def attribute_keys(name: str) -> tuple[Key, ...]:
    """What makes the keys of an operator's attributes, in their order."""
    return tuple(map(_key, operator(name).attributes))


@cache
def field_keys(name: str) -> dict[str, Key]:
    """What makes the keys of an operator's attributes, by their Python names; of an operator that DirectML
    does not have, of none."""
    if name not in operator_facts():
        return {}
    names = [field.python_name for field in operator(name).attributes]
    return dict(zip(names, attribute_keys(name), strict=True))


def _key(field: Field) -> Key:
    if field.enum:
        return partial(_member, getattr(enums, camel_case(field.enum)))
    container = _CONTAINERS.get(field.type)
    item = _ITEMS[field.type]
    return partial(container, item) if container else item


def _float(value: Any) -> Hashable:
    kind = type(value)
    if kind is float:
        return value if value and value == value else repr(value)
    if kind is int and abs(value) <= _MOST_EXACT:
        return _float(float(value))
    return _other(value, _float)


def _integer(value: Any) -> Hashable:
    return (value,) if type(value) is int else _other(value, _integer)


def _scalar(value: Any) -> Hashable:
    """A number of any type: 1 and 1.0 are not the same INT64."""
    return (value,) if type(value) is int else _float(value)


def _boolean(value: Any) -> Hashable:
    return (value,) if type(value) is bool else _other(value, _boolean)


def _member(members: Any, value: Any) -> Hashable:
    named = as_member(members, value)
    return (named,) if type(named) is members else _other(value, partial(_member, members))


def _sequence(item: Key, value: Any) -> Hashable:
    if type(value) is tuple or type(value) is list:
        return tuple(map(item, value))
    return _other(value, partial(_sequence, item))


def _record(item: Key, value: Any) -> Hashable:
    if hasattr(value, "_fields") and isinstance(value, tuple):
        return type(value), *map(item, value)
    return _other(value, partial(_record, item))


def _desc(value: Any) -> Hashable:
    """Descs are equal by these keys. One that nests too deeply to be compared says so itself."""
    if not hasattr(value, "operator"):
        return _other(value, _desc)
    try:
        hash(value)
    except TypeError:  # no desc
        return object()
    return value  # type: ignore[no-any-return]


def _other(value: Any, key: Key) -> Hashable:
    """The key of None, of a value as NumPy and others have it, and of what is no such attribute at all, which
    the validator refuses."""
    if value is None:
        return None
    plain = as_tuple(as_plain(value))
    if type(plain) is not type(value):
        return key(plain)
    try:
        return type(value), repr(value)
    except Exception:  # whatever a foreign __repr__ raises
        return object()


_ITEMS: dict[str, Key] = {
    "FLOAT": _float,
    "UINT": _integer,
    "INT": _integer,
    "BOOL": _boolean,
    "FLOAT_ARRAY": _float,
    "UINT_ARRAY": _integer,
    "INT_ARRAY": _integer,
    "SCALE_BIAS": _float,
    "SIZE_2D": _integer,
    "SCALAR_UNION": _scalar,
    "OPERATOR_DESC": _desc,
    "OPERATOR_DESC_ARRAY": _desc,
}
"""The key of one value, by the type of the attribute that is it or contains it."""

_CONTAINERS: dict[str, Callable[[Key, Any], Hashable]] = {
    "FLOAT_ARRAY": _sequence,
    "UINT_ARRAY": _sequence,
    "INT_ARRAY": _sequence,
    "SCALE_BIAS": _record,
    "SIZE_2D": _record,
    "OPERATOR_DESC_ARRAY": _sequence,
}


def append_keys(keys: list[Hashable], name: str, attributes: Sequence[Any]) -> None:
    """Appends the keys of an operator's attributes, given in their order."""
    for value in attributes:
        if type(value) is not float or not value or value != value:
            break
    else:
        keys += attributes
        return
    for make, value in zip(attribute_keys(name), attributes):  # noqa: B905 (slower)
        keys.append(make(value))


def sizes_key(sizes: Any) -> Hashable:
    """The key of a tensor's sizes."""
    return _sequence(_integer, sizes)
