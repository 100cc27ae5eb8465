"""Compiled graphs, which are called on arrays."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from numpy import ndarray

from opendml.across_forks import cached_property, importing
from opendml.errors import InvalidArgument, Unsupported
from opendml.locked import Locked
from opendml.program.program import Layout, Program
from opendml.program.stored_sizes import WrittenSizes
from opendml.runtime.calls.arguments import CAST, NUMPY_CAST
from opendml.runtime.calls.operator_call import require_array
from opendml.runtime.described import signature, tensor_text
from opendml.runtime.graphs.compiled_work import CompiledWork, Prepared
from opendml.runtime.graphs.layout_copies import (
    ArraysInLayout,
    CopiesOnStream,
    Copy,
    copy_on_host,
    lies_so,
    new_on_host,
    wrong_strides,
)
from opendml.runtime.graphs.shared import ConstantStore, Footprint, SharedMemory, note_constants
from opendml.runtime.graphs.steps import GraphData
from opendml.runtime.graphs.warming import SizesToWarm, size_combinations
from opendml.runtime.memory.foreign import as_numpy, like
from opendml.runtime.memory.host_array import (
    Array,
    check_outputs,
    memory_of,
    reject_truth_values,
)
from opendml.runtime.memory.ranges import common_place, require_device
from opendml.runtime.objects.bound import BoundModel
from opendml.runtime.objects.device import Device
from opendml.spec.naming import nearest
from opendml.spec.tensor_desc import same_strides
from opendml.spec.wording import shown
from opendml.targets.backend import StreamCall
from opendml.targets.compiled_files import Recorder, recorded
from opendml.targets.executable import Instance
from opendml.targets.memory import Place, TensorMemory, address_of
from opendml.targets.output_memory import OutputMemory
from opendml.targets.registry import backend_at, place_of

if TYPE_CHECKING:
    from opendml.runtime.explain.explanation import ExplainedGraph
    from opendml.runtime.graphs.caches import ModelState

A = TypeVar("A")
"""Arrays of any library."""


NEW_MEMORY: Mapping[str, Array] = MappingProxyType({})
"""The arrays of outputs by name, if all are new."""
_NODE_BYTES = 2048
"""Bytes that a model holds for each node of its program, beside constants and temporaries; an estimate."""


class Model(Locked):
    """A compiled graph. Calls from several threads take turns.

    Arrays on the CUDA device of the model are used in place. The work is added to the current stream of the
    library of the first array. On "cuda", arrays in host memory are copied there and back. Constants are read
    once, when the graph is compiled; values that depend only on them are computed then.
    """

    def __init__(
        self,
        device: Device,
        work: CompiledWork,
        names: tuple[str | None, ...],
        output_names: tuple[str, ...],
        constants: Mapping[int, Array],
        data: GraphData | None = None,
        deferred_constants: tuple[int, ...] = (),
        identities: Mapping[int, Hashable] | None = None,
        shared: SharedMemory | None = None,
    ) -> None:
        super().__init__()
        device._require_present()
        self.device, self._data = device, data
        self.input_names = tuple(name for name in names if name is not None)
        self.output_names = output_names
        self._names, self._all_names = names, (*names, *output_names)
        self._deferred_constants, self._shared = deferred_constants, shared
        self._identities = identities or {}
        self._output_memory = shared.arenas.outputs if shared else OutputMemory()
        self._arrays = {} if data is None else constants
        """The arrays of constants by the numbers of their buffers. The graph holds them for `save`, too."""
        self._lay_out(work)
        stages, layouts = work.work.stages, work.work.inputs
        read = {stage.buffers[number] for stage in stages for number in stage.program.constants}
        self._constants = {
            number: TensorMemory(address_of(array), layouts[number], False, array)
            for number, array in constants.items()
            if number in read
        }
        if not deferred_constants:
            self._prepared = self._prepare()
            self._constants.clear()
        self._own_bytes = _NODE_BYTES * sum(stage.node_count for stage in stages)

    def _lay_out(self, compiled: CompiledWork) -> None:
        """Use some compiled work, and note what calls need of the layouts of its tensors."""
        work, names = compiled.work, self._names
        self._work, self._kernel_steps = compiled, compiled._kernel_steps
        self._input_layouts, self._output_layouts = work.inputs, work.outputs
        self._layouts = (*work.inputs, *work.outputs)
        self._expected = [
            needed_of(number, name, layout)
            for number, (name, layout) in enumerate(zip(names, work.inputs, strict=True))
            if name is not None
        ]
        self._makers = self._makers_of(work.outputs)
        self._numbers = [each[0] for each in self._expected] + [each[0] for each in self._makers]
        """The buffers of inputs, without constants, and of outputs."""

    def _makers_of(self, layouts: Sequence[Layout]) -> list[tuple[int, str, Callable[[], Array]]]:
        """Return the number and the name of each output, and a function that makes new arrays for it."""
        makers = self._output_memory.makers([(each.sizes, each.type.numpy) for each in layouts])
        first = len(self._names)
        return list(zip(range(first, first + len(makers)), self.output_names, makers, strict=True))

    def __repr__(self) -> str:
        return f"<Model {self.device.kind}: {self._signature}>"

    @property
    def _program(self) -> Program:
        """The program, or the first of several."""
        return self._work.work.stages[0].program

    @property
    def _signature(self) -> str:
        names, layouts = self._names, self._input_layouts
        given = [
            tensor_text(name, layout) for name, layout in zip(names, layouts, strict=True) if name is not None
        ]
        return signature(given, map(tensor_text, self.output_names, self._output_layouts))

    @property
    def temporary_bytes(self) -> int:
        """Memory that the model holds for intermediate tensors."""
        return self._work.temporary_bytes

    @property
    def persistent_bytes(self) -> int:
        """Memory that the model holds for its constants, prepared when it was compiled."""
        return self._work.persistent_bytes

    def warm_up(self, sizes: SizesToWarm) -> None:
        """Compile the model for sizes of its named dimensions now, and not when it is first called with them.

        >>> import opendml as dml
        >>> graph = dml.Graph()
        >>> x = graph.input("x", dml.FLOAT32, ["batch", 64])
        >>> model = graph.compile({"y": dml.activation_relu(x)})
        >>> model.warm_up({"batch": [1, 8]})

        Args:
            sizes: for each named dimension a size, or several; all combinations are compiled.

        Raises:
            InvalidArgument: a dimension that the graph does not have, or one without a size.
        """
        for each in size_combinations(sizes, self._dimension_names):
            self._warm(each)

    @property
    def _dimension_names(self) -> tuple[str, ...]:
        return ()

    def _warm(self, sizes: Mapping[str, int]) -> None:
        """Do nothing: a model of fixed sizes is compiled."""

    def save(self, path: str | PathLike[str], *, compiled: bool = False) -> None:
        """Write the graph, its constants and the kind of its device to a file.

        `opendml.load` compiles the file on any machine. A debug function of the device is left out.

        Args:
            path: the file.
            compiled: write the plan, the machine code and the packed constants too, for this machine and this
                version of opendml. Elsewhere the file is compiled when it is loaded. Of a graph with named
                dimensions, the plans of the sizes that were called or warmed up are written.

        Raises:
            InvalidArgument: the file cannot be written, or an array of a constant was written to since
                the graph was compiled. A model keeps no copy of its constants.
            Unsupported: a model that was not made by `Graph.compile`; or for `compiled` one of
                several programs, on another device than the CPU or of no sizes yet, or plans are not kept.
        """
        with importing:
            from opendml.runtime.saved.write import write_compiled, write_file
        if compiled:
            write_compiled(path, "saved", self._saved(), self._recorded())
        else:
            write_file(path, self._saved())

    def _recorded(self) -> Recorder:
        """Return what a compiled file of the model needs."""
        work, backend = self._work, self.device._backend
        if not backend.maps_constants or backend.stored(work.executable, WrittenSizes()) is None:
            problem = "a compiled file holds one program for the CPU, with plans switched on"
            raise Unsupported(f"save: compiled=True: {problem}")
        with recorded() as found:
            for stage in work.work.stages:
                work.compile_again(stage, self.device)
        note_constants(found, work.executable.kept, self._prepared.kept, {})
        return found

    def _saved(self) -> bytes:
        with importing:
            from opendml.runtime.saved.write import saved_graph
        return saved_graph(self._data, self.device)

    def __deepcopy__(self, memo: object) -> Model:
        """Return a model of the same device, which shares the code and the prepared constants."""
        copy = self._copied()
        if not self._deferred_constants:
            copy._prepared = self._prepared.again()
        return copy

    def _sized(self, work: CompiledWork) -> Model:
        """Return the model of other sizes whose work is made by the same plan, with the same constants."""
        copy = self._copied()
        copy._lay_out(work)
        copy._own_bytes = 0
        if not self._deferred_constants:
            copy._prepared = self._prepared.of(work)
        return copy

    def _copied(self) -> Model:
        copy = object.__new__(Model)
        copy.__dict__.update(self.__dict__)
        copy.__dict__.pop("_copies_on_stream", None)
        Locked.__init__(copy)
        return copy

    @overload
    def __call__(self, /) -> dict[str, Array]: ...
    @overload
    def __call__(self, batch: dict[str, A], /) -> dict[str, A]: ...
    @overload
    def __call__(self, /, *arrays: Array, **inputs: Array) -> dict[str, Array]: ...
    @overload
    def __call__(self, /, *arrays: A, **inputs: A) -> dict[str, A]: ...
    def __call__(self, /, *arrays: Any, **inputs: Any) -> dict[str, Any]:
        """Run the model, and return its outputs by name.

        The outputs are new arrays of the first input's library, or NumPy arrays if there is no input.

        Args:
            arrays: the first inputs, in the order in which the graph got them (`input_names`); or one dict of
                all inputs by their names, as batches of data sets are.
            inputs: the others by their names.

        Raises:
            InvalidArgument: a missing or unknown input, or one of another type or size, or elsewhere.
        """
        if arrays:
            inputs = self._named(arrays, inputs)
        results = self._called_on_host(inputs)
        if results is not None:
            return results
        require_names("inputs", inputs, self.input_names)
        self.device._require_ready()
        call = self._call_on_device(inputs, {})
        if call is None:
            outputs = {name: make() for _, name, make in self._makers}
            self.run(inputs, outputs)
            kind = next(iter(inputs.values()), None)
            return outputs if kind is None else {name: like(kind, array) for name, array in outputs.items()}
        made = {
            name: call.empty(layout.sizes, layout.type)[0]
            for name, layout in zip(self.output_names, self._output_layouts, strict=True)
        }
        self._run_on_device(call, inputs, made)
        call.end([])
        return {name: call.finished(array) for name, array in made.items()}

    def _named(self, arrays: tuple[Any, ...], inputs: dict[str, Any]) -> dict[str, Any]:
        """Return all inputs by name. The first ones may be given by position, or all in a dict."""
        if len(arrays) == 1 and isinstance(arrays[0], dict) and not inputs:
            return arrays[0]
        names = self.input_names[: len(arrays)]
        if len(arrays) > len(self.input_names):
            raise InvalidArgument(f"inputs: {len(arrays)} arrays; {_needed(self.input_names)}")
        if twice := [name for name in names if name in inputs]:
            raise InvalidArgument(f"inputs: {', '.join(twice)} is given twice, by position and by name")
        return dict(zip(names, arrays, strict=True)) | inputs

    def _called_on_host(
        self, inputs: dict[str, Any], memory: Mapping[str, Array] = NEW_MEMORY
    ) -> dict[str, Array] | None:
        """Run on NumPy arrays that have exactly the expected types, sizes and strides; return None for
        others.

        This is the fast path of calls. New outputs share memory with nothing, so only inputs are checked.

        Args:
            inputs: the inputs by name.
            memory: the arrays of outputs that are not new, by name. The caller has checked them.
        """
        self.device._require_ready()
        lock = self._lock
        with lock:
            prepared = self._prepared
            if prepared.held_by is lock:
                prepared = prepared.again()
            try:
                prepared.held_by = lock
                return self._dispatched(prepared.instance, inputs, memory)
            finally:
                prepared.held_by = None

    def _dispatched(
        self, instance: Instance, inputs: dict[str, Any], memory: Mapping[str, Array]
    ) -> dict[str, Array] | None:
        """Run an instance over NumPy arrays, and return the outputs. None means the same as for
        `_called_on_host`."""
        if len(inputs) != len(self._expected):
            return None
        bind = instance.bind
        for number, name, dtype, sizes, strides, misaligned in self._expected:
            array = inputs.get(name)
            if (
                type(array) is not ndarray
                or array.dtype is not dtype
                or array.shape != sizes
                or (array.strides != strides and not same_strides(sizes, array.strides, strides))
            ):
                return None
            address = address_of(array)
            if address & misaligned:
                return None
            bind(number, address)
        outputs = {}
        for number, name, make in self._makers:
            array = outputs[name] = memory[name] if name in memory else make()
            bind(number, address_of(array))
        instance.dispatch()
        return outputs

    def state(self, pairs: Mapping[str, str] | None = None, *, capacity: int = 0) -> ModelState:
        """Raise InvalidArgument: without named dimensions, no output is longer than an input."""
        raise InvalidArgument("state: the graph has no named dimensions, along which caches could grow")

    def _start(self, addresses: Sequence[int], stream: int | None, prepared: Prepared | None = None) -> None:
        """Run over host memory, or add the work to a stream of the device.

        If a signal handler or a finalizer runs the model within a run, it gets an instance of its own.

        Args:
            addresses: those of inputs, then those of outputs.
            stream: the stream; None: the memory is the host's.
            prepared: the prepared constants; None: those of the model.
        """
        prepared = prepared or self._prepared
        lock = self._lock
        with lock:
            if prepared.held_by is lock:
                prepared = prepared.again()
            try:
                prepared.held_by = lock
                if stream is None:
                    instance = prepared.instance
                    for _ in map(instance.bind, self._numbers, addresses):
                        pass
                    instance.dispatch()
                else:
                    known = dict(zip(self._numbers, addresses, strict=True))
                    every = [known.get(number) for number in range(len(self._layouts))]
                    prepared.on_streams.enqueue(every, stream)
            finally:
                prepared.held_by = None

    def _start_copied(
        self,
        memories: Sequence[TensorMemory | None],
        new: Callable[[Layout], TensorMemory],
        copy: Callable[[TensorMemory, TensorMemory], Copy],
        stream: int | None = None,
    ) -> None:
        """Run with copies of arrays that have other strides than the graph was compiled for."""
        arrays = ArraysInLayout(self._all_names, memories, self._layouts, len(self._names), new, copy)
        for each in arrays.before:
            each()
        self._start(arrays.addresses, stream)
        for each in arrays.after:
            each()

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Compute the outputs into given arrays. Arrays with other strides than the graph's are copied.

        Raises:
            InvalidArgument: as for a call; or an output that cannot be written, or shares memory with another
            array.
        """
        require_names("inputs", inputs, self.input_names)
        require_names("outputs", outputs, self.output_names)
        self.device._require_ready()
        call = self._call_on_device(inputs, outputs)
        if call is not None:
            self._run_on_device(call, inputs, outputs)
            call.end(list(outputs.values()))
            return
        memories = self._memories(_aligned(inputs), outputs, self._host_memory)
        self._start_copied(memories, new_on_host, copy_on_host)

    def _prepare(
        self, held: Sequence[TensorMemory] = (), identities: Sequence[Hashable] | None = None
    ) -> Prepared:
        """Prepare the constants, with values for those of `Graph._deferred_constant`.

        They are read now, after all earlier work on the device, and not afterwards.

        Args:
            held: the values, in their order.
            identities: keys by which models that share memory recognize them; None: they do not.
        """
        known = self._constants | dict(zip(self._deferred_constants, held, strict=True))
        names = {**self._identities, **dict(zip(self._deferred_constants, identities or (), strict=False))}
        store = self._shared.constants if self._shared else ConstantStore()
        kept = self._work.keep(known, names, store)
        arenas = self._shared.arenas if self._shared else None
        return Prepared(self._work, self.device._backend.place, kept, arenas)

    def _run_at(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        stream: int | None,
        prepared: Prepared | None = None,
    ) -> None:
        """Run on memory that the caller has checked.

        Args:
            inputs, outputs: addresses, in the order of `input_names` and `output_names`.
            stream: of the device, to whose order the work is added; None: the memory is the host's.
            prepared: the prepared deferred constants; None: there are none.
        """
        self.device._require_ready()
        self._start([*inputs, *outputs], stream, prepared)

    def _footprint(self, prepared: Sequence[Prepared] | None = None) -> Footprint:
        """Return the memory of the model, with these prepared constants; None: its own."""
        known = [self._prepared] if prepared is None else prepared
        kept = frozenset(memory for each in known for memory in each.kept)
        if self._work.shares_arenas:
            return Footprint(self._own_bytes, kept, self.temporary_bytes)
        return Footprint(self._own_bytes + len(known) * self.temporary_bytes, kept)

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> BoundModel:
        """Bind the model to arrays, for repeated dispatch. Arrays on the model's CUDA device are used in
        place.

        Raises:
            InvalidArgument: as for `run`; or an array with other strides than the graph was compiled for.
        """
        require_names("inputs", inputs, self.input_names)
        require_names("outputs", outputs, self.output_names)
        place = self._place(inputs, outputs)
        read = self._host_memory if place is None else backend_at(place).memory
        memories = self._memories(inputs, outputs, read)
        for name, memory, layout in zip(self._all_names, memories, self._layouts, strict=True):
            if memory is not None and not lies_so(memory.layout, layout):
                raise wrong_strides(
                    str(name), memory.layout, layout, "; run copies such arrays, bind does not"
                )
        instance = self._work.instantiate(place, self._prepared.kept)
        for number, memory in enumerate(memories):
            if memory is not None:
                instance.bind(number, memory.address)
        instance.keep((memories, self._prepared.kept))
        return BoundModel(self.device, instance, self._signature)

    def explain(self, /, *arrays: Any, **inputs: Any) -> ExplainedGraph:
        """Measure the kernels of the model, and return what they compute and how long they take.

        An explanation tells which operators became which kernels, what each kernel moves and computes, its
        time, and the plan of the memory between kernels. It takes about a second.

        >>> import opendml as dml
        >>> graph = dml.Graph()
        >>> x = graph.input("x", dml.FLOAT32, [64, 1000])
        >>> model = graph.compile({"y": dml.activation_relu(dml.activation_tanh(x))})
        >>> [kernel.name for kernel in model.explain().kernels]
        ['ACTIVATION_TANH + ACTIVATION_RELU']

        Args:
            arrays, inputs: arrays to measure with, in the order of the inputs or by their names. Other inputs
                are floats between 0 and 1, or integers that are 0.

        Raises:
            InvalidArgument: an unknown input, or one of another type, size or layout.
            Unsupported: the model is of a debug device, or memory is out.
        """
        with importing:
            from opendml.runtime.explain.measure import explained
        if arrays:
            inputs = self._named(arrays, inputs)
        unknown = [name for name in inputs if name not in self.input_names]
        if unknown:
            known = ", ".join(self.input_names) or "none"
            raise InvalidArgument(f"explain: input {unknown[0]} is unknown; the graph has {known}")
        self.device._require_present()
        place = self._place(inputs, {})
        read = self._host_memory if place is None else backend_at(place).memory
        given = self._read(inputs, read)
        constants = [number for number, name in enumerate(self._names) if name is None]
        names = {number: f"constant {index}" for index, number in enumerate(constants)}
        names |= {number: name for number, name in enumerate(self._names) if name is not None}
        return explained(self.device, self._work, self._prepared.kept, self._signature, names, given)

    def _place(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Place | None:
        """Return the memory that all arrays are in; None: the host's."""
        if self.device._backend.place is None:
            return None
        places = [(name, place_of(array)) for name, array in (*inputs.items(), *outputs.items())]
        place = common_place("graph", places)
        if places:
            require_device("graph", places[0][0], place, self.device)
        return place

    def _call_on_device(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> StreamCall | None:
        """Return a call on the stream of the arrays, if they are on the model's device."""
        place = self._place(inputs, outputs)
        if place is None:
            return None
        return backend_at(place).call(next(iter((*inputs.values(), *outputs.values()))))

    def _run_on_device(
        self,
        call: StreamCall,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        in_place: Container[str] = (),
    ) -> None:
        """Add the work to the stream of the call. The arguments are those of `_memories`."""
        memories = self._memories(inputs, outputs, call.memory, in_place)
        with self._lock:
            copies = self._copies_on_stream
            self._start_copied(memories, partial(copies.new, call), partial(copies.copy, call), call.stream)

    def _host_memory(self, array: Any, name: str) -> TensorMemory:
        require_device("graph", name, place_of(array), self.device)
        return memory_of(as_numpy(array, name), name)

    def _memories(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        memory: Callable[[Any, str], TensorMemory],
        in_place: Container[str] = (),
    ) -> list[TensorMemory | None]:
        """Check all arrays, and return their memories in the program's order; None for constants.

        Args:
            inputs, outputs: the arrays by name.
            memory: returns the memory of an array.
            in_place: the names of outputs that begin with inputs, whose memory the caller has checked.
        """
        self.device._require_present()
        given = self._read(inputs, memory)
        results = [memory(outputs[name], name) for name in self.output_names]
        for name, result, layout in zip(self.output_names, results, self._output_layouts, strict=True):
            require_array(name, result.layout, layout)
            reject_truth_values(outputs[name], name)
        named = [(str(self._names[number]), each) for number, each in given.items()]
        alone = [
            (name, result)
            for name, result in zip(self.output_names, results, strict=True)
            if name not in in_place
        ]
        check_outputs("graph", named, alone, frozenset())
        return [*map(given.get, range(len(self._names))), *results]

    def _read(
        self, inputs: Mapping[str, Any], memory: Callable[[Any, str], TensorMemory]
    ) -> dict[int, TensorMemory]:
        """Check the types and sizes of inputs, and return their memories by buffer."""
        found = {}
        for number, name in enumerate(self._names):
            if name is not None and name in inputs:
                array = inputs[name]
                found[number] = memory(array, name)
                cast = NUMPY_CAST if isinstance(array, ndarray) else CAST
                require_array(name, found[number].layout, self._input_layouts[number], cast)
        return found

    @cached_property
    def _copies_on_stream(self) -> CopiesOnStream:
        return CopiesOnStream(self.device)


def needed_of(
    number: int, name: str, layout: Layout
) -> tuple[int, str, Any, tuple[int, ...], tuple[int, ...], int]:
    """Return what calls compare with an input: its type, sizes and strides, and bits that addresses lack."""
    return number, name, layout.type.numpy, layout.sizes, layout.strides, layout.type.bytes - 1


MOST_HINTS = 8
"""Unknown names for which a message suggests a similar one."""


def require_names(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Check that `what`, the inputs or the outputs, are those of the graph.

    Raises:
        InvalidArgument: a missing or unknown one.
    """
    if type(given) is dict and given.keys() == set(known):
        return
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise InvalidArgument(
            f"{what}: {shown(given)}; must be a dict of arrays by their names; {_needed(known)}"
        )
    names = set(known)
    missing = [f"{name} is missing" for name in known if name not in given]
    unknown = [f"{name} is unknown" for name in given if name not in names]
    for number, name in enumerate([name for name in given if name not in names][:MOST_HINTS]):
        near = nearest(name, known)
        unknown[number] += f" (did you mean {near}?)" if near else ""
    if missing or unknown:
        raise InvalidArgument(f"{what}: {', '.join(missing + unknown)}; {_needed(known)}")


def _needed(known: Sequence[str]) -> str:
    return f"the graph has {', '.join(known) or 'none'}"


def _aligned(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs, with copies of unaligned ones, which other processes may have sent."""
    return {
        name: array.copy() if isinstance(array, ndarray) and not array.flags.aligned else array
        for name, array in inputs.items()
    }
