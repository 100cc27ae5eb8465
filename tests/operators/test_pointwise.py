"""Point-wise operators on all types: devices against the definitions, and what the definitions decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, TensorDataType, TensorDesc, descs
from opendml.program.scalar_type import ScalarType
from opendml.runtime.memory.host_array import Array
from opendml.spec.enums import IsInfinityMode, RoundingMode
from opendml.spec.facts import tolerance_facts
from opendml.spec.schema import operator
from tests.pairwise import pairwise
from tests.running import elements, laid_out, memory_for, run, same_bits
from tests.tolerances import ROUNDED_ONCE
from tools.distances import ulp_distance
from tools.measure_accuracy import CASES as CASES_BY_NAME
from tools.measure_accuracy import (
    activation,
    computed,
    dense_float32_values,
    every_float16,
    exact,
    float32_values,
)
from tools.pointwise_cases import OPERATORS, Types, desc_of, inputs_of, random_values, type_combinations

CASES = [(name, types) for name in OPERATORS for types in type_combinations(name)]
COUNT = 203
INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]


def assert_near(name: str, result: Array, expected: Array) -> None:
    """Equal integers and FLOAT64; other floats within the operator's bound, half an ULP of which is the
    expectation's."""
    if result.dtype.name in ("float16", "float32"):
        bound = tolerance_facts().get(name, {}).get(result.dtype.name.upper(), ROUNDED_ONCE)["bound"]
        distances = ulp_distance(result, expected.astype(np.float64))
        assert distances.max() <= bound + 0.5, f"at {distances.argmax()}"
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("name", "types"), CASES, ids=[f"{name}-{'-'.join(types.values())}" for name, types in CASES]
)
def test_the_device_computes_what_is_defined(name: str, types: Types, device: Device) -> None:
    desc, inputs = desc_of(name, types, COUNT), inputs_of(name, types, COUNT)
    if name == "ELEMENT_WISE_POW" and "FLOAT" in types["InputTensor"] + types["ExponentTensor"]:
        # Integers that FLOAT32 does not have are left out, and results that are none of them.
        inputs = [x if x.dtype.kind == "f" else np.clip(x, 0, 99) for x in inputs]
        if inputs[1].dtype.kind == "f":
            inputs[1] = np.clip(inputs[1], -3, 3)
    result, expected = run(desc, inputs, device), run(desc, inputs, "reference")
    if "_BIT_" in name:
        assert same_bits(result, expected)
    else:
        assert_near(name, result, expected)


SMALL_TYPES = [
    ("ELEMENT_WISE_ADD", {"ATensor": "UINT8", "BTensor": "UINT8", "OutputTensor": "UINT8"}),
    ("ELEMENT_WISE_MAX", {"ATensor": "INT16", "BTensor": "INT16", "OutputTensor": "INT16"}),
    ("CAST", {"InputTensor": "FLOAT64", "OutputTensor": "INT8"}),
    ("CAST", {"InputTensor": "UINT8", "OutputTensor": "FLOAT64"}),
    (
        "ELEMENT_WISE_IF",
        dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), "INT64") | {"ConditionTensor": "UINT8"},
    ),
    ("FILL_VALUE_SEQUENCE", {"OutputTensor": "UINT16"}),
]


@pytest.mark.parametrize(("name", "types"), SMALL_TYPES)
@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 40000])
def test_vectors_of_any_length_are_whole(name: str, types: Types, count: int, device: Device) -> None:
    desc, inputs = desc_of(name, types, count), [x[:count] for x in inputs_of(name, types, max(count, 16))]
    assert same_bits(run(desc, inputs, device), run(desc, inputs, "reference"))


SIZES = (3, 5, 40)
LAYOUTS = {"packed": (200, 40, 1), "gaps": (420, 84, 2), "transposed": (1, 3, 15), "padded": (260, 52, 1)}


