"""Element-wise operators of ONNX models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.onnx.models import (
    Array,
    assert_as_onnxruntime,
    assert_same,
    computed,
    evaluated,
    feed,
    one_node,
)
from tests.pairwise import pairwise

BINARY = ["Add", "Div", "Mul", "Sub", "Max", "Min", "Sum", "Pow", "Greater", "LessOrEqual", "Equal"]
SIZES = [([], []), ([3], []), ([2, 3], [3]), ([2, 1, 4], [3, 1]), ([1], [2, 1])]


def _check(operator: str, inputs: list[Array | None], evaluator: bool = False, **options: Any) -> None:
    model = one_node(operator, inputs, **options)
    given = feed(inputs, options.get("known", ()))
    assert_same(computed(model, given, evaluator), evaluated(model, given))


def _array(sizes: list[int], type: Any = np.float32, seed: int = 0) -> Array:
    random = np.random.default_rng(sum(sizes) + len(sizes) + seed)
    if np.dtype(type).kind == "f":
        return np.asarray(random.uniform(0.1, 3, sizes).astype(type))
    return np.asarray(random.integers(1, 5, sizes).astype(type))


@pytest.mark.parametrize(("a", "b"), SIZES)
@pytest.mark.parametrize("operator", BINARY)
def test_two_tensors_are_repeated_as_numpy_does(operator: str, a: list[int], b: list[int]) -> None:
    _check(operator, [_array(a), _array(b, seed=1)])


@pytest.mark.parametrize("type", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("operator", ["Add", "Div", "Mul", "Sub", "Mod", "Max", "Less"])
def test_integers_keep_their_type(operator: str, type: Any) -> None:
    _check(operator, [_array([2, 3], type), _array([3], type, 1)])


@pytest.mark.parametrize("operator", ["Abs", "Neg", "Sign", "Sqrt", "Round", "Erf", "Reciprocal", "Exp"])
@pytest.mark.parametrize("sizes", [[], [2, 3]])
def test_one_tensor(operator: str, sizes: list[int]) -> None:
    _check(operator, [_array(sizes, np.float16 if operator == "Sqrt" else np.float32)])


def test_unsigned_numbers_are_their_absolute_values() -> None:
    _check("Abs", [_array([3], np.uint8)])


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("operator", ["Max", "Min", "Sum", "Mean"])
def test_any_number_of_tensors(operator: str, count: int) -> None:
    _check(operator, [_array([2, 3]), _array([3], seed=1), _array([], seed=2)][:count])


def test_the_mean_is_repeated_too() -> None:
    x: list[Array | None] = [_array([2, 1, 4]), _array([3, 1])]
    assert_same(
        computed(one_node("Mean", x), feed(x)), [(_array([2, 1, 4]) + _array([3, 1])) / np.float32(2)]
    )


def test_nan_is_passed_on() -> None:
    x = np.array([np.nan, 1, np.inf, -np.inf], np.float32)
    _check("Max", [x, np.zeros(4, np.float32)])
    _check("Clip", [x, np.float32(-1) + np.zeros((), np.float32), np.array(1, np.float32)])


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("IsNaN", {}),
        ("IsInf", {}),
        ("IsInf", {"detect_negative": 0}),
        ("IsInf", {"detect_positive": 0}),
        ("IsInf", {"detect_positive": 0, "detect_negative": 0}),
    ],
)
def test_what_is_no_number(operator: str, attributes: dict[str, int]) -> None:
    _check(operator, [np.array([[np.nan, 1, np.inf, -np.inf]], np.float32)], **attributes)


@pytest.mark.parametrize("known", [(), (1,), (1, 2)])
@pytest.mark.parametrize(("least", "most"), [(1, 2), (2, 1), (None, 2), (1, None), (None, None)])
def test_clip_takes_bounds_that_cross_or_are_absent(
    least: float | None, most: float | None, known: tuple[int, ...]
) -> None:
    inputs = [_array([2, 3])] + [None if x is None else np.array(x, np.float32) for x in (least, most)]
    _check("Clip", inputs, known=[number for number in known if inputs[number] is not None])


@pytest.mark.parametrize("opset", [7, 10])
def test_clip_of_old_models_has_attributes(opset: int) -> None:
    x = np.array([-7, 0.5, 7], np.float16)
    result = computed(one_node("Clip", [x], opset=opset, min=-1.0, max=2.0), feed([x]))
    assert_same(result, [np.array([-1, 0.5, 2], np.float16)])


@pairwise(
    exponent=[np.float32, np.int32, np.int64, np.uint64, np.int8],
    known=[(), (1,)],
    sizes=[[], [3], [2, 1]],
)
def test_pow_takes_exponents_of_other_types(sizes: list[int], known: tuple[int], exponent: Any) -> None:
    base = np.array([1.5, -2, 3], np.float32)
    inputs = [np.abs(base) if exponent == np.float32 else base, _array(sizes, exponent)]
    _check("Pow", inputs, known=known)


def test_pow_keeps_odd_exponents_odd() -> None:
    exponents = np.array([2**40 + 1, 2**40, -(2**40) - 1, 2**31 - 1], np.int64)
    inputs: list[Array | None] = [np.full(4, -1, np.float32), exponents]
    model = one_node("Pow", inputs)
    assert_same(computed(model, feed(inputs)), [np.array([-1, 1, -1, -1], np.float32)])


def test_pow_of_an_integer_is_one() -> None:
    _check("Pow", [np.array([1, 2, 3], np.int32), np.array([2.0, 3.0, 4.0], np.float32)])


@pytest.mark.parametrize(("fmod", "type"), [(0, np.int32), (1, np.int32), (1, np.float32)])
def test_mod_has_the_sign_of_either(fmod: int, type: Any) -> None:
    _check("Mod", [np.array([-7, 7, -7, 7], type), np.array([3, 3, -3, -3], type)], fmod=fmod)


def test_mod_of_floats_has_the_sign_of_the_divisor_on_zeros_too() -> None:
    numbers = np.array([0.0, -0.0, 1, -1, 2.5, -2.5, np.inf, -np.inf, np.nan], np.float32)
    inputs: list[Array | None] = [numbers[:, None], numbers]
    with np.errstate(all="ignore"):
        wanted = np.mod(numbers[:, None], numbers)
    result = computed(one_node("Mod", inputs), feed(inputs))[0]
    assert_same([result], [wanted])
    is_number = ~np.isnan(wanted)
    assert (np.signbit(result) == np.signbit(wanted))[is_number].all()


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("type", [np.uint8, np.uint64])
def test_bits_are_shifted(direction: str, type: Any) -> None:
    _check("BitShift", [_array([3], type), _array([], type)], direction=direction)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("type", [np.int8, np.int64])
def test_signed_numbers_keep_their_sign_to_the_right(direction: str, type: Any) -> None:
    _check(
        "BitShift",
        [np.array([[-7], [9], [-128], [127]], type), np.array([0, 1, 3], type)],
        direction=direction,
    )


@pytest.mark.parametrize("type", [np.bool_, np.float64, np.int64, np.float32])
def test_where_moves_elements_of_any_type(type: Any) -> None:
    condition = np.array([[True, False, True]])
    _check("Where", [condition, _array([2, 1]).astype(type), np.zeros([], type)])


@pytest.mark.parametrize("operator", ["And", "Or", "Xor", "Equal"])
def test_truth_values(operator: str) -> None:
    a, b = np.array([[True], [False]]), np.array([True, False])
    _check(operator, [a, b])
    _check("Not", [a])


def test_no_elements_make_none() -> None:
    inputs: list[Array | None] = [np.zeros((0, 3), np.float32), np.ones((1, 3), np.float32)]
    for operator in ("Add", "Greater", "Max", "Mean", "Pow"):
        _check(operator, inputs)


def test_float64_runs_on_the_evaluator() -> None:
    _check("Add", [_array([2], np.float64), _array([2], np.float64)], evaluator=True)


@pytest.mark.parametrize("exponent", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("type", [np.int64, np.int32, np.uint64])
def test_integers_to_a_known_power_are_multiplied(exponent: int, type: Any) -> None:
    base = np.array([[0, 1, 2, 3, 9], [250, 99, 31, 2**15, 6]]).astype(type)
    _check("Pow", [base, np.array(exponent, type)], known=(1,))


@pytest.mark.parametrize("operator", ["Pow", "Mod", "Clip"])
def test_onnx_runtime_agrees(operator: str) -> None:
    inputs = [_array([2, 3]), _array([] if operator == "Clip" else [3], seed=2)]
    model = one_node(operator, inputs, **({"fmod": 1} if operator == "Mod" else {}), opset=17)
    assert_as_onnxruntime(model, feed(inputs))
