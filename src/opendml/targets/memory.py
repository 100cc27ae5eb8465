"""The memory of tensors, in host memory or on a device, and memory that opendml allocates."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from opendml.compiler.memory import ALIGNMENT
from opendml.errors import Unsupported
from opendml.program.program import Layout

Array = np.ndarray[Any, np.dtype[Any]]


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
        """Copy `size` bytes from an address in host memory, and wait."""

    def read(self, target: int, size: int) -> None:
        """Copy `size` bytes to an address in host memory, after all work that writes them."""


class HostMemory:
    """Bytes in host memory, with any values, freed with the object."""

    def __init__(self, size: int) -> None:
        self.bytes = aligned_bytes(np.empty, size)
        self.address: int = self.bytes.ctypes.data

    def write(self, source: int, size: int) -> None:
        """Copy `size` bytes from an address."""
        ctypes.memmove(self.address, source, size)

    def read(self, target: int, size: int) -> None:
        """Copy `size` bytes to an address."""
        ctypes.memmove(target, self.address, size)


def aligned_bytes(make: Any, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return `size` bytes made by `np.empty` or `np.zeros`, at an address that is a multiple of ALIGNMENT.

    Raises:
        Unsupported: there is not enough memory.
    """
    try:
        memory: np.ndarray[tuple[int], np.dtype[np.uint8]] = make(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:
        raise Unsupported(f"no memory for {size:,} bytes") from error
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def new_array(make: Callable[[], Array], layout: Layout) -> Array:
    """Return a packed array of a tensor, which `make` makes.

    Raises:
        Unsupported: there is not enough memory.
    """
    try:
        return make()
    except (MemoryError, Unsupported) as error:
        size = layout.element_count * layout.type.numpy.itemsize
        tensor = f"a tensor of type {layout.type.name} and sizes {list(layout.sizes)}"
        raise Unsupported(f"no memory for {tensor}: {size:,} bytes") from error
