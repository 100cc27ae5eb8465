"""A program compiled for a CUDA device: its launches, and instances that enqueue them.

A process that finds its plans on disk imports this module, but not the compiler (`planning`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
from numpy import ndarray

from opendml.late_dataclass import dataclass
from opendml.program.sizes import is_traced
from opendml.targets.arenas import Arenas
from opendml.targets.cuda.driver import CudaDevice, device
from opendml.targets.cuda.launcher import LaunchConfig, launcher
from opendml.targets.cuda.memory import Memory, scratch
from opendml.targets.cuda.planned_launch import VECTOR_BYTES, PlannedLaunch, alignment_of
from opendml.targets.cuda.tensor_map import EncodedMap
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.planned import Timer

_WORD = struct.calcsize("<q")
_CROWDED = 0.5, 0.7
"""Blocks for each multiprocessor, between which a grid loses by an early launch. Its blocks do not all fit
beside the kernel before, and crowd on the multiprocessors that are free first. Of 132 multiprocessors, a
convolution with 80 blocks took 24.3 us rather than 18.7, and those with 98 gained 0.8 us (H100)."""
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
    accesses: Sequence[Sequence[tuple[int | None, int]]]
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

    resizes_slowly = True
    """Each launch takes some 30 us to make again: BERT-base takes 5.2 ms rather than 2.2 (H100)."""

    def __init__(self, parts: CudaParts, device_index: int = 0) -> None:
        self.device, self.parts = device(device_index), parts
        self.arena, self.buffer_count, self.arena_bytes = parts.arena, parts.buffers, parts.arena_bytes
        self.kept = [*parts.prepared, *parts.constants.kept]
        """Prepared tensors, then the constants that kernels read as they are."""
        self._values: list[int] = []
        self._prepared: dict[tuple[int, tuple[int, ...]], PreparedLaunch] = {}
        self.sizes: list[int] = []
        """All traced numbers: those of launches, of offsets, and of kernels. Then come the size of the arena,
        and for each tensor its number, its first byte, its bytes, and those of all elements."""
        self._spans = list[slice]()
        owners = list[int]()
        offsets = [[offset for _, offset in of if is_traced(offset)] for of in parts.accesses]
        for number, found in enumerate([*[each.traced for each in parts.launches], *offsets]):
            self._spans.append(slice(len(self.sizes), len(self.sizes) + len(found)))
            self.sizes += found
            owners += [number] * len(found)
        self._first_kernel = len(self.sizes)
        self.sizes += parts.others.numbers
        self._first_other = len(self.sizes)
        self.sizes += [parts.arena_bytes, *[number for each in parts.tensors for number in each]]
        self._owners = np.array([*owners, *[-1] * (len(self.sizes) - len(owners))])
        """The launch that each traced number is of, or the kernel, whose numbers follow those of launches."""
        if not self._first_other:
            # Code is loaded now, so errors come early and the first dispatch is fast.
            for group in range(len(parts.groups)):
                self.prepare(group, parts.launches[parts.groups[group][0]].alignments)

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance."""
        return self.arena_bytes

    @property
    def dispatched(self) -> range:
        """The numbers of the launches of a dispatch."""
        return range(self.parts.dispatched)

    def kernels_of(self, group: int) -> Sequence[int]:
        """Return the numbers of the kernels of a launch."""
        return self.parts.groups[group][1]

    def accesses(self, kernel: int) -> Sequence[tuple[int | None, int]]:
        """Return the buffers and the offsets of the accesses of a kernel."""
        accesses, span = self.parts.accesses[kernel], self._spans[len(self.parts.launches) + kernel]
        if span.start == span.stop:
            return accesses
        rest = iter(self._values[span])
        return [(buffer, next(rest) if is_traced(offset) else offset) for buffer, offset in accesses]

    def at(self, values: Array) -> CudaExecutable:
        """Return the executable for given values of `sizes`. It shares code and constants."""
        made = copy(self)
        made._values = values.tolist()
        if self._first_other:
            made._prepared = {}
        made.arena_bytes = made._values[self._first_other]
        return made

    @property
    def tensors(self) -> dict[int, tuple[int, int, bool]]:
        """The first byte and the bytes of each tensor that is no constant, by its number. The last value is
        true if there are no gaps between its elements."""
        numbers = self._values[self._first_other + 1 : len(self.sizes)]
        every = zip(*[numbers[place::4] for place in range(4)], strict=True)
        return {number: (first, size, size == elements) for number, first, size, elements in every}

    def changed(self, before: Array, values: Array) -> set[int]:
        """Return the launches that differ between values of `sizes`."""
        owners = set(self._owners[np.flatnonzero(before != values)].tolist())
        first = len(self.parts.launches)
        return {
            number
            for number in self.dispatched
            if self.parts.groups[number][0] in owners
            or not owners.isdisjoint([first + each for each in self.kernels_of(number)])
        }

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
        launches = range(self.parts.dispatched, len(self.parts.groups))
        instance = CudaInstance(self, launches, arena.address)
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
        instance = kind(self, self.dispatched, 0 if is_sharing else arena)
        self._bind_kept(instance, kept)
        return instance

    def sized_instance(
        self, kept: Sequence[int], arenas: Arenas | None, on_stream: bool = False
    ) -> CudaSizedInstance | CudaHostedInstance:
        """Return a new instance whose sizes may change, without an arena of its own."""
        instance = CudaSizedInstance(self.at(np.zeros(len(self.sizes), np.int64)))
        self._bind_kept(instance, kept)
        return instance if on_stream else CudaHostedInstance(instance, self.parts.inputs)

    def _bind_kept(self, instance: CudaInstance, kept: Sequence[int]) -> None:
        """Bind an instance to prepared tensors and constants."""
        prepared = len(self.parts.prepared)
        for buffer, address in enumerate(kept[:prepared], self.parts.first_prepared):
            instance.bind(buffer, address)
        self.parts.constants.bind(instance, kept[prepared:])

    def instantiate_without_arena(self) -> CudaInstance:
        """Return a new instance with nothing bound, which holds no memory for temporaries."""
        kind = CudaScratchInstance if self.arena_bytes else CudaInstance
        return kind(self, self.dispatched, 0)

    def is_planned(self, group: int, alignments: Sequence[int]) -> bool:
        """Return whether the plan has a launch for accesses with these alignments, in bytes."""
        return self.parts.launches[self.parts.groups[group][0]].fits(alignments)

    def prepare(self, group: int, alignments: tuple[int, ...]) -> PreparedLaunch:
        """Return a launch for accesses with these alignments, in bytes.

        Threads compile without a lock, so that dispatches of compiled launches do not wait. If two threads
        need the same new launch, both compile it, and use the one that is ready first.
        """
        number = self.parts.groups[group][0]
        planned = self.parts.launches[number]
        key = number, planned.alignments if planned.fits(alignments) else alignments
        if key not in self._prepared:
            if key[1] == planned.alignments:
                span = self._spans[number]
                launch = planned.at(self._values[span]) if span.start < span.stop else planned
            else:
                values = self._values[self._first_kernel : self._first_other]
                launch = self.parts.others.launch(number, alignments, values)
            self._prepared.setdefault(key, PreparedLaunch(launch, self.device))
        return self._prepared[key]


