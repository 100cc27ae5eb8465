"""A program compiled for a CUDA device: its launches, and instances that enqueue them."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from typing import Any

from opendml.compiler.fuse import fuse
from opendml.compiler.kernel import Kernel
from opendml.compiler.simplify import simplify
from opendml.program.program import Program
from opendml.targets.cuda.compile import cubin_of
from opendml.targets.cuda.driver import CudaDevice, Memory, device
from opendml.targets.cuda.launch import VECTOR_BYTES, Launch
from opendml.targets.cuda.launcher import launcher
from opendml.targets.cuda.parameters import Parameters
from opendml.targets.cuda.schedule import schedule

_WORD = struct.calcsize("<q")


class CudaExecutable:
    """A program for the device `device_index`. Kernels are compiled when first needed, for the alignment of
    what is bound.

    Raises:
        InvalidArgument: no such device.
        Unsupported: CUDA is not available; the message says what is missing.
    """

    def __init__(self, program: Program, device_index: int = 0) -> None:
        self.device = device(device_index)
        kernels = fuse(Program(program.inputs, program.outputs, simplify(program.results)))
        self.kernels, self.arena, self.arena_bytes = kernels.kernels, kernels.arena, kernels.arena_bytes
        self._prepared: dict[tuple[int, tuple[int, ...]], PreparedLaunch] = {}
        self._lock = threading.Lock()
        # What packed and aligned tensors need is compiled now: errors come early, and the first dispatch is
        # fast.
        for number, kernel in enumerate(self.kernels):
            self.prepare(number, (VECTOR_BYTES,) * (len(kernel.loads) + len(kernel.stores)))

    @property
    def temporary_bytes(self) -> int:
        """The arena of each instance."""
        return self.arena_bytes

    def instantiate(self) -> CudaInstance:
        """A new instance with nothing bound."""
        return CudaInstance(self)

    def prepare(self, number: int, alignments: tuple[int, ...]) -> PreparedLaunch:
        """The launch of a kernel for accesses that are aligned to so many bytes; made at most once."""
        with self._lock:
            prepared = self._prepared.get((number, alignments))
            if prepared is None:
                launch = schedule(self.kernels[number], self.device.machine, alignments)
                prepared = self._prepared[number, alignments] = PreparedLaunch(launch, self.device)
            return prepared


class PreparedLaunch:
    """A launch with its code on the device."""

    def __init__(self, launch: Launch, owner: CudaDevice) -> None:
        self.launch = launch
        owner.activate()
        code = cubin_of(launch.pattern, owner.machine.architecture)
        self.function = owner.function(code, launch.cluster, launch.shared_bytes)
        self.grid = launch.grid
        if launch.resident:
            clusters = owner.resident_clusters(
                self.function, launch.block, launch.shared_bytes, launch.cluster
            )
            self.grid = min(launch.grid, max(1, clusters) * launch.cluster)
        self.parameters = Parameters(launch.pattern)
        self.content = self.parameters.pack(launch.values, launch.share)


class CudaInstance:
    """A program with its buffers: one dispatch at a time.

    `dispatch` runs on a stream of the device's own and waits; `enqueue` only adds the work to a stream of the
    caller, in whose order the inputs must be ready.
    """

    def __init__(self, executable: CudaExecutable) -> None:
        self._executable = executable
        self._device = executable.device
        self._device.activate()
        self._addresses = [0] * (executable.arena + 1)
        self._arena = self._device.allocate(executable.arena_bytes)
        self._addresses[executable.arena] = self._arena.address
        self._bindings = [
            _Binding(executable, number, kernel) for number, kernel in enumerate(executable.kernels)
        ]
        self._launchers: list[Callable[[], None]] = []
        self._stream = 0
        self._kept: object = None
        self._thread = threading.get_ident()

    def bind(self, buffer: int, address: int) -> None:
        """Sets the address of a tensor's first element, in device memory: inputs first, then outputs."""
        if self._addresses[buffer] != address:
            self._addresses[buffer] = address
            self._launchers = []

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as this one."""
        self._kept = memory

    def dispatch(self) -> None:
        """Runs the program and returns when the results are there."""
        self.enqueue(int(self._device.stream))
        self._device.synchronize(self._device.stream)

    def enqueue(self, stream: int) -> None:
        """Adds the program to a stream, given by its handle as an integer (0: the default stream).

        Raises:
            Unsupported: no memory for what a kernel needs beside the tensors.
            DeviceRemoved: the device failed, maybe in earlier work.
        """
        if not self._launchers or stream != self._stream or threading.get_ident() != self._thread:
            self._resolve(stream)
        for launch in self._launchers:
            launch()

    def _resolve(self, stream: int) -> None:
        """Prepares the launches for the addresses that are bound, and for the stream and the calling
        thread."""
        self._device.activate()
        self._thread, self._stream = threading.get_ident(), stream
        self._launchers = [binding.launcher(self._addresses, stream) for binding in self._bindings]


class _Binding:
    """One kernel of an instance, with its parameters in memory."""

    def __init__(self, executable: CudaExecutable, number: int, kernel: Kernel) -> None:
        self._executable, self._number = executable, number
        self._accesses = [(access.buffer, access.offset) for access in (*kernel.loads, *kernel.stores)]
        self._prepared: PreparedLaunch | None = None
        self._content: Any = None
        self._memory: Memory | None = None

    def launcher(self, addresses: list[int], stream: int) -> Callable[[], None]:
        """A function that launches the kernel over buffers at `addresses`."""
        bases = [0 if buffer is None else addresses[buffer] + offset for buffer, offset in self._accesses]
        prepared = self._executable.prepare(self._number, tuple(map(_alignment, bases)))
        if prepared is not self._prepared:
            self._prepared = prepared
            self._content = ctypes.create_string_buffer(prepared.content, len(prepared.content))
            self._memory = self._room(prepared)
        # The addresses of the accesses are the first words.
        struct.pack_into(f"<{len(bases)}q", self._content, 0, *bases)
        return launcher(prepared.function, prepared.launch, prepared.grid, self._content, stream)

    def _room(self, prepared: PreparedLaunch) -> Memory | None:
        """Memory for a launch's counters, then its scratch."""
        launch = prepared.launch
        if not launch.counters_bytes:
            return None
        counters_bytes = -(-launch.counters_bytes // VECTOR_BYTES) * VECTOR_BYTES
        memory = self._executable.device.allocate(counters_bytes + launch.scratch_bytes)
        words = prepared.parameters.words
        for name, address in (("counters", memory.address), ("scratch", memory.address + counters_bytes)):
            struct.pack_into("<q", self._content, words.index(name) * _WORD, address)
        return memory


def _alignment(address: int) -> int:
    """The greatest power of two up to VECTOR_BYTES that divides an address."""
    return min(address & -address, VECTOR_BYTES) if address else VECTOR_BYTES
