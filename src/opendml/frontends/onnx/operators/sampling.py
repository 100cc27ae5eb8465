"""Elements between those of a tensor: at coordinates that are computed, by gathering their neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import opendml as dml
from opendml.frontends.onnx.conversion import Conversion, NotExpressible, Result
from opendml.frontends.onnx.operators.matrix import product
from opendml.frontends.onnx.operators.views import along, permuted, shaped
from opendml.frontends.onnx.registry import converts
from opendml.runtime.graphs.repeat import repeated
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.enums import TensorDataType

_A = -0.75
"""How much a cubic curve overshoots."""


@dataclass(frozen=True)
class Tap:
    """A neighbour of coordinates along one dimension: indices within the tensor and weights, None for 1."""

    index: GraphTensor
    weight: GraphTensor | None


@dataclass(frozen=True)
class Line:
    """One dimension to take elements from.

    Args:
        length: its size.
        padding: what lies outside: "zeros", "border" or "reflection".
        first, last: its borders.
    """

    length: int
    padding: str
    first: float = 0.0
    last: float = 0.0

    def within(self, place: GraphTensor) -> GraphTensor:
        """Coordinates or indices moved to where there are elements; with zeros outside, as they are."""
        if self.padding == "zeros":
            return place
        if self.padding == "reflection":
            place = self._reflected(place)
        return self.clipped(place)

    def clipped(self, place: GraphTensor) -> GraphTensor:
        """Within the indices of elements."""
        return dml.element_wise_clip(place, min=0.0, max=self.length - 1.0)

    def coordinate(self, place: GraphTensor) -> GraphTensor:
        """A coordinate that lies outside of the borders moved inside; with zeros outside, as it is."""
        if self.padding != "border":
            return self._reflected(place) if self.padding == "reflection" else place
        middle, half = (self.first + self.last) / 2, (self.last - self.first) / 2
        away = dml.element_wise_abs(dml.element_wise_subtract(place, middle))
        return dml.element_wise_if(
            dml.element_wise_logical_greater_than(away, half), self.clipped(place), place
        )

    def _reflected(self, place: GraphTensor) -> GraphTensor:
        span = self.last - self.first
        if span == 0:
            return dml.element_wise_clip(place, min=self.first, max=self.first)
        distance = dml.element_wise_abs(dml.element_wise_subtract(place, self.first))
        turn = dml.element_wise_modulus_floor(distance, 2 * span)
        back = dml.element_wise_abs(dml.element_wise_subtract(turn, span))
        return _less(back, self.first + span)

    def tap(self, index: GraphTensor, weight: GraphTensor | None) -> Tap:
        """The neighbour at whole numbers, which may lie outside."""
        inside = self.clipped(self.within(index))
        if self.padding == "zeros":
            is_inside = dml.element_wise_logical_equals(inside, index)
            counted = dml.cast(is_inside, output_type=TensorDataType.FLOAT32)
            weight = counted if weight is None else dml.element_wise_multiply(weight, counted)
        return Tap(dml.cast(inside, output_type=TensorDataType.INT32), weight)


def _less(tensor: GraphTensor, number: float) -> GraphTensor:
    """A number less the tensor."""
    return dml.element_wise_subtract(number, tensor)


def _nearest(place: GraphTensor, line: Line) -> list[Tap]:
    return [line.tap(line.coordinate(dml.element_wise_round(place)), None)]


def _linear(place: GraphTensor, line: Line) -> list[Tap]:
    place = line.coordinate(place)
    low = dml.element_wise_floor(place)
    part = dml.element_wise_subtract(place, low)
    return [line.tap(low, _less(part, 1.0)), line.tap(dml.element_wise_add(low, 1.0), part)]


def _cubic(place: GraphTensor, line: Line) -> list[Tap]:
    place = line.coordinate(place)
    low = dml.element_wise_floor(place)
    part = dml.element_wise_subtract(place, low)
    near = [_A + 2, -(_A + 3), 0.0, 1.0]
    far = [_A, -5 * _A, 8 * _A, -4 * _A]
    distances = (
        (part, 1.0, far),
        (part, 0.0, near),
        (_less(part, 1.0), 0.0, near),
        (_less(part, 1.0), 1.0, far),
    )
    weights = [
        _polynomial(dml.element_wise_add(x, more) if more else x, terms) for x, more, terms in distances
    ]
    places = [dml.element_wise_add(low, step) for step in (-1.0, 0.0, 1.0, 2.0)]
    return [line.tap(each, weight) for each, weight in zip(places, weights, strict=True)]


def _polynomial(x: GraphTensor, terms: Sequence[float]) -> GraphTensor:
    """Terms from the highest power on."""
    result = dml.activation_linear(x, alpha=terms[0], beta=terms[1])
    for term in terms[2:]:
        result = dml.element_wise_add(dml.element_wise_multiply(result, x), term)
    return result


_TAPS: dict[str, Callable[[GraphTensor, Line], list[Tap]]] = {
    "nearest": _nearest,
    "linear": _linear,
    "bilinear": _linear,
    "cubic": _cubic,
    "bicubic": _cubic,
}


def sampled(
    planes: GraphTensor, places: Sequence[GraphTensor], lines: Sequence[Line], mode: str
) -> GraphTensor:
    """Elements at places.

    Args:
        planes: [batch, channels, elements].
        places: coordinates in float32 for each dimension of the elements, [batch, 1, samples].
        lines: those dimensions.

    Returns:
        [batch, channels, samples], of the planes' type.
    """
    if mode not in _TAPS:
        raise NotExpressible(f"mode {mode!r}")
    if planes.data_type not in (TensorDataType.FLOAT32, TensorDataType.FLOAT16):
        raise NotExpressible(f"elements of type {planes.data_type.name}")
    taps = [_TAPS[mode](place, line) for place, line in zip(places, lines, strict=True)]
    sizes = (*planes.sizes[:2], places[0].sizes[2])
    result: GraphTensor | None = None
    for corner in itertools.product(*taps):
        index = corner[0].index
        for tap, line in zip(corner[1:], lines[1:], strict=True):
            index = dml.element_wise_add(dml.element_wise_multiply(index, line.length), tap.index)
        found = dml.gather_elements(planes, repeated(index, sizes), axis=2)
        if found.data_type != TensorDataType.FLOAT32:
            found = dml.cast(found, output_type=TensorDataType.FLOAT32)
        for tap in corner:
            if tap.weight is not None:
                found = dml.element_wise_multiply(found, tap.weight)
        result = found if result is None else dml.element_wise_add(result, found)
    assert result is not None
    is_single = planes.data_type == TensorDataType.FLOAT32
    return result if is_single else dml.cast(result, output_type=planes.data_type)


def _single(tensor: GraphTensor) -> GraphTensor:
    is_single = tensor.data_type == TensorDataType.FLOAT32
    return tensor if is_single else dml.cast(tensor, output_type=TensorDataType.FLOAT32)


@converts("GridSample", since=16)
def grid_sample(node: Conversion) -> Result:
    """Elements at the places of a grid, whose coordinates go from -1 to 1, the last dimension's first."""
    sizes, grid_sizes = node.sizes(0), node.sizes(1)
    spatial = sizes[2:]
    if not spatial or len(grid_sizes) != len(sizes) or grid_sizes[-1] != len(spatial):
        raise NotExpressible(f"a grid of sizes {list(grid_sizes)} over {list(sizes)}")
    padding, corners = node.attribute("padding_mode", "zeros"), bool(node.attribute("align_corners", 0))
    if padding not in ("zeros", "border", "reflection"):
        raise NotExpressible(f"padding_mode {padding!r}")
    ends = [(0.0, size - 1.0) if corners else (-0.5, size - 0.5) for size in spatial]
    lines = [Line(size, padding, *end) for size, end in zip(spatial, ends, strict=True)]
    samples = math.prod(grid_sizes[1:-1])
    grid = shaped(_single(node.tensor(1)), (grid_sizes[0], samples, len(spatial)))
    places = []
    for number, size in enumerate(spatial):
        window = [0, 0, len(spatial) - 1 - number], [grid_sizes[0], samples, 1]
        part = dml.slice1(grid, input_window_offsets=window[0], input_window_sizes=window[1])
        half = (size - 1) / 2 if corners else size / 2
        places.append(
            dml.activation_linear(
                shaped(part, (grid_sizes[0], 1, samples)), alpha=half, beta=half if corners else half - 0.5
            )
        )
    tensor = node.tensor(0)
    planes = shaped(tensor, (*sizes[:2], math.prod(spatial)))
    mode = node.attribute("mode", "bilinear" if node.version < 20 else "linear")
    return node.result(sampled(planes, places, lines, mode), (*sizes[:2], *grid_sizes[1:-1]))


