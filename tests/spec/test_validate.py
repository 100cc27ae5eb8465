"""Validation of descs and tensors, and its failures."""

from __future__ import annotations

import pickle
import time
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendml as dml
from opendml.errors import Failure, InvalidArgument
from opendml.spec import schema
from opendml.spec.descs import (
    ActivationCelu,
    ActivationHardSigmoid,
    DynamicQuantizeLinear,
    MeanVarianceNormalization1,
    OperatorDesc,
    Quantize,
    Rnn,
    ScaleBias,
    Size2D,
    desc_class,
)
from opendml.spec.enums import (
    FeatureLevel,
    PaddingMode,
    QuantizationType,
    ReduceFunction,
    TensorDataType,
    TensorFlags,
)
from opendml.spec.overlap import overlaps
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures, validate
from tests.spec.valid_descs import F16, F32, LEVELS, NAMES, celu, valid_desc
from tests.spec.valid_sizes import STACKED


def test_a_valid_desc_passes() -> None:
    tensor = TensorDesc(F32, [2, 3])
    validate(celu(tensor))
    validate(celu(tensor), "3_0")
    validate(celu(tensor), feature_level=FeatureLevel.LEVEL_4_0)


def test_all_failures_are_raised_together() -> None:
    with pytest.raises(InvalidArgument) as caught:
        validate(ActivationCelu(), "3_0")
    assert caught.value.failures == (
        "ACTIVATION_CELU.InputTensor: missing; required",
        "ACTIVATION_CELU.OutputTensor: missing; required",
    )


def test_messages_of_the_design() -> None:
    wide, flat = TensorDesc(F32, [1] * 9), TensorDesc(F32, [1, 2, 3])
    image, scale = TensorDesc(F32, [1, 3, 8, 8]), TensorDesc(F32, [1, 3, 1, 1])
    assert failures(celu(wide))[0] == (
        "ACTIVATION_CELU.InputTensor: 9 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"
    )
    assert failures(ActivationHardSigmoid(flat, flat), "2_0")[0] == (
        "ACTIVATION_HARD_SIGMOID.InputTensor: 3 dimensions; DML_FEATURE_LEVEL_2_0 allows 4 to 5 "
        "(1 to 8 from DML_FEATURE_LEVEL_3_0)"
    )
    assert failures(MeanVarianceNormalization1(image, None, scale, image, axes=[2, 3]), "5_1") == [
        "MEAN_VARIANCE_NORMALIZATION1.ScaleTensor: missing; "
        "required with BiasTensor below DML_FEATURE_LEVEL_5_2"
    ]


def test_an_unknown_level_is_an_invalid_argument() -> None:
    with pytest.raises(InvalidArgument, match="feature level: '7_0'"):
        validate(ActivationCelu(), "7_0")


class Nameless(OperatorDesc):
    """A desc of no operator."""


class Invented(OperatorDesc):
    """A desc of an operator that is none of DirectML's."""

    operator = "ACTIVATION_SELU"
    fields = ()


@pytest.mark.parametrize(
    "desc", [None, 3, "ACTIVATION_CELU", ActivationCelu, OperatorDesc(), Nameless(), Invented()]
)
def test_something_else_than_a_desc(desc: Any) -> None:
    [message] = failures(desc)
    assert message.endswith("; must be the desc of an operator, such as opendml.descs.ActivationCelu(...)")


