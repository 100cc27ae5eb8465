"""Limits as data: what they say is what the validator says."""

from __future__ import annotations

import pytest

import opendml as dml
from opendml import FeatureLevel, InvalidArgument, TensorDataType, TensorDesc
from opendml.spec.schema import operators
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.spec.valid_descs import LEVELS, NAMES, functions, table_at, valid_desc


@for_each("name", NAMES)
def test_limits_are_those_of_the_tables_at_every_level(name: str) -> None:
    facts = operators()[name]
    for level in LEVELS:
        if level < facts.introduced:
            with pytest.raises(InvalidArgument, match=f"{name}: not in DML_FEATURE_LEVEL_"):
                dml.limits(name, level)
            continue
        for function in functions(name):
            found = dml.limits(name, level, function=function)
            tensors = {**found.inputs, **found.outputs}
            table = table_at(name, level, function)
            assert {each: [type.name for type in limit.data_types] for each, limit in tensors.items()} == {
                each: table[each]["types"] for each in tensors
            }
            for each, limit in tensors.items():
                first, last = table[each]["dims"]
                assert limit.dimension_counts == range(first, last + 1)
            assert found.since <= level
            assert (found.operator, found.feature_level, found.introduced) == (name, level, facts.introduced)


@pytest.mark.parametrize("name", ["CONVOLUTION", "GEMM", "MEAN_VARIANCE_NORMALIZATION1", "JOIN", "ROI_ALIGN"])
def test_the_validator_refuses_what_limits_leave_out(name: str) -> None:
    for level in (operators()[name].introduced, max(LEVELS)):
        desc, found = valid_desc(name, level), dml.limits(name, level)
        for field in operators()[name].inputs:
            limit, value = found.inputs[field.name], getattr(desc, field.python_name)
            if value is None:
                continue
            first = value[0] if limit.is_array else value
            for type in (each for each in TensorDataType if each not in limit.data_types):
                changed = TensorDesc(type, first.sizes)
                wrong = desc.replace(**{field.python_name: (changed,) if limit.is_array else changed})
                assert any(f".{field.name}" in message for message in failures(wrong, level))


def test_names_are_found_in_any_case_and_misspelt_ones_corrected() -> None:
    assert dml.limits("dml_operator_gemm") == dml.limits("gemm") == dml.limits("GEMM", "6_4")
    with pytest.raises(
        InvalidArgument, match=r"CONVOLUTON is no operator of DirectML; did you mean CONVOLUTION\?"
    ):
        dml.limits("CONVOLUTON")
    with pytest.raises(InvalidArgument, match="3; the name of an operator is needed"):
        dml.limits(3)


def test_types_of_reduce_depend_on_the_function() -> None:
    every = dml.limits("REDUCE").inputs["InputTensor"].data_types
    some = dml.limits("REDUCE", function="AVERAGE").inputs["InputTensor"].data_types
    assert set(some) < set(every)
    with pytest.raises(InvalidArgument, match="REDUCE: function 'MEAN'; must be a ReduceFunction"):
        dml.limits("REDUCE", function="MEAN")
    with pytest.raises(InvalidArgument, match="GEMM: function 'SUM'; has none"):
        dml.limits("GEMM", function="SUM")


def test_limits_say_since_when_they_hold() -> None:
    assert dml.limits("ELEMENT_WISE_ADD", "4_0").since is FeatureLevel.LEVEL_3_0
    found = dml.limits("MEAN_VARIANCE_NORMALIZATION1", "2_1")
    assert found.inputs["ScaleTensor"].optional
    assert not found.inputs["InputTensor"].optional
