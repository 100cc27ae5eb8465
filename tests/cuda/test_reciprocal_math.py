"""Functions of the CUDA target's own, with exact quotients, against float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opendml.program.node import source
from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.reciprocal_math import gaussian_error_linear_unit
from tests.program.evaluate import evaluate
from tests.program.sweeps import greatest_distance, magnitudes
from tests.program.test_vector_math import exact_gelu

GELU = gaussian_error_linear_unit(source(0, ScalarType.FLOAT32))


def test_gelu_keeps_its_stated_accuracy() -> None:
    x = magnitudes(-8, 4, step=84)
    with np.errstate(all="ignore"):
        exact = exact_gelu(x.astype(np.float64))
    assert greatest_distance(GELU, exact, x) <= 3.6


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (0.0, 0.0),
        (-0.0, -0.0),
        (math.inf, math.inf),
        (-math.inf, math.nan),
        (-1000.0, -0.0),
        (3e38, 3e38),
        (math.nan, math.nan),
    ],
)
def test_gelu_at_its_ends(argument: float, expected: float) -> None:
    result = evaluate(GELU, np.array([argument], np.float32))
    np.testing.assert_array_equal(result, np.array([expected], np.float32))
    assert math.isnan(expected) or np.signbit(result[0]) == np.signbit(expected)
