"""The stub target: public operators on a target that has no code but Python, compared with the reference."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml.program.node import SumBound
from opendml.targets import registry
from tests.targets.stub_target import StubBackend

ROOT = Path(__file__).parents[2]
RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the registry know the stub for one test."""
    monkeypatch.setitem(registry.HOSTED, StubBackend.kind, f"{StubBackend.__module__}:StubBackend")


def floats(*sizes: int, type: Any = np.float32) -> Any:
    return RANDOM.standard_normal(sizes).astype(type)


X, SMALL = floats(2, 3, 4, 5), floats(3, 4)
HALVES = floats(3, 5, type=np.float16)
INTEGERS = RANDOM.integers(-100, 100, (3, 5)).astype(np.int32)
CASES = {
    "celu": lambda on: dml.activation_celu(X, alpha=0.7, **on),
    "hard sigmoid": lambda on: dml.activation_hard_sigmoid(X, alpha=0.3, beta=0.4, **on),
    "hard sigmoid of float16": lambda on: dml.activation_hard_sigmoid(HALVES, alpha=0.3, beta=0.4, **on),
    "gelu": lambda on: dml.activation_gelu(SMALL, **on),
    "tanh": lambda on: dml.activation_tanh(SMALL, **on),
    "softmax": lambda on: dml.activation_softmax1(SMALL, axes=[1], **on),
    "softmax of float16": lambda on: dml.activation_softmax1(HALVES, axes=[1], **on),
    "log softmax": lambda on: dml.activation_log_softmax1(SMALL, axes=[0], **on),
    "normalization": lambda on: dml.mean_variance_normalization1(
        X + 1000.0, None, None, axes=[2, 3], epsilon=1e-5, **on
    ),
    "normalization of float16": lambda on: dml.mean_variance_normalization1(
        X.astype(np.float16),
        X[:1, :, :1, :1].astype(np.float16),
        None,
        axes=[0, 2, 3],
        epsilon=1e-3,
        **on,
    ),
    "addition that broadcasts": lambda on: dml.element_wise_add(
        X, np.broadcast_to(X[:, :1, :, :1], X.shape), **on
    ),
    "integer division": lambda on: dml.element_wise_divide(INTEGERS, INTEGERS[:, ::-1], **on),
    "integer maximum": lambda on: dml.element_wise_max(INTEGERS, -INTEGERS, **on),
    "bits": lambda on: dml.element_wise_bit_xor(INTEGERS, INTEGERS[::-1], **on),
    "conversion": lambda on: dml.cast(SMALL * 50, output_type=dml.INT8, **on),
    "comparison": lambda on: dml.element_wise_logical_less_than(SMALL, SMALL[::-1], **on),
    "power": lambda on: dml.element_wise_pow(abs(SMALL), SMALL[::-1], **on),
    "square root": lambda on: dml.element_wise_sqrt(abs(SMALL), **on),
    "product of matrices": lambda on: dml.gemm(SMALL, SMALL.T.copy(), None, **on),
    "slices": lambda on: dml.slice1(
        X,
        input_window_offsets=[0, 1, 0, 1],
        input_window_sizes=[2, 2, 4, 3],
        input_window_strides=[1, 1, 2, 1],
        **on,
    ),
    "padding": lambda on: dml.padding(
        SMALL,
        padding_mode=dml.PaddingMode.CONSTANT,
        padding_value=1.5,
        start_padding=[1, 0],
        end_padding=[0, 2],
        **on,
    ),
}
REDUCTIONS = (
    *("SUM", "AVERAGE", "MULTIPLY", "MIN", "MAX", "ARGMIN", "ARGMAX", "L1", "L2"),
    *("LOG_SUM_EXP", "SUM_SQUARE"),
)


@pytest.mark.parametrize("name", CASES)
def test_operators_run_on_a_target_in_plain_python(name: str) -> None:
    expected, found = (np.asarray(CASES[name]({"device": device})) for device in ("reference", "stub"))
    tolerance = {"f": 3e-6, "e": 2e-3}.get(expected.dtype.char, 0)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance / 4)


@pytest.mark.parametrize("function", REDUCTIONS)
def test_reductions_keep_their_bounds_without_float64(function: str) -> None:
    def reduce(device: str) -> Any:
        return dml.reduce(X * 3 + 1000, function=dml.ReduceFunction[function], axes=[1, 3], device=device)

    try:
        expected = np.asarray(reduce("reference"))
    except dml.InvalidArgument:
        pytest.skip(f"{function} has another type of results")
    # The rounding of the result, as FLOAT64 would give it.
    np.testing.assert_allclose(np.asarray(reduce("stub")), expected, rtol=2.0**-23)


def test_sums_of_numbers_that_cancel_keep_the_bound_without_float64() -> None:
    x = np.concatenate([floats(500) * 1e6, floats(500)])
    x = np.concatenate([x, -x[::-1], floats(3)])
    found = np.asarray(dml.reduce(x, function=dml.ReduceFunction.SUM, axes=[0], device="stub"))
    exact, magnitudes = math.fsum(x), math.fsum(abs(x))
    assert abs(found.item() - exact) <= SumBound.ROUNDED_ONCE.value * magnitudes + 2.0**-24 * abs(exact)
    assert abs(np.cumsum(x)[-1] - exact) > 100 * SumBound.ROUNDED_ONCE.value * magnitudes


REFUSED = {
    "the stub: no way": lambda: dml.cumulative_summation(SMALL, axis=1, device="stub"),
    "without FLOAT64": lambda: dml.element_wise_identity(SMALL.astype(np.float64), device="stub"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_target_refuses_what_it_has_no_way_for(message: str) -> None:
    with pytest.raises(dml.Unsupported, match=message):
        REFUSED[message]()


def test_the_page_about_adding_a_target_is_true() -> None:
    page = (ROOT / "docs" / "design" / "adding_a_target.md").read_text("utf-8")
    words = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page, flags=re.DOTALL))
    files = [word for word in words if re.fullmatch(r"[\w/]+\.py", word)]
    assert [file for file in files if not (ROOT / file).is_file()] == []
    names = {word for word in words if re.fullmatch(r"\w+", word)} - {"exp", "program", "compiler"}
    sources = "\n".join((ROOT / file).read_text("utf-8") for file in files)
    assert [
        name for name in names if not re.search(rf"^\s*(def|class) {name}\b|^{name} = ", sources, re.M)
    ] == []
    stub = (ROOT / "tests" / "targets" / "stub_target.py").read_text("utf-8")
    assert len(stub.splitlines()) <= 500
    assert set(re.findall(r"^from opendml\.targets\.(\w+)", stub, re.M)) == {"common", "host", "memory"}
