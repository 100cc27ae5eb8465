"""Devices, compilation, bindings and binding tables: what is refused, before anything is written."""

from __future__ import annotations

import array as array_module
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import (
    FLOAT16,
    FLOAT32,
    INT32,
    UINT32,
    BindingProperties,
    BufferArrayBinding,
    BufferBinding,
    Device,
    InvalidArgument,
    TensorDesc,
    Unsupported,
    descs,
)
from opendml.operators import registry
from opendml.runtime.objects.compiled import CompiledOperator
from opendml.runtime.objects.tensor_fields import TensorField, bound_ranges, tensor_fields
from opendml.spec.enums import ExecutionFlags
from tests.running import same_bits
from tests.runtime.object_model import PACKED as TABLE_PACKED
from tests.runtime.object_model import SIZES as TABLE_SIZES
from tests.runtime.object_model import VALUES, celu, compiled, elu, initialized, normalization, zeros

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


def run_over(device: Device, operator: CompiledOperator, inputs: Any, outputs: list[Any]) -> None:
    """An initialized operator over bindings."""
    table = device.create_binding_table(operator)
    table.bind_inputs(inputs)
    table.bind_outputs(outputs)
    temporary = operator.binding_properties.temporary_resource_size
    table.bind_temporary_resource(device.create_buffer(temporary) if temporary else None)
    recorder = device.create_command_recorder()
    recorder.record_dispatch(operator, table)
    device.execute(recorder)


def test_tensors_may_be_ranges_of_one_buffer(any_device: Device) -> None:
    buffer, operator = any_device.create_buffer(1024), celu(any_device)
    initialized(any_device, operator)
    content = np.full(256, 7, np.float32)
    content[4:28] = VALUES.ravel()
    buffer = any_device.upload(content.view(np.uint8))
    run_over(any_device, operator, [BufferBinding(buffer, 16, 96)], [BufferBinding(buffer, 512, 96)])
    after = any_device.download(buffer).view(np.float32)
    assert np.allclose(after[128:152], elu(VALUES).ravel(), rtol=1e-6)
    assert same_bits(after[:128], content[:128])
    assert (after[152:] == 7).all()


def test_in_place_takes_the_same_range_for_input_and_output(any_device: Device) -> None:
    operator, x = celu(any_device), any_device.upload(VALUES)
    initialized(any_device, operator)
    run_over(any_device, operator, [x], [x])
    assert np.allclose(any_device.download(x), elu(VALUES), rtol=1e-6)


REFUSED_TABLES: list[tuple[Callable[[], list[Any]], str]] = [
    (lambda: [array(), array()], "ACTIVATION_CELU: 2 inputs; there are 1: InputTensor"),
    (lambda: [None], "ACTIVATION_CELU.InputTensor: nothing is bound"),
    (lambda: [BufferBinding(None)], "ACTIVATION_CELU.InputTensor: nothing is bound"),
    (lambda: ["text"], "ACTIVATION_CELU.InputTensor: str; a contiguous buffer is needed"),
    (
        lambda: [BufferBinding(array(24).astype(np.float64))],
        "ACTIVATION_CELU.InputTensor: elements of float64; the tensor is FLOAT32: bind an array of float32",
    ),
    (
        lambda: [np.asfortranarray(array(24).reshape(2, 3, 4))],
        "ACTIVATION_CELU.InputTensor: an array that is not contiguous in row-major order",
    ),
    (
        lambda: [BufferBinding(array(23))],
        "ACTIVATION_CELU.InputTensor: 92 bytes; DirectML asks for 96 for the tensor",
    ),
    (
        lambda: [BufferBinding(array(), 0, 92)],
        "ACTIVATION_CELU.InputTensor: 92 bytes; DirectML asks for 96 for the tensor",
    ),
    (
        lambda: [BufferBinding(array(48), 112, 96)],
        "ACTIVATION_CELU.InputTensor: 96 bytes from offset 112; the buffer has 192 bytes",
    ),
    (
        lambda: [BufferBinding(array(48), 208)],
        "ACTIVATION_CELU.InputTensor: -16 bytes from offset 208; the buffer has 192 bytes",
    ),
    (
        lambda: [BufferBinding(array(), 0, 0)],
        "ACTIVATION_CELU.InputTensor: 0 bytes from offset 0; the buffer has 96 bytes",
    ),
    (
        lambda: [BufferBinding(array(48), 8, 96)],
        "ACTIVATION_CELU.InputTensor: offset 8; must be a multiple of 16",
    ),
    (
        lambda: [BufferBinding(array(48), -16, 96)],
        "ACTIVATION_CELU.InputTensor: offset -16; must be a multiple of 16",
    ),
    (
        lambda: [BufferBinding(array(48), 1.5)],
        "ACTIVATION_CELU.InputTensor: offset 1.5; must be a multiple of 16",
    ),
    (lambda: [BufferBinding(np.zeros(128, np.uint8)[1:], 0, 96)], "FLOAT32 needs a multiple of 4"),
    (
        lambda: [BufferArrayBinding([array()])],
        "ACTIVATION_CELU: inputs[0]: a BufferArrayBinding of 1; it must be for all tensors of a",
    ),
    (lambda: array(), "ACTIVATION_CELU: inputs: array("),
]


