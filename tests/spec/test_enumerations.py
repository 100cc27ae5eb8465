"""Enumerations read as their names, and are DirectML's numbers."""

from __future__ import annotations

import json
import pickle
from enum import IntEnum, IntFlag
from typing import Any

import opendml as dml
from opendml import FLOAT32, ExecutionFlags, FeatureLevel, TensorFlags
from opendml.spec import enums
from tests.for_each import for_each

ENUMERATIONS = [
    each
    for each in vars(enums).values()
    if isinstance(each, type) and issubclass(each, IntEnum | IntFlag) and len(each)
]
MEMBERS = [member for enumeration in ENUMERATIONS for member in enumeration]


def test_every_enumeration_is_tried() -> None:
    public = [getattr(dml, name) for name in dml.__all__]
    assert {each for each in public if isinstance(each, type) and issubclass(each, IntEnum | IntFlag)} <= {
        *ENUMERATIONS
    }
    assert enums.TensorDataType in ENUMERATIONS


@for_each("member", MEMBERS)
def test_members_format_as_their_names(member: Any) -> None:
    width = len(member.name) + 3
    assert f"{member}" == str(member) == f"{member!s}" == "%s" % member == member.name  # noqa: UP031
    assert f"{member:>{width}}" == f"   {member.name}"
    assert repr(member) == f"<{type(member).__name__}.{member.name}: {member.value}>"


@for_each("member", MEMBERS)
def test_members_are_their_numbers(member: Any) -> None:
    value = member.value
    assert (member, int(member), f"{member:d}", f"{member:#06x}") == (
        value,
        value,
        f"{value}",
        f"{value:#06x}",
    )
    assert json.dumps([member]) == f"[{value}]"
    assert pickle.loads(pickle.dumps(member)) is member


def test_combined_flags_format_as_all_their_names() -> None:
    both = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION | ExecutionFlags.DESCRIPTORS_VOLATILE
    assert f"{both}" == "ALLOW_HALF_PRECISION_COMPUTATION|DESCRIPTORS_VOLATILE"
    assert f"{both:d}" == str(int(both))
    assert f"{TensorFlags.NONE}" == "NONE"
    assert f"{TensorFlags(8)}" == "8"


def test_names_of_types_and_levels() -> None:
    assert f"{FLOAT32} from {FeatureLevel.LEVEL_2_0}" == "FLOAT32 from LEVEL_2_0"
