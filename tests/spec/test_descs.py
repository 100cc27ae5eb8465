"""Descs and tensor descs are immutable values of plain Python numbers."""

from __future__ import annotations

import copy
import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendml.errors import DeviceRemoved, Error, InvalidArgument, Unsupported
from opendml.spec.descs import (
    ActivationCelu,
    ActivationElu,
    ElementWiseFloor,
    Join,
    MeanVarianceNormalization1,
    RoiPooling,
)
from opendml.spec.enums import DATA_TYPE_BITS, TensorDataType, TensorFlags
from opendml.spec.operator_desc import ScaleBias, Size2D
from opendml.spec.tensor_desc import TensorDesc, calc_buffer_tensor_size, packed_strides
from opendml.spec.values import as_tuple
from tests.spec.valid_descs import F16, F32, changed

TENSOR = TensorDesc(F32, [2, 3])


@pytest.mark.parametrize(
    "value",
    [
        TENSOR,
        TensorDesc(F16, [2], [4], TensorFlags.OWNED_BY_DML, total_tensor_size_in_bytes=64),
        ActivationCelu(TENSOR, TENSOR, alpha=2.0),
        MeanVarianceNormalization1(TENSOR, None, None, TENSOR, axes=[0], fused_activation=ActivationElu()),
    ],
)
def test_copies_are_equal(value: Any) -> None:
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value
        assert hash(other) == hash(value)
        assert repr(other) == repr(value)


def test_a_scale_and_bias_is_a_value_and_no_array() -> None:
    plain = as_tuple(ScaleBias(np.float32(0.5), 2.0))
    assert plain == ScaleBias(0.5, 2.0)
    assert type(plain) is ScaleBias
    assert type(plain.scale) is float


def test_each_field_makes_a_tensor_different() -> None:
    changes: list[dict[str, Any]] = [
        {"data_type": F16},
        {"sizes": [3, 2]},
        {"strides": [3, 1]},
        {"flags": TensorFlags.OWNED_BY_DML},
        {"total_tensor_size_in_bytes": 24},
        {"guaranteed_base_offset_alignment": 16},
    ]
    tensors = [changed(TENSOR, **change) for change in [{}, *changes]]
    assert len(set(tensors)) == len(tensors)


def test_descs_of_different_operators_differ() -> None:
    assert ActivationCelu(TENSOR, TENSOR) != ActivationElu(TENSOR, TENSOR)
    assert len({ActivationCelu(), ActivationElu(), ActivationCelu()}) == 2


def test_values_cannot_be_changed() -> None:
    desc = ActivationCelu()
    with pytest.raises(AttributeError, match=r"immutable; use replace\(alpha=...\)"):
        desc.alpha = 2.0
    with pytest.raises(AttributeError, match="immutable"):
        TENSOR.sizes = (1,)
    with pytest.raises(AttributeError, match="immutable"):
        del desc.alpha
    with pytest.raises(AttributeError, match="immutable"):
        del TENSOR.sizes


def test_replace_changes_a_copy() -> None:
    desc = ActivationCelu(TENSOR, TENSOR, alpha=2.0)
    assert desc.replace(alpha=3.0) == ActivationCelu(TENSOR, TENSOR, alpha=3.0)
    assert desc.alpha == 2.0
    with pytest.raises(TypeError, match="beta"):
        desc.replace(beta=1.0)


def test_repr_names_fields_and_leaves_a_tensor_s_defaults_out() -> None:
    assert repr(ActivationCelu(TENSOR)) == (
        "ActivationCelu(input_tensor=TensorDesc(FLOAT32, [2, 3]), output_tensor=None, alpha=1.0)"
    )
    full = TensorDesc(F32, [2], [1], TensorFlags.OWNED_BY_DML, guaranteed_base_offset_alignment=64)
    expected = "TensorDesc(FLOAT32, [2], strides=[1], flags=<TensorFlags.OWNED_BY_DML: 1>, "
    assert repr(full) == expected + "guaranteed_base_offset_alignment=64)"
    assert repr(TensorDesc("x", 7, flags=np.ones(2))).startswith("TensorDesc('x', 7, flags=array(")  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [[2, 3], (2, 3), range(2, 4), np.array([2, 3]), [np.int64(2), np.uint8(3)]])
def test_sizes_become_a_tuple_of_int(sizes: Any) -> None:
    tensor = TensorDesc(F32, sizes, strides=sizes)
    assert tensor.sizes == tensor.strides == (2, 3)
    assert all(type(value) is int for value in tensor.sizes)


def test_arrays_of_several_dimensions_are_values_too() -> None:
    tensor = TensorDesc(F32, np.ones((2, 2), int))  # type: ignore[arg-type]
    assert tensor == TensorDesc(F32, np.ones((2, 2), int))  # type: ignore[arg-type]
    assert repr(tensor) == "TensorDesc(FLOAT32, [[1, 1], [1, 1]])"
    for other in (np.float32, np.ndarray, np.array(3)):
        assert as_tuple(other) is other


