"""A lazily traced ONNX graph: a tree of steps that compiles for the sizes and contents that runs meet.

A graph is traced during its first run with inputs of some form. Sizes that the model leaves open are traced
as `Size`s. Each step returns a key, which selects the next steps. A compiled graph has one key. A branch on
the content of a tensor has one for each content, a node on the evaluator one for each form of its results.
Numbers and sizes that depend on data are dimensions from there on. Among the steps of a key, the first one
whose guards hold for the dimensions of the run is next. So a run along a known path compiles nothing.

If few integers of an input decide what runs, they belong to the key of the first step. So a branch on them
needs no graph before it.
"""

from __future__ import annotations

import itertools
from collections import ChainMap, Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from opendml.budget import check_time, meter
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.common.dimensions import UsedDimensions
from opendml.frontends.common.types import NotExpressible
from opendml.frontends.onnx.clipped import clipped_nodes
from opendml.frontends.onnx.conversion import ValueNeeded
from opendml.frontends.onnx.counted import counted_nodes
from opendml.frontends.onnx.custom import custom_of
from opendml.frontends.onnx.device_run import DeviceContents
from opendml.frontends.onnx.device_tensor import DeviceTensor
from opendml.frontends.onnx.dimensions import (
    KnownContents,
    numbers_of,
    traced,
    traced_value,
)
from opendml.frontends.onnx.evaluate import Evaluator, EvaluatorWarning
from opendml.frontends.onnx.forms import (
    Dimensions,
    Form,
    RunForms,
    Symbols,
    are_numbers,
    forms_of,
    symbols_of,
)
from opendml.frontends.onnx.hosted import NOTHING, hosted
from opendml.frontends.onnx.inference import inferred_outputs
from opendml.frontends.onnx.inlining import (
    Functions,
    branch_nodes,
    function_nodes,
    functions_of,
    has_body,
    schema_nodes,
)
from opendml.frontends.onnx.load_checks import custom_operators
from opendml.frontends.onnx.loops import is_loop, loop_of
from opendml.frontends.onnx.node import OnnxNode, free_names, nodes_of, opsets_of
from opendml.frontends.onnx.old_opsets import FIRST_MODERN_OPSET, modern_nodes
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.segment import CompiledSegment, Segment
from opendml.frontends.onnx.states import Pending, State, extended
from opendml.frontends.onnx.tensor_info import TensorInfo, tensor_info
from opendml.frontends.onnx.values import (
    Array,
    Computed,
    Known,
    RuntimeValue,
    Value,
    Weight,
    array_of,
    is_same,
    known_numbers,
    sizes_of_type,
)
from opendml.frontends.onnx.weights import Weights
from opendml.frontends.onnx.wide import is_wide, wide_nodes
from opendml.garbage import collection_paused
from opendml.locked import Locked
from opendml.logs import warn_caller
from opendml.program.sizes import Size
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.shared import Footprint
from opendml.runtime.objects.device import Device

_MOST_UNPLANNED = 2
"""Traces with traced sizes that fail before others with the same key are made for exact sizes at once."""
_MOST_OF_A_NAME = 64
"""Characters of a node's name that prefix the names in its body, because bodies may nest deeply."""

Contents = Mapping[str, Any]
"""The contents of tensors by name."""


