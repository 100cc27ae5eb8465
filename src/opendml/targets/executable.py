"""The interface of compiled programs: all that the runtime does with them, whatever the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from opendml.targets.memory import OwnMemory


class Instance(Protocol):
    """A program with its own state, ready to run: one dispatch at a time."""

    @property
    def dispatch(self) -> Callable[[], object]:
        """Runs the program over the bound buffers and returns when the results are there."""

    def bind(self, buffer: int, address: int) -> None:
        """Sets the address of a tensor's first element: inputs first, then outputs."""

    def keep(self, memory: object) -> None:
        """Keeps an object alive as long as `dispatch` itself, which callers may hold without anything
        else."""


class Executable(Protocol):
    """A compiled program."""

    @property
    def temporary_bytes(self) -> int:
        """Memory that each instance needs beside the tensors."""

    def allocate(self, size: int) -> OwnMemory:
        """Memory where the program runs, for temporaries and for inputs that stay."""

    def instantiate(self, arena: int | None = None) -> Instance:
        """A new instance, with nothing bound.

        Args:
            arena: the address of `temporary_bytes` bytes where the program runs, aligned as `allocate` aligns
                them, for this instance alone while it runs; None: it allocates them itself.
        """
