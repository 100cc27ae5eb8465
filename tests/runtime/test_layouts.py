"""Layouts of arrays, arrays of other libraries, and packed elements."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import opendml as dml
from opendml import FLOAT32, BufferBinding, Device, InvalidArgument, TensorDataType, TensorDesc, descs
from opendml.runtime.memory.host_array import Array
from opendml.targets.cpu.machine import assumed, machine
from opendml.targets.cpu.pattern import Mode
from opendml.targets.reference.executable import ReferenceInstance
from tests.pairwise import pairwise
from tests.running import FLOATS, elements, laid_out, launches, memory_for, numpy_type, run, same_bits
from tests.runtime.object_model import SIZES as FOREIGN_SIZES
from tests.runtime.object_model import VALUES, celu, elu

TYPES = [np.float32, np.float16]
GUARD = 77.0

View = Callable[[Array, Sequence[int]], Array]
"""Takes a view of the given sizes out of memory that has room for all of them."""


def whole(sizes: Sequence[int]) -> int:
    return 4 * math.prod(size + 8 for size in sizes)


def packed_at(offset: int) -> View:
    return lambda memory, sizes: memory[offset : offset + math.prod(sizes)].reshape(sizes)


def padded_rows(memory: Array, sizes: Sequence[int]) -> Array:
    wider = [*sizes[:-1], sizes[-1] + 5]
    return packed_at(3)(memory, wider)[..., : sizes[-1]]


def every_second(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(1)(memory, [*sizes[:-1], sizes[-1] * 2])[..., ::2]


def every_second_row(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(0)(memory, [2 * sizes[0], *sizes[1:]])[1::2]


def reversed_last(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(2)(memory, sizes)[..., ::-1]


def reversed_all(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(0)(memory, sizes)[tuple([slice(None, None, -1)] * len(sizes))]


def transposed(memory: Array, sizes: Sequence[int]) -> Array:
    return packed_at(1)(memory, sizes[::-1]).T


def channels_last(memory: Array, sizes: Sequence[int]) -> Array:
    return np.moveaxis(packed_at(0)(memory, [sizes[0], *sizes[2:], sizes[1]]), -1, 1)


def first_repeated(memory: Array, sizes: Sequence[int]) -> Array:
    return np.broadcast_to(packed_at(0)(memory, [1, *sizes[1:]]), sizes)


def last_repeated(memory: Array, sizes: Sequence[int]) -> Array:
    return np.broadcast_to(packed_at(1)(memory, [*sizes[:-1], 1]), sizes)


def all_repeated(memory: Array, sizes: Sequence[int]) -> Array:
    return np.broadcast_to(memory[5], sizes)


WRITABLE: dict[str, View] = {
    "packed": packed_at(0),
    "odd-offset": packed_at(3),
    "padded-rows": padded_rows,
    "every-second": every_second,
    "every-second-row": every_second_row,
    "reversed-last": reversed_last,
    "reversed-all": reversed_all,
    "transposed": transposed,
    "channels-last": channels_last,
}
READABLE = WRITABLE | {
    "first-repeated": first_repeated,
    "last-repeated": last_repeated,
    "all-repeated": all_repeated,
}

SIZES = [[2, 3, 5, 7], [1, 4, 9, 33], [3, 64, 17, 19], [2, 2, 2, 130]]


def checked(
    x: Array, out_memory: Array, out: Array, function: Callable[..., Any], **attributes: float
) -> None:
    """Runs `function` from x to out and compares all of `out_memory` with what must be there then."""
    packed = function(np.ascontiguousarray(x), **attributes)
    out_memory[:] = GUARD
    expected_memory = out_memory.copy()
    offset = (out.__array_interface__["data"][0] - out_memory.__array_interface__["data"][0]) // out.itemsize
    view = np.lib.stride_tricks.as_strided(expected_memory[offset:], out.shape, out.strides)
    view[...] = packed
    assert function(x, out=out, **attributes) is out
    assert same_bits(out_memory, expected_memory)


def random_memory(count: int, type: Any) -> Array:
    return np.random.default_rng(count).uniform(-4, 4, count).astype(type)


@pairwise(read=READABLE, written=WRITABLE, sizes=SIZES, type=TYPES)
def test_any_view_gives_the_same_bits_as_packed(read: str, written: str, sizes: list[int], type: Any) -> None:
    x = READABLE[read](random_memory(whole(sizes), type), sizes)
    memory = random_memory(whole(sizes), type)
    out = WRITABLE[written](memory, sizes)
    checked(x, memory, out, dml.activation_celu, alpha=0.7)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    "count", [*range(1, 41), 63, 64, 65, 127, 129, 4095, 4096, 4097, 8191, 8192, 8193, 16383, 16385, 100_003]
)
def test_any_length_and_offset_writes_exactly_its_elements(count: int, type: Any) -> None:
    for offset in (0, 1, 3, 8):
        source = random_memory(count + 40, type)
        memory = random_memory(count + 40, type)
        checked(source[offset : offset + count], memory, memory[7 : 7 + count], dml.activation_elu, alpha=1.0)
        checked(source[7 : 7 + count], memory, memory[offset : offset + count], dml.activation_hard_sigmoid)


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize("offset", [0, 1, 5, 16, 31])
def test_an_output_that_bypasses_caches_writes_its_elements(offset: int, data_type: TensorDataType) -> None:
    tensor = TensorDesc(data_type, [3, 20_011])
    desc = descs.ActivationSoftsign(tensor, tensor)
    x = random_memory(60_033, numpy_type(tensor))
    plain = run(desc, [x]).ravel()
    assert not launches(desc)[0].pattern.stores[0].streamed
    # As if the last cache were tiny: a real one would take much memory to exceed.
    device = Device("cpu")
    with assumed(replace(machine(), last_cache_bytes=4096)):
        assert launches(desc)[0].pattern.stores[0].streamed
        compiled = device.compile_operator(device.create_operator(desc))
    memory = np.full(60_100, GUARD, x.dtype)
    compiled.bind([x], [memory[offset : offset + x.size]]).dispatch()
    assert same_bits(memory[offset : offset + x.size], plain)
    assert (memory[:offset] == GUARD).all()
    assert (memory[offset + x.size :] == GUARD).all()


@pytest.mark.parametrize("rank", range(1, 9))
@pytest.mark.parametrize("data_type", FLOATS)
def test_strides_of_any_rank(rank: int, data_type: TensorDataType, device: Device) -> None:
    sizes = [3, 2, 4, 1, 3, 2, 2, 5][:rank]
    packed = TensorDesc(data_type, sizes)
    values = random_memory(math.prod(sizes), numpy_type(packed)).reshape(sizes)
    plain = run(descs.ActivationTanh(packed, packed), [values], device)
    inside_out = [math.prod(sizes[:dimension]) for dimension in range(rank)]
    spread = [3 * stride for stride in packed.effective_strides]
    for read, written in [(inside_out, None), (None, inside_out), (spread, inside_out), (inside_out, spread)]:
        given, taken = TensorDesc(data_type, sizes, read), TensorDesc(data_type, sizes, written)
        assert same_bits(run(descs.ActivationTanh(given, taken), [laid_out(values, given)], device), plain)


@pytest.mark.parametrize("repeated", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]], ids=str)
def test_a_stride_of_zero_repeats_the_input(repeated: list[int], device: Device) -> None:
    sizes = [3, 5, 40]
    strides = [0 if d in repeated else stride for d, stride in enumerate((200, 40, 1))]
    given, packed = TensorDesc(FLOAT32, sizes, strides), TensorDesc(FLOAT32, sizes)
    memory = memory_for(given)
    memory[:] = np.linspace(-2, 2, memory.size)
    result = run(descs.ActivationCelu(given, packed), [memory], device)
    logical = np.ascontiguousarray(elements(memory, given))
    assert same_bits(result, run(descs.ActivationCelu(packed, packed), [logical], device))


@pytest.mark.parametrize(
    ("sizes", "mode"), [([2, 64, 33, 35], Mode.TRANSPOSED), ([1, 3, 130, 70], Mode.POINTWISE)]
)
@pytest.mark.parametrize("data_type", FLOATS)
def test_channels_first_to_channels_last_and_back(
    sizes: list[int], mode: Mode, data_type: TensorDataType, device: Device
) -> None:
    _, c, h, w = sizes
    first = TensorDesc(data_type, sizes)
    last = TensorDesc(data_type, sizes, [h * w * c, 1, w * c, c])
    values = random_memory(math.prod(sizes), numpy_type(first)).reshape(sizes)
    plain = run(descs.ActivationSigmoid(first, first), [values], device)
    assert launches(descs.ActivationSigmoid(first, last))[0].pattern.mode is mode
    to_last = run(descs.ActivationSigmoid(first, last), [values], device)
    to_first = run(descs.ActivationSigmoid(last, first), [laid_out(values, last)], device)
    assert same_bits(to_last, plain)
    assert same_bits(to_first, plain)


@pytest.mark.parametrize("data_type", FLOATS)
def test_numbers_of_channels_are_no_reason_to_transpose(data_type: TensorDataType, device: Device) -> None:
    sizes = [2, 64, 33, 35]
    image, numbers = TensorDesc(data_type, sizes), TensorDesc(data_type, sizes, [0, 1, 0, 0])
    desc = descs.ElementWiseMultiply(image, numbers, image)
    assert launches(desc)[0].pattern.mode is Mode.POINTWISE
    x = random_memory(math.prod(sizes), numpy_type(image)).reshape(sizes)
    scale = random_memory(64, numpy_type(numbers))
    spread = np.ascontiguousarray(np.broadcast_to(scale.reshape(1, 64, 1, 1), sizes))
    plain = run(descs.ElementWiseMultiply(image, image, image), [x, spread], device)
    assert same_bits(run(desc, [x, scale], device), plain)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1, 1, 1, 1, 1)], ids=str)
def test_one_element_in_any_rank(shape: tuple[int, ...]) -> None:
    x = np.full(shape or (1,), -1.0, np.float32)
    assert dml.activation_relu(x).shape == x.shape
    assert (dml.activation_relu(x) == 0).all()


def test_strides_of_dimensions_of_size_one_do_not_matter(device: Device) -> None:
    odd = TensorDesc(FLOAT32, [1, 6, 1], [12345, 1, 777])
    packed = TensorDesc(FLOAT32, [1, 6, 1])
    x = np.arange(-3, 3, dtype=np.float32)
    result = run(descs.ActivationRelu(odd, odd), [x], device)
    assert same_bits(result, run(descs.ActivationRelu(packed, packed), [x], device))


LARGE = [64, 300]


@pytest.fixture(params=["torch", "jax.numpy"])
def library(request: pytest.FixtureRequest) -> Any:
    """A library of arrays, with `asarray`."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


