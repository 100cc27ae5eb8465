"""What editors and type checkers see of the immediate functions, and what misspelt names are answered."""

from __future__ import annotations

from functools import partial
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
        ("scatter_elements", "scatter"),
        ("QuantizeLinear", "element_wise_quantize_linear"),
        ("Reinterpret", "GraphTensor.reinterpret"),
        ("DML_GEMM_OPERATOR_DESC", "descs.Gemm"),
        ("DML_OPERATOR_GEMM", "gemm"),
        ("DML_PADDING_MODE", "PaddingMode"),
        ("DML_PADDING_MODE_EDGE", "PaddingMode.EDGE"),
        ("DML_TENSOR_FLAG_OWNED_BY_DML", "TensorFlags.OWNED_BY_DML"),
        ("DML_TENSOR_DATA_TYPE_INT8", "INT8"),
        ("DML_TEMPORARY_BUFFER_ALIGNMENT", "TEMPORARY_BUFFER_ALIGNMENT"),
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


def test_a_keyword_that_another_variant_has_names_that() -> None:
    x: Floats = np.ones((2, 3), np.float32)
    with pytest.raises(
        TypeError, match=r"top_k\(\) .* keyword argument 'axis_direction'; top_k1\(\) has it$"
    ):
        dml.top_k(x, axis=1, k=2, axis_direction="DECREASING")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"max_pooling\(\) .* 'dilations'; max_pooling2\(\) has it$"):
        dml.max_pooling(x, window_size=[2], dilations=[1])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^TopK\(\) .* 'axis_direction'; TopK1\(\) has it$"):
        dml.descs.TopK(axis=1, k=2, axis_direction="DECREASING")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^TopK\(\) .* 'axes'; did you mean 'axis'\?$"):
        dml.descs.TopK(axis=1, k=2, axes=[1])  # type: ignore[call-arg]


def test_descs_are_known_by_their_names_in_c() -> None:
    assert dml.descs.DML_ACTIVATION_CELU_OPERATOR_DESC is dml.descs.ActivationCelu  # type: ignore[attr-defined]
    assert dml.descs.DML_SCATTER_ELEMENTS_OPERATOR_DESC is dml.descs.Scatter  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'ScatterElements'; did you mean 'Scatter'"):
        _ = dml.descs.ScatterElements  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'DML_NOTHING_OPERATOR_DESC'$"):
        _ = dml.descs.DML_NOTHING_OPERATOR_DESC  # type: ignore[attr-defined]


def test_truth_values_and_members_may_be_their_numbers() -> None:
    x: Floats = np.arange(6, dtype=np.float32).reshape(2, 3)
    call = partial(dml.cumulative_summation, x, axis=1)
    wanted = call(axis_direction="DECREASING", has_exclusive_sum=True)
    for direction, is_exclusive in ((1, 1), (np.int64(1), np.int32(1))):
        assert np.array_equal(call(axis_direction=direction, has_exclusive_sum=is_exclusive), wanted)
    tensor = dml.TensorDesc(1, [2, 3], flags=1)
    assert (tensor.data_type, tensor.flags) == (dml.FLOAT32, dml.TensorFlags.OWNED_BY_DML)
    assert dml.descs.CumulativeSummation(axis=1, axis_direction=1, has_exclusive_sum=0) == (
        dml.descs.CumulativeSummation(axis=1, axis_direction="DECREASING", has_exclusive_sum=False)
    )
    assert dml.cast(x, output_type=6).dtype == np.int32
    with pytest.raises(dml.InvalidArgument, match="axis_direction: 7; must be an AxisDirection"):
        call(axis_direction=7)
    with pytest.raises(dml.InvalidArgument, match="has_exclusive_sum: 2; must be True or False"):
        call(has_exclusive_sum=2)


@pytest.mark.parametrize("name", ["Celu", "activation_celu", "ActivationCleu"])
def test_misspelt_descs_name_the_nearest(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean 'ActivationCelu'"):
        getattr(dml.descs, name)
