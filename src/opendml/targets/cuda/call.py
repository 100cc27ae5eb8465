"""One call on arrays in CUDA memory: whose stream it is on, and what it holds until it is done."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from opendml.program.scalar_type import ScalarType
from opendml.targets.cuda.arrays import Library, exchanged, library_of
from opendml.targets.cuda.driver import device as cuda_device
from opendml.targets.cuda.place import place, place_of
from opendml.targets.cuda.streams import InFlight
from opendml.targets.memory import Place, TensorMemory

_ELSEWHERE = object()
"""A key that no plan has. Planning reports the device of the array."""


class CudaCall:
    """The library and the device of the call's first array decide the stream, to which the other arrays are
    brought into order.
    """

    __slots__ = ("_alive", "_device", "_kind", "_library", "place", "stream")

    def __init__(self, first: Any) -> None:
        self._kind = type(first)
        self._library = library = library_of(first)
        self._device = device = library.device(first)
        self.place: Place = place(device)
        self.stream: int = library.stream(device)
        self._alive: list[Any] = []

    def identify(self, array: Any) -> tuple[Any, int]:
        """See StreamCall."""
        library = self._library if type(array) is self._kind else self._library_of(array)
        if not library.is_ordered and place_of(array) != self.place:
            return _ELSEWHERE, 0
        form, address, held = library.identify(array, self.stream)
        if held is not None:
            self._alive.append(held)
        return form, address

    def memory(self, array: Any, name: str) -> TensorMemory:
        """See StreamCall."""
        library = self._library_of(array)
        memory = library.memory(array, name, self.stream)
        if not library.is_ordered:
            self._alive.append(memory.owner)
        return memory

    def empty(self, sizes: Sequence[int], type: ScalarType) -> tuple[Any, int]:
        """See StreamCall."""
        return self._library.empty(sizes, type, self._device)

    def finished(self, array: Any) -> Any:
        """See StreamCall."""
        return self._library.finished(array)

    def copy(self, target: int, source: int, size: int) -> None:
        """See StreamCall."""
        cuda_device(self._device).copy_in_order(target, source, size, self.stream)

    def end(self, outputs: Sequence[Any]) -> None:
        """See StreamCall."""
        if self._alive:
            _in_flight(self._device).hold(self._alive, self.stream)
        # Their libraries do not know of the stream that they are written on.
        if any(not self._library_of(array).is_ordered for array in outputs):
            cuda_device(self._device).synchronize(self.stream)

    def _library_of(self, array: Any) -> Library:
        """Return the library that reads an array: DLPack, if the array belongs to another library's
        stream."""
        library = library_of(array)
        return library if library is self._library else exchanged(array)


@cache
def _in_flight(index: int) -> InFlight:
    return InFlight(cuda_device(index))
