"""Devices that work in host memory: their arrays are NumPy's, and a dispatch is over when it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument, Unsupported
from opendml.floating_point import default_mode
from opendml.program.program import Layout, Program
from opendml.targets.arenas import Arenas
from opendml.targets.backend import Array, DeviceBackend
from opendml.targets.executable import Executable, Instance, Runnable
from opendml.targets.kept import KeptConstants
from opendml.targets.memory import HostMemory, aligned_bytes, array_maker
from opendml.targets.planned import Planned, Timer, on_the_clock


class HostBackend(DeviceBackend):
    """A device without memory of its own. A subclass says at least how programs are compiled."""

    def open(self) -> None:
        """Do nothing: the processor is always there."""

    @abstractmethod
    def compile(self, program: Program, threads: int | None) -> Executable:
        """Return a program as code for up to `threads` threads; None: all that the process may use."""

    def compile_for_calls(self, program: Program, threads: int | None) -> Callable[[], Instance]:
        """Return a maker of instances, each with an arena of its own if its executable plans one."""
        return self.compile(program, threads).instantiate

    def plan(self, program: Program) -> Planned | None:
        """Return None: nothing is planned unless a target says so."""
        return None

    def timers(self, instance: Instance) -> list[Timer]:
        """Return timers of nothing and of a whole dispatch."""
        return [on_the_clock(lambda: None), on_the_clock(instance.dispatch)]

    def over_host_memory(self, instance: Instance, layouts: Sequence[Layout], input_count: int) -> Instance:
        """Return the instance itself, which works in host memory."""
        return instance

    def allocate(self, size: int) -> HostMemory:
        """Allocate host memory."""
        return HostMemory(size)

    def create_buffer(self, size: int) -> Array:
        """Return a NumPy array of zeros."""
        try:
            return aligned_bytes(np.zeros, size)
        except Unsupported as error:
            raise Unsupported(f"create_buffer: {error}") from error

    def empty(self, layout: Layout) -> Array:
        """Return a NumPy array."""
        return array_maker(layout.sizes, layout.type.numpy)()

    def is_own(self, array: Any) -> bool:
        """Return whether a value is a NumPy array."""
        return isinstance(array, np.ndarray)

    def upload(self, array: Array, layout: Layout) -> Array:
        """Return a packed copy of an array."""
        copy = self.empty(layout)
        copy[...] = array
        return copy

    def download(self, array: Any) -> Array:
        """Return a copy of an array."""
        return array.copy()  # type: ignore[no-any-return]

    def stream(self, stream: Any, name: str) -> int:
        """Refuse the call, because the device has no streams.

        Raises:
            InvalidArgument: always.
        """
        raise InvalidArgument(
            f"{name}: a stream for the device {self.kind!r}; only CUDA devices have streams"
        )

    def record(self, several: Sequence[Runnable]) -> Runnable:
        """Combine dispatches into one that runs them one after the other."""
        return _Sequence(several)

    def synchronize(self) -> None:
        """Do nothing, because a dispatch returns when its work is complete."""


class _Sequence:
    """Dispatches one after the other."""

    enqueue = None

    def __init__(self, several: Sequence[Runnable]) -> None:
        self._dispatches = [each.dispatch for each in several]

    def dispatch(self) -> None:
        """Run all dispatches to their ends."""
        for dispatch in self._dispatches:
            dispatch()


class HostExecutable(ABC):
    """A program that is run from Python, with copies of its constants and no arena.

    A subclass runs it over the addresses of its tensors.
    """

    temporary_bytes = 0

    def __init__(self, program: Program) -> None:
        self.program = program
        self._constants = KeptConstants({each: program.inputs[each] for each in sorted(program.constants)}, 0)
        self.kept = self._constants.kept

    @abstractmethod
    def run(self, addresses: Sequence[int]) -> None:
        """Run the program over the first elements of its inputs, then its outputs."""

    def constants_of(self, step: int) -> Collection[int]:
        """Return no numbers: all constants are copied."""
        return ()

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Raise NotImplementedError: all constants are copied."""
        raise NotImplementedError

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> Instance:
        """Return a new instance with nothing bound but its constants, which needs no arena."""
        instance = HostInstance(self)
        self._constants.bind(instance, kept)
        return instance


class HostInstance:
    """A program with its buffers."""

    enqueue = None

    def __init__(self, executable: HostExecutable) -> None:
        self._executable, program = executable, executable.program
        self._addresses = [0] * (len(program.inputs) + len(program.outputs))
        self._memory: object = None

    def bind(self, buffer: int, address: int) -> None:
        """Set the address of a tensor's first element: inputs first, then outputs."""
        self._addresses[buffer] = address

    def keep(self, memory: object) -> None:
        """Keep an object alive as long as `dispatch` itself."""
        self._memory = memory

    @default_mode()
    def dispatch(self) -> None:
        """Run the program to its end."""
        self._executable.run(self._addresses)
