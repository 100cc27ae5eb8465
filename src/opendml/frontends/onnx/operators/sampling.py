"""Elements between those of a tensor, at coordinates that are computed, and regions of interest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import along, cast, part, permuted, shaped
from opendml.frontends.common.types import FLOATS, NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result, numpy_type
from opendml.frontends.onnx.operators.matrix import product
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType
from opendml.spec.operator_desc import Size2D

_A = -0.75
"""The coefficient of cubic curves: by how much they overshoot."""
_FLOAT32 = TensorDataType.FLOAT32


@dataclass(frozen=True)
class Tap:
    """A neighbour of coordinates along one dimension: indices within the tensor and weights, None for 1."""

    index: GraphTensor
    weight: GraphTensor | None


@dataclass(frozen=True)
class SampledDimension:
    """A dimension to take elements from.

    Args:
        length: its size.
        padding: what lies outside: "zeros", "border" or "reflection".
        first, last: its borders.
    """

    length: int
    padding: str
    first: float = 0.0
    last: float = 0.0

    def clipped(self, place: GraphTensor) -> GraphTensor:
        """Return the nearest indices of elements."""
        return dml.element_wise_clip(place, min=0.0, max=self.length - 1.0)

    def coordinate(self, place: GraphTensor) -> GraphTensor:
        """Return coordinates moved inside of the borders; with zeros outside, as they are."""
        if self.padding != "border":
            return self._reflected(place) if self.padding == "reflection" else place
        middle, half = (self.first + self.last) / 2, (self.last - self.first) / 2
        return dml.element_wise_if(abs(place - middle) > half, self.clipped(place), place)

    def _reflected(self, place: GraphTensor) -> GraphTensor:
        span = self.last - self.first
        if span == 0:
            return dml.element_wise_clip(place, min=self.first, max=self.first)
        turn = dml.element_wise_modulus_floor(abs(place - self.first), 2 * span)
        return self.first + span - abs(turn - span)

    def tap(self, index: GraphTensor, weight: GraphTensor | None) -> Tap:
        """Return the neighbour at whole numbers, which may lie outside."""
        inside = self.clipped(self._reflected(index) if self.padding == "reflection" else index)
        if self.padding == "zeros":
            counted = dml.cast(inside == index, output_type=_FLOAT32)
            weight = counted if weight is None else weight * counted
        return Tap(dml.cast(inside, output_type="INT32"), weight)


def _nearest(place: GraphTensor, line: SampledDimension) -> list[Tap]:
    return [line.tap(line.coordinate(dml.element_wise_round(place)), None)]


def _linear(place: GraphTensor, line: SampledDimension) -> list[Tap]:
    place = line.coordinate(place)
    low = dml.element_wise_floor(place)
    fraction = place - low
    return [line.tap(low, 1.0 - fraction), line.tap(low + 1.0, fraction)]


def _cubic(place: GraphTensor, line: SampledDimension) -> list[Tap]:
    place = line.coordinate(place)
    low = dml.element_wise_floor(place)
    fraction = place - low
    rest = 1.0 - fraction
    near, far = [_A + 2, -(_A + 3), 0.0, 1.0], [_A, -5 * _A, 8 * _A, -4 * _A]
    distances = ((fraction + 1.0, far), (fraction, near), (rest, near), (rest + 1.0, far))
    steps = zip((-1.0, 0.0, 1.0, 2.0), distances, strict=True)
    return [line.tap(low + step, _polynomial(x, terms)) for step, (x, terms) in steps]


def _polynomial(x: GraphTensor, terms: Sequence[float]) -> GraphTensor:
    """Evaluate a polynomial, whose terms begin with the highest power."""
    start = dml.activation_linear(x, alpha=terms[0], beta=terms[1])
    return reduce(lambda result, term: result * x + term, terms[2:], start)


_TAPS: dict[str, Callable[[GraphTensor, SampledDimension], list[Tap]]] = {
    "nearest": _nearest,
    "linear": _linear,
    "bilinear": _linear,
    "cubic": _cubic,
    "bicubic": _cubic,
}


def sampled(
    planes: GraphTensor, places: Sequence[GraphTensor], lines: Sequence[SampledDimension], mode: str
) -> GraphTensor:
    """Return interpolated elements at coordinates.

    Args:
        planes: [batch, channels, elements].
        places: coordinates in float32 for each dimension of the elements, [batch, 1, samples].
        lines: those dimensions.

    Returns:
        [batch, channels, samples], of the planes' type.
    """
    if mode not in _TAPS:
        raise NotExpressible(f"mode {mode!r}")
    if planes.data_type not in FLOATS:
        raise NotExpressible(f"elements of type {planes.data_type.name}")
    taps = [_TAPS[mode](place, line) for place, line in zip(places, lines, strict=True)]
    sizes = (*planes.sizes[:2], places[0].sizes[2])
    terms = []
    for corner in itertools.product(*taps):
        index = corner[0].index
        for tap, line in zip(corner[1:], lines[1:], strict=True):
            index = index * line.length + tap.index
        found = cast(dml.gather_elements(planes, repeated(index, sizes), axis=2), _FLOAT32)
        weights = [tap.weight for tap in corner if tap.weight is not None]
        terms.append(reduce(dml.element_wise_multiply, weights, found))
    return cast(reduce(dml.element_wise_add, terms), planes.data_type)


@converts("GridSample", since=16)
def grid_sample(node: OnnxConversion) -> Result:
    """Convert GridSample: elements at the places of a grid.

    The coordinates of a place go from -1 to 1, those of the last dimension first.
    """
    sizes, grid_sizes, padding = node.sizes(0), node.sizes(1), node.attribute("padding_mode")
    spatial, corners = sizes[2:], node.flag("align_corners")
    if not spatial or len(grid_sizes) != len(sizes) or grid_sizes[-1] != len(spatial):
        raise NotExpressible(f"a grid of sizes {list(grid_sizes)} over {list(sizes)}")
    if padding not in ("zeros", "border", "reflection"):
        raise NotExpressible(f"padding_mode {padding!r}")
    ends = [(0.0, size - 1.0) if corners else (-0.5, size - 0.5) for size in spatial]
    lines = [SampledDimension(size, padding, *end) for size, end in zip(spatial, ends, strict=True)]
    batch, samples = grid_sizes[0], math.prod(grid_sizes[1:-1])
    grid = shaped(cast(node.tensor(1), _FLOAT32), (batch, samples, len(spatial)))
    places = []
    for number, size in enumerate(spatial):
        line = shaped(part(grid, 2, len(spatial) - 1 - number, 1), (batch, 1, samples))
        half = (size - 1) / 2 if corners else size / 2
        places.append(dml.activation_linear(line, alpha=half, beta=half if corners else half - 0.5))
    planes = shaped(node.tensor(0), (*sizes[:2], math.prod(spatial)))
    found = sampled(planes, places, lines, node.attribute("mode"))
    return node.result(found, (*sizes[:2], *grid_sizes[1:-1]))


@converts("AffineGrid", since=20)
def affine_grid(node: OnnxConversion) -> Result:
    """Convert AffineGrid: the grid of an affine map of coordinates."""
    spatial = node.known_list(1)[2:]
    if len(spatial) not in (2, 3) or node.sizes(0)[1:] != (len(spatial), len(spatial) + 1):
        raise NotExpressible(f"theta of sizes {list(node.sizes(0))} for {len(spatial)} spatial dimensions")
    theta, corners = node.tensor(0), node.flag("align_corners")
    lines = [
        np.linspace(-1, 1, size) if corners else (2 * np.arange(size) + 1) / size - 1 for size in spatial
    ]
    grid = np.meshgrid(*lines, indexing="ij")
    whole = np.stack([*reversed(grid), np.ones(spatial)], -1).reshape(1, -1, len(spatial) + 1)
    result = product(node.constant(whole, numpy_type(theta)), permuted(theta, (0, 2, 1)))
    return node.result(result, (theta.sizes[0], *spatial, len(spatial)))


@converts("DeformConv", since=19)
def deform_conv(node: OnnxConversion) -> Result:
    """Convert DeformConv: a convolution whose windows' elements lie where offsets move them."""
    sizes, kernel, offsets = node.sizes(0), node.sizes(1)[2:], node.sizes(2)
    if len(sizes) != 4 or len(offsets) != 4:
        raise NotExpressible(f"input of sizes {list(sizes)}")
    shared, groups = node.attribute("offset_group"), node.attribute("group")
    batch, taps, windows = sizes[0] * shared, math.prod(kernel), math.prod(offsets[2:])
    if sizes[1] % shared or offsets[:2] != (sizes[0], shared * taps * 2):
        raise NotExpressible(f"offsets of sizes {list(offsets)}")
    moved = shaped(cast(node.tensor(2), _FLOAT32), (batch, taps, 2, windows))
    places = []
    for number in range(2):
        offset = shaped(part(moved, 2, number, 1), (batch, 1, taps * windows))
        places.append(offset + node.constant(_usual_places(node, number, kernel, offsets[2:]), np.float32))
    planes = shaped(node.tensor(0), (batch, sizes[1] // shared, math.prod(sizes[2:])))
    found = sampled(planes, places, [SampledDimension(size, "zeros") for size in sizes[2:]], "linear")
    if node.has(4):
        found = found * shaped(node.tensor(4), (batch, 1, taps * windows))
    weights = node.tensor(1)
    columns = shaped(found, (sizes[0], groups, sizes[1] // groups * taps, windows))
    rows = shaped(weights, (1, groups, weights.sizes[0] // groups, math.prod(weights.sizes[1:])))
    result = shaped(product(rows, columns), (sizes[0], weights.sizes[0], *offsets[2:]))
    return result + along(node.tensor(3), 1, 4) if node.has(3) else result


def _usual_places(node: OnnxConversion, number: int, kernel: Sequence[int], output: Sequence[int]) -> Array:
    """Return where a window's elements lie along a dimension without offsets: [1, 1, taps * outputs]."""
    stride, dilation = (node.list_attribute(name, 2)[number] for name in ("strides", "dilations"))
    within = np.arange(kernel[number]) * dilation
    windows = np.arange(output[number]) * stride - node.list_attribute("pads", 4, 0)[number]
    sizes = [1, 1, 1, 1]
    sizes[number] = kernel[number]
    places = within.reshape(sizes) + windows.reshape([1, 1, -1, 1] if number == 0 else [1, 1, 1, -1])
    return np.broadcast_to(places, (*kernel, *output)).reshape(1, 1, -1).astype(np.float64)


_MOST_SAMPLES = 0xFFFFFFFF
"""The limit of samples that limits nothing."""


@converts("MaxRoiPool", to="ROI_POOLING")
def max_roi_pool(node: OnnxConversion) -> Result:
    """Convert MaxRoiPool: the greatest elements of the parts of regions."""
    height, width = node.required("pooled_shape")
    sizes = node.sizes(1)
    if len(sizes) != 2 or sizes[1] != 5:
        raise NotExpressible(f"regions of sizes {list(sizes)}")
    return dml.roi_pooling(
        node.tensor(0),
        shaped(node.tensor(1), (1, 1, *sizes)),
        spatial_scale=node.attribute("spatial_scale"),
        pooled_size=Size2D(width, height),
    )


def _of_one_element(regions: GraphTensor, scale: float) -> GraphTensor:
    """Return regions that reach over one element at least in each direction."""
    first, last = dml.split(regions, axis=1, sizes=[2, 2])
    return dml.join([first, dml.element_wise_max(last, first + 1 / scale)], axis=1)


@converts("RoiAlign", since=10, to="ROI_ALIGN1")
def roi_align(node: OnnxConversion) -> Result:
    """Convert RoiAlign: means of interpolated elements of the parts of regions.

    The maxima of ONNX are of elements times their weights, before these are added; DirectML's are not.
    """
    mode, samples, scale = (node.attribute(name) for name in ("mode", "sampling_ratio", "spatial_scale"))
    coordinates = node.attribute("coordinate_transformation_mode") or "output_half_pixel"
    if mode != "avg" or coordinates not in ("half_pixel", "output_half_pixel"):
        raise NotExpressible(f"mode {mode!r}, coordinate_transformation_mode {coordinates!r}")
    regions = node.tensor(1) if coordinates == "half_pixel" else _of_one_element(node.tensor(1), scale)
    pooled = (node.attribute("output_height"), node.attribute("output_width"))
    return dml.roi_align1(
        node.tensor(0),
        regions,
        dml.cast(node.tensor(2), output_type="UINT32"),
        reduction_function="AVERAGE",
        interpolation_mode="LINEAR",
        spatial_scale_x=scale,
        spatial_scale_y=scale,
        input_pixel_offset=0.5 if coordinates == "half_pixel" else 0.0,
        output_pixel_offset=-0.5,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=samples or 1,
        maximum_samples_per_output=samples or _MOST_SAMPLES,
        sizes=[regions.sizes[0], node.sizes(0)[1], *pooled],
    )