@pytest.fixture
def torch() -> Any:
    """PyTorch, whose arrays can be written."""
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The addresses that programs on the reference device are given."""
    addresses: list[int] = []
    bind = ReferenceInstance.bind

    def noted(self: ReferenceInstance, buffer: int, address: int) -> None:
        addresses.append(address)
        bind(self, buffer, address)

    monkeypatch.setattr(ReferenceInstance, "bind", noted)
    return addresses


def address(array: Any) -> int:
    """Where the elements are, by the library's own word."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.unsafe_buffer_pointer())


def large() -> Any:
    """An array at an address that every library takes over as it is, so large that results are too."""
    memory = Device("cpu").create_buffer(64 * 300 * 4).view(np.float32).reshape(LARGE)
    memory[...] = np.linspace(-3, 3, memory.size).reshape(LARGE)
    return memory


def model(sizes: Sequence[int] = FOREIGN_SIZES) -> dml.Model:
    graph = dml.Graph()
    x = graph.input("x", FLOAT32, sizes)
    return graph.compile({"y": dml.activation_celu(x, alpha=0.5)}, device="reference")


def test_immediate_calls_copy_nothing(library: Any, bound: list[int]) -> None:
    x = library.asarray(large())
    y = dml.activation_celu(x, alpha=0.5, device="reference")
    assert type(y) is type(x)
    assert bound == [address(x), address(y)]
    assert np.allclose(np.asarray(y), elu(large()), rtol=1e-6)