class _DecisiveInput(Exception):  # noqa: N818 - an answer, not an error
    """The numbers of an input decide what runs. The trace begins again, and knows them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(eq=False)
class TraceStep:
    """A step of a trace, and the steps that followed it so far.

    Args:
        run: adds the contents of new tensors to a dict, and new dimensions to another, and returns the key
            of the next step.
        next_state: the state behind the step for a key; None: this is the last step.
        work: the compiled graph, or the node outside of DirectML; None: neither.
        dimensions: the dimensions that the step depends on, with guards, beside those of the steps before it.
        siblings: the steps for the same key.
        noted_plans: the plans of the graph that the cache of models knows.
    """

    run: Callable[[dict[str, Any], Dimensions], Hashable]
    next_state: Callable[[Any, Contents, Dimensions], State] | None
    work: CompiledSegment | OnnxNode | None = None
    dimensions: Sequence[UsedDimensions] = ()
    next_steps: Steps = field(default_factory=dict)
    siblings: list[TraceStep] = field(default_factory=list)
    noted_plans: int = 0

    @property
    def footprint(self) -> Footprint:
        """The memory of its model."""
        return self.work.model._footprint() if isinstance(self.work, CompiledSegment) else Footprint()

    def forget(self) -> None:
        """Remove this step and all that follow it from the tree."""
        if self in self.siblings:
            self.siblings.remove(self)

    def serves(self, dimensions: Dimensions, contents: Contents) -> bool:
        """Return whether the step is right for the dimensions of a run, and for caches in place."""
        return all(each.serves(dimensions) for each in self.dimensions) and (
            not isinstance(self.work, CompiledSegment) or self.work.serves(dimensions, contents)
        )


Steps = dict[Hashable, list[TraceStep]]
"""The steps that may follow another one, by its key."""


class Tracer(Locked):
    """A graph that is traced while it runs.

    Args:
        nodes: its nodes in order.
        inputs, outputs: names of its tensors.
        known: tensors that are the same in every run, such as initializers.
        functions: the model's functions.
        cache: decides which steps stay in memory, and has the memory that all sizes share.
        weights: the initializers in the model's files.
        symbols: the dimensions of inputs that may change, by name; inputs that are not there have none.
            None: all sizes are exact, those that depend on data too.
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
        symbols: Mapping[str, Symbols] | None,
    ) -> None:
        super().__init__()
        self._start, self._inputs, self._outputs = Pending().prepended(nodes), tuple(inputs), tuple(outputs)
        self._known: dict[str, Value] = dict(known)
        self._functions, self.device = functions, device
        self._model_cache, self._weights = cache, weights
        self._symbols, self._traces_sizes = symbols or {}, symbols is not None
        self._first_steps: Steps = {}
        self.decisive: tuple[str, ...] = ()
        """The inputs whose numbers decide what runs, as far as known."""
        self._declared: Mapping[str, TensorInfo] = NOTHING
        """The declarations of a model that has operators of a program, by names of tensors."""
        self._custom: list[str] = []
        """The nodes of these operators, with their functions."""
        self._unplanned = Counter[Hashable]()
        """The traces that the device could not compile with traced sizes, by the key that led to them."""
        self.traced_count = 0
        """The number of steps that were traced."""
        self.planned_count = 0
        """The number of runs that made plans."""
        self._prefixes = itertools.count(1)

    @classmethod
    def of_model(
        cls,
        model: onnx.ModelProto,
        device: Device,
        weights: Weights,
        cache: ModelCache | None = None,
        traces_sizes: bool = False,
    ) -> Self:
        """Make a tracer of a model's graph.

        Args:
            model: the model.
            device: the device of its compiled graphs.
            weights: the initializers that are not in the message.
            cache: decides which sizes stay compiled; None: the default.
            traces_sizes: whether sizes that the model leaves open are traced, so that one compiled graph
                serves several.
        """
        graph = model.graph
        known: dict[str, Known] = {
            name: Weight(array, name, weights.read) for name, array in weights.arrays.items()
        }
        stored = {each.name: each for each in graph.initializer if each.name not in known}
        stored |= {each.values.name: _dense(each) for each in graph.sparse_initializer}
        known |= {name: Known(each.content, name) for name, each in known_tensors(stored)}
        nodes = nodes_of(graph.node, opsets_of(model.opset_import))
        inputs, outputs = ([each.name for each in values] for values in (graph.input, graph.output))
        functions, symbols = functions_of(model), None
        if traces_sizes:
            symbols = symbols_of((each.name, sizes_of_type(each.type)) for each in graph.input)
        made = cls(nodes, inputs, outputs, known, functions, device, cache or ModelCache(), weights, symbols)
        if custom_operators(model):
            made._declared = {each.name: tensor_info(each) for each in (*graph.value_info, *graph.output)}
            customs = [(each, custom_of(each)) for each in nodes]
            made._custom = [f"{each}: {custom.name}" for each, custom in customs if custom is not None]
        return made

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return self._outputs

    @property
    def has_one_graph(self) -> bool:
        """True if each run so far was one graph of DirectML's operators, and nothing else."""
        steps = [step for steps in self._first_steps.values() for step in steps]
        return all(isinstance(step.work, CompiledSegment) and step.next_state is None for step in steps)

    def run(self, given: Contents) -> list[Any]:
        """Return the outputs for inputs by name. An input with an initializer may be absent.

        Raises:
            Error: a node cannot run; the message names it.
        """
        contents = dict(given)
        for _ in self.steps(contents, {}):
            pass
        return [contents[name] for name in self._outputs]

    def steps(self, contents: dict[str, Any], dimensions: Dimensions) -> Iterator[TraceStep]:
        """Run the graph on inputs by name, and yield the steps.

        Args:
            contents: the inputs; receives all tensors between graphs.
            dimensions: receives the traced dimensions of the run.
        """
        self._weights.require_whole()
        path: list[TraceStep] = []
        with self._model_cache.running(path):
            step = self._first_step(contents, dimensions)
            while True:
                path.append(step)
                behind = step.run(contents, dimensions)
                yield step
                self._note_plans(step)
                next_state = step.next_state
                if next_state is None:
                    return
                step = self._step_for(
                    step.next_steps,
                    behind,
                    dimensions,
                    contents,
                    lambda: next_state(behind, contents, dimensions),  # noqa: B023
                )

    def _first_step(self, contents: dict[str, Any], dimensions: Dimensions) -> TraceStep:
        """Return the step that a run begins with."""
        while True:
            _copy_to_host(contents, [name for name in self.decisive if name in contents])
            key = forms_of(contents, self._symbols, dimensions, self.decisive)

            def state() -> State:
                return self._first_state(key, contents, dimensions)  # noqa: B023

            try:
                return self._step_for(self._first_steps, key, dimensions, contents, state)
            except _DecisiveInput as found:
                self.decisive = tuple(sorted({*self.decisive, found.name}))

    def prepare(self, contents: dict[str, Any], dimensions: Dimensions) -> TraceStep | None:
        """Compile the first graph of a run on inputs of these sizes and types, whatever numbers they have.

        Return None if the run begins with something else, or if numbers of inputs decide about the graph.

        Args:
            contents: the inputs by name.
            dimensions: receives the traced dimensions of the run.
        """
        key = forms_of(contents, self._symbols, dimensions)
        with self._lock, meter().timed("compile_seconds", "tracing the model"), collection_paused():
            self._weights.require_unchanged()
            state = self._first_state(key, contents, dimensions)
            try:
                found = self._trace(state, dimensions, only_graphs=True, first=contents)
            except _DecisiveInput:
                return None
            if found is None or not found.serves(dimensions, contents):
                return None
            self.traced_count += 1
            found.siblings = self._first_steps.setdefault(key, [])
            found.siblings.append(found)
            self._model_cache.use([found])
            return found

    def _first_state(
        self, key: tuple[tuple[str, Form], ...], contents: Contents, dimensions: Dimensions
    ) -> State:
        """Return the state before a run on inputs of some form."""
        values: dict[str, Value] = {}
        for name, form in key:
            if name in values and form is not None:  # Its numbers follow in the form.
                numbers, array = traced(form[0], dimensions), contents[name]
                values[name] = known_numbers(numbers, array.shape, array.dtype)
            else:
                values[name] = traced_value(contents[name], form, dimensions)
        return State(self._start, ChainMap(values, self._known))

    def _note_plans(self, step: TraceStep) -> None:
        """Tell the cache of models if a step takes more memory, because of a plan for other sizes."""
        count = step.work.plan_count if isinstance(step.work, CompiledSegment) else 0
        if count != step.noted_plans:
            step.noted_plans = count
            self.planned_count += 1
            self._model_cache.use([step], changed=True)

    def _step_for(
        self,
        steps: Steps,
        key: Hashable,
        dimensions: Dimensions,
        contents: dict[str, Any],
        state: Callable[[], State],
    ) -> TraceStep:
        """Return a step of a key that serves the dimensions, or trace a new one from the state."""
        found = _serving(steps, key, dimensions, contents)
        if found is not None:
            return found
        with self._lock:
            found = _serving(steps, key, dimensions, contents)
            if found is None:
                self._weights.require_unchanged()
                with meter().timed("compile_seconds", "tracing the model"), collection_paused():
                    is_exact = self._unplanned[key] >= _MOST_UNPLANNED
                    first = contents if steps is self._first_steps else None
                    found = self._traced(state(), dimensions, is_exact, first)
                    if not found.serves(dimensions, contents):
                        # The device cannot compile it with traced sizes.
                        self._unplanned[key] += 1
                        found = self._traced(state(), dimensions, True, first)
                self.traced_count += 1
                found.siblings = steps.setdefault(key, [])
                found.siblings.append(found)
            return found

    def _traced(
        self, state: State, dimensions: Dimensions, is_exact: bool, first: dict[str, Any] | None
    ) -> TraceStep:
        """Return the next step from a state, for traced sizes or for those of this run."""
        found = self._trace(state, dimensions, is_exact, first=first)
        assert found is not None
        return found

    def _trace(
        self,
        state: State,
        dimensions: Dimensions,
        is_exact: bool = False,
        only_graphs: bool = False,
        first: dict[str, Any] | None = None,
    ) -> TraceStep | None:
        """Return the next step from a state; None if a graph is wanted, and it is something else."""
        used = []
        while True:
            segment = Segment(state.values, self._model_cache.shared, dimensions, is_exact)
            found = self._step_from(state, segment, only_graphs, first)
            used.append(segment.dimensions)
            if isinstance(found, TraceStep):
                found.dimensions = used
            if not isinstance(found, State):
                return found
            state = found

    def _step_from(
        self, state: State, segment: Segment, only_graphs: bool = False, first: dict[str, Any] | None = None
    ) -> TraceStep | State | None:
        """Return the next step from a state, or the state behind nodes that compute nothing.

        Args:
            state: the state.
            segment: a graph without nodes.
            only_graphs: return None instead of steps outside of DirectML.
            first: the inputs of the run if it begins with the step.

        Raises:
            _DecisiveInput: numbers of an input decide about the step.
        """
        pending = state.pending
        while pending:
            node, rest = pending.popped()
            check_time()
            try:
                pending = rest.prepended(self._convert(node, segment))
            except ValueNeeded as needed:
                if first is not None and self._traces_sizes:
                    self._require_indecisive(segment.sources_of(needed.name), state, first)
                if isinstance(state.values.get(needed.name), RuntimeValue):
                    if only_graphs:
                        return None
                    return _branch_step(needed.name, state, self._traces_sizes)
                return self._segment_step(state, segment, pending)
            except NotExpressible as reason:
                if not segment.is_empty:
                    return self._segment_step(state, segment, pending)
                if only_graphs:
                    return None
                behind = State(rest, extended(state.values, segment.own))
                if is_loop(node):
                    return self._loop_step(node, behind)
                return self._evaluator_step(node, str(reason), behind)
        return self._last_step(segment)

    def _require_indecisive(self, names: Iterable[str], state: State, contents: dict[str, Any]) -> None:
        """Raise _DecisiveInput if the tensors that decide what runs are inputs of few integers.

        Those that lie on a device are copied to host memory.
        """
        decisive = sorted(names)
        if all(
            name in self._inputs and isinstance(state.values.get(name), RuntimeValue) for name in decisive
        ):
            _copy_to_host(contents, decisive)
            if decisive and all(are_numbers(contents[name]) for name in decisive):
                raise _DecisiveInput(decisive[0])

    def _convert(self, node: OnnxNode, segment: Segment) -> tuple[OnnxNode, ...]:
        """Add a node to a segment and return (), or return the nodes that replace it.

        Raises:
            NotExpressible: the node runs outside of DirectML.
            ValueNeeded: it depends on the content of a tensor that is not known yet.
        """
        segment.take(node.reads)
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
        if body is None:
            body = clipped_nodes(node, values, self._prefix(node))
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

    def _segment_step(self, before: State, segment: Segment, pending: Pending) -> TraceStep | State:
        """Compile the nodes so far, whose results the pending nodes read."""
        read = {
            name: value for name, value in segment.own.items() if name in self._outputs or pending.reads(name)
        }
        compiled = segment.compile(read, self.device, self._weights.require_unchanged)
        made = {
            name: RuntimeValue(value.sizes, value.type, is_own=True) if isinstance(value, Computed) else value
            for name, value in read.items()
        }
        state = State(pending, extended(before.values, made))
        if compiled is None:
            return state
        return TraceStep(compiled, lambda key, contents, dimensions: state, compiled)

    def _last_step(self, segment: Segment) -> TraceStep:
        """Compile the nodes up to the outputs."""
        missing = [name for name in self._outputs if name not in segment.values]
        if missing:
            raise InvalidArgument(f"output {missing[0]!r}: no node makes it")
        for name in self._outputs if self._declared else ():
            value = segment.values[name]
            if isinstance(value, Computed | RuntimeValue) and (
                problem := self._declared[name]._problem(value.type, value.sizes)
            ):
                origin = f"as the model declares; it may follow from {', '.join(self._custom)}"
                raise InvalidArgument(f"output {name!r} {problem}, {origin}")
        segment.take(self._outputs)
        compiled = segment.compile(self._outputs, self.device, self._weights.require_unchanged)
        values = {name: segment.values[name] for name in self._outputs}
        known = KnownContents(values)
        runtime = {name: value for name, value in values.items() if isinstance(value, RuntimeValue)}
        shared = [name for name, value in runtime.items() if not value.is_own]

        def run(contents: dict[str, Any], dimensions: Dimensions) -> None:
            if compiled is not None:
                compiled(contents, dimensions)
            contents.update(known(dimensions))
            for name in (*known.names, *shared):
                contents[name] = _copied(contents[name], contents)  # Callers may write to results.

        return TraceStep(run, None, compiled)

    def _evaluator_step(self, node: OnnxNode, reason: str, state: State) -> TraceStep:
        """Run a node outside of DirectML: in NumPy or on onnx's evaluator."""
        run = hosted(node, self._declared)
        if run is not None:
            return self._host_step(node, run, state, is_own=custom_of(node) is None)
        try:
            evaluator = Evaluator(node)
        except Unsupported as error:
            raise Unsupported(f"{error}, and DirectML cannot say it: {reason}") from error
        warn_caller(f"{node} runs on onnx's evaluator: {reason}", EvaluatorWarning)
        return self._host_step(node, evaluator, state)

    def _loop_step(self, node: OnnxNode, state: State) -> TraceStep:
        """Run a loop, whose body is a traced graph of its own that shares what is known here."""
        graph: onnx.GraphProto = node.attributes["body"]
        inputs, captured = [each.name for each in graph.input], free_names(graph)
        known = {name: value for name in captured if is_same(value := state.values.get(name))}
        known.update(known_tensors({each.name: each for each in graph.initializer}))
        outside = sorted(captured - set(known))
        outputs = [each.name for each in graph.output]
        nodes, names = nodes_of(graph.node, node.opsets), [*inputs, *outside]
        shared = self._model_cache, self._weights
        symbols = None
        if self._traces_sizes:
            symbols = {name: _open(state.values[name]) for name in outside if name in state.values}
        tracer = Tracer(nodes, names, outputs, known, self._functions, self.device, *shared, symbols)

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

        return self._host_step(node, run, state)

    def _host_step(
        self,
        node: OnnxNode,
        run: Callable[[Contents], dict[str, Any]],
        state: State,
        is_own: bool = False,
    ) -> TraceStep:
        """Run a node on the host; the forms of its results are the key of the next step.

        Args:
            is_own: whether nothing else has the memory of its results.
        """
        missing = sorted(name for name in node.reads if name not in state.values)
        if missing:
            raise InvalidArgument(f"{node}: tensor {missing[0]!r} is made by no node before it")
        known = KnownContents({name: state.values[name] for name in node.reads})
        given = node.reads - known.names
        symbols = self._result_symbols(node, state)

        def run_node(contents: dict[str, Any], dimensions: Dimensions) -> Hashable:
            _copy_to_host(contents, given)
            results = run({**known(dimensions), **{name: contents[name] for name in given}})
            contents.update(results)
            forms = RunForms(dimensions)
            return tuple([forms.of(name, results[name], symbols.get(name)) for name in outputs])

        def next_state(key: Any, contents: Contents, dimensions: Dimensions) -> State:
            made = {
                name: traced_value(contents[name], form, dimensions, is_own)
                for name, form in zip(outputs, key, strict=True)
            }
            return State(state.pending, extended(state.values, made))

        outputs = [name for name in node.outputs if name]
        return TraceStep(run_node, next_state, node)

    def _result_symbols(self, node: OnnxNode, state: State) -> dict[str, Symbols]:
        """Return the dimensions of a node's results that may change, as far as ONNX's inference knows."""
        if not self._traces_sizes:
            return dict.fromkeys(node.outputs, ())
        inferred = inferred_outputs(node, state.values)
        sizes = {name: sizes_of_type(type) for name, type in inferred.items()}
        return {
            name: [None if isinstance(each, int) else "" for each in known]
            for name, known in sizes.items()
            if known is not None
        }


