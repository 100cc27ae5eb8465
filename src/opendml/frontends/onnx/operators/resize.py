"""Resize and Upsample: one axis after the other, each by the weights of its input elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import index

import numpy as np

from opendml.frontends.common.calls import dml
from opendml.frontends.common.tensors import gathered, inverse, permuted, shaped
from opendml.frontends.common.types import FLOATS, NotExpressible
from opendml.frontends.onnx.conversion import OnnxConversion, Result
from opendml.frontends.onnx.operators.matrix import product
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array, stored_type
from opendml.late_dataclass import dataclass
from opendml.program.sizes import Size, is_traced
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType


@dataclass(frozen=True)
class ResizedAxis:
    """One axis and how it changes.

    Args:
        number: which it is.
        length, output: its sizes before and after.
        scale: output by input elements, not always the quotient of the sizes.
        start, end: the part of the input that is seen, of 0 to 1.
    """

    number: int
    length: int
    output: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    @property
    def changes(self) -> bool:
        """True if an element of the output may differ from the input's."""
        return (self.length, self.scale, self.start, self.end) != (self.output, 1.0, 0.0, 1.0)

    def coordinates(self, mode: str) -> Array:
        """Return where the output's elements lie among the input's.

        Raises:
            NotExpressible: the mode is unknown.
        """
        places, last, whole = np.arange(self.output), self.length - 1, self.scale * self.length
        if mode == "align_corners":
            return places * (last / (whole - 1)) if whole != 1 else np.zeros(self.output)
        if mode == "asymmetric":
            return places / self.scale
        if mode == "tf_crop_and_resize":
            seen = (self.end - self.start) * last
            moved = places * seen / (whole - 1) if whole != 1 else places * 0.0 + seen / 2
            return self.start * last + moved
        if mode == "pytorch_half_pixel" and self.output == 1:
            return np.zeros(1)
        if mode == "tf_half_pixel_for_nn":
            return (places + 0.5) / self.scale
        if mode not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            raise NotExpressible(f"coordinate_transformation_mode {mode!r}")
        return self.shift(mode) + (places + 0.5) / self.scale - 0.5

    def shift(self, mode: str) -> float:
        """Return what the mode adds to all coordinates."""
        if mode != "half_pixel_symmetric" or self.output == self.length * self.repeats:
            return 0.0
        return self.length / 2 * (1 - self.output / (self.scale * self.length))

    @property
    def exact(self) -> ResizedAxis:
        """The axis with its sizes of this run, for tables of one number per element."""
        length, output = index(self.length), index(self.output)
        return replace(self, length=length, output=output, scale=float(self.scale))

    @property
    def repeats(self) -> int:
        """The scale if it is a whole number for all sizes; else 0."""
        return int(self.scale) if not is_traced(self.scale) and self.scale.is_integer() else 0

    @property
    def is_point(self) -> bool:
        """True if the scale makes one element of the length."""
        if is_traced(self.scale):
            return self.output == 1
        length = round(1 / self.scale)
        return length * self.scale == 1 and self.length == length


_ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda each: np.floor(each + 0.5),
    "round_prefer_floor": lambda each: np.ceil(each - 0.5),
}


def nearest(coordinates: Array, mode: str, length: int) -> Array:
    """Return the index of the element next to each coordinate.

    Coordinates are float32 first: one that is a rounding off a whole or a half is that.

    Raises:
        NotExpressible: the mode is unknown.
    """
    if mode not in _ROUNDINGS:
        raise NotExpressible(f"nearest_mode {mode!r}")
    places = coordinates.astype(np.float32).astype(np.float64)
    indices: Array = np.clip(_ROUNDINGS[mode](places), 0, length - 1).astype(np.int32)
    return indices


def _linear(distance: Array) -> Array:
    weight: Array = np.clip(1 - np.abs(distance), 0, None)
    return weight


def _cubic(distance: Array, a: float) -> Array:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