@pairwise(type=["UINT8", "INT16", "FLOAT16", "INT64", "FLOAT64"], output=LAYOUTS, input=LAYOUTS)
def test_every_layout_holds_every_type(type: str, input: str, output: str, device: Device) -> None:
    data_type = TensorDataType[type]
    condition = TensorDesc(TensorDataType.UINT8, SIZES, (0, 0, 1))
    a, b = TensorDesc(data_type, SIZES, LAYOUTS[input]), TensorDesc(data_type, SIZES, (40, 0, 1))
    result = TensorDesc(data_type, SIZES, LAYOUTS[output])
    generator = np.random.default_rng(1)
    numpy_type = memory_for(a).dtype
    chosen = generator.integers(0, 2, 40).astype(np.uint8)
    first = generator.integers(0, 100, SIZES).astype(numpy_type)
    second = generator.integers(0, 100, (3, 40)).astype(numpy_type)
    desc = descs.ElementWiseIf(condition, a, b, result)
    # The second operand has a stride of 0 over a row of the first one's rows: its memory is that of 3 rows.
    memory = second.reshape(-1).copy()
    found = run(desc, [chosen, laid_out(first, a), memory], device)
    assert same_bits(np.ascontiguousarray(found), np.where(chosen, first, second[:, None]))


@pytest.mark.parametrize("name", [name for name in OPERATORS if operator(name).in_place])
def test_the_output_may_be_an_input_where_the_page_allows_it(name: str, device: Device) -> None:
    types = next(iter(type_combinations(name)))
    desc, inputs = desc_of(name, types, COUNT), inputs_of(name, types, COUNT)
    separate = run(desc, inputs, device)
    for field in operator(name).in_place:
        position = [each.name for each in operator(name).tensors].index(field)
        if types[field] == types[operator(name).tensors[-1].name]:
            memory = [x.copy() for x in inputs]
            bound = device.compile_operator(device.create_operator(desc))
            bound.bind(memory, [memory[position]]).dispatch()
            assert same_bits(memory[position], separate)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap(name: str, device: Device) -> None:
    limits = np.iinfo(name)
    least, greatest = np.array([limits.min], name), np.array([limits.max], name)
    one = np.array([1], name)
    assert dml.element_wise_add(greatest, one, device=device).tolist() == [limits.min]
    assert dml.element_wise_subtract(least, one, device=device).tolist() == [limits.max]
    assert dml.element_wise_multiply(greatest, greatest, device=device).tolist() == [1]
    if limits.min < 0:
        assert dml.element_wise_negate(least, device=device).tolist() == [limits.min]
        assert dml.element_wise_abs(least, device=device).tolist() == [limits.min]


@pytest.mark.parametrize("name", INTEGERS)
def test_division_by_zero_and_of_the_least_number_is_defined(name: str, device: Device) -> None:
    limits = np.iinfo(name)
    a = np.array([5, 0, limits.max, limits.min] * 20, name)
    zero = np.zeros_like(a)
    all_bits = -1 if limits.min < 0 else limits.max
    assert set(dml.element_wise_divide(a, zero, device=device).tolist()) == {all_bits}
    assert same_bits(dml.element_wise_modulus_truncate(a, zero, device=device), a)
    assert same_bits(dml.element_wise_modulus_floor(a, zero, device=device), a)
    if limits.min < 0:
        minus_one = np.full_like(a, -1)
        expected = [-5, 0, -limits.max, limits.min] * 20
        assert dml.element_wise_divide(a, minus_one, device=device).tolist() == expected
        for modulus in (dml.element_wise_modulus_truncate, dml.element_wise_modulus_floor):
            assert not modulus(a, minus_one, device=device).any()


