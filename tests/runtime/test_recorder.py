"""Initializers and command recorders: what is executed when, and what is refused."""

from __future__ import annotations

import gc
import threading
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from opendml import (
    BufferArrayBinding,
    BufferBinding,
    CompiledOperator,
    Device,
    ExecutionFlags,
    InvalidArgument,
    OperatorInitializer,
)
from tests.running import same_bits
from tests.runtime.object_model import (
    BIAS,
    SCALE,
    VALUES,
    celu,
    elu,
    initialized,
    normalization,
    normalized,
    zeros,
)

VOLATILE = ExecutionFlags.DESCRIPTORS_VOLATILE


def table_for(operator: Any, inputs: Any, outputs: Any, persistent: Any = None) -> Any:
    """A binding table with these bindings."""
    table = operator.device.create_binding_table(operator)
    table.bind_inputs(inputs)
    table.bind_outputs(outputs)
    table.bind_persistent_resource(persistent)
    return table


def recorded(*work: tuple[Any, Any]) -> Any:
    """A recorder with these dispatches."""
    recorder = work[0][0].device.create_command_recorder()
    for dispatchable, table in work:
        recorder.record_dispatch(dispatchable, table)
    return recorder


def initializer_table(initializer: OperatorInitializer, inputs: Any, outputs: Any) -> Any:
    table = initializer.device.create_binding_table(initializer)
    table.bind_inputs(inputs)
    table.bind_outputs(outputs)
    return table


# Initialization


def test_owned_tensors_are_handed_over_at_initialization(any_device: Device) -> None:
    operator = normalization(any_device)
    scale, bias = SCALE.copy(), BIAS.copy()
    persistent = initialized(any_device, operator, [None, scale, bias])
    scale.fill(99)
    bias.fill(99)
    y = zeros(any_device)
    table = table_for(operator, [any_device.upload(VALUES), None, None], [y], persistent)
    any_device.execute(recorded((operator, table)))
    assert np.allclose(any_device.download(y), normalized(), rtol=1e-5, atol=1e-5)


def test_owned_tensors_are_free_once_they_are_handed_over_and_their_recorder_is_gone() -> None:
    device = Device("cpu")
    operator, scale = normalization(device), SCALE.copy()
    freed = weakref.ref(scale)
    persistent = initialized(device, operator, [None, scale, BIAS])
    del scale
    gc.collect()
    assert freed() is None
    assert operator.is_initialized
    assert persistent is not None


def test_owned_tensors_may_be_on_the_device(any_device: Device) -> None:
    operator = normalization(any_device)
    persistent = initialized(any_device, operator, [None, any_device.upload(SCALE), any_device.upload(BIAS)])
    x, y = VALUES.copy(), np.zeros_like(VALUES)  # host memory, on every device
    any_device.execute(recorded((operator, table_for(operator, [x, None, None], [y], persistent))))
    assert np.allclose(y, normalized(), rtol=1e-5, atol=1e-5)


def test_bind_hands_owned_tensors_over_by_itself(any_device: Device) -> None:
    scale, bias, y = SCALE.copy(), BIAS.copy(), np.zeros_like(VALUES)
    bound = normalization(any_device).bind([VALUES, scale, bias], [y])
    scale.fill(99)
    bias.fill(99)
    for _ in range(2):
        y.fill(0)
        bound.dispatch()
        assert np.allclose(y, normalized(), rtol=1e-5, atol=1e-5)


def test_binding_properties_tell_descriptors_and_bytes() -> None:
    device = Device("cpu")
    properties = normalization(device).binding_properties
    assert (properties.persistent_resource_size, properties.required_descriptor_count) == (
        512,
        4 + 1 + bool(properties.temporary_resource_size),
    )
    plain = celu(device).binding_properties
    assert (plain.required_descriptor_count, plain.temporary_resource_size) == (2, 0)
    of_initializer = device.create_operator_initializer(
        [normalization(device), celu(device)]
    ).binding_properties
    assert (of_initializer.required_descriptor_count, of_initializer.persistent_resource_size) == (3, 0)


