"""The typed view says what the JSON says."""

from __future__ import annotations

import pytest

from opendml.errors import InvalidArgument
from opendml.spec.enums import FeatureLevel
from opendml.spec.facts import operator_facts
from opendml.spec.feature_level import NEWEST, as_feature_level, full_name, value_since
from opendml.spec.schema import operator, operators
from tests.for_each import for_each
from tests.spec.valid_descs import LEVELS, NAMES, level_of, table_at


@for_each("name", NAMES)
def test_operator_mirrors_its_facts(name: str) -> None:
    facts, view = operator_facts()[name], operators()[name]
    assert view.name == name
    assert view.introduced == level_of(facts["introduced"])
    assert [(field.name, field.kind, field.type, field.optional) for field in view.fields] == [
        (field["name"], field["kind"], field["type"], field["optional"]) for field in facts["fields"]
    ]
    assert view.in_place == tuple(facts["in_place"])


@for_each("name", [name for name in NAMES if name != "REDUCE"])
def test_support_at_is_the_newest_table_not_above_the_level(name: str) -> None:
    view = operator(name)
    for level in LEVELS:
        support = view.support_at(level)
        if level < view.introduced:
            assert support is None
        else:
            assert support is not None
            assert {key: (list(row.dims), list(row.types)) for key, row in support.tensors.items()} == {
                key: (row["dims"], row["types"]) for key, row in table_at(name, level).items()
            }


def test_support_of_reduce_depends_on_the_function() -> None:
    reduce = operator("REDUCE")
    argmax = reduce.support_at(FeatureLevel.LEVEL_2_0, "ARGMAX")
    average = reduce.support_at(FeatureLevel.LEVEL_2_0, "AVERAGE")
    assert argmax is not None
    assert average is not None
    assert argmax.tensors["OutputTensor"].types == ("UINT32",)
    assert average.tensors["OutputTensor"].types == ("FLOAT32", "FLOAT16")


def test_attributes_leave_counts_out() -> None:
    names = [field.name for field in operator("MEAN_VARIANCE_NORMALIZATION1").attributes]
    assert names == ["Axes", "NormalizeVariance", "Epsilon", "FusedActivation"]


def test_names_may_have_their_prefix() -> None:
    assert operator("DML_OPERATOR_GEMM").name == "GEMM"


def test_unknown_operator_and_field() -> None:
    with pytest.raises(InvalidArgument, match="ACTIVATION_SELU is no operator"):
        operator("ACTIVATION_SELU")
    with pytest.raises(KeyError, match="GEMM has no field DTensor"):
        operator("GEMM").field("DTensor")


@pytest.mark.parametrize(
    ("enum", "value", "level"),
    [
        ("PADDING_MODE", "WRAP", "6_4"),
        ("PADDING_MODE", "SYMMETRIC", "3_0"),
        ("PADDING_MODE", "EDGE", "1_0"),
        ("TENSOR_DATA_TYPE", "INT4", "6_3"),
        ("TENSOR_DATA_TYPE", "INT64", "3_0"),
        ("ROUNDING_MODE", "TOWARD_ZERO", "1_0"),
    ],
)
def test_levels_of_late_enumeration_values(enum: str, value: str, level: str) -> None:
    assert value_since(enum, value) == level_of(level)


@pytest.mark.parametrize("level", [FeatureLevel.LEVEL_2_1, "2_1", "DML_FEATURE_LEVEL_2_1", 0x2100])
def test_feature_levels_have_several_names(level: FeatureLevel | str | int) -> None:
    assert as_feature_level(level) is FeatureLevel.LEVEL_2_1
    assert full_name(as_feature_level(level)) == "DML_FEATURE_LEVEL_2_1"


def test_no_feature_level_is_the_newest() -> None:
    assert as_feature_level(None) is NEWEST is FeatureLevel.LEVEL_6_4


@pytest.mark.parametrize("level", ["2_2", "", "LEVEL_2_1", 7, 2.0, object(), [2], float("nan")])
def test_other_feature_levels_are_refused(level: object) -> None:
    with pytest.raises(InvalidArgument, match="1_0, 2_0, 2_1"):
        as_feature_level(level)  # type: ignore[arg-type]
