"""A part of PyTorch's graph as one compiled model, over PyTorch's own memory."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from opendml.frontends.common.types import computed_type_of
from opendml.frontends.torch.conversion import TorchConversion
from opendml.frontends.torch.layout import is_dense, with_strides, written_order
from opendml.frontends.torch.symbols import TENSORS, Tracing, values_at
from opendml.frontends.torch.views import base_of
from opendml.frontends.torch.weights import FrozenParameters, require_memory
from opendml.runtime.graphs.compiled_work import Prepared
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.shared import Footprint, SharedMemory
from opendml.runtime.graphs.tensor import GraphTensor
from opendml.runtime.graphs.traced_model import TracedModel
from opendml.runtime.objects.device import Device


class Part:
    """A compiled part of a graph, which takes and returns the tensors that PyTorch's trace has.

    Results have the strides of the trace. A view of an input or of another output is returned as PyTorch's
    view.

    Args:
        module: the part, which DirectML's operators express.
        device: of the tensors.
        tracing: makes the trace of its sizes; None: all are known.
        held: the numbers of the inputs that are read ahead of the runs, while they do not change.
        shared: memory that other models use too.

    Attributes:
        layout: the numbers that say where tensors lie, some of which may be traced (`PartRun`).
    """

    def __init__(
        self,
        module: GraphModule,
        device: torch.device,
        tracing: Tracing | None,
        held: Collection[int] = (),
        shared: SharedMemory | None = None,
    ) -> None:
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        output = next(node for node in module.graph.nodes if node.op == "output")
        returned = output.args[0]
        self.is_single = isinstance(returned, Node)
        seen = [base_of(node) for node in ([returned] if self.is_single else returned)]
        computed = list(dict.fromkeys(base for base, _ in seen if base.op != "placeholder"))
        tensors = [number for number, node in enumerate(inputs) if _is_tensor(node)]
        self.tensors = tensors if len(tensors) < len(inputs) else None
        inputs = [inputs[number] for number in tensors]
        self.held = [place for place, number in enumerate(tensors) if number in held]
        self.given = [place for place, number in enumerate(tensors) if number not in held]
        places = {node: place for place, node in enumerate([*inputs, *computed])}
        self.views = [(places[base], [view.target for view in views]) for base, views in seen]
        self.types = [(node.meta["val"].dtype, node.meta["val"].device) for node in computed]
        self.layout = (
            [tuple(node.meta["val"].stride()) for node in inputs],
            [(tuple(node.meta["val"].shape), tuple(node.meta["val"].stride())) for node in computed],
            [[_arguments_of(view) for view in views] for _, views in seen],
        )
        self._model: Model | TracedModel | None = None
        if computed:
            dimensions = None if tracing is None else tracing.of_part()
            for node in module.graph.nodes:
                if dimensions is not None and "val" in node.meta:
                    node.meta["val"] = values_at(node.meta["val"], dimensions)
            graph, on = Graph(), Device(str(device))
            traced = _traced(graph, module, inputs, computed, self.held)
            outputs = {f"y{number}": tensor for number, tensor in enumerate(traced)}
            if tracing is None or dimensions is None or not dimensions.trace.dimensions:
                self._model = graph._compile(outputs, on, shared)
            else:
                tracing.require(dimensions.trace)
                self._model = graph._traced(outputs, on, shared or SharedMemory(), dimensions.trace)

    @property
    def plan_count(self) -> int:
        """The number of plans that the model has made so far."""
        return self._model.plan_count if isinstance(self._model, TracedModel) else 0

    def at(self, dimensions: Mapping[str, int], layout: Any) -> PartRun | None:
        """Return the part for sizes of dimensions; None: it does not serve them.

        Args:
            layout: the part's layout for these dimensions.
        """
        model = self._model.at(dimensions) if isinstance(self._model, TracedModel) else self._model
        return None if model is None and self._model is not None else PartRun(self, model, layout)

    def footprint(self, runs: Iterable[PartRun]) -> Footprint:
        """Return the memory that the model takes now, with the parameters that some runs have read ahead."""
        if self._model is None:
            return Footprint()
        return self._model._footprint([each for run in runs for each in run.prepared] if self.held else None)


class PartRun:
    """A part for exact sizes.

    Args:
        part: the part.
        model: its model for these sizes; None: it computes nothing.
        layout: the strides of its inputs, the sizes and strides of what it computes, and the arguments of the
            views on the way to each output.
    """

    def __init__(self, part: Part, model: Model | None, layout: Any) -> None:
        strides, made, views = layout
        self._part, self._model = part, model
        self._strides = [strides[number] for number in part.given]
        self._made = [
            _ResultLayout(sizes, strides, type, device)
            for (sizes, strides), (type, device) in zip(made, part.types, strict=True)
        ]
        self._returned = [
            (place, [_View(view, *each) for view, each in zip(operators, arguments, strict=True)])
            for (place, operators), arguments in zip(part.views, views, strict=True)
        ]
        held = [strides[number] for number in part.held]
        self._weights = FrozenParameters(model, held) if model is not None and held else None

    @property
    def prepared(self) -> list[Prepared]:
        """The model over each of the parameters that it has read ahead."""
        return [] if self._weights is None else self._weights.all_prepared

    def __call__(self, *given: Any) -> Any:
        """Return the outputs, in new memory, or views of it and of the inputs.

        Args:
            given: the inputs, tensors and numbers.

        Raises:
            InvalidArgument: an input has no memory.
        """
        part = self._part
        tensors: Sequence[Any] = given
        if part.tensors is not None:
            tensors = [given[number] for number in part.tensors]
        made = [each.empty() for each in self._made]
        if self._model is not None:
            laid = [
                tensor
                if tensor.stride() == strides and not tensor.is_neg()
                else with_strides(tensor, strides)
                for tensor, strides in zip(
                    [tensors[number] for number in part.given], self._strides, strict=True
                )
            ]
            written = [each.packed(tensor) for each, tensor in zip(self._made, made, strict=True)]
            addresses = [each.data_ptr() for each in laid]
            if 0 in addresses:
                laid = [with_strides(*each) for each in zip(laid, self._strides, strict=True)]
                addresses = [each.data_ptr() for each in laid]
                require_memory(addresses)
            weights = self._weights
            self._model._run_at(
                addresses,
                [each.data_ptr() for each in written],
                _stream_of(made[0]),
                None if weights is None else weights.prepared([tensors[number] for number in part.held]),
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
        return results[0] if part.is_single else tuple(results)


class _View:
    """A view as a call of one tensor."""

    def __init__(self, operator: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> None:
        self._operator, self._arguments, self._keywords = operator, arguments, keywords

    def __call__(self, tensor: torch.Tensor) -> Any:
        return self._operator(tensor, *self._arguments, **self._keywords)


class _ResultLayout:
    """The layout of a result. The model writes its dimensions in the order of their strides."""

    def __init__(
        self, sizes: tuple[int, ...], strides: tuple[int, ...], type: torch.dtype, device: torch.device
    ) -> None:
        self._sizes, self._strides, self._type, self._device = sizes, strides, type, device
        self.is_dense = is_dense(sizes, strides)

    def empty(self) -> torch.Tensor:
        """Return new memory for the result."""
        return torch.empty_strided(self._sizes, self._strides, dtype=self._type, device=self._device)

    def packed(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what the model writes to: the memory itself, unless there are gaps between its elements."""
        return tensor if self.is_dense else torch.empty(self._sizes, dtype=self._type, device=self._device)


