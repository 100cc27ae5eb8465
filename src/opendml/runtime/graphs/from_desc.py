"""Build the graph that a GraphDesc describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.base import GraphBase
from opendml.runtime.graphs.desc import ConstantNode, GraphDesc, OperatorNode
from opendml.runtime.graphs.steps import ConstantStep
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.graphs.wiring import Port, label_of, wiring_of
from opendml.runtime.program import buffer_layout_of
from opendml.spec.tensor_desc import TensorDesc

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device


def graph_of_desc(desc: GraphDesc, device: Device) -> tuple[GraphBase, list[GraphTensor]]:
    """Return a graph over buffers, and its outputs.

    Raises:
        InvalidArgument: every rule for graphs that the desc breaks.
        Unsupported: one of its operators cannot be run yet.
    """
    wiring = wiring_of(desc, device)
    readers: dict[int | Port, list[TensorDesc]] = {}
    for (reader, index), source in wiring.sources.items():
        tensor = wiring.inputs[reader][index].tensor
        if tensor is not None:
            readers.setdefault(source, []).append(tensor)
    graph = GraphBase(device.feature_level)
    tensors: dict[int | Port, GraphTensor] = {}
    for position in range(desc.input_count):
        name = f"inputs[{position}]"
        if position in readers:
            tensors[position] = graph._input(name, _widest(readers[position]))
        else:
            graph._inputs[name] = None
    for number, node in enumerate(desc.nodes):
        if isinstance(node, ConstantNode):
            data = np.frombuffer(_content(node), np.uint8)
            step = ConstantStep(data, readers[number, 0][0], is_unchanging=True)
            tensors[number, 0] = graph._constant(step, packed(ScalarType.UINT8, data.shape))
    for number in wiring.order:
        node = desc.nodes[number]
        if isinstance(node, OperatorNode):
            sources = [wiring.sources.get((number, index)) for index in range(len(wiring.inputs[number]))]
            read = [None if source is None else tensors[source] for source in sources]
            made = graph._operator(node.operator.desc, read, label_of(node, number))
            present = [index for index, each in enumerate(wiring.outputs[number]) if each.tensor is not None]
            tensors |= {(number, index): each for index, each in zip(present, made, strict=True)}
    return graph, [tensors[wiring.results[number]] for number in range(desc.output_count)]


def _widest(tensors: Sequence[TensorDesc]) -> TensorDesc:
    """Return the tensor that reaches furthest, with the most bytes and the greatest alignment of all."""
    widest = max(tensors, key=lambda tensor: buffer_layout_of(tensor).span[1])
    size = max(tensor.size_in_bytes for tensor in tensors)
    alignment = max(tensor.guaranteed_base_offset_alignment for tensor in tensors)
    if (size, alignment) == (widest.size_in_bytes, widest.guaranteed_base_offset_alignment):
        return widest
    return TensorDesc(
        widest.data_type,
        widest.sizes,
        widest.strides,
        widest.flags,
        total_tensor_size_in_bytes=size,
        guaranteed_base_offset_alignment=alignment,
    )


def _content(node: ConstantNode) -> bytes:
    data: Any = node.data
    return data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
