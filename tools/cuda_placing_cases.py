"""Programs for the checks of the CUDA target that scatter, or find the greatest elements or those other than
zero."""

from __future__ import annotations

import math
from collections.abc import Iterator

import opendml as dml
from opendml.operators.selection import top_k1
from opendml.program.functions import reduce_sum
from opendml.program.node import Node, Operation, convert, placing, position, scattered_sum, source
from opendml.program.scalar_type import ScalarType
from opendml.program.view import padded, permuted
from opendml.runtime.program import program_of
from opendml.spec import descs
from opendml.spec.enums import AxisDirection
from opendml.spec.tensor_desc import TensorDesc
from tools.cuda_case import Case
from tools.cuda_view_cases import program

TOPS = (
    ((5, 83), 1, 9),
    ((2, 1000), 1, 64),
    ((3, 40, 7), 1, 40),
    ((2, 70001), 1, 1000),
    ((2, 70001), 1, 1500),
    ((3, 20000), 1, 20000),
    ((300, 2049), 1, 3),
    ((2, 300000), 1, 64),
    ((1, 100001), 1, 5),
    ((3, 9000), 1, 4000),
    ((9000, 10), 0, 64),
    ((70, 40, 24), 1, 5),
)
"""Sizes, the axis, and how many are wanted."""


def placing_cases() -> Iterator[Case]:
    """All of them."""
    for sizes, axis, count in TOPS:
        for type, direction in zip((dml.FLOAT32, dml.INT64), AxisDirection, strict=True):
            desc = _top(type, sizes, axis, count, direction)
            name = f"top {count} {type.name} {sizes} {direction.name}"
            yield Case(name, program_of(desc), special=True)
    yield from _further_tops()
    for shape in ((1,), (1, 1), (70, 30), (5, 70, 80), (2, 3, 4, 5)):
        yield Case(f"nonzero coordinates {shape}", program_of(_nonzero(shape)))
    yield from _positions()
    for index in (ScalarType.INT32, ScalarType.INT64):
        x = source(0, index, (40, 50, 33))
        for axis in range(3):
            yield _of_places(f"scatter {index.name} axis {axis}", _scattered(x, axis))
        values = convert(source(1, ScalarType.FLOAT32, x.sizes), ScalarType.INT64)
        yield _of_places(f"scattered sum {index.name}", scattered_sum(x, values, (2, 0), 20))
    wide = source(0, ScalarType.INT32, (30, 1024))
    yield _of_places("scatter in panels", _scattered(wide, 0, 10_000))
    for sizes, axis, count in (
        ((70, 1021), 0, 300),
        ((140, 5000), 1, 40),
        ((140, 300), 1, 30_000),
        ((140, 4000), 1, 30_000),
    ):
        yield _of_places(f"scatter {sizes} to {count}", _scattered(source(0, wide.type, sizes), axis, count))
    turned = permuted(convert(source(0, ScalarType.INT32, (300, 40)), ScalarType.INT64), (1, 0))
    yield _of_places("scatter turned", _scattered(turned, 1), _scattered(turned, 0))


def _further_tops() -> Iterator[Case]:
    """Of other types, of equal elements, of elements of which the last are wanted, and of what is not all in
    memory."""
    sizes = 2, 40000
    for type in (dml.FLOAT16, dml.UINT8):
        yield Case(f"top 100 {type.name}", program_of(_top(type, sizes, 1, 100, AxisDirection.DECREASING)))
    for type in (dml.FLOAT32, dml.INT64):
        equal = _top(type, sizes, 1, 100, AxisDirection.DECREASING)
        yield Case(f"top 100 {type.name} equal", program_of(equal), mean=3.0, deviation=0.0)
    x, noise = source(0, ScalarType.FLOAT32, sizes), source(0, ScalarType.INT32, sizes)
    rising, wider = position(sizes, [1]) * 4 + noise, padded(x, (0, 7), (1, 30))
    for name, value in (("rising", rising), ("padded", wider)):
        found = top_k1(value, axis=1, k=100, axis_direction=AxisDirection.DECREASING)
        yield Case(f"top 100 {name}", program(*found))
    least = placing(Operation.TOP, source(0, ScalarType.UINT32, (3, 1000)), 1, 7)
    yield Case("top 7 twice", program(least, least), special=True)


def _positions() -> Iterator[Case]:
    """Along lines, some of which blocks share, and what is made of them, and of their number."""
    for sizes, axis in (((3, 511), 1), ((2, 8192), 1), ((1, 40_007), 1), ((300, 70), 1), ((5, 70, 33), 1)):
        x, others = (source(number, ScalarType.INT32, sizes) for number in range(2))
        placed = placing(Operation.POSITIONS, x >= 9, axis, sizes[axis])
        number = reduce_sum(convert(placed >= 0, ScalarType.UINT32), [axis])
        yield _of_places(f"positions {sizes} axis {axis}", placed * 3 + others, number, number * 2, placed)
    x = source(0, ScalarType.UINT8, (70, 3000))
    yield _of_places("positions of bytes", placing(Operation.POSITIONS, x >= 9, 0, 70))


def _of_places(name: str, *results: Node) -> Case:
    """A case whose input is places, some of which lie outside."""
    return Case(name, program(*results), mean=9.0, deviation=9.0)


def _top(
    type: dml.TensorDataType, sizes: tuple[int, ...], axis: int, count: int, direction: AxisDirection
) -> descs.TopK1:
    found = [count if each == axis else size for each, size in enumerate(sizes)]
    tensors = [TensorDesc(type, sizes), TensorDesc(type, found), TensorDesc(dml.TensorDataType.UINT32, found)]
    return descs.TopK1(*tensors, axis=axis, k=count, axis_direction=direction)


def _nonzero(sizes: tuple[int, ...]) -> descs.NonzeroCoordinates:
    count, places = [1], [math.prod(sizes), len(sizes)]
    outputs = [TensorDesc(dml.TensorDataType.UINT32, each) for each in (count, places)]
    return descs.NonzeroCoordinates(TensorDesc(dml.FLOAT32, sizes), *outputs)


def _scattered(places: Node, axis: int, count: int = 20) -> Node:
    return placing(Operation.SCATTER, places, axis, count)