class Hostile:
    """An object whose repr and comparisons fail."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise TypeError("no hash")


def test_hostile_objects_are_named_by_their_class() -> None:
    tensor = TensorDesc(F32, [2])
    assert failures(celu(tensor, alpha=Hostile())) == ["ACTIVATION_CELU.Alpha: <Hostile>; must be a number"]
    found = failures(celu(TensorDesc(Hostile(), Hostile(), Hostile(), Hostile()), tensor))  # type: ignore[arg-type]
    assert found[0] == "ACTIVATION_CELU.InputTensor.DataType: <Hostile>; must be a TensorDataType"


# Of a few letters: to know all that Unicode has takes hypothesis longer than all tests here.
TEXTS = st.text("aZ0_ \0é€😀", max_size=3)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**64, -1, 10**400]),
    st.floats(),
    TEXTS,
    st.binary(max_size=3),
    st.complex_numbers(),
    st.sampled_from(
        [*TensorDataType, *PaddingMode, *ReduceFunction, TensorFlags.OWNED_BY_DML, TensorFlags(6)]
    ),
    st.sampled_from(
        [np.float32(1), np.int64(2), np.uint8(3), np.True_, np.array(1.5), np.ones(3), np.ones((2, 2))]
    ),
    st.builds(Hostile),
    st.builds(object),
    st.sampled_from([int, len, ...]),
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(inner, inner),
        st.dictionaries(TEXTS, inner, max_size=2),
        st.builds(ScaleBias, inner, inner),
        st.builds(Size2D, inner, inner),
    ),
    max_leaves=6,
)
SIZES = st.lists(st.one_of(st.integers(1, 4), st.sampled_from([0, 2**16, 2**32 - 1]), SCALARS), max_size=9)
TENSORS: st.SearchStrategy[Any] = st.builds(
    TensorDesc,
    st.one_of(st.sampled_from(TensorDataType), SCALARS),
    st.one_of(st.lists(st.integers(1, 4), max_size=8), SIZES, NESTED),
    st.one_of(st.none(), st.lists(st.integers(0, 2**20), max_size=8), SIZES, NESTED),
    st.one_of(st.sampled_from([TensorFlags.NONE, TensorFlags.OWNED_BY_DML]), SCALARS),
    total_tensor_size_in_bytes=st.one_of(st.none(), SCALARS),
    guaranteed_base_offset_alignment=st.one_of(st.sampled_from([0, 16, 64]), SCALARS),
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    TENSORS,
    st.lists(TENSORS, max_size=2),
    NESTED,
    st.builds(ActivationCelu, TENSORS | st.none(), st.none(), alpha=SCALARS),
    st.lists(st.builds(ActivationCelu, alpha=SCALARS), max_size=2),
)


@given(st.data(), st.sampled_from(NAMES), st.sampled_from(LEVELS))
@settings(max_examples=150, deadline=None)
def test_garbage_gives_messages_alone(data: st.DataObject, operator: str, level: FeatureLevel) -> None:
    """Any mix of valid and senseless values, in any operator, at any level."""
    fields = desc_class(operator).fields
    newest = valid_desc(operator, FeatureLevel.LEVEL_6_4)
    values = {name: data.draw(st.one_of(st.just(getattr(newest, name)), VALUES), name) for name in fields}
    desc = desc_class(operator)(**values)
    found = failures(desc, level)
    assert all(message.startswith(operator) for message in found)
    if found:
        with pytest.raises(InvalidArgument) as caught:
            validate(desc, level)
        assert list(caught.value.failures) == found
    else:
        validate(desc, level)


def test_arrays_that_a_malformed_tensor_should_count_are_not_gone_through() -> None:
    gradient = TensorDesc("FLOAT64", [5, 2])
    wrong: Any = []
    desc = desc_class("SLICE_GRAD")(
        input_gradient_tensor=wrong,
        output_gradient_tensor=gradient,
        input_window_offsets=[1, 0],
        input_window_sizes=[],
        input_window_strides=[1, 1],
    )
    assert failures(desc) == ["SLICE_GRAD.InputGradientTensor: []; must be a TensorDesc"]


SIZE = st.one_of(st.integers(1, 8), st.sampled_from([2**16, 2**32 - 1]))
NUMBER = st.one_of(st.integers(0, 9), st.sampled_from([2**31 - 1, 2**32 - 1, -1, -(2**31)]))


@given(st.data(), st.sampled_from(NAMES))
@settings(max_examples=250, deadline=None)
def test_plausible_descs_give_messages_and_no_other_exception(data: st.DataObject, operator: str) -> None:
    """Well-formed values that do not belong together: what the rules between fields calculate with."""
    having = data.draw(st.sampled_from([None, *STACKED])) if "ATTENTION" in operator else None
    desc = valid_desc(operator, FeatureLevel.LEVEL_6_4, having=having)
    changes = {}
    for field in schema.operator(operator).fields:
        if not field.is_count and data.draw(st.booleans(), field.name):
            before = getattr(desc, field.python_name)
            changes[field.python_name] = data.draw(plausible(before), field.python_name)
    found = failures(desc.replace(**changes))
    assert all(message.startswith(f"{operator}.") for message in found)


def plausible(before: Any) -> st.SearchStrategy[Any]:
    """Values of the same kind, mostly with as many dimensions or elements."""
    if before is None:
        return st.builds(TensorDesc, st.just(F32), st.lists(SIZE, min_size=1, max_size=8))
    if isinstance(before, TensorDesc):
        rank = len(before.sizes)
        same, other = st.lists(SIZE, min_size=rank, max_size=rank), st.lists(SIZE, min_size=1, max_size=8)
        return st.builds(TensorDesc, st.just(before.data_type), st.one_of(same, other)) | st.none()
    if isinstance(before, Size2D):
        return st.builds(Size2D, NUMBER, NUMBER)
    if isinstance(before, tuple) and before and isinstance(before[0], TensorDesc):
        return st.lists(plausible(before[0]), min_size=1, max_size=3)
    if isinstance(before, tuple) and before and isinstance(before[0], OperatorDesc):
        return st.integers(1, 7).map(lambda count: before[:1] * count)
    if isinstance(before, tuple):
        return st.lists(NUMBER, min_size=len(before), max_size=len(before))
    if isinstance(before, IntEnum):
        return st.sampled_from(type(before))
    return st.just(before) if isinstance(before, bool | float) else NUMBER


LARGEST = 2**32 - 1
ALIGNMENT = "must be 0 or a power of two of at least the element's 4 bytes, below 2^32"


def input_failures(tensor: Any) -> list[str]:
    """Failures of a CELU's input, which may repeat elements; its output is packed and of the same sizes."""
    desc = celu(tensor, TensorDesc(tensor.data_type, tensor.sizes))
    return [message for message in failures(desc) if ".InputTensor" in message]


