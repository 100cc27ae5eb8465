"""The enumerations of PyDirectML that are not DirectML's, and types of elements in NumPy's spelling.

PyDirectML has fewer members of some enumerations. The others are those of `opendml.spec.enums`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opendml.spec import enums
from opendml.spec.element_types import DATA_TYPES, element_type
from opendml.spec.enumeration import Enumeration
from opendml.spec.facts import operator_facts

_NEWER = {"ACTIVATION_CELU": 128, "ACTIVATION_GELU": 157}
"""Operators of later levels that the fork fuses, with DML_OPERATOR_TYPE's numbers."""


def _without(enumeration: Any, *names: str) -> Any:
    """Return an enumeration of the package without these members."""
    members = {each.name: int(each) for each in enumeration if each.name not in names}
    return _made(enumeration.__name__, members, enumeration.__doc__)


def _made(name: str, members: dict[str, int], docstring: str) -> Any:
    made: Any = Enumeration(name, members, module=__name__)  # type: ignore[arg-type, call-arg]
    made.__doc__ = docstring
    return made


def _operator_types() -> dict[str, int]:
    """Return the operators of the first two feature levels in the order of DML_OPERATOR_TYPE.

    Each level has its element-wise operators first, then its activations, then the others.
    """

    def place(name: str) -> tuple[str, bool, bool]:
        is_activation = name.startswith("ACTIVATION_")
        return facts[name]["introduced"], not name.startswith("ELEMENT_WISE_"), not is_activation

    facts = operator_facts()
    first = sorted((name for name, each in facts.items() if each["introduced"] in ("1_0", "2_0")), key=place)
    return {name: number for number, name in enumerate(["INVALID", *first])} | _NEWER


if TYPE_CHECKING:
    from opendml.spec.enums import PaddingMode as PaddingMode
    from opendml.spec.enums import QuantizationType as QuantizationType
    from opendml.spec.enums import TensorDataType as TensorDataType

    OperatorType: Any = None
else:
    PaddingMode = _without(enums.PaddingMode, "SYMMETRIC", "WRAP")
    QuantizationType = _without(enums.QuantizationType, "NONE")
    TensorDataType = _without(enums.TensorDataType, "UINT4", "INT4")
    OperatorType = _made("OperatorType", _operator_types(), "DML_OPERATOR_TYPE.")


class OutputOptions(Enumeration):
    """A choice of the outputs of `gru`."""

    Both = 0
    Sequence = 1
    Single = 2


DataType = TensorDataType | npt.DTypeLike
"""A type of elements: a TensorDataType, or anything that NumPy takes for one."""

_NUMPY: dict[int, np.dtype[Any]] = {
    int(each): np.dtype(name) for name, each in DATA_TYPES.items() if each.name in TensorDataType.__members__
}


def numpy_type(data_type: int) -> np.dtype[Any]:
    """Return NumPy's type for DirectML's number of a type, or raise TypeError for UNKNOWN."""
    if data_type not in _NUMPY:
        raise TypeError(f"{TensorDataType(data_type).name}: no type of a tensor's elements")
    return _NUMPY[data_type]


def as_data_type(data_type: DataType) -> enums.TensorDataType:
    """Return the package's member for a type in any spelling, its own included, or raise TypeError."""
    if isinstance(data_type, TensorDataType | enums.TensorDataType):
        return enums.TensorDataType(int(data_type))
    try:
        found = element_type(np.dtype(data_type))
    except (TypeError, ValueError):
        found = None
    if found is None or found not in _NUMPY:
        names = ", ".join(dtype.name for dtype in _NUMPY.values())
        raise TypeError(f"{data_type!r}: no type of a tensor's elements; one of {names} is needed")
    return found