def test_an_operator_must_be_initialized_before_it_is_executed() -> None:
    device = Device("cpu")
    operator, y = celu(device), np.full(24, 7, np.float32)
    recorder = recorded((operator, table_for(operator, [VALUES], [y])))
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: is not initialized"):
        device.execute(recorder)
    assert (y == 7).all()
    initialized(device, operator)
    device.execute(recorder)
    assert np.allclose(y, elu(VALUES).ravel(), rtol=1e-6)


def test_an_initializer_and_its_operators_in_one_recorder(any_device: Device) -> None:
    operator, other, y, z = normalization(any_device), celu(any_device), zeros(any_device), zeros(any_device)
    initializer = any_device.create_operator_initializer([other, operator])
    persistent = any_device.create_buffer(512)
    setup = initializer_table(
        initializer, [None, BufferArrayBinding([None, SCALE, BIAS])], [None, persistent]
    )
    x = any_device.upload(VALUES)
    recorder = recorded(
        (initializer, setup),
        (operator, table_for(operator, [x, None, None], [y], persistent)),
        (other, table_for(other, [y], [z])),
    )
    any_device.execute(recorder)
    assert np.allclose(any_device.download(z), elu(normalized()), rtol=1e-5, atol=1e-5)
    assert operator.is_initialized
    assert other.is_initialized


def test_an_executed_recorder_initializes_again_from_what_its_buffers_hold_now(any_device: Device) -> None:
    operator, y = normalization(any_device), zeros(any_device)
    scale, bias = SCALE.copy(), np.zeros_like(BIAS)
    persistent = any_device.create_buffer(512)
    initializer = any_device.create_operator_initializer([operator])
    setup = initializer_table(initializer, [BufferArrayBinding([None, scale, bias])], [persistent])
    x = any_device.upload(VALUES)
    recorder = recorded(
        (initializer, setup), (operator, table_for(operator, [x, None, None], [y], persistent))
    )
    for _ in range(2):
        any_device.execute(recorder)
        assert np.allclose(any_device.download(y), normalized() - BIAS, rtol=1e-5, atol=1e-5)
    bias[...] = BIAS
    any_device.execute(recorder)
    assert np.allclose(any_device.download(y), normalized(), rtol=1e-5, atol=1e-5)


def test_a_recorder_with_only_an_initializer_is_executed_again(any_device: Device) -> None:
    operator = celu(any_device)
    initializer = any_device.create_operator_initializer([operator])
    recorder = recorded((initializer, any_device.create_binding_table(initializer)))
    for _ in range(3):
        any_device.execute(recorder)
    assert operator.is_initialized


def test_an_operator_has_one_initialization() -> None:
    device = Device("cpu")
    operator = celu(device)
    first, second = (device.create_operator_initializer([operator]) for _ in range(2))
    tables = [initializer_table(each, None, None) for each in (first, second)]
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: is initialized already"):
        device.execute(recorded((first, tables[0]), (second, tables[1])))
    assert not operator.is_initialized
    device.execute(recorded((first, tables[0])))
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: is initialized already"):
        device.execute(recorded((second, tables[1])))
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: is initialized already"):
        device.execute(recorded((first, tables[0])))
    with pytest.raises(InvalidArgument, match=r"operator initializer: \[0\] ACTIVATION_CELU is initialized"):
        device.create_operator_initializer([operator])
    other = celu(device)
    with pytest.raises(InvalidArgument, match=r"operator initializer: \[1\] ACTIVATION_CELU is given twice"):
        device.create_operator_initializer([other, other])


def test_an_initializer_without_operators_does_nothing_and_may_be_reset() -> None:
    device = Device("cpu")
    initializer = device.create_operator_initializer()
    table = device.create_binding_table(initializer)
    device.execute(recorded((initializer, table)))
    operator = celu(device)
    initializer.reset([operator])
    table.reset(initializer)
    device.execute(recorded((initializer, table)))
    assert operator.is_initialized


