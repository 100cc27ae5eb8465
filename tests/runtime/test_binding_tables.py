"""Binding tables: the rules of DirectML's binding pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opendml import (
    FLOAT16,
    FLOAT32,
    BufferArrayBinding,
    BufferBinding,
    CompiledOperator,
    Device,
    InvalidArgument,
    TensorDesc,
    descs,
)
from opendml.runtime.objects.tensor_fields import TensorField, bound_ranges, tensor_fields
from tests.running import same_bits
from tests.runtime.object_model import (
    PACKED,
    SIZES,
    VALUES,
    celu,
    compiled,
    elu,
    initialized,
    normalization,
    zeros,
)


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


def test_an_execution_reads_and_writes_what_is_bound(any_device: Device) -> None:
    operator, y = celu(any_device), zeros(any_device)
    initialized(any_device, operator)
    run_over(any_device, operator, [any_device.upload(VALUES)], [y])
    assert np.allclose(any_device.download(y), elu(VALUES), rtol=1e-6)


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


def array(count: int = 24) -> Any:
    return np.full(count, 7, np.float32)


def read_only() -> Any:
    result = array()
    result.flags.writeable = False
    return result


REFUSED: dict[str, tuple[Callable[[], list[Any]], str]] = {
    "too many": (lambda: [array(), array()], "ACTIVATION_CELU: 2 inputs; there are 1: InputTensor"),
    "none for a tensor": (lambda: [None], "ACTIVATION_CELU.InputTensor: nothing is bound"),
    "no buffer": (lambda: [BufferBinding(None)], "ACTIVATION_CELU.InputTensor: nothing is bound"),
    "no array": (lambda: ["text"], "ACTIVATION_CELU.InputTensor: str; a contiguous buffer is needed"),
    "another type": (
        lambda: [BufferBinding(array(24).astype(np.float64))],
        "ACTIVATION_CELU.InputTensor: elements of float64; the tensor is FLOAT32: bind an array of float32",
    ),
    "another order": (
        lambda: [np.asfortranarray(array(24).reshape(2, 3, 4))],
        "ACTIVATION_CELU.InputTensor: an array that is not contiguous in row-major order",
    ),
    "too small": (
        lambda: [BufferBinding(array(23))],
        "ACTIVATION_CELU.InputTensor: 92 bytes; DirectML asks for 96 for the tensor",
    ),
    "range too small": (
        lambda: [BufferBinding(array(), 0, 92)],
        "ACTIVATION_CELU.InputTensor: 92 bytes; DirectML asks for 96 for the tensor",
    ),
    "range past the end": (
        lambda: [BufferBinding(array(48), 112, 96)],
        "ACTIVATION_CELU.InputTensor: 96 bytes from offset 112; the buffer has 192 bytes",
    ),
    "offset past the end": (
        lambda: [BufferBinding(array(48), 208)],
        "ACTIVATION_CELU.InputTensor: -16 bytes from offset 208; the buffer has 192 bytes",
    ),
    "size 0": (
        lambda: [BufferBinding(array(), 0, 0)],
        "ACTIVATION_CELU.InputTensor: 0 bytes from offset 0; the buffer has 96 bytes",
    ),
    "offset not aligned": (
        lambda: [BufferBinding(array(48), 8, 96)],
        "ACTIVATION_CELU.InputTensor: offset 8; must be a multiple of 16",
    ),
    "offset negative": (
        lambda: [BufferBinding(array(48), -16, 96)],
        "ACTIVATION_CELU.InputTensor: offset -16; must be a multiple of 16",
    ),
    "offset no number": (
        lambda: [BufferBinding(array(48), 1.5)],
        "ACTIVATION_CELU.InputTensor: offset 1.5; must be a multiple of 16",
    ),
    "elements not aligned": (
        lambda: [BufferBinding(np.zeros(128, np.uint8)[1:], 0, 96)],
        "FLOAT32 needs a multiple of 4",
    ),
    "an array of bindings": (
        lambda: [BufferArrayBinding([array()])],
        "ACTIVATION_CELU: inputs[0]: a BufferArrayBinding of 1; it must be for all tensors of a",
    ),
    "no list": (lambda: array(), "ACTIVATION_CELU: inputs: array("),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_bindings_that_do_not_fit_are_refused_and_the_table_stays(case: str) -> None:
    make, message = REFUSED[case]
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
    aligned = TensorDesc(FLOAT32, SIZES, guaranteed_base_offset_alignment=64)
    table = device.create_binding_table(compiled(device, descs.ActivationCelu(aligned, PACKED)))
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
    desc = descs.MeanVarianceNormalization1(PACKED, None, None, PACKED, axes=[2])
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
    desc = descs.FillValueConstant(PACKED, value_data_type=FLOAT32, value=2.5)
    operator = compiled(any_device, desc)
    initialized(any_device, operator)
    nothings: list[list[Any] | None] = [None, []]
    for inputs in nothings:
        y = zeros(any_device)
        run_over(any_device, operator, inputs, [y])
        assert (any_device.download(y) == 2.5).all()


@pytest.mark.parametrize("offset", [16, 80])
def test_partial_overlap_is_refused_and_nothing_written(offset: int) -> None:
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
        descs.Join([PACKED, PACKED], TensorDesc(FLOAT32, [2, 6, 4]), axis=1), "INPUT_TENSOR"
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
    assert not TensorField("InputTensor", "InputTensor", PACKED).is_owned
    assert not TensorField("InputTensor", "InputTensor", None).is_owned
    assert TensorField("InputTensor", "InputTensor", TensorDesc(FLOAT32, SIZES, flags=1)).is_owned
