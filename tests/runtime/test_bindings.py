"""Devices, compilation and binding: what is refused, in which words, before anything is written."""

from __future__ import annotations

import array as array_module
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import FLOAT16, FLOAT32, INT32, UINT32, Device, InvalidArgument, TensorDesc, Unsupported, descs
from opendml.operators import registry
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.spec.enums import ExecutionFlags
from tests.running import same_bits

SIZES = [2, 3, 4]
PACKED = TensorDesc(FLOAT32, SIZES)
SEVEN = 7.0


def compiled_celu(
    input: TensorDesc = PACKED, output: TensorDesc = PACKED, kind: str = "cpu"
) -> CompiledOperator:
    device = Device(kind)
    return device.compile_operator(device.create_operator(descs.ActivationCelu(input, output)))


def compiled_normalization(**tensors: TensorDesc | None) -> CompiledOperator:
    given: dict[str, Any] = {
        "input_tensor": PACKED,
        "scale_tensor": PACKED,
        "bias_tensor": PACKED,
        "output_tensor": PACKED,
    }
    device = Device("cpu")
    desc = descs.MeanVarianceNormalization1(**(given | tensors), axes=[2])
    return device.compile_operator(device.create_operator(desc))


def array(count: int = 24, type: Any = np.float32) -> Any:
    return np.full(count, SEVEN, type)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Device("gpu"), "device: 'gpu'; opendml knows cpu, cuda, reference"),
        (lambda: Device("cpu", threads=0), "threads: 0; 1 to 1024, or None for all"),
        (lambda: Device("cpu", threads=1025), "threads: 1025; 1 to 1024, or None for all"),
        (lambda: Device("cpu", threads=2.5), "threads: 2.5; 1 to 1024, or None for all"),  # type: ignore[arg-type]
        (lambda: Device("cpu", feature_level="9_9"), "9_9"),
        (lambda: dml.activation_relu(array(), device="tpu"), "device: 'tpu'"),
    ],
)
def test_devices_refuse_what_does_not_exist(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        make()
    assert message in str(error.value)


def test_an_invalid_desc_is_refused_with_every_failure() -> None:
    desc = descs.ActivationCelu(TensorDesc(INT32, [2] * 9), TensorDesc(FLOAT16, [2]))
    with pytest.raises(InvalidArgument) as error:
        Device("cpu").create_operator(desc)
    assert len(error.value.failures) >= 2
    assert error.value.failures[0].startswith("ACTIVATION_CELU.InputTensor")


def test_the_feature_level_of_the_device_decides() -> None:
    desc = descs.ActivationCelu(PACKED, PACKED)
    Device("cpu", feature_level="3_0").create_operator(desc)
    with pytest.raises(InvalidArgument, match="3_0"):
        Device("cpu", feature_level="2_0").create_operator(desc)


def test_operators_that_cannot_run_yet_are_refused_when_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "TOP_K" in registry.implemented()
    monkeypatch.delitem(registry._definitions.all(), "TOP_K")
    device, tensor = Device("cpu"), TensorDesc(FLOAT32, [1, 1, 4, 4])
    counts = TensorDesc(UINT32, [1, 1, 4, 4])
    with pytest.raises(Unsupported, match="TOP_K: cannot be run yet"):
        device.compile_operator(device.create_operator(descs.TopK(tensor, tensor, counts, axis=3, k=4)))


def test_operators_of_another_device_and_unknown_flags_are_refused() -> None:
    one, other = Device("cpu"), Device("cpu")
    op = one.create_operator(descs.ActivationCelu(PACKED, PACKED))
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: created by another device"):
        other.compile_operator(op)
    with pytest.raises(InvalidArgument, match="flags"):
        one.compile_operator(op, flags=1 << 20)  # type: ignore[arg-type]
    every = ExecutionFlags(sum(ExecutionFlags))
    assert one.compile_operator(op, flags=every).input_tensors == [PACKED]


def test_a_compiled_operator_lists_its_tensors() -> None:
    compiled = compiled_normalization(bias_tensor=None)
    assert compiled.input_tensors == [PACKED, PACKED, None]
    assert compiled.output_tensors == [PACKED]


def misaligned() -> Any:
    return np.zeros(101, np.uint8)[1:97]


def read_only() -> Any:
    result = array()
    result.flags.writeable = False
    return result


REFUSED: list[tuple[Callable[[], tuple[list[Any], list[Any]]], str]] = [
    (lambda: ([], [array()]), "ACTIVATION_CELU: 0 inputs; there are 1: InputTensor"),
    (lambda: ([array(), array()], [array()]), "ACTIVATION_CELU: 2 inputs; there are 1: InputTensor"),
    (lambda: ([array()], []), "ACTIVATION_CELU: 0 outputs; there are 1: OutputTensor"),
    (lambda: ([None], [array()]), "ACTIVATION_CELU.InputTensor: nothing is bound"),
    (lambda: ([array()], [None]), "ACTIVATION_CELU.OutputTensor: nothing is bound"),
    (lambda: ([array(23)], [array()]), "ACTIVATION_CELU.InputTensor: 92 bytes; the tensor needs 96"),
    (lambda: ([array()], [array(23)]), "ACTIVATION_CELU.OutputTensor: 92 bytes; the tensor needs 96"),
    (
        lambda: ([array()], [array(48, np.uint8)]),
        "ACTIVATION_CELU.OutputTensor: 48 bytes; the tensor needs 96",
    ),
    (lambda: ([misaligned()], [array()]), "FLOAT32 needs a multiple of 4"),
    (lambda: ([array()], [misaligned()]), "FLOAT32 needs a multiple of 4"),
    (lambda: ([array(48)[::2]], [array()]), "ACTIVATION_CELU.InputTensor: an array that is not contiguous"),
    (lambda: ([array()], [read_only()]), "ACTIVATION_CELU.OutputTensor: a read-only buffer"),
    (lambda: ([array()], [bytes(96)]), "ACTIVATION_CELU.OutputTensor: a read-only buffer"),
    (lambda: (["text"], [array()]), "ACTIVATION_CELU.InputTensor: str; a contiguous buffer is needed"),
    (lambda: ([3.0], [array()]), "ACTIVATION_CELU.InputTensor: float; a contiguous buffer is needed"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_bindings_that_do_not_fit_are_refused(
    kind: str, make: Callable[[], tuple[list[Any], list[Any]]], message: str
) -> None:
    inputs, outputs = make()
    with pytest.raises(InvalidArgument) as error:
        compiled_celu(kind=kind).bind(inputs, outputs)
    assert message in str(error.value)


@pytest.mark.parametrize("type", [np.float64, np.float16, np.int32, np.uint32, np.complex64, np.bool_, ">f4"])
@pytest.mark.parametrize("kind", ["cpu", "reference"])
def test_arrays_of_other_types_are_refused(kind: str, type: Any) -> None:
    compiled, other = compiled_celu(kind=kind), np.zeros(96, type)
    for wrong in (other, memoryview(other) if other.dtype.isnative else other, dml.BufferBinding(other)):
        with pytest.raises(
            InvalidArgument, match=r"InputTensor: elements of .*; the tensor is FLOAT32: bind"
        ):
            compiled.bind([wrong], [array()])
        with pytest.raises(
            InvalidArgument, match=r"OutputTensor: elements of .*; the tensor is FLOAT32: bind"
        ):
            compiled.bind([array()], [wrong])


def in_fortran_order() -> Any:
    return np.asfortranarray(array().reshape(SIZES))


def transposed() -> Any:
    return array().reshape(4, 3, 2).T


def reversed_rows() -> Any:
    return array().reshape(SIZES)[::-1]


@pytest.mark.parametrize("make", [in_fortran_order, transposed, reversed_rows])
@pytest.mark.parametrize("wrap", [lambda array: array, memoryview, dml.BufferBinding])
def test_arrays_in_another_order_are_refused(make: Callable[[], Any], wrap: Callable[[Any], Any]) -> None:
    compiled = compiled_celu()
    message = "an array that is not contiguous in row-major order, but has strides"
    with pytest.raises(InvalidArgument, match=f"InputTensor: {message}"):
        compiled.bind([wrap(make())], [array()])
    with pytest.raises(InvalidArgument, match=f"OutputTensor: {message}"):
        compiled.bind([array()], [wrap(make())])


def test_an_array_that_is_laid_out_as_the_desc_is_bound_as_it_is() -> None:
    memory = np.linspace(-2, 2, 96, dtype=np.float32)
    for view in (
        memory[:24].reshape(4, 3, 2).T,
        memory.reshape(2, 3, 16)[:, :, ::4],
        memory.reshape(16, 3, 2).T[:, :, 3:7],
    ):
        strides = [stride // 4 for stride in view.strides]
        out = np.zeros(96, np.float32).reshape(16, 3, 2).T[:, :, 3:7]
        output = TensorDesc(FLOAT32, SIZES, [stride // 4 for stride in out.strides])
        compiled_celu(TensorDesc(FLOAT32, SIZES, strides), output).bind([view], [out]).dispatch()
        assert same_bits(out.copy(), dml.activation_celu(view.copy()))
        with pytest.raises(InvalidArgument, match="not contiguous in row-major order"):
            compiled_celu().bind([view], [array()])


def test_truth_values_are_bound_as_uint8_inputs() -> None:
    device, tensor = Device("cpu"), TensorDesc(dml.UINT8, [4])
    compiled = device.compile_operator(device.create_operator(descs.ElementWiseLogicalNot(tensor, tensor)))
    truth, out = np.array([True, False, True, True]), np.zeros(4, np.uint8)
    compiled.bind([truth], [out]).dispatch()
    assert out.tolist() == [0, 1, 0, 0]
    with pytest.raises(InvalidArgument, match="OutputTensor: elements of bool"):
        compiled.bind([out], [truth])


def test_any_object_with_the_buffer_protocol_can_be_bound() -> None:
    x = np.linspace(-1, 1, 24, dtype=np.float32)
    expected = dml.activation_celu(x)
    for inputs, output in [
        (x.tobytes(), bytearray(96)),
        (memoryview(x), np.zeros((2, 3, 4), np.float32)),
        (x.reshape(6, 4), array_module.array("f", bytes(96))),
        (x.view(np.uint8), np.zeros(96, np.uint8)),
        (x.reshape(2, 3, 4), memoryview(bytearray(100))),
    ]:
        compiled_celu().bind([inputs], [output]).dispatch()
        assert same_bits(np.frombuffer(output, np.float32)[:24].copy(), expected)


def test_a_tensor_that_is_absent_takes_no_buffer() -> None:
    compiled = compiled_normalization(scale_tensor=None, bias_tensor=None)
    with pytest.raises(InvalidArgument, match="BiasTensor: a buffer is bound to a tensor that is absent"):
        compiled.bind([array(), None, array()], [array()])
    compiled.bind([array(), None, None], [array()])


def test_a_buffer_needs_no_more_than_the_last_element() -> None:
    padded = TensorDesc(FLOAT32, SIZES, [100, 10, 2])
    needed = 1 + 100 + 20 + 6
    compiled = compiled_celu(padded)
    compiled.bind([array(needed)], [array()])
    with pytest.raises(InvalidArgument, match=f"{needed * 4 - 4} bytes; the tensor needs {needed * 4}"):
        compiled.bind([array(needed - 1)], [array()])


def test_exactly_the_same_memory_is_in_place() -> None:
    memory = np.linspace(-2, 2, 24, dtype=np.float32)
    expected = dml.activation_celu(memory.copy())
    compiled_celu().bind([memory], [memory]).dispatch()
    assert same_bits(memory, expected)


def halves(first: int, second: int) -> tuple[Any, Any, Any]:
    """Memory, and 24 floats from two places in it."""
    memory = np.full(100, SEVEN, np.float32)
    return memory, memory[first : first + 24], memory[second : second + 24]


@pytest.mark.parametrize("distance", [1, 4, 16, 23])
@pytest.mark.parametrize("later", ["input", "output"])
def test_partial_overlap_is_refused_and_nothing_written(distance: int, later: str) -> None:
    memory, first, second = halves(0, distance)
    inputs, outputs = ([second], [first]) if later == "input" else ([first], [second])
    with pytest.raises(InvalidArgument, match=r"ACTIVATION_CELU.OutputTensor: overlaps InputTensor in part"):
        compiled_celu().bind(inputs, outputs)
    assert (memory == SEVEN).all()


def test_neighbours_do_not_overlap() -> None:
    memory, first, second = halves(0, 24)
    compiled_celu().bind([first], [second]).dispatch()
    compiled_celu().bind([second], [first]).dispatch()
    assert (memory[48:] == SEVEN).all()


def test_the_same_memory_in_another_layout_is_not_in_place() -> None:
    memory = array()
    turned = TensorDesc(FLOAT32, SIZES, [1, 2, 6])
    with pytest.raises(InvalidArgument, match="overlaps InputTensor in part"):
        compiled_celu(turned, PACKED).bind([memory], [memory])


@pytest.mark.parametrize("index", [0, 1, 2])
def test_normalization_does_not_run_in_place(index: int) -> None:
    inputs = [array(), array(), array()]
    with pytest.raises(InvalidArgument, match="this operator does not run in place") as error:
        compiled_normalization().bind(inputs, [inputs[index]])
    assert ["InputTensor", "ScaleTensor", "BiasTensor"][index] in str(error.value)
    assert (inputs[index] == SEVEN).all()


def test_inputs_may_share_memory() -> None:
    x, y = np.linspace(-2, 2, 24, dtype=np.float32), array()
    compiled_normalization().bind([x, x, x], [y]).dispatch()
    expected = dml.mean_variance_normalization1(*[x.copy().reshape(SIZES) for _ in range(3)], axes=[2])
    assert same_bits(y.reshape(SIZES), expected)


def test_binding_again_leaves_earlier_bindings_alone() -> None:
    compiled = compiled_celu()
    inputs = [np.full(24, value, np.float32) for value in (1.0, 2.0)]
    outputs = [array(), array()]
    bound = [compiled.bind([x], [y]) for x, y in zip(inputs, outputs, strict=True)]
    for each in bound:
        each.dispatch()
    assert all(same_bits(x, y) for x, y in zip(inputs, outputs, strict=True))


def test_a_dispatch_sees_what_its_memory_holds_then() -> None:
    x, y = array(), array()
    bound = compiled_celu().bind([x], [y])
    for value in (1.0, 5.0):
        x.fill(value)
        bound.dispatch()
        assert (y == value).all()