def output_failures(tensor: Any) -> list[str]:
    desc = celu(TensorDesc(tensor.data_type, tensor.sizes), tensor)
    return [message for message in failures(desc) if ".OutputTensor" in message]


@pytest.mark.parametrize(
    "tensor",
    [
        TensorDesc(F32, [1]),
        TensorDesc(F16, [1, 2, 3, 4, 5, 6, 7, 8]),
        TensorDesc(F32, [LARGEST]),
        TensorDesc(F32, [65535, 65537]),
        TensorDesc(F32, [2, 3], [3, 1]),
        TensorDesc(F32, [2, 3], [1, 2]),
        TensorDesc(F32, [2, 3], [100, 7]),
        TensorDesc(F32, [2, 3], [3, 2]),
        TensorDesc(F32, [1, 3], [0, 1]),
        TensorDesc(F32, [2, 3], total_tensor_size_in_bytes=24),
        TensorDesc(F32, [2, 3], total_tensor_size_in_bytes=2**40),
        TensorDesc(F16, [3], total_tensor_size_in_bytes=8),
        TensorDesc(F16, [3], guaranteed_base_offset_alignment=2),
        TensorDesc(F32, [3], guaranteed_base_offset_alignment=2**31),
    ],
)
def test_accepts(tensor: TensorDesc) -> None:
    assert input_failures(tensor) == []
    assert output_failures(tensor) == []


