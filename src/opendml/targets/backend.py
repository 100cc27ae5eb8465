"""A backend is the interface of a device to the runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol

import numpy as np

from opendml.errors import InvalidArgument
from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.spec.wording import shown
from opendml.targets.executable import Executable, Instance, Runnable, TracedExecutable, TracedProgram
from opendml.targets.hosted import HostedInstance
from opendml.targets.memory import OwnMemory, Place, TensorMemory
from opendml.targets.planned import Planned, Timer

Array = np.ndarray[Any, np.dtype[Any]]

MOST_THREADS = 1024
"""Threads that may share a dispatch, at most. Each needs scratch memory in the arenas."""


def require_threads(threads: object) -> None:
    """Raise InvalidArgument unless an argument is a number of threads, or None."""
    if threads is not None and (not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS):
        raise InvalidArgument(f"threads: {shown(threads)}; 1 to {MOST_THREADS}, or None for all")


class DeviceBackend(ABC):
    """A device as the runtime sees it.

    The runtime uses no module of a target, and no attribute of an object of a target, beside these methods.
    A target has a package `targets/NAME` with an executable, and a backend in `backend.py`, which
    `targets/registry.py` names. A device that works in host memory derives its backend from `HostBackend`,
    and defines only how programs are compiled. A device with memory and streams of its own derives it from
    `StreamBackend`. It also defines how memory is allocated and copied, and how arrays of other libraries are
    found, read and made there (`place_of`, `memory`, `call`).

    Methods raise Unsupported if memory runs out, and DeviceRemoved if the device has failed.
    """

    kind: ClassVar[str]
    """The name of the kind of device, as callers write it."""
    index: int | None = None
    """The number of the device among those of its kind. None if there can be only one."""
    place: Place | None = None
    """The device's own memory. None if it works in host memory."""
    has_plans: ClassVar[bool] = False
    """True if programs with traced sizes can be compiled (`traced`)."""
    keeps_plans: ClassVar[bool] = False
    """True if executables can be stored (`stored`)."""
    maps_constants: ClassVar[bool] = False
    """True if prepared constants may lie in a compiled file, of which programs read them."""
    joins_units: ClassVar[bool] = False
    """True if plans serve dimensions of 1 too, if their graphs were traced for larger ones."""
    hint_multiple: ClassVar[int] = 1
    """Sizes for which plans are chosen are multiples of it, where their buckets are large enough."""

    @abstractmethod
    def open(self) -> None:
        """Make sure that the device can be used.

        Raises:
            InvalidArgument: there is no device with this number, or a setting is wrong.
            Unsupported: a library or driver that the device needs is missing.
        """

    @abstractmethod
    def compile(self, program: Program, threads: int | None) -> Executable:
        """Compile a program for the device, over memory there.

        Args:
            program: the program.
            threads: host threads that may share a dispatch, at most. None: all that the process may use.
        """

    def expecting_code(self) -> AbstractContextManager[None]:
        """Prepare for programs whose code is not in the cache, while they are still traced and fused."""
        return nullcontext()

    def traced(self, program: Program, threads: int | None) -> TracedProgram:
        """Cut a program with traced sizes into kernels, on a device that has plans.

        The arguments are those of `compile`.
        """
        raise NotImplementedError(self.kind)

    @abstractmethod
    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """Compile a program without constants, and return a function that makes instances for immediate
        calls.

        There may be thousands of instances. So they own no temporary memory, but take shared memory while
        they run.
        """

    @abstractmethod
    def over_host_memory(self, instance: Instance, layouts: Sequence[Layout], input_count: int) -> Instance:
        """Return an instance that runs another one over tensors in host memory.

        Args:
            instance: has nothing bound but its constants.
            layouts: the layouts of the inputs, then of the outputs.
            input_count: how many of them are inputs.
        """

    def binder(self, instance: Instance, count: int) -> Callable[..., object]:
        """Return a function that binds the first `count` tensors of an instance of `over_host_memory`.

        It takes their addresses one after the other. The instance lives as long as its `dispatch`.
        """

        def bind(*addresses: int) -> None:
            for number, address in enumerate(addresses):
                instance.bind(number, address)

        return bind

    @abstractmethod
    def allocate(self, size: int) -> OwnMemory:
        """Allocate uninitialized memory where programs run, for arenas and constants."""

    @abstractmethod
    def create_buffer(self, size: int) -> Any:
        """Return a new array of `size` zeros of UINT8, at an address that is aligned for every binding."""

    @abstractmethod
    def empty(self, layout: Layout) -> Any:
        """Return a new packed array without defined values, with the sizes and the type of a tensor."""

    @abstractmethod
    def is_own(self, array: Any) -> bool:
        """Return whether an array was made by `empty` of this device."""

    @abstractmethod
    def upload(self, array: Array, layout: Layout) -> Any:
        """Return a copy of a host array, with the sizes and the type of `layout`, as `empty` makes it."""

    @abstractmethod
    def download(self, array: Any) -> Array:
        """Wait for all work on the device, and return a copy of one of its arrays in host memory."""

    @abstractmethod
    def stream(self, stream: Any, name: str) -> int:
        """Return the handle of a stream of the caller.

        Args:
            stream: an integer, or a stream of any library.
            name: the caller's method, for the message.

        Raises:
            InvalidArgument: this is not a stream, or the device has no streams.
        """

    @abstractmethod
    def record(self, several: Sequence[Runnable]) -> Runnable:
        """Combine bound work of this device, in its order, into one. The work must stay bound.

        Raises:
            InvalidArgument: some of the work cannot be recorded.
        """

    @abstractmethod
    def plan(self, program: Program) -> Planned | None:
        """Return the kernels and launches into which `compile` turns a program. None if the device does not
        fuse."""

    def circumstances(self) -> str:
        """Return a text of all that compiled work depends on beside the program: the machine and settings."""
        return self.kind

    def can_store(self, executable: Executable) -> bool:
        """Return whether `stored` returns JSON of an executable."""
        return False

    def stored(self, executable: Executable, written: Callable[[Any], Any]) -> dict[str, Any] | None:
        """Return an executable as JSON, from which another process makes it again. None: it cannot.

        Args:
            executable: an executable, perhaps with traced sizes.
            written: makes JSON of its numbers (`WrittenSizes`).
        """
        return None

    def from_stored(self, data: dict[str, Any], read: Callable[[Any], Any]) -> TracedExecutable | None:
        """Return the executable that `stored` has made JSON of. None: its machine code is not here.

        Args:
            data: the JSON.
            read: makes numbers of their JSON (`ReadSizes`).
        """
        return None

    def stored_traced(self, program: TracedProgram, written: Callable[[Any], Any]) -> dict[str, Any] | None:
        """Return a traced program as JSON, from which another process makes it again. None: it cannot.

        Its "constants" are the numbers of the constants that its plans may read.

        Args:
            program: the program.
            written: makes JSON of its numbers (`WrittenSizes`).
        """
        return None

    def traced_from_stored(
        self, data: dict[str, Any], read: Callable[[Any], Any], threads: int | None
    ) -> TracedProgram | None:
        """Return the traced program that `stored_traced` has made JSON of. None: the device stores none.

        Args:
            data: the JSON.
            read: makes numbers of their JSON (`ReadSizes`).
            threads: threads that share a dispatch, at most. None: all that the process may use.
        """
        return None

    @abstractmethod
    def timers(self, instance: Instance) -> list[Timer]:
        """Return timers for an instance whose tensors are all bound.

        The first one times an empty run. Each of the others times one launch of a dispatch, in their order.
        If the device has no launches, one timer times the whole dispatch.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work on the device is done."""


