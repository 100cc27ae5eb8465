"""Backends: all that the runtime asks of a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from opendml.program.program import Layout, Program
from opendml.program.scalar_type import ScalarType
from opendml.targets.executable import Executable, Instance, Runnable
from opendml.targets.hosted import HostedInstance
from opendml.targets.memory import OwnMemory, Place, TensorMemory
from opendml.targets.planned import Planned, Timer

Array = np.ndarray[Any, np.dtype[Any]]

MOST_THREADS = 1024
"""Threads that a caller may allow to share a dispatch; each needs its room in the arenas."""


class DeviceBackend(ABC):
    """A device as the runtime sees it, of which it knows nothing else: neither the target's modules nor the
    attributes of what they make.

    A new target, for Metal or Vulkan, say, brings a package `targets/NAME`: an executable (schedules and
    code for the kernels that `compiler.fuse` makes of a program, with instances that run them), and in its
    `backend.py` a class like this one, which `targets/registry.py` names. A device whose programs run over
    host memory derives it from `HostBackend`, and has to say only what compiles; one with memory and streams
    of its own from `StreamBackend`, and says too how memory is allocated and copied, and how it finds,
    reads and makes arrays of other libraries there (`place_of`, `memory`, `call`).

    Methods raise Unsupported where memory is out, and DeviceRemoved where the device has failed.
    """

    kind: ClassVar[str]
    """The name of its kind, as callers write it."""
    index: int | None = None
    """Its number among several of its kind; None where there is only one."""
    place: Place | None = None
    """Its own memory; None: it works in host memory."""

    @abstractmethod
    def open(self) -> None:
        """Makes sure that the device can be used.

        Raises:
            InvalidArgument: there is no device of this number, or a setting is wrong.
            Unsupported: something that it needs is missing.
        """

    @abstractmethod
    def compile(self, program: Program, threads: int | None) -> Executable:
        """A program as code for the device, over memory there. Up to `threads` threads of the host share a
        dispatch, if they compute; None: all that the process may use."""

    @abstractmethod
    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """A maker of instances of a program without constants, for immediate calls: there may be thousands,
        so they hold no memory for temporaries, but share what they take when they run."""

    @abstractmethod
    def over_host_memory(self, instance: Instance, layouts: Sequence[Layout], input_count: int) -> Instance:
        """An instance that runs `instance`, which has nothing bound but its constants, over tensors in host
        memory: the first `input_count` of `layouts` are its inputs, the others its outputs."""

    @abstractmethod
    def allocate(self, size: int) -> OwnMemory:
        """Memory with any content where programs run: arenas, and what stays of constants."""

    @abstractmethod
    def create_buffer(self, size: int) -> Any:
        """A new array of `size` zeros of UINT8, at an address that suits every binding."""

    @abstractmethod
    def empty(self, layout: Layout) -> Any:
        """A new packed array with any values, of a tensor's sizes and type."""

    @abstractmethod
    def is_own(self, array: Any) -> bool:
        """Whether an array is one that `empty` makes, on this device."""

    @abstractmethod
    def upload(self, array: Array, layout: Layout) -> Any:
        """A copy of a host array, with the sizes and the type of `layout`, as `empty` makes it."""

    @abstractmethod
    def download(self, array: Any) -> Array:
        """A copy in host memory of an array of its own, after all work on the device."""

    @abstractmethod
    def stream(self, stream: Any, name: str) -> int:
        """The handle of a stream of the caller: an integer, or a stream of any library.

        Raises:
            InvalidArgument: no stream, or the device has none, of which `name`, the caller's method, is told.
        """

    @abstractmethod
    def record(self, several: Sequence[Runnable]) -> Runnable:
        """Bound work of this device as one, in its order. It must stay bound.

        Raises:
            InvalidArgument: work that cannot be recorded.
        """

    @abstractmethod
    def plan(self, program: Program) -> Planned | None:
        """What `compile` makes of a program; None where nothing is fused."""

    @abstractmethod
    def timers(self, instance: Instance) -> list[Timer]:
        """For an instance of a compiled program with all its tensors bound: what running nothing takes, then
        each launch of a dispatch alone, in their order, or the dispatch as a whole where there are none."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until all work on the device is done."""


class StreamCall(Protocol):
    """An immediate call over arrays of other libraries on a device: the library of the first array decides
    on which stream it runs, and makes the results."""

    @property
    def place(self) -> Place:
        """Where the arrays are."""

    @property
    def stream(self) -> int:
        """The handle of the stream."""

    def identify(self, array: Any) -> tuple[Hashable, int]:
        """All that decides what code an array needs, and its address. From now on it is ready on the stream.

        Raises:
            BufferError: it cannot be used in place.
        """

    def memory(self, array: Any, name: str) -> TensorMemory:
        """The memory of an array that is on the device, ready on the stream.

        Raises:
            InvalidArgument: it cannot be used in place, or has a type that DirectML does not have.
        """

    def empty(self, sizes: Sequence[int], type: ScalarType) -> tuple[Any, int]:
        """A new packed array of the library that `finished` completes, and its address."""

    def finished(self, array: Any) -> Any:
        """What `empty` made, as an array of the library; the work that writes it is on the stream."""

    def end(self, outputs: Sequence[Any]) -> None:
        """Ends the call once its work, which writes these arrays of the caller, is on the stream."""


class StreamBackend(DeviceBackend):
    """A device with memory and streams of its own."""

    place: Place

    def over_host_memory(self, instance: Instance, layouts: Sequence[Layout], input_count: int) -> Instance:
        """An instance that copies what is bound to the device and back at every dispatch."""
        return HostedInstance(instance, layouts, input_count, self.allocate)

    @abstractmethod
    def copy(self, target: int, source: int, size: int) -> None:
        """Copies bytes between addresses on the device or in host memory, after all work on the device, and
        waits."""

    @abstractmethod
    def memory(self, array: Any, name: str) -> TensorMemory:
        """The memory of an array of any library on the device, in place, for work that is enqueued from now
        on.

        Raises:
            InvalidArgument: it cannot be used in place, or has a type that DirectML does not have.
        """

    @abstractmethod
    def call(self, first: Any) -> StreamCall:
        """An immediate call whose first array on a device of this kind is `first`."""
