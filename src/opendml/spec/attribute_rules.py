"""The checks of an attribute's value by its type, its enumeration and its range."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from math import isfinite
from typing import Any

from opendml.spec import enums
from opendml.spec.enums import FeatureLevel
from opendml.spec.fault import Fault
from opendml.spec.feature_level import full_name
from opendml.spec.naming import camel_case
from opendml.spec.operator_desc import ScaleBias, Size2D
from opendml.spec.schema import Field, Range, value_since
from opendml.spec.tensor_rules import UINT32_MAX, is_integer
from opendml.spec.wording import member_words, shown

FLOAT32_MAX = float.fromhex("0x1.fffffep127")

AttributeCheck = Callable[[Any], list[Fault]]


def attribute_check(field: Field, level: FeatureLevel) -> AttributeCheck:
    """Return the check of an attribute that is no desc: a function from any object to its faults."""
    check = _enum_check(field.enum, level) if field.enum else _VALUE_CHECKS[field.type]
    if field.range and (field.range.below is None or level < field.range.below):
        check = _range_check(check, field.range)
    if field.type in _CONTAINER_CHECKS:
        check = _CONTAINER_CHECKS[field.type](check)
    if field.optional:
        required = check
        return lambda value: [] if value is None else required(value)
    return check


def _malformed(value: Any, allowed: str) -> list[Fault]:
    return [Fault(shown(value), allowed, malformed=True)]


def _float(value: Any) -> list[Fault]:
    """Judge a FLOAT. Infinities and NaN are valid."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _malformed(value, "must be a number")
    if not (abs(value) <= FLOAT32_MAX or (isinstance(value, float) and not isfinite(value))):
        return _malformed(value, "must fit a 32-bit float")
    return []


def _integer_check(low: int, high: int) -> AttributeCheck:
    allowed = f"must be a whole number from {low} to {high}"
    return lambda value: [] if is_integer(value, low, high) else _malformed(value, allowed)


def _bool(value: Any) -> list[Fault]:
    return [] if isinstance(value, bool) else _malformed(value, "must be True or False")


def _array_check(item_check: AttributeCheck) -> AttributeCheck:
    def check(value: Any) -> list[Fault]:
        if not isinstance(value, tuple):
            example = "" if item_check(value) else f", such as [{shown(value)}]"
            return _malformed(value, f"must be a sequence of numbers{example}")
        return [fault.within(i) for i, item in enumerate(value) for fault in item_check(item)]

    return check


def _record_check(record: type[ScaleBias] | type[Size2D], item_check: AttributeCheck) -> AttributeCheck:
    form = f"must be a {record.__name__}({', '.join(record._fields)})"

    def check(value: Any) -> list[Fault]:
        if not isinstance(value, record):
            return _malformed(value, form)
        members = zip(record._fields, value, strict=True)
        return [fault.within(name.capitalize()) for name, item in members for fault in item_check(item)]

    return check


def _enum_check(name: str, level: FeatureLevel) -> AttributeCheck:
    members: type[IntEnum] = getattr(enums, camel_case(name))
    since = {member: value_since(name, member.name) for member in members}
    words = member_words(members, [member.name for member in members if since[member] <= level])

    def check(value: Any) -> list[Fault]:
        if not isinstance(value, members):
            return _malformed(value, words)
        if since[value] > level:
            exists = f"exists from {full_name(since[value])}, not in {full_name(level)}"
            return [Fault(value.name, exists, since=since[value])]
        return []

    return check


def _range_check(check: AttributeCheck, range: Range) -> AttributeCheck:
    words = range_words(range)

    def check_range(value: Any) -> list[Fault]:
        faults = check(value)
        if faults or _within(value, range):
            return faults
        given = value.name if isinstance(value, IntEnum) else shown(value)
        return [Fault(given, words, since=range.below, malformed=True)]

    return check_range


def _within(value: Any, range: Range) -> bool:
    """Whether a number, or a member of an enumeration, is in the range. NaN is in none with a limit."""
    if range.values:
        return (value.name if isinstance(value, IntEnum) else value) in range.values
    return (
        (range.minimum is None or value >= range.minimum)
        and (range.above is None or value > range.above)
        and (not range.finite or isfinite(value))
        and (not range.nonzero or value != 0)
    )


def range_words(range: Range) -> str:
    """The demand on a number in words: "must be finite and at least 0"."""
    limits = [
        "finite" if range.finite else "",
        f"at least {range.minimum}" if range.minimum is not None else "",
        f"above {range.above}" if range.above is not None else "",
        "other than 0" if range.nonzero else "",
        " or ".join(map(str, range.values)),
    ]
    below = f" below {full_name(range.below)}" if range.below else ""
    return f"must be {' and '.join(filter(None, limits))}{below}"


def _scalar(value: Any) -> list[Fault]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return [] if is_number else _malformed(value, "must be a number")


_UINT = _integer_check(0, UINT32_MAX)
_INT = _integer_check(-(2**31), 2**31 - 1)

_VALUE_CHECKS: dict[str, AttributeCheck] = {
    "FLOAT": _float,
    "UINT": _UINT,
    "INT": _INT,
    "BOOL": _bool,
    "FLOAT_ARRAY": _float,
    "UINT_ARRAY": _UINT,
    "INT_ARRAY": _INT,
    "SCALE_BIAS": _float,
    "SIZE_2D": _UINT,
    "SCALAR_UNION": _scalar,
}
"""The check of one number, by the type of the attribute that is it or contains it."""

_CONTAINER_CHECKS: dict[str, Callable[[AttributeCheck], AttributeCheck]] = {
    "FLOAT_ARRAY": _array_check,
    "UINT_ARRAY": _array_check,
    "INT_ARRAY": _array_check,
    "SCALE_BIAS": partial(_record_check, ScaleBias),
    "SIZE_2D": partial(_record_check, Size2D),
}
