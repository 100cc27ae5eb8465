"""Graphs with traced sizes, which are compiled by plans.

A plan has machine code, and launches whose words are expressions over the dimensions of a trace. It serves
all sizes of its bucket that meet its guards. Costs change little within a bucket (`program.buckets`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from opendml.budget import meter
from opendml.compiler.in_place import joined_inputs
from opendml.compiler.simplify import simplify
from opendml.floating_point import default_mode
from opendml.garbage import collection_paused
from opendml.late_dataclass import dataclass
from opendml.logs import log
from opendml.program.atoms import GREATEST, LEAST_TRACED, Dimension
from opendml.program.buckets import Bucket, bucket_of
from opendml.program.carriers import carried
from opendml.program.program import Layout, Program, packed
from opendml.program.size_values import Conditions, Guard, IntegerArray, Values
from opendml.program.sizes import is_traced
from opendml.program.steps import steps_of
from opendml.program.trace import Trace
from opendml.runtime.graphs.compiled_work import CompiledWork, Prepared
from opendml.runtime.graphs.model import Model
from opendml.runtime.graphs.plan_maker import MOST_BUCKETS, UNTRACED, PlanMaker, StoredPlan
from opendml.runtime.graphs.refusals import Hints
from opendml.runtime.graphs.run_limits import require_run
from opendml.runtime.graphs.shared import Footprint, note_constants
from opendml.runtime.graphs.sized_model import LATER, SizedModel
from opendml.runtime.graphs.stored_plans import FoundPlan, StoredPlans
from opendml.runtime.graphs.work import Work, require_parts
from opendml.runtime.objects.device import Device
from opendml.targets.compiled_files import Recorder
from opendml.targets.executable import TracedProgram
from opendml.targets.object_cache import MOST_PLANS
from opendml.targets.sized_instances import SizedInstances

MOST_SIZES = 64
"""Sizes whose instances are kept, at most. Another one takes a fraction of a millisecond to make."""

CAPACITY = "capacity of caches"
"""The dimension of graphs whose outputs grow in place: the size of buffers along the axis of growth."""


def has_plans(device: Device) -> bool:
    """Return whether graphs with traced sizes are compiled for a device by plans."""
    return device._backend.has_plans and device._debug is None


@dataclass(frozen=True, slots=True)
class SizedNeeds:
    """The needs of a run for some sizes.

    Args:
        steps: kernel steps.
        arena_bytes: temporary memory.
        layouts: those of tensors whose sizes change, by the numbers of their buffers.
    """

    steps: int
    arena_bytes: int
    layouts: Mapping[int, Layout]


class Plan:
    """Code and launches for all sizes that meet some guards.

    Args:
        stored: the plan as the cache keeps it.
        work: the work, with traced sizes in its layouts.
        steps: the kernel steps of a dispatch.
    """

    def __init__(self, stored: StoredPlan, work: Work, steps: int) -> None:
        self.stored, self.work, self.steps = stored, work, steps
        self.hints, self.executable, self.guards = stored.hints, stored.executable, stored.guards
        layouts = (*work.inputs, *work.outputs)
        # A cache of one row has plain sizes, but its strides follow from the capacity.
        found = [
            (number, layout)
            for number, layout in enumerate(layouts)
            if any(map(is_traced, (*layout.sizes, *layout.strides)))
        ]
        self._traced = [(number, layout.type, len(layout.sizes)) for number, layout in found]
        traced = [layout for _, layout in found]
        numbers = [each for layout in traced for each in (*layout.sizes, *layout.strides)]
        spans = [layout.span for layout in traced]
        needs = [
            self.steps,
            self.executable.temporary_bytes,
            sum(end - begin for begin, end in spans),
            *[layout.element_count for layout in traced],
        ]
        own = list(self.executable.sizes)
        self._ends = len(own), len(own) + len(needs)
        self._conditions = Conditions(self.guards, [*own, *needs, *numbers])
        self.model: Model | None = None
        """The first model that was made by the plan."""
        self.shared_attributes: dict[str, Any] = {}
        """Those of its attributes that models of other sizes have too."""
        self._instances: dict[int | None, SizedInstances] = {}

    def serves(self, sizes: Mapping[str, int]) -> bool:
        """Return whether some sizes of the bucket meet the guards."""
        return self._conditions(sizes)

    def values(self, sizes: Mapping[str, int]) -> IntegerArray | None:
        """Return the values of all expressions for some sizes; None if they do not meet the guards."""
        return self._conditions.values(sizes)

    def compiled(self, values: IntegerArray, device: Device) -> CompiledWork:
        """Return the compiled work for values of the expressions."""
        needs, layouts = self.needs(values), [*self.work.inputs, *self.work.outputs]
        for number, layout in needs.layouts.items():
            layouts[number] = layout
        count = len(self.work.inputs)
        work = Work(tuple(layouts[:count]), tuple(layouts[count:]), self.work.stages)
        return CompiledWork(work, device, self.executable.at(values[: self._ends[0]]), needs.steps)

    def needs(self, values: IntegerArray) -> SizedNeeds:
        """Return what a run needs for values of the expressions, which is within the limits.

        Raises:
            LimitExceeded: it is more than the model around it may take.
        """
        first, second = self._ends
        numbers = values[first:].tolist()
        steps, arena_bytes, total, *counts = numbers[: second - first]
        layouts, at = dict[int, Layout](), second - first
        for number, type, rank in self._traced:
            middle, end = at + rank, at + 2 * rank
            layouts[number] = Layout(type, tuple(numbers[at:middle]), tuple(numbers[middle:end]))
            at = end
        require_run(layouts.values, counts, total, arena_bytes, steps)
        return SizedNeeds(steps, arena_bytes, layouts)

    def instances_on(self, stream: int | None) -> SizedInstances:
        """Return the instances of all sizes but the first, once the plan has a model.

        Args:
            stream: the stream of their work; None: they are over host memory. Work on different streams may
                overlap, so each has its own.
        """
        found = self._instances.get(stream)
        if found is None:
            assert self.model is not None
            prepared, on_stream = self.model._prepared, stream is not None
            make = partial(self.executable.sized_instance, prepared.addresses, prepared.arenas, on_stream)
            most = self.executable.sized_instances
            found = self._instances.setdefault(stream, SizedInstances(make, most))
        return found


@dataclass(frozen=True)
class GraphInPlace:
    """A graph with outputs in the memory of the inputs that they begin with.

    Such an input and its output are first parts of one packed tensor, whose size along an axis is `CAPACITY`.

    Args:
        traced: the graph.
        pairs: the names of such inputs by those of the outputs.
        axes: the axes by the names of outputs.
        lengths: the sizes along these axes.
    """

    traced: TracedModel
    pairs: Mapping[str, str]
    axes: Mapping[str, int]
    lengths: Values


class TracedModel:
    """A graph with the sizes of one trace, for a device that has plans (`has_plans`).

    It makes plans under the lock of the trace, which its graphs in place share. While one of them makes a
    plan, the ranges of the trace are those of a bucket. Hints by these would not suit other buckets.

    Args:
        device: the device.
        work: the graph's work.
        trace: the trace of its sizes. Its guards are those of the graph.
        make: makes a model of compiled work.
        names: the names of its inputs, None for constants, and those of its outputs.
        before_plan: is called before a plan reads the constants; it may raise an error.
    """

    def __init__(
        self,
        device: Device,
        work: Work,
        trace: Trace,
        make: Callable[[CompiledWork], Model],
        names: tuple[Sequence[str | None], Sequence[str]],
        before_plan: Callable[[], None] | None = None,
    ) -> None:
        self.device = device
        self._names, self._output_names = names
        self._work, self._trace, self._make = work, trace, make
        self._before_plan = before_plan
        self._plans: dict[Bucket, list[Plan]] = {}
        self._models: dict[tuple[int, ...], Model] = {}
        self._program: Program | None = None
        self._stored: StoredPlans | None = None
        self._in_place: dict[tuple[tuple[str, str], ...], GraphInPlace | None] = {}
        if not device._backend.joins_units:
            for name in trace.dimensions:
                _ = trace.size(name) >= LEAST_TRACED  # A guard.
        # The program of a plan is bound to the buffers in their order. An input that is read in two ways is
        # two tensors of its program.
        in_order = tuple(range(len(work.inputs) + len(work.outputs)))
        if len(work.stages) == 1 and work.stages[0].buffers == in_order:
            require_parts(work)
            self._program = carried(work.stages[0].program)
            self._stored = StoredPlans.of(device._backend, device.threads, self._program, trace)
        traced = None if self._stored is not None else self._fused()
        self._steps = sum(steps_of(stage.program.results) for stage in work.stages)
        self._recorded = trace.guards
        self.maker = PlanMaker(trace, trace.guards, device._backend.hint_multiple, traced, before_plan)
        self._found: dict[Bucket, list[FoundPlan]] = {}
        """The plans in the cache that are not used yet, of the buckets that were looked at."""
        if self._stored is not None:
            self.maker.fuse, self.maker.refusals.keepers["cache"] = self._fuse_later, self._keep_refusal
        self.plan_count = 0
        """The number of plans that were made so far."""

    def _fused(self) -> TracedProgram | None:
        """Fuse the program, if there is one."""
        if self._program is None:
            return None
        with default_mode(), self._trace.passing_units(), meter().timed("compile_seconds", "a graph"):
            return self.device._backend.traced(self._program, self.device.threads)

    def at(self, sizes: Mapping[str, int]) -> Model | None:
        """Return the model for some sizes of all dimensions, each 2 or more.

        None: they do not meet the guards of the graph, or the device cannot compile it with traced sizes. Or
        a handler of a signal runs the model, while its thread makes a plan.
        """
        key = tuple([sizes[name] for name in self.maker.dimensions])
        model = self._models.get(key)
        if model is None:
            with self._trace._lock, collection_paused():
                model = None if self._trace.is_in_block else self._planned(sizes, key)
                if model is not None:
                    kept(self._models, key, model)
        return model

    @property
    def all_plan_count(self) -> int:
        """The number of plans that were made so far, those of graphs in place too."""
        return self.plan_count + sum(each.traced.plan_count for each in list(self._in_place.values()) if each)

    def in_place(self, pairs: Mapping[str, str]) -> GraphInPlace | None:
        """Return the graph with outputs in the memory of the inputs that they begin with.

        Args:
            pairs: the names of inputs by those of outputs; names that the graph does not have do not count.

        Returns:
            The graph. None: no output begins with its input, or the device cannot compile the graph with
            traced sizes. Or a handler of a signal asks, while its thread makes a plan.
        """
        key = tuple(pairs.items())
        if key not in self._in_place:
            with self._trace._lock:
                if self._trace.is_in_block:
                    return None
                if key not in self._in_place:
                    self._in_place[key] = self._made_in_place(pairs)
        return self._in_place[key]

    def _made_in_place(self, pairs: Mapping[str, str]) -> GraphInPlace | None:
        is_untraced = self.maker.fuse is None and self.maker.traced is None
        if self._program is None or is_untraced:
            return None
        work, (stage,) = self._work, self._work.stages
        count, joined = len(self._program.inputs), dict[str, tuple[int, int, int]]()
        simple = replace(self._program, results=simplify(self._program.results))
        for output, (input, axis) in joined_inputs(simple).items():
            buffer = stage.buffers[count + output] - len(work.inputs)
            if pairs.get(self._output_names[buffer]) == self._names[stage.buffers[input]] is not None:
                joined[self._output_names[buffer]] = output, input, axis
        if not joined:
            return None
        capacity = self._trace.add(CAPACITY, Dimension(GREATEST >> 1, 2, GREATEST))
        layouts = [*stage.program.inputs, *stage.program.outputs]
        for output, input, axis in joined.values():
            for number in (input, count + output):
                layouts[number] = first_part(layouts[number], axis, capacity)
        places = frozenset([(output, input) for output, input, _ in joined.values()])
        inputs, outputs = tuple(layouts[:count]), tuple(layouts[count:])
        program = replace(stage.program, inputs=inputs, outputs=outputs, in_place=places)
        every = [*work.inputs, *work.outputs]
        for number, layout in zip(stage.buffers, layouts, strict=True):
            every[number] = layout
        first = len(work.inputs)
        changed = Work(tuple(every[:first]), tuple(every[first:]), (replace(stage, program=program),))
        with self._trace.within({}) as guards:
            guards.update(self.maker.guards)
            names = self._names, self._output_names
            traced = TracedModel(self.device, changed, self._trace, self._make, names, self._before_plan)
        axes = {name: axis for name, (_, _, axis) in joined.items()}
        sizes = [outputs[output].sizes[axis] for output, _, axis in joined.values()]
        return GraphInPlace(traced, {name: pairs[name] for name in axes}, axes, Values(sizes))

    def plan_at(self, sizes: Mapping[str, int]) -> Plan | None:
        """Return the plan that serves some sizes; None: it has been dropped."""
        key = [sizes[name] for name in self.maker.dimensions]
        plans = list(self._plans.get(bucket_of(key), ()))
        served = [plan for plan in plans if plan.serves(sizes)]
        if len(served) < 2:
            return served[0] if served else None
        with self._trace._lock:
            first = list(self.maker.candidates(self.maker.ranges(key), sizes))
        return min(served, key=lambda plan: first.index(plan.hints) if plan.hints in first else len(first))

    def _planned(self, sizes: Mapping[str, int], key: tuple[int, ...]) -> Model | None:
        """Return a new model for some sizes, made by a plan of their bucket."""
        bucket = bucket_of(key)
        plans = self._plans.setdefault(bucket, [])
        if len(self._plans) > MOST_BUCKETS:
            del self._plans[next(iter(self._plans))]

        def known(hints: Hints) -> Model | None:
            for plan in [each for each in plans if each.hints == hints]:
                values = plan.values(sizes)
                if values is not None:
                    return self._of(plan, values)
            return added(self._read_plan(bucket, hints, sizes))

        def new(stored: StoredPlan) -> Model | None:
            if self._stored is not None:
                self._stored.write(bucket, stored)
            return added(Plan(stored, self._work, self._steps))

        def added(plan: Plan | None) -> Model | None:
            values = None if plan is None else plan.values(sizes)
            if plan is None or values is None:
                return None
            del plans[: len(plans) + 1 - MOST_PLANS]  # The oldest, if there are many.
            plans.append(plan)
            self.plan_count += 1
            return self._of(plan, values)

        return self.maker.search(sizes, known, new)

    def _read_plan(self, bucket: Bucket, hints: Hints, sizes: Mapping[str, int]) -> Plan | None:
        """Return a stored plan for hints that serves some sizes; None: there is none."""
        store = self._stored
        if store is None:
            return None
        if bucket not in self._found:
            while len(self._found) >= MOST_BUCKETS:
                del self._found[next(iter(self._found))]
            self._found[bucket] = list(store.read(bucket))
            store.read_refusals(bucket, self.maker.refusals)
            for found in self._found[bucket]:
                for refused in found.refused:
                    self.maker.refusals.add(*refused)
        plans = self._found[bucket]
        for found in [each for each in plans if each.hints == hints]:
            guards = [*self.maker.guards, *found.guards]
            serves = Conditions(guards)(sizes)
            # Another process ran other heights or widths. A plan for all sizes also serves the next ones.
            self.maker.has_one_size &= serves
            if not serves:
                continue
            plans.remove(found)
            executable = store.executable(found)
            if executable is not None:
                stored = StoredPlan(executable, guards, found.hints, found.refused)
                return Plan(stored, self._work, self._steps)
        return None

    def _keep_refusal(self, hints: Hints, guards: Sequence[Guard]) -> None:
        """Add refused hints to the cache."""
        assert self._stored is not None
        bucket = bucket_of([hints[name] for name in self.maker.dimensions])
        self._stored.keep_refusal(bucket, hints, guards)

    def _fuse_later(self) -> None:
        """Fuse the program, because a plan is needed that is not stored."""
        self.maker.fuse = None
        with self._trace._lock, ExitStack() as block:
            guards = self._trace.guards
            if guards is not self._recorded:  # The model was made in a block of `Trace.within`.
                guards = block.enter_context(self._trace.within({}))
                guards.update(self.maker.guards)
            try:
                self.maker.traced = self._fused()
            except UNTRACED as error:
                log.warning("sizes cannot be traced through a graph: %s: %s", type(error).__name__, error)
            self.maker.use_guards(guards)

    def _of(self, plan: Plan, values: IntegerArray) -> Model:
        if plan.model is not None:
            return SizedModel(plan, values)
        model = self._make(plan.compiled(values, self.device))
        own = model.__dict__.items()
        plan.shared_attributes = {name: value for name, value in own if name not in LATER}
        plan.model = model
        return model

    def record(self, found: Recorder) -> int:
        """Note all plans with their code and constants for a compiled file. Return how many there are.

        Args:
            found: the recorder of this context.
        """
        store, count = self._stored, 0
        for bucket, plans in self._plans.items():
            if store is None:
                continue
            made = [(plan, plan.model) for plan in plans if plan.model is not None]
            store.record(bucket, [plan.stored for plan, _ in made])
            for plan, model in made:
                note_constants(found, plan.executable.kept, model._prepared.kept, model._identities)
            count += len(made)
        return count + sum(each.traced.record(found) for each in self._in_place.values() if each)

    def _footprint(self, prepared: Sequence[Prepared] | None = None) -> Footprint:
        """Return the memory of the plans' models, which share constants with models of other sizes.

        Args:
            prepared: prepared deferred constants of the models; None: there are none.
        """
        models = [plan.model for plans in list(self._plans.values()) for plan in plans if plan.model]
        found = [model._footprint(prepared) for model in {*models, *list(self._models.values())}]
        found += [each.traced._footprint(prepared) for each in list(self._in_place.values()) if each]
        memory = frozenset[Any]().union(*[each.kept for each in found])
        arena = max([each.arena_bytes for each in found], default=0)
        return Footprint(sum(each.own_bytes for each in found), memory, arena)


def first_part(layout: Layout, axis: int, capacity: int) -> Layout:
    """Return the layout of the first part, along an axis, of a packed tensor that has `capacity` there."""
    sizes = (*layout.sizes[:axis], capacity, *layout.sizes[axis + 1 :])
    return Layout(layout.type, layout.sizes, packed(layout.type, sizes).strides)


def kept(models: dict[Any, Model], key: Any, model: Model) -> None:
    """Add a model to those that are kept, in place of the oldest one."""
    while len(models) >= MOST_SIZES:
        models.pop(next(iter(models)), None)
    models[key] = model