@pytest.mark.parametrize(("make", "message"), REFUSED_TABLES)
def test_bindings_that_do_not_fit_are_refused_and_the_table_stays(
    make: Callable[[], list[Any]], message: str
) -> None:
    device = Device("cpu")
    table = device.create_binding_table(celu(device))
    table.bind_inputs([VALUES])
    before = table._descriptors.bindings
    with pytest.raises(InvalidArgument) as error:
        table.bind_inputs(make())
    assert message in str(error.value)
    assert table._descriptors.bindings is before


def test_outputs_must_be_writable() -> None:
    device = Device("cpu")
    table = device.create_binding_table(celu(device))
    with pytest.raises(InvalidArgument, match=r"ACTIVATION_CELU\.OutputTensor: a read-only buffer"):
        table.bind_outputs([BufferBinding(read_only())])
    table.bind_inputs([read_only()])


def test_a_guaranteed_alignment_is_asked_for() -> None:
    device = Device("cpu")
    aligned = TensorDesc(FLOAT32, TABLE_SIZES, guaranteed_base_offset_alignment=64)
    table = device.create_binding_table(compiled(device, descs.ActivationCelu(aligned, TABLE_PACKED)))
    buffer = device.create_buffer(256)
    with pytest.raises(InvalidArgument, match="offset 32; must be a multiple of 64"):
        table.bind_inputs([BufferBinding(buffer, 32, 96)])
    table.bind_inputs([BufferBinding(buffer, 64, 96)])


def test_a_range_has_the_size_that_directml_rounds_up() -> None:
    device = Device("cpu")
    odd = TensorDesc(FLOAT16, [3])
    table = device.create_binding_table(compiled(device, descs.ActivationCelu(odd, odd)))
    with pytest.raises(InvalidArgument, match="6 bytes; DirectML asks for 8"):
        table.bind_inputs([BufferBinding(np.zeros(3, np.float16))])
    table.bind_inputs([np.zeros(3, np.float16)])  # an array as it is needs what the elements occupy


def test_absent_tensors_take_no_binding() -> None:
    device = Device("cpu")
    desc = descs.MeanVarianceNormalization1(TABLE_PACKED, None, None, TABLE_PACKED, axes=[2])
    table = device.create_binding_table(compiled(device, desc))
    with pytest.raises(InvalidArgument, match="ScaleTensor: a buffer is bound to a tensor that is absent"):
        table.bind_inputs([VALUES, VALUES, None])
    table.bind_inputs([VALUES, None, None])


def test_nothing_unbinds() -> None:
    device = Device("cpu")
    operator = celu(device)
    initialized(device, operator)
    table = device.create_binding_table(operator)
    table.bind_outputs([array()])
    nothings: list[list[Any] | None] = [[], None]
    for nothing in nothings:
        table.bind_inputs([VALUES])
        table.bind_inputs(nothing)
        with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: no inputs are bound"):
            device.create_command_recorder().record_dispatch(operator, table)


def test_an_operator_without_inputs_needs_none_bound(any_device: Device) -> None:
    desc = descs.FillValueConstant(TABLE_PACKED, value_data_type=FLOAT32, value=2.5)
    operator = compiled(any_device, desc)
    initialized(any_device, operator)
    nothings: list[list[Any] | None] = [None, []]
    for inputs in nothings:
        y = zeros(any_device)
        run_over(any_device, operator, inputs, [y])
        assert (any_device.download(y) == 2.5).all()


@pytest.mark.parametrize("offset", [16, 80])
def test_partial_overlap_is_refused_and_nothing_written_of_tables(offset: int) -> None:
    device = Device("cpu")
    operator = celu(device)
    initialized(device, operator)
    buffer = np.full(100, 7, np.float32)
    with pytest.raises(InvalidArgument, match=r"ACTIVATION_CELU\.OutputTensor: overlaps InputTensor in part"):
        run_over(device, operator, [BufferBinding(buffer, 0, 96)], [BufferBinding(buffer, offset, 96)])
    assert (buffer == 7).all()


