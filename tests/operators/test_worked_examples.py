"""The worked examples of DirectML's pages, run: those with slips as they are meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.operators.registry import implemented
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.facts import operator_facts
from opendml.spec.schema import operator
from tests.running import device_kinds, numpy_type, run_all
from tests.spec.rules.test_examples import EXAMPLES, SLIPS, described

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
