"""Parse ONNX models and begin their traces. Models that were run before need neither (`known`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from opendml.budget import meter
from opendml.errors import Error
from opendml.frontends.onnx.known import KnownModel, ModelFacts
from opendml.frontends.onnx.known_content import identity_to_json
from opendml.frontends.onnx.known_runs import GraphFacts, KnownPlan, PlanNumbers, PlanOutput, PlanTensor
from opendml.frontends.onnx.load_checks import PossibleSizes, custom_operators, require_runnable
from opendml.frontends.onnx.model_file import ModelLike, read_model
from opendml.frontends.onnx.package import onnx
from opendml.frontends.onnx.segment import CompiledSegment
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.onnx.tensor_info import tensor_info
from opendml.frontends.onnx.trace import Tracer, TraceStep
from opendml.frontends.onnx.weights import Weights
from opendml.late_dataclass import dataclass
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.plan_maker import StoredPlan
from opendml.runtime.graphs.traced_model import TracedModel, has_plans
from opendml.runtime.objects.device import Device

if TYPE_CHECKING:
    from opendml.targets.executable import TracedExecutable


@dataclass(frozen=True)
class Opened:
    """A parsed model, and its tracer.

    Args:
        model: the model.
        name: its name for errors.
        facts: its declarations.
        tracer: traces it.
        weights: the initializers that stay in its file.
        custom: its operators that are functions of the program, which no file holds.
    """

    model: onnx.ModelProto
    name: str
    facts: ModelFacts
    tracer: Tracer
    weights: Weights
    custom: tuple[str, ...]

    def note(
        self, known: KnownModel, step: TraceStep, given: Mapping[str, Any], dimensions: Mapping[str, int]
    ) -> bool:
        """Write the plan of a run of one graph to the cache, so that other processes need not trace it.

        Return whether it can be written.
        """
        segment = step.work
        if not isinstance(segment, CompiledSegment) or not self.weights.are_within(known.content.bytes):
            return False
        model, types = segment.model_at(dimensions), dict(segment.results)
        numbers = list(segment.known.traced())
        if model is None or model._shared is None or set(types) != set(self.tracer.outputs):
            return False  # An output is an input, or known.
        if not given.keys() >= {*segment.inputs} - {each[0] for each in numbers}:
            return False
        work, kernel_steps = model._work.work, model._kernel_steps
        stored = StoredPlan(cast("TracedExecutable", model._work.executable), [], {}, [])
        traced = segment.model if isinstance(segment.model, TracedModel) else None
        if traced is not None:
            plan = traced.plan_at(dimensions)
            if plan is None:
                return False
            work, kernel_steps, stored = plan.work, plan.steps, plan.stored
        guards = set(stored.guards)
        others = [(each.exact, set(each.trace.own_guards) - guards) for each in step.dimensions]
        buffers = {name: number for number, name in enumerate(model._names) if name is not None}
        first = len(work.inputs)
        outputs = {
            name: PlanOutput(PlanTensor(name, first + place, layout.type, layout.sizes), types[name], sizes)
            for place, (name, layout, sizes) in enumerate(
                zip(types, work.outputs, segment.sizes.groups, strict=True)
            )
        }
        layouts = [(name, buffers[name], work.inputs[buffers[name]]) for name in segment.inputs]
        inputs = [PlanTensor(name, buffer, layout.type, layout.sizes) for name, buffer, layout in layouts]
        facts = GraphFacts(
            [(exact, list(each)) for exact, each in others if exact or each],
            inputs,
            [outputs[name] for name in self.tracer.outputs],
            [PlanNumbers(*each) for each in numbers],
            kernel_steps,
            model._own_bytes,
        )
        read = self.weights.read_arrays()
        known_plan = KnownPlan(stored.guards, facts, stored.hints, stored.refused)
        known_plan.start(stored.executable, model._prepared.kept, model._shared.arenas)
        known_plan.before = [step]

        def constant(number: int) -> tuple[Any, Any]:
            return model._arrays[number], identity_to_json(model._identities.get(number))

        if not known.write_run(given, stored, facts, known_plan, constant, read):
            return False
        if traced is not None:
            known.follow(given, traced.maker.refusals)
            # The guards of the graph alone are fewer than those of the plan.
            own = set(traced.maker.guards)
            others = [(each.exact, set(each.trace.own_guards) - own) for each in step.dimensions]
            facts = replace(facts, others=[(exact, list(each)) for exact, each in others if exact or each])
            known.write_graph(given, traced.maker, facts, constant, read)
        return True


def opened_model(
    model: ModelLike,
    device: Device,
    sizes: Sizes,
    require_used: bool,
    cache: ModelCache,
    weights: Weights,
) -> Opened:
    """Parse a model, check it, and return it with a tracer.

    Args:
        model: the model.
        device: the device of its graphs.
        sizes: fixed sizes.
        require_used: whether all of these must be sizes of the model.
        cache: decides which sizes stay compiled.
        weights: receives the initializers that stay in the model's file, or has the mapped file.
    """
    read, name, weights = read_model(model, weights=weights)
    if require_used:
        sizes.require_used([read], name)
    return opened_proto(sizes.of(read, name), name, device, cache, weights)


def opened_proto(
    model: onnx.ModelProto, name: str, device: Device, cache: ModelCache, weights: Weights
) -> Opened:
    """Check a parsed model, and return it with a tracer."""
    graph = model.graph
    initializers = {each.name for each in graph.initializer}
    declared = tuple(tensor_info(each) for each in graph.input)
    inputs = tuple(each for each in declared if each.name not in initializers)
    facts = ModelFacts(inputs, tuple(tensor_info(each) for each in graph.output), declared, meter().held)
    try:
        with PossibleSizes(model) as possible:
            require_runnable(model)
            possible.require()
        tracer = Tracer.of_model(model, device, weights, cache, traces_sizes=has_plans(device))
    except Error as error:
        raise error._within(name) from error
    return Opened(model, name, facts, tracer, weights, custom_operators(model))