def test_models_copy_nothing(library: Any, bound: list[int]) -> None:
    x = library.asarray(large())
    y = model(LARGE)(x=x)["y"]
    assert type(y) is type(x)
    assert bound == [address(x), address(y)]
    assert np.allclose(np.asarray(y), elu(large()), rtol=1e-6)


def test_outputs_are_written_where_they_are(torch: Any, bound: list[int]) -> None:
    x, y = torch.asarray(VALUES.copy()), torch.zeros(FOREIGN_SIZES)
    assert dml.activation_celu(x, alpha=0.5, out=y, device="reference") is y
    assert bound == [address(x), address(y)]
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)
    y.zero_()
    bound.clear()
    model().run({"x": x}, {"y": y})
    assert bound == [address(x), address(y)]
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)


def test_bindings_are_used_where_they_are(torch: Any, bound: list[int]) -> None:
    x, y = torch.asarray(VALUES.copy()), torch.zeros(FOREIGN_SIZES)
    celu(Device("reference")).bind([x], [BufferBinding(y)]).dispatch()
    assert bound == [address(x), address(y)]
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)


def test_arrays_that_cannot_be_written_are_never_written(library: Any) -> None:
    if library.__name__ == "torch":
        pytest.skip("PyTorch has no read-only arrays")
    x, y = library.asarray(VALUES), library.zeros(FOREIGN_SIZES)
    calls = (
        lambda: dml.activation_celu(x, out=y),
        lambda: dml.activation_celu(y, out=y),
        lambda: model().run({"x": x}, {"y": y}),
        lambda: model().bind({"x": x}, {"y": y}),
        lambda: celu(Device("cpu")).bind([x], [y]),
        lambda: celu(Device("cpu")).bind([x], [BufferBinding(y)]),
    )
    for call in calls:
        with pytest.raises(InvalidArgument, match="read-only"):
            call()
    assert not np.asarray(y).any()


