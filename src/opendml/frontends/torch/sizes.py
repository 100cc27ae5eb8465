"""Graphs with symbolic sizes, compiled for each of the sizes that they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.node import map_arg

from opendml.frontends.torch.conversion import outputs_of
from opendml.frontends.torch.part import Part
from opendml.runtime.locked import Locked

MOST_SIZES = 64
"""For how many sizes of its inputs a graph is kept; those that were used longest ago go first."""

MOST_TEMPORARY_BYTES = 1 << 30
"""The sizes that were used last keep so many bytes of temporaries; others take new ones when they run."""

Run = Callable[..., Any]


def has_symbols(module: GraphModule) -> bool:
    """Whether a graph has sizes that differ from run to run."""
    return any(_is_symbolic(each) for node in module.graph.nodes for each in outputs_of(node))


def depends_on_values(module: GraphModule) -> bool:
    """Whether a graph has sizes or numbers that are known only when what is before them has run."""
    return any(free_unbacked_symbols(each) for node in module.graph.nodes for each in outputs_of(node))


class Sized(Locked):
    """Runs a graph with symbolic sizes.

    Args:
        module: the graph.
        compiled: compiles a graph whose sizes are all known.
    """

    def __init__(self, module: GraphModule, compiled: Callable[[GraphModule], GraphModule]) -> None:
        super().__init__()
        self._module, self._compiled = module, compiled
        inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        self._symbolic = [number for number, value in enumerate(inputs) if _is_symbolic(value)]
        self._kept: dict[Any, GraphModule] = {}
        self._last: Any = None

    def __call__(self, *given: Any) -> Any:
        """The results for these inputs."""
        return self._run_for(given)(*given)

    def _run_for(self, given: Sequence[Any]) -> GraphModule:
        key = tuple(_key(given[number]) for number in self._symbolic)
        with self._lock:
            if key == self._last:
                return self._kept[key]
            run = self._kept.pop(key, None) or self._compiled(self._specialized(given))
            while len(self._kept) >= MOST_SIZES:
                self._kept.pop(next(iter(list(self._kept))), None)
            self._kept[key], self._last = run, key
            self._free_temporaries()
        return run

    def _free_temporaries(self) -> None:
        """Frees what is too much, of those that were used longest ago."""
        kept = 0
        for number, run in enumerate(reversed(list(self._kept.values()))):
            parts = [each for each in run.children() if isinstance(each, Part)]
            kept += sum(part.temporary_bytes for part in parts)
            if number and kept > MOST_TEMPORARY_BYTES:
                for part in parts:
                    part.free_temporaries()

    def _specialized(self, given: Sequence[Any]) -> GraphModule:
        """The graph for the sizes of these tensors. PyTorch's tracer would refuse calls of other threads."""
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
    """A tensor without content; others as they are."""
    return mode.from_tensor(value.detach()) if isinstance(value, torch.Tensor) else value


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        numbers = (*value.shape, *(value.stride() if value.layout is torch.strided else ()))
        return any(isinstance(each, torch.SymInt) for each in numbers)
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _key(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return tuple(given.shape), given.stride()
    return given