@pytest.mark.parametrize("wrong", [3, "celu", None])
def test_initializers_are_for_compiled_operators_of_the_device(wrong: Any) -> None:
    device = Device("cpu")
    with pytest.raises(InvalidArgument, match=r"operator initializer: \[0\] was not compiled by this device"):
        device.create_operator_initializer([wrong])
    with pytest.raises(InvalidArgument, match=r"operator initializer: \[0\] was not compiled by this device"):
        device.create_operator_initializer([celu(Device("cpu"))])


INITIALIZER_INPUTS: list[tuple[Any, str]] = [
    ([None, None], "operator initializer: 2 inputs; one for each of 1 operators is needed"),
    ([SCALE], "operator initializer: inputs[0]: ndarray; a BufferArrayBinding for the inputs of"),
    ([BufferArrayBinding([None, SCALE])], "MEAN_VARIANCE_NORMALIZATION1: 2 inputs; there are 3"),
    ([None], "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: nothing is bound"),
    ([BufferArrayBinding([])], "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: nothing is bound"),
    (
        [BufferArrayBinding([VALUES, SCALE, BIAS])],
        "MEAN_VARIANCE_NORMALIZATION1.InputTensor: a buffer is bound; only OWNED_BY_DML tensors are bound at",
    ),
    (
        [BufferArrayBinding([None, BufferBinding(SCALE, 0, 92), BIAS])],
        "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: 92 bytes; DirectML asks for 96",
    ),
]


@pytest.mark.parametrize(("inputs", "message"), INITIALIZER_INPUTS)
def test_inputs_of_initializers_that_do_not_fit_are_refused(inputs: Any, message: str) -> None:
    device = Device("cpu")
    table = device.create_binding_table(device.create_operator_initializer([normalization(device)]))
    with pytest.raises(InvalidArgument) as error:
        table.bind_inputs(inputs)
    assert message in str(error.value)


def test_outputs_of_initializers_that_do_not_fit_are_refused() -> None:
    device = Device("cpu")
    initializer = device.create_operator_initializer([normalization(device)])
    table = device.create_binding_table(initializer)
    buffer = device.create_buffer(1024)
    label = "operator initializer: outputs[0], the persistent resource of MEAN_VARIANCE_NORMALIZATION1: "
    for outputs, message in (
        ([None], label + "nothing is bound; 512 bytes are needed"),
        ([BufferBinding(buffer, 0, 256)], label + "256 bytes; 512 are needed"),
        ([BufferBinding(buffer, 16)], label + "offset 16; must be a multiple of 256"),
        ([buffer, buffer], "operator initializer: 2 outputs; one for each of 1 operators is needed"),
        (3, "operator initializer: int outputs; one for each of 1 operators is needed"),
    ):
        with pytest.raises(InvalidArgument) as error:
            table.bind_outputs(outputs)
        assert message in str(error.value)
    table.bind_inputs([BufferArrayBinding([None, SCALE, BIAS])])
    with pytest.raises(InvalidArgument, match="nothing is bound; 512 bytes are needed"):
        device.create_command_recorder().record_dispatch(initializer, table)


def test_persistent_resources_may_not_overlap() -> None:
    device = Device("cpu")
    initializer = device.create_operator_initializer([normalization(device), normalization(device)])
    buffer = device.create_buffer(1024)
    inputs = [BufferArrayBinding([None, SCALE, BIAS])] * 2
    table = initializer_table(initializer, inputs, [BufferBinding(buffer, 0), BufferBinding(buffer, 256)])
    with pytest.raises(InvalidArgument, match=r"outputs\[1\]: overlaps outputs\[0\]"):
        device.create_command_recorder().record_dispatch(initializer, table)


def test_bindings_of_an_initializer_end_with_its_reset() -> None:
    device = Device("cpu")
    initializer = device.create_operator_initializer([normalization(device)])
    table = initializer_table(
        initializer, [BufferArrayBinding([None, SCALE, BIAS])], [device.create_buffer(512)]
    )
    initializer.reset([normalization(device)])
    with pytest.raises(InvalidArgument, match="operator initializer: was reset after something was bound"):
        device.create_command_recorder().record_dispatch(initializer, table)


