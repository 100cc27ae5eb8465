"""DirectML's types of elements by the names that libraries of arrays give them."""

from __future__ import annotations

from opendml.spec.enums import TensorDataType

DATA_TYPES = {type.name.lower(): type for type in TensorDataType if type is not TensorDataType.UNKNOWN}
"""DirectML's types by the names that NumPy, ml_dtypes, ONNX and PyTorch have for them."""

_TRUTH_VALUES = ("bool", "bool_")
"""Truth values are UINT8 in DirectML: 1 byte, 0 or 1."""


def element_type(type: object) -> TensorDataType | None:
    """Return DirectML's type for a dtype or a scalar type of NumPy, ml_dtypes or PyTorch; None: it has none.

    >>> import numpy as np
    >>> element_type(np.dtype(np.bool_))
    <TensorDataType.UINT8: 5>
    """
    if not getattr(type, "isnative", True):  # elements in a foreign order of bytes
        return None
    name = getattr(type, "name", None) or _name(type)
    if not isinstance(name, str):
        return None
    return TensorDataType.UINT8 if name in _TRUTH_VALUES else DATA_TYPES.get(name)


def is_bfloat16_type(type: object) -> bool:
    """Return whether a type, or the name of one, is bfloat16, which graphs have beside DirectML's types.

    >>> is_bfloat16_type("bfloat16"), is_bfloat16_type("float16")
    (True, False)
    """
    name = type if isinstance(type, str) else getattr(type, "name", None) or _name(type)
    return isinstance(name, str) and name.lower() == "bfloat16"


def _name(type: object) -> object:
    """Return the name of a class, or the last part of a text such as "torch.float32"."""
    name = getattr(type, "__name__", None)
    if name:
        return name
    try:
        return str(type).rpartition(".")[2]
    except Exception:  # whatever a foreign __str__ raises
        return ""