@pytest.mark.parametrize("strides", [[0, 1], [0, 0], [1, 1], [2, 1]])
def test_an_input_may_repeat_elements(strides: list[int]) -> None:
    assert input_failures(TensorDesc(F32, [2, 3], strides)) == []


def test_an_input_may_be_owned() -> None:
    assert input_failures(TensorDesc(F32, [2], flags=TensorFlags.OWNED_BY_DML)) == []


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (TensorDesc(F32, [2, 0]), ".Sizes[1]: 0; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, [-1]), ".Sizes[0]: -1; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, [2**32]), ".Sizes[0]: 4294967296; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, [2.0]), ".Sizes[0]: 2.0; must be a whole number from 1 to 4294967295"),  # type: ignore[list-item]
        (TensorDesc(F32, [True]), ".Sizes[0]: True; must be a whole number from 1 to 4294967295"),
        (TensorDesc(F32, "12"), ".Sizes: '12'; must be a sequence of whole numbers"),  # type: ignore[arg-type]
        (TensorDesc(F32, None), ".Sizes: None; must be a sequence of whole numbers"),  # type: ignore[arg-type]
        (
            TensorDesc(F32, np.ones((1, 2))),  # type: ignore[arg-type]
            ".Sizes[0]: [1.0, 1.0]; must be a whole number from 1 to 4294967295",
        ),
        (TensorDesc(F32, []), ": 0 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"),
        (TensorDesc(F32, [1] * 1000), ": 1000 dimensions; DML_FEATURE_LEVEL_3_0 and above allow 1 to 8"),
        (
            TensorDesc(F32, [65536, 65536]),
            ".Sizes: [65536, 65536] are 4294967296 elements; a tensor has at most 4294967295",
        ),
        (
            TensorDesc(F32, [2**31] * 8),
            f".Sizes: {[2**31] * 8} are {2**248} elements; a tensor has at most 4294967295",
        ),
        (TensorDesc(F32, [2, 3], [1]), ".Strides: 1 strides for 2 dimensions; must be one for each"),
        (TensorDesc(F32, [2], 1), ".Strides: 1; must be a sequence of whole numbers, or None"),  # type: ignore[arg-type]
        (TensorDesc(F32, [2], [-1]), ".Strides[0]: -1; must be a whole number from 0 to 4294967295"),
        (
            TensorDesc(F32, [2], [2**32]),
            ".Strides[0]: 4294967296; must be a whole number from 0 to 4294967295",
        ),
        (TensorDesc(F32, [2], ["1"]), ".Strides[0]: '1'; must be a whole number from 0 to 4294967295"),  # type: ignore[list-item]
        (
            TensorDesc(F32, [3], [2**31]),
            ".Strides: [2147483648] reach over 4294967297 elements; a tensor spans at most 4294967295",
        ),
        (TensorDesc(F32, [2], flags=TensorFlags(2)), ".Flags: 0x2 are no known flags"),
        (TensorDesc(F32, [2], flags=TensorFlags(0x101)), ".Flags: 0x100 are no known flags"),
        (TensorDesc(F32, [2], flags=2), ".Flags: 2; must be TensorFlags"),  # type: ignore[arg-type]
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes=14),
            ".TotalTensorSizeInBytes: 14; must be a multiple of 4",
        ),
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes=8),
            ".TotalTensorSizeInBytes: 8; sizes, strides and type need at least 12",
        ),
        (
            TensorDesc(F16, [2, 2], [5, 1], total_tensor_size_in_bytes=12),
            ".TotalTensorSizeInBytes: 12; sizes, strides and type need at least 16",
        ),
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes=2**64),
            ".TotalTensorSizeInBytes: 18446744073709551616; must be a whole number from 0 to "
            "18446744073709551615, or None",
        ),
        (
            TensorDesc(F32, [3], total_tensor_size_in_bytes="12"),  # type: ignore[arg-type]
            ".TotalTensorSizeInBytes: '12'; must be a whole number from 0 to 18446744073709551615, or None",
        ),
        (
            TensorDesc(F32, [3], guaranteed_base_offset_alignment=24),
            ".GuaranteedBaseOffsetAlignment: 24; " + ALIGNMENT,
        ),
        (
            TensorDesc(F32, [3], guaranteed_base_offset_alignment=2),
            ".GuaranteedBaseOffsetAlignment: 2; " + ALIGNMENT,
        ),
        (
            TensorDesc(F16, [3], guaranteed_base_offset_alignment=2**32),
            ".GuaranteedBaseOffsetAlignment: 4294967296; " + ALIGNMENT.replace("4 bytes", "2 bytes"),
        ),
        (
            TensorDesc(F32, [3], guaranteed_base_offset_alignment=None),  # type: ignore[arg-type]
            ".GuaranteedBaseOffsetAlignment: None; " + ALIGNMENT,
        ),
        (TensorDesc(99, [3]), ".DataType: 99; must be a TensorDataType"),
        (TensorDesc("FLOAT33", [3]), ".DataType: 'FLOAT33'; must be a TensorDataType"),
        (
            TensorDesc(TensorDataType.UNKNOWN, [3]),
            ": UNKNOWN; DML_FEATURE_LEVEL_3_0 and above allow FLOAT32, FLOAT16",
        ),
    ],
)
def test_refuses(tensor: TensorDesc, message: str) -> None:
    assert input_failures(tensor) == [f"ACTIVATION_CELU.InputTensor{message}"]


