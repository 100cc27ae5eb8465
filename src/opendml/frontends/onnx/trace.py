"""An ONNX graph as a tree of steps: compiled graphs, nodes on the evaluator, questions about contents.

A graph is traced while it first runs, once for all sizes and types of its inputs. A step leads to the next
one by its answer: compiled graphs have one successor, questions about the content of a tensor one for each
content, nodes on the evaluator one for each tuple of sizes that they return. So models whose sizes, axes or
branches depend on data are compiled for what they meet, and a path that was taken before costs nothing anew.
"""

from __future__ import annotations

import itertools
import warnings
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from opendml.budget import check_time, meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.bodies import (
    Functions,
    branch_nodes,
    function_nodes,
    has_body,
    schema_nodes,
    type_of,
)
from opendml.frontends.onnx.conversion import NotExpressible, ValueNeeded
from opendml.frontends.onnx.counted import counted_nodes
from opendml.frontends.onnx.evaluate import Evaluator, EvaluatorWarning
from opendml.frontends.onnx.hosted import hosted
from opendml.frontends.onnx.loops import is_loop, loop_of
from opendml.frontends.onnx.node import Node, free_names, nodes_of
from opendml.frontends.onnx.old_opsets import FIRST_MODERN_OPSET, modern_nodes
from opendml.frontends.onnx.segment import Compiled, Segment
from opendml.frontends.onnx.states import Pending, State, extended
from opendml.frontends.onnx.values import Computed, Held, Known, Value, array_of, form_of, held
from opendml.frontends.onnx.weights import Weights
from opendml.frontends.onnx.wide import is_wide, wide_nodes
from opendml.runtime.graphs.footprint import Footprint
from opendml.runtime.graphs.kept_models import KeptModels
from opendml.runtime.locked import Locked
from opendml.runtime.objects.device import Device

_MOST_OF_A_NAME = 64
"""Characters of a node's name that go before the names in its body. A file could make names long, and bodies
many and deep."""

Step = Callable[[dict[str, Any]], Hashable]
"""Computes into the contents of all tensors by name; returns what the next step depends on."""


@dataclass
class Stage:
    """A step, what the trace knows behind it, and the stages that followed so far.

    Args:
        after: the state behind the step by its answer; None: the step was the last.
        work: what the step runs: a compiled graph or a node outside of DirectML; None: neither.
    """

    step: Step
    after: Callable[[Hashable, Mapping[str, Any]], State] | None
    work: Compiled | Node | None = None
    following: dict[Hashable, Stage] = field(default_factory=dict)
    beside: dict[Hashable, Stage] = field(default_factory=dict)
    key: Hashable = None
    """Where it is kept: `beside[key]`."""

    @property
    def footprint(self) -> Footprint:
        """What its model takes."""
        return self.work.model._footprint() if isinstance(self.work, Compiled) else Footprint()

    def forget(self) -> None:
        """Take it, and with it all that follows, out of the tree."""
        if self.beside.get(self.key) is self:
            del self.beside[self.key]


