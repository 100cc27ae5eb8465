"""Devices that work in host memory. Their arrays are NumPy arrays, and a dispatch returns when it is
complete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from opendml.errors import InvalidArgument, Unsupported
from opendml.program.program import Layout
from opendml.targets.backend import Array, DeviceBackend
from opendml.targets.executable import Instance, Runnable
from opendml.targets.memory import HostMemory, aligned_bytes, new_array


class HostBackend(DeviceBackend):
    """A device without memory of its own."""

    def open(self) -> None:
        """Do nothing, because the processor always exists."""

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
        return new_array(partial(np.empty, layout.sizes, layout.type.numpy), layout)

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
