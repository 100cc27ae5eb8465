"""Graphs with symbolic sizes, compiled for all sizes that meet the guards of a trace.

A graph that cannot be traced is compiled for each of the sizes that it meets.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.node import map_arg

from opendml.frontends.torch.conversion import outputs_of
from opendml.frontends.torch.partition import DividedGraph, GraphRun
from opendml.frontends.torch.symbols import Symbols, Tracing, Untraceable, values_at
from opendml.late_dataclass import dataclass
from opendml.locked import Locked
from opendml.logs import log
from opendml.program.buckets import ranges_of
from opendml.program.size_values import Conditions
from opendml.program.sizes import is_traced
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.plan_maker import UNTRACED, hints_in
from opendml.runtime.graphs.shared import Footprint
from opendml.runtime.graphs.traced_model import MOST_SIZES
from opendml.runtime.objects.device import Device

Run = Callable[..., Any]
Divide = Callable[..., DividedGraph]
"""A function that compiles a graph, of exact sizes or with dimensions (`backend._divided`)."""

_MOST_TRACES = 16
"""Traces of a graph, at most. Another one takes the place of the oldest."""
_MOST_UNTRACED = 2
"""Traces that fail before other sizes are compiled exactly at once."""


def has_symbols(module: GraphModule) -> bool:
    """Return whether a graph has sizes that differ from run to run."""
    return any(_is_symbolic(each) for node in module.graph.nodes for each in outputs_of(node))


def depends_on_values(module: GraphModule) -> bool:
    """Return whether a graph has sizes or numbers that depend on the values of tensors."""
    return any(free_unbacked_symbols(each) for node in module.graph.nodes for each in outputs_of(node))


class _Compiled:
    """A graph that is compiled for some sizes, as an entry of the `ModelCache`.

    Args:
        graph: the graph.
        forget: drops it.
    """

    def __init__(self, graph: DividedGraph, forget: Callable[[_Compiled], None]) -> None:
        self.graph, self._forget = graph, forget
        self.noted_plans = 0

    @property
    def footprint(self) -> Footprint:
        """The memory that its parts take."""
        return self.graph.footprint

    def forget(self) -> None:
        """Drop the graph."""
        self._forget(self)


class _Traced(_Compiled):
    """A graph that is compiled for all sizes that meet the guards of its trace.

    Args:
        pattern: the symbols that it traces.
        tracing: the trace.
    """

    def __init__(
        self, graph: DividedGraph, forget: Callable[[_Compiled], None], pattern: _Pattern, tracing: Tracing
    ) -> None:
        super().__init__(graph, forget)
        self._pattern, self._conditions = pattern, Conditions(tracing.used.trace.guards)

    def at(self, sizes: tuple[int, ...]) -> GraphRun | None:
        """Return the graph for the sizes of all symbols; None: it does not serve them."""
        if not self._pattern.fits(sizes):
            return None
        dimensions = self._pattern.dimensions(sizes)
        return self.graph.at(dimensions) if self._conditions(dimensions) else None


@dataclass(frozen=True)
class _Pattern:
    """The symbols that are traced, and those that equal one of them or a plain number.

    Args:
        names: the dimensions of a trace.
        places: for each of these the place of its symbol.
        equal: pairs of places of symbols that are equal.
        plain: places of symbols, and the sizes that they have.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]
    equal: tuple[tuple[int, int], ...]
    plain: tuple[tuple[int, int], ...]

    def fits(self, sizes: tuple[int, ...]) -> bool:
        """Return whether sizes of all symbols have these equalities and plain values."""
        is_equal = all(sizes[first] == sizes[second] for first, second in self.equal)
        return is_equal and all(sizes[place] == size for place, size in self.plain)

    def dimensions(self, sizes: tuple[int, ...]) -> dict[str, int]:
        """Return the sizes of the dimensions for those of all symbols."""
        return {name: sizes[place] for name, place in zip(self.names, self.places, strict=True)}

    def values(self, symbols: Sequence[str], dimensions: Mapping[str, int]) -> dict[str, int]:
        """Return the values of all symbols for dimensions by name."""
        found = {
            symbols[place]: dimensions[name] for name, place in zip(self.names, self.places, strict=True)
        }
        found |= {symbols[second]: found[symbols[first]] for first, second in self.equal}
        return found | {symbols[place]: size for place, size in self.plain}


