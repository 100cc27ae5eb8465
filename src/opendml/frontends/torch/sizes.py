"""Graphs with symbolic sizes, compiled for each of the sizes that they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.node import map_arg

from opendml.frontends.torch.conversion import outputs_of
from opendml.frontends.torch.part import Part
from opendml.locked import Locked
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.shared import Footprint

Run = Callable[..., Any]


def has_symbols(module: GraphModule) -> bool:
    """Return whether a graph has sizes that differ from run to run."""
    return any(_is_symbolic(each) for node in module.graph.nodes for each in outputs_of(node))


def depends_on_values(module: GraphModule) -> bool:
    """Return whether a graph has sizes or numbers that depend on the values of tensors."""
    return any(free_unbacked_symbols(each) for node in module.graph.nodes for each in outputs_of(node))


@dataclass(frozen=True, eq=False)
class _Size:
    """A graph that is compiled for some sizes of its inputs, the entry `beside[key]`."""

    run: GraphModule
    beside: dict[Any, _Size]
    key: Any

    @property
    def footprint(self) -> Footprint:
        """The memory that its parts take."""
        every = [each.footprint for each in self.run.children() if isinstance(each, Part)]
        return Footprint(
            sum(each.own_bytes for each in every),
            frozenset().union(*(each.kept for each in every)),
            max((each.arena_bytes for each in every), default=0),
        )

    def forget(self) -> None:
        """Drop the entry."""
        if self.beside.get(self.key) is self:
            del self.beside[self.key]


class Sized(Locked):
    """Runs a graph with symbolic sizes.

    Args:
        module: the graph.
        compiled: compiles a graph whose sizes are all known.
        kept: decides for which sizes what is compiled stays.
    """

    def __init__(
        self, module: GraphModule, compiled: Callable[[GraphModule], GraphModule], kept: ModelCache
    ) -> None:
        super().__init__()
        self._module, self._compiled = module, compiled
        inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        self._symbolic = [number for number, value in enumerate(inputs) if _is_symbolic(value)]
        self._kept = kept
        self._sizes: dict[Any, _Size] = {}
        self._last: _Size | None = None

    def __call__(self, *given: Any) -> Any:
        """Return the results for these inputs."""
        size = self._size_of(given)
        try:
            return size.run(*given)
        finally:  # Only a run shows what is kept of parameters.
            if size is not self._last:
                self._kept.use([size], changed=True)
                self._last = size

    def _size_of(self, given: Sequence[Any]) -> _Size:
        symbolic = (given[number] for number in self._symbolic)
        key = tuple(
            (*each.shape, each.stride()) if isinstance(each, torch.Tensor) else each for each in symbolic
        )
        found = self._sizes.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._sizes.get(key)
            if found is None:
                found = _Size(self._compiled(self._specialized(given)), self._sizes, key)
                self._sizes[key] = found
            return found

    def _specialized(self, given: Sequence[Any]) -> GraphModule:
        """Return the graph for the sizes of these tensors.

        PyTorch's tracer would refuse calls of other threads.
        """
        mode, graph = FakeTensorMode(), Graph()
        inputs = iter(given)
        values: dict[Node, Any] = {}
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                values[node] = _fake(mode, next(inputs))
            elif node.op == "get_attr":
                values[node] = _fake(mode, attrgetter(node.target)(self._module))
        made: dict[Node, Any] = {}
        with torch.no_grad(), mode:
            for node in self._module.graph.nodes:
                if node.op == "call_function":
                    args, keywords = map_arg((node.args, node.kwargs), values.__getitem__)
                    values[node] = node.target(*args, **keywords)
                value = made[node] = values.get(node)
                is_number = isinstance(value, bool | int | float)
                if node.op == "call_function" and is_number:
                    continue
                copy = graph.node_copy(node, made.__getitem__)
                copy.meta["val"] = value
                if not is_number:
                    made[node] = copy
        return GraphModule(self._module, graph)


def _fake(mode: FakeTensorMode, value: Any) -> Any:
    """Return a tensor without content, and other values as they are."""
    return mode.from_tensor(value.detach()) if isinstance(value, torch.Tensor) else value


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        numbers = (*value.shape, *(value.stride() if value.layout is torch.strided else ()))
        return any(isinstance(each, torch.SymInt) for each in numbers)
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)
