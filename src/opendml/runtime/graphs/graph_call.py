"""Calls of immediate functions on tensors of a graph."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opendml.errors import InvalidArgument
from opendml.runtime.calls.arguments import CAST
from opendml.runtime.calls.call import Call
from opendml.runtime.calls.operator_call import (
    desc_of_call,
    exact_number,
    repeated_sizes,
    require_running,
    type_of_number,
)
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.spec.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from opendml.runtime.graphs.base import GraphBase


def call_in_graph(call: Call) -> Any:
    """Add a call's operator to the graph of its tensors. Numbers and arrays become constants.

    Raises:
        InvalidArgument: what `validate` finds, no tensors, those of several graphs, `out` or a device.
        Unsupported: the operator cannot be run yet.
    """
    if call.outs is not None or call.device is not None:
        raise InvalidArgument(
            f"{call.function}: out and device belong to the compiled graph, not to its operators"
        )
    require_running(call.name)
    graph = next(tensor.graph for tensor in call.tensors if isinstance(tensor, GraphTensor))
    call = call.on(tuple(map(partial(_as_operand, graph), call.tensors, call.labels)), None, CAST)
    tensors = _operands(graph, call)
    sizes = repeated_sizes(call, [None if each is None else each.sizes for each in tensors])
    inputs = call.grouped(
        [
            None if tensor is None or wanted is None else TensorDesc(tensor.data_type, wanted)
            for tensor, wanted in zip(tensors, sizes, strict=True)
        ]
    )
    desc = desc_of_call(call.name, inputs, call.attributes, graph.feature_level, call.requested, CAST)
    return call.result(graph._add(desc, tensors, f"nodes[{graph._operator_count}]"))


def _as_operand(graph: GraphBase, tensor: Any, label: str) -> Any:
    """Return a tensor of the graph for an operand. Numbers stay."""
    if tensor is None or isinstance(tensor, int | float):
        return tensor
    if not isinstance(tensor, GraphTensor):
        return graph._constant_of(tensor, label)
    if tensor.graph is not graph:
        raise InvalidArgument(f"{label}: not a tensor of this graph; it is one of another graph")
    return tensor


def _operands(graph: GraphBase, call: Call) -> list[GraphTensor | None]:
    """Return the operands of a call. Numbers get the types that the call gives them."""
    types = {
        position: tensor.data_type
        for position, tensor in enumerate(call.tensors)
        if isinstance(tensor, GraphTensor)
    }
    operands: list[GraphTensor | None] = []
    for position, (label, tensor) in enumerate(zip(call.labels, call.tensors, strict=True)):
        if isinstance(tensor, int | float):
            type = type_of_number(call, call.requested, position, types)
            operands.append(graph._number(exact_number(tensor, type, label), type.data_type))
        else:
            operands.append(tensor)
    return operands
