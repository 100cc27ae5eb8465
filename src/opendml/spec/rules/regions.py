"""Regions of interest: pooling and alignment."""

from __future__ import annotations

from opendml.spec.enums import ReduceFunction
from opendml.spec.fault import Fault
from opendml.spec.operator_desc import Size2D
from opendml.spec.rules.declared import rule, shape
from opendml.spec.rules.rule import Broken, Sizes, expect, right_aligned
from opendml.spec.tensor_desc import TensorDesc


@rule("ROI_POOLING", basic=True)
def corners_of_regions(roi_tensor: TensorDesc) -> Broken:
    """Regions are (1, 1, N, 5): batch index and corners."""
    yield from expect("roi_tensor", roi_tensor, (1, 1, None, 5), "regions of batch index and corners")


@shape("ROI_POOLING", reason="the regions, channels and {PooledSize} given")
def pooled_regions(input_tensor: TensorDesc, roi_tensor: TensorDesc, pooled_size: Size2D) -> Sizes:
    """The output has the pooled size for each region and channel."""
    return (roi_tensor.sizes[2], input_tensor.sizes[1], pooled_size.height, pooled_size.width)


@rule("ROI_ALIGN", "ROI_ALIGN1", "ROI_ALIGN_GRAD")
def regions_of_batches(roi_tensor: TensorDesc, batch_indices_tensor: TensorDesc) -> Broken:
    """Regions are (N, 4) and batch indices (N), after leading ones."""
    regions = right_aligned((None, 4), len(roi_tensor.sizes))
    yield from expect("roi_tensor", roi_tensor, regions, "regions of two corners")
    indices = right_aligned((roi_tensor.sizes[-2],), len(batch_indices_tensor.sizes))
    yield from expect("batch_indices_tensor", batch_indices_tensor, indices, "the regions given")


@shape("ROI_ALIGN", "ROI_ALIGN1", reason="the regions and channels given", is_open=True)
def aligned_regions(input_tensor: TensorDesc, roi_tensor: TensorDesc) -> Sizes:
    """The output has each region and channel; its height and width are free."""
    return (roi_tensor.sizes[-2], input_tensor.sizes[1], None, None)


@rule("ROI_ALIGN_GRAD")
def aligned_gradients(
    roi_tensor: TensorDesc,
    input_gradient_tensor: TensorDesc,
    input_tensor: TensorDesc | None = None,
    output_gradient_tensor: TensorDesc | None = None,
) -> Broken:
    """The gradient that comes in has the sizes of the forward output, the other those of the forward input.

    DirectML's page calls that typical; where both are given they must, because the batches and pixels would
    not be the same.
    """
    image = input_tensor or output_gradient_tensor
    expected = (roi_tensor.sizes[-2], image.sizes[1] if image else None, None, None)
    yield from expect(
        "input_gradient_tensor", input_gradient_tensor, expected, "the regions and channels given"
    )
    if input_tensor and output_gradient_tensor:
        yield from expect(
            "output_gradient_tensor", output_gradient_tensor, input_tensor.sizes, "the {InputTensor} given"
        )


@rule("ROI_ALIGN", "ROI_ALIGN1", "ROI_ALIGN_GRAD")
def ordered_samples(minimum_samples_per_output: int, maximum_samples_per_output: int) -> Broken:
    """MinimumSamplesPerOutput is at most MaximumSamplesPerOutput."""
    if minimum_samples_per_output > maximum_samples_per_output:
        allowed = f"must be at most {{MaximumSamplesPerOutput}}, {maximum_samples_per_output}"
        yield "minimum_samples_per_output", Fault(minimum_samples_per_output, allowed)


@rule("ROI_ALIGN_GRAD")
def region_gradients(
    reduction_function: ReduceFunction,
    input_tensor: TensorDesc | None = None,
    output_gradient_tensor: TensorDesc | None = None,
    output_roi_gradient_tensor: TensorDesc | None = None,
) -> Broken:
    """There is at least one gradient; that of the regions, and that of maxima, need the forward input."""
    if output_gradient_tensor is None and output_roi_gradient_tensor is None:
        yield "output_gradient_tensor", Fault("missing", "required without {OutputROIGradientTensor}")
    if input_tensor is None:
        if output_roi_gradient_tensor is not None:
            yield "input_tensor", Fault("missing", "required with {OutputROIGradientTensor}")
        elif reduction_function is ReduceFunction.MAX:
            yield "input_tensor", Fault("missing", "required for {ReductionFunction} MAX")
