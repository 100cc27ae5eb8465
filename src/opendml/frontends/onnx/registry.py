"""The converters of ONNX operators, by domain, name and version of the operator set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from opendml.frontends.common.registry import Registry

if TYPE_CHECKING:
    from opendml.frontends.onnx.conversion import OnnxConversion, Result


Converter: TypeAlias = "Callable[[OnnxConversion], Result]"

MICROSOFT = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds."""
OWN = "opendml"
"""The domain of the parts that operators of ONNX are taken apart into."""

CONVERTERS: Registry[Converter] = Registry("opendml.frontends.onnx.operators")
converts = CONVERTERS.converts
