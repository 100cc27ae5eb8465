"""The front of the validator, the messages of the design, and garbage."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendml.errors import InvalidArgument
from opendml.spec import schema
from opendml.spec.descs import (
    ActivationCelu,
    ActivationHardSigmoid,
    MeanVarianceNormalization1,
    OperatorDesc,
    ScaleBias,
    Size2D,
    desc_class,
)
from opendml.spec.enums import FeatureLevel, PaddingMode, ReduceFunction, TensorDataType, TensorFlags
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures, validate
from tests.spec.valid_descs import F32, LEVELS, NAMES, celu, valid_desc
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
def test_garbage_gives_messages_and_no_other_exception(
    data: st.DataObject, operator: str, level: FeatureLevel
) -> None:
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
