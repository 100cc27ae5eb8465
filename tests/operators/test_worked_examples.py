"""Worked examples of DirectML's pages, bounds of sums, and dimensions of more elements than INT32 counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT32, UINT8, UINT32, Device, OperatorDesc, TensorDesc, descs
from opendml.operators.registry import implemented
from opendml.program.node import Node, Operation
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of, tensors_of
from opendml.spec.facts import operator_facts, tolerance_facts
from opendml.spec.schema import operator
from tests.running import device_kinds, numpy_type, run_all
from tests.spec.rules.test_examples import EXAMPLES, SLIPS, described
from tools.measure_accuracy import CASES as POINTWISE
from tools.measure_sums import CASES, TYPES, distance

RUNNING = [each for each in EXAMPLES if each.values[0] in implemented() and each.id not in SLIPS]

_CORNERS = {"InputPixelOffsets": [0.5, 0.5], "OutputPixelOffsets": [0, 0]}
"""Of pixels at their first corners, the nearest neighbor is the one below."""

MEANT: dict[str, dict[str, dict[str, Any]]] = {
    "SCATTER_ND-0": {
        "inputs": {"InputTensor": [[1, 2, 3, 4, 5, 6, 7, 8]], "UpdatesTensor": [[9, 10, 11, 12]]},
        "attributes": {"InputDimensionCount": 1, "IndicesDimensionCount": 2},
        "outputs": {"OutputTensor": [[1, 11, 3, 10, 9, 6, 7, 12]]},
    },
    "FILL_VALUE_SEQUENCE-1": {"attributes": {"ValueDelta": 256 - 2}},
    "GATHER-2": {"attributes": {"IndexDimensions": 1}},
    "ELEMENT_WISE_BIT_XOR": {
        "inputs": {"ATensor": [[0, 128], [42, 255]], "BTensor": [[255, 255], [255, 255]]},
        "types": {"ATensor": "UINT8", "BTensor": "UINT8"},
    },
    "RESAMPLE_GRAD": {"attributes": {"Scales": [0.5, 1.5], **_CORNERS}},
    "RESAMPLE_GRAD1": {
        "attributes": {
            "Scales": [0.5, 1.5],
            "RoundingDirection": "DML_AXIS_DIRECTION_DECREASING",
            "InputPixelOffsets": [0, 0],
            "OutputPixelOffsets": [0, 0],
        }
    },
    "ROI_ALIGN_GRAD": {
        "attributes": {
            "ReductionFunction": "DML_REDUCE_FUNCTION_AVERAGE",
            "SpatialScaleX": 1,
            "SpatialScaleY": 1,
            "InputPixelOffset": 0.5,
            "OutputPixelOffset": 0,
            "MinimumSamplesPerOutput": 1,
            "MaximumSamplesPerOutput": 1,
            "AlignRegionsToCorners": False,
        },
        "outputs": {"OutputROIGradientTensor": None},
    },
    "DIAGONAL_MATRIX1": {"attributes": {"Value": 1}},
}
"""What corrects an example with a slip, and those that contradict their own page, by operator: the notes of
the facts and of the examples say why. That of RANDOM_GENERATOR is in `test_random.py`."""


def _meant(name: str) -> tuple[str, dict[str, Any]]:
    """The operator, and its example with the corrections."""
    found = {each.id: each.values for each in EXAMPLES} | {
        flawed: (flawed, each)
        for flawed, facts in operator_facts().items()
        for each in facts.get("flawed_examples", ())
    }
    named, example = found[name]
    parts = ("inputs", "attributes", "outputs", "types")
    return named, {part: example.get(part, {}) | MEANT[name].get(part, {}) for part in parts}


def _arrays(name: str, values: dict[str, Any], kind: str) -> list[Any]:
    """What an example gives for the tensors of one kind, those of arrays one after the other; None for absent
    ones."""
    result: list[Any] = []
    for field in operator(name).tensors:
        if field.kind == kind:
            value = values.get(field.name)
            result.extend(value if field.is_array else [value])
    return result


def _check(name: str, example: dict[str, Any], device: str) -> None:
    desc = described(name, example)
    inputs: list[Array | None] = []
    values = _arrays(name, example["inputs"], "INPUT_TENSOR")
    for tensor, value in zip(tensors_of(desc, "INPUT_TENSOR"), values, strict=True):
        inputs.append(None if tensor is None else np.asarray(value, numpy_type(tensor)).reshape(-1))
    results = run_all(desc, inputs, device)
    expected = [each for each in _arrays(name, example["outputs"], "OUTPUT_TENSOR") if each is not None]
    for result, value in zip(results, expected, strict=True):
        # The pages print four digits or so.
        np.testing.assert_allclose(result, np.reshape(value, result.shape), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", device_kinds())
@pytest.mark.parametrize(("name", "example"), RUNNING)
def test_worked_example(name: str, example: dict[str, Any], device: str) -> None:
    _check(name, example, device)


@pytest.mark.parametrize("device", device_kinds())
@pytest.mark.parametrize("name", MEANT)
def test_example_as_it_is_meant(name: str, device: str) -> None:
    _check(*_meant(name), device)


def test_every_example_with_a_slip_is_corrected() -> None:
    flawed = {name for name, facts in operator_facts().items() if facts.get("flawed_examples")}
    assert set(MEANT) == (set(SLIPS) | flawed) - {"RANDOM_GENERATOR"}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_sums_are_within_the_stated_bounds(name: str, dtype: np.dtype[Any], device: Device) -> None:
    row = tolerance_facts()[name][dtype.name.upper()]
    assert row["measured"] <= row["bound"]
    assert distance(name, dtype, 0, device) <= row["bound"]


def test_every_bound_is_measured() -> None:
    assert tolerance_facts().keys() == CASES.keys() | POINTWISE.keys()


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
