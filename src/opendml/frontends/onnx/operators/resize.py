"""Resize and Upsample: one axis after the other, each by the weights of its input elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.matrix import product
from opendml.frontends.onnx.operators.views import along, permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.frontends.onnx.values import Array, stored_type
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)


@dataclass(frozen=True)
class Axis:
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

    def coordinates(self, mode: str) -> Array:
        """Where the output's elements lie among the input's.

        Raises:
            NotExpressible: an unknown mode.
        """
        places, last, whole = np.arange(self.output), self.length - 1, self.scale * self.length
        if mode == "align_corners":
            return places * (last / (whole - 1)) if whole != 1 else np.zeros(self.output)
        if mode == "asymmetric":
            return places / self.scale
        if mode == "tf_crop_and_resize":
            seen = (self.end - self.start) * last
            return self.start * last + (
                places * seen / (whole - 1) if whole != 1 else places * 0.0 + seen / 2
            )
        if mode == "pytorch_half_pixel" and self.output == 1:
            return np.zeros(1)
        if mode == "tf_half_pixel_for_nn":
            return (places + 0.5) / self.scale
        if mode not in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
            raise NotExpressible(f"coordinate_transformation_mode {mode!r}")
        shift = self.length / 2 * (1 - self.output / whole) if mode == "half_pixel_symmetric" else 0.0
        return shift + (places + 0.5) / self.scale - 0.5


def nearest(coordinates: Array, mode: str, length: int) -> Array:
    """The index of the element next to each coordinate. What is a rounding off a whole or a half is that.

    Raises:
        NotExpressible: an unknown mode.
    """
    rounded: dict[str, Callable[[Array], Array]] = {
        "ceil": np.ceil,
        "floor": np.floor,
        "round_prefer_ceil": lambda each: np.floor(each + 0.5),
        "round_prefer_floor": lambda each: np.ceil(each - 0.5),
    }
    if mode not in rounded:
        raise NotExpressible(f"nearest_mode {mode!r}")
    places = coordinates.astype(np.float32).astype(np.float64)
    indices: Array = np.clip(rounded[mode](places), 0, length - 1).astype(np.int32)
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
class Filter:
    """How much an element counts by its distance.

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

    def matrix(self, axis: Axis, coordinates: Array) -> Array:
        """Weights of all elements of the input for each of the output."""
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


def _axes(node: Conversion, scales: int, sizes: int, roi: int | None) -> list[Axis]:
    """The axes that change, from the node's scales or sizes."""
    given = node.sizes(0)
    rank = len(given)
    numbers = [node.axis(axis, rank) for axis in node.attribute("axes", None) or range(rank)]
    lengths = [given[number] for number in numbers]
    if node.has(sizes) and node.sizes(sizes) != (0,):
        outputs, factors = _fitted(node, lengths, node.known_list(sizes))
    else:
        factors = [float(each) for each in node.known(scales).reshape(-1)]
        outputs = _scaled(lengths, factors)
    if not len(numbers) == len(outputs) == len(factors):
        raise NotExpressible(f"{len(factors)} scales for {len(numbers)} axes")
    seen = [0.0] * len(numbers) + [1.0] * len(numbers)
    if roi is not None and node.attribute("coordinate_transformation_mode", "") == "tf_crop_and_resize":
        seen = [float(each) for each in node.known(roi).reshape(-1)]
    if len(seen) != 2 * len(numbers):
        raise NotExpressible(f"roi of {len(seen)} numbers for {len(numbers)} axes")
    each = zip(numbers, lengths, outputs, factors, seen[: len(numbers)], seen[len(numbers) :], strict=True)
    axes = [Axis(*values) for values in each]
    if any(axis.output < min(axis.length, 1) or axis.scale <= 0 for axis in axes):
        raise NotExpressible(f"an output of sizes {outputs} has no elements")
    return [
        axis
        for axis in axes
        if (axis.length, axis.scale, axis.start, axis.end) != (axis.output, 1.0, 0.0, 1.0)
    ]


