"""A lazily traced ONNX graph: a tree of steps that compiles for the sizes and contents that runs meet.

A graph is traced during its first run with inputs of some sizes and types. Each step returns a key, which
selects the next step. A compiled graph has one successor. A branch on the content of a tensor has one for
each content. A node on the evaluator has one for each tuple of result sizes. So models whose sizes, axes or
branches depend on data need no symbolic sizes, and a run along a known path compiles nothing.
"""

from __future__ import annotations

import itertools
import warnings
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import onnx

from opendml.budget import check_time, meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.conversion import ValueNeeded
from opendml.frontends.onnx.counted import counted_nodes
from opendml.frontends.onnx.evaluate import Evaluator, EvaluatorWarning
from opendml.frontends.onnx.hosted import hosted
from opendml.frontends.onnx.inlining import (
    Functions,
    branch_nodes,
    function_nodes,
    functions_of,
    has_body,
    schema_nodes,
)
from opendml.frontends.onnx.loops import is_loop, loop_of
from opendml.frontends.onnx.node import OnnxNode, free_names, nodes_of, opsets_of
from opendml.frontends.onnx.old_opsets import FIRST_MODERN_OPSET, modern_nodes
from opendml.frontends.onnx.segment import CompiledSegment, Segment
from opendml.frontends.onnx.states import Pending, State, extended
from opendml.frontends.onnx.values import (
    Array,
    Computed,
    Known,
    RuntimeValue,
    Value,
    array_of,
    form_of,
    value_of,
)
from opendml.frontends.onnx.weights import Weights
from opendml.frontends.onnx.wide import is_wide, wide_nodes
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.shared import Footprint
from opendml.runtime.locked import Locked
from opendml.runtime.objects.device import Device

_MOST_OF_A_NAME = 64
"""Characters of a node's name that prefix the names in its body, because bodies may nest deeply."""

Contents = Mapping[str, Any]
"""The contents of tensors by name."""


@dataclass
class TraceStep:
    """A step of a trace, and the steps that followed it so far.

    Args:
        run: adds the contents of new tensors to a dict, and returns the key of the next step.
        next_state: the state behind the step for a key; None: this is the last step.
        work: the compiled graph, or the node outside of DirectML; None: neither.
    """

    run: Callable[[dict[str, Any]], Hashable]
    next_state: Callable[[Hashable, Contents], State] | None
    work: CompiledSegment | OnnxNode | None = None
    next_steps: dict[Hashable, TraceStep] = field(default_factory=dict)
    siblings: dict[Hashable, TraceStep] = field(default_factory=dict)
    key: Hashable = None

    @property
    def footprint(self) -> Footprint:
        """The memory of its model."""
        return self.work.model._footprint() if isinstance(self.work, CompiledSegment) else Footprint()

    def forget(self) -> None:
        """Remove this step and all that follow it from the tree."""
        if self.siblings.get(self.key) is self:
            del self.siblings[self.key]


