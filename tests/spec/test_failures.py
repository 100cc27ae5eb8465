"""Failures as objects: the parts that messages are made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import opendml as dml
from opendml import FeatureLevel, InvalidArgument, TensorDesc
from opendml.errors import Failure

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
