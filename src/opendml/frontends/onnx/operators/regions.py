"""Regions of interest."""

from __future__ import annotations

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.views import shaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_MOST_SAMPLES = 0xFFFFFFFF


@converts("MaxRoiPool")
def max_roi_pool(node: Conversion) -> Result:
    """The greatest elements of the parts of regions."""
    height, width = node.required("pooled_shape")
    sizes = node.sizes(1)
    if len(sizes) != 2 or sizes[1] != 5:
        raise NotExpressible(f"regions of sizes {list(sizes)}")
    return dml.roi_pooling(
        node.tensor(0),
        shaped(node.tensor(1), (1, 1, *sizes)),
        spatial_scale=node.attribute("spatial_scale", 1.0),
        pooled_size=dml.Size2D(width=width, height=height),
    )


def _of_one_element(regions: GraphTensor, scale: float) -> GraphTensor:
    """Regions that reach over one element at least in each direction."""
    first, last = dml.split(regions, axis=1, sizes=[2, 2])
    return dml.join([first, dml.element_wise_max(last, dml.element_wise_add(first, 1 / scale))], axis=1)


@converts("RoiAlign", since=10)
def roi_align(node: Conversion) -> Result:
    """Means of interpolated elements of the parts of regions. The maxima of ONNX are of elements times their
    weights, before these are added."""
    mode, samples = node.attribute("mode", "avg"), node.attribute("sampling_ratio", 0)
    usual = "half_pixel" if node.version >= 16 else "output_half_pixel"
    coordinates = node.attribute("coordinate_transformation_mode", usual)
    if mode != "avg" or coordinates not in ("half_pixel", "output_half_pixel"):
        raise NotExpressible(f"mode {mode!r}, coordinate_transformation_mode {coordinates!r}")
    scale = node.attribute("spatial_scale", 1.0)
    regions = node.tensor(1) if coordinates == "half_pixel" else _of_one_element(node.tensor(1), scale)
    return dml.roi_align1(
        node.tensor(0),
        regions,
        dml.cast(node.tensor(2), output_type=TensorDataType.UINT32),
        reduction_function="AVERAGE",
        interpolation_mode="LINEAR",
        spatial_scale_x=scale,
        spatial_scale_y=scale,
        input_pixel_offset=0.5 if coordinates == "half_pixel" else 0.0,
        output_pixel_offset=-0.5,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=samples or 1,
        maximum_samples_per_output=samples or _MOST_SAMPLES,
        sizes=[
            regions.sizes[0],
            node.sizes(0)[1],
            node.attribute("output_height", 1),
            node.attribute("output_width", 1),
        ],
    )