@dataclass(frozen=True)
class InterpolationFilter:
    """The weights of elements by their distances.

    Args:
        weight: by the distance in elements.
        reach: the distance from which on the weight is 0.
        is_wide: the filter grows with the input's elements for each of the output's.
        excludes: what lies outside of the input has no weight; else the outermost elements are repeated.
    """

    weight: Callable[[Array], Array]
    reach: int
    is_wide: bool
    excludes: bool

    def matrix(self, axis: ResizedAxis, coordinates: Array) -> Array:
        """Return the weights of all elements of the input for each of the output."""
        scale = min(axis.scale, 1.0) if self.is_wide else 1.0
        reach = math.ceil(self.reach / scale)
        near = np.floor(coordinates)[:, None] + np.arange(-reach, reach + 1)
        weights = self.weight((near - coordinates[:, None]) * scale)
        if self.excludes:
            weights = np.where((near < 0) | (near >= axis.length), 0.0, weights)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
        result = np.zeros((axis.output, axis.length))
        inside = np.clip(near, 0, axis.length - 1).astype(np.int64)
        np.add.at(result, (np.arange(axis.output)[:, None], inside), weights)
        return result


def _filter(node: OnnxConversion, mode: str) -> InterpolationFilter:
    is_wide, excludes = node.flag("antialias"), node.flag("exclude_outside")
    if mode in ("linear", "bilinear", "trilinear"):
        return InterpolationFilter(_linear, 1, is_wide, excludes)
    if mode == "cubic":
        a = node.attribute("cubic_coeff_a")
        return InterpolationFilter(partial(_cubic, a=-0.75 if a is None else a), 2, is_wide, excludes)
    raise NotExpressible(f"mode {mode!r}")


def _axes(node: OnnxConversion, scales: int, sizes: int, roi: int | None) -> list[ResizedAxis]:
    """Return the axes that change, from the node's scales or sizes."""
    given = node.sizes(0)
    numbers = [node.axis(axis, len(given)) for axis in node.attribute("axes") or range(len(given))]
    lengths, count = [given[number] for number in numbers], len(numbers)
    if node.has(sizes) and node.sizes(sizes) != (0,):
        outputs, factors = _fitted(node, lengths, node.known_list(sizes))
    else:
        factors = [float(each) for each in node.known(scales).reshape(-1)]
        outputs = _scaled(lengths, factors)
    if not count == len(outputs) == len(factors):
        raise NotExpressible(f"{len(factors)} scales for {count} axes")
    seen = [0.0] * count + [1.0] * count
    if roi is not None and node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        seen = [float(each) for each in node.known(roi).reshape(-1)]
    if len(seen) != 2 * count:
        raise NotExpressible(f"roi of {len(seen)} numbers for {count} axes")
    each = zip(numbers, lengths, outputs, factors, seen[:count], seen[count:], strict=True)
    axes = [ResizedAxis(*values) for values in each]
    if any((axis.length > 0 and axis.output < 1) or axis.scale <= 0 for axis in axes):
        raise NotExpressible(f"an output of sizes {outputs} has no elements")
    return [axis for axis in axes if axis.changes]


def _scaled(lengths: Sequence[int], factors: Sequence[float]) -> list[int]:
    """Return sizes times scales in float32, rounded down."""
    return [_product(length, factor) for length, factor in zip(lengths, factors, strict=False)]


def _product(length: int, factor: float) -> int:
    if factor == 1:
        return length
    if isinstance(length, Size) and factor > 0:
        # float32 holds whole multiples and parts by powers of two of sizes below 2^24.
        above, below = float(factor).as_integer_ratio()
        whole: int = above * length
        if whole < _EXACT:
            return whole // below
    return int(np.floor(np.float32(length) * np.float32(factor)))


_EXACT = 2**24
"""float32 holds all whole numbers up to it."""


def _fitted(
    node: OnnxConversion, lengths: Sequence[int], outputs: list[int]
) -> tuple[list[int], list[float]]:
    """Return sizes and scales for wanted sizes, which `keep_aspect_ratio_policy` may make others."""
    factors = [output / length if length else 1.0 for output, length in zip(outputs, lengths, strict=False)]
    policy = node.attribute("keep_aspect_ratio_policy") or "stretch"
    if policy == "stretch":
        return outputs, factors
    if policy not in ("not_larger", "not_smaller"):
        raise NotExpressible(f"keep_aspect_ratio_policy {policy!r}")
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [int(factor * length + 0.5) for length in lengths], [factor] * len(lengths)


