"""Outputs made again from the rest of a desc, as calls make them, and compared with its own."""

from __future__ import annotations

from opendml.runtime.program import tensors_of
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.outputs import RequestedOutputs, with_outputs
from opendml.spec.schema import operator
from opendml.spec.validator import failures

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


def requested_of(desc: OperatorDesc) -> RequestedOutputs:
    """What a call must say to get the outputs of the desc."""
    outputs = operator(desc.operator).outputs
    given = {each.python_name: getattr(desc, each.python_name) for each in outputs}
    wanted = frozenset(name for name, tensor in given.items() if tensor is not None)
    first = given[outputs[0].python_name]
    sizes = None
    if desc.operator in SIZES_ARE_TOLD or not any(tensors_of(desc, "INPUT_TENSOR")):
        sizes = tuple(part.sizes[desc.axis] for part in first) if isinstance(first, tuple) else first.sizes
    written = {name: tensor for name, tensor in given.items() if tensor is not None}
    chosen = [given[each.python_name] for each in outputs if each.has_call_type]
    type = chosen[0].data_type if chosen and chosen[0] is not None else None
    return RequestedOutputs(type, sizes, written, wanted)


def check_made_outputs(desc: OperatorDesc) -> None:
    """The outputs that follow from the rest of a valid desc are its own, but for leading ones."""
    made = with_outputs(without_outputs(desc), requested_of(desc))
    assert failures(made) == []
    if desc.operator == "NONZERO_COORDINATES":  # rows may leave out the coordinates of leading ones
        return
    for output in operator(desc.operator).outputs:
        ours, theirs = getattr(made, output.python_name), getattr(desc, output.python_name)
        if theirs is None or isinstance(theirs, tuple):
            assert ours == theirs
        else:
            assert ours.data_type is theirs.data_type, output.name
            assert [size for size in ours.sizes if size > 1] == [size for size in theirs.sizes if size > 1]
