"""The outputs that calls make: sizes and types from inputs, attributes and what a call says."""

from __future__ import annotations

import pytest

from opendml.errors import InvalidArgument
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel, InterpolationMode
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import NOTHING, Told, with_outputs
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import failures
from tests.spec.valid_descs import F32, NAMES, functions, valid_desc

NEWEST = FeatureLevel.LEVEL_6_4

SIZES_ARE_TOLD = {
    "AVERAGE_POOLING_GRAD",
    "DIAGONAL_MATRIX",
    "FILL_VALUE_CONSTANT",
    "FILL_VALUE_SEQUENCE",
    "FOLD",
    "MAX_UNPOOLING",
    "ONE_HOT",
    "RANDOM_GENERATOR",
    "RESAMPLE_GRAD",
    "RESAMPLE_GRAD1",
    "ROI_ALIGN",
    "ROI_ALIGN1",
    "ROI_ALIGN_GRAD",
    "SLICE_GRAD",
    "SPLIT",
}
"""Operators whose outputs' sizes do not follow from inputs and attributes."""


def without_outputs(desc: OperatorDesc) -> OperatorDesc:
    return desc.replace(**{output.python_name: None for output in operator(desc.operator).outputs})


@pytest.mark.parametrize("name", NAMES)
def test_outputs_of_a_valid_desc_follow_from_the_rest_of_it(name: str) -> None:
    """They are those of the desc, which were worked out by hand, but for leading ones."""
    for function in functions(name):
        desc = valid_desc(name, NEWEST, function)
        made = with_outputs(without_outputs(desc), told_of(desc))
        assert failures(made) == []
        for output in operator(name).outputs:
            ours, theirs = getattr(made, output.python_name), getattr(desc, output.python_name)
            assert (ours is None) == (theirs is None), output.name
            if ours is not None and not isinstance(ours, tuple):
                assert ours.data_type is theirs.data_type, output.name
                assert tuple(filter(lambda size: size > 1, ours.sizes)) == tuple(
                    filter(lambda size: size > 1, theirs.sizes)
                ), output.name


def told_of(desc: OperatorDesc) -> Told:
    """What a call must say to get the outputs of the desc."""
    outputs = operator(desc.operator).outputs
    given = {each.python_name: getattr(desc, each.python_name) for each in outputs}
    wanted = frozenset(name for name, tensor in given.items() if tensor is not None)
    first = given[outputs[0].python_name]
    sizes = None
    if desc.operator in SIZES_ARE_TOLD:
        sizes = tuple(part.sizes[desc.axis] for part in first) if isinstance(first, tuple) else first.sizes
    written = None if isinstance(first, tuple) else first.data_type
    chosen = [given[each.python_name] for each in outputs if each.has_call_type]
    type = chosen[0].data_type if chosen and chosen[0] is not None else None
    return Told(type, sizes, written, wanted)


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