def _scaled(lengths: Sequence[int], factors: Sequence[float]) -> list[int]:
    """Sizes times scales in float32, rounded down."""
    return [
        int(np.floor(np.float32(length) * np.float32(factor)))
        for length, factor in zip(lengths, factors, strict=False)
    ]


def _fitted(node: Conversion, lengths: Sequence[int], outputs: list[int]) -> tuple[list[int], list[float]]:
    """Sizes and scales for wanted sizes, which `keep_aspect_ratio_policy` may make others."""
    factors = [output / length if length else 1.0 for output, length in zip(outputs, lengths, strict=False)]
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return outputs, factors
    if policy not in ("not_larger", "not_smaller"):
        raise NotExpressible(f"keep_aspect_ratio_policy {policy!r}")
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [int(factor * length + 0.5) for length in lengths], [factor] * len(lengths)


@converts("Resize", since=11)
def resize(node: Conversion) -> Result:
    """By the nearest element, by lines or by cubic curves between elements."""
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
    axes = _axes(node, 2, 3, 1)
    sizes = list(node.sizes(0))
    for axis in axes:
        sizes[axis.number] = axis.output
    if 0 in sizes:
        return node.empty(sizes, node.type(0))
    mode = node.attribute("mode", "nearest")
    if mode == "nearest":
        result = _by_nearest(node, axes, coordinates, node.attribute("nearest_mode", "round_prefer_floor"))
    else:
        result = _by_weights(node, axes, coordinates, _filter(node, mode))
    if coordinates == "tf_crop_and_resize":
        result = _extrapolated(node, result, axes)
    return node.result(result, type=node.type(0))


def _filter(node: Conversion, mode: str) -> Filter:
    is_wide, excludes = bool(node.attribute("antialias", 0)), bool(node.attribute("exclude_outside", 0))
    if mode in ("linear", "bilinear", "trilinear"):
        return Filter(_linear, 1, is_wide, excludes)
    if mode == "cubic":
        return Filter(partial(_cubic, a=node.attribute("cubic_coeff_a", -0.75)), 2, is_wide, excludes)
    raise NotExpressible(f"mode {mode!r}")


@converts("Resize", since=10)
@converts("Upsample", since=9)
def upsample(node: Conversion) -> Result:
    """By scales alone; indices are rounded down, or up where the output is smaller."""
    return _upsampled(node, _axes(node, 1, node.input_count, None))


@converts("Upsample", since=7)
def upsample_by_attribute(node: Conversion) -> Result:
    """The same with scales as an attribute."""
    scales, lengths = node.required("scales"), node.sizes(0)
    if len(scales) != len(lengths):
        raise NotExpressible(f"{len(scales)} scales for {len(lengths)} axes")
    each = enumerate(zip(lengths, _scaled(lengths, scales), scales, strict=True))
    axes = [Axis(number, *values) for number, values in each if values[2] != 1.0]
    return _upsampled(node, axes)


def _upsampled(node: Conversion, axes: Sequence[Axis]) -> Result:
    mode = node.attribute("mode", "nearest")
    if mode != "nearest":
        return _by_weights(node, axes, "asymmetric", _filter(node, mode))
    tensor = node.tensor(0)
    for axis in axes:
        rounding = "ceil" if axis.scale < 1 else "floor"
        tensor = _gathered(node, tensor, axis, nearest(axis.coordinates("asymmetric"), rounding, axis.length))
    return node.result(tensor, type=node.type(0))


def _by_nearest(node: Conversion, axes: Sequence[Axis], coordinates: str, mode: str) -> GraphTensor:
    tensor = node.tensor(0)
    for axis in axes:
        tensor = _gathered(node, tensor, axis, nearest(axis.coordinates(coordinates), mode, axis.length))
    return tensor


def _gathered(node: Conversion, tensor: GraphTensor, axis: Axis, indices: Array) -> GraphTensor:
    rank = len(tensor.sizes)
    places = along(node.constant(indices), rank - 1, rank)
    return dml.gather(tensor, places, axis=axis.number, index_dimensions=1)