class StreamCall(Protocol):
    """An immediate call over arrays of other libraries on a device.

    The library of the first array chooses the stream, and makes the results.
    """

    @property
    def place(self) -> Place:
        """The device on which the arrays are."""

    @property
    def stream(self) -> int:
        """The handle of the stream."""

    def identify(self, array: Any) -> tuple[Hashable, int]:
        """Make an array ready on the stream. Return a key of all that its code depends on, and its address.

        Raises:
            BufferError: the array cannot be used in place.
        """

    def memory(self, array: Any, name: str) -> TensorMemory:
        """Make an array on the device ready on the stream, and return its memory.

        Raises:
            InvalidArgument: the array cannot be used in place, or has a type that DirectML does not have.
        """

    def empty(self, sizes: Sequence[int], type: ScalarType) -> tuple[Any, int]:
        """Return a new packed array of the library, and its address. `finished` completes it."""

    def finished(self, array: Any) -> Any:
        """Complete an array of `empty`, once the work that writes it is on the stream."""

    def copy(self, target: int, source: int, size: int) -> None:
        """Add a copy of bytes to an address on the device to the stream. They lie there or in host memory,
        which may be written to when this returns."""

    def end(self, outputs: Sequence[Any]) -> None:
        """End the call, once the work that writes these arrays of the caller is on the stream."""


class StreamBackend(DeviceBackend):
    """A device with memory and streams of its own."""

    place: Place

    def over_host_memory(self, instance: Instance, layouts: Sequence[Layout], input_count: int) -> Instance:
        """Return an instance that copies its tensors to the device and back in each dispatch."""
        return HostedInstance(instance, layouts, input_count, self.allocate)

    @abstractmethod
    def copy(self, target: int, source: int, size: int) -> None:
        """Wait for all work on the device, and copy bytes between addresses there or in host memory."""

    @abstractmethod
    def memory(self, array: Any, name: str) -> TensorMemory:
        """Return the memory of an array of any library on the device, for work that is enqueued from now on.

        Raises:
            InvalidArgument: the array cannot be used in place, or has a type that DirectML does not have.
        """

    @abstractmethod
    def over(self, address: int, layout: Layout) -> Any:
        """Return an array as `empty` makes it over memory of the caller, who keeps it alive."""

    @abstractmethod
    def call(self, first: Any) -> StreamCall:
        """Return an immediate call whose first array on a device of this kind is `first`."""
