"""Source of opendml/spec/enums.py."""

from __future__ import annotations

from collections.abc import Mapping

from opendml.spec.facts import enum_facts
from opendml.spec.naming import camel_case
from tools.generate.text import header


def enum_source() -> str:
    """The whole module: constants, bits per data type, one class per enumeration."""
    facts = enum_facts()
    parts = [header("DirectML's enumerations and constants.")]
    parts.append("\nfrom typing import Final\n\nfrom opendml.spec.enumeration import Enumeration, Flags\n\n")
    parts += [f"{name}: Final = {value}\n" for name, value in facts["constants"].items()]
    for name, values in facts["enums"].items():
        parts.append(_class_source(name, values, "Flags" if name in facts["flags"] else "Enumeration"))
    parts.append("\n\nDATA_TYPE_BITS: Final[dict[TensorDataType, int]] = {\n")
    parts += [f"    TensorDataType.{name}: {bits},\n" for name, bits in facts["data_type_bits"].items()]
    parts.append('}\n"""The size of one element in bits; UNKNOWN has none."""\n')
    return "".join(parts)


def _class_source(name: str, values: Mapping[str, int], base: str) -> str:
    members = "".join(
        f"    {_member(name, member)} = {_value(name, value)}\n" for member, value in values.items()
    )
    return f'\n\nclass {camel_case(name)}({base}):\n    """DML_{name}."""\n\n{members}'


def _member(enum: str, member: str) -> str:
    return f"LEVEL_{member}" if enum == "FEATURE_LEVEL" else member


def _value(enum: str, value: int) -> str:
    return f"0x{value:X}" if enum == "FEATURE_LEVEL" else str(value)
