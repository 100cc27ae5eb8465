"""ONNX models that can be called on arrays, by name or in order."""

from __future__ import annotations

import math
import reprlib
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opendml.across_forks import importing
from opendml.budget import Limits, limits_of, meter, metered
from opendml.context import variable_set, while_waiting
from opendml.errors import Error, InvalidArgument, Unsupported
from opendml.frontends.onnx.device_choice import DeviceChoice, device_of
from opendml.frontends.onnx.device_tensor import DeviceTensor, device_tensor
from opendml.frontends.onnx.forms import ExactForm, exact_form
from opendml.frontends.onnx.known import KnownModel, ModelFacts, known_model
from opendml.frontends.onnx.known_runs import KnownRun
from opendml.frontends.onnx.sizes import NO_SIZES, Sizes
from opendml.frontends.onnx.tensor_info import TensorInfo, fits
from opendml.garbage import collection_paused
from opendml.locked import Locked
from opendml.logs import log, progress_shown, tell
from opendml.runtime.graphs.model_cache import ModelCache
from opendml.runtime.graphs.warming import SizesToWarm, size_combinations, zeros_of
from opendml.signals import deferred_signals
from opendml.spec.wording import shown
from opendml.targets.compiled_files import reading

if TYPE_CHECKING:
    import onnx

    from opendml.frontends.onnx.model_file import ModelLike
    from opendml.frontends.onnx.opening import Opened
    from opendml.frontends.onnx.trace import Tracer
    from opendml.frontends.onnx.weights import Weights
    from opendml.runtime.explain.explanation import ExplainedGraph
    from opendml.runtime.graphs.caches import Caches, ModelState
    from opendml.runtime.graphs.model import Model
    from opendml.runtime.objects.bound import BoundModel
    from opendml.runtime.objects.device import Device

_MOST_MET = 64
"""Sizes that `save` compiles for, at most: the last ones."""


