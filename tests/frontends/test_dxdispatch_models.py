"""Models that others wrote, from Microsoft's tool, and our own examples, with their known results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opendml.errors import Unsupported
from opendml.frontends import dxdispatch
from opendml.frontends.dxdispatch import DispatchModel, PreparedModel, Printed
from opendml.operators.registry import implemented
from opendml.runtime.objects.device import Device
from opendml.spec.validator import validate

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "models" / "dxdispatch"

# What each model prints last, for each resource.
EXPECTED: dict[str, list[list[float]]] = {
    "dml_convolution_2d": [[6, 8, 12, 14]],
    "dml_cumulative_product": [[2, 8, 64, 192]],
    "dml_element_wise_add": [[6, 10, -2]],
    "dml_element_wise_add1": [[6, 10, -0.432332]],
    "dml_element_wise_add_npy": [[2, 4, 6, 8, 10, 12]],
    "dml_element_wise_clip": [[-2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5]],
    "dml_element_wise_identity": [[12, 14, 16]],
    "dml_fill_value_sequence": [[3.2, 4.7, 6.2, 7.7, 9.2]],
    "dml_gemm": [[6, 7, 8, 10, 12, 14, 14, 17, 20]],
    "dml_gemm_graph": [[32] * 1024],
    "dml_reduce": [list(range(1, 10)), [6, 15, 24]],
    "dml_scalar_union_fp16": [[2, 2, 3, 4, 4]],
    "dml_slice": [[7, 9, 12, 14, 17, 19]],
    "dml_split": [[1, 2], [3, 4], [5, 6]],
}

EXAMPLES: dict[str, list[list[float]]] = {
    "celu": [
        [-np.inf, -4, -1, -0.25, 0, 0.25, 1, 4, np.inf],
        [-0.5, -0.499832, -0.432332, -0.196735, 0, 0.25, 1, 4, np.inf],
    ],
    "hard_sigmoid": [list(range(-4, 5)), [0, 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1, 1]],
    "mean_variance_normalization1": [
        list(range(1, 17)),
        [
            0,
            0,
            0,
            0,
            0.218218,
            0.654653,
            1.09109,
            1.52752,
            0,
            0,
            0,
            2.81782,
            7.18218,
            11.5465,
            15.9109,
            20.2752,
        ],
    ],
}

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"{SHARED.name} models are not beside the checkout"
)


def _prints(program: PreparedModel) -> Iterator[list[float]]:
    for event in program.run():
        if isinstance(event, Printed):
            yield [float(number) for number in event.text.split(", ")]


def _check(model: DispatchModel, device: str, expected: list[list[float]]) -> None:
    prints = list(_prints(dxdispatch.prepare(model, Device(device))))
    assert len(prints) == len(expected)
    for printed, wanted in zip(prints, expected, strict=True):
        np.testing.assert_allclose(printed, wanted, rtol=1e-3, atol=1e-3)


@needs_shared
def test_every_model_has_an_expected_result() -> None:
    assert {path.stem for path in SHARED.glob("*.json")} == set(EXPECTED)


@needs_shared
@pytest.mark.parametrize("name", EXPECTED)
def test_models_of_the_tool_are_read_and_valid(name: str, tmp_path: Path) -> None:
    for dispatchable in dxdispatch.load(SHARED / f"{name}.json", tmp_path).dispatchables.values():
        validate(dispatchable.desc)


@needs_shared
@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", EXPECTED)
def test_models_of_the_tool_run_or_name_the_operator_that_cannot(
    name: str, device: str, tmp_path: Path
) -> None:
    model = dxdispatch.load(SHARED / f"{name}.json", tmp_path)
    desc: Any = next(iter(model.dispatchables.values())).desc
    operator = desc.operator
    if operator in implemented():
        _check(model, device, EXPECTED[name])
    else:
        with pytest.raises(Unsupported, match=rf"^\$\.dispatchables\.\w+: {operator}"):
            dxdispatch.prepare(model, Device(device))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_print_their_results(name: str, device: str) -> None:
    _check(dxdispatch.load(ROOT / "examples" / f"{name}.json"), device, EXAMPLES[name])


def test_every_example_has_an_expected_result() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.json")} == set(EXAMPLES)
