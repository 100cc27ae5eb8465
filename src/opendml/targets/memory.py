"""The memory of tensors, in host memory or on a device, and memory that opendml allocates."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from opendml.compiler.memory import ALIGNMENT
from opendml.errors import Unsupported
from opendml.late_dataclass import dataclass
from opendml.program.program import Layout

Array = np.ndarray[Any, np.dtype[Any]]

LARGE_BYTES = 64 * 1024
"""Bytes of the smallest arrays that are aligned to ALIGNMENT."""


def _address_reader() -> Callable[[Array], int]:
    """Return a fast function that reads an array's address.

    NumPy's own ways take microseconds. The data pointer is the first field of an array object in every
    version so far. If it is not, the slow way is used.
    """
    probe = np.zeros(3)
    offset = object.__basicsize__
    from_address = ctypes.c_size_t.from_address
    if from_address(id(probe) + offset).value == probe.ctypes.data:
        return lambda array: from_address(id(array) + offset).value
    return lambda array: int(array.ctypes.data)


address_of = _address_reader()


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
        self.address = address_of(self.bytes)

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
    start = -address_of(memory) % ALIGNMENT
    return memory[start : start + size]


def array_maker(sizes: Sequence[int], type: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that makes new packed arrays.

    Large arrays are aligned to 64 bytes, because JAX copies others. For small arrays the copy is cheaper. The
    function raises Unsupported if there is not enough memory for a large one.
    """
    size = math.prod(sizes) * type.itemsize
    return partial(np.empty if size < LARGE_BYTES else _aligned_array, sizes, type)


def _aligned_array(sizes: Sequence[int], type: np.dtype[Any]) -> Array:
    return np.ndarray(sizes, type, bytes_for(sizes, type, math.prod(sizes) * type.itemsize))


def bytes_for(
    sizes: Sequence[int], type: np.dtype[Any], size: int
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return `size` aligned bytes for an array of these sizes and this type, which may be smaller.

    Raises:
        Unsupported: there is not enough memory.
    """
    try:
        return aligned_bytes(np.empty, size)
    except Unsupported as error:
        tensor = f"a tensor of type {type.name.upper()} and sizes {list(sizes)}"
        needed = math.prod(sizes) * type.itemsize
        raise Unsupported(f"no memory for {tensor}: {needed:,} bytes") from error.__cause__
