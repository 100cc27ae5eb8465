"""Compile work for a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from opendml.across_forks import cached_property
from opendml.budget import meter
from opendml.floating_point import default_mode
from opendml.garbage import collection_paused
from opendml.logs import log, tell
from opendml.program.carriers import carried
from opendml.program.program import Program, packed
from opendml.runtime.graphs.initialization import initialize
from opendml.runtime.graphs.shared import ConstantStore, PreparedMemory, kept_memory
from opendml.runtime.graphs.work import Work, WorkStage, require_work
from opendml.runtime.memory.ranges import MemoryRange
from opendml.targets.arenas import Arenas
from opendml.targets.backend import DeviceBackend
from opendml.targets.executable import Executable, Instance
from opendml.targets.kept import addresses_within, kept_bytes
from opendml.targets.memory import Place, TensorMemory
from opendml.targets.staged import Stage, StagedExecutable
from opendml.targets.streams import StreamInstances
from opendml.targets.watched import WatchedExecutable

if TYPE_CHECKING:
    from opendml.runtime.objects.device import Device
    from opendml.runtime.objects.intermediates import DebugCallback


class CompiledWork:
    """The executable of some work on a device, which models and compiled operators share.

    It prepares constants and makes instances. The debug function of the device sees watched values.

    Args:
        work: the work.
        device: the device.
        executable: the executable, if the work is compiled; None: it is compiled now.
        steps: the kernel steps of a dispatch, if they are checked; None: the work is checked now.

    Raises:
        Unsupported: the device lacks something that the work needs.
        LimitExceeded: the model that it is part of may not take so much.
    """

    def __init__(
        self, work: Work, device: Device, executable: Executable | None = None, steps: int | None = None
    ) -> None:
        self._backend = device._backend
        self._layouts, self._input_count = (*work.inputs, *work.outputs), len(work.inputs)
        self.work = work
        limits = meter()
        self._kernel_steps = require_work(work) if steps is None else steps
        if executable is None:
            with limits.timed("compile_seconds", "a graph"), collection_paused():
                executable = _compiled(work, device._backend, device.threads, device._debug)
        self.executable = executable
        # Other sizes of a plan share the prepared tensors.
        own = self.temporary_bytes + (self.persistent_bytes if steps is None else 0)
        limits.require_memory(own, "the temporary and prepared tensors of a graph")

    def compile_again(self, stage: WorkStage, device: Device) -> None:
        """Compile a program, which finds its plan in the cache, for a recorder of what that reads."""
        with default_mode():
            device._backend.compile(carried(stage.program), device.threads)

    @property
    def temporary_bytes(self) -> int:
        """Memory for intermediate tensors that each instance needs."""
        return self.executable.temporary_bytes

    @property
    def shares_arenas(self) -> bool:
        """True if instances may use shared arenas. Instances of several stages have memory of their own."""
        return not isinstance(self.executable, StagedExecutable)

    @property
    def persistent_bytes(self) -> int:
        """Memory that dispatches need for constants."""
        return kept_bytes(self.executable.kept)

    def prepare(
        self, constants: Mapping[int, TensorMemory], persistent: MemoryRange | None = None
    ) -> MemoryRange:
        """Prepare constants, which may be on any device, and wait. Afterwards they are free again.

        Args:
            constants: their memories, by the numbers of their buffers.
            persistent: `persistent_bytes` bytes where the work runs; None: new memory.

        Returns:
            The persistent memory.

        Raises:
            Unsupported: out of memory.
        """
        persistent = persistent or self._allocate(self.persistent_bytes)
        kept = self.executable.kept
        addresses = addresses_within(kept, persistent.address)
        initialize(self.executable, self._backend, constants, addresses, range(len(kept)))
        return persistent

    def keep(
        self,
        constants: Mapping[int, TensorMemory],
        identities: Mapping[int, Hashable],
        store: ConstantStore,
    ) -> tuple[PreparedMemory, ...]:
        """Prepare those constants that the store does not have.

        Args:
            constants: as of `prepare`.
            identities: keys of constants; equal keys mean equal values. Constants without one are not shared.
            store: the prepared constants of other models.

        Returns:
            The memory of all that the executable keeps.
        """
        fill = partial(initialize, self.executable, self._backend, constants)
        return kept_memory(self.executable, self._backend, identities, store, fill)

    def instantiate(
        self,
        place: Place | None,
        kept: MemoryRange | Sequence[PreparedMemory] | None,
        temporary: MemoryRange | None = None,
        arenas: Arenas | None = None,
    ) -> Instance:
        """Return a new instance, to which only constants are bound.

        Args:
            place: where the tensors will be: host memory, or that of the device.
            kept: the result of `prepare` or `keep`, which must live as long as the instance; None if
                `persistent_bytes` is 0.
            temporary: `temporary_bytes` bytes where the work runs; None: the instance has its own.
            arenas: arenas that the instance may use, another one for each dispatch.
        """
        if kept is None or isinstance(kept, MemoryRange):
            addresses = addresses_within(self.executable.kept, kept.address if kept else 0)
        else:
            addresses = [each.memory.address for each in kept]
        arena = temporary.address if temporary else None
        instance = self.executable.instantiate(arena, addresses, arenas)
        if place is None:
            return self._backend.over_host_memory(instance, self._layouts, self._input_count)
        return instance

    def _allocate(self, size: int) -> MemoryRange:
        memory = self._backend.allocate(size)
        return MemoryRange(memory.address, size, memory, self._backend.place)


class Prepared:
    """Prepared constants of some work, and the instances that read them.

    Args:
        work: the compiled work.
        place: the memory of its device; None: host memory.
        kept: what it keeps of its constants (`CompiledWork.keep`).
        arenas: where instances take their arenas from; None: each has its own.
    """

    def __init__(
        self,
        work: CompiledWork,
        place: Place | None,
        kept: Sequence[PreparedMemory],
        arenas: Arenas | None = None,
    ) -> None:
        self._work, self._place, self.kept, self.arenas = work, place, kept, arenas
        self.held_by: object = None
        """The lock under which the instances run. The child of a fork has another one."""

    @cached_property
    def instance(self) -> Instance:
        """The instance over host memory."""
        return self._work.instantiate(None, self.kept, arenas=self.arenas)

    @cached_property
    def on_streams(self) -> StreamInstances:
        """The instances over memory of the device."""
        make = partial(self._work.instantiate, self._place, self.kept, arenas=self.arenas)
        return StreamInstances(make)

    @property
    def addresses(self) -> list[int]:
        """The addresses of what is kept."""
        return [each.memory.address for each in self.kept]

    def again(self) -> Prepared:
        """Return the same constants with new instances."""
        return self.of(self._work)

    def of(self, work: CompiledWork) -> Prepared:
        """Return the same constants with instances of other work that keeps the same."""
        return Prepared(work, self._place, self.kept, self.arenas)


def call_maker(program: Program, device: Device) -> Callable[[], Instance]:
    """Compile a program for immediate calls, and return a function that makes instances."""
    with default_mode(), _logged("call", program, device._backend):
        return device._backend.compile_for_calls(carried(program), device.threads)


@contextmanager
def _logged(what: str, program: Program, backend: DeviceBackend) -> Iterator[None]:
    """Log the time of a compilation."""
    start = time.perf_counter()
    yield
    milliseconds = (time.perf_counter() - start) * 1e3
    sizes = [list(output.sizes) for output in program.outputs]
    say = tell if what == "graph" else log.debug
    say("compiled a %s of outputs %s for %s in %.1f ms", what, sizes, backend.kind, milliseconds)


@default_mode()
def _compiled(
    work: Work, backend: DeviceBackend, threads: int | None, debug: DebugCallback | None
) -> Executable:
    """Compile all stages. `debug` is called with every watched value at every dispatch."""
    tensor_count = len(work.inputs) + len(work.outputs)
    stages = [Stage(_compiled_stage(stage, backend, threads, debug), stage.buffers) for stage in work.stages]
    if len(stages) == 1 and stages[0].buffers == tuple(range(tensor_count)):
        return stages[0].executable
    return StagedExecutable(stages, tensor_count, work.between, backend.allocate)


def _compiled_stage(
    stage: WorkStage, backend: DeviceBackend, threads: int | None, debug: DebugCallback | None
) -> Executable:
    if debug is None or not stage.watched:
        with _logged("graph", stage.program, backend):
            return backend.compile(carried(stage.program), threads)
    outputs = [packed(each.node.type, each.sizes) for each in stage.watched]
    program = replace(
        stage.program,
        outputs=(*stage.program.outputs, *outputs),
        results=(*stage.program.results, *(each.node for each in stage.watched)),
    )
    shows = [partial(debug, each) for each in stage.watched]
    executable = backend.compile(carried(program), threads)
    return WatchedExecutable(
        executable, len(stage.buffers), outputs, shows, debug.require_idle, backend.allocate
    )