def test_the_persistent_resource_must_be_the_initialized_one() -> None:
    device = Device("cpu")
    operator, y = normalization(device), np.full(24, 7, np.float32)
    initialized(device, operator, [None, SCALE, BIAS])
    other = device.create_buffer(512)
    with pytest.raises(
        InvalidArgument, match="another persistent resource is bound than the initializer has"
    ):
        device.execute(recorded((operator, table_for(operator, [VALUES, None, None], [y], other))))
    with pytest.raises(InvalidArgument, match="no persistent resource is bound; 512 bytes are needed"):
        recorded((operator, table_for(operator, [VALUES, None, None], [y])))
    assert (y == 7).all()


# Recording


def test_dispatches_run_in_their_order_as_often_as_executed(any_device: Device) -> None:
    operator = celu(any_device)
    initialized(any_device, operator)
    buffers = [any_device.upload(VALUES), zeros(any_device), zeros(any_device)]
    recorder = recorded(
        *[(operator, table_for(operator, [x], [y])) for x, y in pairwise(buffers)],
        (operator, table_for(operator, [buffers[2]], [buffers[0]])),
    )
    assert len(recorder) == 3
    expected = VALUES
    for _ in range(2):
        any_device.execute(recorder)
        for _ in range(3):
            expected = elu(expected)
    assert np.allclose(any_device.download(buffers[0]), expected, rtol=1e-5)


def test_bindings_may_not_change_after_recording() -> None:
    device = Device("cpu")
    operator = celu(device)
    initialized(device, operator)
    x, y, z = VALUES.copy(), np.zeros_like(VALUES), np.zeros_like(VALUES)
    table = table_for(operator, [x], [y])
    recorder = recorded((operator, table))
    for change in (
        lambda: table.bind_inputs([x]),
        lambda: table.bind_outputs([z]),
        lambda: table.bind_temporary_resource(None),
        lambda: table.bind_persistent_resource(None),
    ):
        with pytest.raises(InvalidArgument, match="ACTIVATION_CELU was recorded with this table"):
            change()
    recorder.reset()
    assert len(recorder) == 0
    table.bind_outputs([z])


def test_a_reset_table_leaves_what_was_recorded_as_it_is() -> None:
    device = Device("cpu")
    operator = celu(device)
    initialized(device, operator)
    y, z = np.zeros_like(VALUES), np.zeros_like(VALUES)
    table = table_for(operator, [VALUES], [y])
    recorder = recorded((operator, table))
    table.reset(operator)
    table.bind_inputs([VALUES])
    table.bind_outputs([z])
    recorder.record_dispatch(operator, table)
    device.execute(recorder)
    assert same_bits(y, z)
    assert np.allclose(y, elu(VALUES), rtol=1e-6)


def test_volatile_descriptors_may_be_bound_and_changed_after_recording(any_device: Device) -> None:
    operator = celu(any_device, VOLATILE)
    initialized(any_device, operator)
    table = any_device.create_binding_table(operator)
    recorder = recorded((operator, table))
    with pytest.raises(InvalidArgument, match="ACTIVATION_CELU: no inputs are bound"):
        any_device.execute(recorder)
    for factor in (1, 2):
        y = zeros(any_device)
        table.bind_inputs([any_device.upload(VALUES * factor)])
        table.bind_outputs([y])
        any_device.execute(recorder)
        assert np.allclose(any_device.download(y), elu(VALUES * factor), rtol=1e-6)


def test_volatile_descriptors_are_checked_before_anything_is_written() -> None:
    device = Device("cpu")
    first, second = celu(device), celu(device, VOLATILE)
    initialized(device, first)
    initialized(device, second)
    y, memory = np.full(24, 7, np.float32), np.full(100, 7, np.float32)
    late = table_for(second, [BufferBinding(memory, 0, 96)], [BufferBinding(memory, 16, 96)])
    recorder = recorded((first, table_for(first, [VALUES], [y])), (second, late))
    with pytest.raises(InvalidArgument, match="overlaps InputTensor in part"):
        device.execute(recorder)
    assert (y == 7).all()
    assert (memory == 7).all()


