"""What a call means: the desc and the program of an operator's name, its tensors and attributes, and the
outputs that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendml.errors import InvalidArgument
from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Layout, Program, packed
from opendml.runtime.host_array import check_no_overlap_within
from opendml.spec import descs
from opendml.spec.enums import FeatureLevel
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.plain import as_tuple
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc
from opendml.spec.validator import validate


def input_names(name: str) -> list[str]:
    """DirectML's names of an operator's input tensors."""
    return [field.name for field in operator(name).tensors if field.kind == "INPUT_TENSOR"]


def output_names(name: str) -> list[str]:
    """DirectML's names of an operator's output tensors."""
    return [field.name for field in operator(name).tensors if field.kind == "OUTPUT_TENSOR"]


def desc_of_call(name: str, inputs: Sequence[TensorDesc | None], attributes: Sequence[Any]) -> OperatorDesc:
    """The desc of the operator over `inputs`; its outputs have the type and the sizes of its first input.

    Raises:
        InvalidArgument: the first input is missing.
    """
    facts = operator(name)
    if inputs[0] is None:
        raise InvalidArgument(f"{name}.{facts.tensors[0].name}: None; a tensor is needed")
    output = TensorDesc(inputs[0].data_type, inputs[0].sizes)
    given = iter(inputs)
    values = {
        field.python_name: next(given) if field.kind == "INPUT_TENSOR" else output for field in facts.tensors
    }
    values |= {
        field.python_name: as_tuple(value) for field, value in zip(facts.attributes, attributes, strict=True)
    }
    return descs.desc_class(name)(**values)


def program_of_call(
    name: str,
    inputs: Sequence[Layout | None],
    attributes: Sequence[Any],
    out: Layout | None,
    feature_level: FeatureLevel,
) -> Program:
    """The program of a call, whose output is packed unless `out` says otherwise. The tensors may have any
    strides, at every level.

    Raises:
        InvalidArgument: what `validate` finds, or an output of another type or other sizes.
        Unsupported: the operator cannot be run yet.
    """
    tensors = [None if each is None else TensorDesc(each.type.data_type, each.sizes) for each in inputs]
    desc = desc_of_call(name, tensors, attributes)
    validate(desc, feature_level)
    present = [layout for layout in inputs if layout is not None]
    output = packed(present[0].type, present[0].sizes)
    if out is not None:
        require_array(f"{name}.{output_names(name)[0]}", out, output)
        output = out
    check_no_overlap_within(f"{name}.{output_names(name)[0]}", output)
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if layout is None else next(sources) for layout in inputs]
    return Program(tuple(present), (output,), define(desc, nodes, [output.type]))


def require_array(name: str, given: Layout, wanted: Layout) -> None:
    """Checks an array's type and sizes.

    Raises:
        InvalidArgument: one of them differs.
    """
    if given.type is not wanted.type:
        raise InvalidArgument(f"{name}: {given.type.name}; {wanted.type.name} is needed")
    if given.sizes != wanted.sizes:
        raise InvalidArgument(f"{name}: sizes {list(given.sizes)}; {list(wanted.sizes)} are needed")
