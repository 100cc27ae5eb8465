"""The worked examples of DirectML's pages, run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opendml.operators.registry import implemented
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import tensors_of
from opendml.spec.schema import operator
from tests.running import device_kinds, numpy_type, run_all
from tests.spec.rules.test_examples import EXAMPLES, SLIPS, described

RUNNING = [each for each in EXAMPLES if each.values[0] in implemented() and each.id not in SLIPS]


def _arrays(name: str, values: dict[str, Any], kind: str) -> list[Any]:
    """What an example gives for the tensors of one kind, those of arrays one after the other; None for absent
    ones."""
    result: list[Any] = []
    for field in operator(name).tensors:
        if field.kind == kind:
            value = values.get(field.name)
            result.extend(value if field.is_array else [value])
    return result


@pytest.mark.parametrize("device", device_kinds())
@pytest.mark.parametrize(("name", "example"), RUNNING)
def test_worked_example(name: str, example: dict[str, Any], device: str) -> None:
    desc = described(name, example)
    inputs: list[Array | None] = []
    values = _arrays(name, example["inputs"], "INPUT_TENSOR")
    for tensor, value in zip(tensors_of(desc, "INPUT_TENSOR"), values, strict=True):
        inputs.append(None if tensor is None else np.asarray(value, numpy_type(tensor)).reshape(-1))
    results = run_all(desc, inputs, device)
    expected = _arrays(name, example["outputs"], "OUTPUT_TENSOR")
    for result, value in zip(results, expected, strict=True):
        # The pages print four digits or so.
        np.testing.assert_allclose(result, np.reshape(value, result.shape), rtol=1e-3, atol=1e-4)