@converts("Resize", since=11, to="RESAMPLE3")
def resize(node: OnnxConversion) -> Result:
    """Convert Resize by the nearest element, or by lines or cubic curves between elements."""
    coordinates, mode = node.attribute("coordinate_transformation_mode"), node.attribute("mode")
    axes = _axes(node, 2, 3, 1)
    sizes = list(node.sizes(0))
    for axis in axes:
        sizes[axis.number] = axis.output
    if 0 in sizes:
        return node.empty(sizes)
    if mode == "nearest":
        rounding = node.attribute("nearest_mode")
        result = _by_nearest(node, axes, lambda axis: (coordinates, rounding))
    else:
        result = _by_weights(node, axes, coordinates, _filter(node, mode))
    if coordinates == "tf_crop_and_resize":
        result = _extrapolated(node, result, axes)
    return node.result(result, type=node.type(0))


@converts("Resize", since=10)
@converts("Upsample", since=9, to="UPSAMPLE_2D RESAMPLE3")
def upsample(node: OnnxConversion) -> Result:
    """Convert Upsample, by scales alone."""
    return _upsampled(node, _axes(node, 1, node.input_count, None))


@converts("Upsample", since=7)
def upsample_by_attribute(node: OnnxConversion) -> Result:
    """Convert Upsample with scales as an attribute."""
    scales, lengths = node.required("scales"), node.sizes(0)
    if len(scales) != len(lengths):
        raise NotExpressible(f"{len(scales)} scales for {len(lengths)} axes")
    each = enumerate(zip(lengths, _scaled(lengths, scales), scales, strict=True))
    return _upsampled(node, [ResizedAxis(number, *values) for number, values in each if values[2] != 1.0])


def _upsampled(node: OnnxConversion, axes: Sequence[ResizedAxis]) -> Result:
    """Resize an input. Indices are rounded down, or up where the output is smaller."""
    mode = node.attribute("mode")
    if mode != "nearest":
        return _by_weights(node, axes, "asymmetric", _filter(node, mode))
    result = _by_nearest(node, axes, lambda axis: ("asymmetric", "ceil" if axis.scale < 1 else "floor"))
    return node.result(result, type=node.type(0))


def _by_nearest(
    node: OnnxConversion, axes: Sequence[ResizedAxis], modes: Callable[[ResizedAxis], tuple[str, str]]
) -> GraphTensor:
    """Gather the nearest elements. The modes of an axis are those of its coordinates and of rounding."""
    tensor = node.tensor(0)
    for axis in axes:
        coordinates, rounding = modes(axis)
        if _repeats(axis, coordinates, rounding):
            tensor = _repeated(tensor, axis.number, axis.repeats)
            continue
        axis = axis.exact
        indices = nearest(axis.coordinates(coordinates), rounding, axis.length)
        tensor = gathered(tensor, node.constant(indices), axis.number)
    return tensor