def with_temporary(device: Device) -> CompiledOperator:
    """A graph with a temporary resource."""
    from tests.runtime.test_compile_graph import reinterpreting

    return reinterpreting(device)


def test_the_temporary_resource_is_checked(any_device: Device) -> None:
    operator = with_temporary(any_device)
    size = operator.binding_properties.temporary_resource_size
    assert size > 0
    table = any_device.create_binding_table(operator)
    buffer = any_device.create_buffer(2 * size + 256)
    refused = [
        (BufferBinding(buffer, 16), "graph: the temporary resource: offset 16; must be a multiple of 256"),
        (
            BufferBinding(buffer, 0, size - 1),
            f"graph: the temporary resource: {size - 1} bytes; {size} are needed",
        ),
        (np.zeros(0, np.uint8), "graph: the temporary resource: 0 bytes from offset 0"),
    ]
    for binding, message in refused:
        with pytest.raises(InvalidArgument) as error:
            table.bind_temporary_resource(binding)
        assert message in str(error.value)
    table.bind_inputs([zeros(any_device)])
    table.bind_outputs([zeros(any_device)])
    with pytest.raises(
        InvalidArgument, match=f"graph: no temporary resource is bound; {size} bytes are needed"
    ):
        any_device.create_command_recorder().record_dispatch(operator, table)


def with_owned_input(device: Device) -> CompiledOperator:
    """Return a sum whose second tensor is OWNED_BY_DML."""
    tensor = TensorDesc(FLOAT32, [2, 3])
    owned = TensorDesc(FLOAT32, [2, 3], flags=dml.TensorFlags.OWNED_BY_DML)
    return device.compile_operator(device.create_operator(descs.ElementWiseAdd(tensor, owned, tensor)))


def test_all_resources_that_are_missing_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device("cpu")
    tensor = dml.TensorDesc(dml.FLOAT32, [2, 3])
    owned = dml.TensorDesc(dml.FLOAT32, [2, 3], flags=dml.TensorFlags.OWNED_BY_DML)
    operator = device.compile_operator(
        device.create_operator(dml.descs.ElementWiseAdd(tensor, owned, tensor))
    )
    both = BindingProperties(5, 1024, operator.binding_properties.persistent_resource_size)
    monkeypatch.setattr(type(operator), "binding_properties", property(lambda _: both))
    table = device.create_binding_table(operator)
    table.bind_inputs([np.zeros((2, 3), np.float32), None])
    table.bind_outputs([np.zeros((2, 3), np.float32)])
    with pytest.raises(InvalidArgument) as caught:
        device.create_command_recorder().record_dispatch(operator, table)
    temporary, persistent = caught.value.failures
    assert temporary == "ELEMENT_WISE_ADD: no temporary resource is bound; 1024 bytes are needed"
    assert persistent.endswith(", which an operator initializer writes from BTensor (OWNED_BY_DML)")


def test_an_owned_tensor_that_is_not_bound_says_how_it_is_initialized() -> None:
    device = Device("cpu")
    tensor = dml.TensorDesc(dml.FLOAT32, [2, 3])
    owned = dml.TensorDesc(dml.FLOAT32, [2, 3], flags=dml.TensorFlags.OWNED_BY_DML)
    operator = device.compile_operator(
        device.create_operator(dml.descs.ElementWiseAdd(tensor, owned, tensor))
    )
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(InvalidArgument, match="BTensor: nothing is bound; the tensor is OWNED_BY_DML"):
        operator.bind([x, None], [x.copy()])
    table = device.create_binding_table(device.create_operator_initializer([operator]))
    with pytest.raises(InvalidArgument, match=r"OWNED_BY_DML: .* bind_inputs\(\[dml.BufferArrayBinding"):
        table.bind_inputs([None])


def test_objects_take_data_of_their_owner() -> None:
    device = Device("cpu")
    tensor = dml.TensorDesc(dml.FLOAT32, [2])
    operator = device.create_operator(dml.descs.ActivationRelu(tensor, tensor))
    compiled = device.compile_operator(operator)
    objects: list[Any] = [device, operator, compiled, device.create_operator_initializer([compiled])]
    objects += [device.create_binding_table(compiled), device.create_command_recorder()]
    for number, each in enumerate(objects):
        each.owner = number
    assert [each.owner for each in objects] == list(range(6))