@pytest.mark.parametrize("name", INTEGERS)
def test_quotients_are_exact_next_to_multiples(name: str, device: Device) -> None:
    """Where a quotient of floats would be rounded up to a whole number, if it could."""
    limits = np.iinfo(name)
    generator = np.random.default_rng(5)
    divisors = generator.integers(1, min(limits.max, 2**31), 500).astype(object)
    quotients = [int(generator.integers(0, limits.max // int(d) + 1)) for d in divisors]
    dividends = [max(int(d) * q - 1, 0) for d, q in zip(divisors, quotients, strict=True)]
    a, b = np.array(dividends, name), np.array(divisors.tolist(), name)
    expected = [n // int(d) for n, d in zip(dividends, divisors, strict=True)]
    assert dml.element_wise_divide(a, b, device=device).tolist() == expected


@pytest.mark.parametrize(
    ("function", "a", "b", "expected"),
    [
        (dml.element_wise_modulus_truncate, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
        (dml.element_wise_modulus_floor, [7, -7, 7, -7], [3, 3, -3, -3], [1, 2, -2, -1]),
        (dml.element_wise_modulus_floor, [6, -6, 6, -6], [3, 3, -3, -3], [0, 0, 0, 0]),
        (dml.element_wise_divide, [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3]),
        (
            dml.element_wise_mean,
            [3, -3, 2**31 - 1, -(2**31)],
            [4, -4, 2**31 - 1, -(2**31)],
            [3, -3, 2**31 - 1, -(2**31)],
        ),
        (dml.element_wise_pow, [2, -3, 7, 0], [30, 3, 0, 0], [2**30, -27, 1, 1]),
        (dml.element_wise_pow, [1, -1, -1, 2], [-5, -5, -4, -1], [1, -1, 1, 0]),
        (dml.element_wise_pow, [3, 3, 2, 0], [40, 21, 32, -1], [3**40, 3**21, 2**32, 0]),
    ],
)
def test_integers_have_the_signs_and_the_rounding_that_are_decided(
    function: Any, a: list[int], b: list[int], expected: list[int], device: Device
) -> None:
    wrapped = [(value + 2**31) % 2**32 - 2**31 for value in expected]
    result: Array = function(np.array(a, np.int32), np.array(b, np.int32), device=device)
    assert result.tolist() == wrapped


def test_float_remainders_are_exact_over_the_whole_range(device: Device) -> None:
    a = np.array([3.4e38, 1e30, -1e30, 7.5, -7.5, 5.0, 1.0, math.inf, -0.0, 1e-40, 3.0] * 3, np.float32)
    b = np.array([1e-45, 3.0, 3.0, 2.0, 2.0, math.inf, 0.0, 1.0, 5.0, 7e-42, math.nan] * 3, np.float32)
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
    assert same_bits(dml.element_wise_modulus_truncate(a, b, device=device), expected)


@pytest.mark.parametrize("name", [name for name in INTEGERS if name.startswith("u")])
def test_shifts_by_the_width_or_more_give_zero(name: str, device: Device) -> None:
    bits = np.iinfo(name).bits
    x = np.full(5, np.iinfo(name).max, name)
    by = np.array([0, bits - 1, bits, bits + 1, np.iinfo(name).max], name)
    ends = np.iinfo(name).max
    assert dml.element_wise_bit_shift_left(x, by, device=device).tolist() == [ends, 1 << bits - 1, 0, 0, 0]
    assert dml.element_wise_bit_shift_right(x, by, device=device).tolist() == [ends, 1, 0, 0, 0]


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_casts_from_floats_truncate_and_saturate(source: str, target: str, device: Device) -> None:
    x = np.array([math.nan, math.inf, -math.inf, 2.9, -2.9, -0.5, 65504.0, -65504.0], source)
    limits = np.iinfo(target)
    expected = [0, limits.max, limits.min, 2, max(limits.min, -2), 0]
    expected += [min(limits.max, 65504), max(limits.min, -65504)]
    result = dml.cast(np.tile(x, 9), output_type=TensorDataType[target.upper()], device=device)
    assert result.tolist() == expected * 9


def test_casts_to_float16_round_once(device: Device) -> None:
    """Next to the middle of two FLOAT16, a rounding to FLOAT32 first would lose the side."""
    middle, little = 1.0 + 2.0**-11, 2.0**-40
    x = np.array([middle, middle + little, middle - little, -middle - little, 65519.99999999, 65520.0] * 8)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    assert same_bits(dml.cast(x, output_type=dml.FLOAT16, device=device), expected)


@pytest.mark.parametrize("name", ["uint64", "int64", "uint32"])
def test_casts_of_large_integers_round_to_nearest(name: str, device: Device) -> None:
    x = random_values(np.random.default_rng(2), ScalarType[name.upper()], 300)
    for target in ("float16", "float32", "float64"):
        result = dml.cast(x, output_type=TensorDataType[target.upper()], device=device)
        with np.errstate(over="ignore"):
            assert same_bits(result, x.astype(target))


def test_bits_of_floats_are_taken_as_stored(device: Device) -> None:
    signaling = np.array([0x7F800001, 0xFFFFFFFF, 0x80000000, 1] * 9, np.uint32)
    mask = np.full(36, 0x7FFFFFFF, np.uint32)
    result = dml.element_wise_bit_and(signaling.view(np.float32), mask.view(np.float32), device=device)
    assert same_bits(result.view(np.uint32), signaling & mask)
    count = dml.element_wise_bit_count(signaling.view(np.float32), device=device)
    assert count.tolist() == [9, 32, 1, 1] * 9


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (RoundingMode.HALVES_TO_NEAREST_EVEN, [0, 2, 2, -2, -2, 0, 3, 8388609]),
        (RoundingMode.TOWARD_ZERO, [0, 1, 2, -1, -2, 0, 2, 8388609]),
        (RoundingMode.TOWARD_INFINITY, [1, 2, 3, -2, -3, 0, 3, 8388609]),
    ],
)
def test_rounding_modes(mode: RoundingMode, expected: list[float], device: Device) -> None:
    x = np.array([0.5, 1.5, 2.5, -1.5, -2.5, 0.49999997, 2.6, 8388609.0], np.float32)
    assert dml.element_wise_round(x, rounding_mode=mode, device=device).tolist() == expected
    negative = dml.element_wise_round(np.float32([-0.3, -0.0]), rounding_mode=mode, device=device)
    assert np.signbit(negative).all()


def test_ceil_and_floor_keep_the_sign_of_zero(device: Device) -> None:
    x = np.array([-0.5, -0.0, 0.5, 1.5, -1.5, math.inf], np.float32)
    assert same_bits(dml.element_wise_ceil(x, device=device), np.ceil(x))
    assert same_bits(dml.element_wise_floor(x, device=device), np.floor(x))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (IsInfinityMode.EITHER, [1, 1, 0, 0]),
        (IsInfinityMode.POSITIVE, [1, 0, 0, 0]),
        (IsInfinityMode.NEGATIVE, [0, 1, 0, 0]),
    ],
)
def test_infinity_modes(mode: IsInfinityMode, expected: list[int], device: Device) -> None:
    x = np.array([math.inf, -math.inf, math.nan, 3e38], np.float32)
    assert dml.element_wise_is_infinity(x, infinity_mode=mode, device=device).tolist() == expected


def test_formulas_that_compare_do_not_pass_nan_on(device: Device) -> None:
    x, gradient = np.full(3, math.nan, np.float32), np.full(3, 5.0, np.float32)
    assert dml.element_wise_sign(x, device=device).tolist() == [0, 0, 0]
    assert dml.activation_relu_grad(x, gradient, device=device).tolist() == [0, 0, 0]
    assert dml.element_wise_clip_grad(x, gradient, min=0, max=1, device=device).tolist() == [5, 5, 5]
    for function in (dml.element_wise_max, dml.element_wise_min):
        assert np.isnan(function(x, gradient, device=device)).all()
        assert np.isnan(function(gradient, x, device=device)).all()
    assert np.isnan(dml.element_wise_clip(x, min=0, max=1, device=device)).all()


def test_clip_gives_the_minimum_where_the_bounds_cross(device: Device) -> None:
    x = np.array([-5, 0, 5], np.int32)
    assert dml.element_wise_clip(x, min=2.0, max=1.0, device=device).tolist() == [2, 2, 2]
    assert dml.element_wise_clip(x, min=-1e30, max=1.9, device=device).tolist() == [-5, 0, 1]


POWERS = [-math.inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, math.inf, math.nan]
EXPONENTS = [-math.inf, -3.0, -2.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 2048.0, math.inf, math.nan]


@pytest.mark.parametrize("type", [np.float32, np.float16])
def test_powers_have_the_special_values_of_c(type: Any, device: Device) -> None:
    x, y = (side.ravel().astype(type) for side in np.meshgrid(POWERS, EXPONENTS))
    with np.errstate(all="ignore"):
        expected = np.float_power(x, y).astype(type)
    assert same_bits(dml.element_wise_pow(x, y, device=device), expected)


def test_an_integer_exponent_decides_the_sign(device: Device) -> None:
    x = np.array([-2.0, -2.0, -0.0, -0.0, -math.inf, -1.0], np.float32)
    exponent = np.array([3, 4, -3, -4, 3, 2**31 - 1], np.int32)
    result = dml.element_wise_pow(x, exponent, device=device)
    assert result.tolist() == [-8.0, 16.0, -math.inf, math.inf, -math.inf, -1.0]


def test_angles_have_the_special_values_of_c(device: Device) -> None:
    values = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan, 1e-40, 3e38]
    y, x = (side.ravel().astype(np.float32) for side in np.meshgrid(values, values))
    expected = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    result = dml.element_wise_atan_yx(y, x, device=device)
    assert ulp_distance(result, expected).max() <= 1
    is_number = ~np.isnan(expected)
    assert (np.signbit(result) == np.signbit(expected))[is_number].all()


