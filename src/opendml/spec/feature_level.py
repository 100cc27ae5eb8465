"""Feature levels, their names, and what exists from which level."""

from __future__ import annotations

from functools import cache

from opendml.errors import InvalidArgument
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import enum_facts
from opendml.spec.values import text_of

NEWEST = max(FeatureLevel)

_PREFIX = "DML_FEATURE_LEVEL_"
_BY_NAME = {level.name.removeprefix("LEVEL_"): level for level in FeatureLevel}
_BY_VALUE = {level.value: level for level in FeatureLevel}


def as_feature_level(level: FeatureLevel | str | int | None) -> FeatureLevel:
    """Return the feature level that `level` names.

    Args:
        level: a member, its value, "2_0" or "DML_FEATURE_LEVEL_2_0"; None is the newest.

    Raises:
        InvalidArgument: no such level.
    """
    if isinstance(level, FeatureLevel):
        return level
    if level is None:
        return NEWEST
    if isinstance(level, str) and (known := _BY_NAME.get(level.removeprefix(_PREFIX))) is not None:
        return known
    if isinstance(level, int) and (known := _BY_VALUE.get(level)) is not None:
        return known
    raise InvalidArgument(f"feature level: {text_of(level)}; opendml knows {', '.join(_BY_NAME)}")


def full_name(level: FeatureLevel) -> str:
    """Return DirectML's own name of the level, such as DML_FEATURE_LEVEL_2_0."""
    return _PREFIX + short_name(level)


def short_name(level: FeatureLevel) -> str:
    """Return the name of the level as tables abbreviate it: 2_0."""
    return level.name.removeprefix("LEVEL_")


def level_named(name: str) -> FeatureLevel:
    """Return the level that the facts call "2_0"."""
    return FeatureLevel[f"LEVEL_{name}"]


@cache
def value_since(enum: str, value: str) -> FeatureLevel:
    """Return the level from which a value of an enumeration exists."""
    late: dict[str, str] = enum_facts()["enum_values_since_level"].get(enum, {})
    return level_named(late.get(value, "1_0"))


@cache
def method_since(name: str) -> FeatureLevel:
    """Return the level from which a method of the object model exists."""
    late: dict[str, str] = enum_facts()["methods_since_level"]
    return level_named(late.get(name, "1_0"))
