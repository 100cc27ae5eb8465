"""The outputs that calls make: sizes and types from inputs, attributes and what a call says."""

from __future__ import annotations

from typing import Any

import pytest

from opendml.errors import InvalidArgument
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, InterpolationMode
from opendml.spec.outputs import NOTHING, Told, has_usual_sizes, output_arguments, with_outputs
from opendml.spec.rules import declared_shape
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.for_each import for_each
from tests.spec.made_outputs import SIZES_ARE_TOLD, check_made_outputs, without_outputs
from tests.spec.valid_descs import F32, NAMES, functions, valid_desc

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
        with_outputs(desc, Told(F32, wanted=frozenset(outputs)))


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
        assert name in SIZES_ARE_TOLD
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
    assert with_outputs(desc, NOTHING).output_tensor.sizes == (1, 1, 7, 10)
    assert with_outputs(desc, Told(sizes=(1, 1, 8, 10))).output_tensor.sizes == (1, 1, 8, 10)
