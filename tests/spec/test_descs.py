"""Descs and enumerations as values, names, and outputs that follow from inputs."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendml as dml
from opendml import FLOAT32, ExecutionFlags, FeatureLevel
from opendml.errors import DeviceRemoved, Error, InvalidArgument, Unsupported
from opendml.json_files.node import MOST_MESSAGES, Failures, suggestion
from opendml.runtime.graphs.model import MOST_HINTS
from opendml.spec import descs, enums
from opendml.spec.descs import (
    ActivationCelu,
    ActivationElu,
    ElementWiseFloor,
    Join,
    MeanVarianceNormalization1,
    RoiPooling,
)
from opendml.spec.enums import DATA_TYPE_BITS, InterpolationMode, TensorDataType, TensorFlags
from opendml.spec.operator_desc import ScaleBias, Size2D
from opendml.spec.outputs import (
    NO_REQUESTS,
    RequestedOutputs,
    has_usual_sizes,
    output_arguments,
    with_outputs,
)
from opendml.spec.rules import declared_shape
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc, calc_buffer_tensor_size, packed_strides
from opendml.spec.validator import failures
from opendml.spec.values import as_tuple
from opendml.spelling import LONGEST_COMPARED, MOST_COMPARED, close_matches
from tests.for_each import for_each
from tests.spec.made_outputs import SIZES_ARE_TOLD, check_made_outputs, without_outputs
from tests.spec.valid_descs import F16, F32, NAMES, changed, functions, valid_desc

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
def test_buffer_sizes(data_type: str, sizes: list[int], strides: list[int] | None, expected: int) -> None:
    assert calc_buffer_tensor_size(TensorDataType[data_type], sizes, strides) == expected


@given(
    st.sampled_from(sorted(DATA_TYPE_BITS)),
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=4),
)
def test_size_covers_far_elements(data_type: TensorDataType, dimensions: list[tuple[int, int]]) -> None:
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


ENUMERATIONS = [
    each
    for each in vars(enums).values()
    if isinstance(each, type) and issubclass(each, IntEnum | IntFlag) and len(each)
]
MEMBERS = [member for enumeration in ENUMERATIONS for member in enumeration]


def test_every_enumeration_is_tried() -> None:
    public = [getattr(dml, name) for name in dml.__all__]
    assert {each for each in public if isinstance(each, type) and issubclass(each, IntEnum | IntFlag)} <= {
        *ENUMERATIONS
    }
    assert enums.TensorDataType in ENUMERATIONS


@for_each("member", MEMBERS)
def test_members_format_as_their_names(member: Any) -> None:
    width = len(member.name) + 3
    assert f"{member}" == str(member) == f"{member!s}" == "%s" % member == member.name  # noqa: UP031
    assert f"{member:>{width}}" == f"   {member.name}"
    assert repr(member) == f"<{type(member).__name__}.{member.name}: {member.value}>"


@for_each("member", MEMBERS)
def test_members_are_their_numbers(member: Any) -> None:
    value = member.value
    assert (member, int(member), f"{member:d}", f"{member:#06x}") == (
        value,
        value,
        f"{value}",
        f"{value:#06x}",
    )
    assert json.dumps([member]) == f"[{value}]"
    assert pickle.loads(pickle.dumps(member)) is member


def test_combined_flags_format_as_all_their_names() -> None:
    both = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION | ExecutionFlags.DESCRIPTORS_VOLATILE
    assert f"{both}" == "ALLOW_HALF_PRECISION_COMPUTATION|DESCRIPTORS_VOLATILE"
    assert f"{both:d}" == str(int(both))
    assert f"{TensorFlags.NONE}" == "NONE"
    assert f"{TensorFlags(8)}" == "8"


def test_names_of_types_and_levels() -> None:
    assert f"{FLOAT32} from {FeatureLevel.LEVEL_2_0}" == "FLOAT32 from LEVEL_2_0"


def test_a_name_is_compared_with_no_more_than_so_many_others() -> None:
    taken = 0

    def names() -> Iterator[str]:
        nonlocal taken
        for number in range(10 * MOST_COMPARED):
            taken += 1
            yield f"resource{number}"

    assert close_matches("resourse7", names()) == ["resource7"]
    assert taken == MOST_COMPARED


def test_long_names_are_not_compared() -> None:
    long = "a" * LONGEST_COMPARED
    assert close_matches(long, [long + "b"]) == []
    assert close_matches(long + "b", [long]) == []
    assert close_matches(long[1:], [long]) == [long]


def test_names_in_files_are_looked_for_among_the_first_ones() -> None:
    known = {f"resource{number}": None for number in range(2 * MOST_COMPARED)}
    assert suggestion("ource3", known) == '; did you mean "resource3"?'
    assert suggestion(f"other {2 * MOST_COMPARED}", known) == ""


def test_one_error_lists_so_many_mistakes_and_says_that_there_are_more() -> None:
    failures = Failures()
    with pytest.raises(dml.InvalidArgument) as caught:  # noqa: PT012 - the last of them raises
        for number in range(MOST_MESSAGES + 1):
            with failures.collected():
                raise dml.InvalidArgument(f"mistake {number}")
    assert caught.value.failures[MOST_MESSAGES - 1] == f"mistake {MOST_MESSAGES - 1}"
    assert caught.value.failures[MOST_MESSAGES:] == ("there are more mistakes, which are not listed",)


def test_the_first_unknown_names_of_a_call_get_a_hint() -> None:
    graph = dml.Graph()
    model = graph.compile({"y": graph.input("input_tensor", dml.FLOAT32, [1]) + 1.0}, "reference")
    given = {f"input_tensr{number}": np.zeros(1, np.float32) for number in range(2 * MOST_HINTS)}
    with pytest.raises(dml.InvalidArgument) as caught:
        model(**given)
    assert str(caught.value).count("did you mean input_tensor?") == MOST_HINTS
    assert str(caught.value).count("is unknown") == 2 * MOST_HINTS


NEWEST = FeatureLevel.LEVEL_6_4


@for_each("name", NAMES)
def test_outputs_of_a_valid_desc_follow_from_the_rest_of_it(name: str) -> None:
    """The sizes of these descs were worked out by hand."""
    for function in functions(name):
        check_made_outputs(valid_desc(name, NEWEST, function))


@pytest.mark.parametrize("name", sorted(SIZES_ARE_TOLD))
def test_sizes_that_do_not_follow_must_be_told(name: str) -> None:
    desc = without_outputs(valid_desc(name, NEWEST))
    outputs = [each.python_name for each in operator(name).outputs]
    with pytest.raises(InvalidArgument, match=rf"^{name.lower()}: .*sizes"):
        with_outputs(desc, RequestedOutputs(F32, wanted=frozenset(outputs)))


@for_each("name", NAMES)
def test_calls_may_say_the_sizes_that_do_not_follow_or_not_alone(name: str) -> None:
    facts = operator(name)
    takes_sizes = "sizes" in output_arguments(facts)
    first = facts.outputs[0]
    desc = without_outputs(valid_desc(name, NEWEST))
    shape = declared_shape(facts, desc).get(first.python_name, ())
    assert takes_sizes >= any(type(size) is not int for size in shape)
    if first.optional:
        return
    if takes_sizes and not has_usual_sizes(facts):
        # Those of DIAGONAL_MATRIX1 follow from an input that may be left out.
        assert name in {*SIZES_ARE_TOLD, "DIAGONAL_MATRIX1"}
    else:
        assert name not in SIZES_ARE_TOLD
        assert takes_sizes == any(type(size) is not int for size in shape)


def test_desc_of_parts_is_judged_without_them() -> None:
    desc = descs.Split(TensorDesc(F32, [2, 5]), axis=1)
    assert failures(desc, outputs=False) == []


@pytest.mark.parametrize("name", ["QUANTIZE", "DEQUANTIZE"])
def test_type_of_quantized_and_other_numbers_is_that_of_a_parameter(name: str) -> None:
    desc = valid_desc(name, NEWEST)
    made: Any = with_outputs(without_outputs(desc))
    assert made == desc


def test_resampled_sizes_are_rounded_down_and_may_be_others() -> None:
    desc = descs.Resample(
        TensorDesc(F32, [1, 1, 5, 5]),
        None,
        scales=[1.0, 1.0, 1.5, 2.0],
        interpolation_mode=InterpolationMode.LINEAR,
    )
    assert with_outputs(desc, NO_REQUESTS).output_tensor.sizes == (1, 1, 7, 10)
    assert with_outputs(desc, RequestedOutputs(sizes=(1, 1, 8, 10))).output_tensor.sizes == (1, 1, 8, 10)
