"""What editors and type checkers see of the immediate functions, and what misspelt names are answered."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pytest

import opendml as dml
from opendml import functions
from opendml.operators import registry
from opendml.runtime.memory.host_array import Array
from tests.for_each import for_each

Floats = npt.NDArray[np.float32]


def test_results_have_the_types_of_what_was_given() -> None:
    """`make lint` holds the types to this."""
    x: Floats = np.ones((2, 3), np.float32)
    tensor = dml.Graph().input("x", "float32", [2, 3])
    assert_type(dml.activation_celu(x), Floats)
    assert_type(dml.activation_celu(tensor), dml.GraphTensor)
    assert_type(dml.element_wise_add(x, 1.0), Floats)
    assert_type(dml.element_wise_add(1.0, tensor), dml.GraphTensor)
    assert_type(dml.argmax(x, axes=[-1]), Array)
    assert_type(dml.argmax(tensor, axes=[0]), dml.GraphTensor)
    assert_type(dml.reduce(x, function="SUM", axes=[0]), Array)
    assert_type(dml.cast(x, output_type=np.int8), Array)
    assert_type(dml.element_wise_logical_less_than(x, 0.0), Array)
    assert_type(dml.fill_value_constant(value_data_type=np.float16, value=1, sizes=[2]), Array)
    out: Floats = np.zeros(2, np.float32)
    assert_type(dml.fill_value_constant(value_data_type=dml.FLOAT32, value=1, out=out), Floats)


def test_misspelt_keywords_name_the_nearest() -> None:
    x: Any = np.ones(3, np.float32)
    with pytest.raises(
        TypeError, match=r"activation_celu\(\) .* keyword argument 'alhpa'; did you mean 'alpha'\?"
    ):
        dml.activation_celu(x, alhpa=2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'zzz'$"):
        dml.argmax(x, axes=[0], zzz=1)  # type: ignore[call-overload]


@for_each("name", functions.__all__)
def test_every_function_refuses_unknown_keywords(name: str) -> None:
    x: Any = np.ones(3, np.float32)
    with pytest.raises(TypeError, match=f"{name}"):
        getattr(dml, name)(x, decvice="cpu", axes=[0])


@pytest.fixture
def undefined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without definitions of some operators."""
    for name in {"GEMM", "TOP_K1"} & registry.implemented():
        monkeypatch.delitem(registry._definitions.all(), name)


@pytest.mark.usefixtures("undefined")
def test_functions_that_cannot_run_yet_say_so() -> None:
    x: Floats = np.ones((2, 3), np.float32)
    with pytest.raises(dml.Unsupported, match="GEMM cannot be run yet"):
        dml.gemm(x, x.T)
    with pytest.raises(dml.Unsupported, match="GEMM cannot be run yet"):
        dml.gemm(1, 2)
    with pytest.raises(dml.Unsupported, match="TOP_K1 cannot be run yet"):
        dml.top_k1(dml.Graph().input("x", dml.FLOAT32, [3]), k=1)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("relu", "activation_relu"),
        ("add", "element_wise_add"),
        ("Grahp", "Graph"),
        ("argmx", "argmax"),
        ("float32", "FLOAT32"),
        ("layer_norm", "mean_variance_normalization1' or 'mean_variance_normalization2"),
    ],
)
def test_misspelt_names_name_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '{nearest}'"):
        getattr(dml, name)
    with pytest.raises(AttributeError, match=r"no attribute 'qqqqqq'$"):
        _ = dml.qqqqqq  # type: ignore[attr-defined]


@pytest.mark.usefixtures("undefined")
def test_names_that_others_have_for_an_operator_that_cannot_run_yet_say_so() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'matmul'; DirectML's GEMM cannot be run yet$"):
        _ = dml.matmul  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["Celu", "activation_celu", "ActivationCleu"])
def test_misspelt_descs_name_the_nearest(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean 'ActivationCelu'"):
        getattr(dml.descs, name)
