"""The machines that kernels are scheduled for, and the estimates that follow from their rates."""

from __future__ import annotations

from abc import ABC, abstractmethod


class Machine(ABC):
    """A description of a device, from which all estimates come.

    A core is what runs on its own: a processor's core, or a GPU's multiprocessor. Cycles are those of a core,
    and rates are those of each core while all cores work.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def cores(self) -> int:
        """The number of cores."""

    @property
    @abstractmethod
    def lanes(self) -> int:
        """The FLOAT32 lanes of a vector register, or the threads of a subgroup."""

    @property
    @abstractmethod
    def registers(self) -> int:
        """The registers of a core: of vectors, or of 32 bits for all threads."""

    @property
    @abstractmethod
    def memory_rate(self) -> float:
        """The bytes that a core moves from or to memory in a cycle."""

    @property
    @abstractmethod
    def cache_rate(self) -> float:
        """The bytes that a core reads in a cycle from the cache beyond its first that is nearest."""

    @property
    @abstractmethod
    def operation_rate(self) -> float:
        """The operations on single elements of FLOAT32 that a core begins in a cycle."""

    def memory_cycles(self, bytes: float) -> float:
        """Return the cycles of one core to move bytes from or to memory."""
        return bytes / self.memory_rate

    def cache_cycles(self, bytes: float) -> float:
        """Return the cycles of one core to read bytes again that a cache holds."""
        return bytes / self.cache_rate

    def operation_cycles(self, count: float) -> float:
        """Return the cycles of one core for operations on single elements."""
        return count / self.operation_rate

    @property
    def operations_per_byte(self) -> float:
        """The operations that take as long as moving a byte from or to memory."""
        return self.operation_rate / self.memory_rate