def test_recorders_take_dispatchables_with_tables_for_them() -> None:
    device, other = Device("cpu"), Device("cpu")
    operator, second = celu(device), celu(device)
    recorder = device.create_command_recorder()
    table = table_for(operator, [VALUES], [np.zeros_like(VALUES)])
    for dispatchable, given, message in (
        (3, table, "record_dispatch: int; a compiled operator or an operator initializer"),
        (celu(other), table, "record_dispatch: CompiledOperator; a compiled operator"),
        (second, table, "record_dispatch: the binding table is not for this ACTIVATION_CELU"),
        (operator, None, "record_dispatch: the binding table is not for this ACTIVATION_CELU"),
    ):
        with pytest.raises(InvalidArgument) as error:
            recorder.record_dispatch(dispatchable, given)
        assert message in str(error.value)
    with pytest.raises(
        InvalidArgument, match="execute: CommandRecorder; a recorder of this device is needed"
    ):
        other.execute(recorder)
    with pytest.raises(InvalidArgument, match="execute: int; a recorder of this device is needed"):
        device.execute(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="only CUDA devices have streams"):
        device.execute(recorder, 0)


# Threads


def test_a_compiled_operator_is_executed_by_several_threads_at_once() -> None:
    device = Device("cpu")
    operator = celu(device)
    initialized(device, operator)
    outputs = [np.zeros_like(VALUES) for _ in range(4)]
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            x = VALUES * (number + 1)
            recorder = recorded((operator, table_for(operator, [x], [outputs[number]])))
            for _ in range(50):
                outputs[number].fill(0)
                device.execute(recorder)
                assert np.allclose(outputs[number], elu(x), rtol=1e-6)
        except Exception as error:
            failures.append(error)

    run_all([lambda number=number: work(number) for number in range(4)])
    assert not failures


def test_executions_of_one_recorder_take_turns() -> None:
    device = Device("cpu")
    operator = celu(device)
    initialized(device, operator)
    x = np.full(24, -1.0, np.float32)
    steps = [x, *(np.zeros(24, np.float32) for _ in range(8))]
    recorder = recorded(*[(operator, table_for(operator, [a], [b])) for a, b in pairwise(steps)])

    def work() -> None:
        for _ in range(50):
            device.execute(recorder)

    run_all([work] * 4)
    expected = x
    for _ in range(8):
        expected = elu(expected).astype(np.float32)
    assert np.allclose(steps[-1], expected, rtol=1e-5)


def test_of_two_threads_one_initializes() -> None:
    device = Device("cpu")
    for _ in range(20):
        operator = celu(device)
        recorders = []
        for _ in range(2):
            initializer = device.create_operator_initializer([operator])
            recorders.append(recorded((initializer, initializer_table(initializer, None, None))))
        refused: list[InvalidArgument] = []

        def execute(recorder: Any, refused: list[InvalidArgument] = refused) -> None:
            try:
                device.execute(recorder)
            except InvalidArgument as error:
                refused.append(error)

        run_all([lambda recorder=recorder: execute(recorder) for recorder in recorders])
        assert operator.is_initialized
        assert len(refused) == 1


def run_all(work: list[Any]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_memory_that_is_bound_stays_alive(any_device: Device) -> None:
    operator: CompiledOperator = celu(any_device)
    initialized(any_device, operator)
    y = zeros(any_device)
    recorder = recorded((operator, table_for(operator, [any_device.upload(VALUES)], [y])))
    noise = [any_device.upload(np.full_like(VALUES, 99)) for _ in range(20)]
    any_device.execute(recorder)
    assert np.allclose(any_device.download(y), elu(VALUES), rtol=1e-6)
    assert len(noise) == 20
