"""Attributes are parameters of machine code: other values compile nothing, and no bit depends on that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.compiler import fuse
from opendml.program.node import Node
from opendml.runtime.memory.host_array import Array
from opendml.runtime.program import program_of
from opendml.targets.cpu import engine
from opendml.targets.cpu.executable import CpuExecutable
from tests.running import launches

ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "ActivationCelu": ("alpha",),
    "ActivationElu": ("alpha",),
    "ActivationHardSigmoid": ("alpha", "beta"),
    "ActivationHardSwish": ("alpha", "beta"),
    "ActivationLeakyRelu": ("alpha",),
    "ActivationLinear": ("alpha", "beta"),
    "ActivationParametricSoftplus": ("alpha", "beta"),
    "ActivationScaledElu": ("alpha", "gamma"),
    "ActivationScaledTanh": ("alpha", "beta"),
    "ActivationShrink": ("bias", "threshold"),
    "ActivationSoftplus": ("steepness",),
    "ActivationSwish": ("sigmoid_input_scale",),
    "ActivationThresholdedRelu": ("alpha",),
}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3e38, -1e-40, 2.0**-70, np.inf, -np.inf, np.nan)
VALUES = np.concatenate(
    [
        np.linspace(-9, 9, 157, dtype=np.float32),
        np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 3e38, -3e38, 89, -104], np.float32),
    ]
)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> dict[str, engine.Code]:
    """The kernels that are compiled from now on."""
    found: dict[str, engine.Code] = {}
    monkeypatch.setattr(engine, "_codes", found)
    return found


def ordinary(count: int) -> Iterator[float]:
    """Numbers that are no powers of two."""
    return (float(np.float32(0.13 * number + 0.011)) for number in range(1, count + 1))


@pytest.mark.parametrize("type", [dml.FLOAT32, dml.FLOAT16])
@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("ActivationCelu", {}),
        ("ActivationElu", {}),
        ("ActivationLeakyRelu", {}),
        ("ActivationLinear", {"beta": 0.5}),
    ],
)
def test_twenty_alphas_are_one_compilation(
    name: str, others: dict[str, float], type: dml.TensorDataType, compilations: dict[str, engine.Code]
) -> None:
    tensor = dml.TensorDesc(type, [1000])
    for alpha in ordinary(20):
        CpuExecutable(program_of(getattr(dml.descs, name)(tensor, tensor, alpha=alpha, **others)))
    assert len(compilations) == 1


@pytest.mark.parametrize("data_type", [dml.FLOAT32, dml.FLOAT16])
def test_celu_divides_nothing_by_alpha_but_one(data_type: dml.TensorDataType) -> None:
    x = dml.TensorDesc(data_type, [1000])
    (launch,) = launches(dml.descs.ActivationCelu(x, x, alpha=0.7))
    quotients = [line for line in engine.kernel_assembly(launch.pattern).splitlines() if " fdiv " in line]
    assert all(re.search(r"fdiv .*0x3FF0000000000000\)?, ", line) for line in quotients)


def test_other_epsilons_bounds_and_fills_compile_nothing(compilations: dict[str, engine.Code]) -> None:
    x = np.ones((2, 3, 4, 5), np.float32)
    for number in ordinary(5):
        dml.mean_variance_normalization1(x, axes=[2, 3], epsilon=number)
        dml.element_wise_clip(x, min=-number, max=number)
        dml.fill_value_constant(sizes=[7], value_data_type=dml.FLOAT64, value=number)
        dml.element_wise_identity(x, scale_bias=dml.ScaleBias(number, number + 3))
    assert len(compilations) == 4


def test_layers_of_a_graph_that_differ_in_attributes_share_kernels(
    compilations: dict[str, engine.Code],
) -> None:
    graph = dml.Graph()
    value = graph.input("x", dml.FLOAT32, [1, 2, 8, 8])
    for number in ordinary(36):
        value = dml.mean_variance_normalization1(value, axes=[2, 3], epsilon=number * 1e-3)
        value = dml.activation_celu(value, alpha=number)
    graph.compile({"y": value}, device="cpu")
    assert len(compilations) <= 3


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_bits_are_those_of_constants_in_the_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(len(name))
    for number in range(6):
        chosen = [
            random.choice(SPECIAL) if number % 2 else random.normal() * 4 ** random.normal()
            for _ in ACTIVATIONS[name]
        ]
        attributes = dict(zip(ACTIVATIONS[name], map(float, chosen), strict=True))
        for x in (VALUES, VALUES.clip(-6e4, 6e4).astype(np.float16)):
            given = result(getattr(dml.descs, name), attributes, x)
            with monkeypatch.context() as patch:
                patch.setattr(fuse, "with_parameters", in_the_code)
                expected = result(getattr(dml.descs, name), attributes, x)
            assert given.tobytes() == expected.tobytes(), (attributes, x.dtype)


def in_the_code(values: Sequence[Node], shared: object) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    return tuple(values), ()


def result(desc: Callable[..., Any], attributes: dict[str, float], x: Array) -> Array:
    """What an activation gives."""
    y = np.empty_like(x)
    tensor = dml.TensorDesc(dml.TensorDataType[x.dtype.name.upper()], x.shape)
    instance = CpuExecutable(program_of(desc(tensor, tensor, **attributes))).instantiate()
    instance.bind(0, x.ctypes.data)
    instance.bind(1, y.ctypes.data)
    instance.dispatch()
    return y
