"""The operators of `directml` for training: a batch's own normalization, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from opendml.frontends.directml.call import output, outputs, present, truth
from opendml.frontends.directml.movement import scales_of
from opendml.frontends.directml.tensors import Expression, tensor
from opendml.frontends.pydirectml.activations import FusedActivation
from opendml.frontends.pydirectml.enumerations import InterpolationMode, ReduceFunction
from opendml.frontends.pydirectml.errors import Refused

__all__ = [
    "BatchNormalizationGradOutputs",
    "BatchNormalizationTrainingOutputs",
    "RoiAlignGradOutputs",
    "batch_normalization_grad",
    "batch_normalization_training",
    "batch_normalization_training_grad",
    "clip_grad",
    "resample_grad",
    "roi_align_grad",
    "slice_grad",
]


class BatchNormalizationGradOutputs(NamedTuple):
    """The gradients of a batch normalization."""

    gradient: Expression
    scale_gradient: Expression
    bias_gradient: Expression


class BatchNormalizationTrainingOutputs(NamedTuple):
    """What `batch_normalization_training` gives: with the mean and the variance of the batch."""

    output: Expression
    mean: Expression
    variance: Expression


class RoiAlignGradOutputs(NamedTuple):
    """The gradients of `roi_align`; None for what is not asked for."""

    gradient: Expression | None
    roi_gradient: Expression | None


def batch_normalization_training(
    input: Expression,
    scale: Expression,
    bias: Expression,
    fused_add: Expression | None = None,
    *,
    epsilon: float = 1e-5,
    fused_activation: FusedActivation | None = None,
) -> BatchNormalizationTrainingOutputs:
    """BATCH_NORMALIZATION_TRAINING: a normalization by the mean and the variance of the batch itself, and
    `fused_add` on top."""
    made, mean, variance = outputs("BATCH_NORMALIZATION_TRAINING", locals())
    return BatchNormalizationTrainingOutputs(present(made), present(mean), present(variance))


def batch_normalization_grad(
    input: Expression,
    input_gradient: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    *,
    epsilon: float = 1e-5,
) -> BatchNormalizationGradOutputs:
    """BATCH_NORMALIZATION_GRAD: the gradients of a normalization whose mean and variance were given."""
    made = outputs("BATCH_NORMALIZATION_GRAD", locals())
    return BatchNormalizationGradOutputs(*map(present, made))


def batch_normalization_training_grad(
    input: Expression,
    input_gradient: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    *,
    epsilon: float = 1e-5,
) -> BatchNormalizationGradOutputs:
    """BATCH_NORMALIZATION_TRAINING_GRAD: the gradients of a normalization whose mean and variance were
    those of the batch."""
    made = outputs("BATCH_NORMALIZATION_TRAINING_GRAD", locals())
    return BatchNormalizationGradOutputs(*map(present, made))


def clip_grad(input: Expression, input_gradient: Expression, *, min: float, max: float) -> Expression:
    """ELEMENT_WISE_CLIP_GRAD: the gradient where the input is between min and max, 0 elsewhere."""
    return output("ELEMENT_WISE_CLIP_GRAD", locals())


def resample_grad(
    input_gradient: Expression,
    *,
    output_sizes: Sequence[int],
    mode: InterpolationMode,
    scales: Sequence[float] = (),
    input_pixel_offsets: Sequence[float] = (),
    output_pixel_offsets: Sequence[float] = (),
) -> Expression:
    """RESAMPLE_GRAD: the gradient of `resample`, whose input had `output_sizes`; the other arguments are
    those that it had."""
    given = {**locals(), "interpolation_mode": mode}
    if len(scales) == 0:
        given["scales"] = scales_of(output_sizes, tensor(input_gradient, "resample_grad").desc.sizes)
    return output("RESAMPLE_GRAD", given, sizes=output_sizes)


def slice_grad(
    input_gradient: Expression,
    *,
    output_gradient_sizes: Sequence[int],
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """SLICE_GRAD: the gradient of `slice`, in a tensor of zeros of those sizes."""
    return output("SLICE_GRAD", locals(), sizes=output_gradient_sizes)


def roi_align_grad(
    input_gradient: Expression,
    roi: Expression,
    batch_indices: Expression,
    input: Expression | None = None,
    *,
    reduction_function: ReduceFunction,
    interpolation_mode: InterpolationMode,
    spatial_scale_x: float,
    spatial_scale_y: float,
    input_pixel_offset: float,
    output_pixel_offset: float,
    minimum_samples_per_output: int,
    maximum_samples_per_output: int,
    align_regions_to_corners: bool,
    batch_size: int,
    image_height: int,
    image_width: int,
    compute_output_gradient: bool = True,
    compute_output_roi_gradient: bool = False,
) -> RoiAlignGradOutputs:
    """ROI_ALIGN_GRAD: the gradients of `roi_align` for the image, of those sizes, and for the regions. Maxima
    and the regions' gradient need the image itself.

    Raises:
        ValueError: neither gradient is asked for.
    """
    asked = {"output_gradient": compute_output_gradient, "output_roi_gradient": compute_output_roi_gradient}
    wanted = [name for name, value in asked.items() if truth(value, "roi_align_grad")]
    if not wanted:
        raise Refused(f"roi_align_grad: neither gradient is asked for; {' or '.join(asked)} is needed")
    channels = tensor(input_gradient, "roi_align_grad").desc.sizes[1:2]
    sizes = (batch_size, *channels, image_height, image_width)
    return RoiAlignGradOutputs(*outputs("ROI_ALIGN_GRAD", locals(), sizes=sizes, wanted=wanted))
