"""Element-wise functions of one number that ONNX, PyTorch and DirectML give the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendml.frontends.common.calls import dml

_NAMES = "acos acosh asin asinh atan atanh ceil cos cosh erf exp floor log round sign sin sinh sqrt tan"

SAME_NAME: dict[str, Callable[..., Any]] = {
    name: getattr(dml, f"element_wise_{name}") for name in _NAMES.split()
}
"""DirectML's functions by the lower-case name."""
