"""Cases of the checks of the CUDA target: windows and samples of images, of which threads take some rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opendml import descs
from opendml.runtime.program import program_of
from opendml.spec.enums import InterpolationMode, TensorDataType
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.tensor_desc import TensorDesc
from tools.cuda_case import Case

FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)
_SUMMED = 1e-4
"""What sums of a few dozen normally distributed numbers may be off by: the reference rounds nothing."""


def window_cases() -> Iterator[Case]:
    """Pooling, normalization across channels, and resampling, of even and odd sizes."""
    for type in FLOATS:
        for sizes in ([2, 36, 48, 80], [2, 36, 51, 79]):
            for desc in (*_pooled(type, sizes), *_normalized(type, sizes), *_sampled(type, sizes)):
                name = f"{desc.operator} {type.name} {sizes}"
                yield Case(name, program_of(desc), absolute=_SUMMED)
                if sizes[-1] == 80:
                    yield Case(f"{name} offset", program_of(desc), offset=1, absolute=_SUMMED)


def _pooled(type: TensorDataType, sizes: list[int]) -> Iterator[OperatorDesc]:
    x = TensorDesc(type, sizes)
    counts = [(size - 1) // 2 + 1 for size in sizes[2:]]
    pooled, places = (TensorDesc(each, [*sizes[:2], *counts]) for each in (type, TensorDataType.UINT32))
    window: dict[str, Any] = {
        "strides": [2, 2],
        "window_size": [3, 3],
        "start_padding": [1, 1],
        "end_padding": [1, 1],
    }
    for counted in (False, True):
        yield descs.AveragePooling1(x, pooled, **window, dilations=[1, 1], include_padding=counted)
        yield descs.AveragePoolingGrad(pooled, x, **window, include_padding=counted)
    yield descs.MaxPooling2(x, pooled, places, **window, dilations=[1, 1])
    yield descs.MaxPoolingGrad(x, pooled, x, **window, dilations=[1, 1])
    yield descs.LpPooling1(x, pooled, **window, dilations=[1, 1], p=2)


def _normalized(type: TensorDataType, sizes: list[int]) -> Iterator[OperatorDesc]:
    x = TensorDesc(type, sizes)
    for across in (False, True):
        yield descs.LocalResponseNormalization(
            x, x, cross_channel=across, local_size=5, alpha=0.5, beta=0.75, bias=1.0
        )


def _sampled(type: TensorDataType, sizes: list[int]) -> Iterator[OperatorDesc]:
    x = TensorDesc(type, sizes)
    for up in (2, 3):
        more = TensorDesc(type, [*sizes[:2], *(up * size for size in sizes[2:])])
        for mode in InterpolationMode:
            attributes: dict[str, Any] = {"interpolation_mode": mode, "scales": [1.0, 1.0, up, up]}
            yield descs.Resample(x, more, **attributes)
            yield descs.ResampleGrad(
                more, x, **attributes, input_pixel_offsets=[0.5] * 4, output_pixel_offsets=[-0.5] * 4
            )
