"""`to_buffer` and `from_buffer`, and elements of 4 bits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import opendml as dml
from opendml import InvalidArgument, TensorDataType, TensorDesc, descs

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