def added_input(graph: Graph, name: str, value: Any, is_held: bool = False) -> Any:
    """Add an input to the graph that has the layout of PyTorch's tensor. Numbers are returned."""
    if not isinstance(value, TENSORS):
        return value
    computed, sizes = computed_type_of(value.dtype), tuple(value.shape) or (1,)
    type = "bfloat16" if value.dtype is torch.bfloat16 else computed
    strides = None if value.is_contiguous() else tuple(value.stride())
    if is_held:
        return graph._deferred_constant(type, sizes, strides)
    return graph.input(name, type, sizes, strides=strides)


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta["val"], TENSORS)


def _arguments_of(view: Node) -> tuple[Any, Any]:
    """Return the arguments of a view of a tensor behind the tensor."""
    found: tuple[Any, Any] = map_arg((tuple(view.args[1:]), dict(view.kwargs)), lambda each: each.meta["val"])
    return found


def _traced(
    graph: Graph, module: GraphModule, inputs: list[Node], computed: list[Node], held: Collection[int]
) -> list[GraphTensor]:
    """Convert a part to a graph, and return its results in the layouts in which they are written."""
    values: dict[Node, Any] = {
        node: node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"
    }
    for number, node in enumerate(inputs):
        values[node] = added_input(graph, f"x{number}", node.meta["val"], number in held)
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            values[node] = values[node.args[0]][node.args[1]]
            continue
        results = TorchConversion(node, graph, values.__getitem__).converted()
        values[node] = results if isinstance(node.meta["val"], tuple | list) else results[0]
    return [_as_written(values[node], node.meta["val"]) for node in computed]


def _as_written(tensor: GraphTensor, value: Any) -> GraphTensor:
    order = written_order(value.shape, value.stride())
    if order == sorted(order) or not is_dense(value.shape, value.stride()):
        return tensor
    permuted = tensor.permute(order)
    return permuted.rounded() if value.dtype is torch.bfloat16 else permuted


def _stream_of(tensor: torch.Tensor) -> int | None:
    """Return the current stream of a tensor's device; None for the CPU."""
    if tensor.device.type != "cuda":
        return None
    stream: int = torch.cuda.current_stream(tensor.device).cuda_stream
    return stream