class Tracer(Locked):
    """A graph that runs.

    Args:
        nodes: all its nodes, in their order.
        inputs, outputs: names of its tensors.
        known: tensors that every run has: initializers.
        functions: of the model.
        kept: decides which stages stay; has the memory that all sizes share.
        weights: of the model's file.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        inputs: Sequence[str],
        outputs: Sequence[str],
        known: Mapping[str, Known],
        functions: Functions,
        device: Device,
        kept: KeptModels,
        weights: Weights,
    ) -> None:
        super().__init__()
        self._start, self._inputs, self._outputs = Pending().after(nodes), tuple(inputs), tuple(outputs)
        self._known: dict[str, Value] = dict(known)
        self._functions, self._device = functions, device
        self._kept_models, self._weights = kept, weights
        self._roots: dict[Hashable, Stage] = {}
        self._prefixes = itertools.count(1)

    def run(self, given: Mapping[str, Any]) -> list[Any]:
        """The outputs for inputs by name; an input that is an initializer may be left out.

        Raises:
            Error: naming the node that cannot run.
        """
        contents = dict(given)
        for _ in self.stages(contents):
            pass
        return [contents[name] for name in self._outputs]

    def stages(self, contents: dict[str, Any]) -> Iterator[Stage]:
        """Runs the graph on inputs by name, beside which the other tensors are put; yields what was taken."""
        key = tuple([(name, form_of(content)) for name, content in contents.items()])

        def first() -> State:
            values: dict[str, Value] = {name: held(content) for name, content in contents.items()}
            return State(self._start, ChainMap(values, self._known))

        self._weights.require_whole()
        path: list[Stage] = []
        with self._kept_models.running(path):
            stage = self._kept(self._roots, key, first)
            while True:
                path.append(stage)
                answer = stage.step(contents)
                yield stage
                after = stage.after
                if after is None:
                    return
                state = lambda: after(answer, contents)  # noqa: B023, E731
                stage = self._kept(stage.following, answer, state)

    def _kept(self, stages: dict[Hashable, Stage], key: Hashable, state: Callable[[], State]) -> Stage:
        """The stage that is kept for a key, or a new one behind the state."""
        found = stages.get(key)
        if found is not None:
            return found
        with self._lock:
            found = stages.get(key)
            if found is None:
                self._weights.require_unchanged()
                with meter().timed("compile_seconds", "tracing the model"):
                    found = self._stage(state())
                found.beside, found.key = stages, key
                stages[key] = found
            return found

    def _stage(self, state: State) -> Stage:
        """The next step behind a state."""
        segment, pending = Segment(state.values, self._kept_models.shared), state.pending
        while pending:
            node, rest = pending.taken()
            check_time()
            try:
                replaced = self._replaced(node, segment)
                if replaced is not None:
                    pending = rest.after(replaced)
                elif not is_loop(node):
                    segment.take(node)
                    pending = rest
                elif segment.is_empty:
                    return self._looped(node, State(rest, extended(state.values, segment.own)))
                else:
                    return self._computed(state, segment, pending)
            except ValueNeeded as needed:
                if isinstance(state.values.get(needed.name), Held):
                    return _question(needed.name, state)
                return self._computed(state, segment, pending)
            except NotExpressible as reason:
                body = self._body(node, segment)
                if body is not None:
                    pending = rest.after(body)
                elif segment.is_empty:
                    known = extended(state.values, segment.own)
                    return self._evaluated(node, str(reason), State(rest, known))
                else:
                    return self._computed(state, segment, pending)
        return self._last(segment)

    def _replaced(self, node: Node, segment: Segment) -> tuple[Node, ...] | None:
        """The nodes that a node stands for: a function of the model, the branch that is taken, or what an
        old node is in a newer operator set.
        """
        body = function_nodes(node, self._functions, self._prefix(node))
        values = [segment.values.get(name) for name in node.inputs]
        if body is None and node.version < FIRST_MODERN_OPSET:
            body = modern_nodes(node, values, self._prefix(node))
        if body is None and is_wide(node):
            body = wide_nodes(node, segment.values, self._prefix(node))
        if body is not None or node.operator != "If" or node.domain:
            return body
        condition = segment.values.get(node.inputs[0])
        if condition is None:
            raise InvalidArgument(f"{node}: tensor {node.inputs[0]!r} is made by no node before it")
        if not isinstance(condition, Known):
            raise ValueNeeded(node.inputs[0])
        taken = "then_branch" if bool(np.all(condition.content)) else "else_branch"
        nodes, initializers = branch_nodes(node, node.attributes[taken], self._prefix(node))
        segment.values.update(known_tensors(initializers))
        return nodes

    def _body(self, node: Node, segment: Segment) -> tuple[Node, ...] | None:
        """The nodes that ONNX's schema makes an operator of, or that find and count what it takes."""
        values = [segment.values.get(name) for name in node.inputs]
        counted = counted_nodes(node, values, self._prefix(node))
        if counted is not None:
            return counted
        if has_body(node) and (wide := wide_nodes(node, segment.values, self._prefix(node))) is not None:
            return wide
        types = [None if value is None else type_of(value.sizes, value.type) for value in values]
        return schema_nodes(node, types, self._prefix(node))

    def _prefix(self, node: Node) -> str:
        return f"{node.name[:_MOST_OF_A_NAME]}/{next(self._prefixes)}/"

    def _computed(self, before: State, segment: Segment, pending: Pending) -> Stage:
        """The graph so far as a step, in front of the nodes that are left."""
        kept = {
            name: value for name, value in segment.own.items() if name in self._outputs or pending.reads(name)
        }
        compiled = segment.compiled(kept, self._device)
        made = {name: _as_held(value) for name, value in kept.items()}
        state = State(pending, extended(before.values, made))
        if compiled is None:
            return self._stage(state)
        return Stage(compiled, lambda answer, contents: state, compiled)

    def _last(self, segment: Segment) -> Stage:
        """The graph up to the outputs."""
        missing = [name for name in self._outputs if name not in segment.values]
        if missing:
            raise InvalidArgument(f"output {missing[0]!r}: no node makes it")
        compiled = segment.compiled(self._outputs, self._device)
        known = {
            name: value.content for name in self._outputs if isinstance(value := segment.values[name], Known)
        }
        shared = [
            name
            for name in self._outputs
            if isinstance(value := segment.values[name], Held) and not value.is_own
        ]

        def step(contents: dict[str, Any]) -> None:
            if compiled is not None:
                compiled(contents)
            for name, content in known.items():
                contents[name] = _copied(content)
            for name in shared:
                contents[name] = _copied(contents[name])

        return Stage(step, None, compiled)

    def _evaluated(self, node: Node, reason: str, state: State) -> Stage:
        """A node outside of DirectML."""
        run = hosted(node)
        if run is not None:
            return _host_stage(node, run, state, is_own=True)
        try:
            evaluator = Evaluator(node)
        except Unsupported as error:
            raise Unsupported(f"{error}, and DirectML cannot say it: {reason}") from error
        warnings.warn(f"{node} runs on onnx's evaluator: {reason}", EvaluatorWarning, stacklevel=2)
        return _host_stage(node, evaluator, state)

    def _looped(self, node: Node, state: State) -> Stage:
        """A node that runs its body again and again: a graph of its own, which knows what is known here."""
        graph: onnx.GraphProto = node.attributes["body"]
        inputs, captured = [each.name for each in graph.input], free_names(graph)
        known = {name: value for name in captured if isinstance(value := state.values.get(name), Known)}
        known.update(known_tensors({each.name: each for each in graph.initializer}))
        outside = sorted(captured - set(known))
        outputs = [each.name for each in graph.output]
        nodes = nodes_of(graph.node, node.opsets)
        names = [*inputs, *outside]
        shared = self._kept_models, self._weights
        tracer = Tracer(nodes, names, outputs, known, self._functions, self._device, *shared)

        def run(contents: Mapping[str, Any]) -> dict[str, Any]:
            taken = {name: contents[name] for name in outside}

            def body(given: Sequence[Any]) -> Sequence[Any]:
                return tracer.run({**dict(zip(inputs, given, strict=True)), **taken})

            try:
                results = loop_of(node, body)(contents)
            except Error as error:
                raise error._within(node) from error
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a body that does not fit
                raise InvalidArgument(f"{node}: {type(error).__name__}: {error}") from error
            return {name: each for name, each in zip(node.outputs, results, strict=False) if name}

        return _host_stage(node, run, state)