def test_arrays_of_other_libraries_are_told_how_they_get_another_type(torch: Any) -> None:
    with pytest.raises(
        dml.InvalidArgument, match=r"use opendml\.cast\(input, output_type=opendml\.FLOAT32\)$"
    ):
        dml.activation_celu(torch.ones(3, dtype=torch.int32))


def test_views_of_other_libraries_keep_their_strides(torch: Any) -> None:
    x = torch.asarray(VALUES.copy()).transpose(0, 1)
    y = dml.activation_celu(x, alpha=0.5)
    assert np.allclose(y.numpy(), elu(VALUES).transpose(1, 0, 2), rtol=1e-6)
    with pytest.raises(InvalidArgument, match="an array that is not contiguous"):
        celu(Device("cpu")).bind([x], [torch.zeros(FOREIGN_SIZES)])


def test_bindings_of_another_order_or_type_are_refused(torch: Any) -> None:
    turned, wide = (
        torch.zeros(FOREIGN_SIZES[::-1]).permute(2, 1, 0),
        torch.zeros(FOREIGN_SIZES, dtype=torch.float64),
    )
    for wrong, message in ((turned, "not contiguous in row-major order"), (wide, "elements of float64")):
        for binding in (wrong, BufferBinding(wrong)):
            with pytest.raises(InvalidArgument, match=f"InputTensor: .*{message}"):
                celu(Device("cpu")).bind([binding], [torch.zeros(FOREIGN_SIZES)])


def test_results_of_derived_classes_are_arrays_of_their_library(torch: Any) -> None:
    class Derived(torch.Tensor):  # type: ignore[misc]
        """A class of another module than PyTorch's."""

    y = dml.activation_celu(torch.asarray(VALUES.copy()).as_subclass(Derived), alpha=0.5)
    assert isinstance(y, torch.Tensor)
    assert np.allclose(y.numpy(), elu(VALUES), rtol=1e-6)


def test_results_of_classes_of_no_library_are_numpy_arrays() -> None:
    class Own:
        """All that DLPack asks for, and nothing that makes arrays."""

        def __dlpack__(self, **options: Any) -> Any:
            return VALUES.copy().__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return VALUES.__dlpack_device__()

    for y in (dml.activation_celu(Own(), alpha=0.5), model()(x=Own())["y"]):
        assert type(y) is np.ndarray
        assert np.allclose(y, elu(VALUES), rtol=1e-6)


few = settings(max_examples=20, derandomize=True, database=None, deadline=None)

TYPES_PACKING = [type for type in TensorDataType if type is not TensorDataType.UNKNOWN]


def _dtype(data_type: TensorDataType) -> np.dtype[Any]:
    name = data_type.name.lower()
    return np.dtype(getattr(ml_dtypes, name) if name.endswith("int4") else name)


@pytest.mark.parametrize("data_type", TYPES_PACKING)
@few
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 999))
def test_buffers_keep_every_element(data_type: TensorDataType, sizes: list[int], seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 8, sizes).astype(_dtype(data_type))
    tensor = TensorDesc(data_type, sizes)
    buffer = dml.to_buffer(array)
    assert buffer.nbytes == tensor.size_in_bytes
    result = dml.from_buffer(buffer, tensor)
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize(
    ("dtype", "numbers", "data"),
    [
        (ml_dtypes.uint4, [1, 2, 15], [0x21, 0x0F, 0, 0]),
        (ml_dtypes.int4, [-8, 7, -1, 0, 3], [0x78, 0x0F, 0x03, 0]),
        (ml_dtypes.int4, list(range(-8, 8)), [0x98, 0xBA, 0xDC, 0xFE, 0x10, 0x32, 0x54, 0x76]),
        (np.int16, [-2, 258], [0xFE, 0xFF, 0x02, 0x01]),
    ],
)
def test_the_first_of_two_elements_is_the_low_half(dtype: Any, numbers: list[int], data: list[int]) -> None:
    array = np.array(numbers, dtype)
    assert dml.to_buffer(array).tolist() == data
    tensor = TensorDesc(TensorDataType[array.dtype.name.upper()], [len(numbers)])
    np.testing.assert_array_equal(dml.from_buffer(bytes(data), tensor), array)