def _by_weights(node: Conversion, axes: Sequence[Axis], coordinates: str, filter: Filter) -> GraphTensor:
    """Sums of weighted elements, rounded where they are integers."""
    tensor = node.tensor(0)
    is_float = tensor.data_type in _FLOATS
    result = tensor if is_float else dml.cast(tensor, output_type=TensorDataType.FLOAT32)
    resampled = None if not is_float else _resampled(result, axes, coordinates, filter)
    if resampled is not None:
        return resampled
    for axis in axes:
        matrix = filter.matrix(axis, axis.coordinates(coordinates))
        weights = node.constant(
            matrix.T, np.float16 if result.data_type == TensorDataType.FLOAT16 else np.float32
        )
        order = [*(each for each in range(len(result.sizes)) if each != axis.number), axis.number]
        moved = permuted(result, order)
        rows = shaped(moved, (math.prod(moved.sizes[:-1]), axis.length))
        made = shaped(product(rows, weights), (*moved.sizes[:-1], axis.output))
        result = permuted(made, [order.index(each) for each in range(len(order))])
    return result if is_float else _rounded(node, result)


def _rounded(node: Conversion, tensor: GraphTensor) -> GraphTensor:
    """Floats as the node's integers, within their limits."""
    type = node.type(0)
    if type.kind not in "iu" or type.itemsize > 2:
        raise NotExpressible(f"interpolation of {type.name}")
    limits = np.iinfo(type)
    whole = dml.element_wise_clip(dml.element_wise_round(tensor), min=limits.min, max=limits.max)
    return dml.cast(whole, output_type=stored_type(type))


def _resampled(
    tensor: GraphTensor, axes: Sequence[Axis], coordinates: str, filter: Filter
) -> GraphTensor | None:
    """The same by DirectML's operator, where it says this; None: it does not."""
    offsets = {
        "align_corners": (0.0, 0.0),
        "asymmetric": (0.0, 0.0),
        "half_pixel": (0.5, -0.5),
        "half_pixel_symmetric": (0.5, -0.5),
        "pytorch_half_pixel": (0.5, -0.5),
    }
    if filter.weight is not _linear or filter.is_wide or coordinates not in offsets or len(tensor.sizes) > 4:
        return None
    if not axes:
        return tensor
    rank, is_corners = len(tensor.sizes), coordinates == "align_corners"
    if any(1 in (axis.length, axis.output) or axis.scale * axis.length == 1 for axis in axes):
        return None
    scales, starts, sizes = [1.0] * rank, [offsets[coordinates][0]] * rank, list(tensor.sizes)
    for axis in axes:
        whole = axis.scale * axis.length
        scales[axis.number] = (whole - 1) / (axis.length - 1) if is_corners else axis.scale
        sizes[axis.number] = axis.output
        if coordinates == "half_pixel_symmetric":
            starts[axis.number] -= axis.length / 2 * (1 - axis.output / whole)
    return dml.resample3(
        tensor,
        interpolation_mode="LINEAR",
        rounding_direction="DECREASING",
        scales=scales,
        input_pixel_offsets=starts,
        output_pixel_offsets=[offsets[coordinates][1]] * rank,
        antialiased=False,
        sizes=sizes,
    )


def _extrapolated(node: Conversion, tensor: GraphTensor, axes: Sequence[Axis]) -> GraphTensor:
    """`extrapolation_value` where a coordinate lies outside of the input."""
    outside = np.zeros([1] * len(tensor.sizes), np.bool_)
    for axis in axes:
        places = axis.coordinates("tf_crop_and_resize")
        sizes = [1] * len(tensor.sizes)
        sizes[axis.number] = axis.output
        outside = outside | ((places < 0) | (places > axis.length - 1)).reshape(sizes)
    if not outside.any():
        return tensor
    mask = node.constant(np.broadcast_to(outside, tensor.sizes), np.uint8)
    return dml.element_wise_if(mask, node.attribute("extrapolation_value", 0.0), tensor)
