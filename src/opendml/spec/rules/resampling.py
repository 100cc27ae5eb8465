"""Images of other sizes."""

from __future__ import annotations

import math

from opendml.spec.rules.declared import shape
from opendml.spec.rules.rule import Sizes, Usual
from opendml.spec.tensor_desc import TensorDesc


@shape("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "RESAMPLE3", reason="", is_open=True)
def scaled_sizes(input_tensor: TensorDesc, scales: tuple[float, ...]) -> Sizes:
    """The input's sizes times the scales, rounded down, as in ONNX; the output may have any others."""
    return tuple(
        Usual(math.floor(size * scale)) for size, scale in zip(input_tensor.sizes, scales, strict=True)
    )
