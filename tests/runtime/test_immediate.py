"""Immediate functions: arrays in, arrays out; what is refused leaves every array as it was."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, InvalidArgument
from opendml.runtime.calls import immediate
from opendml.runtime.calls.plans import Plans
from opendml.runtime.memory.host_array import Array
from opendml.spec import validator
from tests.running import same_bits

SEVEN = 7.0


def ramp(*sizes: int, type: Any = np.float32) -> Array:
    return np.linspace(-2, 2, math.prod(sizes)).astype(type).reshape(sizes)


def sevens(*sizes: int, type: Any = np.float32) -> Array:
    return np.full(sizes, SEVEN, type)


def test_a_new_array_of_the_same_type_and_sizes_is_returned() -> None:
    for type in (np.float32, np.float16):
        result = dml.activation_relu(ramp(2, 3, type=type))
        assert (type, (2, 3)) == (result.dtype, result.shape)
        assert same_bits(result, np.maximum(ramp(2, 3, type=type), 0))


def test_attributes_reach_the_operator_by_name() -> None:
    x = ramp(9)
    assert same_bits(dml.activation_linear(x, alpha=2.0, beta=1.0), 2 * x + 1)
    assert same_bits(dml.activation_linear(x, beta=-1.0, alpha=0.5), x / 2 - 1)


def test_the_documented_defaults_apply() -> None:
    x = ramp(9)
    assert same_bits(dml.activation_hard_sigmoid(x), dml.activation_hard_sigmoid(x, alpha=0.2, beta=0.5))
    assert same_bits(dml.activation_celu(x), dml.activation_celu(x, alpha=1.0))


def test_attributes_that_differ_only_in_the_sign_of_zero_are_told_apart() -> None:
    x = np.zeros(4, np.float32)
    for beta in (-0.0, 0.0, -0.0):
        result = dml.activation_linear(-x, alpha=1.0, beta=beta)
        assert np.signbit(result).all() == (math.copysign(1.0, beta) < 0)


def test_an_attribute_is_rounded_to_float32() -> None:
    x = np.array([1.0], np.float32)
    assert dml.activation_linear(x, alpha=0.1, beta=0.0)[0] == np.float32(0.1)


def test_the_output_goes_into_the_given_array() -> None:
    x, out = ramp(2, 3), sevens(2, 3)
    assert dml.activation_celu(x, out=out) is out
    assert same_bits(out, dml.activation_celu(x))


def test_an_array_can_be_its_own_output() -> None:
    x = ramp(2, 3, 50)
    expected = dml.activation_celu(x)
    view = x[:, ::2]
    assert dml.activation_celu(view, out=view) is view
    assert same_bits(x[:, ::2].copy(), expected[:, ::2].copy())
    assert same_bits(x[:, 1].copy(), ramp(2, 3, 50)[:, 1].copy())


def test_another_view_of_the_same_elements_is_in_place_too() -> None:
    x = ramp(2, 3)
    expected = dml.activation_elu(x, alpha=1.0)
    dml.activation_elu(x, alpha=1.0, out=x[:])
    assert same_bits(x, expected)


def test_views_that_interleave_without_an_element_in_common_are_accepted() -> None:
    matrix = ramp(6, 8)
    expected = matrix.copy()
    expected[:, 1::2] = np.maximum(matrix[:, ::2], 0)
    dml.activation_relu(matrix[:, ::2], out=matrix[:, 1::2])
    assert same_bits(matrix, expected)


def shifted() -> tuple[Array, Array, Array]:
    memory = ramp(40)
    return memory, memory[:20], memory[10:30]


def reversed_() -> tuple[Array, Array, Array]:
    memory = ramp(20)
    return memory, memory, memory[::-1]


def transposed() -> tuple[Array, Array, Array]:
    memory = ramp(5, 5)
    return memory, memory, memory.T


def interleaved_with_one_in_common() -> tuple[Array, Array, Array]:
    memory = ramp(30)
    return memory, memory[0:20:2], memory[8:28:2]


def repeated() -> tuple[Array, Array, Array]:
    memory = ramp(5, 5)
    return memory, memory, memory[0]


OVERLAPS = [shifted, reversed_, transposed, interleaved_with_one_in_common]


@pytest.mark.parametrize("make", OVERLAPS)
def test_views_that_overlap_in_part_are_refused(make: Callable[[], tuple[Array, Array, Array]]) -> None:
    memory, x, out = make()
    before = memory.copy()
    with pytest.raises(InvalidArgument, match=r"activation_relu\.out: overlaps input in part"):
        dml.activation_relu(x, out=out)
    assert same_bits(memory, before)


@pytest.mark.parametrize("make", [*OVERLAPS, repeated])
@pytest.mark.parametrize("function", [dml.element_wise_add, dml.element_wise_multiply])
def test_in_place_holds_for_every_input_that_shares_memory(
    function: Callable[..., Array], make: Callable[[], tuple[Array, Array, Array]]
) -> None:
    memory, x, y = make()
    before = memory.copy()
    function(x, y.copy(), out=x.copy())
    for _ in range(2):  # the second call finds what the first one left in the caches
        for first, second, name in ((x, y, "b"), (y, x, "a")):
            with pytest.raises(InvalidArgument, match=f"element_wise_.*out: overlaps {name} in part"):
                function(first, second, out=x)
    assert same_bits(memory, before)


def test_an_array_may_be_both_inputs_and_the_output() -> None:
    x = ramp(5, 5)
    assert same_bits(dml.element_wise_add(x, x, out=x), 2 * ramp(5, 5))
    assert same_bits(dml.element_wise_subtract(np.ones_like(x), x, out=x), 1 - 2 * ramp(5, 5))


def test_normalization_into_one_of_its_inputs_is_refused() -> None:
    x, scale = ramp(4, 10), ramp(4, 10)
    for out in (x, scale):
        before = out.copy()
        with pytest.raises(InvalidArgument, match="this operator does not run in place"):
            dml.mean_variance_normalization1(x, scale, None, axes=[1], out=out)
        assert same_bits(out, before)


def writable_broadcast(*sizes: int) -> Array:
    return np.lib.stride_tricks.as_strided(sevens(1), sizes, (0,) * len(sizes))


def sliding() -> Array:
    return np.lib.stride_tricks.as_strided(sevens(10), (2, 3), (4, 4))


def read_only(*sizes: int) -> Array:
    result = sevens(*sizes)
    result.flags.writeable = False
    return result


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (read_only(2, 3), "activation_relu.out: a read-only array; an output must be writable"),
        (writable_broadcast(2, 3), "an output must not overlap itself"),
        (sliding(), "an output must not overlap itself"),
        (sevens(3, 2), "activation_relu.out: sizes [3, 2]; [2, 3] are needed"),
        (sevens(6), "activation_relu.out: sizes [6]; [2, 3] are needed"),
        (sevens(2, 3, type=np.float16), "activation_relu.out: FLOAT16; FLOAT32 is needed"),
        (sevens(2, 3, type=">f4"), "activation_relu.out: elements of dtype('>f4')"),
        (np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3), "not aligned"),
        ([[0.0] * 3] * 2, "activation_relu.out: list; an array is needed"),
    ],
    ids=["read-only", "broadcast", "sliding", "sizes", "rank", "type", "byte-order", "misaligned", "list"],
)
def test_outputs_that_cannot_be_written_are_refused(out: Any, message: str) -> None:
    before = np.array(out)
    for _ in range(2):  # the second call finds what the first one left in the caches
        with pytest.raises(InvalidArgument) as error:
            dml.activation_relu(ramp(2, 3), out=out)
        assert message in str(error.value)
    assert np.array_equal(np.array(out), before)


def test_an_input_that_overlaps_itself_cannot_be_its_own_output() -> None:
    x = writable_broadcast(2, 3)
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="must not overlap itself"):
            dml.activation_linear(x, alpha=2.0, beta=0.0, out=x)
    assert (x == SEVEN).all()


def test_what_was_accepted_once_is_checked_again_for_other_arrays_of_the_same_form() -> None:
    x, out = ramp(24), sevens(24)
    dml.activation_relu(x, out=out)
    out.flags.writeable = False
    before = out.copy()
    with pytest.raises(InvalidArgument, match="read-only"):
        dml.activation_relu(x, out=out)
    assert same_bits(out, before)
    memory = ramp(40)
    with pytest.raises(InvalidArgument, match="in part"):
        dml.activation_relu(memory[:24], out=memory[8:32])
    shifted = np.zeros(97, np.uint8)[1:].view(np.float32)
    with pytest.raises(InvalidArgument, match="not aligned"):
        dml.activation_relu(shifted, out=sevens(24))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (None, "activation_relu.input: None; a tensor is needed"),
        (3.0, "activation_relu.input: float; an array is needed"),
        ([1.0, 2.0], "activation_relu.input: list; an array is needed"),
        (np.array(["a"]), "activation_relu.input: elements of"),
        (ramp(3).astype(">f4"), "activation_relu.input: elements of dtype('>f4')"),
        (ramp(3).astype(np.complex64), "activation_relu.input: elements of dtype('complex64')"),
        (ramp(3).astype(np.float64), "activation_relu.input"),
        (np.zeros((1,) * 9, np.float32), "activation_relu.input: 9 dimensions"),
        (np.zeros(13, np.uint8)[1:].view(np.float32), "not aligned"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_inputs_that_are_no_tensors_are_refused(x: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        dml.activation_relu(x)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: dml.activation_celu(ramp(3).astype(np.float64)),
            "activation_celu.input: FLOAT64; DML_FEATURE_LEVEL_3_0 and above allow FLOAT32, FLOAT16; "
            "use input.astype(np.float32)",
        ),
        (
            lambda: dml.element_wise_add(ramp(3), ramp(3, type=np.float16)),
            "element_wise_add.b: FLOAT16; must have the data type of a, FLOAT32; use b.astype(np.float32)",
        ),
        (
            lambda: dml.element_wise_add(ramp(2, 3), ramp(2, 2)),
            "element_wise_add.b: sizes [2, 2]; must be those of a, [2, 3], or 1 where they differ",
        ),
        (lambda: dml.activation_celu(ramp(3), alpha="x"), "activation_celu.alpha: 'x'; must be a number"),
        (
            lambda: dml.gemm(ramp(4, 3), ramp(5, 3)),
            "gemm.b: sizes [5, 3]; must be [3, any] for the leading sizes and the K of a; "
            "with trans_b TRANSPOSE it is the last size that must be K",
        ),
        (
            lambda: dml.convolution(ramp(1, 1, 4, 4), ramp(1, 1, 3, 3), strides=[1]),
            "convolution.strides: 1 element; must be 2, one for each spatial dimension of input",
        ),
    ],
    ids=["type", "other type", "sizes", "attribute", "of another attribute", "of a count"],
)
def test_a_message_names_the_argument_and_the_fix_once(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        call()
    assert error.value.failures == (message,)


def test_truth_values_are_uint8_inputs() -> None:
    truth = np.array([True, False, True])
    assert dml.element_wise_if(truth, ramp(3), 9.0).tolist() == [-2, 9, 2]
    assert same_bits(dml.element_wise_logical_not(truth), np.array([0, 1, 0], np.uint8))
    assert dml.cast(truth, output_type=np.float32).tolist() == [1, 0, 1]
    given, out = np.array([2, 0, 1], np.uint8), np.empty(3, np.bool_)
    with pytest.raises(InvalidArgument, match=r"element_wise_identity\.out: an array of truth values"):
        dml.element_wise_identity(given, out=out)
    assert dml.element_wise_logical_not(truth, out=out).tolist() == [False, True, False]


def test_arrays_without_dimensions_give_arrays_without_dimensions() -> None:
    x = np.array(-2, np.float32)
    assert same_bits(dml.element_wise_abs(x), np.array(2, np.float32))
    assert same_bits(dml.element_wise_add(x, x), np.array(-4, np.float32))
    assert same_bits(dml.element_wise_abs(np.float32(-2)), np.array(2, np.float32))
    assert dml.element_wise_add(x, ramp(3)).shape == (3,)
    out = np.empty((), np.float32)
    assert dml.element_wise_abs(x, out=out) is out
    assert out == 2


def test_arrays_without_elements_give_the_sizes_of_numpy() -> None:
    x, y = np.empty((2, 0, 3), np.float32), np.empty((2, 3, 0), np.float32)
    assert dml.element_wise_add(x, x).shape == (2, 0, 3)
    assert dml.element_wise_add(x, np.ones(3, np.float32)).shape == (2, 0, 3)
    assert dml.reduce(x, function="SUM", axes=[2]).shape == (2, 0, 1)
    assert dml.gemm(x, y).shape == (2, 0, 0)
    assert dml.join([x, x], axis=1).shape == (2, 0, 3)
    assert dml.element_wise_abs(x, out=x) is x
    with pytest.raises(InvalidArgument, match=r"reduce\.input: sizes \[2, 0, 3\]; must have elements"):
        dml.reduce(x, function="MAX", axes=[1])
    with pytest.raises(InvalidArgument, match=r"element_wise_abs\.out: sizes \[2, 3, 0\]; \[2, 0, 3\] are"):
        dml.element_wise_abs(x, out=y)
    with pytest.raises(InvalidArgument, match="element_wise_add"):
        dml.element_wise_add(x, y)


@pytest.mark.parametrize(
    "type",
    [dml.FLOAT16, "FLOAT16", "float16", np.float16, np.dtype(np.float16), np.dtype("float16")],
    ids=repr,
)
def test_a_type_may_be_named_in_every_way(type: Any) -> None:
    x = ramp(3)
    assert dml.cast(x, output_type=type).dtype == np.float16
    assert dml.fill_value_constant(value_data_type=type, value=1, sizes=[2]).dtype == np.float16
    assert dml.TensorDesc(type, [2]) == dml.TensorDesc(dml.FLOAT16, [2])
    assert dml.Graph().input("x", type, [2]).data_type is dml.FLOAT16
    desc = dml.descs.FillValueConstant(value_data_type=type, value=1)
    assert desc.value_data_type is dml.FLOAT16
    assert dml.calc_buffer_tensor_size(type, [2]) == 4


def test_types_of_pytorch_name_types() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert dml.cast(ramp(3), output_type=torch.int8).dtype == np.int8
    assert dml.TensorDesc(torch.bool, [2]).data_type is dml.UINT8
    assert dml.cast(torch.tensor([True, False]), output_type=torch.float16).tolist() == [1, 0]


@pytest.mark.parametrize("type", ["float33", "", np.dtype(">f4"), np.complex64, [], {}, 99], ids=str)
def test_what_names_no_type_is_refused(type: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"cast\.output_type"):
        dml.cast(ramp(3), output_type=type)
    with pytest.raises(InvalidArgument, match=r"fill_value_constant\.value_data_type"):
        dml.fill_value_constant(value_data_type=type, value=1, sizes=[2])


def test_members_of_enumerations_may_be_named() -> None:
    x = ramp(2, 3)
    expected = dml.reduce(x, function=dml.ReduceFunction.LOG_SUM_EXP, axes=[1])
    assert same_bits(dml.reduce(x, function="LOG_SUM_EXP", axes=[1]), expected)
    assert dml.reduce(x, function="argmax", axes=[1]).tolist() == [[2], [2]]
    desc = dml.descs.Reduce(function="sum", axes=[1])
    assert desc == dml.descs.Reduce(function=dml.ReduceFunction.SUM, axes=[1])
    assert desc.function is dml.ReduceFunction.SUM
    with pytest.raises(InvalidArgument, match=r"reduce\.function: 'summ'; must be a ReduceFunction"):
        dml.reduce(x, function="summ", axes=[1])


def test_messages_have_the_article_of_what_they_name() -> None:
    with pytest.raises(InvalidArgument, match="must be an InterpolationMode: NEAREST_NEIGHBOR, LINEAR"):
        dml.resample1(ramp(2, 3), interpolation_mode="bilinear", scales=[2, 2])


def test_a_pair_is_no_size_because_its_order_could_be_mistaken() -> None:
    with pytest.raises(InvalidArgument, match=r"scale_size: \(2, 3\); must be a Size2D\(width, height\)"):
        dml.upsample_2d(ramp(1, 1, 2, 2), scale_size=(2, 3), interpolation_mode="LINEAR")  # type: ignore[arg-type]


def test_an_output_that_would_be_empty_is_told_by_its_sizes() -> None:
    with pytest.raises(InvalidArgument, match=r"^average_pooling: sizes of the output \[1, 1, 0, 3\];"):
        dml.average_pooling(ramp(1, 1, 2, 3), window_size=[3, 1], include_padding=True)


def test_gathering_needs_as_many_dimensions_as_its_result() -> None:
    table, rows = ramp(4, 3), np.array([[0, 1], [2, 3]])
    with pytest.raises(InvalidArgument, match=r"^gather\.input: 2 dimensions; must have 3, .*\[2, 2, 3\]"):
        dml.gather(table, rows, axis=0, index_dimensions=2)
    gathered = dml.gather(table[np.newaxis], rows[np.newaxis], axis=1, index_dimensions=2)
    assert same_bits(gathered, table[rows])


def test_the_axis_of_joined_tensors_is_one_of_theirs() -> None:
    with pytest.raises(InvalidArgument, match=r"^join\.axis: 2; inputs have 2 dimensions, numbered from 0$"):
        dml.join([ramp(2, 3), ramp(2, 3)], axis=2)


def test_an_addend_that_must_be_repeated_is_blamed_by_its_name() -> None:
    with pytest.raises(InvalidArgument, match=r"gemm\.c: sizes \[1, 2\]; must be \[2, 2\] .*broadcast_to"):
        dml.gemm(ramp(2, 3), ramp(3, 2), ramp(1, 2))


@pytest.mark.parametrize("type", [np.float16, np.int64, np.uint8])
def test_the_type_of_a_scalar_is_that_of_the_input(type: Any) -> None:
    x: Any = ramp(2, 3).astype(type)
    given: dict[str, Any] = {"padding_mode": "CONSTANT", "start_padding": [1, 0], "padding_value": 3}
    padded = dml.padding1(x, **given)
    assert same_bits(padded, np.pad(x, ((1, 0), (0, 0)), constant_values=3))
    assert same_bits(padded, dml.padding1(x, padding_value_data_type=type, **given))
    assert same_bits(dml.element_wise_clip1(x, min=1, max=2), x.clip(1, 2).astype(type))


def test_integers_stay_integers() -> None:
    assert same_bits(dml.activation_relu(np.array([-1, 2], np.int32)), np.array([0, 2], np.int32))


def test_numbers_and_smaller_arrays_are_repeated() -> None:
    x = ramp(2, 3)
    assert same_bits(dml.element_wise_add(x, 2.0), x + np.float32(2))
    assert same_bits(dml.element_wise_subtract(1, x), np.float32(1) - x)
    row, column = ramp(3), ramp(2, 1)
    assert same_bits(dml.element_wise_multiply(row, column), row * column)
    assert same_bits(dml.element_wise_multiply(x, row, out=x), ramp(2, 3) * row)


def test_a_number_must_be_one_of_its_type() -> None:
    x = np.array([1, 2], np.uint8)
    for number in (2.5, -1, 256):
        with pytest.raises(InvalidArgument, match=r"element_wise_add\.b: .*whole number that UINT8"):
            dml.element_wise_add(x, number)
    with pytest.raises(InvalidArgument, match=r"element_wise_add\.a: float"):
        dml.element_wise_add(1.0, 2.0)


def test_sizes_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"element_wise_add\.b"):
        dml.element_wise_add(ramp(2, 3), ramp(2, 2))


def test_the_output_of_a_cast_has_the_type_that_is_asked_for() -> None:
    x = ramp(4)
    assert dml.cast(x, output_type=dml.FLOAT16).dtype == np.float16
    assert dml.cast(x, out=np.zeros(4, np.int8)).dtype == np.int8
    with pytest.raises(InvalidArgument, match=r"cast: neither output_type nor out"):
        dml.cast(x)


def test_the_output_type_follows_from_what_it_must_agree_with() -> None:
    x, condition = ramp(3), np.array([1, 0, 2], np.uint8)
    assert dml.element_wise_logical_less_than(x, 0.0).tolist() == [1, 0, 0]
    assert dml.element_wise_logical_less_than(x, 0.0).dtype == np.uint8
    assert dml.element_wise_logical_less_than(x, 0.0, output_type=dml.UINT32).dtype == np.uint32
    assert dml.element_wise_if(condition, x, 9.0).tolist() == [-2, 9, 2]
    assert dml.element_wise_quantize_linear(x, 0.5).dtype == np.uint8
    assert dml.element_wise_quantize_linear(x, 0.5, np.int8(3)).tolist() == [-1, 3, 7]
    assert dml.element_wise_dequantize_linear(condition, 0.5, 1).dtype == np.float32


@pytest.mark.parametrize("type", [dml.UINT8, dml.INT8])
def test_the_type_that_is_asked_for_decides(type: dml.TensorDataType) -> None:
    x, dtype = ramp(3), np.dtype(type.name.lower())
    for zero in (0, np.zeros((), dtype), np.zeros((3,), dtype), None):
        assert dml.element_wise_quantize_linear(x, 0.1, zero, output_type=type).dtype == dtype
    out = np.zeros(3, dtype)
    assert dml.element_wise_quantize_linear(x, 0.1, 0, out=out) is out
    graph = dml.Graph()
    y = dml.element_wise_quantize_linear(graph.input("x", dml.FLOAT32, [3]), 0.1, 0, output_type=type)
    assert y.data_type is type


def test_a_type_that_contradicts_the_inputs_is_refused() -> None:
    x = ramp(3)
    with pytest.raises(
        InvalidArgument, match=r"^element_wise_quantize_linear\.output_type: UINT8; must have"
    ):
        dml.element_wise_quantize_linear(x, 0.1, np.int8(0), output_type=dml.UINT8)
    with pytest.raises(InvalidArgument, match=r"^cast\.out: FLOAT16; INT8 is needed"):
        dml.cast(x, output_type=dml.INT8, out=x.astype(np.float16))
    with pytest.raises(InvalidArgument, match=r"^argmax\.output_type: FLOAT32; .* allow INT64, INT32"):
        dml.argmax(x, axes=[0], output_type=dml.FLOAT32)


def test_operators_without_inputs_are_told_their_sizes() -> None:
    filled: Array = dml.fill_value_constant(value_data_type=dml.INT16, value=-3, sizes=[2, 2])
    assert same_bits(filled, np.full((2, 2), -3, np.int16))
    out = np.zeros((2, 2), np.float32)
    dml.fill_value_sequence(value_data_type=dml.FLOAT32, value_start=1, value_delta=0.5, out=out)
    assert out.tolist() == [[1, 1.5], [2, 2.5]]
    band = {"value_data_type": "FLOAT32", "value": 1, "diagonal_fill_begin": 0, "diagonal_fill_end": 1}
    assert dml.diagonal_matrix1(sizes=[2, 3], **band).tolist() == np.eye(2, 3).tolist()
    with pytest.raises(
        InvalidArgument, match=r"diagonal_matrix1\.sizes: .* must be those of input, \[2, 2\]"
    ):
        dml.diagonal_matrix1(out, sizes=[2, 3], **band)
    with pytest.raises(InvalidArgument, match=r"fill_value_constant: neither sizes nor out"):
        dml.fill_value_constant(value_data_type=dml.INT16, value=-3)


def test_scales_that_differ_only_in_the_sign_of_zero_are_told_apart() -> None:
    x = np.zeros(4, np.float32)
    for bias in (-0.0, 0.0, -0.0):
        result = dml.element_wise_identity(-x, scale_bias=dml.ScaleBias(1.0, bias))
        assert np.signbit(result).all() == (math.copysign(1.0, bias) < 0)


@pytest.mark.parametrize(
    ("axes", "message"),
    [([2], "axes"), ([0, 0], "axes"), ([-3], "axes"), ("1", "axes"), (None, "axes")],
    ids=str,
)
def test_wrong_axes_are_refused(axes: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        dml.mean_variance_normalization1(ramp(2, 3), axes=axes)
    assert message in str(error.value)


def test_negative_axes_count_from_the_end() -> None:
    x = ramp(2, 3, 4)
    for axes, positive in (([-1], [2]), ((-3, 2), (0, 2)), (np.array([-2]), [1])):
        assert same_bits(
            dml.reduce(x, function="SUM", axes=axes), dml.reduce(x, function="SUM", axes=positive)
        )
    expected = dml.cumulative_summation(x, axis=1)
    assert same_bits(dml.cumulative_summation(x, axis=-2), expected)
    for wrong, allowed in ((-4, "-3 to 2"), (3, "numbered from 0")):
        with pytest.raises(InvalidArgument, match=rf"axis: {wrong}; input has 3 dimensions.* {allowed}$"):
            dml.cumulative_summation(x, axis=wrong)
    with pytest.raises(InvalidArgument, match=r"listed twice"):
        dml.reduce(x, function="SUM", axes=[-1, 2])


def test_wrong_sizes_of_an_output_are_named_once() -> None:
    for sizes, message in (([2, -3], "sizes[1]: -3; must be"), (3, "sizes: 3; must be")):
        with pytest.raises(InvalidArgument) as error:
            dml.fill_value_constant(value_data_type="float32", value=1, sizes=sizes)  # type: ignore[call-overload]
        assert str(error.value).startswith(f"fill_value_constant.{message}")


def test_foreign_byte_orders_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"dtype\('>f4'\); .* processor's byte order$"):
        dml.activation_relu(np.ones(3, np.dtype(np.float32).newbyteorder(">")))


def test_axes_may_be_any_sequence_of_integers() -> None:
    x = ramp(4, 6)
    expected = dml.mean_variance_normalization1(x, axes=[1])
    for axes in ((1,), np.array([1]), range(1, 2), [np.int64(1)]):
        assert same_bits(dml.mean_variance_normalization1(x, axes=axes), expected)


def test_a_scale_of_other_sizes_broadcasts_or_is_refused() -> None:
    x = ramp(4, 6)
    dml.mean_variance_normalization1(x, ramp(1, 6), axes=[1])
    with pytest.raises(InvalidArgument, match="scale"):
        dml.mean_variance_normalization1(x, ramp(2, 6), axes=[1])
    with pytest.raises(InvalidArgument, match=r"\.bias"):
        dml.mean_variance_normalization1(x, None, ramp(4, 6, type=np.float16), axes=[1])


def test_a_misaligned_bias_is_named_as_such() -> None:
    x = ramp(2, 3)
    dml.mean_variance_normalization1(x, None, ramp(2, 3), axes=[1])
    odd = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    with pytest.raises(InvalidArgument, match="bias: memory that is not aligned"):
        dml.mean_variance_normalization1(x, None, odd, axes=[1])


def test_the_device_decides_where_and_by_which_level() -> None:
    x = ramp(9)
    reference = dml.activation_tanh(x, device="reference")
    np.testing.assert_allclose(dml.activation_tanh(x, device=Device("cpu")), reference, rtol=3e-7)
    with pytest.raises(InvalidArgument, match="DML_FEATURE_LEVEL_5_1"):
        dml.activation_gelu(x, device=Device("cpu", feature_level="5_0"))


def test_subclasses_of_arrays_are_arrays() -> None:
    x = np.ma.masked_array(ramp(5))
    assert same_bits(np.asarray(dml.activation_relu(x)), np.maximum(ramp(5), 0))


def test_arrays_of_pytorch_come_back_as_their_own_kind() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    result = dml.activation_relu(x)
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, x.clamp(min=0))
    out = torch.full((4, 3), SEVEN)
    assert dml.activation_relu(x.T, out=out) is out
    assert torch.equal(out, x.T.clamp(min=0))
    assert torch.equal(dml.activation_relu(x, out=x), result)
    half = dml.activation_celu(x.half())
    assert (half.dtype, half.shape) == (torch.float16, x.shape)
    with pytest.raises(InvalidArgument, match=r"activation_relu\.input"):
        dml.activation_relu(x.to(torch.bfloat16))


def test_jax_arrays_come_back_as_their_own_kind_and_are_never_written() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.numpy.linspace(-2, 2, 12)
    result = dml.activation_relu(x)
    assert isinstance(result, jax.Array)
    assert (result == jax.numpy.maximum(x, 0)).all()
    with pytest.raises(InvalidArgument, match="read-only"):
        dml.activation_relu(x, out=x)


def test_misaligned_arrays_are_refused_also_where_the_output_is_narrower() -> None:
    misaligned = np.zeros(13, np.uint8)[1:].view(np.float32)
    assert not dml.element_wise_is_nan(misaligned.copy()).any()
    with pytest.raises(
        InvalidArgument, match=r"^element_wise_is_nan\.input: memory that is not aligned to float32"
    ):
        dml.element_wise_is_nan(misaligned)
    bytes_anywhere = np.zeros(4, np.uint8)[1:]
    assert not dml.element_wise_is_nan(misaligned.copy(), out=bytes_anywhere).any()


def _files_above_nodes(call: Callable[[], object]) -> set[str]:
    """Return the files of the frames between a call and the nodes of its program."""
    found: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not frame.f_code.co_filename.endswith("program/node.py"):
            return
        files, above = set[str](), frame.f_back
        while above is not None and above.f_code is not call.__code__:
            files.add(above.f_code.co_filename)
            above = above.f_back
        if not any("compiled_work" in name for name in files):  # The rest is compilation.
            found.update(name for name in files if "/opendml/program/" not in name)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    "call",
    [
        lambda: dml.activation_celu(ramp(5), alpha=1.25),
        lambda: dml.convolution(ramp(1, 2, 5, 5), ramp(1, 2, 3, 3), start_padding=[1, 2]),
    ],
)
def test_few_files_lie_between_a_call_and_the_nodes_of_its_program(
    call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(immediate, "_plans", Plans())
    files = _files_above_nodes(call)
    assert any("operators" in name for name in files)
    assert len(files) <= 6, files


def test_a_call_validates_each_field_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    plan_of = validator._plan

    def counted(name: str, check: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def check_and_count(value: Any) -> Any:
            checked.append(name)
            return check(value)

        return check_and_count

    def counting(*arguments: Any) -> Any:
        plan = plan_of(*arguments)
        fields = [(field, name, counted(name, check)) for field, name, check in plan.fields]
        return plan._replace(fields=tuple(fields))

    monkeypatch.setattr(validator, "_plan", counting)
    monkeypatch.setattr(immediate, "_plans", Plans())
    dml.activation_linear(ramp(3), alpha=2.0, beta=1.5)
    assert sorted(checked) == ["alpha", "beta", "input_tensor", "output_tensor"]