def _serving(steps: Steps, key: Hashable, dimensions: Dimensions, contents: Contents) -> TraceStep | None:
    """Return the first step of a key that serves the dimensions; None: there is none."""
    return next((each for each in steps.get(key, ()) if each.serves(dimensions, contents)), None)


def _branch_step(name: str, state: State, traces_sizes: bool) -> TraceStep:
    """Branch on the content of a tensor, which is known behind the step."""

    def run(contents: dict[str, Any], dimensions: Dimensions) -> Hashable:
        _copy_to_host(contents, [name])
        return numbers_of(name, contents[name], dimensions if traces_sizes else None)

    def next_state(key: Any, contents: Contents, dimensions: Dimensions) -> State:
        content = contents[name]
        if isinstance(key, tuple) and not content.dtype.hasobject:
            known = known_numbers(traced(key, dimensions), content.shape, content.dtype)
        else:
            known = Known(content.copy())
        return State(state.pending, extended(state.values, {name: known}))

    return TraceStep(run, next_state)


def _copy_to_host(contents: dict[str, Any], names: Iterable[str]) -> None:
    """Copy contents that lie on a device to host memory."""
    if isinstance(contents, DeviceContents):
        contents.to_host(names)


def _copied(content: Any, contents: dict[str, Any]) -> Any:
    if isinstance(content, list):
        return [_copied(each, contents) for each in content]
    if isinstance(content, DeviceTensor) and isinstance(contents, DeviceContents):
        return contents.copied(content)
    return content.copy() if isinstance(content, np.ndarray) else content


def _open(value: Value) -> Symbols:
    """Return names for the dimensions of a value that change."""
    return ["" if isinstance(size, Size) else None for size in value.sizes or ()]


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