@converts("AffineGrid", since=20)
def affine_grid(node: Conversion) -> Result:
    """The grid of an affine map of coordinates."""
    spatial, corners = node.known_list(1)[2:], bool(node.attribute("align_corners", 0))
    if len(spatial) not in (2, 3) or node.sizes(0)[1:] != (len(spatial), len(spatial) + 1):
        raise NotExpressible(f"theta of sizes {list(node.sizes(0))} for {len(spatial)} spatial dimensions")
    theta = node.tensor(0)
    lines = [_places(size, corners) for size in spatial]
    grid = np.meshgrid(*lines, indexing="ij")
    whole = np.stack([*reversed(grid), np.ones(spatial)], -1).reshape(1, -1, len(spatial) + 1)
    type = np.float16 if theta.data_type == TensorDataType.FLOAT16 else np.float32
    result = product(node.constant(whole, type), permuted(theta, (0, 2, 1)))
    return node.result(result, (theta.sizes[0], *spatial, len(spatial)))


def _places(size: int, corners: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Coordinates of the elements of a dimension from -1 to 1."""
    if corners:
        return np.linspace(-1, 1, size)
    return (2 * np.arange(size) + 1) / size - 1


@converts("DeformConv", since=19)
def deform_conv(node: Conversion) -> Result:
    """A convolution whose windows' elements lie where offsets move them."""
    sizes, kernel, offsets = node.sizes(0), node.sizes(1)[2:], node.sizes(2)
    if len(sizes) != 4 or len(offsets) != 4:
        raise NotExpressible(f"input of sizes {list(sizes)}")
    shared, groups = node.attribute("offset_group", 1), node.attribute("group", 1)
    strides, dilations = (node.attribute(name, [1, 1]) for name in ("strides", "dilations"))
    pads = node.attribute("pads", [0, 0, 0, 0])
    batch, taps, output = sizes[0] * shared, math.prod(kernel), offsets[2:]
    samples = taps * math.prod(output)
    if sizes[1] % shared or offsets[:2] != (sizes[0], shared * taps * 2):
        raise NotExpressible(f"offsets of sizes {list(offsets)}")
    moved = shaped(_single(node.tensor(2)), (batch, taps, 2, math.prod(output)))
    places = []
    for number in range(2):
        window = [0, 0, number, 0], [batch, taps, 1, math.prod(output)]
        offset = dml.slice1(moved, input_window_offsets=window[0], input_window_sizes=window[1])
        usual = _usual_places(number, kernel, output, strides, dilations, pads)
        place = dml.element_wise_add(shaped(offset, (batch, 1, samples)), node.constant(usual, np.float32))
        places.append(place)
    planes = shaped(node.tensor(0), (batch, sizes[1] // shared, math.prod(sizes[2:])))
    found = sampled(planes, places, [Line(size, "zeros") for size in sizes[2:]], "linear")
    if node.has(4):
        mask = shaped(node.tensor(4), (batch, 1, samples))
        found = dml.element_wise_multiply(found, mask)
    weights = node.tensor(1)
    columns = shaped(found, (sizes[0], groups, sizes[1] // groups * taps, math.prod(output)))
    rows = shaped(weights, (1, groups, weights.sizes[0] // groups, math.prod(weights.sizes[1:])))
    result = shaped(product(rows, columns), (sizes[0], weights.sizes[0], *output))
    return dml.element_wise_add(result, along(node.tensor(3), 1, 4)) if node.has(3) else result


def _usual_places(
    number: int,
    kernel: Sequence[int],
    output: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Where a window's elements lie along a dimension without offsets: [1, 1, taps * outputs]."""
    within = np.arange(kernel[number]) * dilations[number]
    windows = np.arange(output[number]) * strides[number] - pads[number]
    sizes = [1, 1, 1, 1]
    sizes[number] = kernel[number]
    places = within.reshape(sizes) + windows.reshape([1, 1, -1, 1] if number == 0 else [1, 1, 1, -1])
    return np.broadcast_to(places, (*kernel, *output)).reshape(1, 1, -1).astype(np.float64)
