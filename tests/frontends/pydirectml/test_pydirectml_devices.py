"""Devices, bindings, tensor descs and models of PyDirectML."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opendml as dml
from opendml import directml, pydirectml

BOTH = pytest.mark.parametrize("module", [pydirectml, directml], ids=["pydirectml", "directml"])


def identity(module: Any, desc: Any) -> tuple[Any, Any, Any]:
    """A device on the CPU, an input, and a model that copies it."""
    device = module.Device(use_gpu=False)
    builder = module.GraphBuilder(device)
    x = module.input_tensor(builder, 0, desc)
    return device, x, builder.build(module.ExecutionFlags.NONE, [x])


def copied(module: Any, desc: Any, data: Any) -> Any:
    device, x, model = identity(module, desc)
    return np.array(device.compute(model, [module.Binding(x, data)], [x])[0])


@BOTH
def test_a_device_says_what_it_is(module: Any) -> None:
    assert repr(module.Device(False)) == "dml.Device on CPU"
    assert repr(module.Device(use_gpu=True, use_debug_layer=True)) in (
        "dml.Device on CPU",
        "dml.Device on GPU",
    )


@BOTH
def test_expressions_and_models_say_what_they_are(module: Any) -> None:
    _, x, model = identity(module, module.TensorDesc(module.TensorDataType.FLOAT32, [2, 3]))
    assert repr(x) == "<dml.Expression float32 [2, 3]>"
    assert repr(model).startswith("<dml.Model of <CompiledOperator cpu: ")


@BOTH
def test_what_leads_to_a_model_says_what_it_is(module: Any) -> None:
    builder = module.GraphBuilder(module.Device(use_gpu=False))
    assert repr(builder) == "<dml.GraphBuilder: 0 inputs>"
    x = module.input_tensor(builder, 0, module.TensorDesc(module.TensorDataType.FLOAT32, [2, 3]))
    assert repr(builder) == "<dml.GraphBuilder: 1 input>"
    binding = module.Binding(x, np.zeros((2, 3), np.float32))
    assert repr(binding) == "<Binding TensorDesc(FLOAT32, [2, 3])>"
    binding.release_data()
    assert repr(binding) == "<Binding TensorDesc(FLOAT32, [2, 3]), released>"
    assert repr(module.Size2D(3, 2)) == "dml.Size2D(3, 2)"
    assert repr(module.TensorPolicy.default) == "dml.TensorPolicy.default"
    assert repr(module.TensorPolicy.interleaved_channel) == "dml.TensorPolicy.interleaved_channel"


def test_several_outputs_say_what_they_are() -> None:
    empty = "<dml.Expression: empty>"
    assert repr(pydirectml.GRUOutputs()) == f"<GRUOutputs sequence={empty}, single={empty}>"
    assert repr(pydirectml.MaxPoolingOutputs()) == f"<MaxPoolingOutputs values={empty}, indices={empty}>"


@BOTH
def test_a_desc_is_made_in_four_ways(module: Any) -> None:
    float32, owned = module.TensorDataType.FLOAT32, module.TensorFlags.OWNED_BY_DML
    packed = module.TensorDesc(float32, [1, 2, 3])
    assert (packed.data_type, packed.flags) == (float32, module.TensorFlags.NONE)
    assert (packed.sizes, packed.strides) == ([1, 2, 3], None)
    assert (packed.total_tensor_size_in_bytes, packed.guaranteed_base_offset_alignment) == (24, 0)
    assert repr(packed) == "dml.TensorDesc of type 1 and shape [1,2,3] with flags 0"
    assert module.TensorDesc(float32, owned, [2]).flags is owned
    assert module.TensorDesc(data_type=float32, sizes=(2, 2), strides=[0, 1]).strides == [0, 1]
    assert module.TensorDesc(float32, [2, 2], None).strides is None
    whole = module.TensorDesc(float32, owned, [2, 2], [4, 1], 64, 16)
    assert (whole.total_tensor_size_in_bytes, whole.guaranteed_base_offset_alignment) == (64, 16)
    last = module.TensorPolicy.interleaved_channel
    assert module.TensorDesc(float32, [2, 3, 4, 5], last).strides == [60, 1, 15, 3]
    assert module.TensorDesc(float32, owned, [2, 3, 4], tensor_policy=last).strides == [12, 1, 3]
    assert module.TensorDesc(float32, [2, 3], module.TensorPolicy.default).strides is None


@BOTH
@pytest.mark.parametrize("arguments", [(), (1, [2]), ([2],), ("FLOAT32", [2]), (None, [2.5]), (None, [2], 1)])
def test_other_arguments_of_a_desc_are_type_errors(module: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"TensorDesc|no type of a tensor's elements"):
        module.TensorDesc(*arguments)


@BOTH
def test_sizes_that_no_tensor_has_are_refused(module: Any) -> None:
    with pytest.raises(dml.InvalidArgument, match="Sizes"):
        module.TensorDesc(module.TensorDataType.FLOAT32, [0])
    policy = module.TensorPolicy.interleaved_channel
    with pytest.raises(dml.InvalidArgument, match="strides and tensor_policy"):
        module.TensorDesc(module.TensorDataType.FLOAT32, [2, 2], strides=[2, 1], tensor_policy=policy)


@BOTH
def test_of_a_binding_only_the_elements_in_their_order_count(module: Any) -> None:
    desc = module.TensorDesc(module.TensorDataType.FLOAT32, [1, 1, 2, 3])
    data = np.arange(6, dtype=np.float64).reshape(3, 2).T
    np.testing.assert_array_equal(copied(module, desc, data).ravel(), data.ravel())
    half = module.TensorDesc(module.TensorDataType.FLOAT16, [3])
    assert copied(module, half, np.array([1, 2, 3], np.float16)).tolist() == [1, 2, 3]


@BOTH
def test_strided_inputs_are_bound_as_they_lie(module: Any) -> None:
    float32 = module.TensorDataType.FLOAT32
    repeated = module.TensorDesc(float32, [2, 3], [0, 1])
    assert copied(module, repeated, np.array([1, 2, 3], np.float32)).tolist() == [[1, 2, 3]] * 2
    last = module.TensorDesc(float32, [1, 2, 2, 2], module.TensorPolicy.interleaved_channel)
    pixels = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    np.testing.assert_array_equal(copied(module, last, pixels), pixels.transpose(0, 3, 1, 2))


@BOTH
def test_a_binding_of_another_size_is_refused(module: Any) -> None:
    desc = module.TensorDesc(module.TensorDataType.FLOAT32, [2, 2])
    for count in (3, 5):
        with pytest.raises(
            dml.InvalidArgument, match=rf"{count} elements, {count * 4} bytes; .* \[2, 2\] and 16"
        ):
            copied(module, desc, np.zeros(count))


def test_pydirectml_converts_any_array() -> None:
    desc = pydirectml.TensorDesc(pydirectml.TensorDataType.FLOAT32, [2])
    assert copied(pydirectml, desc, np.array([1, 2], np.int64)).tolist() == [1, 2]
    assert copied(pydirectml, desc, [True, False]).tolist() == [1, 0]
    indices = pydirectml.TensorDesc(pydirectml.TensorDataType.UINT32, [2])
    assert copied(pydirectml, indices, np.array([1.0, 2.0])).dtype == np.uint32


@pytest.mark.parametrize(
    ("given", "wanted"), [("float64", "FLOAT32"), ("float32", "FLOAT16"), ("uint8", "FLOAT32")]
)
def test_directml_narrows_within_a_kind_and_casts_what_is_safe(given: str, wanted: str) -> None:
    desc = directml.TensorDesc(directml.TensorDataType[wanted], [2])
    result = copied(directml, desc, np.array([1, 2], given))
    assert (result.tolist(), result.dtype.name) == ([1, 2], wanted.lower())


@pytest.mark.parametrize(("given", "wanted"), [("int32", "FLOAT32"), ("float32", "INT32"), ("uint8", "INT8")])
def test_directml_refuses_other_casts_with_a_value_error(given: str, wanted: str) -> None:
    desc = directml.TensorDesc(directml.TensorDataType[wanted], [2])
    with pytest.raises(
        ValueError, match=rf"{given} for a tensor of {wanted.lower()}; array.astype"
    ) as caught:
        copied(directml, desc, np.array([1, 2], given))
    assert isinstance(caught.value, dml.InvalidArgument)


@BOTH
def test_what_is_refused_is_caught_as_in_the_originals(module: Any) -> None:
    desc = module.TensorDesc(module.TensorDataType.FLOAT32, [2, 2])
    _, x, _ = identity(module, desc)
    for error in (RuntimeError, ValueError, dml.InvalidArgument):
        with pytest.raises(error, match="3 elements"):
            copied(module, desc, np.zeros(3))
        with pytest.raises(error, match=r"join\.axis: 5"):
            module.join([x, x], 5)


def weighted(module: Any) -> tuple[Any, Any, Any, Any, Any]:
    """A device, x, w which is OWNED_BY_DML, x + w, and its model."""
    device = module.Device(False)
    builder = module.GraphBuilder(device)
    float32 = module.TensorDataType.FLOAT32
    x = module.input_tensor(builder, 0, module.TensorDesc(float32, [2]))
    w = module.input_tensor(builder, 1, module.TensorDesc(float32, module.TensorFlags.OWNED_BY_DML, [2]))
    y = x + w
    return device, x, w, y, builder.build(module.ExecutionFlags.NONE, [y])


def test_pydirectml_reads_all_inputs_at_each_call() -> None:
    device, x, w, y, model = weighted(pydirectml)
    for weight in (1, 2):
        inputs = [pydirectml.Binding(x, [1, 2]), pydirectml.Binding(w, [weight, weight])]
        assert np.array(device.compute(model, inputs, [y])[0]).tolist() == [1 + weight, 2 + weight]


def test_directml_reads_what_it_owns_once_until_it_is_initialized_again() -> None:
    device, x, w, y, model = weighted(directml)
    inputs = [directml.Binding(x, [1.0, 2.0]), directml.Binding(w, [1.0, 1.0])]
    with pytest.raises(dml.InvalidArgument, match=r"not initialized; Device\.initialize does it"):
        device.dispatch(model, inputs, [y])
    assert device.compute(model, inputs, [y])[0].tolist() == [2, 3]
    changed = [inputs[0], directml.Binding(w, [10.0, 10.0])]
    assert device.compute(model, changed, [y])[0].tolist() == [2, 3]
    device.initialize(model, changed)
    changed[1].release_data()
    assert device.dispatch(model=model, inputs=changed, outputs=[y])[0].tolist() == [11, 12]
    changed[0].release_data()
    with pytest.raises(dml.InvalidArgument, match=r"inputs\[0\]: its data was released"):
        device.dispatch(model, changed, [y])
    assert (model.temporary_size, model.descriptor_count) >= (0, 3)
    assert model.persistent_size >= 0


@BOTH
def test_bindings_and_outputs_are_counted(module: Any) -> None:
    device, x, w, y, model = weighted(module)
    bindings = [module.Binding(x, [1.0, 2.0]), module.Binding(w, [1.0, 1.0])]
    with pytest.raises(dml.InvalidArgument, match="1 bindings; the graph has 2 inputs"):
        device.compute(model, bindings[:1], [y])
    with pytest.raises(dml.InvalidArgument, match="outputs: 2 expressions; the model was built for 1"):
        device.compute(model, bindings, [y, y])
    with pytest.raises(TypeError, match=r"inputs\[0\]: ndarray; a Binding is needed"):
        device.compute(model, [np.zeros(2), bindings[1]], [y])
    assert device.compute(model, bindings, [None]) == []


@BOTH
def test_inputs_that_nothing_needs_may_be_bound_or_not(module: Any) -> None:
    device = module.Device(False)
    builder = module.GraphBuilder(device)
    desc = module.TensorDesc(module.TensorDataType.FLOAT32, [1])
    x, unused = (module.input_tensor(builder, index, desc) for index in range(2))
    y = x * 2.0
    model = builder.build(module.ExecutionFlags.NONE, [y])
    for other in (None, module.Binding(unused, [0.0])):
        assert np.array(device.compute(model, [module.Binding(x, [3.0]), other], [y])[0]).tolist() == [6]


@BOTH
def test_results_are_arrays_and_buffers(module: Any) -> None:
    device, x, model = identity(module, module.TensorDesc(module.TensorDataType.FLOAT32, [2, 2]))
    (result,) = device.compute(model, [module.Binding(x, np.arange(4.0))], [x])
    assert isinstance(result, module.TensorData)
    assert type(np.array(result)) is np.ndarray
    assert memoryview(result).shape == (2, 2)


@BOTH
def test_wrong_classes_are_type_errors(module: Any) -> None:
    device, x, _ = identity(module, module.TensorDesc(module.TensorDataType.FLOAT32, [2]))
    with pytest.raises(TypeError, match=r"GraphBuilder\.device: str"):
        module.GraphBuilder("cpu")
    with pytest.raises(TypeError, match=r"build\.flags: int"):
        module.GraphBuilder(device).build(0, [x])
    with pytest.raises(TypeError, match=r"input_tensor\.scope: Device"):
        module.input_tensor(device, 0, x.get_output_desc())
    with pytest.raises(TypeError, match=r"tensor_desc: list"):
        module.input_tensor(module.GraphBuilder(device), 0, [2])
    with pytest.raises(TypeError, match=r"FusedActivation\.activation: 'relu'"):
        module.FusedActivation("relu")
    _, x, model = identity(module, x.get_output_desc())
    with pytest.raises(TypeError, match=r"build\.outputs: Expression; a list of expressions is needed"):
        module.GraphBuilder(device).build(module.ExecutionFlags.NONE, x)
    with pytest.raises(TypeError, match=r"outputs: Expression; a list of expressions is needed"):
        device.compute(model, [module.Binding(x, np.ones(2, np.float32))], x)
    with pytest.raises(dml.InvalidArgument, match=r"build\.outputs: none"):
        module.GraphBuilder(device).build(module.ExecutionFlags.NONE, [])


@BOTH
def test_long_chains_of_expressions_are_built(module: Any) -> None:
    device = module.Device(False)
    builder = module.GraphBuilder(device)
    x = y = module.input_tensor(builder, 0, module.TensorDesc(module.TensorDataType.FLOAT32, [1]))
    for _ in range(1200):
        y = y + 1.0
    model = builder.build(module.ExecutionFlags.NONE, [y])
    assert device.compute(model, [module.Binding(x, [1.0])], [y])[0].tolist() == [1201]