@pytest.mark.parametrize("strides", [[0, 1], [0, 0], [1, 1], [2, 1]])
def test_an_output_must_not_overlap_itself(strides: list[int]) -> None:
    expected = (
        f"ACTIVATION_CELU.OutputTensor.Strides: {strides} put several elements of sizes [2, 3] at one place; "
        "an output must not overlap itself"
    )
    assert output_failures(TensorDesc(F32, [2, 3], strides)) == [expected]


def test_an_output_cannot_be_owned() -> None:
    expected = "ACTIVATION_CELU.OutputTensor.Flags: OWNED_BY_DML; only inputs can be owned"
    assert output_failures(TensorDesc(F32, [2], flags=TensorFlags.OWNED_BY_DML)) == [expected]


def test_some_operators_take_no_owned_tensors() -> None:
    desc = valid_desc("RNN", FeatureLevel.LEVEL_6_4)
    assert isinstance(desc, Rnn)
    assert desc.weight_tensor is not None
    weight = TensorDesc(F32, desc.weight_tensor.sizes, flags=TensorFlags.OWNED_BY_DML)
    expected = "RNN.WeightTensor.Flags: OWNED_BY_DML; RNN takes no owned tensors"
    assert failures(desc.replace(weight_tensor=weight)) == [expected]


def test_all_failures_of_a_tensor_are_listed() -> None:
    tensor = TensorDesc(
        TensorDataType.INT8,
        [0, 2],
        [1],
        TensorFlags(4),
        total_tensor_size_in_bytes=3,
        guaranteed_base_offset_alignment=3,
    )
    found = failures(ActivationCelu(tensor, TensorDesc(F32, [1])))
    assert [message.split(";")[0].removeprefix("ACTIVATION_CELU.InputTensor") for message in found] == [
        ": INT8",
        ".Sizes[0]: 0",
        ".Flags: 0x4 are no known flags",
        ".TotalTensorSizeInBytes: 3",
        ".GuaranteedBaseOffsetAlignment: 3",
    ]


@pytest.mark.parametrize("value", [1, "x", [TensorDesc(F32, [1])], object])
def test_something_else_than_a_tensor(value: Any) -> None:
    [message] = failures(celu(value, TensorDesc(F32, [1])))
    assert message.startswith("ACTIVATION_CELU.InputTensor: ")
    assert message.endswith("; must be a TensorDesc")