def _pattern_of(symbols: Symbols, sizes: tuple[int, ...], plain: Container[str]) -> _Pattern:
    """Return a pattern for sizes: those that are equal now are taken to be always equal.

    The lengths of the keys and values of all layers are an example. Sizes without these equalities get a
    pattern of their own.

    Args:
        plain: symbols that are not traced.
    """
    first: dict[int, int] = {}
    equal, known = [], []
    for place, (name, size) in enumerate(zip(symbols.names, sizes, strict=True)):
        lowest, highest = symbols.ranges[name]
        if name in plain or not lowest <= size <= highest or lowest == highest:
            known.append((place, size))
        elif first.setdefault(size, place) != place:
            equal.append((first[size], place))
    places = tuple(first.values())
    return _Pattern(tuple([symbols.names[each] for each in places]), places, tuple(equal), tuple(known))


class Sized(Locked):
    """Runs a graph with symbolic sizes.

    Args:
        module: the graph.
        symbols: its symbols, or why it cannot be traced.
        divide: compiles a graph.
        kept: decides for which sizes what is compiled stays.
        device: the device. Hints of traces are multiples of its backend's `hint_multiple`.
    """

    def __init__(
        self, module: GraphModule, symbols: Symbols | str, divide: Divide, kept: ModelCache, device: Device
    ) -> None:
        super().__init__()
        self._module, self._divide, self._kept = module, divide, kept
        self._symbols = symbols if isinstance(symbols, Symbols) else None
        self._reason = "" if isinstance(symbols, Symbols) else symbols
        self._multiple = device._backend.hint_multiple
        inputs = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        self._symbolic = [number for number, value in enumerate(inputs) if _is_symbolic(value)]
        self._traced: list[_Traced] = []
        self._untraced = 0
        self._plain: dict[str, str] = {}
        """Symbols that the graph needs as plain numbers, and why."""
        self._exact: dict[Any, _Compiled] = {}
        self._known: dict[Any, tuple[_Compiled, GraphRun]] = {}
        self._last: GraphRun | None = None

    def __call__(self, *given: Any) -> Any:
        """Return the results for these inputs."""
        key = self._shapes_of(given) if self._symbols is None else self._symbols.sizes_of(given)
        known = self._known.get(key)
        if known is None:
            known = self._known_of(key, given)
        compiled, run = known
        try:
            return run(*given)
        finally:  # Only a run shows what is kept of parameters.
            if run is not self._last:
                plans = compiled.graph.plan_count
                has_changed = plans != compiled.noted_plans or not plans or compiled.graph.reads_ahead
                self._kept.use([compiled], changed=has_changed)
                self._last, compiled.noted_plans = run, plans

    def _known_of(self, key: Any, given: Sequence[Any]) -> tuple[_Compiled, GraphRun]:
        """Return what serves some sizes, compiled now if it has to be."""
        with self._lock:
            known = self._known.get(key) or self._found(key, given)
            while len(self._known) >= MOST_SIZES:
                del self._known[next(iter(self._known))]
            self._known[key] = known
            return known

    def _found(self, key: Any, given: Sequence[Any]) -> tuple[_Compiled, GraphRun]:
        if self._symbols is not None:
            for traced in self._traced:
                run = traced.at(key)
                if run is not None:
                    return traced, run
            if self._untraced < _MOST_UNTRACED:
                found = self._newly_traced(self._symbols, key)
                if found is not None:
                    return found
                self._untraced += 1
                log.warning("sizes %s cannot be traced through a graph: %s", key, self._reason)
        shapes = self._shapes_of(given)
        compiled = self._exact.get(shapes)
        if compiled is None:
            graph = self._divide(self._specialized(given), untraced=self._reason)

            def forget(which: _Compiled) -> None:
                self._exact.pop(shapes, None)
                self._forget(which)

            compiled = self._exact[shapes] = _Compiled(graph, forget)
        run = compiled.graph.at({})
        assert run is not None
        return compiled, run

    def _newly_traced(self, symbols: Symbols, sizes: tuple[int, ...]) -> tuple[_Compiled, GraphRun] | None:
        """Return a new trace that serves the sizes of all symbols; None if none does."""
        # Sizes that the graph needs as plain numbers are found one after the other.
        while own := (pattern := _pattern_of(symbols, sizes, self._plain)).dimensions(sizes):
            bounds = {name: symbols.ranges[name] for name in own}
            ranges = zip(own, ranges_of(own.values()), strict=True)
            within = {name: _common(range, bounds[name]) for name, range in ranges}
            usual = hints_in(within, own, self._multiple)
            for hints in (usual, own) if usual != own else (own,):
                tracing = Tracing(own, hints, bounds)
                try:
                    run = self._newly_compiled(symbols, pattern, tracing, sizes)
                except Untraceable as error:
                    self._reason, dimension = str(error), error.dimension
                except UNTRACED as error:
                    self._reason, dimension = f"{type(error).__name__}: {error}", ""
                else:
                    if run is not None:
                        return run
                    self._reason, dimension = "the launches of its kernels need plain sizes", ""
                if dimension and hints is own:
                    same = [
                        name
                        for name, size in zip(symbols.names, sizes, strict=True)
                        if size == own[dimension]
                    ]
                    self._plain.update(dict.fromkeys(same, self._reason))
            if not dimension:
                return None
        return None

    def _newly_compiled(
        self, symbols: Symbols, pattern: _Pattern, tracing: Tracing, sizes: tuple[int, ...]
    ) -> tuple[_Compiled, GraphRun] | None:
        """Compile a trace, and return it if it serves some sizes."""
        known = pattern.values(symbols.names, tracing.used)
        values = {node: values_at(value, known) for node, value in symbols.values.items()}
        reasons = "; ".join(dict.fromkeys(self._plain.values()))
        graph = self._divide(_copied(self._module, values), tracing, untraced=reasons)
        traced = _Traced(graph, self._forget, pattern, tracing)
        run = traced.at(sizes)
        if run is None:
            return None
        del self._traced[: len(self._traced) + 1 - _MOST_TRACES]
        self._traced.append(traced)
        return traced, run

    def _forget(self, compiled: _Compiled) -> None:
        """Drop what is compiled, with all that leads to it."""
        if compiled in self._traced:
            self._traced.remove(compiled)
        for key in [key for key, (each, _) in list(self._known.items()) if each is compiled]:
            self._known.pop(key, None)

    def _shapes_of(self, given: Sequence[Any]) -> Any:
        symbolic = (given[number] for number in self._symbolic)
        return tuple(
            (*each.shape, each.stride()) if isinstance(each, torch.Tensor) else each for each in symbolic
        )

    def _specialized(self, given: Sequence[Any]) -> GraphModule:
        """Return the graph for the sizes of these tensors.

        PyTorch's tracer would refuse calls of other threads.
        """
        mode, inputs = FakeTensorMode(), iter(given)
        values: dict[Node, Any] = {}
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                values[node] = _fake(mode, next(inputs))
            elif node.op == "get_attr":
                values[node] = _fake(mode, attrgetter(node.target)(self._module))
        with torch.no_grad(), mode:
            for node in self._module.graph.nodes:
                if node.op == "call_function":
                    args, keywords = map_arg((node.args, node.kwargs), values.__getitem__)
                    values[node] = node.target(*args, **keywords)
        return _copied(self._module, values)


def _common(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int]:
    """Return the common part of two ranges."""
    return max(first[0], second[0]), min(first[1], second[1])


def _copied(module: GraphModule, values: Mapping[Node, Any]) -> GraphModule:
    """Return a copy of a graph with other values of its nodes. Plain numbers are arguments of its nodes."""
    graph, made = Graph(), dict[Node, Any]()
    for node in module.graph.nodes:
        value = made[node] = values.get(node)
        is_number = isinstance(value, bool | int | float) and not is_traced(value)
        if node.op == "call_function" and is_number:
            continue
        copy = graph.node_copy(node, made.__getitem__)
        copy.meta["val"] = value
        if not is_number:
            made[node] = copy
    return GraphModule(module, graph)


def _fake(mode: FakeTensorMode, value: Any) -> Any:
    """Return a tensor without content, and other values as they are."""
    return mode.from_tensor(value.detach()) if isinstance(value, torch.Tensor) else value


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        numbers = (*value.shape, *(value.stride() if value.layout is torch.strided else ()))
        return any(isinstance(each, torch.SymInt) for each in numbers)
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)
