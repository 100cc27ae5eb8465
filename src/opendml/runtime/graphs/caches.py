"""Caches that grow in place: outputs that begin with an input, in the memory of that input.

A run writes only the part of such an output that is new. `ModelState` keeps the memory. A caller may bind
memory of its own instead: the input and the output are views of one buffer that is longer along one axis.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from opendml.errors import InvalidArgument, Unsupported
from opendml.late_dataclass import dataclass
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.runtime.graphs.layout_copies import CopiesOnStream
from opendml.runtime.graphs.traced_model import CAPACITY
from opendml.runtime.graphs.warming import SizesToWarm, size_combinations, zeros_of
from opendml.runtime.memory.foreign import as_numpy
from opendml.runtime.memory.host_array import Array, layout_in_graph, share_elements
from opendml.spec.tensor_desc import same_strides
from opendml.spec.wording import shown
from opendml.targets.backend import StreamBackend
from opendml.targets.memory import Place, TensorMemory, address_of
from opendml.targets.registry import place_of

if TYPE_CHECKING:
    from opendml.runtime.graphs.model import Model
    from opendml.runtime.graphs.traced_model import TracedModel
    from opendml.runtime.objects.device import Device

Result = TypeVar("Result")

_FIRST_CAPACITY = 64
"""Rows of the first buffers of a state, at least."""
_NAMES_OF_PAST = ("past", "past_key_values", "past_key_value")
"""Parts of the names of inputs. The outputs have "present" in their place."""


class Declared(NamedTuple):
    """A declared input or output: its name, its type, and for each dimension a size, a name, or None."""

    name: str
    type: np.dtype[Any] | None
    sizes: tuple[int | str | None, ...] | None


class Caches(Protocol):
    """The memory of outputs that begin with an input."""

    _place: Place | None
    """The device on which it lies; None: in host memory."""

    @property
    def pairs(self) -> Mapping[str, str]:
        """The names of the inputs by those of the outputs."""

    def _arrays(self, lengths: Mapping[str, int], axes: Mapping[str, int]) -> Mapping[str, tuple[Any, Any]]:
        """Return the arrays of inputs and outputs, by the names of the outputs.

        Args:
            lengths: the sizes of outputs along their axes.
            axes: the axes.

        Raises:
            InvalidArgument: there is not as much memory.
        """

    def _capacity(self, output: str, array: Any, axis: int) -> int:
        """Return the size, along an axis, of the packed buffer that such an array of an output is part of."""


class CachedContents(dict[str, Any]):
    """The contents of tensors by name, and the memory of those that grow in place; None: there are none."""

    def __init__(self, contents: Mapping[str, Any], caches: Caches | None) -> None:
        super().__init__(contents)
        self.caches = caches
        self._grown: dict[int, Grown | None] = {}
        """The models that this run has found, by the identities of their traced graphs."""

    def copy(self) -> CachedContents:
        """Return the same contents in a dict of its own."""
        return CachedContents(self, self.caches)

    def grown(self, traced: TracedModel, sizes: Mapping[str, int]) -> Grown | None:
        """Return the model of a graph for the sizes of this run, with outputs in the memory of inputs."""
        if self.caches is None:
            return None
        key = id(traced)
        if key not in self._grown:
            self._grown[key] = grown(traced, sizes, self.caches)
        return self._grown[key]


@dataclass(frozen=True)
class Grown:
    """A model whose outputs lie in the memory of inputs, and the arrays of both by name."""

    model: Model
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Run the model on its other inputs. None: nothing has run, because these do not lie as expected."""
        return self.model._called_on_host({**inputs, **self.inputs}, self.outputs)