class Tracer(Locked):
    """A graph that is traced while it runs.

    Args:
        nodes: its nodes in order.
        inputs, outputs: names of its tensors.
        known: tensors that are the same in every run, such as initializers.
        functions: the model's functions.
        cache: decides which steps stay in memory, and has the memory that all sizes share.
        weights: the initializers in the model's files.
    """

    def __init__(
        self,
        nodes: Sequence[OnnxNode],
        inputs: Sequence[str],
        outputs: Sequence[str],
        known: Mapping[str, Known],
        functions: Functions,
        device: Device,
        cache: ModelCache,
        weights: Weights,
    ) -> None:
        super().__init__()
        self._start, self._inputs, self._outputs = Pending().prepended(nodes), tuple(inputs), tuple(outputs)
        self._known: dict[str, Value] = dict(known)
        self._functions, self._device = functions, device
        self._model_cache, self._weights = cache, weights
        self._first_steps: dict[Hashable, TraceStep] = {}
        self._prefixes = itertools.count(1)

    @classmethod
    def of_model(
        cls, model: onnx.ModelProto, device: Device, weights: Weights, cache: ModelCache | None = None
    ) -> Self:
        """Make a tracer of a model's graph.

        Args:
            model: the model.
            device: the device of its compiled graphs.
            weights: the initializers that are not in the message.
            cache: decides which sizes stay compiled; None: the default.
        """
        graph = model.graph
        known = {name: Known(array, name) for name, array in weights.arrays.items()}
        stored = {each.name: each for each in graph.initializer if each.name not in known}
        stored |= {each.values.name: _dense(each) for each in graph.sparse_initializer}
        known |= {name: replace(each, identity=name) for name, each in known_tensors(stored)}
        nodes = nodes_of(graph.node, opsets_of(model.opset_import))
        inputs, outputs = ([each.name for each in values] for values in (graph.input, graph.output))
        return cls(nodes, inputs, outputs, known, functions_of(model), device, cache or ModelCache(), weights)

    def run(self, given: Contents) -> list[Any]:
        """Return the outputs for inputs by name. An input with an initializer may be absent.

        Raises:
            Error: a node cannot run; the message names it.
        """
        contents = dict(given)
        for _ in self.steps(contents):
            pass
        return [contents[name] for name in self._outputs]

    def steps(self, contents: dict[str, Any]) -> Iterator[TraceStep]:
        """Run the graph on inputs by name, add all tensors to `contents`, and yield the steps."""
        key: Hashable = tuple([(name, form_of(content)) for name, content in contents.items()])

        def first() -> State:
            values: dict[str, Value] = {name: value_of(content) for name, content in contents.items()}
            return State(self._start, ChainMap(values, self._known))

        self._weights.require_whole()
        path: list[TraceStep] = []
        with self._model_cache.running(path):
            step = self._step_for(self._first_steps, key, first)
            while True:
                path.append(step)
                key = step.run(contents)
                yield step
                next_state = step.next_state
                if next_state is None:
                    return
                step = self._step_for(step.next_steps, key, lambda: next_state(key, contents))  # noqa: B023

    def _step_for(
        self, steps: dict[Hashable, TraceStep], key: Hashable, state: Callable[[], State]
    ) -> TraceStep:
        """Return the step of a key, or trace a new one from the state."""
        found = steps.get(key)
        if found is not None:
            return found
        with self._lock:
            found = steps.get(key)
            if found is None:
                self._weights.require_unchanged()
                with meter().timed("compile_seconds", "tracing the model"):
                    found = self._trace(state())
                found.siblings, found.key = steps, key
                steps[key] = found
            return found

    def _trace(self, state: State) -> TraceStep:
        """Return the next step from a state."""
        segment, pending = Segment(state.values, self._model_cache.shared), state.pending
        while pending:
            node, rest = pending.popped()
            check_time()
            try:
                pending = rest.prepended(self._convert(node, segment))
            except ValueNeeded as needed:
                if isinstance(state.values.get(needed.name), RuntimeValue):
                    return _branch_step(needed.name, state)
                return self._segment_step(state, segment, pending)
            except NotExpressible as reason:
                if not segment.is_empty:
                    return self._segment_step(state, segment, pending)
                behind = State(rest, extended(state.values, segment.own))
                if is_loop(node):
                    return self._loop_step(node, behind)
                return self._evaluator_step(node, str(reason), behind)
        return self._last_step(segment)

    def _convert(self, node: OnnxNode, segment: Segment) -> tuple[OnnxNode, ...]:
        """Add a node to a segment and return (), or return the nodes that replace it.

        Raises:
            NotExpressible: the node runs outside of DirectML.
            ValueNeeded: it depends on the content of a tensor that is not known yet.
        """
        replaced = self._replaced(node, segment)
        if replaced is not None:
            return replaced
        if is_loop(node):
            raise NotExpressible("how its body runs depends on what it meets")
        try:
            segment.add(node)
        except NotExpressible:
            body = self._body(node, segment)
            if body is None:
                raise
            return body
        return ()

    def _replaced(self, node: OnnxNode, segment: Segment) -> tuple[OnnxNode, ...] | None:
        """Return the nodes that must replace a node, such as a function's body or a branch."""
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

    def _body(self, node: OnnxNode, segment: Segment) -> tuple[OnnxNode, ...] | None:
        """Return simpler nodes for an operator without a converter; None: there are none."""
        values = [segment.values.get(name) for name in node.inputs]
        counted = counted_nodes(node, values, self._prefix(node))
        if counted is not None:
            return counted
        if has_body(node) and (wide := wide_nodes(node, segment.values, self._prefix(node))) is not None:
            return wide
        return schema_nodes(node, values, self._prefix(node))

    def _prefix(self, node: OnnxNode) -> str:
        return f"{node.name[:_MOST_OF_A_NAME]}/{next(self._prefixes)}/"

    def _segment_step(self, before: State, segment: Segment, pending: Pending) -> TraceStep:
        """Compile the nodes so far, whose results the pending nodes read."""
        read = {
            name: value for name, value in segment.own.items() if name in self._outputs or pending.reads(name)
        }
        compiled = segment.compile(read, self._device)
        made = {
            name: RuntimeValue(value.sizes, value.type, is_own=True) if isinstance(value, Computed) else value
            for name, value in read.items()
        }
        state = State(pending, extended(before.values, made))
        if compiled is None:
            return self._trace(state)
        return TraceStep(compiled, lambda key, contents: state, compiled)

    def _last_step(self, segment: Segment) -> TraceStep:
        """Compile the nodes up to the outputs."""
        missing = [name for name in self._outputs if name not in segment.values]
        if missing:
            raise InvalidArgument(f"output {missing[0]!r}: no node makes it")
        compiled = segment.compile(self._outputs, self._device)
        values = {name: segment.values[name] for name in self._outputs}
        known = {name: value.content for name, value in values.items() if isinstance(value, Known)}
        runtime = {name: value for name, value in values.items() if isinstance(value, RuntimeValue)}
        shared = [name for name, value in runtime.items() if not value.is_own]

        def run(contents: dict[str, Any]) -> None:
            if compiled is not None:
                compiled(contents)
            contents.update(known)
            for name in (*known, *shared):
                contents[name] = _copied(contents[name])  # Callers may write to results.

        return TraceStep(run, None, compiled)

    def _evaluator_step(self, node: OnnxNode, reason: str, state: State) -> TraceStep:
        """Run a node outside of DirectML: in NumPy or on onnx's evaluator."""
        run = hosted(node)
        if run is not None:
            return _host_step(node, run, state, is_own=True)
        try:
            evaluator = Evaluator(node)
        except Unsupported as error:
            raise Unsupported(f"{error}, and DirectML cannot say it: {reason}") from error
        warnings.warn(f"{node} runs on onnx's evaluator: {reason}", EvaluatorWarning, stacklevel=2)
        return _host_step(node, evaluator, state)

    def _loop_step(self, node: OnnxNode, state: State) -> TraceStep:
        """Run a loop, whose body is a traced graph of its own that shares what is known here."""
        graph: onnx.GraphProto = node.attributes["body"]
        inputs, captured = [each.name for each in graph.input], free_names(graph)
        known = {name: value for name in captured if isinstance(value := state.values.get(name), Known)}
        known.update(known_tensors({each.name: each for each in graph.initializer}))
        outside = sorted(captured - set(known))
        outputs = [each.name for each in graph.output]
        nodes, names = nodes_of(graph.node, node.opsets), [*inputs, *outside]
        shared = self._model_cache, self._weights
        tracer = Tracer(nodes, names, outputs, known, self._functions, self._device, *shared)

        def run(contents: Contents) -> dict[str, Any]:
            captured_contents = {name: contents[name] for name in outside}

            def body(given: Sequence[Any]) -> Sequence[Any]:
                return tracer.run({**dict(zip(inputs, given, strict=True)), **captured_contents})

            try:
                results = loop_of(node, body)(contents)
            except Error as error:
                raise error._within(node) from error
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # The body does not fit.
                raise InvalidArgument(f"{node}: {type(error).__name__}: {error}") from error
            return {name: each for name, each in zip(node.outputs, results, strict=False) if name}

        return _host_step(node, run, state)