def _host_stage(
    node: Node, run: Callable[[Mapping[str, Any]], dict[str, Any]], state: State, is_own: bool = False
) -> Stage:
    """A node that runs here, on contents by name; the next step depends on its results' sizes and types.

    Args:
        is_own: whether its results lie in memory that nothing else has.
    """
    missing = sorted(name for name in node.reads if name not in state.values)
    if missing:
        raise InvalidArgument(f"{node}: tensor {missing[0]!r} is made by no node before it")
    known = {name: value.content for name in node.reads if isinstance(value := state.values[name], Known)}
    given = node.reads - known.keys()

    def step(contents: dict[str, Any]) -> Hashable:
        results = run({**known, **{name: contents[name] for name in given}})
        contents.update(results)
        return tuple(map(form_of, results.values()))

    def after(answer: Hashable, contents: Mapping[str, Any]) -> State:
        made = {name: held(contents[name], is_own) for name in node.outputs if name}
        return State(state.pending, extended(state.values, made))

    return Stage(step, after, node)


def _question(name: str, state: State) -> Stage:
    """Asks for the content of a tensor."""

    def step(contents: dict[str, Any]) -> Hashable:
        array = contents[name]
        return tuple(array.flat) if array.dtype.hasobject else array.tobytes()

    def after(answer: Hashable, contents: Mapping[str, Any]) -> State:
        return State(state.pending, extended(state.values, {name: Known(contents[name].copy())}))

    return Stage(step, after)


def _as_held(value: Value) -> Value:
    return Held(value.sizes, value.type, is_own=True) if isinstance(value, Computed) else value


def _copied(content: Any) -> Any:
    """Callers may write into what a run returns."""
    if isinstance(content, list):
        return [_copied(each) for each in content]
    return content.copy() if isinstance(content, np.ndarray) else content


def known_tensors(initializers: Mapping[str, onnx.TensorProto]) -> Iterator[tuple[str, Known]]:
    """Tensors of a message as values."""
    for name, tensor in initializers.items():
        yield name, Known(array_of(tensor))