@few
@given(arrays.arrays(np.int8, arrays.array_shapes(max_dims=3), elements=st.integers(-8, 7)))
def test_layouts_of_arrays_do_not_matter(values: Any) -> None:
    array = values.astype(ml_dtypes.int4)
    turned = np.asfortranarray(array.T).T
    assert dml.to_buffer(turned).tolist() == dml.to_buffer(array).tolist()


def test_arrays_of_other_libraries_are_copied() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert dml.to_buffer(torch.tensor([1, 258], dtype=torch.int16)).tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize("error", [TypeError, RuntimeError, OSError])
def test_what_numpy_cannot_copy_is_refused(error: type[Exception]) -> None:
    class OnADevice:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise error("not in host memory")

    with pytest.raises(
        InvalidArgument, match=r"array: OnADevice that NumPy cannot copy \(not in host memory\)"
    ):
        dml.to_buffer(OnADevice())


def test_strides_of_tensors_count_elements_also_of_4_bits() -> None:
    buffer = dml.to_buffer(np.arange(6).astype(ml_dtypes.uint4))
    transposed = TensorDesc(dml.UINT4, [3, 2], strides=[1, 3])
    assert dml.from_buffer(buffer, transposed).tolist() == [[0, 3], [1, 4], [2, 5]]
    repeated = TensorDesc(dml.UINT4, [2, 3], strides=[0, 2])
    assert dml.from_buffer(buffer, repeated).tolist() == [[0, 2, 4], [0, 2, 4]]


def test_results_are_copies() -> None:
    buffer = dml.to_buffer(np.zeros(4, np.float32))
    array = dml.from_buffer(buffer, TensorDesc(dml.FLOAT32, [4]))
    array[...] = 1
    assert not buffer.any()


@pytest.mark.parametrize(
    ("buffer", "tensor", "message"),
    [
        (bytes(3), TensorDesc(dml.INT4, [3]), "buffer: 3 bytes; the tensor needs 4"),
        (bytes(4), TensorDesc(dml.UINT4, [9]), "buffer: 4 bytes; the tensor needs 8"),
        (7, TensorDesc(dml.INT4, [3]), "buffer: int; a contiguous buffer is needed"),
        (
            np.zeros((4, 4))[:, ::2],
            TensorDesc(dml.INT4, [3]),
            "buffer: ndarray; a contiguous buffer is needed",
        ),
        (bytes(4), TensorDesc(dml.INT4, [0]), r"Sizes: \[0\]; every size must be at least 1"),
        (bytes(4), TensorDesc(TensorDataType.UNKNOWN, [1]), "has no size"),
        (bytes(4), TensorDesc(dml.FLOAT32, [1] * 65), "NumPy has no such array"),
        (bytes(4), TensorDesc(dml.FLOAT32, [2**48], [0]), "NumPy has no such array"),
        (bytes(4), TensorDesc(dml.FLOAT32, [2**80], [0]), "NumPy has no such array"),
    ],
)
def test_wrong_buffers_are_refused(buffer: Any, tensor: TensorDesc, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        dml.from_buffer(buffer, tensor)


@pytest.mark.parametrize(
    "array", [np.zeros(3, np.complex64), np.array(["a"]), np.zeros(2, ml_dtypes.bfloat16)]
)
def test_arrays_of_other_types_are_refused(array: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"array: elements of .*; DirectML has .*float32.*uint4, int4"):
        dml.to_buffer(array)


def test_unpacked_arrays_are_no_buffers() -> None:
    tensor = TensorDesc(dml.UINT8, [8])
    desc = descs.ActivationRelu(TensorDesc(dml.FLOAT32, [2]), TensorDesc(dml.FLOAT32, [2]))
    device = dml.Device("reference")
    compiled = device.compile_operator(device.create_operator(desc))
    unpacked = np.zeros(tensor.element_count, ml_dtypes.int4)
    with pytest.raises(InvalidArgument, match=r"InputTensor: an array of int4, each in a byte"):
        compiled.bind([unpacked], [np.zeros(2, np.float32)])


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_other_operators_than_those_of_quantization_refuse_4_bits(dtype: Any) -> None:
    name = np.dtype(dtype).name.upper()
    with pytest.raises(InvalidArgument, match=f"activation_relu.input: {name}; .* allow FLOAT32"):
        dml.activation_relu(np.zeros(3, dtype))


def test_the_package_of_4_bit_types_is_loaded_when_it_is_needed() -> None:
    code = "import sys, opendml; sys.exit('ml_dtypes' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