def test_numpy_scalars_become_plain_numbers() -> None:
    assert type(ActivationCelu(alpha=np.float32(0.5)).alpha) is float  # type: ignore[arg-type]
    desc = MeanVarianceNormalization1(axes=np.array([1, 2]), normalize_variance=np.True_)  # type: ignore[arg-type]
    assert desc.axes == (1, 2)
    assert desc.normalize_variance is True
    scaled = ElementWiseFloor(scale_bias=ScaleBias(np.float32(0.5), np.int64(2)))  # type: ignore[arg-type]
    assert [type(value) for value in scaled.scale_bias or ()] == [float, int]
    region = RoiPooling(spatial_scale=1.0, pooled_size=Size2D(np.int64(2), np.uint8(3)))  # type: ignore[arg-type]
    assert [type(value) for value in region.pooled_size or ()] == [int, int]


def test_arrays_of_tensors_become_tuples() -> None:
    assert Join([TENSOR, TENSOR], TENSOR, axis=0).input_tensors == (TENSOR, TENSOR)


def test_counts_are_no_arguments() -> None:
    with pytest.raises(TypeError, match="axis_count"):
        MeanVarianceNormalization1(axes=[1], axis_count=1)  # type: ignore[call-arg]


def test_properties_of_a_tensor() -> None:
    tensor = TensorDesc(F16, [2, 3], [4, 1])
    assert (tensor.dimension_count, tensor.element_count) == (2, 6)
    assert (tensor.effective_strides, TENSOR.effective_strides) == ((4, 1), (3, 1))
    assert (tensor.size_in_bytes, TENSOR.size_in_bytes) == (16, 24)
    assert TensorDesc(F32, [2], total_tensor_size_in_bytes=64).size_in_bytes == 64


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "expected"),
    [
        ("FLOAT32", [1], None, 4),
        ("FLOAT16", [1], None, 4),
        ("FLOAT16", [3], None, 8),
        ("UINT8", [5], None, 8),
        ("INT4", [7], None, 4),
        ("UINT4", [9], None, 8),
        ("UINT4", [2], [8], 8),
        ("FLOAT64", [2, 3], None, 48),
        ("FLOAT32", [2, 3], [0, 0], 4),
        ("FLOAT32", [2, 3], [10, 2], 60),
        ("FLOAT32", [2**16, 2**16], None, 2**34),
        ("INT8", [2, 2**31], [2**31, 1], 2**32),
    ],
)
def test_calc_buffer_tensor_size(
    data_type: str, sizes: list[int], strides: list[int] | None, expected: int
) -> None:
    assert calc_buffer_tensor_size(TensorDataType[data_type], sizes, strides) == expected


@given(
    st.sampled_from(sorted(DATA_TYPE_BITS)),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=4),
)
def test_size_covers_the_farthest_element(
    data_type: TensorDataType, dimensions: list[tuple[int, int]]
) -> None:
    sizes, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    farthest = max(
        sum(i * stride for i, stride in zip(index, strides, strict=True))
        for index in product(*(range(size) for size in sizes))
    )
    size = calc_buffer_tensor_size(data_type, sizes, strides)
    bits = (farthest + 1) * DATA_TYPE_BITS[data_type]
    assert size % 4 == 0
    assert bits <= 8 * size < bits + 32
    packed = calc_buffer_tensor_size(data_type, sizes, packed_strides(sizes))
    assert packed == calc_buffer_tensor_size(data_type, sizes)


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "message"),
    [
        (TensorDataType.UNKNOWN, [1], None, "DataType: .*UNKNOWN.* has no size"),
        ("x", [1], None, "DataType: 'x' has no size"),
        (F32, 3, None, r"Sizes: 3; must be a sequence of whole numbers"),
        (F32, [], None, r"Sizes: \[\]; every size must be at least 1"),
        (F32, [2, 0], None, r"Sizes: \[2, 0\]; every size must be at least 1"),
        (F32, [2, 2], [1], r"Strides: \[1\]; must be one stride of 0 or more per size"),
        (F32, [2], [-1], r"Strides: \[-1\]; must be one stride of 0 or more per size"),
        (F32, [2], [], r"Strides: \[\]; must be one stride of 0 or more per size"),
    ],
)
def test_calc_buffer_tensor_size_refuses(data_type: Any, sizes: Any, strides: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        calc_buffer_tensor_size(data_type, sizes, strides)


def test_invalid_argument_joins_its_failures() -> None:
    error = InvalidArgument(["one", "two"])
    assert error.failures == ("one", "two")
    assert str(error) == "one\ntwo"
    assert pickle.loads(pickle.dumps(error)).failures == error.failures
    assert InvalidArgument("one").failures == ("one",)
    assert all(issubclass(kind, Error) for kind in (InvalidArgument, Unsupported, DeviceRemoved))
