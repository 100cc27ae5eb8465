"""A program compiled for a CUDA device: its launches, and instances that enqueue them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray

from opendml.compiler.fuse import Abilities, fuse
from opendml.compiler.kernel import Kernel, KernelProgram
from opendml.compiler.prices import Prices
from opendml.compiler.simplify import simplify
from opendml.compiler.sized import numbers_in, plain, with_numbers
from opendml.program.program import Program
from opendml.targets.arenas import Arenas
from opendml.targets.common.kinds import KernelKind, kind_of
from opendml.targets.cuda.channels_last import with_channels_last
from opendml.targets.cuda.compile import cubins_of
from opendml.targets.cuda.driver import CudaDevice, device
from opendml.targets.cuda.image_layouts import with_images_channels_last
from opendml.targets.cuda.launch import VECTOR_BYTES, CudaLaunch, alignment_of
from opendml.targets.cuda.launch_groups import launch_groups, launch_of_group
from opendml.targets.cuda.launcher import LaunchConfig, launcher
from opendml.targets.cuda.machine import CudaMachine
from opendml.targets.cuda.memory import Memory, scratch
from opendml.targets.cuda.parameters import ParameterStruct
from opendml.targets.cuda.pattern import EARLY_MODES
from opendml.targets.cuda.rolled_windows import with_windows_rolled
from opendml.targets.cuda.schedule import schedule
from opendml.targets.cuda.schedule_chain import is_chained
from opendml.targets.cuda.stored_operands import stored_operands
from opendml.targets.cuda.tensor_map import EncodedMap
from opendml.targets.cuda.traced_launches import TracedKernel, TracedLaunch, TracedLaunches
from opendml.targets.kept import Kept, KeptConstants
from opendml.targets.planned import Planned, Timer

_WORD = struct.calcsize("<q")
_CROWDED = 0.5, 0.7
"""Blocks for each multiprocessor, between which a grid loses by an early launch. Its blocks do not all fit
beside the kernel before, and crowd on the multiprocessors that are free first. Of 132 multiprocessors, a
convolution with 80 blocks took 24.3 us rather than 18.7, and those with 98 gained 0.8 us (H100)."""
Array = ndarray[Any, Any]
T = TypeVar("T")


Scheduler = Callable[[Kernel, CudaMachine, Sequence[int]], CudaLaunch]
"""The function that finds the launch of a kernel."""


class CudaExecutable:
    """A program for the device `device_index`. Kernels are compiled when first needed, for the alignment of
    what is bound.

    Raises:
        InvalidArgument: no such device.
        Unsupported: CUDA is not available; the message says what is missing.
    """

    def __init__(
        self,
        program: Program,
        device_index: int = 0,
        scheduler: Scheduler = schedule,
        kernels: KernelProgram | None = None,
    ) -> None:
        self.device, self._scheduler = device(device_index), scheduler
        kernels = kernels or fused(program, self.device.machine)
        self.kernels = (*kernels.kernels, *kernels.initializers)
        """The kernels of a dispatch, then those of the initialization."""
        self.arena, self.arena_bytes = kernels.arena, kernels.arena_bytes
        self._initializer_bytes = kernels.initializer_arena_bytes
        self._first = {
            number: repeat.first + (number - repeat.first) % repeat.length
            for repeat in kernels.repeats
            for number in range(repeat.first, repeat.first + repeat.count * repeat.length)
        }
        """For each kernel of a recurrence, the kernel of the first step, which has an equal launch."""
        self._dispatched: list[tuple[int, ...]] = [(number,) for number in range(len(kernels.kernels))]
        if scheduler is schedule:
            self._dispatched = launch_groups(kernels.kernels, self._first, self.device.machine)
        self._initializers = [(number,) for number in range(len(kernels.kernels), len(self.kernels))]
        self._counts = {group[0]: len(group) for group in (*self._dispatched, *self._initializers)}
        """The number of kernels of each launch, by the number of its first one."""
        read = {load.buffer for kernel in kernels.kernels for load in kernel.loads if load.fixed}
        self._first_prepared = kernels.first_prepared
        self._prepared_count = len(kernels.prepared)
        self.buffer_count = kernels.buffer_count
        first_step = min(self._prepared_count, 1)
        copied = {number: program.inputs[number] for number in sorted(program.constants & read)}
        self._constants = KeptConstants(copied, first_step)
        self.kept = [Kept(each.size, each.recipe, 0) for each in kernels.prepared] + self._constants.kept
        """Prepared tensors, then the constants that kernels read as they are."""
        self._prepared: dict[tuple[int, tuple[int, ...]], PreparedLaunch] = {}
        # Code for packed and aligned tensors is compiled now, so errors come early and the first dispatch is
        # fast.
        self._prepare(
            [
                (number, (VECTOR_BYTES,) * (len(kernel.loads) + len(kernel.stores)))
                for number, kernel in enumerate(self.kernels)
                if number in self._counts and self._first.get(number, number) == number
            ]
        )

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance."""
        return self.arena_bytes

    def accesses(self, number: int) -> list[tuple[int | None, int]]:
        """Return the buffers and the offsets of the accesses of a kernel."""
        return [(access.buffer, access.offset) for access in self.kernels[number].accesses]

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""
        loads = (load for (number,) in self._initializers for load in self.kernels[number].loads)
        return {load.buffer for load in loads if load.buffer is not None and load.buffer < self.arena}

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Prepare tensors over memory of the device.

        Raises:
            Unsupported: out of memory.
            DeviceRemoved: the device failed, maybe in earlier work.
        """
        arena = self.device.allocate(self._initializer_bytes)
        instance = CudaInstance(self, self._initializers, arena.address)
        for number, address in constants.items():
            instance.bind(number, address)
        for place, address in addresses.items():
            instance.bind(self._first_prepared + place, address)
        instance.dispatch()

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> CudaInstance:
        """Return a new instance with nothing bound but its constants. If it may share arenas, each dispatch
        takes one in the order of its stream."""
        is_sharing = arenas is not None and arena is None and self.arena_bytes > 0
        kind = CudaScratchInstance if is_sharing else CudaInstance
        instance = kind(self, self._dispatched, 0 if is_sharing else arena)
        self._bind_kept(instance, kept)
        return instance

    def _bind_kept(self, instance: CudaInstance, kept: Sequence[int]) -> None:
        """Bind an instance to prepared tensors and constants."""
        prepared = self._prepared_count
        for buffer, address in enumerate(kept[:prepared], self._first_prepared):
            instance.bind(buffer, address)
        self._constants.bind(instance, kept[prepared:])

    def instantiate_without_arena(self) -> CudaInstance:
        """Return a new instance with nothing bound, which holds no memory for temporaries."""
        kind = CudaScratchInstance if self.arena_bytes else CudaInstance
        return kind(self, self._dispatched, 0)

    def prepare(self, number: int, alignments: tuple[int, ...]) -> PreparedLaunch:
        """Return the launch of a kernel, and of others with it, for accesses with these alignments, in bytes.

        Threads compile without a lock, so that dispatches of compiled launches do not wait. If two threads
        need the same new launch, both compile it, and use the one that is ready first.
        """
        key = self._first.get(number, number), alignments
        if key not in self._prepared:
            self._prepare([key])
        return self._prepared[key]

    def _prepare(self, wanted: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """Make launches, given by kernels and alignments."""
        machine = self.device.machine
        launches = [
            launch_of_group(self.kernels[number], self._counts[number], machine, alignments)
            if self._counts[number] > 1
            else self._scheduler(self.kernels[number], machine, alignments)
            for number, alignments in wanted
        ]
        codes = cubins_of([launch.pattern for launch in launches], machine.architecture)
        for each, launch, code in zip(wanted, launches, codes, strict=True):
            self._prepared.setdefault(each, PreparedLaunch(launch, code, self.device))


class CudaTracedProgram:
    """A program with traced sizes, as kernels. It is compiled for one bucket of sizes after another."""

    def __init__(self, program: Program, device_index: int = 0) -> None:
        self._program, self._index = program, device_index
        machine = device(device_index).machine
        self._kernels, self._launches = fused(program, machine), TracedLaunches(machine)

    image_dimensions: frozenset[str] = frozenset()
    """None: sizes of images cost nothing as launch parameters."""

    def at(self, sizes: Mapping[str, int]) -> CudaTracedProgram:
        """Return the program itself: its plans serve all sizes."""
        return self

    def compile(self) -> CudaTracedExecutable | None:
        """Choose launches for the hints of the trace, and construct them with traced sizes.

        Return None for recurrences, and if prepared constants depend on traced sizes.
        """
        kernels, machine = self._kernels, device(self._index).machine
        if not all(_is_computed(kernel, machine) for kernel in kernels.kernels):
            # Attention that was fused for other hints has more queries now than one kernel computes.
            kernels = fused(self._program, machine)
        prepared = tuple([each.size for each in kernels.prepared])
        if kernels.repeats or numbers_in((kernels.initializers, prepared, kernels.initializer_arena_bytes)):
            return None
        launches = self._launches.of((*kernels.kernels, *kernels.initializers))
        new = {id(each): each for _, each in launches if not each.code}.values()
        codes = cubins_of([each.launch.pattern for each in new], machine.architecture)
        for each, code in zip(new, codes, strict=True):
            each.code = code
        return CudaTracedExecutable(self._program, kernels, launches, self._index)


class CudaTracedExecutable(CudaExecutable):
    """A program with traced sizes, or for one size of these (`at`).

    Launches are made for tensors that are aligned as for the hints. Others are made for each size.
    """

    resizes_slowly = True
    """Each launch takes some 30 us to make again: BERT-base takes 5.2 ms rather than 2.2 (H100)."""

    def __init__(
        self,
        program: Program,
        kernels: KernelProgram,
        launches: Sequence[tuple[TracedKernel, TracedLaunch]],
        device_index: int,
    ) -> None:
        self._own = [kernel for kernel, _ in launches]
        self._traced = [launch for _, launch in launches]
        self._values: list[int] = []
        super().__init__(program, device_index, _schedule_alone, kernels)
        first = dict[object, int]()
        self._equal = [first.setdefault(each.key, number) for number, each in enumerate(self._traced)]
        """For each kernel, the first one whose launch is equal for all sizes. Those of equal layers are."""
        self.sizes: list[int] = []
        """All traced numbers: those of launches, offsets and kernels, and the size of the arena. Then, for
        each tensor, come its number, its first byte, its bytes, and those of all elements."""
        self._spans = list[slice]()
        owners, count = list[int](), len(self._own)
        parts = [
            *[launch.numbers for launch in self._traced],
            *[kernel.offset_numbers for kernel in self._own],
            *[kernel.numbers for kernel in self._own],
        ]
        for number, found in enumerate(parts):
            self._spans.append(slice(len(self.sizes), len(self.sizes) + len(found)))
            self.sizes += found
            owners += [number % count] * len(found)
        self.sizes.append(kernels.arena_bytes)
        self._first_tensor = len(self.sizes)
        self._input_count = len(program.inputs)
        for number, layout in enumerate((*program.inputs, *program.outputs)):
            if number not in program.constants:
                low, high = layout.span
                self.sizes += [number, low, high - low, layout.element_count * layout.type.bytes]
        self._owners = np.array([*owners, *[-1] * (len(self.sizes) - len(owners))])
        """The kernel that each traced number is of."""

    def at(self, values: Array) -> CudaTracedExecutable:
        """Return the executable for given values of `sizes`. It shares code and constants."""
        made = copy(self)
        made._values, made._prepared = values.tolist(), {}
        made.arena_bytes = made._values[self._first_tensor - 1]
        return made

    def sized_instance(
        self, kept: Sequence[int], arenas: Arenas | None, on_stream: bool = False
    ) -> CudaSizedInstance | CudaHostedInstance:
        """Return a new instance whose sizes may change, without an arena of its own."""
        instance = CudaSizedInstance(self.at(np.zeros(len(self.sizes), np.int64)))
        self._bind_kept(instance, kept)
        return instance if on_stream else CudaHostedInstance(instance, self._input_count)

    @property
    def tensors(self) -> dict[int, tuple[int, int, bool]]:
        """The first byte and the bytes of each tensor that is no constant, by its number. The last value is
        true if there are no gaps between its elements."""
        numbers = self._values[self._first_tensor :]
        every = zip(*[numbers[place::4] for place in range(4)], strict=True)
        return {number: (first, size, size == elements) for number, first, size, elements in every}

    @property
    def dispatched(self) -> Sequence[tuple[int, ...]]:
        """The kernels of each launch of a dispatch."""
        return self._dispatched

    def changed(self, before: Array, values: Array) -> set[int]:
        """Return the kernels whose launches differ between values of `sizes`."""
        return set(self._owners[np.flatnonzero(before != values)].tolist())

    def accesses(self, number: int) -> list[tuple[int | None, int]]:
        """Return the buffers and the offsets of the accesses of a kernel."""
        return self._own[number].accesses_at(self._values[self._spans[len(self._own) + number]])

    def prepare(self, number: int, alignments: tuple[int, ...]) -> PreparedLaunch:
        """Return the launch of a kernel for accesses with these alignments, in bytes."""
        traced = self._traced[number]
        if traced.alignments != alignments:
            return super().prepare(number, alignments)
        key = self._equal[number], alignments
        if key not in self._prepared:
            launch = traced.sized(self._values[self._spans[number]])
            self._prepared[key] = PreparedLaunch(launch, traced.code, self.device, traced.parameters)
        return self._prepared[key]

    def _sized(self, part: T, number: int) -> T:
        """Return the part of a number with values in place of its traced numbers."""
        numbers = self._values[self._spans[number]]
        return with_numbers(part, numbers) if numbers else part

    def _prepare(self, wanted: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """Make launches for one size, beside the traced ones."""
        if self._values:
            first = 2 * len(self._own)
            self.kernels = tuple(
                [self._sized(each.kernel, number) for number, each in enumerate(self._own, first)]
            )
            super()._prepare(wanted)


def _schedule_alone(kernel: Kernel, machine: CudaMachine, alignments: Sequence[int]) -> CudaLaunch:
    """Return the launch of a kernel that shares none with others."""
    return schedule(kernel, machine, alignments)


def _is_computed(kernel: Kernel, machine: CudaMachine) -> bool:
    """Return whether one launch computes a kernel: all but some attention."""
    return kind_of(kernel) is not KernelKind.ATTENTION or is_chained(plain(kernel), machine)


def plan(program: Program, machine: CudaMachine) -> Planned:
    """Return the kernels of a program, and the modes in which they are run where all tensors are aligned."""
    kernels = fused(program, machine)

    def mode(kernel: Kernel) -> str:
        aligned = (VECTOR_BYTES,) * (len(kernel.loads) + len(kernel.stores))
        return schedule(kernel, machine, aligned).pattern.mode.name.lower()

    return Planned(kernels, tuple((mode(kernel),) for kernel in kernels.kernels))


def fused(program: Program, machine: CudaMachine) -> KernelProgram:
    """Return the kernels of a program for a device. Costs are those for the hints of traced sizes."""
    simple = replace(program, results=simplify(program.results))
    abilities = Abilities(
        computes_attention=partial(is_chained, machine=machine),
        stored_operands=partial(stored_operands, machine),
        # Layouts of images that change are not compared with each other.
        arranged=None if numbers_in(program.inputs) else partial(with_images_channels_last, machine=machine),
        prices=Prices(machine.operations_per_byte),
    )
    return with_windows_rolled(with_channels_last(fuse(simple, abilities), machine), machine)


class PreparedLaunch:
    """A launch with its code on the device."""

    def __init__(
        self, launch: CudaLaunch, code: bytes, owner: CudaDevice, parameters: ParameterStruct | None = None
    ) -> None:
        machine, blocks = owner.machine, launch.grid * launch.kernels
        # CUDA does not define early launches whose blocks must all run at once.
        self.early = machine.launches_early and not launch.cooperative
        least, most = (each * machine.multiprocessors for each in _CROWDED)
        is_crowded = least < blocks < most
        self.gains_early = self.early and launch.pattern.mode in EARLY_MODES and not is_crowded
        if self.gains_early and blocks <= machine.multiprocessors:
            # No two blocks may share the multiprocessor that is free first. With half of the shared memory
            # each, they do not fit, because CUDA reserves some of it for each block.
            launch = replace(launch, shared_bytes=max(launch.shared_bytes, machine.shared_bytes // 2))
        self.launch = launch
        with owner.current():
            self.function = owner.function(code, launch.shared_bytes)
        self.parameters = parameters or ParameterStruct(launch.pattern)
        self.content = self.parameters.pack(launch.values)
        """The parameters of each kernel of the launch, without addresses."""


class CudaInstance:
    """A program with its buffers, for one dispatch at a time.

    `dispatch` waits for the device, runs and waits. `enqueue` only adds the work to a stream of the caller.
    In the order of this stream, the inputs must be ready, and the last dispatch of the instance complete.
    """

    def __init__(
        self, executable: CudaExecutable, launches: Sequence[tuple[int, ...]], arena: int | None
    ) -> None:
        self._executable = executable
        self.device = executable.device
        self._addresses = [0] * executable.buffer_count
        self._own = self.device.allocate(executable.arena_bytes) if arena is None else None
        self._addresses[executable.arena] = self._own.address if self._own else arena or 0
        self._bindings = [_Binding(executable, numbers) for numbers in launches]
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
            work |= dict.fromkeys(binding.numbers, _nothing) | {binding.numbers[0]: launch}
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

    def __init__(self, executable: CudaTracedExecutable) -> None:
        super().__init__(executable, executable.dispatched, 0)
        self._traced = executable
        self.values: Array | None = None
        self._before: Array | None = None
        """The values of the launches."""

    @property
    def tensors(self) -> dict[int, tuple[int, int, bool]]:
        """The tensors of the executable for the present sizes."""
        assert isinstance(self._executable, CudaTracedExecutable)
        return self._executable.tensors

    def resize(self, values: Array) -> None:
        """Use other values of the sizes of the executable, perhaps with others behind them."""
        own, before = values[: len(self._traced.sizes)], self._before
        # Launches are all made again if an error ends this.
        self.values = self._before = None
        self._executable = executable = self._traced.at(own)
        changed = None if before is None else executable.changed(before, own)
        for number, binding in enumerate(self._bindings):
            if changed is None or not changed.isdisjoint(binding.numbers):
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

    def __init__(self, executable: CudaExecutable, numbers: tuple[int, ...]) -> None:
        self._executable, self.numbers = executable, numbers
        self._accesses = [executable.accesses(number) for number in numbers]
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

    def resize(self, executable: CudaTracedExecutable) -> None:
        """Use an executable of other sizes, which change the launch."""
        self._executable, self._alignments = executable, ()
        self._accesses = [executable.accesses(number) for number in self.numbers]

    def launcher(self, addresses: list[int], stream: int) -> Callable[[], None]:
        """Return a function that launches the kernels over buffers at `addresses`."""
        bases = [
            [_signed(offset) if buffer is None else addresses[buffer] + offset for buffer, offset in accesses]
            for accesses in self._accesses
        ]
        alignments = self._alignments_of(bases)
        if alignments != self._alignments or stream != self._stream:
            prepared = self._executable.prepare(self.numbers[0], alignments)
            if alignments != self._alignments:
                self._write(prepared)
                self._prepare_sharing(prepared)
                self._early, self.gains_early = prepared.early, prepared.gains_early
                self._next_word = prepared.parameters.words.index("lets_next_begin") * _WORD
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
        size, count = len(prepared.content), len(self.numbers)
        offset, maps = prepared.parameters.map_offset, prepared.launch.maps
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
            for place in range(len(self.numbers)):
                struct.pack_into("<q", self._content, place * self._size + self._next_word, lets)

    def _prepare_sharing(self, prepared: PreparedLaunch) -> None:
        """Allocate the counters of a launch whose blocks share work, and note its scratch memory."""
        launch, words = prepared.launch, prepared.parameters.words
        self.scratch_bytes = launch.scratch_bytes
        if launch.scratch_bytes:
            self._scratch_word = words.index("scratch") * _WORD
        if launch.counters_bytes:
            if self._counters is None or self._counters.size < launch.counters_bytes:
                self._counters = self._executable.device.allocate(launch.counters_bytes)
            struct.pack_into("<q", self._content, words.index("counters") * _WORD, self._counters.address)

    def use_scratch(self, address: int) -> None:
        """Set the address of the scratch memory, if the launch needs any."""
        if self.scratch_bytes:
            struct.pack_into("<q", self._content, self._scratch_word, address)


def _signed(number: int) -> int:
    """Return the number of 64 bits to which an integer wraps."""
    return (number + 2**63) % 2**64 - 2**63
