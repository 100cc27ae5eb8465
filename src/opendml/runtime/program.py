"""Operators as tensor programs."""

from __future__ import annotations

from opendml.operators.registry import define
from opendml.program.node import source
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import TensorFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc


def tensors_of(desc: OperatorDesc, kind: str) -> list[TensorDesc | None]:
    """The tensors of a desc of the kind INPUT_TENSOR or OUTPUT_TENSOR, in the desc's order; arrays are
    flattened."""
    result: list[TensorDesc | None] = []
    for field in operator(desc.operator).tensors:
        if field.kind == kind:
            value = getattr(desc, field.python_name)
            result.extend(value if isinstance(value, tuple) else [value])
    return result


def layout_of(tensor: TensorDesc) -> Layout:
    """Where the elements of a valid tensor lie."""
    type = ScalarType.of(tensor.data_type)
    return Layout(type, tensor.sizes, tuple(stride * type.bytes for stride in tensor.effective_strides))


def program_of(desc: OperatorDesc) -> Program:
    """The program of one valid operator: its present inputs, of which those with OWNED_BY_DML are constants,
    its outputs.

    Raises:
        Unsupported: the operator cannot be run yet.
    """
    inputs = tensors_of(desc, "INPUT_TENSOR")
    outputs = [layout_of(tensor) for tensor in tensors_of(desc, "OUTPUT_TENSOR") if tensor is not None]
    present = [layout_of(tensor) for tensor in inputs if tensor is not None]
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if tensor is None else next(sources) for tensor in inputs]
    results = define(desc, nodes, [layout.type for layout in outputs])
    flags = [tensor.flags for tensor in inputs if tensor is not None]
    owned = frozenset(number for number, each in enumerate(flags) if each & TensorFlags.OWNED_BY_DML)
    return Program(tuple(present), tuple(outputs), results, owned)
