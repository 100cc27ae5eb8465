"""The product of a number and an exponential that FLOAT32 need not hold, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from opendml.program.functions import scaled_exp
from opendml.program.node import source
from opendml.program.scalar_type import ScalarType
from tests.program.evaluate import evaluate, expanded
from tools.distances import ulp_distance

PRODUCT = expanded(scaled_exp(source(0, ScalarType.FLOAT32, (1,)), source(1, ScalarType.FLOAT32, (1,))))


@pytest.mark.parametrize(("low", "high", "power"), [(-100, 88, 0), (-200, 0, 100), (0, 200, -100)])
def test_the_product_is_within_its_bound_where_the_exponential_alone_is_not(
    low: float, high: float, power: int
) -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(low, high, 300_000).astype(np.float32)
    factor = np.ldexp(generator.uniform(1, 2, x.size), generator.integers(power - 20, power + 20, x.size))
    factor = factor.astype(np.float32)
    assert ulp_distance(evaluate(PRODUCT, x, factor), np.exp(x.astype(np.float64)) * factor).max() <= 1.9


def test_beyond_all_numbers_the_product_is_zero_or_infinite() -> None:
    x = np.array([-np.inf, -300, 300, np.inf], np.float32)
    for factor in (3e38, 1e-45, -3e38, -1e-45):
        result = evaluate(PRODUCT, x, np.full(4, factor, np.float32))
        np.testing.assert_array_equal(result, np.array([0, 0, np.inf, np.inf]) * np.sign(factor))