def test_four_bit_tensors_pack_two_elements_a_byte() -> None:
    output = TensorDesc(TensorDataType.UINT4, [9], total_tensor_size_in_bytes=4)
    scale = TensorDesc(F32, [9])
    quantization = QuantizationType.SCALE
    desc = Quantize(scale, [scale], output, quantization_type=quantization)
    expected = "QUANTIZE.OutputTensor.TotalTensorSizeInBytes: 4; sizes, strides and type need at least 8"
    assert failures(desc) == [expected]


def test_a_tensor_of_an_array_is_named_by_its_index() -> None:
    output = TensorDesc(TensorDataType.UINT4, [9])
    scale = TensorDesc(F32, [9])
    desc = Quantize(scale, [scale, TensorDesc(F32, [0])], output, quantization_type=QuantizationType.SCALE)
    expected = "QUANTIZE.QuantizationTensors[1].Sizes[0]: 0; must be a whole number from 1 to 4294967295"
    assert failures(desc) == [expected]


def test_dynamic_quantize_output_types_are_independent() -> None:
    """No rule of equal types binds tensors that the page leaves free."""
    number = TensorDesc(F32, [1])
    byte = TensorDesc(TensorDataType.UINT8, [1])
    assert failures(DynamicQuantizeLinear(number, byte, number, byte)) == []


def counted(sizes: list[int], strides: list[int]) -> bool:
    """The same by enumeration."""
    offsets = np.zeros(1, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(size) * stride).ravel()
    return np.unique(offsets).size < offsets.size


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ([], [], False),
        ([1, 1], [0, 0], False),
        ([2, 3, 4], [12, 4, 1], False),
        ([2, 3, 4], [1, 2, 6], False),
        ([2, 3, 4], [100, 20, 3], False),
        ([1, 3], [0, 1], False),
        ([2, 3], [0, 1], True),
        ([2, 3], [3, 2], False),
        ([3, 3], [3, 2], False),
        ([3, 4], [3, 2], True),
        ([2, 2], [5, 5], True),
        ([2, 2, 2], [1, 1000000007, 1000000008], True),
        ([2, 2, 2], [1, 1000000007, 1000000009], False),
        ([2**31, 2], [2, 1], False),
        ([2**31, 2], [2, 2], True),
        ([3, 2**30], [2**30 + 1, 1], False),
        ([3, 2**30], [2**30 - 1, 1], True),
    ],
)
def test_decides_known_layouts(sizes: list[int], strides: list[int], expected: bool) -> None:
    assert overlaps(sizes, strides) is expected


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 60)), max_size=5))
@settings(max_examples=400, deadline=None)
def test_equals_enumeration(dimensions: list[tuple[int, int]]) -> None:
    sizes, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    assert overlaps(sizes, strides) == counted(sizes, strides)


@given(st.lists(st.tuples(st.integers(2, 4), st.integers(40, 900)), min_size=3, max_size=4))
@settings(max_examples=400, deadline=None)
def test_equals_enumeration_for_sparse_strides(dimensions: list[tuple[int, int]]) -> None:
    sizes, strides = [size for size, _ in dimensions], [stride for _, stride in dimensions]
    assert overlaps(sizes, strides) == counted(sizes, strides)


