"""Build the tensor programs of operators."""

from __future__ import annotations

from opendml.operators.registry import define
from opendml.program.four_bit import in_halves, unpacked
from opendml.program.node import Node, source
from opendml.program.program import Layout, Program, packed
from opendml.program.scalar_type import ScalarType
from opendml.spec.enums import TensorFlags
from opendml.spec.operator_desc import OperatorDesc
from opendml.spec.schema import operator
from opendml.spec.tensor_desc import TensorDesc


def tensors_of(desc: OperatorDesc, kind: str) -> list[TensorDesc | None]:
    """Return the tensors of a desc of the kind INPUT_TENSOR or OUTPUT_TENSOR. Arrays are flattened."""
    result: list[TensorDesc | None] = []
    for field in operator(desc.operator).tensors:
        if field.kind == kind:
            value = getattr(desc, field.python_name)
            result.extend(value if isinstance(value, tuple) else [value])
    return result


def layout_of(tensor: TensorDesc) -> Layout:
    """Return the layout of a valid tensor in an array, where each element of 4 bits takes a byte."""
    type = ScalarType.of(tensor.data_type)
    return Layout(type, tensor.sizes, tuple(stride * type.bytes for stride in tensor.effective_strides))


def buffer_layout_of(tensor: TensorDesc) -> Layout:
    """Return the layout of a valid tensor in a buffer. Elements of 4 bits share bytes, which are its
    elements."""
    layout = layout_of(tensor)
    return packed(ScalarType.UINT8, [(layout.span[1] + 1) // 2]) if layout.type.is_four_bit else layout


def loaded(tensor: TensorDesc, source: Node) -> Node:
    """Return the elements of a tensor, given its buffer in the layout of `buffer_layout_of`."""
    layout = layout_of(tensor)
    return unpacked(source, layout) if layout.type.is_four_bit else source


def stored(tensor: TensorDesc, value: Node) -> Node:
    """Return the content of a tensor's buffer in the layout of `buffer_layout_of`.

    Raises:
        Unsupported: elements of 4 bits with gaps between them.
    """
    layout = layout_of(tensor)
    return in_halves(value, layout) if layout.type.is_four_bit else value


def program_of(desc: OperatorDesc) -> Program:
    """Return the program of one valid operator. Inputs with OWNED_BY_DML are constants of it.

    Raises:
        Unsupported: the operator cannot be run yet.
    """
    inputs = tensors_of(desc, "INPUT_TENSOR")
    outputs = [tensor for tensor in tensors_of(desc, "OUTPUT_TENSOR") if tensor is not None]
    present = [buffer_layout_of(tensor) for tensor in inputs if tensor is not None]
    sources = iter([source(index, layout.type, layout.sizes) for index, layout in enumerate(present)])
    nodes = [None if tensor is None else loaded(tensor, next(sources)) for tensor in inputs]
    results = define(desc, nodes, [ScalarType.of(tensor.data_type) for tensor in outputs])
    written = tuple(stored(*pair) for pair in zip(outputs, results, strict=True))
    flags = [tensor.flags for tensor in inputs if tensor is not None]
    owned = frozenset(number for number, each in enumerate(flags) if each & TensorFlags.OWNED_BY_DML)
    return Program(tuple(present), tuple(map(buffer_layout_of, outputs)), written, owned)