def _host_step(
    node: OnnxNode, run: Callable[[Contents], dict[str, Any]], state: State, is_own: bool = False
) -> TraceStep:
    """Run a node on the host; the sizes and types of its results are the key of the next step.

    Args:
        is_own: whether nothing else has the memory of its results.
    """
    missing = sorted(name for name in node.reads if name not in state.values)
    if missing:
        raise InvalidArgument(f"{node}: tensor {missing[0]!r} is made by no node before it")
    known = {name: value.content for name in node.reads if isinstance(value := state.values[name], Known)}
    given = node.reads - known.keys()

    def run_node(contents: dict[str, Any]) -> Hashable:
        results = run({**known, **{name: contents[name] for name in given}})
        contents.update(results)
        return tuple(map(form_of, results.values()))

    def next_state(key: Hashable, contents: Contents) -> State:
        made = {name: value_of(contents[name], is_own) for name in node.outputs if name}
        return State(state.pending, extended(state.values, made))

    return TraceStep(run_node, next_state, node)


def _branch_step(name: str, state: State) -> TraceStep:
    """Branch on the content of a tensor, which is known behind the step."""

    def run(contents: dict[str, Any]) -> Hashable:
        array = contents[name]
        return tuple(array.flat) if array.dtype.hasobject else array.tobytes()

    def next_state(key: Hashable, contents: Contents) -> State:
        return State(state.pending, extended(state.values, {name: Known(contents[name].copy())}))

    return TraceStep(run, next_state)


def _copied(content: Any) -> Any:
    if isinstance(content, list):
        return [_copied(each) for each in content]
    return content.copy() if isinstance(content, np.ndarray) else content


def known_tensors(initializers: Mapping[str, onnx.TensorProto]) -> Iterator[tuple[str, Known]]:
    """Yield the tensors of a message as values, with their names."""
    for name, tensor in initializers.items():
        yield name, Known(array_of(tensor))


def _dense(tensor: onnx.SparseTensorProto) -> onnx.TensorProto:
    """Return a sparse initializer as a dense one."""
    values, indices, sizes = array_of(tensor.values), array_of(tensor.indices), tuple(tensor.dims)
    try:
        meter().require_tensor(sizes, values.dtype.itemsize, f"sparse tensor {tensor.values.name!r}")
        places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), sizes)
        if len(places) != len(values) or min(places, default=0) < 0:
            raise ValueError(f"{len(values)} values at {places.tolist()}")
        full: Array = np.zeros(sizes, values.dtype)
        full.reshape(-1)[places] = values
    except (LookupError, MemoryError, TypeError, ValueError) as error:
        raise InvalidArgument(f"sparse tensor {tensor.values.name!r} of sizes {sizes}: {error}") from error
    return onnx.numpy_helper.from_array(full, tensor.values.name)
