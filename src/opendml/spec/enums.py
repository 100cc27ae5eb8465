"""DirectML's enumerations and constants, made from `data/enums.json`.

The classes are made when this module is imported. Type checkers read the stub that `tools.generate` writes.
"""

from __future__ import annotations

from typing import Any

from opendml.spec.enumeration import Enumeration, Flags, named_members
from opendml.spec.facts import enum_facts
from opendml.spec.naming import camel_case

_FACTS = enum_facts()
_CLASSES = {camel_case(name): name for name in _FACTS["enums"]}

__all__ = [*_FACTS["constants"], *_CLASSES, "DATA_TYPE_BITS"]


def _enumeration(class_name: str) -> Any:
    """Make the class of one enumeration, such as `TensorDataType` for TENSOR_DATA_TYPE."""
    name = _CLASSES[class_name]
    base = Flags if name in _FACTS["flags"] else Enumeration
    made: Any = base(class_name, named_members(name, _FACTS["enums"][name]), module=__name__)  # type: ignore[call-overload]
    made.__doc__ = f"DML_{name}."
    return made


globals().update(_FACTS["constants"])
globals().update({name: _enumeration(name) for name in _CLASSES})

DATA_TYPE_BITS = {globals()["TensorDataType"][name]: bits for name, bits in _FACTS["data_type_bits"].items()}
"""The size of one element in bits; UNKNOWN has none."""
