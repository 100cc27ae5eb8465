"""ONNX models that were run before on this machine: neither parsed nor traced again.

The cache folder has a file for each model, with its inputs and outputs. For each form of inputs and bucket of
their open sizes it has plans of the graph that the model became (`known_runs`). For each form it has the
graph, too, from which other buckets are planned (`known_graphs`). All are found by a digest of the bytes of
the model without the data of large initializers. If the trace read such data, as folding does, they have its
digests. The `onnx` package and the importer are not imported for a known run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from opendml.across_forks import importing
from opendml.budget import meter
from opendml.digests import digest_of
from opendml.errors import InvalidArgument
from opendml.frontends.onnx.forms import (
    Dimensions,
    ExactForm,
    Form,
    Symbols,
    exact_form,
    forms_of,
    symbols_of,
)
from opendml.frontends.onnx.known_content import ModelContent, identity_from_json
from opendml.frontends.onnx.known_runs import GraphFacts, KnownPlan, KnownRun
from opendml.frontends.onnx.protobuf import Content
from opendml.frontends.onnx.sizes import Sizes
from opendml.frontends.onnx.tensor_info import TensorInfo, type_of, type_text
from opendml.frontends.onnx.weights import Weights
from opendml.garbage import collection_paused
from opendml.json_files.compact import compact_json
from opendml.late_dataclass import dataclass
from opendml.later import finish
from opendml.locked import Locked
from opendml.logs import log, tell
from opendml.model_files import hold_file, open_file
from opendml.program.buckets import Bucket, bucket_of
from opendml.program.program import packed
from opendml.program.scalar_type import ScalarType
from opendml.program.size_values import Guard
from opendml.runtime.graphs.initialization import initialize
from opendml.runtime.graphs.plan_maker import PlanMaker, StoredPlan, note_sizes
from opendml.runtime.graphs.refusals import Hints, Refusals, keep_refusal, refusals_key
from opendml.runtime.graphs.shared import kept_memory
from opendml.targets.backend import DeviceBackend
from opendml.targets.compiled_files import CompiledFile, is_compiled_file, recorder
from opendml.targets.memory import TensorMemory, address_of
from opendml.targets.object_cache import (
    MOST_PLANS,
    free_key,
    numbered_keys,
    plans_are_kept,
    read_object,
    sources_stamp,
    trusted_file,
    write_later,
    write_object,
)
from opendml.targets.plan_files import DAMAGED
from opendml.targets.registry import backend_of

if TYPE_CHECKING:
    from opendml.frontends.onnx.known_graphs import GraphToWrite, KnownGraph
    from opendml.runtime.graphs.model_cache import ModelCache
    from opendml.targets.executable import Executable, TracedExecutable

Array = np.ndarray[Any, Any]

_MOST_RUNS = 64
"""Sizes whose runs are kept, at most. Another one takes a fraction of a millisecond to make."""
_KIND = "plan"
_Form = tuple[tuple[tuple[str, Form], ...], Bucket]
"""The form of a run, and the bucket of its dimensions."""


class _DamagedPlanError(Exception):
    """The constants of a plan cannot be read."""


@contextmanager
def _reading_constants() -> Iterator[None]:
    """Raise _DamagedPlanError in place of what damaged JSON raises in the block."""
    try:
        yield
    except DAMAGED as error:
        raise _DamagedPlanError from error


@dataclass(frozen=True)
class ModelFacts:
    """The declarations of a model.

    Args:
        inputs: the inputs that every call needs.
        outputs: the outputs.
        declared: all inputs, those with an initializer too.
        held: bytes that the loaded model holds.
    """

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    declared: tuple[TensorInfo, ...]
    held: int

    @property
    def symbols(self) -> dict[str, Symbols]:
        """The open dimensions of the inputs."""
        return symbols_of((each.name, each.sizes) for each in self.declared)


@dataclass(frozen=True)
class _FirstRun:
    """The first run of a model in a process.

    Args:
        form: its form and bucket.
        dimensions: the sizes of its open dimensions.
    """

    form: _Form
    dimensions: Mapping[str, int]

    def to_json(self) -> list[Any]:
        """Return it as JSON."""
        return [_forms_to_json(self.form[0]), self.dimensions]


def _first_from_json(data: Any) -> _FirstRun | None:
    """Return the run that `_FirstRun.to_json` has made JSON of. None: there was none."""
    if data is None:
        return None
    forms, dimensions = data
    named = [(name, each and (tuple(each[0]), type_of(each[1]))) for name, each in forms]
    return _FirstRun((tuple(named), bucket_of(dimensions.values())), dimensions)


def _forms_to_json(forms: Sequence[tuple[str, Form]]) -> list[Any]:
    return [(name, each and (each[0], type_text(each[1]))) for name, each in forms]


def known_model(
    model: Any, device: Any, sizes: Sizes, require_used: bool, trusted: bool
) -> tuple[KnownModel | None, Weights, str, Content | None]:
    """Return the files in the cache about a model, the mapped file of the model, its name for errors, and its
    bytes. In a compiled file these are a part.

    There are none for models that are parsed already, for devices that keep no plans, and for a device that
    shows intermediate values.
    """
    weights, name = Weights(), "model"
    content: Content | None = None
    threads, debug = None, None
    backend = backend_of(device if isinstance(device, str) else "cpu")
    if device is not None and not isinstance(device, str):
        backend, threads, debug = device._backend, device.threads, device._debug
    if isinstance(model, bytes):
        meter().hold(len(model), name)
        content = model
    elif isinstance(model, str | os.PathLike):
        path = Path(os.fspath(model))
        name = str(path)
        with open_file(path, path) as file:
            if hold_file(file, path):
                content = weights.mapped(path, file).content
    trusted_one = None
    if content and is_compiled_file(content):
        compiled = CompiledFile(content, name)
        content = compiled.model
        if compiled.kind != "onnx":
            raise InvalidArgument(f"{name}: a compiled file of a saved model, which opendml.load reads")
        if not isinstance(model, bytes):
            weights.use(path, content)
        trusted_one = trusted_file(compiled, trusted, name)
    if not content or not backend.keeps_plans or debug is not None or not plans_are_kept():
        return None, weights, name, content
    finish()
    backend.open()
    if not backend.maps_constants:
        trusted_one = None  # Nothing but the model is read of a compiled file.
    circumstances = f"{sizes} {bool(sizes) and require_used} {meter().limits}"
    return KnownModel(content, circumstances, backend, threads, trusted_one), weights, name, content


class KnownModel(Locked):
    """The files in the cache about a model on a device.

    Args:
        content: the bytes of the model.
        circumstances: all else that a trace depends on: fixed sizes, limits, and the device.
        backend: the device.
        threads: threads that share a dispatch, at most.
        file: the compiled file that the model lies in, if it is trusted.
    """

    def __init__(
        self,
        content: Content,
        circumstances: str,
        backend: DeviceBackend,
        threads: int | None,
        file: CompiledFile | None,
    ) -> None:
        super().__init__()
        self.content, self.backend, self.file = ModelContent(content), backend, file
        self._threads = threads
        own = f"{self.content.digest()}\n{circumstances} {threads}"
        text = f"{own}\n{_versions()}\n{backend.circumstances()}"
        self._key = digest_of(text.encode()).hexdigest()
        self._symbols: dict[str, Symbols] | None = None
        """The open dimensions of the inputs; None: the declarations are not known."""
        self._plans: dict[_Form, list[KnownPlan]] = {}
        """The plans that this process has read or made, by the forms of runs."""
        self._unread: dict[_Form, list[str]] = {}
        """The keys of plans that are not read yet, by the forms of runs that were read in part."""
        self._refusals: dict[_Form, Refusals] = {}
        """The refused hints of plans by the forms of runs."""
        self._graphs: dict[Hashable, list[KnownGraph]] = {}
        """The graphs that this process has read, by forms."""
        self._written_graphs = WeakSet[PlanMaker]()
        """The makers of plans of the graphs that this process has written."""
        self._only_sizes: dict[str, int] = {}
        """The only size of each dimension in the runs of this process; 0: it had several."""
        self._runs: dict[ExactForm, KnownRun] = {}
        """The runs of these plans by the exact forms of their inputs."""
        self._decisive: tuple[str, ...] = ()
        """The inputs whose numbers decide what runs."""
        self._is_new = False
        self._declarations: dict[str, Any] = {}
        """The declarations as JSON."""
        self._first: _FirstRun | None = None
        """The run that this process or the last one began with."""
        self._has_run = False
        """True once this process has run the model."""

    def facts(self) -> ModelFacts | None:
        """Return the declarations of the model, if they are in the cache."""
        data = _read(self._key)
        if data is None:
            return None
        try:
            each = {
                name: tuple(map(TensorInfo.from_json, data[name]))
                for name in ("inputs", "outputs", "declared")
            }
            facts = ModelFacts(each["inputs"], each["outputs"], each["declared"], int(data["held"]))
            self._first = _first_from_json(data.pop("first", None))
            self._decisive = tuple(map(str, data.get("decisive", ())))
        except DAMAGED as error:
            log.debug("known model %s cannot be read: %s", self._key, error)
            return None
        self._symbols, self._declarations = facts.symbols, data
        return facts

    def write_facts(self, facts: ModelFacts) -> None:
        """Write the declarations of the model to the cache."""
        every = {
            name: [info.to_json() for info in getattr(facts, name)]
            for name in ("inputs", "outputs", "declared")
        }
        self._symbols, self._is_new = facts.symbols, True
        self._declarations = {**every, "held": facts.held}
        _write(self._key, self._declarations)

    def prepare(self, models: ModelCache) -> None:
        """Link the code and pack the constants of the plan that the last process began with, if there is one.

        Constants that only other plans read are packed when these run. So a process that begins like the last
        one holds no constants that it does not need.

        Args:
            models: has the memory that all sizes share, and learns what is held.

        Raises:
            Error: as of a run.
        """
        first = self._first
        if first is None or recorder() is not None:
            return  # A compiled file has only what its run needs.
        with self._lock, collection_paused():
            plans = self._plans_of(first.form)
            sizes = first.dimensions
            plan = next((each for each in plans if each.serves(sizes) and not each.has_better(sizes)), None)
            if plan is not None and self._is_started(plan, first.form, models):
                models.use([plan])

    def _note_first(self, form: _Form, dimensions: Dimensions) -> None:
        """Note in the cache that this process has begun with a run, unless the last one has begun so too."""
        if self._has_run:
            return
        self._has_run, first = True, _FirstRun(form, dict(dimensions))
        if first != self._first:
            self._first = first
            self._write_declarations()

    def decide(self, inputs: Collection[str]) -> None:
        """Note in the cache that some inputs have numbers that decide what runs, beside those known."""
        if not {*inputs} <= {*self._decisive}:
            self._decisive = tuple(sorted({*self._decisive, *inputs}))
            self._declarations["decisive"] = self._decisive
            self._write_declarations()

    def _write_declarations(self) -> None:
        data = dict(self._declarations)
        if self._first is not None:
            data["first"] = self._first.to_json()
        write_later(partial(_write, self._key, data, warns=False))

    def tracing(self) -> AbstractContextManager[None]:
        """Return the context of a trace. The code of a new model is mostly not in the cache."""
        is_new, self._is_new = self._is_new, False
        return self.backend.expecting_code() if is_new else nullcontext()

    def met(self, inputs: Mapping[str, Any]) -> KnownRun | None:
        """Return the run of inputs whose exact form was run before, which therefore are as declared."""
        if self._runs and all(type(each) is np.ndarray for each in inputs.values()):
            return self._runs.get(exact_form(inputs, self._decisive))
        return None

    def run(self, inputs: Mapping[str, Any], models: ModelCache, reads: bool) -> KnownRun | None:
        """Return a run for inputs of these sizes and types. None: no plan in the cache serves them.

        Args:
            inputs: the inputs.
            models: has the memory that all sizes share.
            reads: whether the cache is read; otherwise only plans that were read before are looked at.
        """
        if not (reads or self._plans):
            return None
        if not all(type(each) is np.ndarray for each in inputs.values()):
            return None  # A list of tensors, say.
        exact = exact_form(inputs, self._decisive)
        found = self._runs.get(exact)
        if found is None:
            # Reading a plan makes enough objects for the collector to go through all of the process.
            with self._lock, collection_paused():
                found = self._new_run(inputs, models, reads)
                if found is not None:
                    while len(self._runs) >= _MOST_RUNS:
                        self._runs.pop(next(iter(self._runs)), None)
                    self._runs[exact] = found
        return found

    def _new_run(self, inputs: Mapping[str, Any], models: ModelCache, reads: bool) -> KnownRun | None:
        """Return a run of a plan that serves sizes that had no run."""
        dimensions: Dimensions = {}
        form = self._form_of(inputs, dimensions)
        if form is None:
            return None
        note_sizes(self._only_sizes, dimensions)
        is_read = reads or form in self._unread
        for plan in self._plans_of(form) if is_read else list(self._plans.get(form, ())):
            run = None if plan.has_better(dimensions) else self._run_of(plan, form, dimensions, models)
            if run is not None:
                self._note_first(form, dimensions)
                return run
        run = self._planned(form, dimensions, models) if reads else None
        if run is not None:
            self._note_first(form, dimensions)
        return run

    def _run_of(
        self, plan: KnownPlan, form: _Form, dimensions: Dimensions, models: ModelCache
    ) -> KnownRun | None:
        """Return a run of a plan, which is started before. None: it does not serve some sizes."""
        is_ready = plan.kept is not None or plan.serves(dimensions)
        return plan.at(dimensions) if is_ready and self._is_started(plan, form, models) else None

    def _planned(self, form: _Form, dimensions: Dimensions, models: ModelCache) -> KnownRun | None:
        """Return a run by a plan of a graph in the cache for sizes that no plan was known to serve best.

        A new plan is written to the cache, and used for later runs. None: no graph has such a plan.
        """
        plans = self._plans.get(form, [])

        def known(hints: Hints) -> KnownRun | None:
            runs = (self._run_of(each, form, dimensions, models) for each in plans if each.hints == hints)
            return next((run for run in runs if run is not None), None)

        for graph in self._graphs_of(form[0]):
            made = graph.plan(dimensions, bool(plans), known, self._refusals_of(form))
            if isinstance(made, KnownRun):
                return made
            if made is None:
                continue
            plan = KnownPlan(made.guards, graph.facts, made.hints, made.refused)
            if not self._use(plan, made.executable, graph.constants, models):
                continue
            run = plan.at(dimensions)
            if run is None:
                continue
            write_later(partial(self._write_planned, made, graph, form))
            self._add(plan, form)
            return run
        return None

    def _write_planned(self, made: StoredPlan, graph: KnownGraph, form: _Form) -> None:
        """Write a plan of a graph in the cache."""
        data = made.to_json(self.backend, graph.facts.to_json)
        if data is not None:
            own = [[number, *graph.constants[number]] for number in constants_of(made.executable)]
            key = free_key(self._key_of(form))
            _write(key, {**data, "constants": own, "read": graph.read})

    def _graphs_of(self, forms: tuple[tuple[str, Form], ...]) -> list[KnownGraph]:
        """Return the graphs in the cache of runs with some forms of inputs."""
        found = self._graphs.get(forms)
        if found is None:
            with importing:
                from opendml.frontends.onnx.known_graphs import KnownGraph
            found = list[KnownGraph]()
            for key in numbered_keys(self._graph_key(forms)):
                data = _read(key)
                if data is None:
                    break
                try:
                    if self.content.has_read(data["read"]):
                        found.append(KnownGraph(data, self.backend, self._threads, self._only_sizes))
                except DAMAGED as error:
                    log.debug("known graph %s cannot be read: %s", key, error)
            self._graphs[forms] = found
        return found

    def _plans_of(self, form: _Form) -> Iterator[KnownPlan]:
        """Yield the plans of a form, those in the cache too, which are read one by one."""
        plans = list(self._plans.get(form, ()))
        yield from plans
        if not plans:
            self._unread[form] = numbered_keys(self._key_of(form))
        unread = self._unread.get(form, [])
        while unread:
            key = unread.pop(0)
            data = _read(key)
            if data is None:
                unread.clear()
                return
            try:
                plan = KnownPlan.from_json(data)
            except DAMAGED as error:
                log.debug("known plan %s cannot be read: %s", key, error)
                continue
            plan.refusals = self._refusals_of(form)
            self._plans[form] = [*self._plans.get(form, ()), plan]
            yield plan

    def _refusals_of(self, form: _Form) -> Refusals:
        """Return the refused hints of plans of a form, those in the cache too."""
        found = self._refusals.get(form)
        if found is None:
            key = refusals_key(self._key_of(form))
            found = self._refusals[form] = Refusals()
            found.read(key)
            found.keepers["cache"] = partial(keep_refusal, key)
        return found

    def _is_started(self, plan: KnownPlan, form: _Form, models: ModelCache) -> bool:
        """Start a plan unless it is, or drop it from the plans of its form. Return whether it can run."""
        if plan.kept is None and not self._start(plan, form, models):
            self._plans[form] = [each for each in self._plans.get(form, ()) if each is not plan]
        return plan.kept is not None

    @property
    def is_read(self) -> bool:
        """True if this process has read a plan of the model."""
        return bool(self._plans)

    @property
    def forms(self) -> list[ExactForm]:
        """The exact forms of the inputs of runs."""
        return list(self._runs)

    def _start(self, plan: KnownPlan, form: _Form, models: ModelCache) -> bool:
        """Link the code of a plan and pack its constants. Return whether that is possible."""
        began, key = time.perf_counter(), self._key_of(form)
        assert plan.source is not None
        data, read = plan.source
        try:
            if not self.content.has_read(data["read"]):
                log.debug("known plan %s: initializers that its trace read have changed", key)
                return False
            executable = self.backend.from_stored(data["plan"], read)
            places = {number: each for number, *each in data["constants"]}
        except DAMAGED as error:
            log.debug("known plan %s cannot be read: %s", key, error)
            return False
        if executable is None or not self._use(plan, executable, places, models):
            return False
        plan.on_forget = partial(self._forget, plan, form)
        tell("a known plan: %s loaded, and constants packed, in %.2f s", key, time.perf_counter() - began)
        return True

    def _use(
        self,
        plan: KnownPlan,
        executable: TracedExecutable,
        places: Mapping[int, Sequence[Any]],
        models: ModelCache,
    ) -> bool:
        """Start a plan with its executable, for which constants are packed. Return whether that is possible.

        Args:
            plan: the plan.
            executable: its executable.
            places: the place or the content of each constant, and its identity.
            models: has the memory that all sizes share.
        """

        def fill(addresses: Sequence[int], wanted: Collection[int]) -> None:
            if wanted:
                with _reading_constants():
                    constants = {
                        number: _memory_of(self.content.constant(places[number][0])) for number in identities
                    }
                initialize(executable, self.backend, constants, addresses, wanted)

        try:
            with _reading_constants():
                identities = {
                    number: identity_from_json(places[number][1]) for number in constants_of(executable)
                }
            own = sum(each.size for each in executable.kept)
            meter().require_memory(own, "the prepared tensors of a graph")
            kept = kept_memory(executable, self.backend, identities, models.shared.constants, fill)
        except _DamagedPlanError as error:
            log.debug("the constants of a known plan cannot be read: %s", error.__cause__)
            return False
        plan.start(executable, kept, models.shared.arenas)
        return True

    def _add(self, plan: KnownPlan, form: _Form) -> None:
        """Use a plan for later runs of this process."""
        plan.on_forget = partial(self._forget, plan, form)
        plan.refusals = self._refusals_of(form)
        self._plans[form] = [*self._plans.get(form, ()), plan][-MOST_PLANS:]

    def _forget(self, plan: KnownPlan, form: _Form) -> None:
        """Drop a plan and its runs. It is read again when it is needed."""
        self._plans.pop(form, None)
        self._unread.pop(form, None)
        for exact, run in list(self._runs.items()):
            if run.plan is plan:
                self._runs.pop(exact, None)

    def write_run(
        self,
        inputs: Mapping[str, Any],
        written: StoredPlan,
        facts: GraphFacts,
        plan: KnownPlan,
        constant: Callable[[int], tuple[Array, Any]],
        read: Sequence[Array],
    ) -> bool:
        """Write the plan of a run to the cache, and use it for later runs of this process too.

        Return whether it is written: it may hold too much.

        Args:
            inputs: the inputs of the run.
            written: the plan.
            facts: those of its graph.
            plan: the same plan for the runs of this process, started.
            constant: returns the constant of a number, and its identity.
            read: the large initializers whose contents the trace has read.
        """
        dimensions: Dimensions = {}
        form = self._form_of(inputs, dimensions)
        sources = self.content.sources(constants_of(written.executable), constant, read)
        if form is None or sources is None or not self.backend.can_store(written.executable):
            return False
        key = self._key_of(form)

        def write() -> None:
            data = written.to_json(self.backend, facts.to_json)
            if data is not None:
                _write(free_key(key), {**data, **sources})

        write_later(write)
        self._note_first(form, dimensions)
        with self._lock:
            self._add(plan, form)
        return True

    def follow(self, inputs: Mapping[str, Any], refusals: Refusals) -> None:
        """Note the refused hints of a graph, and those that it adds later, for other processes.

        Args:
            inputs: the inputs of a run of the graph.
            refusals: its refused hints.
        """
        dimensions: Dimensions = {}
        form = self._form_of(inputs, dimensions)
        if form is None or form[0] in refusals.keepers:
            return

        def keep(hints: Hints, guards: Sequence[Guard]) -> None:
            bucket = bucket_of([hints.get(name, size) for name, size in dimensions.items()])
            self._refusals_of((form[0], bucket)).note(hints, guards)

        refusals.keepers[form[0]] = keep
        for each in refusals.every:
            keep(*each)

    def write_graph(
        self,
        inputs: Mapping[str, Any],
        maker: PlanMaker,
        facts: GraphFacts,
        constant: Callable[[int], tuple[Array, Any]],
        read: Sequence[Array],
    ) -> None:
        """Write the graph of a run to the cache, unless it is there. Other buckets are planned from it.

        Args:
            inputs: the inputs of the run.
            maker: makes the plans of the graph.
            facts: those of the graph.
            constant, read: those of `write_run`.
        """
        form = self._form_of(inputs, {})
        if form is None or maker in self._written_graphs:
            return
        self._written_graphs.add(maker)
        with importing:
            from opendml.frontends.onnx.known_graphs import GraphToWrite
        write_later(partial(self._write_graph, form, GraphToWrite(maker, facts), constant, read))

    def _write_graph(
        self,
        form: _Form,
        graph: GraphToWrite,
        constant: Callable[[int], tuple[Array, Any]],
        read: Sequence[Array],
    ) -> None:
        """Write a graph to the cache. The arguments are those of `write_graph`."""
        data = graph.to_json(self.backend)
        sources = None if data is None else self.content.sources(data["graph"]["constants"], constant, read)
        if data is None or sources is None:
            return
        content = compact_json({**data, **sources})
        for key in numbered_keys(self._graph_key(form[0])):
            known = read_object(key, _KIND)
            if known is None:
                write_object(key, content, _KIND)
            if known is None or known == content:
                return

    def _form_of(self, inputs: Mapping[str, Any], dimensions: Dimensions) -> _Form | None:
        """Return the form and the bucket of a run, and add its dimensions. None: an input is no array."""
        if self._symbols is None or not all(isinstance(each, np.ndarray) for each in inputs.values()):
            return None
        forms = forms_of(inputs, self._symbols, dimensions, self._decisive)
        return forms, bucket_of(dimensions.values())

    def _key_of(self, form: _Form) -> str:
        """Return the key of runs of a form in a bucket."""
        forms, bucket = form
        return digest_of(f"{self._key}\n{_forms_to_json(forms)}\n{bucket}".encode()).hexdigest()

    def _graph_key(self, forms: tuple[tuple[str, Form], ...]) -> str:
        """Return the key of graphs of runs with some forms of inputs."""
        return digest_of(f"{self._key}\n{_forms_to_json(forms)}\ngraph".encode()).hexdigest()


def constants_of(executable: Executable) -> list[int]:
    """Return the numbers of the constants that an executable reads."""
    numbers = set[int]()
    for each in executable.kept:
        is_copy = each.copied_from is not None
        numbers.update(each.recipe.constants if is_copy else executable.constants_of(each.step))
    return sorted(numbers)


def _memory_of(array: Array) -> TensorMemory:
    """Return the memory of a packed array. Only the width of its elements matters to an initialization."""
    layout = packed(ScalarType[f"UINT{8 * array.itemsize}"], array.shape)
    return TensorMemory(address_of(array), layout, False, array)


@cache
def _versions() -> str:
    """Return the versions of all that a trace depends on."""
    package = find_spec("onnx")
    origin = package.origin if package is not None else None
    status = os.stat(origin) if origin else None
    stamp = () if status is None else (origin, status.st_size, status.st_mtime_ns)
    return f"{sources_stamp()} {stamp} {np.__version__}"


def _read(key: str) -> dict[str, Any] | None:
    content = read_object(key, _KIND)
    try:
        found: Any = None if content is None else json.loads(content)
    except ValueError as error:
        log.debug("%s is not JSON: %s", key, error)
        return None
    return found if isinstance(found, dict) else None


def _write(key: str, data: Mapping[str, Any], *, warns: bool = True) -> None:
    write_object(key, compact_json(data), _KIND, warns=warns)