@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize(
    "name", ["SIN", "TAN", "ASIN", "ATAN", "SINH", "TANH", "ASINH", "ATANH", "ERF", "SQRT", "FLOOR", "CEIL"]
)
def test_functions_through_the_origin_keep_the_sign_of_zero(name: str, type: Any, device: Device) -> None:
    function: Any = getattr(dml, f"element_wise_{name.lower()}")
    result = function(np.array([-0.0, 0.0], type), device=device)
    assert not result.any()
    assert np.signbit(result).tolist() == [True, False]


@pytest.mark.parametrize("name", ["SIN", "COS", "TAN"])
def test_angles_may_be_as_large_as_float32_goes(name: str, device: Device) -> None:
    """Powers of two times a number that comes very near to multiples of pi / 2, and some others."""
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    x = np.ldexp(np.float32(16367173.0), np.arange(100)).astype(np.float32)
    x = np.concatenate([x, np.geomspace(1e3, 3.4e38, 400).astype(np.float32)])
    with mpmath.workprec(300):
        exact = [float(getattr(mpmath, name.lower())(mpmath.mpf(float(value)))) for value in x]
    function: Any = getattr(dml, f"element_wise_{name.lower()}")
    for sign in (1, -1):
        expected = np.array(exact) * (1 if name == "COS" else sign)
        bound = tolerance_facts()[f"ELEMENT_WISE_{name}"]["FLOAT32"]["bound"]
        assert ulp_distance(function(sign * x, device=device), expected).max() <= bound


