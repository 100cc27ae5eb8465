"""The interface of compiled programs: all that the runtime does with them, whatever the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol


class Runnable(Protocol):
    """Work with its memory."""

    @property
    def dispatch(self) -> Callable[[], object]:
        """Runs it and returns when the results are there."""

    @property
    def enqueue(self) -> Callable[[int], object] | None:
        """Adds it to a stream, given by its handle; None where it runs over host memory."""


class Instance(Runnable, Protocol):
    """A program with its own state, ready to run: one dispatch at a time."""

    def bind(self, buffer: int, address: int, /) -> None:
        """Sets the address of a tensor's first element: inputs first, then outputs."""

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as `dispatch` itself, which callers may hold without anything
        else."""


class Executable(Protocol):
    """A compiled program, over memory where it runs."""

    @property
    def temporary_bytes(self) -> int:
        """Memory that each instance needs beside the tensors."""

    @property
    def persistent_bytes(self) -> int:
        """Memory for what dispatches need of the program's constants, which all instances may share."""

    def initialize(self, constants: Mapping[int, int], persistent: int) -> None:
        """Prepares the program's constants, after all earlier work on the device, and returns when that is
        done. Nothing reads them afterwards.

        Args:
            constants: the addresses of their first elements, where the program runs, by their numbers.
            persistent: the address of `persistent_bytes` bytes there, as `Backend.allocate` gives them.
        """

    def instantiate(self, arena: int | None = None, persistent: int = 0) -> Instance:
        """A new instance, with nothing bound but its constants.

        Args:
            arena: the address of `temporary_bytes` bytes where the program runs, as `Backend.allocate` gives
                them, for this instance alone while it runs; None: it allocates them itself.
            persistent: the address of the memory that `initialize` writes before the first dispatch; it must
                live as long as the instance.
        """