def grown(traced: TracedModel, sizes: Mapping[str, int], caches: Caches) -> Grown | None:
    """Return the model of a graph with outputs in the memory of the inputs that they begin with.

    None: the graph has no such outputs, or there is no model for these sizes.

    Args:
        traced: the graph.
        sizes: the sizes of its dimensions.
        caches: the memory.
    """
    if caches._place != traced.device._backend.place:
        return None
    graph = traced.in_place(caches.pairs)
    if graph is None:
        return None
    lengths = dict(zip(graph.axes, graph.lengths(sizes).tolist(), strict=True))
    arrays = caches._arrays(lengths, graph.axes)
    capacity, *others = {
        caches._capacity(output, arrays[output][1], axis) for output, axis in graph.axes.items()
    }
    model = None if others else graph.traced.at({**sizes, CAPACITY: capacity})
    if model is None:
        return None
    inputs = {graph.pairs[output]: past for output, (past, _) in arrays.items()}
    return Grown(model, inputs, {output: present for output, (_, present) in arrays.items()})


def _capacity(array: Array, axis: int) -> int:
    """Return the size along an axis of the packed array that an array is the first part of."""
    for outer in reversed(range(axis)):
        if array.shape[outer] > 1:
            return int(array.strides[outer] // array.strides[axis])
    return int(array.shape[axis])


class BoundCaches:
    """Outputs of a caller that begin with inputs, and share their memory.

    Args:
        pairs: the names of inputs by those of outputs.
        views: NumPy arrays over both, by the names of outputs.
        arrays: the arrays of the caller, by the names of outputs. None: they are the views.
        place: where they lie; None: in host memory.
    """

    def __init__(
        self,
        pairs: Mapping[str, str],
        views: Mapping[str, tuple[Array, Array]],
        arrays: Mapping[str, tuple[Any, Any]] | None,
        place: Place | None,
    ) -> None:
        self.pairs, self._views, self._place = pairs, views, place
        self._given = views if arrays is None else arrays

    @property
    def memory(self) -> Mapping[str, Array]:
        """The arrays of outputs by name."""
        return {output: present for output, (_, present) in self._views.items()}

    def _arrays(self, lengths: Mapping[str, int], axes: Mapping[str, int]) -> Mapping[str, tuple[Any, Any]]:
        """Return the arrays of outputs that have the wanted lengths.

        Raises:
            InvalidArgument: an output has another size along its axis.
        """
        for output, length in lengths.items():
            past, present = self._views[output]
            axis = axes[output]
            wanted = [*past.shape[:axis], length, *past.shape[axis + 1 :]]
            if wanted != list(present.shape):
                raise InvalidArgument(f"output {output!r}: sizes {list(present.shape)}; must be {wanted}")
        return {output: self._given[output] for output in lengths}

    def _capacity(self, output: str, array: Any, axis: int) -> int:
        """See Caches."""
        return _capacity(self._views[output][1], axis)


def bound_caches(
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    place: Place | None = None,
    given: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
) -> BoundCaches | None:
    """Return the outputs that begin with inputs, and share their memory. None: there are none.

    Args:
        inputs, outputs: arrays by name; others than NumPy's do not count.
        place: where all of them lie; None: in host memory.
        given: the inputs and outputs as the caller has them, by name. None: they are those above.

    Raises:
        InvalidArgument: an output shares memory with an input, is not the same array, and does not begin with
            it alone; or with another output, or is read-only.
    """
    pairs, views = dict[str, str](), dict[str, tuple[Array, Array]]()
    both, near_outputs = _near(inputs, outputs)
    for input, output in both:
        past, present = inputs[input], outputs[output]
        if not _overlap(past, present):
            continue
        is_alone = output not in pairs and input not in pairs.values()
        if not is_alone or not _begins_with(present, past):
            raise InvalidArgument(
                f"output {output!r}: sizes {list(present.shape)}, strides {list(present.strides)}; "
                f"shares memory with input {input!r}: sizes {list(past.shape)}, strides "
                f"{list(past.strides)}; must begin with it alone, as views of one packed buffer that is "
                "longer along one axis"
            )
        pairs[output], views[output] = input, (past, present)
    for name, other in near_outputs:
        if share_elements(outputs[name], outputs[other]):
            raise InvalidArgument(f"outputs {name!r} and {other!r} share memory")
    if not pairs:
        return None
    for name, array in outputs.items():
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise InvalidArgument(f"output {name!r}: a read-only array; an output must be writable")
    if given is None:
        return BoundCaches(pairs, views, None, place)
    arrays = {output: (given[0][input], given[1][output]) for output, input in pairs.items()}
    return BoundCaches(pairs, views, arrays, place)


def beside_inputs(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> set[str]:
    """Return the names of outputs whose addresses are in the range of an input's."""
    return {output for _, output in _near(inputs, outputs)[0]}


def _near(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the inputs and outputs, and the pairs of outputs, whose ranges of addresses meet.

    Only arrays that lie beside each other are compared: a model may have a hundred caches.
    """
    ranges = [
        (*_range(array), number, name)
        for number, arrays in enumerate((inputs, outputs))
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and array.size
    ]
    both, alone, open_ranges = list[tuple[str, str]](), list[tuple[str, str]](), list[tuple[int, int, str]]()
    for first, end, number, name in sorted(ranges):
        open_ranges = [each for each in open_ranges if each[0] > first]
        for _, other_number, other in open_ranges:
            if number != other_number:
                both.append((name, other) if number == 0 else (other, name))
            elif number == 1:
                alone.append((other, name))
        open_ranges.append((end, number, name))
    return both, alone


def _range(array: Array) -> tuple[int, int]:
    """Return the first address of an array, and the one behind its last."""
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    first = address_of(array) + sum([each for each in steps if each < 0])
    return first, address_of(array) + sum([each for each in steps if each > 0]) + array.itemsize


def _overlap(a: Array, b: Array) -> bool:
    """Return whether arrays have elements in common, but are not the same."""
    if (a.shape, a.strides, address_of(a)) == (b.shape, b.strides, address_of(b)):
        return False
    return share_elements(a, b)


def write_result(name: str, array: Any, result: Array) -> None:
    """Copy a result into a caller's array.

    Raises:
        InvalidArgument: the array has another type or other sizes.
    """
    wanted = f"{result.dtype.name} {list(result.shape)}"
    if not isinstance(array, np.ndarray) or (array.dtype, array.shape) != (result.dtype, result.shape):
        raise InvalidArgument(f"{name}: {shown(array)}; must be a NumPy array of {wanted}")
    array[...] = result


def _begins_with(present: Array, past: Array) -> bool:
    """Return whether one array is the first part of another along one axis, both views of a packed one."""
    alike = present.dtype == past.dtype and present.ndim == past.ndim
    if not alike or address_of(present) != address_of(past):
        return False
    longer = [axis for axis in range(past.ndim) if past.shape[axis] != present.shape[axis]]
    if len(longer) != 1 or past.shape[longer[0]] > present.shape[longer[0]]:
        return False
    (axis,) = longer
    capacity = _capacity(present, axis)
    shape = (*present.shape[:axis], capacity, *present.shape[axis + 1 :])
    strides = np.empty(0, present.dtype).itemsize * np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
    wanted = strides.tolist()
    return capacity >= present.shape[axis] and all(
        same_strides(each.shape, each.strides, wanted) for each in (present, past)
    )


Run = Callable[[Mapping[str, Any], Caches], Mapping[str, Any]]
"""Runs a model on inputs by name, with caches, and returns all outputs by name."""


class CacheArrays(Protocol):
    """Makes and copies the arrays in which a state keeps caches, in host memory or on a device."""

    place: Place | None
    """The device of the arrays; None: host memory."""

    def given(self, array: Any, name: str) -> Any:
        """Return an array of the caller as one of these, copied if it lies elsewhere."""

    def empty(self, sizes: Sequence[int], type: np.dtype[Any]) -> Any:
        """Return a new packed array."""

    def part(self, array: Any, axis: int, length: int) -> Any:
        """Return the first part of an array along an axis, in its memory."""

    def copy(self, target: Any, source: Any) -> None:
        """Copy an array into another one."""

    def address(self, array: Any) -> int:
        """Return the address of the first element of an array."""


class HostArrays:
    """CacheArrays that makes NumPy arrays."""

    place: Place | None = None

    def given(self, array: Any, name: str) -> Array:
        """See CacheArrays."""
        return as_numpy(array, name)

    def empty(self, sizes: Sequence[int], type: np.dtype[Any]) -> Array:
        """See CacheArrays."""
        return np.empty(sizes, type)

    def part(self, array: Array, axis: int, length: int) -> Array:
        """See CacheArrays."""
        return array[(slice(None),) * axis + (slice(length),)]

    def copy(self, target: Array, source: Array) -> None:
        """See CacheArrays."""
        target[...] = source

    def address(self, array: Array) -> int:
        """See CacheArrays."""
        return address_of(array)


class DeviceArrays:
    """CacheArrays that makes arrays in the memory of a device.

    Args:
        device: the device.
    """

    def __init__(self, device: Device) -> None:
        assert isinstance(device._backend, StreamBackend)
        self._backend, self._copies = device._backend, CopiesOnStream(device)
        self.place: Place | None = self._backend.place

    def given(self, array: Any, name: str) -> Any:
        """See CacheArrays."""
        if self._backend.is_own(array):
            return array
        if place_of(array) is None:
            content = as_numpy(array, name)
            return self._backend.upload(content, layout_in_graph(content, name))
        memory = self._backend.memory(array, name)
        made = self._backend.empty(memory.layout)
        self.copy_memory(made.memory, memory, made)
        return made

    def empty(self, sizes: Sequence[int], type: np.dtype[Any]) -> Any:
        """See CacheArrays."""
        return self._backend.empty(packed(ScalarType[type.name.upper()], sizes))

    def part(self, array: Any, axis: int, length: int) -> Any:
        """See CacheArrays."""
        return array.part(axis, length)

    def copy(self, target: Any, source: Any) -> None:
        """See CacheArrays."""
        self.copy_memory(target.memory, source.memory, target)

    def address(self, array: Any) -> int:
        """See CacheArrays."""
        address: int = array.memory.address
        return address

    def copy_memory(self, target: TensorMemory, source: TensorMemory, own: Any) -> None:
        """Copy elements after earlier work, on the stream of an array of the device."""
        call = self._backend.call(own)
        self._copies.copy(call, source, target)()
        call.end([own])


class ModelState:
    """The memory of a model between runs: inputs that are outputs of the run before, as a cache of keys and
    values.

    `model.state()` makes one. Where an output is the input with new rows behind it, a run writes only these
    rows. The buffers grow by doubling. A run that fails leaves the rows as they were. One state is used by
    one thread at a time, and refuses others meanwhile; several states of a model are independent.

    Args:
        run: runs the model.
        inputs, outputs: the declarations of the model.
        pairs, capacity: the arguments of `model.state`.
        takes_empty: whether the model takes caches without rows.
        arrays: makes and copies the arrays of the caches. None: they lie in host memory.

    Raises:
        InvalidArgument: as of `model.state`.

    >>> import numpy as np, opendml as dml
    >>> graph = dml.Graph()
    >>> past = graph.input("past", dml.FLOAT32, [2, "length", 4])
    >>> new = graph.input("new", dml.FLOAT32, [2, "count", 4])
    >>> present = dml.join([past, new], axis=1)
    >>> sums = dml.reduce(present, function="SUM", axes=[1])
    >>> state = graph.compile({"present": present, "sums": sums}).state()
    >>> state.warm_up({"length": [1, 8], "count": 1})
    >>> row = np.ones((2, 1, 4), np.float32)
    >>> outputs = state.run({"past": row, "new": row})
    >>> for _ in range(8):
    ...     outputs = state.run({"new": row})
    >>> state.length, state["past"].shape, outputs["sums"][0, 0].tolist()
    (10, (2, 10, 4), [10.0, 10.0, 10.0, 10.0])
    """

    def __init__(
        self,
        run: Run,
        inputs: Iterable[Declared],
        outputs: Iterable[Declared],
        pairs: Mapping[str, str] | None,
        capacity: int,
        takes_empty: bool,
        arrays: CacheArrays | None = None,
    ) -> None:
        self._cache_arrays = arrays or HostArrays()
        self._place = self._cache_arrays.place
        self._run, self._inputs = run, {each.name: each for each in inputs}
        declared = {each.name: each for each in outputs}
        if pairs is not None and not isinstance(pairs, Mapping):
            raise InvalidArgument(f"state: pairs: {shown(pairs)}; must be a dict of inputs by outputs")
        self.pairs: dict[str, str] = _pairs_of(self._inputs, declared) if pairs is None else dict(pairs)
        """The names of inputs by those of the outputs that become them."""
        _require_known(self.pairs, self._inputs, declared)
        self._axes = {
            input: _axis_of(self._inputs[input], declared[output]) for output, input in self.pairs.items()
        }
        if isinstance(capacity, bool) or not isinstance(capacity, int | np.integer) or capacity < 0:
            raise InvalidArgument(f"state: capacity: {shown(capacity)}; must be an integer, 0 or more")
        self._least, self._takes_empty = max(int(capacity), _FIRST_CAPACITY), takes_empty
        self._buffers: dict[str, Any] = {}
        self._lengths: dict[str, int] = {}
        self._users: dict[int, object] = {}
        """Who uses the rows, by process: `setdefault` is one step for other threads and handlers of signals.
        In the child of a fork, the user in another process is a run that was cut off."""

    def __copy__(self) -> ModelState:
        """Return a state with the same rows in memory of its own."""
        other = self._without_rows()
        for name, buffer in self._buffers.items():
            other._buffers[name] = self._cache_arrays.empty(buffer.shape, buffer.dtype)
            self._cache_arrays.copy(other._buffers[name], buffer)
        other._lengths = self._lengths.copy()
        return other

    def _without_rows(self) -> ModelState:
        """Return a state without memory."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._buffers, other._lengths, other._users = {}, {}, {}
        return other

    def _alone(self, work: Callable[[], Result], *, takes_over: bool = False) -> Result:
        """Do work on the rows that nobody else uses.

        Args:
            work: a function that uses the rows.
            takes_over: whether the rows may be those of a run that a fork cut off.

        Raises:
            InvalidArgument: another thread uses them, a handler of a signal interrupts a run, or a fork cut a
                run off.
        """
        process, user = os.getpid(), object()
        try:
            if self._users.setdefault(process, user) is not user:
                problem = "a run of it has not ended; each thread needs a state of its own"
                raise InvalidArgument(f"state: {problem}")
            if takes_over:
                for other in self._users.keys() - {process}:
                    del self._users[other]
            if len(self._users) > 1:
                raise InvalidArgument("state: a fork cut off a run of it; call `clear` before the next run")
            return work()
        finally:  # Without calls: a handler of a signal may raise an error after each.
            if process in self._users and self._users[process] is user:
                del self._users[process]

    def __repr__(self) -> str:
        return f"<ModelState of {len(self.pairs)} caches, length {self.length}>"

    @property
    def length(self) -> int:
        """The rows of the caches so far."""
        return max(self._lengths.values(), default=0)

    def __getitem__(self, name: str) -> Any:
        """Return the content of a cache by the name of its input, as a view that later runs may write to.

        It is a NumPy array, or a DeviceArray on a CUDA device.
        """
        if name not in self._buffers:
            raise InvalidArgument(f"state: {shown(name)}: no such cache, or nothing has run")
        return self._view(name, self._lengths[name])

    def clear(self) -> None:
        """Forget all rows. The memory remains.

        Raises:
            InvalidArgument: a run has not ended.
        """
        self._alone(self._forget, takes_over=True)

    def _forget(self) -> None:
        self._lengths = dict.fromkeys(self._lengths, 0)

    def warm_up(self, sizes: SizesToWarm) -> None:
        """Compile the model ahead for runs of this state with some sizes.

        The model runs once on zeros for each combination of sizes. The rows of the state stay as they are.

        Args:
            sizes: for each named dimension of the inputs a size, or several. The size of a cache is its
                length before a run. It may be 0 if the model takes empty caches, as ONNX models do.

        Raises:
            InvalidArgument: a dimension is unknown or has no size.
            Error: as of a run.
        """
        declared = self._inputs.values()
        names = dict.fromkeys(
            [size for each in declared for size in each.sizes or () if isinstance(size, str)]
        )
        lengths = {(self._inputs[name].sizes or ())[axis] for name, axis in self._axes.items()}
        for each in size_combinations(sizes, names, lengths if self._takes_empty else ()):
            zeros = {info.name: zeros_of(info.name, info.type, info.sizes, each) for info in declared}
            self._without_rows().run(zeros)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model on its other inputs, and return its other outputs by name.

        Args:
            inputs: the other inputs by name. Caches that are given take the place of those of the state.

        Raises:
            InvalidArgument: the inputs are no dict, the model refuses them, or the sizes of empty caches do
                not follow from the other inputs. Or another run has not ended, or a fork cut one off.
            Unsupported: there is no memory for the caches.
        """
        if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
            raise InvalidArgument(
                f"state: inputs: {shown(inputs)}; must be a dict of arrays by their names; the model has "
                f"{', '.join(self._inputs)}"
            )
        return self._alone(lambda: self._keeping_caches(inputs))

    def _keeping_caches(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model, and keep the caches."""
        before = self._buffers.copy(), self._lengths.copy()
        try:
            results = dict(self._run(self._with_caches(inputs), self))
        except BaseException:
            self._buffers, self._lengths = before
            raise
        presents = {name: results.pop(output) for output, name in self.pairs.items()}
        try:
            self._keep(presents)
        except BaseException:  # After an interrupt, the rows of all caches are those of one step.
            self._keep(presents)
            raise
        return results

    def _keep(self, presents: Mapping[str, Any]) -> None:
        """Make the caches of a run those of the state."""
        address = self._cache_arrays.address
        for name, present in presents.items():
            if address(present) == address(self._buffers[name]):
                self._lengths[name] = present.shape[self._axes[name]]
            else:
                self._adopt(name, present)

    def _with_caches(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs with all caches. Those that are given get other memory than the rows of the state,
        which a run that fails leaves as they are."""
        given = dict(inputs)
        caches = {
            name: self._cache_arrays.given(given.pop(name), name) for name in self._axes if name in given
        }
        for name, content in caches.items():
            if len(content.shape) != len(self._inputs[name].sizes or ()):
                sizes = shown(list(self._inputs[name].sizes or ()))
                raise InvalidArgument(
                    f"state: input {name!r} has sizes {list(content.shape)}; must be {sizes}"
                )
            if self._lengths.get(name):
                del self._buffers[name]
            self._adopt(name, content)
        for name in self._axes:
            if name not in caches and not self._lengths.get(name):
                self._adopt(name, self._empty(name, given))
            given[name] = self[name]
        return given

    def _arrays(self, lengths: Mapping[str, int], axes: Mapping[str, int]) -> Mapping[str, tuple[Any, Any]]:
        """Return views of the buffers, after making room for outputs of some lengths."""
        longest = max(lengths.values())
        for output in lengths:
            self._make_room(self.pairs[output], longest)
        names = {output: self.pairs[output] for output in lengths}
        return {output: (self[name], self._view(name, lengths[output])) for output, name in names.items()}

    def _capacity(self, output: str, array: Any, axis: int) -> int:
        """See Caches."""
        return int(self._buffers[self.pairs[output]].shape[axis])

    def _view(self, name: str, length: int) -> Any:
        return self._cache_arrays.part(self._buffers[name], self._axes[name], length)

    def _make_room(self, name: str, length: int) -> None:
        """Make a buffer longer than a length. A full one would have the strides of a packed tensor, for which
        other kernels may be chosen."""
        axis, old = self._axes[name], self._buffers[name]
        if old.shape[axis] > length:
            return
        sizes = list(old.shape)
        sizes[axis] = max(1 << length.bit_length(), 1 << (self._least - 1).bit_length())
        kept = self[name]
        try:
            self._buffers[name] = self._cache_arrays.empty(sizes, old.dtype)
        except (MemoryError, ValueError, Unsupported) as error:
            raise Unsupported(f"state: input {name!r}: no memory for sizes {sizes}") from error
        if self._lengths[name]:
            self._cache_arrays.copy(self[name], kept)

    def _adopt(self, name: str, content: Any) -> None:
        """Copy a whole cache into its buffer."""
        axis = self._axes[name]
        length = content.shape[axis]
        buffer = self._buffers.get(name)
        others = [content.shape[:axis], content.shape[axis + 1 :], content.dtype]
        if buffer is None or [buffer.shape[:axis], buffer.shape[axis + 1 :], buffer.dtype] != others:
            sizes = (*content.shape[:axis], 0, *content.shape[axis + 1 :])
            self._buffers[name], self._lengths[name] = self._cache_arrays.empty(sizes, content.dtype), 0
        self._lengths[name] = min(self._lengths[name], length)
        self._make_room(name, length)
        if length:
            self._cache_arrays.copy(self._view(name, length), content)
        self._lengths[name] = length

    def _empty(self, name: str, inputs: Mapping[str, Any]) -> Array:
        """Return an empty cache, whose other sizes are those of dimensions of other inputs."""
        info, axis, known = self._inputs[name], self._axes[name], dict[str, int]()
        for other, content in inputs.items():
            own = self._inputs[other].sizes if other in self._inputs else None
            for size, given in zip(own or (), np.shape(content), strict=False):
                if isinstance(size, str):
                    known.setdefault(size, given)
        assert info.sizes is not None
        sizes = [known.get(each, each) if isinstance(each, str) else each for each in info.sizes]
        if name in self._buffers:
            old = zip(sizes, self._buffers[name].shape, strict=True)
            sizes = [size if isinstance(size, int) else former for size, former in old]
        sizes[axis] = 0
        plain = [each for each in sizes if isinstance(each, int) and each >= 0]
        if not self._takes_empty or len(plain) < len(sizes) or info.type is None:
            known_sizes = "a graph has no empty tensors"
            if self._takes_empty:
                known_sizes = f"sizes {shown(sizes)} do not follow from the other inputs"
            raise InvalidArgument(
                f"state: input {name!r} is missing; the first run needs it, as {known_sizes}"
            )
        return np.empty(plain, info.type)


def _pairs_of(inputs: Mapping[str, Declared], outputs: Mapping[str, Declared]) -> dict[str, str]:
    """Return the inputs by the outputs that become them: "present" in the name stands for "past"."""
    found: dict[str, str] = {}
    for output in outputs:
        names = [output.replace("present", past) for past in _NAMES_OF_PAST if "present" in output]
        found.update((output, name) for name in names if name in inputs)
    if not found:
        raise InvalidArgument(
            f"state: no output has the name of an input with 'present' for 'past'; the inputs are "
            f"{', '.join(inputs)}, the outputs {', '.join(outputs)}; pass {{output: input, ...}}"
        )
    return found


def _require_known(
    pairs: Mapping[str, str], inputs: Mapping[str, Declared], outputs: Mapping[str, Declared]
) -> None:
    """Check that the names of pairs are known, and that no input is there twice."""
    for kind, given, known in (("output", pairs.keys(), outputs), ("input", pairs.values(), inputs)):
        names = list(given)
        wrong = [name for name in names if name not in known or names.count(name) > 1]
        if wrong:
            problem = "given twice" if wrong[0] in known else "unknown"
            raise InvalidArgument(
                f"state: {kind} {shown(wrong[0])} is {problem}; the model has {', '.join(known)}"
            )


def _axis_of(input: Declared, output: Declared) -> int:
    """Return the axis along which an output is longer than an input."""
    if input.sizes is not None and output.sizes is not None and len(input.sizes) == len(output.sizes):
        both = enumerate(zip(input.sizes, output.sizes, strict=True))
        axes = [axis for axis, (own, other) in both if own != other and not isinstance(own, int)]
        if len(axes) == 1:
            return axes[0]
    sizes = [None if each.sizes is None else list(each.sizes) for each in (input, output)]
    raise InvalidArgument(
        f"state: output {output.name!r} of sizes {shown(sizes[1])} and input {input.name!r} of sizes "
        f"{shown(sizes[0])}; must differ in one size, which the input leaves open"
    )
