"""Compiled graphs whose inputs have named dimensions: a model for each size, made when it is first called."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opendml.budget import NO_LIMITS, meter, metered
from opendml.errors import InvalidArgument, Unsupported
from opendml.locked import Locked
from opendml.logs import log
from opendml.program.atoms import GREATEST, Dimension, Relation
from opendml.program.buckets import ranges_of
from opendml.program.program import Layout
from opendml.program.size_values import Conditions
from opendml.program.sizes import Size, is_traced, value_at
from opendml.program.trace import Trace
from opendml.runtime.calls.operator_call import require_array
from opendml.runtime.described import sizes_text
from opendml.runtime.graphs.caches import (
    Caches,
    Declared,
    DeviceArrays,
    Grown,
    HostArrays,
    ModelState,
    bound_caches,
    grown,
    write_result,
)
from opendml.runtime.graphs.model import Model, require_names
from opendml.runtime.graphs.plan_maker import UNTRACED, hints_in
from opendml.runtime.graphs.shared import SharedMemory, note_constants
from opendml.runtime.graphs.steps import GraphData, InputStep, resized
from opendml.runtime.graphs.traced_model import TracedModel, has_plans, kept
from opendml.runtime.memory.foreign import as_numpy, like
from opendml.runtime.memory.host_array import Array, array_over
from opendml.runtime.objects.bound import BoundModel
from opendml.runtime.objects.device import Device
from opendml.spec.wording import shown
from opendml.targets.backend import StreamBackend, StreamCall
from opendml.targets.compiled_files import Recorder, current_file, reading, recorded
from opendml.targets.registry import place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opendml.runtime.explain.explanation import ExplainedGraph

MOST_TRACES = 16
"""Traces for one choice of the dimensions that are 1, at most. Another one takes the place of the oldest."""


class NamedModel(Model):
    """A compiled graph with named dimensions. Calls of different sizes run at the same time.

    Args:
        device: where it runs.
        data: the graph, with sizes of its trace.
        layouts: the layouts of all inputs by name, and those of the outputs.
        build: adds the steps of a graph to a new one, and compiles it for the device. It is given the graph,
            and a trace, or None for a graph of exact sizes.
    """

    def __init__(
        self,
        device: Device,
        data: GraphData,
        layouts: tuple[Mapping[str, Layout], Mapping[str, Layout]],
        build: Callable[[GraphData, SharedMemory, Trace | None], Model | TracedModel],
    ) -> None:
        Locked.__init__(self)
        device._require_present()
        self.device, self._data, self._graph, self._build = device, data, data, build
        self._output_layouts = tuple(layouts[1].values())
        self.input_names, self.output_names = tuple(layouts[0]), tuple(layouts[1])
        self._names, self._input_layouts = self.input_names, tuple(layouts[0].values())
        self._memory, self._limits, self._file = SharedMemory(), meter().limits, current_file()
        steps = [step for step in data.steps if isinstance(step, InputStep)]
        self._wanted = {data.inputs[step.position]: step.tensor.sizes for step in steps}
        self._open = [name for name, sizes in self._wanted.items() if any(map(is_traced, sizes))]
        unknown = [name for name in data.dimensions if name not in self._dimension_names]
        if unknown:
            raise InvalidArgument(
                f"graph dimension {shown(unknown[0])}: no input has it among its sizes, where calls read it"
            )
        self._choices = data.choices
        self._is_choice_met = Conditions(self._choices)
        self._by_shapes: dict[Hashable, Model] = {}
        self._exact: dict[Hashable, Model] = {}
        self._traces: dict[tuple[int, ...], list[TracedModel]] = {}
        self._has_own = False

    @property
    def temporary_bytes(self) -> int:
        """Memory that the model holds for intermediate tensors, and for copies on a device of arrays in host
        memory: as much as the largest sizes need."""
        return self._memory.arenas.most + self._memory.arenas.copies.most

    @property
    def persistent_bytes(self) -> int:
        """Memory that the model holds for its constants, prepared for the sizes that were called."""
        return self._memory.constants.bytes

    def __deepcopy__(self, memo: object) -> NamedModel:
        """Return a model of the same device, which shares the code and the prepared constants."""
        copy = object.__new__(NamedModel)
        copy.__dict__.update(self.__dict__)
        Locked.__init__(copy)
        copy._by_shapes, copy._has_own = {}, True
        return copy

    def __call__(self, /, *arrays: Any, **inputs: Any) -> dict[str, Any]:
        """Run the model, and return its outputs by name."""
        if arrays:
            inputs = self._named(arrays, inputs)
        return self._of(inputs)(inputs)

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Compute the outputs into given arrays, whose sizes follow from those of the inputs.

        An output may begin with an input, as a cache of keys and values does: both are views of one buffer
        that is longer along one axis. Then only its new part is written, if the graph joins it to the input.

        Raises:
            InvalidArgument: as for other models; or an output shares memory with an input in another way.
        """
        require_names("inputs", inputs, self.input_names)
        require_names("outputs", outputs, self.output_names)
        call = self._call_on_device(inputs, outputs)
        if call is not None:
            self._run_on_stream(call, inputs, outputs)
            return
        arrays = {name: as_numpy(each, name) for name, each in outputs.items()}
        caches = bound_caches({name: as_numpy(each, name) for name, each in inputs.items()}, arrays)
        if caches is None:
            self._of(inputs).run(inputs, outputs)
            return
        for name, result in self._run_with(inputs, caches).items():
            if result is not caches.memory.get(name):
                write_result(name, arrays[name], result)

    def _run_on_stream(self, call: StreamCall, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Add the work over arrays on the device to the stream of a call."""
        given, wanted = (
            {name: array_over(call.memory(each, name)) for name, each in arrays.items()}
            for arrays in (inputs, outputs)
        )
        caches = bound_caches(given, wanted, self.device._backend.place)
        if caches is None:
            self._of(inputs).run(inputs, outputs)
            return
        if has_plans(self.device):
            with self._metered():
                for in_place in self._grown(self._sizes_of(inputs), caches):
                    if in_place.outputs.keys() != caches.pairs.keys():
                        continue
                    in_place.model._run_on_device(call, inputs, outputs, in_place.outputs)
                    call.end(list(outputs.values()))
                    return
        model = self._of(inputs)
        for name, result in model(**inputs).items():
            source, target = (call.memory(each, name) for each in (result, outputs[name]))
            require_array(name, target.layout, source.layout)
            model._copies_on_stream.copy(call, source, target)()
        call.end(list(outputs.values()))

    def _run_with(self, inputs: Mapping[str, Any], caches: Caches) -> dict[str, Array]:
        """Return the outputs by name; those of `caches` lie in its memory if the graph allows it."""
        require_names("inputs", inputs, self.input_names)
        inputs = {name: as_numpy(each, name) for name, each in inputs.items()}
        sizes = self._sizes_of(inputs)
        if has_plans(self.device):
            with self._metered():
                for in_place in self._grown(sizes, caches):
                    results = in_place(inputs)
                    if results is not None:
                        return results
        return self(**inputs)

    def _grown(self, sizes: Mapping[str, int], caches: Caches) -> Iterator[Grown]:
        """Yield the models of some sizes with outputs in the memory of inputs, after tracing if there is
        none."""
        for is_new in (False, True):
            if is_new:
                self._at(sizes)
            for traced, open_sizes in self._traces_for(sizes):
                found = grown(traced, open_sizes, caches)
                if found is not None:
                    yield found

    def state(self, pairs: Mapping[str, str] | None = None, *, capacity: int = 0) -> ModelState:
        """Return the memory of inputs that are outputs of the run before, as caches of keys and values.

        Args:
            pairs: the names of these inputs by those of the outputs. None: an output whose name has "present"
                is the input whose name has "past", "past_key_values" or "past_key_value" there.
            capacity: rows for which there is room from the beginning.

        Raises:
            InvalidArgument: an unknown name, or sizes that do not differ in one open size.
        """
        inputs, outputs = (
            [
                Declared(name, layout.type.numpy, tuple(map(_declared, layout.sizes)))
                for name, layout in zip(names, layouts, strict=True)
            ]
            for names, layouts in (
                (self.input_names, self._input_layouts),
                (self.output_names, self._output_layouts),
            )
        )
        is_on_host = self.device._backend.place is None
        arrays = HostArrays() if is_on_host else DeviceArrays(self.device)
        run = self._run_state if is_on_host else self._run_state_on_device
        return ModelState(run, inputs, outputs, pairs, capacity, takes_empty=False, arrays=arrays)

    def _run_state(self, inputs: Mapping[str, Any], caches: Caches) -> dict[str, Any]:
        """Return the outputs by name. All but caches are arrays of the library of the first other input."""
        others = [each for name, each in inputs.items() if name not in caches.pairs.values()]
        return {
            name: result if name in caches.pairs else like(next(iter(others), None), result)
            for name, result in self._run_with(inputs, caches).items()
        }

    def _run_state_on_device(self, inputs: Mapping[str, Any], caches: Caches) -> dict[str, Any]:
        """Return the outputs by name. Caches are arrays of the device.

        All others are arrays of the library of the first input that is no cache, on the host or the device as
        that input is.
        """
        require_names("inputs", inputs, self.input_names)
        backend, kept_names = self.device._backend, caches.pairs.values()
        assert isinstance(backend, StreamBackend)
        others = [each for name, each in inputs.items() if name not in kept_names]
        first = next(iter(others), None)
        is_hosted = all(place_of(each) is None for each in others)
        given = DeviceArrays(self.device).given
        on_device = {name: given(each, name) if is_hosted else each for name, each in inputs.items()}
        results = self._run_grown(on_device, caches, next(iter(on_device.values())) if is_hosted else first)
        if not is_hosted:
            return results
        return {
            name: result if name in caches.pairs else like(first, backend.download(result))
            for name, result in results.items()
        }

    def _run_grown(self, inputs: Mapping[str, Any], caches: Caches, first: Any) -> dict[str, Any]:
        """Return the outputs by name, for inputs on the device.

        The library of `first` makes new outputs. The work is on its stream.
        """
        backend = self.device._backend
        assert isinstance(backend, StreamBackend)
        with self._metered():
            for in_place in self._grown(self._sizes_of(inputs), caches):
                call, model = backend.call(first), in_place.model
                made = {
                    name: call.empty(layout.sizes, layout.type)[0]
                    for name, layout in zip(model.output_names, model._output_layouts, strict=True)
                    if name not in in_place.outputs
                }
                outputs = {**made, **in_place.outputs}
                model._run_on_device(call, {**inputs, **in_place.inputs}, outputs, in_place.outputs)
                call.end([])
                return {**outputs, **{name: call.finished(array) for name, array in made.items()}}
        given = DeviceArrays(self.device).given
        return {
            name: given(each, name) if name in caches.pairs else each for name, each in self(**inputs).items()
        }

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> BoundModel:
        """Bind the model to arrays, for repeated dispatch with their sizes."""
        return self._of(inputs).bind(inputs, outputs)

    def explain(self, /, *arrays: Any, **inputs: Any) -> ExplainedGraph:
        """Explain the model for the sizes of some inputs, compiled for these alone."""
        if arrays:
            inputs = self._named(arrays, inputs)
        missing = [name for name in self._open if name not in inputs]
        if missing:
            raise InvalidArgument(
                f"explain: {missing[0]} is missing; an array for each input with named dimensions is needed"
            )
        sizes = self._sizes_of(inputs)
        with self._metered():
            model = self._compiled_exactly(sizes)
        return model.explain(**inputs)

    @contextmanager
    def _metered(self) -> Iterator[None]:
        """Use the compiled file and the limits of the model's loading, for sizes that are met first."""
        limits = self._limits
        with reading(self._file):
            if limits is NO_LIMITS:
                yield
                return
            with metered(limits, held=self._memory.constants.bytes, name="a run"):
                yield

    def _recorded(self) -> Recorder:
        """Return what a compiled file of the model needs for the sizes that were called."""
        with self._lock, recorded() as found:
            traces = [traced for traces in self._traces.values() for traced in traces]
            count = sum(traced.record(found) for traced in traces)
            for model in self._exact.values():
                for stage in model._work.work.stages:
                    model._work.compile_again(stage, self.device)
                kept = model._work.executable.kept
                note_constants(found, kept, model._prepared.kept, model._identities)
                count += 1
        if not count or not found.has_plans or not self.device._backend.maps_constants:
            problem = "no sizes of its named dimensions have plans, which warm_up makes on the CPU"
            raise Unsupported(f"save: compiled=True: {problem}")
        return found

    def _of(self, inputs: Mapping[str, Any]) -> Model:
        """Return the model for the sizes of some inputs."""
        try:
            shapes = tuple([inputs[name].shape for name in self._open])
            model = self._by_shapes.get(shapes)
        except (AttributeError, KeyError, TypeError):
            require_names("inputs", inputs, self.input_names)
            shapes, model = tuple([_shape(inputs[name], name) for name in self._open]), None
        if model is None:
            require_names("inputs", inputs, self.input_names)
            with self._metered():
                model = self._at(self._sizes_of(inputs))
            if self._has_own:
                model = model.__deepcopy__({})
            kept(self._by_shapes, shapes, model)
        return model

    def _sizes_of(self, inputs: Mapping[str, Any]) -> dict[str, int]:
        """Return the sizes of dimensions by name.

        Raises:
            InvalidArgument: inputs whose sizes do not fit.
        """
        found: dict[str, tuple[int, str]] = {}
        shapes = {name: _shape(inputs[name], name) for name in self._open}
        for name, shape in shapes.items():
            wanted = self._wanted[name]
            if len(shape) != len(wanted):
                raise self._unfit(name, shape, f"{len(wanted)} dimensions are needed")
            for axis, (size, given) in enumerate(zip(wanted, shape, strict=True)):
                if type(size) is not Size or (dimension := size.name) is None:
                    continue
                least, greatest = self._graph.dimensions[dimension]
                if not least <= given <= greatest:
                    raise self._unfit(name, shape, f"{dimension} is {least} to {greatest}")
                place = f"{name}, dimension {axis}"
                other, where = found.setdefault(dimension, (given, place))
                if other != given:
                    raise self._unfit(name, shape, f"{dimension} is {other} in {where}")
        sizes = {dimension: size for dimension, (size, _) in found.items()}
        for name, shape in shapes.items():
            wanted_now = tuple([value_at(size, sizes) for size in self._wanted[name]])
            if wanted_now != shape:
                raise self._unfit(name, shape, f"{list(wanted_now)} is needed")
        return sizes

    @property
    def _dimension_names(self) -> tuple[str, ...]:
        named = [each for sizes in self._wanted.values() for each in sizes]
        names = [each.name for each in named if type(each) is Size and each.name is not None]
        return tuple(dict.fromkeys(names))

    def _warm(self, sizes: Mapping[str, int]) -> None:
        now = {name: sizes[name] for name in self._dimension_names}
        for name, size in now.items():
            least, greatest = self._graph.dimensions[name]
            if not least <= size <= greatest:
                raise InvalidArgument(f"warm_up: {name}: {size}; it is {least} to {greatest}")
        with self._metered():
            self._at(now)

    def _unfit(self, name: str, shape: tuple[int, ...], problem: str) -> InvalidArgument:
        wanted = sizes_text(self._wanted[name])
        return InvalidArgument(f"{name}: sizes {list(shape)}; the graph has {wanted}; {problem}")

    def _at(self, sizes: Mapping[str, int]) -> Model:
        """Return the model for sizes of all dimensions."""
        model = self._exact.get(tuple(sizes.items()))
        if model is not None:
            return model
        self._require_choices(sizes)
        if has_plans(self.device):
            for traced, open_sizes in self._traces_for(sizes):
                model = traced.at(open_sizes)
                if model is not None:
                    return model
            with self._lock:
                model = self._newly_traced(sizes, self._traces.setdefault(_structure_of(sizes), []))
        return model or self._compiled_exactly(sizes)

    def _traces_for(self, sizes: Mapping[str, int]) -> list[tuple[TracedModel, dict[str, int]]]:
        """Return the traces that may serve some sizes, each with the sizes of its dimensions.

        Traces of larger sizes, which may serve 1 too, come last.
        """
        found = []
        for structure, traces in sorted(self._traces.items(), reverse=True):
            own = {
                name: size for (name, size), exact in zip(sizes.items(), structure, strict=True) if exact < 0
            }
            if all(
                size == exact or (size and exact < 0)
                for size, exact in zip(sizes.values(), structure, strict=True)
            ):
                found += [(traced, own) for traced in traces]
        return found

    def _newly_traced(self, sizes: Mapping[str, int], traces: list[TracedModel]) -> Model | None:
        """Return a model that a new trace makes; None if none does."""
        open_sizes = _open_of(sizes)
        buckets = zip(open_sizes, ranges_of(open_sizes.values()), strict=True)
        ranges = {name: self._range_of(name, *range) for name, range in buckets}
        for hints in (hints_in(ranges, open_sizes, self.device._backend.hint_multiple), open_sizes):
            trace = Trace(
                {name: Dimension(hint, *self._range_of(name, 1, GREATEST)) for name, hint in hints.items()},
                narrows=True,
            )
            now = {name: trace.size(name) if name in hints else size for name, size in sizes.items()}
            try:
                traced = self._build(resized(self._graph, now), self._memory, trace)
            except InvalidArgument:
                continue  # The hints do not suit the graph, but the sizes may.
            except UNTRACED as error:
                log.warning("sizes cannot be traced through a graph: %s: %s", type(error).__name__, error)
                return None
            assert isinstance(traced, TracedModel)
            model = traced.at(open_sizes)
            if model is not None:
                del traces[: len(traces) + 1 - MOST_TRACES]
                traces.append(traced)
                return model
        return None

    def _range_of(self, name: str, least: int, greatest: int) -> tuple[int, int]:
        """Return the part of a range that calls may have."""
        own = self._graph.dimensions[name]
        return max(own[0], least), min(own[1], greatest)

    def _compiled_exactly(self, sizes: Mapping[str, int]) -> Model:
        try:
            with self._lock:
                model = self._build(resized(self._graph, sizes), self._memory, None)
        except InvalidArgument as error:
            raise error._within(_text_of(sizes)) from error
        except ArithmeticError as error:
            raise InvalidArgument(f"{_text_of(sizes)}: {error}") from error
        assert isinstance(model, Model)
        kept(self._exact, tuple(sizes.items()), model)
        return model

    def _require_choices(self, sizes: Mapping[str, int]) -> None:
        """Check that the caller's program, which built the graph, would have built the same for some sizes.

        Raises:
            InvalidArgument: it compared sizes, with another result.
        """
        if self._choices and not self._is_choice_met(sizes):
            for guard, place in self._choices.items():
                if not Conditions([guard])(sizes):
                    expression = repr(guard[1]).strip("<>")
                    raise InvalidArgument(
                        f"{_text_of(sizes)}: the graph serves sizes with {expression} "
                        f"{_RELATIONS[guard[0]]}, because the program that built it compared sizes at {place}"
                    )


_RELATIONS = {Relation.NOT_NEGATIVE: ">= 0", Relation.ZERO: "= 0", Relation.NOT_ZERO: "other than 0"}


def _text_of(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _open_of(sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of dimensions that are traced."""
    return {name: size for name, size in sizes.items() if size > 1}


def _structure_of(sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the dimensions that are 0 or 1, which are no dimensions of a trace; -1 for others."""
    return tuple([size if size < 2 else -1 for size in sizes.values()])


def _declared(size: int) -> int | str:
    """Return a size, or its expression as text."""
    return repr(size).strip("<>") if is_traced(size) else size


def _shape(array: Any, name: str) -> tuple[int, ...]:
    shape = getattr(array, "shape", None)
    return tuple(as_numpy(array, name).shape if shape is None else shape)
