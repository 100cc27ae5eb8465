"""DirectML's enumerations in JSON: strings, with or without the prefix that C gives them."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import TypeVar

from opendml.json_files.node import Node, suggestion

_Enum = TypeVar("_Enum", bound=IntEnum)
_Flag = TypeVar("_Flag", bound=IntFlag)


def enum_value(node: Node, key: str, enum: type[_Enum]) -> _Enum:
    """The member of `enum` that the string names; `key` is DirectML's name of the type without DML_."""
    return enum[_member_name(node, f"DML_{key}_", enum)]


def flags_value(node: Node, key: str, flags: type[_Flag]) -> _Flag:
    """The flags that a string or an array of strings names. DirectML's flags have the type's name in the
    singular as prefix: DML_TENSOR_FLAG_NONE is one of DML_TENSOR_FLAGS."""
    value = flags(0)
    for element in [node] if isinstance(node.value, str) else node.elements():
        value |= flags[_member_name(element, f"DML_{key.removesuffix('S')}_", flags)]
    return value


def _member_name(node: Node, prefix: str, enum: type[IntEnum] | type[IntFlag]) -> str:
    name = node.string().removeprefix(prefix)
    if name not in enum.__members__:
        node.fail(f"a value of {prefix.removesuffix('_')}", f'"{name}"{suggestion(name, enum.__members__)}')
    return name
