"""Immediate functions: arrays in, arrays out; what is refused leaves every array as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import Device, InvalidArgument
from opendml.runtime.host_array import Array
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


def overlapping_views() -> tuple[Array, Array, Array]:
    memory = ramp(40)
    return memory, memory[:20], memory[10:30]


def reversed_views() -> tuple[Array, Array, Array]:
    memory = ramp(20)
    return memory, memory, memory[::-1]


def transposed_views() -> tuple[Array, Array, Array]:
    memory = ramp(5, 5)
    return memory, memory, memory.T


def interleaved_with_one_in_common() -> tuple[Array, Array, Array]:
    memory = ramp(30)
    return memory, memory[0:20:2], memory[8:28:2]


@pytest.mark.parametrize(
    "make", [overlapping_views, reversed_views, transposed_views, interleaved_with_one_in_common]
)
def test_views_that_overlap_in_part_are_refused_and_nothing_written(
    make: Callable[[], tuple[Array, Array, Array]],
) -> None:
    memory, x, out = make()
    before = memory.copy()
    with pytest.raises(InvalidArgument, match=r"ACTIVATION_RELU.OutputTensor: overlaps InputTensor in part"):
        dml.activation_relu(x, out=out)
    assert same_bits(memory, before)


def shifted_second() -> tuple[Array, Array, Array]:
    memory = ramp(40)
    return memory, memory[:20], memory[5:25]


def reversed_second() -> tuple[Array, Array, Array]:
    memory = ramp(20)
    return memory, memory, memory[::-1]


def transposed_second() -> tuple[Array, Array, Array]:
    memory = ramp(5, 5)
    return memory, memory, memory.T


def repeated_second() -> tuple[Array, Array, Array]:
    memory = ramp(5, 5)
    return memory, memory, memory[0]


@pytest.mark.parametrize("make", [shifted_second, reversed_second, transposed_second, repeated_second])
@pytest.mark.parametrize("function", [dml.element_wise_add, dml.element_wise_multiply])
def test_in_place_holds_for_every_input_that_shares_memory(
    function: Callable[..., Array], make: Callable[[], tuple[Array, Array, Array]]
) -> None:
    memory, x, y = make()
    before = memory.copy()
    function(x, y.copy(), out=x.copy())
    for _ in range(2):  # the second call finds what the first one left in the caches
        for first, second, name in ((x, y, "B"), (y, x, "A")):
            with pytest.raises(InvalidArgument, match=f"overlaps {name}Tensor in part"):
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
        (read_only(2, 3), "ACTIVATION_RELU.OutputTensor: a read-only array; an output must be writable"),
        (writable_broadcast(2, 3), "an output must not overlap itself"),
        (sliding(), "an output must not overlap itself"),
        (sevens(3, 2), "ACTIVATION_RELU.OutputTensor: sizes [3, 2]; [2, 3] are needed"),
        (sevens(6), "ACTIVATION_RELU.OutputTensor: sizes [6]; [2, 3] are needed"),
        (sevens(2, 3, type=np.float16), "ACTIVATION_RELU.OutputTensor: FLOAT16; FLOAT32 is needed"),
        (sevens(2, 3, type=">f4"), "ACTIVATION_RELU.OutputTensor: elements of dtype('>f4')"),
        (np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3), "not aligned"),
        ([[0.0] * 3] * 2, "ACTIVATION_RELU.OutputTensor: list; an array is needed"),
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
        (None, "ACTIVATION_RELU.InputTensor: None; a tensor is needed"),
        (3.0, "ACTIVATION_RELU.InputTensor: float; an array is needed"),
        ([1.0, 2.0], "ACTIVATION_RELU.InputTensor: list; an array is needed"),
        (np.array(["a"]), "ACTIVATION_RELU.InputTensor: elements of"),
        (ramp(3).astype(">f4"), "ACTIVATION_RELU.InputTensor: elements of dtype('>f4')"),
        (ramp(3).astype(np.complex64), "ACTIVATION_RELU.InputTensor: elements of dtype('complex64')"),
        (ramp(3).astype(np.float64), "ACTIVATION_RELU.InputTensor"),
        (np.zeros((), np.float32), "ACTIVATION_RELU.InputTensor"),
        (np.zeros((2, 0, 3), np.float32), "ACTIVATION_RELU.InputTensor"),
        (np.zeros((1,) * 9, np.float32), "ACTIVATION_RELU.InputTensor: 9 dimensions"),
        (np.zeros(13, np.uint8)[1:].view(np.float32), "not aligned"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_inputs_that_are_no_tensors_are_refused(x: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        dml.activation_relu(x)
    assert message in str(error.value)


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
        with pytest.raises(InvalidArgument, match=r"ELEMENT_WISE_ADD\.BTensor: .*whole number that UINT8"):
            dml.element_wise_add(x, number)
    with pytest.raises(InvalidArgument, match=r"ELEMENT_WISE_ADD\.ATensor: float"):
        dml.element_wise_add(1.0, 2.0)


def test_sizes_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"ELEMENT_WISE_ADD\.BTensor"):
        dml.element_wise_add(ramp(2, 3), ramp(2, 2))


def test_the_output_of_a_cast_has_the_type_that_is_asked_for() -> None:
    x = ramp(4)
    assert dml.cast(x, output_type=dml.FLOAT16).dtype == np.float16
    assert dml.cast(x, out=np.zeros(4, np.int8)).dtype == np.int8
    with pytest.raises(InvalidArgument, match=r"CAST.OutputTensor: neither output_type nor an array"):
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


def test_operators_without_inputs_are_told_their_sizes() -> None:
    filled: Array = dml.fill_value_constant(value_data_type=dml.INT16, value=-3, sizes=[2, 2])
    assert same_bits(filled, np.full((2, 2), -3, np.int16))
    out = np.zeros((2, 2), np.float32)
    dml.fill_value_sequence(value_data_type=dml.FLOAT32, value_start=1, value_delta=0.5, out=out)
    assert out.tolist() == [[1, 1.5], [2, 2.5]]
    with pytest.raises(InvalidArgument, match=r"FILL_VALUE_CONSTANT\.OutputTensor: neither sizes"):
        dml.fill_value_constant(value_data_type=dml.INT16, value=-3)


def test_scales_that_differ_only_in_the_sign_of_zero_are_told_apart() -> None:
    x = np.zeros(4, np.float32)
    for bias in (-0.0, 0.0, -0.0):
        result = dml.element_wise_identity(-x, scale_bias=dml.ScaleBias(1.0, bias))
        assert np.signbit(result).all() == (math.copysign(1.0, bias) < 0)


@pytest.mark.parametrize(
    ("axes", "message"),
    [([2], "Axes"), ([0, 0], "Axes"), ([-1], "Axes"), ("1", "Axes"), (None, "Axes")],
    ids=str,
)
def test_wrong_axes_are_refused(axes: Any, message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        dml.mean_variance_normalization1(ramp(2, 3), axes=axes)
    assert message in str(error.value)


def test_axes_may_be_any_sequence_of_integers() -> None:
    x = ramp(4, 6)
    expected = dml.mean_variance_normalization1(x, axes=[1])
    for axes in ((1,), np.array([1]), range(1, 2), [np.int64(1)]):
        assert same_bits(dml.mean_variance_normalization1(x, axes=axes), expected)


def test_a_scale_of_other_sizes_broadcasts_or_is_refused() -> None:
    x = ramp(4, 6)
    dml.mean_variance_normalization1(x, ramp(1, 6), axes=[1])
    with pytest.raises(InvalidArgument, match="ScaleTensor"):
        dml.mean_variance_normalization1(x, ramp(2, 6), axes=[1])
    with pytest.raises(InvalidArgument, match="BiasTensor"):
        dml.mean_variance_normalization1(x, None, ramp(4, 6, type=np.float16), axes=[1])


def test_a_misaligned_bias_is_named_as_such() -> None:
    x = ramp(2, 3)
    dml.mean_variance_normalization1(x, None, ramp(2, 3), axes=[1])
    odd = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    with pytest.raises(InvalidArgument, match="BiasTensor: memory that is not aligned"):
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
    with pytest.raises(InvalidArgument, match="InputTensor"):
        dml.activation_relu(x.to(torch.bfloat16))


def test_jax_arrays_come_back_as_their_own_kind_and_are_never_written() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    x = jax.numpy.linspace(-2, 2, 12)
    result = dml.activation_relu(x)
    assert isinstance(result, jax.Array)
    assert (result == jax.numpy.maximum(x, 0)).all()
    with pytest.raises(InvalidArgument, match="read-only"):
        dml.activation_relu(x, out=x)
