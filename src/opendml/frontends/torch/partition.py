"""The division of PyTorch's graph into parts for DirectML, as few as possible, and the rest."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from opendml.frontends.common.types import NotExpressible
from opendml.frontends.torch.conversion import TorchConversion, outputs_of, require_tensor, wanted_of
from opendml.frontends.torch.layout import overlaps
from opendml.frontends.torch.part import Part, PartRun, added_input
from opendml.frontends.torch.registry import converter_of
from opendml.frontends.torch.symbols import TENSORS, Expressions, Tracing, is_exact
from opendml.frontends.torch.views import is_view
from opendml.locked import Locked
from opendml.program.sizes import is_traced
from opendml.runtime.graphs.graph import Graph
from opendml.runtime.graphs.shared import Footprint, SharedMemory
from opendml.runtime.graphs.traced_model import MOST_SIZES

_PREFIX = "opendml_"


def without_empty_operands(module: GraphModule) -> None:
    """Remove operands of joins without elements, such as an empty past, and then nodes that nothing reads."""
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.cat.default:
            tensors, *axis = node.args
            node.args = ([each for each in tensors if 0 not in each.meta["val"].shape] or tensors, *axis)
    module.graph.eliminate_dead_code()


def with_own_memory(module: GraphModule, trusts_inputs: bool) -> None:
    """Correct the strides of results that repeat memory, and of views of them.

    PyTorch's trace says of `diagonal_scatter` and the like, given an expanded tensor, that the result is
    expanded too. Its kernels return new memory in which each element has its place.

    Args:
        trusts_inputs: whether inputs lie as the trace says; those of a backward graph may be such results.
    """
    corrected: set[Node] = set()
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        if is_view(node):
            if corrected.intersection(node.all_input_nodes):
                args = map_arg(node.args, lambda each: each.meta["val"])
                node.meta["val"] = node.target(*args, **node.kwargs)
                corrected.add(node)
        elif overlaps(value.shape, value.stride()) and not (trusts_inputs and node.op == "placeholder"):
            node.meta["val"] = value.contiguous()
            corrected.add(node)


def reasons_against(module: GraphModule, device: torch.device) -> dict[Node, str]:
    """Return the nodes that DirectML does not express, with the reasons. Each node is tried alone."""
    reasons: dict[Node, str] = {}
    for node in module.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        try:
            _try(node, device)
        except NotExpressible as error:
            reasons[node] = str(error)
    return reasons


def _try(node: Node, device: torch.device) -> None:
    """Convert a node in a graph of its own.

    Raises:
        NotExpressible: DirectML's operators do not express it.
    """
    if converter_of(node.target) is None:
        raise NotExpressible("opendml has no mapping to DirectML's operators")
    outputs = [each for each, wanted in zip(outputs_of(node), wanted_of(node), strict=True) if wanted]
    given = [each.meta.get("val") for each in node.all_input_nodes]
    tensors = [*outputs, *(each for each in given if not isinstance(each, int | float))]
    for tensor in tensors:
        require_tensor(tensor)
        if tensor.device != device:
            raise NotExpressible(f"a tensor on {tensor.device} beside others on {device}")
    graph = Graph()
    inputs = {each: added_input(graph, each.name, each.meta["val"]) for each in node.all_input_nodes}
    results = TorchConversion(node, graph, inputs.__getitem__).converted()
    for number, (result, wanted) in enumerate(zip(results, wanted_of(node), strict=True)):
        if wanted and result is None:
            raise NotExpressible(f"output {number} has no mapping to DirectML's operators")


def device_of(module: GraphModule) -> torch.device:
    """Return the first device of a graph that is not the CPU, or the CPU."""
    tensors = [each for node in module.graph.nodes for each in outputs_of(node)]
    devices = [each.device for each in tensors if isinstance(each, TENSORS)]
    return next((each for each in devices if each.type != "cpu"), torch.device("cpu"))


def parts_of(module: GraphModule, reasons: dict[Node, str]) -> list[list[Node]]:
    """Return the nodes of each part.

    The level of a node is the number of changes from DirectML to PyTorch and back on the way to it. A part
    has the nodes of one level, so no part waits for itself. There are no more parts than changes on the
    longest path. Nodes that compute nothing do not make a part.
    """
    levels: dict[Node, int] = {}
    parts: dict[int, list[Node]] = defaultdict(list)
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        said = [(levels[each], _is_said(each, reasons)) for each in node.all_input_nodes if each in levels]
        is_said = _is_said(node, reasons)
        levels[node] = max((level + (was and not is_said) for level, was in said), default=0)
        if is_said:
            parts[levels[node]].append(node)
    return [nodes for nodes in parts.values() if any(_computes(node) for node in nodes)]


def _is_said(node: Node, reasons: dict[Node, str]) -> bool:
    """Return whether a node is for DirectML. One that takes an output of another goes with it."""
    if node.target is operator.getitem:
        return _is_said(node.all_input_nodes[0], reasons)
    return node.op == "call_function" and node not in reasons


def _computes(node: Node) -> bool:
    """Return whether a node does more than view memory, or make a constant."""
    reads_tensors = any(not isinstance(each.meta.get("val"), int | float) for each in node.all_input_nodes)
    return reads_tensors and not is_view(node) and node.target is not operator.getitem


def with_numbers(module: GraphModule) -> list[Any]:
    """Replace nodes that compute numbers by inputs behind those of the graph.

    Returns:
        The numbers, which follow from the sizes of a run.
    """
    last = [node for node in module.graph.nodes if node.op == "placeholder"][-1]
    made: dict[Any, Node] = {}
    for node in reversed(module.graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, int | float):
            continue
        number = value
        if is_traced(value):
            if value not in made:
                with module.graph.inserting_after(last):
                    made[value] = module.graph.placeholder(f"number_{len(made)}")
                made[value].meta["val"] = value
            number = made[value]
        for user in list(node.users):
            args, keywords = map_arg((user.args, user.kwargs), lambda each: number if each is node else each)  # noqa: B023
            user.args, user.kwargs = args, keywords
        module.graph.erase_node(node)
    return list(made)[::-1]


class DividedGraph(Locked):
    """A graph whose parts are compiled, for exact sizes or for all sizes that meet the guards of its traces.

    Args:
        module: the graph.
        parts: the nodes of each part.
        device: of the tensors.
        tracing: makes the traces of parts; None: all sizes are known.
        held: the numbers of the inputs that parts read ahead of the runs.
        shared: memory that other models use too.
        numbers: the numbers that follow from the sizes of a run, for the last inputs of the graph.
    """

    def __init__(
        self,
        module: GraphModule,
        parts: list[list[Node]],
        device: torch.device,
        tracing: Tracing | None,
        held: Collection[int] = (),
        shared: SharedMemory | None = None,
        numbers: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self.module: Any = fuse_by_partitions(
            module, [dict.fromkeys(nodes) for nodes in parts], prefix=_PREFIX
        )
        graph = self.module.graph
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        read_ahead = {inputs[number] for number in held if is_exact(inputs[number].meta["val"])}
        with graph.inserting_after(inputs[-1]) if inputs else graph.inserting_before(None):
            runs = graph.placeholder("opendml_runs")
        self._parts: list[Part] = []
        for node in graph.nodes:
            if node.op == "call_module" and node.target.startswith(_PREFIX):
                places = [number for number, each in enumerate(node.args) if each in read_ahead]
                part = Part(getattr(self.module, node.target), device, tracing, places, shared)
                setattr(self.module, node.target, _PartOfRun(len(self._parts)))
                node.args = (runs, *node.args)
                self._parts.append(part)
        self.module.recompile()
        self._expressions = Expressions((list(numbers), [part.layout for part in self._parts]))
        self._runs: dict[Any, GraphRun] = {}

    def at(self, sizes: Mapping[str, int]) -> GraphRun | None:
        """Return the graph for sizes of its dimensions; None: a part does not serve them.

        The sizes meet the guards of the graph.
        """
        key = tuple(sizes.values())
        found = self._runs.get(key)
        if found is None:
            numbers, layouts = self._expressions.at(sizes)
            runs = []
            for part, layout in zip(self._parts, layouts, strict=True):
                run = part.at(sizes, layout)
                if run is None:
                    return None
                runs.append(run)
            found = GraphRun(self.module, runs, numbers)
            with self._lock:
                while len(self._runs) >= MOST_SIZES:
                    del self._runs[next(iter(self._runs))]
                self._runs[key] = found
        return found

    @property
    def reads_ahead(self) -> bool:
        """True if parts read inputs ahead of the runs."""
        return any(part.held for part in self._parts)

    @property
    def plan_count(self) -> int:
        """The number of plans that its parts have made so far."""
        return sum(part.plan_count for part in self._parts)

    @property
    def footprint(self) -> Footprint:
        """The memory that the parts take."""
        by_part = zip(*[run.parts for run in list(self._runs.values())], strict=True)
        every = [part.footprint(runs) for part, runs in zip(self._parts, by_part, strict=True)]
        return Footprint(
            sum(each.own_bytes for each in every),
            frozenset().union(*(each.kept for each in every)),
            max((each.arena_bytes for each in every), default=0),
        )


class GraphRun:
    """A divided graph for exact sizes.

    Args:
        module: the graph; its parts are of other inputs.
        parts: the parts for these sizes.
        numbers: the numbers that follow from the sizes.
    """

    def __init__(self, module: GraphModule, parts: Sequence[PartRun], numbers: Sequence[Any]) -> None:
        self.parts = parts
        self._module, self._behind = module, (*numbers, parts)

    def __call__(self, *given: Any) -> Any:
        """Return the outputs of the graph."""
        return self._module(*given, *self._behind)


class _PartOfRun(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """The call of a part, which runs have for their sizes."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def forward(self, runs: Sequence[PartRun], *given: Any) -> Any:
        """Return the outputs of the part."""
        return runs[self._number](*given)