def test_quantization_rounds_halves_to_even_and_saturates(device: Device) -> None:
    x = np.array([0.25, 0.75, -0.25, 1e9, -1e9, math.nan, math.inf], np.float32)
    unsigned = dml.element_wise_quantize_linear(x, 0.5, np.uint8(10), device=device)
    assert unsigned.tolist() == [10, 12, 10, 255, 0, 0, 255]
    signed = dml.element_wise_quantize_linear(x, 0.5, np.int8(-3), device=device)
    assert signed.tolist() == [-3, -1, -3, 127, -128, 0, 127]


def test_ties_of_quantization_are_those_of_float32(device: Device) -> None:
    generator = np.random.default_rng(3)
    scale = generator.uniform(0.01, 0.3, 20000).astype(np.float32)
    x = (scale * (generator.integers(-90, 90, 20000) + 0.5)).astype(np.float32)
    expected = np.clip(np.rint(x / scale), -128, 127).astype(np.int8)
    assert same_bits(dml.element_wise_quantize_linear(x, scale, np.int8(0), device=device), expected)


def test_dequantization_subtracts_exactly(device: Device) -> None:
    x = np.array([2**31 - 1, -(2**31), 5], np.int32)
    zero = np.array([-(2**31), 2**31 - 1, 7], np.int32)
    result = dml.element_wise_dequantize_linear(x, np.ones(3, np.float32), zero, device=device)
    assert result.tolist() == [2.0**32, -(2.0**32), -2.0]


def test_scale_and_bias_of_integers_are_truncated_and_saturate(device: Device) -> None:
    x = np.array([3, -3, 127, -128], np.int8)
    result = dml.element_wise_identity(x, scale_bias=dml.ScaleBias(1.5, 0.0), device=device)
    assert result.tolist() == [4, -4, 127, -128]
    result = dml.element_wise_abs(x, scale_bias=dml.ScaleBias(0.5, -1.0), device=device)
    assert result.tolist() == [0, 2, 62, 65]


