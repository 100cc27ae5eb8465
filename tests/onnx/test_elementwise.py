"""Element-wise operators, reductions and operators that move elements, in ONNX models."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import helper

import opendml as dml
from opendml import InvalidArgument
from opendml import onnx as dml_onnx
from opendml.frontends.onnx.attributes import defaults_of
from opendml.onnx import load
from tests.onnx.models import (
    Array,
    assert_same,
    check_node,
    computed,
    evaluated,
    feed,
    one_node,
    run_by_onnxruntime,
)
from tests.pairwise import pairwise


def _array(sizes: list[int], type: Any = np.float32, seed: int = 0) -> Array:
    random = np.random.default_rng(sum(sizes) + len(sizes) + seed)
    if np.dtype(type).kind == "f":
        return np.asarray(random.uniform(0.1, 3, sizes).astype(type))
    return np.asarray(random.integers(1, 5, sizes).astype(type))


@pytest.mark.parametrize("type", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("operator", ["Add", "Div", "Mul", "Sub", "Mod", "Max", "Less"])
def test_integers_keep_their_type(operator: str, type: Any) -> None:
    check_node(operator, [_array([2, 3], type), _array([3], type, 1)])


def test_unsigned_numbers_are_their_absolute_values() -> None:
    check_node("Abs", [_array([3], np.uint8)])


def test_nan_is_passed_on() -> None:
    x = np.array([np.nan, 1, np.inf, -np.inf], np.float32)
    check_node("Max", [x, np.zeros(4, np.float32)])
    check_node("Clip", [x, np.float32(-1) + np.zeros((), np.float32), np.array(1, np.float32)])


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
    check_node(operator, [np.array([[np.nan, 1, np.inf, -np.inf]], np.float32)], **attributes)


@pytest.mark.parametrize("known", [(), (1,), (1, 2)])
@pytest.mark.parametrize(("least", "most"), [(1, 2), (2, 1), (None, 2), (1, None), (None, None)])
def test_clip_takes_crossing_bounds(least: float | None, most: float | None, known: tuple[int, ...]) -> None:
    inputs = [_array([2, 3])] + [None if x is None else np.array(x, np.float32) for x in (least, most)]
    check_node("Clip", inputs, known=[number for number in known if inputs[number] is not None])


@pytest.mark.parametrize("opset", [7, 10])
def test_clip_of_old_models_has_attributes(opset: int) -> None:
    x = np.array([-7, 0.5, 7], np.float16)
    result = computed(one_node("Clip", [x], opset=opset, min=-1.0, max=2.0), feed([x]))
    assert_same(result, [np.array([-1, 0.5, 2], np.float16)])


@pairwise(
    exponent=[np.float32, np.int32, np.int64, np.uint64, np.int8], known=[(), (1,)], sizes=[[], [3], [2, 1]]
)
def test_pow_takes_exponents_of_other_types(sizes: list[int], known: tuple[int], exponent: Any) -> None:
    base = np.array([1.5, -2, 3], np.float32)
    inputs = [np.abs(base) if exponent == np.float32 else base, _array(sizes, exponent)]
    check_node("Pow", inputs, known=known)


def test_pow_keeps_odd_exponents_odd() -> None:
    exponents = np.array([2**40 + 1, 2**40, -(2**40) - 1, 2**31 - 1], np.int64)
    inputs: list[Array | None] = [np.full(4, -1, np.float32), exponents]
    model = one_node("Pow", inputs)
    assert_same(computed(model, feed(inputs)), [np.array([-1, 1, -1, -1], np.float32)])


def test_pow_of_an_integer_is_one() -> None:
    check_node("Pow", [np.array([1, 2, 3], np.int32), np.array([2.0, 3.0, 4.0], np.float32)])


@pytest.mark.parametrize(("fmod", "type"), [(0, np.int32), (1, np.int32), (1, np.float32)])
def test_mod_has_the_sign_of_either(fmod: int, type: Any) -> None:
    check_node("Mod", [np.array([-7, 7, -7, 7], type), np.array([3, 3, -3, -3], type)], fmod=fmod)


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
@pytest.mark.parametrize("type", [np.int8, np.int64])
def test_signed_numbers_keep_their_sign_to_the_right(direction: str, type: Any) -> None:
    check_node(
        "BitShift",
        [np.array([[-7], [9], [-128], [127]], type), np.array([0, 1, 3], type)],
        direction=direction,
    )


def test_no_elements_make_none() -> None:
    inputs: list[Array | None] = [np.zeros((0, 3), np.float32), np.ones((1, 3), np.float32)]
    for operator in ("Add", "Greater", "Max", "Mean", "Pow"):
        check_node(operator, inputs)


def test_float64_runs_on_the_evaluator() -> None:
    check_node("Add", [_array([2], np.float64), _array([2], np.float64)], evaluator=True)


@pytest.mark.parametrize("exponent", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("type", [np.int64, np.int32, np.uint64])
def test_integers_to_a_known_power_are_multiplied(exponent: int, type: Any) -> None:
    base = np.array([[0, 1, 2, 3, 9], [250, 99, 31, 2**15, 6]]).astype(type)
    check_node("Pow", [base, np.array(exponent, type)], known=(1,))


X = np.array([[[-3, -1, -0.25], [0, 0.25, 4]]], np.float32)


@pytest.mark.parametrize(
    ("opset", "axis"), [(7, None), (7, 0), (7, 2), (7, 3), (11, None), (11, 0), (11, 2), (11, -1)]
)
def test_all_axes_from_one_on_before(opset: int, axis: int | None) -> None:
    rows = X.reshape(-1, int(np.prod(X.shape[1 if axis is None else axis :])))
    exponentials = np.exp(rows - rows.max(1, keepdims=True))
    wanted = (exponentials / exponentials.sum(1, keepdims=True)).reshape(X.shape)
    model = one_node("Softmax", [X], opset=opset, **({} if axis is None else {"axis": axis}))
    assert_same(computed(model, feed([X])), [wanted])


@pytest.mark.parametrize("type", [np.int32, np.int64])
def test_relu_of_integers(type: Any) -> None:
    check_node("Relu", [np.array([-2, 0, 3], type)])


@pytest.mark.parametrize("type", [np.int64, np.uint32])
def test_prelu_of_integers(type: Any) -> None:
    x = np.array([1, 2, 3], type) if type == np.uint32 else np.array([-1, 2, -3], type)
    check_node("PRelu", [x, np.array([2], type)])


@pytest.mark.parametrize(
    ("operator", "attributes", "wanted"),
    [
        ("Affine", {"alpha": 2.0, "beta": 1.0}, X * 2 + 1),
        ("ScaledTanh", {"alpha": 2.0, "beta": 0.5}, 2 * np.tanh(X * 0.5)),
        ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}, 2 * np.log(np.exp(X * 0.5) + 1)),
    ],
)
def test_experimental_operators_are_old(operator: str, attributes: dict[str, float], wanted: Any) -> None:
    assert_same(computed(one_node(operator, [X], opset=7, **attributes), feed([X])), [wanted])


def test_pictures_of_old_models_are_scaled() -> None:
    x = np.stack([X, X])
    wanted = x * 2 + np.array([3], np.float32)
    model = one_node("ImageScaler", [x], opset=7, scale=2.0, bias=[3.0])
    assert_same(computed(model, feed([x])), [wanted])


def test_an_axis_that_no_input_has_is_refused_when_the_model_is_loaded() -> None:
    with pytest.raises(InvalidArgument, match=r"Hardmax, node name: y0\): .*'axis' must be in \[-3 , 2\]"):
        load(one_node("Hardmax", [X], axis=5))


X_REDUCTIONS = np.random.default_rng(3).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
ALL = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


@pytest.mark.parametrize("name", ALL)
def test_axes_of_old_models_are_an_attribute(name: str) -> None:
    model = one_node("Reduce" + name, [X_REDUCTIONS], opset=11, axes=[-1], keepdims=0)
    newer = one_node("Reduce" + name, [X_REDUCTIONS, np.array([2])], keepdims=0)
    given = feed([X_REDUCTIONS, np.array([2])])
    assert_same(computed(model, feed([X_REDUCTIONS])), evaluated(newer, given))


@pytest.mark.parametrize("type", [np.bool_, np.uint8, np.int64])
@pytest.mark.parametrize("name", ["Max", "Min"])
def test_extremes_of_other_types(name: str, type: Any) -> None:
    check_node("Reduce" + name, [np.array([[0, 1], [1, 1]]).astype(type), np.array([1])])


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max"])
def test_what_has_no_elements_has_a_neutral_result(name: str) -> None:
    check_node("Reduce" + name, [np.zeros((2, 0, 3), np.float32), np.array([1])])


def test_a_number_is_reduced_to_itself() -> None:
    check_node("ReduceSum", [np.array(3, np.float32)])


def test_top_k_of_old_models() -> None:
    model = one_node("TopK", [X_REDUCTIONS], outputs=2, opset=9, k=2, axis=1)
    values = -np.sort(-X_REDUCTIONS, 1)[:, :2]
    assert_same(
        computed(model, feed([X_REDUCTIONS])), [values, np.argsort(-X_REDUCTIONS, 1, "stable")[:, :2]]
    )


X_SHAPES = np.arange(24, dtype=np.float32).reshape(2, 1, 3, 4)


def _list(*values: int) -> Array:
    return np.array(values, np.int64)


def test_reshape_makes_a_number() -> None:
    check_node("Reshape", [np.ones((1, 1), np.float32), np.zeros(0, np.int64)], known=(1,))


@pytest.mark.parametrize("known", [(), (0,)])
@pytest.mark.parametrize(
    ("start", "end", "wanted"), [(-9, -9, []), (-9, -5, []), (-9, -3, [2]), (1, 9, [1, 3, 4]), (3, 1, [])]
)
def test_ends_of_a_shape_are_in_it(start: int, end: int, wanted: list[int], known: tuple[int, ...]) -> None:
    model = one_node("Shape", [X_SHAPES], opset=19, known=known, start=start, end=end)
    assert_same(computed(model, feed([X_SHAPES], known)), [_list(*wanted)])


def test_flatten_makes_a_matrix_of_a_number() -> None:
    check_node("Flatten", [np.array(3, np.float32)], axis=0)


@pytest.mark.parametrize(("operator", "axes"), [("Squeeze", [1]), ("Unsqueeze", [0, -1])])
def test_axes_of_old_models_are_attributes(operator: str, axes: list[int]) -> None:
    check_node(operator, [X_SHAPES], opset=11, axes=axes)


def test_expand_of_a_number() -> None:
    check_node("Expand", [np.array(2, np.float64), _list(2, 3)])


@pytest.mark.parametrize(
    "type", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float64, np.complex64, np.bool_]
)
def test_elements_of_any_type_are_moved(type: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(type)
    result = computed(one_node("Transpose", [x]), feed([x]))[0]
    assert result.dtype == x.dtype
    assert result.tobytes() == x.T.tobytes()


_FOUR_BITS = (ml_dtypes.int4, ml_dtypes.uint4)
_SMALL = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.complex64)
_FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16)
_USUAL = (*_FLOATS, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.bool_)
_TYPES = (*_USUAL, np.float64, *_SMALL, *_FOUR_BITS)


def _is_on_evaluator(operator: str, inputs: list[Array], **attributes: Any) -> bool:
    """Whether a node of ONNX runs on the evaluator; its result is the evaluator's in either case."""
    model = one_node(operator, list(inputs), **attributes)
    given = {f"x{number}": array for number, array in enumerate(inputs)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (result,) = dml_onnx.load(model).run(given).values()
    (wanted,) = evaluated(model, given)
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
    assert result.tobytes() == wanted.tobytes()
    return any(issubclass(each.category, dml_onnx.EvaluatorWarning) for each in caught)


def _array_types(type: Any) -> Array:
    return (np.arange(6).reshape(2, 3) % 4).astype(type)


@pytest.mark.parametrize("type", _TYPES)
def test_elements_of_every_type_are_moved(type: Any) -> None:
    assert not _is_on_evaluator("Transpose", [_array_types(type)])
    assert _is_on_evaluator("Gather", [_array_types(type), np.array([1, 0])]) is (type in _FOUR_BITS)


@pytest.mark.parametrize("type", _TYPES)
def test_some_types_are_cast(type: Any) -> None:
    is_known = type in (*_USUAL, np.float64)
    if type is not np.complex64:
        assert _is_on_evaluator("Cast", [_array_types(type)], to=onnx.TensorProto.FLOAT) is not is_known
        element = helper.np_dtype_to_tensor_dtype(np.dtype(type))
        assert _is_on_evaluator("Cast", [_array_types(np.float32)], to=element) is not is_known


@pytest.mark.parametrize("type", [np.float32, np.float16, np.int32, np.int64, np.float64, ml_dtypes.bfloat16])
def test_some_types_are_computed_with(type: Any) -> None:
    is_known = type is not np.float64
    assert _is_on_evaluator("Add", [_array_types(type), _array_types(type)]) is not is_known


X_MOVEMENT = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_concat_leaves_out_what_has_no_elements() -> None:
    check_node("Concat", [X_MOVEMENT, np.zeros((2, 0, 4), np.float32), X_MOVEMENT], axis=1)
    check_node("Concat", [np.zeros((2, 0, 4), np.float32), X_MOVEMENT], axis=1)


def test_split_of_old_models_has_attributes() -> None:
    check_node("Split", [X_MOVEMENT], outputs=2, opset=11, axis=1, split=[1, 2])


SLICES = [
    ([0], [2], [1], [1]),
    ([-1], [-100], [2], [-1]),
    ([-1], [-100], [-1], [-2]),
    ([1, 0], [100, 3], [0, 2], [1, 2]),
    ([3], [0], [2], [-1]),
    ([3], [1], [2], [1]),
    ([100], [-100], [1], [-2]),
    ([-100], [2**63 - 1], [1], [2]),
    ([2], [-(2**63)], [1], [-1]),
]


@pytest.mark.parametrize("slices", SLICES, ids=str)
@pytest.mark.parametrize("known", [(), (1, 2, 3, 4)])
def test_slices(slices: tuple[list[int], ...], known: tuple[int, ...]) -> None:
    check_node("Slice", [X_MOVEMENT, *(_list(*each) for each in slices)], known=known)


def test_a_start_in_front_of_all_elements_is_the_first() -> None:
    inputs: list[Array | None] = [X_MOVEMENT, _list(-9), _list(-10), _list(2), _list(-1)]
    model = one_node("Slice", inputs, opset=17)
    assert_same(computed(model, feed(inputs)), [X_MOVEMENT[:, :, :1]])
    assert_same(run_by_onnxruntime(model, feed(inputs)), [X_MOVEMENT[:, :, :1]])


def test_slices_without_axes_and_steps() -> None:
    check_node("Slice", [X_MOVEMENT, _list(0, 1), _list(1, -1)])
    check_node("Slice", [X_MOVEMENT], opset=9, starts=[0, 1], ends=[1, -1])
    check_node("Slice", [X_MOVEMENT], opset=9, starts=[1], ends=[9], axes=[2])


def test_pad_cuts_where_pads_are_negative() -> None:
    x = X_MOVEMENT.astype(np.int64)
    given: list[Array | None] = [x, _list(0, -1, 1, 0, 0, -2)]
    wanted = np.pad(x[:, 1:, :2], [(0, 0), (0, 0), (1, 0)])
    assert_same(computed(one_node("Pad", given), feed(given)), [wanted])


def test_pad_of_old_models_has_attributes() -> None:
    model = one_node("Pad", [X_MOVEMENT], opset=9, pads=[0, 1, 0, 0, 0, 2], value=5.0)
    wanted = np.pad(X_MOVEMENT, [(0, 0), (1, 0), (0, 2)], constant_values=5)
    assert_same(computed(model, feed([X_MOVEMENT])), [wanted])


def test_pictures_of_old_models_are_cropped() -> None:
    x = np.arange(2 * 5 * 6, dtype=np.float32).reshape(1, 2, 5, 6)
    model = one_node("Crop", [x], opset=7, border=[1, 2, 3, 0])
    assert_same(computed(model, feed([x])), [x[:, :, 2:, 1:3]])
    model = one_node("Crop", [x], opset=7, border=[1, 2, 3, 0], scale=[2, 4])
    assert_same(computed(model, feed([x])), [x[:, :, 2:4, 1:5]])


@pytest.mark.parametrize("parts", [[2**40], [5], [-5], [-1, 7], [3, 3, 3]])
def test_parts_that_are_not_the_whole_are_refused(parts: list[int]) -> None:
    model = one_node("Split", [np.ones(6, np.float32), np.array(parts)], len(parts), known=[1])
    with pytest.raises(dml.Error, match=r"Split, node name: y0\): .*split|Split-.*parts"):
        dml_onnx.load(model)(np.ones(6, np.float32))


@pytest.mark.parametrize("known", [(1, 2, 3, 4), (0, 1, 2, 3, 4)])
def test_slices_backwards_in_front_of_all_elements_begin_at_the_first(known: tuple[int, ...]) -> None:
    inputs: list[Array | None] = [X_MOVEMENT, _list(-9, 1), _list(-10, 9), _list(2, -2), _list(-2, 1)]
    model = one_node("Slice", inputs, known=known)
    assert_same(computed(model, feed(inputs, known)), [X_MOVEMENT[:, 1:, :1]])


@pytest.mark.parametrize(
    ("domain", "operator", "version", "defaults"),
    [
        ("", "Softmax", 12, {"axis": 1}),
        ("", "Softmax", 13, {"axis": -1}),
        ("", "GridSample", 19, {"align_corners": 0, "mode": "bilinear", "padding_mode": "zeros"}),
        ("", "GridSample", 20, {"align_corners": 0, "mode": "linear", "padding_mode": "zeros"}),
        ("", "LayerNormalization", 11, {"axis": -1, "epsilon": float(np.float32(1e-5)), "stash_type": 1}),
        ("", "Affine", 7, {"alpha": 1.0, "beta": 0.0}),
        ("com.microsoft", "QuickGelu", 1, {"alpha": 1.702}),
        ("com.microsoft", "Unknown", 1, {}),
    ],
)
def test_defaults_of_attributes_are_those_of_the_version(
    domain: str, operator: str, version: int, defaults: dict[str, Any]
) -> None:
    assert dict(defaults_of(domain, operator, version)) == defaults
