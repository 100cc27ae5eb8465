"""A program compiled for a CUDA device: its launches, and instances that enqueue them.

A process that finds its plans on disk imports this module, but not the compiler (`planning`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy import ndarray

from opendml.compiler.memory import aligned
from opendml.late_dataclass import dataclass
from opendml.targets.arenas import Arenas, DeviceCopies
from opendml.targets.cuda.driver import device
from opendml.targets.cuda.encoded_maps import IntegerArray
from opendml.targets.cuda.job import Accesses, CudaJob, JobForm
from opendml.targets.cuda.memory import Memory, scratch
from opendml.targets.cuda.planned_launch import PlannedLaunch
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.planned import Timer

_MOST_OTHERS = 256
"""Launches for tensors that are not aligned as the plan says, at most, which an executable keeps."""
Array = ndarray[Any, Any]


class OtherLaunches(Protocol):
    """Makes the launches of a program for tensors that are not aligned as its plan says."""

    @property
    def numbers(self) -> Sequence[int]:
        """The traced numbers of the kernels."""

    def launch(self, number: int, alignments: Sequence[int], values: Sequence[int]) -> PlannedLaunch:
        """Return a launch for one size.

        Args:
            number: its number among the launches of the plan.
            alignments: those of the accesses, in bytes.
            values: the values of `numbers`.
        """

    def to_json(self) -> str:
        """Return the kernels as JSON.

        Raises:
            TypeError: a kernel has no form in JSON.
        """


@dataclass(frozen=True)
class CudaParts:
    """The parts of an executable. Numbers may be traced.

    Args:
        launches: the launches.
        groups: for each launch of a dispatch, and then for those of the initialization, its number among
            `launches` and the numbers of its kernels.
        dispatched: the number of launches of a dispatch.
        accesses: for each kernel, the buffers and the offsets of its accesses.
        buffers: the length of the table of buffers.
        arena: the number of the arena in it.
        arena_bytes, initializer_bytes: temporary memory of a dispatch and of the initialization.
        first_prepared: the first buffer of prepared tensors.
        prepared: these tensors.
        constants: the constants that dispatches read as they are.
        inputs: the number of inputs of the program.
        tensors: for each tensor that is no constant its number, its first byte, its bytes, and those of all
            elements.
        others: makes launches for other alignments.
    """

    launches: Sequence[PlannedLaunch]
    groups: Sequence[tuple[int, Sequence[int]]]
    dispatched: int
    accesses: Sequence[Accesses]
    buffers: int
    arena: int
    arena_bytes: int
    initializer_bytes: int
    first_prepared: int
    prepared: Sequence[Kept]
    constants: KeptConstants
    inputs: int
    tensors: Sequence[tuple[int, int, int, int]]
    others: OtherLaunches


class CudaExecutable:
    """A program for the device `device_index`, perhaps with traced sizes, or for one size of these (`at`).

    Launches are made for tensors that are aligned as those of the caller mostly are. Others are made when
    they are needed.

    Raises:
        InvalidArgument: no such device.
        Unsupported: CUDA is not available; the message says what is missing.
    """

    sized_instances = 4
    """Instances, at most, so that sizes that come often keep their words. Writing the words of another size
    adds 0.5 to 1.0 ms to the 1.6 ms of BERT-base, and a new instance takes 3 ms (H100)."""

    def __init__(self, parts: CudaParts, device_index: int = 0) -> None:
        self.device, self.parts = device(device_index), parts
        self.arena, self.buffer_count, self.arena_bytes = parts.arena, parts.buffers, parts.arena_bytes
        self.kept = [*parts.prepared, *parts.constants.kept]
        """Prepared tensors, then the constants that kernels read as they are."""
        self._others = dict[Hashable, JobForm]()
        """Launches for tensors that are not aligned as the plan says."""
        every = [parts.launches[number] for number, _ in parts.groups]
        accesses = [[parts.accesses[kernel] for kernel in kernels] for _, kernels in parts.groups]
        count, table = parts.dispatched, (parts.buffers, self.device.machine)
        self.form = JobForm(every[:count], accesses[:count], *table)
        """The launches of a dispatch."""
        self._initial = JobForm(every[count:], accesses[count:], *table)
        self._first_kernel = len(self.form.sizes)
        self._first_other = self._first_kernel + len(parts.others.numbers)
        tensors = [number for each in parts.tensors for number in each]
        self.sizes = [*self.form.sizes, *parts.others.numbers, parts.arena_bytes, *tensors]
        """All traced numbers: those of launches, and of kernels. Then come the size of the arena, and for
        each tensor its number, its first byte, its bytes, and those of all elements."""
        self._values: IntegerArray | None = None
        for form in (self.form, self._initial):
            if not form.sizes:
                with self.device.current():
                    CudaJob(form, self.device).load()

    @property
    def launches(self) -> list[PlannedLaunch]:
        """All launches so far."""
        others = [launch for form in self._others.values() for launch in form.launches]
        return [*self.parts.launches, *others]

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance."""
        return self.arena_bytes

    def at(self, values: IntegerArray) -> CudaExecutable:
        """Return the executable for given values of `sizes`. It shares code and constants."""
        made = copy(self)
        made._values = values
        made.arena_bytes = int(values[self._first_other])
        return made

    @property
    def tensors(self) -> dict[int, tuple[int, int, bool]]:
        """The first byte and the bytes of each tensor that is no constant, by its number. The last value is
        true if there are no gaps between its elements."""
        assert self._values is not None
        numbers = self._values[self._first_other + 1 : len(self.sizes)].tolist()
        every = zip(*[numbers[place::4] for place in range(4)], strict=True)
        return {number: (first, size, size == elements) for number, first, size, elements in every}

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        groups = self.parts.groups[self.parts.dispatched :]
        buffers = {buffer for _, (kernel,) in groups for buffer, _ in self.parts.accesses[kernel]}
        return {buffer for buffer in buffers if buffer is not None and buffer < self.parts.inputs}

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Prepare tensors over memory of the device.

        Raises:
            Unsupported: out of memory.
            DeviceRemoved: the device failed, maybe in earlier work.
        """
        arena = self.device.allocate(self.parts.initializer_bytes)
        instance = CudaInstance(self, self._initial, arena.address)
        for number, address in constants.items():
            instance.bind(number, address)
        for place, address in addresses.items():
            instance.bind(self.parts.first_prepared + place, address)
        instance.dispatch()

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> CudaInstance:
        """Return a new instance with nothing bound but its constants. If it may share arenas, each dispatch
        takes one in the order of its stream."""
        is_sharing = arenas is not None and arena is None and self.arena_bytes > 0
        kind = CudaScratchInstance if is_sharing else CudaInstance
        instance = kind(self, self.form, 0 if is_sharing else arena)
        self._bind_kept(instance, kept)
        return instance

    def sized_instance(
        self, kept: Sequence[int], arenas: Arenas | None, on_stream: bool = False
    ) -> CudaSizedInstance | CudaHostedInstance:
        """Return a new instance whose sizes may change, without an arena of its own."""
        instance = CudaSizedInstance(self)
        self._bind_kept(instance, kept)
        if on_stream:
            return instance
        return CudaHostedInstance(instance, self.parts.inputs, (arenas or Arenas()).copies)

    def _bind_kept(self, instance: CudaInstance, kept: Sequence[int]) -> None:
        """Bind an instance to prepared tensors and constants."""
        prepared = len(self.parts.prepared)
        for buffer, address in enumerate(kept[:prepared], self.parts.first_prepared):
            instance.bind(buffer, address)
        self.parts.constants.bind(instance, kept[prepared:])

    def instantiate_without_arena(self) -> CudaInstance:
        """Return a new instance with nothing bound, which holds no memory for temporaries."""
        kind = CudaScratchInstance if self.arena_bytes else CudaInstance
        return kind(self, self.form, 0)

    def other(self, job: CudaJob, number: int) -> JobForm:
        """Return a launch of a job for the alignments of what is bound now.

        Threads compile without a lock, so that dispatches of compiled launches do not wait. If two threads
        need the same new launch, both compile it, and use the one that is ready first.
        """
        group = number if job.form is self.form else self.parts.dispatched + number
        accesses, alignments = job.placed(number)
        values = list[int]()
        if self._values is not None:
            values = self._values[self._first_kernel : self._first_other].tolist()
        key = group, alignments, repr(accesses), *values
        if key not in self._others:
            launch = self.parts.others.launch(self.parts.groups[group][0], alignments, values)
            made = JobForm([launch], [accesses], self.parts.buffers, self.device.machine)
            while len(self._others) >= _MOST_OTHERS:
                self._others.pop(next(iter(self._others)), None)
            self._others.setdefault(key, made)
        return self._others[key]


class CudaInstance:
    """A program with its buffers, for one dispatch at a time.

    `dispatch` waits for the device, runs and waits. `enqueue` only adds the work to a stream of the caller.
    In the order of this stream, the inputs must be ready, and the last dispatch of the instance complete.
    """

    def __init__(self, executable: CudaExecutable, form: JobForm, arena: int | None) -> None:
        self._executable = executable
        self.device = executable.device
        self._addresses = [0] * (executable.buffer_count + 1)
        self._own = self.device.allocate(executable.arena_bytes) if arena is None else None
        self._addresses[executable.arena] = self._own.address if self._own else arena or 0
        self._job = CudaJob(form, self.device)
        self._others: dict[int, tuple[JobForm, CudaJob]] = {}
        """Jobs of one launch each, in place of those that do not serve what is bound, by their numbers."""
        self._launchers: list[Callable[[], None]] = []
        self._is_stale = True
        """True if the parameters are of other addresses or sizes."""
        self._is_prepared = False
        """True if the launchers are of the present sizes."""
        self._stream: int | None = None
        self._scratch: Memory | None = None
        self._kept: object = None
        if executable._values is not None:
            self._job.resize(executable._values)

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element, in device memory: inputs first, then outputs."""
        if self._addresses[buffer] != address:
            self._addresses[buffer] = address
            self._is_stale = True

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as this one."""
        self._kept = memory

    def dispatch(self) -> None:
        """Run the program after all earlier work on the device, and return when the results are complete."""
        self.device.synchronize_all()
        self.enqueue(int(self.device.stream))
        self.device.synchronize(self.device.stream)

    def enqueue(self, stream: int) -> None:
        """Add the program to a stream, given by its handle as an integer (0: the default stream).

        Raises:
            Unsupported: no memory for what a kernel needs beside the tensors.
            DeviceRemoved: the device failed, maybe in earlier work.
        """
        if self.device.is_current:
            self._launch(stream)
        else:
            with self.device.current():
                self._launch(stream)

    def prepare(self, stream: int) -> None:
        """Compile code and allocate memory for the next dispatch on a stream.

        Raises:
            Unsupported: no memory.
        """
        if not self._is_stale and stream == self._stream:
            return
        self.device.free_retired(stream)
        job, addresses = self._job, np.array(self._addresses, np.int64)
        failed = job.place(addresses)
        if self._is_prepared and stream == self._stream and not failed and not self._others:
            self._is_stale = False
            return
        self._is_prepared = False
        self._others = {number: self._other(number, addresses) for number in failed}
        jobs = [job, *[other for _, other in self._others.values()]]
        gains = job.gains.copy()
        for number, (_, other) in self._others.items():
            gains[number] = other.gains[0]
        following = gains[job.form.following]
        job.let_next_begin(following)
        for number, (_, other) in self._others.items():
            other.let_next_begin(following[number : number + 1])
        needed = max(each.scratch_bytes for each in jobs)
        if needed and (self._scratch is None or self._scratch.size < needed):
            self._scratch = self.device.allocate(needed)
        for each in jobs:
            if self._scratch is not None:
                each.use_scratch(self._scratch.address)
            each.prepare(stream)
        self._launchers = job.launchers
        if self._others:
            self._launchers = job.launchers.copy()
            for number, (_, other) in self._others.items():
                (self._launchers[number],) = other.launchers
        self._stream, self._is_prepared, self._is_stale = stream, True, False

    def _other(self, number: int, addresses: IntegerArray) -> tuple[JobForm, CudaJob]:
        """Return a job of a launch for the alignments of what is bound."""
        form = self._executable.other(self._job, number)
        known = self._others.get(number)
        job = known[1] if known is not None and known[0] is form else CudaJob(form, self.device)
        job.place(addresses)
        return form, job

    def timers(self) -> list[Timer]:
        """Return a timer for an empty run and one for each kernel, on the device's own stream. If a launch
        runs several kernels, it is timed as the first, and the others take no time."""
        with self.device.current():
            self.prepare(int(self.device.stream))
        work: dict[int, Callable[[], object]] = {}
        for (_, kernels), launch in zip(self._executable.parts.groups, self._launchers, strict=False):
            work |= dict.fromkeys(kernels, _nothing) | {kernels[0]: launch}
        return [partial(self.device.seconds, each) for each in (_nothing, *(work[n] for n in sorted(work)))]

    def _launch(self, stream: int) -> None:
        self.prepare(stream)
        for launch in self._launchers:
            launch()


class CudaScratchInstance(CudaInstance):
    """An instance without an arena. Each dispatch allocates one in the order of its stream."""

    def _launch(self, stream: int) -> None:
        if not self._executable.arena_bytes:
            super()._launch(stream)
            return
        with scratch(self.device, self._executable.arena_bytes, stream) as address:
            self.bind(self._executable.arena, address)
            super()._launch(stream)


class CudaSizedInstance(CudaScratchInstance):
    """An instance of a program with traced sizes, which may change between two dispatches."""

    def __init__(self, executable: CudaExecutable) -> None:
        super().__init__(executable, executable.form, 0)
        self._traced = executable
        self.values: Array | None = None

    @property
    def tensors(self) -> dict[int, tuple[int, int, bool]]:
        """The tensors of the executable for the present sizes."""
        return self._executable.tensors

    def resize(self, values: Array) -> None:
        """Use other values of the sizes of the executable, perhaps with others behind them."""
        self.values, self._is_stale, self._is_prepared = None, True, False
        self._executable = self._traced.at(values)
        self._job.resize(values)
        self.values = values


class CudaHostedInstance:
    """A program with traced sizes over tensors in host memory. A dispatch copies them to the device and back.

    Args:
        instance: the program over memory of the device.
        input_count: the number of its inputs.
        copies: has memory of the device for each dispatch.
    """

    enqueue = None

    def __init__(self, instance: CudaSizedInstance, input_count: int, copies: DeviceCopies) -> None:
        self._instance, self._input_count, self._copies = instance, input_count, copies
        self.values: Array | None = None
        self._tensors: dict[int, tuple[int, int, bool]] = {}
        self._offsets: dict[int, int] = {}
        """The places of tensors in a block of copies."""
        self._size = 0
        """The bytes of a block."""
        self._last = 0
        """The address of the block that the last dispatch had."""
        self._hosts: dict[int, int] = {}
        self._kept: object = None

    def resize(self, values: Array) -> None:
        """Use other values of the sizes of the executable, perhaps with others behind them."""
        self.values = None
        self._instance.resize(values)
        self._tensors, end = self._instance.tensors, 0
        for buffer, (_, size, _) in self._tensors.items():
            self._offsets[buffer] = end
            end = aligned(end + size)
        self._size = end
        self.values = values

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element in host memory: inputs first, then outputs."""
        self._hosts[buffer] = address

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as this one."""
        self._kept = memory

    def dispatch(self) -> None:
        """Copy the tensors to the device, run the program, and copy the outputs back.

        All this is in the order of one stream, and is waited for once. Nothing else writes to this memory.
        """
        allocate = partial(self._instance.device.allocate, cleared=False)
        block = self._copies.take(self._size, self._last, allocate)
        try:
            self._last = block[1].address
            self._dispatch(self._last)
        finally:
            self._copies.give(block)

    def _dispatch(self, begin: int) -> None:
        """Run the program with copies of the tensors in a block of memory, which begins at an address."""
        instance, device = self._instance, self._instance.device
        stream, results = int(device.stream), []
        for buffer, host in self._hosts.items():
            first, size, is_dense = self._tensors[buffer]
            address = begin + self._offsets[buffer]
            instance.bind(buffer, address - first)
            copy = address, host + first, size
            # What lies between the elements of a strided output comes back as it was.
            if buffer < self._input_count or not is_dense:
                device.copy_in_order(*copy, stream)
            if buffer >= self._input_count:
                results.append(copy)
        instance.enqueue(stream)
        for source, target, size in results:
            device.copy_in_order(target, source, size, stream)
        device.synchronize(stream)


def _nothing() -> None:
    """Do nothing."""