@pytest.mark.parametrize(
    ("type", "start", "delta"),
    [("INT32", -4, 3), ("INT32", 2**31 - 9, 2**30 + 1), ("INT64", 2**63 - 5, 1), ("UINT64", 2**64 - 1, 1)],
)
def test_a_sequence_counts_elements_in_row_major_order_whatever_its_layout(
    type: str, start: int, delta: int, device: Device
) -> None:
    """Integers wrap, and numbers of 64 bits keep all their digits, as the constant does that comes first."""
    tensor = TensorDesc(TensorDataType[type], (3, 5, 7), (7, 21, 1))
    how: dict[str, Any] = {"value_data_type": tensor.data_type}
    count = np.arange(105, dtype=type.lower()).reshape(3, 5, 7)
    with np.errstate(over="ignore"):
        expected = count * count.dtype.type(delta) + count.dtype.type(start)
    sequence = descs.FillValueSequence(tensor, value_start=start, value_delta=delta, **how)
    assert same_bits(run(sequence, [], device).copy(), expected)
    constant = descs.FillValueConstant(tensor, value=start, **how)
    assert same_bits(run(constant, [], device).copy(), np.full_like(expected, expected[0, 0, 0]))


def test_no_error_adds_up_along_a_sequence(device: Device) -> None:
    result: Array = dml.fill_value_sequence(
        value_data_type=dml.FLOAT32, value_start=0.1, value_delta=0.1, sizes=[100000], device=device
    )
    start = float(np.float32(0.1))
    assert same_bits(result, (start + start * np.arange(100000)).astype(np.float32))


def test_elements_between_are_not_written(device: Device) -> None:
    tensor = TensorDesc(TensorDataType.UINT8, (4, 100), (130, 1))
    desc = descs.FillValueConstant(tensor, value_data_type=tensor.data_type, value=9)
    memory = memory_for(tensor)
    device.compile_operator(device.create_operator(desc)).bind([], [memory]).dispatch()
    assert (elements(memory, tensor) == 9).all()
    assert memory.sum() == 9 * 400


MEASURED = [name for name in CASES_BY_NAME if name in OPERATORS]


@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.FLOAT16])
@pytest.mark.parametrize("name", MEASURED)
def test_results_are_within_the_stated_bounds(name: str, type: ScalarType, device: Device) -> None:
    if type is ScalarType.FLOAT16:
        x = every_float16()
    else:
        x = np.concatenate([float32_values(99991), dense_float32_values(9973, 2.0**-10, 2.0**7)])
    row = tolerance_facts()[name][type.name]
    assert row["unit"] == "ulp"
    assert row["measured"] <= row["bound"] + 0.001  # rounded up
    for attributes in CASES_BY_NAME[name]:
        desc = activation(name, attributes, type, x.size)
        distances = ulp_distance(computed(desc, x, device), exact(desc, x))
        assert distances.max() <= row["bound"], f"{attributes} at {x[distances.argmax()]!r}"


WITHOUT_BOUND = {
    "CAST",
    "ELEMENT_WISE_BIT_AND",
    "ELEMENT_WISE_BIT_NOT",
    "ELEMENT_WISE_BIT_OR",
    "ELEMENT_WISE_BIT_XOR",
    "ELEMENT_WISE_CLIP1",
    "ELEMENT_WISE_CLIP_GRAD1",
    "ELEMENT_WISE_DEQUANTIZE_LINEAR",
    "ELEMENT_WISE_IF",
    "FILL_VALUE_CONSTANT",
    "FILL_VALUE_SEQUENCE",
}
"""They are rounded once at most, or share a definition with one that has a bound."""


def test_every_operator_on_floats_has_a_stated_bound() -> None:
    of_floats = set()
    for name in OPERATORS:
        (output,) = (field.name for field in operator(name).tensors if field.kind == "OUTPUT_TENSOR")
        if "FLOAT32" in operator(name).support[0].tensors[output].types:
            of_floats.add(name)
    assert of_floats - WITHOUT_BOUND <= tolerance_facts().keys()
