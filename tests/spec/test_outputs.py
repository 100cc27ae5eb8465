"""The outputs that calls make: sizes and types from inputs, attributes and what a call says."""

from __future__ import annotations

import pytest

from opendml.errors import InvalidArgument
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, InterpolationMode
from opendml.spec.outputs import NOTHING, Told, with_outputs
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from tests.spec.made_outputs import SIZES_ARE_TOLD, check_made_outputs, without_outputs
from tests.spec.valid_descs import F32, NAMES, functions, valid_desc

NEWEST = FeatureLevel.LEVEL_6_4


@pytest.mark.parametrize("name", NAMES)
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


def test_resampled_sizes_are_rounded_down_and_may_be_others() -> None:
    desc = descs.Resample(
        TensorDesc(F32, [1, 1, 5, 5]),
        None,
        scales=[1.0, 1.0, 1.5, 2.0],
        interpolation_mode=InterpolationMode.LINEAR,
    )
    assert with_outputs(desc, NOTHING).output_tensor.sizes == (1, 1, 7, 10)
    assert with_outputs(desc, Told(sizes=(1, 1, 8, 10))).output_tensor.sizes == (1, 1, 8, 10)
