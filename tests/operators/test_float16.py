"""FLOAT16 results of functions whose values are computed with before they are rounded."""

from __future__ import annotations

import numpy as np
import pytest

import opendml as dml
from opendml import Device
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import ReduceFunction
from tests.running import same_bits
from tools.distances import ulp_distance
from tools.measure_accuracy import Attributes, activation, computed, every_float16, exact

BOUND = 0.5625
"""As in tolerances.json: the functions take a sixteenth of the last place, the rounding a half."""


@pytest.mark.parametrize("beta", [0.0, 0.75, -0.75, 3.0])
def test_local_response_normalization_of_infinities_is_infinity_over_infinity(
    beta: float, device: Device
) -> None:
    x = np.ones((1, 5, 1, 40), np.float16)
    x[0, 1], x[0, 4] = np.inf, 60000.0
    results = [
        dml.local_response_normalization(
            x, cross_channel=True, local_size=3, alpha=1e30, beta=beta, bias=1.0, device=each
        )
        for each in (device, "reference")
    ]
    assert same_bits(*results)


def test_logarithm_of_a_sum_of_exponentials_may_cancel(device: Device) -> None:
    x = (np.linspace(-0.75, -0.65, 1001)[:, None] + np.zeros(2)).astype(np.float16)
    results = [
        dml.reduce(x, function=ReduceFunction.LOG_SUM_EXP, axes=[1], device=each)
        for each in (device, "reference")
    ]
    assert ulp_distance(results[0], results[1].astype(np.float64)).max() <= 1


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("CELU", {"alpha": -1e-30}),
        ("CELU", {"alpha": 1e30}),
        ("CELU", {"alpha": -700.0}),
        ("ELU", {"alpha": 1e38}),
        ("ELU", {"alpha": 1e-7}),
        ("PARAMETRIC_SOFTPLUS", {"alpha": 1e38, "beta": 1.0}),
        ("PARAMETRIC_SOFTPLUS", {"alpha": -1e30, "beta": 0.01}),
        ("PARAMETRIC_SOFTPLUS", {"alpha": 1e-30, "beta": -1e30}),
        ("SCALED_ELU", {"alpha": 1e38, "gamma": 1e-38}),
        ("SCALED_ELU", {"alpha": 1e-30, "gamma": 1e30}),
        ("SCALED_TANH", {"alpha": 1e30, "beta": 1e-30}),
        ("SCALED_TANH", {"alpha": 1e-5, "beta": 1e30}),
        ("SOFTPLUS", {"steepness": 1e-30}),
        ("SOFTPLUS", {"steepness": 0.001}),
        ("SOFTPLUS", {"steepness": 1e30}),
        ("SWISH", {"sigmoid_input_scale": 1e-30}),
        ("SWISH", {"sigmoid_input_scale": -0.001}),
        ("SWISH", {"sigmoid_input_scale": 1e30}),
    ],
)
def test_attributes_far_from_one_do_no_harm(name: str, attributes: Attributes, device: Device) -> None:
    x = every_float16()
    desc = activation(f"ACTIVATION_{name}", attributes, ScalarType.FLOAT16, x.size)
    distances = ulp_distance(computed(desc, x, device), exact(desc, x))
    assert distances.max() <= BOUND, f"at {x[distances.argmax()]!r}"
