"""Conversions between types, and tensors that are filled, against NumPy and ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from opendml import TensorDataType, TensorDesc, descs
from opendml.operators.registry import implemented
from opendml.runtime.memory.host_array import Array
from tests.running import run

from .deviations import deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, INTEGERS, Random, computed, examples, seeds

ALL_FLOATS = (*FLOATS, "float64")
TYPES = (*ALL_FLOATS, *INTEGERS)


def _in_range(random: Random, source: str, target: str) -> Array:
    """Values that both types can hold, up to rounding."""
    shape = random.shape()
    if source in ALL_FLOATS:
        low, high = (-1e6, 1e6) if target in ALL_FLOATS else _bounds(target, source)
        return random.values(np.dtype(source), shape, low, high, special=target in ALL_FLOATS)
    return random.full(np.dtype(source), shape)


def _bounds(target: str, source: str) -> tuple[float, float]:
    limits = np.iinfo(target)
    most = 6e4 if source == "float16" else 2.0**62
    return max(float(limits.min), -most), min(float(limits.max), most)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target", TYPES)
@given(random=seeds)
@examples
def test_casts_agree_with_numpy(target: str, device: str, random: Random) -> None:
    x = _in_range(random, random.of_type(TYPES).name, target)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
    result = computed("CAST", x, out=np.empty(x.shape, target), device=device)
    np.testing.assert_array_equal(result, expected)


def _saturated(x: Array, target: str) -> Array:
    """NaN is 0; beyond the ends of the type are its ends. Python's integers are exact."""
    limits = np.iinfo(target)
    whole = [0 if np.isnan(value) else value for value in x.astype(np.float64).reshape(-1).tolist()]
    bounded = [int(min(max(value, limits.min), limits.max)) for value in whole]
    result: Array = np.array(bounded, target).reshape(x.shape)
    return result


saturated = deviation("CAST", "floats beyond the integer type, NaN", _saturated)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("target", INTEGERS)
@given(random=seeds)
@examples
def test_floats_beyond_an_integer_type_saturate(target: str, device: str, random: Random) -> None:
    dtype = random.of_type(ALL_FLOATS)
    x = random.values(dtype, random.shape(most=60), -1e5, 1e5)
    if dtype.itemsize > 2:
        with np.errstate(over="ignore"):
            x = (x * random.generator.choice([1, 1e5, 1e12, 1e20], x.shape)).astype(dtype)
    result = computed("CAST", x, out=np.empty(x.shape, target), device=device)
    np.testing.assert_array_equal(result, saturated(x, target))


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("target", TYPES)
@given(random=seeds)
@examples
def test_casts_agree_with_onnx(target: str, peer: str, random: Random) -> None:
    pytest.importorskip("onnx", reason="ONNX is not installed")
    from onnx import helper

    x = _in_range(random, random.of_type(TYPES).name, target)
    with np.errstate(all="ignore"):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
        expected = onnx_result(peer, "Cast", [x], target, to=to)
    result = computed("CAST", x, out=np.empty(x.shape, target), device="reference")
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", TYPES)
@given(random=seeds)
@examples
def test_constants_fill_any_tensor(name: str, device: str, random: Random) -> None:
    if "FILL_VALUE_CONSTANT" not in implemented():
        pytest.skip("FILL_VALUE_CONSTANT cannot be run yet")
    values = np.dtype(name)
    value = (
        random.values(values, (1,), special=False)[0] if values.kind == "f" else random.full(values, (1,))[0]
    )
    tensor = TensorDesc(TensorDataType[name.upper()], random.shape())
    desc = descs.FillValueConstant(tensor, value_data_type=tensor.data_type, value=value.item())
    np.testing.assert_array_equal(run(desc, [], device), np.full(tensor.sizes, value))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [name for name in TYPES if name != "float64"])
@given(random=seeds)
@examples
def test_sequences_count_in_row_major_order(name: str, device: str, random: Random) -> None:
    if "FILL_VALUE_SEQUENCE" not in implemented():
        pytest.skip("FILL_VALUE_SEQUENCE cannot be run yet")
    dtype = np.dtype(name)
    tensor = TensorDesc(TensorDataType[name.upper()], random.shape())
    # Quarters are exact in all floats, so that each way to add them up gives the same.
    start, delta = (3.25, -0.25) if dtype.kind == "f" else random.full(dtype, (2,)).tolist()
    desc = descs.FillValueSequence(
        tensor, value_data_type=tensor.data_type, value_start=start, value_delta=delta
    )
    count = np.arange(tensor.element_count).reshape(tensor.sizes)
    with np.errstate(all="ignore"):
        expected = np.array(start, dtype) + count.astype(dtype) * np.array(delta, dtype)
    np.testing.assert_array_equal(run(desc, [], device), expected)