@pytest.mark.parametrize("rank", [3, 4, 5, 6, 7, 8])
def test_is_quick_for_irregular_strides(rank: int) -> None:
    """Sizes as large as 2^24 elements allow, with strides that share nothing: no enumeration of elements."""
    size = int(2 ** (24 / rank))
    sizes = [size] * rank
    strides = [(2**32 - 1) // (size * rank) - 7919 * i * i - i for i in range(rank)]
    start = time.perf_counter()
    overlaps(sizes, strides)
    assert time.perf_counter() - start < 5


RANK_THREE = TensorDesc(dml.FLOAT32, [2, 3, 4])


def parts(failure: Failure) -> tuple[object, ...]:
    return failure.operator, failure.field, failure.value, failure.allowed, failure.since


def test_failures_have_operator_field_value_what_is_allowed_and_since_when() -> None:
    desc = dml.descs.MeanVarianceNormalization1(
        RANK_THREE, TensorDesc("float16", [2, 1, 5]), None, RANK_THREE, axes=[2, 2]
    )
    with pytest.raises(InvalidArgument) as caught:
        dml.validate(desc, "4_0")
    name = "MEAN_VARIANCE_NORMALIZATION1"
    assert [parts(failure) for failure in caught.value.failures] == [
        (name, "ScaleTensor", "FLOAT16", "must have the data type of InputTensor, FLOAT32", None),
        (name, "ScaleTensor.Sizes[2]", "5", "must be 1 or InputTensor's 4", None),
        (
            name,
            "BiasTensor",
            "missing",
            "required with ScaleTensor below DML_FEATURE_LEVEL_5_2",
            FeatureLevel.LEVEL_5_2,
        ),
        (name, "Axes[1]", "2 is listed twice", "axes must be distinct", None),
    ]
    assert str(caught.value).splitlines() == list(caught.value.failures)


def test_failures_say_from_which_level_a_value_is_allowed() -> None:
    with pytest.raises(InvalidArgument) as caught:
        dml.validate(dml.descs.ActivationHardSigmoid(RANK_THREE, RANK_THREE), "2_0")
    first = caught.value.failures[0]
    assert (first.field, first.value, first.since) == ("InputTensor", "3 dimensions", FeatureLevel.LEVEL_3_0)
    with pytest.raises(InvalidArgument) as caught:
        dml.validate(dml.descs.ActivationCelu(RANK_THREE, RANK_THREE), "2_0")
    assert parts(caught.value.failures[0])[3:] == (
        "exists from DML_FEATURE_LEVEL_3_0",
        FeatureLevel.LEVEL_3_0,
    )


def test_failures_of_calls_keep_directmls_names() -> None:
    with pytest.raises(InvalidArgument) as caught:
        dml.activation_celu(np.zeros(3))
    (failure,) = caught.value.failures
    assert failure.startswith("activation_celu.input: FLOAT64; ")
    assert parts(failure)[:3] == ("ACTIVATION_CELU", "InputTensor", "FLOAT64")
    assert failure.fix == "input.astype(np.float32)"
    with pytest.raises(AttributeError, match="immutable"):
        failure.fix = None  # type: ignore[misc]


def test_failures_without_parts_are_their_message() -> None:
    (failure,) = InvalidArgument("no such thing").failures
    assert (failure, *parts(failure)) == ("no such thing", None, None, None, None, None)


def test_failures_go_to_other_processes() -> None:
    with pytest.raises(InvalidArgument) as caught:
        dml.validate(dml.descs.ActivationRelu(RANK_THREE))
    copied = pickle.loads(pickle.dumps(caught.value))
    assert copied.failures == caught.value.failures
    assert parts(copied.failures[0]) == parts(caught.value.failures[0])


def test_calls_name_other_arguments_and_values_keep_their_braces() -> None:
    """Names of fields in messages are those of the audience; a value with braces is shown as it is."""
    with pytest.raises(InvalidArgument) as caught:
        dml.element_wise_add(np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float16))
    (failure,) = caught.value.failures
    assert "must have the data type of a, FLOAT32" in failure
    assert failure.allowed == "must have the data type of ATensor, FLOAT32"
    odd = dml.descs.ActivationCelu(RANK_THREE, RANK_THREE, alpha={"{Alpha}": 1})  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgument, match=r"^ACTIVATION_CELU.Alpha: \{'\{Alpha\}': 1\}; must be a number$"
    ):
        dml.validate(odd)
