"""The interface of compiled programs: all that the runtime does with them, whatever the target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opendml.targets.arenas import Arenas
    from opendml.targets.kept import Kept


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
    def kept(self) -> Sequence[Kept]:
        """What dispatches need of the program's constants, which all instances may share."""

    def constants_of(self, step: int) -> Collection[int]:
        """Return the numbers of the constants that a step of the initialization reads."""

    def initialize(self, step: int, constants: Mapping[int, int], addresses: Mapping[int, int]) -> None:
        """Run one step of the initialization, after all earlier work on the device, and return when it is
        done. Nothing reads the constants afterwards.

        Args:
            step: its number, which `kept` tells.
            constants: the addresses of the first elements of those that it reads, where the program runs, by
                their numbers.
            addresses: those of all memory that the step fills, by its place in `kept`, as `Backend.allocate`
                gives them.
        """

    def instantiate(
        self, arena: int | None = None, kept: Sequence[int] = (), arenas: Arenas | None = None
    ) -> Instance:
        """Return a new instance, with nothing bound but its constants.

        Args:
            arena: the address of `temporary_bytes` bytes where the program runs, as `Backend.allocate` gives
                them, for this instance alone while it runs; None: it allocates them itself.
            kept: the addresses of all that `kept` lists, filled before the first dispatch; the memory must
                live as long as the instance.
            arenas: the instance may take its arena for each dispatch anew, from these or in the order of a
                stream; None: it has one of its own.
        """
