"""Element-wise operators on integers, and on bits, against NumPy and ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from opendml import TensorDataType
from opendml.runtime.memory.host_array import Array
from tests.tolerances import assert_within

from .deviations import Correction, deviation
from .onnx_peer import PEERS, onnx_result
from .peer import DEVICES, FLOATS, INTEGERS, SIGNED, UNSIGNED, Random, computed, examples, seeds


def _half(total: Array) -> Any:
    """Halves are rounded toward zero."""
    return np.sign(total) * (np.abs(total) // 2)


BINARY: dict[str, tuple[tuple[str, ...], Callable[[Array, Array], Any]]] = {
    "ELEMENT_WISE_ADD": (INTEGERS, np.add),
    "ELEMENT_WISE_BIT_AND": (INTEGERS, np.bitwise_and),
    "ELEMENT_WISE_BIT_OR": (INTEGERS, np.bitwise_or),
    "ELEMENT_WISE_BIT_XOR": (INTEGERS, np.bitwise_xor),
    "ELEMENT_WISE_DIFFERENCE_SQUARE": (("int32", "uint32"), lambda a, b: (a - b) * (a - b)),
    "ELEMENT_WISE_LOGICAL_AND": (("uint8", "uint32"), lambda a, b: ((a != 0) & (b != 0)).astype(a.dtype)),
    "ELEMENT_WISE_LOGICAL_OR": (("uint8", "uint32"), lambda a, b: ((a != 0) | (b != 0)).astype(a.dtype)),
    "ELEMENT_WISE_LOGICAL_XOR": (("uint8", "uint32"), lambda a, b: ((a != 0) ^ (b != 0)).astype(a.dtype)),
    "ELEMENT_WISE_MAX": (INTEGERS, np.maximum),
    "ELEMENT_WISE_MEAN": (("int32", "uint32"), lambda a, b: _half(a.astype(np.int64) + b).astype(a.dtype)),
    "ELEMENT_WISE_MIN": (INTEGERS, np.minimum),
    "ELEMENT_WISE_MULTIPLY": (INTEGERS, np.multiply),
    "ELEMENT_WISE_SUBTRACT": (INTEGERS, np.subtract),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", BINARY)
@given(random=seeds)
@examples
def test_arithmetic_wraps_as_numpy_has_it(operator: str, device: str, random: Random) -> None:
    types, function = BINARY[operator]
    shape, dtype = random.shape(), random.of_type(types)
    a, b = (random.full(dtype, shape) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = function(a, b)
    assert_within(operator, computed(operator, a, b, device=device), expected)


def _all_bits(peer: Array, a: Array, b: Array) -> Array:
    return np.where(b == 0, np.array(-1).astype(a.dtype), peer)


def _dividend(peer: Array, a: Array, b: Array) -> Array:
    return np.where(b == 0, a, peer)


DIVISIONS: dict[str, tuple[Callable[[Any, Any], Any], Correction]] = {
    "ELEMENT_WISE_DIVIDE": (
        lambda a, b: (a - np.fmod(a, b)) // b,
        deviation("ELEMENT_WISE_DIVIDE", "integer divided by zero", _all_bits),
    ),
    "ELEMENT_WISE_MODULUS_FLOOR": (
        np.mod,
        deviation("ELEMENT_WISE_MODULUS_FLOOR", "integer modulo zero", _dividend),
    ),
    "ELEMENT_WISE_MODULUS_TRUNCATE": (
        np.fmod,
        deviation("ELEMENT_WISE_MODULUS_TRUNCATE", "integer modulo zero", _dividend),
    ),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", DIVISIONS)
@given(random=seeds)
@examples
def test_divisions_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    function, correction = DIVISIONS[operator]
    shape, dtype = random.shape(), random.of_type(INTEGERS)
    a, b = (random.full(dtype, shape) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = correction(function(a, b), a, b)
    assert_within(operator, computed(operator, a, b, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", ["ELEMENT_WISE_BIT_SHIFT_LEFT", "ELEMENT_WISE_BIT_SHIFT_RIGHT"])
@given(random=seeds)
@examples
def test_shifts_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(UNSIGNED)
    a = random.full(dtype, shape)
    b = random.values(dtype, shape, 0, dtype.itemsize * 10)  # from the width on nothing is left
    expected = (np.left_shift if operator.endswith("LEFT") else np.right_shift)(a, b)
    assert_within(operator, computed(operator, a, b, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_powers_wrap_as_numpy_has_them(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(("int8", "int16", "int32", "uint8", "uint16", "uint32"))
    x = random.values(dtype, shape, -20, 20)
    exponent = random.values(dtype, shape, 0, 9)
    result = computed("ELEMENT_WISE_POW", x, exponent, device=device)
    assert_within("ELEMENT_WISE_POW", result, np.power(x, exponent))


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_bounds_of_floats_are_truncated_for_integers(device: str, random: Random) -> None:
    x = random.full(random.of_type(("int8", "int16", "int32")), random.shape())
    result = computed("ELEMENT_WISE_CLIP", x, min=-2.9, max=90.5, device=device)
    assert_within("ELEMENT_WISE_CLIP", result, x.clip(-2, 90))
    result = computed("ELEMENT_WISE_THRESHOLD", x, min=-2.9, device=device)
    assert_within("ELEMENT_WISE_THRESHOLD", result, np.maximum(x, -2))


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_slopes_of_integers_wrap(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(("int8", "int16", "int32"))
    x, slope = (random.full(dtype, shape) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = np.where(x >= 0, x, x * slope)
    result = computed("ACTIVATION_PARAMETERIZED_RELU", x, slope, device=device)
    assert_within("ACTIVATION_PARAMETERIZED_RELU", result, expected)


UNARY: dict[str, tuple[tuple[str, ...], Callable[[Array], Any]]] = {
    "ELEMENT_WISE_ABS": (SIGNED, np.abs),
    "ELEMENT_WISE_BIT_NOT": (INTEGERS, np.invert),
    "ELEMENT_WISE_IDENTITY": (INTEGERS, lambda x: x),
    "ELEMENT_WISE_LOGICAL_NOT": (("uint8", "uint32"), lambda x: (x == 0).astype(x.dtype)),
    "ELEMENT_WISE_NEGATE": (SIGNED, np.negative),
    "ELEMENT_WISE_SIGN": (INTEGERS, np.sign),
    "ACTIVATION_RELU": (("int8", "int16", "int32"), lambda x: np.maximum(x, 0)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", UNARY)
@given(random=seeds)
@examples
def test_functions_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    types, function = UNARY[operator]
    x = random.full(random.of_type(types), random.shape())
    with np.errstate(all="ignore"):
        expected = function(x)
    result = computed(operator, x, device=device)
    assert result.dtype == x.dtype
    assert_within(operator, result, expected)


COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "ELEMENT_WISE_LOGICAL_EQUALS": np.equal,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN": np.greater,
    "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL": np.greater_equal,
    "ELEMENT_WISE_LOGICAL_LESS_THAN": np.less,
    "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL": np.less_equal,
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", COMPARISONS)
@given(random=seeds)
@examples
def test_comparisons_agree_with_numpy(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(INTEGERS)
    a = random.full(dtype, shape)
    b = np.where(random.generator.random(shape) < 0.3, a, random.full(dtype, shape))
    assert_within(operator, computed(operator, a, b, device=device), COMPARISONS[operator](a, b))


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_clipping_to_typed_bounds_agrees_with_numpy(device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type((*INTEGERS, *FLOATS))
    if dtype.kind == "f":
        x = random.values(dtype, shape, -100, 100)
        low, high = -12.5, 60.25
    else:
        x = random.full(dtype, shape)
        low, high = sorted(random.full(dtype, (2,)).tolist())
    data_type = TensorDataType[dtype.name.upper()]
    attributes = {"min_max_data_type": data_type, "min": low, "max": high}
    result = computed("ELEMENT_WISE_CLIP1", x, device=device, **attributes)
    np.testing.assert_array_equal(result, x.clip(low, high))
    gradient = random.full(dtype, shape) if dtype.kind != "f" else random.values(dtype, shape, special=False)
    expected = np.where((x <= low) | (x >= high), 0, gradient)
    result = computed("ELEMENT_WISE_CLIP_GRAD1", x, gradient, device=device, **attributes)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("device", DEVICES)
@given(random=seeds)
@examples
def test_set_bits_are_counted_as_numpy_does(device: str, random: Random) -> None:
    x = random.full(random.of_type(UNSIGNED), random.shape())
    assert_within(
        "ELEMENT_WISE_BIT_COUNT", computed("ELEMENT_WISE_BIT_COUNT", x, device=device), np.bitwise_count(x)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operator", ["AND", "OR", "XOR"])
@given(random=seeds)
@examples
def test_bits_of_floats_are_those_of_their_encoding(operator: str, device: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type((*FLOATS, "float64"))
    bits = np.dtype(f"uint{dtype.itemsize * 8}")
    a, b = (random.full(bits, shape) for _ in range(2))
    expected = getattr(np, f"bitwise_{operator.lower()}")(a, b)
    a, b = (np.ascontiguousarray(each).view(dtype) for each in (a, b))
    result = computed(f"ELEMENT_WISE_BIT_{operator}", a, b, device=device)
    np.testing.assert_array_equal(np.ascontiguousarray(result).view(bits), expected)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("truncate", [False, True])
@given(random=seeds)
@examples
def test_remainders_agree_with_onnx(truncate: bool, peer: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(("int8", "int32", "int64", "uint8", "uint32"))
    a, b = (random.values(dtype, shape, -50, 50) for _ in range(2))
    b = np.where(b == 0, 7, b).astype(dtype)
    expected = onnx_result(peer, "Mod", [a, b], dtype.name, fmod=int(truncate))
    operator = f"ELEMENT_WISE_MODULUS_{'TRUNCATE' if truncate else 'FLOOR'}"
    np.testing.assert_array_equal(computed(operator, a, b, device="reference"), expected)


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@given(random=seeds)
@examples
def test_shifts_agree_with_onnx(direction: str, peer: str, random: Random) -> None:
    shape, dtype = random.shape(), random.of_type(("uint8", "uint32", "uint64"))
    a = random.full(dtype, shape)
    b = random.values(dtype, shape, 0, dtype.itemsize * 8 - 1)
    expected = onnx_result(peer, "BitShift", [a, b], dtype.name, direction=direction)
    operator = f"ELEMENT_WISE_BIT_SHIFT_{direction}"
    np.testing.assert_array_equal(computed(operator, a, b, device="reference"), expected)
