"""A part of PyTorch's graph as one compiled model, over PyTorch's own memory."""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any

import torch
from torch.fx import GraphModule, Node

from opendml.errors import InvalidArgument
from opendml.frontends.common.types import computed_type_of
from opendml.frontends.torch.conversion import TorchConversion
from opendml.frontends.torch.layout import is_dense, written_order
from opendml.frontends.torch.views import base_of
from opendml.frontends.torch.weights import FrozenParameters
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.shared import Footprint, SharedMemory
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.objects.device import Device


class Part(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A compiled part of a graph, which takes and returns the tensors that PyTorch's trace has.

    Results have the strides of the trace. A view of an input or of another output is returned as PyTorch's
    view.

    Args:
        module: the part, which DirectML's operators express.
        device: of the tensors.
        held: the numbers of the inputs that are read ahead of the runs, while they do not change.
        shared: memory that models of the same part for other sizes use too.
    """

    def __init__(
        self,
        module: GraphModule,
        device: torch.device,
        held: Collection[int] = (),
        shared: SharedMemory | None = None,
    ) -> None:
        super().__init__()
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._held = sorted(held)
        self._given = [number for number in range(len(inputs)) if number not in held]
        output = next(node for node in module.graph.nodes if node.op == "output")
        returned = output.args[0]
        self._is_single = isinstance(returned, Node)
        seen = [base_of(node) for node in ([returned] if self._is_single else returned)]
        computed = list(dict.fromkeys(base for base, _ in seen if base.op != "placeholder"))
        self._strides = [tuple(node.meta["val"].stride()) for node in inputs]
        places = {node: place for place, node in enumerate([*inputs, *computed])}
        self._returned = [(places[base], [_View(view) for view in views]) for base, views in seen]
        self._made = [_ResultLayout(node.meta["val"]) for node in computed]
        self._model = None
        if computed:
            graph = Graph()
            traced = _traced(graph, module, inputs, computed, held)
            outputs = {f"y{number}": tensor for number, tensor in enumerate(traced)}
            self._model = graph._compile(outputs, Device(str(device)), shared)
            self._weights = FrozenParameters(self._model)

    @property
    def footprint(self) -> Footprint:
        """The memory that the model takes now."""
        if self._model is None:
            return Footprint()
        return self._model._footprint(self._weights.all_prepared if self._held else None)

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Return the outputs, in new memory, or views of it and of the inputs.

        Raises:
            InvalidArgument: an input has no memory.
        """
        given = [
            tensor if tensor.stride() == strides and not tensor.is_neg() else _laid(tensor, strides)
            for tensor, strides in zip(tensors, self._strides, strict=True)
        ]
        made = [each.empty() for each in self._made]
        if self._model is not None:
            written = [each.packed(tensor) for each, tensor in zip(self._made, made, strict=True)]
            addresses = [each.data_ptr() for each in given]
            if 0 in addresses:
                given = [_laid(*each) for each in zip(given, self._strides, strict=True)]
                addresses = [each.data_ptr() for each in given]
                if 0 in addresses:
                    raise InvalidArgument("torch.compile: an input without memory, such as a fake tensor")
            held = [given[number] for number in self._held]
            self._model._run_at(
                [addresses[number] for number in self._given],
                [each.data_ptr() for each in written],
                _stream_of(made[0]),
                self._weights.prepared(held) if held else None,
            )
            for tensor, packed in zip(made, written, strict=True):
                if packed is not tensor:
                    tensor.copy_(packed)
        known = [*tensors, *made]
        results = []
        for place, views in self._returned:
            result = known[place]
            for view in views:
                result = view(result)
            results.append(result)
        return results[0] if self._is_single else tuple(results)


class _View:
    """A view as a call of one tensor."""

    def __init__(self, node: Node) -> None:
        self._operator: Any = node.target
        self._arguments, self._keywords = node.args[1:], node.kwargs

    def __call__(self, tensor: torch.Tensor) -> Any:
        return self._operator(tensor, *self._arguments, **self._keywords)


class _ResultLayout:
    """The layout of a result. The model writes its dimensions in the order of their strides."""

    def __init__(self, value: torch.Tensor) -> None:
        self._sizes, self._strides = tuple(value.shape), tuple(value.stride())
        self._type, self._device = value.dtype, value.device
        self.is_dense = is_dense(self._sizes, self._strides)

    def empty(self) -> torch.Tensor:
        """Return new memory for the result."""
        return torch.empty_strided(self._sizes, self._strides, dtype=self._type, device=self._device)

    def packed(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what the model writes to: the memory itself, unless there are gaps between its elements."""
        return tensor if self.is_dense else torch.empty(self._sizes, dtype=self._type, device=self._device)


def added_input(graph: Graph, name: str, value: torch.Tensor, is_held: bool = False) -> GraphTensor:
    """Add an input to the graph that has the layout of PyTorch's tensor."""
    computed, sizes = computed_type_of(value.dtype), tuple(value.shape) or (1,)
    type = "bfloat16" if value.dtype is torch.bfloat16 else computed
    strides = None if value.is_contiguous() else tuple(value.stride())
    if is_held:
        return graph._deferred_constant(type, sizes, strides)
    return graph.input(name, type, sizes, strides=strides)


def _traced(
    graph: Graph, module: GraphModule, inputs: list[Node], computed: list[Node], held: Collection[int]
) -> list[GraphTensor]:
    """Convert a part to a graph, and return its results in the layouts in which they are written."""
    values: dict[Node, Any] = {
        node: added_input(graph, f"x{number}", node.meta["val"], number in held)
        for number, node in enumerate(inputs)
    }
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            values[node] = values[node.args[0]][node.args[1]]
            continue
        results = TorchConversion(node, graph, values.__getitem__).converted()
        values[node] = results if isinstance(node.meta["val"], tuple | list) else results[0]
    return [_as_written(values[node], node.meta["val"]) for node in computed]


def _as_written(tensor: GraphTensor, value: torch.Tensor) -> GraphTensor:
    order = written_order(value.shape, value.stride())
    if order == sorted(order) or not is_dense(value.shape, value.stride()):
        return tensor
    permuted = tensor.permute(order)
    return permuted.rounded() if value.dtype is torch.bfloat16 else permuted


def _laid(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor with the strides of the trace, and with its elements in memory."""
    lying = zip(tensor.shape, tensor.stride(), strides, strict=True)
    # The memory of a lazy tensor has the negatives of its elements, or there is none for its zeros.
    is_lazy = tensor.is_neg() or tensor._is_zerotensor()
    if not is_lazy and all(size == 1 or own == stride for size, own, stride in lying):
        return tensor
    copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    first = tuple(slice(None if stride else 1) for stride in strides)  # what is repeated is written once
    copy[first].copy_(tensor[first])
    return copy


def _stream_of(tensor: torch.Tensor) -> int | None:
    """Return the current stream of a tensor's device; None for the CPU."""
    if tensor.device.type != "cuda":
        return None
    stream: int = torch.cuda.current_stream(tensor.device).cuda_stream
    return stream
