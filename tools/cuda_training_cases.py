"""Cases of the checks of the CUDA target: gradients, regions, random numbers, and a step of a training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opendml import descs
from opendml.runtime.program import program_of
from opendml.spec.enums import AxisDirection, InterpolationMode, ReduceFunction, TensorDataType
from opendml.spec.operator_desc import OperatorDesc, Size2D
from opendml.spec.tensor_desc import TensorDesc
from tools.cuda_case import Case

FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)
_SUMMED = 1e-4
"""What sums of a few dozen normally distributed numbers may be off by: the reference rounds nothing."""


def training_cases() -> Iterator[Case]:
    """Each operator in one form or a few."""
    single = TensorDataType.FLOAT32
    descs_of = [*_windows(single), *_resamplings(single)]
    for type in FLOATS:
        descs_of += _normalizations(type)
        x, step = TensorDesc(type, [2, 3, 5, 67]), TensorDesc(TensorDataType.UINT32, [1, 1, 1, 1])
        adam = descs.AdamOptimizer(x, x, x, x, step, x, x, x, learning_rate=0.1)
        yield Case(f"ADAM_OPTIMIZER {type.name}", program_of(adam), mean=20, deviation=3, ulps=16)
    for name, desc in descs_of:
        yield Case(f"{desc.operator} {name}", program_of(desc), absolute=_SUMMED)
    for name, desc in _regions(single):
        yield Case(f"{desc.operator} {name}", program_of(desc), mean=15, deviation=6, absolute=_SUMMED)
    state, numbers = (TensorDesc(TensorDataType.UINT32, sizes) for sizes in ([6], [3, 1001]))
    random = descs.RandomGenerator(state, numbers, state)
    yield Case("RANDOM_GENERATOR", program_of(random), special=True)


def _normalizations(type: TensorDataType) -> Iterator[tuple[str, OperatorDesc]]:
    for sizes, kept in (([4, 8, 9, 11], [1, 8, 1, 1]), ([40, 30], [1, 30])):
        x, own = TensorDesc(type, sizes), TensorDesc(type, kept)
        yield (
            f"{type.name} {sizes}",
            descs.BatchNormalizationTraining(x, own, own, x, x, own, own, epsilon=0.1),
        )
        for desc in (descs.BatchNormalizationGrad, descs.BatchNormalizationTrainingGrad):
            yield f"{type.name} {sizes}", desc(x, x, own, own, own, x, own, own, epsilon=30.0)
    for across in (False, True):
        x = TensorDesc(type, [2, 7, 9, 11])
        response = descs.LocalResponseNormalizationGrad(
            x, x, x, cross_channel=across, local_size=5, alpha=0.5, beta=0.75, bias=1.0
        )
        yield f"{type.name} across {across}", response


def _windows(type: TensorDataType) -> Iterator[tuple[str, OperatorDesc]]:
    x = TensorDesc(type, [2, 3, 17, 19])
    for window, stride, counts in ((2, 2, [8, 9]), (3, 2, [9, 10])):
        incoming, margin = TensorDesc(type, [2, 3, *counts]), (window - 1) // 2
        attributes = {
            "strides": [stride] * 2,
            "window_size": [window] * 2,
            "start_padding": [margin] * 2,
            "end_padding": [margin] * 2,
        }
        name = f"{window} {stride}"
        yield name, descs.AveragePoolingGrad(incoming, x, include_padding=False, **attributes)
        yield name, descs.MaxPoolingGrad(x, incoming, x, dilations=[1, 1], **attributes)


def _resamplings(type: TensorDataType) -> Iterator[tuple[str, OperatorDesc]]:
    for size, count in ((7, 14), (14, 5)):
        x, incoming = (TensorDesc(type, [2, 3, each, each]) for each in (size, count))
        scales = [1.0, 1.0, count / size, count / size]
        for mode in InterpolationMode:
            attributes: dict[str, Any] = {
                "interpolation_mode": mode,
                "rounding_direction": AxisDirection.DECREASING,
                "scales": scales,
                "input_pixel_offsets": [0.5] * 4,
                "output_pixel_offsets": [-0.5] * 4,
            }
            yield f"{mode.name} {size} {count}", descs.ResampleGrad1(incoming, x, **attributes)
        yield f"{size} {count}", descs.Resample3(x, incoming, antialiased=True, **attributes)


def _regions(type: TensorDataType) -> Iterator[tuple[str, OperatorDesc]]:
    x = TensorDesc(type, [2, 5, 24, 30])
    corners, batches = TensorDesc(type, [9, 4]), TensorDesc(TensorDataType.UINT32, [9])
    for bins in ([2, 3], [24, 30]):
        output = TensorDesc(type, [9, 5, *bins])
        pooled = Size2D(width=bins[1], height=bins[0])
        regions = TensorDesc(type, [1, 1, 9, 5])
        yield str(bins), descs.RoiPooling(x, regions, output, spatial_scale=1.0, pooled_size=pooled)
        for function in (ReduceFunction.AVERAGE, ReduceFunction.MAX):
            for samples in (2, 2**32 - 1) if bins == [2, 3] else ():
                desc = descs.RoiAlign(
                    x,
                    corners,
                    batches,
                    output,
                    reduction_function=function,
                    interpolation_mode=InterpolationMode.LINEAR,
                    spatial_scale_x=1.0,
                    spatial_scale_y=1.0,
                    out_of_bounds_input_value=0.5,
                    minimum_samples_per_output=1,
                    maximum_samples_per_output=samples,
                )
                yield f"{function.name} {bins} {samples}", desc
    incoming = TensorDesc(type, [9, 5, 2, 3])
    for function in (ReduceFunction.AVERAGE, ReduceFunction.MAX):
        gradient = descs.RoiAlignGrad(
            x,
            incoming,
            corners,
            batches,
            x,
            corners,
            reduction_function=function,
            interpolation_mode=InterpolationMode.LINEAR,
            spatial_scale_x=1.0,
            spatial_scale_y=1.0,
            input_pixel_offset=0.5,
            output_pixel_offset=-0.5,
            minimum_samples_per_output=1,
            maximum_samples_per_output=2,
            align_regions_to_corners=False,
        )
        yield function.name, gradient