def _repeats(axis: ResizedAxis, coordinates: str, rounding: str) -> bool:
    """Return whether the nearest elements are all elements, each as often as the scale says."""
    count = axis.repeats
    if count < 2 or not isinstance(axis.length, Size) or axis.output != axis.length * count:
        return False
    if coordinates in ("align_corners", "tf_crop_and_resize"):
        return False
    # Other coordinates repeat with each element, so those of three elements tell those of all.
    few = ResizedAxis(axis.number, 3, 3 * count, axis.scale)
    indices: list[int] = nearest(few.coordinates(coordinates), rounding, 3).tolist()
    return indices == [number // count for number in range(3 * count)]


def _repeated(tensor: GraphTensor, axis: int, count: int) -> GraphTensor:
    """Repeat each element of an axis by a stride of 0."""
    rows, row = math.prod(tensor.sizes[: axis + 1]), math.prod(tensor.sizes[axis + 1 :])
    sizes = list(tensor.sizes)
    sizes[axis] *= count
    return tensor.reinterpret([rows, count, row], strides=[row, 0, 1]).reinterpret(sizes)


def _by_weights(
    node: OnnxConversion, axes: Sequence[ResizedAxis], coordinates: str, filter: InterpolationFilter
) -> GraphTensor:
    """Return sums of weighted elements, rounded where they are integers."""
    result = tensor = node.tensor(0)
    if tensor.data_type in FLOATS:
        resampled = _resampled(tensor, axes, coordinates, filter)
        if resampled is not None:
            return resampled
    else:
        result = dml.cast(tensor, output_type="FLOAT32")
    type = np.float16 if result.data_type == TensorDataType.FLOAT16 else np.float32
    for axis in [each.exact for each in axes]:
        weights = node.constant(filter.matrix(axis, axis.coordinates(coordinates)).T, type)
        order = [*(each for each in range(len(result.sizes)) if each != axis.number), axis.number]
        moved = permuted(result, order)
        rows = shaped(moved, (math.prod(moved.sizes[:-1]), axis.length))
        made = shaped(product(rows, weights), (*moved.sizes[:-1], axis.output))
        result = permuted(made, inverse(order))
    return result if tensor.data_type in FLOATS else _rounded(node, result)


def _rounded(node: OnnxConversion, tensor: GraphTensor) -> GraphTensor:
    """Return floats as the node's integers, within their limits."""
    type = node.type(0)
    if type.kind not in "iu" or type.itemsize > 2:
        raise NotExpressible(f"interpolation of {type.name}")
    limits = np.iinfo(type)
    whole = dml.element_wise_clip(dml.element_wise_round(tensor), min=limits.min, max=limits.max)
    return dml.cast(whole, output_type=stored_type(type))


_PIXEL_OFFSETS = {
    "align_corners": (0.0, 0.0),
    "asymmetric": (0.0, 0.0),
    "half_pixel": (0.5, -0.5),
    "half_pixel_symmetric": (0.5, -0.5),
    "pytorch_half_pixel": (0.5, -0.5),
}
"""RESAMPLE's offsets of input and output pixels by the modes of coordinates that it has."""


def _resampled(
    tensor: GraphTensor, axes: Sequence[ResizedAxis], coordinates: str, filter: InterpolationFilter
) -> GraphTensor | None:
    """Resize by RESAMPLE; None if it does not mean the same."""
    rank, is_corners = len(tensor.sizes), coordinates == "align_corners"
    if filter.weight is not _linear or filter.is_wide or coordinates not in _PIXEL_OFFSETS or rank > 4:
        return None
    if not axes:
        return tensor
    if any(1 in (axis.length, axis.output) or axis.is_point for axis in axes):
        return None
    before, behind = _PIXEL_OFFSETS[coordinates]
    scales, starts, sizes = [1.0] * rank, [before] * rank, list(tensor.sizes)
    for axis in axes:
        scales[axis.number] = axis.scale
        if is_corners:
            scales[axis.number] = (axis.scale * axis.length - 1) / (axis.length - 1)
        sizes[axis.number] = axis.output
        starts[axis.number] -= axis.shift(coordinates)
    return dml.resample3(
        tensor,
        interpolation_mode="LINEAR",
        rounding_direction="DECREASING",
        scales=scales,
        input_pixel_offsets=starts,
        output_pixel_offsets=[behind] * rank,
        antialiased=False,
        sizes=sizes,
    )


def _extrapolated(node: OnnxConversion, tensor: GraphTensor, axes: Sequence[ResizedAxis]) -> GraphTensor:
    """Put `extrapolation_value` where a coordinate lies outside of the input."""
    outside = np.zeros([1] * len(tensor.sizes), np.bool_)
    for axis in [each.exact for each in axes]:
        places = axis.coordinates("tf_crop_and_resize")
        sizes = [1] * len(tensor.sizes)
        sizes[axis.number] = axis.output
        outside = outside | ((places < 0) | (places > axis.length - 1)).reshape(sizes)
    if not outside.any():
        return tensor
    mask = node.constant(np.broadcast_to(outside, tensor.sizes), np.uint8)
    value: float = node.attribute("extrapolation_value")
    return dml.element_wise_if(mask, value, tensor)
