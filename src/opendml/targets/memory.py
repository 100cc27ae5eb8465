"""Where a tensor's elements lie, in host memory or on a device; and memory of opendml's own."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from opendml.compiler.memory import ALIGNMENT
from opendml.program.program import Layout


class Place(NamedTuple):
    """Memory that is not the host's: that of a device, by its kind and its number among those of the kind."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """An array's elements: the address of the first, their layout, and whether they may be written.

    `place` is where they are, None for host memory. `owner` keeps them alive.
    """

    address: int
    layout: Layout
    writable: bool
    owner: Any
    place: Place | None = None


class OwnMemory(Protocol):
    """Bytes of opendml's own where programs run, at an address that suits every tensor."""

    address: int

    def write(self, source: int, size: int) -> None:
        """Copies `size` bytes from an address in host memory, and waits."""

    def read(self, target: int, size: int) -> None:
        """Copies `size` bytes to an address in host memory, after all work that writes them."""


class HostMemory:
    """Bytes in host memory, with any values, freed with the object."""

    def __init__(self, size: int) -> None:
        self.bytes = aligned_bytes(np.empty, size)
        self.address: int = self.bytes.ctypes.data

    def write(self, source: int, size: int) -> None:
        """Copies `size` bytes from an address."""
        ctypes.memmove(self.address, source, size)

    def read(self, target: int, size: int) -> None:
        """Copies `size` bytes to an address."""
        ctypes.memmove(target, self.address, size)


def aligned_bytes(make: Any, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """`size` bytes made by `np.empty` or `np.zeros`, at an address that is a multiple of ALIGNMENT."""
    memory: np.ndarray[tuple[int], np.dtype[np.uint8]] = make(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]
