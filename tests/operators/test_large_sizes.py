"""Dimensions of more elements than INT32 counts, which strides of 0 put into little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT32, UINT8, UINT32, Device, OperatorDesc, TensorDesc, descs
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.runtime.program import program_of

LARGE = 2**31
SIZES = (LARGE - 1, LARGE, LARGE + 1, 2**32 - 1)
CENTERED = {"input_pixel_offsets": [0.5], "output_pixel_offsets": [-0.5]}
NEAREST = dml.InterpolationMode.NEAREST_NEIGHBOR


def descs_of(size: int) -> list[OperatorDesc]:
    """Operators that calculate with indices into so many elements."""
    line, one, index = TensorDesc(UINT8, [size]), TensorDesc(UINT8, [1]), TensorDesc(INT32, [1])
    halves, images = TensorDesc(FLOAT16, [size]), TensorDesc(FLOAT32, [size, 1, 1, 1])
    region, corners = TensorDesc(FLOAT32, [1, 1, 1, 1]), TensorDesc(FLOAT32, [1, 1, 1, 5])
    wide = TensorDesc(FLOAT32, [1, 1, 1, size])
    down = {"interpolation_mode": NEAREST, "scales": [2.0**-30]}
    return [
        descs.TopK1(line, one, TensorDesc(UINT32, [1]), axis=0, k=1, axis_direction="DECREASING"),
        descs.Gather(line, index, one, axis=0, index_dimensions=1),
        descs.GatherElements(line, index, one, axis=0),
        descs.OneHot(index, TensorDesc(UINT8, [2]), line, axis=0),
        descs.ReverseSubsequences(line, TensorDesc(UINT32, [1]), line, axis=0),
        descs.Resample1(line, one, **down, **CENTERED),
        descs.Resample1(one, line, interpolation_mode=NEAREST, scales=[3.3e9], **CENTERED),
        descs.SliceGrad(
            TensorDesc(FLOAT16, [size // 2 + size % 2]),
            halves,
            input_window_offsets=[0],
            input_window_sizes=[size],
            input_window_strides=[2],
        ),
        descs.RoiPooling(wide, corners, region, spatial_scale=1.0, pooled_size=dml.Size2D(1, 1)),
        descs.RoiPooling(images, corners, region, spatial_scale=1.0, pooled_size=dml.Size2D(1, 1)),
    ]


@pytest.mark.parametrize("size", SIZES)
def test_no_index_into_many_elements_wraps(size: int) -> None:
    for desc in descs_of(size):
        dml.validate(desc)
        for node in nodes_of(program_of(desc).results):
            if node.type is ScalarType.INT32:
                least, most = numbers_of(node)
                assert -LARGE <= least <= most < LARGE, (desc.operator, node)


def numbers_of(node: Node) -> tuple[int, int]:
    """The least and the greatest number of an INDEX or a CONSTANT; zeros of all others."""
    if node.operation is Operation.CONSTANT and isinstance(node.attribute, int):
        return node.attribute, node.attribute
    if node.operation is not Operation.INDEX or not isinstance(node.attribute, tuple):
        return 0, 0
    offset, *strides = node.attribute
    reaches = [stride * (size - 1) for stride, size in zip(strides, node.sizes, strict=True)]
    return offset + sum(min(each, 0) for each in reaches), offset + sum(max(each, 0) for each in reaches)


def nodes_of(results: Sequence[Node]) -> Iterator[Node]:
    """All nodes of a program, each once."""
    waiting, seen = list(results), set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            waiting += node.operands
            yield node


@pytest.mark.parametrize("size", SIZES)
def test_the_greatest_of_many_elements_are_found(size: int) -> None:
    line, two = TensorDesc(FLOAT32, [size], [0]), TensorDesc(FLOAT32, [2])
    values, indices = np.zeros(2, np.float32), np.zeros(2, np.uint32)
    desc = descs.TopK1(line, two, TensorDesc(UINT32, [2]), axis=0, k=2, axis_direction="DECREASING")
    device = Device("cpu")
    compiled = device.compile_operator(device.create_operator(desc))
    compiled.bind([np.array([7], np.float32)], [values, indices]).dispatch()
    assert values.tolist() == [7, 7]
    assert indices.tolist() == [0, 1]
