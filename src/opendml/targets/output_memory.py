"""Memory of outputs that callers have dropped, which outputs of later runs take.

The system clears fresh pages when they are first written, and takes them back later. For outputs of
megabytes, that takes longer than to write them. A token of GPT-2 with caches of 38 MB takes 69 ms of
processor time with kept memory, and 93 with fresh memory (Zen 3, two threads).
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from opendml.targets.memory import LARGE_BYTES, Array, bytes_for

_STEPS = 8
"""Capacities within each power of two. Outputs that grow step by step keep a capacity for many steps."""
_LEAST_STEP = 4096
"""Bytes between capacities, at least: a page."""
_OWN_REFERENCES = 3
"""The references to memory that is given back: of the base, of a variable, and of the count's argument."""


class OutputMemory:
    """The memory of dropped outputs, as much as the largest run needs. It is safe to use from threads.

    An output owns its memory through its base, so views of the output keep it, too.
    """

    def __init__(self) -> None:
        # Arrays are freed at any time, within the methods below too. So all steps are single operations of
        # lists and dicts, without a lock. `items` is none: it makes tuples, which may start the collector.
        self._free: dict[int, list[Any]] = {}
        self._most = 0
        self._self = ref(self)

    @property
    def free_bytes(self) -> int:
        """The bytes that no output has."""
        return sum([capacity * len(self._free.get(capacity, ())) for capacity in list(self._free)])

    def makers(self, tensors: Iterable[tuple[Sequence[int], np.dtype[Any]]]) -> list[Callable[[], Array]]:
        """Return functions that make arrays for the outputs of a run, like those of `array_maker`.

        Args:
            tensors: the sizes and the type of each output.
        """
        made, total = list[Callable[[], Array]](), 0
        for sizes, type in tensors:
            size = math.prod(sizes) * type.itemsize
            if size < LARGE_BYTES:
                made.append(partial(np.empty, sizes, type))
            else:
                capacity = _capacity(size)
                total += capacity
                made.append(partial(self._array, tuple(sizes), type, capacity))
        self._most = max(self._most, total)
        return made

    def clear(self) -> None:
        """Free all memory that no output has."""
        self._free.clear()

    def _array(self, sizes: tuple[int, ...], type: np.dtype[Any], capacity: int) -> Array:
        try:
            memory = self._free[capacity].pop()
        except LookupError:
            memory = (ctypes.c_char * capacity).from_buffer(bytes_for(sizes, type, capacity).data)
        block = _Block(capacity, np.uint8, memory)
        block.owner = self._self
        return np.ndarray(sizes, type, block)

    def give(self, memory: Any) -> None:
        """Take the memory of a dropped output, and free other memory beyond the need of a run."""
        capacity = len(memory)
        self._free.setdefault(capacity, []).append(memory)
        excess = self.free_bytes - self._most
        if excess <= 0:
            return
        for each in (*[each for each in list(self._free) if each != capacity], capacity):
            while excess > 0 and (blocks := self._free.get(each)):
                try:
                    blocks.pop()
                except IndexError:  # Another thread has taken it.
                    break
                excess -= each


class _Block(np.ndarray[Any, Any]):
    """The base of an output. It gives the memory back when nothing refers to it any more.

    An object of another class with an array interface takes four times as long to make and to wrap. The
    memory is an object of ctypes, as NumPy passes over arrays when it looks for the base of an array. If a
    caller has found it, as the base of this base, it is theirs.
    """

    __slots__ = ("owner",)
    owner: Callable[[], OutputMemory | None]

    def __del__(self) -> None:
        try:
            owner = self.owner()
        except AttributeError:  # A part of a block.
            return
        memory = self.base
        if owner is not None and sys.getrefcount(memory) <= _OWN_REFERENCES:
            owner.give(memory)


def _capacity(size: int) -> int:
    """Return the bytes of the memory of an output."""
    step = max(_LEAST_STEP, (1 << (size.bit_length() - 1)) // _STEPS)
    return -(-size // step) * step