class PreparedLaunch:
    """A launch with its code on the device."""

    def __init__(self, launch: PlannedLaunch, owner: CudaDevice) -> None:
        machine, blocks = owner.machine, launch.grid * launch.kernels
        # CUDA does not define early launches whose blocks must all run at once.
        self.early = machine.launches_early and not launch.cooperative
        least, most = (each * machine.multiprocessors for each in _CROWDED)
        is_crowded = least < blocks < most
        self.gains_early = self.early and launch.gains_early and not is_crowded
        if self.gains_early and blocks <= machine.multiprocessors:
            # No two blocks may share the multiprocessor that is free first. With half of the shared memory
            # each, they do not fit, because CUDA reserves some of it for each block.
            launch = launch.with_shared_bytes(max(launch.shared_bytes, machine.shared_bytes // 2))
        self.launch, self.maps = launch, launch.sized_maps()
        with owner.current():
            self.function = owner.function(launch.cubin.code, launch.shared_bytes)
        self.content = launch.layout.pack(launch.numbers)
        """The parameters of each kernel of the launch, without addresses."""


class CudaInstance:
    """A program with its buffers, for one dispatch at a time.

    `dispatch` waits for the device, runs and waits. `enqueue` only adds the work to a stream of the caller.
    In the order of this stream, the inputs must be ready, and the last dispatch of the instance complete.
    """

    def __init__(self, executable: CudaExecutable, launches: Sequence[int], arena: int | None) -> None:
        self._executable = executable
        self.device = executable.device
        self._addresses = [0] * executable.buffer_count
        self._own = self.device.allocate(executable.arena_bytes) if arena is None else None
        self._addresses[executable.arena] = self._own.address if self._own else arena or 0
        self._bindings = [_Binding(executable, number) for number in launches]
        self._users: dict[int, list[int]] = {}
        """The bindings that read or write each buffer, by their numbers."""
        for number, binding in enumerate(self._bindings):
            for buffer in binding.buffers:
                self._users.setdefault(buffer, []).append(number)
        self._launchers: list[Callable[[], None]] = []
        self._stale = set[int]()
        """The bindings whose launchers are of other addresses or sizes."""
        self._stream = 0
        self._scratch: Memory | None = None
        self._kept: object = None

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element, in device memory: inputs first, then outputs."""
        if self._addresses[buffer] != address:
            self._addresses[buffer] = address
            self._stale.update(self._users.get(buffer, ()))

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
        if not self._launchers or stream != self._stream:
            self.device.free_retired(stream)
            self._launchers = [binding.launcher(self._addresses, stream) for binding in self._bindings]
            self._stream = stream
            for number in range(len(self._bindings)):
                self._let_next_begin(number)
        elif self._stale:
            self.device.free_retired(stream)
            for number in self._stale:
                self._launchers[number] = self._bindings[number].launcher(self._addresses, stream)
            for number in self._stale:
                self._let_next_begin(number - 1)
                self._let_next_begin(number)
        else:
            return
        self._stale.clear()
        self._share_scratch()

    def timers(self) -> list[Timer]:
        """Return a timer for an empty run and one for each kernel, on the device's own stream. If a launch
        runs several kernels, it is timed as the first, and the others take no time."""
        with self.device.current():
            self.prepare(int(self.device.stream))
        work: dict[int, Callable[[], object]] = {}
        for binding, launch in zip(self._bindings, self._launchers, strict=True):
            work |= dict.fromkeys(binding.kernels, _nothing) | {binding.kernels[0]: launch}
        return [partial(self.device.seconds, each) for each in (_nothing, *(work[n] for n in sorted(work)))]

    def _let_next_begin(self, number: int) -> None:
        """Tell a launch whether the next one gains if it is launched early. The first one follows the last,
        because dispatches are often repeated."""
        follower = self._bindings[(number + 1) % len(self._bindings)]
        self._bindings[number].let_next_begin(follower.gains_early)

    def _share_scratch(self) -> None:
        """Give all kernels the same scratch memory. They run one after the other, and keep nothing in it."""
        needed = max((binding.scratch_bytes for binding in self._bindings), default=0)
        if not needed:
            return
        if self._scratch is None or self._scratch.size < needed:
            self._scratch = self.device.allocate(needed)
        for binding in self._bindings:
            binding.use_scratch(self._scratch.address)

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
    """An instance of a program with traced sizes, which may change between two dispatches.

    Most launches of a step that generates text are those of the step before. They are not made again.
    """

    def __init__(self, executable: CudaExecutable) -> None:
        super().__init__(executable, executable.dispatched, 0)
        self._traced = executable
        self.values: Array | None = None
        self._before: Array | None = None
        """The values of the launches."""

    @property
    def tensors(self) -> dict[int, tuple[int, int, bool]]:
        """The tensors of the executable for the present sizes."""
        return self._executable.tensors

    def resize(self, values: Array) -> None:
        """Use other values of the sizes of the executable, perhaps with others behind them."""
        own, before = values[: len(self._traced.sizes)], self._before
        # Launches are all made again if an error ends this.
        self.values = self._before = None
        self._executable = executable = self._traced.at(own)
        changed = None if before is None else executable.changed(before, own)
        for number, binding in enumerate(self._bindings):
            if changed is None or number in changed or binding.is_other:
                binding.resize(executable)
                self._stale.add(number)
        self.values, self._before = values, own


class CudaHostedInstance:
    """A program with traced sizes over tensors in host memory. A dispatch copies them to the device and back.

    Args:
        instance: the program over memory of the device.
        input_count: the number of its inputs.
    """

    enqueue = None

    def __init__(self, instance: CudaSizedInstance, input_count: int) -> None:
        self._instance, self._input_count = instance, input_count
        self.values: Array | None = None
        self._tensors: dict[int, tuple[int, int, bool]] = {}
        self._copies: dict[int, Memory] = {}
        self._hosts: dict[int, int] = {}
        self._kept: object = None

    def resize(self, values: Array) -> None:
        """Use other values of the sizes of the executable, perhaps with others behind them."""
        self.values = None
        self._instance.resize(values)
        self._tensors = self._instance.tensors
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
        instance, device = self._instance, self._instance.device
        stream, results = int(device.stream), []
        for buffer, host in self._hosts.items():
            first, size, is_dense = self._tensors[buffer]
            memory = self._copies.get(buffer)
            if memory is None or memory.size < size:
                memory = self._copies[buffer] = device.allocate(size, cleared=False)
            instance.bind(buffer, memory.address - first)
            copy = memory.address, host + first, size
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


class _Binding:
    """The kernels of one launch of an instance, with their parameters in memory."""

    def __init__(self, executable: CudaExecutable, number: int) -> None:
        self._executable, self._number = executable, number
        self.kernels = executable.kernels_of(number)
        self._accesses = [executable.accesses(kernel) for kernel in self.kernels]
        self.buffers = {buffer for each in self._accesses for buffer, _ in each if buffer is not None}
        # The addresses of the accesses are the first words.
        self._write_bases = struct.Struct(f"<{len(self._accesses[0])}q").pack_into
        self._are_addresses = [buffer is not None for buffer, _ in self._accesses[0]]
        self._widest = (VECTOR_BYTES,) * len(self._are_addresses)
        self._alignments: tuple[int, ...] = ()
        self._stream = 0
        self._content = ctypes.create_string_buffer(0)
        self._config = LaunchConfig()
        self._counters: Memory | None = None
        self._scratch_word = 0
        self._maps: list[list[EncodedMap]] = []
        self._size = self._map_offset = 0
        self._launcher: Callable[[], None]
        self.scratch_bytes = 0
        self._early = self._lets_next_begin = False
        self._next_word = 0
        self.gains_early = False
        """True if it gains from being launched before the previous launch has ended."""
        self.is_other = False
        """True if the tensors are not aligned as the plan says."""

    def resize(self, executable: CudaExecutable) -> None:
        """Use an executable of other sizes, which change the launch."""
        self._executable, self._alignments = executable, ()
        self._accesses = [executable.accesses(kernel) for kernel in self.kernels]

    def launcher(self, addresses: list[int], stream: int) -> Callable[[], None]:
        """Return a function that launches the kernels over buffers at `addresses`."""
        bases = [
            [_signed(offset) if buffer is None else addresses[buffer] + offset for buffer, offset in accesses]
            for accesses in self._accesses
        ]
        alignments = self._alignments_of(bases)
        if alignments != self._alignments or stream != self._stream:
            prepared = self._executable.prepare(self._number, alignments)
            if alignments != self._alignments:
                self._write(prepared)
                self._prepare_sharing(prepared)
                self._early, self.gains_early = prepared.early, prepared.gains_early
                self._next_word = prepared.launch.layout.lets_next_begin * _WORD
                self.is_other = not self._executable.is_planned(self._number, alignments)
                self._lets_next_begin = False
            self._launcher = launcher(
                prepared.function, prepared.launch, self._content, stream, prepared.early, self._config
            )
            self._alignments, self._stream = alignments, stream
        for place, (of_kernel, maps) in enumerate(zip(bases, self._maps, strict=True)):
            self._write_bases(self._content, place * self._size, *of_kernel)
            for encoded in maps:
                encoded.write(of_kernel[encoded.map.access])
        return self._launcher

    def _alignments_of(self, bases: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Return the alignments of accesses, given their addresses in all kernels."""
        bits = 0
        for of_kernel in bases:
            for base, is_address in zip(of_kernel, self._are_addresses, strict=True):
                if is_address:
                    bits |= base
        if not bits % VECTOR_BYTES:
            return self._widest
        every = zip(zip(*bases, strict=True), self._are_addresses, strict=True)
        return tuple(
            [min(map(alignment_of, each)) if is_address else VECTOR_BYTES for each, is_address in every]
        )

    def _write(self, prepared: PreparedLaunch) -> None:
        """Write the parameters of the launch. Tensor maps that do not change stay as they are encoded."""
        size, count = len(prepared.content), len(self.kernels)
        offset, maps = prepared.launch.layout.map_offset, prepared.maps
        if (size, offset(0)) != (self._size, self._map_offset):
            self._content, self._maps = ctypes.create_string_buffer(count * size), [[]] * count
            self._size, self._map_offset = size, offset(0)
        begin = ctypes.addressof(self._content)
        before_maps = self._map_offset if maps else size
        for place, known in enumerate(self._maps):
            first = begin + place * size
            ctypes.memmove(first, prepared.content, before_maps)
            kept = [each if each.map == map else None for each, map in zip(known, maps, strict=False)]
            self._maps[place] = [
                each or EncodedMap(map, first + offset(number))
                for number, (each, map) in enumerate(zip_longest(kept, maps))
            ]

    def let_next_begin(self, gains: bool) -> None:
        """Let the next launch begin with this one, if that gains."""
        lets = gains and self._early
        if lets != self._lets_next_begin:
            self._lets_next_begin = lets
            for place in range(len(self.kernels)):
                struct.pack_into("<q", self._content, place * self._size + self._next_word, lets)

    def _prepare_sharing(self, prepared: PreparedLaunch) -> None:
        """Allocate the counters of a launch whose blocks share work, and note its scratch memory."""
        launch, layout = prepared.launch, prepared.launch.layout
        self.scratch_bytes = launch.scratch_bytes
        if launch.scratch_bytes:
            assert layout.scratch is not None
            self._scratch_word = layout.scratch * _WORD
        if launch.counters_bytes:
            assert layout.counters is not None
            if self._counters is None or self._counters.size < launch.counters_bytes:
                self._counters = self._executable.device.allocate(launch.counters_bytes)
            struct.pack_into("<q", self._content, layout.counters * _WORD, self._counters.address)

    def use_scratch(self, address: int) -> None:
        """Set the address of the scratch memory, if the launch needs any."""
        if self.scratch_bytes:
            struct.pack_into("<q", self._content, self._scratch_word, address)


def _signed(number: int) -> int:
    """Return the number of 64 bits to which an integer wraps."""
    return (number + 2**63) % 2**64 - 2**63