def test_the_temporary_resource_may_not_overlap_tensors() -> None:
    device = Device("cpu")
    operator = with_temporary(device)
    buffer = device.create_buffer(4096)
    table = device.create_binding_table(operator)
    table.bind_inputs([BufferBinding(buffer, 0, 96)])
    table.bind_outputs([BufferBinding(buffer, 2048, 96)])
    table.bind_temporary_resource(BufferBinding(buffer, 0, 1024))
    with pytest.raises(InvalidArgument, match="the temporary resource: shares memory with inputs"):
        device.create_command_recorder().record_dispatch(operator, table)


def test_the_temporary_resource_is_used(any_device: Device) -> None:
    if any_device.kind == "reference":
        pytest.skip("the reference allocates as it goes")
    operator = with_temporary(any_device)
    initialized(any_device, operator)
    size = operator.binding_properties.temporary_resource_size
    temporary = any_device.create_buffer(size)
    table = any_device.create_binding_table(operator)
    table.bind_inputs([any_device.upload(VALUES)])
    table.bind_outputs([zeros(any_device)])
    table.bind_temporary_resource(temporary)
    recorder = any_device.create_command_recorder()
    recorder.record_dispatch(operator, table)
    any_device.execute(recorder)
    assert any_device.download(temporary).any()


def test_owned_tensors_are_not_bound_at_execution() -> None:
    device = Device("cpu")
    table = device.create_binding_table(normalization(device))
    with pytest.raises(
        InvalidArgument, match="ScaleTensor: a buffer is bound; OWNED_BY_DML tensors are bound"
    ):
        table.bind_inputs([VALUES, VALUES, None])
    table.bind_inputs([VALUES, None, None])


def test_an_empty_table_must_be_reset_first() -> None:
    device = Device("cpu")
    table = device.create_binding_table()
    with pytest.raises(InvalidArgument, match="bind_inputs: the binding table is empty"):
        table.bind_inputs([VALUES])
    table.reset(celu(device))
    table.bind_inputs([VALUES])


@pytest.mark.parametrize("wrong", [3, "ACTIVATION_CELU", object()])
def test_tables_are_for_dispatchables(wrong: Any) -> None:
    device = Device("cpu")
    with pytest.raises(
        InvalidArgument, match="a compiled operator or an operator initializer of this device"
    ):
        device.create_binding_table(wrong)
    with pytest.raises(InvalidArgument, match="of this device is needed"):
        device.create_binding_table(celu(Device("cpu")))


@pytest.mark.parametrize("size", [0, -1, 1.5, "64", None])
def test_buffers_have_at_least_one_byte(size: Any) -> None:
    with pytest.raises(InvalidArgument, match="create_buffer"):
        Device("cpu").create_buffer(size)


def test_buffers_are_zeroed_and_aligned_for_every_binding(any_device: Device) -> None:
    buffer = any_device.create_buffer(1000)
    assert not any_device.download(buffer).any()
    if isinstance(buffer, np.ndarray):
        assert buffer.ctypes.data % 256 == 0


def test_an_array_of_tensors_is_bound_one_by_one_or_as_one() -> None:
    slots = tensor_fields(
        descs.Join([TABLE_PACKED, TABLE_PACKED], TensorDesc(FLOAT32, [2, 6, 4]), axis=1), "INPUT_TENSOR"
    )
    assert [slot.name for slot in slots] == ["InputTensors[0]", "InputTensors[1]"]
    x, y = array(), array()
    for bindings in ([x, y], [BufferArrayBinding([x, y])]):
        memory = bound_ranges("JOIN", "inputs", slots, bindings)
        assert [each.address for each in memory if each] == [x.ctypes.data, y.ctypes.data]
    for wrong in ([BufferArrayBinding([x])], [BufferArrayBinding([x, y, x])], [x, BufferArrayBinding([y])]):
        with pytest.raises(InvalidArgument, match="it must be for all tensors of a field"):
            bound_ranges("JOIN", "inputs", slots, wrong)
    with pytest.raises(InvalidArgument, match=r"JOIN.InputTensors\[1\]: nothing is bound"):
        bound_ranges("JOIN", "inputs", slots, [BufferArrayBinding([x, None])])


def test_a_slot_tells_whether_directml_owns_its_tensor() -> None:
    assert not TensorField("InputTensor", "InputTensor", TABLE_PACKED).is_owned
    assert not TensorField("InputTensor", "InputTensor", None).is_owned
    assert TensorField("InputTensor", "InputTensor", TensorDesc(FLOAT32, TABLE_SIZES, flags=1)).is_owned