class OnnxModel(Locked):
    """A loaded ONNX model, which is compiled for the sizes and types of its inputs on their first use.

    If all sizes of its inputs are fixed, its first graph is compiled while it is loaded on the CPU. Several
    threads may call it.
    """

    def __init__(
        self,
        name: str,
        device: str | Device | DeviceChoice | None,
        facts: ModelFacts,
        opened: Opened | Callable[[], Opened],
        cache: ModelCache,
        known: KnownModel | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__()
        self._name, self._given_device = name, device
        self._limits, self._bytes = limits_of(None), facts.held
        self.inputs, self.outputs = facts.inputs, facts.outputs
        self._names = tuple(tuple(each.name for each in some) for some in (self.inputs, self.outputs))
        self._declared, self._needed = {each.name: each for each in facts.declared}, set(self.input_names)
        self._opened, self._cache, self._known = opened, cache, known
        self._noted, self._progress = False, progress
        self._met: dict[ExactForm, None] = {}
        """The runs that were compiled here, for `save`."""

    @property
    def device(self) -> Device:
        """The device that the model runs on."""
        return device_of(self._given_device)

    @property
    def _traced(self) -> Opened:
        """The parsed model and its tracer. A known model is parsed when a run is not known."""
        if callable(self._opened):
            with self._lock:
                if callable(self._opened):
                    self._opened = self._opened()
        return self._opened

    @property
    def _tracer(self) -> Tracer:
        return self._traced.tracer

    @property
    def _proto(self) -> onnx.ModelProto:
        return self._traced.model

    def __repr__(self) -> str:
        names = f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}"
        return f"<OnnxModel {self._name} on {self.device.kind}: {names}>"

    def __reduce__(self) -> NoReturn:
        """Raise Unsupported: a model holds compiled code."""
        raise Unsupported(f"{self._name}: a loaded model cannot be copied or pickled; load it where it runs")

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs that every call needs, in the model's order."""
        return self._names[0]

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the outputs, in the model's order."""
        return self._names[1]

    @property
    def _knows_runs(self) -> bool:
        """True if another process would find a run of this model in the cache."""
        return self._noted or (self._known is not None and self._known.is_read)

    @property
    def _custom_operators(self) -> tuple[str, ...]:
        """The operators that are functions of the program. A model that is not parsed has none."""
        opened = self._opened
        return () if callable(opened) else opened.custom

    @property
    def kept_bytes(self) -> int:
        """The approximate bytes of packed weights, compiled graphs and temporary memory."""
        return self._cache.bytes

    def __call__(self, /, *arrays: Any, **inputs: Any) -> dict[str, Any]:
        """Return the outputs by name, for arrays in the order of the inputs or by their names.

        Raises:
            InvalidArgument: an input is missing, unknown, or of another type or size than declared.
            Unsupported: neither DirectML nor the evaluator of `onnx` can run a node.
            LimitExceeded: the run takes more than the model's limits allow.
        """
        return self.run(self._placed(arrays, inputs))

    def _placed(self, arrays: Sequence[Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return by name the arrays that a caller gives in the order of the inputs or by their names."""
        if len(arrays) > len(self.inputs):
            raise InvalidArgument(f"{self._name}: {len(arrays)} inputs; it has {len(self.inputs)}")
        placed = dict(zip(self.input_names, arrays, strict=False))
        for name in placed.keys() & inputs.keys():
            raise InvalidArgument(f"{self._name}: input {name!r} is given by its place and by its name")
        return {**placed, **inputs}

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name, for arrays by name. Errors are those of a call."""
        require_by_name(inputs)
        with self._named():
            known = None if self._known is None else self._known.met(inputs)
            if known is not None:
                return self._run_known(known, inputs)
            given = self._checked(inputs)
            known = self._known_run(given)
            if known is not None:
                return self._run_known(known, given)
            file = None if self._known is None else self._known.file
            with reading(file), progress_shown(self._progress):
                results = self._run_traced(given)
        return dict(zip(self.output_names, results, strict=True))

    def _run_known(self, known: KnownRun, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs of a known run by name."""
        with self._cache.running([*known.plan.before, known.plan]):
            return known(given)

    def _prepare(self, known: KnownModel) -> None:
        """Link and pack what the last process began with. An error here is one of the run that needs it."""
        with reading(known.file), progress_shown(self._progress):
            try:
                known.prepare(self._cache)
            except Error as error:
                log.debug("%s: not prepared: %s", self._name, error)

    def _compile_fixed(self) -> None:
        """Compile the first graph of a new model now, if all sizes of its inputs are fixed.

        An error here is one of the run that needs the graph.
        """
        if not self._tracer.device._backend.keeps_plans:
            return
        given = dict[str, Any]()
        for info in self.inputs:
            sizes = [size for size in info.sizes or () if isinstance(size, int) and size > 0]
            if info.type is None or info.sizes is None or len(sizes) < len(info.sizes):
                return
            if math.prod(sizes) * info.type.itemsize > sys.maxsize:
                return  # NumPy has no such array, so there is no run either.
            # It takes the memory of one number.
            given[info.name] = np.broadcast_to(np.zeros((), info.type), sizes)
        dimensions, began = dict[str, int](), time.perf_counter()
        with progress_shown(self._progress), self._tracing():
            try:
                step = self._tracer.prepare(given, dimensions)
            except Error as error:
                log.debug("%s: not compiled: %s", self._name, error)
                return
            if step is None:
                return
            self._tell_traced(given, began)
            if self._known is not None and step.next_state is None:
                self._noted |= self._traced.note(self._known, step, given, dimensions)

    def _tracing(self) -> AbstractContextManager[None]:
        """Return the context in which the model is traced."""
        return nullcontext() if self._known is None else self._known.tracing()

    def _tell_traced(self, given: Mapping[str, Any], began: float) -> None:
        """Report that inputs were traced, since `began` on the clock of `perf_counter`."""
        tell(
            "%s: traced for inputs of sizes %s, which it had not met, in %.2f s",
            self._name,
            [list(each.shape) for each in given.values() if isinstance(each, np.ndarray)],
            time.perf_counter() - began,
        )

    def _known_run(self, given: Mapping[str, Any]) -> KnownRun | None:
        """Return the known run of inputs of these sizes and types. None: they have to be traced, or were."""
        if self._known is None:
            return None
        reads = callable(self._opened)
        with reading(self._known.file), progress_shown(self._progress):
            return self._known.run(given, self._cache, reads)

    def _run_traced(self, given: dict[str, Any]) -> list[Any]:
        """Run the traced model. Note the run for other processes if it is new, without caches in place."""
        contents, dimensions, began = given.copy(), dict[str, int](), time.perf_counter()
        with self._tracing():
            tracer = self._tracer
            before, planned = tracer.traced_count, tracer.planned_count
            steps = list(tracer.steps(contents, dimensions))
        if tracer.traced_count > before:
            self._tell_traced(given, began)
        is_new = tracer.traced_count > before or tracer.planned_count > planned
        if is_new and all(isinstance(each, np.ndarray) for each in given.values()):
            self._met[exact_form(given, tracer.decisive)] = None
            while len(self._met) > _MOST_MET:
                self._met.pop(next(iter(self._met)))
        if self._known is not None and is_new and len(steps) == 1 and type(given) is dict:
            self._known.decide(tracer.decisive)
            self._noted |= self._traced.note(self._known, steps[0], given, dimensions)
        return [contents[name] for name in self.output_names]

    def _run_with(self, inputs: Mapping[str, Any], caches: Caches) -> dict[str, Any]:
        """Return the outputs by name; those of `caches` lie in its memory where the graph allows it."""
        with self._named():
            with importing:
                from opendml.runtime.graphs.caches import CachedContents
            given = CachedContents(self._checked(inputs), caches)
            with progress_shown(self._progress):
                results = self._run_traced(given)
        return dict(zip(self.output_names, results, strict=True))

    def _run_on_device(
        self,
        inputs: Mapping[str, Any],
        names: Sequence[str],
        bound: Mapping[str, DeviceTensor],
        on_device: Collection[str],
        caches: Caches | None = None,
    ) -> dict[str, Any]:
        """Return outputs by name, of a model on a device with memory of its own.

        Args:
            inputs: tensors on the device, and arrays in host memory.
            names: the names of the wanted outputs.
            bound: the memory of outputs there. If it begins with an input, only the new part is written.
            on_device: the names of outputs that are wanted there; others are NumPy arrays.
            caches: the memory of outputs that begin with inputs. None: `bound` tells.
        """
        with self._named():
            with importing:
                from opendml.frontends.onnx.device_run import run_on_device
            with progress_shown(self._progress):
                return run_on_device(self, self._checked(inputs), names, bound, on_device, caches)

    def _run_state_on_device(self, inputs: Mapping[str, Any], caches: Caches) -> dict[str, Any]:
        """Return the outputs by name. Caches are arrays of the device, and others are NumPy arrays."""
        given = {name: device_tensor(each, name) or each for name, each in inputs.items()}
        results = self._run_on_device(given, self.output_names, {}, caches.pairs.keys(), caches)
        return {name: each.array if name in caches.pairs else each for name, each in results.items()}

    def state(self, pairs: Mapping[str, str] | None = None, *, capacity: int = 0) -> ModelState:
        """Return the memory of inputs that are outputs of the run before, as caches of keys and values.

        Args:
            pairs: the names of these inputs by those of the outputs. None: an output whose name has "present"
                is the input whose name has "past", "past_key_values" or "past_key_value" there.
            capacity: rows for which there is room from the beginning.

        Raises:
            InvalidArgument: an unknown name, or sizes that do not differ in one open size.
        """
        with importing:
            from opendml.runtime.graphs.caches import Declared, DeviceArrays, ModelState
        inputs, outputs = (
            [Declared(each.name, each.type, each.sizes) for each in some]
            for some in (self.inputs, self.outputs)
        )
        is_on_host = self.device._backend.place is None
        arrays = None if is_on_host else DeviceArrays(self.device)
        run = self._run_with if is_on_host else self._run_state_on_device
        return ModelState(run, inputs, outputs, pairs, capacity, takes_empty=True, arrays=arrays)

    def warm_up(self, sizes: SizesToWarm = MappingProxyType({})) -> None:
        """Compile the model for sizes of its symbolic dimensions now, and not when it first meets them.

        The model runs once on inputs of zeros for each combination of sizes.

        >>> import onnx, opendml as dml
        >>> text = '<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Neg (x) }'
        >>> model = dml.onnx.load(onnx.parser.parse_model(text))
        >>> model.warm_up({"n": [1, 8]})

        Args:
            sizes: for each symbolic dimension of the inputs a size, or several.

        Raises:
            InvalidArgument: a dimension is unknown or has no size. Or an input is of strings, has an unknown
                number of dimensions, or an open dimension without a name.
            Error: as of a call.
        """
        dimensions = [each for info in self.inputs for each in info.sizes or () if isinstance(each, str)]
        for each in size_combinations(sizes, tuple(dict.fromkeys(dimensions))):
            self.run({info.name: zeros_of(info.name, info.type, info.sizes, each) for info in self.inputs})

    def _fixed_form(self) -> ExactForm:
        """Return the sizes and types of the inputs.

        Raises:
            InvalidArgument: an input has open sizes.
        """
        fix = "call or warm up the model before"
        zeros = {each.name: _zeros("save", each, fix) for each in self.inputs}
        return tuple((name, each.shape, each.dtype) for name, each in zeros.items())

    def _met_forms(self) -> list[ExactForm]:
        """Return the sizes and types of inputs whose runs were compiled or read from the cache."""
        known = [] if self._known is None else self._known.forms
        return list(dict.fromkeys([*self._met, *known]))

    def explain(self, /, *arrays: Any, **inputs: Any) -> ExplainedGraph:
        """Run the model, measure the kernels of its graphs, and return how long they take.

        Nodes that run outside of DirectML's operators are named in warnings, and are not measured.

        >>> import onnx, opendml as dml
        >>> text = '<ir_version: 10, opset_import: ["" : 20]> g (float[9] x) => (float[9] y) { y = Tanh (x) }'
        >>> model = dml.onnx.load(onnx.parser.parse_model(text))
        >>> [kernel.name for kernel in model.explain().kernels]
        ['ACTIVATION_TANH']

        Args:
            arrays, inputs: what to run and to measure with, in the order of the inputs or by their names. An
                input of open sizes needs an array; others are made up.

        Raises:
            InvalidArgument: an unknown input, one of another type or size, or a missing one of open sizes.
            Unsupported: nothing of the model becomes a graph of DirectML's operators.
        """
        with self._named():
            with importing:
                from opendml.frontends.onnx.explaining import explained
            given = self._placed(arrays, inputs)
            self._require_known(given)
            missing = [each for each in self.inputs if each.name not in given]
            zeros = {each.name: _zeros("explain", each, "an array is needed") for each in missing}
            checked = self._checked({**zeros, **given})
            return explained(self.parts(checked), {name: checked[name] for name in given})

    def bind(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> BoundModel:
        """Bind the model to packed NumPy arrays, for repeated dispatch with their sizes.

        >>> import numpy as np, onnx, opendml as dml
        >>> text = '<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Neg (x) }'
        >>> x, y = np.ones(2, np.float32), np.empty(2, np.float32)
        >>> dml.onnx.load(onnx.parser.parse_model(text)).bind({"x": x}, {"y": y}).dispatch()
        >>> y
        array([-1., -1.], dtype=float32)

        Args:
            inputs, outputs: all of them by name.

        Raises:
            InvalidArgument: a missing or unknown name, or an array of another type, size or layout.
            Unsupported: the model is more than one graph of DirectML's operators.
        """
        with self._named():
            with importing:
                from opendml.frontends.onnx.binding import bound
                from opendml.runtime.graphs.model import require_names
            require_names("outputs", outputs, self.output_names)
            return bound(self._tracer, inputs, self._checked(inputs), outputs)

    def save(self, path: str | PathLike[str], *, compiled: bool = False) -> None:
        """Write the model to a file that `opendml.onnx.load` reads, with its fixed sizes and all weights.

        Args:
            path: the file.
            compiled: write plans, machine code and packed weights too, as `opendml compile` does, for
                the sizes of inputs that ran or were warmed up. The file is for this machine and this version
                of opendml. Elsewhere it is compiled when it is loaded.

        Raises:
            InvalidArgument: the file cannot be written; or for `compiled` a model of open sizes that was not
                called.
            Unsupported: the model takes 2 GiB or more; or for `compiled` it is more than one graph, is on
                another device than the CPU, or plans are not kept.
        """
        with self._named():
            with importing:
                from opendml.frontends.onnx.saving import save
            runs = (self._met_forms() or [self._fixed_form()]) if compiled else None
            save(path, self._traced, runs, partial(load, device=self.device, limits=self._limits))

    def parts(self, inputs: Mapping[str, Any]) -> tuple[Model | str, ...]:
        """Run the model, and return its compiled graphs and the names of nodes outside of them, in order.

        Such nodes run on onnx's evaluator or are loops; the graphs of loop bodies are not among the results.

        Raises:
            InvalidArgument, Unsupported: as for a call.
        """
        require_by_name(inputs)
        with self._named():
            with importing:
                from opendml.frontends.onnx.segment import CompiledSegment
                from opendml.runtime.graphs.model import Model
            dimensions: dict[str, int] = {}
            work = [step.work for step in self._tracer.steps(self._checked(inputs), dimensions)]
        parts = (each.part_at(dimensions) if isinstance(each, CompiledSegment) else each for each in work)
        return tuple(each if isinstance(each, Model) else str(each) for each in parts if each is not None)

    def _named(self) -> _NamedRun:
        """Meter a run, and prefix the model's name to errors."""
        return _NamedRun(self._name, self._limits, self._bytes)

    def _checked(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of a run after checking that they are complete and as declared."""
        declared = self._declared
        if not inputs.keys() <= declared.keys():
            self._require_known(inputs)
        # In one order, because traces and plans are for the forms of inputs in their order.
        given = {
            name: _checked_input(each, inputs[name]) for name, each in declared.items() if name in inputs
        }
        if not given.keys() >= self._needed:
            missing = next(name for name in self.input_names if name not in given)
            raise InvalidArgument(f"input {missing!r} is missing; {self._known_inputs()}")
        return given

    def _require_known(self, names: Iterable[str]) -> None:
        """Check that the model has inputs of these names."""
        for name in names:
            if name not in self._declared:
                raise InvalidArgument(f"input {name!r} is unknown; {self._known_inputs()}")

    def _known_inputs(self) -> str:
        return f"the model has {', '.join(map(repr, self.input_names)) or 'none'}"


class _NamedRun(metered):
    """The meter of a run, which prefixes the name of the model to errors.

    Args:
        name: the name of the model.
        limits: its limits.
        held: the bytes that it holds.
    """

    def __init__(self, name: str, limits: Limits, held: int) -> None:
        super().__init__(limits, held=held, name="a run")
        self._model = name

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            super().__exit__(kind, error, trace)
            if isinstance(error, Error):
                raise error
        except Error as known:
            raise known._within(self._model) from known


def _zeros(method: str, info: TensorInfo, fix: str) -> np.ndarray[Any, Any]:
    """Return zeros for an input of fixed sizes.

    Raises:
        InvalidArgument: it has open sizes. The message begins with the method and ends with what to do.
    """
    if info.type is None or info.sizes is None or not all(isinstance(size, int) for size in info.sizes):
        raise InvalidArgument(f"{method}: input {info.name!r} has open sizes; {fix}")
    return zeros_of(info.name, info.type, info.sizes, {})


def _checked_input(info: TensorInfo, content: Any) -> Any:
    """Return an input as an array after checking it against its declaration."""
    if (
        type(content) is np.ndarray
        and content.dtype is info.type
        and info.sizes is not None
        and fits(content.shape, info.sizes)
    ):
        return content
    if isinstance(content, Mapping):
        fix = "an array is needed: `run` takes a dict of arrays by their names"
        raise InvalidArgument(f"input {info.name!r} is a {type(content).__name__}; {fix}")
    if info.type is None:
        is_text = info.sizes is not None and isinstance(content, list)  # A list may be a sequence, too.
        return np.array(content, object) if is_text else content
    if isinstance(content, DeviceTensor):
        array: Any = content.as_type(info.type) or content
    else:
        array = _as_array(info.name, info.type, content)
    if array.dtype != info.type:
        if isinstance(content, list | tuple | int | float | complex | str | bytes | None):
            fix = f"which {info.type.name} does not hold"
            raise InvalidArgument(f"input {info.name!r} is {reprlib.repr(content)}, {fix}")
        fix = f"must be {info.type.name}: array.astype({info.type.name!r}) makes it so"
        raise InvalidArgument(f"input {info.name!r} is of type {array.dtype.name}; {fix}")
    if info.sizes is not None and not fits(array.shape, info.sizes):
        sizes = shown([("?" if size is None else size) for size in info.sizes])
        raise InvalidArgument(f"input {info.name!r} has sizes {list(array.shape)}; must be {sizes}")
    return array


def _as_array(name: str, type: np.dtype[Any], content: Any) -> np.ndarray[Any, Any]:
    """Return an input as an array in host memory."""
    try:
        array = np.asarray(content)
        if isinstance(content, list | tuple | int | float):
            array = _of_numbers(array, type)
    except (RuntimeError, TypeError, ValueError) as error:  # Ragged lists, or objects of other libraries.
        raise InvalidArgument(f"input {name!r} is no array: {error}") from error
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _of_numbers(array: np.ndarray[Any, Any], type: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an array of Python's numbers in a type that holds their values, or in floats; else as it is."""
    is_float = type.kind == "f" or type.name == "bfloat16"
    if array.dtype.kind not in "biuf" or not (is_float or type.kind in "biu"):
        return array
    with np.errstate(all="ignore"):
        found = array.astype(type)
    fits = not (np.isinf(found) & np.isfinite(array)).any() if is_float else np.array_equal(found, array)
    return found if fits else array


def load(
    model: ModelLike,
    device: str | Device | None = None,
    *,
    sizes: Sizes = NO_SIZES,
    limits: Limits | None = None,
    most_kept_bytes: int | None = None,
    trusted: bool = False,
    progress: bool = False,
) -> OnnxModel:
    """Load an ONNX model.

    Args:
        model: a path, the bytes of a file, or an onnx.ModelProto.
        device: a device, its kind, or None for the CPU.
        sizes: fixed sizes for symbolic dimensions, inputs or outputs.
        limits: the limits of loading and of each run; `dml.Limits.untrusted()` for a file from a stranger.
            None: the defaults of `dml.Limits`.
        most_kept_bytes: bytes that may stay compiled for earlier input sizes, beside those of the last ones.
            The least recently used sizes are dropped first. None: a quarter of the memory that the process
                may use.
        trusted: run the code in a compiled file (`opendml compile`) that another machine has written. False:
            only code that the cache of this machine records.
        progress: print on standard error what is parsed, traced and compiled, now and in later runs.

    >>> import numpy as np, onnx, opendml as dml
    >>> text = '<ir_version: 10, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) { y = Neg (x) }'
    >>> model = dml.onnx.load(onnx.parser.parse_model(text), most_kept_bytes=100_000_000)
    >>> model(np.ones(2, np.float32))["y"]
    array([-1., -1.], dtype=float32)

    Raises:
        InvalidArgument: the file is no ONNX model, `sizes` do not fit it, a node cannot take its inputs, or
            `most_kept_bytes` is no number of bytes.
        Unsupported: the operator set is newer than the `onnx` package, or neither DirectML nor the evaluator
            of `onnx` has an operator.
        LimitExceeded: the model is larger than its limits allow.
    """
    if not isinstance(sizes, Sizes):
        raise InvalidArgument(f"sizes: {shown(sizes)}; a dml.onnx.Sizes is needed")
    return load_model(model, device, sizes, limits, most_kept_bytes, True, trusted, progress)


def load_model(
    model: ModelLike,
    device: str | Device | DeviceChoice | None,
    sizes: Sizes,
    limits: Limits | None,
    most_kept_bytes: int | None,
    require_used: bool = False,
    trusted: bool = False,
    progress: bool = False,
) -> OnnxModel:
    """Load a model as `load` does, but accept sizes that no input or output has unless `require_used`."""
    with metered(limits) as limit, limit.timed("compile_seconds", "loading the model"):
        cache, before, began = ModelCache(most_kept_bytes), limit.held, time.perf_counter()
        with variable_set(while_waiting, _import_opening):
            known, weights, name, content = known_model(model, device, sizes, require_used, trusted)
        file = None if known is None else known.file
        source = bytes(content) if isinstance(model, bytes) and isinstance(content, memoryview) else model

        @collection_paused()
        def opened() -> Opened:
            opened_model = _import_opening()
            with metered(limit.limits), meter().timed("compile_seconds", "loading the model"):
                return opened_model(source, device_of(device), sizes, require_used, cache, weights)

        with reading(file):
            facts = None if known is None else known.facts()
        if file is not None and facts is None:
            log.warning("%s: compiled for another machine, version or setting; it is compiled again", name)
        if facts is not None and known is not None:
            cache.shared.share(weights.stamps, known.backend)
            limit.hold(max(facts.held - limit.held, 0), name)
            loaded = OnnxModel(name, device, facts, opened, cache, known, progress)
            loaded._prepare(known)
            return loaded
        limit.held = before
        with progress_shown(progress):
            now = opened()
            tell("%s: parsed and checked in %.2f s", now.name, time.perf_counter() - began)
        cache.shared.share(weights.stamps, now.tracer.device._backend)
        if now.custom:
            known = None  # Another process may have other functions.
        if known is not None and now.weights.are_within(known.content.bytes):
            known.write_facts(now.facts)
        loaded = OnnxModel(now.name, device, now.facts, now, cache, known, progress)
        loaded._compile_fixed()
        return loaded


def _import_opening() -> Callable[..., Opened]:
    """Import what parses and traces models, and return the function that does."""
    # Python does not repeat an interrupted import of `onnx` or of converters as a whole.
    with deferred_signals(), importing:
        from opendml.frontends.onnx.opening import opened_model
    return opened_model


def model_of(model: onnx.ModelProto, name: str, device: Device, weights: Weights | None = None) -> OnnxModel:
    """Return a model that can be called, of a parsed one."""
    with importing:
        from opendml.frontends.onnx.opening import opened_proto
        from opendml.frontends.onnx.weights import Weights
    cache = ModelCache()
    opened = opened_proto(model, name, device, cache, weights or Weights())
    return OnnxModel(name, device, opened.facts, opened, cache)


def require_by_name(inputs: object) -> None:
    """Raise InvalidArgument unless the inputs are a mapping."""
    if not isinstance(inputs, Mapping):
        problem = f"{type(inputs).__name__}; a dict is needed, of arrays by their names"
        raise InvalidArgument(f"run.inputs: {problem}")
